"""evo.evaluate.backends: what `auto` takes, and why."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from evo.config import EvaluationConfig
from evo.errors import UserError
from evo.evaluate.backends import AUTO, BACKENDS, CPU, CUDA, Assignment, choose_backend
from evo.instructions import shipped_instruction_set
from evo.language.program import Language
from evo.task import Task, load_task

SCORING = """
import evo
import numpy as np

class Given(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"m": (0.0, 1.0)}
    reduction = REDUCTION

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
    return Assignment(language, task, instructions, EvaluationConfig().model_dump(), {})


@pytest.mark.parametrize(
    ("kind", "num_points", "expected"),
    [
        ("reduction", 500_000, True),
        ("reduction", 499_999, False),
        ("kernel.cu", 500_000, True),
        ("kernel.cu", 499_999, False),
        ("neither", 5_000_000, False),
    ],
)
def test_a_gpu_pays_off_for_many_points_unless_the_task_scores_in_python(task_of, kind, num_points, expected):
    assert CUDA.pays_off(assignment_of(task_of(kind, num_points))) == expected


def test_a_kernel_that_does_not_serve_the_tasks_options_does_not_pay_off(task_of, monkeypatch):
    task = task_of("kernel.cu", 500_000)
    monkeypatch.setattr(type(task), "kernel_defines", lambda self: None)
    assert not CUDA.pays_off(assignment_of(task))


def test_a_gpu_is_taken_for_instructions_that_only_it_can_run(task_of):
    assert CUDA.pays_off(assignment_of(task_of("neither", 8), ("add_ftz_f32", "cvt_rna_tf32_f32")))


@pytest.fixture
def choose(monkeypatch, task_of):
    """What is chosen, and the warnings, if the CUDA backend has these properties."""

    def run(name: str = AUTO, **properties):
        defaults = {"why_unusable": lambda: None, "pays_off": lambda _: True, "why_untrusted": lambda _: None}
        monkeypatch.setitem(BACKENDS, "cuda", replace(CUDA, **(defaults | properties)))
        warnings: list[str] = []
        return choose_backend(name, assignment_of(task_of("neither", 8)), warnings.append).name, warnings

    return run


def must_not_be_asked(_):
    raise AssertionError("asked in vain")


def test_auto_takes_a_gpu_that_is_there_pays_off_and_is_trusted(choose):
    assert choose() == ("cuda", [])


def test_auto_says_nothing_if_there_is_no_gpu_or_none_is_wanted(choose):
    assert choose(why_unusable=lambda: "no NVIDIA driver", why_untrusted=must_not_be_asked) == ("cpu", [])
    assert choose(pays_off=lambda _: False, why_untrusted=must_not_be_asked) == ("cpu", [])


def test_auto_warns_of_a_gpu_that_is_not_trusted(choose):
    assert choose(why_untrusted=lambda _: "it is broken") == ("cpu", ["programs do not run on the GPU: it is broken"])


def test_a_backend_that_the_user_names_is_chosen_unasked(choose):
    assert choose("cuda", pays_off=must_not_be_asked, why_untrusted=must_not_be_asked) == ("cuda", [])
    assert choose("cpu", why_untrusted=must_not_be_asked) == ("cpu", [])
    assert CPU.name == "cpu"


def test_a_gpu_without_an_assembler_is_not_used_and_one_line_says_so(emulated_gpu, task_of, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda asked, *args: None if asked == "evo.native.nvptxcompiler" else find_spec(asked, *args)
    )
    assignment = assignment_of(task_of("reduction", 500_000))
    warnings: list[str] = []
    assert choose_backend(AUTO, assignment, warnings.append) is CPU
    reason = "nvPTXCompiler is missing: reinstall evo where the wheel nvidia-nvptxcompiler 13.0.88 is available"
    assert warnings == [f"programs do not run on the GPU: {reason}"]
    with pytest.raises(UserError, match=reason):
        CUDA.start(assignment)


def test_wrong_points_are_refused_before_a_backend_is_chosen(emulated_gpu, task_of, monkeypatch):
    task = task_of("reduction", 8)
    monkeypatch.setattr(type(task), "points", lambda self: {"x": np.zeros((2, 2))})
    with pytest.raises(UserError, match=r"points\(\): each input is a scalar or has the shape"):
        choose_backend(AUTO, assignment_of(task), lambda _: None)
