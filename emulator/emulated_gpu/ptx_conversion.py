"""PTX's cvt, between all numeric types.

Owns conversions. Knows nothing of registers, threads or memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulated_gpu.ptx_text import TYPE_BYTES, Unsupported
from emulated_gpu.ptx_values import DTYPES, flush, quiet, round_double

_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FLOAT_ROUNDING = ("rn", "rz", "rm", "rp", "rna")


def conversion(parts: list[str], opcode: str, num_operands: int) -> tuple[str, tuple[str, ...], Callable]:
    """Result type, source types and function of `cvt` with these modifiers. Raises Unsupported."""
    target, source = parts[-2:]
    words = parts[:-2]
    if target == "tf32":
        return "b32", ("f32",), _to_tf32(words, opcode)
    if target == "f16x2" and source == "f32" and num_operands == 3:
        return "f16x2", ("f32", "f32"), _pack_halves(words, opcode)
    if target == "bf16x2" and source == "f32" and num_operands == 3:
        _, _, rounded = _bfloat("bf16", source, words, opcode)
        return "b32", ("f32", "f32"), lambda high, low: rounded(high).astype(np.uint32) << np.uint32(16) | rounded(low)
    if target == "bf16" or source == "bf16":
        return _bfloat(target, source, words, opcode)
    unknown = set(words) - {"ftz", "sat", *_TO_INTEGER, *_FLOAT_ROUNDING}
    if unknown or target not in TYPE_BYTES or source not in TYPE_BYTES or "rna" in words:
        raise Unsupported(opcode)
    rounding = next((word for word in words if word not in ("ftz", "sat")), None)
    is_ftz, is_saturated = "ftz" in words, "sat" in words
    if target[0] == "f" and source[0] == "f":
        function = _float_to_float(target, source, rounding)
    elif target[0] == "f":
        function = _integer_to_float(target, rounding or "rn")
    elif source[0] == "f":
        if rounding not in _TO_INTEGER:
            raise Unsupported(f"{opcode}: float to integer needs .rni, .rzi, .rmi or .rpi")
        function = _float_to_integer(target, source, rounding)
    else:
        function = _integer_to_integer(target, is_saturated)

    def convert(values):
        if is_ftz and source == "f32":
            values = flush(values)
        result = function(values)
        if target[0] != "f":
            return result
        if is_ftz and target == "f32":
            result = flush(result)
        if is_saturated:
            return np.where(result > 0, np.minimum(result, result.dtype.type(1)), result.dtype.type(0))
        return quiet(result)

    return target, (source,), convert


def _float_to_float(target: str, source: str, rounding: str | None) -> Callable:
    dtype = DTYPES[target]
    if rounding in _TO_INTEGER:
        return lambda values: _TO_INTEGER[rounding](values).astype(dtype)
    if TYPE_BYTES[target] >= TYPE_BYTES[source] or rounding in (None, "rn"):
        return lambda values: values.astype(dtype)
    return lambda values: round_double(values.astype(np.float64), rounding, dtype)


def _integer_to_float(target: str, rounding: str) -> Callable:
    dtype = DTYPES[target]
    if rounding == "rn" and target != "f16":
        return lambda values: values.astype(dtype)

    def convert(values):
        exact = values.astype(np.float64)
        if values.dtype.itemsize == 8 and (np.abs(exact) > 2.0**53).any():
            raise Unsupported(f"cvt.{rounding} of integers past 2^53")
        return round_double(exact, rounding, dtype)

    return convert


def _float_to_integer(target: str, source: str, rounding: str) -> Callable:
    dtype = DTYPES[target]
    limits = np.iinfo(dtype)
    # NaN is zero, but the highest bit alone where one of both types has 64 bits.
    of_nan = 1 << (limits.bits - 1) if source == "f64" or target in ("s64", "u64") else 0
    of_nan = np.array([of_nan], f"u{dtype.itemsize}").view(dtype)[0]

    def convert(values):
        whole = _TO_INTEGER[rounding](values.astype(np.float64))
        below, above = whole < float(limits.min), whole >= float(limits.max) + (1 if limits.bits < 64 else 0)
        inside = np.where(below | above | np.isnan(whole), 0.0, whole).astype(dtype)
        result = np.where(below, limits.min, np.where(above, limits.max, inside)).astype(dtype)
        return np.where(np.isnan(whole), of_nan, result)

    return convert


def _integer_to_integer(target: str, is_saturated: bool) -> Callable:
    dtype = DTYPES[target]
    if not is_saturated:
        return lambda values: values.astype(dtype)
    limits = np.iinfo(dtype)

    def convert(values):
        own = np.iinfo(values.dtype)
        return np.clip(values, max(limits.min, own.min), min(limits.max, own.max)).astype(dtype)

    return convert


def _to_tf32(words: list[str], opcode: str) -> Callable:
    """Ten bits of mantissa; ties away from zero (rna) or to even (rn)."""
    if words not in (["rna"], ["rn"], ["rz"]):
        raise Unsupported(opcode)

    def convert(values):
        bits = values.view(np.uint32)
        if words == ["rna"]:
            rounded = bits + np.uint32(0x1000)
        elif words == ["rn"]:
            rounded = bits + np.uint32(0x0FFF) + (bits >> np.uint32(13) & np.uint32(1))
        else:
            rounded = bits
        rounded = np.where(np.isinf(values), bits, rounded) & np.uint32(0xFFFFE000)
        return np.where(np.isnan(values), np.uint32(0x7FFFFFFF), rounded)

    return convert


def _pack_halves(words: list[str], opcode: str) -> Callable:
    if words != ["rn"]:
        raise Unsupported(opcode)

    def convert(upper, lower):
        halves = [quiet(values.astype(np.float16)).view(np.uint16).astype(np.uint32) for values in (upper, lower)]
        return (halves[0] << np.uint32(16)) | halves[1]

    return convert


def _bfloat(target: str, source: str, words: list[str], opcode: str) -> tuple[str, tuple[str, ...], Callable]:
    if (target, source, words) == ("f32", "bf16", []):
        return target, (source,), lambda values: (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if (target, source, words) != ("bf16", "f32", ["rn"]):
        raise Unsupported(opcode)

    def convert(values):
        bits = values.view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
        return np.where(np.isnan(values), np.uint32(0x7FFF), rounded >> np.uint32(16)).astype(np.uint16)

    return target, (source,), convert
