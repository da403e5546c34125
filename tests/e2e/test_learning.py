"""Reports of runs that learn, learned measures included; test_same_result.py holds their bits."""

import base64
import csv
import gzip
import json
import re

import pytest

from .conftest import run_folders, state_of

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
