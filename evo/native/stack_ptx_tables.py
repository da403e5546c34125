"""Instruction sets, registers and routines as arrays with the layout of the C structs in csrc/stack_ptx.h.

Owns those layouts and the memory that C gets the addresses of. Knows nothing of lowering.
"""

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

MAX_NUM_ARGS = 4
MAX_NUM_RETS = 2

# Index: StackPtxConstantType.
CONSTANT_TYPES = (None, "f32", "u32", "s32", "f64", "u64", "s64", "f16", "bf16")

_DESCRIPTOR = np.dtype(
    [
        ("arg_types", np.uint16, MAX_NUM_ARGS),
        ("ret_types", np.uint16, MAX_NUM_RETS),
        ("num_unique_stacks", np.uint16),
        ("is_aligned", np.bool_),
        ("unique_stacks", np.uint16, (MAX_NUM_ARGS, 2)),
    ]
)
_LIMIT_BITS = {"stack_size": 28, "max_nodes": 28, "max_frame_depth": 28, "store_size": 28, "execution_limit": 32}
_REGISTER = np.dtype([("name", np.uintp), ("stack_idx", np.uint16)], align=True)


class Strings(NamedTuple):
    """C strings: their addresses, and the bytes at these."""

    addresses: np.ndarray
    characters: np.ndarray


class WordLists(NamedTuple):
    """Word lists: their addresses and lengths, and the words at these."""

    addresses: np.ndarray
    lengths: np.ndarray
    words: tuple[np.ndarray, ...]


class InstructionSetTables(NamedTuple):
    """The arrays of StackPtxStackInfo and StackPtxTraits."""

    instruction_strings: Strings
    descriptors: np.ndarray
    instruction_traits: np.ndarray
    special_strings: Strings
    special_arg_types: np.ndarray
    volatile_specials: np.ndarray
    literal_prefixes: Strings
    constant_types: np.ndarray
    arg_types: np.ndarray


class ConnectionTables(NamedTuple):
    """The arrays of StackPtxLanguageInfo. names: what `registers` point to."""

    registers: np.ndarray
    requests: np.ndarray
    routines: WordLists
    names: Strings


_made: dict[int, InstructionSetTables] = {}  # by id of sets that are alive; a set of hundreds takes 10 ms


def instruction_set_tables(instruction_set: Any) -> InstructionSetTables:
    """The tables of an `evo.instructions.InstructionSet`, made once. Raises ValueError if the C structs cannot hold it."""
    key = id(instruction_set)
    if (tables := _made.get(key)) is None:
        tables = _made[key] = _tables(instruction_set)
        weakref.finalize(instruction_set, _made.pop, key, None)
    return tables


def _tables(instruction_set: Any) -> InstructionSetTables:
    instructions, specials = instruction_set.instructions, instruction_set.special_registers
    descriptors = np.zeros(len(instructions), _DESCRIPTOR)
    # Unused entries hold the number of argument types.
    descriptors["arg_types"] = descriptors["ret_types"] = len(instruction_set.arg_types)
    for descriptor, instruction in zip(descriptors, instructions, strict=True):
        if len(instruction.args) > MAX_NUM_ARGS or len(instruction.rets) > MAX_NUM_RETS:
            raise ValueError(f"instruction {instruction.ptx}: at most {MAX_NUM_ARGS} operands and {MAX_NUM_RETS} results")
        descriptor["arg_types"][: len(instruction.args)] = instruction.args
        descriptor["ret_types"][: len(instruction.rets)] = instruction.rets
        descriptor["is_aligned"] = instruction.aligned
    for stack in instruction_set.stacks:
        if stack.constant_type not in CONSTANT_TYPES:
            allowed = ", ".join(CONSTANT_TYPES[1:])
            raise ValueError(f"stack {stack.name}: unknown constant type '{stack.constant_type}', one of: {allowed}")
    return InstructionSetTables(
        instruction_strings=c_strings([instruction.ptx for instruction in instructions], "instruction"),
        descriptors=descriptors,
        instruction_traits=_table([(i.num_commutative, i.volatile, i.registers_only) for i in instructions], np.uint8, 3),
        special_strings=c_strings([special.ptx for special in specials], "special register"),
        special_arg_types=np.array([special.arg_idx for special in specials], np.uint16),
        volatile_specials=np.array([special.volatile for special in specials], np.uint8),
        literal_prefixes=c_strings([stack.literal_prefix for stack in instruction_set.stacks], "literal prefix"),
        constant_types=np.array([CONSTANT_TYPES.index(s.constant_type) for s in instruction_set.stacks], np.uint8),
        arg_types=_table([(a.stack_idx, a.num_vec_elems) for a in instruction_set.arg_types], np.uint16, 2),
    )


