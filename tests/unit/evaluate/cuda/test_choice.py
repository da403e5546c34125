"""evo.evaluate.cuda.choice: the lane of each batch, by what batches took."""

from __future__ import annotations

import pytest

from evo.evaluate.cuda.choice import (
    AUTO,
    COMPILE,
    FIRST_S,
    INTERPRET,
    MAX_INTERPRETED_POINTS,
    NUM_TRIALS,
    RECHECK_S,
    LaneChoice,
)

MANY = MAX_INTERPRETED_POINTS + 1


def run(choice: LaneChoice, costs_s: dict[str, float], num_batches: int, num_instructions: int = 128) -> list[str]:
    """The lanes of so many batches in which an instruction takes these seconds."""
    lanes = []
    for _ in range(num_batches):
        lane = choice.lane
        lanes.append(lane)
        choice.note(lane, costs_s[lane] * num_instructions, num_instructions)
    return lanes


@pytest.mark.parametrize("lane", [INTERPRET, COMPILE])
def test_a_lane_that_is_named_is_kept(lane):
    costs_s = {INTERPRET: 1.0, COMPILE: 1.0} | {lane: 9.0}
    assert set(run(LaneChoice(lane, 8), costs_s, 50)) == {lane}


def test_where_an_assembler_may_find_constants_the_first_lane_is_kept():
    costs_s = {INTERPRET: 2.0, COMPILE: 1.0}
    assert set(run(LaneChoice(AUTO, 8, opt_level=1), costs_s, 50)) == {INTERPRET}
    assert set(run(LaneChoice(AUTO, 8, opt_level=0), costs_s, 50)) == {INTERPRET, COMPILE}


def test_before_anything_is_measured_points_decide():
    assert LaneChoice(AUTO, 8).lane == INTERPRET
    assert LaneChoice(AUTO, MANY).lane == COMPILE


@pytest.mark.parametrize(("first", "num_points"), [(INTERPRET, 8), (COMPILE, MANY)])
@pytest.mark.parametrize("faster", [INTERPRET, COMPILE])
def test_after_some_work_both_are_tried_in_turn_and_the_faster_is_kept(first, num_points, faster):
    other = COMPILE if first == INTERPRET else INTERPRET
    costs_s = {INTERPRET: FIRST_S / 1024, COMPILE: FIRST_S / 1024} | {faster: FIRST_S / 2048}
    num_before = round(FIRST_S / (128 * costs_s[first]))
    choice = LaneChoice(AUTO, num_points)
    assert run(choice, costs_s, num_before) == [first] * num_before
    assert run(choice, costs_s, 2 * (NUM_TRIALS + 1)) == [first, other] * (NUM_TRIALS + 1)
    assert run(choice, costs_s, 100) == [faster] * 100


def test_the_first_trial_of_each_warms_up_and_an_outlier_decides_nothing():
    choice = LaneChoice(AUTO, 8)
    choice.note(INTERPRET, FIRST_S, 1)
    for compiled_s in (100.0, 1.0, 1.0, 100.0):
        choice.note(INTERPRET, 2.0, 1)
        choice.note(COMPILE, compiled_s, 1)
    assert choice.lane == COMPILE


def test_costs_are_compared_by_instruction():
    choice = LaneChoice(AUTO, 8)
    choice.note(INTERPRET, FIRST_S, 1)
    for _ in range(NUM_TRIALS + 1):
        choice.note(INTERPRET, 10.0, 100)
        choice.note(COMPILE, 5.0, 10)
    assert choice.lane == INTERPRET


def test_both_are_tried_again_much_later():
    choice = LaneChoice(AUTO, 8)
    costs_s = {INTERPRET: FIRST_S, COMPILE: 2 * FIRST_S}
    run(choice, costs_s, 1 + 2 * (NUM_TRIALS + 1), 1)
    num_between = round(RECHECK_S / costs_s[INTERPRET])
    assert run(choice, costs_s, num_between, 1) == [INTERPRET] * num_between
    assert COMPILE in run(choice, costs_s, 2, 1)
