"""evo.evaluate.cuda.choice: the lane of a run."""

import pytest

from evo.evaluate.cuda.choice import AUTO, COMPILE, INTERPRET, MAX_INTERPRETED_POINTS, choose_lane


@pytest.mark.parametrize(
    ("setting", "num_points", "lane"),
    [
        (INTERPRET, MAX_INTERPRETED_POINTS + 1, INTERPRET),
        (COMPILE, 8, COMPILE),
        (AUTO, MAX_INTERPRETED_POINTS, INTERPRET),
        (AUTO, MAX_INTERPRETED_POINTS + 1, COMPILE),
    ],
)
def test_a_lane_is_the_one_that_is_named_or_follows_from_the_points(setting, num_points, lane):
    assert choose_lane(setting, num_points) == lane
