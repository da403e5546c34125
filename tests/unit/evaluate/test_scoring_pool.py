"""evo.evaluate.scoring_pool: programs scored in worker processes, by workers that fail in every way."""

import errno
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from blas_threads import NAMES
from processes import is_gone, wait_until

from evo.errors import UserError
from evo.evaluate import TaskSource, scoring_pool
from evo.evaluate.chunks import MAX_CHUNK
from evo.evaluate.cpu import CpuEvaluator
from evo.native.ptx_vm import levels
from evo.tasks.answers import ask
from evo.tasks.folder import load_task

from .conftest import PARENT, SCORE_LINE, language_of, numbers, places, processes_of, source


def open_files() -> list[str]:
    return sorted(os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())


def test_programs_are_scored_in_other_processes_and_in_order(evaluator):
    each = evaluator()
    evaluation = each.evaluate(numbers(5 * MAX_CHUNK + 3))
    assert evaluation.objective.tolist() == [float(number) for number in range(5 * MAX_CHUNK + 3)]
    assert PARENT not in processes_of(evaluation)
    assert set(evaluation.stats.times_s) == {"evaluate_workers", "score_workers"}
    assert each.environment() == {"simd": levels()[0], "threads": 2, "executor": "processes"}


STATEFUL = """\
import numpy as np

import evo

STATE = []


class Stateful(evo.Task):
    inputs = {{"x": "f32"}}
    outputs = {{"y": "f32"}}
    measures = {{"m": (0.0, 1.0)}}

    def __init__(self):
        {made}

    def points(self):
        {asked}
        return {{"x": np.zeros(3, np.float32)}}

    def score(self, outputs, programs):
        return evo.Scores(outputs["y"][:, 0] + {read}, np.zeros((len(outputs["y"]), 1)))
"""


@pytest.mark.parametrize(
    ("made", "asked", "read"),
    [
        ("pass", "self.offset = 10.0", "self.offset"),
        ("self.tell = lambda: STATE[0]", "STATE.append(10.0)", "self.tell()"),
    ],
)
def test_a_score_may_use_what_points_has_set(make_task, made, asked, read):
    folder = make_task(STATEFUL.format(made=made, asked=asked, read=read))
    task = load_task(folder, {})
    ask(task, "points")  # what chose the backend has asked before
    each = CpuEvaluator(language_of(task), task, 2, executor="processes", source=TaskSource(folder, {}))
    try:
        assert each.evaluate(numbers(2)).objective.tolist() == [10.0, 11.0]
    finally:
        each.close()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('gone')", r"task\.py:{line}: score\(\) raised KeyError: 'gone'"),
        ("os._exit(3)", r"task\.py:{first}: the scoring process ended with exit code 3, twice with the same programs"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"task\.py:{first}: .* was killed by SIGSEGV, twice"),
    ],
)
def test_a_task_that_fails_is_named_with_its_line_and_the_next_batch_has_new_workers(evaluator, tmp_path, capfd, body, message):
    marker = tmp_path / "bad"
    marker.touch()
    each = evaluator(f"if self.marker.exists(): {body}", {"marker": str(marker)})
    with pytest.raises(UserError, match=message.format(line=SCORE_LINE + 1, first=SCORE_LINE)) as caught:
        each.evaluate(numbers(2 * MAX_CHUNK))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""
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
    evaluation = evaluator(body, {"marker": str(marker)}, 1).evaluate(numbers(4 * MAX_CHUNK))
    dead, child = map(int, marker.read_text().split())
    if child:
        wait_until(lambda: is_gone(child))
    assert evaluation.objective.tolist() == [float(number) for number in range(4 * MAX_CHUNK)]
    assert dead not in processes_of(evaluation)


@pytest.mark.parametrize(("executor", "number"), [("threads", 1), ("processes", 2)])
def test_a_score_that_hangs_ends_the_batch(evaluator, executor, number):
    each = evaluator("threading.Event().wait()", number=number, executor=executor, score_seconds=0.01)
    with pytest.raises(
        UserError, match=rf"task\.py:{SCORE_LINE}: .* not run and scored within evaluation\.score_seconds \(0\.01 s"
    ):
        each.evaluate(numbers(1))


