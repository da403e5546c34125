"""Instructions of words and packed numbers, beside ml_dtypes, NumPy's floats and definitions of the PTX ISA in whole numbers."""

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine, levels

SET = shipped_instruction_set("bits")
PAIRS = 1 << 20  # of halves, two in a word


def run(name, *operands, level=None):
    names = "abc"[: len(operands)]
    language = Language(SET, tuple((each, "b32") for each in names), (("r", "b32"),))
    text = " ".join([*(f"%{each}" for each in reversed(names)), name])
    words = parse_program(language, text, "test")
    arrays = [np.ascontiguousarray(each, np.uint32) for each in operands]
    return VirtualMachine(language.lowering, level).store(words[None], [*arrays, None])[0, 0].view(np.uint32)


def draw(count, seed=0):
    """Words, some of few ones, and floats near each other."""
    made = np.random.default_rng(seed).integers(0, 1 << 32, (3, count), np.uint32)
    made[1, ::3] &= made[2, ::3]
    made[2, ::5] = made[0, ::5] ^ (made[1, ::5] & 0x00FF00FF)
    made[0, ::7] &= 0x83FF83FF  # subnormal halves
    made[1, ::11] |= 0x7C007C00
    return made


def halves(words, kind):
    small = np.ascontiguousarray(words, np.uint32).view(np.uint16)
    return small.view(np.float16) if kind == "f16" else small.view(pytest.importorskip("ml_dtypes").bfloat16)


def packed(values, kind):
    bits = values.view(np.uint16).copy()
    bits[np.isnan(values.astype(np.float32))] = 0x7FFF
    return bits.view(np.uint32)


@pytest.mark.parametrize("level", levels())
def test_lop3_is_its_table(level):
    a, b, c = draw(64)
    for table in range(256):
        expected = np.zeros_like(a)
        for k in range(8):
            if table >> k & 1:
                expected |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
        np.testing.assert_array_equal(run(f"lop3_{table:02x}", a, b, c, level=level), expected)


# The table of prmt's modes in the PTX ISA: bytes 3 to 0 of the result by the selector's two lowest bits.
MODES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


@pytest.mark.parametrize("mode", ["", *MODES])
def test_prmt_selects_bytes(mode):
    a, b, c = (each[:4096] for each in draw(1 << 12, 1))
    eight = [*(a >> 8 * k & 255 for k in range(4)), *(b >> 8 * k & 255 for k in range(4))]
    expected = np.zeros_like(a)
    for i, selector in enumerate(c.tolist()):
        for k in range(4):
            index = int(MODES[mode][selector & 3][3 - k]) if mode else selector >> 4 * k & 7
            byte = int(eight[index][i])
            if not mode and selector >> 4 * k & 8:
                byte = 255 if byte & 128 else 0
            expected[i] |= byte << 8 * k
    np.testing.assert_array_equal(run(f"prmt_{mode}" if mode else "prmt", a, b, c), expected)


def signed(words):
    return words.astype(np.int64) - (words.astype(np.int64) >> 31 << 32)


