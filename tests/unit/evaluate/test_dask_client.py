"""Choice of workers for calls, and the fate of calls whose workers or results are lost.

Some tests use a client that stands in for Dask's.
"""

import platform
from concurrent.futures import Future
from importlib.metadata import version
from types import SimpleNamespace

import pytest
from processes import LIMIT_S

import evo
from evo.about import DISTRIBUTION
from evo.errors import DeviceFailure, UserError
from evo.evaluate import dask_client
from evo.evaluate.dask_client import Workers, connect
from evo.evaluate.options import ClusterOptions
from evo.evolution import _plain
from evo.workers.processes import WorkerDied

distributed = pytest.importorskip("distributed", reason="evo-ptx[cluster] is not installed")

GOOD, WRONG = "tcp://good", "tcp://wrong"


class Client:
    """A scheduler with a good worker and one without evo. The first `num_failures` calls end by `failure`, outside of the
    function.
    """

    status = "running"

    def __init__(self, failure: Exception | None = None, num_failures: int = 100):
        self.failure = failure
        self.num_failures = num_failures
        self.present = [GOOD, WRONG]
        self.given: list[list[str]] = []
        self.restarted: list[str] = []

    def scheduler_info(self, n_workers: int) -> dict:
        return {"workers": {address: {"nthreads": 1} for address in self.present}}

    def get_versions(self, packages: list[str]) -> dict:
        own = {name: version(name) for name in packages}
        host = {"machine": platform.machine()}
        packages_of = {WRONG: {**own, DISTRIBUTION: None}}
        return {"workers": {name: {"packages": packages_of.get(name, own), "host": host} for name in self.present}}

    def get_executor(self, pure: bool, workers: list[str]) -> "Client":
        self.given.append(workers)
        return self

    def submit(self, function, *arguments) -> Future:
        future: Future = Future()
        if self.failure and len(self.given) <= self.num_failures:
            future.set_exception(self.failure)
        else:
            future.set_result(function(*arguments))
        return future

    def restart_workers(self, addresses: list[str], **_) -> None:
        self.restarted += addresses


class Silent(Client):
    """A scheduler whose workers do not answer, and which are replaced with each call while there are `num_losses` left."""

    def __init__(self, num_losses: int = 0):
        super().__init__()
        self.present = ["tcp://0"]
        self.num_losses = num_losses
        self.futures: list[Future] = []

    def submit(self, function, *arguments) -> Future:
        self.futures.append(Future())
        if self.num_losses > 0:
            self.present = [f"tcp://{len(self.given)}"]
            self.num_losses -= 1
            if not self.num_losses:
                self.submit = super().submit
        return self.futures[-1]


@pytest.fixture
def workers_of(monkeypatch):
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address=GOOD))
    return lambda client, wait_s=60.0: Workers(client, "tcp://scheduler", wait_s)


def test_a_worker_without_evo_gets_no_call_and_is_named_once(workers_of, capsys):
    client = Client()
    calls = workers_of(client).map(lambda number: 10 * number, [(1,), (2,), (3,)])
    assert {number: future.result() for number, future in calls} == {0: 10, 1: 20, 2: 30}
    assert client.given == [[GOOD]] * 3
    own = evo.__version__
    assert capsys.readouterr().err == f"evo: Dask worker {WRONG} is not used: it has no evo-ptx, this process has {own}\n"


def killed() -> Exception:
    return distributed.KilledWorker("call", SimpleNamespace(address=WRONG), 3)


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (ModuleNotFoundError("No module named 'other'"), ModuleNotFoundError, "No module named 'other'"),
        (killed(), WorkerDied, "^4 Dask workers died with the same work$"),
    ],
)
def test_a_call_that_fails_outside_of_its_function_raises_what_dask_says(workers_of, failure, kind, message):
    client = Client(failure)
    [(_, future)] = workers_of(client).map(abs, [(1,)])
    with pytest.raises(kind, match=message):
        future.result()
    assert len(client.given) == (1 if kind is WorkerDied else 1 + dask_client.RETRIES)


