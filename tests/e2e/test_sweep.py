"""Sweeps: each run is that of `evo run`, and the same command goes on after any end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from .conftest import BLOCKING_TASK, assert_same_state, num_rows, state_of
from .dask_cluster import DaskCluster

pytestmark = pytest.mark.slow


@pytest.fixture
def config(small_config, make_task, tmp_path) -> Path:
    """A short run that stands still while the file `block` exists."""
    return small_config(
        {
            "task": str(make_task(BLOCKING_TASK)),
            "task_options": {"folder": str(tmp_path)},
            "search": {"archive": {"dims": [10]}},
            "stop": {"generations": 4},
            "output": {"plots": []},
        }
    )


@pytest.fixture
def sweep(tmp_path) -> Path:
    return tmp_path / "runs" / "small-sweep"


def runs_of(sweep: Path) -> dict[tuple[str, int], Path]:
    """Variant and seed -> folder."""
    found = {}
    for path in sweep.glob("*/*/config.yaml"):
        key = (path.parents[1].name, int(path.parent.name.rpartition("seed")[2]))
        assert key not in found
        found[key] = path.parent
    return found


def run_processes(process: int) -> list[int]:
    """Numbers of a sweep's processes that execute runs."""
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [int(number) for path in lists for number in path.read_text().split()]


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


GRID = ("--grid", "search.batch_size=48,64", "--seeds", "1-2", "--jobs", "2")


def test_a_sweep_gives_the_runs_of_evo_run_a_table_and_a_picture(fork_evo, config, sweep, tmp_path):
    completed = fork_evo("sweep", config, *GRID)
    assert completed.returncode == 0, completed.stderr
    assert set(runs_of(sweep)) == {(f"search.batch_size={size}", seed) for size in (48, 64) for seed in (1, 2)}
    assert completed.stdout.startswith("sweep folder: runs/small-sweep\n4 runs: 0 finished, 0 to go on, 4 to start\n")
    assert len(re.findall(r"^\[\d/4\] .*: stopped by stop.generations: 4$", completed.stdout, re.MULTILINE)) == 4
    assert re.search(r"^search\.batch_size=48 +2 ", completed.stdout, re.MULTILINE)
    assert "too few seeds: 5 each could tell" in completed.stdout
    assert completed.stdout.endswith("runs/small-sweep/sweep.png\n")
    assert (sweep / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert not list(sweep.rglob("*.log"))
    assert_equal_to_single_runs(fork_evo, config, sweep, tmp_path)

    before = modified(runs_of(sweep).values())
    again = fork_evo("sweep", config, *GRID)
    assert again.returncode == 0, again.stderr
    assert "4 runs: 4 finished, 0 to go on, 0 to start\nat the end of each run" in again.stdout
    assert modified(runs_of(sweep).values()) == before

    more = fork_evo("sweep", config, *GRID, "--set", "stop.generations=6")
    assert more.returncode == 0, more.stderr
    assert "4 runs: 0 finished, 4 to go on, 0 to start" in more.stdout
    assert {num_rows(run) for run in runs_of(sweep).values()} == {6}

    other = fork_evo("sweep", config, *GRID, "--set", "program.max_length=16")
    assert other.returncode == 2 and other.stdout == ""
    assert re.fullmatch(
        r"evo: .*: made with another config: program\.max_length is 16 now, was 24; choose another folder with --output\n",
        other.stderr,
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_sweep_that_is_ended_goes_on_with_the_same_command(evo_command, fork_evo, config, sweep, tmp_path, how):
    command = [evo_command, "sweep", config, *GRID]
    (tmp_path / "runs").mkdir()
    process = subprocess.Popen(
        [*command, "--set", "stop.generations=1000000"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, process_group=0
    )
    try:
        while len([run for run in runs_of(sweep).values() if num_rows(run) >= 2]) < 2:
            assert process.poll() is None
        children = run_processes(process.pid)
        assert len(children) == 2
        os.killpg(process.pid, how)
        _, stderr = process.communicate()
    finally:
        process.kill()
        process.wait()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert stderr == "evo: finishing the generations in progress and saving; Ctrl-C again aborts\n"
    for child in children:  # they save and end by themselves
        while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
            pass
    done = {key: state_of(run).counters["generations"] for key, run in runs_of(sweep).items()} if how == signal.SIGINT else {}
    last = max([8, *(number + 1 for number in done.values())])
    assert len(runs_of(sweep)) == 2

    completed = fork_evo("sweep", config, *GRID, "--set", f"stop.generations={last}")
    assert completed.returncode == 0, completed.stderr
    assert len(runs_of(sweep)) == 4
    if how == signal.SIGINT:
        assert "4 runs: 0 finished, 2 to go on, 2 to start" in completed.stdout
        assert {num_rows(run) for run in runs_of(sweep).values()} == {last}


def test_a_run_that_fails_is_named_and_does_not_stop_the_others(start_fork, fork_evo, config, sweep, make_task, tmp_path):
    """A process is killed; its run is the one that the next command tries again."""
    (tmp_path / "block").touch()
    process = start_fork("sweep", config, "--seeds", "1-3", "--jobs", "1")
    process.wait_until((tmp_path / "blocked").exists)
    (child,) = run_processes(process._number)
    os.kill(child, signal.SIGKILL)
    (tmp_path / "block").unlink()
    assert process.wait() == 1
    assert process.stderr.splitlines() == [
        "evo: small, seed 1: failed: its process was killed by SIGKILL",
        "evo: 1 runs failed; the same command tries them again",
    ]
    assert "[1/3] small, seed 2: stopped by stop.generations: 4\n[2/3] small, seed 3: stopped" in process.stdout
    completed = fork_evo("sweep", config, "--seeds", "1-3")
    assert completed.returncode == 0, completed.stderr
    assert "3 runs: 2 finished, 0 to go on, 1 to start" in completed.stdout
    assert_equal_to_single_runs(fork_evo, config, sweep, tmp_path)


def test_the_line_of_a_task_that_fails_in_the_middle_is_told(fork_evo, small_config, make_task, tmp_path):
    source = BLOCKING_TASK.replace(
        "        y = ", "        if len(programs.num_instructions) > 4:\n            1 / 0\n        y = "
    )
    config = small_config(
        {"task": str(make_task(source)), "task_options": {"folder": str(tmp_path)}, "search": {"archive": {"dims": [10]}}}
    )
    completed = fork_evo("sweep", config, "--seeds", "1")
    line = 1 + source[: source.index("1 / 0")].count("\n")
    first, last = completed.stderr.splitlines()
    assert (
        first
        == f"evo: small, seed 1: failed: {tmp_path}/a_task/task.py:{line}: score() raised ZeroDivisionError: division by zero"
    )
    assert completed.returncode == 2
    assert last == "evo: runs/small-sweep: no finished run; go on with: evo resume RUN"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "4-1"], "--seeds 4-1: the range 4-1 is empty"),
        (["--grid", "search.batchsize=1,2"], "unknown key 'search.batchsize', did you mean batch_size?"),
        (["--jobs", "2", "--on", "tcp://127.0.0.1:1"], "--jobs and --on: give one of them"),
    ],
)
def test_what_is_wrong_is_told_before_anything_starts(fork_evo, config, tmp_path, arguments, message):
    completed = fork_evo("sweep", config, *arguments)
    assert completed.returncode == 2 and completed.stdout == ""
    assert message in completed.stderr and completed.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def cluster(tmp_path_factory):
    """A scheduler without workers."""
    found = DaskCluster(tmp_path_factory.mktemp("dask"))
    yield found
    found.close()


