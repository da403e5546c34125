"""evo.report.pareto, its evo.report.table and plot: which elites are on the front, which are marked, what is said of them."""

import numpy as np
import pytest

from evo.errors import UserError
from evo.report.pareto import describe_front, front_of, row_of_elite, sound_rows
from evo.report.plot import charts
from evo.report.plots import why_not_drawn
from evo.report.show import describe_elite

# Complexity, objective, program. The task's outputs at its report points are 3 + k and 5 + k for `%x0 k add`.
ELITES = [
    (-9.0, -8.0, "%x0"),
    (-7.0, -8.5, "%x0 9.0 add_ftz_f32"),  # worse and more complex
    (-5.0, -3.0, "%x0 1.0 add_ftz_f32"),
    (-1.0, -2.0, "%x0 2.0 add_ftz_f32"),
    (3.0, -1.0, "%x0 3.0 add_ftz_f32"),
    (5.0, -1.0, "%x0 4.0 add_ftz_f32"),  # as good as a simpler one
]


@pytest.fixture
def make_run(new_run, repository):
    def make(elites, task="checked"):
        changes = {"task": str(repository / "tests" / "data" / task), "search": {"archive": {"dims": [20, 2]}}}
        return new_run([(text, objective, (complexity, 0.0)) for complexity, objective, text in elites], changes)

    return make


def test_the_front_holds_the_elites_than_which_none_is_simpler_and_as_good(make_run):
    front = front_of(make_run(ELITES))
    assert front.complexity.tolist() == [-9.0, -5.0, -1.0, 3.0]
    assert front.objective.tolist() == [-8.0, -3.0, -2.0, -1.0]
    # Knee: 5/7 of the way up after a third of the way. Shortest: complexity - 2 objective is 7, 1, 3, 5.
    assert front.positions == {"best": 3, "knee": 1, "shortest": 1} and front.default == 1


def test_a_front_of_one_elite_has_its_knee_there(make_run):
    front = front_of(make_run(ELITES[:1]))
    assert (front.rows.tolist(), set(front.positions.values())) == ([0], {0})


def test_a_front_that_gains_most_at_its_end_has_its_knee_there(make_run):
    programs = ((1.0, -9.0, "%x0"), (3.0, -8.5, "%x0 3.0 add_ftz_f32"), (5.0, -1.0, "%x0 4.0 add_ftz_f32"))
    assert front_of(make_run(programs)).positions["knee"] == 2


def test_an_elite_with_a_handicap_is_on_the_front_if_it_is_better_than_all_others_by_more():
    complexity, objective = np.array([1.0, 2, 3, 4, 5, 6, 7]), np.array([1.0, 3, 2, 5, 4, 6.5, 7])
    asked = []

    def rows(handicaps: dict[int, float]) -> list[int]:
        asked.clear()

        def handicap(rows):
            asked.extend(rows.tolist())
            return np.array([handicaps.get(row, 0.0) for row in rows])

        return sound_rows(complexity, objective, handicap).tolist()

    assert rows({}) == [0, 1, 3, 5, 6] == sorted(asked)
    # Without 1 and 3, 2 and 4 come up; 7 is the best of all that are sound, and 5 would have to be above it.
    assert rows({1: 0.5, 3: 0.5, 5: 0.5}) == [0, 2, 4, 6] and sorted(asked) == list(range(7))
    assert rows({5: 1.4, 6: 1.9}) == [0, 1, 3, 5, 6]  # 6.5 and 7 against 5
    assert rows({5: 1.6, 6: 1.9}) == [0, 1, 3, 6]
    assert rows(dict.fromkeys(range(7), 1.0)) == [0, 1, 3, 5, 6]


def test_reports_take_the_shortest_unless_another_elite_is_named(make_run, new_run):
    run = make_run(ELITES)
    # Rows are sorted by cell, that is by complexity.
    expected = {None: 2, "shortest": 2, "knee": 2, "best": 4, "9,0": 3}
    assert {name: row_of_elite(run, name) for name in expected} == expected
    plane = new_run([("%x", 1.0, (0.1, 0.1)), ("%x 1 add_ftz_f32", 3.0, (0.5, 0.5)), ("%y", 2.0, (0.9, 0.9))])
    assert row_of_elite(plane, None) == row_of_elite(plane, "best") == 1
    with pytest.raises(UserError, match="no front: the task does not say which measure is its complexity"):
        row_of_elite(plane, "shortest")


def test_the_front_is_listed_with_marks_and_with_what_the_task_reports(make_run):
    header, *lines = describe_front(make_run(ELITES)).splitlines()
    assert header.split() == ["cell", "check_mean", "objective", "at_3", "at_5", "expression"]
    assert [line[0] for line in lines] == [" ", ">", " ", " "]
    assert [line[1:].split()[1:5] for line in lines] == [
        ["-9", "-8", "3", "5"],
        ["-5", "-3", "4", "6"],
        ["-1", "-2", "5", "7"],
        ["3", "-1", "6", "8"],
    ]
    assert lines[1].endswith("  6  knee, shortest description  y = 1 + x0")
    assert [line[header.index("expression") :] for line in lines] == ["y = x0", "y = 1 + x0", "y = 2 + x0", "y = 3 + x0"]


def test_expressions_of_the_front_are_cut_to_the_width_of_a_line(make_run):
    run = make_run([(-9.0, -8.0, " ".join(["%x0", *["%x1 add_ftz_f32"] * 11]))])
    (header, whole), *cut = (describe_front(run, width).splitlines()[:2] for width in (None, 120, 10))
    begin = header.index("expression")
    assert whole[begin:].count("x1") == 11
    assert [line for _, line in cut] == [whole[:117] + "...", whole[: begin + 37] + "..."]
    assert describe_front(run, len(whole)).splitlines()[1] == whole


def test_an_elite_is_shown_with_what_the_task_reports(make_run):
    assert "\nat_3                 6\nat_5                 8\n" in describe_elite(make_run(ELITES), "best")


def test_a_run_without_complexity_or_elites_has_no_front(make_run):
    with pytest.raises(UserError, match=r"/small/.*: no front: the task does not say which measure is its complexity"):
        describe_front(make_run([], "plane"))
    empty = make_run([])
    with pytest.raises(UserError, match=r": no front: the archive is empty$"):
        describe_front(empty)
    assert why_not_drawn(empty, "front") == "the archive is empty"


def test_the_front_is_drawn_with_its_marks(make_run):
    [axes] = charts.front(make_run(ELITES)).axes
    assert [text.get_text() for text in axes.texts] == ["knee and shortest description: -5"]
    assert axes.lines[0].get_xydata().tolist() == [[-9.0, -8.0], [-5.0, -3.0], [-1.0, -2.0], [3.0, -1.0]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("check mean", "objective")
