"""Noise model and confidence intervals: the variance of the target as a formula, and intervals for a formula's constants.

Owns the loss of a variance, and the derivatives by constants. Knows nothing of searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from evo.language.dag import REAL, Dag, Node
from evo.language.formula import evaluate
from evo.language.textbook import textbook
from evo.native.stack_ptx import NodeKind

# Twice the negative logarithm of the density of a normal distribution, but for a constant: the prediction is the logarithm of the
# variance, the target the squared error.
LOSS = "prediction + target*exp(-prediction)"
# Parameters that describe the target, not its noise.
_OF_TARGET = {"units": None, "y_units": None, "template": None, "guesses": None, "output": None, "warm_start": False}
MOST_LOG = 200.0  # of a variance over the mean one, so that no standard deviation overflows


@dataclass(frozen=True)
class Noise:
    """A variance that depends on the features: `level`, the mean squared error, times the exponential of the prediction of
    `log_variance`. The latter's `equations_`, `sympy` and so on are those of the logarithm.
    """

    level: float
    log_variance: Any

    def std(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803 - scikit-learn's name
        """The standard deviation for each row."""
        logs = np.clip(self.log_variance.predict(X), -MOST_LOG, MOST_LOG)
        return np.asarray(np.sqrt(self.level * np.exp(logs)), np.float64)


def fit_noise(
    estimator: Any,
    X: ArrayLike,  # noqa: N803 - scikit-learn's name
    errors: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    parameters: dict[str, Any],
) -> Noise:
    """Searches for the variance of errors, with an estimator's parameters and others."""
    squares = errors**2
    level = float(np.average(squares, weights=weights))
    if not level > 0.0:
        raise ValueError("y is predicted without errors: there is no noise to fit")
    arguments = {**estimator.get_params(), **_OF_TARGET, "loss": LOSS, "undefined": "mean", **parameters}
    return Noise(level, type(estimator)(**arguments).fit(X, squares / level, weights))


# Of central differences, relative (Nocedal, Wright, Numerical Optimization, 8.1).
_STEP = float(np.cbrt(np.finfo(np.float64).eps))


def constants_of(
    formula: Dag,
    columns: Sequence[NDArray[np.float64]],
    target: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    confidence: float,
) -> pd.DataFrame:
    """The constants of a formula as its text has them, but for whole exponents, with standard errors and intervals: of nonlinear
    least squares at its optimum, by Student's t (Seber, Wild, Nonlinear Regression, 5.1). Constants that the data do not
    determine, alone or beside others, have NaN; so have all if there are no more rows than constants.
    """
    formula = textbook(formula)
    constants = [formula.nodes[index] for index in number_nodes(formula)]
    numbers = np.array([value.number for value in constants])
    root = np.ones(len(target)) if weights is None else np.sqrt(weights)
    errors = root * (target - evaluate(formula, columns)[0])
    slopes = np.array([root * slope(formula, columns, value) for value in constants]).reshape(len(constants), len(target))
    deviations = np.full(len(constants), np.nan)
    rows = np.isfinite(errors) & np.isfinite(slopes).all(axis=0)
    free = int((rows & (root > 0)).sum()) - len(constants)
    if free > 0 and constants:
        sizes = np.linalg.norm(slopes[:, rows], axis=1)
        scaled = slopes[:, rows] / np.where(sizes > 0, sizes, 1.0)[:, None]
        strengths, directions = np.linalg.eigh(scaled @ scaled.T)
        is_known = strengths > np.finfo(np.float64).eps ** 0.5 * strengths.max()
        # A constant that moves along a direction that changes nothing is not determined.
        is_sure = (sizes > 0) & ((directions[:, ~is_known] ** 2).sum(axis=1) < 1e-6)
        variances = (directions[:, is_known] ** 2 / strengths[is_known]).sum(axis=1) * (errors[rows] @ errors[rows]) / free
        deviations[is_sure] = (np.sqrt(variances) / np.where(sizes > 0, sizes, 1.0))[is_sure]
    reach = stats.t.ppf(0.5 + confidence / 2, max(free, 1)) * deviations
    return pd.DataFrame({"constant": numbers, "std_error": deviations, "low": numbers - reach, "high": numbers + reach})


def number_nodes(formula: Dag) -> list[int]:
    """Indices of a formula's numbers, except whole exponents, in the order of the text."""
    nodes, is_number_at = formula.nodes, dict[int, bool]()  # whether it is a number
    todo = [result for result in formula.results if result is not None]
    while todo:
        if (index := todo.pop()) not in is_number_at:
            node = nodes[index]
            is_number_at[index] = node.kind == NodeKind.CONSTANT and node.type == REAL
            exponent = nodes[node.operands[1]] if node.form == "pow(a, b)" else node
            is_whole = exponent.kind == NodeKind.CONSTANT and exponent.number.is_integer()
            todo += reversed(node.operands[:1] if is_whole else node.operands)
    return [index for index, is_number in is_number_at.items() if is_number]


def slope(formula: Dag, columns: Sequence[NDArray[np.float64]], constant: Node) -> NDArray[np.float64]:
    """The derivative of a formula by one of its constants at each row."""
    number = constant.number
    step = _STEP * max(abs(number), _STEP)

    def at(moved: float) -> NDArray[np.float64]:
        return evaluate(formula, columns, lambda value, computed, _: np.float64(moved) if value is constant else computed)[0]

    high, low = number + step, number - step
    return np.asarray((at(high) - at(low)) / (high - low), np.float64)
