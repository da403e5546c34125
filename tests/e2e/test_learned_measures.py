"""Runs with learned measures: they are exact however the work is done, and reports show them."""

import csv
import json

import pytest

from .conftest import assert_same_state, run_folders, state_of

LEARNED = {
    "search": {"learning": {"descriptors": "learned", "features": 2}},
    "stop": {"generations": 16},  # the measures are learned four times
    "output": {"plots": []},
}
CVT = "search.archive={type: CVTArchive, centroids: 12}"


@pytest.fixture
def run(fork_evo, small_config, tmp_path):
    """Runs a small search with some overrides and gives its folder."""

    def start(*overrides: str):
        runs = tmp_path / f"runs{len(list(tmp_path.iterdir()))}"
        sets = [part for override in (*overrides, f"output.runs={runs}") for part in ("--set", override)]
        completed = fork_evo("run", small_config(LEARNED), *sets)
        assert completed.returncode == 0, completed.stderr
        assert completed.stderr.count("out of its range") == 0
        return run_folders(runs)[0]

    return start


@pytest.mark.parametrize("archive", ["seed=7", CVT], ids=["grid", "CVT"])
def test_threads_and_processes_give_the_same_archive(run, archive):
    state = state_of(run(archive, "evaluation.threads=1"))
    assert [bool(row.get("learning")) for row in state.metrics].count(True) >= 3
    assert_same_state(state, state_of(run(archive, "evaluation.threads=2")))
    assert_same_state(state, state_of(run(archive, "evaluation.executor=processes")))


@pytest.mark.parametrize("done", [1, 3, 4])  # the first generation, and those before and after the archive is filled anew
@pytest.mark.parametrize("archive", ["seed=7", CVT], ids=["grid", "CVT"])
def test_a_resumed_run_ends_equal_to_a_whole_one(run, fork_evo, done, archive):
    whole, part = run(archive), run(archive, f"stop.generations={done}")
    completed = fork_evo("resume", part, "--set", "stop.generations=16")
    assert completed.returncode == 0, completed.stderr
    assert_same_state(state_of(part), state_of(whole))


def test_other_measures_cannot_resume_a_run(run, fork_evo):
    folder = run("stop.generations=2")
    for override, message in (
        ("search.learning.points=16", "search.learning.points is 16 now, was 32"),
        ("search.learning.descriptors=task", 'search.learning.descriptors is "task" now, was "learned"'),
    ):
        completed = fork_evo("resume", folder, "--set", override)
        assert completed.returncode == 2
        assert message in completed.stderr
        assert completed.stderr.count("\n") == 1


@pytest.mark.parametrize("archive", ["seed=7", CVT], ids=["grid", "CVT"])
def test_reports_show_learned_measures_beside_the_tasks(run, fork_evo, tmp_path, archive):
    folder = run(archive)
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
    for plot in ("heatmap", "contact_sheet", "animation", "lineage"):
        assert fork_evo("plot", folder, "--plot", plot).returncode == 0
    completed = fork_evo("page", folder, "--output", tmp_path / "page.html")
    assert completed.returncode == 0, completed.stderr
    assert json.dumps("component_1") in (tmp_path / "page.html").read_text()
    completed = fork_evo("film", folder, "--archive", "--output", tmp_path / "film.gif")
    assert completed.returncode == 2
    assert "measures are learned, so earlier elites have no place in the archive" in completed.stderr
