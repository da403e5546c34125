"""evo.evaluate.processes: programs scored in worker processes, by workers that fail in every way."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evo.errors import UserError
from evo.evaluate import TaskSource, cpu
from evo.evaluate.chunks import MAX_CHUNK, MIN_CHUNK, chunk_size
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.processes import Processes
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import levels
from evo.task import load_task

# Scores with the number of the process, so that a test sees where it was; `body` decides what else happens.
SOURCE = """\
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

import evo




class Where(evo.Task):
    inputs = {{"x": "f32"}}
    outputs = {{"y": "f32"}}
    measures = {{"process": (0.0, 1e9), "threads": (0.0, 9.0)}}

    def __init__(self, marker: str = ""):
        self.marker = Path(marker)

    def points(self):
        return {{"x": np.linspace(0, 1, 5, dtype=np.float32)}}

    def score(self, outputs, programs):
        {body}
        y = outputs["y"][:, 0]
        blas = int(os.environ.get("OPENBLAS_NUM_THREADS", 0))
        return evo.Scores(y, np.stack([np.full(len(y), os.getpid()), np.full(len(y), blas)], axis=1))
"""
SCORE_LINE = 1 + SOURCE.splitlines().index("    def score(self, outputs, programs):")
PARENT = os.getpid()


@pytest.fixture
def evaluator(make_task):
    """Makes evaluators of a task with this body, and closes them after the test."""
    made = []

    def make(body: str = "", options: dict | None = None, number: int = 2, executor: str = "processes", **rest) -> CpuEvaluator:
        folder = make_task(SOURCE.format(body=body), f"task_{len(made)}")
        source = TaskSource(folder, options or {})
        task = load_task(folder, options or {})
        made.append(CpuEvaluator(language_of(task), task, number, levels()[0], executor=executor, source=source, **rest))
        return made[-1]

    yield make
    for each in made:
        each.close()


def language_of(task) -> Language:
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def numbers(count: int, max_length: int = 4) -> Batch:
    """Programs that compute 0.0, 1.0, 2.0, ..."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))
    words = np.zeros((count, max_length), np.uint64)
    for number in range(count):
        words[number] = parse_program(language, f"{number}.0", "text", max_length)
    return Batch.analyze(language.lowering, words)


def processes_of(evaluation) -> set[int]:
    return set(evaluation.measures[:, 0].astype(int))


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def test_programs_are_scored_in_other_processes_and_in_order(evaluator):
    each = evaluator()
    evaluation = each.evaluate(numbers(5 * MAX_CHUNK + 3))
    assert evaluation.objective.tolist() == [float(number) for number in range(5 * MAX_CHUNK + 3)]
    assert PARENT not in processes_of(evaluation)
    assert set(evaluation.times_s) == {"evaluate_workers", "score_workers"}
    assert each.environment() == {"simd": levels()[0], "threads": 2, "executor": "processes"}


def test_longer_programs_than_before_find_room(evaluator):
    each = evaluator(number=1)
    processes = set()
    for max_length in (4, 4000, 7):
        evaluation = each.evaluate(numbers(MAX_CHUNK + 1, max_length))
        assert evaluation.objective.tolist() == [float(number) for number in range(MAX_CHUNK + 1)]
        processes |= processes_of(evaluation)
    assert len(processes) == 1


def test_workers_live_as_long_as_the_evaluator(evaluator):
    each = evaluator(number=1)
    (first,) = processes_of(each.evaluate(numbers(3)))
    assert processes_of(each.evaluate(numbers(3))) == {first}
    each.close()
    assert not is_alive(first)


def test_a_library_starts_no_threads_in_a_worker(evaluator):
    assert evaluator(number=1).evaluate(numbers(1)).measures[0, 1] == 1.0


def test_the_task_gets_its_options(evaluator, tmp_path):
    body = "outputs = {'y': outputs['y'] + len(self.marker.name)}"
    evaluation = evaluator(body, {"marker": "four"}).evaluate(numbers(2))
    assert evaluation.objective.tolist() == [4.0, 5.0]


