"""evo.search.archives: failed programs never enter, ties keep the incumbent, and a restored archive is the same."""

import math
import pickle

import numpy as np
import pytest
import ribs.archives
from ribs.archives import GridArchive

from evo.search.archives import ARCHIVES, make_archive, make_layout
from evo.search.archives.pyribs import to_ribs

LENGTH = 3
RANGES = [(0.0, 1.0), (-1.0, 1.0)]
CENTROIDS = np.array([[0.1, -0.9], [0.9, -0.9], [0.1, 0.9], [0.9, 0.9], [0.5, 0.0]])


# Each archive's options here: at most 20 cells, 4 along the first measure, that tell the centroids above apart.
OPTIONS = {"GridArchive": {"dims": [4, 5]}, "CVTArchive": {"centroids": CENTROIDS}}


@pytest.fixture(params=ARCHIVES)
def new_archive(request):
    """Makes empty archives, all alike; with the arrays of another one, that one's."""
    return lambda arrays=None: make_archive(request.param, LENGTH, RANGES, 1, OPTIONS[request.param], arrays)


def batch(objective, measures, first: int = 0) -> dict:
    """A batch whose words, origins and hashes tell each row from each other."""
    numbers = np.arange(first, first + len(objective))
    return {
        "solution": np.stack([numbers] * LENGTH, axis=1).astype(np.uint64) + np.uint64(2**63),
        "objective": np.array(objective, float),
        "measures": np.array(measures, float).reshape(-1, 2),
        "parents": np.stack([numbers, numbers - 1], axis=1).astype(np.int32),
        "operator": (numbers % 5).astype(np.int32),
        "generation": numbers // 3,
        "slot": numbers.astype(np.int32),
        "hash": np.stack([numbers, numbers], axis=1).astype(np.uint64) + np.array([2**63, 0], np.uint64),
        "num_instructions": numbers.astype(np.int32),
    }


def random_batch(num_programs: int, seed: int) -> dict:
    rng = np.random.default_rng(seed)
    objective = np.round(rng.random(num_programs), 1)  # many ties
    objective[rng.random(num_programs) < 0.2] = np.nan
    return batch(objective, rng.uniform((-0.2, -1.2), (1.2, 1.2), (num_programs, 2)), first=1000 * seed)


def assert_same(first, second) -> None:
    one, two = first.elites(), second.elites()
    for name in vars(one):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
        assert getattr(one, name).dtype == getattr(two, name).dtype


def test_failed_programs_never_enter(new_archive):
    archive = new_archive()
    added = archive.add(**batch([np.nan, 0.5, np.nan, np.inf], [[0.1, -0.9], [0.9, -0.9], [0.9, 0.9], [0.5, 0.0]]))
    assert archive.elites().slot.tolist() == [1]
    assert added["elite"].tolist() == [False, True, False, False]


# Measures out of range, and the measures in range whose cell they belong to.
OUTSIDE = [
    ([1e30, 0.9], [1.0, 0.9]),
    ([-1e30, -0.9], [0.0, -0.9]),
    ([0.9, 1e308], [0.9, 1.0]),
    ([0.1, -1e308], [0.1, -1.0]),
    ([5e31, -1e300], [1.0, -1.0]),
    ([-1.7e308, 1.7e308], [0.0, 1.0]),
    ([2.5, 1e10], [1.0, 1.0]),
]


@pytest.mark.parametrize(("outside", "edge"), OUTSIDE)
@pytest.mark.filterwarnings("error")
def test_measures_out_of_range_count_to_the_cell_at_the_edge_and_are_kept_as_they_are(new_archive, outside, edge):
    archive, at_edge = new_archive(), new_archive()
    archive.add(**batch([0.5], [outside]))
    at_edge.add(**batch([0.5], [edge]))
    elites = archive.elites()
    assert elites.cell.tolist() == at_edge.elites().cell.tolist()
    assert elites.measures.tolist() == [outside]
    restored = new_archive()
    restored.restore(elites)
    assert_same(archive, restored)


