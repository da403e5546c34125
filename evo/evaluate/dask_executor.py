"""Executors of a run's compile requests, and both sides of compiling on a Dask scheduler's workers.

As with a pool of this machine, a time limit and the death of a process belong to one call. Knows nothing of how workers are
chosen.
"""

import atexit
import pickle
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from evo.compile.farm import why_no_farm
from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool
from evo.compile.request import CompileExecutor, CompileRequest, Fulfil, Outcome
from evo.errors import UserError, located
from evo.evaluate.dask_client import connect
from evo.evaluate.options import ClusterOptions, EvaluationOptions

_P = ParamSpec("_P")
_T = TypeVar("_T")


def open_compilers(options: EvaluationOptions) -> CompileExecutor:
    """Opens the place where a run's compile requests are fulfilled: its cluster, its farm, or processes of this machine.

    Raises:
        UserError: cluster or farm cannot be used.
    """
    if options.cluster:
        return DaskExecutor(options.cluster, options.compile_seconds, options.num_compilers)
    farm = options.farm
    if farm is None:
        return CompilePool(options.num_compilers, options.compile_seconds)
    if reason := why_no_farm():
        raise UserError(reason, "evaluation.farm")
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
        self._unfinished: set[Future[Any]] = set()
        with ExitStack() as opened, located("evaluation.cluster"):
            self._workers = opened.enter_context(connect(cluster.scheduler, cluster.tls, cluster.wait_seconds, num_local))
            self._workers.usable()
            self._opened = opened.pop_all()
        self._opened.callback(self._workers.call_each, end_processes, self._run)
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
        if not cancel_futures:
            wait_for([*self._unfinished])
        self._workers.close(CancelledError() if cancel_futures else RuntimeError("the executor was shut down"))
        self._opened.close()
        atexit.unregister(self.shutdown)

    def _submit(self, *call: Any) -> Future[Any]:
        future = self._workers.submit(call_in_process, self._run, self._time_limit_s, *call)
        self._unfinished.add(future)
        future.add_done_callback(self._unfinished.discard)
        return future


# ---- on a worker

MAX_POOLS = 4  # of a worker; those of a run that was killed go when others come

_pools: dict[str, CompilePool] = {}  # by the run that they work for
_pools_lock = threading.Lock()


def call_in_process(
    run: str,
    time_limit_s: float,
    common: bytes | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Makes a call in a process. Returns or raises what the function does, or raises what its time limit or the process's death
    leads to.

    Args:
        run: who asks; its processes last until `end_processes`.
        common: the language and template of a request, pickled; None: it is another call.
    """
    from distributed import get_worker

    with _pools_lock:  # until the call is under way: another run may end this pool, which then refuses calls
        if run not in _pools:
            if len(_pools) == MAX_POOLS:
                _end_soon(_pools.pop(next(iter(_pools))), cancel_futures=False)
            _pools[run] = CompilePool(get_worker().state.nthreads, time_limit_s)
        if common is None:
            future = _pools[run].submit(function, *args, **kwargs)
        else:
            (request,), (language, template) = args, pickle.loads(common)
            future = _pools[run].submit_request(function, replace(request, language=language, template=template))
    return future.result()


def end_processes(run: str) -> None:
    """Ends the processes of a run, soon."""
    with _pools_lock:
        if pool := _pools.pop(run, None):
            _end_soon(pool, cancel_futures=True)


def _end_soon(pool: CompilePool, *, cancel_futures: bool) -> None:
    threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": cancel_futures}, daemon=True).start()
