"""The pool: results, exceptions, time limits that end the work, and workers that are replaced."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from compile_cases import append_and_sleep, break_down
from processes import children_of, is_gone, wait_until

from evo.compile.pool import CompilePool
from evo.errors import UserError
from evo.workers import process
from evo.workers.processes import WorkerDied


@pytest.fixture(scope="module")
def pool():
    with CompilePool(2, time_limit_s=60.0) as pool:
        yield pool


def test_the_functions_results_and_exceptions_are_passed_on(pool):
    assert [pool.submit(divmod, i, 3).result() for i in range(5)] == [divmod(i, 3) for i in range(5)]
    with pytest.raises(ZeroDivisionError, match="a defect of ours"):
        pool.submit(break_down, None).result()


def test_ctrl_c_reaches_no_worker(pool):
    assert pool.submit(os.getpgrp).result() != os.getpgrp()


def test_sigterm_ends_a_worker_inside_the_compiler(pool):
    assert pool.submit(signal.getsignal, signal.SIGTERM).result() == signal.SIG_DFL


def test_the_time_limit_ends_the_work_and_its_process(tmp_path):
    marks = tmp_path / "marks"
    with CompilePool(1, time_limit_s=1.0) as pool:
        pool.submit(os.getpid).result()
        with pytest.raises(TimeoutError):
            pool.submit(append_and_sleep, str(marks), 600.0).result()
        (pid,) = map(int, marks.read_text().split())
        assert pool.submit(os.getpid).result() != pid
        assert is_gone(pid)


def test_the_time_limit_counts_from_the_start_of_a_call_not_from_its_submission():
    with CompilePool(1, time_limit_s=3.0) as pool:
        futures = [pool.submit(append_and_sleep, os.devnull, 0.8) for _ in range(5)]
        assert len({future.result() for future in futures}) == 1


@pytest.mark.parametrize(
    ("function", "argument", "how"), [(signal.raise_signal, signal.SIGKILL, "killed by SIGKILL"), (os._exit, 3, "exit code 3")]
)
def test_a_worker_that_dies_is_reported_and_replaced(function, argument, how):
    with CompilePool(2) as pool:  # its own: other tests count the children that they find
        futures = [pool.submit(abs, -i) for i in range(3)]
        dead = pool.submit(function, argument)
        futures += [pool.submit(abs, -i) for i in range(3)]
        with pytest.raises(WorkerDied, match=how):
            dead.result()
        assert [future.result() for future in futures] == [0, 1, 2, 0, 1, 2]


def kill_idle_workers(others: set[int], count: int) -> None:
    """Kills workers that are not among these processes, and waits until they are gone."""
    wait_until(lambda: len(children_of(os.getpid()) - others) >= count)
    pids = sorted(children_of(os.getpid()) - others)[:count]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        wait_until(lambda pid=pid: is_gone(pid))


def test_processes_that_never_start_are_one_line(monkeypatch):
    monkeypatch.setattr(process, "COMMAND", ("/bin/false",))
    with pytest.raises(UserError, match="compile processes ended 3 times"), CompilePool(1) as pool:
        pool.submit(abs, -1).result()
    monkeypatch.setattr(process, "COMMAND", ("/no/such/program",))
    with pytest.raises(UserError, match=r"compile processes cannot be started: .*No such file"):
        CompilePool(2)


def test_a_machine_without_room_for_processes_or_threads_is_told_in_one_line_and_nobody_waits(monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def limited(_):
        raise RuntimeError("can't start new thread")

    message = "^the compile processes cannot be started: the system "
    others = children_of(os.getpid())
    with CompilePool(1) as pool:
        pool.submit(os.getpid).result()
        for where, name, refuse, told in (
            (subprocess, "Popen", full, "refuses: No space left on device$"),
            (threading.Thread, "start", limited, "starts no more threads"),
        ):
            with monkeypatch.context() as machine:
                machine.setattr(where, name, refuse)
                with pytest.raises(UserError, match=f"{message}{told}"):
                    CompilePool(2)
        kill_idle_workers(others, 1)
        monkeypatch.setattr(subprocess, "Popen", full)
        with pytest.raises(UserError, match=f"{message}refuses"):
            pool.submit(abs, -1).result()
    assert not children_of(os.getpid()) - others


def test_cancelling_ends_running_work(tmp_path):
    marks = tmp_path / "marks"
    with CompilePool(2) as pool:
        future = pool.submit(append_and_sleep, str(marks), 50.0)
        wait_until(lambda: marks.exists() and marks.read_text().endswith("\n"))
        assert future.cancel()
        wait_until(lambda: is_gone(int(marks.read_text())))


def test_an_exception_that_leaves_the_pool_ends_all_work_at_once(tmp_path):
    marks = tmp_path / "marks"
    futures = []

    def interrupt_work():
        with CompilePool(1, time_limit_s=600.0) as pool:
            futures.extend(pool.submit(append_and_sleep, str(marks), 500.0) for _ in range(3))
            wait_until(lambda: marks.exists() and marks.read_text().endswith("\n"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt_work()
    assert len(futures) == 3
    assert all(future.cancelled() for future in futures)
    assert is_gone(int(marks.read_text()))


def test_no_worker_outlives_a_killed_parent(tmp_path):
    marks = tmp_path / "marks"
    script = tmp_path / "parent.py"
    script.write_text(
        f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from compile_cases import append_and_sleep, break_down
from evo.compile.pool import CompilePool
if __name__ == "__main__":
    pool = CompilePool(2, time_limit_s=600.0)
    futures = [pool.submit(append_and_sleep, {str(marks)!r}, 500.0) for _ in range(2)]
    futures[0].result()
"""
    )
    parent = subprocess.Popen([sys.executable, script], stderr=subprocess.DEVNULL)
    wait_until(lambda: marks.exists() and marks.read_text().count("\n") == 2)
    parent.kill()
    parent.wait()
    for pid in map(int, marks.read_text().split()):
        wait_until(lambda pid=pid: is_gone(pid))
