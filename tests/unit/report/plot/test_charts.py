"""evo.report.plot.charts: a heat map for every kind of archive, and the curves of the metrics."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from evo.report.plot import charts, draw_plots

from .conftest import RED


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, to look at their content."""
    figures = []
    savefig = Figure.savefig

    def keep(figure: Figure, *args, **kwargs) -> None:
        figures.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def assert_a_picture(path, name: str) -> None:
    assert path.name == name
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert min(image.size) > 400
        assert np.asarray(image.convert("L")).std() > 5


MEASURES = {1: '{"mean": (-1.0, 1.0)}', 3: '{"mean": (-1.0, 1.0), "deviation": (0.0, 2.0), "third": (0.0, 1.0)}'}
ARCHIVES = {
    "grid": ({"archive": {"dims": [6, 5]}}, 2),
    "line": ({"archive": {"dims": [7]}}, 1),
    "box": ({"archive": {"dims": [3, 4, 5]}}, 3),
    "cvt": ({"archive": {"type": "CVTArchive", "dims": None, "centroids": 9}}, 2),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_of_every_shape_have_a_heat_map(new_run, make_task, plane_folder, drawn, kind):
    search, num_measures = ARCHIVES[kind]
    changes = {"search": search}
    if num_measures != 2:
        source = (plane_folder / "task.py").read_text()
        source = source.replace('{"mean": (-1.0, 1.0), "deviation": (0.0, 2.0)}', MEASURES[num_measures])
        source = source.replace("[v.mean(axis=1), v.std(axis=1)]", f"[v.mean(axis=1)] * {num_measures}")
        changes["task"] = str(make_task(source))
    elites = [(RED, 0.5, (0.0, 0.5, 0.5)[:num_measures]), (RED, 0.75, (0.9, 0.1, 0.9)[:num_measures])]
    run = new_run(elites, changes)
    assert_a_picture(charts.heatmap(run), "heatmap.png")
    assert "2 elites after 0 evaluations" in drawn[0].axes[0].get_title()
    if num_measures <= 2:
        assert drawn[0].axes[0].get_xlabel() == "mean"
        assert drawn[0].axes[0].get_ylabel() == ("deviation" if num_measures == 2 else "")
        box = drawn[0].axes[0].get_position()
        assert box.height > 0.5  # one measure: a band, not a hair
    else:
        labels = [label.get_text() for label in drawn[0].axes[0].get_xticklabels()]
        assert labels == list(run.search.problem.task.measures)


def test_the_curves_show_the_metrics(new_run, drawn):
    run = new_run([])
    rows = [
        {"evaluations": 10, "qd_score": 1.0, "coverage": 0.25, "best_objective": None, "duplicates": 0, "offspring": 10},
        {"evaluations": 16, "qd_score": 2.5, "coverage": 0.5, "best_objective": 0.75, "duplicates": 5, "offspring": 20},
    ]
    for row in rows:
        run.run_dir.append_metrics(row)
    assert_a_picture(charts.curves(run), "curves.png")
    shown = {axes.get_title(loc="left"): axes.lines[0] for axes in drawn[0].axes}
    expected = {
        "QD score": [1.0, 2.5],
        "coverage": [0.25, 0.5],
        "best objective": [np.nan, 0.75],
        "duplicates among offspring": [0.0, 0.25],
    }
    assert list(shown) == list(expected)
    for title, values in expected.items():
        np.testing.assert_array_equal(shown[title].get_xdata(), [10, 16])
        np.testing.assert_array_equal(shown[title].get_ydata(), values)


def test_a_run_without_generations_has_empty_curves(new_run):
    assert_a_picture(charts.curves(new_run([])), "curves.png")


def test_no_figure_stays_open(new_run):
    before = plt.get_fignums()
    run = new_run([(RED, 0.5, (0.0, 0.5))])
    draw_plots(run, ["heatmap", "curves", "contact_sheet"])
    assert plt.get_fignums() == before
