"""Runs that learn: how the work is done does not show in the archive, and a resumed run ends as a whole one does."""

import json

import pytest

from .conftest import assert_same_state, run_folders, state_of

LEARNING = {
    "search": {
        "batch_size": 100,
        "initial": {"num_programs": 200},
        "learning": {"prescreen": 4, "control": 3, "window": 300, "points": 16},
    },
    "stop": {"generations": 16},  # five periods of control, one more than the first judgement waits for
    "output": {"plots": []},
}
DEAR, CHEAP = "search.learning.evaluation_cost=500", "search.learning.evaluation_cost=0.1"


@pytest.fixture
def run(fork_evo, small_config, tmp_path):
    """Runs a small search with some overrides and gives its folder and what it printed."""

    def start(*overrides: str):
        runs = tmp_path / ("-".join(["runs", *overrides]))
        sets = [part for override in (*overrides, f"output.runs={runs}") for part in ("--set", override)]
        completed = fork_evo("run", small_config(LEARNING), *sets)
        assert completed.returncode == 0, completed.stderr
        return run_folders(runs)[0], completed

    return start


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_threads_and_processes_give_the_same_archive(run):
    state = state_of(run(DEAR, "evaluation.threads=1")[0])
    assert state.counters["screened"] > 500
    assert_same_state(state, state_of(run(DEAR, "evaluation.threads=2")[0]))
    assert_same_state(state, state_of(run(DEAR, "evaluation.executor=processes")[0]))


@pytest.mark.parametrize("done", [1, 5])
def test_a_resumed_run_ends_equal_to_a_whole_one(run, fork_evo, done):
    whole, part = run(DEAR)[0], run(DEAR, f"stop.generations={done}")[0]
    completed = fork_evo("resume", part, "--set", "stop.generations=16")
    assert completed.returncode == 0, completed.stderr
    assert_same_state(state_of(part), state_of(whole))
    assert [row["learning"] for row in rows_of(part)] == [row["learning"] for row in rows_of(whole)]


def test_metrics_tell_how_well_it_predicts_and_what_that_is_worth(run):
    folder, completed = run(DEAR, "stop.generations=6")
    rows = rows_of(folder)
    rates = [f"{rows[-1]['learning'][name]:.3g}" for name in ("screened_rate", "control_rate")]
    assert "prescreen: on; elites for each evaluation: {} with it, {} without\n".format(*rates) in completed.stdout
    assert [row["learning"]["stage"] for row in rows[:6]] == ["initial", "control", *["screened"] * 2, "control", "screened"]
    assert "rank_correlation" not in rows[0]["learning"]
    for row in rows[1:]:
        if "rank_correlation" in row["learning"]:
            assert -1.0 <= row["learning"]["rank_correlation"] <= 1.0
            assert 0.0 <= row["learning"]["calibration"] <= 1.0
    assert 0.0 < rows[5]["learning"]["control_rate"] <= 1.0
    assert 0.0 < rows[5]["learning"]["screened_rate"] <= 1.0


def test_one_that_ends_itself_says_so_then_and_at_the_end_of_each_part_of_the_run(run, fork_evo):
    """At cost 1.4, three eighths more offspring are bred than pay. The first judgement is that of the fourth control."""
    folder, completed = run("search.learning.evaluation_cost=1.4", "stop.generations=14")
    [ended] = [row["generations"] for row in rows_of(folder) if "ended" in row["learning"]]
    assert 12 <= ended < 14
    assert completed.stderr.count(f"prescreen off from generation {ended}: it finds ") == 1
    assert completed.stdout.count(f"prescreen: off since generation {ended}: it finds ") == 1
    resumed = fork_evo("resume", folder, "--set", "stop.generations=16")
    assert "prescreen off" not in resumed.stderr
    assert resumed.stdout.count(f"prescreen: off since generation {ended}: it finds ") == 1


def test_a_prescreen_that_cannot_pay_is_off_and_says_so_once(run):
    folder, completed = run(CHEAP)
    said = "prescreen off from generation 1: an evaluation costs 0.1 times what it costs to look at an offspring"
    assert completed.stderr.count(said) == 1
    assert "\nprescreen: off since generation 1: an evaluation costs 0.1 times" in completed.stdout
    rows = rows_of(folder)
    assert [row["learning"]["stage"] for row in rows] == ["off"] * 16
    assert rows[-1]["screened"] == 0
    plain, _ = run("search.learning.prescreen=1")
    assert state_of(folder).archive["solution"].tobytes() == state_of(plain).archive["solution"].tobytes()
    assert "learning" not in rows_of(plain)[0]


def test_the_measured_cost_is_kept(run, fork_evo):
    part = run("stop.generations=3")[0]
    cost = state_of(part).checkpoint["prescreen.cost"]
    assert cost.shape == (1,)
    assert cost[0] > 0.0
    completed = fork_evo("resume", part, "--set", "stop.generations=6")
    assert completed.returncode == 0, completed.stderr
    assert state_of(part).checkpoint["prescreen.cost"] == cost


def test_another_prescreen_cannot_resume_a_run(run, fork_evo):
    folder = run(DEAR, "stop.generations=2")[0]
    completed = fork_evo("resume", folder, "--set", "stop.generations=4", "--set", "search.learning.prescreen=8")
    assert completed.returncode == 2
    assert "search.learning.prescreen is 8 now, was 4" in completed.stderr
