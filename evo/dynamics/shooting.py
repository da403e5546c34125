"""All constants of all laws fitted to the records at once, by multiple shooting.

Each trajectory is cut into pieces; each piece begins at a state of its own, which is fitted too (Bock 1983). So neither noise nor
chaos hides a law: within a piece, errors have no time to grow. Least squares in float64, Runge-Kutta of order 4. Owns that
fit. Knows nothing of where laws come from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evo.dynamics.records import Record
from evo.dynamics.terms import Law, compiled, laws_with_numbers, numbers_of
from evo.evaluate.least_squares import minimised

STEPS_A_PERIOD = 48.0  # of integration, at least
DIFFERENCE = 1e-6  # relative, by which numbers and states are moved for derivatives
MAX_ITERATIONS, MAX_TRIALS = 25, 200  # steps that are taken, and tried
LEAST_NOISE = 1e-4  # of a state's deviation; below it, integration and smoothing would count as laws
ENOUGH = 1e-2  # change of the cost, in units of -2 log likelihood, at which a fit ends
MAX_DAMPING = 1e8
SOON, FAR = 6, 0.1  # iterations after which a fit is given up, and the cost of each sample that is too much then


@dataclass(frozen=True)
class Fit:
    """Laws and how well they fit.

    covariance: of their numbers, law by law in the order of `numbers_of`. cost: -2 log likelihood. noise: `(num_states,)`
    standard deviations of the samples from the laws. starts: states at the beginning of each piece, `(num_states, num_pieces)`.
    """

    laws: tuple[Law, ...]
    covariance: NDArray[np.float64]
    cost: float
    noise: NDArray[np.float64]
    starts: NDArray[np.float64]

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Numbers of all laws, in the order of the covariance."""
        return np.array([number for law in self.laws for number in numbers_of(law)])

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard errors of the numbers."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