def test_a_better_program_replaces_its_elite_with_all_that_belongs_to_it(new_archive):
    archive = new_archive()
    archive.add(**batch([0.25], [[0.5, 0.0]]))
    better = batch([0.5], [[0.51, 0.01]], first=7)
    archive.add(**better)
    elites = archive.elites()
    assert len(elites) == 1
    for name, column in better.items():
        np.testing.assert_array_equal(getattr(elites, name), column, err_msg=name)


def test_a_tie_keeps_the_incumbent(new_archive):
    archive = new_archive()
    archive.add(**batch([0.5], [[0.5, 0.0]]))
    archive.add(**batch([0.5], [[0.5, 0.0]], first=7))
    assert archive.elites().slot.tolist() == [0]


def test_elites_are_sorted_by_cell_whatever_order_they_came_in(new_archive):
    forwards, backwards = new_archive(), new_archive()
    rows = batch(np.linspace(0.1, 0.9, len(CENTROIDS)), CENTROIDS)
    forwards.add(**rows)
    backwards.add(**{name: column[::-1] for name, column in rows.items()})
    assert np.all(np.diff(forwards.elites().cell) > 0)
    assert len(forwards.elites()) == len(CENTROIDS)
    assert_same(forwards, backwards)


@pytest.mark.parametrize("name", ARCHIVES)
def test_with_an_offset_the_qd_score_grows_with_each_cell_though_objectives_are_negative(name):
    archive = make_archive(name, LENGTH, RANGES, 1, OPTIONS[name], qd_score_offset=-4.0)
    archive.add(**batch([-3.5, -1.0], CENTROIDS[:2]))
    assert archive.qd_score == 3.5
    archive.add(**batch([-3.75, -0.5], CENTROIDS[[2, 1]], first=10))
    assert archive.qd_score == 0.5 + 3.5 + 0.25
    assert archive.elites().objective.tolist().count(-3.75) == 1
    assert archive.best_objective == -0.5


def test_the_qd_score_has_the_same_bits_whatever_order_elites_came_in(new_archive):
    batches = [random_batch(40, seed) for seed in range(6)]
    for rows in batches:  # the sum of these depends on the order
        rows["objective"] *= 1.0 + np.arange(40) * 1e-3
    archive, backwards, restored = new_archive(), new_archive(), new_archive()
    for rows in batches:
        archive.add(**rows)
    for rows in reversed(batches):
        for row in reversed(range(40)):
            backwards.add(**{name: column[row : row + 1] for name, column in rows.items()})
    restored.restore(archive.elites())
    objectives = archive.elites().objective
    assert archive.qd_score == backwards.qd_score == restored.qd_score
    assert archive.qd_score == pytest.approx(math.fsum(objectives), rel=1e-12)
    assert archive.best_objective == backwards.best_objective == restored.best_objective == max(objectives)


def test_of_each_cell_that_changes_one_row_is_reported_as_the_elite(new_archive):
    archive = new_archive()
    archive.add(**batch([0.5, 0.25], CENTROIDS[:2]))
    rows = batch([0.6, 0.7, 0.7, 0.1, np.nan, 0.3], CENTROIDS[[0, 0, 0, 1, 2, 3]], first=10)
    added = archive.add(**rows)
    assert added["elite"].tolist() == [False, True, False, False, False, True]
    assert archive.elites().slot.tolist() == [11, 1, 15] or archive.elites().slot.tolist() == [11, 15, 1]


def test_a_grid_holds_what_pyribs_own_holds():
    archive = make_archive("GridArchive", LENGTH, RANGES, 1, OPTIONS["GridArchive"])
    theirs = GridArchive(solution_dim=1, dims=OPTIONS["GridArchive"]["dims"], ranges=RANGES)
    for seed in range(8):
        rows = random_batch(60, seed)
        archive.add(**rows)
        finite = np.isfinite(rows["objective"])
        theirs.add(rows["slot"][finite, None], rows["objective"][finite], rows["measures"][finite])
        ours, expected = archive.elites(), theirs.data()
        by_cell = np.argsort(expected["index"])
        for name, column in {"index": ours.cell, "objective": ours.objective, "measures": ours.measures}.items():
            np.testing.assert_array_equal(column, expected[name][by_cell])
        np.testing.assert_array_equal(ours.slot, expected["solution"][by_cell, 0])


