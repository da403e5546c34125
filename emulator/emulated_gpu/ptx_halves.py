"""PTX's instructions of f16x2, bf16 and bf16x2, and fma of f16.

Owns their functions. Knows nothing of the scalar f16 arithmetic that NumPy has. Results are rounded once, from float64: of a sum
that float64 cannot hold, its bits are made odd, so that the second rounding goes where one would.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulated_gpu.ptx_text import Unsupported


def _to_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum; if it is not exact, of the two float64 around it that of odd bits."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(np.isfinite(error) & (error != 0) & ((bits & 1) == 0), bits + away, bits).view(np.float64)


def _extreme(a: np.ndarray, b: np.ndarray, is_first: np.ndarray) -> np.ndarray:
    """A number beats a NaN."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b) | is_first, a, b))


def _minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _extreme(a, b, (a < b) | ((a == b) & np.signbit(a)))


_FUNCTIONS: dict[str, tuple[int, Callable]] = {
    "add": (2, _to_odd),
    "sub": (2, lambda a, b: _to_odd(a, -b)),
    "fma.rn": (3, lambda a, b, c: _to_odd(a * b, c)),
    "min": (2, _minimum),
    "max": (2, lambda a, b: -_minimum(-a, -b)),
    "mul": (2, np.multiply),
    "neg": (1, np.negative),
    "abs": (1, np.abs),
    "tanh.approx": (1, np.tanh),
    "ex2.approx": (1, np.exp2),
    "ex2.approx.ftz": (1, np.exp2),
}


def half_operation(name: str, parts: list[str], opcode: str) -> tuple[str, tuple[str, ...], Callable]:
    """Result type, source types and function of an instruction of f16, bf16 or two of them. Raises Unsupported."""
    *words, kind = parts
    key = ".".join([name, *(word for word in words if word != "rn" or name == "fma")])
    if key not in _FUNCTIONS or ("ftz" in words and not kind.startswith("bf16")):
        raise Unsupported(opcode)
    num_sources, function = _FUNCTIONS[key]
    is_bf16, is_pair = kind.startswith("bf16"), kind.endswith("x2")

    def of_halves(*halves: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            result = function(*(_wide(each, is_bf16) for each in halves))
        if "ftz" in words:
            result = np.where(np.abs(result) < 2.0**-126, result * 0.0, result)
        return _narrow(result, is_bf16)

    def run(*args: np.ndarray) -> np.ndarray:
        bits = [each.view(f"u{each.itemsize}") for each in args]
        if not is_pair:
            return of_halves(*bits).view(args[0].dtype)
        low, high = (of_halves(*((each >> np.uint32(shift)).astype(np.uint16) for each in bits)) for shift in (0, 16))
        return high.astype(np.uint32) << np.uint32(16) | low

    own = "b32" if is_pair else kind
    return own, (own,) * num_sources, run


def _wide(bits: np.ndarray, is_bf16: bool) -> np.ndarray:
    floats = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32) if is_bf16 else bits.view(np.float16)
    return floats.astype(np.float64)


def _narrow(values: np.ndarray, is_bf16: bool) -> np.ndarray:
    """Bits of the nearest halves, NaN as 0x7fff."""
    with np.errstate(all="ignore"):
        if is_bf16:
            _, exponent = np.frexp(values)
            unit = np.ldexp(1.0, np.maximum(exponent - 8, -133))
            nearest = np.copysign(np.where(np.isfinite(values), np.rint(values / unit) * unit, values), values)
            bits = (nearest.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        else:
            bits = values.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), bits)
