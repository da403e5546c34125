"""The run's side of the farm: whatever peers do, each request is answered once, by a right answer."""

import gc
import os
import random
import struct
from collections import Counter
from concurrent.futures import CancelledError
from dataclasses import replace
from socket import create_connection
from types import SimpleNamespace

import msgpack
import pytest
import zmq
from compile_cases import BAD, programs, reject
from processes import LIMIT_S, wait_until

from evo.compile.farm import protocol, server, sockets
from evo.compile.farm.keys import WorkerKeys, make_keys
from evo.compile.farm.server import CompileFarm
from evo.compile.request import Compiled, CompileFailure, compile_request, pack_programs
from evo.errors import FailureKind, UserError

from .conftest import Peer, hello, request_in


def result(future) -> Compiled:
    return future.result(LIMIT_S)


def test_a_worker_gets_as_many_requests_as_it_fulfils_at_once_and_one_more(open_farm, peer_of, request_of):
    farm = open_farm()
    futures = [farm.submit(compile_request, request_of(1, i)) for i in range(6)]
    peer = peer_of(farm)
    peer.joins(slots=2)
    held = [peer.hears("request") for _ in range(3)]
    peer.say("beat")
    assert peer.hears("beat", "request") == ("beat",)
    for _ in range(3):
        peer.answers(held.pop(0))
        held.append(peer.hears("request"))
    for request in held:
        peer.answers(request)
    assert [result(future) for future in futures] == [compile_request(request_of(1, i)) for i in range(6)]
    assert farm.status() == {"workers": 1, "lost": 0}


GARBAGE = [
    [b"\xc1\xff"],
    [b""],
    [b"x" * 20_000],
    [msgpack.packb(["shell", "rm"])],
    [msgpack.packb(["beat"]), b"more"],
    [msgpack.packb(["hello", 2, {"evo": "1"}, 1, "of protocol 2"])],
    [msgpack.packb(["hello", {}, 0, "host"])],
    [msgpack.packb(["hello", {}, protocol.MAX_SLOTS + 1, "host"])],
    [msgpack.packb(["hello", [], 1, "host"])],
    [msgpack.packb(["answer", "1", "", 0.5, 0.5]), b""],
    [msgpack.packb(["answer", 1, "", 0.5, 0.5])],
    [msgpack.packb(["answer", 1, None, 0.5, 0.5]), b""],
]


def test_garbage_is_refused_and_disturbs_nobody(open_farm, peer_of, request_of, caplog):
    farm = open_farm()
    good, traitor = peer_of(farm), peer_of(farm)
    traitor.joins(name="traitor\n")
    future = farm.submit(compile_request, request_of())
    traitor.hears("request")
    for frames in GARBAGE:
        traitor.socket.send_multipart(frames)
        traitor.hears("refused", "bye")  # bye: it is a stranger by now
    good.joins(name="good")
    good.answers(good.hears("request"))  # the traitor's request
    assert result(future) == compile_request(request_of())
    assert caplog.records[0].message.startswith("farm: a worker at traitor? is refused: ")


@pytest.mark.parametrize("change", [{"nvPTXCompiler": "12.9.0"}, {"protocol": "2"}])
def test_a_worker_of_another_version_is_refused_in_one_line_on_both_sides(open_farm, peer_of, caplog, change):
    peer = peer_of(open_farm())
    peer.say(*hello(name="old", **change))
    _, reason = peer.hears("refused")
    ((name, value),) = change.items()
    assert reason.startswith(f"the worker has {name} {value} and the run has {protocol.versions()[name]}: ")
    assert [record.message for record in caplog.records] == [f"farm: a worker at old is refused: {reason}"]
    peer.say("beat")
    peer.hears("bye")


