"""evo.report.plot.charts: a heat map for every kind of archive, and the curves of the metrics."""

import numpy as np
import pytest
from matplotlib import colormaps

from evo.report.plot import charts

from .conftest import RED

MEASURES = {
    1: '{"mean": (-1.0, 1.0)}',
    3: '{"mean": (-1.0, 1.0), "deviation": (0.0, 2.0), "third": (0.0, 1.0)}',
    4: '{"mean": (-1.0, 1.0), "deviation": (0.0, 2.0), "third": (0.0, 1.0), "fourth": (0.0, 1.0)}',
}
ARCHIVES = {
    "grid": ({"archive": {"dims": [6, 5]}}, 2),
    "line": ({"archive": {"dims": [7]}}, 1),
    "box": ({"archive": {"dims": [3, 4, 5]}}, 3),
    "cvt": ({"archive": {"type": "CVTArchive", "dims": None, "centroids": 9}}, 2),
    "cvt of three measures": ({"archive": {"type": "CVTArchive", "dims": None, "centroids": 9}}, 3),
}


@pytest.fixture
def run_of(new_run, make_task, plane_folder):
    """Makes a run of the plane task with so many measures, and these elites."""

    def make(num_measures: int, search, elites):
        changes = {"search": search}
        if num_measures != 2:
            source = (plane_folder / "task.py").read_text()
            source = source.replace('{"mean": (-1.0, 1.0), "deviation": (0.0, 2.0)}', MEASURES[num_measures])
            source = source.replace("[v.mean(axis=1), v.std(axis=1)]", f"[v.mean(axis=1)] * {num_measures}")
            changes["task"] = str(make_task(source))
        return new_run(elites, changes)

    return make


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_of_every_shape_have_a_heat_map(run_of, kind):
    search, num_measures = ARCHIVES[kind]
    elites = [(RED, 0.5, (0.0, 0.5, 0.5)[:num_measures]), (RED, 0.75, (0.9, 0.1, 0.9)[:num_measures])]
    run = run_of(num_measures, search, elites)
    figure = charts.heatmap(run)
    figure.draw_without_rendering()
    assert "2 elites after 0 evaluations" in (figure.get_suptitle() or figure.axes[0].get_title())
    if kind == "box":
        titles = [axes.get_title() for axes in figure.axes[:5]]
        assert titles == [f"third {level / 5:g} to {(level + 1) / 5:g}" for level in range(5)]
        assert (figure.get_supxlabel(), figure.get_supylabel()) == ("mean", "deviation")
    else:
        assert figure.axes[0].get_xlabel() == "mean"
        assert figure.axes[0].get_ylabel() == ("deviation" if num_measures >= 2 else "")
        box = figure.axes[0].get_position()
        assert box.height > 0.5  # one measure: a band, not a hair
        if num_measures > 2:  # the elites at their first two measures, the best on top
            low, high = np.array([*run.search.problem.ranges[:2]]).T
            expected = (np.array([(0.0, 0.5), (0.9, 0.1)]) - low) / (high - low)
            np.testing.assert_allclose(figure.axes[0].collections[0].get_offsets(), expected)


def test_a_name_that_would_be_a_broken_formula_is_drawn_as_it_is(new_run, make_task, plane_folder):
    source = (plane_folder / "task.py").read_text().replace('"mean": (', '"$a^{$": (')
    figure = charts.heatmap(new_run([(RED, 0.5, (0.0, 0.5))], {"task": str(make_task(source))}))
    figure.draw_without_rendering()
    assert figure.axes[0].get_xlabel() == "$a^{$"


def maps_of(figure, num_panels: int) -> np.ndarray:
    """`(num_panels, rows, columns, 4)`, the colours of the cells; NaN where there is none."""
    figure.draw_without_rendering()
    meshes = [axes.collections[0] for axes in figure.axes[:num_panels]]
    return np.stack(
        [
            np.where(
                np.ma.getmaskarray(mesh.get_array())[..., None], np.nan, mesh.get_facecolor().reshape(*mesh.get_array().shape, 4)
            )
            for mesh in meshes
        ]
    )


def test_a_grid_of_four_measures_has_a_map_for_each_level_of_the_third_with_the_best_over_the_fourth(run_of):
    """The cell of (mean, deviation, third) is in panel 5 third, row 4 deviation / 2, column 3 (mean + 1) / 2."""
    elites = [
        (RED, 0.0, (-0.9, 0.1, 0.1, 0.1)),
        (RED, 1.0, (0.9, 0.6, 0.1, 0.1)),
        (RED, 0.5, (0.0, 1.9, 0.9, 0.1)),
        (RED, -9.0, (0.0, 1.9, 0.9, 0.9)),
    ]
    figure = charts.heatmap(run_of(4, {"archive": {"dims": [3, 4, 5, 2]}}, elites))
    maps = maps_of(figure, 5)
    expected = np.full((5, 4, 3, 4), np.nan)
    viridis = colormaps["viridis"]
    expected[0, 0, 0], expected[0, 1, 2], expected[4, 3, 1] = viridis(0.0), viridis(1.0), viridis(0.5)
    np.testing.assert_allclose(maps, expected, atol=0.01)
    assert figure.get_suptitle().endswith("4 elites after 0 evaluations · the best over fourth")
    assert figure.axes[-1]._colorbar.extend == "neither"  # a colour for what is shown: not for the elite behind another
    assert all(figure.axes[0].get_shared_y_axes().joined(figure.axes[0], axes) for axes in figure.axes[1:5])
    assert len(figure.axes) == 6 + 1  # with a place that is empty, and one colour bar


