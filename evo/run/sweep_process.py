"""A process that executes one run of a sweep: `python -m evo.run.sweep_process PARENT`.

Owns both sides of their talk: the job goes in as JSON on standard input, the outcome comes out as JSON on standard output.
SIGTERM asks the run to finish its generation and save. The process gets one when its parent ends, however that happens. Knows
nothing of the other runs.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from evo.config import RunConfig
from evo.errors import DeviceFailure, UserError, how_it_ended
from evo.evaluate.scoring_pool import ONE_THREAD
from evo.run.run import LiveRun
from evo.run.sweep import SweepRun, find_run, resume_overrides
from evo.storage.files import try_lock

LOCK_S = 60.0  # for an earlier process of the same run to save and end
POLL_S = 0.1

_PR_SET_PDEATHSIG = 1


class Ending(StrEnum):
    """How the work at a run ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"  # it is saved and can go on
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of a run. text: the stop that was reached, or what failed. notes: lines that its user should read."""

    ending: Ending
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """What a process needs to execute a run. config: plain JSON values. folder: in which relative paths of its task begin."""

    variant: str
    config: dict[str, Any]
    log: str
    folder: str

    @classmethod
    def of(cls, run: SweepRun) -> Job:
        """The job of a run."""
        return cls(run.variant, run.config.model_dump(mode="json"), str(run.log), os.getcwd())


class RunProcess:
    """A process at work on a job. It is no part of the terminal's group: Ctrl-C reaches this process alone."""

    def __init__(self, job: Job):
        """Starts it.

        Raises:
            UserError: the system refuses, or the log cannot be written.
        """
        self._log = Path(job.log)
        self._is_stopped = False
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `poll`; a pipe that is full would block the run
        command = [sys.executable, "-P", "-m", "evo.run.sweep_process", str(os.getpid())]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as log:
                self._popen = subprocess.Popen(
                    command,
                    cwd=job.folder if os.path.isdir(job.folder) else None,  # a Dask worker need not have it
                    stdin=subprocess.PIPE,
                    stdout=self._told,
                    stderr=log,
                    env=environment,
                    process_group=0,
                )
        except OSError as error:
            raise UserError(f"{self._log}: cannot start the run: {error.strerror}") from error
        assert self._popen.stdin
        try:
            with self._popen.stdin as stdin:
                stdin.write(json.dumps(asdict(job)).encode())
        except BrokenPipeError:  # it has died, which `poll` tells
            pass

    def poll(self) -> Outcome | None:
        """The outcome; None while it runs."""
        code = self._popen.poll()
        if code is None:
            return None
        with self._told:
            self._told.seek(0)
            told = self._told.read()
        if not self._log.stat().st_size:
            self._log.unlink()
        if code == 0 and told:
            outcome = json.loads(told)
            return Outcome(Ending(outcome["ending"]), outcome["text"], tuple(outcome["notes"]))
        if self._is_stopped and code == -signal.SIGTERM:  # before it could take the signal, and so before the run was open
            return Outcome(Ending.INTERRUPTED, "interrupted")
        where = f"; see {self._log}" if self._log.exists() else ""
        return Outcome(Ending.FAILED, f"its process {how_it_ended(code)}{where}")

    def stop(self) -> None:
        """Asks it to save and end."""
        self._is_stopped = True
        self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self._popen.kill()
        self._popen.wait()
        self._told.close()


def execute_job(job: Job, is_stopped: list[int]) -> Outcome:
    """Starts the job's run or goes on with it.

    Args:
        is_stopped: holds a signal once the run is to end.

    Raises:
        UserError: the run cannot be made.
        DeviceFailure: the device failed.
    """
    config = RunConfig.model_validate(job.config)
    folder = find_run(Path(config.output.runs, job.variant), config.seed)
    notes: list[str] = []
    if folder:
        _wait_until_free(folder)
        run, notes = LiveRun.resume(folder, resume_overrides(folder, config))
    else:
        run = LiveRun.start(config, job.variant, notes.append)
    reason = run.execute(lambda *_: None, lambda _: bool(is_stopped))
    run.close()
    return Outcome(Ending.INTERRUPTED if reason == "interrupted" else Ending.FINISHED, reason, tuple(notes))


def main(parent: int) -> None:
    """Executes the job on standard input."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the task prints is no result
    is_stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: is_stopped.append(number))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the line above
        return
    job = Job(**json.loads(sys.stdin.buffer.read()))
    try:
        outcome = execute_job(job, is_stopped)
    except UserError as error:
        outcome = Outcome(Ending.FAILED, " ".join(str(error).splitlines()))
    except DeviceFailure as failure:
        outcome = Outcome(Ending.FAILED, f"the GPU failed: {failure}")
    except Exception as error:  # noqa: BLE001 - the other runs go on; the log has the whole story
        traceback.print_exc()
        outcome = Outcome(Ending.FAILED, f"{type(error).__name__}: {error}; see {job.log}")
    json.dump(asdict(outcome), results)
    results.flush()
    sys.stderr.flush()
    if outcome.ending is Ending.FAILED:
        os._exit(0)  # Python's own end would wait for threads, such as those of a score that hangs


def _wait_until_free(folder: Path) -> None:
    """Waits while another process has the run open. It may have lost its parent and be saving."""
    end_s = time.monotonic() + LOCK_S
    with open(folder / "lock", "w") as lock:
        while not try_lock(lock) and time.monotonic() < end_s:
            time.sleep(POLL_S)


if __name__ == "__main__":
    main(int(sys.argv[1]))
