"""The elements of AST PTX programs in Python: registers, constants, instructions, arguments and routines.

Owns these types and the table of the library's instructions. Knows nothing of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.errors import did_you_mean
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
    """In a routine: its argument `index`; 0 was pushed first."""

    index: int


@dataclass(frozen=True)
class Bits:
    """A constant by its 32 bits, for those without a number: NaNs of any payload."""

    bits: int


@dataclass(frozen=True)
class Instruction:
    """A PTX instruction with f32 operands and an f32 result.

    ptx: such as `fma.rn.ftz.f32`; num_args: number of operands, at most `MAX_INSTRUCTION_ARGS`.
    """

    ptx: str
    num_args: int

    @property
    def name(self) -> str:
        """The PTX name as a Python name: `fma_rn_ftz_f32`."""
        return self.ptx.replace(".", "_")


@dataclass(frozen=True, eq=False)
class Routine:
    """A program that is inlined wherever it is called; in a program's list it means the call. Equal only to itself.

    name: for messages; num_args: values that a call takes off the stack; words: a list like a program's, in which `Argument` is
    allowed too. The `AstPTX` must also know the routines that it calls.

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
"""An element of a program's list; ints and NumPy numbers count as floats."""
Program: TypeAlias = Sequence[Element] | Words
"""A program: a list of elements, or words that end with a return."""


class _Named:
    """Elements by name. Iteration gives them in the order of their indices."""

    _what: str

    def __init__(self, elements: Iterable[Instruction | Register]):
        self._by_name: dict[str, Any] = {element.name: element for element in elements}

    def __getattr__(self, name: str) -> Any:
        by_name: dict[str, Any] = self.__dict__.get("_by_name", {})
        try:
            return by_name[name]
        except KeyError:
            raise AttributeError(f"no {self._what} '{name}', {did_you_mean(name, by_name)}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __dir__(self) -> list[str]:
        return sorted(self._by_name)


class Instructions(_Named):
    """Instructions by name: `I.mul_ftz_f32`. Iteration gives them in the order of their indices.

    Raises:
        AttributeError: there is no instruction of this name.
    """

    _what = "instruction"

    def __init__(self, instructions: Sequence[Instruction]):
        super().__init__(instructions)


class Registers(_Named):
    """Input registers by name: `r.x`, or `r["x"]` for names that are not possible in Python. Iteration gives them in order.

    Raises:
        AttributeError: there is no register of this name; with brackets a KeyError.
    """

    _what = "input register"

    def __init__(self, names: Sequence[str]):
        super().__init__(map(Register, names))

    def __getitem__(self, name: str) -> Register:
        register: Register = self._by_name[name]
        return register


INSTRUCTIONS: tuple[Instruction, ...] = tuple(Instruction(ptx, num_args) for ptx, num_args in _NATIVE_INSTRUCTIONS)
"""The library's instructions, all with CPU meaning, in the order of csrc/ast_ptx_instructions.h."""

I = Instructions(INSTRUCTIONS)  # noqa: E741
"""`INSTRUCTIONS` by name."""
