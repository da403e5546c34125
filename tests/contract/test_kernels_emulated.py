"""The law that ties the backends: the pointwise kernel's PTX, run by an emulator, gives what the CPU's virtual machine gives.

The emulator reads the PTX ISA by itself (emulator/), so that lowering, emission, packing and the kernel's own addressing
are judged together. Instructions that the ISA defines exactly agree bit by bit, approximate ones within a bound.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module
from float_edges import EDGES, random_bits

pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.compile.language import encode_language
from evo.compile.request import CompileRequest, pack_programs, render
from evo.instructions import shipped_instruction_set
from evo.kernel.pointwise import kernel_name
from evo.language.program import Language, Limits
from evo.native.ptx_vm import VirtualMachine
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation

SET = shipped_instruction_set("default")
INPUTS = (("a", "f32"), ("b", "f32"), ("c", "f32"), ("u", "u32"), ("v", "u32"), ("p", "philox"))
OUTPUTS = (("f", "f32"), ("g", "u32"), ("a", "f32"), ("p", "philox"))
LANGUAGE = Language(SET, INPUTS, OUTPUTS)

EXACT = (
    *("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "min_ftz_f32", "max_ftz_f32", "abs_ftz_f32", "neg_ftz_f32"),
    *("copysign_f32", "setp_lt_ftz_f32", "setp_eq_u32", "setp_ne_u32", "selp_f32", "cvt_rn_f32_u32"),
    *("add_u32", "sub_u32", "mul_lo_u32", "mad_lo_u32"),
    *("add_philox", "xor_philox", "mul_lo_philox", "mul_hi_philox", "philox_to_u32"),
)


@dataclass(frozen=True)
class Shape:
    """Launch shape of a kernel: threads of a block, blocks of a row."""

    block: int
    blocks: int


def random_programs(language: Language, names: tuple[str, ...], count: int, seed: int = 5) -> np.ndarray:
    vocabulary = VocabularyOptions(
        instructions=dict.fromkeys(names, 1.0),
        meta={"dup": 1.0, "swap": 1.0, "rotate": 1.0},
        groups={"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05},
        constants=ConstantOptions(f32_sigma=1.0, u32_max=9, meta_max=2),
    )
    options = VariationOptions(operators={"umad": 1.0})
    return make_variation(language, vocabulary, options, (1, 70)).random_programs(seed, 0, 0, count, 70)


def some_inputs(num_points: int, scalars: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Bits of every input: edges of floats and random patterns; a scalar is the first of its own."""
    bits = {}
    for i, (name, _) in enumerate(INPUTS):
        column = np.concatenate([np.random.default_rng(i).permutation(EDGES), random_bits(i, 2 * num_points)])[:num_points]
        bits[name] = np.array(column[len(column) // 2]) if name in scalars else column
    return bits


def run_emulated(
    language: Language, words: np.ndarray, inputs: dict, num_points: int, shape: Shape, sites_per_kernel: int = 64
) -> np.ndarray:
    """Bits of `(num_programs, num_outputs, num_points)`. The memory holds inputs and outputs and nothing else."""
    hashes = language.lowering.analyze(words)[0]
    request = CompileRequest(*pack_programs(words, hashes), encode_language(language), "sm_90", sites_per_kernel)
    module = Module(render(request))
    arrays = [np.array(inputs[name], np.uint32, ndmin=1) for name, _ in language.inputs]
    strides = [4 if np.ndim(inputs[name]) else 0 for name, _ in language.inputs]
    out = np.full((len(words), len(language.outputs), num_points), 0xDEADBEEF, np.uint32)
    memory = Memory.of_arrays(*arrays, out)
    assert module.kernel_names == tuple(kernel_name(i) for i in range(len(request.kernel_sizes)))
    first = 0
    for name, num_sites in zip(module.kernel_names, request.kernel_sizes, strict=True):
        addresses = [array.ctypes.data for array in arrays] + [out[first:].ctypes.data]
        parameters = struct.pack(f"<{len(addresses)}Q{len(strides) + 1}I", *addresses, *strides, num_points)
        launch(module, name, (shape.blocks, num_sites), (shape.block,), parameters, memory)
        first += num_sites
    return out


def run_on_cpu(language: Language, words: np.ndarray, inputs: dict, num_points: int) -> np.ndarray:
    machine = VirtualMachine(language.lowering)
    values = [np.asarray(inputs[name]) if name in inputs else None for name, _ in language.registers]
    dtype = np.float32 if all(kind == "f32" for _, kind in language.outputs) else np.uint32
    return machine.store(words, values, np.empty((len(words), len(language.outputs), num_points), dtype)).view(np.uint32)


def assert_same(emulated: np.ndarray, cpu: np.ndarray) -> None:
    different = np.argwhere(emulated != cpu)
    shown = [(tuple(map(int, at)), f"{emulated[tuple(at)]:08x}", f"{cpu[tuple(at)]:08x}") for at in different[:5]]
    assert not len(different), f"{len(different)} of {cpu.size} differ: (program, output, point), emulated, CPU: {shown}"


@pytest.mark.parametrize(
    ("shape", "num_points"), [(Shape(128, 3), 1), (Shape(7, 2), 203), (Shape(256, 9), 203), (Shape(128, 3), 4096)], ids=str
)
def test_exact_programs_have_the_same_bits_whatever_the_grid(shape, num_points):
    words = random_programs(LANGUAGE, EXACT, 24)
    inputs = some_inputs(num_points)
    assert_same(run_emulated(LANGUAGE, words, inputs, num_points, shape), run_on_cpu(LANGUAGE, words, inputs, num_points))


@pytest.mark.parametrize("sites_per_kernel", [1, 7, 64])
def test_kernels_of_a_module_follow_each_other(sites_per_kernel):
    words = random_programs(LANGUAGE, EXACT, 30, seed=7)
    inputs = some_inputs(100)
    emulated = run_emulated(LANGUAGE, words, inputs, 100, Shape(64, 2), sites_per_kernel)
    assert_same(emulated, run_on_cpu(LANGUAGE, words, inputs, 100))


@pytest.mark.parametrize("scalars", [("a",), ("b", "u", "p"), tuple(name for name, _ in INPUTS)], ids=str)
def test_an_input_that_is_the_same_at_all_points_is_read_at_all_points(scalars):
    words = random_programs(LANGUAGE, EXACT, 20, seed=8)
    inputs = some_inputs(70, scalars)
    assert_same(run_emulated(LANGUAGE, words, inputs, 70, Shape(32, 2)), run_on_cpu(LANGUAGE, words, inputs, 70))


@pytest.mark.parametrize(
    "language",
    [
        Language(SET, (), (("f", "f32"),)),
        Language(SET, (("x", "f32"),), (("x", "f32"),)),
        Language(SET, (("x", "f32"), ("y", "f32")), (("y", "f32"), ("x", "f32"))),
        Language(
            SET,
            (("x", "f32"), ("u", "u32")),
            (("f", "f32"), ("g", "f32"), ("h", "f32")),
            Limits(stack_size=5, execution_limit=40),
        ),
    ],
    ids=["no input", "one register", "both ways", "tight limits"],
)
def test_languages_at_the_edges_have_the_same_bits(language):
    words = random_programs(language, EXACT[:8], 20, seed=9)
    inputs = {name: np.resize(EDGES, 90) for name, _ in language.inputs}
    assert_same(run_emulated(language, words, inputs, 90, Shape(64, 1)), run_on_cpu(language, words, inputs, 90))
