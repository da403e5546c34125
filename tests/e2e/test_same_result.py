"""Config and seed decide the archive; how, how fast and in how many parts it is computed does not show in it."""

from pathlib import Path

import pytest

from evo.native import ptx_vm

from .conftest import assert_same_state, run_folders, state_of

INSTRUCTIONS = [
    *("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "div_approx_ftz_f32", "abs_ftz_f32", "neg_ftz_f32"),
    *("min_ftz_f32", "max_ftz_f32", "copysign_f32", "rcp_approx_ftz_f32", "sqrt_approx_ftz_f32", "rsqrt_approx_ftz_f32"),
    *("sin_approx_ftz_f32", "cos_approx_ftz_f32", "lg2_approx_ftz_f32", "ex2_approx_ftz_f32", "tanh_approx_f32"),
]
BROAD = {
    "program": {"vocabulary": {"instructions": INSTRUCTIONS}},
    "search": {"batch_size": 150, "initial": {"num_programs": 300}},
    "stop": {"generations": 4},
}
CVT = {"archive": {"type": "CVTArchive", "dims": None, "centroids": 12}}
# Of the plane task, unless there is another.
CASES = {
    "plane": BROAD,
    "erf": {**BROAD, "task": "tests/data/erf"},
    "domain_coloring": {**BROAD, "task": "tasks/domain_coloring"},
    "tuned": {
        "task": "tests/data/erf",
        "search": {
            "batch_size": 100,
            "initial": {"num_programs": 200},
            "tuning": {"share": 0.2, "iterations": 4, "linear_scale": False},
        },
        "program": {"vocabulary": {"groups": {"instructions": 0.5, "inputs": 0.2, "constants": 0.25, "meta": 0.05}}},
        "stop": {"generations": 5},
    },
    "screened": {
        "search": {
            "batch_size": 100,
            "initial": {"num_programs": 200},
            "learning": {"prescreen": 4, "window": 300, "points": 16, "evaluation_cost": 5000},
        },
        "stop": {"generations": 9},
    },
    "CVT": {"search": CVT, "stop": {"generations": 4}},
}


@pytest.fixture(scope="module")
def run(fork_evo_in, small_config_in, repository, tmp_path_factory):
    """Runs a case with some overrides, once; gives its folder."""
    made = {}

    def start(case: str, *overrides: str) -> Path:
        if (case, overrides) not in made:
            folder = tmp_path_factory.mktemp("case")
            changes = {**CASES[case], "output": {"plots": [], "runs": str(folder / "runs")}}
            if "task" in changes:
                changes["task"] = str(repository / changes["task"])
            sets = [part for override in overrides for part in ("--set", override)]
            completed = fork_evo_in(folder, "run", small_config_in(folder, changes), *sets)
            assert completed.returncode == 0, completed.stderr
            (made[case, overrides],) = run_folders(folder / "runs")
        return made[case, overrides]

    return start


THREADS, PROCESSES = "evaluation.threads=2", "evaluation.executor=processes"
HOW = [
    *((case, THREADS) for case in CASES),
    *((case, PROCESSES) for case in ("tuned", "screened", "CVT")),
    *((case, f"evaluation.simd={level}") for case in ("plane", "tuned") for level in ptx_vm.levels()[:-1]),
    ("plane", "output.checkpoint_seconds=100"),
]


@pytest.mark.parametrize(("case", "how"), HOW)
def test_how_the_work_is_done_does_not_show(run, case, how):
    assert_same_state(state_of(run(case, how)), state_of(run(case, "evaluation.threads=1")))


@pytest.mark.parametrize(
    ("case", "done"),
    [
        ("tuned", 2),
        ("screened", 5),
        ("CVT", 2),
    ],
)
def test_a_resumed_run_ends_equal_to_a_whole_one(run, fork_evo_in, case, done):
    whole, part = run(case, "evaluation.threads=1"), run(case, f"stop.generations={done}")
    completed = fork_evo_in(part, "resume", part, "--set", f"stop.generations={CASES[case]['stop']['generations']}")
    assert completed.returncode == 0, completed.stderr
    assert_same_state(state_of(part), state_of(whole))


def test_the_cases_are_what_they_say(run):
    """Each does what could make it differ."""
    state = {case: state_of(run(case, "evaluation.threads=1")) for case in CASES}
    assert state["tuned"].counters["tuned"] > 50
    assert state["tuned"].counters["evaluations"] > state["tuned"].counters["offspring"]
    assert state["screened"].counters["screened"] > 500
    plain = state_of(run("tuned", "search.tuning.share=0"))
    assert plain.archive["solution"].tobytes() != state["tuned"].archive["solution"].tobytes()
    other = state_of(run("plane", "seed=8"))
    assert other.archive["solution"].tobytes() != state["plane"].archive["solution"].tobytes()
