"""The run's socket: what comes in from peers and goes out to them, and who may connect.

Owns the socket, its limits, the authentication of workers, and the lines about peers that are turned away. A connection is a
stranger's until its worker is admitted; the oldest ones of too many are shed. Knows nothing of requests. One thread uses it; only
`wake` and `trusts` are for all.
"""

import errno
import logging
import os
import resource
import socket
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import NamedTuple, cast

import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from evo.compile.farm import protocol
from evo.compile.farm.keys import RunKeys
from evo.compile.farm.protocol import Message, Refused
from evo.compile.farm.wake import Wake
from evo.errors import UserError

MAX_MESSAGES = 256  # of one peer that are held until they are read
MAX_UNSENT = 4 * protocol.MAX_SLOTS  # to one peer: more than a worker that reads can let pile up
LINGER_MS = 500  # for the last messages when the farm closes
MAX_REFUSALS = 100  # lines about peers that are turned away; then there is silence about them
HANDSHAKE_MS = 5000
MAX_STRANGERS = 256  # connections without a worker that was admitted; each may hold a frame
MAX_CONNECTIONS = 1 << 15
OTHER_DESCRIPTORS = 256  # that the rest of this process may need

_ZAP = "inproc://zeromq.zap.01"
_MONITOR = "inproc://connections"
_log = logging.getLogger(__name__)


class Origin(NamedTuple):
    """Where a message comes from: its connection's descriptor, and the worker's public key, None if nobody is authenticated."""

    descriptor: int
    key: str | None