def check_connections(instruction_set: Any, registers: Sequence[tuple[str, int]], requests: Sequence[int], limits: Any) -> None:
    """Raises ValueError if a stack, a request or a limit is out of range, or a register has two types."""
    num_stacks, num_registers = len(instruction_set.stacks), len(registers)
    prefixes: dict[str, str] = {}
    for name, stack_idx in registers:
        if not 0 <= stack_idx < num_stacks:
            raise ValueError(f"register '{name}': stack {stack_idx}, but there are stacks 0 to {num_stacks - 1}")
        prefix = instruction_set.stacks[stack_idx].literal_prefix
        if prefixes.setdefault(name, prefix) != prefix:
            raise ValueError(f"register '{name}' is given twice, as .{prefixes[name]} and as .{prefix}; rename one")
    for request in requests:
        if not 0 <= request < num_registers:
            raise ValueError(f"request {request}: there are registers 0 to {num_registers - 1}")
    for field, num_bits in _LIMIT_BITS.items():
        value = getattr(limits, field)
        if not 0 <= value < 2**num_bits:
            raise ValueError(f"limits.{field}: {value}, must be from 0 to {2**num_bits - 1}")


def connection_tables(
    registers: Sequence[tuple[str, int]], requests: Sequence[int], routines: Sequence[np.ndarray]
) -> ConnectionTables:
    """The tables of (name, stack index) pairs, register indices, and uint64 word lists."""
    names = c_strings([name for name, _ in registers], "register")
    register_table = np.zeros(len(registers), _REGISTER)
    register_table["name"] = names.addresses
    register_table["stack_idx"] = [stack_idx for _, stack_idx in registers]
    return ConnectionTables(register_table, np.array(requests, np.uintp), word_lists(routines), names)


def word_lists(lists: Sequence[np.ndarray]) -> WordLists:
    """Word lists, `(length,)` uint64 each, for C. Raises ValueError."""
    words = tuple(word_rows(row, 1, "routine") for row in lists)
    addresses, lengths = [row.ctypes.data for row in words], [row.size for row in words]
    return WordLists(np.array(addresses, np.uintp), np.array(lengths, np.uintp), words)


def word_rows(words: Any, num_dimensions: int = 2, what: str = "words") -> np.ndarray:
    """Words of programs for C: `(num_programs, max_length)` uint64, contiguous; or of one word list. Raises ValueError."""
    rows = np.ascontiguousarray(words)
    if rows.dtype != np.uint64 or rows.ndim != num_dimensions:
        shape = "(length,)" if num_dimensions == 1 else "(num_programs, max_length)"
        raise ValueError(f"{what}: expected uint64 of shape {shape}, got {rows.dtype} of {rows.shape}")
    return rows


def c_strings(texts: list[str], what: str) -> Strings:
    """Texts for C. Raises ValueError."""
    for text in texts:
        if not (text and text.isascii() and text.isprintable()):
            raise ValueError(f"{what} {text!r}: use printable ASCII characters")
    encoded = [text.encode("ascii") + b"\0" for text in texts]
    characters = np.frombuffer(b"".join(encoded), np.uint8)
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.uintp)[:-1]
    return Strings(offsets + np.uintp(characters.ctypes.data), characters)


def _table(rows: list[tuple[int, ...]], dtype: type, width: int) -> np.ndarray:
    """`(len(rows), width)`, even without rows."""
    return np.array(rows, dtype).reshape(len(rows), width)