def worker_of(nanny: int) -> int | None:
    """The number of a nanny's worker, if that has a run to execute."""
    for process in run_processes(nanny):
        if any(b"evo.run.sweep_process" in Path(f"/proc/{child}/cmdline").read_bytes() for child in run_processes(process)):
            return process
    return None


def test_a_sweep_on_dask_workers_survives_the_loss_of_one(start_evo, fork_evo, cluster, config, sweep, tmp_path):
    nanny = cluster.add_worker(2)
    (tmp_path / "block").touch()
    process = start_evo("sweep", config, "--seeds", "1-3", "--on", cluster.address)
    process.wait_until((tmp_path / "blocked").exists)
    os.kill(worker_of(nanny.pid), signal.SIGKILL)
    (tmp_path / "block").unlink()
    assert process.wait() == 0, process.stderr
    assert process.stderr == ""
    assert len(runs_of(sweep)) == 3
    assert_equal_to_single_runs(fork_evo, config, sweep, tmp_path)
    assert not list(sweep.glob(".*"))


def test_a_worker_that_does_not_see_the_folder_is_named(tmp_path, monkeypatch):
    from types import SimpleNamespace

    import distributed

    from evo.errors import UserError
    from evo.run.sweep_execute import execute_on_worker

    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://there"))
    with pytest.raises(UserError, match=rf"^{tmp_path}: Dask worker tcp://there on .* does not see this folder; "):
        execute_on_worker(None, str(tmp_path / "shared"), str(tmp_path / "stop"))


def test_evo_compare_does_the_same_for_any_runs(fork_evo, config, tmp_path):
    for seed in (1, 2):
        assert fork_evo("run", config, "--set", f"seed={seed}").returncode == 0
    completed = fork_evo("compare", "runs/small", "--output", "pictures/two.png")
    assert completed.returncode == 0, completed.stderr
    assert re.search(r"^small +2 ", completed.stdout, re.MULTILINE)
    assert "Mann-Whitney" not in completed.stdout
    assert completed.stdout.endswith("pictures/two.png\n")
    assert (tmp_path / "pictures" / "two.png").read_bytes().startswith(b"\x89PNG")
