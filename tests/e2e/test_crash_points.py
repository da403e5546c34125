"""A crash before each durable step of a run: resuming ends at the same state, whatever the crash leaves behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import pytest

from evo.config import load_config
from evo.report.run_list import list_runs
from evo.run.run import LiveRun, Run

from .conftest import assert_same_state, run_folders, state_of

STEPS = ("fsync", "rename", "replace", "unlink", "truncate")  # of os: all steps by which a run changes the disk durably


def execute(run: Run) -> None:
    run.execute()
    run.close()


def crashes(monkeypatch, action: Callable[[], None], folder: Path, copies: Path) -> list[str]:
    """Runs `action`, and copies `folder` before each durable step to `copies`/0, 1, ...: what a crash would leave there.

    Returns:
        The steps, with their files.
    """
    steps: list[str] = []
    lock = Lock()  # a checkpoint is written by a thread

    def copying(name: str, step: Callable) -> Callable:
        def wrapped(*args, **kwargs):
            with lock:
                shutil.copytree(folder, copies / str(len(steps)))
                steps.append(f"{name} {args[-1]}")
                return step(*args, **kwargs)

        return wrapped

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, copying(name, getattr(os, name)))
        action()
    return steps


def step_that_saves(steps: list[str], generation: int) -> int:
    """The step that gives the checkpoint of a generation its name."""
    (number,) = (i for i, step in enumerate(steps) if re.fullmatch(rf"replace .*/0*{generation}\.ckpt", step))
    return number


@pytest.fixture
def config(small_config):
    changes = {"search": {"batch_size": 16, "initial": {"num_programs": 24}}, "stop": {"generations": 3}}
    return lambda runs: load_config(small_config({**changes, "output": {"runs": str(runs)}}))


def test_a_crash_before_any_step_of_a_run_or_of_its_resumption_loses_nothing(config, monkeypatch, tmp_path):
    execute(LiveRun.start(config(tmp_path / "whole"), "small"))  # and numba caches what pyribs compiles: further steps
    state = state_of(*run_folders(tmp_path / "whole"))
    (tmp_path / "runs").mkdir()
    loaded = config(tmp_path / "runs")
    steps = crashes(monkeypatch, lambda: execute(LiveRun.start(loaded, "small")), tmp_path / "runs", tmp_path / "left")
    assert_same_state(state_of(*run_folders(tmp_path / "runs")), state)
    [named], third_saved = [i for i, step in enumerate(steps) if step.startswith("rename")], step_that_saves(steps, 2)
    assert named > 4 and step_that_saves(steps, 0) > named + 3 and len(steps) - named > 20
    for number in range(len(steps)):
        left = tmp_path / "left" / str(number)
        listed = list_runs(left)
        if number <= named:
            assert listed == run_folders(left) == []
            continue
        (run_folder,) = run_folders(left)
        assert [each.state for each in listed] in (["interrupted"], ["finished"])
        run, damaged = LiveRun.resume(run_folder)
        assert not damaged
        if number == third_saved + 1:  # its checkpoint has its name, that of generation 0 is still there
            again = tmp_path / "left again"
            assert len(crashes(monkeypatch, lambda: execute(run), left, again)) > 5  # noqa: B023 - used at once
            for copy in again.iterdir():
                execute(LiveRun.resume(*run_folders(copy))[0])
                assert_same_state(state_of(*run_folders(copy)), state)
        else:
            execute(run)
        assert_same_state(state_of(run_folder), state)


@pytest.mark.parametrize(("step", "states"), [("os.rename", []), ("run.Search.try_task", ["interrupted"])])
def test_a_start_that_is_killed_leaves_no_run_or_one_that_begins(config, tmp_path, step, states):
    """Killed before it gives the run its name, and before it tries the task."""
    runs = tmp_path / "runs"
    code = f"""
import os, signal
from pathlib import Path
from evo.config import load_config
from evo.run import run
{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
run.LiveRun.start(load_config(Path("small.yaml")), "small")
"""
    config(runs)
    ended = subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path)
    assert ended.returncode == -signal.SIGKILL
    [left] = (runs / "small").iterdir()
    assert [each.state for each in list_runs(runs)] == states
    execute(LiveRun.start(config(runs), "small"))
    assert left.exists() == bool(states)
    if states:
        execute(LiveRun.resume(left)[0])
        assert_same_state(state_of(left), state_of(run_folders(runs)[-1]))


def test_a_run_goes_back_from_a_checkpoint_torn_anywhere(config, tmp_path):
    """As after a power loss on a file system that wrote the name before the content."""
    execute(LiveRun.start(config(tmp_path / "whole"), "small"))
    (run_folder,) = run_folders(tmp_path / "whole")
    uninterrupted = state_of(run_folder)
    newest = max(Path(run_folder, "checkpoints").glob("*.ckpt"))
    content = newest.read_bytes()
    for length in range(0, len(content), len(content) // 7):
        newest.write_bytes(content[:length])
        run, damaged = LiveRun.resume(run_folder)
        assert len(damaged) == 1 and str(newest) in damaged[0]
        execute(run)
        assert_same_state(state_of(run_folder), uninterrupted)
        assert newest.stat().st_size > 0
