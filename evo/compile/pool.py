"""Worker processes that fulfil compile requests, each within a time limit that really ends the work.

Owns which call ends which future. Retries nothing.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from evo.compile.request import CompileExecutor
from evo.workers.crew import Crew
from evo.workers.process import WorkerProcess
from evo.workers.processes import Processes, start_error

DEFAULT_TIME_LIMIT_S = 60.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(eq=False)
class _Call:
    """A call, and the process that makes it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    future: Future[Any]
    process: WorkerProcess | None = None


class CompilePool(CompileExecutor):
    """An executor of concurrent.futures over processes of this machine.

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
        self._unfinished: dict[Future[Any], None] = {}
        self._is_ended = False
        self._processes = Processes(self._num_workers, "compile", _begin)
        try:
            self._crew = Crew(self._num_workers)
        except RuntimeError as error:
            self._processes.close()
            raise start_error("compile", error) from error

    @property
    def num_workers(self) -> int:
        """The number of processes."""
        return self._num_workers

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a worker call the function."""
        call = _Call(fn, args, kwargs, Future())
        with self._lock:
            if self._is_ended:
                raise RuntimeError("the pool was shut down")
            self._unfinished[call.future] = None
            self._crew.put(partial(self._make, call))
        call.future.add_done_callback(lambda _: self._note_end(call))
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes, with `cancel_futures` at once: calls that are running are cancelled too."""
        with self._lock:
            self._is_ended = True
        if cancel_futures:
            for future in list(self._unfinished):
                future.cancel()
        if wait:
            self._end()
        else:
            threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        self._crew.close()
        self._processes.close()

    def _note_end(self, call: _Call) -> None:
        with self._lock:
            self._unfinished.pop(call.future, None)
            if call.process and call.future.cancelled():
                call.process.kill()

    def _assign(self, call: _Call, process: WorkerProcess) -> bool:
        with self._lock:
            call.process = process
            return not call.future.cancelled()  # an earlier cancel has killed no process

    def _make(self, call: _Call) -> None:
        """Makes a call and ends its future."""
        result, error, assign = None, None, partial(self._assign, call)
        try:
            if not call.future.cancelled():
                result = self._processes.call(call.function, self.time_limit_s, *call.args, may_begin=assign, **call.kwargs)
        except Exception as raised:  # noqa: BLE001 - whoever waits gets it
            error = raised
        with self._lock:
            call.process = None
        if call.future.set_running_or_notify_cancel():
            if error:
                call.future.set_exception(error)
            else:
                call.future.set_result(result)


def _begin() -> None:
    """Has a process import this module."""
