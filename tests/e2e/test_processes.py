"""Runs whose programs are scored in worker processes: the same archive, and a clear end whatever the task does there."""

import signal
from pathlib import Path

import pytest
from processes import children_of, is_gone, wait_until

from .conftest import assert_same_state, run_folders, state_of

# The tests' plane task. While the file `bad` exists, any score but that of the first few programs does `body`.
TASK = """\
import ctypes
import os
import threading
from pathlib import Path

import numpy as np

import evo

SIDE = 8


class Bad(evo.Task):
    inputs = {{"x": "f32", "y": "f32"}}
    outputs = {{"v": "f32"}}
    measures = {{"mean": (-1.0, 1.0), "deviation": (0.0, 2.0)}}

    def __init__(self, bad: str):
        self.bad = Path(bad)
        y, x = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
        self.x, self.y = x.ravel(), y.ravel()

    def points(self):
        return {{"x": self.x, "y": self.y}}

    def score(self, outputs, programs):
        if len(programs.num_instructions) > 4 and self.bad.exists():
            {body}
        v = outputs["v"].astype(np.float64)
        objective = 1.0 / (1.0 + ((v - self.x * self.y) ** 2).mean(axis=1))
        return evo.Scores(objective, np.stack([v.mean(axis=1), v.std(axis=1)], axis=1))
"""


@pytest.fixture
def config(small_config, make_task, tmp_path):
    """Writes a config of the task with this body; `bad` is its file."""

    def make(body: str, changes: dict | None = None) -> Path:
        evaluation = {"threads": 2, "executor": "auto", **(changes or {}).pop("evaluation", {})}
        search = {"batch_size": 300, "initial": {"num_programs": 600}}  # several chunks
        task = {"task": str(make_task(TASK.format(body=body))), "task_options": {"bad": str(tmp_path / "bad")}}
        rest = {"search": search, "stop": {"generations": 3}, "output": {"plots": []}, "evaluation": evaluation}
        return small_config({**task, **rest, **(changes or {})})

    return make


@pytest.fixture
def run_on_threads(fork_evo):
    """Runs an `evo` command to its end, and without workers."""

    def run(*args) -> None:
        completed = fork_evo(*args, "--set", "evaluation.executor=threads")
        assert completed.returncode == 0, completed.stderr

    return run


def only_run(folder: Path) -> Path:
    (run,) = run_folders(folder)
    return run


def test_by_default_a_task_that_ends_its_process_ends_the_run_in_one_line_and_the_run_resumes(
    start_fork, run_on_threads, config, tmp_path
):
    path = config("ctypes.string_at(0)")
    (tmp_path / "bad").touch()
    process = start_fork("run", path)
    assert process.wait() == 2, process.stderr
    (line,) = process.stderr.splitlines()
    assert line.startswith(f"evo: {tmp_path}/a_task/task.py:") and "was killed by SIGSEGV, twice with the same programs" in line

    (tmp_path / "bad").unlink()
    resumed = only_run(tmp_path / "runs")
    run_on_threads("resume", resumed)
    run_on_threads("run", path, "--set", f"output.runs={tmp_path}/whole")
    assert_same_state(state_of(resumed), state_of(only_run(tmp_path / "whole")))


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_task_that_exits_with_0_does_not_look_like_the_end_of_a_run(fork_evo, config, tmp_path, executor):
    path = config("os._exit(0)")
    (tmp_path / "bad").touch()
    ended = fork_evo("run", path, "--set", f"evaluation.executor={executor}")
    *_, line = ended.stderr.splitlines()
    if executor == "threads":
        assert ended.returncode == 1 and "task's code ended this process with os._exit(0); a run goes on from its last" in line
    else:
        assert ended.returncode == 2 and "ended with exit code 0, twice with the same programs" in line
    assert not (only_run(tmp_path / "runs") / "archive.npz").exists()


def test_a_crash_on_threads_names_the_run_that_goes_on_from_its_last_checkpoint(start_evo, run_on_threads, config, tmp_path):
    path = config("ctypes.string_at(0)", {"output": {"plots": [], "checkpoint_seconds": 0}})
    (tmp_path / "bad").touch()
    process = start_evo("run", path, "--set", "evaluation.executor=threads")
    assert process.wait() == -signal.SIGSEGV
    run = only_run(tmp_path / "runs")
    *_, place, line = [line for line in process.stderr.splitlines() if "task.py" in line or line.startswith("evo:")]
    assert "in score" in place
    assert line == f"evo: the process crashed; the last checkpoint stands, go on with: evo resume {run}"
    (tmp_path / "bad").unlink()
    run_on_threads("resume", run)
    assert (run / "archive.npz").exists()


def test_no_worker_outlives_a_parent_that_is_killed(start_fork, config, tmp_path):
    """Even one that waits for nothing and answers no signal but the kernel's."""
    (tmp_path / "bad").touch()
    process = start_fork("run", config('Path(f"{self.bad}-{os.getpid()}").touch(); threading.Event().wait()'))
    process.wait_until(lambda: len(list(tmp_path.glob("bad-*"))) == 2)
    workers = [int(path.name.removeprefix("bad-")) for path in tmp_path.glob("bad-*")]
    assert set(workers) == children_of(process.number)
    process.signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    wait_until(lambda: all(map(is_gone, workers)))
