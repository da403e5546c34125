"""First formulas for a target by the argument of an outer function: a factor and a link undo the target.

Owns the ways to undo the target - log y, exp y, 1/y, powers of y, of y itself, of y less a possible limit, or over inputs -
and for each the one to three terms that explain what is left (sure independence screening), or one term of each input. Errors
are weighed so that they are those of y. Knows nothing of programs; the terms are those of `evo.regression.terms`.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.regression.guesses import least, spread_rows
from evo.regression.terms import MOST_EXPONENT, POWERS, Row, Term, library, plain_parts, raised, smallest

MAX_ROWS, MAX_INPUTS = 64, 4  # that are looked at
NUM_TARGETS = 20  # that pairs of terms are looked for, beside those of y itself
NUM_FIRST, NUM_PAIRS = 24, 4  # first terms of these; pairs of a target that a third term joins
NUM_REFINED, NUM_KEPT = 48, 96  # formulas with one, two and three terms whose constants are refined, each; that are handed over
NUM_SEPARABLE, NUM_SWEEPS, NUM_LIKELY = 8, 4, 5  # sums of a term of each input; passes over their terms; choices for one
LEAST_VALUE = 1e-100  # of a target, where errors are relative
FREE = 3.0  # times the error that a term without a constant may have beside one with it
NUM_ALIKE, NUM_COMMON = 4, 3  # formulas of a target that are refined, with as many terms; links that most laws have
CHUNK, STRIP = 64, 512  # targets that terms are compared with in one go; terms whose values a cache holds

DIGITS = 7  # of numbers
LEAST_LEFT, LEAST_SEEN = 1e-10, 1e-5  # of a term's square, given the first; in float32
EXACT, LETTER = 1e-12, 0.02  # share of the variance that is rounding; decades that a letter is worth
_OUTSIDE = (0.003, 0.03, 0.2, 1.0)  # of the target's range, beyond its ends: where it may tend to


@dataclass(frozen=True)
class _Link:
    """text: with {} for the argument of the function. inverse: that argument for a positive target, and its derivative. is_power:
    a factor inside is one outside.
    """

    text: str
    inverse: Callable[[Row], tuple[Row, Row]]
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


def _power_link(power: float) -> _Link:
    return _Link(raised("({})", power), lambda z: (z ** (1.0 / power), z ** (1.0 / power - 1.0) / power))


_MORE_LINKS = tuple(_power_link(power) for power in (-4.0, -1.5, -0.3, 0.3, 1.5, 4.0))  # tuning finds the exponent
_RATES = (-8.0, -3.0, -1.0, 1.0, 3.0, 8.0)  # of powers of two of a target, over its range
_USUAL_RATES = tuple(sign * rate * math.log2(10.0) for rate in (math.log10(math.e), 1.0, 0.1, 0.05) for sign in (1.0, -1.0))


@dataclass(frozen=True)
class _Target:
    """Target of the terms. text: of the formula, with {} for their sum. values, weights: at the points. is_of_y: y is
    itself under the link. is_scaled: their sum may have any scale under the link.
    """

    link: _Link
    text: str
    values: Row
    weights: Row
    is_of_y: bool
    is_scaled: bool = True


def inverses(
    columns: dict[str, Row], target: Row, weights: Row | None = None, is_broad: bool = True, until_s: float = math.inf
) -> list[str]:
    """Formulas in the notation of `evo.language.infix`, up to offset and scale, the best first. Arguments are those of
    `evo.regression.guesses.guesses`.

    Args:
        is_broad: whether to look for terms and links that few laws have, too.
        until_s: deadline by `time.monotonic`; then it returns the best so far.
    """
    rows = spread_rows(len(target), MAX_ROWS)
    y = target[rows] / np.abs(target).max()
    if not np.ptp(y):  # all differences lie between these rows
        return []
    weights = np.ones(len(y)) if weights is None else weights[rows] / weights.max()
    # Sums of the largest and the least targets may be the former; then errors are relative, and nothing is added.
    is_relative = abs(np.sign(y).sum()) == len(y) and np.abs(y).min() < np.finfo(np.float64).eps
    if is_relative:
        weights = weights / np.maximum(np.abs(y), LEAST_VALUE) ** 2
    with np.errstate(all="ignore"):
        correlations = {name: abs(np.nan_to_num(np.corrcoef(values[rows], y)[0, 1])) for name, values in columns.items()}
        inputs = {name: columns[name][rows] for name in sorted(correlations, key=lambda name: -correlations[name])[:MAX_INPUTS]}
        unit = 0.0 if is_relative else 1.0 / float(np.abs(target).max())
        targets = [*_targets(inputs, y, weights, is_broad, unit)]
        variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights) * weights.sum()
        plain = {raised(name, power) for name in inputs for power in (-2.0, -1.0, 1.0, 2.0)}
        formulas = sorted(_explained([*library(inputs, is_broad)], inputs, plain, targets, variance, until_s))
    return [text for _, text in formulas[:NUM_KEPT]]


def _targets(inputs: dict[str, Row], y: Row, weights: Row, is_broad: bool, unit: float) -> Iterator[_Target]:
    """Yield ways to undo the target: less a possible limit, over a power of an input or two inputs, under a link.

    unit: 1, in units of y; 0: no limit, and nothing else that y is less.
    """
    range_ = np.ptp(y)
    factors: list[tuple[str, Row]] = [("{}", np.ones_like(y))]
    positive = {name: x for name, x in inputs.items() if (x > 0.0).all()}
    factors += [("({})*" + raised(name, power), x**power) for name, x in positive.items() for power in POWERS]
    factors += [("({})*" + name, x) for name, x in inputs.items() if name not in positive and (x != 0.0).all()]
    num_simple = len(factors)  # that stand over any link
    for (first, x), (second, z) in itertools.permutations(positive.items(), 2):
        factors += [("({})*" + f"{first}*{second}", x * z)] * (first < second) + [("({})*" + f"{first}/{second}", x / z)]
    for text, x in plain_parts(inputs) if is_broad else ():
        factors += [("({})*" + raised(text, power), x**power) for power in (-1.0, 1.0) if (x != 0.0).all()]
    for number, (text, factor) in enumerate(factors):
        moved = [y]
        if text == "{}" and unit:
            moved += [unit - y] if 0.0 <= y.min() < y.max() < unit else []
            for part in _OUTSIDE if is_broad else _OUTSIDE[1:2]:
                moved += [y - y.min() + part * range_, y.max() + part * range_ - y]
        for z in moved:
            over = z / factor
            over = -over if (over < 0.0).all() else over
            links = _LINKS[: len(_LINKS) if number < num_simple else NUM_COMMON] if (over > 0.0).all() else _LINKS[:1]
            if is_broad and text == "{}":
                links += _MORE_LINKS if len(links) > 1 else ()
                links += _log_links(y, unit) if z is y and unit else ()
            for link in links:
                if link.text == "{}" and z is not moved[0]:
                    continue
                values, slope = link.inverse(over)
                shares = weights * (factor / slope) ** 2
                if _is_usable(values, shares):
                    yield _Target(link, text.replace("{}", link.text), values, shares, z is y and text == "{}")
                    if len(inputs) > 2 and z is y and text == "{}" and not link.is_power:
                        # Small values of exact data tell as much as large ones.
                        yield _Target(link, link.text, values, np.full_like(y, shares.mean()), is_of_y=True)
    for name, x in inputs.items() if is_broad and unit else ():
        rest = y - unit * x
        for link in (*(_LINKS[1:] if (rest > 0.0).all() else ()), *_log_links(rest, unit)) if np.ptp(rest) else ():
            values, slope = link.inverse(rest)
            shares = weights / slope**2
            if _is_usable(values, shares):
                yield _Target(link, f"{link.text} + {unit!r}*{name}", values, shares, is_of_y=False, is_scaled=False)


def _is_usable(values: Row, shares: Row) -> bool:
    """Return whether they are values to explain, and weights."""
    return bool(np.isfinite(values).all() and np.ptp(values) > 0.0 and np.isfinite(shares).all() and shares.sum() > 0.0)


def _log_links(y: Row, unit: float) -> tuple[_Link, ...]:
    """Logarithms by the rise of the target as their argument doubles, the usual ones and decibels included."""

    def link(rate: float) -> _Link:
        def inverse(z: Row) -> tuple[Row, Row]:
            values = np.exp2(rate * (z - z.max() if rate > 0.0 else z - z.min()))
            return values, rate * np.log(2.0) * values

        return _Link(f"{1.0 / rate:.9g}*log2({{}})", inverse)

    usual = (rate / unit for rate in _USUAL_RATES)
    return tuple(
        link(rate) for rate in (*(rate / float(np.ptp(y)) for rate in _RATES), *usual) if abs(rate) * np.ptp(y) < MOST_EXPONENT
    )


def _explained(
    terms: list[Term],
    names: Collection[str],
    plain_texts: Collection[str],
    targets: list[_Target],
    variance: float,
    until_s: float,
) -> Iterator[tuple[float, str]]:
    """Yields formulas with their scores, lower is better: one term for each target; for the best targets two, and a third without
    a constant. names: of inputs. plain_texts: terms that may be the first of two, however little they explain alone.
    """
    rows = [(term, constant) for term in terms for constant in term.grid]
    if not targets:
        return
    values, end = np.empty((len(rows), len(targets[0].values))), 0
    for term in terms:
        values[end : (end := end + len(term.grid))] = term.values(np.array(term.grid)[:, None])
    is_usable = np.isfinite(values).all(axis=1) & (np.ptp(values, axis=1) > 0.0)
    rows = [row for row, usable in zip(rows, is_usable, strict=True) if usable]
    if not rows:
        return
    values = values[is_usable] / np.abs(values[is_usable]).max(axis=1, keepdims=True)
    values -= values.mean(axis=1, keepdims=True)
    values /= np.abs(values).max(axis=1, keepdims=True)
    coarse = np.ascontiguousarray(values.T, np.float32)  # that all targets are compared with
    coarse_squares = coarse**2
    frees = np.flatnonzero([len(term.grid) == 1 for term, _ in rows])
    plain = [row for row, (term, _) in enumerate(rows) if term.text in plain_texts]
    inputs = {term: term.inputs(names) for term in terms}
    groups = [np.flatnonzero([inputs[term] == [name] for term, _ in rows]) for name in names]
    groups = [group for group in groups if len(group)]  # of inputs that are not the same everywhere
    # Of one, two and three terms, and of one of each input.
    sums: list[dict[tuple[int, str], tuple[float, list[int]]]] = [{}, {}, {}, {}]
    best: list[tuple[float, int, NDArray[np.intp]]] = []
    for start in range(0, len(targets), CHUNK):
        if best and time.monotonic() >= until_s:
            break
        chunk = targets[start : start + CHUNK]
        shares = np.array([target.weights / target.weights.sum() for target in chunk])
        wanted = np.array([target.values for target in chunk])
        wanted -= (shares * wanted).sum(axis=1)[:, None]
        rests = (shares * wanted**2).sum(axis=1)
        wanted /= np.sqrt(rests)[:, None]
        weighted, by = shares.astype(np.float32), (shares * wanted).astype(np.float32)
        squares = weighted @ coarse_squares
        left = squares - (weighted @ coarse) ** 2
        explained = _gain(by @ coarse, left, LEAST_SEEN * squares)
        # Gain of a second term over the first.
        first = values[explained.argmax(axis=1)]
        first = first - (first * shares).sum(axis=1)[:, None]
        square = _above((first**2 * shares).sum(axis=1)[:, None], 0.0)
        freely = left - ((first * shares).astype(np.float32) @ coarse) ** 2 / square.astype(np.float32)
        rest_of = wanted - (first * shares * wanted).sum(axis=1)[:, None] / square * first
        further = _gain((shares * rest_of).astype(np.float32) @ coarse, freely, LEAST_SEEN * squares).max(axis=1)
        for index, gain in enumerate(explained, start):
            order = smallest(-gain, NUM_FIRST)
            share = float(rests[index - start] * targets[index].weights.sum() / variance)
            best.append((share * float(1.0 - gain[order[0]] - further[index - start]), index, order))
            alike = dict[str, int]()
            for row in order.tolist():
                if alike.setdefault(rows[row][0].text, row) == row and len(alike) == NUM_ALIKE:
                    break
            sums[0] |= {(index, text): (share * (1.0 - float(gain[row])), [row]) for text, row in alike.items()}
    best.sort(key=lambda entry: (not targets[entry[1]].is_of_y, entry[0]))
    num_own = sum(target.is_of_y for target in targets)
    centred, (squares, of_t) = np.empty_like(values), np.empty((2, len(values)))
    for _, index, firsts in best[: num_own + NUM_TARGETS]:
        if time.monotonic() >= until_s:
            break
        order = np.append(firsts, plain)
        w, root, total = targets[index].weights, np.sqrt(targets[index].weights), targets[index].weights.sum()
        t, means = (targets[index].values - targets[index].values @ w / total) * root, values @ w / total
        first = (values[order] - means[order, None]) * root
        first_squares, of_first = _above(np.einsum("ij,ij->i", first, first), 0.0), first @ t
        gain = np.empty((len(values), len(order)))
        for start in range(0, len(values), STRIP):
            strip = slice(start, start + STRIP)
            part = np.multiply(np.subtract(values[strip], means[strip, None], out=centred[strip]), root, out=centred[strip])
            squares[strip], of_t[strip], along = np.einsum("ij,ij->i", part, part), part @ t, part @ first.T
            rest, left = of_t[strip, None] - along * (of_first / first_squares), squares[strip, None] - along**2 / first_squares
            gain[strip] = _gain(rest, left, LEAST_LEFT * squares[strip, None]) + of_first**2 / first_squares
        if len(groups) > 2:
            left_over, each = _of_each_group(groups, centred, t)
            sums[3][index, ""] = left_over / float(t @ t), each
        free, pairs = centred[frees], list[tuple[float, str, list[int]]]()
        for flat in smallest(-gain, 2 * NUM_FIRST).tolist():
            pair = [int(order[flat % len(order)]), flat // len(order)]
            key = "+".join(sorted(rows[row][0].text for row in pair))
            pairs.append(((float(t @ t) - gain.flat[flat]) / variance, key, pair))
            sums[1].setdefault((index, key), (pairs[-1][0], pair))
        if not len(frees):
            continue
        bases = np.linalg.qr(centred[[pair for *_, pair in pairs[:NUM_PAIRS]]].swapaxes(1, 2))[0]
        among = (free @ np.concatenate(bases, axis=1)).reshape(len(free), len(bases), -1)
        for (worth, key, pair), basis, part in zip(pairs, bases, np.moveaxis(among, 1, 0), strict=False):
            rest, left = of_t[frees] - part @ (basis.T @ t), squares[frees] - (part**2).sum(axis=1)
            more = _gain(rest, left, LEAST_LEFT * squares[frees])
            third = int(more.argmax())
            sums[2][index, f"{key}+{third}"] = worth - float(more[third]) / variance, [*pair, int(frees[third])]
    for candidates in sums:
        ranked = sorted(candidates.items(), key=lambda item: item[1][0])
        counts: dict[int, int] = {}
        num = 0
        for (index, _), (_, chosen) in ranked:
            counts[index] = counts.get(index, 0) + 1
            if counts[index] > NUM_ALIKE:
                continue
            most = NUM_SEPARABLE if candidates is sums[3] else NUM_REFINED
            if (num := num + 1) > most or (num > 1 and time.monotonic() >= until_s):
                break
            choices = groups if candidates is sums[3] else []
            left_over, text = _refined(targets[index], [rows[row] for row in chosen], partial(_likely, rows, values, choices))
            if np.isfinite(left_over):
                yield np.log10(max(left_over / variance, EXACT)) + LETTER * len(text), text


def _of_each_group(groups: list[NDArray[np.intp]], rows: Row, t: Row) -> tuple[float, list[int]]:
    """The square that the best sum of a row of each group leaves of t, and these rows, by backfitting (Hastie and Tibshirani
    1986).
    """
    chosen: dict[int, int] = {}
    left = math.inf
    for _ in range(NUM_SWEEPS):
        before = dict(chosen)
        while len(chosen) < len(groups):
            left, row, k = min((*_best_row(groups[k], rows, t, chosen), k) for k in range(len(groups)) if k not in chosen)
            chosen[k] = row
        for k in range(len(groups)):
            del chosen[k]
            left, chosen[k] = _best_row(groups[k], rows, t, chosen)
        if chosen == before:
            break
    return left, [chosen[k] for k in range(len(groups))]


def _best_row(group: NDArray[np.intp], rows: Row, t: Row, others: dict[int, int]) -> tuple[float, int]:
    basis = np.linalg.qr(rows[[*others.values()]].T)[0] if others else np.zeros((len(t), 0))
    rest, gain = _gains(rows[group], t, basis)
    return float(rest @ rest - gain.max()), int(group[gain.argmax()])


def _gains(rows: Row, t: Row, basis: Row) -> tuple[Row, Row]:
    """The rest of t beside an orthonormal basis, and the squares of it that rows explain, each by itself."""
    squares, rest = (rows**2).sum(axis=1), t - basis @ (basis.T @ t)
    return rest, _gain(rows @ rest, squares - ((rows @ basis) ** 2).sum(axis=1), LEAST_LEFT * squares)


def _above(squares: NDArray[Any], least: Any) -> NDArray[Any]:
    """Squares, infinite where they do not exceed rounding, which leaves terms without a gain there."""
    return np.where(squares > least, squares, np.inf)


def _gain(products: NDArray[Any], left: NDArray[Any], least: NDArray[Any]) -> NDArray[Any]:
    """The squares that terms explain by their products with the target and by what is left of their own squares."""
    return np.asarray(products**2 / _above(left, least))


def _likely(
    rows: list[tuple[Term, float]], values: Row, groups: list[NDArray[np.intp]], position: int, root: Row, wanted: Row, basis: Row
) -> list[tuple[Term, float]]:
    """The rows of a group that explain most of what a basis leaves, one for each of a few terms."""
    if not groups:
        return []
    first: dict[str, tuple[Term, float]] = {}
    for row in groups[position][np.argsort(-_gains(values[groups[position]] * root, wanted, basis)[1], kind="stable")].tolist():
        if first.setdefault(rows[row][0].text, rows[row]) is rows[row] and len(first) == NUM_LIKELY:
            break
    return [*first.values()]


def _refined(
    target: _Target, chosen: list[tuple[Term, float]], likely: Callable[..., list[tuple[Term, float]]]
) -> tuple[float, str]:
    """The weighted square that the best sum of terms leaves, and its formula, with the best constants near the given ones.

    likely: as of `_likely`; terms that may take a term's place.
    """
    root = np.sqrt(target.weights)
    wanted = target.values * root
    columns = [np.ones_like(root), *(term.values(number) for term, number in chosen)]
    num_free = sum(len(term.grid) > 1 for term, _ in chosen)
    near, chosen = chosen, list(chosen)
    for position in [*range(len(chosen))] * (NUM_SWEEPS if num_free > 1 and len(chosen) > 2 else 1):
        rest = [column * root for number, column in enumerate(columns) if number != position + 1]
        basis, tried = np.linalg.qr(np.stack(rest, axis=1))[0], list[tuple[float, int, float]]()
        options = likely(position, root, wanted, basis) or [near[position]]
        for k, (term, constant) in enumerate(options):
            error, at, number = partial(_errors, term, root, basis, wanted), term.grid.index(constant), constant
            if len(term.grid) > 1:
                number = least(error, term.grid[max(at - 1, 0)], term.grid[min(at + 1, len(term.grid) - 1)])
                number = float(f"{number:.{DIGITS}g}")
            left_over = float(error(np.array([number]))[0]) if len(options) > 1 else 0.0
            tried.append((left_over * (FREE if len(term.grid) > 1 else 1.0), k, number))
        _, k, number = min(tried)
        near[position], chosen[position] = options[k], (options[k][0], number)
        columns[position + 1] = options[k][0].values(number)
    matrix = np.stack(columns, axis=1)
    if not np.isfinite(matrix).all():
        return np.inf, ""
    sizes = np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float64).tiny)
    slopes = np.linalg.lstsq(matrix / sizes * root[:, None], wanted, rcond=1e-13)[0] / sizes
    predicted = matrix @ slopes
    left = float(((predicted - target.values) ** 2) @ target.weights)
    if target.is_scaled and target.link.is_power:
        slopes = slopes / (np.abs(predicted).max() or 1.0)
    elif target.is_scaled:
        slopes[0] -= predicted.max()
    parts = [
        f"{slope:.{DIGITS}g}*{term.text.format(repr(number))}" for slope, (term, number) in zip(slopes[1:], chosen, strict=True)
    ]
    return left, target.text.format(" + ".join([f"{slopes[0]:.{DIGITS}g}", *parts]))


def _errors(term: Term, root: Row, basis: Row, wanted: Row, constants: Row) -> Row:
    """The squares that the best sums of an orthonormal basis and a term leave, for each of several constants of the term.

    root, wanted: the roots of the weights, and the target times these.
    """
    values = np.atleast_2d(term.values(constants[:, None])) * root
    values = values - (values @ basis) @ basis.T
    left = wanted - basis @ (basis.T @ wanted)
    slopes = (values @ left) / (values**2).sum(axis=1)
    errors = ((left - slopes[:, None] * values) ** 2).sum(axis=1)
    return np.where(np.isfinite(errors), errors, np.inf)