@pytest.mark.parametrize("how", ["silent", "without an answer"])
def test_the_requests_of_a_lost_worker_go_to_another_and_its_late_answer_is_dropped(
    open_farm, peer_of, request_of, monkeypatch, how
):
    monkeypatch.setattr(server, "NETWORK_S", 0.1)
    limits = {"heartbeat_s": 0.2} if how == "silent" else {"heartbeat_s": 30.0, "time_limit_s": 0.2}
    monkeypatch.setattr(server, "TICKS_PER_HEARTBEAT", 4 if how == "silent" else 300)
    farm = open_farm(**limits)
    lost, other = peer_of(farm), peer_of(farm)
    lost.joins(slots=2)
    future, given_up = (farm.submit(compile_request, request_of(1, i)) for i in range(2))
    held = lost.hears("request")
    lost.hears("request")
    wait_until(lambda: how == "silent" or not lost.say("beat"))  # it may beat, but does not answer
    wait_until(lambda: farm.status() == {"workers": 0, "lost": 1})
    given_up.cancel()  # while nobody holds it
    other.joins()
    again = other.hears("request")
    lost.answers(held)
    lost.hears("bye")
    assert request_in(again) == request_in(held)
    other.answers(again)
    assert result(future) == compile_request(request_of(1))


def test_a_request_is_cancelled_in_line_and_in_a_workers_hands(open_farm, peer_of, request_of):
    farm = open_farm()
    peer = peer_of(farm)
    peer.joins()
    futures = [farm.submit(compile_request, request_of(1, i)) for i in range(4)]
    held, waiting = peer.hears("request"), peer.hears("request")
    assert futures[2].cancel() and futures[0].cancel()
    assert peer.hears("cancel")[1] == held[1]
    last = peer.hears("request")
    for request in (held, waiting, last):  # the first one crossed the cancellation
        peer.answers(request)
    assert [result(futures[i]) for i in (1, 3)] == [compile_request(request_of(1, i)) for i in (1, 3)]
    with pytest.raises(CancelledError):
        futures[0].result()


def test_the_farm_takes_its_leave_when_it_closes(open_farm, peer_of, request_of):
    farm = open_farm()
    peer = peer_of(farm)
    peer.joins()
    future = farm.submit(compile_request, request_of())
    peer.hears("request")
    farm.shutdown(cancel_futures=True)
    assert future.cancelled()
    assert peer.hears("cancel", "bye")
    with pytest.raises(RuntimeError, match="closed"):
        farm.submit(compile_request, request_of())
    with pytest.raises(ValueError, match="takes compile requests only"):
        farm.submit(divmod, 7, 3)


def test_local_processes_and_workers_share_the_work(open_farm, peer_of, request_of):
    farm = open_farm(num_local=1)
    assert farm.num_workers == 1
    peer = peer_of(farm)
    peer.joins(slots=2)
    wait_until(lambda: farm.num_workers == 3)
    futures = [farm.submit(compile_request, request_of(1, i)) for i in range(5)]
    for request in [peer.hears("request") for _ in range(2)]:
        peer.answers(request)
    farm.submit(divmod, 7, 3).result(LIMIT_S)
    while not all(future.done() for future in futures):
        if peer.socket.poll(10):
            peer.answers(peer.hears("request"))
    assert [result(future) for future in futures] == [compile_request(request_of(1, i)) for i in range(5)]


def test_a_worker_that_reads_nothing_holds_up_nobody(open_farm, peer_of, request_of):
    """It says things that are answered until its buffers and the farm's for it are full."""
    farm = open_farm()
    deaf, good = peer_of(farm), peer_of(farm)
    deaf.socket.set(zmq.RCVHWM, 1)
    for _ in range(20_000):
        deaf.say("beat")
    good.joins(name="good")
    future = farm.submit(compile_request, request_of())
    good.answers(good.hears("request"))
    assert isinstance(result(future), Compiled)


@pytest.mark.parametrize("how", ["gone", "deaf"])
def test_a_worker_that_cannot_be_sent_to_is_lost_at_once(open_farm, peer_of, request_of, monkeypatch, how):
    """However long its lease is; and only so much is kept for it."""
    monkeypatch.setattr(sockets, "MAX_UNSENT", 8)
    farm = open_farm(heartbeat_s=3600.0)
    peer = peer_of(farm)
    peer.socket.set(zmq.RCVHWM, 1)
    peer.joins(slots=1000)
    if how == "gone":
        peer.close()
    large = replace(request_of(), template=bytes(200_000))
    for _ in range(300):
        farm.submit(compile_request, large)
    wait_until(lambda: farm.status() == {"workers": 0, "lost": 1})


