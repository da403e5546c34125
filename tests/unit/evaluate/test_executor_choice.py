"""evo.evaluate.cpu: which batches threads score and which processes do, and what happens where processes alone fail."""

import os
import re
import signal
import time
from contextlib import closing
from types import SimpleNamespace

import pytest

from evo.errors import UserError
from evo.evaluate import cpu
from evo.evaluate.chunks import MAX_CHUNK
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.pickled_task import pickle_task
from evo.evaluate.scoring_pool import ScoringPool
from evo.native.ptx_vm import levels
from evo.task_folder import load_task

from .conftest import PARENT, language_of, numbers, places, processes_of, source


class Clock:
    """Shows what batches take that do as they are told."""

    def __init__(self, monkeypatch, threads_s: float, processes_s: float):
        self.now_s = 0.0
        self.seconds = {"t": threads_s, "p": processes_s}
        for way, kind, name in (("t", CpuEvaluator, "_on_threads"), ("p", ScoringPool, "evaluate")):
            monkeypatch.setattr(kind, name, self._timed(way, getattr(kind, name)))
        monkeypatch.setattr(cpu, "time", SimpleNamespace(perf_counter=lambda: self.now_s, monotonic=time.monotonic))

    def _timed(self, way, evaluate):
        def timed(evaluator, *args):
            self.now_s += self.seconds[way]
            return evaluate(evaluator, *args)

        return timed


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """A batch takes a second on threads and on processes. Trials begin after two batches."""
    monkeypatch.setattr(cpu, "FIRST_S", 0.0)
    monkeypatch.setattr(cpu, "FIRST_BATCHES", 2)
    return Clock(monkeypatch, threads_s=1.0, processes_s=1.0)


TRIALS = "pt" * (cpu.NUM_TRIALS + 1)


def wait_for_processes(each: CpuEvaluator) -> None:
    while not each._processes.are_ready():
        for worker in each._processes._idle:
            assert worker._connection.poll(60), "a process does not start"


def test_with_a_task_that_this_process_has_made_auto_begins_with_threads(make_task, clock):
    """Most such searches take less time than processes take to start."""
    task = load_task(make_task(source()), {})
    with closing(CpuEvaluator(language_of(task), task, 2, levels()[0], source=pickle_task(task))) as each:
        assert places(each, 2) == "tt" and not each._processes._workers
        assert each.environment()["executor"] == "auto"
        clock.seconds["p"] = 0.5
        assert places(each, 2) == "tt"  # no process has started yet
        wait_for_processes(each)
        assert set(places(each, len(TRIALS))) == {"p", "t"}
        assert each.environment()["executor"] == "processes" and places(each, 2) == "pp"


def test_auto_keeps_to_processes_once_one_has_died(evaluator, clock):
    """The crash would have ended this process on a thread."""
    each = evaluator(executor="auto")
    clock.seconds["p"] = 2.0
    (process, *_) = processes_of(each.evaluate(numbers(3 * MAX_CHUNK)))
    os.kill(process, signal.SIGKILL)
    assert places(each, 2 + len(TRIALS)) == "pp" + "p" * len(TRIALS)
    assert each.environment()["executor"] == "processes"


def test_a_batch_of_one_chunk_is_no_trial(evaluator, clock):
    each = evaluator(executor="auto")
    assert places(each, 2) == "pp"
    assert PARENT not in processes_of(each.evaluate(numbers(MAX_CHUNK)))
    assert places(each, 2) == "pt"


@pytest.mark.parametrize(
    ("where", "reason"), [("body", r"score\(\) raised Assert"), ("top", "does not import")], ids=["score", "loading"]
)
def test_auto_goes_on_with_threads_if_processes_alone_fail(evaluator, capfd, where, reason):
    each = evaluator(executor="auto", **{where: f"assert os.getpid() == {PARENT}"})
    assert places(each, 2) == "tt"
    assert each.environment()["executor"] == "threads"
    (line,) = capfd.readouterr().err.splitlines()
    assert re.match(rf"evo: the processes that score programs fail, threads go on: .*task\.py:\d+: {reason}", line)


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
