"""A task with its own kernel, evaluated on the stand-in for a GPU: scores equal those of its `score`."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from evo.compile.packing import Packing
from evo.errors import UserError
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.tasks.folder import load_task

FOLDER = Path(__file__).parents[3] / "data" / "own_kernel"

# Exact instructions, which have the same bits on CPU, GPU and stand-in. The fourth program gives infinity.
TEXTS = ["%x %y mul_ftz_f32 %t add_ftz_f32", "drop.f32", "%n cvt_rn_f32_u32 0.01 mul_ftz_f32 %x"]
TEXTS += ["%x 1e30 mul_ftz_f32 1e30 mul_ftz_f32"]
TEXTS += [f"%x {i}.5 mul_ftz_f32 %y" for i in range(6)]


@pytest.fixture
def problem():
    """Task, language and programs."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    task = load_task(FOLDER, {"weight": 0.1})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    words = np.stack([parse_program(language, text, "test", 8) for text in TEXTS])
    return task, language, Batch.analyze(language.lowering, words)


def assert_scores_equal_the_tasks_own(problem, options: EvaluationOptions, num_batches: int = 1) -> dict[str, int]:
    """Gives how many programs each lane took."""
    task, language, batch = problem
    expected = CpuEvaluator(language, task).evaluate(batch)
    assert expected.status.tolist() == [0, 0, 0, 1, *[0] * 6]
    evaluator = CudaEvaluator(language, task, options)
    try:
        for _ in range(num_batches):
            found = evaluator.evaluate(batch)
            np.testing.assert_array_equal(found.status, expected.status)
            np.testing.assert_array_equal(found.objective, expected.objective)
            np.testing.assert_array_equal(found.measures, expected.measures)
        assert evaluator.environment()["kernel"] == "kernel.cu"
    finally:
        evaluator.close()
    return found.stats.lanes


@pytest.mark.parametrize(
    "packing",
    [
        Packing(sites_per_kernel=2, kernels_per_module=2),
        Packing(sites_per_kernel=64, kernels_per_module=2),
    ],
)
def test_scores_equal_the_tasks_own_in_packs_of_any_size(emulated_gpu, problem, packing):
    lanes = assert_scores_equal_the_tasks_own(problem, EvaluationOptions(compile_workers=1, packing=packing, lane="compile"))
    assert lanes == {"interpret": 0, "compile": len(TEXTS)}


def test_scores_of_interpreted_programs_equal_the_tasks_own_pack_after_pack(emulated_gpu, problem, monkeypatch):
    """Packs in flight at once have their code, and so their module, at places of their own."""
    monkeypatch.setattr("evo.evaluate.cuda.interpret._MIN_PROGRAMS", 1)
    monkeypatch.setattr("evo.evaluate.cuda.interpret._NUM_PACKS", 5)
    lanes = assert_scores_equal_the_tasks_own(problem, EvaluationOptions(threads=2, lane="interpret"), num_batches=3)
    assert lanes == {"interpret": len(TEXTS), "compile": 0}
    assert emulated_gpu.num_calls("launch") == 15
    assert emulated_gpu.num_calls("variable") == 3
    assert not any(emulated_gpu.leaked().values())


def test_programs_are_compiled_where_the_kernel_leaves_no_shared_memory_to_interpret(emulated_gpu, problem):
    emulated_gpu.configure("fault=attribute:1:1")  # CUDA_ERROR_INVALID_VALUE
    lanes = assert_scores_equal_the_tasks_own(problem, EvaluationOptions(compile_workers=1, lane="interpret"))
    assert lanes == {"interpret": 0, "compile": len(TEXTS)}
    assert not any(emulated_gpu.leaked().values())


def test_an_error_in_the_kernel_has_its_line_and_leaves_nothing_on_the_device(emulated_gpu, problem, tmp_path):
    _, language, _ = problem
    for name in ("task.py", "sums.cuh"):
        (tmp_path / name).write_bytes((FOLDER / name).read_bytes())
    (tmp_path / "kernel.cu").write_text('#include "evo.cuh"\n\nint f( {}\n')
    with pytest.raises(UserError, match=r"kernel\.cu:3: "):
        CudaEvaluator(language, load_task(tmp_path, {}), EvaluationOptions(compile_workers=1, lane="compile"))
    nothing = dict.fromkeys(emulated_gpu.alive(), 0)
    assert (emulated_gpu.alive(), emulated_gpu.leaked()) == (nothing, nothing)
    assert multiprocessing.active_children() == []
