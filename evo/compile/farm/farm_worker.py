"""A worker of the farm: connects to a run, fulfils its requests in processes of this machine, and waits for the next run.

Owns the socket and the conversation with the run. Knows nothing of what a person sees, and keeps nothing: the cache is the run's.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import zmq
from zmq.utils.monitor import recv_monitor_message

from evo.compile.farm import protocol
from evo.compile.farm.keys import WorkerKeys, check_address, read_server_file
from evo.compile.farm.protocol import Answer, Beat, Bye, Cancel, Hello, Message, Refused, Request, Shared, Welcome, Who
from evo.compile.farm.wake import Wake
from evo.compile.pool import CompilePool
from evo.compile.request import Compiled, CompileFailure, compile_request
from evo.errors import FailureKind, UserError

HELLO_S = 1.0  # between two attempts to be taken
STATUS_S = 1.0  # between two reports
RECONNECT_MS, MAX_RECONNECT_MS = 100, 5000
LINGER_MS = 500  # for the last message

_HANDSHAKE_FAILURES = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL


@dataclass
class Status:
    """What a worker does. run: whether it works for one. requests, programs, failures: compiled so far. queue: requests that it
    holds.
    """

    run: bool = False
    requests: int = 0
    programs: int = 0
    failures: int = 0
    queue: int = 0


class Worker:
    """Fulfils requests of the run at an address, one run after the other, until it is stopped.

    Args:
        connect: the run's address, such as `tcp://192.0.2.1:5711`; or the file in which runs write theirs, which need not exist.
        keys: folder of the worker's keys; None: no authentication, which only an address of this machine allows.
        num_workers: processes; None: one for each core that this process may use.
        idle_s: it ends when it has had no run for so long; None: never.
        on_status: called about every second.
        say: called with a line that a person should read.

    Raises:
        UserError: the address is refused, or the keys cannot be used.
    """

    def __init__(
        self,
        connect: str | Path,
        keys: Path | None,
        num_workers: int | None,
        idle_s: float | None,
        on_status: Callable[[Status], None],
        say: Callable[[str], None],
    ):
        self._server_file = connect if isinstance(connect, Path) else None
        self._address: str | None = None  # of the run, once it is known
        self._keys = WorkerKeys.read(keys) if keys else None
        self._idle_s = idle_s
        self._idle_since_s = time.monotonic()
        self._on_status = on_status
        self._say = say
        self._said: str | None = None
        self.status = Status()
        if num_workers is not None and num_workers > protocol.MAX_SLOTS:
            raise UserError(f"--workers: at most {protocol.MAX_SLOTS}, got {num_workers}; start several workers")
        self._context = zmq.Context()
        self._calls: dict[int, _Call] = {}  # by their leases
        self._done: deque[_Call] = deque()
        self._shared: deque[Shared] = deque(maxlen=protocol.MAX_SHARED)
        self._wake = Wake()
        self._welcome: Welcome | None = None  # while it works for a run
        self._heard_s = self._next_word_s = self._next_status_s = 0.0
        self._is_stopped = False
        self._socket = self._context.socket(zmq.DEALER)
        self._monitor = self._socket.get_monitor_socket(_HANDSHAKE_FAILURES | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self._poller = zmq.Poller()
        for source in (self._socket, self._monitor, self._wake.fileno()):
            self._poller.register(source, zmq.POLLIN)
        self._set_up()
        try:
            self._find_run(None if isinstance(connect, Path) else connect)
        except UserError:
            self._context.destroy(linger=0)
            raise
        self._pool = CompilePool(num_workers)

    def stop(self) -> None:
        """Has `serve` return. May be called at any time, by any thread and by a signal's handler."""
        self._is_stopped = True
        self._wake.set()

    def serve(self) -> None:
        """Works until it is stopped. Raises UserError: the run refuses this worker."""
        reason = ""
        try:
            while not self._is_stopped:
                pause_s = min(self._next_word_s, self._next_status_s) - time.monotonic()
                ready = dict(self._poller.poll(max(0, math.ceil(pause_s * 1000))))
                self._wake.clear()
                if self._monitor in ready:
                    self._watch()
                if self._socket in ready:
                    self._receive()
                while self._done:
                    self._answer(self._done.popleft())
                self._keep_alive()
        except UserError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[: protocol.MAX_TEXT]
            raise
        finally:
            self._send(Bye(reason))
            self._context.destroy(linger=LINGER_MS)
            self._pool.shutdown(cancel_futures=True)
            self._wake.close()

    def _set_up(self) -> None:
        dealer = self._socket
        dealer.set(zmq.LINGER, LINGER_MS)
        dealer.set(zmq.IMMEDIATE, 1)  # nothing is sent before there is a connection
        dealer.set(zmq.MAXMSGSIZE, protocol.MAX_FRAME_BYTES + protocol.ENCRYPTION_BYTES)
        dealer.set(zmq.SNDHWM, 2 * protocol.MAX_SLOTS)
        dealer.set(zmq.RECONNECT_IVL, RECONNECT_MS)
        dealer.set(zmq.RECONNECT_IVL_MAX, MAX_RECONNECT_MS)
        dealer.set(zmq.HEARTBEAT_IVL, 10_000)
        dealer.set(zmq.HEARTBEAT_TIMEOUT, 30_000)
        if self._keys:
            dealer.set(zmq.CURVE_SECRETKEY, self._keys.secret)
            dealer.set(zmq.CURVE_PUBLICKEY, zmq.curve_public(self._keys.secret))
            dealer.set(zmq.CURVE_SERVERKEY, self._keys.run)

    def _find_run(self, address: str | None = None) -> None:
        """Connects to an address, or to the one that the server file has now, if it is another one than before."""
        try:
            address = read_server_file(self._server_file) if self._server_file else address
            if address in (None, self._address):
                return
            key = str(self._server_file or "--connect")
            check_address(address, key, has_keys=self._keys is not None)
            if self._address:
                self._socket.disconnect(self._address)
            self._address = address
            self._socket.set(zmq.IPV6, address.startswith("tcp://["))
            self._socket.connect(address)
        except zmq.ZMQError as error:
            raise UserError(f"{key}: cannot connect to {address}: {os.strerror(error.errno or 0)}") from error

    def _watch(self) -> None:
        """Looks at a handshake's end."""
        event = recv_monitor_message(self._monitor)["event"]
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._next_word_s = 0.0  # says hello before the run sheds it as a stranger
            return
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            raise UserError(
                f"the run at {self._address} does not know this worker's key; "
                "put its NAME.public into the workers/ of the run's keys"
            )
        if event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            reason = (
                "the run has no keys, so leave --keys out" if self._keys else "the run has keys: give this worker some by --keys"
            )
            raise UserError(f"no handshake with {self._address}: {reason}; or no run listens there")
        self._say_once(f"no handshake with {self._address} yet: it broke off, or this worker's run.public is not the run's key")

    def _receive(self) -> None:
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._heard_s = time.monotonic()
            try:
                self._handle(protocol.decode(frames, protocol.FROM_RUN))
            except protocol.ProtocolError as error:
                raise UserError(f"the run at {self._address} sent what no run of this version sends: {error}") from error

    def _handle(self, message: Message) -> None:
        if isinstance(message, Refused):
            raise UserError(f"the run at {self._address} refuses this worker: {protocol.printable(message.reason)}")
        if isinstance(message, Welcome):
            self._forget()
            self._welcome = message
            self._pool.time_limit_s = message.compile_s
            self._said = None
        elif isinstance(message, (Who, Bye)):
            self._forget()
        elif self._welcome is None:
            pass  # it belongs to what the run gave this worker before it forgot it
        elif isinstance(message, Shared):
            message.check_size()
            self._shared.append(message)
        elif isinstance(message, Request):
            self._start(message)
        elif isinstance(message, Cancel) and message.lease in self._calls:
            self._calls[message.lease].future.cancel()

    def _start(self, request: Request) -> None:
        shared = next((shared for shared in self._shared if shared.digest == request.shared), None)
        if shared is None:
            raise protocol.ProtocolError("a request whose shared parts it did not send")
        if len(self._calls) > self._pool.num_workers or request.lease in self._calls:
            raise protocol.ProtocolError("more requests than this worker takes")
        call = _Call(request, self._pool.submit_request(compile_request, request.of(shared)))
        self._calls[request.lease] = call
        call.future.add_done_callback(lambda _: self._put_done(call))

    def _put_done(self, call: _Call) -> None:
        self._done.append(call)
        self._wake.set()

    def _answer(self, call: _Call) -> None:
        request = call.request
        if self._calls.get(request.lease) is not call:
            return  # of a run that has gone
        outcome, content, times_s = _outcome(call.future)
        del self._calls[request.lease]
        seal = protocol.seal(request.shared, request.hashes, content)
        self._send(Answer(request.lease, outcome, *times_s, seal, content))
        if outcome != protocol.CANCELLED:
            self.status.requests += 1
            self.status.programs += len(request.hashes) // 16
            self.status.failures += outcome != protocol.COMPILED

    def _forget(self) -> None:
        """Ends all work: the run has gone, or has given it to others."""
        self._welcome = None
        self._next_word_s = 0.0
        self._shared.clear()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.future.cancel()

    def _keep_alive(self) -> None:
        """Says what is due: hello, beat and status."""
        now_s = time.monotonic()
        if self._welcome and now_s - self._heard_s > protocol.HEARTBEATS_OF_LEASE * self._welcome.heartbeat_s:
            self._forget()
        if now_s >= self._next_word_s:
            if self._welcome:
                self._idle_since_s = now_s
                self._send(Beat())
                self._next_word_s = now_s + self._welcome.heartbeat_s
            elif self._idle_s is not None and now_s - self._idle_since_s > self._idle_s:
                self._say(f"no run for {self._idle_s:g} s: this worker ends")
                self._is_stopped = True
            else:
                self._find_run(self._address)
                self._send(Hello(protocol.PROTOCOL, protocol.versions(), self._pool.num_workers, _name()))
                self._next_word_s = now_s + HELLO_S
        if now_s >= self._next_status_s:
            self._next_status_s = now_s + STATUS_S
            self.status.run, self.status.queue = self._welcome is not None, len(self._calls)
            self._on_status(self.status)

    def _send(self, message: Message) -> None:
        with suppress(zmq.Again):  # without a connection there is nobody to tell
            self._socket.send_multipart(protocol.encode(message), zmq.NOBLOCK)

    def _say_once(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._say(line)


@dataclass(frozen=True, eq=False)
class _Call:
    """A request in a process of this machine."""

    request: Request
    future: Future[Compiled | CompileFailure]


def _outcome(done: Future[Compiled | CompileFailure]) -> tuple[str, bytes, tuple[float, float]]:
    """How a call ended, the cubin or log that it left, and the seconds of compiler and emission."""
    if done.cancelled():
        return protocol.CANCELLED, b"", (0.0, 0.0)
    try:
        result = done.result()
    except TimeoutError:
        return FailureKind.TIMED_OUT, b"", (0.0, 0.0)
    except BrokenExecutor as error:
        return FailureKind.DIED, _log(str(error)), (0.0, 0.0)
    if isinstance(result, CompileFailure):
        return result.kind, _log(result.log), (0.0, 0.0)
    return protocol.COMPILED, result.cubin, (result.compiler_s, result.emission_s)


def _log(text: str) -> bytes:
    return text.encode(errors="replace")[: protocol.MAX_LOG_BYTES]


def _name() -> str:
    return protocol.printable(socket.gethostname())[: protocol.MAX_TEXT]
