"""evo resume: a run that was killed, interrupted or damaged ends as an undisturbed one does, or is refused with the reason."""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

from .conftest import ENDLESS, assert_same_state, num_rows, run_folders, state_of

NUM_KILLS = 3


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("*.ckpt"))


@pytest.fixture
def copied_run(finished_run, tmp_path) -> Path:
    """A copy of the finished run that a test may change."""
    return Path(shutil.copytree(finished_run, tmp_path / "copied"))


def last_stop(run: Path) -> tuple[str, str]:
    """Options that end a run some generations after those that it has done."""
    return "--set", f"stop.generations={num_rows(run) + 20}"


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint_seconds", [0.0, 0.05], ids=["each saved", "some saved"])
def test_a_run_killed_at_random_moments_and_resumed_ends_equal_to_one_that_was_not(
    start_fork, fork_evo, small_config, assert_equals_whole_run, tmp_path, checkpoint_seconds
):
    """If only some generations are saved, a kill loses those after the last checkpoint."""
    rng = random.Random(1 + bool(checkpoint_seconds))
    config = small_config({**ENDLESS, "output": {"plots": [], "checkpoint_seconds": checkpoint_seconds}})
    process = start_fork("run", config)
    process.wait_until(lambda: run_folders(tmp_path / "runs"))
    (killed,) = run_folders(tmp_path / "runs")
    for kill in range(NUM_KILLS):
        if kill:
            process = start_fork("resume", killed)
            process.wait_until(lambda: "run folder" in process.stdout)  # noqa: B023 - used at once
        wanted = num_rows(killed) + rng.randint(1, 12)
        process.wait_until(lambda: num_rows(killed) >= wanted)  # noqa: B023 - used at once
        moment = rng.randint(0, 2000)
        for _ in range(moment):  # somewhere within a generation
            os.sched_yield()
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (killed / "archive.npz").exists()
    completed = fork_evo("resume", killed, *last_stop(killed))
    assert completed.returncode == 0, completed.stderr
    assert completed.stderr.count("damaged") == 0
    assert_equals_whole_run(killed, config)


def test_a_finished_run_resumed_at_its_stop_does_no_more_but_writes_what_is_missing(fork_evo, copied_run):
    before = state_of(copied_run)
    (copied_run / "archive.npz").unlink()
    completed = fork_evo("resume", copied_run, "--set", "output.plots=[curves]")
    assert completed.returncode == 0, completed.stderr
    assert_same_state(state_of(copied_run), before)


def test_a_damaged_checkpoint_is_named_and_the_run_goes_on_from_the_one_before_it(fork_evo, small_config, tmp_path):
    assert fork_evo("run", small_config({"output": {"plots": []}})).returncode == 0
    (run,) = run_folders(tmp_path / "runs")
    before = state_of(run)
    assert [path.name for path in checkpoints(run)] == ["00000005.ckpt", "00000006.ckpt"]
    damage(checkpoints(run)[-1])
    completed = fork_evo("resume", run)
    assert completed.returncode == 0
    assert completed.stderr.splitlines()[0] == (
        f"evo: {run}/checkpoints/00000006.ckpt: damaged: the checksum does not fit the content; "
        "going back to the checkpoint before"
    )
    assert_same_state(state_of(run), before)
    assert [path.name for path in checkpoints(run)] == ["00000005.ckpt", "00000006.ckpt"]


def test_a_run_whose_metrics_were_cut_short_says_so_and_can_be_plotted_for_good(fork_evo, copied_run):
    path = copied_run / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    num_left = num_rows(copied_run)
    resumed = fork_evo("resume", copied_run, "--set", "stop.generations=8", "--set", "output.plots=[curves]")
    line = f"evo: {path}: {6 - num_left} of 6 generations are missing; curves leave them out\n"
    assert resumed.returncode == 0
    assert resumed.stderr.startswith(line)
    found = [row["generations"] for row in state_of(copied_run).metrics]
    assert found == [*range(1, num_left + 1), 7, 8]
    assert fork_evo("plot", copied_run, "--plot", "curves").returncode == 0


def refused(completed, *parts: str) -> None:
    """Exit code 2, one line that says this much, and nothing on standard output."""
    assert completed.returncode == 2, completed.stdout + completed.stderr
    assert completed.stderr.startswith("evo: ") and completed.stderr.count("\n") == 1, completed.stderr
    assert completed.stdout == ""
    for part in parts:
        assert part in completed.stderr