class Shooting:
    """Fits laws over pieces of trajectories.

    Args:
        records: of the same states and inputs.
        length: samples of a piece; the last of a trajectory may be shorter.
        until_s: time of `time.monotonic` at which fits end as they are.
        least_noise: of each state's deviation, that samples are taken to have.
        fineness: times `STEPS_A_PERIOD`.
    """

    def __init__(
        self,
        records: Sequence[Record],
        length: int,
        until_s: float = math.inf,
        least_noise: float = LEAST_NOISE,
        fineness: int = 1,
    ):
        self.until_s, self.least_noise = until_s, least_noise
        period = min(record.period for record in records)
        times, states, inputs, changes, starts = [], [], [], [], []
        for record in records:
            count = len(record.times)
            for first in range(0, count, length):
                rows = np.minimum(np.arange(first, first + length), min(first + length, count) - 1)
                is_new = np.append(True, np.diff(rows) > 0)
                times.append(record.times[rows])
                states.append(np.where(is_new[:, None], record.states[rows], np.nan))
                inputs.append(record.inputs[rows])
                changes.append(np.diff(record.inputs[rows], axis=0) * ~record.is_held)
                starts.append(record.columns(record.times[first : first + 1])[: record.states.shape[1], 0])
        self._times = np.stack(times, axis=1)  # (length, num_pieces)
        widest = np.diff(self._times, axis=0).max(axis=1)
        self.num_substeps = np.ceil(np.maximum(widest * STEPS_A_PERIOD * fineness / period, fineness)).astype(np.int64).tolist()
        self.states = np.stack(states).transpose(1, 2, 0)  # (length, num_states, num_pieces)
        self._inputs, self._changes = (np.stack(parts).transpose(1, 2, 0) for parts in (inputs, changes))
        self.known = np.isfinite(self.states)
        self.starts = np.stack(starts, axis=1)
        self.scales = np.nanstd(np.concatenate([record.states for record in records]), axis=0)
        self.scales[self.scales == 0.0] = 1.0
        self.counts = self.known.sum(axis=(0, 2))

    def courses(self, laws: Sequence[Law], numbers: NDArray[np.float64], starts: NDArray[np.float64]) -> NDArray[np.float64]:
        """States at each sample, `(length, num_states, num_variants, num_pieces)`.

        Args:
            numbers: `(num_numbers, num_variants, 1)`.
            starts: `(num_states, num_variants, num_pieces)`.
        """
        num_columns = len(starts) + self._inputs.shape[1]
        functions, first = [], 0
        for law in laws:
            count = len(numbers_of(law))
            functions.append((compiled(law), numbers[first : first + count]))
            first += count
        x = np.empty((num_columns, *starts.shape[1:]))

        def slope(state: NDArray[np.float64], inputs: NDArray[np.float64]) -> NDArray[np.float64]:
            x[: len(state)] = state
            x[len(state) :] = inputs[:, None]
            slopes = np.empty_like(state)
            for row, (function, constants) in enumerate(functions):
                slopes[row] = function(x, constants)
            return slopes

        state = starts.copy()
        courses = np.empty((len(self._times), *starts.shape))
        courses[0] = state
        for sample in range(1, len(self._times)):
            num_substeps = self.num_substeps[sample - 1]
            h = (self._times[sample] - self._times[sample - 1]) / num_substeps
            begin, change = self._inputs[sample - 1], self._changes[sample - 1] / num_substeps
            for step in range(num_substeps):
                k1 = slope(state, begin + step * change)
                k2 = slope(state + 0.5 * h * k1, begin + (step + 0.5) * change)
                k3 = slope(state + 0.5 * h * k2, begin + (step + 0.5) * change)
                k4 = slope(state + h * k3, begin + (step + 1.0) * change)
                state = state + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
            courses[sample] = state
        return courses

    def course(self, laws: Sequence[Law], starts: NDArray[np.float64]) -> NDArray[np.float64]:
        """States at each sample, `(length, num_states, num_pieces)`."""
        numbers = np.array([number for law in laws for number in numbers_of(law)])
        return self.courses(laws, numbers[:, None, None], starts[:, None])[:, :, 0]

    def fit(
        self,
        laws: Sequence[Law],
        starts: NDArray[np.float64] | None = None,
        fixed: Collection[int] = (),
        most: float = math.inf,
    ) -> Fit | None:
        """The laws with the best constants near their own; None if they leave the finite numbers at once.

        Args:
            starts: states at the beginnings of pieces to begin with; None: those of the smooth courses.
            fixed: indices of numbers that stay unchanged; their variances are 0.
            most: a cost; None is given for laws that do not get near it soon.
        """
        numbers = np.array([number for law in laws for number in numbers_of(law)])
        starts = self.starts if starts is None else starts
        with np.errstate(all="ignore"):
            return self._fit(laws, numbers, starts, [i for i in range(len(numbers)) if i not in fixed], most)

    def _fit(
        self, laws: Sequence[Law], values: NDArray[np.float64], starts: NDArray[np.float64], free: list[int], most: float
    ) -> Fit | None:
        first = _Model(self, laws, values, starts, free, most)
        last = minimised(first, MAX_TRIALS) if math.isfinite(first.error) else first
        if not math.isfinite(last.error) or last.is_hopeless or last.hessian is None:
            return None
        covariance = np.zeros((len(values), len(values)))
        covariance[np.ix_(free, free)] = _inverted(last.hessian)
        fitted = laws_with_numbers(laws, last.numbers.tolist())
        return Fit(fitted, covariance, last.error, np.sqrt(last.variances), last.starts)


