"""Every instruction of the wide set that has a meaning on the CPU, on CPU and GPU: edge values and many random points."""

from __future__ import annotations

import os

import numpy as np
import pytest
from float_edges import EDGES, random_bits

from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import WordType

from .conftest import Points

# The emulator shares no code with either side, but is slow.
NUM_RANDOM = 1 << 18 if "EVO_EMULATED_GPU" in os.environ else 1 << 20

# The largest errors that the PTX ISA 9.1 allows, section 9.7.3: (kind, bound). Both sides keep within them, and differ by at most
# twice as much.
BOUNDS = {
    "div_approx_ftz_f32": ("ulp", 2.0),
    "rcp_approx_ftz_f32": ("ulp", 1.0),
    "sqrt_approx_ftz_f32": ("relative", 2.0**-23),
    "rsqrt_approx_ftz_f32": ("relative", 2.0**-22.9),
    "sin_approx_ftz_f32": ("absolute", 2.0**-20.5),
    "cos_approx_ftz_f32": ("absolute", 2.0**-20.5),
    "lg2_approx_ftz_f32": ("either", 2.0**-22),
    "ex2_approx_ftz_f32": ("ulp", 2.0),
    "tanh_approx_f32": ("relative", 2.0**-11),
}
INPUTS = {"F32": "abc", "U32": "uvw", "S32": "ijk"}
OUTPUTS = {"F32": "f", "U32": "g", "S32": "h"}


class Operands(Points):
    """Three inputs and an output of each type."""

    inputs = dict.fromkeys("abc", "f32") | dict.fromkeys("uvw", "u32") | dict.fromkeys("ijk", "s32")
    outputs = {"f": "f32", "g": "u32", "h": "s32"}


LANGUAGE = Language(shipped_instruction_set("wide"), tuple(Operands.inputs.items()), tuple(Operands.outputs.items()))
UNSUPPORTED = VirtualMachine(LANGUAGE.lowering).unsupported
NAMES = [instruction.name for instruction in LANGUAGE.instruction_set.instructions if instruction.name not in UNSUPPORTED]


def all_points() -> dict[str, np.ndarray]:
    """Each pair of edges in a and b, which some c goes with, then random bits; integers are the like bits, a third of them small
    ones, such as positions of bits."""
    a, b = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
    c = np.roll(np.resize(EDGES, len(a)), 7)
    columns = [np.concatenate([edges, random_bits(seed, NUM_RANDOM)]) for seed, edges in enumerate((a, b, c), 1)]
    points = {name: column.view(np.float32) for name, column in zip("abc", columns, strict=True)}
    for names, dtype, shift in (("uvw", np.uint32, 1), ("ijk", np.int32, 2)):
        for i, name in enumerate(names):
            bits = np.roll(columns[(i + shift) % 3], i)
            small = np.random.default_rng(10 * shift + i).integers(0, 3, len(bits)) == 0
            points[name] = np.where(small, bits % np.uint32(67), bits).view(dtype)
    return points


def program_of(name: str) -> list[int]:
    """Words that apply an instruction to inputs, operand k to input k of its type, and leave its result as an output."""
    instruction_set = LANGUAGE.instruction_set
    taken = dict.fromkeys([*INPUTS, "PRED"], 0)

    def ptx(instruction: str) -> int:
        return word(WordType.PTX, payload=instruction_set.instruction_index(instruction))

    def value(variable: str) -> int:
        return word(WordType.INPUT, payload=[register for register, _ in LANGUAGE.registers].index(variable))

    def operand(stack: str) -> list[int]:
        if stack == "PHILOX":
            return [*operand("U32"), ptx("u32_to_philox")]
        taken[stack] += 1
        if stack == "PRED":
            compare, variables = [("setp_lt_ftz_f32", "ba"), ("setp_ne_u32", "vu")][taken[stack] - 1]
            return [*map(value, variables), ptx(compare)]
        return [value(INPUTS[stack][taken[stack] - 1])]

    # The last pushed is popped first, and the first popped is the first operand.
    operands = [operand(stack) for stack in stacks_of(name, "args")]
    words = [*(each for words in reversed(operands) for each in words), ptx(name)]
    (result,) = stacks_of(name, "rets")
    if result == "PRED":  # seen by what it selects
        return [value("c"), value("a"), *words, ptx("selp_f32")]
    return [*words, ptx("philox_to_u32")] if result == "PHILOX" else words


