"""Worker processes that fulfil compile requests, each within a time limit that really ends the work.

Owns the threads that wait for them, one each. A worker that hangs is killed, and a worker that dies is replaced; the futures tell
which happened. Retries nothing.
"""

import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, ParamSpec, TypeVar

from evo.compile.request import CompileExecutor, CompileRequest, Fulfil, Outcome
from evo.errors import UserError, shortage
from evo.worker_process import ProcessDied, WorkerProcess

DEFAULT_TIME_LIMIT_S = 60.0
_MAX_DEATHS = 3  # of a worker at its start, in a row

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WorkerDied(BrokenExecutor):
    """The process that ran this call crashed or was killed before the call returned. The pool goes on."""


@dataclass(eq=False)
class _Call:
    """A call, and the process that makes it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: Future[Any]
    process: WorkerProcess | None = None


class CompilePool(CompileExecutor):
    """An executor of concurrent.futures whose workers keep what requests have in common: language and template are sent once.

    A future's exception is TimeoutError if the call exceeded the time limit, WorkerDied if its process died, and otherwise what
    the function raised. `running()` is never true: a call can be cancelled at any time. Function and arguments must be picklable.

    Args:
        num_workers: processes; None: one for each core that this process may use.
        time_limit_s: for one call, counted from its start in a worker.

    Raises:
        UserError: the processes cannot be started. Futures raise it, too, if a process always dies before it begins.
    """

    def __init__(self, num_workers: int | None = None, time_limit_s: float = DEFAULT_TIME_LIMIT_S):
        self._num_workers = num_workers or len(os.sched_getaffinity(0))
        self.time_limit_s = time_limit_s
        self._lock = threading.RLock()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._unfinished: dict[Future[Any], None] = {}
        self._is_ended = False
        self._common: dict[tuple[bytes, bytes], IO[bytes]] = {}  # languages with templates, in memory files for the workers
        processes: list[WorkerProcess] = []
        try:
            processes += (WorkerProcess(_begin) for _ in range(self._num_workers))
            self._threads = [threading.Thread(target=self._serve, args=(process,), daemon=True) for process in processes]
            for thread in self._threads:
                thread.start()
        except (OSError, RuntimeError) as error:
            for process in processes:
                self._calls.put(None)
                process.close()
            raise _not_started(error) from error

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
            self._unfinished[call.future] = None
            self._calls.put(call)
        call.future.add_done_callback(lambda _: self._note_end(call))
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes, with `cancel_futures` at once: calls that are running are cancelled too."""
        with self._lock:
            if not self._is_ended:
                self._is_ended = True
                for _ in self._threads:
                    self._calls.put(None)
        if cancel_futures:
            for future in list(self._unfinished):
                future.cancel()
        if wait:
            for thread in self._threads:
                thread.join()
            for file in self._common.values():
                file.close()

    def _note_end(self, call: _Call) -> None:
        with self._lock:
            self._unfinished.pop(call.future, None)
            if call.process and call.future.cancelled():
                call.process.kill()

    def _serve(self, process: WorkerProcess) -> None:
        """Makes calls, one after the other, in a process or those that take its place."""
        while call := self._calls.get():
            result: Any = None
            error: Exception | None = None
            try:
                if not call.future.cancelled():
                    call.process = process = _ready(process)
                if not call.future.cancelled():  # else nobody kills the process from now on
                    result = process.call(call.function, self.time_limit_s, *call.args, **call.kwargs)
            except (ProcessDied, TimeoutError) as ended:
                process.kill()
                error = WorkerDied(f"the compile process {ended}") if isinstance(ended, ProcessDied) else ended
            except Exception as raised:  # noqa: BLE001 - whoever waits gets it
                error = raised
            with self._lock:
                call.process = None
            if call.future.set_running_or_notify_cancel():
                if error:
                    call.future.set_exception(error)
                else:
                    call.future.set_result(result)
        process.close()


def _not_started(error: OSError | RuntimeError) -> UserError:
    return UserError(f"the processes that compile cannot be started: {shortage(error) or error}")


def _ready(process: WorkerProcess) -> WorkerProcess:
    """This process, or another one if it has died, when it has started."""
    for _ in range(_MAX_DEATHS):
        if not process.is_alive:
            process.close()
            try:
                process = WorkerProcess(_begin)
            except (OSError, RuntimeError) as error:
                raise _not_started(error) from error
        try:
            process.wait_until_ready()
        except ProcessDied:
            process.kill()
        else:
            return process
    limits = "look at the limits of threads and memory (ulimit -u and -v)"
    raise UserError(f"the processes that compile ended {_MAX_DEATHS} times before they began; {limits}")


def _begin() -> None:
    """Has a process import this module."""


def _fulfil(function: Fulfil, request: CompileRequest, common: str) -> Outcome:
    language, template = _common_of(common)
    return function(replace(request, language=language, template=template))


@lru_cache(maxsize=4)
def _common_of(path: str) -> tuple[bytes, bytes]:
    common: tuple[bytes, bytes] = pickle.loads(Path(path).read_bytes())
    return common
