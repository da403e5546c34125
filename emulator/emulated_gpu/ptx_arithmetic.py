"""PTX's arithmetic instructions on NumPy arrays: an independent reading of the PTX ISA, to judge kernels by.

Owns what an opcode such as `mad.lo.u32` means: types and a function. Knows nothing of registers, threads or memory.

Exact instructions are exact, with NaN as 0x7fffffff. Approximate ones (sin.approx, ex2.approx, ...) are computed in float64 and
rounded: closer to the truth than a GPU, and not its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from emulated_gpu.ptx_conversion import conversion
from emulated_gpu.ptx_floats import float_operation
from emulated_gpu.ptx_halves import half_operation
from emulated_gpu.ptx_text import Unsupported
from emulated_gpu.ptx_values import DTYPES, flush, unsigned

_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


@dataclass(frozen=True)
class Operation:
    """Meaning of an opcode. `function` takes an array for each of `sources` and gives one of `result`, or a pair of them.

    Arrays have the element type of DTYPES for their type, and `(n,)` or `(1,)` elements.
    """

    result: str
    sources: tuple[str, ...]
    function: Callable


@cache
def operation(opcode: str, num_operands: int) -> Operation:
    """The operation of an opcode with so many operands, results included.

    Raises:
        Unsupported: it has no meaning here.
    """
    name, *parts = opcode.split(".")
    if name == "cvt":
        return Operation(*conversion(parts, opcode, num_operands))
    if name in ("setp", "set"):
        return _setp(name, parts, num_operands)
    if name == "selp":
        return Operation(parts[-1], (parts[-1], parts[-1], "pred"), lambda a, b, p: np.where(p, a, b))
    if name == "slct":
        return Operation(parts[0], (parts[0], parts[0], parts[-1]), lambda a, b, c: np.where(c >= 0, a, b))
    if name == "testp":
        return _testp(parts)
    if name == "copysign":
        return _bits_of_float(parts[-1], 2, lambda a, b, sign: (a & sign) | (b & ~sign))
    if name == "prmt" and parts[0] == "b32" and parts[-1] in _PRMT_MODES:
        return Operation("b32", ("b32", "b32", "u32"), _permute_by(parts[-1]))
    kind = parts[-1] if parts else ""
    if name in _BITWISE:
        num_sources, function = _BITWISE[name]
        return Operation(kind, (kind,) * num_sources, function)
    if name in ("shl", "shr"):
        return _shift(name, kind)
    if kind in ("f16x2", "bf16", "bf16x2") or (name, kind) == ("fma", "f16"):
        return Operation(*half_operation(name, parts, opcode))
    if kind in ("f32", "f64", "f16"):
        return Operation(*float_operation(name, parts, opcode))
    if kind[:1] in ("u", "s", "b") and kind in DTYPES:
        return _integer(name, parts, kind, opcode)
    raise Unsupported(opcode)


# ---- bits ------------------------------------------------------------------------------------------------------------


def _lop3(a, b, c, table):
    result = np.zeros(1, a.dtype)
    for index in range(8):
        is_set = (table.astype(a.dtype) >> a.dtype.type(index) & a.dtype.type(1)) * a.dtype.type(np.iinfo(a.dtype).max)
        result = result | (is_set & (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c))
    return result


_BITWISE = {
    "and": (2, lambda a, b: a & b),
    "or": (2, lambda a, b: a | b),
    "xor": (2, lambda a, b: a ^ b),
    "not": (1, lambda a: ~a),
    "cnot": (1, lambda a: (a == 0).astype(a.dtype)),
    "lop3": (4, _lop3),
}


def _shift(name: str, kind: str) -> Operation:
    bits = 8 * DTYPES[kind].itemsize

    def shift(a, b):
        # Amounts past the width count as the width.
        most = np.minimum(b, np.uint32(bits - 1)).astype(a.dtype)
        if name == "shl":
            return np.where(b >= bits, a.dtype.type(0), a << most)
        return a >> most if a.dtype.kind == "i" else np.where(b >= bits, a.dtype.type(0), a >> most)

    return Operation(kind, (kind, "u32"), shift)


def _bits_of_float(kind: str, num_sources: int, function: Callable) -> Operation:
    """A function of a float's bits and the bit of its sign."""
    bits = DTYPES[unsigned(kind)]
    sign = bits.type(1 << (8 * bits.itemsize - 1))
    return Operation(kind, (kind,) * num_sources, lambda *args: function(*(a.view(bits) for a in args), sign).view(DTYPES[kind]))


# ---- integers --------------------------------------------------------------------------------------------------------


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(DTYPES[f"{'s' if array.dtype.kind == 'i' else 'u'}{16 * array.dtype.itemsize}"])


