"""The run's side of the farm: an executor whose requests are fulfilled by workers that connect, and by processes of its own.

Owns the thread that serves the socket, who gets which request, and the effect of each message. A request that fails on a worker
has failed only if it fails on this machine too. Knows nothing of packs.
"""

import atexit
import itertools
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from evo.compile.farm import protocol
from evo.compile.farm.keys import RunKeys, check_address, write_server_file
from evo.compile.farm.protocol import Message
from evo.compile.farm.sockets import Router
from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool
from evo.compile.request import Compiled, CompileExecutor, CompileRequest, Outcome, compile_request
from evo.errors import UserError

HEARTBEAT_S = 1.0
NETWORK_S = 60.0  # for the network, beyond the time limits of two requests: one under way and one that waits
TICKS_PER_HEARTBEAT = 4  # how often time limits are checked
MESSAGES_AT_ONCE = 64  # before time limits are checked and requests handed out
# A request is compiled here when this many workers were lost while they held it: it may be what ends them. If a tenth of all
# workers vanishes each second, chance alone does that to one request in millions.
MAX_LOSSES = 8
ALONE_S = 3.0  # requests wait this long for the first worker before a line says so
NO_LONGER = "its key is not, or no longer, in the workers/ of this run's keys"
_HERE = b"this machine"
_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(eq=False)
class _Job:
    """A request in the farm, and the future that waits for it. losses: workers that were lost with it. lease: the worker that
    holds it, and its number there. here: the call that fulfils it on this machine.
    """

    request: CompileRequest
    future: Future[Outcome] = field(default_factory=Future)
    losses: int = 0
    lease: tuple[bytes, int] | None = None
    here: Future[Outcome] | None = None


@dataclass(eq=False)
class _Worker:
    """A worker. name: its machine's. slots: requests that it fulfils at once. heard_s: when it last said something.
    key: its public one. jobs: by number, with the time since when it holds each.
    """

    name: str
    slots: int
    heard_s: float = 0.0
    key: str | None = None
    jobs: dict[int, tuple[_Job, float]] = field(default_factory=dict)


