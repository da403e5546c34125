"""Stack PTX as a library: programs written as lists, compiled to PTX stubs.

    from evo import stack_ptx

    words = stack_ptx.Words()                             # of the default instruction set
    r, I = words.registers(x="f32", y="f32", z="f32"), words.instructions
    compiler = stack_ptx.Compiler(r, requests=[r.z])
    compiler.compile([r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32])

    {
    .reg .f32 %_s0_<2>;
    mul.ftz.f32 %_s0_0, %y, %x;
    add.ftz.f32 %_s0_1, 0f3F800000, %_s0_0;
    mov.f32 %z, %_s0_1;
    }

Owns the form of programs in Python: lists of words and numbers. csrc/stack_ptx.h documents words, modes and limits, and
`evo.instructions` instruction sets. Knows nothing of kernels, search or devices, and loads none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evo.errors import did_you_mean
from evo.instructions import FLOATS, InstructionSet, describe_instruction_set, open_instruction_set
from evo.language.program import Language, Limits, format_program, parse_program, program_length, word
from evo.native.stack_ptx import MODES, Lowering, check_name
from evo.native.stack_ptx_words import META_OPERATIONS, ProgramError, WordType, nearest_f32
from evo.stack_ptx.enums import load_enums

__all__ = [
    "DEFAULT_LIMITS", "MODES", "Compiler", "Limits", "Names", "ProgramError", "Registers", "Word", "Words", "load", "load_enums",
]  # fmt: skip

# As in stack_ptx_default_info.h; a program runs at most as many words as it may create values.
DEFAULT_LIMITS = Limits(stack_size=128, max_nodes=65536, max_frame_depth=4, store_size=16, execution_limit=65536)

# The constant type of a NumPy scalar, by its dtype.
_DTYPES = {"float32": "f32", "float64": "f64", "uint32": "u32", "uint64": "u64", "int32": "s32", "int64": "s64"}


def load(source: str | Path | Mapping[str, Any] | InstructionSet = "default") -> InstructionSet:
    """An instruction set.

    Args:
        source: a shipped set's name (`default`, `wide`), the path of a JSON description, or a mapping with the keys of the JSON
            form: `{"stack_types": [{"name": "F32", "literal_prefix": "f32", "constant_type": "f32"}],
            "arg_types": [{"name": "F32", "stack_type": "F32"}], "instructions": [{"ptx": "add.ftz.f32", "args": ["F32", "F32"],
            "rets": ["F32"]}]}`.

    Raises:
        evo.errors.UserError: the file cannot be read, or a key is wrong.
    """
    if isinstance(source, InstructionSet):
        return source
    if isinstance(source, Mapping):
        return describe_instruction_set(source)
    return open_instruction_set(source)


class Word(int):
    """One word of a program: a 64-bit int with type (bits 0-15), aux (16-31) and payload (32-63)."""

    def __repr__(self) -> str:
        return f"Word(0x{int(self):016x})"


class Names:
    """Things by name, as attributes and as items; iteration gives their names in the order of their indices."""

    def __init__(self, what: str, things: Mapping[str, Any]):
        self._what = what
        self._things = dict(things)

    def __getattr__(self, name: str) -> Any:
        # copy and pickle ask for attributes before there are any.
        if name.startswith("__") or name == "_things":
            raise AttributeError(name)
        try:
            return self._things[name]
        except KeyError:
            raise AttributeError(self._unknown(name)) from None

    def __getitem__(self, name: str) -> Any:
        try:
            return self._things[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._things]

    def _unknown(self, name: str) -> str:
        return f"no {self._what} '{name}', {did_you_mean(name, self._things)}"


class Registers(Names):
    """The registers around a stub: `r.x` is the word that pushes x. Made by `Words.registers`.

    words: of the instruction set; types: register name -> stack name.
    """

    def __init__(self, words: Words, types: Mapping[str, str]):
        super().__init__("register", {name: Word(word(WordType.INPUT, payload=i)) for i, name in enumerate(types)})
        self.words = words
        self.types = dict(types)
        for name, type_name in self.types.items():
            check_name(name)
            words.stack(type_name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Registers, (self.words, self.types)


class Words:
    """The words of an instruction set, by name.

    instructions: `I.add_ftz_f32`; special: `special.tid_x`; meta: `meta.dup("f32")`; constants: `constants.f32(1.5)`, for each
    stack with constants, by its name in lower case.

    Args:
        instruction_set: as for `load`.
    """

    RETURN = Word(word(WordType.RETURN))

    def __init__(self, instruction_set: str | Path | Mapping[str, Any] | InstructionSet = "default"):
        self.instruction_set = load(instruction_set)
        names = [instruction.name for instruction in self.instruction_set.instructions]
        specials = [special.ptx.replace(".", "_") for special in self.instruction_set.special_registers]
        stacks = self.instruction_set.stacks
        constants = {s.name.lower(): self._constant(i, s.constant_type) for i, s in enumerate(stacks) if s.constant_type}
        self.instructions = Names("instruction", {n: Word(word(WordType.PTX, payload=i)) for i, n in enumerate(names)})
        self.special = Names("special register", {n: Word(word(WordType.SPECIAL, payload=i)) for i, n in enumerate(specials)})
        self.meta = Names("meta operation", {n: self._meta(i) for i, n in enumerate(META_OPERATIONS)})
        self.constants = Names("stack with constants", constants)

    def __reduce__(self) -> tuple[Any, ...]:
        return Words, (self.instruction_set,)

    def registers(self, types: Mapping[str, str] | None = None, /, **more: str) -> Registers:
        """Registers by name and stack: `registers(x="f32")`, or `registers({"x": "f32"})`.

        Raises:
            ValueError: a name is not possible for a register or belongs to the compiler, or a stack is unknown.
        """
        return Registers(self, {**(types or {}), **more})

    def meta_constant(self, value: int) -> Word:
        """The word that pushes a depth or count (32 bits) onto the meta stack."""
        return Word(word(WordType.META_CONSTANT, payload=_index(value, "meta constant")))

    def store(self, stack: str, index: int) -> Word:
        """The word that pops a stack's top into a store entry."""
        return Word(word(WordType.STORE, self.stack(stack), _index(index, "store index")))

    def load(self, index: int) -> Word:
        """The word that pushes a store entry's value."""
        return Word(word(WordType.LOAD, payload=_index(index, "store index")))

    def routine(self, index: int) -> Word:
        """The word that runs a routine of a `Compiler`."""
        return Word(word(WordType.ROUTINE, payload=_index(index, "routine")))

    def encode(self, program: Iterable[Any]) -> np.ndarray:
        """The words of a program and a RETURN, `(length,)` uint64.

        Args:
            program: words and numbers; or an array of words, which is returned unchanged. Numbers become constants on the first
                stack of their constant type: f32 for a Python float, u32 for an int, s32 for a negative int, and a NumPy
                scalar's own type.

        Raises:
            ValueError: an element is neither a word nor a number; the message has its index.
        """
        if isinstance(program, np.ndarray):
            if program.dtype != np.uint64 or program.ndim != 1:
                raise ValueError(f"program: expected a 1-D array of uint64, got {program.ndim}-D of {program.dtype}")
            return program
        encoded = []
        for index, element in enumerate(program):
            try:
                encoded.append(int(element if isinstance(element, Word) else self._number(element)))
            except ValueError as error:
                raise ValueError(f"element {index} of the program: {error}") from None
        return np.array([*encoded, int(self.RETURN)], np.uint64)

    def stack(self, name: str) -> int:
        """The index of a stack. Raises ValueError."""
        try:
            return self.instruction_set.stack_index(name)
        except KeyError:
            names = [stack.name.lower() for stack in self.instruction_set.stacks]
            raise ValueError(f"unknown stack '{name}', {did_you_mean(name, names)}") from None

    def _meta(self, operation: int) -> Callable[[str], Word]:
        return partial(self._meta_word, operation)

    def _meta_word(self, operation: int, stack: str) -> Word:
        return Word(word(WordType.META, self.stack(stack), operation))

    def _constant(self, stack: int, constant_type: str) -> Callable[[Any], Word]:
        return partial(_constant_word, stack, constant_type)

    def _number(self, value: Any) -> Word:
        if isinstance(value, np.generic):
            wanted = _DTYPES.get(value.dtype.name)
        elif isinstance(value, bool):
            wanted = None
        elif isinstance(value, float):
            wanted = "f32"
        else:
            wanted = ("s32" if value < 0 else "u32") if isinstance(value, int) else None
        if wanted is None:
            raise ValueError(f"{value!r} is neither a word nor a number that can be a constant")
        for stack, stack_type in enumerate(self.instruction_set.stacks):
            if stack_type.constant_type == wanted:
                return self._constant(stack, wanted)(value)
        known = ", ".join(self.constants) or "none"
        raise ValueError(f"{value!r}: no stack has constants of {wanted}; there are constants of: {known}")


