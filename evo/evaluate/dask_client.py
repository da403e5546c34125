"""A connection to a Dask scheduler: calls spread over those of its workers that have this evo.

Owns the choice of workers, and what happens when they or the scheduler are lost. A worker with another version of evo or NumPy,
or on another kind of machine, gets no work and is named once. Knows nothing of what the calls do. Importing it loads no Dask.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import platform
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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

INSTALL = "pip install 'evo-ptx[cluster]'"
WAIT_S = 60.0
CONNECT_S = 10.0
LOOK_S = 2.0  # between two looks at the workers
CALLS_PER_THREAD = 2  # that a worker is given for each of its threads: one that runs and one that waits
RETRIES = 2  # of a call whose workers or result are lost, or that fails outside of its function
GOES_ON = "a run goes on from its last checkpoint"
PACKAGES = (DISTRIBUTION, "numpy")  # that decide results

_clients: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()  # by address: given by users


def call_here(function: Callable[..., Any], *arguments: Any) -> tuple[str, Any, Exception | None]:
    """Calls the function on a worker. Returns the worker's address, and a result or an exception: as a value, since Dask cuts
    long exceptions.
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
def connect(scheduler: str, tls: TlsFiles | None = None, wait_s: float = WAIT_S) -> Iterator[Workers]:
    """A connection to a scheduler, by the client that `address_of` knows if there is one.

    Args:
        scheduler: its address.
        tls: for addresses that begin with `tls://`; None: what Dask's own config says.
        wait_s: longest wait for a first worker, or for another one after all were lost.

    Raises:
        UserError: Dask is not installed, or there is no connection.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UserError(f"Dask is missing: {INSTALL}")
    from distributed import Client, Security

    with ExitStack() as opened:
        # One line of evo's says what goes wrong. Dask sets the level of each of these itself.
        for name in ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio"):
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
                client = opened.enter_context(Client(scheduler, timeout=CONNECT_S, security=security, set_as_default=False))
            except (OSError, ValueError, TypeError) as error:  # refused, timed out, not an address; or a TLS file is wrong
                why = one_line(error) or type(error).__name__
                raise UserError(f"no connection to the Dask scheduler: {why}", scheduler) from error
        yield Workers(client, scheduler, wait_s)


@dataclass(eq=False)
class _Call:
    """A call. where: the workers that may make it; num_losses: of all of them, or of its result."""

    number: int
    arguments: tuple[Any, ...]
    where: frozenset[str] = frozenset()
    num_losses: int = 0


class Workers:
    """The workers of a scheduler that may be used here."""

    def __init__(self, client: Client, scheduler: str, wait_s: float):
        self.scheduler = scheduler
        self._client = client
        self._wait_s = wait_s
        self._wanted = {**{name: version(name) for name in PACKAGES}, "machine": platform.machine()}  # on a worker as here
        self._known: dict[str, str | None] = {}  # address -> why it must not be used

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

    def map(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], on_wait: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Future[Any]]]:
        """Calls a function of an importable module once for each tuple of arguments. Yields the index of the tuple and the ended
        future as they come.

        A call whose workers are lost is made again by others, so it may be made several times. The future raises what the
        function does, or `WorkerDied` if one worker after the other is lost with it. A worker whose device fails is replaced.

        Args:
            on_wait: called again and again while no result comes; may raise.

        Raises:
            UserError: the scheduler is lost, or all workers for too long.
        """
        usable = self.usable()
        waiting = deque(map(_Call, range(len(arguments)), arguments))
        pending: dict[Future[Any], _Call] = {}
        ended: SimpleQueue[Future[Any]] = SimpleQueue()
        look_s, lost_s = time.monotonic() + LOOK_S, 0.0  # when to look, and since when there is no worker

        def give(call: _Call) -> None:
            call.where = frozenset(usable)
            executor = self._client.get_executor(pure=False, workers=sorted(call.where))
            future = executor.submit(call_here, function, *call.arguments)
            pending[future] = call
            future.add_done_callback(ended.put)

        try:
            while waiting or pending:
                while waiting and len(pending) < CALLS_PER_THREAD * sum(usable.values()):
                    give(waiting.popleft())
                try:
                    future = ended.get(timeout=WAKE_S)
                except Empty:
                    on_wait()
                else:
                    if call := pending.pop(future, None):
                        was_made, settled = self._settled(future)
                        if was_made or call.num_losses == RETRIES:
                            yield call.number, settled
                        else:
                            call.num_losses += 1
                            give(call)
                if (now_s := time.monotonic()) < look_s:
                    continue
                look_s, usable = now_s + LOOK_S, self._look()
                lost_s = 0.0 if usable else lost_s or now_s
                if lost_s and now_s - lost_s > self._wait_s:
                    raise self._none()
                # Dask would wait for the same workers.
                for future in [future for future, call in pending.items() if usable and not call.where & usable.keys()]:
                    call = pending.pop(future)
                    future.cancel()
                    call.num_losses += 1
                    if call.num_losses <= RETRIES:
                        give(call)
                    else:
                        reason = f"{call.num_losses} times all Dask workers were lost with the same work"
                        yield call.number, _ended(WorkerDied(reason))
        finally:
            for future in pending:
                future.cancel()

    def keep(self, value: bytes) -> Any:
        """Leaves bytes with the scheduler. As an argument of a call, they reach each worker once."""
        return self._client.submit(bytes, value, pure=False)

    def call_each(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a quick function on each usable worker, whatever it is doing. Ignores workers that fail or hang."""
        with contextlib.suppress(Exception):  # the workers may be lost, or the scheduler
            workers = list(self._look())
            self._client.run(function, *arguments, workers=workers, on_error="ignore", callback_timeout=CONNECT_S)

    def _settled(self, future: Future[Any]) -> tuple[bool, Future[Any]]:
        """An ended future, by Dask's answer, and whether another try is in vain: the function ended, or killed its workers.

        All else may be a loss: where a result leaves with its worker before Dask has read it, Dask takes the result for the parts
        of an exception, and fails.

        Raises:
            UserError: the scheduler is lost.
        """
        from distributed import KilledWorker

        address, result, error, was_made = "", None, None, True
        try:
            address, result, error = future.result()
        except CancelledError:  # not by us
            raise self._lost() from None
        except KilledWorker as killed:
            error = WorkerDied(f"{killed.allowed_failures + 1} Dask workers died with the same work")
        except Exception as failed:  # noqa: BLE001 - whoever waits gets it
            error, was_made = failed, False
        if isinstance(error, DeviceFailure):
            with contextlib.suppress(Exception):  # it may be lost, or have no nanny
                self._client.restart_workers([address], timeout=CONNECT_S, raise_for_error=False)
            error = DeviceFailure(f"Dask worker {address}: {error}")
        return was_made, _ended(error, result)

    def _look(self) -> dict[str, int]:
        """The usable workers at this moment. Warns of others that are new."""
        workers = self._ask(self._client.scheduler_info, n_workers=-1)["workers"]
        if set(workers) - set(self._known):
            for address, versions in self._ask(self._client.get_versions, packages=list(PACKAGES))["workers"].items():
                if address not in self._known:
                    has = {**versions["packages"], "machine": versions["host"]["machine"]}
                    if why := self._known.setdefault(address, _difference(has, self._wanted)):
                        echo(f"evo: Dask worker {address} is not used: {why}", err=True)
        return {address: worker["nthreads"] for address, worker in workers.items() if not self._known.get(address, "unknown")}

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
        lost = "all Dask workers are lost, and there was none" if self._known else "no Dask worker"
        return UserError(f"{lost} for {self._wait_s:g} s; start some with: dask worker {self.scheduler}", self.scheduler)


def _ended(error: Exception | None, result: Any = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


def _difference(has: Mapping[str, str | None], wanted: Mapping[str, str]) -> str | None:
    """The first fact of a worker that must be otherwise, in words; None: there is none."""
    for name, needs in wanted.items():
        if (actual := has.get(name)) != needs:
            return f"it has {f'{name} {actual}' if actual else f'no {name}'}, this process has {needs}"
    return None
