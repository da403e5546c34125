"""Sweeps (evo.cli.search_verbs): each run is that of `evo run`, and the same command goes on after any end."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from processes import children_of, is_gone, wait_until

from .conftest import assert_same_state, num_rows, state_of
from .dask_cluster import DaskCluster

pytestmark = pytest.mark.slow


@pytest.fixture
def config(blocking_config) -> Path:
    """A short run that stands still while the file `block` exists."""
    blocking_config.write_text(blocking_config.read_text().replace("generations: 1000000", "generations: 4"))
    return blocking_config


@pytest.fixture
def sweep(tmp_path) -> Path:
    return tmp_path / "runs" / "small-sweep"


def runs_of(sweep: Path) -> dict[tuple[str, int], Path]:
    """Variant and seed -> folder."""
    found = {}
    for path in sweep.glob("*/[!.]*/config.yaml"):
        key = (path.parents[1].name, int(path.parent.name.rpartition("seed")[2]))
        assert key not in found
        found[key] = path.parent
    return found


def modified(paths) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for folder in paths for path in folder.rglob("*") if path.name != "lock"}


def assert_equal_to_single_runs(fork_evo, config: Path, sweep: Path, tmp_path: Path) -> None:
    for (variant, seed), run in runs_of(sweep).items():
        overrides = ["--set", variant] if "=" in variant else []
        single = tmp_path / "single" / f"{variant}-{seed}"
        completed = fork_evo("run", config, *overrides, "--set", f"seed={seed}", "--set", f"output.runs={single}")
        assert completed.returncode == 0, completed.stderr
        (whole,) = single.glob("*/*")
        assert_same_state(state_of(run), state_of(whole))


GRID = ("--grid", "search.batch_size=48,64", "--seeds", "1", "--jobs", "2")


def test_a_sweep_gives_the_runs_of_evo_run_a_table_and_a_picture(fork_evo, config, sweep, tmp_path):
    completed = fork_evo("sweep", config, *GRID)
    assert completed.returncode == 0, completed.stderr
    assert set(runs_of(sweep)) == {("search.batch_size=48", 1), ("search.batch_size=64", 1)}
    assert completed.stdout.startswith("sweep folder: runs/small-sweep\n2 runs: 0 finished, 0 to go on, 2 to start\n")
    assert len(re.findall(r"^\[\d/2\] .*: stopped by stop.generations: 4$", completed.stdout, re.MULTILINE)) == 2
    assert re.search(r"^search\.batch_size=48 +1 ", completed.stdout, re.MULTILINE)
    assert "too few seeds: 5 each could tell" in completed.stdout
    assert not list(sweep.rglob("seed*.log"))
    assert_equal_to_single_runs(fork_evo, config, sweep, tmp_path)

    before = modified(runs_of(sweep).values())
    again = fork_evo("sweep", config, *GRID)
    assert again.returncode == 0, again.stderr
    assert "2 runs: 2 finished, 0 to go on, 0 to start\nat the end of each run" in again.stdout
    assert modified(runs_of(sweep).values()) == before

    other = fork_evo("sweep", config, *GRID, "--set", "program.max_length=16")
    assert other.returncode == 2 and other.stdout == ""
    assert re.fullmatch(
        r"evo: .*: made with another config: program\.max_length is 16 now, was 24; choose another folder with --output\n",
        other.stderr,
    )


@pytest.mark.parametrize(("how", "num_runs"), [(signal.SIGINT, 2), (signal.SIGKILL, 1)], ids=["SIGINT", "SIGKILL"])
def test_a_sweep_that_is_ended_goes_on_with_the_same_command(evo_command, fork_evo, config, sweep, tmp_path, how, num_runs):
    command = [evo_command, "sweep", config, "--seeds", f"1-{num_runs}", "--jobs", "1"]
    (tmp_path / "runs").mkdir()
    process = subprocess.Popen(
        [*command, "--set", "stop.generations=1000000"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        while not any(num_rows(run) >= 2 for run in runs_of(sweep).values()):
            assert process.poll() is None
            time.sleep(0.01)
        (child,) = children_of(process.pid)
        os.killpg(process.pid, how)
        _, stderr = process.communicate()
    finally:
        process.kill()
        process.wait()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert stderr == "evo: finishing the generations in progress and saving; Ctrl-C again aborts\n"
    wait_until(lambda: is_gone(child))  # it saves by itself
    (run,) = runs_of(sweep).values()
    last = num_rows(run) + 1

    completed = fork_evo(*command[1:], "--set", f"stop.generations={last}")
    assert completed.returncode == 0, completed.stderr
    runs = f"{num_runs} run{'s' if num_runs > 1 else ''}"
    assert f"{runs}: 0 finished, 1 to go on, {num_runs - 1} to start" in completed.stdout
    assert [num_rows(run) for run in runs_of(sweep).values()] == num_runs * [last]


def test_a_run_that_fails_is_named_and_does_not_stop_the_others(start_fork, fork_evo, config, sweep, make_task, tmp_path):
    """A process is killed; its run is the one that the next command goes on with. Nothing can be compared in the folder."""
    (sweep / "another").mkdir(parents=True)
    (sweep / "another" / "config.yaml").write_text("{}")
    damaged = Path("runs", sweep.name, "another", "metrics.jsonl")
    (tmp_path / damaged).write_text("damaged\n")
    (tmp_path / "block").touch()
    process = start_fork("sweep", config, "--seeds", "1-2", "--jobs", "1")
    process.wait_until((tmp_path / "blocked").exists)
    (child,) = children_of(process.number)
    os.kill(child, signal.SIGKILL)
    (tmp_path / "block").unlink()
    assert process.wait() == 1
    assert process.stderr.splitlines() == [
        "evo: small, seed 1: failed: its process was killed by SIGKILL",
        "evo: 1 of 2 runs failed; the same command tries again",
        f"warning: no comparison: {damaged}: last line: damaged: Expecting value: line 1 column 1 (char 0); delete this line",
    ]
    assert "[1/2] small, seed 2: stopped by stop.generations: 4\n" in process.stdout
    shutil.rmtree(sweep / "another")
    completed = fork_evo("sweep", config, "--seeds", "1-2")
    assert completed.returncode == 0, completed.stderr
    assert "2 runs: 1 finished, 1 to go on, 0 to start" in completed.stdout
    assert len(runs_of(sweep)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "search.batchsize=1,2"], "unknown key 'search.batchsize', did you mean batch_size?"),
        (["--jobs", "2", "--on", "tcp://127.0.0.1:1"], "--jobs and --on: give one of them"),
        (
            ["--on", "tcp://127.0.0.1:1", "--set", "evaluation.cluster.scheduler=tcp://127.0.0.1:1"],
            "--on and evaluation.cluster: give one of them",
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_starts(fork_evo, config, tmp_path, arguments, message):
    completed = fork_evo("sweep", config, *arguments)
    assert completed.returncode == 2 and completed.stdout == ""
    assert message in completed.stderr and completed.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def cluster(tmp_path_factory):
    """A scheduler with a worker."""
    found = DaskCluster(tmp_path_factory.mktemp("dask"))
    found.start()
    yield found
    found.close()


def worker_of(nanny: int) -> int | None:
    """The number of a nanny's worker, if that has a run to execute."""
    for process in children_of(nanny):
        if any(b"evo.workers" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children_of(process)):
            return process
    return None


def test_a_sweep_on_dask_workers_survives_the_loss_of_one(start_fork, fork_evo, cluster, config, sweep, tmp_path):
    (tmp_path / "block").touch()
    process = start_fork("sweep", config, "--seeds", "1-2", "--on", cluster.address)
    process.wait_until((tmp_path / "blocked").exists)
    os.kill(worker_of(cluster.worker.pid), signal.SIGKILL)
    (tmp_path / "block").unlink()
    assert process.wait() == 0, process.stderr
    assert process.stderr == ""
    assert len(runs_of(sweep)) == 2
    assert_equal_to_single_runs(fork_evo, config, sweep, tmp_path)
    assert not list(sweep.glob(".*"))
