"""Parts of a sweep, and its refusals before anything starts."""

import re
import time

import numpy as np
import pytest

from evo.config import dump_config
from evo.errors import UserError
from evo.report.run_list import list_runs
from evo.run.new_run import new_run_dir, run_paths, take_name
from evo.run.sweep import find_run, locked, parse_seeds, plan_sweep
from evo.run.sweep_process import Ending, Job, Outcome, RunProcess, execute_job


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [3]), ("1-4", [1, 2, 3, 4]), ("5,1-2, 9", [5, 1, 2, 9]), ("1-3,2-4", [1, 2, 3, 4])]
)
def test_seeds_are_numbers_and_ranges(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write seeds and ranges, for instance 1-20 or 1,3,7-9"),
        ("-3", "write seeds and ranges"),
        ("1-2-3", "write seeds and ranges"),
        ("4-1", "the range 4-1 is empty"),
        ("18446744073709551616", "18446744073709551616 is not less than 2^64"),
        ("1-99999999999", "more than 10,000 seeds"),
    ],
)
def test_wrong_seeds_are_refused(text, message):
    with pytest.raises(UserError, match=re.escape(f"--seeds {text}: {message}")):
        parse_seeds(text)


def test_a_plan_has_a_run_for_each_seed_and_each_point_of_the_grid(small_config, tmp_path):
    grid = ["search.batch_size=32,64", "search.archive.dims=[4,4],[6,5]"]
    sweep = plan_sweep(small_config(), "1-2", grid, (), None)
    assert sweep.folder == tmp_path / "runs" / "small-sweep"
    assert [(run.config.seed, run.config.search.batch_size, run.config.search.archive.dims) for run in sweep.runs] == [
        (seed, size, dims) for seed in (1, 2) for size in (32, 64) for dims in ([4, 4], [6, 5])
    ]
    assert sweep.runs[0].variant == "search.batch_size=32,search.archive.dims=[4,4]"
    assert len({run.folder for run in sweep.runs}) == 4
    assert sweep.unfinished == list(sweep.runs)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("told", "threads"), [((), 1), (("evaluation.threads=3",), 3)])
def test_a_run_has_one_thread_unless_told(small_config, told, threads):
    (run,) = plan_sweep(small_config(), "1", [], told, None).runs
    assert run.config.evaluation.threads == threads
    assert run.config.evaluation.compile_workers == 1


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (["search.batch_size=64,0"], "key 'search.batch_size': must be greater than or equal to 1, got 0"),
        (["search.batch_size"], "--grid search.batch_size: write it as key=value,value, for instance search.batch_size=256,1024"),
        (["search.batch_size="], "--grid search.batch_size=: write it as key=value,value"),
        (["seed=1,2"], "--grid seed=1,2: seed is not for a grid; give --seeds"),
        (["search.batch_size=1", "search.batch_size=2"], "search.batch_size is given twice; write all its values in one --grid"),
        (["search.batch_size=64,64"], "--grid search.batch_size=64,64: a value is given twice"),
        (["search.batch_size=[1"], "--grid search.batch_size=[1:1: not YAML"),
        (["task_options.scale=1.0,2.0", "task_options.speed=1,2"], "task_options: got an unexpected keyword argument 'speed'"),
        ([f"search.batch_size={','.join(map(str, range(1, 102)))}"], "--seeds and --grid: 10,100 runs are more than 10,000"),
    ],
)
def test_wrong_grids_are_refused(small_config, tmp_path, grid, message):
    with pytest.raises(UserError, match=re.escape(message)):
        plan_sweep(small_config(), "1-100", grid, (), None)
    assert not (tmp_path / "runs").exists()


