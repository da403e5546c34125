"""A function on all numbers of a format in an interval: pieces of polynomials for a sweep, each with the bound of its error.

Owns the fit: pieces are halved until each bound is a small part of an ulp. Knows nothing of programs.

A piece of a rigorous function is its Taylor polynomial about the centre, of degree TERMS - 1 with balls as coefficients, without
the last Chebyshev terms. Its bound is a theorem: the sum of the sizes of these terms, of the balls' radii, of Lagrange's
remainder, which is the coefficient of the next power about the ball of the whole piece, and of all rounding. A function that is
only validated is interpolated, and one part of its bound is an estimate, TAIL_FACTOR.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FLUSHED, Format
from evo.approximation.functions import LARGEST, LEAST, RIGOROUS, Function
from evo.errors import UserError
from evo.native.proof import NUM_COEFFICIENTS, Pieces

TERMS = 14  # of Taylor polynomials; and nodes of an interpolation, the zeros of a Chebyshev polynomial
CENTRE_BITS, PIECE_BITS = 120, 64  # of precision, the first more for each binade between a centre and 1
BITS_OF_BINADE = 4
FLAT_BITS = 1024  # enough for the exponents of functions at the largest numbers
NARROW = 2.0**-56  # radius of coefficients over the sum of their sizes
NUM_PRECISIONS = 4  # each twice the one before
CHECKS = np.array([-1.0, 0.6180339887498949, 1.0])  # where an interpolation is compared with the function once more
TAIL_FACTOR = 8.0  # of the Chebyshev coefficients that are left out, for those that are not known
# Of the sizes of all coefficients, what rounding takes at most: 15 units of 2^-52 for Horner's rule in a rounded argument, 11 for
# the sums that give the coefficients, and 1 for their own rounding.
ROUNDING = 2.0**-47
WANTED = 2.0**-12  # ulps that a piece may be wrong by
MAX_PIECES = 1 << 15
MOST_AT_NORMAL = 64  # pieces around 2^-126 that are halved down to single values, which tell whether a zero is right

_ANGLES = (np.arange(TERMS) + 0.5) * np.pi / TERMS
_NODES = np.cos(_ANGLES)
_TO_CHEBYSHEV = np.cos(np.arange(TERMS)[:, None] * _ANGLES) * np.where(np.arange(TERMS) == 0, 1.0, 2.0)[:, None] / TERMS
_TO_POWERS = np.array([np.pad(np.polynomial.chebyshev.cheb2poly([0.0] * i + [1.0]), (0, 8))[:8] for i in range(NUM_COEFFICIENTS)])
_OF_POWERS = np.array([np.pad(np.polynomial.chebyshev.poly2cheb([0.0] * i + [1.0]), (0, TERMS))[:TERMS] for i in range(TERMS)])


@dataclass(frozen=True)
class _Fits:
    """Polynomials of pieces: coefficients, `(n, NUM_COEFFICIENTS)`, and the bounds of their errors. least, most: about half the
    least and the largest of the polynomial's sizes, which decide how narrow pieces become, but not their bounds.
    """

    coefficients: NDArray[np.float64]
    bounds: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]


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
            raise UserError(f"{function.shown} needs more than {MAX_PIECES:,} pieces on this interval; --interval: a smaller one")
        is_table = ends - starts <= NUM_COEFFICIENTS
        if is_table.any():
            done.append(_tables(function, form, starts[is_table], ends[is_table]))
        starts, ends = starts[~is_table], ends[~is_table]
        if not len(starts):
            break
        low = form.of_keys(starts).astype(np.float64)
        high = form.of_keys(ends - 1).astype(np.float64)
        centres, halves = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        fits = (_enclosed if function.enclosure == RIGOROUS else _interpolated)(function, centres, halves)
        is_good = fits.bounds <= WANTED * form.ulp(fits.least)
        at_normal = is_good & (fits.least * 2.0 - fits.bounds < FLUSHED) & (fits.most + fits.bounds >= FLUSHED)
        if at_normal.sum() <= MOST_AT_NORMAL:
            is_good &= ~at_normal
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


def _enclosed(function: Function, centres: NDArray[np.float64], halves: NDArray[np.float64]) -> _Fits:
    taylor, bounds = np.zeros((len(centres), TERMS)), np.zeros(len(centres))
    flat = np.full(len(centres), np.nan)
    for i, (centre, half) in enumerate(zip(centres.tolist(), halves.tolist(), strict=True)):
        fit = _taylor(function, centre, half)
        if fit:
            taylor[i], bounds[i] = fit
        else:
            flat[i], bounds[i] = _level(function, centre - half, centre + half)
            if bounds[i] == np.inf and np.isnan(function.values(np.array([centre])))[0]:
                raise UserError(f"{function.shown} has no value at {centre!r}; --interval: leave it out")
    series = taylor @ _OF_POWERS
    coefficients = series[:, :NUM_COEFFICIENTS] @ _TO_POWERS
    sizes = np.abs(taylor).sum(axis=1) + (np.abs(series[:, :NUM_COEFFICIENTS]) @ np.abs(_TO_POWERS)).sum(axis=1)
    bounds += np.abs(series[:, NUM_COEFFICIENTS:]).sum(axis=1) + ROUNDING * sizes
    bounds = np.nextafter(bounds * (1.0 + ROUNDING), np.inf)
    is_flat = ~np.isnan(flat)
    coefficients[is_flat] = np.where(np.arange(NUM_COEFFICIENTS) == 0, flat[is_flat, None], 0.0)
    return _Fits(coefficients, bounds, *_sizes(coefficients))


def _taylor(function: Function, centre: float, half: float) -> tuple[list[float], float] | None:
    """Taylor coefficients in units of the piece's half width, and the bound of their polynomial's error; None: unknown, or beyond
    LARGEST.
    """
    from flint import arb, arb_series, ctx

    from evo.approximation.formulas import evaluate

    cap, ctx.cap = ctx.cap, TERMS + 1
    try:
        with ctx.workprec(PIECE_BITS + BITS_OF_BINADE * abs(np.frexp(centre)[1])):
            around = evaluate(function.steps, arb_series([arb(centre, half), half], TERMS + 1))
            last = abs(around[TERMS]) if isinstance(around, arb_series) else arb(0)
            if not last.is_finite() or (isinstance(around, arb_series) and around.prec <= TERMS):
                return None
        ctx.cap = TERMS
        bits = CENTRE_BITS + BITS_OF_BINADE * abs(int(np.frexp(centre)[1]))
        for number in range(NUM_PRECISIONS):
            with ctx.workprec(bits << number):
                series = evaluate(function.steps, arb_series([centre, half], TERMS))
                terms = [series[i] if isinstance(series, arb_series) else series * (i == 0) for i in range(TERMS)]
                middles = [float(term) for term in terms]
                size = sum(map(abs, middles))
                wrong = float((sum((abs(term - middle) for term, middle in zip(terms, middles, strict=True)), last)).abs_upper())
                radius = float(sum((term.rad() for term in terms), arb(0)).abs_upper())
                if not size + wrong < LARGEST:
                    return None
                if radius <= max(NARROW * size, LEAST):
                    return middles, float(np.nextafter(wrong, np.inf))
        return None
    finally:
        ctx.cap = cap


def _level(function: Function, low: float, high: float) -> tuple[float, float]:
    """0 or LARGEST with its sign, if the function is below LEAST or beyond LARGEST on the whole interval, and the bound of its
    error; else NaN and infinity.
    """
    from flint import ctx

    from evo.approximation.formulas import bounds

    with ctx.workprec(FLAT_BITS):
        ends = bounds(function.steps, low, high)
        if not ends:
            return np.nan, np.inf
        if ends[0] > -LEAST and ends[1] < LEAST:
            return 0.0, LEAST
        if ends[0] > LARGEST or ends[1] < -LARGEST:
            return LARGEST if ends[0] > LARGEST else -LARGEST, 0.0
    return np.nan, np.inf


def _sizes(coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = np.polynomial.polynomial.polyval(np.linspace(-1.0, 1.0, 33), coefficients.T)
    least: NDArray[np.float64] = np.abs(values).min(axis=1) / 2.0
    least[values.min(axis=1) * values.max(axis=1) <= 0.0] = 0.0
    return least, np.abs(values).max(axis=1)


def _interpolated(function: Function, centres: NDArray[np.float64], halves: NDArray[np.float64]) -> _Fits:
    nodes = centres[:, None] + halves[:, None] * np.append(_NODES, CHECKS)
    values = function.values(nodes.ravel()).reshape(nodes.shape)
    if np.isnan(values).any():
        where = nodes.ravel()[np.isnan(values.ravel())][0]
        raise UserError(f"{function.shown} has no value at {where!r}; --interval: leave it out")
    checks, values = values[:, TERMS:], values[:, :TERMS]
    series = (values[:, None, :] * _TO_CHEBYSHEV).sum(axis=2)
    tail = np.abs(series[:, NUM_COEFFICIENTS:]).sum(axis=1)
    coefficients = series[:, :NUM_COEFFICIENTS] @ _TO_POWERS
    sizes = np.abs(coefficients).sum(axis=1) + np.abs(values).max(axis=1)
    slopes = np.abs(coefficients * np.arange(NUM_COEFFICIENTS)).sum(axis=1) * np.abs(centres) / halves
    bounds = TAIL_FACTOR * tail + ROUNDING * sizes + 2.0**-52 * slopes  # the last: nodes are rounded
    bounds[(np.abs(np.polynomial.polynomial.polyval(CHECKS, coefficients.T) - checks) > bounds[:, None]).any(axis=1)] = np.inf
    bounds[np.abs(values).max(axis=1) >= LARGEST] = np.inf
    is_flat = (values == checks[:, :1]).all(axis=1) & (checks == checks[:, :1]).all(axis=1)  # where it is bounded, or zero
    coefficients[is_flat] = np.where(np.arange(NUM_COEFFICIENTS) == 0, values[is_flat, :1], 0.0)
    bounds[is_flat] = 0.0
    return _Fits(coefficients, bounds, *_sizes(coefficients))


def _tables(
    function: Function, form: Format, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    keys = np.minimum(starts[:, None] + np.arange(NUM_COEFFICIENTS), ends[:, None] - 1)
    x = form.of_keys(keys.ravel())
    values = function.values(x)
    if np.isnan(values).any():
        raise UserError(f"{function.shown} has no value at {float(x[np.isnan(values)][0])!r}; --interval: leave it out")
    zero = np.zeros(len(starts))
    return starts, zero, zero, values.reshape(keys.shape), zero