def image_of(figure) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def color_at(figure, i: float, j: float) -> list[float]:
    """The colour in the middle of a cell of the grid of 6 x 5."""
    image = image_of(figure)
    rows, columns = image.shape[:2]
    return image[int((j + 0.5) / 5 * rows), int((i + 0.5) / 6 * columns)].tolist()


LAST_CELL = (0.9, 1.9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the sum of such objectives
@pytest.mark.parametrize("objective", [(1e308, -1e308), (1e-310, 0.0), (1e308, 1e308)])
def test_a_heat_map_of_enormous_or_tiny_objectives_is_drawn(new_run, objective):
    run = new_run([(RED, value, place) for value, place in zip(objective, (LAST_CELL, (-0.9, 0.1)), strict=True)])
    figure = charts.heatmap(run)
    figure.draw_without_rendering()
    ends = (0.5, 0.5) if objective[0] == objective[1] else (1.0, 0.0)
    for cell, end in zip(((5, 4), (0, 0)), ends, strict=True):
        assert color_at(figure, *cell) == pytest.approx(colormaps["viridis"](end), abs=0.01)
    if objective[0] == 1e308:
        assert figure.axes[-1].get_ylabel() == "objective / 1e+308"


def test_a_heat_map_colours_the_cell_that_measures_fall_into_and_shows_its_edges(new_run):
    rng = np.random.default_rng(4)
    measures = rng.uniform((-1, 0), (1, 2), (12, 2))
    centroids = {"archive": {"type": "CVTArchive", "dims": None, "centroids": 9}}
    run = new_run([(RED, float(x), (x, y)) for x, y in measures], {"search": centroids})
    figure = charts.heatmap(run)
    image, elites, places = image_of(figure), run.search.archive.elites(), run.search.archive.layout.centroids
    rows, columns = image.shape[:2]
    edges = np.abs(image - charts._EDGE_COLOR).max(axis=2) < 0.01
    assert 0.002 < edges.mean() < 0.1
    low, high = elites.objective.min(), elites.objective.max()
    for row, column in rng.integers(0, (rows, columns), (300, 2)):
        if edges[row, column]:
            continue
        point = np.array([(column + 0.5) / columns * 2 - 1, (row + 0.5) / rows * 2])
        cell = ((places - point) ** 2).sum(axis=1).argmin()
        found = elites.objective[elites.cell == cell]
        expected = colormaps["viridis"]((found[0] - low) / (high - low)) if len(found) else charts._EMPTY_COLOR
        assert image[row, column].tolist() == pytest.approx(expected)


def test_the_curves_show_the_metrics(new_run):
    run = new_run([])
    rows = [
        {"evaluations": 10, "qd_score": 1.0, "coverage": 0.25, "best_objective": None, "duplicates": 0, "offspring": 10},
        {"evaluations": 16, "qd_score": 2.5, "coverage": 0.5, "best_objective": 0.75, "duplicates": 5, "offspring": 20},
    ]
    for number, row in enumerate(rows, 1):
        run.run_dir.append_metrics({"generations": number, "elapsed_s": float(number), **row})
    figure = charts.curves(run)
    shown = {axes.get_title(loc="left"): axes.lines[0] for axes in figure.axes}
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


def test_the_curves_of_several_emitters_show_how_each_succeeds(new_run):
    run = new_run([])
    row = {"qd_score": 1.0, "coverage": 0.25, "best_objective": 0.5, "duplicates": 0, "offspring": 10, "elapsed_s": 1.0}
    counts = [{"initial": (10, 4, 0), "a": (0, 0, 0)}, {"initial": (10, 4, 0), "a": (20, 3, 5)}]
    for number, emitters in enumerate(counts, 1):
        named = {name: dict(zip(("evaluations", "new_cells", "improved"), each, strict=True)) for name, each in emitters.items()}
        run.run_dir.append_metrics({"generations": number, "evaluations": 10 * number, "emitters": named, **row})
    figure = charts.curves(run)
    success, shares = figure.axes[4:]
    assert [line.get_label() for line in success.lines] == ["initial", "a"]
    np.testing.assert_allclose([line.get_ydata() for line in success.lines], [[0.4, 0.4], [0.0, 0.4]])
    np.testing.assert_allclose([line.get_ydata() for line in shares.lines], [[1.0, 1 / 3], [0.0, 2 / 3]])