def test_a_task_that_changes_directory_does_not_move_the_workers(evaluator, monkeypatch, tmp_path):
    each = evaluator("outputs = {'y': outputs['y'] + len(os.getcwd())}")
    folder = os.getcwd()
    monkeypatch.chdir("/")
    assert each.evaluate(numbers(1)).objective.tolist() == [float(len(folder))]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('gone')", r"task\.py:{line}: score\(\) raised KeyError: 'gone'"),
        ("return 3", r"task\.py:{first}: score\(\) must return evo\.Scores, got int"),
        ("sys.exit(3)", r"task\.py:{line}: score\(\) raised SystemExit: 3"),
        ("os._exit(3)", r"task\.py:{first}: the process that ran and scored programs ended with exit code 3, twice"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"task\.py:{first}: .* was killed by SIGSEGV, twice"),
    ],
)
def test_a_task_that_fails_is_named_with_its_line_and_the_next_batch_has_new_workers(evaluator, tmp_path, body, message):
    marker = tmp_path / "bad"
    marker.touch()
    each = evaluator(f"if self.marker.exists(): {body}", {"marker": str(marker)})
    with pytest.raises(UserError, match=message.format(line=SCORE_LINE + 1, first=SCORE_LINE)) as caught:
        each.evaluate(numbers(2 * MAX_CHUNK))
    assert "\n" not in str(caught.value)
    marker.unlink()
    assert each.evaluate(numbers(3)).objective.tolist() == [0.0, 1.0, 2.0]


DIES_ONCE = """if not self.marker.exists():
            child = os.fork() if self.has_child else 0
            if self.has_child and not child:
                signal.pause()  # with the worker's connection open
            self.marker.write_text(f"{os.getpid()} {child}")
            os.kill(os.getpid(), signal.SIGKILL)"""


@pytest.mark.parametrize("has_child", [False, True])
def test_a_worker_that_dies_once_is_replaced_and_its_chunk_done_again(evaluator, tmp_path, has_child):
    marker = tmp_path / "dead"
    body = DIES_ONCE.replace("self.has_child", str(has_child))
    try:
        evaluation = evaluator(body, {"marker": str(marker)}, 1).evaluate(numbers(4 * MAX_CHUNK))
    finally:
        dead, child = map(int, marker.read_text().split())
        if child:
            os.kill(child, signal.SIGKILL)
    assert evaluation.objective.tolist() == [float(number) for number in range(4 * MAX_CHUNK)]
    assert dead not in processes_of(evaluation)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_score_that_hangs_ends_the_batch(evaluator, executor):
    each = evaluator("threading.Event().wait()", executor=executor, score_seconds=0.01)
    with pytest.raises(
        UserError, match=rf"task\.py:{SCORE_LINE}: score\(\) did not return within evaluation\.score_seconds \(0\.01 s\)"
    ):
        each.evaluate(numbers(1))


def test_workers_that_do_not_start_end_the_batch(evaluator, make_task):
    each = evaluator()
    make_task(f"import os\nif os.getpid() != {PARENT}: os._exit(7)\n", "task_0")
    with pytest.raises(UserError, match=r"the processes that score programs do not start: ended with exit code 7"):
        each.evaluate(numbers(1))


def test_an_error_while_a_worker_loads_the_task_is_the_tasks(evaluator, make_task):
    each = evaluator()
    make_task("1 / 0\n", "task_0")
    with pytest.raises(UserError, match=r"task\.py:1: does not import: ZeroDivisionError"):
        each.evaluate(numbers(1))


