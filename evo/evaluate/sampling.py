"""Some of many points.

Owns which ones are taken.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0
MOST_UNEVEN = 64  # fewer of its multiples, modulo 1, than expected are below a number; of 2^53 less than 10
MANY = 1 << 18  # rows of a table that tell as much of a formula as any more


def spread(num_points: int, max_points: int) -> NDArray[np.int64]:
    """Points by their index, sorted: all, or `max_points` of them. Multiples of the golden ratio choose these, so that they are
    spread evenly and share no period with a grid.
    """
    if num_points <= max_points:
        return np.arange(num_points)
    fractions = np.arange(num_points) * GOLDEN_RATIO % 1.0
    few = np.flatnonzero(fractions < (max_points + MOST_UNEVEN) / num_points)
    return np.sort(few[np.argsort(fractions[few], kind="stable")[:max_points]])


def weighted_spread(weights: NDArray[Any], max_points: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Points by their index, sorted, and the weight of each: all, or a priority sample (Duffield, Lund, Thorup 2007), which has
    the heaviest points, and others in proportion to their weight, at one weight.
    """
    if len(weights) <= max_points:
        return np.arange(len(weights)), weights
    priority = weights / (np.arange(1, len(weights) + 1) * GOLDEN_RATIO % 1.0)
    order = np.argsort(-priority, kind="stable")
    rows = np.sort(order[:max_points])
    return rows, np.maximum(weights, priority[order[max_points]])[rows]
