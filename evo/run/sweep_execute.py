"""Executes the unfinished runs of a sweep: in processes on this machine's cores, or by the workers of a Dask scheduler.

Owns which run is executed where and when. A run that fails does not stop the others. Knows nothing of what a run does.
"""

import atexit
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from evo.errors import UserError
from evo.evaluate.dask_client import connect
from evo.run.sweep import Sweep, SweepRun
from evo.run.sweep_process import POLL_S, Ending, Job, Outcome, RunProcess
from evo.workers.processes import WorkerDied

Interrupted = Callable[[], bool]


def execute_here(sweep: Sweep, num_processes: int | None, interrupted: Interrupted) -> Iterator[tuple[SweepRun, Outcome]]:
    """Yields each unfinished run with its outcome as it ends.

    Args:
        num_processes: runs at the same time; None: as many as their threads leave cores for.
        interrupted: once it is true, no further run starts, and those in progress are saved.
    """
    waiting = list(reversed(sweep.unfinished))
    if waiting and not num_processes:
        num_processes = max(1, len(os.sched_getaffinity(0)) // (waiting[0].config.evaluation.threads or 1))
    active: dict[RunProcess, SweepRun] = {}

    def kill_all() -> None:
        for process in active:
            process.kill()

    atexit.register(kill_all)
    is_stopped = False
    try:
        while waiting or active:
            if not is_stopped and interrupted():
                is_stopped = True
                waiting.clear()
                for process in active:
                    process.stop()
            while waiting and len(active) < (num_processes or 1):
                run = waiting.pop()
                try:
                    active[RunProcess(Job.of_run(run))] = run
                except UserError as error:
                    yield run, Outcome(Ending.FAILED, str(error))
            for process in list(active):
                if outcome := process.poll():
                    yield active.pop(process), outcome
            time.sleep(POLL_S)
    finally:
        kill_all()
        atexit.unregister(kill_all)


def execute_on(scheduler: str, sweep: Sweep, interrupted: Interrupted) -> Iterator[tuple[SweepRun, Outcome]]:
    """As `execute_here`, but by the workers of a Dask scheduler, one run on each of their threads.

    Raises:
        UserError: no connection, no worker, a worker does not see the sweep's folder, or the connection is lost. The workers save
            their runs then.
    """
    runs = sweep.unfinished
    token = uuid.uuid4().hex
    shared, stop = (sweep.folder / f".{name}-{token}" for name in ("shared", "stop"))

    def look() -> None:
        if interrupted() and not stop.exists():
            stop.touch()

    for left in (*sweep.folder.glob(".shared-*"), *sweep.folder.glob(".stop-*")):  # by a process that was killed
        left.unlink()
    shared.touch()
    try:
        with connect(scheduler) as workers:
            calls = [(Job.of_run(run), str(shared), str(stop)) for run in runs]
            for number, future in workers.map(execute_on_worker, calls, look):
                try:
                    outcome = future.result()
                except WorkerDied as death:
                    outcome = Outcome(Ending.FAILED, str(death))
                yield runs[number], outcome
    finally:
        shared.unlink(missing_ok=True)
        stop.unlink(missing_ok=True)


def execute_on_worker(job: Job, shared: str, stop: str) -> Outcome:
    """Executes a run on a Dask worker.

    Args:
        shared: a file that the sweep's process has made.
        stop: a file that it makes to have the run saved.

    Raises:
        UserError: the worker does not see the sweep's folder.
    """
    from distributed import get_worker

    worker = get_worker()
    if not Path(shared).exists():
        raise UserError(
            f"Dask worker {worker.address} on {socket.gethostname()} does not see this folder; "
            "a sweep on a cluster needs one that all workers share: --output FOLDER",
            Path(shared).parent,
        )
    if Path(stop).exists():
        return Outcome(Ending.INTERRUPTED, "interrupted")
    try:
        process = RunProcess(job)
    except UserError as error:
        return Outcome(Ending.FAILED, str(error))
    key = worker.get_current_task()
    is_stopped = False
    while not (outcome := process.poll()):
        # Dask cancels the tasks of a client that is gone.
        if not is_stopped and (Path(stop).exists() or worker.state.tasks[key].state == "cancelled"):
            is_stopped = True
            process.stop()
        time.sleep(POLL_S)
    return outcome