@pytest.mark.parametrize("ranges", [RANGES, [(-5e200, 5e200), (0.0, 1e-2)], [(0.1, 0.7), (3.0, 3.3)]])
def test_measures_fall_into_the_cells_of_pyribs_grid(ranges):
    archive = make_archive("GridArchive", LENGTH, ranges, 1, {"dims": [7, 30]})
    theirs = GridArchive(solution_dim=1, dims=[7, 30], ranges=ranges)
    low, high = np.array(ranges).T
    places = np.random.default_rng(3).uniform(-0.1, 1.1, (4000, 2))
    places[::2] = np.round(places[::2] * 210) / 210  # on boundaries, or next to them
    measures = low + places * (high - low)
    np.testing.assert_array_equal(archive.index_of(measures), theirs.index_of(np.clip(measures, low, high)))
    assert archive.index_of([[np.nan, low[1]], [low[0], np.nan]]).tolist() == [-1, -1]


def test_a_restored_archive_is_the_same_and_goes_on_the_same(new_archive):
    archive = new_archive()
    for seed in range(5):
        archive.add(**random_batch(40, seed))
    restored = new_archive(archive.layout.arrays())
    restored.restore(archive.elites())
    assert_same(archive, restored)
    for seed in range(5, 10):
        rows = random_batch(40, seed)
        archive.add(**rows)
        restored.add(**rows)
        assert_same(archive, restored)


def test_elites_of_an_archive_of_another_shape_are_refused():
    archive = make_archive("GridArchive", LENGTH, RANGES, 1, {"dims": [4, 5]})
    archive.add(**random_batch(40, 1))
    with pytest.raises(ValueError, match="do not fall into their cells"):
        make_archive("GridArchive", LENGTH, RANGES, 1, {"dims": [5, 4]}).restore(archive.elites())


def test_the_centroids_of_a_cvt_depend_on_the_seed_alone_or_are_those_given():
    one, same, other = (make_archive("CVTArchive", LENGTH, RANGES, seed, {"centroids": 6}) for seed in (3, 3, 4))
    np.testing.assert_array_equal(same.layout.centroids, one.layout.centroids)
    assert not np.array_equal(other.layout.centroids, one.layout.centroids)
    again = make_archive("CVTArchive", LENGTH, RANGES, 4, {"centroids": 6}, one.layout.arrays())
    np.testing.assert_array_equal(again.layout.centroids, one.layout.centroids)


GRID = make_layout("GridArchive", RANGES, {"dims": [4, 5]}, {})
CVT = make_layout("CVTArchive", RANGES, {"centroids": len(CENTROIDS)}, {"centroids": CENTROIDS})


def test_cells_are_named_as_people_write_them():
    assert [GRID.cell_name(cell) for cell in (0, 4, 5, 19)] == ["0,0", "0,4", "1,0", "3,4"]
    assert [GRID.cell_number(name) for name in ("0,4", "3, 4", "7")] == [4, 19, 7]
    assert (CVT.cell_name(3), CVT.cell_number("3")) == ("3", 3)


@pytest.mark.parametrize("layout", [GRID, CVT])
@pytest.mark.parametrize("name", ["4,0", "0,-1", "20", "-1", "x", "1,2,3", ""])
def test_names_of_no_cell_are_refused(layout, name):
    with pytest.raises(ValueError, match=r"write (grid indices|a cell number)|no such cell|out of range"):
        layout.cell_number(name)


