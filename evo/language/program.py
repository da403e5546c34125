"""Programs: their words, their text form, and the language of a task's programs.

Owns encoding, decoding, printing and parsing of instruction words. Knows nothing of evaluation or search.

The text form is a list of tokens, one for each word, separated by white space; `#` starts a comment up to the end of the line:

    %x                    input x                       dup.f32           meta operation on a stack
    1.5                   f32 constant                  2:meta            constant on the meta stack
    7:u32                 constant of another stack     store.f32:0       pop into store entry 0
    mul_ftz_f32           PTX instruction               load:0            push store entry 0
    special:tid.x         special register              routine:0         run routine 0
    return                end of the program            word:0x...        a word without another form

Constants without a shorter exact form are printed as bits (`0x7f800000:f32`), so that printing and parsing gives back any word.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field

from evo.errors import UserError, did_you_mean, suggestion
from evo.instructions import FLOATS, InstructionSet
from evo.native.ptx_vm import Folding
from evo.native.stack_ptx import Lowering
from evo.native.stack_ptx_words import META_OPERATIONS, WordType
from evo.options import Integer, Options

_UNSIGNED = re.compile(r"0|[1-9][0-9]*|0[xX][0-9a-fA-F]+")
_SIGNED = re.compile(r"0|-?[1-9][0-9]*|0[xX][0-9a-fA-F]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][+-]?[0-9]+)?")


class Limits(Options):
    """Bounds on a program's run. They are part of its meaning: stack_ptx.h says how a program goes on that reaches one.

    stack_size: values of a stack; max_nodes: values that a program may create; max_frame_depth: word lists open at once,
    including the main program; store_size: entries of the store; execution_limit: words that may run.
    """

    stack_size: Annotated[Integer, Field(ge=1, le=65536)] = 128
    max_nodes: Annotated[Integer, Field(ge=1, le=65536)] = 4096
    max_frame_depth: Annotated[Integer, Field(ge=1, le=64)] = 4
    store_size: Annotated[Integer, Field(ge=0, le=4096)] = 16
    execution_limit: Annotated[Integer, Field(ge=1, le=1 << 20)] = 4096


@dataclass(frozen=True)
class Language:
    """The language of a task's programs: instruction set, input and output registers, limits.

    inputs, outputs: `(name, type)` pairs such as `("x", "f32")`; a name in both is one register, which is read and written.
    template: words that put the functions of a program together (`evo.language.template`); empty: a program is one formula.
    """

    instruction_set: InstructionSet
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    limits: Limits = field(default_factory=Limits)
    template: tuple[int, ...] = ()

    @cached_property
    def registers(self) -> tuple[tuple[str, int], ...]:
        """(name, stack index) of each register: the inputs, then the outputs that are not inputs."""
        named = {name: self.instruction_set.stack_index(type_name) for name, type_name in self.inputs}
        for name, type_name in self.outputs:
            if named.setdefault(name, self.instruction_set.stack_index(type_name)) != self.instruction_set.stack_index(type_name):
                raise UserError(f"'{name}' is an input and an output of different types")
        return tuple(named.items())

    @cached_property
    def requests(self) -> tuple[int, ...]:
        """Register index of each output, in order."""
        indices = {name: index for index, (name, _) in enumerate(self.registers)}
        return tuple(indices[name] for name, _ in self.outputs)

    @cached_property
    def lowering(self) -> Lowering:
        """The native lowering of this language; safe to use from many threads at once."""
        folding = Folding(self.instruction_set)
        return Lowering(self.instruction_set, self.registers, self.requests, self.limits, (), folding, self.template)

    def encode(self, token: str) -> int:
        """The word of a token. Raises ValueError with what is wrong."""
        encoded = self._encoded(token)
        if encoded is None:
            reason = f"'{token}' is not an instruction, constant, input (%name) or meta operation (name.stack)"
            near = suggestion(token, self._names())
            raise ValueError(f"{reason}; {near}" if near else reason)
        return encoded

    def is_token(self, token: str) -> bool:
        """Return whether it has a word."""
        try:
            return self._encoded(token) is not None
        except ValueError:
            return False

    def _encoded(self, token: str) -> int | None:
        """The word of a token; None if it is like none. Raises ValueError with what is wrong."""
        if token == "return":
            return word(WordType.RETURN)
        if token.startswith("%"):
            names = [name for name, _ in self.inputs]
            return word(WordType.INPUT, payload=_index(names, token[1:], "input"))
        if token in self._instruction_indices:
            return word(WordType.PTX, payload=self._instruction_indices[token])
        head, colon, tail = token.partition(":")
        if colon:
            return self._encode_pair(head, tail)
        operation, dot, stack = token.partition(".")
        if dot and operation in META_OPERATIONS:
            return word(WordType.META, self._stack(stack), META_OPERATIONS.index(operation))
        if _FLOAT.fullmatch(token):
            return self._constant(token, "f32")
        return None

    def _names(self) -> list[str]:
        """The tokens that are names."""
        stacks = [stack.name.lower() for stack in self.instruction_set.stacks]
        meta = [f"{operation}.{stack}" for operation in META_OPERATIONS for stack in stacks]
        return [*self._instruction_indices, *(f"%{name}" for name, _ in self.inputs), *meta]

    def _encode_pair(self, head: str, tail: str) -> int:
        if head == "load":
            return word(WordType.LOAD, payload=_unsigned(tail, "a store index"))
        if head == "routine":
            return word(WordType.ROUTINE, payload=_unsigned(tail, "a routine's index"))
        if head == "special":
            names = [special.ptx for special in self.instruction_set.special_registers]
            return word(WordType.SPECIAL, payload=_index(names, tail, "special register"))
        if head == "word":
            return _unsigned(tail, "a word", 64)
        if head.startswith("store."):
            return word(WordType.STORE, self._stack(head.removeprefix("store.")), _unsigned(tail, "a store index"))
        if tail == "meta":
            return word(WordType.META_CONSTANT, payload=_unsigned(head, "a meta constant"))
        return self._constant(head, tail)

    def _constant(self, literal: str, stack_name: str) -> int:
        stack = self._stack(stack_name)
        constant_type = self.instruction_set.stacks[stack].constant_type
        if constant_type in FLOATS and not literal.lower().startswith("0x"):
            if not _FLOAT.fullmatch(literal):
                raise ValueError(
                    f"'{literal}' is not an {constant_type} constant; write 1.5, or its bits as 0x3fc00000:{stack_name}"
                )
            with np.errstate(over="ignore"):
                number = np.float32(literal)
            if not np.isfinite(number):
                raise ValueError(f"'{literal}' is out of the range of f32; infinity is 0x7f800000:{stack_name}")
            return word(WordType.CONSTANT, stack, int(number.view(np.uint32)))
        if not _SIGNED.fullmatch(literal):
            raise ValueError(f"'{literal}' is not an integer constant")
        value = int(literal, 0)
        if not -(2**31) <= value < 2**32:
            raise ValueError(f"'{literal}' does not fit into 32 bits")
        return word(WordType.CONSTANT, stack, value & 0xFFFFFFFF)

    def decode(self, value: int) -> str:
        """The token of a word; `encode` gives the word back."""
        type_code, aux, payload = value & 0xFFFF, value >> 16 & 0xFFFF, value >> 32
        token = self._token(type_code, aux, payload)
        return token if token is not None else f"word:0x{value:016x}"

    def _token(self, type_code: int, aux: int, payload: int) -> str | None:
        stacks = self.instruction_set.stacks
        if type_code in (WordType.CONSTANT, WordType.META, WordType.STORE):
            if aux >= len(stacks):
                return None
            stack_name = stacks[aux].name.lower()
            if type_code == WordType.CONSTANT:
                return _constant_token(stacks[aux].constant_type, stack_name, payload)
            if type_code == WordType.STORE:
                return f"store.{stack_name}:{payload}"
            return f"{META_OPERATIONS[payload]}.{stack_name}" if payload < len(META_OPERATIONS) else None
        if aux:
            return None
        if type_code == WordType.PTX and payload < len(self.instruction_set.instructions):
            return self.instruction_set.instructions[payload].name
        if type_code == WordType.INPUT and payload < len(self.inputs):
            return f"%{self.inputs[payload][0]}"
        if type_code == WordType.SPECIAL and payload < len(self.instruction_set.special_registers):
            return f"special:{self.instruction_set.special_registers[payload].ptx}"
        if type_code == WordType.RETURN and payload == 0:
            return "return"
        prefixes: dict[int, str] = {WordType.META_CONSTANT: "{}:meta", WordType.ROUTINE: "routine:{}", WordType.LOAD: "load:{}"}
        return prefixes[type_code].format(payload) if type_code in prefixes else None

    def _stack(self, name: str) -> int:
        try:
            return self.instruction_set.stack_index(name)
        except KeyError:
            names = [stack.name.lower() for stack in self.instruction_set.stacks]
            raise ValueError(f"unknown stack '{name}', {did_you_mean(name, names)}") from None

    @cached_property
    def _instruction_indices(self) -> dict[str, int]:
        return {instruction.name: index for index, instruction in enumerate(self.instruction_set.instructions)}


def word(word_type: int, aux: int = 0, payload: int = 0) -> int:
    """The 64-bit word with this type (bits 0-15), aux (16-31) and payload (32-63)."""
    return int(word_type) | aux << 16 | payload << 32


def program_length(words: np.ndarray) -> int:
    """Number of words before the first RETURN, or all of them."""
    returns = np.flatnonzero((words & np.uint64(0xFFFF)) == WordType.RETURN)
    return int(returns[0]) if returns.size else len(words)


def format_program(language: Language, words: np.ndarray) -> str:
    """The text form of a program, up to its RETURN, with lines of at most 100 characters."""
    lines, line = [], ""
    for value in words[: program_length(words)]:
        token = language.decode(int(value))
        if line and len(line) + 1 + len(token) > 100:
            lines.append(line)
            line = ""
        line += (" " if line else "") + token
    return "\n".join([*lines, line]) + "\n"


def parse_program(language: Language, text: str, source: str, max_length: int | None = None) -> np.ndarray:
    """The words of a program's text, `(max_length,)` uint64; without `max_length` its words and a RETURN.

    Raises:
        UserError: a token is wrong (the message names source and line), or there are no words or more than `max_length`.
    """
    words = []
    for number, line in enumerate(text.splitlines(), start=1):
        for token in line.partition("#")[0].split():
            try:
                words.append(language.encode(token))
            except ValueError as error:
                raise UserError(error, f"{source}:{number}") from None
    if not words:
        raise UserError("holds no program; write tokens such as: %x %x mul_ftz_f32", source)
    if max_length is not None and len(words) > max_length:
        raise UserError(f"{len(words)} words, but program.max_length is {max_length}", source)
    row = np.zeros(max_length if max_length is not None else len(words) + 1, dtype=np.uint64)
    row[: len(words)] = words
    if len(words) < len(row):
        row[len(words)] = word(WordType.RETURN)
    return row


def _constant_token(constant_type: str | None, stack_name: str, bits: int) -> str:
    if constant_type in FLOATS:
        value = np.uint32(bits).view(np.float32)
        literal = str(value)
        if _FLOAT.fullmatch(literal) and np.float32(literal).view(np.uint32) == bits:
            return literal if stack_name == "f32" else f"{literal}:{stack_name}"
        return f"0x{bits:08x}:{stack_name}"
    if constant_type in ("s32", "s64"):
        return f"{bits - (bits >> 31 << 32)}:{stack_name}"
    return f"{bits}:{stack_name}" if constant_type in ("u32", "u64") else f"0x{bits:08x}:{stack_name}"


def _index(names: list[str], name: str, what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise ValueError(f"unknown {what} '{name}', {did_you_mean(name, names)}") from None


def _unsigned(literal: str, what: str, num_bits: int = 32) -> int:
    if not _UNSIGNED.fullmatch(literal) or int(literal, 0) >> num_bits:
        raise ValueError(f"'{literal}' is not {what}: an unsigned integer of at most {num_bits} bits")
    return int(literal, 0)
