"""Runs whose batches are evaluated by Dask workers: the archive of a local run, whatever happens to the workers."""

import os
import signal
import threading
from pathlib import Path

import pytest
from distributed import LocalCluster
from processes import LIMIT_S

from evo.errors import UserError
from evo.evaluate import dask_client
from evo.evaluate.dask_client import connect

from .conftest import Process, num_rows, run_folders
from .dask_cluster import DaskCluster

pytestmark = pytest.mark.slow

# Fits x * y. While the file `block` exists, a score waits and says so in a file named after the Dask worker above its process.
TASK = """\
import os
import time
from pathlib import Path

import numpy as np

import evo


class Product(evo.Task):
    inputs = {"x": "f32", "y": "f32"}
    outputs = {"v": "f32"}
    measures = {"mean": (0.0, 1.0), "deviation": (0.0, 1.0)}

    def __init__(self, folder: str):
        self.folder = Path(folder)
        self.scale = float((Path(__file__).parent / "../data/scale.txt").read_text())
        y, x = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8), indexing="ij")
        self.x, self.y = x.ravel(), y.ravel()

    def files(self):
        return ["../data/scale.txt"]

    def points(self):
        return {"x": self.x, "y": self.y}

    def score(self, outputs, programs):
        if len(programs.num_instructions) > 4:
            while (self.folder / "block").exists():
                (self.folder / f"blocked-{os.getppid()}").touch()
                time.sleep(0.001)
        v = outputs["v"].astype(np.float64)
        objective = 1.0 / (1.0 + self.scale * ((v - self.x * self.y) ** 2).mean(axis=1))
        return evo.Scores(objective, np.clip(np.stack([v.mean(axis=1), v.std(axis=1)], axis=1), 0, 1))
"""


@pytest.fixture
def config(small_config, make_task, tmp_path) -> Path:
    """An endless run of the task, whose folder and declared file travel to the workers."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "scale.txt").write_text("0.5")
    return small_config(
        {
            "task": str(make_task(TASK)),
            "task_options": {"folder": str(tmp_path)},
            "search": {"batch_size": 300},
            "stop": {"generations": 10**6},
            "output": {"plots": []},
        }
    )


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    found = DaskCluster(tmp_path_factory.mktemp("dask"))
    yield found
    found.close()


@pytest.fixture
def cluster(shared_cluster):
    """A scheduler with a worker."""
    shared_cluster.start()
    return shared_cluster


def on(cluster: DaskCluster) -> tuple[str, str, str, str]:
    return "--set", f"evaluation.cluster.scheduler={cluster.address}", "--set", f"evaluation.cluster.wait_seconds={LIMIT_S}"


def only_run(tmp_path: Path) -> Path:
    (run,) = run_folders(tmp_path / "runs")
    return run


def blocked_workers(tmp_path: Path) -> set[int]:
    return {int(path.name.removeprefix("blocked-")) for path in tmp_path.glob("blocked-*")}


def start_and_block(start, config: Path, tmp_path: Path, *options: str) -> Process:
    """A run on a cluster that stands still in the middle of a batch, after a few generations."""
    process = start("run", config, *options)
    process.wait_until(lambda: run_folders(tmp_path / "runs") and num_rows(only_run(tmp_path)))
    (tmp_path / "block").touch()
    process.wait_until(lambda: blocked_workers(tmp_path))
    return process


def go_on_and_end(process: Process, tmp_path: Path) -> None:
    (tmp_path / "block").unlink()
    last = num_rows(only_run(tmp_path)) + 3
    process.wait_until(lambda: num_rows(only_run(tmp_path)) >= last)
    process.signal(signal.SIGINT)
    assert process.wait() == 130, process.stderr
    assert process.stderr == "evo: finishing this generation and saving; Ctrl-C again aborts\n"


def test_workers_that_die_join_and_leave_change_nothing(start_fork, cluster, config, assert_equals_whole_run, tmp_path):
    first = cluster.worker
    process = start_and_block(start_fork, config, tmp_path, *on(cluster), "--set", "evaluation.executor=processes")
    (killed,) = blocked_workers(tmp_path)
    os.kill(killed, signal.SIGKILL)
    cluster.add_worker()
    process.wait_until(lambda: len(blocked_workers(tmp_path)) >= 2)  # another worker makes the call again
    first.terminate()
    go_on_and_end(process, tmp_path)
    first.wait(LIMIT_S)
    assert_equals_whole_run(only_run(tmp_path), config)


def test_a_scheduler_that_is_lost_ends_the_run_in_one_line_and_the_run_resumes(
    start_evo, fork_evo, cluster, config, assert_equals_whole_run, tmp_path
):
    process = start_and_block(start_evo, config, tmp_path, *on(cluster))
    cluster.scheduler.kill()
    assert process.wait() == 2
    assert process.stderr == (
        f"evo: {cluster.address}: the connection to the Dask scheduler is lost; a run goes on from its last checkpoint\n"
    )
    (tmp_path / "block").unlink()
    run = only_run(tmp_path)
    completed = fork_evo("resume", run, "--set", "evaluation.cluster=null", "--set", f"stop.generations={num_rows(run) + 3}")
    assert completed.returncode == 0, completed.stderr
    assert_equals_whole_run(run, config)


def test_no_scheduler_and_no_worker_are_told_in_one_line(monkeypatch):
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None, protocol="tcp", host="127.0.0.1") as cluster,
        pytest.raises(UserError, match=f"^{cluster.scheduler_address}: no Dask worker for 0.1 s; start some with: dask worker"),
        connect(cluster.scheduler_address, wait_s=0.1) as workers,
    ):
        workers.usable()
    monkeypatch.setattr(dask_client, "CONNECT_S", 0.2)
    with (
        pytest.raises(UserError, match=r"^tcp://127\.0\.0\.1:1: no connection to the Dask scheduler: "),
        connect("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.fixture(scope="module")
def local_workers():
    """One of a cluster of this machine."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=50) as cluster,
        connect(cluster.scheduler_address, wait_s=LIMIT_S) as workers,
    ):
        workers.usable()
        yield workers


def test_a_worker_that_stands_still_holds_nobody_up(local_workers, monkeypatch):
    [(_, call)] = local_workers.map(os.getpid, [()])
    number = call.result()
    monkeypatch.setattr(dask_client, "CONNECT_S", 0.2)
    asking = threading.Thread(target=local_workers.call_each, args=(os.getpid,), daemon=True)
    os.kill(number, signal.SIGSTOP)
    try:
        asking.start()
        asking.join(LIMIT_S)
        assert not asking.is_alive()
    finally:
        os.kill(number, signal.SIGCONT)