class Compiler:
    """Compiles programs to PTX stubs. Immutable, and usable from many threads at once; the GIL is released while it works.

    Args:
        registers: what programs read and write.
        requests: registers to write, in order, as words (`r.z`) or names.
        routines: programs that ROUTINE words run.
        limits: see `evo.language.program.Limits`.
        mode: `compatible` (as stack_ptx_compile: wrong words are errors, and a missing request is not written), `strict` (a
            depth or frame out of range and a word past the execution limit are errors too) or `lenient` (wrong words are no-ops,
            and requests are written all at once).
        value_numbering: merges equal values; None: in lenient mode only.

    Raises:
        ValueError: a name, index, limit or mode is wrong.
    """

    def __init__(
        self,
        registers: Registers,
        requests: Sequence[str | Word],
        *,
        routines: Sequence[Iterable[Any]] = (),
        limits: Limits = DEFAULT_LIMITS,
        mode: str = "compatible",
        value_numbering: bool | None = None,
    ):
        if mode not in MODES:
            raise ValueError(f"mode: '{mode}', must be one of: {', '.join(MODES)}")
        self.registers = registers
        self.words = registers.words
        names = tuple(registers)
        self.requests = tuple(_register_name(names, registers, request) for request in requests)
        self.mode = mode
        self.value_numbering = mode == "lenient" if value_numbering is None else value_numbering
        inputs = tuple(registers.types.items())
        outputs = tuple((name, registers.types[name]) for name in self.requests)
        self.language = Language(self.words.instruction_set, inputs, outputs, limits)
        encoded = [self.words.encode(routine) for routine in routines]
        self.lowering = Lowering(self.words.instruction_set, self.language.registers, self.language.requests, limits, encoded)

    def __reduce__(self) -> tuple[Any, ...]:
        options: dict[str, Any] = {
            "routines": self.lowering.routines,
            "limits": self.language.limits,
            "mode": self.mode,
            "value_numbering": self.value_numbering,
        }
        return partial(Compiler, **options), (self.registers, self.requests)

    def compile(self, program: Iterable[Any]) -> str:
        """The stub of one program; `program` as for `Words.encode`.

        Raises:
            ProgramError: a word is wrong; `result` is the name of its C code and `word_idx` its index. Not in lenient mode.
            ValueError: an element is neither a word nor a number.
        """
        return self.compile_batch(self.words.encode(program)[None])[0]

    def compile_batch(self, programs: np.ndarray | Sequence[Iterable[Any]]) -> list[str]:
        """The stubs of many programs.

        Args:
            programs: `(num_programs, max_length)` uint64, each row up to its first RETURN or its end; or a list of programs.

        Raises:
            ProgramError: as for `compile`; `program_idx` is the program's index.
        """
        rows = programs if isinstance(programs, np.ndarray) else self.encode_batch(programs)
        return self.lowering.emit(rows, mode=self.mode, value_numbering=self.value_numbering)

    def encode_batch(self, programs: Sequence[Iterable[Any]]) -> np.ndarray:
        """The words of programs, `(num_programs, max_length)` uint64, with zeros after each row's RETURN."""
        encoded = [self.words.encode(program) for program in programs]
        # An array need not end with a RETURN.
        rows = np.zeros((len(encoded), max(map(len, encoded), default=0) + 1), np.uint64)
        for row, program in zip(rows, encoded, strict=True):
            row[: len(program)] = program
            row[len(program)] = Words.RETURN
        return rows

    def format(self, program: Iterable[Any]) -> str:
        """The text form (`evo.language.program`) of a program up to its RETURN: `%x %y mul_ftz_f32 1.0 add_ftz_f32`."""
        return format_program(self.language, self.words.encode(program))

    def parse(self, text: str, source: str = "text") -> np.ndarray:
        """The words of a program's text and a RETURN, `(length,)` uint64.

        Raises:
            evo.errors.UserError: a token is wrong; the message has `source` and the line.
        """
        row = parse_program(self.language, text, source)
        return row[: program_length(row) + 1]


