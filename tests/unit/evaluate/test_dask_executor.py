"""Compile requests on a cluster: what a worker gives back, and how futures end. tests/contract has the laws of executors."""

import os
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from processes import LIMIT_S, is_gone, wait_until

if not os.environ.get("CI"):  # in CI what is missing is a failure
    pytest.importorskip("distributed", reason="evo-ptx[cluster] is not installed")
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.errors import UserError
from evo.evaluate import dask_executor
from evo.evaluate.dask_client import WorkersDied, connect
from evo.evaluate.dask_executor import DaskExecutor, call_in_process, end_processes
from evo.evaluate.options import ClusterOptions
from evo.workers.processes import WorkerDied


@pytest.fixture
def worker(monkeypatch):
    """This process as a Dask worker of one thread."""
    found = SimpleNamespace(address="tcp://worker", state=SimpleNamespace(nthreads=1))
    monkeypatch.setattr("distributed.get_worker", lambda: found)
    yield
    for run in [*dask_executor._pools]:
        end_processes(run)
    dask_executor._ended.clear()


def test_a_worker_gives_back_what_a_call_returns_or_leads_to(worker):
    assert call_in_process("long", LIMIT_S, None, divmod, (7, 3), {}) == (2, 1)
    assert isinstance(call_in_process("long", LIMIT_S, None, divmod, (7, 0), {}), ZeroDivisionError)
    assert isinstance(call_in_process("long", LIMIT_S, None, os._exit, (1,), {}), WorkerDied)
    assert isinstance(call_in_process("short", 0.01, None, time.sleep, (LIMIT_S,), {}), TimeoutError)


def test_a_call_that_comes_after_its_runs_end_starts_no_processes(worker):
    assert call_in_process("long", LIMIT_S, None, abs, (-1,), {}) == 1
    end_processes("long")
    assert isinstance(call_in_process("long", LIMIT_S, None, abs, (-1,), {}), CancelledError)
    assert not dask_executor._pools


def test_processes_of_runs_that_never_said_their_end_go_when_others_come(worker, monkeypatch):
    monkeypatch.setattr(dask_executor, "MAX_POOLS", 1)
    killed, going_on = (call_in_process(run, LIMIT_S, None, os.getpid, (), {}) for run in ("killed", "going on"))
    wait_until(lambda: is_gone(killed))
    assert call_in_process("going on", LIMIT_S, None, os.getpid, (), {}) == going_on


class Workers:
    """Plays a cluster of one thread: keeps what it is given until it has `num_wanted` calls, and ends them by these results."""

    num_threads = 1

    def __init__(self, *results):
        self.results, self.num_wanted = results, len(results)

    def usable(self):
        return {"tcp://worker": 1}

    def call_each(self, *_):
        pass

    def serve(self, function, take, done, on_wait):
        calls = []
        while (more := take(len(calls))) is not None and len(calls) + len(more) < self.num_wanted:
            calls += more
            done.get()
        for number, result in enumerate(self.results):
            while result == "never":
                on_wait()
                time.sleep(0.01)
            if isinstance(result, UserError):
                raise result
            yield number, result
        while take(0) is not None:
            done.get()


@pytest.fixture
def executor_with(monkeypatch):
    @contextmanager
    def opened(*results):
        @contextmanager
        def played(*_):
            yield Workers(*results)

        monkeypatch.setattr(dask_executor, "connect", played)
        with DaskExecutor(ClusterOptions(scheduler="local")) as executor:
            yield executor

    return opened


def test_futures_end_as_those_of_a_pool(executor_with):
    with executor_with("result", WorkersDied("4 Dask workers died with the same work")) as executor:
        first, second = (executor.submit(abs, 1) for _ in range(2))
        assert first.result(LIMIT_S) == "result"
        assert isinstance(second.exception(LIMIT_S), WorkerDied)


def test_a_scheduler_that_is_lost_is_told_to_whoever_waits_or_submits(executor_with):
    with executor_with(UserError("the connection is lost")) as executor:
        future = executor.submit(abs, 1)
        assert str(future.exception(LIMIT_S)) == "the connection is lost"
        with pytest.raises(UserError, match="the connection is lost"):
            executor.submit(abs, 1)


def test_an_executor_that_is_given_up_waits_for_no_call(executor_with):
    with executor_with("never") as executor:
        given = executor.submit(abs, 1)
        while not given.running():
            time.sleep(0.01)
        waiting = executor.submit(abs, 1)
        executor.shutdown(cancel_futures=True)
        assert isinstance(given.exception(LIMIT_S), CancelledError) and waiting.cancelled()
        with pytest.raises(RuntimeError, match="shut down"):
            executor.submit(abs, 1)


def test_an_address_with_tls_needs_files():
    message = r"^tls://127\.0\.0\.1:1: TLS needs files: give evaluation\.cluster\.tls="
    with pytest.raises(UserError, match=message), connect("tls://127.0.0.1:1"):
        pass
