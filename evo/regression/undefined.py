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
NEARBY = 2.0**-16  # of a point, or of 1 at zero: where both sides must agree before SymPy is asked
AGREE = 1e-3  # relative


def filled(
    formula: Dag, number: int, columns: list[NDArray[np.float64]], values: NDArray[np.float64], instead: float
) -> NDArray[np.float64]:
    """The values of an equation, with limits where it has no finite value, and with a number where it has no limit either, of
    which a warning tells.

    Args:
        number: of the equation, for the warning.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    if written_size(formula) <= MAX_SIZE:
        rows = np.flatnonzero(np.isnan(values) & np.isfinite(columns).all(axis=0))
        points, places = np.unique(np.array([column[rows] for column in columns]).T, axis=0, return_inverse=True)
        for place, point in enumerate(points[:MAX_POINTS]):
            values[rows[places.ravel() == place]] = _limit(formula, point)
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
    """The limit along an input from both sides of a point; NaN: there is none, or SymPy is missing."""
    for place in range(len(point)):
        sides = np.repeat(point[:, None], 2, axis=1)
        sides[place] += np.array([-NEARBY, NEARBY]) * (abs(point[place]) or 1.0)
        low, high = evaluate(formula, list(sides))[0].tolist()
        if math.isclose(low, high, rel_tol=AGREE, abs_tol=AGREE * NEARBY) and math.isfinite(low):
            found = _sympy_limit(formula, point, place)
            if math.isfinite(found):
                return found
    return math.nan


def _sympy_limit(formula: Dag, point: NDArray[np.float64], place: int) -> float:
    from evo.report.export.sympy_text import sympy_outputs

    try:
        [expression] = sympy_outputs(formula)
    except UserError:
        return math.nan
    import sympy

    symbols = {symbol.name: symbol for symbol in expression.free_symbols}
    rational = {
        symbols[name]: sympy.Rational(value)
        for (name, _), value in zip(formula.inputs, point.tolist(), strict=True)
        if name in symbols
    }
    symbol = symbols.get(formula.inputs[place][0])
    if symbol is None:
        return math.nan
    at = rational.pop(symbol)
    try:
        held = sympy.nsimplify(expression, rational=True).subs(rational)
        sides = [complex(sympy.limit(held, symbol, at, side)) for side in "+-"]
    except (ArithmeticError, NotImplementedError, TypeError, ValueError):
        return math.nan
    return sides[0].real if sides[0] == sides[1] and not sides[0].imag else math.nan
