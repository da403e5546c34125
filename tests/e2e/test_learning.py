"""What runs that learn say of it, and how reports show learned measures; test_same_result.py holds their bits."""

import base64
import csv
import gzip
import json
import re

import pytest

from .conftest import run_folders, state_of

SCREENED = {
    "search": {
        "batch_size": 100,
        "initial": {"num_programs": 200},
        "learning": {"prescreen": 4, "control": 3, "window": 300, "points": 16, "evaluation_cost": 1000},
    },
    "stop": {"generations": 6},
    "output": {"plots": []},
}
LEARNED = {
    "search": {"learning": {"descriptors": "learned", "features": 2}},
    "stop": {"generations": 8},
    "output": {"plots": []},
}


@pytest.fixture
def run(fork_evo, small_config, tmp_path):
    """Runs a small search with some overrides and gives its folder and what it printed."""

    def start(config: dict, *overrides: str):
        runs = tmp_path / ("-".join(["runs", *overrides]))
        sets = [part for override in (*overrides, f"output.runs={runs}") for part in ("--set", override)]
        completed = fork_evo("run", small_config(config), *sets)
        assert completed.returncode == 0, completed.stderr
        return run_folders(runs)[0], completed

    return start


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_metrics_tell_what_a_prescreen_is_worth(run):
    folder, completed = run(SCREENED)
    rows = rows_of(folder)
    rates = [f"{rows[-1]['learning'][name]:.3g}" for name in ("screened_rate", "control_rate")]
    assert "prescreen: on; elites for each evaluation: {} with it, {} without\n".format(*rates) in completed.stdout
    assert [row["learning"]["stage"] for row in rows] == ["initial", "control", *["screened"] * 2, "control", "screened"]
    assert 0.0 < rows[5]["learning"]["control_rate"] <= 1.0
    assert 0.0 < rows[5]["learning"]["screened_rate"] <= 1.0


def test_one_that_ends_itself_says_so_then_and_at_the_end_of_each_part_of_the_run(run, fork_evo):
    """It only explores, so that it finds no more than without. The first judgement is that of the fourth control."""
    folder, completed = run(SCREENED, "search.learning.exploration=1.0", "stop.generations=14")
    [ended] = [row["generations"] for row in rows_of(folder) if "ended" in row["learning"]]
    assert 12 <= ended < 14
    assert completed.stderr.count(f"prescreen off from generation {ended}: no significant gain: ") == 1
    assert completed.stdout.count(f"prescreen: off since generation {ended}: no significant gain: ") == 1
    resumed = fork_evo("resume", folder, "--set", "stop.generations=16")
    assert "prescreen off" not in resumed.stderr
    assert resumed.stdout.count(f"prescreen: off since generation {ended}: no significant gain: ") == 1


@pytest.mark.slow
def test_reports_show_learned_measures_beside_the_tasks(run, fork_evo, tmp_path):
    folder, completed = run(LEARNED)
    assert "out of its range" not in completed.stderr
    latent, measures = (state_of(folder).archive[name] for name in ("latent", "measures"))
    completed = fork_evo("show", folder, "--csv")
    assert completed.returncode == 0, completed.stderr
    rows = list(csv.DictReader(completed.stdout.splitlines()))
    for names, expected in ((("mean", "deviation"), measures), (("component_1", "component_2"), latent)):
        assert [[float(row[f"measure_{name}"]) for name in names] for row in rows] == expected.tolist()
    completed = fork_evo("show", folder)
    assert completed.returncode == 0, completed.stderr
    best = state_of(folder).archive["objective"].argmax()
    assert f"component_2  {latent[best, 1]:.6g}  (range 0 to 1)" in completed.stdout
    assert f"mean         {measures[best, 0]:.6g}  (range -1 to 1)" in completed.stdout
    plots = [part for plot in ("heatmap", "lineage") for part in ("--plot", plot)]
    assert fork_evo("plot", folder, *plots).returncode == 0
    completed = fork_evo("page", folder, "--output", tmp_path / "page.html")
    assert completed.returncode == 0, completed.stderr
    packed = re.search(r'id="data">(.*?)</script>', (tmp_path / "page.html").read_text())[1]
    assert json.dumps("component 1").encode() in gzip.decompress(base64.b64decode(packed))
    completed = fork_evo("film", folder, "--archive", "--output", tmp_path / "film.gif")
    assert completed.returncode == 2
    assert "measures are learned, so earlier elites have no place in the archive" in completed.stderr
