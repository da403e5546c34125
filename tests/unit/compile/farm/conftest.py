"""Fixtures of the farm: peers written by hand, which say whatever a test wants, over real sockets."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("zmq", reason="evo-ptx[farm] is not installed")
pytest.importorskip("msgpack", reason="evo-ptx[farm] is not installed")

import zmq
from compile_cases import program_text, programs
from processes import LIMIT_S

from evo.compile.farm import protocol
from evo.compile.farm.farm_worker import Status, Worker
from evo.compile.farm.keys import WorkerKeys
from evo.compile.farm.protocol import Message, decode, encode
from evo.compile.farm.server import CompileFarm
from evo.compile.language import encode_language
from evo.compile.request import CompileRequest, compile_request, pack_programs


class Socket:
    """A DEALER socket that talks to a farm, or a ROUTER socket that plays one."""

    def __init__(self, kind: int):
        self.context = zmq.Context()
        self.socket = self.context.socket(kind)
        self.socket.set(zmq.LINGER, 1000)

    def receive(self) -> list[bytes]:
        assert self.socket.poll(LIMIT_S * 1000), "nothing came"
        return self.socket.recv_multipart()

    def close(self) -> None:
        self.context.destroy(linger=1000)


def hello(slots: int = 1, name: str = "host", **versions: str) -> Message:
    return "hello", {**protocol.versions(), **versions}, slots, name


class Peer(Socket):
    """A worker written by hand."""

    def __init__(self, address: str, keys: WorkerKeys | None = None):
        super().__init__(zmq.DEALER)
        if keys:
            self.socket.set(zmq.CURVE_SECRETKEY, keys.secret)
            self.socket.set(zmq.CURVE_PUBLICKEY, zmq.curve_public(keys.secret))
            self.socket.set(zmq.CURVE_SERVERKEY, keys.run)
        failures = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        self.handshake_failures = self.socket.get_monitor_socket(failures)
        self.socket.connect(address)

    def say(self, *message) -> None:
        self.socket.send_multipart(encode(message))

    def hears(self, *kinds: str) -> Message:
        """The next message, which must be of one of these kinds. Beats that come before it are taken."""
        while True:
            message = decode(self.receive())
            if message[0] in kinds:
                return message
            assert message == ("beat",), message

    def joins(self, slots: int = 1, name: str = "host") -> None:
        self.say(*hello(slots, name))
        self.hears("welcome")

    def answers(self, message: Message) -> None:
        """Sends the right answer to a request."""
        self.say("answer", message[1], "", 0.5, 0.25, compile_request(request_in(message)).cubin)


def request_in(message: Message) -> CompileRequest:
    """The request of a message, as docs/farm.md orders its parts."""
    _, _, target, sites, options, words, lengths, hashes, language, template = message
    return CompileRequest(words, lengths, hashes, language, target, sites, tuple(options), template)


class PlayedRun(Socket):
    """A run written by hand, with the one worker that talks to it."""

    def __init__(self):
        super().__init__(zmq.ROUTER)
        self.address = f"tcp://127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.worker = b""

    def say(self, *message) -> None:
        self.socket.send_multipart([self.worker, *encode(message)])

    def hears(self, kind: str) -> Message:
        """The next message of this kind. Beats and hellos that come before it are taken."""
        while True:
            self.worker, *frames = self.receive()
            message = decode(frames)
            if message[0] == kind:
                return message
            assert message[0] in ("beat", "hello"), message

    def takes(self, heartbeat_s: float = 30.0, compile_s: float = 60.0) -> Message:
        message = self.hears("hello")
        self.say("welcome", heartbeat_s, compile_s)
        return message

    def sends(self, number: int, r: CompileRequest) -> None:
        self.say(
            "request",
            number,
            r.target,
            r.sites_per_kernel,
            list(r.options),
            *(r.words, r.lengths, r.hashes, r.language, r.template),
        )


class Running:
    """A function in a thread. An error of it closes the farms: whoever waits for them gets CancelledError rather than nothing."""

    def __init__(self, function: Callable[[], object], farms: list[CompileFarm]):
        self._error: BaseException | None = None
        self._function, self._farms = function, farms
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # noqa: BLE001 - the test gets it
            self._error = error
            _close(self._farms)

    def error(self) -> BaseException | None:
        """Reason of the end. Whoever asks expects it: it no longer fails the test."""
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "it does not end"
        error, self._error = self._error, None
        return error


@dataclass
class RunningWorker:
    """A real worker in a thread."""

    worker: Worker
    running: Running
    lines: list[str]
    statuses: list[Status]

    def error(self) -> BaseException | None:
        """Reason of the end."""
        return self.running.error()

    def end(self) -> None:
        """Stops it; raises what ended it before."""
        self.worker.stop()
        if error := self.error():
            raise error


def _close(farms: list[CompileFarm]) -> None:
    for farm in farms:
        farm.shutdown(cancel_futures=True)


@pytest.fixture
def farms() -> Iterator[list[CompileFarm]]:
    """The farms of a test. They close with it, or after a long time if it hangs."""
    opened: list[CompileFarm] = []
    timer = threading.Timer(LIMIT_S, _close, [opened])
    timer.start()
    yield opened
    timer.cancel()
    timer.join()
    _close(opened)


@pytest.fixture(autouse=True)
def _log_level(caplog):
    caplog.set_level(logging.WARNING)


@pytest.fixture
def start_worker(farms):
    """Starts a worker that connects to an address; it ends with the test, which fails if the worker ended before by an error."""
    started: list[RunningWorker] = []

    def start(address: str | Path, keys=None, num_workers: int = 1, idle_s: float | None = None) -> RunningWorker:
        lines, statuses = [], []
        worker = Worker(address, keys, num_workers, idle_s, lambda status: statuses.append(Status(**vars(status))), lines.append)
        started.append(RunningWorker(worker, Running(worker.serve, farms), lines, statuses))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


@pytest.fixture
def open_farm(farms):
    """Opens farms on a free port of this machine."""

    def make(num_local: int = 0, heartbeat_s: float = 30.0, **options) -> CompileFarm:
        farms.append(CompileFarm("tcp://127.0.0.1:0", num_local=num_local, heartbeat_s=heartbeat_s, **options))
        return farms[-1]

    return make


@pytest.fixture
def peer_of():
    """Makes peers; they close with the test."""
    made: list[Peer] = []

    def make(farm: CompileFarm, keys: WorkerKeys | None = None) -> Peer:
        made.append(Peer(farm.address, keys))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture
def played_run():
    run = PlayedRun()
    yield run
    run.close()


@pytest.fixture
def request_of(language) -> Callable[..., CompileRequest]:
    """A compile request for some programs, from the number `first` on."""

    def make(count: int = 2, first: int = 0, **changes) -> CompileRequest:
        batch = programs(language, [program_text(i, i % 4) for i in range(first, first + count)])
        parts = {"language": encode_language(language), "target": "sm_90", "sites_per_kernel": 3, **changes}
        return CompileRequest(*pack_programs(batch.words, batch.hashes), **parts)

    return make
