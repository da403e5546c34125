"""Programs on intervals: their results on any GPU that keeps the bounds of its instructions.

Owns which instructions have intervals, and whether a product may be flushed. csrc/detail/proof.h computes them.
"""

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FLUSHED, FORMATS, Format
from evo.instructions.description import ErrorBound
from evo.language.dag import dag_of
from evo.language.program import Language, Limits
from evo.native.proof import MAX_VALUES, OPERATIONS, STEP_DTYPE
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import NodeKind

_F32_ULP = 2.0**-23 * (1.0 + 2.0**-23)  # the largest, over a number that may be half an ulp away
_LEAST_ULP = 2.0**-149
_TYPE = re.compile("_(f32|f16|bf16|half)$")  # of operations
_PRODUCTS = ("mul_f32", "fma_f32")
_MOST_WORDS = 4096


@dataclass(frozen=True)
class IntervalProgram:
    """Steps and constants for `evo.native.proof.intervals`. is_exact: all GPUs give the same; steps are left out if one has no
    intervals, and then all GPUs do so unless `Products` says that one may be flushed.
    """

    steps: NDArray[np.void]
    constants: NDArray[np.float32]
    is_exact: bool

    @property
    def is_approximate(self) -> bool:
        """Return whether an instruction is."""
        return bool(self.steps["relative"].any() or self.steps["absolute"].any())

    @property
    def keeps_subnormals(self) -> bool:
        """Return whether results may be subnormal: of halves, and of instructions without .ftz."""
        operation = OPERATIONS[self.steps[-1]["operation"]] if len(self.steps) else ""
        return operation in ("tanh", "copysign") or bool(len(self.steps) and self.steps[-1]["digits"] < 24)


def interval_program(language: Language, words: NDArray[np.uint64]) -> IntervalProgram | str:
    """A program of `(max_length,)` words with one input and one output, of floats; or the name of a part without intervals."""
    lowered = language.lowering.lower(words)
    instructions = language.instruction_set.instructions
    used = [instructions[node["payload"]] for node in lowered.nodes if node["kind"] == NodeKind.PTX]
    is_exact = not any(instruction.semantics.error for instruction in used)
    constants = [node for node in lowered.nodes if node["kind"] == NodeKind.CONSTANT]
    indices: dict[int, int] = {}  # of values, by id
    num_constants = 0
    rows: list[tuple[int, tuple[int, ...], int, int, float, float, float]] = []
    for node in lowered.nodes:
        kind = NodeKind(node["kind"])
        value, payload = int(node["first_value"]), int(node["payload"])
        if kind == NodeKind.INPUT:
            indices[value] = 0
        elif kind == NodeKind.CONSTANT:
            num_constants += 1
            indices[value] = num_constants
        elif kind == NodeKind.PTX:
            instruction = instructions[payload]
            operation = _TYPE.sub("", instruction.semantics.vm.partition(" ")[0])
            first, count = int(node["first_operand"]), int(node["num_operands"])
            form = _format(language, int(node["stack_idx"]))
            if operation == "mov" and _format(language, lowered.value_stacks[lowered.operands[first]]) is not FORMATS["f32"]:
                indices[value] = indices[int(lowered.operands[first])]  # as a half is an f32
                continue
            if operation not in OPERATIONS:
                return IntervalProgram(np.zeros(0, STEP_DTYPE), np.zeros(0, np.float32), True) if is_exact else instruction.name
            operands = [indices[int(operand)] for operand in lowered.operands[first : first + count]]
            indices[value] = 1 + len(constants) + len(rows)
            bounds = _bounds(instruction.semantics.error)
            rows.append((OPERATIONS.index(operation), (*operands, 0, 0)[:3], form.digits, form.least, *bounds))
        else:
            return "special register"
    if 1 + len(constants) + len(rows) > MAX_VALUES:
        return f"programs of more than {MAX_VALUES} values"
    is_exact &= not any(instruction.semantics.vm in _PRODUCTS for instruction in used)
    values = [_format(language, node["stack_idx"]).round(np.uint32(node["payload"]).view(np.float32)) for node in constants]
    return IntervalProgram(np.array(rows, STEP_DTYPE), np.array(values, np.float32), is_exact)


class Products:
    """Products of f32 in a program. A GPU may flush one below 2^-126 before it rounds it to that, or not.

    Other exact instructions give no number in between.
    """

    def __init__(self, language: Language, words: NDArray[np.uint64]):
        graph = dag_of(language, words)
        products = [(k, *node.operands) for k, node in enumerate(graph.nodes) if node.semantics.vm in _PRODUCTS]
        read = sorted({node for nodes in products for node in nodes})
        self._indices = [[read.index(node) for node in nodes] for nodes in products]
        outputs, limits = tuple((f"value{k}", "f32") for k in range(len(read))), Limits(store_size=_MOST_WORDS)
        values = Language(language.instruction_set, language.inputs, outputs, limits)
        self._words = replace(graph, results=tuple(read)).words(values, _MOST_WORDS) if graph.is_writable else None
        self._machine, self._unused = VirtualMachine(values.lowering), [None] * len(outputs)

    def may_be_flushed(self, x: NDArray[np.float32]) -> bool:
        """Whether one may, at some of the inputs."""
        if not self._indices or self._words is None:
            return bool(self._indices)
        values = self._machine.store(self._words[None], [x, *self._unused])[0].view(np.float32)
        for result, *operands in self._indices:
            at = np.flatnonzero(np.abs(values[result]) <= FLUSHED)
            read = [np.where(np.abs(v) < FLUSHED, 0.0, v) for v in values[operands][:, at].astype(np.float64)]
            a, b, c = (*read, np.zeros(len(at)))[:3]
            total = a * b + c
            rest = (a * b - (total - (part := total - a * b))) + (c - part)  # that the sum lacks
            size, is_less = np.abs(total), (rest != 0.0) & (np.signbit(rest) != np.signbit(total))
            if ((size >= FLUSHED * (1.0 - 2.0**-24)) & ((size < FLUSHED) | (size == FLUSHED) & is_less)).any():
                return True
        return False


def _format(language: Language, stack: int) -> Format:
    return FORMATS.get(str(language.instruction_set.stacks[stack].constant_type), FORMATS["f32"])


def _bounds(error: ErrorBound | None) -> tuple[float, float, float]:
    """Relative and absolute bound, and the largest operand."""
    if error is None:
        return 0.0, 0.0, np.inf
    assert error.least <= FLUSHED  # smaller numbers are read as 0, where nothing is known
    relative = error.bound * (_F32_ULP if error.kind == "ulp" else 1.0)
    absolute = {"ulp": error.bound * _LEAST_ULP, "relative": 0.0}.get(error.kind, error.bound)
    return 0.0 if error.kind == "absolute" else relative, absolute, error.limit