def test_a_system_without_room_for_a_process_ends_the_batch_and_auto_goes_on(evaluator, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(cpu, "START_S", 0.0)
    with pytest.raises(UserError, match=r"^cannot start a process that scores programs: no more processes$"):
        evaluator().evaluate(numbers(1))
    each = evaluator(executor="auto")
    assert processes_of(each.evaluate(numbers(2 * MAX_CHUNK))) == {PARENT}
    assert each.environment()["executor"] == "threads"


def test_auto_starts_no_process_for_a_short_run(evaluator, monkeypatch):
    monkeypatch.setattr(Processes, "start", lambda _: pytest.fail("started"))
    each = evaluator(executor="auto")
    for _ in range(5):
        assert processes_of(each.evaluate(numbers(2 * MAX_CHUNK))) == {PARENT}
    assert each.environment()["executor"] == "auto"


@pytest.mark.parametrize("are_threads_faster", [False, True])
def test_auto_tries_both_ways_in_a_long_run_and_keeps_the_faster(evaluator, monkeypatch, are_threads_faster):
    monkeypatch.setattr(cpu, "START_S", 0.0)
    monkeypatch.setattr(cpu._Choice, "are_threads_faster", are_threads_faster)
    each = evaluator(executor="auto")
    on_threads = []
    while each.environment()["executor"] == "auto":
        evaluation = each.evaluate(numbers(2 * MAX_CHUNK))
        assert evaluation.objective.tolist() == [float(number) for number in range(2 * MAX_CHUNK)]
        on_threads.append(processes_of(evaluation) == {PARENT})
    assert on_threads.count(False) == cpu.NUM_TRIALS + 1
    assert each.environment()["executor"] == ("threads" if are_threads_faster else "processes")
    assert (processes_of(each.evaluate(numbers(2 * MAX_CHUNK))) == {PARENT}) is are_threads_faster


def test_auto_stays_with_threads_if_processes_cannot_start(evaluator, make_task, monkeypatch, capfd):
    monkeypatch.setattr(cpu, "START_S", 0.0)
    each = evaluator(executor="auto")
    make_task("1 / 0\n", "task_0")
    while each.environment()["executor"] == "auto":
        assert processes_of(each.evaluate(numbers(2 * MAX_CHUNK))) == {PARENT}
    assert each.environment()["executor"] == "threads"
    (line,) = capfd.readouterr().err.splitlines()
    assert re.match(r"evo: the processes that score programs cannot start, threads go on: .*task\.py:1: does not import", line)


@pytest.mark.parametrize(("number", "source"), [(1, True), (2, False)])
def test_auto_means_threads_with_one_core_or_a_task_from_nowhere(evaluator, make_task, number, source):
    if source:
        each = evaluator(number=number, executor="auto")
    else:
        task = load_task(make_task(SOURCE.format(body="")), {})
        each = CpuEvaluator(language_of(task), task, number)
    assert each.environment()["executor"] == "threads"
    each.close()


@pytest.mark.parametrize(("process_s", "are_threads_faster"), [(0.9, False), (1.1, True)])
def test_the_way_with_more_programs_a_second_is_kept(process_s, are_threads_faster):
    """The first batch each way is warm-up: it is slow, and does not count. Batches of processes are twice as large."""
    choice = cpu._Choice()
    choice.note(False, cpu.START_S, 100, 4)
    assert choice.is_worth_starting
    while not choice.is_made:
        on_processes = choice.wants_processes(4)
        is_first = not choice._num_noted[on_processes]
        seconds = 50.0 if is_first else 2 * process_s if on_processes else 1.0
        choice.note(on_processes, seconds, 200 if on_processes else 100, 4)
    assert choice.are_threads_faster is are_threads_faster


def test_a_batch_of_one_chunk_tells_nothing_about_processes():
    choice = cpu._Choice()
    choice.note(False, cpu.START_S, 100, 4)
    assert choice.wants_processes(2) and not choice.wants_processes(1)


@pytest.mark.parametrize(
    ("num_points", "num_outputs", "expected"), [(20, 1, MAX_CHUNK), (4096, 2, 32), (10_000, 1, 26), (10**7, 1, MIN_CHUNK)]
)
def test_a_chunks_outputs_take_a_mebibyte_within_bounds(num_points, num_outputs, expected):
    assert chunk_size(num_points, num_outputs) == expected


def test_the_script_that_made_the_evaluator_is_not_imported_by_workers(evaluator, monkeypatch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    evaluator().evaluate(numbers(1))
    assert not (tmp_path / "imported").exists()