def test_a_program_that_fails_on_this_machine_too_has_failed(open_farm, peer_of, language, request_of, monkeypatch):
    monkeypatch.setattr(server, "compile_request", reject)
    batch = programs(language, [BAD])
    words, lengths, hashes = pack_programs(batch.words, batch.hashes)
    farm = open_farm()
    future = farm.submit(reject, replace(request_of(), words=words, lengths=lengths, hashes=hashes))
    peer = peer_of(farm)
    peer.joins()
    peer.say("answer", peer.hears("request")[1], "how", 0.0, 0.0, b"")
    assert result(future) == CompileFailure(FailureKind.REJECTED, "line 1: bad")


@pytest.mark.parametrize("how", ["failures", "losses"])
def test_a_request_that_fails_only_elsewhere_has_not_failed(open_farm, peer_of, request_of, monkeypatch, caplog, how):
    monkeypatch.setattr(server, "MAX_LOSSES", 2)
    farm = open_farm()
    future = farm.submit(compile_request, request_of())
    for number in range(1 if how == "failures" else 2):
        peer = peer_of(farm)
        peer.joins(name=f"machine {number}")
        request = peer.hears("request")
        if how == "failures":
            peer.say("answer", request[1], "no memory", 0.0, 0.0, b"")
        else:
            peer.say("garbage")
    assert result(future) == compile_request(request_of())
    lines = [record.message for record in caplog.records if "this machine" in record.message]
    reason = "no memory" if how == "failures" else "2 workers were lost while they compiled it"
    assert lines == [f"farm: workers failed at a program that compiles on this machine: {reason}"]