def test_instructions_of_integers_are_those_of_whole_numbers():
    a, b, c = draw(1 << 12, 2)
    wide = [each.astype(np.int64) for each in (a, b, c)]
    u = [[each >> 8 * k & 255 for k in range(4)] for each in wide]
    s = [[byte - (byte >> 7 << 8) for byte in each] for each in u]
    low, high = np.clip(signed(b), -128, 127), np.clip(signed(a), -128, 127)
    expected = {
        "dp4a_u": wide[2] + sum(x * y for x, y in zip(*u[:2], strict=True)),
        "dp4a_s": wide[2] + sum(x * y for x, y in zip(*s[:2], strict=True)),
        "vabsdiff4": wide[2] + sum(abs(x - y) for x, y in zip(*u[:2], strict=True)),
        "madhi": (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(np.int64) + wide[2],
        "pack_s8": (low & 255) | (high & 255) << 8 | wide[2] << 16,
        "pack_u8": np.clip(signed(b), 0, 255) | np.clip(signed(a), 0, 255) << 8 | wide[2] << 16,
    }
    for name, one in (("popc", "1"), ("brev", None), ("bfind", "")):
        texts = [f"{word:032b}" for word in a.tolist()]
        values = [t.count("1") if one == "1" else int(t[::-1], 2) if one is None else int(t, 2).bit_length() - 1 for t in texts]
        np.testing.assert_array_equal(run(name, a), np.array(values, np.int64).astype(np.uint32), err_msg=name)
    np.testing.assert_array_equal(run("mulhi_s", a, b), (signed(a) * signed(b) >> 32).astype(np.uint32))
    for name, values in expected.items():
        np.testing.assert_array_equal(run(name, a, b, c), (values & 0xFFFFFFFF).astype(np.uint32), err_msg=name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("level", levels())
def test_f32_has_subnormals_and_is_rounded_once(level):
    a, b, c = draw(1 << 16, 3)
    a[::3] &= 0x80FFFFFF
    b[1::3] = (b[1::3] & 0x80FFFFFF) | 0x3F000000
    x, y = a.view(np.float32), b.view(np.float32)
    for name, values in (("addf", x + y), ("subf", x - y), ("mulf", x * y)):
        bits = np.where(np.isnan(values), np.uint32(0x7FFFFFFF), values.view(np.uint32))
        np.testing.assert_array_equal(run(name, a, b, level=level), bits, err_msg=name)
    for name, least in (("minf", True), ("maxf", False)):
        is_left = np.where(x == y, np.signbit(x) == least, (x < y) == least)  # -0 is below 0
        values = np.where(np.isnan(x), y, np.where(np.isnan(y) | is_left, x, y))
        bits = np.where(np.isnan(values), np.uint32(0x7FFFFFFF), values.view(np.uint32))
        np.testing.assert_array_equal(run(name, a, b, level=level), bits, err_msg=name)
    near = (-(x * y)).view(np.uint32) ^ (c & 7)  # the exact sum is exact in float64
    exact = (x.astype(np.longdouble) * y + near.view(np.float32).astype(np.longdouble)).astype(np.float32)
    bits = np.where(np.isnan(exact), np.uint32(0x7FFFFFFF), exact.view(np.uint32))
    is_small = np.abs(np.frexp(x)[1] + np.frexp(y)[1]) < 100
    np.testing.assert_array_equal(run("fmaf", a, b, near, level=level)[is_small], bits[is_small])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_arithmetic_of_two_halves_is_rounded_once(kind):
    a, b, c = draw(PAIRS // 2, 4)
    x, y = halves(a, kind), halves(b, kind)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    for name, values in (("add2", wide_x + wide_y), ("sub2", wide_x - wide_y), ("mul2", wide_x * wide_y)):
        # float64 has more than twice the digits, so rounding twice is rounding once
        rounded = values.astype(np.float32).astype(x.dtype) if False else _rounded(values, x.dtype)
        np.testing.assert_array_equal(run(f"{name}_{kind}", a, b), packed(rounded, kind), err_msg=name)
    z = halves(c, kind).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = wide_x * wide_y + z
    is_exact = np.abs(np.frexp(wide_x * wide_y)[1] - np.frexp(z)[1]) < 25  # then the sum is exact in float64
    found = run(f"fma2_{kind}", a, b, c).view(np.uint16)
    np.testing.assert_array_equal(found[is_exact], packed(_rounded(exact, x.dtype), kind).view(np.uint16)[is_exact])


def _rounded(values, dtype):
    """float64 rounded once: to odd in f32, then to the format."""
    if dtype == np.float16:
        return values.astype(np.float16)
    near = values.astype(np.float32)
    bits = near.view(np.uint32)
    is_off = (near.astype(np.float64) != values) & np.isfinite(near)
    too_far = is_off & (np.abs(near.astype(np.float64)) > np.abs(values))
    odd = np.where(is_off, (bits - too_far) | 1, bits).astype(np.uint32)
    return odd.view(np.float32).astype(dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_small_floats_are_those_of_ml_dtypes():
    """All 65,536 pairs of bytes and all 65,536 halves; 2^20 random f32 pairs."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kinds = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    largest = {"e4m3": 448.0, "e5m2": 57344.0}
    codes = np.arange(1 << 16, dtype=np.uint32)
    a, b, _ = draw(PAIRS, 5)
    a[: PAIRS // 2] = (a[: PAIRS // 2] & 0x87FFFFFF) | 0x38000000  # of the size of small floats
    for name, dtype in kinds.items():
        pairs = codes.astype(np.uint16).view(np.uint8).view(dtype).astype(np.float16)
        np.testing.assert_array_equal(run(f"f16x2_of_{name}x2", codes), packed(pairs, "f16"))

        def small(values, dtype=dtype, name=name):
            limited = np.clip(values.astype(np.float32), -largest[name], largest[name])
            bits = limited.astype(dtype).view(np.uint8).astype(np.uint32)
            return np.where(np.isnan(values), 0x7F, bits)

        all_halves = codes | (codes ^ 0x5A5A) << 16
        low, high = (halves(all_halves, "f16")[k::2] for k in (0, 1))
        np.testing.assert_array_equal(run(f"{name}x2_of_f16x2", all_halves), small(low) | small(high) << 8)
        expected = small(b.view(np.float32)) | small(a.view(np.float32)) << 8
        np.testing.assert_array_equal(run(f"{name}x2_of_f32", a, b), expected)
    for kind in ("f16", "bf16"):
        both = np.stack([b, a], axis=1).view(np.float32).ravel()
        dtype = np.float16 if kind == "f16" else ml_dtypes.bfloat16
        np.testing.assert_array_equal(run(f"{kind}x2_of_f32", a, b), packed(both.astype(dtype), kind))
    values = a.view(np.float32).astype(np.float64)
    expected = np.clip(np.rint(np.nan_to_num(values, nan=0.0)), -(2.0**31), 2.0**31 - 1).astype(np.int64)
    np.testing.assert_array_equal(run("s32_of_f32", a), (expected & 0xFFFFFFFF).astype(np.uint32))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_minima_of_halves_prefer_numbers_and_order_zeros(kind):
    a, b, _ = draw(PAIRS // 4, 6)
    a[:4], b[:4] = (0x80000000, 0x00008000, 0x7FFF7FFF, 0x7FFF0001), (0x00008000, 0x80000000, 0x7FFF3C00, 0x00017FFF)
    x, y = halves(a, kind).astype(np.float32), halves(b, kind).astype(np.float32)
    order = [v.view(np.int32) ^ (v.view(np.int32) >> 31 & 0x7FFFFFFF) for v in (x, y)]
    for name, is_first in (("min2", order[0] < order[1]), ("max2", order[0] > order[1])):
        chosen = np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.where(is_first, x, y)))
        expected = packed(chosen.astype(halves(a, kind).dtype), kind)
        np.testing.assert_array_equal(run(f"{name}_{kind}", a, b), expected)
