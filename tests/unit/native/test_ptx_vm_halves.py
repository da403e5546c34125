"""Arithmetic of f16 and bf16 on the CPU, beside exact rational arithmetic and NumPy's float16."""

import re
from fractions import Fraction

import numpy as np
import pytest

from evo.approximation.formats import FORMATS
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine, levels

SET = shipped_instruction_set("halves")
ALL_BITS = np.arange(1 << 16, dtype=np.uint16)
EX2 = {"f16": "ex2_approx_f16", "bf16": "ex2_approx_ftz_bf16"}


def number(bits, name):
    """The float32 that equals a half."""
    bits = np.asarray(bits, np.uint16)
    return bits.view(np.float16).astype(np.float32) if name == "f16" else (bits.astype(np.uint32) << 16).view(np.float32)


def run(text, kinds, out, *inputs, level=None):
    names = "xyz"[: len(inputs)]
    language = Language(SET, tuple(zip(names, kinds, strict=True)), (("r", out),))
    words = parse_program(language, text, "test")
    arrays = [np.ascontiguousarray(each, np.float32) for each in inputs]
    return VirtualMachine(language.lowering, level).store(words[None], [*arrays, None])[0, 0].view(np.float32)


def rounded(value: Fraction, name: str, zero: float = 0.0) -> float:
    """The nearest half of an exact number, ties to even; `zero`: what an exact 0 is."""
    form = FORMATS[name]
    if not value:
        return zero
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, form.least) - form.digits + 1)
    found = float(round(size / unit) * unit)
    found = found if found <= form.largest else np.inf
    return -found if value < 0 else found


def samples(name, count, seed):
    """Halves of all sizes, and triples whose sums cancel or end near a tie."""
    draw = np.random.default_rng(seed)
    x, y, z = number(draw.integers(0, 1 << 16, (3, count)).astype(np.uint16), name)
    form = FORMATS[name]
    near = slice(0, count // 2)
    with np.errstate(all="ignore"):
        sums = form.round((-(x.astype(np.float64) * y) * draw.choice([1, 2**-8.0, 2**-12.0, 2**9.0], count)).astype(np.float32))
    z[near] = sums[near]
    keep = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    return x[keep], y[keep], z[keep]


def same(found, expected):
    expected = np.asarray(expected, np.float32)
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), is_nan)
    np.testing.assert_array_equal(found[~is_nan].view(np.uint32), expected[~is_nan].view(np.uint32))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_sums_and_products_are_rounded_once(level, name):
    x, y, z = samples(name, 4000, 3)
    exact = [[Fraction(float(v)) for v in each] for each in (x, y, z)]
    cases = {
        "add": ([a + b for a, b, _ in zip(*exact, strict=True)], x + y, 2),
        "sub": ([a - b for a, b, _ in zip(*exact, strict=True)], x - y, 2),
        "mul": ([a * b for a, b, _ in zip(*exact, strict=True)], x * y, 2),
        "fma_rn": ([a * b + c for a, b, c in zip(*exact, strict=True)], x.astype(np.float64) * y + z, 3),
    }
    for operation, (values, zeros, count) in cases.items():
        operands = (x, y, z)[:count]
        loads = " ".join(f"%{each}" for each in "zyx"[3 - count :])
        found = run(f"{loads} {operation}_{name}", [name] * count, name, *operands, level=level)
        same(found, [rounded(value, name, zero) for value, zero in zip(values, zeros.tolist(), strict=True)])