def test_a_changed_config_is_refused_by_key(fork_evo, copied_run):
    config = copied_run / "config.yaml"
    for override, difference in (
        ("seed=8", "seed is 8 now, was 7"),
        ("task_options.scale=2.0", "task_options.scale is 2.0 now, was the default"),
    ):
        refused(fork_evo("resume", copied_run, "--set", override), str(config), difference)
    config.write_text(config.read_text().replace("batch_size: 64", "batch_size: 32"))
    refused(fork_evo("resume", copied_run), str(config), "search.batch_size is 32 now, was 64")


def test_a_changed_or_missing_task_is_refused_and_a_moved_one_is_not(fork_evo, copied_run, plane_folder, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(plane_folder, moved, ignore=shutil.ignore_patterns("__pycache__"))
    more = ("--set", "stop.generations=7", "--set", "output.plots=[]")
    assert fork_evo("resume", copied_run, "--set", f"task={moved}", *more).returncode == 0
    with open(moved / "task.py", "a") as file:
        file.write("\n# changed\n")
    refused(fork_evo("resume", copied_run, "--set", f"task={moved}"), str(moved), "the task's files have changed")
    refused(fork_evo("resume", copied_run, "--set", f"task={tmp_path}/none"), f"{tmp_path}/none", "is not there any more")


def test_a_run_whose_task_or_config_has_changed_can_be_looked_at_with_a_warning(fork_evo, small_config, plane_folder, tmp_path):
    task = tmp_path / "task"
    shutil.copytree(plane_folder, task, ignore=shutil.ignore_patterns("__pycache__"))
    (task / "labels.csv").write_text("1, 2")
    assert fork_evo("run", small_config({"task": str(task), "output": {"plots": []}})).returncode == 0
    (run,) = run_folders(tmp_path / "runs")
    unchanged = fork_evo("show", run)
    (task / "labels.csv").write_text("2, 1")
    shown = fork_evo("show", run)
    assert (shown.stdout, shown.stderr) == (unchanged.stdout, "")  # the run has its own
    (run / "task" / "labels.csv").write_text("2, 1")
    line = f"{run}/task: the task's files have changed since the checkpoint; a run goes on with the same only"
    refused(fork_evo("resume", run), line)
    shown = fork_evo("show", run)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, unchanged.stdout, f"warning: {line}\n")
    plotted = fork_evo("plot", run, "--plot", "gallery", "--set", "seed=8")
    assert (plotted.returncode, plotted.stdout) == (0, f"{run}/plots/gallery.gif\n")
    assert plotted.stderr.splitlines() == [
        f"warning: {run}/config.yaml: the config has changed since the checkpoint: seed is 8 now, was 7",
        f"warning: {line}",
    ]


@pytest.mark.parametrize("verb", ["resume", "show"])
def test_what_the_elites_cannot_be_read_without_is_refused(fork_evo, copied_run, plane_folder, tmp_path, verb):
    override = ("--set", "search.archive.dims=[6, 6]")
    refused(fork_evo(verb, copied_run, *override), "search.archive.dims is [6, 6] now, was [6, 5]")
    task = tmp_path / "task"
    shutil.copytree(plane_folder, task, ignore=shutil.ignore_patterns("__pycache__"))
    source = (task / "task.py").read_text()
    (task / "task.py").write_text(source.replace(', "deviation": (0.0, 2.0)', ""))
    expected = "the task's files have changed" if verb == "resume" else "the task has 1 measures, this run's elites 2"
    refused(fork_evo(verb, copied_run, "--set", f"task={task}"), expected)


def test_a_run_in_progress_can_be_looked_at_but_not_resumed_by_a_second_process(start_fork, blocking_config, fork_evo, tmp_path):
    process = start_fork("run", blocking_config)
    process.wait_until(lambda: run_folders(tmp_path / "runs") and num_rows(run_folders(tmp_path / "runs")[0]) >= 2)
    (run,) = run_folders(tmp_path / "runs")
    (tmp_path / "block").touch()
    process.wait_until((tmp_path / "blocked").exists)
    refused(fork_evo("resume", run), str(run), "another process is running this run")
    shown = fork_evo("show", run)
    assert (shown.returncode, shown.stderr) == (0, "")
    process.signal(signal.SIGINT)
    (tmp_path / "block").unlink()
    assert process.wait() == 130