def test_a_crash_on_threads_names_the_line_of_the_task(make_task):
    folder = make_task(source("__import__('ctypes').string_at(0)"))
    script = f"""
import numpy as np
from pathlib import Path
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.tasks.answers import ask
from evo.tasks.folder import load_task
task = load_task(Path({str(folder)!r}), {{}})
language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
CpuEvaluator(language, task, 1).evaluate(Batch.analyze(language.lowering, np.zeros((1, 4), np.uint64)))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in ended.stderr
    assert f'task.py", line {SCORE_LINE + 1} in score' in ended.stderr


IN_WORKERS = f"if os.getpid() != {PARENT}: "


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ("os._exit(7)", r"the scoring processes ended 3 times before they began, the last ended with exit code 7"),
        ("1 / 0", r"task\.py:\d+: does not import: ZeroDivisionError"),
    ],
)
def test_workers_that_do_not_start_or_load_the_task_end_the_batch(evaluator, top, message):
    with pytest.raises(UserError, match=message):
        evaluator(top=IN_WORKERS + top).evaluate(numbers(1))


def test_a_worker_that_waits_for_ever_while_it_loads_the_task_ends_the_batch_and_auto_goes_on(evaluator, monkeypatch):
    monkeypatch.setattr(scoring_pool, "LOAD_S", 0.01)
    top = IN_WORKERS + "threading.Event().wait()"
    with pytest.raises(UserError, match=rf"task\.py:{SCORE_LINE}: a scoring process has not begun within 0\.01 s; it may"):
        evaluator(top=top).evaluate(numbers(1))
    assert places(evaluator(top=top, executor="auto"), 1) == "t"


def kill_worker(each: CpuEvaluator) -> None:
    """Kills the only worker, as the system does when memory is short."""
    (process,) = processes_of(each.evaluate(numbers(1)))
    os.kill(process, signal.SIGKILL)


def test_a_worker_that_finds_another_task_than_the_run_began_with_ends_the_batch(evaluator, tmp_path):
    each = evaluator("outputs = {'y': outputs['y'] + 1}", number=1)
    kill_worker(each)
    (file,) = tmp_path.glob("task_*/task.py")
    file.write_text(file.read_text().replace("+ 1", "+ 2"))
    with pytest.raises(UserError, match=r"task_0: the task's files have changed since the run began"):
        each.evaluate(numbers(2))


def test_a_child_that_score_has_forked_and_that_comes_back_ends(evaluator):
    each = evaluator("os.fork()", number=1)
    for _ in range(3):
        evaluation = each.evaluate(numbers(3 * MAX_CHUNK))
        assert evaluation.objective.tolist() == [float(number) for number in range(3 * MAX_CHUNK)]
        (worker,) = processes_of(evaluation)
        for child in Path(f"/proc/{worker}/task/{worker}/children").read_text().split():
            wait_until(lambda child=child: is_gone(int(child)))


def test_deaths_of_workers_are_counted_in_lines_that_become_rare(evaluator, capfd):
    each = evaluator(number=1)
    for _ in range(5):
        kill_worker(each)
    assert each.evaluate(numbers(2)).objective.tolist() == [0.0, 1.0]
    lines = [line.split(" ", 8) for line in capfd.readouterr().err.splitlines()]
    assert [int(line[3]) for line in lines] == [1, 2, 4]
    assert all(line[-1].endswith("the last was killed by SIGKILL, another took its place") for line in lines)


def test_a_child_that_a_score_on_threads_has_forked_ends_and_is_no_second_evo(evaluator):
    body = "child = os.fork(); child and os.waitpid(child, 0)"
    each = evaluator(body, number=1, executor="threads", score_seconds=20.0)
    assert each.evaluate(numbers(2)).objective.tolist() == [0.0, 1.0]


def test_nothing_that_a_task_prints_in_a_worker_is_lost(evaluator, monkeypatch, capfd):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setattr(scoring_pool, "FLUSH_S", 300.0)
    each = evaluator("print('scored')", number=1, top="__import__('atexit').register(print, 'ended')")
    each.evaluate(numbers(1))
    assert capfd.readouterr().out == "scored\n"
    each.close()
    assert capfd.readouterr().out == "ended\n"


@pytest.mark.parametrize("end", ["", "; os.kill(os.getpid(), signal.SIGSEGV)"], ids=["well", "by_a_crash"])
def test_what_a_task_started_ends_with_its_worker(evaluator, tmp_path, end):
    marker = tmp_path / "child"
    body = f"self.marker.write_text(str(subprocess.Popen(['sleep', '10000']).pid)){end}"
    each = evaluator(body, {"marker": str(marker)}, 1)
    with suppress(UserError):
        each.evaluate(numbers(1))
    each.close()
    wait_until(lambda: is_gone(int(marker.read_text())))


def test_workers_outlive_the_thread_that_made_the_evaluator(evaluator):
    made, found = [], []

    def evaluate() -> None:
        made[:] = made or [evaluator(number=1)]
        found.append(processes_of(made[0].evaluate(numbers(1))))

    for _ in range(3):
        thread = threading.Thread(target=evaluate)
        thread.start()
        thread.join()
    assert found[0] == found[1] == found[2]


def test_closed_evaluators_and_failed_starts_leave_no_open_file(evaluator, monkeypatch):
    before = open_files()
    each = evaluator(number=1)
    each.evaluate(numbers(1))
    each.close()
    assert open_files() == before
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(UserError):
        evaluator()
    assert open_files() == before


def test_libraries_have_one_thread_and_programs_that_a_task_starts_the_users_environment(evaluator, monkeypatch, tmp_path):
    names = ("PYTHONPATH", "OMP_NUM_THREADS")
    for name in NAMES:
        monkeypatch.delenv(name)
    check = "import threadpoolctl; assert {lib['num_threads'] for lib in threadpoolctl.threadpool_info()} == {1}; "
    for values in ((None, "3"), ("/somewhere", "5")):
        for name, value in zip(names, values, strict=True):
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
        marker = tmp_path / "environment"
        write = f"self.marker.write_text(str([os.environ.get(name) for name in {names}]))"
        each = evaluator(check + write, {"marker": str(marker)}, 1)
        each.evaluate(numbers(1))
        assert marker.read_text() == str(list(values))


def refuse(*_, **__):
    raise OSError(errno.EAGAIN, "no more processes")


def test_a_system_without_room_for_a_process_ends_the_run_and_auto_goes_on(evaluator, monkeypatch, capfd):
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(UserError, match=r"^the scoring processes cannot be started: the system refuses: no more processes$"):
        evaluator()
    each = evaluator(executor="auto")
    assert places(each, 1) == "t"
    assert each.environment()["executor"] == "threads"
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_system_without_room_for_a_file_ends_the_batch_in_one_line(evaluator, monkeypatch):
    monkeypatch.setattr(os, "memfd_create", refuse)
    with pytest.raises(UserError, match=r"the scoring processes cannot be started: .* no more"):
        evaluator().evaluate(numbers(1))


def test_a_working_folder_that_is_gone_is_named(evaluator, monkeypatch, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    each = evaluator(number=1)
    kill_worker(each)
    folder.rmdir()
    with pytest.raises(UserError, match=r"the scoring processes cannot be started: .*/gone: No such file or directory$"):
        each.evaluate(numbers(1))
