"""evo.report.page.timeline: the archive fills as the metrics say, and lines of descent begin where evo.report.lineage has it."""

from itertools import combinations

import numpy as np
import pytest

from evo.report.lineage import LinesOfDescent
from evo.report.page import timeline as module
from evo.report.page.timeline import timeline
from evo.run.run import Run
from evo.search.lineage_records import joined

COLUMNS, ROWS, GENERATIONS = 6, 5, 30


@pytest.fixture(scope="module")
def run(finish):
    return Run.view(finish([COLUMNS, ROWS], GENERATIONS))[0]


def told(run) -> list[dict]:
    return timeline(run, np.arange(len(run.search.elites())), run.records())


@pytest.mark.parametrize("moments", [256, 3])
def test_cells_fill_as_the_metrics_say_and_keep_few_elites_of_a_long_run(run, monkeypatch, moments):
    monkeypatch.setattr(module, "MOMENTS", moments)
    pasts = [each["past"] for each in told(run)]
    born = [min([own, *past[:1]]) for own, past in zip(run.search.elites().generation.tolist(), pasts, strict=True)]
    for row in run.run_dir.metrics():
        assert sum(each < row["generations"] for each in born) == round(row["coverage"] * COLUMNS * ROWS)
    assert max(len(past) // 3 for past in pasts) > 3 or moments == 3
    assert all(len(past) // 3 <= moments + 1 for past in pasts)


def test_the_best_earlier_elite_is_as_good_as_the_metrics_say(run):
    own = list(zip(run.search.elites().generation.tolist(), run.search.elites().objective.tolist(), strict=True))
    for row in run.run_dir.metrics():
        known = [*own, *(pair for each in told(run) for pair in zip(each["past"][::3], each["past"][1::3], strict=True))]
        best = max(objective for generation, objective in known if generation < row["generations"])
        assert best == pytest.approx(row["best_objective"], rel=1e-4)


def test_elites_are_of_one_line_if_their_lines_begin_alike(run, monkeypatch):
    monkeypatch.setattr(module, "NUM_LINES", 3)
    lines, numbers = LinesOfDescent(run), [each["line"] for each in told(run)]
    first = [(lines.of(row)[0].generation, lines.of(row)[0].slot) for row in range(len(numbers))]
    for one, two in combinations(range(len(numbers)), 2):
        if numbers[one] >= 0 or numbers[two] >= 0:
            assert (numbers[one] == numbers[two]) == (first[one] == first[two])
    sizes = [numbers.count(line) for line in range(3)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == max(first.count(each) for each in first)


def test_without_records_nothing_is_known_of_the_past(run):
    rows = np.arange(len(run.search.elites()))
    assert timeline(run, rows, joined([])) == [{"line": -1, "past": []}] * len(rows)
