"""evo.evaluate.cuda.choice: the lane of each batch, by the time that batches took."""

import pytest

from evo.evaluate.cuda.choice import AUTO, COMPILE, INTERPRET, MAX_INTERPRETED_POINTS, Trials, lane_trials

FIRST_S, RECHECK_S, NUM_TRIALS = 2.0, 300.0, 3


def trials(chosen: str = "a") -> Trials:
    return Trials("ab", chosen)


def run(each: Trials, costs_s: dict[str, float], num_batches: int, amount: int = 1) -> str:
    """The ways of so many batches in which a unit of work takes these seconds."""
    ways = []
    for _ in range(num_batches):
        ways.append(each.lane)
        each.note(ways[-1], costs_s[ways[-1]] * amount, amount)
    return "".join(ways)


@pytest.mark.parametrize(("first", "other"), ["ab", "ba"])
@pytest.mark.parametrize("faster", "ab")
def test_after_some_work_both_are_tried_in_turn_the_faster_is_kept_and_both_are_tried_again_much_later(first, other, faster):
    costs_s = {"a": FIRST_S, "b": FIRST_S} | {faster: FIRST_S / 2}
    each = trials(first)
    num_before = round(FIRST_S / costs_s[first])
    assert run(each, costs_s, num_before) == first * num_before
    assert run(each, costs_s, 2 * (NUM_TRIALS + 1)) == (first + other) * (NUM_TRIALS + 1)
    assert each.chosen == faster
    num_between = round(RECHECK_S / costs_s[faster])
    assert run(each, costs_s, num_between) == faster * num_between
    assert set(run(each, costs_s, 2)) == {"a", "b"}


def test_the_first_trial_of_each_warms_up_and_an_outlier_decides_nothing():
    each = trials()
    each.note("a", FIRST_S, 1)
    for seconds in (100.0, 1.0, 1.0, 100.0):
        each.note("a", 2.0, 1)
        each.note("b", seconds, 1)
    assert each.chosen == "b"


def test_costs_are_compared_by_amount_of_work():
    each = trials()
    each.note("a", FIRST_S, 1)
    for _ in range(NUM_TRIALS + 1):
        each.note("a", 10.0, 100)
        each.note("b", 5.0, 10)
    assert each.chosen == "a"


COSTS_S = {INTERPRET: 2.0, COMPILE: 1.0}


@pytest.mark.parametrize(
    ("setting", "num_points", "opt_level", "first", "ways"),
    [
        (INTERPRET, 8, 0, INTERPRET, {INTERPRET}),
        (COMPILE, 8, 0, COMPILE, {COMPILE}),
        (AUTO, 8, 0, INTERPRET, {INTERPRET, COMPILE}),
        (AUTO, MAX_INTERPRETED_POINTS + 1, 0, COMPILE, {INTERPRET, COMPILE}),
        (AUTO, 8, 1, INTERPRET, {INTERPRET}),  # where an assembler may find constants the first lane is kept
    ],
)
def test_lanes_are_tried_unless_one_is_named_or_bits_may_differ(setting, num_points, opt_level, first, ways):
    each = lane_trials(setting, num_points, opt_level)
    assert each.lane == first
    found = set()
    for _ in range(50):
        found.add(each.lane)
        each.note(each.lane, COSTS_S[each.lane], 1)
    assert found == ways