def test_a_call_whose_result_leaves_with_its_worker_is_made_again(workers_of):
    """Dask's own error where a result of three parts is lost between its end and its reading (distributed/cfexecutor.py)."""
    client = Client(AttributeError("'tuple' object has no attribute 'with_traceback'"), num_failures=dask_client.RETRIES)
    [(_, future)] = workers_of(client).map(abs, [(-1,)])
    assert future.result() == 1 and len(client.given) == 1 + dask_client.RETRIES


@pytest.mark.parametrize("num_losses", [1, dask_client.RETRIES + 1])
def test_a_call_whose_workers_are_all_gone_is_given_to_others_a_few_times(workers_of, monkeypatch, num_losses):
    monkeypatch.setattr(dask_client, "LOOK_S", 0.01)
    client = Silent(num_losses)
    [(_, future)] = workers_of(client).map(abs, [(-1,)])
    if num_losses > dask_client.RETRIES:
        with pytest.raises(WorkerDied, match=r"^3 times all Dask workers were lost with the same work$"):
            future.result()
    else:
        assert future.result() == 1
    assert client.given == [[f"tcp://{number}"] for number in range(min(num_losses, dask_client.RETRIES) + 1)]


@pytest.mark.parametrize("error", [UserError("a mistake", "task.py:3"), DeviceFailure("no memory")])
def test_an_exception_of_a_call_comes_back_whole_and_a_worker_whose_device_fails_is_replaced(workers_of, error):
    def fail() -> None:
        raise error

    client = Client()
    [(_, future)] = workers_of(client).map(fail, [()])
    found = future.exception()
    if isinstance(error, UserError):
        assert found is error and not client.restarted
    else:
        assert str(found) == f"Dask worker {GOOD}: no memory"
        assert client.restarted == [GOOD]


@pytest.mark.parametrize("is_lost", [True, False], ids=["scheduler lost", "given up"])
def test_no_call_is_waited_for_once_the_scheduler_is_lost_or_the_caller_gives_up(workers_of, monkeypatch, is_lost):
    monkeypatch.setattr(dask_client, "LOOK_S", 0.01)
    client = Silent()

    def on_wait() -> None:
        client.status = "closed"
        if not is_lost:
            raise KeyboardInterrupt

    with pytest.raises(UserError if is_lost else KeyboardInterrupt, match="scheduler is lost" if is_lost else None):
        list(workers_of(client).map(abs, [(number,) for number in range(9)], on_wait))
    assert len(client.futures) == dask_client.CALLS_PER_THREAD and all(future.cancelled() for future in client.futures)


def test_workers_with_another_evo_alone_are_refused_by_name(workers_of):
    client = Client()
    client.present = [WRONG]
    own = evo.__version__
    with pytest.raises(UserError, match=f"^tcp://scheduler: no Dask worker can be used: {WRONG}: it has no evo-ptx, .* {own}$"):
        workers_of(client, 0.0).usable()


def test_workers_that_are_lost_are_told_from_those_that_never_came(workers_of):
    client = Client()
    client.present = [GOOD]
    workers = workers_of(client, 0.0)
    assert workers.usable() == {GOOD: 1}
    client.present = []
    with pytest.raises(UserError, match=r"^tcp://scheduler: all Dask workers are lost, and there was none for 0 s; "):
        workers.usable()


def test_a_users_client_is_used_and_left_open_and_calls_outlive_their_workers():
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        address = ClusterOptions(**_plain({"scheduler": client})).scheduler  # as `evo.evolve` takes it
        with connect(address, wait_s=LIMIT_S) as workers:
            calls = workers.map(divmod, [(number, 3) for number in range(9)])
            found = [next(calls)]
            cluster.scale(0)
            cluster.scale(1)
            found += calls
            assert workers._client is client
        assert {number: future.result() for number, future in found} == {number: divmod(number, 3) for number in range(9)}
        assert client.submit(abs, -1).result() == 1


def test_an_address_with_tls_needs_files():
    message = r"^tls://127\.0\.0\.1:1: TLS needs files: give evaluation\.cluster\.tls="
    with pytest.raises(UserError, match=message), connect("tls://127.0.0.1:1"):
        pass
