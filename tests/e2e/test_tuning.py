"""Runs that tune constants: how it is done does not show in the archive, and a resumed run ends as a whole one does."""

import os

import pytest

from evo.native import ptx_vm

from .conftest import assert_same_state, run_folders, state_of

TUNED = {
    "search": {
        "batch_size": 100,
        "initial": {"num_programs": 200},
        "tuning": {"share": 0.2, "iterations": 4, "linear_scale": False},
    },
    "program": {"vocabulary": {"groups": {"instructions": 0.5, "inputs": 0.2, "constants": 0.25, "meta": 0.05}}},
    "stop": {"generations": 5},
    "output": {"plots": []},
}


@pytest.fixture
def run(fork_evo, small_config, repository, tmp_path):
    """Runs a small search for approximations of erf with some overrides and gives its folder."""

    def start(*overrides: str):
        runs = tmp_path / ("-".join(["runs", *overrides]))
        sets = [part for override in (*overrides, f"output.runs={runs}") for part in ("--set", override)]
        completed = fork_evo("run", small_config({**TUNED, "task": str(repository / "tasks" / "erf")}), *sets)
        assert completed.returncode == 0, completed.stderr
        return run_folders(runs)[0]

    return start


def test_threads_processes_and_levels_give_the_same_archive(run):
    state = state_of(run("evaluation.threads=1"))
    assert state.counters["tuned"] > 50
    assert state.counters["evaluations"] > state.counters["offspring"]
    assert_same_state(state, state_of(run("evaluation.threads=2")))
    assert_same_state(state, state_of(run("evaluation.executor=processes")))
    for level in ptx_vm.levels():
        assert_same_state(state, state_of(run(f"evaluation.simd={level}")))


def test_tuning_changes_what_is_found(run):
    assert state_of(run()).archive["solution"].tobytes() != state_of(run("search.tuning.share=0")).archive["solution"].tobytes()


def test_a_resumed_run_ends_equal_to_a_whole_one(run, fork_evo):
    whole, part = run(), run("stop.generations=2")
    completed = fork_evo("resume", part, "--set", "stop.generations=5")
    assert completed.returncode == 0, completed.stderr
    assert_same_state(state_of(part), state_of(whole))


def test_other_tuning_cannot_resume_a_run(run, fork_evo):
    completed = fork_evo("resume", run(), "--set", "stop.generations=9", "--set", "search.tuning.share=0.5")
    assert completed.returncode == 2
    assert "search.tuning.share is 0.5 now, was 0.2" in completed.stderr


def test_a_task_without_targets_is_refused_in_one_line(fork_evo, small_config, tmp_path):
    completed = fork_evo("run", small_config(), "--set", "search.tuning.share=0.1")
    assert completed.returncode == 2
    assert "search.tuning: needs a task with the reduction 'regression'" in completed.stderr
    assert len(completed.stderr.strip().splitlines()) == 1
    assert not run_folders(tmp_path / "runs")


def test_a_gpu_run_tunes_on_the_cpu_and_finds_the_same(fork_evo, small_config, repository, tmp_path):
    """Over the stand-in for a GPU. Exact instructions give the same bits there, and so do sums."""
    if not os.environ.get("CI"):  # in CI what is missing is a failure
        pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
        pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    config = small_config(
        {
            **TUNED,
            "task": str(repository / "tasks" / "erf"),
            "task_options": {"num_points": 50},
            "program": {"vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "min_ftz_f32"]}},
            "search": {**TUNED["search"], "batch_size": 30, "initial": {"num_programs": 60}},
            "evaluation": {"compile_workers": 1},
            "stop": {"generations": 3},
        }
    )
    states = []
    for backend in ("cuda", "cpu"):
        runs = tmp_path / backend
        sets = ("--set", f"evaluation.backend={backend}", "--set", f"output.runs={runs}")
        completed = fork_evo("run", config, *sets, env={"EVO_EMULATED_GPU": "", "XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert completed.returncode == 0, completed.stderr
        states.append(state_of(*run_folders(runs)))
    assert states[0].counters["tuned"] > 5
    assert_same_state(*states)
