"""The run's side of the farm over real sockets: whatever peers do, each request is answered once, by a right answer."""

import os
import time
from concurrent.futures import CancelledError
from dataclasses import replace
from types import SimpleNamespace

import pytest
import zmq
from compile_cases import BAD, programs, reject
from processes import LIMIT_S

from evo.compile.farm import protocol, router, schedule, server
from evo.compile.farm.keys import WorkerKeys, make_keys
from evo.compile.farm.protocol import Answer, Beat, Bye, Cancel, Hello, Refused, Request, Shared, Welcome, Who, encode, seal
from evo.compile.farm.server import CompileFarm
from evo.compile.request import Compiled, CompileFailure, compile_request, pack_programs
from evo.errors import FailureKind

from .conftest import Peer


def test_shared_parts_are_sent_once_a_worker_and_again_when_it_has_forgotten_them(open_farm, peer_of, request_of, monkeypatch):
    monkeypatch.setattr(schedule, "FIRST_SLOTS", 100)
    farm = open_farm()
    peer = peer_of(farm)
    peer.hello(slots=100)
    for _ in range(3):
        farm.submit(compile_request, request_of())
    peer.hears(Shared)
    for _ in range(3):
        peer.hears(Request)
    for sites in range(10, 10 + protocol.MAX_SHARED):  # so many others that the first are forgotten
        farm.submit(compile_request, request_of(sites_per_kernel=sites))
        assert peer.hears(Shared).sites_per_kernel == sites
        peer.hears(Request)
    farm.submit(compile_request, request_of())
    assert peer.hears(Shared).sites_per_kernel == 3


WRONG = {
    "truncated after it was sealed": lambda peer, request: _with(peer.answer_to(request), content=lambda c: c[:-100]),
    "truncated before": lambda peer, request: peer.answer_to(request, content=peer.answer_to(request).content[:-100]),
    "one wrong bit": lambda peer, request: _with(
        peer.answer_to(request), content=lambda c: c[:99] + bytes([c[99] ^ 1]) + c[100:]
    ),
    "no cubin": lambda peer, request: peer.answer_to(request, content=b"not a cubin"),
    "empty": lambda peer, request: peer.answer_to(request, content=b""),
    "of another request": lambda peer, request: _with(
        peer.answer_to(request), seal=lambda s: seal(request.shared, bytes(32), b"")
    ),
    "cancelled unasked": lambda peer, request: peer.answer_to(request, "cancelled", b""),
}


def _with(answer: Answer, **changes) -> Answer:
    return Answer(**{**vars(answer), **{name: change(getattr(answer, name)) for name, change in changes.items()}})


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_dropped_with_its_worker_and_the_request_goes_to_another(open_farm, peer_of, request_of, wrong, caplog):
    farm = open_farm()
    bad, good = peer_of(farm), peer_of(farm)
    bad.hello(name="bad")
    future = farm.submit(compile_request, request_of())
    bad.say(WRONG[wrong](bad, bad.request()))
    assert bad.hears(Refused).reason.startswith("a wrong answer: ")
    assert [record.message.split(": a wrong")[0] for record in caplog.records] == ["farm: a worker at bad is refused"]
    good.hello(name="good")
    good.say(good.answer_to(good.request()))
    assert future.result(LIMIT_S).cubin == compile_request(request_of()).cubin


@pytest.mark.parametrize("has_keys", [True, False])
def test_a_wrong_cubin_is_found_its_worker_is_banned_and_what_it_made_is_not_trusted(
    open_farm, peer_of, request_of, tmp_path, monkeypatch, caplog, has_keys
):
    monkeypatch.setattr(server, "CHECK_ONE_IN", 10**9)
    run, folder = make_keys(tmp_path, "worker")
    keys = WorkerKeys.read(folder) if has_keys else None
    public = zmq.curve_public(keys.secret).decode() if keys else server.ANYBODY
    farm = open_farm(keys=run if has_keys else None)
    liar = peer_of(farm, keys)
    liar.hello(name="liar")
    wrong = compile_request(request_of(2, 5)).cubin  # well formed, and of another pair of programs
    future = farm.submit(compile_request, request_of())
    liar.say(liar.answer_to(liar.request(), content=wrong))
    unchecked = future.result(LIMIT_S)
    assert (unchecked.cubin, unchecked.maker, farm.trusts(public)) == (wrong, public, has_keys)

    monkeypatch.setattr(server, "CHECK_ONE_IN", 1)
    future = farm.submit(compile_request, request_of())
    liar.say(liar.answer_to(liar.request(), content=wrong))
    assert future.result(LIMIT_S) == compile_request(request_of())
    assert liar.hears(Refused).reason == "it made a wrong cubin"
    assert not farm.trusts(public) and farm.trusts("")
    assert "the worker at liar made a wrong cubin, so it is banned" in caplog.records[0].message
    liar.say(Beat())
    liar.hears(Who)
    if has_keys:
        liar.say(Hello(protocol.PROTOCOL, protocol.versions(), 1, "another name"))
        assert liar.hears(Refused).reason == server.NO_LONGER


