"""First formulas for exact data: a monomial times (a + b f + c f²) or (a + b f)/(1 + d f).

Owns the scan for the monomial and f, an exponential or a power, with an unknown exponent, of a product of inputs: logistic
curves, hyperbolic tangents, charging, Planck's and Hill's laws, Morse's well. Given both, the law is linear in its other numbers.
Only nearly exact formulas are returned. Knows nothing of programs.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.regression.guesses import least
from evo.regression.relations import LEAST, NEAR, monomials, sampled_rows, summed
from evo.regression.terms import Row, products

MAX_ROWS, MAX_INPUTS = 64, 6  # that are looked at
MAX_FACTORS, MAX_PRODUCTS, MAX_POWERS = 48, 50, 24  # monomials; products in exponentials, and under powers
MOST_EXPONENT = 100.0  # of a power of two
NUM_REFINED, NUM_KEPT = 16, 4  # formulas of a model; that are handed over
DIGITS = 9  # of exponents
LEAST_PIVOT = 1e-300  # of a triangle, so that it has an inverse
DUST = 1e-5  # of the largest term: smaller ones only compensate rounding
Model = tuple[tuple[int, int], ...]  # powers of y and f in the terms beside 1
_MODELS: tuple[Model, ...] = (((0, 1),), ((0, 1), (0, 2)), ((0, 1), (1, 1)))
_RATES = np.exp2(np.linspace(-1.0, 6.0, 15))  # doublings over the range of an exponential's argument


def curves(columns: dict[str, Row], target: Row, weights: Row | None = None) -> list[str]:
    """Formulas in the notation of `evo.language.infix`, up to offset and scale. Arguments are those of
    `evo.regression.guesses.guesses`.
    """
    if len(columns) > MAX_INPUTS:
        return []
    inputs, y, root = sampled_rows(columns, target, weights, MAX_ROWS)
    if not np.ptp(y):
        return []
    with np.errstate(all="ignore"):
        return _formulas(inputs, y, root / (np.abs(y) + LEAST))


def _formulas(inputs: dict[str, Row], y: Row, root: Row) -> list[str]:
    factors = [("1", np.ones_like(y)), *itertools.islice(monomials(inputs), MAX_FACTORS)]
    factors = [(text, x) for text, x in factors if (x != 0.0).all()]
    plain = list(itertools.islice(products(inputs), MAX_PRODUCTS))
    plain += [(f"(1/{text})", 1.0 / u) for text, u in plain if "/" not in text]
    plain += [(f"log2({text})", np.log2(u)) for text, u in plain[:MAX_POWERS] if (u > 0.0).all()]
    plain = [(text, u) for text, u in plain if np.isfinite(u).all() and np.ptp(u)]
    exponents = list[tuple[str, Row, float]]()
    for text, u in plain:
        rates = np.concatenate([-_RATES[::-1], _RATES]) / np.ptp(u)
        exponents += [(text, u, rate) for rate in rates[np.abs(rates) * np.abs(u).max() < MOST_EXPONENT]]
    if not exponents:
        return []
    f = np.exp2([rate * u for _, u, rate in exponents])
    f /= np.abs(f).max(axis=1, keepdims=True)
    f -= f.mean(axis=1, keepdims=True)
    f /= f.std(axis=1, keepdims=True)
    # Sums of products of powers of y over a factor and of f, for each pair of these.
    z = np.array([y / x for _, x in factors])
    shares = np.array([(root * x) ** 2 for _, x in factors])
    shares /= shares.sum(axis=1, keepdims=True)
    z /= np.sqrt((shares * z**2).sum(axis=1, keepdims=True))
    powers = [f**j for j in range(5)]
    moments = np.array([[(shares * z**i) @ power.T for power in powers] for i in range(3)])
    texts: list[tuple[float, str]] = []
    for model in _MODELS:
        terms = [(0, 0), *model]
        normal = np.array([[moments[a + c, b + d] for c, d in terms] for a, b in terms])
        wanted = np.array([moments[1 + a, b] for a, b in terms])
        numbers = _solved(normal, wanted)
        if any(is_quotient for is_quotient, _ in model):
            left = np.array(
                [_left(model, *arguments, f) for arguments in zip(z, shares, numbers.transpose(1, 2, 0), strict=True)]
            )
        else:
            left = np.nan_to_num(1.0 - (numbers * wanted).sum(axis=0), nan=np.inf)
        seen: set[tuple[int, str]] = set()
        for flat in np.argsort(left, axis=None):
            factor_index, number = divmod(int(flat), len(exponents))
            name, u, rate = exponents[number]
            if (factor_index, name) not in seen:
                seen.add((factor_index, name))
                texts += _refined(model, factors[factor_index], name, u, rate, y, root)
            if len(seen) == NUM_REFINED:
                break
        if texts:
            break
    return [text for _, text in sorted(texts)[:NUM_KEPT]]


def _left(model: Model, z: Row, shares: Row, numbers: Row, f: Row) -> Row:
    """The square that quotients leave of z, for each row of numbers and of f."""
    above, below = numbers[:, :1], 1.0
    for (is_quotient, power), number in zip(model, numbers.T[1:, :, None], strict=True):
        below, above = (below - number * f, above) if is_quotient else (below, above + number * f**power)
    left = (z - above / below) ** 2 @ shares
    return np.where(np.isfinite(left), left, np.inf)


def _solved(normal: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
    """The solutions of symmetric systems, `(n, n, ...)` and `(n, ...)`, by elimination; not finite where there is none."""
    sizes = np.sqrt(np.einsum("ii...->i...", normal))
    normal, wanted = normal / (sizes * sizes[:, None]), wanted / sizes
    for row in range(len(wanted)):
        normal[row, row] += 1e-11
        for other_row in range(len(wanted)):
            if other_row != row:
                factor = normal[other_row, row] / normal[row, row]
                normal[other_row] -= factor * normal[row]
                wanted[other_row] -= factor * wanted[row]
    return np.asarray(wanted / np.einsum("ii...->i...", normal) / sizes)


def _refined(model: Model, factor: tuple[str, Row], name: str, u: Row, rate: float, y: Row, root: Row) -> list[tuple[float, str]]:
    """The formula with the best exponent near this one, and its length, if it is nearly exact."""
    text, x = factor
    z, weight = y / x, root * x

    def fitted(rates: Row) -> tuple[Row, Row, Row]:
        """The share of the square that is left, the numbers, and the scale of f that they are for, for each rate."""
        f = np.exp2(rates[:, None] * u)
        scale = np.abs(f).max(axis=1, keepdims=True)
        f = f / scale
        columns = np.stack([np.ones_like(f), *(z**i * f**j for i, j in model)], axis=2) * weight[:, None]
        sizes = np.sqrt((columns**2).sum(axis=1, keepdims=True))
        basis, triangle = np.linalg.qr(np.nan_to_num(columns / sizes))
        along = np.einsum("kij,i->kj", basis, z * weight)
        numbers = np.linalg.solve(triangle + LEAST_PIVOT * np.eye(len(model) + 1), along[:, :, None])[:, :, 0] / sizes[:, 0]
        return _left(model, z, weight**2, numbers, f), numbers, scale[:, 0]

    spread = z * weight - (z * weight @ weight) / (weight @ weight) * weight
    step = 2.0**0.5
    best = float(f"{least(lambda rates: fitted(rates)[0], *sorted((rate / step, rate * step))):.{DIGITS}g}")
    left, numbers, scale = (values[0] for values in fitted(np.array([best])))
    if not left < NEAR * (spread @ spread):
        return []
    function = f"exp2({best!r}*{name})"
    names = ["", *(function + "**2" * (power == 2) for _, power in model)]
    numbers = numbers / scale ** np.array([0, *(power for _, power in model)])
    sizes = np.abs(numbers) * np.array([1.0, *(np.exp2(best * u).max() ** power for _, power in model)])
    is_above = np.array([True, *(not is_quotient for is_quotient, _ in model)])
    kept = is_above & (sizes > DUST * sizes[is_above].max())
    sums = summed([(names[i], numbers[i]) for i in np.flatnonzero(kept)])
    below = summed([("", 1.0), *((names[i], -numbers[i]) for i in np.flatnonzero(~is_above))])
    formula = f"({sums})" if is_above.all() else f"({sums})/({below})"
    return [(float(len(formula)), formula if text == "1" else f"{text}*{formula}")]
