"""A crash before each durable step of a run: resuming ends at the same state, whatever the crash leaves behind."""

import os
import re
import signal
from pathlib import Path

import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.run.run import LiveRun, Run

from .conftest import assert_same_state, run_folders, state_of

STEPS = ("fsync", "replace", "unlink", "truncate")  # of os: all steps by which a run changes the disk durably


def execute(run: Run) -> None:
    run.execute(lambda *_: None, lambda _: False)
    run.close()


def in_child(action, crash_before: int | None = None) -> tuple[int, list[str]]:
    """Runs `action` in a child process; gives its exit status and the durable steps that it reached, with their files.

    Args:
        crash_before: the child kills itself before this step, counted from 1.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(300)  # a child that hangs fails the test
        num_steps = 0

        def counted(name, step):
            def wrapped(*args, **kwargs):
                nonlocal num_steps
                num_steps += 1
                os.write(writer, f"{name} {args[-1]}\n".encode())
                if num_steps == crash_before:
                    os.kill(os.getpid(), signal.SIGKILL)
                return step(*args, **kwargs)

            return wrapped

        for name in STEPS:
            setattr(os, name, counted(name, getattr(os, name)))
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        steps = pipe.read().splitlines()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), steps


def step_that_saves(steps: list[str], generation: int) -> int:
    """The step, counted from 1, after which the checkpoint of a generation has its name."""
    (number,) = (i for i, step in enumerate(steps, 1) if re.fullmatch(rf"replace .*/0*{generation}\.ckpt", step))
    return number


@pytest.fixture
def config(small_config):
    changes = {
        "search": {"batch_size": 16, "initial": {"num_programs": 24}},
        "evaluation": {"threads": 1},  # a fork has no other threads
        "stop": {"generations": 3},
    }
    return lambda runs: load_config(small_config({**changes, "output": {"runs": str(runs)}}))


@pytest.fixture
def start(config):
    """Makes the function that carries out a run in a folder."""

    def make(runs: Path):
        loaded = config(runs)
        return lambda: execute(LiveRun.start(loaded, "small"))

    return make


@pytest.fixture
def uninterrupted(start, tmp_path):
    """The state of a run that no crash disturbed, and its durable steps."""
    in_child(start(tmp_path / "first"))  # numba caches what pyribs compiles: more steps, which the runs below do not have
    status, steps = in_child(start(tmp_path / "whole"))
    assert status == 0
    return state_of(*run_folders(tmp_path / "whole")), steps


def test_a_crash_before_any_step_of_a_run_loses_nothing(start, uninterrupted, tmp_path):
    state, steps = uninterrupted
    # Until its first checkpoint has its name there is no run to be resumed.
    first_saved = step_that_saves(steps, 0)
    assert len(steps) - first_saved > 15
    for crash_before in range(1, len(steps) + 1):
        runs = tmp_path / f"crash{crash_before}"
        status, reached = in_child(start(runs), crash_before)
        assert (status, len(reached)) == (-signal.SIGKILL, crash_before)
        (run_folder,) = run_folders(runs)
        if crash_before <= first_saved:
            with pytest.raises(UserError, match=r"not a run folder|has no checkpoint yet"):
                LiveRun.resume(run_folder)
            continue
        run, damaged = LiveRun.resume(run_folder)
        assert not damaged
        execute(run)
        assert_same_state(state_of(run_folder), state)


def test_a_crash_while_resuming_loses_nothing_either(start, uninterrupted, tmp_path):
    state, steps = uninterrupted
    # The first crash comes while generation 2 is saved: its checkpoint has its name, that of generation 0 is still there.
    first_crash = step_that_saves(steps, 2) + 1
    statuses = []
    while not statuses or statuses[-1] != 0:
        runs = tmp_path / f"crash{len(statuses)}"
        status, _ = in_child(start(runs), first_crash)
        assert status == -signal.SIGKILL
        (run_folder,) = run_folders(runs)
        status, _ = in_child(lambda: execute(LiveRun.resume(run_folder)[0]), len(statuses) + 1)  # noqa: B023 - used at once
        statuses.append(status)
        if status != 0:
            execute(LiveRun.resume(run_folder)[0])
        assert_same_state(state_of(run_folder), state)
    assert len(statuses) > 5
    assert set(statuses[:-1]) == {-signal.SIGKILL}


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