def test_a_run_is_found_by_its_whole_seed_once_it_is_complete(tmp_path):
    def make(name: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").touch()

    make("20260101-000000-seed12")
    make(".run.20260101-000000-seed1.partial")
    assert find_run(tmp_path, 1) is None
    make("20260101-000001-seed1-2")
    assert find_run(tmp_path, 1) == tmp_path / "20260101-000001-seed1-2"
    assert find_run(tmp_path, 12) == tmp_path / "20260101-000000-seed12"


def test_a_sweep_is_executed_by_one_process_at_a_time(tmp_path):
    refusal = pytest.raises(UserError, match="sweep: another process is running this sweep; wait for it or stop it")
    with locked(tmp_path / "sweep"), refusal, locked(tmp_path / "sweep"):
        pass
    with locked(tmp_path / "sweep"):
        pass


@pytest.fixture
def finished(small_config):
    """A config, a function that plans its sweep of one run, and the run's folder, finished."""
    config = small_config()

    def plan(*overrides: str):
        return plan_sweep(config, "1", [], overrides, None).runs[0]

    assert plan().is_finished is None
    outcome = execute_job(Job.of_run(plan()), [])
    assert (outcome.ending, outcome.text) == (Ending.FINISHED, "stop.generations: 6")
    assert plan().is_finished
    return plan, find_run(plan().folder, 1)


def test_a_run_that_was_killed_before_its_first_checkpoint_begins(small_config):
    [run] = plan_sweep(small_config(), "1", [], (), None).runs
    with new_run_dir(run.folder) as run_dir:
        run_dir.save_config(dump_config(run.config))
        take_name(run_dir, run_paths(run.folder.parent, run.variant, 1))
        run_dir.close()
    [run] = plan_sweep(small_config(), "1", [], (), None).runs
    assert run.is_finished is False
    assert execute_job(Job.of_run(run), []).ending is Ending.FINISHED
    assert [each.path for each in list_runs(run.folder)] == [str(run_dir.path)]


def test_a_run_with_another_stop_goes_on_even_if_it_has_reached_it(finished):
    """Its own config is what a comparison reads."""
    plan, folder = finished
    for stop in ("stop.generations=4", "stop.generations=8"):
        assert plan(stop).is_finished is False
        assert execute_job(Job.of_run(plan(stop)), []).ending is Ending.FINISHED
        assert plan(stop).is_finished
    assert (folder / "metrics.jsonl").read_bytes().count(b"\n") == 8


def test_a_run_without_its_archive_or_with_an_older_one_is_not_finished(finished):
    plan, folder = finished
    with np.load(folder / "archive.npz") as file:
        arrays = dict(file)
    (folder / "archive.npz").unlink()
    assert plan().is_finished is False
    np.savez(folder / "archive.npz", **{**arrays, "objective": arrays["objective"] + 1})
    assert plan().is_finished is False
    execute_job(Job.of_run(plan()), [])
    assert plan().is_finished
    with np.load(folder / "archive.npz") as file:
        assert all(np.array_equal(file[name], arrays[name]) for name in arrays)


def test_a_run_that_is_asked_to_end_saves_its_first_generation(small_config):
    (run,) = plan_sweep(small_config(), "1", [], (), None).runs
    assert execute_job(Job.of_run(run), [15]).ending is Ending.INTERRUPTED
    folder = find_run(run.folder, 1)
    assert (folder / "metrics.jsonl").read_bytes().count(b"\n") == 1
    assert plan_sweep(small_config(), "1", [], (), None).runs[0].is_finished is False


def test_a_run_that_is_asked_to_end_as_it_starts_is_interrupted_not_killed(small_config):
    (run,) = plan_sweep(small_config(), "1", [], (), None).runs
    process = RunProcess(Job.of_run(run))
    process.stop()  # imports take far longer than this line
    while not (outcome := process.poll()):
        time.sleep(0.01)
    assert outcome == Outcome(Ending.INTERRUPTED, "interrupted")


def test_runs_of_another_config_or_task_are_not_mixed_into_a_sweep(finished):
    plan, folder = finished
    with pytest.raises(UserError, match=re.escape(f"{folder}: made with another config: program.max_length is 16 now, was 24;")):
        plan("program.max_length=16")
    environment = (folder / "environment.json").read_text()
    (folder / "environment.json").write_text(re.sub(r'("task_digest": ")\w', r"\1x", environment))
    with pytest.raises(UserError, match=re.escape(f"{folder}: made when the task had other files; choose another folder")):
        plan()
    (folder / "environment.json").write_text("{")
    with pytest.raises(UserError, match=re.escape(f"{folder}/environment.json:1:2: not JSON: ")):
        plan()
    (folder / "environment.json").write_text("{}")
    with pytest.raises(UserError, match=re.escape(f"{folder}/environment.json: damaged: no text 'task_digest'")):
        plan()