def test_a_worker_cannot_answer_in_the_name_of_another_one(open_farm, peer_of, request_of, tmp_path):
    run, folder = make_keys(tmp_path, "worker")
    farm = open_farm(keys=run)
    worker = peer_of(farm, WorkerKeys.read(folder))
    worker.hello()
    future = farm.submit(compile_request, request_of())
    answer = worker.answer_to(worker.request())
    (name,) = farm._shared
    farm._command(lambda: farm._handle(name, answer, router.Origin(0, "another key")))
    worker.hears(Who)
    assert not future.done()


def test_the_first_answer_counts_and_the_other_worker_is_told(open_farm, peer_of, request_of, monkeypatch):
    for name in ("LATE_S", "LATE_TIMES"):
        monkeypatch.setattr(schedule, name, 0.0)
    farm = open_farm()
    slow, fast = peer_of(farm), peer_of(farm)
    slow.hello(name="slow")
    future = farm.submit(compile_request, request_of())
    held = slow.request()
    fast.hello(name="fast")
    copy = fast.request()
    assert copy.words == held.words and copy.lease != held.lease
    fast.say(fast.answer_to(copy))
    assert future.result(LIMIT_S) == compile_request(request_of())
    assert slow.hears(Cancel).lease == held.lease
    assert farm.status()["late"] == 1


GARBAGE = [[b"\xc1\xff"], [b""], [b"x" * 20_000], [b"\x91\xa5hello"], encode(Welcome(1.0, 1.0)), [*encode(Beat()), b"more"]]


def test_garbage_is_refused_and_disturbs_nobody(open_farm, peer_of, request_of, caplog):
    farm = open_farm()
    good, stranger, traitor = (peer_of(farm) for _ in range(3))
    traitor.hello(name="traitor")
    future = farm.submit(compile_request, request_of())
    traitor.request()
    for frames in GARBAGE:
        for peer in (stranger, traitor):
            peer.socket.send_multipart(frames)
            assert peer.hears(Refused)
    good.hello(name="good")
    good.say(good.answer_to(good.request()))  # the traitor's request
    assert future.result(LIMIT_S).cubin
    assert len(caplog.records) == 2 * len(GARBAGE)


@pytest.mark.parametrize("change", [{"nvPTXCompiler": "12.9.0"}, {"instruction sets": "0"}, {"evo": "0.0.1"}])
def test_a_worker_of_another_version_is_refused_in_one_line_on_both_sides(open_farm, peer_of, caplog, change):
    farm = open_farm()
    peer = peer_of(farm)
    peer.say(Hello(protocol.PROTOCOL, {**protocol.versions(), **change}, 1, "old"))
    ((name, value),) = change.items()
    reason = (
        f"the worker has {name} {value} and the run has {protocol.versions()[name]}: install one version of evo on both machines"
    )
    assert peer.hears(Refused).reason == reason
    assert [record.message for record in caplog.records] == [f"farm: a worker at old is refused: {reason}"]
    peer.say(Beat())
    peer.hears(Who)


def test_the_requests_of_a_silent_worker_go_to_another_and_its_late_answer_is_dropped(open_farm, peer_of, request_of):
    farm = open_farm(heartbeat_s=0.5)
    silent, other = peer_of(farm), peer_of(farm)
    silent.hello(slots=2, name="silent")
    future = farm.submit(compile_request, request_of())
    request = silent.request()
    late = silent.answer_to(request)
    other.shared.update(silent.shared)
    while farm.num_workers == 2:
        time.sleep(0.01)
    other.hello(name="other")
    again = other.request()
    silent.say(late)
    while isinstance(message := silent.hears((Beat, Who)), Beat):  # beats asked whether it is still there
        pass
    assert message == Who()
    other.say(other.answer_to(again, content=late.content))
    assert future.result(LIMIT_S).cubin == late.content


def test_a_request_is_cancelled_in_line_and_in_a_workers_hands(open_farm, peer_of, request_of):
    farm = open_farm()
    peer = peer_of(farm)
    peer.hello()
    futures = [farm.submit(compile_request, request_of(1, i)) for i in range(4)]
    held, waiting = peer.request(), peer.request()
    assert futures[2].cancel() and futures[0].cancel()
    assert peer.hears(Cancel).lease == held.lease
    peer.say(peer.answer_to(held, "cancelled", b""))
    last = peer.request()
    for request in (waiting, last):
        peer.say(peer.answer_to(request))
    assert [futures[i].result(LIMIT_S).cubin for i in (1, 3)] == [compile_request(request_of(1, i)).cubin for i in (1, 3)]
    with pytest.raises(CancelledError):
        futures[0].result()


def test_the_farm_takes_its_leave_when_it_closes(open_farm, peer_of, request_of):
    farm = open_farm()
    peer = peer_of(farm)
    peer.hello()
    future = farm.submit(compile_request, request_of())
    peer.request()
    farm.shutdown(cancel_futures=True)
    assert future.cancelled()
    assert peer.hears(Cancel) and peer.hears(Bye)
    with pytest.raises(RuntimeError, match="closed"):
        farm.submit(compile_request, request_of())
    with pytest.raises(ValueError, match="takes compile requests only"):
        farm.submit(divmod, 7, 3)


