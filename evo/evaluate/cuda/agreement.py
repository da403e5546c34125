"""Agreement that is demanded of CPU and GPU, bit by bit or within the bounds of instructions, and the operands that show it.

Owns the edge values, and a program for each instruction of the shipped sets that
the CPU knows. The self-test, `evo doctor RUN` and tests/gpu judge by it. Knows nothing of evaluators and devices.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx_words import WordType
from evo.task import Task

# Zeros, subnormals, ends of the normal range, 2^-22 to 2^24, where division and reductions turn, infinities, NaNs of all kinds.
_POSITIVE_EDGES = [
    0x00000000, 0x00000001, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x0DA24260, 0x33800000,
    0x34000000, 0x3EFFFFFF, 0x3F000000, 0x3F3504F3, 0x3F3504F4, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC90FDB, 0x40000000,
    0x40490FDB, 0x40A63510, 0x40A63511, 0x40C90FDB, 0x42FC0000, 0x42FE0000, 0x42FFFFFF, 0x43000000, 0x43150000, 0x4A800000,
    0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4C490FDB, 0x7E7FFFFF, 0x7E800000, 0x7E800001, 0x7F000000, 0x7F7FFFFF, 0x7F800000,
    0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF,
]  # fmt: skip
# Floats on which arithmetic goes wrong first, as bits.
EDGES = np.array(_POSITIVE_EDGES + [bits | 0x80000000 for bits in _POSITIVE_EDGES], np.uint32)

_INPUTS = {"F32": "abc", "U32": "uvw", "S32": "ijk"}
_OUTPUTS = {"F32": "f", "U32": "g", "S32": "h", "PRED": "f", "PHILOX": "g"}

Points = dict[str, NDArray[Any]]


class Operands(Task):
    """Three inputs and an output of each type, at given points. Only its outputs are looked at."""

    inputs = dict.fromkeys("abc", "f32") | dict.fromkeys("uvw", "u32") | dict.fromkeys("ijk", "s32")
    outputs = dict.fromkeys("f", "f32") | dict.fromkeys("g", "u32") | dict.fromkeys("h", "s32")
    measures = dict.fromkeys(["unused"], (0.0, 1.0))

    def __init__(self, values: Points):
        self.values = values

    def points(self) -> Points:
        """The given values."""
        return self.values


# The wide set contains the default one.
LANGUAGE = Language(shipped_instruction_set("wide"), tuple(Operands.inputs.items()), tuple(Operands.outputs.items()))
_SET = LANGUAGE.instruction_set
_UNSUPPORTED = VirtualMachine(LANGUAGE.lowering).unsupported
NAMES = [
    instruction.name
    for instruction in _SET.instructions
    if instruction.name not in _UNSUPPORTED
    and {_SET.arg_types[arg].name for arg in (*instruction.args, *instruction.rets)} <= {*_INPUTS, *_OUTPUTS}
]

# The largest errors of approximate instructions. Both sides keep within them, and differ by at most twice as much.
BOUNDS = {i.name: i.semantics.error for i in _SET.instructions if i.semantics.error and i.name in NAMES}

# Exact instructions of the default set on plain types, for programs of several instructions.
EXACT = tuple(
    instruction.name
    for instruction in shipped_instruction_set("default").instructions
    if instruction.name in NAMES
    and instruction.name not in BOUNDS
    and "PHILOX" not in {_SET.arg_types[arg].name for arg in (*instruction.args, *instruction.rets)}
)


def edge_columns(num_random: int = 0) -> list[NDArray[np.uint32]]:
    """Bits of three operands: each pair of edges in the first two, each pair with some third edge; then random ones."""
    a, b = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
    columns = [a, b, np.roll(np.resize(EDGES, len(a)), 7)]
    return [np.concatenate([edges, scrambled(num_random, seed)]) for seed, edges in enumerate(columns, 1)]


def scrambled(count: int, seed: int) -> NDArray[np.uint32]:
    """Bits without a pattern, the same each time: numbers in turn through a mixing function (lowbias32), every other one as a
    float of moderate size.
    """
    bits = np.arange(count, dtype=np.uint32) + np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = (bits ^ bits >> np.uint32(shift)) * np.uint32(factor)
    bits ^= bits >> np.uint32(16)
    bits[::2] = bits[::2] & np.uint32(0x83FFFFFF) | np.uint32(0x3C000000)
    return bits


def points_of(columns: list[NDArray[np.uint32]]) -> Points:
    """Points of `Operands` from three columns of bits. A third of the integers are made small, such as positions of bits."""
    points: Points = {name: column.view(np.float32) for name, column in zip("abc", columns, strict=True)}
    for names, dtype, shift in (("uvw", np.uint32, 1), ("ijk", np.int32, 2)):
        for i, name in enumerate(names):
            bits = np.roll(columns[(i + shift) % 3], i)
            is_small = columns[(i + shift + 1) % 3] % np.uint32(3) == 0
            points[name] = np.where(is_small, bits % np.uint32(67), bits).view(dtype)
    return points


def programs_of(names: list[str]) -> NDArray[np.uint64]:
    """`(len(names), 16)`: programs that apply an instruction each to inputs, operand k to input k of its type."""
    rows = np.full((len(names), 16), word(WordType.RETURN), np.uint64)
    for row, name in zip(rows, names, strict=True):
        words = _program_of(name)
        row[: len(words)] = words
    return rows


def output_of(name: str) -> str:
    """The output in which the program of an instruction leaves its result."""
    return _OUTPUTS[_stacks_of(name, "rets")[0]]


def different_rows(left: Iterable[NDArray[Any]], right: Iterable[NDArray[Any]]) -> NDArray[np.intp]:
    """Rows at which two lists of arrays, each `(num_rows, ...)`, differ in any bit."""

    def bits(array: NDArray[Any]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)

    return np.flatnonzero(np.any([(bits(a) != bits(b)).any(axis=1) for a, b in zip(left, right, strict=True)], axis=0))


def results_of(evaluation: Evaluation) -> list[NDArray[Any]]:
    """The arrays of an evaluation that must agree, for `different_rows`."""
    return [evaluation.status, evaluation.objective, evaluation.measures]


@dataclass(frozen=True)
class Agreement:
    """problem: in one line how CPU and GPU differ, or None if they agree. num_compared: points whose values were compared."""

    problem: str | None
    num_compared: int


def compare(name: str, points: Points, cpu: NDArray[np.uint32], gpu: NDArray[np.uint32]) -> Agreement:
    """Compare the bits of an instruction's results at points."""
    with np.errstate(all="ignore"):  # of NaNs and infinities, which are meant
        is_wrong, num_compared = _compare_approximate(name, points, cpu, gpu) if name in BOUNDS else _compare_exact(cpu, gpu)
    wrong = np.flatnonzero(is_wrong)
    if not wrong.size:
        return Agreement(None, num_compared)
    at = wrong[0]
    inputs = ", ".join(f"{key} {_readable(values[at])}" for key, values in points.items())
    results = [_readable(bits[at].view(np.float32) if _stacks_of(name, "rets")[0] == "F32" else bits[at]) for bits in (cpu, gpu)]
    where = f"{wrong.size:,} of {len(cpu):,} points, such as {inputs}: CPU {results[0]}, GPU {results[1]}"
    return Agreement(f"{name} differs at {where}", num_compared)


