"""PTX's floating-point instructions: exactly rounded ones, with .ftz and .sat, and approximate ones.

Owns their functions. Knows nothing of opcodes that are no floating-point arithmetic.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import numpy as np

from emulated_gpu.ptx_text import Unsupported
from emulated_gpu.ptx_values import DTYPES, flush, quiet, round_double

_LIBM = ctypes.CDLL("libm.so.6")
_LIBM.fma.restype, _LIBM.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
_FMA = np.frompyfunc(_LIBM.fma, 3, 1)
_BELOW_FLOAT = np.int64((1 << 29) - 1)  # bits of a float64's mantissa that a float32 has not


def _fma32(a, b, c):
    """Rounded once. A product of two float32 is exact in float64; the sum is rounded to odd where rounding twice could show."""
    product, addend = np.multiply(a, b, dtype=np.float64), c.astype(np.float64)
    total = product + addend
    bits = total.view(np.int64)
    is_critical = ((bits & _BELOW_FLOAT) == 1 << 28) | (np.abs(total) < 2.0**-126)
    if not is_critical.any():
        return total.astype(np.float32)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    away = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(np.isfinite(error) & (error != 0) & ((bits & 1) == 0), bits + away, bits)
    return odd.view(np.float64).astype(np.float32)


def _fma64(a, b, c):
    """Rounded once: factors that are float32 have an exact product; the others go to the C library, one by one."""
    result = a * b + c
    is_exact = (a.astype(np.float32) == a) & (b.astype(np.float32) == b)
    if not is_exact.all():
        a, b, c, result = (np.broadcast_to(values, result.shape) for values in (a, b, c, result))
        rest = np.broadcast_to(~is_exact, result.shape)
        result = result.copy()
        result[rest] = _FMA(a[rest], b[rest], c[rest])
    return result


def _minimum(a, b, is_min: bool, keeps_nan: bool):
    bits = DTYPES[f"u{8 * a.dtype.itemsize}"]
    result = np.where((a < b) if is_min else (a > b), a, b)
    # -0 is less than +0.
    zeros = (a.view(bits) | b.view(bits)) if is_min else (a.view(bits) & b.view(bits))
    result = np.where((a == 0) & (b == 0), zeros.view(a.dtype), result)
    a_is_nan, b_is_nan = a != a, b != b
    if keeps_nan:
        return np.where(a_is_nan | b_is_nan, a.dtype.type(np.nan), result)
    return np.where(a_is_nan, b, np.where(b_is_nan, a, result))


# The largest errors that the PTX ISA documents: (kind, bound). `either` is absolute for operands between 1/2 and 2, and relative
# elsewhere. sin and cos are bounded within a turn; beyond it this takes the same.
_BOUNDS = {
    "rcp": ("ulp", 1.5),
    "div": ("ulp", 2.5),
    "sqrt": ("relative", 2.0**-23),
    "rsqrt": ("relative", 2.0**-22.9),
    "sin": ("absolute", 2.0**-20.5),
    "cos": ("absolute", 2.0**-20.5),
    "lg2": ("either", 2.0**-22),
    "ex2": ("ulp", 2.5),
    "tanh": ("relative", 2.0**-11),
}


def _approximate(name: str, function: Callable) -> Callable:
    def run(*args):
        exact = function(*(a.astype(np.float64) for a in args))
        errors = os.environ.get("EVO_EMULATED_GPU_ERRORS")
        return _with_error(name, exact, args, errors) if errors else exact.astype(args[0].dtype)

    return run


def _with_error(name: str, exact, args, errors: str):
    """The float32 next to the largest error within the documented bound: `up`, `down`, or `mixed` by the operands' bits."""
    kind, bound = _BOUNDS[name]
    x, dtype = args[0].astype(np.float64), args[0].dtype
    unit = {
        "absolute": lambda: np.ones(exact.shape),
        "relative": lambda: np.abs(exact),
        "ulp": lambda: np.ldexp(1.0, np.frexp(exact)[1] - 24),
        "either": lambda: np.where((x > 0.5) & (x < 2.0), 1.0, np.abs(exact)),
    }[kind]()
    mixed = sum(a.view(np.uint32) * np.uint32(factor) for a, factor in zip(args, (2654435761, 2246822519), strict=False))
    sign = {"up": 1.0, "down": -1.0, "mixed": np.where(mixed >> 31, 1.0, -1.0)}[errors]
    error = bound * unit
    result = (exact + sign * error).astype(dtype)
    is_beyond = np.abs(result.astype(np.float64) - exact) > error
    result = np.where(is_beyond, np.nextafter(result, exact.astype(dtype)), result)
    keeps = ~np.isfinite(exact) | (exact == 0) | (np.abs(exact) < 2.0**-125)
    return np.where(keeps, exact.astype(dtype), result)


