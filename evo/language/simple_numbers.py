"""Numbers that take few bits to write down: decimals of few digits, fractions, and both times pi, e, a logarithm or a root.

Owns which numbers are simple, and what each costs. Knows nothing of their uses.
"""

import math
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_DIGITS = 9  # of a decimal: as many as tell all f32 apart
MAX_DENOMINATOR = 64
FACTOR_BITS = 8.0  # to say which factor stands beside a fraction
DECIMAL_BITS = 3.0  # for the point of a decimal
SURE_BITS = 4.0  # fewer than a value has, in a number that is surely meant
MOST_BITS = 24.0 - SURE_BITS  # of such a number for a value in f32
F32_BITS = 32.0  # of a number that is not simple
NEAR = 3.0  # deviations
HARMLESS = 0.5  # deviations that a number may be off without being meant
CHANCE_BITS = 2.0  # more than a value has, in a number that is likelier than those of more digits
F32_STEP, F64_STEP = 2.0**-24, 2.0**-51  # relative, by which rounding changes a number at most; of f64, a few times

# By SymPy's text of the factor, behind a fraction.
_FACTORS = {
    "*pi": math.pi,
    "/pi": 1.0 / math.pi,
    "*pi**2": math.pi**2,
    "/pi**2": math.pi**-2,
    "*sqrt(pi)": math.sqrt(math.pi),
    "/sqrt(pi)": 1.0 / math.sqrt(math.pi),
    "/sqrt(2*pi)": 1.0 / math.sqrt(2.0 * math.pi),
    "*E": math.e,
    "/log(2)": 1.0 / math.log(2.0),
    "*log(2)": math.log(2.0),
    "*sqrt(2)": math.sqrt(2.0),
    "*sqrt(3)": math.sqrt(3.0),
    "*sqrt(5)": math.sqrt(5.0),
}


class Simple(NamedTuple):
    """A number, the bits that it takes, and its text for SymPy; empty: a decimal says it."""

    value: float
    bits: float
    text: str


_NAMES = ("", *_FACTORS)
_VALUES = np.array([[1.0], *([value] for value in _FACTORS.values())])
_WHOLE = np.arange(1, MAX_DENOMINATOR + 1)
_IS_REDUCED = np.gcd.outer(np.arange(MAX_DENOMINATOR + 1), np.arange(MAX_DENOMINATOR + 1)) == 1  # by numerator and denominator
_IS_REDUCED[0] = False


def simple_numbers(value: float, radius: float) -> Iterator[Simple]:
    """The simple numbers within a distance, a few of each kind, none of another sign; 0 if it is as near."""
    yield from _decimals(value, radius)
    sign = "-" if value < 0 else ""
    columns = (column.tolist() for column in _fractions(value, radius))
    for near, bits, factor, numerator, denominator in zip(*columns, strict=True):
        yield Simple(near, bits, f"Rational({sign}{numerator}, {denominator}){_NAMES[factor]}")


def _decimals(value: float, radius: float) -> Iterator[Simple]:
    """Yield the `simple_numbers` that are not fractions."""
    if abs(value) <= radius or value == 0.0:
        yield Simple(0.0, 1.0, "Integer(0)")
    size, sign = abs(value), "-" if value < 0 else ""
    if not (math.isfinite(size) and size > 0.0):
        return
    for digits in range(1, MAX_DIGITS + 1):
        text = f"{size:.{digits - 1}e}"
        if abs(float(text) - size) <= radius:
            mantissa, exponent = text.split("e")
            whole = mantissa.replace(".", "").rstrip("0") or "0"
            power = int(exponent) - (len(whole) - 1)
            is_plain = 0 <= power <= 2
            bits = math.log2(int(whole)) + DECIMAL_BITS + max(0, abs(int(exponent)) - 2)
            bits = min(bits, _bits(int(float(text))) if is_plain else bits, F32_BITS)
            yield Simple(math.copysign(float(text), value), bits, f"Integer({sign}{int(float(text))})" if is_plain else "")