def _readable(value: Any) -> str:
    """The bits of a number, and the number."""
    return f"{value.view(np.uint32):08x} ({value})"


def _compare_exact(cpu: NDArray[np.uint32], gpu: NDArray[np.uint32]) -> tuple[NDArray[np.bool_], int]:
    # A value that rounding lifts to 2^-126 is flushed if its size is tested before rounding and kept if after: x86 tests after
    # rounding, and the PTX ISA does not say. So one may be 0 where the other is 2^-126, of one sign.
    smallest = np.uint32(0x00800000)
    at_the_edge = (cpu ^ gpu == smallest) & np.isin(cpu & np.uint32(0x7FFFFFFF), [0, 0x00800000])
    return (cpu != gpu) & ~at_the_edge, len(cpu)


def _compare_approximate(
    name: str, points: Points, cpu_bits: NDArray[np.uint32], gpu_bits: NDArray[np.uint32]
) -> tuple[NDArray[np.bool_], int]:
    kind, bound, operand, limit, least = BOUNDS[name]
    x = points["a"].astype(np.float64)
    cpu, gpu = (bits.view(np.float32).astype(np.float64) for bits in (cpu_bits, gpu_bits))
    # Near the ends of the range one side may overflow or flush before the other.
    size = np.maximum(np.abs(cpu), np.abs(gpu))
    keep = np.isfinite(cpu) & np.isfinite(gpu) & ~(size < 2.0**-125)
    operands = np.abs(points[operand].astype(np.float64))
    keep &= ~((operands > limit) | (operands < least))
    unit = {
        "absolute": np.ones(size.shape),
        "relative": size,
        "ulp": np.ldexp(1.0, np.frexp(size)[1] - 24),
        "either": np.where((x > 0.5) & (x < 2.0), 1.0, size),
    }[kind]
    is_wrong: NDArray[np.bool_] = np.isnan(cpu) != np.isnan(gpu)
    is_wrong |= np.isinf(cpu) & (gpu != cpu)
    is_wrong |= np.isinf(gpu) & np.isfinite(cpu) & ~(cpu * np.sign(gpu) > 2.0**127)
    is_wrong |= keep & ~(np.abs(cpu - gpu) <= 2 * bound * unit)
    return is_wrong, int(keep.sum())


def _program_of(name: str) -> list[int]:
    taken = dict.fromkeys([*_INPUTS, "PRED"], 0)

    def ptx(instruction: str) -> int:
        return word(WordType.PTX, payload=_SET.instruction_index(instruction))

    def value(variable: str) -> int:
        return word(WordType.INPUT, payload=[register for register, _ in LANGUAGE.registers].index(variable))

    def operand(stack: str) -> list[int]:
        if stack == "PHILOX":
            return [*operand("U32"), ptx("u32_to_philox")]
        taken[stack] += 1
        if stack == "PRED":
            compare, variables = [("setp_lt_ftz_f32", "ba"), ("setp_ne_u32", "vu")][taken[stack] - 1]
            return [*map(value, variables), ptx(compare)]
        return [value(_INPUTS[stack][taken[stack] - 1])]

    # The last pushed is popped first, and the first popped is the first operand.
    operands = [operand(stack) for stack in _stacks_of(name, "args")]
    words = [*(pushed for words in reversed(operands) for pushed in words), ptx(name)]
    (result,) = _stacks_of(name, "rets")
    if result == "PRED":  # seen by what it selects
        return [value("c"), value("a"), *words, ptx("selp_f32")]
    return [*words, ptx("philox_to_u32")] if result == "PHILOX" else words


def _stacks_of(name: str, what: str) -> list[str]:
    """Names of the stacks of an instruction's `args` or `rets`."""
    instruction = _SET.instructions[_SET.instruction_index(name)]
    return [_SET.stacks[_SET.arg_types[index].stack_idx].name for index in getattr(instruction, what)]
