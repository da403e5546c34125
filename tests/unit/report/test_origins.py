"""evo.report.lineage: which ancestors are told of, from a lineage log, from the archive alone, and from a damaged log."""

import shutil
from collections import Counter

import numpy as np
import pytest
import yaml

from evo.config import load_config
from evo.report.elites import operator_name
from evo.report.lineage import LINE_LENGTHS, MAX_ANCESTORS, LinesOfDescent, _steps, origins
from evo.report.page.content import run_content
from evo.run.run import Run


@pytest.fixture(scope="module")
def finished(tmp_path_factory, plane_folder):
    """The folder of a run of the plane task."""
    folder = tmp_path_factory.mktemp("origins")
    config = {
        "task": str(plane_folder),
        "program": {"max_length": 24, "vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32"]}},
        "search": {"archive": {"dims": [12, 10]}, "batch_size": 48, "initial": {"num_programs": 64, "max_length": 20}},
        "stop": {"generations": 30},
        "output": {"runs": str(folder / "runs"), "plots": []},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(config))
    run = Run.start(load_config(folder / "small.yaml"), "small")
    run.execute(lambda *_: None, lambda _: False)
    run.close()
    return run.run_dir.path


def ranked(run: Run) -> np.ndarray:
    return np.argsort(-run.search.elites().objective, kind="stable")


def test_a_line_leads_through_recorded_ancestors_to_the_elite(finished):
    run, _ = Run.view(finished)
    elites, rows, lines = run.search.elites(), ranked(run), LinesOfDescent(run)
    found = run_content(run)
    programs = [*found["elites"], *found["ancestors"]]

    def generation(number):
        each = programs[number]
        return each["generation"] if number >= len(rows) else each["origin"]["generation"]

    lengths = Counter()
    for place, row in enumerate(rows.tolist()):
        origin, line = found["elites"][place]["origin"], lines.of(row)
        assert (origin["length"], origin["end"]) == (len(line), "complete")
        assert origin["line"][-1] == place
        told = [(generation(number), programs[number]["cell"]) for number in origin["line"]]
        known = [(each.generation, each.cell) for each in line]
        assert told == [each for each in known if each in told] and told[0] == known[0]
        for number in origin["line"]:
            if number < len(rows):  # an elite: the very program
                [same] = [each for each in line if each.generation == generation(number)]
                assert (same.words == elites.solution[rows[number]]).all()
            else:
                past = programs[number]
                [same] = [each for each in line if (each.generation, each.cell) == (past["generation"], past["cell"])]
                assert (past["objective"], past["operator"]) == (same.objective, same.operator)
        lengths[len(line)] += 1
    assert max(lengths) > 4
    assert {number for each in found["elites"] for number in each["origin"]["line"]} >= set(range(len(rows), len(programs)))
    assert found["lineage_note"] is None


def test_steps_are_even_and_lines_that_begin_alike_show_the_same():
    for length in range(1, 200):
        shown = _steps(list(range(length)), 12)
        assert shown[0] == 0 and shown[-1] == length - 1
        assert len(shown) <= 12 and len(shown) >= min(length, 6)
        assert len(set(np.diff(shown)[:-1].tolist())) <= 1
    one, two = _steps(list(range(100)), 12), _steps([*range(60), *range(1000, 1030)], 12)
    assert [each for each in one if each < 60] == [each for each in two if each < 60]


def test_fewer_ancestors_are_shown_where_they_would_be_too_many(finished, monkeypatch):
    run, _ = Run.view(finished)
    many = origins(run, ranked(run))
    assert LINE_LENGTHS[0] == 12 and len(many.facts) <= MAX_ANCESTORS
    monkeypatch.setattr("evo.report.lineage.MAX_ANCESTORS", len(many.facts) - 1)
    few = origins(run, ranked(run))
    assert 0 < len(few.facts) < len(many.facts)
    assert [each["length"] for each in few.elites] == [each["length"] for each in many.elites]
    assert max(len(each["line"]) for each in few.elites) <= 6


def test_without_a_log_ancestors_are_those_that_are_still_elites(finished, tmp_path):
    run, _ = Run.view(finished)
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    [log] = (copy / "lineage").iterdir()
    log.write_bytes(log.read_bytes()[:-3])
    damaged, _ = Run.view(copy)
    found = run_content(damaged)
    assert found["lineage_note"].startswith(f"{log}: cannot read how the elites came about: cut short at ")
    assert found["ancestors"] == [] and found["pictures"]["ancestors"] is None
    elites, rows = run.search.elites(), ranked(run)
    place_of = {int(elites.cell[row]): place for place, row in enumerate(rows)}
    longest = 0
    for place, row in enumerate(rows.tolist()):
        expected, at = [place], row  # by the archive's own parents
        while (cell := int(elites.parents[at][0])) >= 0:
            parent = np.flatnonzero(elites.cell == cell)
            if not len(parent) or elites.generation[parent[0]] >= elites.generation[at]:
                break
            at = int(parent[0])
            expected.insert(0, place_of[cell])
        origin = found["elites"][place]["origin"]
        assert origin["length"] == len(expected) and origin["line"][-1] == place and origin["line"][0] == expected[0]
        is_random = operator_name(int(elites.operator[at])).startswith("none")
        assert origin["end"] == ("complete" if is_random else "archive")
        longest = max(longest, len(expected))
    assert longest > 1