def _fractions(value: float, radius: float) -> tuple[NDArray[Any], ...]:
    """All other simple numbers: values, bits, indices in `_NAMES`, numerators and denominators."""
    size = abs(value)
    with np.errstate(all="ignore"):
        numerators = np.rint(size / _VALUES * _WHOLE)
        near = numerators / _WHOLE * _VALUES
        is_near = (np.abs(near - size) <= radius) & (numerators <= MAX_DENOMINATOR)
    whole = np.where(is_near, numerators, 0.0).astype(int)
    is_near = _IS_REDUCED[whole, _WHOLE]
    is_near[0, 0] = False  # a whole number
    factors, columns = is_near.nonzero()
    near_numerators = whole[factors, columns]
    bits = _BITS[near_numerators] + _BITS[columns + 1] + FACTOR_BITS * (factors > 0)
    return np.copysign(near[factors, columns], value), bits, factors, near_numerators, columns + 1


class Choice(NamedTuple):
    """A number in place of a value. cost: bits of the number and of its distance from the value."""

    value: float
    cost: float


def simplest(
    value: float, deviation: float, refused: Collection[float] = (), largest: float = math.inf, unit: float = 1.0
) -> Choice:
    """The number that costs least in place of a value that is known to a deviation.

    A number that is far from the value must be 0 or meant: likelier than all those of more digits that are as near.

    Args:
        unit: simple multiples of it cost no more than simple numbers do.
    """
    candidates = [_near(value, NEAR * deviation, scale) for scale in dict.fromkeys((1.0, unit))]
    numbers, bits = (np.concatenate(column) for column in zip(*candidates, strict=True))
    distances = np.abs(numbers - value) / (deviation or 1.0)
    costs = bits + 0.5 / math.log(2.0) * distances**2
    most = math.log2(abs(value) / deviation) + CHANCE_BITS if value and deviation else math.inf
    is_meant = (numbers == 0.0) | (costs <= most) | (distances <= HARMLESS)
    is_left = is_meant & (np.abs(numbers) <= largest) & ~np.isin(numbers, [*refused])
    numbers, costs = np.append(numbers[is_left], value), np.append(costs[is_left], F32_BITS)
    best = int(costs.argmin())
    return Choice(float(numbers[best]), float(costs[best]))


def _near(value: float, radius: float, unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simple multiples of a unit that are so near, and their bits."""
    decimals = [*_decimals(value / unit, radius / unit)]
    fractions, bits, *_ = _fractions(value / unit, radius / unit)
    numbers = np.array([decimal.value for decimal in decimals] + fractions.tolist())
    return numbers * unit, np.array([decimal.bits for decimal in decimals] + bits.tolist())


def most_bits(value: float, deviation: float) -> float:
    """Bits of a number that is surely meant by a value that is known to a deviation, at best to float64's digits."""
    known = max(deviation, F64_STEP * abs(value))
    return math.log2(abs(value) / known) - SURE_BITS if value and known else -SURE_BITS


def misfit_bits(distance: float, deviation: float) -> float:
    """Cost in bits of this distance from the data's value."""
    if not distance:
        return 0.0
    return 0.5 / math.log(2.0) * (distance / deviation) ** 2 if deviation else math.inf


def exact_text(value: float, radius: float) -> str:
    """Text of the simplest number so near for SymPy, unless it takes digits; else empty."""
    near = simple_numbers(value, radius) if math.isfinite(value) else ()
    simple = min(near, key=lambda number: number.bits, default=Simple(value, F32_BITS, ""))
    return simple.text if not value or simple.bits <= most_bits(value, radius) else ""


def meant_number(single: np.float32, unit: float = 1.0) -> float:
    """The simple number, or multiple of a unit, that a float32 is surely the nearest to, else the shortest decimal that is."""
    simple = f32_number(float(single), unit)
    return simple.value if simple.bits <= MOST_BITS else float(str(single))


@lru_cache(maxsize=4096)
def f32_number(value: float, unit: float = 1.0) -> Simple:
    """The simplest number, or multiple of a unit, that this is the nearest float32 of. Its text is without the unit."""
    near = (
        number._replace(value=number.value * scale)
        for scale in dict.fromkeys((1.0, unit))
        for number in simple_numbers(value / scale, F32_STEP * abs(value / scale))
    )
    nearest = (number for number in near if np.float32(number.value) == np.float32(value))
    return min(nearest, key=lambda number: number.bits, default=Simple(value, F32_BITS, ""))


def _bits(number: int) -> float:
    """Bits of a number from 1 on, with its length (Elias' delta code, smoothed)."""
    length = math.log2(max(number, 1))
    return length + 2.0 * math.log2(length + 1.0) + 1.0


_BITS = np.array([_bits(number) for number in range(MAX_DENOMINATOR + 1)])
