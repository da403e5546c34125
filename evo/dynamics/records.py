"""Recorded trajectories, their smooth courses, and integrals along these.

Owns what is made of times and samples. Knows nothing of laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_smoothing_spline

NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # of an integral between two samples
MIN_SAMPLES = 10  # of each state in a trajectory
PIECE = 0.5  # of a period
MIN_PIECE = 8  # samples of each state


@dataclass(frozen=True)
class Record:
    """One trajectory.

    times: `(num_samples,)`, rising. states: `(num_samples, num_states)`, NaN where there is no sample. inputs: `(num_samples,
    num_inputs)`, finite; straight lines connect them.
    """

    times: NDArray[np.float64]
    states: NDArray[np.float64]
    inputs: NDArray[np.float64]

    @cached_property
    def courses(self) -> list[BSpline]:
        """A smoothing spline for each state, whose smoothness generalised cross-validation chooses."""
        found = []
        for values in self.states.T:
            known = np.isfinite(values)
            times, scale = self.times[known], np.std(values[known]) or 1.0
            # In units in which a sample is about one apart from the next, as the spline's own search for smoothness expects.
            unit = (times[-1] - times[0]) / (len(times) - 1)
            spline = make_smoothing_spline((times - times[0]) / unit, values[known] / scale)
            found.append(BSpline(spline.t * unit + times[0], spline.c * scale, spline.k))
        return found

    def columns(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """States and inputs at times, `(num_states + num_inputs, num_times)`."""
        inputs = [np.interp(times, self.times, values) for values in self.inputs.T]
        return np.stack([*(course(times) for course in self.courses), *inputs])

    def slopes(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivatives of states by time, `(num_states, num_times)`."""
        return np.stack([course.derivative()(times) for course in self.courses])

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
