"""The CUDA evaluator on a stand-in for a GPU (emulator/): what a GPU does not show."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from cuda.bindings import driver

from evo.compile.packing import Packing
from evo.errors import DeviceFailure, UserError
from evo.evaluate.backends import CUDA, Assignment
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda import lane
from evo.evaluate.cuda.choice import LANES
from evo.evaluate.cuda.device import Device, probe
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.regression.task import RegressionTask
from evo.tasks.folder import load_task

OWN_KERNEL = Path(__file__).parents[1] / "data" / "own_kernel"


def factor_of(row: int) -> float:
    """The factor of a program, different in each."""
    return 1 + (row + 1) / 128


@pytest.fixture
def problem(plane_folder):
    """The plane task, its language, and programs for 8 packs of `options`."""
    task = load_task(plane_folder, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    name = language.inputs[0][0]
    texts = [f"%{name} {factor_of(i)} mul_ftz_f32" for i in range(64)]
    words = np.stack([parse_program(language, text, "test", 8) for text in texts])
    return task, language, Batch.analyze(language.lowering, words)


OPTIONS = EvaluationOptions(compile_workers=1, packing=Packing(sites_per_kernel=4, kernels_per_module=2), lane="compile")


def test_an_evaluator_gives_back_all_that_it_takes_of_a_device(emulated_gpu, problem):
    task, language, batch = problem
    evaluator = CudaEvaluator(language, task, OPTIONS)
    for _ in range(2):
        evaluator.evaluate(batch)
    during = emulated_gpu.alive()
    assert during["modules"] == 0 and during["device memory"] > 0
    evaluator.outputs(batch.words[:3], task.points())
    assert emulated_gpu.alive() == during
    evaluator.close()
    nothing = dict.fromkeys(during, 0)
    assert (emulated_gpu.alive(), emulated_gpu.leaked()) == (nothing, nothing)


def test_outputs_of_one_program_take_page_locked_memory_for_one_program(emulated_gpu, problem, monkeypatch):
    task, language, batch = problem
    evaluator = CudaEvaluator(language, task, OPTIONS)
    sizes, pinned = [], Device.pinned
    monkeypatch.setattr(Device, "pinned", lambda self, num_bytes: sizes.append(num_bytes) or pinned(self, num_bytes))
    evaluator.outputs(batch.words[:1], task.picture_points(16, 0.5))
    evaluator.close()
    assert max(sizes) == 16 * 16 * 4


@pytest.mark.parametrize(("chosen", "expected"), [(None, "EAGER"), ("LAZY", "LAZY")])
def test_modules_are_loaded_whole_unless_the_user_chooses_otherwise_and_no_other_process_notices(
    emulated_gpu, monkeypatch, chosen, expected
):
    monkeypatch.delenv("CUDA_MODULE_LOADING", raising=False)
    if chosen:
        monkeypatch.setenv("CUDA_MODULE_LOADING", chosen)
    assert probe().problem is None
    assert driver.cuModuleGetLoadingMode()[1].name == f"CU_MODULE_{expected}_LOADING"
    assert os.environ.get("CUDA_MODULE_LOADING") == chosen


@pytest.mark.parametrize("folder", ["plane", "own_kernel"])
def test_an_interpreter_asks_for_as_much_shared_memory_as_a_multiprocessor_has(emulated_gpu, plane_folder, monkeypatch, folder):
    asked, function_of = [], Device.function
    monkeypatch.setattr(Device, "function", lambda *args: asked.append(function_of(*args)) or asked[-1])
    task = load_task(OWN_KERNEL if folder == "own_kernel" else plane_folder, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    evaluator = CudaEvaluator(language, task, OPTIONS.model_copy(update={"lane": "interpret"}))
    carveout = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
    assert 100 in [driver.cuFuncGetAttribute(carveout, function)[1] for function in asked]
    evaluator.close()


def test_a_batch_is_loaded_once_a_pack_and_launched_once_a_kernel(emulated_gpu, problem):
    task, language, batch = problem
    evaluator = CudaEvaluator(language, task, OPTIONS)
    loads, launches = (emulated_gpu.num_calls(name) for name in ("load", "launch"))
    start_s = time.perf_counter()
    assert 0 < evaluator.evaluate(batch).stats.times_s["score_threads"] < time.perf_counter() - start_s
    evaluator.close()
    assert emulated_gpu.num_calls("load") - loads == 8
    assert emulated_gpu.num_calls("launch") - launches == 8 * 2


@pytest.mark.parametrize("deferred", [0, 1])
def test_results_are_read_only_once_they_are_there(emulated_gpu, problem, deferred):
    task, language, batch = problem
    emulated_gpu.configure(f"deferred={deferred}")
    evaluator = CudaEvaluator(language, task, OPTIONS)
    found = [evaluator.evaluate(batch).objective for _ in range(2)]
    evaluator.close()
    expected = CpuEvaluator(language, task, 1).evaluate(batch).objective
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    assert found[0].tobytes() == found[1].tobytes()


# Failed launches, a kernel image that is refused, a wait that fails, what is unknown: each in the middle of a batch.
MACHINE_FAULTS = ["launch:9:719", "launch:9:700:late", "load:3:200", "load:3:999", "query:1:719", "unload:1:719"]


@pytest.mark.parametrize("fault", MACHINE_FAULTS)
def test_a_fault_of_the_machine_ends_the_batch_in_one_line(emulated_gpu, problem, fault):
    task, language, batch = problem
    evaluator = CudaEvaluator(language, task, OPTIONS)
    emulated_gpu.configure(f"fault={fault}")
    with pytest.raises(DeviceFailure, match="CUDA_ERROR_"):
        evaluator.evaluate(batch)
    evaluator.close()


def test_a_kernel_that_never_ends_is_given_up_after_its_time(emulated_gpu, problem):
    task, language, batch = problem
    evaluator = CudaEvaluator(language, task, OPTIONS.model_copy(update={"launch_seconds": 3.0}))
    emulated_gpu.configure("fault=launch:9:600")
    with pytest.raises(DeviceFailure, match=r"still running after 3 s"):
        evaluator.evaluate(batch)
    evaluator.close()


@pytest.mark.parametrize(
    ("capability", "target", "has_own_kernel"),
    [("10.7", "sm_103", False), ("13.0", "compute_121", True)],
)
@pytest.mark.parametrize("name", LANES)
def test_a_gpu_newer_than_the_assembler_has_the_same_results(
    emulated_gpu, plane_folder, capability, target, has_own_kernel, name
):
    task = load_task(OWN_KERNEL if has_own_kernel else plane_folder, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    texts = [f"%{language.inputs[0][0]} {factor_of(i)} mul_ftz_f32" for i in range(9)]
    batch = Batch.analyze(language.lowering, np.stack([parse_program(language, text, "test", 8) for text in texts]))
    found = {}
    for each in ("9.0", capability):
        emulated_gpu.configure(f"capability={each}")
        evaluator = CudaEvaluator(language, task, OPTIONS.model_copy(update={"lane": name}))
        found[each] = evaluator.evaluate(batch)
        environment = evaluator.environment()
        evaluator.close()
    assert environment["target"] == target
    assert found[capability].objective.tobytes() == found["9.0"].objective.tobytes()
    assert np.isfinite(found["9.0"].objective).any()


def test_outputs_beyond_page_locked_memory_are_scored_in_parts(emulated_gpu, problem, monkeypatch):
    task, language, batch = problem
    expected = CudaEvaluator(language, task, OPTIONS)
    monkeypatch.setattr(lane, "MAX_PINNED_BYTES", lane.NUM_IN_FLIGHT * 64 * 4 * 3)  # of outputs at 64 points
    in_parts = CudaEvaluator(language, task, OPTIONS)
    loads = emulated_gpu.num_calls("load")
    found = in_parts.evaluate(batch)
    assert emulated_gpu.num_calls("load") - loads == 8  # packs are as large as ever
    assert found.objective.tobytes() == expected.evaluate(batch).objective.tobytes()
    in_parts.close()
    expected.close()


@pytest.mark.parametrize(("processors", "num_packs"), [(132, 1), (8, 2), (1, 13)])
def test_packs_of_a_tasks_own_kernel_fill_the_device(emulated_gpu, processors, num_packs):
    task = load_task(OWN_KERNEL, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    texts = [f"%{language.inputs[0][0]} {factor_of(i)} mul_ftz_f32" for i in range(100)]
    batch = Batch.analyze(language.lowering, np.stack([parse_program(language, text, "test", 8) for text in texts]))
    emulated_gpu.configure(f"processors={processors}")
    evaluator = CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, lane="compile"))
    launches = emulated_gpu.num_calls("launch")
    evaluator.evaluate(batch)
    evaluator.close()
    assert emulated_gpu.num_calls("launch") - launches == num_packs


@pytest.mark.parametrize(("wanted", "level"), [(None, 0), (3, 3)])
def test_the_optimisation_level_is_chosen_by_the_task_unless_it_is_given(emulated_gpu, plane_folder, wanted, level):
    task = load_task(plane_folder, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    evaluator = CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, opt_level=wanted, lane="compile"))
    environment = evaluator.environment()
    evaluator.close()
    assert environment["opt_level"] == level


def test_a_task_with_a_loss_of_its_own_is_left_to_the_cpu(emulated_gpu):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 2))
    task = RegressionTask({"a": x[:, 0], "b": x[:, 1]}, 2.0 * x[:, 0] * x[:, 1], loss="abs(prediction - target)")
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    with pytest.raises(UserError, match="a task with a loss of its own runs on the CPU; set it to cpu or auto"):
        CUDA.start(Assignment(language, task, ["add_ftz_f32"], OPTIONS, {}))