def stacks_of(name: str, what: str) -> list[str]:
    """Names of the stacks of an instruction's `args` or `rets`."""
    instruction_set = LANGUAGE.instruction_set
    instruction = instruction_set.instructions[instruction_set.instruction_index(name)]
    return [instruction_set.stacks[instruction_set.arg_types[each].stack_idx].name for each in getattr(instruction, what)]


@pytest.fixture(scope="module")
def results():
    """name -> (points, bits on the CPU, bits on the GPU) of every instruction that the CPU knows."""
    points = all_points()
    task = Operands({name: values[:64] for name, values in points.items()})
    found = {}
    cpu, gpu = CpuEvaluator(LANGUAGE, task), CudaEvaluator(LANGUAGE, task)
    for first in range(0, len(NAMES), 32):  # a few at a time: each has three outputs at all points
        names = NAMES[first : first + 32]
        rows = np.full((len(names), 16), word(WordType.RETURN), np.uint64)
        for row, name in zip(rows, names, strict=True):
            words = program_of(name)
            row[: len(words)] = words
        outputs = [evaluator.outputs(rows, points) for evaluator in (cpu, gpu)]
        for i, name in enumerate(names):
            output = OUTPUTS.get({"PRED": "F32", "PHILOX": "U32"}.get(stacks_of(name, "rets")[0], stacks_of(name, "rets")[0]))
            found[name] = (points, *(each[output][i].view(np.uint32).copy() for each in outputs))
    cpu.close()
    gpu.close()
    return found


def test_programs_of_instructions_give_different_results(results):
    """Otherwise they would not compute what they are meant to."""
    columns = {bits.tobytes() for _, bits, _ in results.values()}
    assert len(results) == len(NAMES) >= 75
    assert len(columns) > 0.9 * len(NAMES)


def at_the_edge_of_the_normal_range(cpu: np.ndarray, gpu: np.ndarray) -> np.ndarray:
    """True where one is 0 and the other 2^-126, of one sign. A value that rounding lifts to 2^-126 is flushed if its size is
    tested before rounding and kept if after: x86 tests after rounding, and the PTX ISA does not say."""
    smallest = np.uint32(0x00800000)
    return (cpu ^ gpu == smallest) & np.isin(cpu & ~np.uint32(0x80000000), (0, smallest))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BOUNDS])
def test_an_exact_instruction_has_the_same_bits(results, name):
    points, cpu, gpu = results[name]
    different = np.flatnonzero((cpu != gpu) & ~at_the_edge_of_the_normal_range(cpu, gpu))
    inputs = {key: [f"{bits:08x}" for bits in values.view(np.uint32)[different[:5]]] for key, values in points.items()}
    shown = [f"{bits:08x}" for bits in cpu[different[:5]]], [f"{bits:08x}" for bits in gpu[different[:5]]]
    assert not different.size, f"{different.size} points differ; inputs {inputs}, CPU and GPU {shown}"


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaNs and infinities, which are meant
def test_an_approximate_instruction_is_as_near_as_the_isa_promises(results, name):
    points, cpu_bits, gpu_bits = results[name]
    kind, bound = BOUNDS[name]
    x = points["a"].astype(np.float64)
    cpu, gpu = (bits.view(np.float32).astype(np.float64) for bits in (cpu_bits, gpu_bits))
    np.testing.assert_array_equal(np.isnan(cpu), np.isnan(gpu))
    # Near the ends of the range one side may overflow or flush before the other.
    size = np.maximum(np.abs(cpu), np.abs(gpu))
    keep = np.isfinite(cpu) & np.isfinite(gpu) & ~(size < 2.0**-125)
    if name.startswith(("sin", "cos")):
        keep &= np.abs(x) <= 2 * np.pi
    if name.startswith("div"):
        keep &= np.abs(points["b"].astype(np.float64)) <= 2.0**126
    infinite = np.isinf(cpu)
    np.testing.assert_array_equal(gpu[infinite], cpu[infinite])
    overflowed = np.isinf(gpu) & np.isfinite(cpu)
    assert (cpu[overflowed] * np.sign(gpu[overflowed]) > 2.0**127).all()
    difference = np.abs(cpu - gpu)[keep]
    unit = {
        "absolute": np.ones(difference.shape),
        "relative": size[keep],
        "ulp": np.ldexp(1.0, np.frexp(size[keep])[1] - 24),
        "either": np.where((x[keep] > 0.5) & (x[keep] < 2.0), 1.0, size[keep]),
    }[kind]
    assert (difference <= 2 * bound * unit).all(), f"worst {np.max(difference / unit):g}, allowed {2 * bound:g}"
    assert keep.sum() > NUM_RANDOM // 8
