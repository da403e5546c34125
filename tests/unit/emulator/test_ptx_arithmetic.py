"""The emulator's arithmetic, instruction by instruction, against whole numbers of Python, fractions and the C library."""

from __future__ import annotations

import ctypes
import math
import struct
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from float_edges import EDGES

from .ptx_cases import apply

NAN = 0x7FFFFFFF
SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def edges_of(kind: str) -> list[int]:
    bits = int(kind[1:])
    if kind[0] == "s":
        return [0, 1, -1, 7, -7, 100, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), -(2 ** (bits - 1)) + 1, 12345 % 2 ** (bits - 1)]
    return [0, 1, 7, 100, 2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 0xDEADBEEFCAFEF00D % 2**bits]


def dtype_of(kind: str) -> type:
    return (SIGNED if kind[0] == "s" else UNSIGNED)[int(kind[1:])]


def wrap(value: int, kind: str) -> int:
    bits = int(kind[1:])
    value %= 2**bits
    return value - 2**bits if kind[0] == "s" and value >= 2 ** (bits - 1) else value


def divided(a: int, b: int) -> int:
    """Toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


TWO_OPERANDS = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul.lo": lambda a, b, bits: a * b,
    "mul.hi": lambda a, b, bits: (a * b) >> bits,
    "min": lambda a, b, bits: min(a, b),
    "max": lambda a, b, bits: max(a, b),
    "div": lambda a, b, bits: divided(a, b) if b else None,
    "rem": lambda a, b, bits: a - b * divided(a, b) if b else None,
}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", TWO_OPERANDS)
def test_integer_arithmetic(name, kind):
    pairs = [(a, b) for a, b in product(edges_of(kind), repeat=2) if TWO_OPERANDS[name](a, b, int(kind[1:])) is not None]
    a, b = (np.array(column, dtype_of(kind)) for column in zip(*pairs, strict=True))
    result = apply(f"{name}.{kind} %d, %a, %b", dtype_of(kind), kind, (kind, a), (kind, b))
    assert result.tolist() == [wrap(TWO_OPERANDS[name](x, y, int(kind[1:])), kind) for x, y in pairs]


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
def test_wide_products(kind):
    wide = f"{kind[0]}{2 * int(kind[1:])}"
    pairs = list(product(edges_of(kind), repeat=2))
    a, b = (np.array(column, dtype_of(kind)) for column in zip(*pairs, strict=True))
    assert apply(f"mul.wide.{kind} %d, %a, %b", dtype_of(wide), wide, (kind, a), (kind, b)).tolist() == [x * y for x, y in pairs]
    c = np.arange(len(a)).astype(dtype_of(wide))
    result = apply(f"mad.wide.{kind} %d, %a, %b, %c", dtype_of(wide), wide, (kind, a), (kind, b), (wide, c))
    assert result.tolist() == [wrap(x * y + z, wide) for (x, y), z in zip(pairs, c.tolist(), strict=True)]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_multiply_and_add(half, kind):
    triples = list(product(edges_of(kind)[:7], edges_of(kind)[3:], edges_of(kind)[::4]))
    a, b, c = (np.array(column, dtype_of(kind)) for column in zip(*triples, strict=True))
    result = apply(f"mad.{half}.{kind} %d, %a, %b, %c", dtype_of(kind), kind, (kind, a), (kind, b), (kind, c))
    shift = int(kind[1:]) if half == "hi" else 0
    assert result.tolist() == [wrap((x * y >> shift) + z, kind) for x, y, z in triples]


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("name", ["shl", "shr"])
def test_shifts_past_the_width_leave_nothing_but_the_sign(name, kind):
    if name == "shl" and kind[0] != "b":
        kind = f"b{kind[1:]}"
    plain = kind.replace("b", "u")
    bits = int(kind[1:])
    pairs = list(product(edges_of(plain), [0, 1, 5, bits - 1, bits, bits + 1, 255, 2**32 - 1]))
    a, b = np.array([x for x, _ in pairs], dtype_of(plain)), np.array([y for _, y in pairs], np.uint32)
    expected = [wrap(x << y if y < bits else 0, plain) if name == "shl" else x >> min(y, 1000) for x, y in pairs]
    assert apply(f"{name}.{kind} %d, %a, %b", dtype_of(plain), kind, (kind, a), ("u32", b)).tolist() == expected


def test_bits():
    a, b = (np.array(column, np.uint32) for column in zip(*product(edges_of("u32"), repeat=2), strict=True))
    for name, expected in (("and", a & b), ("or", a | b), ("xor", a ^ b)):
        np.testing.assert_array_equal(apply(f"{name}.b32 %d, %a, %b", np.uint32, "b32", ("b32", a), ("b32", b)), expected)
    one = ("b32", a)
    assert apply("not.b32 %d, %a", np.uint32, "b32", one).tolist() == [x ^ 0xFFFFFFFF for x in a.tolist()]
    assert apply("popc.b32 %d, %a", np.uint32, "u32", one).tolist() == [x.bit_count() for x in a.tolist()]
    assert apply("clz.b32 %d, %a", np.uint32, "u32", one).tolist() == [32 - x.bit_length() for x in a.tolist()]
    assert apply("bfind.u32 %d, %a", np.uint32, "u32", one).tolist() == [(x.bit_length() - 1) % 2**32 for x in a.tolist()]
    shifts = [32 - x.bit_length() if x else 2**32 - 1 for x in a.tolist()]
    assert apply("bfind.shiftamt.u32 %d, %a", np.uint32, "u32", one).tolist() == shifts
    assert apply("brev.b32 %d, %a", np.uint32, "b32", one).tolist() == [int(f"{x:032b}"[::-1], 2) for x in a.tolist()]
    assert apply("bfe.u32 %d, %a, 5, 9", np.uint32, "u32", one).tolist() == [x >> 5 & 511 for x in a.tolist()]
    assert apply("bfe.s32 %d, %a, 5, 9", np.int32, "s32", one).tolist() == [wrap((x >> 5) << 23, "s32") >> 23 for x in a.tolist()]
    expected = [y & ~(511 << 5) | (x & 511) << 5 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert apply("bfi.b32 %d, %a, %b, 5, 9", np.uint32, "b32", one, ("b32", b)).tolist() == expected
    expected = [(x << 32 | y) >> 25 & 0xFFFFFFFF for x, y in zip(b.tolist(), a.tolist(), strict=True)]
    assert apply("shf.l.wrap.b32 %d, %a, %b, 7", np.uint32, "b32", one, ("b32", b)).tolist() == expected
    assert apply("shf.r.clamp.b32 %d, %a, %b, 40", np.uint32, "b32", one, ("b32", b)).tolist() == b.tolist()
    expected = [x & 0xFF | (x >> 24) << 8 | (y & 0xFFFF) << 16 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert apply("prmt.b32 %d, %a, %b, 0x5430", np.uint32, "b32", one, ("b32", b)).tolist() == expected
    expected = [(x ^ y) & 0xFFFFFFFF for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert apply("lop3.b32 %d, %a, %b, 0, 0x3c", np.uint32, "b32", one, ("b32", b)).tolist() == expected


# ---- floats: the exact value as a fraction, rounded once -----------------------------------------------------------------


def float_of(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def rounded(value: Fraction) -> int:
    """The bits of the float32 nearest to a fraction, ties to even, by integers alone."""
    sign = 0x80000000 if value < 0 else 0
    value = abs(value)
    if value == 0:
        return sign
    exponent = max(math.floor(math.log2(value)), -126)
    exponent += value >= Fraction(2) ** (exponent + 1)
    exponent -= exponent > -126 and value < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - 23)
    whole = round(value / unit)  # Python rounds halves to even
    if whole >= 2**24:
        whole, exponent = whole // 2, exponent + 1
    if exponent > 127:
        return sign | 0x7F800000
    return sign | (whole if whole < 2**23 else (exponent + 127 << 23) + whole - 2**23)


def flushed(bits: int) -> int:
    return bits & 0x80000000 if bits & 0x7F800000 == 0 else bits


def exact(name: str, operands: tuple[int, ...], is_ftz: bool) -> int | None:
    """The expected bits where all operands are finite; None where zeros or infinities make a rule of their own."""
    values = [Fraction(float_of(flushed(bits) if is_ftz else bits)) for bits in operands]
    result = {
        "add": lambda: values[0] + values[1],
        "sub": lambda: values[0] - values[1],
        "mul": lambda: values[0] * values[1],
        "fma": lambda: values[0] * values[1] + values[2],
        "div": lambda: values[0] / values[1] if values[1] else None,
    }[name]()
    if result is None or result == 0:
        return None
    bits = rounded(result)
    return flushed(bits) if is_ftz else bits


FINITE = [bits for bits in EDGES.tolist() if bits & 0x7F800000 != 0x7F800000] + [0x3F800001, 0x3EAAAAAB, 0xBEAAAAAB, 0x4B800001]


ROUNDED = ["add.f32", "add.ftz.f32", "sub.f32", "mul.f32", "mul.rn.ftz.f32", "fma.rn.f32", "fma.rn.ftz.f32", "div.rn.f32"]


@pytest.mark.parametrize("name", ROUNDED)
def test_float_arithmetic_rounds_the_exact_value_once(name):
    count = 3 if name.startswith("fma") else 2
    tuples = list(product(FINITE, repeat=2))
    if count == 3:
        tuples = [(*pair, FINITE[(7 * i) % len(FINITE)]) for i, pair in enumerate(tuples)]
    columns = [np.array(column, np.uint32).view(np.float32) for column in zip(*tuples, strict=True)]
    operands = ", ".join(f"%{letter}" for letter in "abc"[:count])
    result = apply(f"{name} %d, {operands}", np.float32, "f32", *(("f32", column) for column in columns))
    compared = 0
    for bits, given in zip(tuples, result.view(np.uint32).tolist(), strict=True):
        expected = exact(name.split(".")[0], bits, "ftz" in name)
        if expected is not None:
            assert given == expected, f"{name} of {[f'{b:08x}' for b in bits]}: {given:08x}, expected {expected:08x}"
            compared += 1
    assert compared > len(tuples) // 2


def test_fused_multiply_add_of_doubles_is_that_of_the_c_library():
    fma = ctypes.CDLL("libm.so.6").fma
    fma.restype, fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 500))
    a[::3], b[::3] = a[::3].astype(np.float32), b[::3].astype(np.float32)
    c = -(a * b) * (1 + rng.integers(-3, 4, 500) * 2.0**-52)
    result = apply("fma.rn.f64 %d, %a, %b, %c", np.float64, "f64", ("f64", a), ("f64", b), ("f64", c))
    assert result.tolist() == [fma(*triple) for triple in zip(a, b, c, strict=True)]
    assert (result != a * b + c).any()


def bits32(*values: int) -> np.ndarray:
    return np.array(values, np.uint32).view(np.float32)


SPECIALS = [
    ("add.f32 %d, %a, %b", [0x7F800000, 0xFF800000], NAN),
    ("mul.ftz.f32 %d, %a, %b", [0x7F800000, 0x80000001], NAN),
    ("mul.f32 %d, %a, %b", [0x7F800000, 0x80000001], 0xFF800000),
    ("add.ftz.f32 %d, %a, %b", [0x80000001, 0x80000001], 0x80000000),
    ("add.f32 %d, %a, %b", [0x7FC12345, 0x3F800000], NAN),
    ("min.f32 %d, %a, %b", [0x00000000, 0x80000000], 0x80000000),
    ("min.f32 %d, %a, %b", [0x80000000, 0x00000000], 0x80000000),
    ("max.f32 %d, %a, %b", [0x80000000, 0x00000000], 0x00000000),
    ("max.f32 %d, %a, %b", [0x00000000, 0x80000000], 0x00000000),
    ("min.f32 %d, %a, %b", [0x7FA00000, 0x40000000], 0x40000000),
    ("max.f32 %d, %a, %b", [0x40000000, 0xFFC00000], 0x40000000),
    ("max.NaN.f32 %d, %a, %b", [0x40000000, 0xFFC00000], NAN),
    ("min.ftz.f32 %d, %a, %b", [0x00000001, 0x40000000], 0x00000000),
    ("min.f32 %d, %a, %b", [0x7FC00000, 0xFFC00000], NAN),
    ("copysign.f32 %d, %a, %b", [0x80000000, 0x7FA00001], 0xFFA00001),
    ("abs.ftz.f32 %d, %a", [0x80000001], 0x00000000),
    ("abs.f32 %d, %a", [0x80000001], 0x00000001),
    ("neg.f32 %d, %a", [0x00000000], 0x80000000),
    ("add.sat.f32 %d, %a, %b", [0x3F800000, 0x3F800000], 0x3F800000),
    ("add.sat.f32 %d, %a, %b", [0xBF800000, 0xBF800000], 0x00000000),
    ("rcp.approx.ftz.f32 %d, %a", [0x80000001], 0xFF800000),
    ("sqrt.rn.f32 %d, %a", [0x80000000], 0x80000000),
    ("sqrt.approx.ftz.f32 %d, %a", [0xBF800000], NAN),
    ("rsqrt.approx.ftz.f32 %d, %a", [0x80000000], 0xFF800000),
    ("lg2.approx.ftz.f32 %d, %a", [0x00000001], 0xFF800000),
    ("ex2.approx.ftz.f32 %d, %a", [0xFF800000], 0x00000000),
    ("sin.approx.ftz.f32 %d, %a", [0x7F800000], NAN),
    ("tanh.approx.f32 %d, %a", [0x7F800000], 0x3F800000),
    ("div.approx.ftz.f32 %d, %a, %b", [0x3F800000, 0x7F7FFFFF], 0x00000000),
    ("div.approx.ftz.f32 %d, %a, %b", [0x7F800000, 0x7F7FFFFF], NAN),
]


@pytest.mark.parametrize(("instruction", "operands", "expected"), SPECIALS)
def test_special_values(instruction, operands, expected):
    result = apply(instruction, np.float32, "f32", *(("f32", bits32(bits)) for bits in operands))
    assert f"{result.view(np.uint32)[0]:08x}" == f"{expected:08x}"


@pytest.mark.parametrize(
    "comparison", ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
)
def test_comparisons_of_floats(comparison):
    values = [0x00000000, 0x80000000, 0x00000001, 0x3F800000, 0xBF800000, 0x7F800000, 0x7FC00000]
    pairs = list(product(values, repeat=2))
    plain = {
        "eq": float.__eq__,
        "ne": float.__ne__,
        "lt": float.__lt__,
        "le": float.__le__,
        "gt": float.__gt__,
        "ge": float.__ge__,
    }

    def expected(a: float, b: float) -> bool:
        is_unordered = math.isnan(a) or math.isnan(b)
        if comparison in ("num", "nan"):
            return is_unordered == (comparison == "nan")
        return comparison.endswith("u") and len(comparison) == 3 if is_unordered else plain[comparison[:2]](a, b)

    columns = [bits32(*column) for column in zip(*pairs, strict=True)]
    operands = [("f32", column) for column in columns]
    result = apply(f"setp.{comparison}.f32 %d, %a, %b", np.uint32, "pred", *operands)
    assert result.tolist() == [expected(*map(float_of, pair)) for pair in pairs]
    result = apply(f"setp.{comparison}.ftz.f32 %d, %a, %b", np.uint32, "pred", *operands)
    assert result.tolist() == [expected(*(float_of(flushed(bits)) for bits in pair)) for pair in pairs]


def test_predicates_join_and_come_in_pairs():
    a, b = np.array([1, 1, 2, 2], np.int32), np.array([0, 1, 0, 1], np.uint32)
    sources = (("s32", a), ("pred", b))
    assert apply("setp.eq.and.s32 %d, %a, 1, %b", np.uint32, "pred", *sources).tolist() == [0, 1, 0, 0]
    assert apply("setp.eq.or.s32 %d, %a, 1, !%b", np.uint32, "pred", *sources).tolist() == [1, 1, 1, 0]
    assert apply(".reg .pred %n; setp.eq.s32 %n|%d, %a, 1", np.uint32, "pred", *sources).tolist() == [0, 0, 1, 1]
    assert apply("selp.s32 %d, %a, -1, %b", np.int32, "s32", *sources).tolist() == [-1, 1, -1, 2]
    assert apply("setp.lo.u32 %d, %a, 2", np.uint32, "pred", ("u32", a.view(np.uint32))).tolist() == [1, 1, 0, 0]


CONVERSIONS = [
    ("cvt.rzi.s32.f32", "f32", 0xCEFFFFFF, "s32", -2147483520),
    ("cvt.rzi.s32.f32", "f32", 0x7F800000, "s32", 2**31 - 1),
    ("cvt.rzi.u32.f32", "f32", 0xBF800000, "u32", 0),
    ("cvt.rzi.s32.f32", "f32", 0x7FC00000, "s32", 0),
    ("cvt.rni.s32.f32", "f32", 0x40200000, "s32", 2),
    ("cvt.rmi.s32.f32", "f32", 0xBF000000, "s32", -1),
    ("cvt.rpi.s32.f32", "f32", 0x3F000000, "s32", 1),
    ("cvt.rzi.u64.f32", "f32", 0x5F000000, "u64", 2**63),
    ("cvt.rzi.s64.f32", "f32", 0x5F000000, "s64", 2**63 - 1),
    ("cvt.rzi.s64.f32", "f32", 0x7FC00000, "s64", -(2**63)),
    ("cvt.rn.f32.u32", "u32", 0xFFFFFFFF, "f32", 0x4F800000),
    ("cvt.rz.f32.u32", "u32", 0xFFFFFFFF, "f32", 0x4F7FFFFF),
    ("cvt.rn.f32.s32", "s32", 16777217, "f32", 0x4B800000),
    ("cvt.rp.f32.s32", "s32", 16777217, "f32", 0x4B800001),
    ("cvt.rn.f32.u64", "u64", 2**64 - 1, "f32", 0x5F800000),
    ("cvt.rni.f32.f32", "f32", 0x40200000, "f32", 0x40000000),
    ("cvt.sat.f32.f32", "f32", 0x40200000, "f32", 0x3F800000),
    ("cvt.ftz.f32.f32", "f32", 0x80000001, "f32", 0x80000000),
    ("cvt.f64.f32", "f32", 0x3F800001, "f64", 0x3FF0000020000000),
    ("cvt.ftz.f64.f32", "f32", 0x00000001, "f64", 0),
    ("cvt.rn.f32.f64", "f64", 0x3FF0000010000000, "f32", 0x3F800000),
    ("cvt.rp.f32.f64", "f64", 0x3FF0000010000000, "f32", 0x3F800001),
    ("cvt.rn.ftz.f32.f64", "f64", 0x3800000000000000, "f32", 0),
    ("cvt.rn.f64.u32", "u32", 0xFFFFFFFF, "f64", 0x41EFFFFFFFE00000),
    ("cvt.f32.f16", "b16", 0x3555, "f32", 0x3EAAA000),
    ("cvt.f32.f16", "b16", 0x0001, "f32", 0x33800000),
    ("cvt.rn.f16.f32", "f32", 0x477FF000, "b16", 0x7C00),
    ("cvt.rn.f16.f32", "f32", 0x3F801000, "b16", 0x3C00),
    ("cvt.rna.tf32.f32", "f32", 0x3F801000, "b32", 0x3F802000),
    ("cvt.rna.tf32.f32", "f32", 0x7F7FFFFF, "b32", 0x7F800000),
    ("cvt.u32.u8", "b8", 0xFF, "u32", 0xFF),
    ("cvt.s32.s8", "b8", 0xFF, "s32", -1),
    ("cvt.u64.s32", "s32", -1, "u64", 2**64 - 1),
    ("cvt.u64.u32", "u32", 2**32 - 1, "u64", 2**32 - 1),
    ("cvt.u32.u64", "u64", 2**32 + 5, "u32", 5),
    ("cvt.sat.u8.s32", "s32", -3, "u32", 0),
    ("cvt.sat.s8.s32", "s32", 300, "s32", 127),
]


@pytest.mark.parametrize(("instruction", "source_kind", "source", "kind", "expected"), CONVERSIONS)
def test_conversions(instruction, source_kind, source, kind, expected):
    source_bits = {"b8": 8, "b16": 16, "f32": 32, "u32": 32, "s32": 32, "f64": 64, "u64": 64}[source_kind]
    bits = {"b16": 16, "b32": 32, "f32": 32, "u32": 32, "s32": 32, "f64": 64, "u64": 64, "s64": 64}[kind]
    values = np.array([source & (2**source_bits - 1)], UNSIGNED[source_bits])
    result = apply(f"{instruction} %d, %a", UNSIGNED[bits], kind, (source_kind, values))
    assert f"{result[0]:x}" == f"{expected & (2**bits - 1):x}"


def test_halves_and_bytes_come_apart_and_together():
    a = np.array([0x12345678, 0xFFFE0001], np.uint32)
    split = ".reg .b16 %l, %h; mov.b32 {%l, %h}, %a; mov.b32 %d, {%h, %l}"
    assert apply(split, np.uint32, "b32", ("b32", a)).tolist() == [0x56781234, 0x0001FFFE]
    split = ".reg .b8 %w, %x, %y, %z; mov.b32 {%w, %x, %y, %z}, %a; cvt.u32.u8 %d, %y"
    assert apply(split, np.uint32, "u32", ("b32", a)).tolist() == [0x34, 0xFE]
    assert apply("mov.b64 %d, {%a, %a}", np.uint64, "b64", ("b32", a)).tolist() == [0x1234567812345678, 0xFFFE0001FFFE0001]


def test_constants_are_read_as_the_type_that_they_stand_for():
    a = np.ones(1, np.float32)
    for text, expected in (("0f40000000", 2.0), ("0d4000000000000000", 2.0), ("2.5", 2.5), ("-0.5", -0.5), ("1e3", 1000.0)):
        assert apply(f"mul.f32 %d, %a, {text}", np.float32, "f32", ("f32", a)).tolist() == [expected]
    b = np.zeros(1, np.uint32)
    for text, expected in (("0x10U", 16), ("0b101", 5), ("017", 15), ("-1", 2**32 - 1), ("0", 0), ("12u", 12)):
        assert apply(f"add.u32 %d, %a, {text}", np.uint32, "u32", ("u32", b)).tolist() == [expected]


KINDS = {
    "finite": [1, 1, 1, 0, 0],
    "normal": [0, 0, 1, 0, 0],
    "subnormal": [0, 1, 0, 0, 0],
    "number": [1, 1, 1, 1, 0],
    "notanumber": [0, 0, 0, 0, 1],
    "infinite": [0, 0, 0, 1, 0],
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_numbers(kind):
    a = bits32(0, 1, 0x3F800000, 0xFF800000, 0x7FC00000)
    assert apply(f"testp.{kind}.f32 %d, %a", np.uint32, "pred", ("f32", a)).tolist() == KINDS[kind]
