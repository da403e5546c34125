"""Worker processes that fulfil compile requests, each within a time limit that truly ends the work.

Owns the processes. A worker that hangs is killed and a worker that dies is replaced; the futures tell which happened. No
worker outlives this process, however it ends; Ctrl-C is this process's to handle, and Pebble's workers ignore it. Knows
nothing of what a request holds, and retries nothing.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future

import pebble


class WorkerDied(BrokenExecutor):
    """The process that ran this call ended before the call did: by a crash, or killed by the system. The pool goes on."""


class CompilePool(Executor):
    """An executor of concurrent.futures.

    A future's exception is TimeoutError where the time limit passed, WorkerDied where the process did not survive, and
    otherwise what the function raised. `running()` is never true: a call can be cancelled at any time. Function and arguments
    must be picklable.

    Args:
        num_workers: processes; None: one for each core that this process may use.
        time_limit_s: for one call, counted from its start in a worker.
    """

    def __init__(self, num_workers: int | None = None, time_limit_s: float = 60.0):
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.time_limit_s = time_limit_s
        # A fork of a process that holds a CUDA context or threads is not safe: workers start afresh.
        context = multiprocessing.get_context("spawn")
        self._pool = pebble.ProcessPool(self.num_workers, initializer=_start_worker, context=context)
        self._unfinished: set[Future] = set()
        # Processes inherit that Ctrl-C is blocked; one that it reached before Pebble ignores it would die with a traceback.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._pool.schedule(os.getpid)  # starts processes, and the threads that replace them
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def submit(self, fn: Callable, /, *args, **kwargs) -> Future:
        future: Future = Future()
        scheduled = self._pool.schedule(fn, args=args, kwargs=kwargs, timeout=self.time_limit_s)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        # Cancelling ends the work also where a worker is at it.
        future.add_done_callback(lambda done: done.cancelled() and scheduled.cancel())
        scheduled.add_done_callback(lambda done: _pass_on(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """With `cancel_futures` also the calls that are running are cancelled, and their processes end."""
        if cancel_futures:
            for future in list(self._unfinished):
                future.cancel()
            self._pool.stop()
        else:
            self._pool.close()
        if wait:
            self._pool.join()

    def __exit__(self, exception_type, exception, traceback) -> None:
        # After an exception, Ctrl-C above all, nobody waits for the results.
        self.shutdown(cancel_futures=exception_type is not None)


def _pass_on(done: Future, future: Future) -> None:
    if not future.set_running_or_notify_cancel():
        return
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    elif isinstance(error, pebble.ProcessExpired):
        future.set_exception(WorkerDied(_how_it_died(error.exitcode)))
    else:
        future.set_exception(error)


def _how_it_died(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"the compile process ended with exit code {exit_code}"
    try:
        return f"the compile process was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"the compile process was killed by signal {-exit_code}"


def _start_worker() -> None:
    # Pebble's handler would run when the compiler returns, and the process be killed some seconds later.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A worker that waits for work sees the parent's end by itself; one that is at work would not.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
