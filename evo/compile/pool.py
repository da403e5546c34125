"""Worker processes that fulfil compile requests, each within a time limit that really ends the work.

Owns the processes. A worker that hangs is killed, and a worker that dies is replaced; the futures tell which happened. No worker
outlives this process, however it ends. Only this process handles Ctrl-C; workers ignore it. Retries nothing.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import pebble

from evo.compile.request import CompileExecutor, CompileRequest, Fulfil, Outcome
from evo.errors import UserError, how_it_ended, shortage

DEFAULT_TIME_LIMIT_S = 60.0
_MAX_BROKEN = 3

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerDied(BrokenExecutor):
    """The process that ran this call crashed or was killed before the call returned. The pool goes on."""


@dataclass(eq=False)
class _Call:
    """A call without an outcome. scheduled: its future in Pebble's pool."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: Future[Any]
    scheduled: Future[Any] | None = None


class CompilePool(CompileExecutor):
    """An executor of concurrent.futures whose workers keep what requests have in common: language and template are sent once.

    A future's exception is TimeoutError if the call exceeded the time limit, WorkerDied if its process died, and otherwise what
    the function raised. `running()` is never true: a call can be cancelled at any time. Function and arguments must be picklable.

    Pebble's pool breaks if a process dies while all are idle. Another pool replaces it then, and does what is left.

    Args:
        num_workers: processes; None: one for each core that this process may use.
        time_limit_s: for one call, counted from its start in a worker.

    Raises:
        UserError: the processes cannot be started. Futures raise it, too, if the processes always die before they begin.
    """

    def __init__(self, num_workers: int | None = None, time_limit_s: float = DEFAULT_TIME_LIMIT_S):
        self._num_workers = num_workers or len(os.sched_getaffinity(0))
        self.time_limit_s = time_limit_s
        self._lock = threading.RLock()
        self._calls: dict[_Call, None] = {}  # in the order of their submission
        self._num_broken = 0  # pools in a row that had calls and finished none
        self._is_ended = False
        self._broken: list[pebble.ProcessPool] = []
        self._ending = threading.Lock()  # Pebble's join may not be called twice at once
        self._common: dict[tuple[bytes, bytes], IO[bytes]] = {}  # languages with templates, in memory files for the workers
        self._pool = self._open_pool()
        atexit.register(self._kill_workers)

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        return self._num_workers

    def submit_request(self, function: Fulfil, request: CompileRequest) -> Future[Outcome]:
        """As `CompileExecutor.submit_request`."""
        common = (request.language, request.template)
        with self._lock:
            if common not in self._common:
                self._common[common] = os.fdopen(os.memfd_create("evo-requests"), "wb", buffering=0)
                self._common[common].write(pickle.dumps(common))
            path = f"/proc/{os.getpid()}/fd/{self._common[common].fileno()}"
        return self.submit(_fulfil, function, replace(request, language=b"", template=b""), path)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a worker call the function."""
        call = _Call(fn, args, kwargs, Future())
        with self._lock:
            if self._is_ended:
                raise RuntimeError("the pool was shut down")
            self._calls[call] = None
            self._schedule(call)
        call.future.add_done_callback(lambda _: self._forget(call))
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes, with `cancel_futures` at once: calls that are running are cancelled too."""
        unfinished = [call.future for call in list(self._calls)]
        if cancel_futures:
            for future in unfinished:
                future.cancel()
        elif wait:
            concurrent.futures.wait(unfinished)
        if wait:
            self._kill_workers()
            with self._ending:
                self._pool.join()
            for file in self._common.values():
                file.close()
            atexit.unregister(self._kill_workers)
            return
        with self._lock:
            self._is_ended = True
            if cancel_futures:
                self._pool.stop()
            else:
                self._pool.close()

    def _open_pool(self) -> pebble.ProcessPool:
        # A fork of a process that holds a CUDA context or threads is not safe: workers start afresh.
        context = multiprocessing.get_context("spawn")
        # Processes inherit the blocked signal: Ctrl-C before Pebble ignores it would end one with a traceback.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pool = pebble.ProcessPool(self._num_workers, initializer=_start_worker, context=context)
            pool.schedule(os.getpid)  # starts processes, and the threads that replace them
            threading.Thread(target=self._watch, args=(pool,), daemon=True).start()
        except (RuntimeError, OSError) as error:  # the system refuses semaphores, processes or threads
            cause = shortage(error) or error.__cause__ or error
            raise UserError(f"the processes that compile cannot be started: {cause}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return pool

    def _watch(self, pool: pebble.ProcessPool) -> None:
        """Waits for the end of a pool. Unless it was shut down, it broke, and another goes on."""
        _manager_of(pool).join()
        with self._lock:
            if self._is_ended:
                return
            self._broken.append(pool)
            self._num_broken = self._num_broken + 1 if self._calls else 0
            try:
                if self._num_broken > _MAX_BROKEN:
                    limits = "look at the limits of threads and memory (ulimit -u and -v)"
                    raise UserError(f"the processes that compile ended {self._num_broken} times before they began; {limits}")
                self._pool = self._open_pool()
            except UserError as error:
                self._is_ended = True
                for call in list(self._calls):
                    call.future.set_exception(error)
                return
            for call in self._calls:
                self._schedule(call)
        pool.join()

    def _schedule(self, call: _Call) -> None:
        """Gives a call to the pool. The lock is held."""
        try:
            call.scheduled = self._pool.schedule(call.function, args=call.args, kwargs=call.kwargs, timeout=self.time_limit_s)
        except RuntimeError:
            return  # it has just broken: the next one gets the call
        call.scheduled.add_done_callback(lambda done: self._pass_on(done, call))

    def _pass_on(self, done: Future[Any], call: _Call) -> None:
        with self._lock:
            is_current = call in self._calls and call.scheduled is done and not done.cancelled()
            if not is_current or isinstance(done.exception(), BrokenExecutor):
                return  # what a broken pool leaves undone, the next one does
            self._num_broken = 0
            del self._calls[call]
        if not call.future.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is None:
            call.future.set_result(done.result())
        elif isinstance(error, pebble.ProcessExpired):
            call.future.set_exception(WorkerDied(f"the compile process {how_it_ended(error.exitcode or 0)}"))
        else:
            call.future.set_exception(error)

    def _forget(self, call: _Call) -> None:
        with self._lock:
            self._calls.pop(call, None)
            scheduled = call.scheduled
        if call.future.cancelled() and scheduled:
            scheduled.cancel()  # also ends a call that a worker has begun

    def _kill_workers(self) -> None:
        with self._lock:
            self._is_ended = True
        # Pebble frees the semaphores of its workers before it ends them, and so does Python at its end. A worker that is still
        # starting would not find them, and would end with a traceback.
        self._pool.stop()
        _manager_of(self._pool).join()
        for pool in (*self._broken, self._pool):  # one that breaks may have started a worker that nobody ends
            for worker in list(pool._pool_manager.worker_manager.workers.values()):  # noqa: SLF001 - there is no public way
                worker.kill()


def _manager_of(pool: pebble.ProcessPool) -> threading.Thread:
    """The thread that replaces a pool's workers. It ends with the pool."""
    manager = pool._pool_manager_loop  # noqa: SLF001 - there is no public way
    assert manager, "the pool was started when it was made"
    return manager


def _fulfil(function: Fulfil, request: CompileRequest, common: str) -> Outcome:
    language, template = _common_of(common)
    return function(replace(request, language=language, template=template))


@lru_cache(maxsize=4)
def _common_of(path: str) -> tuple[bytes, bytes]:
    common: tuple[bytes, bytes] = pickle.loads(Path(path).read_bytes())
    return common


def _start_worker() -> None:
    # Pebble's handler would not run before the compiler returns, and the process would be killed seconds later.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # An idle worker notices the end of its parent; a busy one does not.
    try:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    except RuntimeError:
        os._exit(1)  # Pebble would print a traceback


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers call this"
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
