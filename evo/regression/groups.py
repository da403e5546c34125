"""Groups of inputs by data: products of powers, or sums, that a target depends on, and a product that it is proportional to.

Owns the model y = product * F(groups), with F a polynomial in logarithms of the groups, or in sums: a multi-index model, as in
active subspaces (Constantine 2015) and in dimensional analysis by data (Jofre, del Rosario and Iaccarino 2020). Exponents are
fitted together, and count only if simple ones do as well. Knows nothing of programs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from evo.regression.guesses import spread_rows
from evo.regression.terms import Row

MAX_ROWS, MAX_INPUTS = 400, 10  # that are looked at
DEGREES = (0, 10, 6, 5)  # of F, by number of groups
START_DEGREE, RIDGE = 3, 1e-6  # of the polynomial of all inputs that slopes are first taken of; its penalty
ROWS_A_NUMBER = 1.3  # least, for each number that is fitted
STEPS, HALVINGS, GAIN = 25, 8, 0.98  # of Gauss and Newton's method; of a step; of the error, below which it goes on
MOST_MISSED, MOST_LEFT = 0.2, 1e-4  # of the variance, by the polynomial of all inputs, as noise is; by F
NEAR, WORSE = 0.03, 4.0  # to simple exponents, and times the error with these
ROUNDING = 1e-12  # of the variance
SKEWED = -1.0  # skewness of logarithms: beyond, an input's own values may be the better coordinate
MOST_BENT = (0.2, 0.7)  # deviation of an input's exponent, over it, where the target is proportional to a power of the input
_EXPONENTS = sorted({Fraction(above, below) for below in (1, 2, 3) for above in range(-6 * below, 6 * below + 1)})
Powers = tuple[Fraction, ...]


@dataclass(frozen=True)
class Groups:
    """product: powers of the inputs that a target is proportional to. groups: powers of the inputs in each group of the rest, or
    the factors of a sum.
    """

    product: Powers
    groups: tuple[Powers, ...]
    are_sums: bool


def groups_of(inputs: Mapping[str, Row], target: Row) -> Groups | None:
    """The fewest groups that a target depends on; None: they are as many as the inputs, or none."""
    rows = spread_rows(len(target), MAX_ROWS)
    x, y = np.array([values[rows] for values in inputs.values()], np.float64), target[rows]
    if not 1 < len(inputs) <= MAX_INPUTS or not (np.ptp(x, axis=1).all() and np.ptp(y)):
        return None
    best: Groups | None = None
    with np.errstate(all="ignore"):
        is_positive = np.min(x, axis=1) > 0.0
        logs, z = (_centred(coordinates) for coordinates in (np.where(is_positive[:, None], np.log(np.abs(x)), 0.0), x))
        is_skewed = is_positive & ((logs**3).mean(axis=1) < SKEWED * (logs**2).mean(axis=1) ** 1.5)
        for is_of_log in [True, False] if (y > 0.0).all() or (y < 0.0).all() else [False]:
            of_y = _centred(np.log(np.abs(y))) if is_of_log else y / np.abs(y).max()
            if is_of_log and np.var(of_y - np.linalg.lstsq(logs.T, of_y, rcond=1e-12)[0] @ logs) < ROUNDING * np.var(of_y):
                return None  # a product alone
            bent, is_smooth = np.full(len(x), np.inf), False  # deviation of exponents over these
            for has_log in [is_positive] + [is_positive & ~is_skewed] * bool(is_skewed.any()):
                model = _Model(np.where(has_log[:, None], logs, z), np.where(has_log[:, None], logs, 0.0), of_y, is_of_log)
                powers, bends, left = model.powers()
                bent = np.fmin(bent, np.where(has_log, bends / np.abs(powers), np.inf))
                if left < MOST_MISSED:
                    is_smooth = True
                    best = _fewest(best, _groups(model, np.where(has_log, powers, 0.0), has_log, are_sums=False))
            for is_power in {tuple(bent < most): bent < most for most in MOST_BENT}.values() if is_smooth else ():
                model = _Model(np.where(is_power[:, None], 0.0, z), np.where(is_power[:, None], logs, 0.0), of_y, is_of_log)
                best = _fewest(best, _groups(model, np.where(is_power, powers, 0.0), is_power, are_sums=True))
            if best is not None and len(best.groups) == 1:
                break
    return best


def _fewest(best: Groups | None, candidate: Groups | None) -> Groups | None:
    return candidate if best is None or (candidate is not None and len(candidate.groups) < len(best.groups)) else best


def _centred(values: Row) -> Row:
    return np.asarray(values - values.mean(axis=-1, keepdims=True))


@dataclass(frozen=True)
class _Model:
    """y = exp(powers @ logs) * F(directions @ z), or its logarithm.

    z: `(num_inputs, num_points)` coordinates of mean 0. logs: of the inputs that have them, else 0.
    """

    z: Row
    logs: Row
    y: Row
    is_of_log: bool

    def powers(self) -> tuple[Row, Row, float]:
        """The powers of y by slopes of a polynomial, how much these vary, and the share of the variance that it leaves."""
        slopes, left = self.slopes(self.y)
        weight = np.ones_like(self.y) if self.is_of_log else self.y
        powers = slopes @ weight / (weight @ weight)
        return powers, np.sqrt(((slopes - powers[:, None] * weight) ** 2).sum(axis=1) / (weight @ weight)), left

    def slopes(self, values: Row) -> tuple[Row, float]:
        """Slopes of values by each coordinate, `(num_inputs, num_points)`, by a polynomial, and the share of variance that it
        leaves.
        """
        count, num_rows = self.z.shape
        sizes = np.abs(self.z).max(axis=1, keepdims=True)
        sizes[sizes == 0.0] = 1.0
        degree = next(d for d in range(START_DEGREE, 0, -1) if 2 * math.comb(count + d, d) <= num_rows or d == 1)
        terms, slopes = _polynomials(self.z / sizes, degree)
        numbers = np.linalg.solve(terms @ terms.T + RIDGE * num_rows * np.eye(len(terms)), terms @ values)
        return np.array([numbers @ slope for slope in slopes]) / sizes, float(np.var(values - numbers @ terms) / np.var(values))

    def fitted(self, directions: Row, powers: Row, degree: int) -> tuple[Row, Row]:
        """Fit F: the rest, and the slopes by its numbers, by the directions and by the powers, `(count, num_points)`."""
        base = powers @ self.logs
        factor = np.ones_like(base) if self.is_of_log else np.exp(base)
        wanted = self.y - base if self.is_of_log else self.y
        positions = directions @ self.z
        halves = np.ptp(positions, axis=1, keepdims=True) / 2.0
        values, slopes = _polynomials((positions - positions.min(axis=1, keepdims=True)) / halves - 1.0, degree)
        design = values * factor
        if not (np.isfinite(design).all() and np.isfinite(wanted).all()):
            return np.full_like(base, np.inf), design
        numbers = np.linalg.lstsq(design.T, wanted, rcond=1e-12)[0]
        predicted = numbers @ design
        turns = [numbers @ slope * factor / half * self.z for slope, half in zip(slopes, halves, strict=True)]
        return wanted - predicted, np.concatenate([design, *turns, self.logs * (1.0 if self.is_of_log else predicted)])

    def best(self, directions: Row, powers: Row, degree: int) -> tuple[Row, Row, float]:
        """Orthonormal directions and powers from these on, and the square that they leave."""
        rest, slopes = self.fitted(directions, powers, degree)
        left, count = float(rest @ rest), len(powers)
        for _ in range(STEPS):
            if not (np.isfinite(slopes).all() and np.isfinite(left)):
                break
            sizes = np.linalg.norm(slopes, axis=1)
            sizes[sizes == 0.0] = 1.0
            step = np.linalg.lstsq((slopes / sizes[:, None]).T, rest, rcond=1e-9)[0] / sizes
            turn, more = step[-directions.size - count : -count].reshape(directions.shape), step[-count:]
            for halving in range(HALVINGS):
                moved = _orthonormal(directions + turn / 3.0**halving), powers + more / 3.0**halving
                tried = self.fitted(*moved, degree)
                if (square := float(tried[0] @ tried[0])) < left:
                    break
            else:
                break
            (rest, slopes), (directions, powers), before, left = tried, moved, left, square
            if left > GAIN * before:
                break
        return directions, powers, left


def _orthonormal(rows: Row) -> Row:
    return np.asarray(np.linalg.qr(rows.T)[0].T)


def _polynomials(positions: Row, degree: int) -> tuple[Row, Row]:
    """Products of Chebyshev's polynomials up to a total degree, `(count, num_points)`, and their slopes by each place."""
    unit = np.eye(degree + 1)
    value, slope = chebyshev.chebval(positions, unit), chebyshev.chebval(positions, chebyshev.chebder(unit))
    exponents = [powers for powers in itertools.product(range(degree + 1), repeat=len(positions)) if sum(powers) <= degree]

    def products(moved: int) -> Row:
        factors = [(slope if i == moved else value)[[powers[i] for powers in exponents], i] for i in range(len(positions))]
        return np.asarray(np.prod([np.ones((len(exponents), positions.shape[1])), *factors], axis=0))

    return products(-1), np.array([products(i) for i in range(len(positions))])


