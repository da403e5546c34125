"""Primitives of the instruction table's code, as NumPy on arrays: see evo.language.definitions.

Floats are float32, integers uint32 and predicates bool. primitives.h has the same in C, bit for bit as on x86-64. Exported Python
contains copies of these functions.
"""

from typing import Any

import numpy as np

Array = Any  # an array, or one number of its type


def f32(bits: Array) -> Array:
    """The float32 with these bits."""
    return np.asarray(bits, np.uint32).view(np.float32)


def bits_of(a: Array) -> Array:
    """The bits of float32 numbers."""
    return np.asarray(a, np.float32).view(np.uint32)


def wide(a: Array) -> Array:
    """float32 numbers as float64, with subnormal ones flushed."""
    return np.where(np.abs(a) < 2.0**-126, a * np.float32(0.0), a).astype(np.float64)


def narrow(a: Array) -> Array:
    """float64 numbers as float32, rounded to nearest."""
    return np.asarray(a, np.float32)


def canonical(a: Array) -> Array:
    """The numbers with PTX's NaN in place of any other."""
    return np.where(np.isnan(a), f32(0x7FFFFFFF), a)


def rounded(a: Array) -> Array:
    """float64 numbers as float32. A number that is still subnormal after rounding to 24 bits is flushed."""
    is_tiny = np.abs(a) < 2.0**-126 * (1.0 - 2.0**-25)
    return canonical(narrow(np.where(is_tiny, a * 0.0, a)))


def toward_zero(a: Array) -> Array:
    """float64 numbers as float32, rounded toward zero and flushed; of numbers that are not negative."""
    b = narrow(a)
    b = narrow(np.where(b > a, np.nextafter(b, np.float32(0.0)), b))
    return np.where(b < 2.0**-126, np.float32(0.0), b)


def odd_sum(a: Array, b: Array) -> Array:
    """The sum of float64 numbers, rounded to odd: then the rounding to float32 is as good as the only one."""
    total = np.asarray(a + b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    is_inexact = np.isfinite(error) & (error != 0.0) & (total.view(np.int64) & 1 == 0)
    step = np.where((error > 0.0) == (total > 0.0), 1, -1)
    return (total.view(np.int64) + np.where(is_inexact, step, 0)).view(np.float64)


def polynomial(x: Array, *coefficients: float) -> Array:
    """By Horner's rule with fused steps, the highest power first."""
    total = np.float32(coefficients[0])
    for coefficient in coefficients[1:]:
        total = rounded(odd_sum(wide(x) * wide(total), wide(np.float32(coefficient))))
    return total


def is_negative(a: Array) -> Array:
    """Return whether the sign of float64 numbers is set."""
    return np.signbit(a)


def signed_of(a: Array) -> Array:
    """The words as signed integers."""
    return np.asarray(a).view(np.int32)


def zero_extended(a: Array) -> Array:
    """Words as uint64."""
    return np.asarray(a).astype(np.uint64)


def sign_extended(a: Array) -> Array:
    """Signed words as uint64."""
    return signed_of(a).astype(np.uint64)


def high(a: Array) -> Array:
    """The upper words of uint64 numbers."""
    return (a >> np.uint64(32)).astype(np.uint32)


def from_u32(a: Array) -> Array:
    """Words as float32 numbers."""
    return np.asarray(a).astype(np.float32)


def from_s32(a: Array) -> Array:
    """Signed words as float32 numbers."""
    return signed_of(a).astype(np.float32)
