"""Programs that a search begins with, for functions that level off: an asymptote, and how far they are from it as a power of two.

Owns these forms. Knows nothing of programs' words.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from evo.approximation.minimax import Row, horner, minimax

DEGREES = range(2, 10)
NUM_PLACES = 1024  # at which polynomials are fitted
LEAST_REST = 2.0**-126  # less may be flushed
LEAST_OF_ONE = 2.0**-45  # that float64 tells from 1 with some digits
LEAST_WEIGHT = 2.0**-20  # of the largest: so that polynomials stay sane where errors do not count
SAME = 1e-3  # relative to which two sides are alike
LIFT = 8.0  # exponents are so much larger until the end where powers of two would be flushed before their product is
LIFTED = 2.0**-110  # rests below
BELLS = (0.5, 1.0)  # factors of x^2 in exp(-x^2/2) and exp(-x^2)
MOST_TARGET = 1e4  # of what is left over a bell, over what there is at zero

# An asymptote; how results follow from it; whether the rest changes its sign with x; whether the left side tells the rest, as
# nothing is lost there; the least rest that has digits.
_Asymptote = tuple[Callable[[Row], Row], str, bool, bool, float]
_STEP = "max(copysign(1.0, x), 0.0)"
ASYMPTOTES: tuple[_Asymptote, ...] = (
    (lambda x: np.maximum(x, 0.0), "fma({scale}, {rest}, max(x, 0.0))", False, True, LEAST_REST),
    (lambda x: np.where(x < 0.0, 0.0, 1.0), f"fma(-{{scale}}, {{odd}}, {_STEP})", True, True, LEAST_REST),
    (lambda x: np.where(x < 0.0, 0.0, 1.0), "copysign(fma(-{scale}, {rest}, 0.5), x) + 0.5", True, True, LEAST_REST),
    (np.sign, "copysign(fma({scale}, {rest}, 1.0), x)", True, False, LEAST_OF_ONE),
    (np.zeros_like, "{scale}*{rest}", False, False, LEAST_REST),
)


def tails(x: Row, y: Row, weight: Row) -> Iterator[str]:
    """Formulas for a function with these values at sorted points, if it is as far from an asymptote on either side.

    Args:
        weight: what makes errors of y errors that count.
    """
    if x[-1] <= 0.0 or x[0] > -x[-1] / 2.0 or x[-1] < -x[0] / 2.0:
        return
    at = np.linspace(0.0, min(x[-1], 4.0), 9)[1:]
    for asymptote, text, is_odd, is_left, least in ASYMPTOTES:
        rest = y - asymptote(x)
        left, right = np.interp(-at, x, rest), np.interp(at, x, rest)
        if np.allclose(left, -right if is_odd else right, rtol=SAME, atol=SAME * np.abs(right).max()):
            is_used = ((x < 0.0) == is_left) & (np.abs(rest) > least) & (x != 0.0)
            order = np.argsort(np.abs(x[is_used]))
            size, rests, weights = (row[is_used][order] for row in (np.abs(x), rest, weight))
            if len(size) > 2 * DEGREES[-1]:
                yield from _powers(text, size, rests, weights, is_whole=bool(size[-1] >= x[-1]))
                if text.count("copysign") == text.count("copysign(1.0"):  # of other forms, bells have no sign
                    yield from _bells(text, size, rests, weights, is_whole=bool(size[-1] >= x[-1]))


def _powers(text: str, size: Row, rest: Row, weight: Row, *, is_whole: bool) -> Iterator[str]:
    """Powers of two of polynomials of the size of x, and x times these."""
    if not ((rest > 0.0) == (rest[0] > 0.0)).all():
        return
    lift = _lift(rest)
    scale = repr(math.copysign(2.0**-lift, rest[0]))
    for power, factor in enumerate(("", "a*")):
        target = np.log2(np.abs(rest) / size**power) + lift
        parts = {"scale": scale, "rest": f"{factor}exp2(p)", "odd": f"{factor}copysign(exp2(p), x)"}
        for found in _polynomials(size, target, weight * np.abs(rest)):
            if is_whole or found[-1] < 0.0:  # beyond the last size it falls on
                yield f"a = abs(x); p = {horner('a', found)}; y = {text.format(**parts)}"


def _bells(text: str, size: Row, rest: Row, weight: Row, *, is_whole: bool) -> Iterator[str]:
    """A bell times polynomials of the size of x. Beyond the last size, where a square may overflow, that stays what it was."""
    lift = _lift(rest)
    start = "a = abs(x)" if is_whole else f"a = min(abs(x), {math.ceil(1.1 * size[-1])}.0)"
    for bell in BELLS:
        exponent = bell * size * size / np.log(2.0)
        target = rest * np.exp2(np.minimum(exponent, 1000.0) - lift)
        if np.abs(target).max() > MOST_TARGET * np.abs(target[0]):
            continue
        power = f"exp2(fma({-bell / np.log(2.0):.9g}*a, a, {lift}))"
        parts = {"scale": "1.0", "rest": f"{power}*p", "odd": f"copysign({power}, x)*p"}
        for found in _polynomials(size, target, weight * np.exp2(lift - exponent)):
            yield f"{start}; p = {horner('a', found)}; y = {text.format(**parts)}"


def _lift(rest: Row) -> float:
    return LIFT if np.abs(rest).min() < LIFTED else 0.0


def _polynomials(size: Row, target: Row, weight: Row) -> Iterator[Row]:
    places = np.unique(np.searchsorted(size, np.linspace(size[0], size[-1], NUM_PLACES)))
    size, target, weight = size[places], target[places], np.maximum(weight, weight.max() * LEAST_WEIGHT)[places]
    for degree in DEGREES:
        powers = np.arange(degree + 1)
        yield minimax((size[:, None] / size[-1]) ** powers, target, weight) / size[-1] ** powers
