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
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from evo.about import DISTRIBUTION
from evo.errors import UserError
from evo.escape import echo
from evo.evaluate.options import TlsFiles
from evo.workers import WAKE_S

if TYPE_CHECKING:
    from distributed import Client, Future

LOCAL = "local"
INSTALL = "pip install 'evo-ptx[cluster]'"
WAIT_S = 60.0
CONNECT_S = 10.0
LOOK_S = 2.0  # between two looks at the workers while no result comes
GOES_ON = "a run goes on from its last checkpoint"
PACKAGES = (DISTRIBUTION, "numpy")  # that decide results


class WorkersDied(Exception):
    """The workers that made a call died, one after the other."""


class WrongWorker(Exception):
    """A call has come to a worker that must not make it."""


Facts = tuple[tuple[str, str | None], ...]


def facts_of(packages: dict[str, str | None], machine: str) -> Facts:
    """What must be the same on a worker and here."""
    return (*((name, packages.get(name)) for name in PACKAGES), ("machine", machine))


def facts() -> Facts:
    """Those of this process."""
    return facts_of({name: version(name) for name in PACKAGES}, platform.machine())


def checked_call(wanted: Facts, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the function on a worker, if it is one that may do it."""
    if facts() != wanted:
        raise WrongWorker(_difference(facts(), wanted))
    return function(*arguments)


@contextmanager
def connect(
    scheduler: str, tls: TlsFiles | None = None, wait_s: float = WAIT_S, num_local: int | None = None
) -> Iterator[Workers]:
    """A connection to a scheduler.

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
    import dask
    from distributed import Client, LocalCluster, Security

    with ExitStack() as opened:
        # What goes wrong is told in one line. Dask's own lines would hide it.
        for name in ("distributed", "distributed.client", "tornado", "asyncio"):
            opened.enter_context(_silent(logging.getLogger(name)))
        address: Any = scheduler
        if scheduler.startswith("tls://") and not tls and not Security().get_connection_args("client")["ssl_context"]:
            raise UserError(
                "TLS needs files: give evaluation.cluster.tls={ca: FILE, cert: FILE, key: FILE}, or Dask's own "
                "config distributed.comm.tls",
                scheduler,
            )
        try:
            if scheduler == LOCAL:
                own = {
                    "distributed.worker.profile.enabled": False,  # nobody reads it
                    # Deaths after which a call is tried again. Dask does not replace a worker that dies as soon as it is back, so
                    # more could wait in vain.
                    "distributed.scheduler.allowed-failures": 1,
                }
                opened.enter_context(dask.config.set(own))
                address = opened.enter_context(
                    LocalCluster(
                        n_workers=num_local or len(os.sched_getaffinity(0)),
                        threads_per_worker=1,
                        memory_limit=0,
                        dashboard_address=None,
                        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # of its web server, which is always there
                        silence_logs=logging.CRITICAL,
                        preload=["evo.evaluate.dask_worker"],
                    )
                )
            security = (
                Security(tls_ca_file=tls.ca, tls_client_cert=tls.cert, tls_client_key=tls.key, require_encryption=True)
                if tls
                else None
            )
            client = opened.enter_context(Client(address, timeout=CONNECT_S, security=security, set_as_default=False))
        except (OSError, ValueError, TypeError) as error:  # refused, timed out, not an address; or a TLS file is wrong
            why = " ".join(str(error).split()) or type(error).__name__
            raise UserError(f"no connection to the Dask scheduler: {why}", scheduler) from error
        yield Workers(client, scheduler, wait_s)


@dataclass(frozen=True)
class _Call:
    """A call that was given out. number: of its arguments. where: the workers that may make it; None: all."""

    number: int
    where: list[str] | None


class Workers:
    """The workers of a scheduler that may be used here. One thread uses it; `keep` and `num_threads` are for all.

    Attributes:
        num_threads: of those that were usable at the last look.
    """

    def __init__(self, client: Client, scheduler: str, wait_s: float):
        self.scheduler = scheduler
        self.num_threads = 0
        self._client = client
        self._wait_s = wait_s
        self._wanted = facts()
        self._known: dict[str, str | None] = {}  # address -> why it must not be used

    def usable(self) -> dict[str, int]:
        """The usable workers with their number of threads. Waits for a first one.

        Raises:
            UserError: none comes, or the scheduler is lost.
        """
        end_s = time.monotonic() + self._wait_s
        while not (found := self._look()):
            if time.monotonic() > end_s:
                raise UserError(self._why_none())
            time.sleep(WAKE_S)
        self.num_threads = sum(found.values())
        return found

    def keep(self, value: bytes) -> Future[Any]:
        """Leaves bytes with the scheduler. As an argument of `map`, they reach each worker once."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self._client.submit(bytes, value, pure=False)

    def map(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], on_wait: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[int, Any]]:
        """Calls the function on workers, once for each tuple of arguments. Yields the tuple's index and the result as they come.

        A call whose worker is lost is made again by another one, so it may be made several times. If one after the other is lost
        with it, its result is `WorkersDied`.

        Args:
            function: of an importable module.
            on_wait: called again and again while no result comes; may raise.

        Raises:
            UserError: a call raised one; or the scheduler, or all workers for too long, are lost.
        """
        all_at_once = iter([arguments] if arguments else [])
        return self.serve(function, lambda _: next(all_at_once, None), SimpleQueue(), on_wait)

    def serve(
        self,
        function: Callable[..., Any],
        take: Callable[[int], Sequence[tuple[Any, ...]] | None],
        done: SimpleQueue[Any],
        on_wait: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[int, Any]]:
        """As `map`, with arguments that come while calls are under way.

        Args:
            take: given the number of calls under way, gives the arguments of further ones; None: all have been given.
            done: an item in it makes `map` call `take` again at once.
        """
        arguments: dict[int, tuple[Any, ...]] = {}
        num_taken = 0
        waiting: list[int] = []
        active: dict[Future[Any], _Call] = {}
        where: list[str] | None = None
        look_s = 0.0
        try:
            while True:
                more = take(len(active) + len(waiting))
                if not (more or waiting or active):
                    if more is None:
                        return
                    done.get()
                    continue
                if not active and not waiting:
                    where = self._restriction(self.usable())
                    look_s = time.monotonic() + LOOK_S
                fresh = dict(enumerate(more or (), num_taken))
                num_taken += len(fresh)
                arguments |= fresh
                waiting += fresh
                if waiting:
                    active |= self._submit(function, arguments, waiting, where, done)
                    waiting = []
                if not (ended := [future for future in _take_all(done) if future in active]):
                    on_wait()
                    if time.monotonic() >= look_s:
                        usable = self.usable()
                        where = self._restriction(usable)
                        look_s = time.monotonic() + LOOK_S
                        # They may wait for workers that are gone.
                        stale = [future for future, call in active.items() if call.where not in (None, sorted(usable))]
                        self._cancel(stale)
                        waiting = sorted(active.pop(future).number for future in stale)
                    continue
                look_s = time.monotonic() + LOOK_S
                lost = {future for future in ended if future.status == "lost"}  # their worker has left with the results
                self._cancel(lost)
                waiting = sorted(active.pop(future).number for future in lost)
                calls = {future: active.pop(future) for future in ended if future not in lost}
                for call, result in zip(calls.values(), self._results(calls), strict=True):
                    if isinstance(result, WrongWorker):
                        self._known = {**self._refused()}  # whoever it was has changed since it was looked at
                        where = sorted(self.usable())
                        waiting.append(call.number)
                    else:
                        del arguments[call.number]
                        yield call.number, result
        finally:
            self._cancel(active)

    def call_each(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a quick function on each usable worker, whatever it is doing. Those that fail or stand still are left alone."""
        with contextlib.suppress(Exception):  # the workers may be lost, or the scheduler
            workers = list(self._look())
            self._client.run(function, *arguments, workers=workers, on_error="ignore", callback_timeout=CONNECT_S)

    def restart(self, address: str) -> None:
        """Replaces a worker's process, if it has a nanny that can."""
        with contextlib.suppress(Exception):  # it may be lost, or have no nanny
            self._client.restart_workers([address], timeout=CONNECT_S, raise_for_error=False)

    def _submit(
        self,
        function: Callable[..., Any],
        arguments: Mapping[int, tuple[Any, ...]],
        numbers: Sequence[int],
        where: list[str] | None,
        done: SimpleQueue[Future[Any]],
    ) -> dict[Future[Any], _Call]:
        """Starts the calls with these numbers. Futures that end are put into `done`."""
        columns = zip(*(arguments[number] for number in numbers), strict=True)
        same = ([value] * len(numbers) for value in (self._wanted, function))
        futures = self._client.map(checked_call, *same, *map(list, columns), pure=False, workers=where)
        for future in futures:
            future.add_done_callback(done.put)
        return {future: _Call(number, where) for future, number in zip(futures, numbers, strict=True)}

    def _results(self, calls: dict[Future[Any], _Call]) -> list[Any]:
        """Results of calls that have ended; `WorkersDied` or `WrongWorker` in place of one that has none."""
        from distributed import KilledWorker

        errors: dict[Future[Any], Exception] = {}
        for future, call in calls.items():
            if future.status == "cancelled":  # not by us
                raise self._lost()
            if future.status == "error":
                error = self._ask(future.exception)
                if isinstance(error, WrongWorker) or self._may_be_unreadable(error, call):
                    errors[future] = WrongWorker()
                elif isinstance(error, KilledWorker):
                    errors[future] = WorkersDied(f"{error.allowed_failures + 1} Dask workers died with the same work")
                else:
                    raise error
        values = iter(self._ask(self._client.gather, futures=[future for future in calls if future not in errors]))
        return [errors[future] if future in errors else next(values) for future in calls]

    def _may_be_unreadable(self, error: BaseException, call: _Call) -> bool:
        """Whether a call may have failed, or its worker died, because it lacks this evo: it cannot even read the call then."""
        if isinstance(error, UserError) or call.where is not None:
            return False
        self._look()
        return bool(self._refused())

    def _refused(self) -> dict[str, str]:
        """The workers that must not be used, and why."""
        return {address: why for address, why in self._known.items() if why}

    def _look(self) -> dict[str, int]:
        """The usable workers at this moment. Warns of others that are new."""
        workers = self._ask(self._client.scheduler_info, n_workers=-1)["workers"]
        if set(workers) - set(self._known):
            for address, told in self._ask(self._client.get_versions, packages=list(PACKAGES))["workers"].items():
                if address not in self._known:
                    found = facts_of(told["packages"], told["host"]["machine"])
                    self._known[address] = None if found == self._wanted else _difference(found, self._wanted)
                    if why := self._known[address]:
                        echo(f"evo: Dask worker {address} is not used: {why}", err=True)
        return {address: worker["nthreads"] for address, worker in workers.items() if not self._known.get(address, "unknown")}

    def _restriction(self, usable: Iterable[str]) -> list[str] | None:
        """Where calls may be made: None, anywhere, unless there are workers that must not be used."""
        present = self._ask(self._client.scheduler_info, n_workers=-1)["workers"]
        return None if set(present) <= set(usable) else sorted(usable)

    def _cancel(self, futures: Iterable[Future[Any]]) -> None:
        with contextlib.suppress(OSError):
            self._client.cancel(list(futures), force=True)

    def _ask(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Calls something that asks the scheduler."""
        from distributed import CancelledError

        if self._client.status != "running":
            raise self._lost()
        try:
            return function(**arguments)
        except (OSError, TimeoutError, CancelledError) as error:
            raise self._lost() from error

    def _lost(self) -> UserError:
        return UserError(f"the connection to the Dask scheduler is lost; {GOES_ON}", self.scheduler)

    def _why_none(self) -> str:
        for address, why in self._refused().items():
            return f"{self.scheduler}: no Dask worker can be used: {address}: {why}"
        start = "" if self.scheduler == LOCAL else f"; start some with: dask worker {self.scheduler}"
        lost = "all Dask workers are lost, and there was none" if self._known else "no Dask worker"
        return f"{self.scheduler}: {lost} for {self._wait_s:g} s{start}"


def _take_all(queue: SimpleQueue[Any]) -> Iterator[Any]:
    """What is in a queue; waits a little for a first one."""
    try:
        yield queue.get(timeout=WAKE_S)
        while True:
            yield queue.get_nowait()
    except Empty:
        return


def _difference(found: Facts, wanted: Facts) -> str:
    """What a worker has that must be otherwise, in words."""
    for (name, has), (_, needs) in zip(found, wanted, strict=True):
        if has != needs:
            return f"it has {'no ' + name if has is None else f'{name} {has}'}, this process has {needs}"
    return "it has changed"


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
