"""First formulas for a target: what a person would try before a search, by least squares on powers of the inputs.

Owns generalised linear models with Gaussian errors (McCullagh and Nelder 1989) and three links: a sum of terms; its exponential,
which covers products of powers, growth, Arrhenius' law and bells; its reciprocal, which covers saturation. Terms join one by one,
each the one that explains most of what the others leave (orthogonal matching pursuit), as long as the Bayesian information
criterion falls; there is a formula for each number of terms. And of each input, exponentials and waves of it, whose coefficients
change with the other inputs: cooling, charging, decay to a level, oscillation. Knows nothing of programs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evo.regression.hinges import hinged

Row = NDArray[np.float64]  # a number for each point

MAX_TERMS = 8
MAX_ROWS, MAX_INPUTS = 1024, 64  # that are looked at; of more inputs, those that the target correlates with most
STEPS = 6  # of iteratively reweighted least squares
LEAST = 1e-3  # of the largest target: targets nearer to 0 have no logarithm or reciprocal to start from
MOST_NEGATIVE = 0.1  # share, by weight, of targets below -LEAST from which on they have none at all
MAX_MODULATED, MAX_DIVIDED = 6, 2  # inputs in sums with exponentials and waves, and in such that a power multiplies
MAX_HINGED = 4  # inputs in sums with hinges
_DIVISORS, FAR_LESS = (-4.0, -3.0, -2.0, -1.0, -0.5), 1e-2  # such powers; the share of the least error before
MAX_SCANNED = 256  # rows that rates are found by
MOST_EXPONENT = 64.0  # of a power of 2: far below what float32 overflows at
MOST_LEFT = 3e-3  # of the variance; a sum that explains less leads searches astray
REFINEMENTS, NUM_TRIED = 6, 23  # of a rate; numbers between the ends of where it may be, these included
DIGITS = 7  # of coefficients: as many as float32 has, and alike on all machines
DUST = 1e-9  # share of the largest term, below which one is rounding


@dataclass(frozen=True)
class _Link:
    """Link from a sum of terms to the mean of the target.

    text: the formula of the mean, with {} for the sum.
    function, inverse: the sum of a mean, and the mean of a sum.
    slope: the derivative of the mean by the sum, as a function of the mean.
    powers: of the inputs that are terms; 0 stands for the logarithm.
    """

    text: str
    function: Callable[[Row], Row]
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
_FUNCTIONS = {"exp2": np.exp2, "sin": np.sin, "cos": np.cos}
_GROWTH = np.exp2(np.linspace(-2.0, 4.5, 14))
_WAVES = np.asarray(np.pi * np.arange(1, 49) / 2.0, np.float64)
# Functions of one input, and their rates times its range: doublings; radians, up to a dozen waves.
_BASES: list[tuple[tuple[str, ...], Row]] = [(("exp2",), np.concatenate([-_GROWTH[::-1], _GROWTH])), (("sin", "cos"), _WAVES)]


def guesses(columns: dict[str, Row], target: Row, weights: Row | None = None) -> list[str]:
    """Formulas in the notation of `evo.language.infix`, up to the offset and scale that fit them to the target.

    Args:
        columns: text of an input in a formula -> its values, `(num_points,)`.
        target: `(num_points,)`, in its own units, since its zero counts; not the same everywhere.
        weights: `(num_points,)`, of squared errors; None: all are equal.
    """
    used = spread_rows(len(target), MAX_ROWS)
    root = np.ones(len(used)) if weights is None else np.sqrt(weights[used] / weights.max())
    y = target[used] / np.abs(target).max()
    with np.errstate(all="ignore"):
        inputs = {name: values[used] for name, values in columns.items()}
        inputs = _most_telling(inputs, y, MAX_INPUTS)
        texts: list[str] = []
        for link in _LINKS:
            start = y if link.is_linear or np.average(y, weights=root**2) > 0.0 else -y
            if link.is_linear or np.average(start < -LEAST, weights=root**2) <= MOST_NEGATIVE:
                texts += [link.text.format(text) for text in _sums(link, _terms(link, inputs), start, root, 1 + len(inputs))]
        texts += _modulated(_most_telling(inputs, y, MAX_MODULATED), y, root)
        if terms := hinged(_most_telling(inputs, y, MAX_HINGED), y, root):
            texts += _sums(_LINKS[0], _scaled(terms), y, root, MAX_TERMS)
    return texts


def spread_rows(num_rows: int, most: int) -> NDArray[np.intp]:
    """Numbers of up to `most` rows, spread evenly."""
    count = min(num_rows, most)
    return np.arange(count) * num_rows // count


def _most_telling(inputs: dict[str, Row], y: Row, most: int) -> dict[str, Row]:
    """Inputs that the target correlates with most."""
    if len(inputs) <= most:
        return inputs
    correlations = {name: abs(np.nan_to_num(np.corrcoef(values, y)[0, 1])) for name, values in inputs.items()}
    return {name: inputs[name] for name in sorted(correlations, key=lambda name: -correlations[name])[:most]}


def _modulated(inputs: dict[str, Row], y: Row, root: Row) -> list[str]:
    """The best sums of inputs, exponentials or waves of one input, and products of both, at the rate with the least error; where
    that leaves far less, times a power of an input.
    """
    factors = [("{}", np.ones_like(y))]
    for name, x in inputs.items() if len(inputs) <= MAX_DIVIDED else ():
        factors += [("({})*" + _text(name, power), x**power) for power in _DIVISORS if (x > 0.0).all()]
    total = float(np.sum((root * (y - np.average(y, weights=root**2))) ** 2))
    most, texts = MOST_LEFT * total, list[str]()
    for text, factor in factors:
        z, z_root = y / factor, root * factor
        if not (np.isfinite(z).all() and 0.0 < z_root.max() < np.inf):
            continue
        left, name, kinds, rate = _best_rate(inputs, z, z_root)
        if left < most:
            most = min(FAR_LESS * left, most)
            link = replace(_LINKS[0], has_constant=text != "{}")
            texts = [text.format(part) for part in _sums(link, _products(inputs, name, kinds, rate), z, z_root, MAX_TERMS)]
    return texts


def _best_rate(inputs: dict[str, Row], y: Row, root: Row) -> tuple[float, str, tuple[str, ...], float]:
    """The least squared error of such a sum, the input and functions of the rate, and the rate."""
    step = -(-len(y) // MAX_SCANNED)
    size = root.max()
    sampled, sampled_y, sampled_root = {name: x[::step] for name, x in inputs.items()}, y[::step], root[::step] / size
    candidates: list[tuple[float, str, tuple[str, ...], float]] = []
    for name, x in inputs.items():
        span, farthest = float(np.ptp(x)), float(np.abs(x).max())
        if not 0.0 < span < np.inf:
            continue
        for kinds, rates in _BASES:
            tried = rates / span
            if kinds == ("exp2",):
                tried = tried[np.abs(tried) * farthest < MOST_EXPONENT]
            left = partial(_left, sampled, name, kinds, y=sampled_y, root=sampled_root)
            if len(tried):
                best = int(np.argmin(left(tried)))
                rate = least(left, tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)])
                candidates.append((float(step * size**2 * left(np.array([rate]))[0]), name, kinds, rate))
    return min(candidates, default=(math.inf, "", (), 0.0))


def _left(inputs: dict[str, Row], name: str, kinds: tuple[str, ...], rates: Row, *, y: Row, root: Row) -> Row:
    """The squared error of the best sum of all terms, for each rate."""
    fixed = np.array([np.ones(len(y)), *inputs.values()])
    functions = np.stack([_FUNCTIONS[kind](rates[:, None] * inputs[name]) for kind in kinds], axis=1)
    products = (functions[:, :, None] * fixed).reshape(len(rates), -1, len(y))
    terms = np.concatenate([np.broadcast_to(fixed, (len(rates), *fixed.shape)), products], axis=1)
    sizes = np.abs(terms).max(axis=2, keepdims=True)
    terms *= root / np.where(sizes > 0.0, sizes, 1.0)
    normal = terms @ terms.transpose(0, 2, 1) + 1e-12 * len(y) * np.eye(terms.shape[1])
    slopes = np.linalg.solve(normal, (terms @ (root * y))[:, :, None])
    errors = ((root * y - (slopes.transpose(0, 2, 1) @ terms)[:, 0]) ** 2).sum(axis=1)
    return np.where(np.isfinite(errors), errors, np.inf)


def _products(inputs: dict[str, Row], name: str, kinds: tuple[str, ...], rate: float) -> tuple[list[str], Row, Row]:
    """The terms of such a sum: as those of `_terms`."""
    number = f"{rate:.{DIGITS}g}"
    functions = {f"{kind}({number}*{name})": _FUNCTIONS[kind](float(number) * inputs[name]) for kind in kinds}
    terms = {**inputs, **functions}
    terms |= {f"{factor}*{text}": x * values for text, values in functions.items() for factor, x in inputs.items()}
    return _scaled(terms)


def _scaled(terms: dict[str, Row]) -> tuple[list[str], Row, Row]:
    """Names of terms, their values `(num_terms, num_points)` over their sizes, and these."""
    sizes = np.array([np.abs(values).max() or 1.0 for values in terms.values()])
    return [*terms], np.array([*terms.values()]) / sizes[:, None], sizes


def least(function: Callable[[Row], Row], low: float, high: float) -> float:
    """Find the minimum of a unimodal function between these. It takes many numbers at once."""
    for _ in range(REFINEMENTS):
        tried = np.linspace(low, high, NUM_TRIED)
        best = int(np.argmin(function(tried)))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, NUM_TRIED - 1)]
    return float(0.5 * (low + high))


def _sums(link: _Link, terms: tuple[list[str], Row, Row], y: Row, root: Row, most: int) -> list[str]:
    """The best sum of one term, with one more, and so on up to the most terms.

    root: `(num_points,)` roots of the weights.
    """
    names, library, sizes = terms
    start = eta = link.function(y if link.is_linear else np.maximum(y, LEAST))
    error = float(np.sum((root * (y - np.average(y, weights=root**2))) ** 2))
    chosen: list[int] = []
    texts: list[str] = []
    for _ in range(min(MAX_TERMS, most, len(names), len(y) // 4)):
        chosen.append(_next_term(library, chosen, link, eta, y, root))
        coefficients, eta, left = _fitted(library[chosen], link, eta if texts else start, y, root)
        if not left < error * len(y) ** (-2.0 / len(y)):
            break
        error = left
        least_part = DUST * np.abs(coefficients[1:]).max()
        pairs = zip(coefficients[1:], chosen, strict=True)
        parts = [f"{c / sizes[i]:.{DIGITS}g}*{names[i]}" for c, i in pairs if abs(c) > least_part and np.isfinite(c / sizes[i])]
        texts.append(" + ".join([f"{coefficients[0]:.{DIGITS}g}"] * link.has_constant + parts))
    return [*dict.fromkeys(texts)]


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
    """Writes an exponent that is not an integer as a constant, so that tuning can change it."""
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
