"""The run's side of the farm: an executor whose requests are fulfilled by whichever workers connect, and by processes of its own.

Owns the socket, the thread that serves it, and the authentication of workers. `evo.compile.farm.schedule` decides who gets what,
`evo.compile.farm.protocol` what a message may be. Trusts nothing that comes in before it is checked. Knows nothing
of packs. Long, since all that touches the socket runs in one thread and stands here.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import errno
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import zmq

from evo.compile.farm import protocol
from evo.compile.farm.keys import RunKeys, check_address
from evo.compile.farm.protocol import Answer, Beat, Bye, Cancel, Hello, Message, Refused, Request, Welcome, Who
from evo.compile.farm.schedule import Job, Schedule
from evo.compile.pool import DEFAULT_TIME_LIMIT_S, CompilePool, WorkerDied
from evo.compile.request import Compiled, CompileFailure, CompileRequest, compile_request
from evo.errors import FailureKind, UserError
from evo.kernel.pointwise import kernel_name
from evo.kernel.template import ENTRY, POINTWISE

HEARTBEAT_S = 1.0
# Beyond the time limits of the request that a worker compiles and of the one that waits: for the network.
NETWORK_S = 60.0
# Messages of one worker that are held until they are read. Credits keep a worker that behaves far below.
MAX_MESSAGES = 256
MAX_WORKERS = 1 << 14
TICKS_PER_HEARTBEAT = 4  # how often time limits are checked
SILENT_HEARTBEATS = 1.25  # after such a silence it is tried whether a worker can still be reached
# Messages that are taken before time limits are checked and requests handed out.
MESSAGES_AT_ONCE = 64
LINGER_MS = 500  # for the last messages when the farm closes
END_S = 5.0  # for the end of the farm's thread
MAX_REFUSALS = 100  # lines about peers that are not let in; then there is silence about them
ALONE_S = 3.0  # requests wait this long for the first worker before a line says so

_LOCAL = "this machine"
_ZAP = "inproc://zeromq.zap.01"
_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CompileFarm(Executor):
    """An executor of concurrent.futures whose compile requests go to the workers that connect, and to processes of its own.

    Other calls than of `compile_request` are made by its own processes. As with `CompilePool`, a future's exception is
    TimeoutError if a request exceeded the time limit, and WorkerDied if it ended the process that worked on it; `running()` is
    never true.

    Args:
        listen: where workers connect, such as `tcp://0.0.0.0:5711`. Port 0 takes any that is free; see `address`.
        keys: folder of the run's keys; None: workers are not authenticated, which only an address of this machine allows.
        num_local: processes of its own; None: one for each core that this process may use; 0: none.
        time_limit_s: for one request.
        heartbeat_s: what workers are asked for.

    Raises:
        UserError: the address is refused or in use, or the keys cannot be used.
    """

    def __init__(
        self,
        listen: str,
        keys: Path | None = None,
        num_local: int | None = None,
        time_limit_s: float = DEFAULT_TIME_LIMIT_S,
        heartbeat_s: float = HEARTBEAT_S,
    ):
        check_address(listen, "evaluation.farm.listen", has_keys=keys is not None)
        self._keys = RunKeys(keys) if keys else None
        self._welcome = Welcome(heartbeat_s, time_limit_s)
        lease_s = protocol.HEARTBEATS_OF_LEASE * heartbeat_s
        self._schedule: Schedule[_Call] = Schedule(lease_s, 2 * time_limit_s + NETWORK_S, heartbeat_s)
        self._context = zmq.Context()
        self._zap = self._context.socket(zmq.REP)
        self._router = self._context.socket(zmq.ROUTER)
        try:
            self._bind(listen)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            hint = "give the number of an address of this machine, or tcp://0.0.0.0:PORT for all"
            if error.errno == errno.EADDRINUSE:
                hint = "another run may do so; give this one another port, or no farm: --set evaluation.farm=null"
            reason = os.strerror(error.errno or 0)
            raise UserError(f"evaluation.farm.listen: cannot listen at {listen}: {reason}; {hint}") from error
        self.address: str = self._router.getsockopt_string(zmq.LAST_ENDPOINT)
        self._local = CompilePool(num_local, time_limit_s) if num_local != 0 else None
        if self._local:
            self._schedule.join(_LOCAL, _LOCAL, self._local.num_workers, time.monotonic(), is_local=True)
        self._shared: dict[Hashable, deque[bytes]] = {}  # digests of what each worker remembers
        self._num_refusals = 0
        self._next_tick_s = 0.0
        self._alone_since_s: float | None = None
        self._commands: deque[Callable[[], None]] = deque()
        # Guards the descriptor that wakes the farm's thread. A signal's handler may close the farm while this thread holds it.
        self._lock = threading.RLock()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._unfinished: set[Future[Any]] = set()
        self._unreachable: set[Hashable] = set()
        self._is_stopping = False
        self._has_ended = False
        self._thread = threading.Thread(target=self._serve, name="compile-farm", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    @property
    def num_workers(self) -> int:
        """Requests that the farm fulfils at once, now. At least one: a worker may be about to connect."""
        return max(1, self._schedule.num_slots)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Has a worker fulfil a request, or makes another call in a process of this machine.

        Raises:
            ValueError: another call, and there are no processes of this machine.
            RuntimeError: the farm is closed.
        """
        if not self._thread.is_alive():
            raise RuntimeError("the farm is closed")
        if fn is not compile_request:
            if self._local is None:
                raise ValueError("a farm without processes of its own takes compile requests only")
            return self._local.submit(fn, *args, **kwargs)
        (request,) = args
        assert isinstance(request, CompileRequest)
        call = _Call(request)
        self._unfinished.add(call.future)
        call.future.add_done_callback(self._unfinished.discard)
        call.future.add_done_callback(lambda _: self._command(lambda: self._end_call(call)))
        self._command(lambda: self._schedule.submit(call.job))
        return cast(Future[_T], call.future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes leave of the workers; requests that are unfinished are fulfilled before, or cancelled."""
        if cancel_futures:
            for future in self._unfinished.copy():
                future.cancel()
        elif wait:
            concurrent.futures.wait(self._unfinished.copy())
        if self._local:
            self._local.shutdown(wait, cancel_futures=cancel_futures)
        if wait or cancel_futures:
            self._end()
            atexit.unregister(self._end)

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        # After an exception, such as Ctrl-C, nobody waits for the results.
        self.shutdown(cancel_futures=exception_type is not None)

    def _bind(self, listen: str) -> None:
        router = self._router
        router.set(zmq.LINGER, LINGER_MS)
        router.set(zmq.ROUTER_MANDATORY, 1)  # a worker that is gone is an error, not silence
        router.set(zmq.MAXMSGSIZE, protocol.MAX_FRAME_BYTES)
        router.set(zmq.RCVHWM, MAX_MESSAGES)
        router.set(zmq.SNDHWM, MAX_MESSAGES)
        router.set(zmq.IPV6, listen.startswith("tcp://["))
        router.set(zmq.BACKLOG, 4096)
        # Connections of machines that lost power are closed.
        router.set(zmq.HEARTBEAT_IVL, 10_000)
        router.set(zmq.HEARTBEAT_TIMEOUT, 30_000)
        if self._keys:
            self._zap.bind(_ZAP)
            router.set(zmq.CURVE_SERVER, 1)
            router.set(zmq.CURVE_SECRETKEY, self._keys.secret)
        router.bind(listen)

    def _command(self, command: Callable[[], None]) -> None:
        """Has the farm's thread call this."""
        self._commands.append(command)
        with self._lock:
            if not self._has_ended:
                os.eventfd_write(self._wake, 1)

    def _end(self) -> None:
        self._command(self._stop)
        self._thread.join(END_S)
        with self._lock:
            if not self._has_ended and not self._thread.is_alive():
                self._has_ended = True
                os.close(self._wake)

    # ---- all below runs in the farm's thread

    def _stop(self) -> None:
        self._is_stopping = True
        for peer in self._shared:
            self._send(peer, Bye())

    def _serve(self) -> None:
        poller = zmq.Poller()
        for source in (self._router, self._zap, self._wake):
            poller.register(source, zmq.POLLIN)
        try:
            while not self._is_stopping:
                ready = dict(poller.poll(math.ceil(self._welcome.heartbeat_s * 1000 / TICKS_PER_HEARTBEAT)))
                if self._wake in ready:
                    os.eventfd_read(self._wake)
                    while self._commands:
                        self._commands.popleft()()
                if self._zap in ready:
                    self._authenticate()
                if self._router in ready:
                    self._receive()
                self._look_after()
        except BaseException as error:
            for future in self._unfinished.copy():  # nobody would ever answer
                _resolve(future, error)
            raise
        finally:
            self._context.destroy(linger=LINGER_MS)

    def _authenticate(self) -> None:
        """Answers one question of ZeroMQ's own protocol for this (RFC 27): may the owner of this public key connect?"""
        version, number, _, address, _, _, *credentials = self._zap.recv_multipart()
        assert self._keys, "asked only with CURVE"
        name, reason = None, "its key is not in the workers/ of this run's keys"
        try:
            name = self._keys.name_of(credentials[0])
        except UserError as error:
            reason = str(error)
        if name is None:
            self._say_refusal(address.decode(), reason)
        status = (b"200", b"OK") if name else (b"400", b"unknown key")
        self._zap.send_multipart([version, number, *status, (name or "").encode(), b""])

    def _receive(self) -> None:
        for _ in range(MESSAGES_AT_ONCE):
            try:
                peer, *frames = self._router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                self._handle(peer, protocol.decode(frames, protocol.FROM_WORKER))
            except protocol.ProtocolError as error:
                self._refuse(peer, str(error))

    def _handle(self, peer: bytes, message: Message) -> None:
        now_s = time.monotonic()
        if isinstance(message, Hello):
            self._take(peer, message, now_s)
        elif not self._schedule.heard(peer, now_s):
            self._send(peer, Who())
        elif isinstance(message, Beat):
            self._send(peer, Beat())
        elif isinstance(message, Bye):
            if message.reason:
                _log.warning("farm: the worker at %s failed: %s", self._schedule.name(peer), protocol.printable(message.reason))
            self._forget(peer, message.reason or None)
        elif isinstance(message, Answer):
            self._take_answer(peer, message)

    def _take(self, peer: bytes, hello: Hello, now_s: float) -> None:
        if peer in self._schedule:  # it has lost its requests
            self._forget(peer, None)
        reason = protocol.first_difference(hello.versions, protocol.versions())
        if self._schedule.num_workers >= MAX_WORKERS:
            reason = f"the run has {MAX_WORKERS} workers"
        if reason:
            self._refuse(peer, reason, hello.name)
        else:
            self._schedule.join(peer, hello.name, hello.slots, now_s)
            self._shared[peer] = deque(maxlen=protocol.MAX_SHARED)
            self._send(peer, self._welcome)

    def _take_answer(self, peer: bytes, answer: Answer) -> None:
        job = self._schedule.holds(peer, answer.lease)
        if job is None:
            return  # it comes too late, or for the second time
        problem = job.content.problem(answer) if not job.is_cancelled else None
        if problem:
            self._refuse(peer, f"a wrong answer: {problem}", self._schedule.name(peer))
            return
        self._schedule.answered(peer, answer.lease)
        self._finish(peer, job, _outcome(answer))

    def _finish(self, peer: Hashable, job: Job[_Call], outcome: Compiled | CompileFailure | BaseException) -> None:
        if job.is_cancelled or (not isinstance(outcome, Compiled) and not self._schedule.failed(job, peer)):
            return
        _resolve(job.content.future, outcome)

    def _refuse(self, peer: bytes, reason: str, name: str | None = None) -> None:
        """Turns a peer away. Its requests go to others."""
        if peer in self._schedule:
            name = self._schedule.name(peer)
            self._forget(peer, reason)
        self._say_refusal(name or "an unknown machine", reason)
        self._send(peer, Refused(reason[: protocol.MAX_TEXT]))

    def _say_refusal(self, name: str, reason: str) -> None:
        self._num_refusals += 1
        if self._num_refusals <= MAX_REFUSALS:
            more = "" if self._num_refusals < MAX_REFUSALS else "; no more is said about peers that are refused"
            _log.warning("farm: a worker at %s is refused: %s%s", name, protocol.printable(reason), more)

    def _forget(self, peer: Hashable, loss: str | None) -> None:
        """Forgets a worker. loss: why it was lost, None if it left."""
        self._shared.pop(peer)
        for job in self._schedule.leave(peer, is_loss=loss is not None):
            _resolve(job.content.future, WorkerDied(f"{job.losses} workers were lost while they compiled it"))

    def _look_after(self) -> None:
        """Gives up workers that are lost, and hands out what waits."""
        now_s = time.monotonic()
        if now_s >= self._next_tick_s:
            self._next_tick_s = now_s + self._welcome.heartbeat_s / TICKS_PER_HEARTBEAT
            for peer, reason in self._schedule.tick(now_s):
                _log.info("farm: the worker at %s %s", self._schedule.name(peer), reason)
                self._forget(peer, reason)
            for peer in self._schedule.silent(now_s, SILENT_HEARTBEATS * self._welcome.heartbeat_s):
                self._send(peer, Beat())  # fails if its connection is gone
        is_done = False
        while not is_done:
            for peer, number, job in self._schedule.assign(now_s):
                self._hand_out(peer, number, job)
            is_done = not self._unreachable
            for peer in self._unreachable & self._shared.keys():
                self._forget(peer, "its connection was lost")
            self._unreachable.clear()
        self._notice_that_it_is_alone(now_s)

    def _hand_out(self, peer: Hashable, number: int, job: Job[_Call]) -> None:
        call = job.content
        if self._local and peer == _LOCAL:
            call.local = self._local.submit(compile_request, call.request)
            call.local.add_done_callback(lambda done: self._command(lambda: self._take_local(number, done)))
            return
        known = self._shared[peer]
        if call.shared.digest not in known:
            self._send(peer, call.shared)
            known.append(call.shared.digest)
        request = call.request
        self._send(peer, Request(number, call.shared.digest, request.words, request.lengths, request.hashes))

    def _take_local(self, number: int, done: Future[Compiled | CompileFailure]) -> None:
        job = self._schedule.answered(_LOCAL, number)
        assert job, "only its answer ends a lease of this machine"
        if not done.cancelled():
            self._finish(_LOCAL, job, done.exception() or done.result())

    def _end_call(self, call: _Call) -> None:
        """Nobody waits for a call any more. If it was cancelled, it is not made, or ended."""
        if not call.future.cancelled():
            return
        lease = self._schedule.cancel(call.job)
        if lease is None:
            return
        if lease.peer == _LOCAL:
            assert call.local, "its lease is of this machine"
            call.local.cancel()
        else:
            self._send(lease.peer, Cancel(lease.number))

    def _send(self, peer: Hashable, message: Message) -> None:
        """Sends without waiting. A worker that cannot be reached is lost."""
        try:
            self._router.send_multipart([cast(bytes, peer), *protocol.encode(message)], zmq.NOBLOCK)
        except zmq.ZMQError:
            self._unreachable.add(peer)

    def _notice_that_it_is_alone(self, now_s: float) -> None:
        if not self._schedule.num_waiting or self._schedule.num_workers:
            self._alone_since_s = None
        elif self._alone_since_s is None:
            self._alone_since_s = now_s
        elif now_s - self._alone_since_s > ALONE_S:
            _log.warning("farm: no worker is there yet; start some with: evo worker --connect %s", self.address)
            self._alone_since_s = float("inf")


class _Call:
    """A compile request in the farm, and the future that waits for it."""

    def __init__(self, request: CompileRequest):
        self.request = request
        self.shared = protocol.shared_of(request)
        self.future: Future[Compiled | CompileFailure] = Future()
        self.local: Future[Compiled | CompileFailure] | None = None
        self.job: Job[_Call] = Job(self)

    def problem(self, answer: Answer) -> str | None:
        """Why this answer is not one to the request; None if it is."""
        if answer.seal != protocol.seal(self.shared.digest, self.request.hashes, answer.content):
            return "it is damaged, or meant for another request"
        if answer.outcome == protocol.CANCELLED:
            return "the request was not cancelled"
        if answer.outcome != protocol.COMPILED:
            return None
        problem = protocol.cubin_problem(answer.content, self._kernels())
        return f"a cubin that is {problem}" if problem else None

    def _kernels(self) -> list[str]:
        if self.request.template != POINTWISE.content:
            return [ENTRY]
        return [kernel_name(index) for index in range(len(self.request.kernel_sizes))]


def _outcome(answer: Answer) -> Compiled | CompileFailure | BaseException:
    if answer.outcome == protocol.COMPILED:
        return Compiled(answer.content, answer.compiler_s, answer.emission_s)
    log = answer.content.decode(errors="replace")
    if answer.outcome == FailureKind.TIMED_OUT:
        return TimeoutError(log)
    if answer.outcome == FailureKind.DIED:
        return WorkerDied(log)
    return CompileFailure(FailureKind.REJECTED, log)


def _resolve(future: Future[Any], outcome: object) -> None:
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
