"""The run's socket: who is let in, and what is not ZeroMQ at all."""

import resource
import socket
import struct

import pytest
import zmq
from processes import LIMIT_S, wait_until

from evo.compile.farm import protocol, router
from evo.compile.farm.keys import WorkerKeys, make_keys
from evo.compile.farm.protocol import Beat, Hello, Refused, Who
from evo.compile.farm.server import CompileFarm
from evo.compile.request import compile_request
from evo.errors import UserError


def test_an_address_in_use_is_refused(open_farm):
    farm = open_farm()
    with pytest.raises(UserError, match=f"cannot listen at {farm.address}: Address already in use; another run may do so"):
        CompileFarm(farm.address, num_local=0)


def test_an_address_of_another_machine_is_refused(tmp_path):
    run, _ = make_keys(tmp_path, "worker")
    with pytest.raises(
        UserError, match=r"cannot listen at tcp://192\.0\.2\.1:5711: .*; give the number of an address of this machine"
    ):
        CompileFarm("tcp://192.0.2.1:5711", run, num_local=0)


def test_there_is_an_end_to_lines_about_peers_that_are_refused(open_farm, peer_of, caplog):
    farm = open_farm()
    peer = peer_of(farm)
    for _ in range(router.MAX_REFUSALS + 20):
        peer.socket.send(b"garbage")
        peer.hears(Refused)
    assert len(caplog.records) == router.MAX_REFUSALS
    assert caplog.records[-1].message.endswith("further refusals are not reported")


@pytest.fixture
def keys(tmp_path):
    """Folders of the run's keys, of a worker's, and of a worker's of another run."""
    run, worker = make_keys(tmp_path / "keys", "worker")
    _, stranger = make_keys(tmp_path / "other", "worker")
    return run, WorkerKeys.read(worker), WorkerKeys.read(stranger)


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
    intruder.say(Hello(protocol.PROTOCOL, protocol.versions(), 1, "intruder"))
    farm.submit(compile_request, request_of())
    if kind != "no key":  # which libzmq tells nobody
        assert intruder.handshake_failures.poll(LIMIT_S * 1000), "the handshake succeeded"
    make_keys(run.parent, "good")
    good = peer_of(farm, WorkerKeys.read(run.parent / "good"))
    good.hello(name="good")
    assert good.request()
    assert farm.num_workers == 1
    assert not intruder.socket.poll(0)
    if kind in ("unknown key", "deleted key"):
        assert "its key is not in the workers/ of this run's keys" in caplog.records[0].message


def test_a_worker_whose_key_is_deleted_is_cut_off_and_its_requests_go_to_others(open_farm, peer_of, request_of, keys, caplog):
    run, worker, _ = keys
    farm = open_farm(keys=run, heartbeat_s=1.0)
    traitor = peer_of(farm, worker)
    traitor.hello(name="traitor")
    future = farm.submit(compile_request, request_of())
    request = traitor.request()
    (run / "workers" / "worker.public").unlink()
    farm._command(farm._router.look_at_keys)  # as when a stranger asks
    while isinstance(refused := traitor.hears((Refused, Beat)), Beat):
        pass
    assert refused.reason == "its key is not, or no longer, in the workers/ of this run's keys"
    traitor.say(traitor.answer_to(request))  # too late
    traitor.say(Hello(protocol.PROTOCOL, protocol.versions(), 1, "traitor"))
    while not isinstance(message := traitor.hears((Refused, Beat, Who)), Refused):
        assert isinstance(message, (Beat, Who))
    make_keys(run.parent, "good")
    good = peer_of(farm, WorkerKeys.read(run.parent / "good"))
    good.hello(name="good")
    good.say(good.answer_to(good.request()))
    good_key = zmq.curve_public(WorkerKeys.read(run.parent / "good").secret).decode()
    compiled = future.result(LIMIT_S)
    assert compiled.maker == good_key and farm.trusts(good_key)


# ---- below the messages

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


