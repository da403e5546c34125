"""Worker processes that fulfil compile requests, each within a time limit that really ends the work.

Owns the processes. A worker that hangs is killed, and a worker that dies is replaced; the futures tell which happened. No worker
outlives this process, however it ends. Only this process handles Ctrl-C; workers ignore it. Knows nothing of what a request
holds, and retries nothing.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, ParamSpec, TypeVar

import pebble

DEFAULT_TIME_LIMIT_S = 60.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerDied(BrokenExecutor):
    """The process that ran this call crashed or was killed before the call returned. The pool goes on."""


class CompilePool(Executor):
    """An executor of concurrent.futures.

    A future's exception is TimeoutError if the call exceeded the time limit, WorkerDied if its process died, and otherwise what
    the function raised. `running()` is never true: a call can be cancelled at any time. Function and arguments must be picklable.

    Args:
        num_workers: processes; None: one for each core that this process may use.
        time_limit_s: for one call, counted from its start in a worker.
    """

    def __init__(self, num_workers: int | None = None, time_limit_s: float = DEFAULT_TIME_LIMIT_S):
        self.num_workers = num_workers or len(os.sched_getaffinity(0))
        self.time_limit_s = time_limit_s
        # A fork of a process that holds a CUDA context or threads is not safe: workers start afresh.
        context = multiprocessing.get_context("spawn")
        self._pool = pebble.ProcessPool(self.num_workers, initializer=_start_worker, context=context)
        self._unfinished: set[Future[Any]] = set()
        # Processes inherit the blocked signal: Ctrl-C before Pebble ignores it would end one with a traceback.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._pool.schedule(os.getpid)  # starts processes, and the threads that replace them
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        atexit.register(self._kill_workers)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a worker call the function."""
        future: Future[_T] = Future()
        scheduled = self._pool.schedule(fn, args=args, kwargs=kwargs, timeout=self.time_limit_s)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        # Cancelling also ends a call that a worker has begun.
        future.add_done_callback(lambda done: done.cancelled() and scheduled.cancel())
        scheduled.add_done_callback(lambda done: _pass_on(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes, with `cancel_futures` at once: calls that are running are cancelled too."""
        if cancel_futures:
            for future in self._unfinished.copy():
                future.cancel()
        elif wait:
            concurrent.futures.wait(self._unfinished.copy())
        if wait:
            self._kill_workers()
            self._pool.join()
            atexit.unregister(self._kill_workers)
        elif cancel_futures:
            self._pool.stop()
        else:
            self._pool.close()

    def _kill_workers(self) -> None:
        # Pebble frees the semaphores of its workers before it ends them, and so does Python at its end. A worker that is still
        # starting would not find them, and would end with a traceback.
        self._pool.stop()
        manager = self._pool._pool_manager_loop  # noqa: SLF001 - the thread that replaces workers; there is no public way
        assert manager, "the pool was started when it was made"
        manager.join()
        for worker in list(self._pool._pool_manager.worker_manager.workers.values()):  # noqa: SLF001 - as above
            worker.kill()

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        # After an exception, such as Ctrl-C, nobody waits for the results.
        self.shutdown(cancel_futures=exception_type is not None)


def _pass_on(done: Future[_T], future: Future[_T]) -> None:
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
    # Pebble's handler would not run before the compiler returns, and the process would be killed seconds later.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # An idle worker notices the end of its parent; a busy one does not.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers call this"
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
