"""Compile requests on a cluster: what a worker gives back, and how futures end. tests/contract has the laws of executors."""

import os
import time
from types import SimpleNamespace

import pytest
from processes import LIMIT_S, is_gone, wait_until

if not os.environ.get("CI"):  # in CI what is missing is a failure
    pytest.importorskip("distributed", reason="evo-ptx[cluster] is not installed")
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.errors import UserError
from evo.evaluate import dask_executor
from evo.evaluate.dask_client import connect
from evo.evaluate.dask_executor import call_in_process, end_processes
from evo.workers.processes import WorkerDied


@pytest.fixture
def worker(monkeypatch):
    """This process as a Dask worker of one thread."""
    found = SimpleNamespace(address="tcp://worker", state=SimpleNamespace(nthreads=1))
    monkeypatch.setattr("distributed.get_worker", lambda: found)
    yield
    for run in [*dask_executor._pools]:
        end_processes(run)


def test_a_worker_gives_back_what_a_call_returns_or_leads_to(worker):
    assert call_in_process("long", LIMIT_S, None, divmod, (7, 3), {}) == (2, 1)
    for run, limit_s, function, argument, error in (
        ("long", LIMIT_S, int, "x", ValueError),
        ("long", LIMIT_S, os._exit, 1, WorkerDied),
        ("short", 0.01, time.sleep, LIMIT_S, TimeoutError),
    ):
        with pytest.raises(error):
            call_in_process(run, limit_s, None, function, (argument,), {})


def test_processes_of_runs_that_never_said_their_end_go_when_others_come(worker, monkeypatch):
    monkeypatch.setattr(dask_executor, "MAX_POOLS", 1)
    killed, going_on = (call_in_process(run, LIMIT_S, None, os.getpid, (), {}) for run in ("killed", "going on"))
    wait_until(lambda: is_gone(killed))
    assert call_in_process("going on", LIMIT_S, None, os.getpid, (), {}) == going_on


def test_an_address_with_tls_needs_files():
    message = r"^tls://127\.0\.0\.1:1: TLS needs files: give evaluation\.cluster\.tls="
    with pytest.raises(UserError, match=message), connect("tls://127.0.0.1:1"):
        pass
