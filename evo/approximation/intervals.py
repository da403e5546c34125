"""Programs on intervals: what they give on any GPU that keeps the bounds of its instructions.

Owns which instructions have intervals. csrc/detail/proof.h computes them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.instructions.description import ErrorBound
from evo.language.program import Language
from evo.native.proof import MAX_VALUES, OPERATIONS, STEP_DTYPE
from evo.native.stack_ptx import NodeKind

_F32_ULP = 2.0**-23  # the largest, over the number
_LEAST_ULP = 2.0**-149


@dataclass(frozen=True)
class IntervalProgram:
    """What `evo.native.proof.intervals` takes. is_exact: all GPUs give the same; steps are left out if one has no intervals."""

    steps: NDArray[np.void]
    constants: NDArray[np.float32]
    is_exact: bool


def interval_program(language: Language, words: NDArray[np.uint64]) -> IntervalProgram | str:
    """A program of `(max_length,)` words with one input and one output, both f32; or the name of what has no intervals."""
    lowered = language.lowering.lower(words)
    instructions = language.instruction_set.instructions
    used = [instructions[node["payload"]] for node in lowered.nodes if node["kind"] == NodeKind.PTX]
    is_exact = not any(each.semantics.error for each in used)
    constants = [int(node["payload"]) for node in lowered.nodes if node["kind"] == NodeKind.CONSTANT]
    places: dict[int, int] = {}  # of values, by id
    num_constants = 0
    rows: list[tuple[int, tuple[int, ...], float, float, float]] = []
    for node in lowered.nodes:
        kind = NodeKind(node["kind"])
        value, payload = int(node["first_value"]), int(node["payload"])
        if kind == NodeKind.INPUT:
            places[value] = 0
        elif kind == NodeKind.CONSTANT:
            num_constants += 1
            places[value] = num_constants
        elif kind == NodeKind.PTX:
            instruction = instructions[payload]
            operation = instruction.semantics.vm.partition(" ")[0].removesuffix("_f32")
            first, count = int(node["first_operand"]), int(node["num_operands"])
            if operation not in OPERATIONS:
                return IntervalProgram(np.zeros(0, STEP_DTYPE), np.zeros(0, np.float32), True) if is_exact else instruction.name
            operands = [places[int(operand)] for operand in lowered.operands[first : first + count]]
            places[value] = 1 + len(constants) + len(rows)
            bounds = _bounds(instruction.semantics.error)
            rows.append((OPERATIONS.index(operation), (*operands, 0, 0)[:3], *bounds))
        else:
            return "special register"
    if 1 + len(constants) + len(rows) > MAX_VALUES:
        return f"programs of more than {MAX_VALUES} values"
    values = np.array(constants, np.uint32).view(np.float32)
    return IntervalProgram(np.array(rows, STEP_DTYPE), values, is_exact)


def _bounds(error: ErrorBound | None) -> tuple[float, float, float]:
    """Relative and absolute bound, and the largest operand."""
    if error is None:
        return 0.0, 0.0, np.inf
    relative = error.bound * (_F32_ULP if error.kind == "ulp" else 1.0)
    absolute = {"ulp": error.bound * _LEAST_ULP, "relative": 0.0}.get(error.kind, error.bound)
    return 0.0 if error.kind == "absolute" else relative, absolute, error.limit
