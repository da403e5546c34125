"""Each instruction of the virtual machine against the PTX ISA, version 9.1; comments name its sections.

References are bit-level, exact rationals, or float64 functions of NumPy; nothing of the machine is used in them. Every run
compares all SIMD levels bit by bit (`run_instruction`).
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from float_edges import EDGES, random_bits

NAN = 0x7FFFFFFF
SIGN = np.uint32(0x80000000)
INFINITY = 0x7F800000


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """All pairs of edges, then random ones."""
    a, b = np.meshgrid(EDGES, EDGES)
    return np.concatenate([a.ravel(), random_bits(1)]), np.concatenate([b.ravel(), np.roll(random_bits(2), 1000)])


def singles() -> np.ndarray:
    """Edges, numbers around powers of two, then random bits."""
    powers = (np.arange(1, 255, dtype=np.uint32) << 23)[:, None] + np.arange(-3, 4).astype(np.uint32)
    return np.concatenate([EDGES, powers.ravel(), powers.ravel() | SIGN, random_bits(3, 1 << 18)])


def is_nan(bits: np.ndarray) -> np.ndarray:
    return (bits & ~SIGN) > INFINITY


def flush(bits: np.ndarray) -> np.ndarray:
    """Subnormals become zeros of their sign."""
    return np.where((bits & INFINITY) == 0, bits & SIGN, bits)


def as_f64(bits: np.ndarray) -> np.ndarray:
    """Flushed, then exactly as float64."""
    with np.errstate(invalid="ignore"):
        return flush(bits).view(np.float32).astype(np.float64)


def canonical(bits: np.ndarray) -> np.ndarray:
    return np.where(is_nan(bits), np.uint32(NAN), bits)


def rounded(exact: np.ndarray) -> np.ndarray:
    """float64 numbers to f32 bits: rounded to 24 bits, then flushed if below the smallest normal number."""
    mantissa, exponent = np.frexp(np.abs(exact))
    with np.errstate(over="ignore", invalid="ignore"):
        magnitude = np.ldexp(np.rint(mantissa * 2.0**24), exponent - 24)
        magnitude = np.where(magnitude < 2.0**-126, 0.0, magnitude).astype(np.float32)
    signed = magnitude.view(np.uint32) | (np.signbit(exact).astype(np.uint32) << 31)
    return np.where(np.isnan(exact), np.uint32(NAN), signed)


def order_key(bits: np.ndarray) -> np.ndarray:
    """Integers in the order of the numbers, -0 before +0."""
    signed = bits.view(np.int32).astype(np.int64)
    return np.where(signed < 0, -(signed & 0x7FFFFFFF) - 1, signed)


def min_max(a: np.ndarray, b: np.ndarray, wants_max: bool) -> np.ndarray:
    a, b = flush(a), flush(b)
    takes_a = (order_key(a) > order_key(b)) == wants_max
    return canonical(np.where(is_nan(a), b, np.where(is_nan(b), a, np.where(takes_a, a, b))))


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # A sum of floats has no bits below those of its operands, so it is rounded correctly, and exact if subnormal.
    with np.errstate(all="ignore"):
        return canonical(flush((flush(a).view(np.float32) + flush(b).view(np.float32)).view(np.uint32)))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return rounded(as_f64(a) * as_f64(b))  # 24 by 24 bits: exact in 53


# Sections 9.7.3.2 to .5, .9 to .12 and 9.7.6.2.
EXACT_F32 = {
    "add_ftz_f32": add,
    "sub_ftz_f32": lambda a, b: add(a, b ^ SIGN),
    "mul_ftz_f32": product,
    "min_ftz_f32": lambda a, b: min_max(a, b, wants_max=False),
    "max_ftz_f32": lambda a, b: min_max(a, b, wants_max=True),
    "copysign_f32": lambda a, b: (a & SIGN) | (b & ~SIGN),
    "setp_lt_ftz_f32": lambda a, b: (as_f64(a) < as_f64(b)).astype(np.uint32),
}


@pytest.mark.parametrize("name", EXACT_F32)
def test_two_operand_f32_instruction_is_exact(run_instruction, name):
    a, b = pairs()
    np.testing.assert_array_equal(run_instruction(name, a, b), EXACT_F32[name](a, b))


def test_neg_and_abs_flush_and_keep_zeros_signs(run_instruction):
    a = singles()
    np.testing.assert_array_equal(run_instruction("neg_ftz_f32", a), canonical(flush(a) ^ SIGN))
    np.testing.assert_array_equal(run_instruction("abs_ftz_f32", a), canonical(flush(a) & ~SIGN))


@pytest.mark.parametrize(("name", "function"), [("cvt_rmi_ftz_f32_f32", np.floor), ("cvt_rni_ftz_f32_f32", np.rint)])
def test_floor_and_round_are_those_of_ieee(run_instruction, name, function):
    halves = np.arange(-9, 9, 0.25, np.float32)
    large = np.array([2.0**22 + 0.5, 2.0**23 - 0.5, 2.0**24 + 2, 3e38], np.float32)
    a = np.concatenate([singles(), halves.view(np.uint32), large.view(np.uint32), (-large).view(np.uint32)])
    np.testing.assert_array_equal(run_instruction(name, a), rounded(function(as_f64(a))))


def test_selp_moves_bits_unchanged(run_instruction):
    a, b = pairs()
    for p in (np.resize([0, 1], len(a)), np.resize([2, 0, 0x80000000], len(a))):
        np.testing.assert_array_equal(run_instruction("selp_f32", a, b, p), np.where(p != 0, a, b))


def test_u32_converts_to_the_nearest_float(run_instruction):
    a = np.concatenate([EDGES, random_bits(4), np.arange(1 << 24, (1 << 24) + 64), 0xFFFFFFFF - np.arange(400)]).astype(np.uint32)
    np.testing.assert_array_equal(run_instruction("cvt_rn_f32_u32", a), rounded(a.astype(np.float64)))


def round_fraction(exact: Fraction) -> int:
    """f32 bits of a nonzero rational: rounded to 24 bits, half to even, then flushed below the smallest normal number."""
    sign, magnitude = (0x80000000, -exact) if exact < 0 else (0, exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 24
    if magnitude / Fraction(2) ** exponent < 1 << 24:
        exponent -= 1
    while True:
        mantissa = round(magnitude / Fraction(2) ** exponent)  # half to even
        if mantissa < 1 << 24:
            break
        exponent += 1
    if mantissa < 1 << 23:
        mantissa, exponent = mantissa << 1, exponent - 1
    if exponent + 23 < -126:
        return sign
    return sign | (INFINITY if exponent + 23 > 127 else ((exponent + 23 + 127) << 23) + mantissa - (1 << 23))


def fma_operands() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random triples, and products next to a tie with an addend that decides the tie or cancels most of the product."""
    rng = np.random.default_rng(5)
    a, b, c = (random_bits(seed, 3000) for seed in (6, 7, 8))
    x = (1.0 + rng.integers(0, 1 << 12, 3000) * 2.0**-12).astype(np.float32)
    y = (1.0 + (2 * rng.integers(0, 1 << 11, 3000) + 1) * 2.0**-12).astype(np.float32)
    tiny = (rng.choice([-1.0, 1.0], 3000) * 2.0 ** rng.integers(-100, -10, 3000)).astype(np.float32)
    cancelling = -(x * y) + tiny * np.float32(2.0**-12)
    low = (x * np.float32(2.0**-63)).view(np.uint32), (y * np.float32(2.0**-63)).view(np.uint32)
    return (
        np.concatenate([a, x.view(np.uint32), x.view(np.uint32), low[0]]),
        np.concatenate([b, y.view(np.uint32), y.view(np.uint32), low[1]]),
        np.concatenate([c, tiny.view(np.uint32), cancelling.view(np.uint32), c]),
    )


