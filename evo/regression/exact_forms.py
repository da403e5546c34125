"""Forms in which formulas are shown and predict: as textbooks write them, with numbers refined in float64 if the data are exact.

Owns how these numbers are refined, and which may have few digits or be none. A search knows its constants in float32.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.sampling import spread
from evo.language.algebra import Ranges
from evo.language.dag import Dag
from evo.language.formula import evaluate
from evo.language.textbook import written
from evo.regression.uncertainty import number_nodes, slope

Row = NDArray[np.float64]  # a number for each point

MAX_ROWS = 2048  # that forms are compared at, and numbers refined by
MAX_STEPS, MAX_NUMBERS = 8, 12  # of Gauss and Newton; that are refined
CUTS = (1e-13, 1e-9)  # of singular values: the second for redundant numbers, as in a*(b*x + c*y)
ALIKE = 1e-9  # of values, relative: of the same formula
NEARLY, EXACT = 1e-9, 1e-20  # of the target's variance: errors of a formula that may become exact, and of an exact one
DUST = 1e-4  # of the largest target: a number that changes less may be left out
LOST = 16.0  # times the squares that rounding leaves
DIGITS = (1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14)  # relative errors of numbers, the greatest that is possible counts


@np.errstate(all="ignore")  # formulas may be anything
def displayed_form(formula: Dag, inputs: list[Row], target: Row, weights: Row | None = None) -> tuple[Dag, bool]:
    """The form of a formula, and whether its numbers are others. It has the formula's values, or those of the target where these
    are nearly the same.

    Args:
        inputs, target, weights: `(num_points,)` each.
    """
    ranges = {name: (float(column.min()), float(column.max())) for (name, _), column in zip(formula.inputs, inputs, strict=True)}
    form, rows = written(formula, ranges), spread(len(target), MAX_ROWS)
    sample = [column[rows] for column in inputs]
    values, form_values = (evaluate(graph, sample)[0] for graph in (formula, form))
    if not np.allclose(form_values, values, ALIKE, ALIKE * float(np.abs(target).max()), equal_nan=True):
        return formula, False
    root = np.sqrt(np.ones(len(rows)) if weights is None else weights[rows])
    fit = _Fit(sample, target[rows] * root, root)
    variance = float(np.sum((fit.wanted - fit.wanted.mean()) ** 2))
    if fit.squares(form) < NEARLY * variance:
        best, rounding = fit.refined(form), float(np.sum((np.finfo(np.float64).eps * fit.wanted) ** 2))
        if (left := fit.squares(best)) < max(EXACT * variance, LOST * rounding):
            return fit.shortest(best, ranges, LOST * max(left, rounding)), True
    return form, False


class _Fit:
    """Least squares of the numbers of a form. wanted: targets times the roots of the weights."""

    def __init__(self, inputs: list[Row], wanted: Row, root: Row):
        self._inputs, self.wanted, self._root = inputs, wanted, root

    def _left(self, form: Dag) -> Row:
        return self.wanted - evaluate(form, self._inputs)[0] * self._root

    def squares(self, form: Dag) -> float:
        """The sum of squared errors."""
        total = float(np.sum(self._left(form) ** 2))
        return total if np.isfinite(total) else np.inf

    def refined(self, form: Dag) -> Dag:
        """The form with the best numbers near its own, by Gauss and Newton."""
        indices = number_nodes(form)
        for _ in range(MAX_STEPS if 0 < len(indices) <= MAX_NUMBERS else 0):
            slopes = np.array([slope(form, self._inputs, form.nodes[index]) for index in indices]) * self._root
            sizes = np.linalg.norm(slopes, axis=1)
            if not (np.isfinite(slopes).all() and sizes.all()):
                break
            candidates = list[Dag]()
            for cut in CUTS:
                steps = np.linalg.lstsq(slopes.T / sizes, self._left(form), rcond=cut)[0] / sizes
                numbers = {index: form.nodes[index].number + step for index, step in zip(indices, steps, strict=True)}
                candidates.append(_with(form, numbers))
            best = min(candidates, key=self.squares)
            if not self.squares(best) < self.squares(form):
                break
            form = best
        return form

    def shortest(self, form: Dag, ranges: Ranges, most: float) -> Dag:
        """The form without dust, and with numbers of few digits, that leaves at most these squares."""
        forms = (written(form, ranges, near) for near in DIGITS)
        short = next((candidate for candidate in forms if self.squares(candidate) <= most), written(form, ranges))
        for index in number_nodes(short):
            without = _with(short, {index: 0.0})
            if np.abs(self._left(without)).max() < DUST * np.abs(self.wanted).max():
                less = written(without, ranges)
                for candidate in (less, self.refined(less)):
                    if len(number_nodes(candidate)) < len(number_nodes(short)) and self.squares(candidate) <= most:
                        return self.shortest(candidate, ranges, most)
        return short


def _with(form: Dag, numbers: dict[int, float]) -> Dag:
    """The form with other numbers at some nodes."""
    bits = {index: int(np.float64(number).view(np.uint64)) for index, number in numbers.items()}
    return replace(form, nodes=tuple(replace(n, payload=bits[i]) if i in bits else n for i, n in enumerate(form.nodes)))
