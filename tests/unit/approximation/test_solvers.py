"""Solutions of one instruction: what is found gives the goal, at points of a sample and at others."""

from itertools import islice

import numpy as np
import pytest

from evo.approximation import solvers
from evo.approximation.bits import ExactFunction
from evo.approximation.samples import drawn
from evo.approximation.solvers import Goal
from evo.approximation.synthesis import Synthesis

A, B = (drawn(256, 7, k, 32) for k in range(2))
ALL = np.full_like(A, 0xFFFFFFFF)
CASES = {
    "logic_of_one": (solvers.logic_of_one, (A & 0x000F000F) | 0x64006400, ALL),
    "logic_of_one, inverted": (solvers.logic_of_one, A ^ np.uint32(0x80808080), ALL),
    "logic_of_two": (solvers.logic_of_two, (A & 0x00FF00FF) | (B & 0xFF00FF00), ALL),
    "logic_of_two, bits that the sample does not tell": (
        lambda rows, goal: islice(solvers.logic_of_two(rows, goal), 1),
        np.where(np.arange(256) < 128, A & B & 0xFF, A & B).astype(np.uint32),
        np.where(np.arange(256) < 128, 0xFF, ALL).astype(np.uint32),
    ),
    "merged": (solvers.merged, (A & 0x80008000) | (B & 0x0E000E00) | 0x00010000, ALL),
    "merged, no constants": (solvers.merged, (A & 0x00FF00FF) | (B & 0xFF00FF00), ALL),
    "bytes": (solvers.bytes_of_two, (A & 0xFF) | 0x64000000 | (A >> 24) << 16 | 0x6400, ALL),
    "bytes of two": (solvers.bytes_of_two, (B & 0xFF) << 8 | A >> 24 | (A & 0xFF) << 16 | (B >> 24) << 24, ALL),
    "sign of a byte": (solvers.bytes_of_two, (A.view(np.int32) << 24 >> 24).view(np.uint32), ALL),
    "sum": (solvers.sums, A + np.uint32(0x7FFF), ALL),
    "sum of two, upper half": (solvers.sums, (A + B) & np.uint32(0xFFFF0000), ALL & np.uint32(0xFFFF0000)),
    "difference from a constant": (solvers.sums, np.uint32(127) - A, ALL),
    "product": (solvers.products, A * np.uint32(0x01010101) + np.uint32(5), ALL),
    "quotient": (solvers.high_products, (A // np.uint32(10)) << np.uint32(3), ALL & np.uint32(0xFFFFFFF8)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_solution_gives_the_goal_at_all_points(name):
    finder, values, care = CASES[name]
    seen = slice(0, 128)
    found = list(finder(np.stack([A[seen], B[seen]]), Goal(values[seen], care[seen])))
    assert found
    known = Synthesis(ExactFunction("div10"), "sm_90", [A])

    def words(each):
        if isinstance(each, solvers.Solution):
            return known.apply(each.name, *map(words, each.operands))
        return (A, B)[each[1]] if isinstance(each, tuple) else np.uint32(each)

    for solution in found:
        assert not ((words(solution) ^ values) & care).any()


def test_what_has_no_solution_gives_none():
    rows, goal = np.stack([A, B]), Goal(drawn(256, 7, 2, 32), ALL)
    for finder in {case[0] for case in CASES.values()}:
        assert list(finder(rows, goal)) == []
