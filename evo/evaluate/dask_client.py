"""A connection to a Dask scheduler: calls spread over those of its workers that have this evo.

Owns the choice of workers, and what happens when they or the scheduler are lost. A worker with another version of evo or NumPy,
or on another kind of machine, gets no work and is named once. Knows nothing of what the calls do. Importing it loads no Dask.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import platform
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from evo.about import DISTRIBUTION
from evo.errors import DeviceFailure, UserError, one_line
from evo.escape import echo
from evo.evaluate.options import TlsFiles
from evo.workers import WAKE_S
from evo.workers.processes import WorkerDied

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
INSTALL = "pip install 'evo-ptx[cluster]'"
WAIT_S = 60.0
CONNECT_S = 10.0
LOOK_S = 2.0  # between two looks at the workers
CALLS_PER_THREAD = 2  # that a worker is given for each of its threads: one that runs and one that waits
RETRIES = 2  # of a call that fails outside of its function, such as while its arguments are read
GOES_ON = "a run goes on from its last checkpoint"
PACKAGES = (DISTRIBUTION, "numpy")  # that decide results

_clients: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()  # by address: given by users


def call_here(function: Callable[..., Any], *arguments: Any) -> tuple[str, Any, Exception | None]:
    """Calls the function on a worker. Gives the worker's address, and a result or an exception: as a value, since Dask cuts those
    that are long.
    """
    from distributed import get_worker

    try:
        return get_worker().address, function(*arguments), None
    except Exception as error:  # noqa: BLE001 - whoever waits gets it
        return get_worker().address, None, error


def address_of(client: Client) -> str:
    """The address by which `connect` finds a client that a user has made."""
    address = str(client.scheduler_info()["address"])
    _clients[address] = client
    return address


@contextmanager
def connect(
    scheduler: str, tls: TlsFiles | None = None, wait_s: float = WAIT_S, num_local: int | None = None
) -> Iterator[Workers]:
    """A connection to a scheduler, by the client that `address_of` knows if there is one.

    Args:
        scheduler: its address, or `local`: one is started on this machine, with worker processes.
        tls: for addresses that begin with `tls://`; None: what Dask's own config says.
        wait_s: longest wait for a first worker, or for another one after all were lost.
        num_local: processes of a local cluster; None: one for each core that this process may use.

    Raises:
        UserError: Dask is not installed, or there is no connection.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UserError(f"Dask is missing: {INSTALL}")
    from distributed import Client, Security

    with ExitStack() as opened:
        for name in ("distributed", "distributed.client", "tornado", "asyncio"):  # one line of evo's says what goes wrong
            logger = logging.getLogger(name)
            opened.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)
        client = _clients.get(scheduler)
        if client is None or client.status != "running":
            if scheduler.startswith("tls://") and not tls and not Security().get_connection_args("client")["ssl_context"]:
                files = "give evaluation.cluster.tls={ca: FILE, cert: FILE, key: FILE}, or Dask's own config distributed.comm.tls"
                raise UserError(f"TLS needs files: {files}", scheduler)
            try:
                paths = {"tls_ca_file": tls.ca, "tls_client_cert": tls.cert, "tls_client_key": tls.key} if tls else None
                security = Security(**paths, require_encryption=True) if paths else None
                address = opened.enter_context(_local_cluster(num_local)) if scheduler == LOCAL else scheduler
                client = opened.enter_context(Client(address, timeout=CONNECT_S, security=security, set_as_default=False))
            except (OSError, ValueError, TypeError) as error:  # refused, timed out, not an address; or a TLS file is wrong
                why = one_line(error) or type(error).__name__
                raise UserError(f"no connection to the Dask scheduler: {why}", scheduler) from error
        workers = Workers(client, scheduler, wait_s)
        opened.callback(workers.close, CancelledError())
        yield workers


def _local_cluster(num_workers: int | None) -> Any:
    import dask
    from distributed import LocalCluster

    own = {
        "distributed.worker.profile.enabled": False,  # nobody reads it
        # Deaths after which a call is tried again. Dask does not replace a worker that dies as soon as it is back, so more could
        # wait in vain.
        "distributed.scheduler.allowed-failures": 1,
    }
    with dask.config.set(own):
        return LocalCluster(
            n_workers=num_workers or len(os.sched_getaffinity(0)),
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # of its web server, which is always there
            silence_logs=logging.CRITICAL,
            preload=["evo.evaluate.dask_worker"],
        )


