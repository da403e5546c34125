"""The types of Stack PTX's words, and messages about wrong ones. csrc/stack_ptx.h documents both."""

from __future__ import annotations

from contextlib import suppress
from enum import IntEnum
from typing import Any

import numpy as np


class WordType(IntEnum):
    """The type of a word: its bits 0-15."""

    NONE = 0
    PTX = 1
    CONSTANT = 2
    INPUT = 3
    SPECIAL = 4
    META = 5
    META_CONSTANT = 6
    ROUTINE = 7
    REGISTER = 8
    AST_IDX = 9
    RETURN = 10
    STORE = 11
    LOAD = 12


TEMPLATE_DERIVATIVE = 13
"""The type of a word that only a template has."""


def nearest_f32(number: Any) -> np.float32:
    """The f32 next to a number. Raises ValueError if the number is finite and too large."""
    with np.errstate(over="ignore"), suppress(OverflowError):
        value = np.float32(number)
        if not np.isinf(value) or np.isinf(number):
            return value
    raise ValueError(f"{number!r} is out of the range of f32")


# Types of words that programs have. NONE, and REGISTER and AST_IDX, which are internal to compilers, are errors.
_RUNNABLE = frozenset(WordType) - {WordType.NONE, WordType.REGISTER, WordType.AST_IDX}

# Names of the meta operations; the payload of a META word is the index.
META_OPERATIONS = ("dup", "yank_dup", "swap", "swap_with", "replace", "drop", "clear", "rotate", "reverse")


class ProgramError(ValueError):
    """A word is wrong, in a mode other than lenient.

    result: name of the C error code; program_idx: row of the batch; routine_idx: of the routine, or None for the main program;
    word_idx: within that word list.
    """

    def __init__(self, message: str, result: str, word_idx: int, routine_idx: int | None, program_idx: int = 0):
        super().__init__(message)
        self.result = result
        self.word_idx = word_idx
        self.routine_idx = routine_idx
        self.program_idx = program_idx

    def __reduce__(self) -> tuple[type[ProgramError], tuple[object, ...]]:
        return type(self), (str(self), self.result, self.word_idx, self.routine_idx, self.program_idx)


def explain(lowering: Any, result: str, word: int, where: str) -> str:
    """One line about a word that is wrong in a `Lowering`; `result`: name of the C error code, `where`: its place."""
    word_type, aux, payload = word & 0xFFFF, word >> 16 & 0xFFFF, word >> 32
    description, limits = lowering.instruction_set, lowering.limits
    too_deep = f"more than {limits.max_frame_depth} word lists would be open"
    unknown = f"no word has type {word_type}; was RETURN forgotten?"
    too_long = f"the program runs more than {limits.execution_limit} words, its execution_limit"
    reasons = {
        "WRONG_TYPE_DISPATCH": f"stack {aux} has no constants",
        "INVALID_VALUE": "the depth on the meta stack must be below the height of the stack"
        if word_type == WordType.META
        else too_deep,
        "INSUFFICIENT_AST_SIZE": f"the program makes more than {limits.max_nodes} values",
        "BAD_INSTRUCTION_MAYBE_FORGOT_RETURN": too_long if word_type in _RUNNABLE else unknown,
        "PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS": f"instruction {payload} of {len(description.instructions)}",
        "META_INSTRUCTION_IDX_OUT_OF_BOUNDS": f"meta operation {payload} of {len(META_OPERATIONS)}",
        "REGISTER_IDX_OUT_OF_BOUNDS": f"input {payload} of {len(lowering.registers)}",
        "SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS": f"special register {payload} of {len(description.special_registers)}",
        "STACK_IDX_OUT_OF_BOUNDS": f"stack {aux} of {len(description.stacks)}",
        "ROUTINES_IDX_OUT_OF_BOUNDS": f"routine {payload} of {len(lowering.routines)}",
        "STORE_IDX_OUT_OF_BOUNDS": f"store index {payload} of {limits.store_size}",
        "LOAD_IDX_OUT_OF_BOUNDS": f"store index {payload} of {limits.store_size}",
    }
    shown = f"0x{word:016x}"
    if (
        word_type == WordType.CONSTANT
        and aux < len(description.stacks)
        and description.stacks[aux].constant_type in ("f32", "f64", "f16", "bf16")
    ):
        shown += f", the constant {np.uint32(payload).view(np.float32)}"
    return f"{where} ({shown}): {reasons[result.removeprefix('STACK_PTX_ERROR_')]} [{result}]"
