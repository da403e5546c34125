"""A worker over real sockets and with real processes: what it answers, and what it does if the run goes, errs or refuses."""

import pytest
from compile_cases import BAD, break_down, die, hang, programs, reject
from processes import LIMIT_S

from evo.compile.farm import farm_worker, protocol
from evo.compile.farm.keys import make_keys
from evo.compile.farm.protocol import Answer, Beat, Bye, Cancel, Hello, Refused, Who, seal
from evo.compile.request import CompileRequest, compile_request, pack_programs
from evo.errors import UserError


@pytest.fixture
def bad_request(language, request_of):
    """A request of one program, at which the functions of compile_cases fail."""
    batch = programs(language, [BAD])
    return CompileRequest(*pack_programs(batch.words, batch.hashes), request_of().language, "sm_90", 3)


def test_a_worker_offers_itself_and_answers_with_the_cubin_that_this_process_makes(played_run, start_worker, request_of):
    running = start_worker(played_run.address, num_workers=2)
    hello = played_run.takes()
    assert (hello.protocol, hello.versions, hello.slots) == (protocol.PROTOCOL, protocol.versions(), 2)
    request = request_of()
    played_run.sends(5, request)
    answer = played_run.hears(Answer)
    assert (answer.lease, answer.outcome, answer.content) == (5, "compiled", compile_request(request).cubin)
    assert answer.seal == seal(protocol.shared_of(request).digest, request.hashes, answer.content)
    assert answer.compiler_s > 0
    played_run.sends(6, request_of(3), with_shared=False)
    assert played_run.hears(Answer).lease == 6
    running.end()
    assert played_run.hears(Bye) == Bye("")
    status = running.worker.status
    assert (status.requests, status.programs, status.failures) == (2, 5, 0)


@pytest.mark.parametrize(
    ("function", "outcome", "log"),
    [(reject, "rejected", b"line 1: bad"), (die, "died", b"the compile process was killed by SIGSEGV"), (hang, "timed out", b"")],
)
def test_a_failure_is_told_with_its_log(played_run, start_worker, bad_request, monkeypatch, function, outcome, log):
    monkeypatch.setattr(farm_worker, "compile_request", function)
    start_worker(played_run.address)
    played_run.takes(compile_s=3.0)
    played_run.sends(1, bad_request)
    answer = played_run.hears(Answer)
    assert (answer.outcome, answer.content) == (outcome, log)


def test_work_that_is_cancelled_is_ended_and_told(played_run, start_worker, bad_request, request_of, monkeypatch):
    monkeypatch.setattr(farm_worker, "compile_request", hang)
    start_worker(played_run.address)
    played_run.takes(compile_s=600.0)
    played_run.sends(1, bad_request)
    played_run.sends(2, request_of())
    played_run.say(Cancel(1))
    answers = [played_run.hears(Answer) for _ in range(2)]
    assert [(answer.lease, answer.outcome) for answer in answers] == [(1, "cancelled"), (2, "compiled")]


def test_a_worker_that_is_not_known_forgets_its_work_and_offers_itself_again(
    played_run, start_worker, bad_request, request_of, monkeypatch
):
    monkeypatch.setattr(farm_worker, "compile_request", hang)
    start_worker(played_run.address)
    played_run.takes(compile_s=600.0)
    played_run.sends(1, bad_request)
    played_run.say(Who())
    played_run.takes()
    played_run.sends(1, request_of())  # the same number, of another run
    answer = played_run.hears(Answer)
    assert (answer.lease, answer.outcome) == (1, "compiled")


def test_what_a_run_sends_before_it_takes_a_worker_again_is_of_the_past(played_run, start_worker, request_of):
    """As after a pause of the run: the worker has forgotten what it was given, which the run does not know yet."""
    start_worker(played_run.address)
    played_run.takes()
    played_run.say(Who())
    played_run.hears(Hello)
    played_run.sends(1, request_of(), with_shared=False)
    played_run.say(Cancel(1))
    played_run.takes()
    played_run.sends(2, request_of())
    assert played_run.hears(Answer).lease == 2


def test_a_worker_whose_run_falls_silent_offers_itself_again(played_run, start_worker, request_of):
    start_worker(played_run.address)
    played_run.takes(heartbeat_s=0.05)
    played_run.hears(Beat)
    played_run.takes()  # after three beats without an answer
    played_run.sends(1, request_of())
    assert played_run.hears(Answer).outcome == "compiled"


