"""A function on all numbers of a format in an interval: pieces of polynomials for a sweep, each with the bound of its error.

Owns the fit: pieces are halved until each bound is a small part of an ulp. Knows nothing of programs.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import Format
from evo.approximation.functions import LARGEST, Function
from evo.errors import UserError
from evo.native.proof import NUM_COEFFICIENTS, Pieces

NUM_NODES = 14  # at which a piece's function is known, the zeros of a Chebyshev polynomial
CHECKS = np.array([-1.0, 0.6180339887498949, 1.0])  # where a piece's polynomial is compared with the function once more
TAIL_FACTOR = 8.0  # of the Chebyshev coefficients that are left out, for those that are not known
ROUNDING = 2.0**-48  # of the evaluation, over the sum of the coefficients' sizes
WANTED = 2.0**-12  # ulps that a piece may be wrong by
MAX_PIECES = 1 << 15

_ANGLES = (np.arange(NUM_NODES) + 0.5) * np.pi / NUM_NODES
_NODES = np.cos(_ANGLES)
_TO_CHEBYSHEV = (
    np.cos(np.arange(NUM_NODES)[:, None] * _ANGLES) * np.where(np.arange(NUM_NODES) == 0, 1.0, 2.0)[:, None] / NUM_NODES
)
_TO_POWERS = np.array([np.pad(np.polynomial.chebyshev.cheb2poly([0.0] * i + [1.0]), (0, 8))[:8] for i in range(NUM_COEFFICIENTS)])


@dataclass(frozen=True)
class _Fits:
    """Polynomials of pieces: coefficients, `(n, NUM_COEFFICIENTS)`, and the bounds of their errors and the function's sizes."""

    coefficients: NDArray[np.float64]
    bounds: NDArray[np.float64]
    least: NDArray[np.float64]


@lru_cache(maxsize=4)
def pieces_of(function: Function, form: Format, first: int, last: int) -> Pieces:
    """The pieces for the keys from the first to the last.

    Raises:
        UserError: the function is not defined everywhere there, or needs too many pieces.
    """
    # The binades of each sign, and zero.
    step = 1 << form.digits - 1
    cuts = np.unique(
        np.clip(np.concatenate([np.arange(0, last + 1, step), -np.arange(0, 1 - first, step), [first, 0, 1]]), first, last + 1)
    )
    starts, ends = cuts, np.append(cuts[1:], last + 1)
    starts, ends = starts[starts < ends], ends[starts < ends]
    done: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]] = []
    count = 0
    while len(starts):
        count += len(starts)
        if count > MAX_PIECES:
            raise UserError(f"{function.text} needs more than {MAX_PIECES:,} pieces on this interval; --interval: a smaller one")
        is_table = ends - starts <= NUM_COEFFICIENTS
        if is_table.any():
            done.append(_tables(function, form, starts[is_table], ends[is_table]))
        starts, ends = starts[~is_table], ends[~is_table]
        if not len(starts):
            break
        low = form.of_keys(starts).astype(np.float64)
        high = form.of_keys(ends - 1).astype(np.float64)
        centres, halves = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        fits = _fitted(function, centres, halves)
        is_good = fits.bounds <= WANTED * form.ulp(fits.least)
        zero = np.zeros(int(is_good.sum()))
        done.append(
            (starts[is_good], centres[is_good], 1.0 / halves[is_good], fits.coefficients[is_good], zero + fits.bounds[is_good])
        )
        starts, ends = starts[~is_good], ends[~is_good]
        middles = (starts + ends) // 2
        starts, ends = np.concatenate([starts, middles]), np.concatenate([middles, ends])
    columns = [np.concatenate([part[i] for part in done]) for i in range(5)]
    order = np.argsort(columns[0])
    keys, *rest = (column[order] for column in columns)
    return Pieces(np.append(keys, last + 1), *rest, digits=form.digits, least_exponent=form.least, overflow=form.overflow)


def _fitted(function: Function, centres: NDArray[np.float64], halves: NDArray[np.float64]) -> _Fits:
    nodes = centres[:, None] + halves[:, None] * np.append(_NODES, CHECKS)
    values = function.values(nodes.ravel()).reshape(nodes.shape)
    if np.isnan(values).any():
        where = nodes.ravel()[np.isnan(values.ravel())][0]
        raise UserError(f"{function.text} has no value at {where!r}; --interval: leave it out")
    checks, values = values[:, NUM_NODES:], values[:, :NUM_NODES]
    series = (values[:, None, :] * _TO_CHEBYSHEV).sum(axis=2)
    tail = np.abs(series[:, NUM_COEFFICIENTS:]).sum(axis=1)
    coefficients = (series[:, :NUM_COEFFICIENTS, None] * _TO_POWERS).sum(axis=1)
    sizes = np.abs(coefficients).sum(axis=1) + np.abs(values).max(axis=1)
    slopes = np.abs(coefficients * np.arange(NUM_COEFFICIENTS)).sum(axis=1) * np.abs(centres) / halves
    bounds = TAIL_FACTOR * tail + ROUNDING * sizes + 2.0**-52 * slopes  # the last: nodes are rounded
    bounds[(np.abs(np.polynomial.polynomial.polyval(CHECKS, coefficients.T) - checks) > bounds[:, None]).any(axis=1)] = np.inf
    grid = np.linspace(-1.0, 1.0, 33)
    least = np.abs(np.polynomial.polynomial.polyval(grid, coefficients.T)).min(axis=1) / 2.0
    least[values.min(axis=1) * values.max(axis=1) <= 0.0] = 0.0
    bounds[np.abs(values).max(axis=1) >= LARGEST] = np.inf
    is_flat = (values == checks[:, :1]).all(axis=1) & (checks == checks[:, :1]).all(axis=1)  # where it is bounded, or zero
    coefficients[is_flat] = np.where(np.arange(NUM_COEFFICIENTS) == 0, values[is_flat, :1], 0.0)
    bounds[is_flat] = 0.0
    return _Fits(coefficients, bounds, least)


def _tables(
    function: Function, form: Format, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    keys = np.minimum(starts[:, None] + np.arange(NUM_COEFFICIENTS), ends[:, None] - 1)
    x = form.of_keys(keys.ravel())
    values = function.values(x)
    if np.isnan(values).any():
        raise UserError(f"{function.text} has no value at {float(x[np.isnan(values)][0])!r}; --interval: leave it out")
    zero = np.zeros(len(starts))
    return starts, zero, zero, values.reshape(keys.shape), zero
