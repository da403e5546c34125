"""Types of PTX as NumPy types, and what rounding, flushing and NaN do to values.

Owns nothing but these. Knows nothing of instructions.
"""

from __future__ import annotations

import numpy as np

from emulated_gpu.ptx_text import TYPE_BYTES

DTYPES = {
    name: np.dtype(bool) if name == "pred" else np.dtype(f"{({'s': 'i', 'f': 'f'}).get(name[0], 'u')}{size}")
    for name, size in TYPE_BYTES.items()
}
DTYPES |= {"f16x2": np.dtype(np.uint32), "bf16": np.dtype(np.uint16)}

FLOAT32 = DTYPES["f32"]
_NAN_BITS = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}
_EXPONENT = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}
_SIGN = {2: 0x8000, 4: 0x80000000, 8: 0x8000000000000000}


def unsigned(type_name: str) -> str:
    """The unsigned type of a type's width."""
    return f"u{8 * TYPE_BYTES[type_name]}"


def flush(values: np.ndarray) -> np.ndarray:
    """Subnormal values become zeros of their sign."""
    size = values.dtype.itemsize
    bits = values.view(f"u{size}")
    is_small = (bits & bits.dtype.type(_EXPONENT[size])) == 0
    if not is_small.any():
        return values
    return np.where(is_small, bits & bits.dtype.type(_SIGN[size]), bits).view(values.dtype)


def quiet(values: np.ndarray) -> np.ndarray:
    """Every NaN becomes the one that PTX arithmetic gives."""
    is_nan = values != values
    if not is_nan.any():
        return values
    size = values.dtype.itemsize
    return np.where(is_nan, np.array(_NAN_BITS[size], f"u{size}"), values.view(f"u{size}")).view(values.dtype)


def cut(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Bits as another type: the low ones where that is narrower, extended by the sign of a signed source where it is wider."""
    if values.dtype.itemsize == dtype.itemsize:
        return values.view(dtype)
    if values.dtype.kind == "f":
        values = values.view(f"u{values.dtype.itemsize}")
    kind = "i" if values.dtype.kind == "i" else "u"
    return values.astype(f"{kind}{dtype.itemsize}").view(dtype)


def round_double(values: np.ndarray, mode: str, dtype: np.dtype = FLOAT32) -> np.ndarray:
    """float64 to a narrower type, rounded to nearest even (rn), toward zero (rz), down (rm) or up (rp)."""
    nearest = values.astype(dtype)
    if mode == "rn":
        return nearest
    back = nearest.astype(np.float64)
    down = (back > values) & ((mode == "rm") | ((mode == "rz") & (values > 0)))
    up = (back < values) & ((mode == "rp") | ((mode == "rz") & (values < 0)))
    lower, upper = np.nextafter(nearest, dtype.type(-np.inf)), np.nextafter(nearest, dtype.type(np.inf))
    return np.where(down, lower, np.where(up, upper, nearest))