def connect(farm: CompileFarm) -> socket.socket:
    """A connection with its handshake done."""
    connection = socket.create_connection(("127.0.0.1", int(farm.address.rpartition(":")[2])), LIMIT_S)
    connection.sendall(GREETING + b"\x04" + bytes([len(READY)]) + READY)
    received = b""
    while b"READY" not in received or b"ROUTER" not in received:
        received += connection.recv(4096)
    return connection


def answer_to_frame(farm: CompileFarm, size: int) -> bytes:
    """All that comes back for a message of one frame of zeros, until the answer `refused` or the connection's end."""
    connection, received = connect(farm), b""
    try:
        connection.sendall(b"\x02" + struct.pack(">Q", size))
        connection.sendall(bytes(size))
        while b"refused" not in received and (more := connection.recv(4096)):
            received += more
    except ConnectionError:
        pass
    finally:
        connection.close()
    return received


def test_a_frame_beyond_the_bound_ends_its_connection_before_it_is_read(open_farm, peer_of):
    farm = open_farm()
    assert b"wrong header" in answer_to_frame(farm, protocol.MAX_FRAME_BYTES)
    assert b"refused" not in answer_to_frame(farm, protocol.MAX_FRAME_BYTES + (1 << 20))
    connection = connect(farm)
    connection.sendall(b"\x02" + struct.pack(">Q", 1 << 62))
    peer_of(farm).hello()
    connection.close()


def has_ended(connection: socket.socket) -> bool:
    """Whether the farm has ended a connection, whatever it has sent before."""
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
    monkeypatch.setattr(router, "MAX_STRANGERS", 20)
    farm = open_farm()
    worker = peer_of(farm)
    worker.hello()
    strangers = [connect(farm) for _ in range(50)]
    wait_until(lambda: all(has_ended(stranger) for stranger in strangers[:30]))
    assert not any(has_ended(stranger) for stranger in strangers[30:])
    worker.say(Beat())
    worker.hears(Beat)
    late = peer_of(farm)
    late.hello()
    wait_until(lambda: farm.num_workers == 2)
    for stranger in strangers:
        stranger.close()


def test_connections_leave_descriptors_for_the_rest_of_the_run(open_farm, peer_of, monkeypatch):
    """As of a farm whose limit is reached by its own workers."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(router, "OTHER_DESCRIPTORS", min(router.MAX_CONNECTIONS + router.OTHER_DESCRIPTORS, limits[1]) - 4)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, limits[1]))
    try:
        farm = open_farm()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 400
        peers = [peer_of(farm) for _ in range(4)]
        for peer in peers:
            peer.hello()
        strangers = [socket.create_connection(("127.0.0.1", int(farm.address.rpartition(":")[2])), LIMIT_S) for _ in range(20)]
        wait_until(lambda: all(map(has_ended, strangers)))
        wait_until(lambda: farm.num_workers == 4)
        for stranger in strangers:
            stranger.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_handshake_that_does_not_end_is_ended(open_farm, monkeypatch):
    monkeypatch.setattr(router, "HANDSHAKE_MS", 100)
    farm = open_farm()
    silent = socket.create_connection(("127.0.0.1", int(farm.address.rpartition(":")[2])), LIMIT_S)
    silent.sendall(GREETING[:11])
    while silent.recv(4096):
        pass
    silent.close()


def test_a_crowd_of_idle_connections_keeps_no_worker_from_its_work(open_farm, peer_of, request_of):
    farm = open_farm()
    crowd = [socket.create_connection(("127.0.0.1", int(farm.address.rpartition(":")[2])), LIMIT_S) for _ in range(60)]
    for connection, begin in zip(crowd, [GREETING[:11], b"garbage", b""] * 20, strict=True):
        connection.sendall(begin)
    crowd += [connect(farm) for _ in range(20)]
    peer = peer_of(farm)
    peer.hello()
    future = farm.submit(compile_request, request_of())
    peer.say(peer.answer_to(peer.request()))
    assert future.result(LIMIT_S).cubin == compile_request(request_of()).cubin
    for connection in crowd:
        connection.close()
