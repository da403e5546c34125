"""A process that executes one run of a sweep.

Owns what it is told and what it tells. SIGTERM asks the run to finish its generation and save. The process gets one when its
parent ends, however that happens. Knows nothing of the other runs.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from evo.config import RunConfig
from evo.errors import DeviceFailure, UserError, one_line
from evo.evaluate.backends import share_gpus
from evo.run.run import LiveRun
from evo.run.run_dir import open_lock
from evo.run.sweep import SweepRun, find_run, resume_overrides
from evo.storage.files import try_lock
from evo.workers.process import ProcessDied, WorkerProcess

LOCK_S = 60.0  # for an earlier process of the same run to save and end
POLL_S = 0.1
FLUSH_S = 5.0  # for a process to end by itself


class Ending(StrEnum):
    """End of the work at a run."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"  # it is saved and can go on
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """Result of a run. text: the stop that was reached, or what failed. notes: lines that its user should read."""

    ending: Ending
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """Input of a process that executes a run. config: plain JSON values. folder: base of the relative paths of its task."""

    variant: str
    config: dict[str, Any]
    log: str
    folder: str

    @classmethod
    def of_run(cls, run: SweepRun) -> Job:
        """The job of a run."""
        return cls(run.variant, run.config.model_dump(mode="json"), str(run.log), os.getcwd())


class RunProcess:
    """A process at work on a job. It is not a part of the terminal's group: Ctrl-C reaches this process alone."""

    def __init__(self, job: Job):
        """Starts it. Raises UserError: the system refuses, or the log cannot be written."""
        self._log = Path(job.log)
        self._is_stopped = False
        folder = job.folder if os.path.isdir(job.folder) else None  # a Dask worker need not have it
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as log:
                self._process = WorkerProcess(execute, job, folder=folder, log=log, last_signal=signal.SIGTERM)
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"cannot start the run: {reason}", self._log) from error

    def poll(self) -> Outcome | None:
        """The outcome; None while it runs."""
        if self._process.is_alive and not self._process.has_begun():
            return None
        try:
            outcome: Outcome = self._process.wait_until_ready()
        except ProcessDied as death:
            outcome = Outcome(Ending.FAILED, f"its process {death}")
            if self._is_stopped and death.exit_code == -signal.SIGTERM:  # before it could take the signal
                outcome = Outcome(Ending.INTERRUPTED, "interrupted")
        # A failed one may wait for threads, such as those of a score that hangs.
        self._process.close(0.0 if outcome.ending is Ending.FAILED else FLUSH_S)
        if not self._log.stat().st_size:
            self._log.unlink()
        elif outcome.text.startswith("its process "):
            outcome = replace(outcome, text=f"{outcome.text}; see {self._log}")
        return outcome

    def stop(self) -> None:
        """Asks it to save and end."""
        self._is_stopped = True
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once."""
        self._process.close()


def execute(job: Job) -> Outcome:
    """Executes a job, in a process of its own."""
    is_stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: is_stopped.append(number))
    try:
        return execute_job(job, is_stopped)
    except UserError as error:
        return Outcome(Ending.FAILED, one_line(error))
    except DeviceFailure as failure:
        return Outcome(Ending.FAILED, f"the GPU failed: {failure}")
    except Exception as error:  # noqa: BLE001 - the other runs go on; the log has the whole story
        traceback.print_exc()
        return Outcome(Ending.FAILED, f"{type(error).__name__}: {error}; see {job.log}")


def execute_job(job: Job, is_stopped: list[int]) -> Outcome:
    """Starts the job's run or goes on with it.

    Args:
        is_stopped: holds a signal once the run is to end.

    Raises:
        UserError: the run cannot be made.
        DeviceFailure: the device failed.
    """
    share_gpus()
    config = RunConfig.model_validate(job.config)
    folder = find_run(Path(config.output.runs, job.variant), config.seed)
    notes: list[str] = []
    if folder:
        _wait_until_free(folder)
        run, notes = LiveRun.resume(folder, resume_overrides(folder, config))
    else:
        run = LiveRun.start(config, job.variant, notes.append)
    reason = run.execute(interrupted=lambda _: bool(is_stopped))
    run.close()
    return Outcome(Ending.INTERRUPTED if reason == "interrupted" else Ending.FINISHED, reason, tuple(notes))


def _wait_until_free(folder: Path) -> None:
    """Waits while another process has the run open. It may have lost its parent and be saving."""
    end_s = time.monotonic() + LOCK_S
    with open_lock(folder) as lock:
        while not try_lock(lock) and time.monotonic() < end_s:
            time.sleep(POLL_S)