class Router:
    """Listens at an address.

    Attributes:
        address: where it listens, with the number of its port.
        unreachable: peers without a connection to which something was to be sent. Whoever reads it empties it.

    Args:
        listen: such as `tcp://0.0.0.0:5711`; port 0 takes any that is free.
        keys: of the run; None: nobody is authenticated.

    Raises:
        UserError: it cannot listen there.
    """

    def __init__(self, listen: str, keys: RunKeys | None):
        self.unreachable: set[Hashable] = set()
        self._keys = keys
        limit = _raise_descriptor_limit()
        self._max_connections = limit - OTHER_DESCRIPTORS if limit > OTHER_DESCRIPTORS else limit // 2
        self._connections: dict[int, bool] = {}  # by descriptor, oldest first: whether it is a stranger's
        self._num_refusals = 0
        self._context = zmq.Context()
        self._zap = self._context.socket(zmq.REP)
        self._socket = self._context.socket(zmq.ROUTER)
        self._monitor = self._context.socket(zmq.PAIR)
        self._monitor.set(zmq.RCVHWM, 0)
        try:
            self._socket.monitor(_MONITOR, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
            self._monitor.connect(_MONITOR)
            self._bind(listen)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            hint = "give the number of an address of this machine, or tcp://0.0.0.0:PORT for all"
            if error.errno == errno.EADDRINUSE:
                hint = "another run may do so; give this one another port, or no farm: --set evaluation.farm=null"
            reason = os.strerror(error.errno or 0)
            raise UserError(f"evaluation.farm.listen: cannot listen at {listen}: {reason}; {hint}") from error
        self.address: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._port = int(self.address.rpartition(":")[2])
        self._wake = Wake()
        self._poller = zmq.Poller()
        for source in (self._socket, self._monitor, self._zap, self._wake.fileno()):
            self._poller.register(source, zmq.POLLIN)

    def wake(self) -> None:
        """Ends a `wait`, now or the next one. May be called by any thread and by a signal's handler."""
        self._wake.set()

    def wait(self, timeout_ms: int) -> None:
        """Waits until there is something to receive, or until it is woken. Authenticates those who want to connect."""
        ready = dict(self._poller.poll(timeout_ms))
        self._wake.clear()
        if self._monitor in ready:
            self._watch()
        if self._zap in ready:
            self._authenticate()

    def receive(self, at_most: int) -> Iterator[tuple[bytes, list[bytes], Origin]]:
        """What is there: peer, frames and origin of each message."""
        for _ in range(at_most):
            try:
                peer, *frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            origin = Origin(frames[-1].get(zmq.SRCFD), cast(str, frames[-1].get("User-Id")) if self._keys else None)
            yield peer.bytes, [frame.bytes for frame in frames], origin

    def let_in(self, origin: Origin) -> None:
        """Marks a connection as a worker's."""
        self._watch()  # its beginning may have been noted since the last time
        if origin.descriptor in self._connections:
            self._connections[origin.descriptor] = False

    def may_work(self, key: str | None) -> bool:
        """Whether a worker with this key may work, now; None: nobody is authenticated."""
        return not self._keys or key in self._keys.workers

    def trusts(self, key: str) -> bool:
        """Whether what a worker with this key has made may be used."""
        return self._keys is not None and key in self._keys.workers

    def look_at_keys(self) -> None:
        """Looks which workers may work now."""
        if self._keys:
            self._keys.look()

    def ban(self, key: str | None) -> None:
        """Revokes a worker's access."""
        if self._keys and key:
            self._keys.ban(key)

    def send(self, peer: Hashable, message: Message) -> bool:
        """Sends without waiting; whether it was sent. If not, the peer is in `unreachable`, or does not read."""
        try:
            self._socket.send_multipart([cast(bytes, peer), *protocol.encode(message)], zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno != errno.EHOSTUNREACH:
                raise
            self.unreachable.add(peer)
            return False
        return True

    def refuse(self, peer: Hashable, name: str, reason: str) -> None:
        """Turns a peer away. name: its machine's."""
        self._say_refusal(name, reason)
        self.send(peer, Refused(reason[: protocol.MAX_TEXT]))

    def close(self) -> None:
        """Sends what is still to be sent, and closes the socket."""
        self._socket.disable_monitor()
        self._context.destroy(linger=LINGER_MS)
        self._wake.close()

    def _bind(self, listen: str) -> None:
        router = self._socket
        router.set(zmq.LINGER, LINGER_MS)
        router.set(zmq.ROUTER_MANDATORY, 1)  # a worker that is gone is an error, not silence
        router.set(zmq.MAXMSGSIZE, protocol.MAX_FRAME_BYTES + protocol.ENCRYPTION_BYTES)
        router.set(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        router.set(zmq.RCVHWM, MAX_MESSAGES)
        router.set(zmq.SNDHWM, MAX_UNSENT)
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

    def _watch(self) -> None:
        """Follows connections from their beginning to their end. Ends those of the longest strangers if there are too many."""
        with suppress(zmq.Again):
            while True:
                event = recv_monitor_message(self._monitor, zmq.NOBLOCK)
                self._connections.pop(event["value"], None)
                if event["event"] == zmq.EVENT_ACCEPTED:
                    self._connections[event["value"]] = True
        strangers = [descriptor for descriptor, is_stranger in self._connections.items() if is_stranger]
        surplus = max(len(strangers) - MAX_STRANGERS, len(self._connections) - self._max_connections, 0)
        for descriptor in strangers[:surplus]:
            del self._connections[descriptor]
            # ZeroMQ may have closed it, and the number be another file's by now.
            with suppress(OSError), socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as connection:
                if connection.getsockname()[1] == self._port:
                    connection.shutdown(socket.SHUT_RDWR)

    def _authenticate(self) -> None:
        """Answers one question of ZeroMQ's own protocol for this (RFC 27): may the owner of this public key connect?"""
        version, number, _, address, _, _, *credentials = self._zap.recv_multipart()
        key = z85.encode(credentials[0]).decode()
        if not self.trusts(key):
            self.look_at_keys()
        is_known = self.trusts(key)
        if not is_known:
            self._say_refusal(address.decode(), "its key is not in the workers/ of this run's keys")
        status = (b"200", b"OK") if is_known else (b"400", b"unknown key")
        self._zap.send_multipart([version, number, *status, key.encode() if is_known else b"", b""])

    def _say_refusal(self, name: str, reason: str) -> None:
        self._num_refusals += 1
        if self._num_refusals <= MAX_REFUSALS:
            more = "" if self._num_refusals < MAX_REFUSALS else "; further refusals are not reported"
            _log.warning("farm: a worker at %s is refused: %s%s", name, protocol.printable(reason), more)


def _raise_descriptor_limit() -> int:
    """Lets this process have as many open files as connections need, or as many as it may; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + OTHER_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft
