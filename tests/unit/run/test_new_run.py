"""evo.run.new_run: a run has its name once it is complete, and what killed starts leave goes."""

import errno
import os
import subprocess
import sys

import pytest

from evo.errors import UserError
from evo.run.new_run import new_run_dir, run_paths, take_name
from evo.run.run_dir import RunDir


def start(runs, number=0) -> RunDir:
    """A run that has its name, in a folder whose name has a time that the test has fixed."""
    with new_run_dir(runs / "small") as run_dir:
        run_dir.save_config(f"seed: {number}\n")
        take_name(run_dir, run_paths(runs, "small", 3))
    return run_dir


def test_runs_begun_in_the_same_second_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("time.strftime", lambda *_: "20260102-030405")
    paths = [start(tmp_path, number).path for number in range(3)]
    assert paths == [tmp_path / "small" / f"20260102-030405-seed3{suffix}" for suffix in ("", "-2", "-3")]
    assert [(path / "config.yaml").read_text() for path in paths] == ["seed: 0\n", "seed: 1\n", "seed: 2\n"]
    assert not os.access(paths[0] / "lock", os.X_OK)


def test_a_run_that_another_start_has_just_made_is_not_written_over(tmp_path, monkeypatch):
    """It appears after this start has looked."""
    monkeypatch.setattr("time.strftime", lambda *_: "20260102-030405")
    first = start(tmp_path)
    monkeypatch.setattr("pathlib.Path.exists", lambda path: not path.name.startswith("2026") and os.path.exists(path))
    assert start(tmp_path, 1).path.name == "20260102-030405-seed3-2"
    assert (first.path / "config.yaml").read_text() == "seed: 0\n"


def test_a_new_folder_whose_run_cannot_start_vanishes_with_those_above_it(tmp_path):
    with pytest.raises(ZeroDivisionError), new_run_dir(tmp_path / "runs" / "small") as run_dir:
        (run_dir.path / f"{1 / 0}").mkdir()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ZeroDivisionError), new_run_dir(tmp_path / "runs" / "small") as run_dir:
        _ = take_name(run_dir, run_paths(tmp_path / "runs", "small", 3)), 1 / 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "runs" / "small").mkdir(parents=True)
    with pytest.raises(ZeroDivisionError), new_run_dir(tmp_path / "runs" / "small"):
        1 / 0  # noqa: B018
    assert list((tmp_path / "runs" / "small").iterdir()) == []


@pytest.mark.parametrize("function", ["open_lock", "try_lock"])
def test_a_disk_without_room_or_locks_leaves_nothing(tmp_path, monkeypatch, function):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left") if function == "open_lock" else UserError("cannot lock it")

    monkeypatch.setattr(f"evo.run.new_run.{function}", fail)
    with pytest.raises(UserError, match=r"cannot create the run folder: No space left$|cannot lock it$"):
        start(tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_start_left_goes_with_the_next_and_a_living_one_stays(tmp_path):
    code = f"""
import os
from pathlib import Path
from evo.run.new_run import new_run_dir
with new_run_dir(Path({str(tmp_path / "small")!r})) as run_dir:
    (run_dir.path / "task").mkdir()
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    [left] = (tmp_path / "small").iterdir()
    unlocked = tmp_path / "small" / ".run.0123.partial"  # killed before it had a lock
    unlocked.mkdir()
    assert (left / "task").is_dir() and left.name.startswith(".")
    with new_run_dir(tmp_path / "small") as living:
        assert not left.exists() and not unlocked.exists()
        run = start(tmp_path).path
        assert set((tmp_path / "small").iterdir()) == {living.path, run}


def test_without_locks_nothing_is_taken_for_abandoned(tmp_path, monkeypatch):
    monkeypatch.setenv("EVO_NO_LOCK", "1")
    with new_run_dir(tmp_path / "small") as living:
        start(tmp_path)
        assert living.path.exists()