@dataclass(eq=False)
class _Call:
    """A call. given: its future as Dask has it; where: the workers that may make it; num_losses: of all of them."""

    arguments: tuple[Any, ...]
    future: Future[Any] = field(default_factory=Future)
    given: Future[Any] | None = None
    where: frozenset[str] = frozenset()
    num_losses: int = 0


class Workers:
    """The workers of a scheduler that may be used here. Safe to use from several threads at once.

    Attributes:
        num_threads: of those that were usable at the last look.
    """

    def __init__(self, client: Client, scheduler: str, wait_s: float):
        self.scheduler = scheduler
        self.num_threads = 0
        self._client = client
        self._wait_s = wait_s
        self._wanted = {**{name: version(name) for name in PACKAGES}, "machine": platform.machine()}  # on a worker as here
        self._known: dict[str, str | None] = {}  # address -> why it must not be used
        self._usable: frozenset[str] = frozenset()
        self._waiting: deque[_Call] = deque()
        self._given: set[_Call] = set()  # that workers have
        self._error: Exception | None = None  # why no further call is made
        self._lock = threading.RLock()
        self._ended: SimpleQueue[tuple[_Call, Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._watch, name="dask-workers", daemon=True).start()

    def usable(self) -> dict[str, int]:
        """The usable workers with their number of threads. Waits for a first one.

        Raises:
            UserError: none comes, or the scheduler is lost.
        """
        end_s = time.monotonic() + self._wait_s
        while not (workers := self._look()):
            if time.monotonic() > end_s:
                raise self._none()
            time.sleep(WAKE_S)
        return workers

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Calls a function of an importable module on a worker.

        A call whose worker is lost is made again by another one, so it may be made several times. The future raises what the
        function does; `WorkerDied` if one worker after the other is lost with it; or UserError: the scheduler, or all workers for
        too long, are lost. A worker whose device fails is replaced. A call that a worker has cannot be cancelled.
        """
        call = _Call((function, *arguments))
        with self._lock:
            if self._error:
                raise self._error
            self._waiting.append(call)
        self._give_out()
        return call.future

    def map(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], on_wait: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Future[Any]]]:
        """Calls the function once for each tuple of arguments. Yields the tuple's index and the ended future as they come.

        Args:
            on_wait: called again and again while no result comes; may raise.
        """
        self.usable()
        numbers = {self.submit(function, *own): number for number, own in enumerate(arguments)}
        waiting = set(numbers)
        try:
            while waiting:
                try:
                    for future in as_completed(waiting, timeout=WAKE_S):
                        waiting.discard(future)
                        yield numbers[future], future
                except TimeoutError:
                    on_wait()
        finally:
            self._end_all(CancelledError(), lambda call: call.future in waiting)

    def keep(self, value: bytes) -> Any:
        """Leaves bytes with the scheduler. As an argument of a call, they reach each worker once."""
        return self._client.submit(bytes, value, pure=False)

    def call_each(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a quick function on each usable worker, whatever it is doing. Those that fail or stand still are left alone."""
        with contextlib.suppress(Exception):  # the workers may be lost, or the scheduler
            workers = list(self._look())
            self._client.run(function, *arguments, workers=workers, on_error="ignore", callback_timeout=CONNECT_S)

    def close(self, error: Exception) -> None:
        """Ends all calls by an exception, which further ones raise."""
        self._end_all(error)
        self._ended.put(None)

    def _give_out(self) -> None:
        with self._lock:
            while self._waiting and len(self._given) < CALLS_PER_THREAD * self.num_threads:
                call = self._waiting.popleft()
                if call.future.set_running_or_notify_cancel():
                    self._start(call)

    def _start(self, call: _Call) -> None:
        self._given.add(call)
        call.where = self._usable
        executor = self._client.get_executor(pure=False, retries=RETRIES, workers=sorted(call.where))
        call.given = given = executor.submit(call_here, *call.arguments)
        given.add_done_callback(lambda _: self._ended.put((call, given)))

    def _watch(self) -> None:
        """Ends futures, and looks at the workers. Dask's own threads must not wait for answers."""
        look_s = lost_s = 0.0  # when to look, and since when there is no worker
        while True:
            try:
                if (ended := self._ended.get(timeout=LOOK_S)) is None:
                    return
                self._settle(*ended)
            except Empty:
                pass
            now_s = time.monotonic()
            if (self._given or self._waiting) and now_s >= look_s:
                look_s = now_s + LOOK_S
                try:
                    lost_s = 0.0 if self._look() else lost_s or now_s
                    if lost_s and now_s - lost_s > self._wait_s:
                        raise self._none()
                    self._start_again()
                except UserError as lost:
                    self._end_all(lost)
            self._give_out()

    def _start_again(self) -> None:
        """Gives calls whose workers are all gone to others: Dask would wait for the same ones."""
        for call in [call for call in self._given if self._usable and not call.where & self._usable]:
            call.num_losses += 1
            if call.num_losses <= RETRIES:
                self._start(call)
            else:
                death = WorkerDied(f"{call.num_losses} times all Dask workers were lost with the same work")
                self._end_all(death, {call}.__contains__)

    def _settle(self, call: _Call, given: Future[Any]) -> None:
        """Ends a call's future by what Dask says."""
        from distributed import KilledWorker

        with self._lock:
            if call not in self._given or call.given is not given:
                return
            self._given.remove(call)
        address, result, error = "", None, None
        try:
            address, result, error = given.result()
        except CancelledError:  # not by us
            error = self._lost()
            self._end_all(error)
        except KilledWorker as killed:
            error = WorkerDied(f"{killed.allowed_failures + 1} Dask workers died with the same work")
        except Exception as failed:  # noqa: BLE001 - whoever waits gets it
            error = failed
        if isinstance(error, DeviceFailure):
            with contextlib.suppress(Exception):  # it may be lost, or have no nanny
                self._client.restart_workers([address], timeout=CONNECT_S, raise_for_error=False)
            error = DeviceFailure(f"Dask worker {address}: {error}", error.failures)
        if error:
            call.future.set_exception(error)
        else:
            call.future.set_result(result)

    def _end_all(self, error: Exception, chosen: Callable[[_Call], bool] | None = None) -> None:
        """Ends the chosen calls by an error. Without `chosen` they are all calls, and further ones raise it."""
        with self._lock:
            if chosen is None:
                self._error, chosen = self._error or error, lambda _: True
            given = {call for call in self._given if chosen(call)}
            self._given -= given
            for call in filter(chosen, [*self._waiting]):
                self._waiting.remove(call)
                if not isinstance(error, CancelledError) or not call.future.cancel():
                    call.future.set_exception(error)
        for call in given:
            assert call.given
            call.given.cancel()
            call.future.set_exception(error)

    def _look(self) -> dict[str, int]:
        """The usable workers at this moment. Warns of others that are new."""
        workers = self._ask(self._client.scheduler_info, n_workers=-1)["workers"]
        if set(workers) - set(self._known):
            for address, told in self._ask(self._client.get_versions, packages=list(PACKAGES))["workers"].items():
                if address not in self._known:
                    has = {**told["packages"], "machine": told["host"]["machine"]}
                    if why := self._known.setdefault(address, _difference(has, self._wanted)):
                        echo(f"evo: Dask worker {address} is not used: {why}", err=True)
        usable = {address: worker["nthreads"] for address, worker in workers.items() if not self._known.get(address, "unknown")}
        self._usable, self.num_threads = frozenset(usable), sum(usable.values())
        return usable

    def _ask(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Calls something that asks the scheduler."""
        from distributed import CancelledError as Cancelled

        if self._client.status != "running":
            raise self._lost()
        try:
            return function(**arguments)
        except (OSError, TimeoutError, Cancelled) as error:
            raise self._lost() from error

    def _lost(self) -> UserError:
        return UserError(f"the connection to the Dask scheduler is lost; {GOES_ON}", self.scheduler)

    def _none(self) -> UserError:
        for address, why in self._known.items():
            if why:
                return UserError(f"no Dask worker can be used: {address}: {why}", self.scheduler)
        start = "" if self.scheduler == LOCAL else f"; start some with: dask worker {self.scheduler}"
        lost = "all Dask workers are lost, and there was none" if self._known else "no Dask worker"
        return UserError(f"{lost} for {self._wait_s:g} s{start}", self.scheduler)


def _difference(has: Mapping[str, str | None], wanted: Mapping[str, str]) -> str | None:
    """The first fact of a worker that must be otherwise, in words; None: there is none."""
    for name, needs in wanted.items():
        if (found := has.get(name)) != needs:
            return f"it has {f'{name} {found}' if found else f'no {name}'}, this process has {needs}"
    return None
