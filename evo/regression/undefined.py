"""Rows at which formulas have no value, and their limits there.

Owns which points are removable: sin(x)/x has a limit at 0, log(x) has none at -1. Knows nothing of estimators.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.language.dag import Dag
from evo.language.formula import evaluate
from evo.regression.equations import written_size

MAX_POINTS, MAX_SIZE = 8, 60  # different points that limits are taken at, and operations of their formula: SymPy may take long
NEARBY = 2.0**-16  # of a point, or of 1 at zero: where all sides must agree before SymPy is asked
AGREE = 1e-3  # relative
NUM_DIRECTIONS = 16  # from which a point is approached, beside those of the inputs


def filled(
    formula: Dag, number: int, columns: list[NDArray[np.float64]], values: NDArray[np.float64], instead: float
) -> NDArray[np.float64]:
    """The values of an equation, with limits where it has no finite value, and with a number, and a warning, where it has no
    limit either.

    Args:
        number: of the equation, for the warning.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    if written_size(formula) <= MAX_SIZE:
        rows = np.flatnonzero(np.isnan(values) & np.isfinite(columns).all(axis=0))
        points, inverse = np.unique(np.array([column[rows] for column in columns]).T, axis=0, return_inverse=True)
        for i, point in enumerate(points[:MAX_POINTS]):
            values[rows[inverse.ravel() == i]] = _limit(formula, point)
    lacking = np.isnan(values)
    values[lacking] = instead
    if count := int(lacking.sum()):
        what = "predictions are NaN there" if math.isnan(instead) else "the mean of y stands in"
        first = int(lacking.argmax())
        warnings.warn(
            f"equation {number} has no finite value in {count} of {len(values)} rows, the first is row {first}; {what}",
            stacklevel=3,
        )
    return values


def _limit(formula: Dag, point: NDArray[np.float64]) -> float:
    """The limit at a point, from all directions; NaN: there is none, or SymPy is missing."""
    count = len(point)
    axes = np.concatenate([np.eye(count), -np.eye(count)])
    slanted = np.cos(np.outer(np.arange(1, NUM_DIRECTIONS + 1), np.sqrt(np.arange(2, count + 2))))
    steps = np.concatenate([slanted, axes]) * NEARBY * np.where(point == 0.0, 1.0, np.abs(point))
    around = evaluate(formula, list((point + steps).T))[0]
    values = around[np.isfinite(around)]
    if not np.isfinite(around[:NUM_DIRECTIONS]).all() or not np.allclose(values, values[0], rtol=AGREE, atol=AGREE * NEARBY):
        return math.nan
    sides = np.isfinite(around[NUM_DIRECTIONS:]).reshape(2, count).all(axis=0)
    return _sympy_limit(formula, point, np.eye(count)[sides.argmax()] if sides.any() else np.arange(1.0, count + 1.0))


def _sympy_limit(formula: Dag, point: NDArray[np.float64], direction: NDArray[np.float64]) -> float:
    """The limit along a line through a point."""
    from evo.report.export.sympy_text import sympy_outputs

    try:
        [expression] = sympy_outputs(formula)
    except UserError:
        return math.nan
    import sympy

    symbols = {symbol.name: symbol for symbol in expression.free_symbols}
    step = sympy.Dummy(real=True)
    on_line = {
        symbols[name]: sympy.Rational(value) + sympy.Rational(slope) * step
        for (name, _), value, slope in zip(formula.inputs, point.tolist(), direction.tolist(), strict=True)
        if name in symbols
    }
    try:
        held = sympy.nsimplify(expression, rational=True).subs(on_line)
        sides = [complex(sympy.limit(held, step, 0, side)) for side in "+-"]
    except (ArithmeticError, NotImplementedError, TypeError, ValueError):
        return math.nan
    return sides[0].real if sides[0] == sides[1] and not sides[0].imag and math.isfinite(sides[0].real) else math.nan