def test_a_worker_beats_while_its_processes_work(played_run, start_worker, bad_request, monkeypatch):
    monkeypatch.setattr(farm_worker, "compile_request", hang)
    start_worker(played_run.address)
    played_run.takes(heartbeat_s=0.5, compile_s=600.0)  # long beside the time in which this process may stand still
    played_run.sends(1, bad_request)
    for _ in range(4):  # more than a worker beats without an answer
        _, *frames = played_run.receive()
        assert protocol.decode(frames, protocol.FROM_WORKER) == Beat()
        played_run.say(Beat())


def test_a_worker_that_is_refused_ends_with_the_runs_line(played_run, start_worker):
    running = start_worker(played_run.address)
    played_run.hears(Hello)
    played_run.say(Refused("the worker has evo 1 and the run has 2:\x1b install one version of evo on both machines"))
    error = running.error()
    assert isinstance(error, UserError)
    assert str(error) == (
        f"the run at {played_run.address} refuses this worker: the worker has evo 1 and the run has 2:? install one version "
        "of evo on both machines"
    )


@pytest.mark.parametrize("case", ["garbage", "unknown shared parts", "too much", "same lease", "another message"])
def test_a_run_that_errs_is_left_with_a_line(played_run, start_worker, request_of, bad_request, monkeypatch, case):
    monkeypatch.setattr(farm_worker, "compile_request", hang)
    running = start_worker(played_run.address)
    played_run.takes(compile_s=600.0)
    if case == "garbage":
        played_run.socket.send_multipart([played_run.worker, b"garbage"])
    elif case == "unknown shared parts":
        played_run.sends(1, bad_request, with_shared=False)
    elif case == "too much":
        for lease in range(3):  # one process, and one in waiting
            played_run.sends(lease, bad_request)
    elif case == "same lease":
        for _ in range(2):
            played_run.sends(1, bad_request)
    else:
        played_run.say(Hello(protocol.PROTOCOL, {}, 1, "a worker"))
    error = running.error()
    assert isinstance(error, UserError) and "sent what no run of this version sends: " in str(error)
    assert played_run.hears(Bye)


def test_an_unexpected_error_of_a_worker_is_told_to_the_run(played_run, start_worker, bad_request, monkeypatch):
    monkeypatch.setattr(farm_worker, "compile_request", break_down)
    running = start_worker(played_run.address)
    played_run.takes()
    played_run.sends(1, bad_request)
    assert played_run.hears(Bye).reason == "ZeroDivisionError: a defect of ours"
    assert isinstance(running.error(), ZeroDivisionError)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("unknown key", "does not know this worker's key"),
        ("no key", "the run has keys: give this worker some by --keys"),
        ("needless key", "the run has no keys, so leave --keys out"),
    ],
)
def test_a_worker_that_is_not_let_in_ends_with_the_reason(tmp_path, open_farm, start_worker, kind, reason):
    run, known = make_keys(tmp_path / "keys", "worker")
    _, stranger = make_keys(tmp_path / "other", "worker")
    (stranger / "run.public").write_bytes((known / "run.public").read_bytes())
    farm = open_farm(keys=None if kind == "needless key" else run)
    error = start_worker(farm.address, None if kind == "no key" else stranger).error()
    assert isinstance(error, UserError) and reason in str(error)


def test_a_worker_says_hello_as_soon_as_it_is_connected(played_run, start_worker, monkeypatch):
    monkeypatch.setattr(farm_worker, "HELLO_S", 1e6)
    start_worker(played_run.address)
    played_run.takes()


def test_a_worker_without_a_run_ends_and_one_that_has_had_one_waits_anew(played_run, start_worker):
    running = start_worker("tcp://127.0.0.1:1", idle_s=0.0)
    assert running.error() is None
    assert running.lines == ["no run for 0 s: this worker ends"]
    busy = start_worker(played_run.address, idle_s=1e6)
    played_run.takes()
    busy.end()


def test_a_worker_finds_each_run_that_writes_its_address(tmp_path, open_farm, start_worker, request_of):
    file = tmp_path / "server.json"
    start_worker(file)
    for _ in range(2):  # each on another port
        farm = open_farm(server_file=file)
        assert farm.submit(compile_request, request_of()).result(LIMIT_S) == compile_request(request_of())
        farm.shutdown()
        assert not file.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "not JSON"), ("[]", "not a server file"), ('{"address": "tcp://192.0.2.1:5"}', "192.0.2.1:5 is not on this machine")],
)
def test_a_server_file_of_something_else_is_refused(tmp_path, start_worker, content, message):
    file = tmp_path / "server.json"
    file.write_text(content)
    with pytest.raises(UserError, match=message):
        start_worker(file)
