"""evo.report.page.graphs: which points graphs have, and where they lie."""

import numpy as np
import pytest

from evo.report.page.content import run_content
from evo.report.page.graphs import curves, front

LINE = """\
import numpy as np

import evo


class Line(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"length": (-0.5, 5.5), "shape": (0.0, 1.0)}
    complexity = "length"

    def points(self):
        return {"x": np.array([1.0, 2.0], np.float32)}

    def score(self, outputs, programs):
        return evo.Scores(outputs["y"].sum(axis=1), np.column_stack([programs.num_instructions, np.zeros(len(outputs["y"]))]))
"""
TWICE, SQUARE = "%x %x add_ftz_f32", "%x %x mul_ftz_f32 %x mul_ftz_f32"
ELITES = [(TWICE, 6.0, (1.0, 0.0)), (SQUARE, 9.0, (2.0, 0.0)), ("%x", 3.0, (3.0, 0.0)), ("1.0", 2.0, (0.0, 0.0))]


def row(generation: int, best: float | None) -> dict:
    return {"generations": generation, "qd_score": 1.0, "coverage": 0.5, "best_objective": best, "duplicates": 1, "offspring": 4}


def test_curves_leave_out_what_is_not_known_and_fill_their_graph():
    graphs = {graph["title"]: graph for graph in curves([row(0, None), row(5, 2.0), row(10, 4.0)])}
    assert list(graphs) == ["QD score", "coverage, %", "best objective", "duplicates among offspring, %"]
    assert graphs["best objective"]["line"] == "M500 954.5L1000 45.5"  # a twentieth of the range is free at both ends
    assert graphs["best objective"]["x"]["ticks"][-1] == (1.0, "10")
    assert (0.5, "25") in graphs["duplicates among offspring, %"]["y"]["ticks"]
    assert curves([]) == []


def test_a_front_has_its_elites_the_marked_one_and_those_below(new_run, make_task):
    run = new_run(ELITES, {"task": str(make_task(LINE))})
    order = np.argsort(-run.search.elites().objective, kind="stable")
    found = front(run, order)
    low, high = -0.1, 2.1  # of 0 to 2, with a twentieth at each end
    assert found["points"] == [[3, ""], [1, "knee"], [0, "chosen"]]
    assert found["measure"] == 0
    assert found["x"]["ends"] == pytest.approx([low, high])
    assert found["y"]["ends"] == pytest.approx([2.0 - 0.35, 9.0 + 0.35])
    assert found["line"].count("L") == 4  # stairs


def test_a_run_without_elites_has_no_front(new_run):
    assert not any("front" in graph["title"] for graph in run_content(new_run([]))["graphs"])
