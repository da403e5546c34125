"""AST PTX: postorder expressions of f32 values, compiled to PTX stubs or interpreted on the CPU.

    ast = AstPTX(inputs=["x", "y"], output="z")
    r = ast.registers
    stub = ast.compile([r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32])     z = x * y + 1
    values = ast.interpret([r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32], {"x": xs, "y": 2.0})

A program is a list: registers, numbers (f32 constants), instructions, and routines, which are lists with arguments:

    square = Routine("square", 1, [Argument(0), Argument(0), I.mul_ftz_f32])
    ast = AstPTX(inputs=["x", "y"], output="z", routines=[square])
    ast.compile([r.x, square, r.y, square, I.add_ftz_f32])

or an array of words, `(length,)` uint64, from `encode`. A batch is a list of programs, or the words of all of them,
`(num_programs, max_length)`. Operands are in push order: `[r.x, r.y, I.sub_ftz_f32]` is x - y. csrc/ast_ptx.h documents words and
limits, and csrc/ast_ptx_interpreter.h what instructions compute.

Owns the form of programs in Python and the messages about wrong ones. Knows nothing of kernels, compilers, tasks or search, and
loads no CUDA library.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.ast_ptx.elements import (
    INSTRUCTIONS,
    Argument,
    Bits,
    Element,
    I,
    Instruction,
    Instructions,
    Program,
    Register,
    Registers,
    Routine,
    Words,
)
from evo.errors import did_you_mean
from evo.native import ast_ptx as native
from evo.native.ast_ptx import MAX_INSTRUCTION_ARGS, MAX_INSTRUCTIONS, ROUTINE_DEPTH, STACK_DEPTH, ProgramError, WordType
from evo.native.stack_ptx_words import nearest_f32

__all__ = [
    "INSTRUCTIONS", "MAX_INSTRUCTIONS", "MAX_INSTRUCTION_ARGS", "ROUTINE_DEPTH", "STACK_DEPTH", "Argument", "AstPTX", "Bits",
    "Element", "I", "Instruction", "Instructions", "Program", "Register", "Registers", "Routine", "Words",
]  # fmt: skip

_INTERPRETED = {instruction: index for index, instruction in enumerate(INSTRUCTIONS)}


class AstPTX:
    """Programs over these registers, instructions and routines. Immutable; usable from many threads at once.

    Args:
        inputs: names of the registers that programs read, without the percent sign.
        output: name of the register that programs write; it may also be an input.
        instructions: of programs; those that are not among `INSTRUCTIONS` have no CPU meaning.
        routines: that programs may call.

    Attributes:
        registers: the inputs by name.

    Raises:
        ValueError: a name is used twice, is not a PTX identifier, or is one that compilers use (`f1`, `r2`, `tid`); an
            instruction has too many operands; a routine is wrong.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        output: str,
        instructions: Sequence[Instruction] = INSTRUCTIONS,
        routines: Sequence[Routine] = (),
    ):
        self.inputs = tuple(inputs)
        self.output = output
        self.instructions = tuple(instructions)
        self.routines = tuple(routines)
        self.registers = Registers(self.inputs)
        for what, names in (("input", self.inputs), ("routine", [routine.name for routine in self.routines])):
            if twice := [name for name, number in Counter(names).items() if number > 1]:
                raise ValueError(f"{what} '{twice[0]}': the name is used twice")
        for instruction in self.instructions:
            if not 0 <= instruction.num_args <= MAX_INSTRUCTION_ARGS:
                reason = f"{instruction.num_args} operands, expected 0 to {MAX_INSTRUCTION_ARGS}"
                raise ValueError(f"instruction {instruction.ptx}: {reason}")
            if not re.fullmatch(r"[A-Za-z0-9_.:]+", instruction.ptx):
                raise ValueError(f"instruction {instruction.ptx!r}: expected a name such as add.ftz.f32")
        self._input_indices = {name: index for index, name in enumerate(self.inputs)}
        self._instruction_indices = {instruction: index for index, instruction in enumerate(self.instructions)}
        self._routine_indices = {routine: index for index, routine in enumerate(self.routines)}
        self._routine_words = [self._encoded(routine.words, f"routine '{routine.name}', ") for routine in self.routines]
        table = [(instruction.ptx, instruction.num_args) for instruction in self.instructions]
        self._compiler = native.AstCompiler(output, self.inputs, table, self._routine_words)

    def __reduce__(self) -> tuple[type[AstPTX], tuple[object, ...]]:
        return AstPTX, (self.inputs, self.output, self.instructions, self.routines)

    def encode(self, program: Sequence[Element]) -> Words:
        """The words of a program, and a return, `(length + 1,)` uint64.

        Raises:
            ValueError: an element is unknown to this object, or a number does not fit into f32.
            TypeError: an element is not an `Element`.
        """
        return self._encoded(program, "")

    def encode_batch(self, programs: Sequence[Sequence[Element]]) -> Words:
        """The words of many programs, `(num_programs, max_length)` uint64, with zeros after their returns. Raises as `encode`."""
        return _stacked([self._encoded(program, f"program {index}, ") for index, program in enumerate(programs)])

    def decode(self, words: Words) -> list[Element]:
        """The elements of a program's words, up to its return; `encode` gives the words back.

        Raises:
            ValueError: a word is unknown to this object, or there is no return.
        """
        elements: list[Element] = []
        for index, value in enumerate(_checked(words, 1)):
            kind, num_args, payload = _parts(value)
            if kind == WordType.RETURN:
                return elements
            element = self._element(kind, payload)
            if element is None or getattr(element, "num_args", num_args) != num_args:
                raise ValueError(f"word {index}: 0x{int(value):016x} is unknown here")
            elements.append(element)
        raise ValueError(f"word {len(words)}: there is no return")

    def compile(self, program: Program) -> str:
        """The PTX stub of a program: `{ .reg .f32 %ast<N>; ...; mov.f32 %output, ...; }`, a line for each instruction.

        Raises:
            ValueError: the program is wrong; the message has the word's index and says what would be right.
        """
        words = self._words(program)
        try:
            return self._compiler.emit(words[None])[0]
        except ProgramError as error:
            raise ValueError(self._explain(error, words, in_batch=False)) from None

    def compile_batch(self, programs: Sequence[Program] | Words) -> list[str]:
        """The stub of each program; the GIL is released. Raises as `compile`."""
        table = self._table(programs)
        try:
            return self._compiler.emit(table)
        except ProgramError as error:
            raise ValueError(self._explain(error, table[error.program_idx], in_batch=True)) from None

    def interpret(self, program: Program, inputs: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """The value of a program at each point, computed on the CPU by the rules of PTX.

        Args:
            program: made of `INSTRUCTIONS`.
            inputs: numbers or arrays by name, converted to f32 and broadcast to one shape; inputs that the program does not
                read may be missing.

        Returns:
            float32 of the inputs' shape; a NumPy scalar if the shape is ().

        Raises:
            ValueError: the program is wrong, holds an instruction without CPU meaning, or reads an input that has no values.
        """
        words = self._words(program)
        try:
            values: NDArray[np.float32] = self._interpreted(words[None], inputs)[0]
        except ProgramError as error:
            raise ValueError(self._explain(error, words, in_batch=False)) from None
        return values

    def interpret_batch(self, programs: Sequence[Program] | Words, inputs: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """As `interpret` for each program, `(num_programs, *shape)`; the GIL is released."""
        table = self._table(programs)
        try:
            return self._interpreted(table, inputs)
        except ProgramError as error:
            raise ValueError(self._explain(error, table[error.program_idx], in_batch=True)) from None

    def _interpreted(self, table: Words, inputs: Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        if unknown := [name for name in inputs if name not in self._input_indices]:
            raise ValueError(f"input '{unknown[0]}': unknown, {did_you_mean(unknown[0], self.inputs)}")
        input_arrays = {name: _as_f32(name, values) for name, values in inputs.items()}
        try:
            shape = np.broadcast_shapes(*(values.shape for values in input_arrays.values()))
        except ValueError:
            shapes = ", ".join(f"{name} {values.shape}" for name, values in input_arrays.items())
            raise ValueError(f"inputs: shapes that do not broadcast to one: {shapes}") from None
        points = {name: np.broadcast_to(values, shape).ravel() for name, values in input_arrays.items()}
        num_points = int(np.prod(shape, dtype=np.intp))
        arrays = [points.get(name) for name in self.inputs]
        routines = [self._as_interpreted(words) for words in self._routine_words]
        values = native.interpret(self._as_interpreted(table), arrays, num_points, routines)
        return values.reshape((len(table), *shape))

    def _as_interpreted(self, words: Words) -> Words:
        """The words with the interpreter's indices of instructions; one past all of them for an unknown instruction."""
        if self.instructions == INSTRUCTIONS:
            return words
        indices = [_INTERPRETED.get(instruction, len(INSTRUCTIONS)) for instruction in self.instructions]
        table = np.array([*indices, len(INSTRUCTIONS)], np.uint64)
        renamed = table[np.minimum(words >> np.uint64(32), np.uint64(len(indices))).astype(np.intp)] << np.uint64(32)
        is_instruction = (words & np.uint64(0xFFFF)) == WordType.PTX_INSTRUCTION
        return np.where(is_instruction, (words & np.uint64(0xFFFFFFFF)) | renamed, words)

    def _words(self, program: Program) -> Words:
        return _checked(program, 1) if isinstance(program, np.ndarray) else self.encode(program)

    def _table(self, programs: Sequence[Program] | Words) -> Words:
        if isinstance(programs, np.ndarray):
            return _checked(programs, 2)
        return _stacked(
            [
                _checked(program, 1) if isinstance(program, np.ndarray) else self._encoded(program, f"program {index}, ")
                for index, program in enumerate(programs)
            ]
        )

    def _encoded(self, program: Sequence[Element], prefix: str) -> Words:
        words = [self._word(element, f"{prefix}word {index}") for index, element in enumerate(program)]
        return np.array([*words, int(WordType.RETURN)], np.uint64)

    def _word(self, element: Element, location: str) -> int:
        if isinstance(element, Instruction):
            index = self._instruction_indices.get(element)
            if index is None:
                raise ValueError(f"{location}: {element.ptx} with {element.num_args} operands is not among the instructions")
            return WordType.PTX_INSTRUCTION | element.num_args << 16 | index << 32
        if isinstance(element, Register):
            if element.name not in self._input_indices:
                raise ValueError(
                    f"{location}: register '{element.name}' is not an input, {did_you_mean(element.name, self.inputs)}"
                )
            return WordType.INPUT | self._input_indices[element.name] << 32
        if isinstance(element, Routine):
            index = self._routine_indices.get(element)
            if index is None:
                known = [routine.name for routine in self.routines]
                raise ValueError(f"{location}: routine '{element.name}' is unknown, {did_you_mean(element.name, known)}")
            return WordType.ROUTINE | element.num_args << 16 | index << 32
        if isinstance(element, (Argument, Bits)):
            payload = element.index if isinstance(element, Argument) else element.bits
            kind = WordType.ROUTINE_ARG if isinstance(element, Argument) else WordType.CONSTANT
            if not 0 <= payload < 1 << 32:
                raise ValueError(f"{location}: {payload} does not fit into 32 bits")
            return kind | payload << 32
        if isinstance(element, (bool, np.bool_)) or not isinstance(element, (int, float, np.integer, np.floating)):
            wanted = "a register, number, instruction, routine, Argument or Bits"
            raise TypeError(f"{location}: {element!r} is a {type(element).__name__}, expected {wanted}")
        try:
            return WordType.CONSTANT | int(nearest_f32(element).view(np.uint32)) << 32
        except ValueError as error:
            raise ValueError(f"{location}: {error}") from None

    def _element(self, kind: int, payload: int) -> Element | None:
        if kind == WordType.CONSTANT:
            value = np.uint32(payload).view(np.float32)
            return Bits(payload) if np.isnan(value) else float(value)
        if kind == WordType.ROUTINE_ARG:
            return Argument(payload)
        if kind == WordType.INPUT and payload < len(self.inputs):
            return Register(self.inputs[payload])
        if kind == WordType.PTX_INSTRUCTION and payload < len(self.instructions):
            return self.instructions[payload]
        return self.routines[payload] if kind == WordType.ROUTINE and payload < len(self.routines) else None

    def _explain(self, error: ProgramError, words: Words, *, in_batch: bool) -> str:
        """One line with the location of a wrong word and the reason."""
        location = f"program {error.program_idx}, " if in_batch else ""
        if error.routine_idx is not None:
            location += f"routine '{self.routines[error.routine_idx].name}', "
            words = self._routine_words[error.routine_idx]
        location += f"word {error.word_idx}"
        if error.word_idx >= len(words):
            return f"{location}: there is no return"
        kind, num_args, payload = _parts(words[error.word_idx])
        element = self._element(kind, payload)
        name = element.ptx if isinstance(element, Instruction) else getattr(element, "name", "")
        reasons = {
            "INPUT_IDX_OUT_OF_BOUNDS": f"input {payload}, but there are {len(self.inputs)}",
            "PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS": f"instruction {payload}, but there are {len(self.instructions)}",
            "UNSUPPORTED_INSTRUCTION": f"instruction {name or payload} has no CPU meaning",
            "ROUTINE_IDX_OUT_OF_BOUNDS": f"routine {payload}, but there are {len(self.routines)}",
            "ROUTINE_ARG_IDX_OUT_OF_BOUNDS": f"argument {payload} is not an argument of this call",
            "ROUTINE_DEPTH_EXCEEDED": f"routine '{name}' is called {ROUTINE_DEPTH + 1} deep, expected at most {ROUTINE_DEPTH}",
            "STACK_OVERFLOW": f"more than {STACK_DEPTH} values on the stack",
            "TOO_MANY_ARGS": f"{num_args} operands, expected at most {MAX_INSTRUCTION_ARGS}",
        }
        reason = reasons.get(error.code)
        if error.code == "STACK_UNDERFLOW":
            need = "the return finds none" if kind == WordType.RETURN else f"{name} takes {num_args} values and finds fewer"
            reason = f"{need} on the stack"
        elif error.code == "BAD_INSTRUCTION_MAYBE_FORGOT_RETURN":
            is_known = WordType.INPUT <= kind <= WordType.ROUTINE_ARG
            unknown = f"0x{int(words[error.word_idx]):016x} is not a word; is a return missing before it?"
            reason = f"more than {MAX_INSTRUCTIONS} words run" if is_known else unknown
        elif error.code == "INVALID_VALUE" and kind == WordType.RETURN:
            reason = "more than one value is left at the return"
        elif error.code == "INVALID_VALUE" and kind == WordType.INPUT:
            reason = f"reads input '{name}', which has no values"
        elif error.code == "INVALID_VALUE":
            reason = f"{name} with {num_args} operands in its word, expected {getattr(element, 'num_args', 0)}"
        return f"{location}: {reason}"


def _parts(word: np.uint64) -> tuple[int, int, int]:
    """Type, aux and payload."""
    value = int(word)
    return value & 0xFFFF, value >> 16 & 0xFFFF, value >> 32


def _checked(words: np.ndarray, num_dimensions: int) -> Words:
    if words.dtype != np.uint64 or words.ndim != num_dimensions:
        shape = "(length,)" if num_dimensions == 1 else "(num_programs, max_length)"
        raise ValueError(f"words: expected uint64 of shape {shape}, got {words.dtype} of {words.shape}")
    return words


def _stacked(rows: list[Words]) -> Words:
    """Rows of different lengths, with zeros behind the shorter ones."""
    table = np.zeros((len(rows), max(map(len, rows), default=1)), np.uint64)
    for row, words in zip(table, rows, strict=True):
        row[: len(words)] = words
    return table


def _as_f32(name: str, values: ArrayLike) -> NDArray[np.float32]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"input '{name}': expected numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        return array.astype(np.float32, copy=False)
