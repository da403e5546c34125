"""Terms that formulas are sums of: functions of products of inputs, with at most one constant inside.

Owns that library. Knows nothing of targets and programs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]  # a number for each point

MAX_PRODUCTS, MAX_FACTORS = 36, 40  # of inputs that functions are of; that plain values are multiplied by
MOST_EXPONENT = 60.0  # of a power of two
GROWTH = (0.3, 30.0)  # range of an exponent that an input or a product is as it stands
MOST_ANGLE, MOST_RATE = 6.5, 0.5  # radians; interest
ALIKE = 30.0  # largest ratio of the sizes of two addends
LOG2_E = 1.442695
STRIP = 64  # values whose least is compared first
POWERS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0)
_EXPONENTS = np.arange(1, 33) / 8.0  # of powers
_RATES = np.exp2(np.linspace(-1.0, 5.0, 13))
_THRESHOLDS = np.linspace(0.05, 0.95, 19)  # of an input's range, from its lower end
_CENTRES = np.linspace(1.1, -0.1, 13)  # of a parabola, of an input's range, from its lower end
_SHIFTS = np.exp2(np.linspace(-6.0, 4.0, 14))  # of an input's range, beyond its ends


@dataclass(frozen=True)
class Term:
    """text: with {} for its constant, if it has one. values: for a constant, or for a column of constants, one row each. grid:
    constants to try, in order.
    """

    text: str
    values: Callable[[Any], Row]
    grid: tuple[float, ...] = (0.0,)

    def inputs(self, names: Collection[str]) -> list[str]:
        """Names of inputs in its text."""
        return sorted({*re.findall(r"\w+", self.text)} & {*names})


def library(inputs: dict[str, Row], is_broad: bool) -> Iterator[Term]:
    """Yield terms. is_broad: also those of sums, angles, growth and complements of inputs, times products."""
    sampled = dict(itertools.islice(products(inputs), MAX_PRODUCTS))
    for text, u in sampled.items():
        terms = [*_functions(text, u), *(_of_inputs(text, u, len(inputs) > 2) if is_broad and text in inputs else ())]
        yield from terms
        for name, x in inputs.items() if text in inputs else ():
            if name != text:
                yield from (replace(term, text=f"{name}*{term.text}", values=partial(_times, x, term.values)) for term in terms)
    if is_broad:
        for text, u in [*sampled.items()][: 3 * len(inputs)]:
            yield from (term for term in _functions(f"{text}**2", u * u) if len(term.grid) > 1)
        factors: list[tuple[str, Row | float]] = [("", 1.0), *_factors(inputs)]
        for (text, values), (factor, z) in itertools.product(_plain(inputs), factors[:MAX_FACTORS]):
            yield Term(factor + text, partial(_times, z, partial(_same, values)))


def _same(values: Row, _: Any) -> Row:
    return values


def _times(x: Row | float, values_of: Callable[[Any], Row], constant: Any) -> Row:
    return x * values_of(constant)


def products(inputs: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    """Yield products and quotients of inputs, the shortest first."""
    powers = sorted(itertools.product((1, 0, -1), repeat=len(inputs)), key=lambda exponents: sum(map(abs, exponents)))
    for exponents in powers:
        chosen = [(name, power) for name, power in zip(inputs, exponents, strict=True) if power]
        if not any(power > 0 for _, power in chosen):
            continue
        chosen.sort(key=lambda factor: -factor[1])
        text = chosen[0][0] + "".join(f"{'*' if power > 0 else '/'}{name}" for name, power in chosen[1:])
        yield text if len(chosen) == 1 else f"({text})", np.prod([inputs[name] ** float(power) for name, power in chosen], axis=0)


def _factors(inputs: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    """Products of at most two inputs, or their reciprocals, as factors of a value."""
    single = [(f"{name}*", x) for name, x in inputs.items()] + [(f"1/{name}*", 1.0 / x) for name, x in inputs.items()]
    yield from single
    for (first, x), (second, z) in itertools.combinations(single, 2):
        if first.strip("1/") != second.strip("1/"):
            yield first + second, x * z


def plain_parts(inputs: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    """Yield complements, angles' functions, sums and differences of inputs, as far as their sizes allow."""
    for name, x in inputs.items():
        if x.min() > 0.0 and x.max() < 1.0:
            yield f"(1 - {name})", 1.0 - x
            yield f"(1 - {name}**2)", 1.0 - x**2
        if x.min() > -1.0 and x.max() < 1.0 + MOST_RATE:
            yield f"(1 + {name})", 1.0 + x
        if np.ptp(x) > 1.0 / MOST_ANGLE and np.abs(x).max() <= MOST_ANGLE:
            yield f"sin({name})", np.sin(x)
            yield f"cos({name})", np.cos(x)
    for (first, x), (second, z) in itertools.combinations(inputs.items(), 2):
        if 1.0 / ALIKE < np.abs(x).max() / np.abs(z).max() < ALIKE:
            yield f"({first} + {second})", x + z
            yield f"({first} - {second})", x - z


