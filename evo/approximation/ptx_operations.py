"""Operations of PTX over NumPy arrays, by name, for operands of their types.

Plain operations of integers are those of NumPy; other instructions have the semantics of evo's set `bits`. Knows nothing of
statements.
"""

from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np

from evo.approximation.traced import instruction
from evo.instructions import shipped_instruction_set

Values = Any  # unsigned words of 16, 32 or 64 bits, or truths: an array, a traced one, or one number


def _mask(count: Values) -> Values:
    return (np.uint32(1) << count) - np.uint32(1)


def _bfe(a: Values, first: Values, count: Values) -> Values:
    return a >> (first & 255) & _mask(count & 255)


def _signed_bfe(a: Values, first: Values, count: Values) -> Values:
    first, count = first & 255, count & 255
    above = np.uint32(32) - np.minimum(first + count, np.uint32(32))
    moved = a.view(np.int32) << above.view(np.int32) >> (above + first).view(np.int32)
    return np.where(count == 0, np.uint32(0), moved.view(np.uint32))


def _bfi(a: Values, b: Values, first: Values, count: Values) -> Values:
    mask = _mask(count & 255) << (first & 255)
    return (a << (first & 255) & mask) | (b & ~mask)


def limited(values: Values, dtype: Any) -> Values:
    """Numbers within the limits of a type."""
    limits = np.iinfo(dtype)
    least, most = (values.dtype.type(limit) for limit in (limits.min, limits.max))
    return np.minimum(np.maximum(values, least), most).astype(dtype)


def _saturated(a: Values, b: Values) -> Values:
    return limited(a.view(np.int32).astype(np.int64) + b.view(np.int32), np.int32).view(np.uint32)


def _byte_distances(a: Values, b: Values, _: Values) -> Values:
    bytes_of = [(a >> np.uint32(k) & 255, b >> np.uint32(k) & 255, np.uint32(k)) for k in (0, 8, 16, 24)]
    return reduce(np.bitwise_or, ((np.maximum(x, y) - np.minimum(x, y)) << k for x, y, k in bytes_of))


def _position_from_above(a: Values) -> Values:
    position = instruction("bfind", a)
    return np.where(a == 0, position, np.uint32(31) - position)


_MINUS_ONES = {"f": 0xBF800000, "2_f16": 0xBC00BC00, "2_bf16": 0xBF80BF80}


def signed(name: str, a: Values, kind: str) -> Values:
    """A number with another sign, or without one; NaN is the canonical one."""
    suffix = "f" if kind == "f32" else f"2_{kind.removesuffix('x2')}"
    negative = instruction(f"mul{suffix}", a, np.uint32(_MINUS_ONES[suffix]))
    return negative if name == "neg" else instruction(f"max{suffix}", a, negative)


# Operations by name without a type, of integers and truths.
INTEGERS: dict[str, Callable[..., Values]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul.lo": np.multiply,
    "mad.lo": lambda a, b, c: a * b + c,
    "min": np.minimum,
    "max": np.maximum,
    "neg": np.negative,
    "abs": np.abs,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "sad": lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)).astype(c.dtype),
}
# Operations of words by their whole name.
WORDS: dict[str, Callable[..., Values]] = {
    "bfe.u32": _bfe,
    "bfe.s32": _signed_bfe,
    "bfi.b32": _bfi,
    "clz.b32": lambda a: np.uint32(31) - instruction("bfind", a),
    "bfind.shiftamt.u32": _position_from_above,
    "add.sat.s32": _saturated,
    "vabsdiff4.u32.u32.u32": _byte_distances,
    "cvt.rn.f16.f32": lambda a: instruction("f16x2_of_f32", np.uint32(0), a),
    "cvt.rn.bf16.f32": lambda a: instruction("bf16x2_of_f32", np.uint32(0), a),
    "cvt.f32.bf16": lambda a: a << np.uint32(16),
}
_ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
COMPARISONS = _ORDERED | {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
NOT = np.logical_not
OF_FLOATS: dict[str, Callable[..., Values]] = _ORDERED | {
    "ne": lambda a, b: np.logical_or(a < b, a > b),
    "equ": lambda a, b: NOT(np.logical_or(a < b, a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: NOT(a >= b),
    "leu": lambda a, b: NOT(a > b),
    "gtu": lambda a, b: NOT(a <= b),
    "geu": lambda a, b: NOT(a < b),
    "num": lambda a, b: NOT(np.logical_or(np.isnan(a), np.isnan(b))),
    "nan": lambda a, b: np.logical_or(np.isnan(a), np.isnan(b)),
}
TRUTHS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
ONES: dict[str, Any] = {"f32": np.uint32(0x3F800000), "f16": np.uint16(0x3C00), "bf16": np.uint16(0x3F80)}
ONES |= dict.fromkeys(("u32", "s32"), np.uint32(0xFFFFFFFF))
ROUNDED = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@cache
def instruction_names() -> dict[str, tuple[str, int]]:
    """PTX -> the instruction of `bits` and its operands, of those on words. `.rn` is the default of arithmetic."""
    chosen = shipped_instruction_set("bits").instructions
    word = chosen[-1].args[0]  # the last instructions of the set are on words
    names = {row.ptx: (row.name, len(row.args)) for row in chosen if {*row.args, *row.rets} == {word}}
    return names | {ptx.replace(".rn", ""): name for ptx, name in names.items() if ptx[:3] in ("add", "sub", "mul")}
