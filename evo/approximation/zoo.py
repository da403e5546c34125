"""Exact functions that kernels are written around: conversions of packed numbers, divisions and orders of bits.

Owns their definitions, straight from the formats. Each takes and gives arrays of words.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]
NAMES: list[str] = []


def _of_zoo(**attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def named(function: Callable[..., Any]) -> Callable[..., Any]:
        NAMES.append(function.__name__)
        vars(function).update(attributes)
        return function

    return named


def _table(values: Any, form: str) -> Words:
    """Bits of numbers as f16 or bf16; all are exact there."""
    numbers = np.asarray(values, np.float32)
    return numbers.astype(np.float16).view(np.uint16).astype(np.uint32) if form == "f16" else numbers.view(np.uint32) >> 16


def _small(exponent_bits: int, digits: int, bias: int) -> NDArray[np.float64]:
    """All values of a small float with a sign, without infinities."""
    codes = np.arange(1 << (1 + exponent_bits + digits))
    exponent = codes >> digits & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << digits) - 1)) / (1 << digits)
    sizes = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - float(bias)))
    return np.where(codes >> (exponent_bits + digits), -sizes, sizes)


def _special(values: NDArray[np.float64], **codes: float) -> NDArray[np.float64]:
    for code, value in codes.items():
        values[int(code[1:], 16)] = value
    return values


_E4M3 = _special(_small(4, 3, 7), x7f=np.nan, xff=np.nan)
_E5M2 = _small(5, 2, 15)
_E5M2[0x7C:0x80], _E5M2[0xFC:] = (np.inf, np.nan, np.nan, np.nan), (-np.inf, np.nan, np.nan, np.nan)
_E2M1 = _small(2, 1, 1)
_NUMBERS = {
    "u4": np.arange(16),
    "s8": np.arange(256) - ((np.arange(256) & 128) << 1),
    "e4m3": _E4M3,
    "e5m2": _E5M2,
    "e2m1": _E2M1,
}
_TABLES = {(kind, form): _table(values, form) for kind, values in _NUMBERS.items() for form in ("f16", "bf16")}
_PAIRS = {key: (table | table[:, None] << 16).ravel() for key, table in _TABLES.items()}


def _at(table: Words, indices: Words) -> Any:
    return np.take_along_axis(table, indices, 0)  # which can be traced, as table[indices] cannot


def _pairs(q: Words, kind: str, form: str, pairs: tuple[tuple[int, int], ...]) -> tuple[Words, ...]:
    """Words of two halves each: the fields of q with these indices, the lower half first."""
    count = len(_NUMBERS[kind])
    bits, mask, fields = (count - 1).bit_length(), count - 1, q.astype(np.intp)
    table = _PAIRS[kind, form]
    return tuple(_at(table, (fields >> bits * a & mask) + (fields >> bits * b & mask) * count) for a, b in pairs)


_NIBBLES, _BYTES = ((0, 4), (1, 5), (2, 6), (3, 7)), ((0, 1), (2, 3))
_CROSSED = ((0, 2), (1, 3))


@_of_zoo()
def u4x8_f16x2x4(q: Words) -> Any:
    """Nibbles k and k + 4 as the lower and upper half of output k."""
    return _pairs(q, "u4", "f16", _NIBBLES)


@_of_zoo()
def u4x8_bf16x2x4(q: Words) -> Any:
    """Nibbles k and k + 4 as the lower and upper half of output k."""
    return _pairs(q, "u4", "bf16", _NIBBLES)


@_of_zoo()
def s8x4_f16x2x2(q: Words) -> Any:
    """Bytes in their order."""
    return _pairs(q, "s8", "f16", _BYTES)


@_of_zoo()
def s8x4_bf16x2x2(q: Words) -> Any:
    """Bytes in their order."""
    return _pairs(q, "s8", "bf16", _BYTES)


@_of_zoo(precondition="no_nan_e4m3x4(q)")
def e4m3x4_f16x2x2(q: Words) -> Any:
    """Bytes k and k + 2 as the halves of output k, as weights are stored for this purpose."""
    return _pairs(q, "e4m3", "f16", _CROSSED)


@_of_zoo()
def e5m2x4_f16x2x2(q: Words) -> Any:
    """Bytes in their order. NaNs keep their bits."""
    low, high = (q & 0xFF) << 8, (q >> 8 & 0xFF) << 24
    return low | high, (q >> 8 & 0xFF00) | (q & 0xFF000000)


@_of_zoo(precondition="no_nan_e4m3x4(q)")
def e4m3x4_bf16x2x2(q: Words) -> Any:
    """Bytes k and k + 2 as the halves of output k."""
    return _pairs(q, "e4m3", "bf16", _CROSSED)


@_of_zoo()
def e2m1x8_f16x2x4(q: Words) -> Any:
    """Nibbles k and k + 4 as the lower and upper half of output k."""
    return _pairs(q, "e2m1", "f16", _NIBBLES)


@_of_zoo(precondition="q < 127")
def ue4m3_f32(q: Words) -> Any:
    """A scale: e4m3 without a sign."""
    return _at(_E4M3.astype(np.float32), q & 0x7F)


@_of_zoo(types=("f32",), precondition="no_nan(x)", care=(0xFFFF,))
def f32_bf16(x: Words) -> Any:
    """Round to nearest, ties to even; the lower half of the result."""
    word = x.view(np.uint32)
    return (word + np.uint32(0x7FFF) + (word >> 16 & 1)) >> 16


@_of_zoo(types=("bf16x2",), precondition="no_nan_bf16x2(x)", care=(0xFFFF,))
def bf16x2_e4m3x2(x: Words) -> Any:
    """Round to nearest, ties to even, limited to 448; bytes in their order."""
    low, high = _at(_E4M3_OF_BF16, x & 0xFFFF), _at(_E4M3_OF_BF16, x >> 16)
    return low | high << 8


def _e4m3_of_bf16() -> Words:
    """e4m3 of every bf16: the nearest code, by the midpoints between codes, at which the even one is taken."""
    with np.errstate(invalid="ignore"):  # NaNs
        numbers = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    codes = _E4M3[:0x7F]
    halfway = (codes[1:] + codes[:-1]) / 2
    size = np.abs(np.nan_to_num(numbers, nan=0.0, posinf=1e9, neginf=-1e9))
    indices = np.searchsorted(halfway, size, side="left")
    is_tie = np.isin(size, halfway)
    indices = np.where(is_tie & (indices % 2 == 1), indices + 1, indices)
    return (indices | np.where(np.signbit(numbers), 0x80, 0)).astype(np.uint32)


_E4M3_OF_BF16 = _e4m3_of_bf16()


@_of_zoo(types=("f32",) * 4)
def f32x4_s8x4(a: Words, b: Words, c: Words, d: Words) -> Any:
    """Rounded to the nearest, ties to even, limited to -128 to 127; NaN is 0. a is the lowest byte."""
    limited = [np.where(np.isnan(value), 0, np.clip(np.rint(value), -128, 127)) for value in (a, b, c, d)]
    rounded = [value.astype(np.int32).view(np.uint32) & 0xFF for value in limited]
    return rounded[0] | rounded[1] << 8 | rounded[2] << 16 | rounded[3] << 24


@_of_zoo(precondition="q < 2**8", care=(0x03030303, 0xFFFFFFFF))
def ternary5(q: Words) -> Any:
    """Five digits, of base 3, of the fraction q / 256: the first in the lowest byte."""
    digits, rest = [], q & 0xFF
    for _ in range(5):
        rest = rest * 3
        digits.append(rest >> 8)
        rest = rest & 0xFF
    return digits[0] | digits[1] << 8 | digits[2] << 16 | digits[3] << 24, digits[4]


@_of_zoo()
def div7(x: Words) -> Any:
    """The quotient by 7."""
    return x // np.uint32(7)


@_of_zoo()
def div10(x: Words) -> Any:
    """The quotient by 10."""
    return x // np.uint32(10)


@_of_zoo(precondition="x < 2**16 and y < 2**16")
def morton16(x: Words, y: Words) -> Any:
    """Bits of x at even positions, and those of y at odd ones."""
    return _at(_SPREAD, x & 0xFFFF) | _at(_SPREAD, y & 0xFFFF) << 1


_SPREAD = np.bitwise_or.reduce([(np.arange(1 << 16, dtype=np.uint32) >> k & 1) << 2 * k for k in range(16)])


@_of_zoo()
def average4(q: Words) -> Any:
    """The average of four bytes, rounded down."""
    return ((q & 0xFF) + (q >> 8 & 0xFF) + (q >> 16 & 0xFF) + (q >> 24)) >> 2


@_of_zoo()
def ordered(x: Words) -> Any:
    """An unsigned integer in the order of f32 numbers."""
    return np.where(x >> 31, ~x, x | np.uint32(0x80000000))