def _divide_approximately(a, b):
    """a times 1/b, which is zero where |b| exceeds 2^126."""
    return np.where(np.abs(b) > 2.0**126, a * np.copysign(0.0, b), a / b)


def float_operation(name: str, parts: list[str], opcode: str) -> tuple[str, tuple[str, ...], Callable]:
    """Result type, source types and function of an instruction with these modifiers. Raises Unsupported."""
    *words, kind = parts
    dtype = DTYPES[kind]
    is_ftz, is_saturated = "ftz" in words, "sat" in words
    rounding = [w for w in words if w in ("rz", "rm", "rp", "rn")]
    rest = [w for w in words if w not in ("ftz", "sat", "rz", "rm", "rp", "rn", "f32")]
    directed = rounding[0] if rounding and rounding[0] != "rn" else None
    num_sources, function = _function(name, rest, kind, directed, opcode)

    def run(*args):
        if is_ftz:
            args = [flush(a) for a in args]
        result = function(*args)
        if is_ftz:
            result = flush(result)
        result = quiet(result)
        return np.where(result > 0, np.minimum(result, dtype.type(1)), dtype.type(0)) if is_saturated else result

    return kind, (kind,) * num_sources, run


def _function(name: str, rest: list[str], kind: str, directed: str | None, opcode: str) -> tuple[int, Callable]:
    if directed:
        if (name, kind, rest) != ("mul", "f32", []):
            raise Unsupported(opcode)
        return 2, lambda a, b: round_double(np.multiply(a, b, dtype=np.float64), directed)
    simple = {
        ("add",): (2, np.add),
        ("sub",): (2, np.subtract),
        ("mul",): (2, np.multiply),
        ("min",): (2, lambda a, b: _minimum(a, b, True, False)),
        ("max",): (2, lambda a, b: _minimum(a, b, False, False)),
        ("min", "NaN"): (2, lambda a, b: _minimum(a, b, True, True)),
        ("max", "NaN"): (2, lambda a, b: _minimum(a, b, False, True)),
        ("abs",): (1, np.abs),
        ("neg",): (1, np.negative),
        ("sqrt",): (1, np.sqrt),
        ("rcp",): (1, lambda a: a.dtype.type(1) / a),
        ("div",): (2, np.divide),
        ("div", "full"): (2, np.divide),
    }
    key = (name, *rest)
    if name == "fma" and not rest:
        if kind == "f64":
            return 3, _fma64
        if kind == "f32":
            return 3, _fma32
    elif key in simple:
        return simple[key]
    elif rest == ["approx"]:
        approximate = {
            "rcp": (1, lambda a: 1 / a),
            "sqrt": (1, np.sqrt),
            "rsqrt": (1, lambda a: 1 / np.sqrt(a)),
            "sin": (1, np.sin),
            "cos": (1, np.cos),
            "lg2": (1, np.log2),
            "ex2": (1, np.exp2),
            "tanh": (1, np.tanh),
            "div": (2, _divide_approximately),
        }
        if name in approximate:
            num_sources, function = approximate[name]
            return num_sources, _approximate(name, function)
    raise Unsupported(opcode)