def test_fma_is_rounded_once(run_instruction):
    a, b, c = fma_operands()
    actual = run_instruction("fma_rn_ftz_f32", a, b, c)
    num_checked = 0
    for x, y, z, bits in zip(as_f64(a), as_f64(b), as_f64(c), actual, strict=True):
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact != 0:
            assert bits == round_fraction(exact), (x, y, z)
            num_checked += 1
    assert num_checked > 9000


def test_fma_of_edges_follows_ieee_for_zeros_infinities_and_nans(run_instruction):
    edges = EDGES[::3]
    a, b, c = (grid.ravel() for grid in np.meshgrid(edges, edges, edges))
    x, y, z = as_f64(a), as_f64(b), as_f64(c)
    with np.errstate(all="ignore"):
        value = x * y + z  # exact or not, this has the right sign where it is zero, and the right class
    actual = run_instruction("fma_rn_ftz_f32", a, b, c)
    special = ~np.isfinite(x) | ~np.isfinite(y) | ~np.isfinite(z) | (value == 0)
    np.testing.assert_array_equal(actual[special], rounded(value[special]))


# ---- approximate functions ----

# Results of special arguments: the tables of sections 9.7.3.13, .15, .16, .18 to .22.
NEGATIVE = 0xBF800000
ONE = 0x3F800000
SPECIAL_VALUES = {
    "rcp": {0xFF800000: 0x80000000, 0x80000001: 0xFF800000, 0x80000000: 0xFF800000, 0: INFINITY, 1: INFINITY, INFINITY: 0},
    "sqrt": {0xFF800000: NAN, NEGATIVE: NAN, 0x80000001: 0x80000000, 0x80000000: 0x80000000, 0: 0, 1: 0, INFINITY: INFINITY},
    "rsqrt": {0xFF800000: NAN, NEGATIVE: NAN, 0x80000001: 0xFF800000, 0x80000000: 0xFF800000, 0: INFINITY, INFINITY: 0},
    "sin": {0xFF800000: NAN, 0x80000001: 0x80000000, 0x80000000: 0x80000000, 0: 0, 1: 0, INFINITY: NAN},
    "cos": {0xFF800000: NAN, 0x80000001: ONE, 0x80000000: ONE, 0: ONE, 1: ONE, INFINITY: NAN},
    "lg2": {0xFF800000: NAN, NEGATIVE: NAN, 0x80000001: 0xFF800000, 0x80000000: 0xFF800000, 0: 0xFF800000, INFINITY: INFINITY},
    "ex2": {0xFF800000: 0, 0x80000001: ONE, 0x80000000: ONE, 0: ONE, 1: ONE, INFINITY: INFINITY},
    "tanh": {
        0xFF800000: 0xBF800000,
        0x80000001: 0x80000001,
        0x80000000: 0x80000000,
        0: 0,
        1: 1,
        0x007FFFFF: 0x007FFFFF,
        INFINITY: ONE,
    },
}
FUNCTIONS = {
    "rcp_approx_ftz_f32": lambda x: 1.0 / x,
    "sqrt_approx_ftz_f32": np.sqrt,
    "rsqrt_approx_ftz_f32": lambda x: 1.0 / np.sqrt(x),
    "sin_approx_ftz_f32": np.sin,
    "cos_approx_ftz_f32": np.cos,
    "lg2_approx_ftz_f32": np.log2,
    "ex2_approx_ftz_f32": np.exp2,
    "tanh_approx_f32": np.tanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_the_isa(run_instruction, name):
    table = SPECIAL_VALUES[name.split("_")[0]]
    arguments = np.array([*table, 0x7F800001, 0x7FC12345, 0xFFC00000, 0xFFFFFFFF], np.uint32)
    expected = [*table.values(), NAN, NAN, NAN, NAN]
    np.testing.assert_array_equal(run_instruction(name, arguments), np.array(expected, np.uint32))


def ordinary(name: str, run_instruction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments, results and exact results in float64, if all are finite and not flushed; the others are checked here."""
    bits = singles()
    x, y = as_f64(bits), run_instruction(name, bits).view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name](x)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(exact))
    tiny = np.abs(exact) < 2.0**-126
    if name != "tanh_approx_f32":
        assert np.isin(np.abs(y[tiny]), [0.0, 2.0**-126]).all()
        np.testing.assert_array_equal(y[np.abs(exact) < 2.0**-126 * (1 - 2.0**-20)], 0.0)
    keep = np.isfinite(exact) & ~tiny & (np.abs(exact) < 2.0**128 * (1 - 2.0**-22))
    assert np.isfinite(y[keep]).all()
    return x[keep], y[keep], exact[keep]


def ulps(y: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(y - exact) / np.ldexp(1.0, np.frexp(exact)[1] - 24)


# Section 9.7.3.13: 1 ulp. 9.7.3.21: 2 ulp over the full range.
@pytest.mark.parametrize(("name", "bound"), [("rcp_approx_ftz_f32", 1.0), ("ex2_approx_ftz_f32", 2.0)])
def test_error_in_ulps_is_within_the_isa(run_instruction, name, bound):
    _, y, exact = ordinary(name, run_instruction)
    assert ulps(y, exact).max() <= bound


# Sections 9.7.3.15, .16 and .22: relative errors.
@pytest.mark.parametrize(
    ("name", "bound"), [("sqrt_approx_ftz_f32", 2.0**-23), ("rsqrt_approx_ftz_f32", 2.0**-22.9), ("tanh_approx_f32", 2.0**-11)]
)
def test_relative_error_is_within_the_isa(run_instruction, name, bound):
    _, y, exact = ordinary(name, run_instruction)
    nonzero = exact != 0
    assert (np.abs(y - exact)[nonzero] / np.abs(exact[nonzero])).max() <= bound
    np.testing.assert_array_equal(y[~nonzero], 0.0)


def test_lg2_error_is_within_the_isa(run_instruction):
    """Section 9.7.3.20: absolute in (0.5, 2), relative elsewhere."""
    x, y, exact = ordinary("lg2_approx_ftz_f32", run_instruction)
    near_one = (x > 0.5) & (x < 2)
    assert np.abs(y - exact)[near_one].max() <= 2.0**-22
    assert (np.abs(y - exact)[~near_one] / np.abs(exact[~near_one])).max() <= 2.0**-22


@pytest.mark.parametrize("name", ["sin_approx_ftz_f32", "cos_approx_ftz_f32"])
def test_sin_and_cos_errors_are_within_the_isa(run_instruction, name):
    """Sections 9.7.3.18 and .19."""
    x = np.concatenate([np.linspace(-2 * np.pi, 2 * np.pi, 200_001), np.linspace(-100 * np.pi, 100 * np.pi, 200_001)])
    x = x.astype(np.float32)
    y = run_instruction(name, x.view(np.uint32)).view(np.float32).astype(np.float64)
    error = np.abs(y - FUNCTIONS[name](x.astype(np.float64)))
    assert error[np.abs(x) <= 2 * np.pi].max() <= 2.0**-20.5
    assert error[np.abs(x) <= 100 * np.pi].max() <= 2.0**-14.7
    assert np.abs(y).max() <= 1.0


@pytest.mark.parametrize("name", ["sin_approx_ftz_f32", "cos_approx_ftz_f32"])
def test_sin_and_cos_of_any_argument_reduce_by_one_product_rounded_toward_zero(run_instruction, name):
    bits = singles()
    bits = bits[(bits & ~SIGN) < INFINITY]
    x = as_f64(bits)
    exact = np.abs(x) * np.float64(np.float32(0.15915494))
    mantissa, exponent = np.frexp(exact)
    turns = np.ldexp(np.trunc(mantissa * 2.0**24), exponent - 24)
    angle = 2 * np.pi * (turns - np.rint(turns))
    expected = np.copysign(1.0, x) * np.sin(angle) if name.startswith("sin") else np.cos(angle)
    y = run_instruction(name, bits).view(np.float32).astype(np.float64)
    assert np.abs(y - expected).max() <= 2.0**-22.5


def test_div_is_within_two_ulps_and_special_for_large_divisors(run_instruction):
    """Section 9.7.3.8: a * (1/b), 2 ulp for |b| in [2^-126, 2^126]; past that zero, or NaN if a is infinite."""
    a, b = pairs()
    y = run_instruction("div_approx_ftz_f32", a, b)
    x, z = as_f64(a), as_f64(b)
    with np.errstate(all="ignore"):
        exact = x / z
    inside = (np.abs(z) >= 2.0**-126) & (np.abs(z) <= 2.0**126)
    ordinary = inside & (np.abs(exact) >= 2.0**-125) & (np.abs(exact) < 2.0**127.9)
    assert ulps(y.view(np.float32).astype(np.float64)[ordinary], exact[ordinary]).max() <= 2.0
    assert ordinary.sum() > 10_000
    large = np.abs(z) > 2.0**126
    zero = (a ^ b) & SIGN
    expected = np.where(is_nan(a) | is_nan(b) | np.isinf(x), np.uint32(NAN), zero)
    np.testing.assert_array_equal(y[large], expected[large])
    by_zero = (z == 0) & ~np.isnan(x)
    expected = np.where(x == 0, np.uint32(NAN), zero | np.uint32(INFINITY))
    np.testing.assert_array_equal(y[by_zero], expected[by_zero])
    np.testing.assert_array_equal(y[np.isnan(x) | np.isnan(z)], NAN)
