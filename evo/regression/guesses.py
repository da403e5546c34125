"""First formulas for a target: what a person would try before a search, by least squares on powers of the inputs.

Owns generalised linear models with Gaussian errors (McCullagh and Nelder 1989) and three links: a sum of terms; its exponential,
which covers products of powers, growth, Arrhenius' law and bells; its reciprocal, which covers saturation. Terms join one by one,
each the one that explains most of what the others leave (orthogonal matching pursuit), as long as the Bayesian information
criterion falls; there is a formula for each number of terms. Knows nothing of programs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]  # a number for each point

MAX_TERMS = 8
MAX_ROWS, MAX_INPUTS = 1024, 64  # that are looked at; of more inputs, those that the target correlates with most
STEPS = 6  # of iteratively reweighted least squares
LEAST = 1e-3  # of the largest target: targets nearer to 0 have no logarithm or reciprocal to start from
MOST_NEGATIVE = 0.1  # share, by weight, of targets below -LEAST from which on they have none at all
DIGITS = 7  # of coefficients: as many as float32 has, and alike on all machines


@dataclass(frozen=True)
class _Link:
    """How the mean of the target follows from a sum of terms.

    text: the formula of the mean, with {} for the sum.
    of, inverse: the sum of a mean, and the mean of a sum.
    slope: the derivative of the mean by the sum, as a function of the mean.
    powers: of the inputs that are terms; 0 stands for the logarithm.
    """

    text: str
    of: Callable[[Row], Row]
    inverse: Callable[[Row], Row]
    slope: Callable[[Row], Row]
    powers: tuple[float, ...]
    is_linear: bool = False
    has_constant: bool = False  # of its own: neither offset nor scale of the formula stands for it


_POWERS = (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
_LINKS = (
    _Link("{}", lambda mean: mean, lambda eta: eta, np.ones_like, _POWERS, is_linear=True),
    _Link("exp2({})", np.log2, np.exp2, lambda mean: math.log(2.0) * mean, (-1.0, 0.0, 1.0, 2.0)),
    _Link("1/({})", np.reciprocal, np.reciprocal, lambda mean: -(mean**2), _POWERS, has_constant=True),
)


def guesses(columns: dict[str, Row], target: Row, weights: Row | None = None) -> list[str]:
    """Formulas in the notation of `evo.language.infix`, up to the offset and scale that fit them to the target.

    Args:
        columns: what stands for an input in a formula, and its values `(num_points,)`.
        target: `(num_points,)`, in its own units, since its zero counts; not the same everywhere.
        weights: `(num_points,)`, of squared errors; None: all are equal.
    """
    count = min(len(target), MAX_ROWS)
    used = np.arange(count) * len(target) // count
    root = np.ones(count) if weights is None else np.sqrt(weights[used] / weights.max())
    y = target[used] / np.abs(target).max()
    with np.errstate(all="ignore"):
        inputs = {name: values[used] for name, values in columns.items()}
        if len(inputs) > MAX_INPUTS:
            told = {name: abs(np.nan_to_num(np.corrcoef(values, y)[0, 1])) for name, values in inputs.items()}
            inputs = {name: inputs[name] for name in sorted(told, key=lambda name: -told[name])[:MAX_INPUTS]}
        texts: list[str] = []
        for link in _LINKS:
            start = y if link.is_linear or np.average(y, weights=root**2) > 0.0 else -y
            if link.is_linear or np.average(start < -LEAST, weights=root**2) <= MOST_NEGATIVE:
                texts += [link.text.format(text) for text in _sums(link, inputs, start, root)]
    return texts


def _sums(link: _Link, inputs: dict[str, Row], y: Row, root: Row) -> list[str]:
    """The best sum of one term, with one more, and so on.

    root: `(num_points,)` roots of the weights.
    """
    names, library, sizes = _terms(link, inputs)
    start = eta = link.of(y if link.is_linear else np.maximum(y, LEAST))
    error = float(np.sum((root * (y - np.average(y, weights=root**2))) ** 2))
    chosen: list[int] = []
    texts: list[str] = []
    for _ in range(min(MAX_TERMS, 1 + len(inputs), len(names), len(y) // 4)):
        chosen.append(_next_term(library, chosen, link, eta, y, root))
        coefficients, eta, left = _fitted(library[chosen], link, eta if texts else start, y, root)
        if not left < error * len(y) ** (-2.0 / len(y)):
            break
        error = left
        parts = [f"{c:.{DIGITS}g}*{names[i]}" for c, i in zip(coefficients[1:] / sizes[chosen], chosen, strict=True)]
        texts.append(" + ".join([f"{coefficients[0]:.{DIGITS}g}"] * link.has_constant + parts))
    return texts


def _terms(link: _Link, inputs: dict[str, Row]) -> tuple[list[str], Row, Row]:
    """Names of the terms that are finite, their values `(num_terms, num_points)` over their sizes, and these."""
    names, rows, sizes = [], [], []
    for name, x in inputs.items():
        for power in link.powers:
            if not ((x > 0.0).all() or power in (1.0, 2.0, 3.0, 4.0)):
                continue
            values = np.log2(x) if power == 0.0 else x**power
            size = np.abs(values).max()
            if 0.0 < size < np.inf and np.ptp(values) > 1e-6 * size:
                names.append(_text(name, power))
                rows.append(values / size)
                sizes.append(size)
    return names, np.array(rows), np.array(sizes)


def _text(name: str, power: float) -> str:
    """An exponent that is no integer stands as a constant, for tuning to change."""
    if power == 0.0:
        return f"log2({name})"
    if power == 1.0:
        return name
    return f"{name}**{power:.0f}" if power.is_integer() else f"exp2({power}*log2({name}))"


def _working(link: _Link, eta: Row, y: Row, root: Row) -> tuple[Row, Row]:
    """The weighted response that a weighted sum should give in the next step, and the roots of its weights."""
    mean = link.inverse(eta)
    slope = link.slope(mean)
    return (eta * slope + y - mean) * root, slope * root


def _next_term(library: Row, chosen: list[int], link: _Link, eta: Row, y: Row, root: Row) -> int:
    """The term that explains most of what the chosen ones leave."""
    response, factor = _working(link, eta, y, root)
    basis = np.linalg.qr(np.stack([factor, *library[chosen] * factor], axis=1))[0]
    left = response - basis @ (basis.T @ response)
    rows = library * factor
    sizes = (rows**2).sum(axis=1)
    rows -= (rows @ basis) @ basis.T
    squares = (rows**2).sum(axis=1)
    gain = np.where(squares > 1e-12 * sizes, (rows @ left) ** 2 / squares, -1.0)
    gain[chosen] = -1.0
    return int(np.argmax(np.nan_to_num(gain)))


def _fitted(rows: Row, link: _Link, eta: Row, y: Row, root: Row) -> tuple[Row, Row, float]:
    """Coefficients, the constant first, their sum at the points, and its squared error."""
    matrix = np.stack([np.ones(len(y)), *rows], axis=1)
    best: tuple[Row, Row, float] = (np.zeros(matrix.shape[1]), eta, math.inf)
    for _ in range(1 if link.is_linear else STEPS):
        response, factor = _working(link, eta, y, root)
        if not (np.isfinite(response).all() and np.isfinite(factor).all()):
            break
        coefficients = np.asarray(np.linalg.lstsq(matrix * factor[:, None], response, rcond=1e-13)[0], np.float64)
        eta = np.asarray(matrix @ coefficients)
        error = float(np.sum((root * (y - link.inverse(eta))) ** 2))
        if not error < best[2]:
            break
        best = coefficients, eta, error
    return best
