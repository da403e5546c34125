"""Where a run's compile requests are fulfilled, and how the workers of a Dask scheduler fulfil them: both sides.

Owns what is sent, and which call ends which future. As with a pool of this machine, a time limit and the death of a process
belong to one call. Knows nothing of how workers are chosen.
"""

import atexit
import pickle
import threading
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from evo.compile.farm import why_no_farm
from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool
from evo.compile.request import CompileExecutor, CompileRequest, Fulfil, Outcome
from evo.errors import UserError
from evo.evaluate.dask_client import WorkersDied, connect
from evo.evaluate.options import ClusterOptions, EvaluationOptions
from evo.workers.processes import WorkerDied

CALLS_PER_THREAD = 2  # that a worker is given for each of its threads: one that runs and one that waits

_P = ParamSpec("_P")
_T = TypeVar("_T")


def open_compilers(options: EvaluationOptions) -> CompileExecutor:
    """Where a run's compile requests are fulfilled: on its cluster, in its farm, or in processes of this machine.

    Raises:
        UserError: cluster or farm cannot be used.
    """
    if options.cluster:
        return DaskExecutor(options.cluster, options.compile_seconds, options.num_compilers)
    farm = options.farm
    if farm is None:
        return CompilePool(options.num_compilers, options.compile_seconds)
    if reason := why_no_farm():
        raise UserError(f"{reason}", "evaluation.farm")
    from evo.compile.farm.server import CompileFarm

    keys, server_file = (Path(path) if path else None for path in (farm.keys, farm.server_file))
    return CompileFarm(farm.listen, keys, options.num_compilers, options.compile_seconds, server_file=server_file)


class DaskExecutor(CompileExecutor):
    """An executor of concurrent.futures over Dask workers. Futures end as those of `CompilePool`.

    A call cannot be cancelled once a worker has it.

    Args:
        cluster: where the scheduler is.
        time_limit_s: for one call.
        num_local: processes of a local cluster; None: one for each core that this process may use.

    Raises:
        UserError: there is no connection, or no worker.
    """

    def __init__(self, cluster: ClusterOptions, time_limit_s: float = DEFAULT_TIME_LIMIT_S, num_local: int | None = None):
        self._run = uuid.uuid4().hex
        self._time_limit_s = time_limit_s
        self._kept: dict[tuple[bytes, bytes], Any] = {}  # languages with templates, left with the scheduler
        self._waiting: deque[tuple[Future[Any], tuple[Any, ...]]] = deque()
        self._given: dict[int, Future[Any]] = {}  # by the number of the call among those that workers were given
        self._num_given = 0
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._lock = threading.Lock()
        self._error: BaseException | None = None  # why it refuses further calls
        self._is_given_up = False
        with ExitStack() as opened:
            try:
                self._workers = opened.enter_context(connect(cluster.scheduler, cluster.tls, cluster.wait_seconds, num_local))
                self._workers.usable()
            except UserError as error:
                raise UserError(f"{error}", "evaluation.cluster") from error.__cause__
            self._opened = opened.pop_all()
        self._opened.callback(self._workers.call_each, end_processes, self._run)
        self._thread = threading.Thread(target=self._serve, name="dask-executor", daemon=True)
        self._thread.start()
        atexit.register(self.shutdown, cancel_futures=True)

    @property
    def num_workers(self) -> int:
        """Threads of the workers, when they were last looked at."""
        return self._workers.num_threads

    def submit_request(self, function: Fulfil, request: CompileRequest) -> Future[Outcome]:
        """As `CompileExecutor.submit_request`. Language and template are sent to each worker once."""
        common = (request.language, request.template)
        if common not in self._kept:
            self._kept[common] = self._workers.keep(pickle.dumps(common))
        return self._submit(self._kept[common], function, (replace(request, language=b"", template=b""),), {})

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a process of a worker call the function."""
        return self._submit(None, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the connection and the workers' processes, with `cancel_futures` at once: nobody waits for calls under way."""
        with self._lock:
            self._error = self._error or RuntimeError("the executor was shut down")
            self._is_given_up |= cancel_futures
        self._ended.put(None)
        if wait:
            self._thread.join()
            self._opened.close()
            atexit.unregister(self.shutdown)

    def _submit(self, *call: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._error:
                raise self._error
            self._waiting.append((future, (self._run, self._time_limit_s, *call)))
        self._ended.put(None)
        return future

    def _serve(self) -> None:
        try:
            for number, result in self._workers.serve(call_in_process, self._take, self._ended, self._end_if_given_up):
                future = self._given.pop(number)
                if isinstance(result, WorkersDied):
                    future.set_exception(WorkerDied(str(result)))
                elif isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            with self._lock:
                self._error = self._error or error
            for future, _ in self._waiting:
                if self._is_given_up:
                    future.cancel()
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            for future in self._given.values():
                future.set_exception(error)

    def _end_if_given_up(self) -> None:
        if self._is_given_up:
            raise CancelledError

    def _take(self, num_active: int) -> list[tuple[Any, ...]] | None:
        """Calls for the workers, as many as they should have beside those; None when the last one has been given out."""
        self._end_if_given_up()
        calls: list[tuple[Any, ...]] = []
        with self._lock:
            while self._waiting and num_active + len(calls) < CALLS_PER_THREAD * self.num_workers:
                future, call = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    self._given[self._num_given] = future
                    self._num_given += 1
                    calls.append(call)
            return None if self._error and not calls and not self._waiting else calls


# ---- on a worker

MAX_POOLS = 4  # of a worker; those of a run that was killed go when others come

_pools: dict[str, CompilePool] = {}  # by the run that they work for
_ended: set[str] = set()  # runs; a call of theirs may still come
_pools_lock = threading.Lock()


def call_in_process(
    run: str,
    time_limit_s: float,
    common: bytes | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What the function returns, or the exception that it, its time limit or its process's death leads to.

    Args:
        run: who asks; its processes last until `end_processes`.
        common: the language and template of a request, pickled; None: it is another call.
    """
    from distributed import get_worker

    with _pools_lock:  # until the call is under way: another run may end this pool, which then refuses calls
        if run in _ended:
            return CancelledError()
        if run not in _pools:
            if len(_pools) == MAX_POOLS:
                _end_soon(_pools.pop(next(iter(_pools))), cancel_futures=False)
            _pools[run] = CompilePool(get_worker().state.nthreads, time_limit_s)
        if common is None:
            future = _pools[run].submit(function, *args, **kwargs)
        else:
            (request,), (language, template) = args, pickle.loads(common)
            future = _pools[run].submit_request(function, replace(request, language=language, template=template))
    try:
        return future.result()
    except Exception as error:  # noqa: BLE001 - the future that waits for it raises it
        return error


def end_processes(run: str) -> None:
    """Ends the processes of a run, soon."""
    with _pools_lock:
        _ended.add(run)
        if pool := _pools.pop(run, None):
            _end_soon(pool, cancel_futures=True)


def _end_soon(pool: CompilePool, *, cancel_futures: bool) -> None:
    threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": cancel_futures}, daemon=True).start()
