"""Terms for a target that bends: products of inputs, and the larger and the smaller of an input and a knot, or of two inputs.

Owns the search for knots. They join one by one, as in regression splines (Friedman 1991), and are refined together by
Gauss-Newton; those between two inputs are hinging hyperplanes (Breiman 1993). Knows nothing of links and of programs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]  # a number for each point

MAX_HINGES, NUM_KNOTS, STEPS = 4, 33, 20  # of a sum; knots tried for one; steps of refinement
PRICE = 4.0  # of a hinge's numbers, in halves of the logarithm of the number of points (Bayesian information criterion)
ROUNDING, DUST = 1e-24, 1e-9  # share of the squares that are none; of a range, that is 0
SPAN, LEAST_SEEN = 6, 1e-2  # points that a knot has on each side at least; share of the squares beside as many points
DIGITS = 9  # of knots and slopes
_SLOPES = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)  # of one input by another, each over its range, that refinement starts from


@dataclass(frozen=True)
class _Hinge:
    """`factor * max(x - slope * z - knot, 0)`. factor, x, z: names; "" is 1 as a factor and leaves z out."""

    factor: str
    x: str
    z: str
    slope: float
    knot: float = 0.0

    def side(self, inputs: dict[str, Row]) -> Row:
        """The side that the knot is on, x - slope * z, at the points."""
        return inputs[self.x] - self.slope * inputs[self.z] if self.z else inputs[self.x]

    def is_seen(self, inputs: dict[str, Row]) -> bool:
        """Return whether enough points lie on each side of the knot to tell it from a few that lie apart."""
        num_beyond = int((self.side(inputs) > self.knot).sum())
        return SPAN <= num_beyond <= len(inputs[self.x]) - SPAN

    def derivatives(self, inputs: dict[str, Row]) -> tuple[Row, Row, Row]:
        """Values, and derivatives by the knot and by the slope, with the opposite sign."""
        beyond = self.side(inputs) - self.knot
        is_beyond = np.where(beyond > 0.0, inputs[self.factor] if self.factor else 1.0, 0.0)
        return is_beyond * beyond, is_beyond, is_beyond * inputs[self.z] if self.z else np.zeros_like(beyond)

    def terms(self, inputs: dict[str, Row]) -> dict[str, Row]:
        """Formula of the larger, and of the smaller, of both sides -> values."""
        hinge, *_ = self.derivatives(inputs)
        parts = [f"{self.slope:.{DIGITS}g}*{self.z}"] if self.z else []
        parts += [f"{self.knot:.{DIGITS}g}"] if self.knot or not parts else []
        factor = inputs[self.factor] if self.factor else 1.0
        other = (self.slope * inputs[self.z] if self.z else 0.0) + self.knot
        text = f"{self.factor}*{{}}({self.x}, {' + '.join(parts)})" if self.factor else f"{{}}({self.x}, {' + '.join(parts)})"
        return {text.format("max"): factor * other + hinge, text.format("min"): factor * inputs[self.x] - hinge}


def hinged(columns: dict[str, Row], y: Row, root: Row) -> dict[str, Row]:
    """Formula of a term -> values at the points; empty unless hinges pay for their numbers.

    root: `(num_points,)` roots of the weights.
    """
    inputs = {name: x for name, x in columns.items() if 0.0 < np.ptp(x) < np.inf}
    terms = inputs | {f"{a}*{b}": inputs[a] * inputs[b] for a, b in itertools.combinations_with_replacement(inputs, 2)}
    terms = {name: values for name, values in terms.items() if np.isfinite(values).all()}
    lines = np.array([np.ones_like(y), *terms.values()])
    kinds = [_Hinge(factor, x, "", 0.0) for x in inputs for factor in ("", *inputs) if factor != x]
    for x, z in itertools.combinations(inputs, 2):
        kinds += [_Hinge("", x, z, slope * float(np.ptp(inputs[x]) / np.ptp(inputs[z]))) for slope in _SLOPES]
    tried = [replace(kind, knot=knot) for kind in kinds for knot in _places(kind.side(inputs))]
    tried = [hinge for hinge in tried if hinge.is_seen(inputs) and np.isfinite(hinge.derivatives(inputs)).all()]
    deviations = np.sort((root * (y - np.median(y))) ** 2)
    if not tried or deviations[:-SPAN].sum() < LEAST_SEEN * deviations.sum():
        return {}
    library = np.array([hinge.derivatives(inputs)[0] for hinge in tried]) * root
    squares = (library**2).sum(axis=1)
    hinges = list[_Hinge]()
    left, _ = _step(hinges, lines, inputs, y, root)
    least = ROUNDING * float(np.sum((root * y) ** 2))
    while len(hinges) < MAX_HINGES and left > least:
        basis = np.linalg.qr((np.array([*lines, *(hinge.derivatives(inputs)[0] for hinge in hinges)]) * root).T)[0]
        rest = root * y - basis @ (basis.T @ (root * y))
        of_rest = squares - ((library @ basis) ** 2).sum(axis=1)
        gain = np.where(of_rest > 1e-9 * squares, (library @ rest) ** 2 / of_rest, 0.0)
        error, refined = _refined([*hinges, tried[int(np.nan_to_num(gain).argmax())]], lines, inputs, y, root)
        if not error < left * len(y) ** (-PRICE / len(y)):
            break
        left, hinges = error, refined
    for hinge in hinges:
        is_dust = abs(hinge.knot) < DUST * float(np.ptp(hinge.side(inputs)))
        terms |= (replace(hinge, knot=0.0) if is_dust else hinge).terms(inputs)
    return terms if hinges else {}


def _places(side: Row) -> Row:
    """Knots: among the values, evenly."""
    return np.unique(np.quantile(side, np.linspace(0.0, 1.0, NUM_KNOTS + 2)[1:-1]))


def _refined(hinges: list[_Hinge], lines: Row, inputs: dict[str, Row], y: Row, root: Row) -> tuple[float, list[_Hinge]]:
    """The least squared error, and the hinges there, that steps of Gauss-Newton lead to, halved where they lead up."""
    left, moves = _step(hinges, lines, inputs, y, root)
    size = 1.0
    for _ in range(STEPS):
        pairs = zip(hinges, size * moves, strict=True)
        moved = [replace(hinge, knot=hinge.knot - dk, slope=hinge.slope - ds) for hinge, (dk, ds) in pairs]
        error, further = _step(moved, lines, inputs, y, root)
        if error < left and all(hinge.is_seen(inputs) for hinge in moved):
            left, hinges, moves, size = error, moved, further, 1.0
        else:
            size *= 0.5
    return left, hinges


def _step(hinges: list[_Hinge], lines: Row, inputs: dict[str, Row], y: Row, root: Row) -> tuple[float, Row]:
    """The squared error of the best sum of lines and hinges, and the next steps of their knots and slopes, `(num_hinges, 2)`."""
    parts = np.array([hinge.derivatives(inputs) for hinge in hinges]).reshape(len(hinges), 3, len(y))
    matrix = np.concatenate([lines, parts[:, 0]])
    slopes = _solved(matrix, y, root)
    error = float(np.sum((root * (y - slopes @ matrix)) ** 2))
    moved = (parts[:, 1:] * slopes[len(lines) :, None, None]).reshape(-1, len(y))
    moves = _solved(np.concatenate([matrix, moved]), y, root)[len(matrix) :]
    return error if np.isfinite(error) else np.inf, moves.reshape(-1, 2)


def _solved(matrix: Row, y: Row, root: Row) -> Row:
    """Coefficients of the rows whose sum is nearest to y; 0 where a row overflows."""
    if not np.isfinite(matrix).all():
        return np.zeros(len(matrix))
    sizes = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.lstsq((matrix / sizes * root).T, root * y, rcond=1e-13)[0] / sizes[:, 0])
