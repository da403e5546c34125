"""Every instruction that has a meaning on the CPU, on CPU and GPU: edge values and a million random points."""

from __future__ import annotations

import numpy as np
import pytest
from float_edges import EDGES, random_bits

from evo.evaluate.cpu import CpuEvaluator
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import WordType
from evo.program import word

from .conftest import EXACT, Points, language_of

NUM_RANDOM = 1 << 20

# Largest errors that the PTX ISA 9.1 allows, section 9.7.3: (kind, bound, where |x| is at most). Both sides keep them, so that they
# differ by no more than twice as much.
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
OPERANDS = {"F32": "abc", "U32": "uvw"}


def all_points() -> dict[str, np.ndarray]:
    """Each pair of edges in a and b, which some c goes with, then random bits; u, v, w are the like bits as integers."""
    a, b = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
    c = np.roll(np.resize(EDGES, len(a)), 7)
    columns = [np.concatenate([edges, random_bits(seed, NUM_RANDOM)]) for seed, edges in enumerate((a, b, c), 1)]
    floats = {name: column.view(np.float32) for name, column in zip("abc", columns, strict=True)}
    return floats | dict(zip("uvw", columns[::-1], strict=True))


def program_of(language, name: str) -> list[int] | None:
    """Words that apply an instruction to inputs and leave its result as an output; None where that is not possible."""
    instruction_set = language.instruction_set

    def ptx(instruction: str) -> int:
        return word(WordType.PTX, payload=instruction_set.instruction_index(instruction))

    def operand(variable: str) -> int:
        return word(WordType.INPUT, payload=[register for register, _ in language.registers].index(variable))

    instruction = instruction_set.instructions[instruction_set.instruction_index(name)]
    stacks = [instruction_set.stacks[instruction_set.arg_types[arg].stack_idx].name for arg in instruction.args]
    result = instruction_set.stacks[instruction_set.arg_types[instruction.rets[0]].stack_idx].name
    words, taken = [], dict.fromkeys(OPERANDS, 0)
    for stack in stacks:
        if stack == "PRED":
            words = [operand("u"), operand("v"), ptx("setp_lt_ftz_f32" if "f32" in name else "setp_ne_u32"), *words]
            if "f32" in name:
                words[:2] = [operand("b"), operand("a")]
        elif stack in OPERANDS:
            words = [operand(OPERANDS[stack][taken[stack]]), *words]
            taken[stack] += 1
        else:
            return None
    words.append(ptx(name))
    if result == "PRED":  # seen by what it selects
        words = [operand("c"), operand("a"), *words, ptx("selp_f32")]
    elif result not in OPERANDS:
        return None
    return words


@pytest.fixture(scope="module")
def results():
    """name -> (points, bits on the CPU, bits on the GPU) of every instruction."""
    from evo.evaluate.cuda import CudaEvaluator

    points = all_points()
    task = Points({name: values[:64] for name, values in points.items()})
    language = language_of(task)
    unsupported = VirtualMachine(language.lowering).unsupported
    programs = {}
    for instruction in language.instruction_set.instructions:
        words = None if instruction.name in unsupported else program_of(language, instruction.name)
        if words:
            programs[instruction.name] = words
    rows = np.full((len(programs), 16), word(WordType.RETURN), np.uint64)
    for row, words in zip(rows, programs.values(), strict=True):
        row[: len(words)] = words
    cpu, gpu = CpuEvaluator(language, task), CudaEvaluator(language, task)
    outputs = [evaluator.outputs(rows, points) for evaluator in (cpu, gpu)]
    cpu.close()
    gpu.close()
    found = {}
    for i, name in enumerate(programs):
        instruction = language.instruction_set.instructions[language.instruction_set.instruction_index(name)]
        result = language.instruction_set.stacks[language.instruction_set.arg_types[instruction.rets[0]].stack_idx].name
        output = "g" if result == "U32" else "f"
        found[name] = (points, *(each[output][i].view(np.uint32) for each in outputs))
    return found


def test_every_instruction_that_the_cpu_knows_is_compared(results):
    assert set(results) == {*EXACT, *BOUNDS}


def at_the_edge_of_the_normal_range(cpu: np.ndarray, gpu: np.ndarray) -> np.ndarray:
    """True where one is 0 and the other 2^-126, of one sign. What lies so little below 2^-126 that rounding takes it there is
    flushed or not, as its smallness is looked for before or after rounding: x86 looks after, and the PTX ISA does not say."""
    smallest = np.uint32(0x00800000)
    return (cpu ^ gpu == smallest) & np.isin(cpu & ~np.uint32(0x80000000), (0, smallest))


@pytest.mark.parametrize("name", EXACT)
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
    # Next to the ends of the range one side may be there already.
    size = np.maximum(np.abs(cpu), np.abs(gpu))
    keep = np.isfinite(cpu) & np.isfinite(gpu) & ~(size < 2.0**-125)
    if name.startswith(("sin", "cos")):
        keep &= np.abs(x) <= 2 * np.pi
    if name.startswith("div"):
        keep &= np.abs(points["b"].astype(np.float64)) <= 2.0**126
    np.testing.assert_array_equal(np.isinf(cpu) & (size > 2.0**128), np.isinf(gpu) & (size > 2.0**128) & ~np.isfinite(cpu))
    difference = np.abs(cpu - gpu)[keep]
    unit = {
        "absolute": np.ones(difference.shape),
        "relative": size[keep],
        "ulp": np.ldexp(1.0, np.frexp(size[keep])[1] - 24),
        "either": np.where((x[keep] > 0.5) & (x[keep] < 2.0), 1.0, size[keep]),
    }[kind]
    assert (difference <= 2 * bound * unit).all(), f"worst {np.max(difference / unit):g}, allowed {2 * bound:g}"
    assert keep.sum() > NUM_RANDOM // 8