def _groups(model: _Model, powers: Row, has_log: NDArray[np.bool_], are_sums: bool) -> Groups | None:
    """Groups of the inputs whose coordinates are logarithms, or else sums. powers: to begin with."""
    count, num_rows = model.z.shape
    square = float(model.y @ model.y)
    base = powers @ model.logs
    slopes, _ = model.slopes(model.y - base if model.is_of_log else model.y / np.exp(base))
    if not np.isfinite(slopes).all():
        return None
    sizes = np.abs(model.z).max(axis=1)
    turns = np.linalg.svd(slopes * sizes[:, None])[0].T * sizes
    for num_groups in range(1, min(np.count_nonzero(sizes), count - 1, len(DEGREES) - 1) + 1):
        fixed = count * (num_groups + 1)
        degrees = range(DEGREES[num_groups], 1, -1)
        fitting = [degree for degree in degrees if ROWS_A_NUMBER * (math.comb(num_groups + degree, degree) + fixed) <= num_rows]
        if not fitting:
            return None
        directions, fitted, left = model.best(_orthonormal(turns[:num_groups]), powers, fitting[0])
        if left > MOST_LEFT * square:
            continue
        directions, pivots = _reduced(directions)
        if not are_sums:  # F takes up powers of the groups
            fitted = fitted - fitted[pivots] @ directions
            rest, _ = model.fitted(directions, fitted, fitting[0])
            left = float(rest @ rest)
        rational = [_simple(row) for row in (fitted, *directions)]
        if any(row is None for row in rational):
            continue
        simple = np.array(rational, np.float64)
        rest, _ = model.fitted(simple[1:], simple[0], fitting[0])
        mixed = [row for row in simple[1:] if np.count_nonzero(row) > 1]
        fits = all((np.abs(row) <= 1.0).all() if are_sums else not row[~has_log].any() for row in mixed)
        if fits and float(rest @ rest) <= max(WORSE * left, ROUNDING * square):
            [product, *groups] = (row for row in rational if row is not None)
            scales = [math.lcm(*(power.denominator for power in group)) for group in groups]
            if num_groups > 2 and max(scales) > 1:  # nearly any exponents do
                return None
            whole = (tuple(power * scale for power in group) for group, scale in zip(groups, scales, strict=True))
            return Groups(product, tuple(whole), are_sums)
    return None


def _reduced(rows: Row) -> tuple[Row, list[int]]:
    """Rows of the same span, each with a 1 where the others have 0, and the columns of these."""
    rows, pivots = rows.copy(), list[int]()
    for number in range(len(rows)):
        rest = np.abs(rows[number:])
        rest[:, pivots] = 0.0
        row, pivot = divmod(int(rest.argmax()), rows.shape[1])
        rows[[number, number + row]] = rows[[number + row, number]]
        rows[number] /= rows[number, pivot]
        is_other = np.arange(len(rows)) != number
        rows[is_other] -= rows[is_other, pivot][:, None] * rows[number]
        pivots.append(pivot)
    return rows, pivots


def _simple(numbers: Row) -> Powers | None:
    """Simple exponents near these; None: one is not near any."""
    nearest = tuple(min(_EXPONENTS, key=lambda exponent: abs(exponent - number)) for number in numbers.tolist())
    return nearest if np.abs(np.array(nearest, np.float64) - numbers).max() < NEAR else None
