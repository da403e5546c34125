"""First formulas for a target by what would have to stand under a function: the target is undone by a factor and a link.

Owns a library of terms with one inner constant, and for each way to undo the target - y, log y, 1/y, sqrt y, y² and others, of y
itself or over a power of an input - the one or two terms that explain what is left (sure independence screening). Errors are
weighed so that they are those of y. Knows nothing of programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.regression.guesses import least

Row = NDArray[np.float64]  # a number for each point

MAX_ROWS, MAX_INPUTS, MAX_PRODUCTS = 64, 4, 36  # that are looked at; products of inputs that functions are of
NUM_TARGETS, NUM_FIRST = 20, 24  # that pairs of terms are looked for, beside those of y itself; first terms of these
NUM_REFINED, NUM_KEPT = (
    64,
    16,
)  # formulas whose constant is refined, of these with one term and with two; and that are handed over

DIGITS = 7  # of numbers
MOST_EXPONENT = 60.0  # of a power of two
LEAST_LEFT = 1e-10  # of a term's square, given the first
EXACT, LETTER = 1e-12, 0.02  # share of the variance that is rounding; decades that a letter is worth
_POWERS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0)
_RATES = np.exp2(np.linspace(-1.0, 5.0, 13))
_SHIFTS = np.exp2(np.linspace(-6.0, 4.0, 14))  # of an input's range, beyond its ends
_OUTSIDE = 0.03  # of the target's range, beyond its ends: where it may tend to


@dataclass(frozen=True)
class _Term:
    """text: with {} for its constant, if it has one. of: the values for a constant, or for a column of constants, a row for each
    one that it has. grid: of constants to try, in order.
    """

    text: str
    of: Callable[[Any], Row]
    grid: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class _Link:
    """text: with {} for what stands under the function. of: that of a positive target, and its derivative. is_power: a factor
    inside is one outside.
    """

    text: str
    of: Callable[[Row], tuple[Row, Row]]
    is_power: bool = True


_LINKS = (
    _Link("{}", lambda z: (z, np.ones_like(z))),
    _Link("exp2({})", lambda z: (np.log2(z), 1.0 / z), is_power=False),
    _Link("1/({})", lambda z: (1.0 / z, z**-2)),
    _Link("sqrt({})", lambda z: (z**2, 2.0 * z)),
    _Link("1/sqrt({})", lambda z: (z**-2, 2.0 * z**-3)),
    _Link("({})**2", lambda z: (np.sqrt(z), 0.5 / np.sqrt(z))),
    _Link("1/({})**2", lambda z: (1.0 / np.sqrt(z), 0.5 * z**-1.5)),
)


@dataclass(frozen=True)
class _Target:
    """Target of the terms. text: of the formula, with {} for their sum. values, weights: at the points. is_of_y: y is
    itself under the link.
    """

    link: _Link
    text: str
    values: Row
    weights: Row
    is_of_y: bool


def inverses(columns: dict[str, Row], target: Row, weights: Row | None = None) -> list[str]:
    """Formulas in the notation of `evo.language.infix`, up to offset and scale, the best first. Arguments are those of
    `evo.regression.guesses.guesses`.
    """
    rows = np.arange(min(len(target), MAX_ROWS)) * len(target) // min(len(target), MAX_ROWS)
    y = target[rows] / np.abs(target).max()
    weights = np.ones(len(y)) if weights is None else weights[rows] / weights.max()
    with np.errstate(all="ignore"):
        told = {name: abs(np.nan_to_num(np.corrcoef(values[rows], y)[0, 1])) for name, values in columns.items()}
        inputs = {name: columns[name][rows] for name in sorted(told, key=lambda name: -told[name])[:MAX_INPUTS]}
        targets = [*_targets(inputs, y, weights)]
        variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights) * weights.sum()
        found = sorted(_explained([*_library(inputs)], {*inputs}, targets, variance))
    return [text for _, text in found[:NUM_KEPT]]


def _library(inputs: dict[str, Row]) -> Iterator[_Term]:
    for text, u in itertools.islice(_products(inputs), MAX_PRODUCTS):
        own = [*_functions(text, u)]
        yield from own
        for name, x in inputs.items() if text in inputs else ():
            if name != text:
                yield from (replace(term, text=f"{name}*{term.text}", of=partial(_times, x, term.of)) for term in own)


def _times(x: Row, of: Callable[[Any], Row], constant: Any) -> Row:
    return x * of(constant)


def _products(inputs: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    """Products and quotients of inputs, the shortest first."""
    powers = sorted(itertools.product((1, 0, -1), repeat=len(inputs)), key=lambda each: sum(map(abs, each)))
    for exponents in powers:
        chosen = [(name, power) for name, power in zip(inputs, exponents, strict=True) if power]
        if not any(power > 0 for _, power in chosen):
            continue
        chosen.sort(key=lambda each: -each[1])
        text = chosen[0][0] + "".join(f"{'*' if power > 0 else '/'}{name}" for name, power in chosen[1:])
        yield text if len(chosen) == 1 else f"({text})", np.prod([inputs[name] ** float(power) for name, power in chosen], axis=0)


def _functions(text: str, u: Row) -> Iterator[_Term]:
    """Functions of a value with at most one constant."""
    low, high = float(u.min()), float(u.max())
    span = high - low
    if not 0.0 < span < np.inf:
        return
    for power in _POWERS:
        if low > 0.0 or power in (1.0, 2.0, 3.0):
            yield _Term(_power(text, power), partial(_to_the, u, power))
    if low > 0.0:
        yield _Term(f"log2({text})", lambda _: np.log2(u))
    most = MOST_EXPONENT / max(abs(low), abs(high))
    rates = [float(rate) / span for rate in _RATES if rate / span < most]
    above, below = (_SHIFTS * span - low).tolist(), (-high - _SHIFTS * span).tolist()
    for sign in (1.0, -1.0):
        yield _Term(f"exp2({{}}*{text})", lambda rate: np.exp2(rate * u), tuple(sign * rate for rate in rates))
    for shifts in (above, below):
        yield _Term(f"1/({text} + {{}})", lambda shift: 1.0 / (u + shift), tuple(shifts))
    yield _Term(f"log2({text} + {{}})", lambda shift: np.log2(u + shift), tuple(above))


def _to_the(u: Row, power: float, _: float) -> Row:
    return np.asarray(u**power)


def _power(text: str, power: float) -> str:
    if power == 1.0:
        return text
    return f"{text}**{power:.0f}" if power in (2.0, 3.0) else f"exp2({power}*log2({text}))"


def _targets(inputs: dict[str, Row], y: Row, weights: Row) -> Iterator[_Target]:
    """Yield ways to undo the target: less where it may tend to, over a power of an input or two inputs, under a link."""
    margin = _OUTSIDE * np.ptp(y)
    factors = [("{}", np.ones_like(y))]
    positive = {name: x for name, x in inputs.items() if (x > 0.0).all()}
    factors += [("({})*" + _power(name, power), x**power) for name, x in positive.items() for power in _POWERS]
    factors += [("({})*" + name, x) for name, x in inputs.items() if name not in positive and (x != 0.0).all()]
    for (one, x), (two, z) in itertools.permutations(positive.items(), 2):
        factors += [("({})*" + f"{one}*{two}", x * z)] * (one < two) + [("({})*" + f"{one}/{two}", x / z)]
    for text, factor in factors:
        moved = [y] if text != "{}" else [y, y - y.min() + margin, y.max() + margin - y]
        for z in moved:
            over = z / factor
            over = -over if (over < 0.0).all() else over
            for link in _LINKS if (over > 0.0).all() else _LINKS[:1]:
                if link.text == "{}" and z is not moved[0]:
                    continue
                values, slope = link.of(over)
                shares = weights * (factor / slope) ** 2
                if np.isfinite(values).all() and np.isfinite(shares).all() and shares.sum() > 0.0:
                    yield _Target(link, text.replace("{}", link.text), values, shares, z is y and text == "{}")


def _explained(
    library: list[_Term], plain_texts: Collection[str], targets: list[_Target], variance: float
) -> Iterator[tuple[float, str]]:
    """Formulas with what each is worth, the least the best: of targets by one term, and of the best targets by two, one of which
    has a constant at most. plain_texts: of terms that the first of two may be, however little it explains by itself.
    """
    rows = [(term, constant) for term in library for constant in term.grid]
    if not rows or not targets:
        return
    count = len(targets[0].values)
    values = np.concatenate([np.broadcast_to(term.of(np.array(term.grid)[:, None]), (len(term.grid), count)) for term in library])
    is_usable = np.isfinite(values).all(axis=1) & (np.ptp(values, axis=1) > 0.0)
    rows = [row for row, usable in zip(rows, is_usable, strict=True) if usable]
    values = values[is_usable] / np.abs(values[is_usable]).max(axis=1, keepdims=True)
    is_free = np.array([len(term.grid) == 1 for term, _ in rows], np.bool_)
    one: dict[tuple[int, str], tuple[float, list[tuple[_Term, float]]]] = {}
    two = dict(one)
    best: list[tuple[float, int, NDArray[np.intp]]] = []
    shares = np.array([target.weights for target in targets])
    wanted = np.array([target.values for target in targets])
    totals, means = shares.sum(axis=1), (shares * wanted).sum(axis=1) / shares.sum(axis=1)
    squares = values**2 @ shares.T
    left = squares - (values @ shares.T) ** 2 / totals
    explained = np.where(left > LEAST_LEFT * squares, (values @ (shares * (wanted - means[:, None])).T) ** 2 / left, 0.0)
    explained = np.nan_to_num(explained)
    # What a second term adds to the first.
    first = values[explained.argmax(axis=0)]
    first = first - ((first * shares).sum(axis=1) / totals)[:, None]
    square = (first**2 * shares).sum(axis=1)
    along = values @ (first * shares).T
    rest_of = wanted - means[:, None] - ((first * shares * wanted).sum(axis=1) / square)[:, None] * first
    freely = left - along**2 / square
    further = np.where(freely > LEAST_LEFT * squares, (values @ (shares * rest_of).T) ** 2 / freely, 0.0)
    further = np.nan_to_num(further).max(axis=0)
    plain = [row for row, (term, _) in enumerate(rows) if term.text in plain_texts]
    for place, gain in enumerate(explained.T):
        order = np.argpartition(-gain, min(NUM_FIRST, len(gain) - 1))[:NUM_FIRST]
        order = order[np.argsort(-gain[order])]
        rest = float(shares[place] @ (wanted[place] - means[place]) ** 2)
        best.append(((rest - gain[order[0]] - further[place]) / variance, place, np.append(order, plain)))
        for row in order.tolist():
            one.setdefault((place, rows[row][0].text), ((rest - gain[row]) / variance, [rows[row]]))
    best.sort(key=lambda each: (not targets[each[1]].is_of_y, each[0]))
    num_own = sum(target.is_of_y for target in targets)
    for _, place, order in best[: num_own + NUM_TARGETS]:
        w, total = targets[place].weights, targets[place].weights.sum()
        t = targets[place].values - targets[place].values @ w / total
        centred = values - (values @ w / total)[:, None]
        first, free = centred[order], centred[is_free]
        own, along = first**2 @ w, (free * w) @ first.T
        left = (free**2 @ w)[:, None]
        rest = ((free * w) @ t)[:, None] - along * ((first * w) @ t) / own
        gain = np.where(left - along**2 / own > LEAST_LEFT * left, rest**2 / (left - along**2 / own), 0.0)
        gain = np.nan_to_num(gain + ((first * w) @ t) ** 2 / own)
        frees = np.flatnonzero(is_free)
        for flat in np.argsort(-gain, axis=None)[: 2 * NUM_FIRST].tolist():
            second, column = divmod(flat, len(order))
            pair = [rows[order[column]], rows[frees[second]]]
            key = place, "+".join(sorted(term.text for term, _ in pair))
            two.setdefault(key, ((float((t * t) @ w) - gain[second, column]) / variance, pair))
    for found in (one, two):
        for (place, _), (_, chosen) in sorted(found.items(), key=lambda each: each[1][0])[:NUM_REFINED]:
            left_over, text = _refined(targets[place], chosen)
            if np.isfinite(left_over):
                yield np.log10(max(left_over / variance, EXACT)) + LETTER * len(text), text


def _refined(target: _Target, chosen: list[tuple[_Term, float]]) -> tuple[float, str]:
    """The weighted square that the best sum of terms leaves, and its formula, with the best constant near the given one."""
    root = np.sqrt(target.weights)
    wanted = target.values * root
    columns = [np.ones_like(root), *(term.of(number) for term, number in chosen)]
    numbers = [number for _, number in chosen]
    for place, (term, constant) in enumerate(chosen):
        if len(term.grid) == 1:
            continue
        others = [column * root for number, column in enumerate(columns) if number != place + 1]
        error = partial(_errors, term, root, np.linalg.qr(np.stack(others, axis=1))[0], wanted)
        at = term.grid.index(constant)
        number = least(error, term.grid[max(at - 1, 0)], term.grid[min(at + 1, len(term.grid) - 1)])
        numbers[place] = float(f"{number:.{DIGITS}g}")
        columns[place + 1] = term.of(numbers[place])
    matrix = np.stack(columns, axis=1)
    if not np.isfinite(matrix).all():
        return np.inf, ""
    slopes = np.linalg.lstsq(matrix * root[:, None], wanted, rcond=1e-13)[0]
    said = matrix @ slopes
    left = float(((said - target.values) ** 2) @ target.weights)
    if target.link.is_power:
        slopes = slopes / (np.abs(said).max() or 1.0)
    else:
        slopes[0] -= said.max()
    parts = [
        f"{slope:.{DIGITS}g}*{term.text.format(repr(number))}"
        for slope, (term, _), number in zip(slopes[1:], chosen, numbers, strict=True)
    ]
    return left, target.text.format(" + ".join([f"{slopes[0]:.{DIGITS}g}", *parts]))


def _errors(term: _Term, root: Row, basis: Row, wanted: Row, constants: Row) -> Row:
    """The squares that the best sums of an orthonormal basis and a term leave, for each of some constants of the term.

    root, wanted: the roots of the weights, and the target times these.
    """
    values = term.of(constants[:, None]) * root
    values = values - (values @ basis) @ basis.T
    left = wanted - basis @ (basis.T @ wanted)
    slopes = (values @ left) / (values**2).sum(axis=1)
    errors = ((left - slopes[:, None] * values) ** 2).sum(axis=1)
    return np.where(np.isfinite(errors), errors, np.inf)