def test_no_worker_is_to_blame_for_a_time_in_which_the_run_stood_still(open_farm, peer_of, monkeypatch):
    farm = open_farm()  # whose workers are lost after 75 s
    peer = peer_of(farm)
    peer.joins()
    monotonic = server.time.monotonic
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: monotonic() + 3600.0))
    farm._router.wake()
    wait_until(lambda: farm._looked_s > 3600.0)  # and nobody has said anything
    peer.say("beat")
    peer.hears("beat")
    assert farm.status() == {"workers": 1, "lost": 0}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_farm_that_breaks_gives_its_error_to_whoever_waits(open_farm, peer_of, request_of, monkeypatch):
    farm = open_farm()
    peer = peer_of(farm)
    peer.joins()
    future = farm.submit(compile_request, request_of())
    monkeypatch.setattr(protocol, "decode", lambda *_: 1 // 0)
    peer.say("beat")
    assert isinstance(future.exception(LIMIT_S), ZeroDivisionError)
    with pytest.raises(RuntimeError, match="closed"):
        farm.submit(compile_request, request_of())


def test_no_descriptor_is_left_behind(request_of):
    def count() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    CompileFarm("tcp://127.0.0.1:0", num_local=0).shutdown()
    before = count()
    for _ in range(5):
        farm = CompileFarm("tcp://127.0.0.1:0", num_local=0)
        peer = Peer(farm.address)
        peer.joins()
        farm.submit(compile_request, request_of())
        farm.shutdown(cancel_futures=True)
        farm.shutdown()
        peer.close()
        del farm
    assert count() <= before


# ---- many workers, without sockets and clocks


class Mischief:
    """In place of the router: workers that join, vanish, leave, fall silent, and answer late and twice, drawn from one seed."""

    address = "tcp://127.0.0.1:1"

    def __init__(self, seed: int):
        self.random, self.now_s, self.steps = random.Random(seed), 0.0, 0
        self.counts, self.peers, self.unreachable, self.sent = Counter(), set(), set(), []

    def monotonic(self) -> float:
        return self.now_s

    def wake(self) -> None:
        pass

    def may_work(self, key) -> bool:
        return True

    def admit(self, descriptor) -> None:
        pass

    def close(self) -> None:
        pass

    def refuse(self, name, reason, peer) -> None:
        raise AssertionError(reason)

    def send(self, message, peer=None) -> bool:
        if message[0] == "request":
            self.sent.append((peer, message))
            held = self.farm._workers[peer].jobs
            assert len(held) <= self.farm._workers[peer].slots + 1
        return peer not in self.unreachable

    def receive(self, seconds, at_most):
        """One act of a worker, or an answer that may be late or the second one."""
        self.steps += 1
        assert self.steps < 100_000, "requests are left over"
        act = self.random.choices((self.join, self.go, self.answer, self.beat, self.cancel), (3, 1, 40, 10, 1))[0]
        self.now_s += self.random.uniform(0.0, 0.05)
        for peer, message in act():
            yield peer, protocol.encode(message), 0, None

    def join(self):
        peer = b"%d" % self.counts["join"]
        self.counts["join"] += 1
        self.peers.add(peer)
        yield peer, hello(self.random.randint(1, 4))

    def go(self):
        if len(self.peers) > 3:
            peer = self.random.choice(sorted(self.peers))
            self.peers.remove(peer)
            how = self.random.choice(("silent", "unreachable", "leaves"))
            if how == "unreachable":
                self.unreachable.add(peer)
            elif how == "leaves":
                yield peer, ("bye",)

    def answer(self):
        if self.sent:
            peer, message = self.sent[self.random.randrange(-min(9, len(self.sent)), 0)]
            self.counts["late"] += message[1] not in getattr(self.farm._workers.get(peer), "jobs", {})
            yield peer, ("answer", message[1], "", 0.0, 0.0, message[3])  # the request's lengths tell it from others

    def cancel(self):
        self.random.choice(self.futures).cancel()
        return ()

    def beat(self):
        for peer in sorted(self.peers):
            if self.random.random() < 0.9:
                yield peer, ("beat",)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_workers_do_each_request_ends_once_with_its_own_answer(request_of, monkeypatch, seed):
    mischief = Mischief(seed)
    monkeypatch.setattr(server, "Router", lambda *_: mischief)
    monkeypatch.setattr(server, "time", mischief)
    monkeypatch.setattr(server, "MAX_LOSSES", 10**6)
    monkeypatch.setattr(server.threading, "Thread", lambda **options: SimpleNamespace(start=lambda: None, join=lambda: None))
    farm = mischief.farm = CompileFarm("tcp://127.0.0.1:1", num_local=0)
    plain = request_of(1)
    requests = [replace(plain, lengths=struct.pack("<I", number)) for number in range(200)]
    futures = mischief.futures = [farm.submit(compile_request, request) for request in requests]
    farm.shutdown()
    farm._serve()  # until none is left
    for number, future in enumerate(futures):
        assert future.cancelled() or future.result(0).cubin == struct.pack("<I", number)
    assert sum(future.cancelled() for future in futures) < 100
    assert farm._num_lost > 5 and mischief.counts["late"] > 30


def test_an_address_that_cannot_be_listened_at_is_refused(open_farm, tmp_path):
    farm = open_farm()
    with pytest.raises(UserError, match=f"cannot listen at {farm.address}: Address already in use; another run may do so"):
        CompileFarm(farm.address, num_local=0)
    run, _ = make_keys(tmp_path, "worker")
    with pytest.raises(UserError, match=r"cannot listen at tcp://192\.0\.2\.1:5711: .*; give the number of an address of this"):
        CompileFarm("tcp://192.0.2.1:5711", run, num_local=0)


# ---- who may connect


@pytest.fixture
def keys(tmp_path):
    """Folders of the run's keys, of a worker's, and of a worker's of another run."""
    run, worker = make_keys(tmp_path / "keys", "worker")
    _, stranger = make_keys(tmp_path / "other", "worker")
    return run, WorkerKeys.read(worker), WorkerKeys.read(stranger)


def good_peer(run, peer_of, farm) -> Peer:
    make_keys(run.parent, "good")
    good = peer_of(farm, WorkerKeys.read(run.parent / "good"))
    good.joins(name="good")
    return good


@pytest.mark.parametrize("kind", ["no key", "unknown key", "key of another run", "deleted key"])
def test_no_other_worker_gets_a_word_through(open_farm, peer_of, request_of, keys, kind, caplog):
    run, worker, stranger = keys
    if kind == "deleted key":
        (run / "workers" / "worker.public").unlink()
    theirs = {
        "no key": None,
        "unknown key": WorkerKeys(stranger.secret, worker.run),
        "key of another run": WorkerKeys(worker.secret, stranger.run),
        "deleted key": worker,
    }[kind]
    farm = open_farm(keys=run)
    intruder = peer_of(farm, theirs)
    intruder.say(*hello(name="intruder"))
    farm.submit(compile_request, request_of())
    if kind != "no key":  # which libzmq tells nobody
        assert intruder.handshake_failures.poll(LIMIT_S * 1000), "the handshake succeeded"
    assert good_peer(run, peer_of, farm).hears("request")
    assert farm.status()["workers"] == 1
    assert not intruder.socket.poll(0)
    if kind in ("unknown key", "deleted key"):
        assert "its key is not in the workers/ of this run's keys" in caplog.records[0].message


def test_a_worker_whose_key_is_deleted_is_cut_off_and_its_requests_go_to_others(open_farm, peer_of, request_of, keys):
    run, worker, _ = keys
    farm = open_farm(keys=run, heartbeat_s=1.0)
    traitor = peer_of(farm, worker)
    traitor.joins(name="traitor")
    future = farm.submit(compile_request, request_of())
    request = traitor.hears("request")
    (run / "workers" / "worker.public").unlink()
    assert traitor.hears("refused")[1] == server.NO_LONGER
    traitor.answers(request)  # too late
    traitor.hears("bye")
    traitor.say(*hello(name="traitor"))
    assert traitor.hears("refused")[1] == server.NO_LONGER
    good = good_peer(run, peer_of, farm)
    good.answers(good.hears("request"))
    assert result(future) == compile_request(request_of())


def test_only_a_farm_that_knows_its_workers_fills_the_cache(open_farm, keys):
    assert open_farm(keys=keys[0]).fills_cache
    assert not open_farm().fills_cache


# ---- below the messages

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


def open_connection(farm: CompileFarm):
    return create_connection(("127.0.0.1", int(farm.address.rpartition(":")[2])), LIMIT_S)


def connect(farm: CompileFarm):
    """A connection with its handshake done."""
    connection = open_connection(farm)
    connection.sendall(GREETING + b"\x04" + bytes([len(READY)]) + READY)
    received = b""
    while b"READY" not in received or b"ROUTER" not in received:
        received += connection.recv(4096)
    return connection


def has_ended(connection) -> bool:
    """Return whether the farm has ended a connection, whatever it has sent before."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_a_crowd_of_strangers_is_shed_from_the_oldest_on_and_workers_stay(open_farm, peer_of, monkeypatch):
    monkeypatch.setattr(sockets, "MAX_STRANGERS", 20)
    farm = open_farm()
    worker = peer_of(farm)
    worker.joins()
    strangers = [connect(farm) for _ in range(40)] + [open_connection(farm) for _ in range(10)]
    wait_until(lambda: all(has_ended(stranger) for stranger in strangers[:30]))
    assert not any(has_ended(stranger) for stranger in strangers[30:])
    worker.say("beat")
    worker.hears("beat")
    peer_of(farm).joins()
    wait_until(lambda: farm.num_workers == 2)
    for stranger in strangers:
        stranger.close()


def test_a_handshake_that_does_not_end_is_ended(open_farm, monkeypatch):
    monkeypatch.setattr(sockets, "HANDSHAKE_MS", 100)
    silent = open_connection(open_farm())
    silent.sendall(GREETING[:11])
    while silent.recv(4096):
        pass
    silent.close()
