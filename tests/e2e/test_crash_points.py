"""A crash before every single durable step of a run: whatever it leaves behind, resuming ends at the same state."""

import os
import signal
from pathlib import Path

import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.run.run import Run

from .conftest import assert_same_state, run_folders, state_of

STEPS = ("fsync", "replace", "unlink", "truncate")  # of os: all by which a run changes what is on the disk for good


def execute(run: Run) -> None:
    run.execute(lambda *_: None, lambda: False)
    run.close()


def in_child(action, crash_before: int) -> tuple[int, int]:
    """Runs `action` in a child process that kills itself before its n-th durable step; exit status and steps reached."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a child that hangs fails the test
        steps = 0

        def counted(step):
            def wrapped(*args, **kwargs):
                nonlocal steps
                steps += 1
                os.write(writer, b".")
                if steps == crash_before:
                    os.kill(os.getpid(), signal.SIGKILL)
                return step(*args, **kwargs)

            return wrapped

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        num_steps = len(pipe.read())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), num_steps


@pytest.fixture
def config(small_config):
    changes = {
        "search": {"batch_size": 16, "initial": {"num_programs": 24}},
        "evaluation": {"threads": 1},  # a forked child has one thread
        "stop": {"generations": 3},
    }
    return lambda runs: load_config(small_config({**changes, "output": {"runs": str(runs)}}))


def test_a_crash_before_any_step_of_a_run_loses_nothing(config, tmp_path):
    execute(Run.start(config(tmp_path / "whole"), "small"))
    uninterrupted = state_of(*run_folders(tmp_path / "whole"))
    resumed, crash_before = 0, 0
    while True:
        crash_before += 1
        runs = tmp_path / f"crash{crash_before}"
        crashed = config(runs)
        status, num_steps = in_child(lambda: execute(Run.start(crashed, "small")), crash_before)  # noqa: B023
        assert status in (0, -signal.SIGKILL)
        if status == 0:
            break
        assert num_steps == crash_before
        run_folder, *others = run_folders(runs)
        assert not others
        try:
            run, damaged = Run.resume(run_folder)
        except UserError as error:
            # Before its first checkpoint there is no run yet.
            assert "no run folder" in str(error) or "has no checkpoint yet" in str(error)
            assert not resumed
            continue
        assert not damaged
        execute(run)
        assert_same_state(state_of(run_folder), uninterrupted)
        resumed += 1
    assert resumed > 15


def test_a_crash_while_resuming_loses_nothing_either(config, tmp_path):
    execute(Run.start(config(tmp_path / "whole"), "small"))
    uninterrupted = state_of(*run_folders(tmp_path / "whole"))
    for crash_before in range(1, 40):
        runs = tmp_path / f"crash{crash_before}"
        crashed = config(runs)
        # The first crash comes while generation 2 is saved: its checkpoint has its name, that of generation 0 is still there.
        status, _ = in_child(lambda: execute(Run.start(crashed, "small")), 17)  # noqa: B023
        assert status == -signal.SIGKILL
        (run_folder,) = run_folders(runs)
        status, _ = in_child(lambda: execute(Run.resume(run_folder)[0]), crash_before)  # noqa: B023
        if status == 0:
            break
        execute(Run.resume(run_folder)[0])
        assert_same_state(state_of(run_folder), uninterrupted)
    assert status == 0 and crash_before > 5


def test_a_checkpoint_torn_anywhere_is_gone_back_from(config, tmp_path):
    """As after a loss of power on a file system that wrote the name before the content."""
    execute(Run.start(config(tmp_path / "whole"), "small"))
    (run_folder,) = run_folders(tmp_path / "whole")
    uninterrupted = state_of(run_folder)
    newest = max(Path(run_folder, "checkpoints").glob("*.ckpt"))
    content = newest.read_bytes()
    for length in range(0, len(content), len(content) // 7):
        newest.write_bytes(content[:length])
        run, damaged = Run.resume(run_folder)
        assert len(damaged) == 1 and str(newest) in damaged[0]
        execute(run)
        assert_same_state(state_of(run_folder), uninterrupted)
        assert newest.stat().st_size > 0
