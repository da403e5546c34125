"""What AST PTX programs are made of in Python: registers, constants, instructions, arguments and routines.

Owns these types and the table of instructions that the library brings. Knows nothing of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.native.ast_ptx import INSTRUCTIONS as _NATIVE_INSTRUCTIONS
from evo.native.ast_ptx import STACK_DEPTH

Words: TypeAlias = NDArray[np.uint64]
"""Words of a program, `(length,)`; csrc/ast_ptx.h has the layout."""


@dataclass(frozen=True)
class Register:
    """An input register, by its name without the percent sign."""

    name: str


@dataclass(frozen=True)
class Argument:
    """In a routine: its argument `index`, of which 0 was pushed first."""

    index: int


@dataclass(frozen=True)
class Bits:
    """A constant by its 32 bits, for those that no number stands for: NaNs of any payload."""

    bits: int


@dataclass(frozen=True)
class Instruction:
    """A PTX instruction with f32 operands and an f32 result.

    ptx: as it is written, such as `fma.rn.ftz.f32`; num_args: how many operands it has, at most `MAX_INSTRUCTION_ARGS`.
    """

    ptx: str
    num_args: int

    @property
    def name(self) -> str:
        """The PTX name as a Python name: `fma_rn_ftz_f32`."""
        return self.ptx.replace(".", "_")


@dataclass(frozen=True, eq=False)
class Routine:
    """A program of its own, written out wherever it is called; in a list it stands for the call. Equal only to itself.

    name: for messages; num_args: values that a call takes off the stack; words: a list as of a program, in which `Argument` may
    stand too. Routines that it calls have to be known to the `AstPTX` as well.

    Raises:
        ValueError: there are more arguments than a stack holds.
    """

    name: str
    num_args: int
    words: Sequence[Element]

    def __post_init__(self) -> None:
        if not 0 <= self.num_args <= STACK_DEPTH:
            raise ValueError(f"routine '{self.name}': {self.num_args} arguments, expected 0 to {STACK_DEPTH}")
        object.__setattr__(self, "words", tuple(self.words))


Element: TypeAlias = Register | Argument | Bits | Instruction | Routine | float
"""What a program's list is made of; ints and NumPy numbers are floats too."""
Program: TypeAlias = Sequence[Element] | Words
"""A program: a list of elements, or words that end with a return."""


class Instructions:
    """Instructions by name: `I.mul_ftz_f32`. Iterating gives them in the order of their indices.

    Raises:
        AttributeError: there is none of this name.
    """

    def __init__(self, instructions: Sequence[Instruction]):
        self._by_name = {instruction.name: instruction for instruction in instructions}

    def __getattr__(self, name: str) -> Instruction:
        by_name: dict[str, Instruction] = self.__dict__.get("_by_name", {})
        try:
            return by_name[name]
        except KeyError:
            raise AttributeError(f"no instruction '{name}', one of: {listed(by_name)}") from None

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __dir__(self) -> list[str]:
        return sorted(self._by_name)


class Registers:
    """Input registers by name: `r.x`, or `r["x"]` for names that are none in Python. Iterating gives them in order.

    Raises:
        AttributeError: there is none of this name; by index a KeyError.
    """

    def __init__(self, names: Sequence[str]):
        self._by_name = {name: Register(name) for name in names}

    def __getattr__(self, name: str) -> Register:
        by_name: dict[str, Register] = self.__dict__.get("_by_name", {})
        try:
            return by_name[name]
        except KeyError:
            raise AttributeError(f"no input register '{name}', one of: {listed(by_name)}") from None

    def __getitem__(self, name: str) -> Register:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Register]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __dir__(self) -> list[str]:
        return sorted(self._by_name)


INSTRUCTIONS: tuple[Instruction, ...] = tuple(Instruction(ptx, num_args) for ptx, num_args in _NATIVE_INSTRUCTIONS)
"""The instructions that the library brings and the interpreter knows, in the order of csrc/ast_ptx_instructions.h."""

I = Instructions(INSTRUCTIONS)  # noqa: E741
"""`INSTRUCTIONS` by name."""


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(names) or "none"
