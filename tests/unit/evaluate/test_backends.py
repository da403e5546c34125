"""evo.evaluate.backends: what `auto` takes, and why."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from evo.errors import DeviceFailure, UserError
from evo.evaluate import calibration
from evo.evaluate.backends import AUTO, BACKENDS, CPU, CUDA, LEAST_GPU_S, Assignment, choose_backend
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.kernel import nvrtc
from evo.language.batch import Batch
from evo.language.program import Language
from evo.task import Task
from evo.tasks.folder import load_task

SCORING = """
import evo
import numpy as np

class Given(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"m": (0.0, 1.0)}
    reduction = REDUCTION
    needs_kernel = False

    def __init__(self, num_points):
        self.num_points = num_points

    def points(self):
        return {"x": np.zeros(self.num_points, np.float32)}
"""


@pytest.fixture
def task_of(make_task):
    """A task with this many points: with a reduction, a kernel of its own, or neither."""

    def make(kind: str, num_points: int) -> Task:
        reduction = '"regression"' if kind == "reduction" else "None"
        folder = make_task(SCORING.replace("REDUCTION", reduction), f"{kind}_{num_points}")
        if kind == "kernel.cu":
            (folder / "kernel.cu").write_text("")
        return load_task(folder, {"num_points": num_points})

    return make


def assignment_of(task: Task, instructions: tuple[str, ...] = ("add_ftz_f32",)) -> Assignment:
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    return Assignment(language, task, instructions, EvaluationOptions(), {})


def programs() -> Batch:
    """Two programs of one and three instructions."""
    return Batch(np.zeros((2, 1), np.uint64), np.zeros((2, 2), np.uint64), np.array([1, 3], np.int32))


class Started:
    """An evaluator of a backend that was started for a measurement."""

    open = 0

    def __init__(self, assignment: Assignment):
        assert assignment.settings.cache_megabytes == 0
        Started.open += 1

    def close(self) -> None:
        Started.open -= 1


@pytest.fixture
def choose(monkeypatch, task_of):
    """The choice, and the warnings, if programs cost so much and the CUDA backend has these properties."""

    def run(
        name: str = AUTO,
        *,
        cpu_s: float = 1e-3,
        gpu_s: float = 1e-4,
        instructions=("add_ftz_f32",),
        kind: str = "neither",
        num_points: int = 8,
        **properties,
    ):
        defaults = {"why_unusable": lambda: None, "why_untrusted": lambda _: None, "start": Started}
        monkeypatch.setitem(BACKENDS, "cuda", replace(CUDA, **(defaults | properties)))
        monkeypatch.setattr(calibration, "measure_cpu", lambda scorer, batch, threads: (cpu_s, 0.0))
        monkeypatch.setattr(calibration, "measure_gpu", lambda *_: ("interpret", gpu_s))
        warnings: list[str] = []
        assignment = assignment_of(task_of(kind, num_points), instructions)
        choice = choose_backend(name, assignment, programs, warnings.append)
        assert Started.open == 0
        return choice, warnings

    return run


def must_not_be_asked(*_):
    raise AssertionError("asked in vain")


def test_auto_takes_what_runs_a_program_in_less_time(choose):
    for cpu_s, gpu_s, expected in ((1e-3, 1e-4, "cuda"), (1e-4, 1e-3, "cpu")):
        choice, warnings = choose(cpu_s=cpu_s, gpu_s=gpu_s)
        assert (choice.backend.name, warnings) == (expected, [])
        assert choice.calibration.costs() == {"cpu": cpu_s, "interpret": gpu_s}
        assert (choice.calibration.num_points, choice.calibration.num_instructions) == (8, 2.0)


def without_nvrtc():
    raise nvrtc.NvrtcMissing(f"NVRTC is missing: {nvrtc.INSTALL}")


@pytest.mark.parametrize("name", ["cuda", AUTO])
def test_a_kernel_that_is_not_used_since_nvrtc_is_missing_is_one_line(choose, monkeypatch, name):
    monkeypatch.setattr(nvrtc, "version", without_nvrtc)
    _, (warning,) = choose(name, kind="kernel.cu")
    assert "kernel.cu: NVRTC is missing: pip install" in warning and "takes longer" in warning
    assert choose(name)[1] == [] and choose("cpu", kind="kernel.cu")[1] == []


def test_auto_starts_no_gpu_for_programs_that_cost_the_cpu_next_to_nothing(choose):
    choice, warnings = choose(cpu_s=0.9 * LEAST_GPU_S, start=must_not_be_asked, why_untrusted=must_not_be_asked)
    assert (choice.backend.name, warnings) == ("cpu", [])
    assert choice.calibration.costs() == {"cpu": 0.9 * LEAST_GPU_S}


def test_auto_measures_and_says_nothing_if_there_is_no_gpu(choose, monkeypatch):
    choice, warnings = choose(why_unusable=lambda: "no NVIDIA driver", start=must_not_be_asked, why_untrusted=must_not_be_asked)
    assert (choice.backend.name, choice.calibration, warnings) == ("cpu", None, [])


def test_a_gpu_is_taken_for_instructions_that_only_it_can_run(choose):
    choice, warnings = choose(gpu_s=10.0, instructions=("add_ftz_f32", "cvt_rna_tf32_f32"))
    assert (choice.backend.name, warnings) == ("cuda", [])
    assert choice.calibration.costs() == {"interpret": 10.0}


def refuse(error: Exception):
    def start(_):
        raise error

    return start


@pytest.mark.parametrize(
    ("properties", "line"),
    [
        ({"why_untrusted": lambda _: "it is broken"}, "it is broken"),
        ({"start": refuse(UserError("too little memory"))}, "too little memory"),
        ({"start": refuse(DeviceFailure("device lost"))}, "device lost"),
    ],
)
def test_auto_warns_of_a_gpu_that_cannot_be_used_and_takes_the_cpu(choose, properties, line):
    choice, warnings = choose(**properties)
    assert (choice.backend.name, warnings) == ("cpu", [f"programs do not run on the GPU: {line}"])


def test_a_backend_that_the_user_names_is_chosen_unasked(choose):
    for name in ("cuda", "cpu"):
        choice, warnings = choose(name, start=must_not_be_asked, why_untrusted=must_not_be_asked)
        assert (choice.backend.name, choice.calibration, warnings) == (name, None, [])
    assert CPU.name == "cpu"


def test_a_gpu_without_an_assembler_is_not_used_and_one_line_says_so(emulated_gpu, task_of, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked, *args: None if asked == "evo.native.nvptxcompiler" else find_spec(asked, *args)
    )
    assignment = assignment_of(task_of("neither", 8))
    warnings: list[str] = []
    monkeypatch.setattr(calibration, "measure_cpu", lambda scorer, batch, threads: (1.0, 0.0))
    assert choose_backend(AUTO, assignment, programs, warnings.append).backend is CPU
    reason = "nvPTXCompiler is missing: reinstall evo where the wheel nvidia-nvptxcompiler 13.0.88 is available"
    assert warnings == [f"programs do not run on the GPU: {reason}"]
    with pytest.raises(UserError, match=reason):
        CUDA.start(assignment)


def test_wrong_points_are_refused_before_a_backend_is_chosen(emulated_gpu, task_of, monkeypatch):
    task = task_of("reduction", 8)
    monkeypatch.setattr(type(task), "points", lambda self: {"x": np.zeros((2, 2))})
    with pytest.raises(UserError, match=r"points\(\): each input is a scalar or has the shape"):
        choose_backend(AUTO, assignment_of(task), programs)
