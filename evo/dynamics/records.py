"""Recorded trajectories, their smooth courses, and integrals along these.

Owns everything computed from times and samples alone. Knows nothing of laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, PPoly, make_smoothing_spline
from scipy.spatial import cKDTree

NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # of an integral between two samples
MIN_SAMPLES = 10  # of each state in a trajectory
PIECE = 0.5  # of a period
MIN_PIECE = 8  # samples of each state
NUM_NEAR, APART = 32, 0.1  # neighbours that are looked at, and periods that they are apart


@dataclass(frozen=True)
class Record:
    """One trajectory.

    times: `(num_samples,)`, rising. states: `(num_samples, num_states)`, NaN where there is no sample. inputs: `(num_samples,
    num_inputs)`, finite. is_held: `(num_inputs,)`: whether an input keeps its value until the next sample; straight lines connect
    the values of others.
    """

    times: NDArray[np.float64]
    states: NDArray[np.float64]
    inputs: NDArray[np.float64]
    is_held: NDArray[np.bool_]

    @cached_property
    def courses(self) -> list[PPoly]:
        """A smoothing spline for each state, whose smoothness generalised cross-validation chooses. A held input breaks slopes
        where it changes: there a spline ends and the next begins.
        """
        changes = 1 + np.flatnonzero((np.diff(self.inputs[:, self.is_held], axis=0) != 0).any(axis=1))
        splines = []
        for values in self.states.T:
            rows = np.flatnonzero(np.isfinite(values))
            scale = np.std(values[rows]) or 1.0
            ends = [0]
            for end in np.searchsorted(rows, changes).tolist():
                if min(end - ends[-1], len(rows) - 1 - end) >= MIN_PIECE:
                    ends.append(end)
            parts = [
                _smoothed(self.times[rows[first : last + 1]], values[rows[first : last + 1]], scale)
                for first, last in zip(ends, [*ends[1:], len(rows) - 1], strict=True)
            ]
            breaks = np.concatenate([*(part.x[:-1] for part in parts), parts[-1].x[-1:]])
            splines.append(PPoly(np.concatenate([part.c for part in parts], axis=1), breaks))
        return splines

    def columns(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """States and inputs at times, `(num_states + num_inputs, num_times)`."""
        indices = np.maximum(np.searchsorted(self.times, times, side="right") - 1, 0)
        inputs = [
            values[indices] if is_held else np.interp(times, self.times, values)
            for values, is_held in zip(self.inputs.T, self.is_held, strict=True)
        ]
        return np.stack([*(course(times) for course in self.courses), *inputs])

    def slopes(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivatives of states by time, `(num_states, num_times)`."""
        return np.stack([course.derivative()(times) for course in self.courses])

    @cached_property
    def noise(self) -> NDArray[np.float64]:
        """Deviations of the samples from the smooth courses, `(num_states,)`."""
        courses = self.columns(self.times)[: self.states.shape[1]].T
        return np.asarray(np.sqrt(np.nanmean((self.states - courses) ** 2, axis=0)))

    @cached_property
    def nodes(self) -> NDArray[np.float64]:
        """Times at which integrands are asked for, `(3 * (num_samples - 1),)`."""
        middle, half = (self.times[1:] + self.times[:-1]) / 2.0, np.diff(self.times) / 2.0
        return np.asarray((middle[:, None] + half[:, None] * NODES).ravel())

    def integral(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """From the first sample to each, `(num_samples,)`, of an integrand's values at the nodes."""
        steps = (values.reshape(-1, 3) * WEIGHTS).sum(axis=1) * np.diff(self.times) / 2.0
        return np.concatenate([[0.0], np.cumsum(steps)])

    @cached_property
    def period(self) -> float:
        """The shortest of the states' typical periods: of a sine with the state's deviation and that of its slope."""
        deviations = [
            (float(np.std(course(self.nodes))), float(np.std(course.derivative()(self.nodes)))) for course in self.courses
        ]
        span = float(self.times[-1] - self.times[0])
        return min([span, *(2.0 * np.pi * state / slope for state, slope in deviations if state > 0.0 < slope)])

    def pieces(self, length: float) -> NDArray[np.int64]:
        """The piece of each sample: of about this time, and on average at least `MIN_PIECE` samples of each state."""
        span, count = self.times[-1] - self.times[0], int(np.isfinite(self.states).sum(axis=0).min())
        num = max(1, min(round(span / length), count // MIN_PIECE))
        return np.asarray(np.minimum((self.times - self.times[0]) / span * num, num - 1), np.int64)


def crossing(records: Sequence[Record]) -> NDArray[np.float64]:
    """Slopes unexplained by states and inputs, `(num_states,)`: mean square difference between slopes at neighbours in space,
    of other times, over that of slopes at random. 1: nothing, as where trajectories cross.
    """
    columns = np.concatenate([record.columns(record.times) for record in records], axis=1)
    slopes = np.concatenate([record.slopes(record.times) for record in records], axis=1)
    passed = np.cumsum([0.0, *(4.0 * record.period + np.ptp(record.times) for record in records)])
    times = np.concatenate([record.times - record.times[0] + start for record, start in zip(records, passed, strict=False)])
    sizes = np.std(columns, axis=1)
    points = (columns[sizes > 0.0] / sizes[sizes > 0.0, None]).T
    _, near = cKDTree(points).query(points, min(NUM_NEAR, len(points)))
    is_other = np.abs(times[near] - times[:, None]) > APART * min(record.period for record in records)
    rows = np.flatnonzero(is_other.any(axis=1))
    neighbours = near[rows, is_other[rows].argmax(axis=1)]
    squares = ((slopes[:, rows] - slopes[:, neighbours]) ** 2).sum(axis=1)
    return np.asarray(squares / np.maximum(2.0 * len(rows) * slopes.var(axis=1), np.finfo(np.float64).tiny))


def _smoothed(times: NDArray[np.float64], values: NDArray[np.float64], scale: float) -> PPoly:
    # In units in which a sample is about one apart from the next, as the spline's own search for smoothness expects.
    unit = (times[-1] - times[0]) / (len(times) - 1)
    spline = make_smoothing_spline((times - times[0]) / unit, values / scale)
    course = PPoly.from_spline(BSpline(spline.t * unit + times[0], spline.c * scale, spline.k))
    inner = slice(spline.k, len(course.x) - spline.k)  # without the knots that are repeated at the ends
    return PPoly(course.c[:, inner.start : inner.stop - 1], course.x[inner])