def test_local_processes_and_workers_share_the_work(open_farm, peer_of, request_of):
    farm = open_farm(num_local=1)
    assert farm.num_workers == 1
    peer = peer_of(farm)
    peer.hello(slots=2)
    peer.say(Beat())
    peer.hears(Beat)  # so what follows the welcome is done
    assert farm.num_workers == 3
    futures = [farm.submit(compile_request, request_of(1, i)) for i in range(5)]
    requests = [peer.request() for _ in range(3)]
    for request in requests:
        peer.say(peer.answer_to(request))
    assert [future.result(LIMIT_S).cubin for future in futures] == [compile_request(request_of(1, i)).cubin for i in range(5)]
    assert farm.submit(divmod, 7, 3).result(LIMIT_S) == (2, 1)


def test_a_worker_that_reads_nothing_holds_up_nobody(open_farm, peer_of, request_of):
    """It says things that are answered until its buffers and the farm's for it are full."""
    farm = open_farm()
    deaf, good = peer_of(farm), peer_of(farm)
    deaf.socket.set(zmq.RCVHWM, 1)
    for _ in range(20_000):
        deaf.say(Beat())
    good.hello(name="good")
    future = farm.submit(compile_request, request_of())
    good.say(good.answer_to(good.request()))
    assert isinstance(future.result(LIMIT_S), Compiled)


def test_a_program_that_fails_on_this_machine_too_has_failed(open_farm, peer_of, language, request_of, monkeypatch):
    monkeypatch.setattr(server, "compile_request", reject)
    batch = programs(language, [BAD])
    words, lengths, hashes = pack_programs(batch.words, batch.hashes)
    farm = open_farm()
    future = farm.submit(reject, replace(request_of(), words=words, lengths=lengths, hashes=hashes))
    peer = peer_of(farm)
    peer.hello()
    peer.say(peer.answer_to(peer.request(), "died", b"how"))
    assert future.result(LIMIT_S) == CompileFailure(FailureKind.REJECTED, "line 1: bad")


@pytest.mark.parametrize("num_programs", [1, 2])
@pytest.mark.parametrize("how", ["failures", "losses"])
def test_what_fails_only_elsewhere_has_not_failed(open_farm, peer_of, request_of, monkeypatch, caplog, how, num_programs):
    monkeypatch.setattr(schedule, "MAX_LOSSES", 2)
    farm, request = open_farm(), request_of(num_programs)
    future = farm.submit(compile_request, request)
    for number in range(1 if how == "failures" else 2):
        peer = peer_of(farm)
        peer.hello(name=f"machine {number}")
        answer = peer.answer_to(peer.request(), "rejected", b"no memory")
        peer.say(answer if how == "failures" else Bye("no memory"))
    assert future.result(LIMIT_S).cubin == compile_request(request).cubin
    lines = [record.message for record in caplog.records if "this machine" in record.message]
    reason = "no memory" if how == "failures" else "2 workers were lost while they compiled it"
    assert lines == [f"farm: workers failed at a program that compiles on this machine: {reason}"]


def test_no_worker_is_to_blame_for_a_time_in_which_the_run_stood_still(open_farm, peer_of, monkeypatch):
    farm = open_farm()  # whose workers are lost after 75 s
    peer = peer_of(farm)
    peer.hello()
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 3600.0))
    peer.say(Beat())
    peer.hears(Beat)
    peer.say(Beat())  # and it has looked at the clock
    peer.hears(Beat)
    assert farm.status() == {"workers": 1, "lost": 0, "late": 0}


def test_a_farm_that_closes_without_waiting_fulfils_what_it_has_and_takes_no_more(open_farm, request_of):
    farm = open_farm(num_local=1)
    futures = [farm.submit(compile_request, request_of(1, i)) for i in range(5)]
    farm.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="closed"):
        farm.submit(compile_request, request_of())
    assert [future.result(LIMIT_S).cubin for future in futures] == [compile_request(request_of(1, i)).cubin for i in range(5)]
    farm.shutdown()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_farm_that_breaks_gives_its_error_to_whoever_waits(open_farm, peer_of, request_of, monkeypatch):
    farm = open_farm()
    peer = peer_of(farm)
    peer.hello()
    future = farm.submit(compile_request, request_of())
    monkeypatch.setattr(protocol, "decode", lambda *_: 1 // 0)
    peer.say(Beat())
    assert isinstance(future.exception(LIMIT_S), ZeroDivisionError)
    with pytest.raises(RuntimeError, match="closed"):
        farm.submit(compile_request, request_of())


def test_no_descriptor_is_left_behind(request_of):
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    CompileFarm("tcp://127.0.0.1:0", num_local=0).shutdown()
    before = count()
    for _ in range(5):
        farm = CompileFarm("tcp://127.0.0.1:0", num_local=0)
        peer = Peer(farm.address)
        peer.hello()
        farm.submit(compile_request, request_of())
        farm.shutdown(cancel_futures=True)
        farm.shutdown()
        peer.close()
    assert count() <= before
