"""Packs in a task's own kernel: every program live at its site, in packs of any size, by requests that hold all."""

import pickle
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from compile_cases import constant_of, program_text, programs
from emulated_gpu.ptx_machine import ORDERS, launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module as EmulatedModule

from evo.compile.compiler import Module, PackCompiler
from evo.compile.language import encode_language
from evo.compile.packing import Packing
from evo.compile.pool import CompilePool
from evo.compile.request import Compiled, CompileRequest, compile_request, pack_programs, render
from evo.errors import UserError
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.kernel.cuda_header import BLOCK_SIZE, points_argument
from evo.kernel.template import ENTRY, KernelTemplate, task_ptx, task_template
from evo.language.program import Language
from evo.task import Task
from evo.tasks.folder import load_task

NUM_SITES = 8
MULTIPLY = re.compile(r".*FMUL\.FTZ R\d+, R\d+(?:\.reuse)?, ([\d.]+)")
FOLDER = Path(__file__).parents[2] / "data" / "own_kernel"


@pytest.fixture(scope="module")
def task() -> Task:
    """The task with a kernel of its own."""
    return load_task(FOLDER, {"weight": 0.1})


@pytest.fixture(scope="module")
def own_kernel(task) -> tuple[Language, KernelTemplate]:
    """Its language and template."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from evo.kernel.cuda_source import template_of

    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    return language, template_of(task, language, "sm_90", NUM_SITES)


def modules(compiler: PackCompiler, batch) -> list[Module]:
    found = list(compiler.compile(batch))
    assert all(isinstance(module, Module) for module in found)
    return sorted(found, key=lambda module: module.rows[0][0])


@pytest.mark.parametrize("num_programs", [1, NUM_SITES, NUM_SITES + 1])
def test_every_program_of_a_pack_is_live_and_nothing_else(own_kernel, in_process, disassemble, num_programs):
    language, template = own_kernel
    batch = programs(language, [program_text(i) for i in range(num_programs)])
    # Even where packs of the pointwise kernel would be larger and of several kernels.
    found = modules(
        PackCompiler(
            language, "sm_90", in_process, template=template, packing=Packing(sites_per_kernel=64, kernels_per_module=4)
        ),
        batch,
    )
    assert [len(module.rows) for module in found] == [num_programs] if num_programs <= NUM_SITES else [5, 4]
    for module in found:
        assert module.kernel_sizes == (len(module.rows),)
        (sass,) = [lines for name, lines in disassemble(module.cubin).items() if name == ENTRY]
        constants = [float(match[1]) for match in map(MULTIPLY.match, sass) if match]
        # Each stands as often as the compiler made copies of the loop's body.
        assert sorted(set(constants)) == sorted(constant_of(row) for (row,) in module.rows)
        assert not [line for line in sass if "FFMA.FTZ" in line]


def test_a_worker_needs_nothing_but_the_request(own_kernel, in_process):
    language, template = own_kernel
    seen = []

    def keep(request):
        seen.append(pickle.dumps(request))
        return Compiled(b"")

    batch = programs(language, [program_text(i) for i in range(3)])
    list(PackCompiler(language, "sm_90", in_process, template=template, compile_function=keep).compile(batch))
    assert len(seen[0]) < 16_000
    with CompilePool(1) as pool:
        there = pool.submit(compile_request, pickle.loads(seen[0])).result()
    assert there.cubin == compile_request(pickle.loads(seen[0])).cubin


def test_a_kernel_that_cannot_be_assembled_is_not_the_programs_fault(own_kernel, in_process):
    language, template = own_kernel
    broken = task_template(task_ptx(template.content).replace(b"bar.sync", b"bar.nonsense"), NUM_SITES)
    with pytest.raises(UserError, match="cannot compile for target 'sm_90'"):
        PackCompiler(language, "sm_90", in_process, template=broken)


# Instructions that are exact, so that an emulator has the bits of CPU and GPU.
SCORED = [
    "%x %y mul_ftz_f32 %t add_ftz_f32",
    "%x",
    "drop.f32",
    "%n cvt_rn_f32_u32 0.01 mul_ftz_f32 %x 3.0 max_ftz_f32",
    "%x 1e30 mul_ftz_f32 1e30 mul_ftz_f32 %y",
    "%y %x sub_ftz_f32 abs_ftz_f32 %t mul_ftz_f32 %x",
    "%n 7:u32 mul_lo_u32 cvt_rn_f32_u32",
]


@pytest.mark.parametrize("order", ORDERS)
def test_the_kernel_scores_as_the_tasks_score_does(own_kernel, task, order):
    language, template = own_kernel
    batch = programs(language, SCORED)
    packed, encoded = pack_programs(batch.words, batch.hashes), encode_language(language)
    request = CompileRequest(*packed, encoded, "sm_90", NUM_SITES, template=template.content)
    arrays = [np.asarray(values) for values in task.points().values()]
    num_points = max(array.size for array in arrays)
    scores = np.full((len(batch), 1 + len(task.measures)), 12345.0)
    counts = batch.num_instructions.astype(np.int32)
    points = points_argument([array.ctypes.data for array in arrays], [4 * array.ndim for array in arrays], num_points)
    parameters = points.tobytes() + struct.pack("<2Q", counts.ctypes.data, scores.ctypes.data)
    memory = Memory.of_arrays(*arrays, counts, scores)
    module, grid = EmulatedModule(render(request)), (1, len(batch))
    launch(module, ENTRY, grid, (BLOCK_SIZE,), parameters, memory, order=order)

    expected = CpuEvaluator(language, task).evaluate(batch)
    is_finite = np.isfinite(scores).all(axis=1)
    assert is_finite.tolist() == (expected.status == 0).tolist() == [True, True, True, True, False, True, True]
    np.testing.assert_array_equal(scores[is_finite, 0], expected.objective[is_finite])
    np.testing.assert_array_equal(scores[is_finite, 1:], expected.measures[is_finite])
