"""The sockets of run and worker: their limits, how they authenticate each other, and lines about peers that are turned away.

Knows nothing of requests. One thread uses a socket; only `wake` is for all.
"""

import errno
import logging
import math
import os
import socket
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from evo.compile.farm import protocol
from evo.compile.farm.keys import RunKeys, WorkerKeys
from evo.compile.farm.protocol import Message
from evo.errors import UserError

ENCRYPTION_BYTES = 256  # that CURVE adds to a frame, at most
MAX_MESSAGES = 256  # of one peer that are held until they are read
MAX_UNSENT = 4 * protocol.MAX_SLOTS  # to one peer: more than a peer that reads can let pile up
MAX_REFUSALS = 100  # lines about peers that are turned away; then there is silence about them
MAX_STRANGERS = 256  # connections without a worker that was admitted; each may hold a frame, and is one of this process's files
HANDSHAKE_MS = 5000
LINGER_MS = 500  # for the last messages when a socket closes

_HANDSHAKE_FAILURES = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
_log = logging.getLogger(__name__)


class _Socket:
    """A socket with its limits, a monitor of its connections, and a poll that any thread can end."""

    def __init__(self, kind: int, events: int, options: dict[int, Any]):
        self._context = zmq.Context()
        self._socket = self._context.socket(kind)
        limits: dict[int, Any] = {zmq.MAXMSGSIZE: protocol.MAX_FRAME_BYTES + ENCRYPTION_BYTES, zmq.HANDSHAKE_IVL: HANDSHAKE_MS}
        limits |= {zmq.RCVHWM: MAX_MESSAGES, zmq.SNDHWM: MAX_UNSENT, zmq.LINGER: LINGER_MS}
        # Connections of machines that lost power are closed.
        for option, value in (limits | {zmq.HEARTBEAT_IVL: 10_000, zmq.HEARTBEAT_TIMEOUT: 30_000} | options).items():
            self._socket.set(option, value)
        self._monitor = self._socket.get_monitor_socket(events)
        self._monitor.set(zmq.RCVHWM, 0)
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._woken)  # when nothing can wake it any more
        self._poller = zmq.Poller()
        for source in (self._socket, self._monitor, self._woken):
            self._poller.register(source, zmq.POLLIN)

    def wake(self) -> None:
        """Ends a `receive`, now or the next one. May be called by any thread, by a signal's handler, and after `close`."""
        os.eventfd_write(self._woken, 1)

    def close(self) -> None:
        """Sends messages that are left, and closes the socket."""
        self._socket.disable_monitor()
        self._context.destroy(linger=LINGER_MS)

    def _poll(self, seconds: float) -> dict[Any, int]:
        ready = dict(self._poller.poll(max(0, math.ceil(seconds * 1000))))
        with suppress(BlockingIOError):
            os.eventfd_read(self._woken)
        return ready

    def _events(self) -> Iterator[tuple[int, int]]:
        """Events of connections that are there, with their values."""
        with suppress(zmq.Again):
            while True:
                event = recv_monitor_message(self._monitor, zmq.NOBLOCK)
                yield event["event"], event["value"]

    def send(self, message: Message, peer: bytes | None = None) -> bool:
        """Sends without waiting. False: the peer has gone, or does not read."""
        try:
            self._socket.send_multipart([*([peer] if peer else []), *protocol.encode(message)], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (errno.EAGAIN, errno.EHOSTUNREACH):
                raise
            return False
        return True


class Router(_Socket):
    """The run's socket, which listens at `address`. keys: None: nobody is authenticated. Raises UserError: it cannot listen."""

    def __init__(self, listen: str, keys: RunKeys | None):
        # ROUTER_MANDATORY: a worker that is gone is an error, not silence.
        options: dict[int, Any] = {zmq.ROUTER_MANDATORY: 1, zmq.IPV6: listen.startswith("tcp://["), zmq.BACKLOG: 4096}
        if keys:
            options |= {zmq.CURVE_SERVER: 1, zmq.CURVE_SECRETKEY: keys.secret}
        super().__init__(zmq.ROUTER, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED, options)
        self._keys = keys
        self._zap = self._context.socket(zmq.REP)
        self._zap.bind("inproc://zeromq.zap.01")
        self._poller.register(self._zap, zmq.POLLIN)
        self._strangers: dict[int, None] = {}  # descriptors of their connections, oldest first
        self._num_refusals = 0
        try:
            self._socket.bind(listen)
        except zmq.ZMQError as error:
            self.close()
            in_use = "another run may do so; give this one another port, or no farm: --set evaluation.farm=null"
            hint = "give the number of an address of this machine, or tcp://0.0.0.0:PORT for all"
            why = f"{os.strerror(error.errno or 0)}; {in_use if error.errno == errno.EADDRINUSE else hint}"
            raise UserError(f"cannot listen at {listen}: {why}", "evaluation.farm.listen") from error
        self.address: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._port = int(self.address.rpartition(":")[2])

    def receive(self, seconds: float, at_most: int) -> Iterator[tuple[bytes, list[bytes], int, str | None]]:
        """Waits for messages, and authenticates workers: peer, frames, descriptor of the connection, and worker's key of each."""
        ready = self._poll(seconds)
        if self._monitor in ready:
            self._watch()
        if self._zap in ready:
            self._authenticate()
        with suppress(zmq.Again):
            for _ in range(at_most):
                peer, *frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
                key = cast(str, frames[-1].get("User-Id")) if self._keys else None
                yield peer.bytes, [frame.bytes for frame in frames], frames[-1].get(zmq.SRCFD), key

    def admit(self, descriptor: int) -> None:
        """Takes a connection as a worker's."""
        self._watch()  # its beginning may have been noted since the last time
        self._strangers.pop(descriptor, None)

    def may_work(self, key: str | None) -> bool:
        """Return whether a worker with this key may work, now."""
        return not self._keys or key in self._keys.look()

    def refuse(self, name: str, reason: str, peer: bytes | None = None) -> None:
        """Reports on both sides that a worker is rejected. name: of its machine. peer: None: it cannot be reached."""
        self._num_refusals += 1
        if self._num_refusals <= MAX_REFUSALS:
            more = "" if self._num_refusals < MAX_REFUSALS else "; further refusals are not reported"
            _log.warning("farm: a worker at %s is refused: %s%s", name, protocol.short_text(reason), more)
        if peer:
            self.send(("refused", reason), peer)

    def _watch(self) -> None:
        """Follows connections that are not workers'. Ends the oldest of too many."""
        for event, descriptor in self._events():
            self._strangers.pop(descriptor, None)
            if event == zmq.EVENT_ACCEPTED:
                self._strangers[descriptor] = None
        while len(self._strangers) > MAX_STRANGERS:
            descriptor = next(iter(self._strangers))
            del self._strangers[descriptor]
            # ZeroMQ may have closed it, and the number be another file's by now.
            with suppress(OSError), socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as connection:
                if connection.getsockname()[1] == self._port:
                    connection.shutdown(socket.SHUT_RDWR)

    def _authenticate(self) -> None:
        """Answers one question of ZeroMQ's own protocol for this (RFC 27): may the owner of this public key connect?"""
        version, number, _, address, _, _, *credentials = self._zap.recv_multipart()
        key = z85.encode(credentials[0])
        answer = (b"200", b"OK", key)
        if not self.may_work(key.decode()):
            self.refuse(address.decode(), "its key is not in the workers/ of this run's keys")
            answer = (b"400", b"unknown key", b"")
        self._zap.send_multipart([version, number, *answer, b""])


class Dealer(_Socket):
    """A worker's socket. say: called with a line that a person should read."""

    def __init__(self, keys: WorkerKeys | None, say: Callable[[str], None]):
        # IMMEDIATE: nothing is sent before there is a connection.
        options: dict[int, Any] = {zmq.IMMEDIATE: 1, zmq.RECONNECT_IVL: 100, zmq.RECONNECT_IVL_MAX: 5000}
        if keys:
            options |= {zmq.CURVE_SECRETKEY: keys.secret, zmq.CURVE_PUBLICKEY: zmq.curve_public(keys.secret)}
            options |= {zmq.CURVE_SERVERKEY: keys.run}
        super().__init__(zmq.DEALER, _HANDSHAKE_FAILURES | zmq.EVENT_HANDSHAKE_SUCCEEDED, options)
        self._has_keys, self._say, self._has_said = keys is not None, say, False
        self.address: str | None = None

    def connect(self, address: str) -> None:
        """Connects to a run, in place of the one before. Raises zmq.ZMQError: there cannot be such an address."""
        if self.address:
            self._socket.disconnect(self.address)
        self.address, self._has_said = address, False
        self._socket.set(zmq.IPV6, address.startswith("tcp://["))
        self._socket.connect(address)

    def receive(self, seconds: float) -> Iterator[list[bytes]]:
        """Waits for messages: the frames of each, none for a new connection. Raises UserError: the run refuses the worker."""
        self._poll(seconds)
        for event, _ in self._events():
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                yield []
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                hint = "put its NAME.public into the workers/ of the run's keys"
                raise UserError(f"the run at {self.address} does not know this worker's key; {hint}")
            elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                hint = "has no keys, so leave --keys out" if self._has_keys else "has keys: give this worker some by --keys"
                raise UserError(f"no handshake with {self.address}: the run {hint}; or no run listens there")
            elif not self._has_said:
                self._has_said = True
                self._say(f"no handshake with {self.address} yet: it broke off, or this worker's run.public is not the run's key")
        with suppress(zmq.Again):
            while True:
                yield self._socket.recv_multipart(zmq.NOBLOCK)
