"""Estimates between the rows of a table, from neighbours.

Owns which rows are neighbours, and points on the lines between them. Knows nothing of formulas and objectives.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.sampling import GOLDEN_RATIO

MAX_NEIGHBOURS = 8  # of a row, two for each input
MAX_ROWS, MAX_WIDE_ROWS = 1 << 14, 1 << 12  # whose neighbours are looked for; with more inputs than WIDE, where that takes longer
WIDE = 8


class Neighbours:
    """The rows of a table and their neighbours, in standard deviations of the inputs. Rows at one place are merged, with their
    mean target. If there are very many rows, some are used, spread evenly over their order.

    error: mean squared difference between a row's target and its neighbours' (by inverse squared distance, Shepard 1968).
    """

    def __init__(self, train: Mapping[str, NDArray[np.float32]], target: NDArray[np.float32]):
        from scipy.spatial import KDTree

        count = min(len(target), MAX_WIDE_ROWS if len(train) > WIDE else MAX_ROWS)
        used = np.arange(count) * len(target) // count
        columns = np.stack([values[used].astype(np.float64) for values in train.values()], axis=1)
        self._rows, inverse, times = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        self._targets = np.bincount(inverse.ravel(), target[used]) / times
        if len(self._rows) == 1:
            self._rows, self._targets = self._rows.repeat(2, axis=0), self._targets.repeat(2)
        deviations = self._rows.std(axis=0)
        self._unit = np.where(deviations > 0, deviations, 1.0)
        self._tree = KDTree(self._rows / self._unit)
        num = min(2 * len(train), MAX_NEIGHBOURS, len(self._rows) - 1)
        distances, nearest = self._tree.query(self._rows / self._unit, num + 1)
        self._reach = distances[:, 1].max()
        self._near = nearest[:, 1:]  # a row itself is the first
        if len(train) == 1:  # the rows are in order, and the next ones lie across a gap too
            last = len(self._rows) - 1
            row = np.arange(last + 1)
            self._near = np.stack([np.where(row > 0, row - 1, 1), np.where(row < last, row + 1, last - 1)], axis=1)
        squares = (((self._rows[self._near] - self._rows[:, None]) / self._unit) ** 2).sum(axis=2)
        weights = 1.0 / np.maximum(squares, np.finfo(np.float32).tiny)
        guesses = (weights * self._targets[self._near]).sum(axis=1) / weights.sum(axis=1)
        self.error = float(np.mean((guesses - self._targets) ** 2))

    def between(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """`(count, num_inputs)` points on segments between neighbours, spread evenly over all, the targets interpolated linearly
        there, and at how many of them an input is 0: every other one whose segment passes it.
        """
        turn = np.arange(count)
        first = turn * len(self._rows) // count if count < len(self._rows) else turn % len(self._rows)
        second = self._near[first, (turn // len(self._rows) + first) % self._near.shape[1]]
        fraction = turn * GOLDEN_RATIO % 1.0
        passes = (self._rows[first] * self._rows[second] < 0) & (turn[:, None] % 2 > 0)
        zeros = np.flatnonzero(passes.any(axis=1))
        num = passes.shape[1]
        column = (passes[zeros] * (1 + (np.arange(num) + turn[zeros, None] // 2) % num)).argmax(axis=1)  # each in turn
        begin = self._rows[first[zeros], column]
        fraction[zeros] = begin / (begin - self._rows[second[zeros], column])
        points = self._rows[first] + fraction[:, None] * (self._rows[second] - self._rows[first])
        points[zeros, column] = 0.0
        return points, self._targets[first] + fraction * (self._targets[second] - self._targets[first]), len(zeros)

    def far_from_rows(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The points that are farther from each row than any row from the next, and the target of the nearest row."""
        distances, nearest = self._tree.query(points / self._unit)
        is_far = distances > self._reach
        return points[is_far], self._targets[nearest[is_far]]