def test_the_nearest_cell_is_fewest_steps_away_in_a_grid_and_by_centroid_in_a_cvt():
    assert GRID.nearest(0, np.array([19, 6, 3])) == 6  # (1, 1) is two steps from (0, 0), (0, 3) is three
    # In units of the ranges (1 and 2) cell 2 is (0.0, 0.9) from cell 0, and cell 1 is (0.8, 0.0) from it.
    assert CVT.nearest(0, np.array([2, 1, 3])) == 1


@pytest.mark.parametrize("num_measures", [1, 2])
@pytest.mark.parametrize("name", ARCHIVES)
def test_an_outline_encloses_what_falls_into_its_cell_and_outlines_fill_the_map(name, num_measures):
    ranges = [(0.0, 4.0), (-1.0, 1.0)][:num_measures]
    options = {"GridArchive": {"dims": [4, 5][:num_measures]}, "CVTArchive": {"centroids": 17}}[name]
    archive = make_archive(name, LENGTH, ranges, 1, options)
    layout = make_layout(name, ranges, options, archive.layout.arrays())
    outlines = layout.outlines()
    area = 0.0
    for x, y in (corners.T for corners in outlines):
        area += 0.5 * (x * np.roll(y, -1) - y * np.roll(x, -1)).sum()  # positive: counterclockwise
    assert len(outlines) == layout.num_cells and area == pytest.approx(1.0)
    places = np.random.default_rng(1).random((300, 2))
    low, high = np.array(ranges).T
    cells = archive.index_of(low + places[:, :num_measures] * (high - low))
    for place, cell in zip(places, cells, strict=True):
        corners = outlines[cell]
        edges, to_place = np.roll(corners, -1, axis=0) - corners, place - corners
        assert (edges[:, 0] * to_place[:, 1] - edges[:, 1] * to_place[:, 0] > -1e-9).all()


def test_cells_of_a_grid_that_differ_in_a_third_measure_have_one_place():
    ranges, options = [(0.0, 1.0)] * 3, {"dims": [2, 2, 3]}
    outlines = make_layout("GridArchive", ranges, options, {}).outlines()
    flat = make_layout("GridArchive", ranges[:2], {"dims": [2, 2]}, {}).outlines()
    np.testing.assert_array_equal(outlines, np.repeat(flat, 3, axis=0))


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_of_pyribs_holds_the_elites_and_what_it_says_of_them_is_right(name):
    archive = make_archive(name, LENGTH, RANGES, 1, OPTIONS[name], None, -2.0)
    rows = random_batch(60, 3)
    rows["measures"][:3] = [[1e30, 0.9], [0.1, -1e308], [-5e31, 1e300]]  # pyribs' own grid overflows there
    rows["objective"][:3] = 2.0 + np.arange(3)
    archive.add(**rows)
    elites = archive.elites()
    theirs = to_ribs(name, archive.layout, elites, archive.qd_score_offset, 7)
    assert isinstance(theirs, getattr(ribs.archives, name))
    assert theirs.stats.num_elites == len(theirs) == len(elites)
    assert theirs.stats.qd_score == pytest.approx(math.fsum(elites.objective + 2.0))
    assert theirs.stats.coverage == len(elites) / theirs.cells
    assert theirs.stats.obj_max == theirs.best_elite["objective"] == 4.0
    assert theirs.best_elite["solution"].tolist() == rows["solution"][2].tolist()
    data, order = theirs.data(), np.argsort(theirs.data("index"))
    expected = {"index": elites.cell, **elites.arrays()}
    del expected["cell"]
    assert data.keys() == {*expected, "threshold"}
    for field, column in expected.items():
        np.testing.assert_array_equal(data[field][order], column, err_msg=field)
    frame = theirs.data(return_type="pandas")
    assert frame.solution_1.dtype == np.uint64 and len(frame) == len(elites)
    assert set(theirs.sample_elites(9)["index"]) <= set(elites.cell)
    copy = pickle.loads(pickle.dumps(theirs))
    assert copy.add(**{name: data[name] for name in data if name not in ("index", "threshold")})["status"].tolist() == [0] * len(
        elites
    )