def _plain(inputs: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    for text, values in plain_parts(inputs):
        for power in (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0):
            if values.min() > 0.0 or power in (-1.0, 1.0, 2.0):
                yield raised(text, power), values**power
        if values.min() > 0.0:
            yield f"log2({text})", np.log2(values)
    for text, u in itertools.islice(products(inputs), MAX_PRODUCTS):
        if GROWTH[0] < np.ptp(u) < GROWTH[1] and np.abs(u).max() < MOST_EXPONENT:
            for sign in (-1.0, 1.0):
                yield f"exp2({sign * LOG2_E}*{text})", np.exp2(sign * LOG2_E * u)
    for (rate, r), (time, t) in itertools.permutations(inputs.items(), 2):
        if r.min() > 0.0 and r.max() < MOST_RATE and 1.0 < t.max() < 1e3:
            yield f"exp2({time}*log2(1 + {rate}))", (1.0 + r) ** t
            yield f"exp2(-{time}*log2(1 + {rate}))", (1.0 + r) ** -t


def _functions(text: str, u: Row) -> Iterator[Term]:
    """Functions of a value with at most one constant."""
    low, high = float(u.min()), float(u.max())
    span = high - low
    if not 0.0 < span < np.inf:
        return
    for power in POWERS:
        if low > 0.0 or power in (1.0, 2.0, 3.0):
            yield Term(raised(text, power), partial(_to_the, u, power))
    if low > 0.0:
        yield Term(f"log2({text})", lambda _: np.log2(u))
    most = MOST_EXPONENT / max(abs(low), abs(high))
    rates = [float(rate) / span for rate in _RATES if rate / span < most]
    above, below = (_SHIFTS * span - low).tolist(), (-high - _SHIFTS * span).tolist()
    for sign in (1.0, -1.0):
        yield Term(f"exp2({{}}*{text})", lambda rate: np.exp2(rate * u), tuple(sign * rate for rate in rates))
    for shifts in (above, below):
        yield Term(f"1/({text} + {{}})", lambda shift: 1.0 / (u + shift), tuple(shifts))
    yield Term(f"log2({text} + {{}})", lambda shift: np.log2(u + shift), tuple(above))


def _of_inputs(text: str, u: Row, is_one_of_many: bool) -> Iterator[Term]:
    """Powers, parabolas and the logarithm of the saturation of an input, and what is above a threshold, of laws in pieces."""
    low, span = float(u.min()), float(np.ptp(u))
    yield Term(f"max({text}, {{}})", lambda threshold: np.maximum(u, threshold), tuple((low + _THRESHOLDS * span).tolist()))
    for sign in (1.0, -1.0) if low > 0.0 else ():
        exponents = sorted((sign * _EXPONENTS).tolist())
        yield Term(f"exp2({{}}*log2({text}))", lambda power: u**power, tuple(exponents))
    if not is_one_of_many:
        return
    yield Term(f"log2({{}} - {text})", lambda end: np.log2(end - u), tuple((low + span + _SHIFTS * span).tolist()))
    yield Term(f"({text} + {{}})**2", lambda shift: (u + shift) ** 2, tuple((-low - span * _CENTRES).tolist()))
    if low > 0.0:
        halves = np.geomspace(low / 4.0, 4.0 * (low + span), 16)
        yield Term(f"log2(1 + {{}}/{text})", lambda half: np.log2(1.0 + half / u), tuple(halves.tolist()))


def _to_the(u: Row, power: float, _: Any) -> Row:
    return np.asarray(u**power)


def raised(text: str, power: float) -> str:
    """A power in the notation of formulas, with an exponent that tuning may change unless it is a whole number."""
    if power == 1.0:
        return text
    if power == -1.0:
        return f"1/{text}"
    return f"{text}**{power:.0f}" if power in (2.0, 3.0) else f"exp2({power}*log2({text}))"


def smallest(values: Row, count: int) -> NDArray[np.intp]:
    """Indices of an array's least values, in its flat form: the least first, of equals the first, NaN last."""
    strips = np.fmin.reduceat(values.ravel(), np.arange(0, values.size, STRIP))
    limit = np.partition(strips, count - 1)[count - 1] if count <= len(strips) else np.inf  # for `count` values or more
    indices = np.flatnonzero(~(values > limit))
    return indices[np.argsort(values.flat[indices], kind="stable")[:count]]