def _high(a, b):
    """The upper half of the product."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        return (_wide(a) * _wide(b) >> bits).astype(a.dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(a.dtype)


def _divide(a, b, wants_remainder: bool):
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = np.where(b == 0, a.dtype.type(np.iinfo(a.dtype).max), a // safe)
        return np.where(b == 0, a, a % safe) if wants_remainder else quotient
    quotient = a // safe
    quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    result = (a - quotient * safe) if wants_remainder else quotient
    return np.where(b == 0, a if wants_remainder else a.dtype.type(-1), result).astype(a.dtype)


def _saturated_sum(a, b):
    limits = np.iinfo(np.int32)
    return np.clip(a.astype(np.int64) + b, limits.min, limits.max).astype(np.int32)


def _extract(a, start, length):
    """bfe: a field of bits, for signed types with its top bit repeated."""
    bits = 8 * a.dtype.itemsize
    start, length = (start & 0xFF).astype(np.int64), (length & 0xFF).astype(np.int64)
    wide = a.astype(object) if bits == 64 else a.astype(np.int64)
    if a.dtype.kind == "u":
        field = np.where(start >= bits, 0, (wide >> np.minimum(start, bits - 1)) & ((1 << np.minimum(length, bits)) - 1))
        return field.astype(a.dtype)
    top = np.minimum(start + length - 1, bits - 1)
    value = wide >> np.minimum(start, bits - 1)
    sign = (wide >> np.maximum(top, 0)) & 1
    kept = np.clip(bits - start, 0, np.minimum(length, bits))
    field = np.where(kept > 0, value & ((1 << kept) - 1), 0)
    return np.where(length == 0, 0, np.where(sign == 1, field - (1 << kept), field)).astype(a.dtype)


def _insert(a, b, start, length):
    """bfi: the low bits of a over a field of b."""
    bits = 8 * a.dtype.itemsize
    start, length = start & 0xFF, length & 0xFF
    one, all_ones = a.dtype.type(1), a.dtype.type(np.iinfo(a.dtype).max)
    ones = np.where(length >= bits, all_ones, (one << np.minimum(length, bits - 1).astype(a.dtype)) - one)
    shift = np.minimum(start, bits - 1).astype(a.dtype)
    mask = np.where(start >= bits, a.dtype.type(0), ones << shift)
    return (b & ~mask) | ((a << shift) & mask)


def _permute(a, b, selector):
    """prmt: bytes of the pair b:a by four-bit selectors; a selector's top bit asks for the byte's sign instead."""
    pair = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.zeros(1, np.uint32)
    for i in range(4):
        nibble = selector >> np.uint32(4 * i) & np.uint32(15)
        byte = (pair >> (np.uint64(8) * (nibble & np.uint32(7)))).astype(np.uint32) & np.uint32(0xFF)
        byte = np.where(nibble & np.uint32(8), np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0)), byte)
        result = result | (byte << np.uint32(8 * i))
    return result


# Selectors of prmt's modes by the two low bits of its third operand, PTX ISA, table of "prmt".
_PRMT_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def _permute_by(mode: str) -> Callable:
    selectors = np.array(_PRMT_MODES[mode], np.uint32)
    return lambda a, b, control: _permute(a, b, selectors[control & np.uint32(3)])


def _dot_of_bytes(a, b, c):
    for i in range(0, 32, 8):
        one, two = ((x << x.dtype.type(24 - i)) >> x.dtype.type(24) for x in (a, b))
        c = c + one * two
    return c


def _leading_zeros(a):
    bits = 8 * a.dtype.itemsize
    zeros = np.full(a.shape, bits, np.uint32)
    for i in range(bits):
        zeros = np.where(a >> a.dtype.type(i) & a.dtype.type(1), np.uint32(bits - 1 - i), zeros)
    return zeros


def _most_significant(a):
    """Position of the highest bit that differs from the sign, all ones where there is none."""
    bits = 8 * a.dtype.itemsize
    magnitude = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}")
    return (np.uint32(bits - 1) - _leading_zeros(magnitude)).astype(np.uint32)


def _shift_to_top(a):
    """As `_most_significant`, but by how much it is to be shifted to the left to be at the top."""
    position = _most_significant(a)
    return np.where(position == np.uint32(0xFFFFFFFF), position, np.uint32(8 * a.dtype.itemsize - 1) - position).astype(np.uint32)


def _reverse(a):
    result = np.zeros(1, a.dtype)
    for i in range(8 * a.dtype.itemsize):
        result = (result << a.dtype.type(1)) | (a >> a.dtype.type(i) & a.dtype.type(1))
    return result


def _funnel(is_left: bool, wraps: bool):
    def shift(a, b, c):
        amount = (c & np.uint32(31)) if wraps else np.minimum(c, np.uint32(32))
        amount, pair = amount.astype(np.uint64), a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        return ((pair << amount) >> np.uint64(32) if is_left else pair >> amount).astype(np.uint32)

    return shift


def _integer(name: str, parts: list[str], kind: str, opcode: str) -> Operation:
    mode = parts[0]
    if name in ("mul", "mad") and mode in ("lo", "hi", "wide"):
        base = {"lo": lambda a, b: a * b, "hi": _high, "wide": lambda a, b: _wide(a) * _wide(b)}[mode]
        result = f"{kind[0]}{2 * int(kind[1:])}" if mode == "wide" else kind
        if name == "mul":
            return Operation(result, (kind, kind), base)
        if "sat" not in parts:
            return Operation(result, (kind, kind, result), lambda a, b, c: base(a, b) + c)
    if parts == ["sat", "s32"] and name in ("add", "sub"):
        return Operation(
            kind, (kind, kind), _saturated_sum if name == "add" else lambda a, b: _saturated_sum(a, -b.astype(np.int64))
        )
    if name == "shf":
        return Operation(kind, (kind, kind, "u32"), _funnel(mode == "l", parts[1] == "wrap"))
    simple = {
        "add": (2, lambda a, b: a + b),
        "sub": (2, lambda a, b: a - b),
        "min": (2, np.minimum),
        "max": (2, np.maximum),
        "div": (2, lambda a, b: _divide(a, b, False)),
        "rem": (2, lambda a, b: _divide(a, b, True)),
        "neg": (1, lambda a: (-a.view(DTYPES[unsigned(kind)])).view(a.dtype)),
        "abs": (1, np.abs),
        "sad": (3, lambda a, b, c: np.where(a > b, a - b, b - a) + c),
        "brev": (1, _reverse),
    }
    if name in simple and parts == [kind]:
        num_sources, function = simple[name]
        return Operation(kind, (kind,) * num_sources, function)
    others = {
        "popc": ("u32", (kind,), lambda a: np.bitwise_count(a).astype(np.uint32)),
        "clz": ("u32", (kind,), _leading_zeros),
        "bfe": (kind, (kind, "u32", "u32"), _extract),
        "bfi": (kind, (kind, kind, "u32", "u32"), _insert),
        "prmt": (kind, (kind, kind, "u32"), _permute),
    }
    if name in others and parts == [kind]:
        return Operation(*others[name])
    if name == "dp4a" and parts in (["u32", "u32"], ["s32", "s32"]):
        return Operation(kind, (kind,) * 3, _dot_of_bytes)
    if name == "bfind" and parts in ([kind], ["shiftamt", kind]):
        return Operation("u32", (kind,), _shift_to_top if mode == "shiftamt" else _most_significant)
    raise Unsupported(opcode)


# ---- predicates ------------------------------------------------------------------------------------------------------


def _setp(name: str, parts: list[str], num_operands: int) -> Operation:
    if name == "set":
        raise Unsupported(".".join([name, *parts]))
    comparison, kind = parts[0], parts[-1]
    logic = next((_LOGIC[part] for part in parts[1:-1] if part in _LOGIC), None)
    is_ftz = "ftz" in parts
    is_float = kind[0] == "f"

    def compare(a, b):
        if is_ftz:
            a, b = flush(a), flush(b)
        if comparison in _COMPARISONS:
            result = _COMPARISONS[comparison](a, b)
            return result & (a == a) & (b == b) if comparison == "ne" and is_float else result
        neither = (a == a) & (b == b)
        if comparison in ("num", "nan"):
            return neither if comparison == "num" else ~neither
        return _COMPARISONS[_UNORDERED[comparison]](a, b) | ~neither

    if comparison not in _COMPARISONS and comparison not in _UNORDERED and comparison not in ("num", "nan"):
        raise Unsupported(".".join([name, *parts]))
    if logic is None:
        return Operation("pred", (kind, kind), lambda a, b: (r := compare(a, b), ~r))
    return Operation("pred", (kind, kind, "pred"), lambda a, b, p: (logic(r := compare(a, b), p), logic(~r, p)))


def _testp(parts: list[str]) -> Operation:
    kind = parts[-1]
    smallest = np.finfo(DTYPES[kind]).tiny
    tests = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= smallest),
        "subnormal": lambda a: (np.abs(a) < smallest) & (a != 0),
    }
    return Operation("pred", (kind,), tests[parts[0]])
