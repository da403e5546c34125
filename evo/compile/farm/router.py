"""The run's socket: what comes in from peers and goes out to them, and who may connect.

Owns the socket, its limits, the authentication of workers, and the lines about peers that are turned away. Knows nothing of
requests. One thread uses it; only `wake` is for all.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Hashable, Iterator
from typing import cast

import zmq

from evo.compile.farm import protocol
from evo.compile.farm.keys import RunKeys
from evo.compile.farm.protocol import Message, Refused
from evo.compile.farm.wake import Wake
from evo.errors import UserError

# Messages of one peer that are held until they are read, and as many to it until they are sent.
MAX_MESSAGES = 256
LINGER_MS = 500  # for the last messages when the farm closes
MAX_REFUSALS = 100  # lines about peers that are turned away; then there is silence about them

_ZAP = "inproc://zeromq.zap.01"
_log = logging.getLogger(__name__)


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
        self._num_refusals = 0
        self._context = zmq.Context()
        self._zap = self._context.socket(zmq.REP)
        self._socket = self._context.socket(zmq.ROUTER)
        try:
            self._bind(listen)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            hint = "give the number of an address of this machine, or tcp://0.0.0.0:PORT for all"
            if error.errno == errno.EADDRINUSE:
                hint = "another run may do so; give this one another port, or no farm: --set evaluation.farm=null"
            reason = os.strerror(error.errno or 0)
            raise UserError(f"evaluation.farm.listen: cannot listen at {listen}: {reason}; {hint}") from error
        self.address: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._wake = Wake()
        self._poller = zmq.Poller()
        for source in (self._socket, self._zap, self._wake.fileno()):
            self._poller.register(source, zmq.POLLIN)

    def wake(self) -> None:
        """Ends a `wait`, now or the next one. May be called by any thread and by a signal's handler."""
        self._wake.set()

    def wait(self, timeout_ms: int) -> None:
        """Waits until there is something to receive, or until it is woken. Authenticates those who want to connect."""
        ready = dict(self._poller.poll(timeout_ms))
        self._wake.clear()
        if self._zap in ready:
            self._authenticate()

    def receive(self, at_most: int) -> Iterator[tuple[bytes, list[bytes]]]:
        """What is there: peer and frames of each message."""
        for _ in range(at_most):
            try:
                peer, *frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            yield peer, frames

    def send(self, peer: Hashable, message: Message) -> bool:
        """Sends without waiting; whether it was sent. If not, the peer is in `unreachable`, or does not read fast enough."""
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

    def refuse(self, peer: bytes, name: str, reason: str) -> None:
        """Turns a peer away. name: its machine's."""
        self._say_refusal(name, reason)
        self.send(peer, Refused(reason[: protocol.MAX_TEXT]))

    def close(self) -> None:
        """Sends what is still to be sent, and closes the socket."""
        self._context.destroy(linger=LINGER_MS)
        self._wake.close()

    def _bind(self, listen: str) -> None:
        router = self._socket
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

    def _say_refusal(self, name: str, reason: str) -> None:
        self._num_refusals += 1
        if self._num_refusals <= MAX_REFUSALS:
            more = "" if self._num_refusals < MAX_REFUSALS else "; no more is said about peers that are refused"
            _log.warning("farm: a worker at %s is refused: %s%s", name, protocol.printable(reason), more)