def _register_name(names: Sequence[str], registers: Registers, request: str | Word) -> str:
    if isinstance(request, Word):
        index = request >> 32
        if request & 0xFFFFFFFF != WordType.INPUT or index >= len(names):
            raise ValueError(f"request {request!r} is not a register; give a name or a register's word, such as r.z")
        return names[index]
    if request not in registers:
        raise ValueError(f"request '{request}': no such register, {did_you_mean(request, names)}")
    return request


def _index(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**32:
        raise ValueError(f"{what} {value!r}: use an integer from 0 to 2**32 - 1")
    return int(value)


def _constant_word(stack: int, constant_type: str, value: Any) -> Word:
    return Word(word(WordType.CONSTANT, stack, _constant_bits(constant_type, value)))


def _constant_bits(constant_type: str, value: Any) -> int:
    """The 32 bits of a constant. Those of f64, u64 and s64 are widened from 32 bits; a float is rounded to f32."""
    if constant_type in FLOATS:
        return int(nearest_f32(value).view(np.uint32))
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{value!r} is not an integer, but the constants of this stack are {constant_type}")
    low, high = (-(2**31), 2**31) if constant_type.startswith("s") else (0, 2**32)
    if not low <= value < high:
        raise ValueError(f"{value!r}: constants of {constant_type} are 32 bits, from {low} to {high - 1}")
    return int(value) & 0xFFFFFFFF
