"""Which workers get calls, and what becomes of calls that reach a wrong one or whose results are lost.

All tests but the last use a client that stands in for Dask's.
"""

import platform
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

import evo
from evo.about import DISTRIBUTION
from evo.errors import UserError
from evo.evaluate.dask_client import Workers, WorkersDied, connect

pytest.importorskip("distributed", reason="evo-ptx[cluster] is not installed")

GOOD, WRONG = "tcp://good", "tcp://wrong"


class Future:
    """A call that has ended."""

    def __init__(self, value: Any):
        self.value = value
        self.status = "error" if isinstance(value, Exception) else "finished"

    def add_done_callback(self, tell: Callable[["Future"], None]) -> None:
        tell(self)

    def exception(self) -> Exception:
        return self.value


class Client:
    """A scheduler with a good worker, joined by one without evo as soon as there is work. Calls that may, go to that one."""

    status = "running"

    def __init__(self, error: Exception):
        self.error = error
        self.present = [GOOD]
        self.given: list[list[str] | None] = []

    def scheduler_info(self, n_workers: int) -> dict:
        return {"workers": {address: {"nthreads": 1} for address in self.present}}

    def get_versions(self, packages: list[str]) -> dict:
        own = {name: version(name) for name in packages}
        host = {"machine": platform.machine()}
        packages_of = {GOOD: own, WRONG: {**own, DISTRIBUTION: None}}
        return {"workers": {address: {"packages": packages_of[address], "host": host} for address in self.present}}

    def map(self, checked_call: Callable, facts: list, functions: list, numbers: list, pure: bool, workers: list | None) -> list:
        self.present = [GOOD, WRONG]
        self.given.append(workers)
        return [Future(self.error if workers is None else functions[0](number)) for number in numbers]

    def gather(self, futures: list[Future]) -> list:
        return [future.value for future in futures]

    def cancel(self, futures: list[Future], force: bool) -> None:
        pass


def killed() -> Exception:
    from distributed import KilledWorker

    return KilledWorker("call", SimpleNamespace(address=WRONG), 3)


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'evo'"), killed()], ids=["fails", "dies"])
def test_calls_that_a_worker_without_evo_cannot_read_are_made_by_another_one(error, capsys):
    client = Client(error)
    found = dict(Workers(client, "tcp://scheduler", 1.0).map(lambda number: 10 * number, [(1,), (2,), (3,)]))
    assert found == {0: 10, 1: 20, 2: 30}
    assert client.given == [None, [GOOD]]
    own = evo.__version__
    assert capsys.readouterr().err == f"evo: Dask worker {WRONG} is not used: it has no evo-ptx, this process has {own}\n"


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'other'"), UserError("a mistake")])
def test_an_error_of_the_call_itself_is_raised(error):
    def fail(number: int) -> None:
        return error

    with pytest.raises(type(error), match=str(error)):
        list(Workers(Client(error), "tcp://scheduler", 1.0).map(fail, [(1,)]))


def test_a_call_that_kills_good_workers_is_given_up():
    found = list(Workers(Client(killed()), "tcp://scheduler", 1.0).map(lambda _: killed(), [(1,)]))
    assert [(number, type(result)) for number, result in found] == [(0, WorkersDied)]
    assert str(found[0][1]) == "4 Dask workers died with the same work"


def test_workers_with_another_evo_alone_are_refused_by_name():
    client = Client(UserError(""))
    client.present = [WRONG]
    own = evo.__version__
    with pytest.raises(UserError, match=f"^tcp://scheduler: no Dask worker can be used: {WRONG}: it has no evo-ptx, .* {own}$"):
        Workers(client, "tcp://scheduler", 0.0).usable()


def test_workers_that_are_lost_are_told_from_those_that_never_came():
    client = Client(UserError(""))
    workers = Workers(client, "tcp://scheduler", 0.0)
    assert workers.usable() == {GOOD: 1}
    client.present = []
    with pytest.raises(UserError, match=r"^tcp://scheduler: all Dask workers are lost, and there was none for 0 s; "):
        workers.usable()


may_add = threading.Event()


def add(one: int, two: int) -> int:
    assert may_add.wait(300)
    return one + two


def test_a_result_that_is_lost_with_its_worker_is_computed_again():
    from distributed import LocalCluster

    done: SimpleQueue[Any] = SimpleQueue()
    may_add.clear()
    num_asked = 0

    def take(num_active: int) -> list[tuple[int, int]] | None:
        nonlocal num_asked
        num_asked += 1
        if num_asked == 2:  # the call is under way, and nobody looks at its result before the worker is gone
            may_add.set()
            future = done.get(timeout=300)
            cluster.scale(0)
            while future.status != "lost":
                time.sleep(0.01)
            done.put(future)
        if num_asked == 3:
            cluster.scale(1)
        return {1: [(1, 2)], 2: [], 3: []}.get(num_asked)

    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None, protocol="tcp", host="127.0.0.1") as cluster,
        connect(cluster.scheduler_address) as workers,
    ):
        assert list(workers.serve(add, take, done)) == [(0, 3)]
