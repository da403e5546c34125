"""Config and seed decide the archive; how and how fast it is computed does not show in it."""

import pytest

from evo.native import ptx_vm

from .conftest import assert_same_state, run_folders, state_of

SEARCH = {"batch_size": 150, "initial": {"num_programs": 300}}
INSTRUCTIONS = [
    *("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "div_approx_ftz_f32", "abs_ftz_f32", "neg_ftz_f32"),
    *("min_ftz_f32", "max_ftz_f32", "copysign_f32", "rcp_approx_ftz_f32", "sqrt_approx_ftz_f32", "rsqrt_approx_ftz_f32"),
    *("sin_approx_ftz_f32", "cos_approx_ftz_f32", "lg2_approx_ftz_f32", "ex2_approx_ftz_f32", "tanh_approx_f32"),
]


@pytest.fixture
def result(fork_evo, small_config, repository, tmp_path):
    """Runs a small search of a task with some overrides and gives its state."""

    def run(task: str, *overrides: str):
        runs = tmp_path / "-".join(["runs", *overrides]).replace("/", "_")
        changes = {
            "search": SEARCH,
            "program": {"vocabulary": {"instructions": INSTRUCTIONS}},
            "stop": {"generations": 4},
            "output": {"plots": [], "runs": str(runs)},
        }
        if task != "plane":
            changes["task"] = str(repository / "tasks" / task)
        sets = [part for override in overrides for part in ("--set", override)]
        completed = fork_evo("run", small_config(changes), *sets)
        assert completed.returncode == 0, completed.stderr
        return state_of(*run_folders(runs))

    return run


@pytest.mark.parametrize("task", ["plane", "erf", "domain_coloring"])
def test_one_and_two_threads_give_the_same_archive(result, task):
    assert_same_state(result(task, "evaluation.threads=1"), result(task, "evaluation.threads=2"))


@pytest.mark.skipif(len(ptx_vm.levels()) < 2, reason="this CPU has one SIMD level")
@pytest.mark.parametrize("task", ["erf", "domain_coloring"])
def test_all_simd_levels_give_the_same_archive(result, task):
    first, *others = [result(task, f"evaluation.simd={level}") for level in ptx_vm.levels()]
    for other in others:
        assert_same_state(first, other)


def test_the_seed_decides_the_archive(result):
    same, again, other = result("plane"), result("plane", "output.checkpoint_seconds=100"), result("plane", "seed=8")
    assert_same_state(same, again)
    assert other.archive["solution"].tobytes() != same.archive["solution"].tobytes()