@pytest.mark.parametrize("level", levels())
def test_f16_is_that_of_numpy_for_special_values_too(level):
    special = np.array([0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x0201, 0x6BFF], np.uint16)
    special = np.concatenate([special, special | 0x8000])
    x, y = (each.ravel() for each in np.meshgrid(special.view(np.float16), special.view(np.float16)))
    with np.errstate(all="ignore"):
        for operation, expected in {"add": x + y, "sub": x - y, "mul": x * y}.items():
            same(run(f"%y %x {operation}_f16", ["f16"] * 2, "f16", x, y, level=level), expected.astype(np.float32))


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_conversions_and_signs_keep_every_half(level, name):
    x = number(ALL_BITS, name)
    to_f32 = {"f16": "f16_to_f32", "bf16": "cvt_f32_bf16"}[name]
    same(run(f"%x {to_f32}", [name], "f32", x, level=level), x)
    same(run(f"%x {to_f32} cvt_rn_{name}_f32", [name], name, x, level=level), x)
    same(run(f"%x neg_{name}", [name], name, x, level=level), -x)
    same(run(f"%x abs_{name}", [name], name, x, level=level), abs(x))


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_f32_is_rounded_to_the_nearest_half_as_inputs_and_constants_are(level, name):
    draw = np.random.default_rng(5)
    halves = number(draw.integers(0, 0x7F00 if name == "bf16" else 0x7C00, 3000).astype(np.uint16), name)
    bits = halves.view(np.uint32)
    half = 0x8000 if name == "bf16" else 0x1000
    x = np.concatenate([(bits + step).view(np.float32) for step in (0, 1, half - 1, half, half + 1)])
    any_bits = draw.integers(0, 1 << 32, 3000, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([x, any_bits.view(np.float32), np.array([65519.996, 65520.0], np.float32)])
    x = x[np.isfinite(x)]
    expected = np.copysign(np.array([rounded(Fraction(float(v)), name) for v in x], np.float32), x)
    same(run(f"%x cvt_rn_{name}_f32", ["f32"], name, x, level=level), expected)
    same(run("%x", [name], name, x, level=level), expected)
    for value, wanted in zip(x[::701], expected[::701], strict=True):
        same(run(f"0x{value.view(np.uint32):08x}:{name}", [name], name, np.zeros(1), level=level), [wanted])


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_minimum_and_maximum_take_numbers_and_order_zeros(level, name):
    largest = {"f16": 0x7BFF, "bf16": 0x7F7F}[name]
    bits = np.array([0, 1, 2, 0x1234, 0x3C01, largest, largest + 1], np.uint16)
    halves = np.concatenate([number(bits | 0x8000, name)[::-1], number(bits, name)])  # in their order
    i, j = (each.ravel() for each in np.meshgrid(range(len(halves)), range(len(halves))))
    for operation, chosen in (("min", np.minimum(i, j)), ("max", np.maximum(i, j))):
        found = run(f"%y %x {operation}_{name}", [name] * 2, name, halves[i], halves[j], level=level)
        same(found, halves[chosen])
    nan = np.full(len(halves), np.nan, np.float32)
    same(run(f"%y %x min_{name}", [name] * 2, name, halves, nan, level=level), halves)
    same(run(f"%y %x max_{name}", [name] * 2, name, nan, halves, level=level), halves)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_approximate_functions_keep_the_bounds_of_the_ptx_isa(level, name):
    x = number(ALL_BITS, name)
    form, finite = FORMATS[name], np.isfinite(x)
    wide = x.astype(np.float64)
    tanh = run(f"%x tanh_approx_{name}", [name], name, x, level=level)
    bound = {"f16": 2**-10.987, "bf16": 2.0**-8}[name]
    assert np.abs(tanh - np.tanh(wide))[finite].max() <= bound
    same(tanh, form.round(tanh))
    ex2 = run(f"%x {EX2[name]}", [name], name, x, level=level)
    same(ex2, form.round(ex2))
    exact = np.exp2(np.clip(wide, -2000, 2000))
    normal = finite & (exact >= 2.0**form.least) & (exact <= form.largest)
    relative = {"f16": 2**-9.9, "bf16": 2.0**-7}[name]
    assert (np.abs(ex2 / exact - 1.0))[normal].max() <= relative
    small = finite & (exact < 2.0**form.least)
    assert np.abs(ex2 - exact)[small].max() <= 2.0 ** (form.least if name == "bf16" else -24)
    assert (ex2[small] == 0.0).all() == (name == "bf16")
    same(ex2[~finite], np.exp2(x[~finite]))
    same(tanh[~finite], np.tanh(x[~finite]))


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_constants_are_written_as_the_bits_of_the_nearest_half(name):
    """Immediates as operands are in registers, since the assembler takes no others."""
    language = Language(SET, (("x", name),), (("r", name),))
    draw = np.random.default_rng(9)
    bits = [*draw.integers(0, 1 << 32, 400).tolist(), 0x33000000, 0x33000001, 0x38800000, 0x387FFFFF, 0x477FEFFF, 0x477FF000]
    values = np.array(bits, np.uint32).view(np.float32)
    if name == "f16":
        with np.errstate(over="ignore"):
            expected = values.astype(np.float16).view(np.uint16)
    else:
        finite = [rounded(Fraction(float(v)), name) if np.isfinite(v) else v for v in values]
        expected = (np.copysign(np.array(finite, np.float32), values).view(np.uint32) >> 16).astype(np.uint16)
    expected[np.isnan(values)] = 0x7FFF
    for each, wanted in zip(bits, expected.tolist(), strict=True):
        [stub] = language.lowering.emit(parse_program(language, f"0x{each:08x}:{name} %x add_{name}", "test")[None])
        [(constant, literal)] = re.findall(r"mov\.b16 (%_\w+), 0x(\w+);", stub)
        assert literal == f"{wanted:04X}"
        assert re.search(rf"add\.{name} %\w+, (%x, {constant}|{constant}, %x);", stub)