class _Model:
    """The cost of laws with some numbers, which all pieces share, and states at the beginnings of pieces.

    Attributes:
        error: -2 log likelihood.
        variances: of the samples of each state from the laws.
        hessian: by the numbers alone, of the last model that took a step; None: there it is not finite.
        is_hopeless: it costs too much after this many steps.
    """

    def __init__(
        self,
        shooting: Shooting,
        laws: Sequence[Law],
        numbers: NDArray[np.float64],
        starts: NDArray[np.float64],
        free: list[int],
        most: float,
        num_steps: int = 0,
    ):
        self.numbers, self.starts, self._free, self._most, self._num_steps = numbers, starts, free, most, num_steps
        self._shooting, self._laws = shooting, laws
        self.hessian: NDArray[np.float64] | None = None
        course = shooting.courses(laws, numbers[:, None, None], starts[:, None])[:, :, 0]
        self._error = np.where(shooting.known, course - shooting.states, 0.0)
        squares = (self._error**2).sum(axis=(0, 2)) / shooting.counts
        self.variances = np.maximum(squares, (shooting.least_noise * shooting.scales) ** 2)
        total = float(shooting.counts @ np.log(self.variances))
        self.error = total if np.isfinite(self._error).all() else math.inf
        self.is_hopeless = num_steps >= SOON and self.error > most + FAR * shooting.counts.sum()

    def is_better(self, than: _Model) -> bool:
        """Implement `evo.evaluate.least_squares`."""
        return self.error <= than.error

    def is_last(self, before: _Model) -> bool:
        """Implement `evo.evaluate.least_squares`."""
        is_over = self._num_steps == MAX_ITERATIONS or time.monotonic() > self._shooting.until_s
        return before.error - self.error < ENOUGH or self.is_hopeless or is_over

    @cached_property
    def _normal(self) -> tuple[NDArray[np.float64], ...] | None:
        """Products of derivatives by numbers, by both and by starts, and of both with the error; None: one is not finite."""
        shooting, n, num_states = self._shooting, len(self._free), len(self.starts)
        numbers = np.tile(self.numbers[:, None, None], (1, 1 + n + num_states, 1))
        starts = np.tile(self.starts[:, None], (1, 1 + n + num_states, 1))
        values = self.numbers[self._free]
        by = DIFFERENCE * np.concatenate([np.where(values == 0.0, 1.0, np.abs(values)), shooting.scales])
        numbers[self._free, 1 + np.arange(n), 0] += by[:n]
        starts[np.arange(num_states), 1 + n + np.arange(num_states)] += by[n:, None]
        courses = shooting.courses(self._laws, numbers, starts)
        change = np.where(shooting.known[:, :, None], (courses[:, :, 1:] - courses[:, :, :1]) / by[:, None], 0.0)
        if not np.isfinite(change).all():
            return None
        weighted = change / self.variances[:, None, None]
        normal = np.einsum("tsap,tsbp->pab", weighted, change)
        right = -np.einsum("tsap,tsp->pa", weighted, self._error)
        return normal[:, :n, :n].sum(axis=0), normal[:, :n, n:], normal[:, n:, n:], right[:, :n].sum(axis=0), right[:, n:]

    def damped(self, damping: float) -> tuple[_Model, float] | None:
        """Implement `evo.evaluate.least_squares`. The starts are eliminated, piece by piece."""
        if self._normal is None or damping >= MAX_DAMPING:
            return None
        a, b, c, g, r = self._normal
        self.hessian = a - np.einsum("pij,pjk,plk->il", b, _inverted(c), b)
        inverse = _inverted(c + damping * c * np.eye(len(self.starts)))
        reduced = a + damping * np.diag(np.diag(a)) - np.einsum("pij,pjk,plk->il", b, inverse, b)
        step = _inverted(reduced) @ (g - np.einsum("pij,pjk,pk->i", b, inverse, r))
        start_steps = np.einsum("pij,pj->ip", inverse, r - np.einsum("pij,i->pj", b, step))
        numbers = self.numbers.copy()
        numbers[self._free] += step
        trial = _Model(
            *(self._shooting, self._laws, numbers, self.starts + start_steps, self._free, self._most), self._num_steps + 1
        )
        trial.hessian = self.hessian
        of_numbers = 2.0 * g - a @ step - 2.0 * np.einsum("pij,jp->i", b, start_steps)
        of_starts = 2.0 * r.T - np.einsum("pij,jp->ip", c, start_steps)
        return trial, float(step @ of_numbers + (start_steps * of_starts).sum())


def _inverted(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pseudo-inverses of symmetric matrices, whatever the units of their rows are."""
    sizes = np.sqrt(np.maximum(np.diagonal(matrices, axis1=-2, axis2=-1), 0.0))
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    both = sizes[..., :, None] * sizes[..., None, :]
    return np.asarray(np.linalg.pinv(matrices / both, rcond=1e-12, hermitian=True) / both)