class CompileFarm(CompileExecutor):
    """An executor of concurrent.futures whose compile requests go to the workers that connect, and to processes of its own.

    Futures end as those of `CompilePool`. Its own processes make other calls than of `compile_request`.

    Args:
        listen: where workers connect, such as `tcp://0.0.0.0:5711`. Port 0 takes any that is free; see `address`.
        keys: folder of the run's keys; None: workers are not authenticated, which only an address of this machine allows.
        num_local: processes of its own; None: one for each core that this process may use; 0: none.
        time_limit_s, heartbeat_s: for one request, and between two signs of life of a worker.
        server_file: where the address is written for workers.

    Raises UserError: the address is refused or in use, the keys cannot be used, or the file not be written.
    """

    def __init__(
        self,
        listen: str,
        keys: Path | None = None,
        num_local: int | None = None,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        heartbeat_s: float = HEARTBEAT_S,
        server_file: Path | None = None,
    ):
        check_address(listen, "evaluation.farm.listen", has_keys=keys is not None)
        self.fills_cache = keys is not None  # otherwise the cubins' origin is unknown
        self._heartbeat_s, self._time_limit_s = float(heartbeat_s), float(time_limit_s)
        # A worker is lost after a silence, and if it holds a request for longer than any can take.
        self._lease_s, self._longest_s = protocol.HEARTBEATS_OF_LEASE * heartbeat_s, 2 * time_limit_s + NETWORK_S
        self._workers: dict[bytes, _Worker] = {}  # by peer
        self._waiting: deque[_Job] = deque()
        self._numbers = itertools.count(1)
        self._router = Router(listen, RunKeys(keys) if keys else None)
        self.address = self._router.address
        try:
            if server_file:
                write_server_file(server_file, self.address)
            self._pool = CompilePool(num_local, time_limit_s) if num_local != 0 else None
        except UserError:
            self._router.close()
            raise
        if self._pool:
            self._workers[_HERE] = _Worker("this machine", self._pool.num_workers)
        # Stands still while this process does: then no worker is to blame for its silence.
        self._now_s, self._looked_s = 0.0, time.monotonic()
        self._num_lost, self._alone_since_s, self._has_disagreed = 0, 0.0, False
        self._commands: deque[Callable[[], None]] = deque()
        self._unfinished: set[Future[Outcome]] = set()
        # Whoever submits finds the farm closed, or is among the unfinished. A signal's handler may close it at any time.
        self._lock = threading.RLock()
        self._is_closed = self._is_given_up = False
        self._thread = threading.Thread(target=self._serve, name="compile-farm", daemon=True)
        self._thread.start()
        atexit.register(self.shutdown, cancel_futures=True)

    @property
    def num_workers(self) -> int:
        """Requests that the farm fulfils at once, now. At least one: a worker may be about to connect."""
        return max(1, sum(worker.slots for worker in list(self._workers.values())))

    def status(self) -> dict[str, int]:
        """Workers that are connected, and workers lost so far."""
        return {"workers": len(self._workers) - (_HERE in self._workers), "lost": self._num_lost}

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a worker fulfil a request, or a process of this machine make another call. Raises RuntimeError: it is closed."""
        if fn is not compile_request:
            if not self._pool or _HERE not in self._workers:
                raise ValueError("a farm without processes of its own takes compile requests only")
            return self._pool.submit(fn, *args, **kwargs)
        job = _Job(cast(CompileRequest, args[0]))
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the farm is closed")
            self._unfinished.add(job.future)
        self._waiting.append(job)
        self._router.wake()
        job.future.add_done_callback(lambda _: self._note_end(job))
        return cast(Future[_T], job.future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes leave of the workers; unfinished requests are fulfilled before, or cancelled."""
        with self._lock:
            self._is_closed = True
            self._is_given_up |= cancel_futures
        for future in self._unfinished.copy() if cancel_futures else ():
            future.cancel()
        self._router.wake()
        if wait:
            self._thread.join()
            atexit.unregister(self.shutdown)

    def _command(self, command: Callable[[], None]) -> None:
        """Has the farm's thread call this."""
        self._commands.append(command)
        self._router.wake()

    def _note_end(self, job: _Job) -> None:
        if job.future.cancelled():
            job.future.set_running_or_notify_cancel()  # for those who wait in concurrent.futures.wait
        self._unfinished.discard(job.future)
        self._command(lambda: self._drop(job))

    def _serve(self) -> None:  # and all below: in the farm's thread
        tick_s, next_tick_s = self._heartbeat_s / TICKS_PER_HEARTBEAT, 0.0
        try:
            while not self._is_closed or self._unfinished:
                messages = [*self._router.receive(tick_s, MESSAGES_AT_ONCE)]
                looked_s, self._looked_s = self._looked_s, time.monotonic()
                self._now_s += min(self._looked_s - looked_s, self._heartbeat_s)
                while self._commands:
                    self._commands.popleft()()
                for peer, frames, descriptor, key in messages:
                    try:
                        self._handle(peer, protocol.decode(frames), descriptor, key)
                    except protocol.ProtocolError as error:
                        self._refuse(peer, str(error))
                if self._now_s >= next_tick_s:
                    next_tick_s = self._now_s + tick_s
                    self._look_after()
                for peer, number, job in self._assign():
                    if peer == _HERE:
                        self._compile_here(job)
                    else:
                        self._send(peer, ("request", number, *vars(job.request).values()))
            for peer in self._workers.keys() - {_HERE}:
                self._router.send(("bye",), peer)
        except BaseException as error:
            with self._lock:
                self._is_closed = True
            for future in self._unfinished.copy():  # they would never end
                _end(future, error)
            raise
        finally:
            self._router.close()
            if self._pool:
                self._pool.shutdown(cancel_futures=self._is_given_up)

    def _assign(self) -> Iterator[tuple[bytes, int, _Job]]:
        """Gives requests to the least busy workers, as far as both go. Each may hold one more than it fulfils at once."""
        while self._waiting:
            free = [
                (len(worker.jobs) / worker.slots, peer)
                for peer, worker in self._workers.items()
                if len(worker.jobs) <= worker.slots
            ]
            if not free:
                return
            job, (_, peer), number = self._waiting.popleft(), min(free), next(self._numbers)
            if not job.future.done():  # it may have been cancelled
                job.lease = peer, number
                self._workers[peer].jobs[number] = job, self._now_s
                yield peer, number, job

    def _take_from(self, peer: bytes, number: int) -> _Job | None:
        """Takes a request from a worker. None: this worker does not hold it, or no longer does."""
        worker = self._workers.get(peer)
        job, _ = worker.jobs.pop(number, (None, 0.0)) if worker else (None, 0.0)
        if job:
            job.lease = None
        return job

    def _drop(self, job: _Job) -> None:
        """Ends the work for a cancelled request."""
        if job.here:
            job.here.cancel()
        if job.lease:
            peer, number = job.lease
            self._take_from(peer, number)
            if peer != _HERE:
                self._send(peer, ("cancel", number))

    def _handle(self, peer: bytes, message: Message, descriptor: int, key: str | None) -> None:
        worker = self._workers.get(peer)
        if worker:
            worker.heard_s = self._now_s
        match message:
            case "hello", dict(versions), int(slots), str(name) if 0 < slots <= protocol.MAX_SLOTS:
                if worker:  # it has lost its requests
                    self._forget(peer, is_loss=False)
                name = protocol.short_text(name)
                reason = protocol.first_difference(versions) if self._router.may_work(key) else NO_LONGER
                if reason:
                    self._router.refuse(name, reason, peer)
                elif self._router.send(("welcome", self._heartbeat_s, self._time_limit_s), peer):  # otherwise it says hello again
                    self._router.admit(descriptor)
                    self._workers[peer] = _Worker(name, slots, self._now_s, key)
            case "hello", *_:
                raise protocol.ProtocolError("the worker is of another version: install one version of evo on both machines")
            case _ if worker is None:
                self._router.send(("bye",), peer)
            case ("beat",):
                self._send(peer, message)
            case ("bye",):
                self._forget(peer, is_loss=False)
            case "answer", int(number), str(failure), float(compiler_s), float(emission_s), bytes(cubin):
                job = self._take_from(peer, number)
                if job and failure:
                    self._compile_here(job, protocol.short_text(failure))
                elif job:  # otherwise it comes too late
                    _end(job.future, Compiled(cubin, compiler_s, emission_s))
            case _:
                raise protocol.ProtocolError("wrong kind or fields of a message")

    def _compile_here(self, job: _Job, reason: str = "") -> None:
        """Fulfils a request on this machine, which decides. reason: why it failed elsewhere."""
        self._pool = self._pool or CompilePool(1, self._time_limit_s)
        job.here = self._pool.submit(compile_request, job.request)
        job.here.add_done_callback(lambda done: self._command(lambda: self._take_verdict(job, reason, done)))

    def _take_verdict(self, job: _Job, reason: str, done: Future[Outcome]) -> None:
        if job.lease:
            self._take_from(*job.lease)
        if job.future.done() or done.cancelled():
            return
        outcome = done.exception() or done.result()
        if reason and isinstance(outcome, Compiled) and not self._has_disagreed:
            self._has_disagreed = True
            _log.warning("farm: workers failed at a program that compiles on this machine: %s", reason)
        _end(job.future, outcome)

    def _send(self, peer: bytes, message: Message) -> None:
        """Sends to a worker. It is lost if it cannot be reached, or does not read."""
        if not self._router.send(message, peer):
            self._forget(peer, is_loss=True)

    def _refuse(self, peer: bytes, reason: str) -> None:
        """Turns a peer away. Its requests go to others."""
        worker = self._workers.get(peer)
        if worker:
            self._forget(peer, is_loss=True)
        self._router.refuse(worker.name if worker else "an unknown machine", reason, peer)

    def _forget(self, peer: bytes, *, is_loss: bool) -> None:
        """Forgets a worker. Its requests go to others. is_loss: it did not take its leave."""
        self._num_lost += is_loss
        for job, _ in reversed(self._workers.pop(peer).jobs.values()):
            job.lease = None
            job.losses += is_loss
            if job.losses < MAX_LOSSES:
                self._waiting.appendleft(job)
            else:
                self._compile_here(job, f"{job.losses} workers were lost while they compiled it")

    def _look_after(self) -> None:
        """Gives up workers that are lost or may no longer work, and notices if there is none."""
        for peer, worker in [item for item in self._workers.items() if item[0] != _HERE]:
            _, since_s = next(iter(worker.jobs.values()), (None, self._now_s))
            if not self._router.may_work(worker.key):
                self._refuse(peer, NO_LONGER)
            elif self._now_s - worker.heard_s > self._lease_s or self._now_s - since_s > self._longest_s:
                self._forget(peer, is_loss=True)
        if self._workers or not self._waiting:
            self._alone_since_s = self._now_s
        elif self._now_s - self._alone_since_s > ALONE_S:
            self._alone_since_s = math.inf
            _log.warning("farm: no worker is there yet; start some with: evo worker --connect %s", self.address)


def _end(future: Future[Outcome], outcome: Outcome | BaseException) -> None:
    with suppress(InvalidStateError):  # it was cancelled
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
