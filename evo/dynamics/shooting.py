"""All constants of all laws fitted to the records at once, by multiple shooting.

Each trajectory is cut into pieces; each piece begins at a state of its own, which is fitted too (Bock 1983). So neither noise nor
chaos hides a law: within a piece, errors have no time to grow. Least squares by Levenberg-Marquardt in float64, Runge-Kutta of
order 4. Owns that fit. Knows nothing of where laws come from.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.dynamics.records import Record
from evo.dynamics.terms import Law, compiled, laws_with_numbers, numbers_of

STEPS_A_PERIOD = 48.0  # of integration, at least
DIFFERENCE = 1e-6  # relative, by which numbers and states are moved for derivatives
MAX_ITERATIONS = 25
LEAST_NOISE = 1e-4  # of a state's deviation; below it, integration and smoothing would count as laws
ENOUGH = 1e-2  # change of the cost, in units of -2 log likelihood, at which a fit ends
MAX_DAMPING = 1e8
SOON, FAR = 6, 0.1  # iterations after which a fit is given up, and the cost of each sample that is too much then


@dataclass(frozen=True)
class Fit:
    """Laws and how well they fit.

    deviations: standard errors of their numbers, law by law in the order of `numbers_of`. cost: -2 log likelihood. noise:
    `(num_states,)` standard deviations of the samples from the laws. starts: states at the beginning of each piece,
    `(num_states, num_pieces)`.
    """

    laws: tuple[Law, ...]
    deviations: NDArray[np.float64]
    cost: float
    noise: NDArray[np.float64]
    starts: NDArray[np.float64]


class Shooting:
    """Fits laws over pieces of trajectories.

    Args:
        records: of the same states and inputs.
        length: samples of a piece; the last of a trajectory may be shorter.
    """

    def __init__(self, records: Sequence[Record], length: int):
        period = min(record.period for record in records)
        times, states, inputs, starts = [], [], [], []
        for record in records:
            count = len(record.times)
            for first in range(0, count, length):
                rows = np.minimum(np.arange(first, first + length), min(first + length, count) - 1)
                is_new = np.append(True, np.diff(rows) > 0)
                times.append(record.times[rows])
                states.append(np.where(is_new[:, None], record.states[rows], np.nan))
                inputs.append(record.inputs[rows])
                starts.append(record.columns(record.times[first : first + 1])[: record.states.shape[1], 0])
        self._times = np.stack(times, axis=1)  # (length, num_pieces)
        widest = np.diff(self._times, axis=0).max(axis=1)
        self.num_substeps = np.ceil(np.maximum(widest * STEPS_A_PERIOD / period, 1.0)).astype(np.int64).tolist()
        self._states = np.stack(states).transpose(1, 2, 0)  # (length, num_states, num_pieces)
        self._inputs = np.stack(inputs).transpose(1, 2, 0)
        self._known = np.isfinite(self._states)
        self.starts = np.stack(starts, axis=1)
        self._scales = np.nanstd(np.concatenate([record.states for record in records]), axis=0)
        self._scales[self._scales == 0.0] = 1.0
        self._counts = self._known.sum(axis=(0, 2))

    def _courses(self, laws: Sequence[Law], numbers: NDArray[np.float64], starts: NDArray[np.float64]) -> NDArray[np.float64]:
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
            found = np.empty_like(state)
            for row, (function, own) in enumerate(functions):
                found[row] = function(x, own)
            return found

        state = starts.copy()
        courses = np.empty((len(self._times), *starts.shape))
        courses[0] = state
        for sample in range(1, len(self._times)):
            num_substeps = self.num_substeps[sample - 1]
            h = (self._times[sample] - self._times[sample - 1]) / num_substeps
            begin, change = self._inputs[sample - 1], (self._inputs[sample] - self._inputs[sample - 1]) / num_substeps
            for step in range(num_substeps):
                k1 = slope(state, begin + step * change)
                k2 = slope(state + 0.5 * h * k1, begin + (step + 0.5) * change)
                k3 = slope(state + 0.5 * h * k2, begin + (step + 0.5) * change)
                k4 = slope(state + h * k3, begin + (step + 1.0) * change)
                state = state + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
            courses[sample] = state
        return courses

    def fit(
        self,
        laws: Sequence[Law],
        starts: NDArray[np.float64] | None = None,
        fixed: Collection[int] = (),
        most: float = math.inf,
    ) -> Fit | None:
        """The laws with the constants that fit best from their own on; None if they leave the finite numbers at once.

        Args:
            starts: states at the beginnings of pieces to begin with; None: those of the smooth courses.
            fixed: places of numbers that stay as they are; their deviations are 0.
            most: a cost; None is given for laws that do not get near it soon.
        """
        numbers = np.array([number for law in laws for number in numbers_of(law)])
        starts = self.starts if starts is None else starts
        with np.errstate(all="ignore"):
            return self._fit(laws, numbers, starts, [place for place in range(len(numbers)) if place not in fixed], most)

    def _fit(
        self, laws: Sequence[Law], values: NDArray[np.float64], starts: NDArray[np.float64], free: list[int], most: float
    ) -> Fit | None:
        num_states, num_numbers = len(starts), len(free)
        num_variants = 1 + num_numbers + num_states

        def moved(numbers: NDArray[np.float64], starts: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
            all_numbers = np.tile(numbers[:, None, None], (1, num_variants, 1))
            all_starts = np.tile(starts[:, None], (1, num_variants, 1))
            by_number = DIFFERENCE * np.where(numbers[free] == 0.0, 1.0, np.abs(numbers[free]))
            by_state = DIFFERENCE * self._scales
            for k in range(num_numbers):
                all_numbers[free[k], 1 + k] += by_number[k]
            for k in range(num_states):
                all_starts[k, 1 + num_numbers + k] += by_state[k]
            return all_numbers, all_starts, np.concatenate([by_number, by_state])

        def errors(courses: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(np.where(self._known, courses - self._states, 0.0))

        def variances(error: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(np.maximum((error**2).sum(axis=(0, 2)) / self._counts, (LEAST_NOISE * self._scales) ** 2))

        def cost_of(error: NDArray[np.float64]) -> float:
            total = float(self._counts @ np.log(variances(error)))
            return total if np.isfinite(error).all() else math.inf

        numbers, damping, cost = values.copy(), 1e-3, math.inf
        hessian = np.eye(num_numbers)
        error = np.zeros_like(self._states)
        for iteration in range(MAX_ITERATIONS):
            all_numbers, all_starts, by = moved(numbers, starts)
            courses = self._courses(laws, all_numbers, all_starts)
            error = errors(courses[:, :, 0])
            cost = cost_of(error)
            if not math.isfinite(cost) or (iteration >= SOON and cost > most + FAR * self._counts.sum()):
                return None
            weight = 1.0 / variances(error)[:, None]
            change = (courses[:, :, 1:] - courses[:, :, :1]) / by[:, None]
            change = np.where(self._known[:, :, None], change, 0.0)
            if not np.isfinite(change).all():
                return None
            weighted = change * weight[:, None]
            normal = np.einsum("tsap,tsbp->pab", weighted, change)
            right = -np.einsum("tsap,tsp->pa", weighted, error)
            n = num_numbers
            a, b, c = normal[:, :n, :n].sum(axis=0), normal[:, :n, n:], normal[:, n:, n:]
            g, r = right[:, :n].sum(axis=0), right[:, n:]
            inverse = _inverted(c)
            hessian = a - np.einsum("pij,pjk,plk->il", b, inverse, b)
            found = math.inf
            while damping < MAX_DAMPING:
                inverse = _inverted(c + damping * c * np.eye(num_states))
                reduced = a + damping * np.diag(np.diag(a)) - np.einsum("pij,pjk,plk->il", b, inverse, b)
                step = _inverted(reduced) @ (g - np.einsum("pij,pjk,pk->i", b, inverse, r))
                moved_starts = starts + np.einsum("pij,pj->ip", inverse, r - np.einsum("pij,i->pj", b, step))
                moved_numbers = numbers.copy()
                moved_numbers[free] += step
                tried = errors(self._courses(laws, moved_numbers[:, None, None], moved_starts[:, None])[:, :, 0])
                found = cost_of(tried)
                if found <= cost:
                    break
                damping *= 8.0
            if not found <= cost:
                break
            numbers, starts, error = moved_numbers, moved_starts, tried
            damping = max(damping / 8.0, 1e-9)
            gain, cost = cost - found, found
            if gain < ENOUGH:
                break
        deviations = np.zeros(len(numbers))
        deviations[free] = np.sqrt(np.maximum(np.diag(_inverted(hessian)), 0.0))
        return Fit(laws_with_numbers(laws, numbers.tolist()), deviations, cost, np.sqrt(variances(error)), starts)


def _inverted(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pseudo-inverses of symmetric matrices, whatever the units of their rows are."""
    sizes = np.sqrt(np.maximum(np.diagonal(matrices, axis1=-2, axis2=-1), 0.0))
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    both = sizes[..., :, None] * sizes[..., None, :]
    return np.asarray(np.linalg.pinv(matrices / both, rcond=1e-12, hermitian=True) / both)
