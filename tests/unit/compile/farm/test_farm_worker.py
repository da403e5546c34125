"""A worker over real sockets and with real processes: what it answers, and what it does if the run goes, errs or refuses."""

import pytest
from compile_cases import BAD, die, hang, programs, reject
from processes import LIMIT_S

from evo.compile.farm import farm_worker, protocol
from evo.compile.farm.keys import make_keys
from evo.compile.request import CompileRequest, compile_request, pack_programs
from evo.errors import UserError


@pytest.fixture
def bad_request(language, request_of):
    """A request of one program, at which the functions of compile_cases fail."""
    batch = programs(language, [BAD])
    return CompileRequest(*pack_programs(batch.words, batch.hashes), request_of().language, "sm_90", 3)


def test_a_worker_offers_itself_and_answers_with_the_cubin_that_this_process_makes(played_run, start_worker, request_of):
    running = start_worker(played_run.address, num_workers=2)
    _, versions, slots, _ = played_run.takes()
    assert (versions, slots) == (protocol.versions(), 2)
    for number, request in ((5, request_of()), (6, request_of(3))):
        played_run.sends(number, request)
        _, answered, failure, compiler_s, _, cubin = played_run.hears("answer")
        assert (answered, failure, cubin) == (number, "", compile_request(request).cubin)
        assert compiler_s > 0
    running.end()
    assert played_run.hears("bye")
    status = running.worker.status
    assert (status.requests, status.programs, status.failures) == (2, 5, 0)


@pytest.mark.parametrize(
    ("function", "reason"),
    [(reject, "line 1: bad"), (die, "the compile process was killed by SIGSEGV"), (hang, "the time limit passed")],
)
def test_a_failure_is_told_with_its_reason(played_run, start_worker, bad_request, monkeypatch, function, reason):
    monkeypatch.setattr(farm_worker, "compile_request", function)
    worker = start_worker(played_run.address).worker
    played_run.takes(compile_s=3.0)
    played_run.sends(1, bad_request)
    assert played_run.hears("answer") == ("answer", 1, reason, 0.0, 0.0, b"")
    assert (worker.status.requests, worker.status.programs, worker.status.failures) == (1, 1, 1)


@pytest.mark.parametrize("how", ["cancel", "bye", "welcome"])
def test_work_that_the_run_gives_up_is_ended_and_not_answered(
    played_run, start_worker, bad_request, request_of, monkeypatch, how
):
    monkeypatch.setattr(farm_worker, "compile_request", hang)
    start_worker(played_run.address)
    played_run.takes(compile_s=600.0)
    played_run.sends(1, bad_request)
    if how == "cancel":
        played_run.say("cancel", 1)
    elif how == "bye":  # as from a run that does not know it
        played_run.say("bye")
        played_run.takes()
    else:
        played_run.say("welcome", 30.0, 60.0)
    played_run.sends(2, request_of())
    assert played_run.hears("answer")[1] == 2


def test_requests_before_a_worker_is_taken_again_are_of_the_past(played_run, start_worker, request_of):
    """As after a pause of the run: the worker has forgotten what it was given, which the run does not know yet."""
    start_worker(played_run.address)
    played_run.takes()
    played_run.say("bye")
    played_run.hears("hello")
    played_run.sends(1, request_of())
    played_run.say("cancel", 1)
    played_run.takes()
    played_run.sends(2, request_of())
    assert played_run.hears("answer")[1] == 2


def test_a_worker_whose_run_falls_silent_offers_itself_again(played_run, start_worker, request_of):
    start_worker(played_run.address)
    played_run.takes(heartbeat_s=0.05)
    played_run.hears("beat")
    played_run.takes()  # after three beats without an answer
    played_run.sends(1, request_of())
    assert played_run.hears("answer")[2] == ""


def test_a_worker_beats_while_its_processes_work(played_run, start_worker, bad_request, monkeypatch):
    monkeypatch.setattr(farm_worker, "compile_request", hang)
    start_worker(played_run.address)
    played_run.takes(heartbeat_s=0.5, compile_s=600.0)  # long beside the time in which this process may stand still
    played_run.sends(1, bad_request)
    for _ in range(4):  # more than a worker beats without an answer
        _, *frames = played_run.receive()
        assert protocol.decode(frames) == ("beat",)
        played_run.say("beat")


def test_a_worker_that_is_refused_ends_with_the_runs_line(played_run, start_worker):
    running = start_worker(played_run.address)
    played_run.hears("hello")
    played_run.say("refused", "the worker has evo 1 and the run has 2:\x1b install one version of evo on both machines")
    error = running.error()
    assert isinstance(error, UserError)
    assert str(error) == (
        f"the run at {played_run.address} refuses this worker: the worker has evo 1 and the run has 2:? install one version "
        "of evo on both machines"
    )


def test_a_run_that_sends_garbage_is_left_with_a_line(played_run, start_worker):
    running = start_worker(played_run.address)
    played_run.takes()
    played_run.socket.send_multipart([played_run.worker, b"garbage"])
    error = running.error()
    assert isinstance(error, UserError) and "is not of this worker's version: a header is not msgpack" in str(error)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("unknown key", "does not know this worker's key"),
        ("no key", "the run has keys: give this worker some by --keys"),
        ("needless key", "the run has no keys, so leave --keys out"),
    ],
)
def test_a_worker_that_is_not_admitted_ends_with_the_reason(tmp_path, open_farm, start_worker, kind, reason):
    run, known = make_keys(tmp_path / "keys", "worker")
    _, stranger = make_keys(tmp_path / "other", "worker")
    (stranger / "run.public").write_bytes((known / "run.public").read_bytes())
    farm = open_farm(keys=None if kind == "needless key" else run)
    error = start_worker(farm.address, None if kind == "no key" else stranger).error()
    assert isinstance(error, UserError) and reason in str(error)


def test_a_worker_without_a_run_ends_and_one_that_has_had_one_waits_anew(played_run, start_worker):
    running = start_worker("tcp://127.0.0.1:1", idle_s=0.0)
    assert running.error() is None
    assert running.lines == ["no run for 0 s: this worker ends"]
    busy = start_worker(played_run.address, idle_s=1e6)
    played_run.takes()
    busy.end()


def test_a_worker_finds_each_run_that_writes_its_address(tmp_path, open_farm, start_worker, request_of):
    file = tmp_path / "server"
    start_worker(file)
    for _ in range(2):  # each on another port
        farm = open_farm(server_file=file)
        assert farm.submit(compile_request, request_of()).result(LIMIT_S) == compile_request(request_of())
        farm.shutdown()
