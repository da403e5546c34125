"""evo.evaluate.cpu: which batches threads score and which processes do, and what happens where processes alone fail."""

import re
from contextlib import closing

import pytest

from evo.errors import UserError
from evo.evaluate import TaskSource
from evo.evaluate.chunks import MAX_CHUNK
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.pickled_task import pickle_task
from evo.native.ptx_vm import levels
from evo.tasks.folder import load_task

from .conftest import PARENT, language_of, numbers, places, source


def test_with_a_task_that_this_process_has_made_auto_begins_with_threads(make_task, monkeypatch):
    """Most such searches take less time than processes take to start."""
    task = load_task(make_task(source()), {})
    with closing(CpuEvaluator(language_of(task), task, 2, levels()[0], source=pickle_task(task))) as each:
        assert places(each, 2) == "tt" and each.environment()["executor"] == "threads"
        monkeypatch.setattr(each, "_waits_s", 0.0)  # threads have worked long enough
        assert places(each, 2) == "pp" and each.environment()["executor"] == "processes"


NATIVE = """
import numpy as np

import evo


class Native(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"m": (0.0, 1.0)}
    reduction = "regression"

    def points(self):
        return {"x": np.linspace(0, 1, 5, dtype=np.float32)}

    def targets(self):
        return {"y": np.linspace(0, 1, 5, dtype=np.float32)}

    def score(self, outputs, programs):
        return evo.Scores(-outputs.mse[:, 0], np.zeros((len(outputs.mse), 1)))
"""


@pytest.mark.parametrize(("text", "executor"), [(source(), "processes"), (NATIVE, "threads")], ids=["python", "native"])
def test_auto_means_processes_for_a_score_in_python_and_threads_for_a_reduction(make_task, text, executor):
    folder = make_task(text)
    task = load_task(folder, {})
    with closing(CpuEvaluator(language_of(task), task, 2, levels()[0], source=TaskSource(folder, {}))) as each:
        assert each.environment()["executor"] == executor


@pytest.mark.parametrize(
    ("where", "reason"), [("body", r"score\(\) raised Assert"), ("top", "does not import")], ids=["score", "loading"]
)
def test_auto_goes_on_with_threads_if_processes_alone_fail(evaluator, capfd, where, reason):
    each = evaluator(executor="auto", **{where: f"assert os.getpid() == {PARENT}"})
    assert places(each, 2) == "tt"
    assert each.environment()["executor"] == "threads"
    (line,) = capfd.readouterr().err.splitlines()
    assert re.match(rf"evo: the scoring processes fail, threads go on: .*task\.py:\d+: {reason}", line)


@pytest.mark.parametrize("executor", ["auto", "threads"])
@pytest.mark.parametrize("error", ["ValueError", "asyncio.CancelledError"])
def test_a_score_that_raises_on_threads_too_is_said_once(evaluator, capfd, executor, error):
    each = evaluator(f"raise {error}('late')", executor=executor)
    with pytest.raises(UserError, match=rf"task\.py:\d+: score\(\) raised {error.split('.')[-1]}: late"):
        each.evaluate(numbers(2 * MAX_CHUNK))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("number", "has_source"), [(1, True), (2, False)])
def test_auto_means_threads_with_one_core_or_a_task_from_nowhere(evaluator, make_task, number, has_source):
    if has_source:
        each = evaluator(number=number, executor="auto")
    else:
        task = load_task(make_task(source()), {})
        each = CpuEvaluator(language_of(task), task, number)
    assert each.environment()["executor"] == "threads"
    each.close()
