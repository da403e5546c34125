"""The second checker: it finds false certificates, and its arithmetic is that of fractions."""

import ast
import json
import math
import platform
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from evo.approximation import second_check
from evo.approximation.functions import FORMULAS
from evo.approximation.second_check import BOUNDS, FORMATS, KINDS, LIMITS, check, enclosure, main
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "approximations"
F32, F16, BF16 = (FORMATS[name] for name in ("f32", "f16", "bf16"))
TINY, INF = 2.0**-126, math.inf  # the least normal number
SQUARE = "mul.rn.ftz.f32 %%y, %%x, %%x;"
SAME = "mov.f32 %%y, %%x;"
ZERO = "mul.rn.ftz.f32 %%y, %%x, 0f00000000;"
# SiLU by x/(1 + 2^(-x log2 e)): any GPU may give 0 just above 2^-126.
SILU = """mul.rn.ftz.f32 %%r0, %%x, 0fBFB8AA3B; ex2.approx.ftz.f32 %%r1, %%r0; add.rn.ftz.f32 %%r2, %%r1, 0f3F800000;
    rcp.approx.ftz.f32 %%r3, %%r2; mul.rn.ftz.f32 %%y, %%x, %%r3;"""


def header(name: str, body: str, bounds: dict[str, float]) -> str:
    """A header of one function, as `evo prove` writes it."""
    lines = [".reg .f32 %%x, %%y;", "mov.f32 %%x, %1;", "{", ".reg .f32 %%r<9>;", *body.splitlines(), "}", "mov.f32 %0, %%y;"]
    comment = "".join(f"// error at most {bound!r} {kind}\n" for kind, bound in bounds.items())
    text = "".join(f'        "{line.strip()}\\n\\t"\n' for line in lines)
    return (
        f"#pragma once\n\n{comment}__device__ __forceinline__ float {name}(float x) {{\n    float y;\n"
        f'    asm("{{\\n\\t"\n{text}        "}}"\n        : "=f"(y)\n        : "f"(x));\n    return y;\n}}\n'
    )


def certificate(formula: str, form: str, interval: tuple[float, float], bound: float, at: float | None = None) -> dict:
    """One that claims this bound of each kind, but no place for it if `at` is None."""
    first, last = (second_check._to_bits(abs(end), FORMATS[form]) * (-1 if end < 0 else 1) for end in interval)
    claim = {"worst": repr(0.0 if at is None else bound), "at": repr(interval[0] if at is None else at), "bound": repr(bound)}
    figures = dict.fromkeys(("any_gpu", "cpu"), dict.fromkeys(KINDS, claim))
    return {
        "function": "f", "formula": formula, "format": form, "interval": [repr(end) for end in interval],
        "num_inputs": int(last - first + 1), "slots": "1.0", "num_nans": 0, **figures,
    }  # fmt: skip


def checked(body: str, found: dict) -> tuple[bool, str]:
    stated = {kind: float(claim["bound"]) for kind, claim in found["any_gpu"].items()}
    with np.errstate(all="ignore"):
        return check(header(f"f_{found['format']}_1", body, stated), found)


# ---- certificates ------------------------------------------------------------------------------------------------------------


def squares() -> tuple[float, float]:
    """The largest error of x*x rounded to bf16 in [1, 1.5], in ulps, and where it is: by fractions."""
    errors = {}
    for k in range(65):
        exact = Fraction(128 + k, 128) ** 2
        unit = Fraction(1, 128) if exact < 2 else Fraction(1, 64)
        errors[1 + k / 128] = abs(round(exact / unit) * unit - exact) / unit
    at = max(errors, key=errors.get)
    return float(errors[at]), at


def test_it_accepts_what_is_true_and_refuses_each_change():
    worst, at = squares()
    found = certificate("x*x", "bf16", (1.0, 1.5), 1.0)
    for figure in ("any_gpu", "cpu"):
        found[figure] = found[figure] | {"ulp": {"worst": repr(worst), "at": repr(at), "bound": repr(worst)}}
    holds, line = checked(SQUARE, found)
    assert holds and line == f"f_bf16_1: 65 inputs checked, largest any-GPU error {worst:g} ulp at x = {at}, bound {worst}: holds"

    def changed(**more: str) -> dict:
        return found | {figure: found[figure] | {"ulp": found[figure]["ulp"] | more} for figure in ("any_gpu", "cpu")}

    lower = repr(worst * (1 - 1e-9))
    assert checked(SQUARE, changed(bound=lower, worst=lower))[1].startswith(f"f_bf16_1: any_gpu at x = {at}: results in [")
    assert "the function in [" in checked(SQUARE, changed(bound=lower, worst=lower))[1]
    for body, false in (
        (SQUARE, changed(at="1.0")),  # another place
        (SQUARE, changed(at="7.0")),  # not an input
        (SQUARE, changed(worst=repr(2 * worst))),  # more than the bound
        (SQUARE, found | {"num_inputs": 66}),
        (SQUARE, found | {"interval": ["1.001", "1.5"], "num_inputs": 65}),
        (SQUARE, found | {"num_nans": 1}),
        ("mul.rn.ftz.f32 %%r0, %%x, 0f3F810000; mul.rn.ftz.f32 %%y, %%r0, %%x;", found),  # by a number beside 1
        (ZERO, found),
        (SQUARE, found | {"formula": "x*x + 1/200"}),
        (SQUARE, found | {"formula": "log(x - 3)"}),  # has no value
    ):
        assert not checked(body, false)[0]
    stated = {kind: float(claim["bound"]) for kind, claim in found["any_gpu"].items()} | {"ulp": worst * 0.99}
    assert not check(header("f_bf16_1", SQUARE, stated), found)[0]
    overstated = changed(worst=repr(10 * worst), bound=repr(10 * worst))
    assert checked(SQUARE, overstated)[0] and "claims" in checked(SQUARE, overstated)[1]


@pytest.mark.parametrize(
    ("body", "formula", "form", "interval", "error"),
    [
        (ZERO, "(1 + x/10**15)/2**126", "bf16", (1.0, 3.984375), 128.0),  # a hair above 2^-126
        (ZERO, "-(1 + x/10**15)/2**126", "f32", (1.0, 3.984375), 2.0**23),
        (ZERO, "(1 - x/10**15)/2**126", "bf16", (1.0, 3.984375), 0.0),  # a hair below
        (ZERO, "1/2**126", "f32", (1.0, 1.0), 2.0**23),
        (ZERO, "exp(-126*ln2)", "bf16", (1.0, 1.0), 128.0),  # just 2^-126, as no number of digits shows
        (SILU, "x/(1 + exp(-x))", "bf16", (2.0**-125, 2.0**-125), 128.0),
        (SILU, "x/(1 + exp(-x))", "bf16", (-(2.0**-125), -(2.0**-125)), 0.0),
        (SAME, "x", "f32", (-(2.0**100), 2.0**100), 0.0),
        ("mul.rn.ftz.f32 %%y, %%x, 0f40000001;", "exp(x*ln2)", "f32", (1.0, 1.0), 2.0),  # 2^-22 beside 2: the smaller ulp counts
        ("ex2.approx.f32 %%r0, %%x; max.f32 %%y, %%r0, 0f00000000;", "9/10/2**126", "f32", (-150.0, -150.0), 0.9 * 2.0**23),
        ("mov.f32 %%y, 0f40400000;", "x", "f16", (1.0, 1.0), 2048.0),  # 3 in f32, before it is rounded
        (SAME, "x + 1/2**24", "f32", (1.0, 1.0), 0.5),
        (SAME, "x - 1/2**24", "f32", (1.0, 1.0), 1.0),  # in ulps below 1
        ("mul.rn.ftz.f32 %%y, %%x, 0f7F000000;", "x*2**127", "f32", (2.0, 4.0), 0.0),  # infinity is right
        ("mul.rn.ftz.f32 %%y, %%x, 0f7F000000;", "2**127*(2 - 1/2**23)", "f32", (2.0, 2.0), INF),  # the largest number
        ("rcp.approx.ftz.f32 %%y, %%x;", "1/x", "f32", (1.0, 1.0), 1.5),
        ("rcp.approx.ftz.f32 %%y, %%x;", "0*x", "f32", (0.0, 0.0), INF),
        ("div.approx.ftz.f32 %%y, %%x, 0f7E800000;", "x/2**126", "f32", (2.0**60, 2.0**60), 2.5),
        ("div.approx.ftz.f32 %%y, %%x, 0f7F000000;", "x/2**127", "f32", (2.0**60, 2.0**60), INF),  # |b| above 2^126
        ("div.approx.f32 %%y, %%x, 0f00400000;", "x*2**127", "f32", (2.0**-60, 2.0**-60), INF),  # below 2^-126
        ("sin.approx.ftz.f32 %%y, %%x;", "sin(x)", "f32", (6.5, 6.5), INF),
        ("ex2.approx.ftz.f32 %%y, %%x;", "exp(x*ln2)", "f32", (-126.0, -126.0), 2.0**23),
    ],
)
def test_the_largest_error_is_found(body, formula, form, interval, error):
    """In ulps, to within a billionth."""
    for bound, holds in ((error * (1 + 1e-9) + 1e-9, True), (min(error * (1 - 1e-9), 1e300) - 1e-9, False)):
        found = certificate(formula, form, interval, INF)
        for figure in ("any_gpu", "cpu"):
            found[figure] = found[figure] | {"ulp": found[figure]["ulp"] | {"bound": repr(bound)}}
        assert checked(body, found)[0] == holds


# ---- arithmetic --------------------------------------------------------------------------------------------------------------

SPECIAL = [
    0.0,
    -0.0,
    TINY,
    2.0**-149,
    -(2.0**-149),
    2.0**-133,
    2.0**-24,
    2.0**-14,
    1.0,
    65504.0,
    65519.99,
    65520.0,
    3.39e38,
    3.4e38,
]


def nearest(exact: Fraction, form: second_check.Format) -> float:
    """The number of a format nearest to a fraction, ties to even: by Python's round."""
    if exact == 0:
        return 0.0
    exponent = 0
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, form.least) - form.digits + 1)
    value = round(exact / unit) * unit
    return math.copysign(INF, value) if abs(value) >= Fraction(2) ** form.top else float(value)


def floats(count: int, form: second_check.Format, seed: int) -> np.ndarray:
    """Numbers of a format, most of which are near each other in size."""
    rng = np.random.default_rng(seed)
    found = np.ldexp(rng.uniform(-2, 2, count), rng.choice([-140, -126, -125, -63, -20, -12, 0, 1, 12, 63, 120], count))
    return np.append(second_check._rounded(found, form), SPECIAL)


@pytest.mark.parametrize("form", [F32, F16, BF16], ids=list(FORMATS))
def test_rounding_is_that_of_fractions(form):
    rng = np.random.default_rng(1)
    values = np.append(np.ldexp(rng.uniform(-2, 2, 300), rng.integers(-155, 128, 300)), SPECIAL)
    middles = np.append(
        values, [1 + 2.0**-form.digits, 1 + 3 * 2.0**-form.digits, 2.0 ** (form.least - form.digits), 1.5 * 2.0**form.least]
    )
    with np.errstate(over="ignore"):
        found = second_check._rounded(middles, form)
    assert found.tolist() == [nearest(Fraction(v), form) for v in middles.tolist()]
    assert np.array_equal(np.signbit(found), np.signbit(middles))
    down, up = (second_check._rounded(middles, form, how) for how in (np.floor, np.ceil))
    for v, low, high in zip(middles.tolist(), down.tolist(), up.tolist(), strict=True):
        near = nearest(Fraction(v), form)
        assert (low <= v <= high or abs(v) > 2.0**form.top - 2.0 ** (form.top - form.digits)) and near in (low, high)
    bits = np.arange(0, 1 << 16, 7) if form is not F32 else rng.integers(0, 1 << 32, 5000)
    with np.errstate(invalid="ignore"):
        numbers = second_check._of_bits(bits, form)
    is_number = ~np.isnan(numbers)
    assert np.array_equal(second_check._to_bits(numbers, form)[is_number], bits[is_number])


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_exact_instructions_are_those_of_fractions(kind):
    form, ftz = FORMATS[kind], ".ftz" if kind == "f32" else ""
    a, b, c = (floats(400, form, seed) for seed in (1, 2, 3))
    rng = np.random.default_rng(4)
    a[~np.isfinite(a)] = b[~np.isfinite(b)] = 1.0
    c[:200] = second_check._rounded(-a[:200] * b[:200] * (1 + rng.integers(-3, 4, 200) * 2.0**-form.digits), form)  # cancels
    is_finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[is_finite], b[is_finite], c[is_finite]

    def flush(v: float) -> float:
        return 0.0 if ftz and abs(v) < TINY else v

    for operation, exact in (
        ("fma", lambda p, q, r: p * q + r),
        ("mul", lambda p, q, r: p * q),
        ("add", lambda p, q, r: p + q),
        ("sub", lambda p, q, r: p - q),
    ):
        ends = [
            end
            for each in (a, b, c)[: 3 if operation == "fma" else 2]
            for end in [second_check._flushed(each) if ftz else each] * 2
        ]
        with np.errstate(all="ignore"):
            low, high = second_check._EXACT[operation](*ends)
            assert low.tolist() == high.tolist()
            found = second_check._rounded(low, form)
        expected = [nearest(exact(*(Fraction(flush(v)) for v in values)), form) for values in zip(a, b, c, strict=True)]
        assert found.tolist() == expected


def ran(text: str, x: float, figure: str = "any_gpu") -> tuple[float, float]:
    steps = [(name, operands.replace(" ", "").split(",")) for name, operands in (line.split(None, 1) for line in text.split(";"))]
    with np.errstate(all="ignore"):
        low, high = second_check._run([("mov.f32", ["%x", "%1"]), *steps, ("mov.f32", ["%0", "%y"])], F32, np.array([x]), figure)
    return float(low[0]), float(high[0])


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("mul.rn.ftz.f32 %y, %x, 0f3F7FFFFF", TINY, (0.0, TINY)),  # 2^-126 (1 - 2^-24) rounds to 2^-126
        ("mul.rn.ftz.f32 %y, %x, 0f3F7FFFFE", TINY, (0.0, 0.0)),  # that is a subnormal number
        ("mul.rn.f32 %y, %x, 0f3F7FFFFE", TINY, (TINY - 2.0**-149,) * 2),
        ("fma.rn.ftz.f32 %y, %x, 0fB3000000, 0f00800000", TINY, (0.0, TINY)),  # less than 2^-126 by its 2^-25
        ("fma.rn.ftz.f32 %y, %x, 0f33000000, 0f00800000", TINY, (TINY, TINY)),
        ("add.rn.ftz.f32 %y, %x, 0f00000001", TINY, (TINY, TINY)),  # subnormal operands are zeros
        ("add.rn.ftz.f32 %y, %x, 0f7F800000", -INF, (-INF, INF)),  # NaN
        ("max.ftz.f32 %y, %x, 0f80000000", -0.0, (-0.0, -0.0)),
        ("max.ftz.f32 %y, %x, 0f00000000", -0.0, (0.0, 0.0)),
        ("max.ftz.f32 %y, %x, 0f80000000", 0.0, (0.0, 0.0)),
        ("copysign.f32 %y, %x, 0f40000000", -0.0, (-2.0, -2.0)),
        ("neg.ftz.f32 %r, %x; rcp.approx.ftz.f32 %s, %r; max.ftz.f32 %y, %s, 0f3F800000", 0.0, (1.0, INF)),  # of NaN and 1: 1
        ("abs.ftz.f32 %y, %x", -(2.0**-127), (0.0, 0.0)),
        ("shl.b32 %r, %x, 0x00000001U; mov.b32 %y, %r", 1.0, (float(np.uint32(0x7F000000).view(np.float32)),) * 2),
        ("sub.u32 %r, %x, 0x3F000000U; and.b32 %s, %r, 0xFF800000U; cvt.rn.f32.s32 %y, %s", 0.25, (-(2.0**23), -(2.0**23))),
        ("mul.hi.u32 %r, %x, 0x80000000U; mov.b32 %y, %r", 2.0**127, (float(np.uint32(0x7F000000 >> 1).view(np.float32)),) * 2),
        ("ex2.approx.ftz.f32 %y, %x", -INF, (-0.0, 0.0)),
        ("tanh.approx.f32 %y, %x", INF, (1 - 2.0**-11, 1 + 2.0**-11)),
        ("sqrt.approx.ftz.f32 %y, %x", -1.0, (-INF, INF)),
        ("lg2.approx.ftz.f32 %y, %x", 1.0, (-(2.0**-22), 2.0**-22)),
        ("cos.approx.ftz.f32 %y, %x", 0.0, (1 - 11 * 2.0**-24, 1 + 5 * 2.0**-23)),
    ],
)
def test_results_on_any_gpu(text, x, expected):
    low, high = ran(text, x)
    assert (low, high) == expected
    assert [math.copysign(1.0, end) for end in (low, high)] == [math.copysign(1.0, end) for end in expected] or low < high


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_intervals_of_approximations_reach_their_bounds_and_no_further(name):
    """Over an interval of operands: the floats at its ends by mpmath's values."""
    true = {
        "rcp": lambda v: 1 / v, "div": lambda v: v / 3, "sqrt": mpmath.sqrt, "rsqrt": lambda v: 1 / mpmath.sqrt(v),
        "sin": mpmath.sin, "cos": mpmath.cos, "lg2": lambda v: mpmath.log(v, 2),
        "ex2": lambda v: mpmath.mpf(2) ** v, "tanh": mpmath.tanh,
    }[name.partition(".")[0]]  # fmt: skip
    form, (relative, absolute) = FORMATS[name.rpartition(".")[2]], BOUNDS[name]
    low, high = np.array([0.75 - 2.0**-20]), np.array([0.75])
    ends = (low, high) + ((np.array([3.0]),) * 2 if "div" in name else ())
    found = second_check._approximate(name, form, *ends)
    values = [true(mpmath.mpf(float(v))) for v in (low[0], high[0])]
    for side, end, value in ((-1, found[0], min(values)), (1, found[1], max(values))):
        reach = value + side * max(relative * abs(value), absolute)
        inside = side * (reach - float(end[0]))
        assert -(2.0**-19) * ("sin" in name or "cos" in name) <= inside < 2.0 ** (1 - form.digits) * abs(value)


# ---- the table ---------------------------------------------------------------------------------------------------------------


def test_no_bound_is_narrower_than_that_of_the_instruction_set():
    told = {each.ptx: each.semantics.error for each in shipped_instruction_set("halves").instructions if each.semantics.error}
    assert {ptx.replace(".ftz", "").removesuffix("x2") for ptx in told} == set(BOUNDS)
    for ptx, error in told.items():
        name = ptx.replace(".ftz", "").removesuffix("x2")
        relative, absolute = BOUNDS[name]
        at_least = {"ulp": error.bound * 2.0**-23, "absolute": 0.0}.get(error.kind, error.bound)
        assert relative >= at_least
        assert absolute >= {"ulp": error.bound * 2.0**-149, "relative": 0.0}.get(error.kind, error.bound)
        assert LIMITS.get(name, (0.0, INF))[1] <= error.limit


# ---- functions ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_functions_are_enclosed(name):
    for x in (0.3, 2.0**-125, 0.9999999):
        low, high, exponent, is_tiny = enclosure(FORMULAS[name], x)
        with mpmath.workprec(600):
            names = {each: getattr(mpmath.mp, each) for each in dir(mpmath.mp) if not each.startswith("_")}
            value = eval(FORMULAS[name], {"__builtins__": {}}, names | {"x": mpmath.mpf(x)})
            assert low <= value <= high and high - low <= 2.0**-50 * abs(value)
            assert mpmath.mpf(2) ** exponent <= abs(value) < mpmath.mpf(2) ** (exponent + 1)
            assert is_tiny == (abs(value) < mpmath.mpf(2) ** -126)


@pytest.mark.parametrize(
    "formula",
    ["__import__('os')", "x.real", "exp(x, 1)", "exp(x, y=1)", "plot(sin)", "quad", "x if x else 1", "'x'", "True", "x +",
     "lambda: 1", "(" * 500 + "x" + ")" * 500],
)  # fmt: skip
def test_what_is_no_formula_is_refused(formula):
    with pytest.raises((ValueError, TypeError)):
        enclosure(formula, 1.0)


def test_inputs_of_f32_are_where_the_function_passes_a_power_of_two():
    x = second_check._inputs(F32, "x/3", *(second_check._to_bits(v, F32).item() for v in (0.0, 100.0)), [])
    assert {0.0, 100.0} <= set(x.tolist()) and (x == 0).sum() == 2 and np.signbit(x).any()
    for place in (3 * TINY, 96.0, 1.0, TINY, 3 * 2.0**-60):
        key = second_check._to_bits(place, F32)
        assert np.isin(second_check._of_bits(key + np.arange(-8, 9), F32), x).all()


# ---- files -------------------------------------------------------------------------------------------------------------------


def test_it_imports_nothing_of_evo():
    tree = ast.parse(Path(second_check.__file__).read_text())
    modules = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    modules |= {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
    assert not [each for each in modules if each is None or each.startswith("evo")]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flushes as x86 does")
def test_cpus_flush_products_below_the_least_normal_number_after_they_are_rounded():
    """To 24 digits; GPUs may do so before, or keep what rounds to that number among subnormal ones."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("z", "f32"),))
    words = parse_program(language, "%y %x mul_ftz_f32", "test")
    a = 1.0 + np.random.default_rng(2).integers(1, 1 << 23, 400) * 2.0**-23
    b = (1.0 / a).astype(np.float32).astype(np.float64)
    a, b = a[a * b < 1.0], b[a * b < 1.0]
    results = VirtualMachine(language.lowering).store(
        words[None], [(a * 2.0**-63).astype(np.float32), (b * 2.0**-63).astype(np.float32), None]
    )[0, 0]
    counts = {0.0: 0, TINY: 0}
    for x, y, result in zip(a.tolist(), b.tolist(), results.tolist(), strict=True):
        text = f"mul.rn.ftz.f32 %y, %x, 0f{np.float32(y * 2.0**-63).view(np.uint32):08X}"
        size = Fraction(x) * Fraction(y)
        expected = TINY if size >= 1 - Fraction(1, 1 << 25) else 0.0
        assert ran(text, x * 2.0**-63, "cpu") == (expected, expected) == (result, result)
        assert ran(text, x * 2.0**-63) == (0.0, TINY if size >= 1 - Fraction(1, 1 << 24) else 0.0)
        counts[expected] += 1
    assert min(counts.values()) > 20


@pytest.mark.parametrize(
    ("changes", "body", "code"),
    [
        ({}, SQUARE, 0),
        ({"formula": "x*x*x"}, SQUARE, 1),
        ({"formula": "open(x)"}, SQUARE, 2),
        ({"function": "g"}, SQUARE, 2),
        ({"format": "f8"}, SQUARE, 2),
        ({"interval": ["1", "two"]}, SQUARE, 2),
        ({"any_gpu": {"ulp": 3}}, SQUARE, 2),
        ({}, "selp.f32 %%y, %%x, %%x, %%p;", 2),
        ({}, "bra somewhere;", 2),
    ],
)
def test_exit_codes(tmp_path, capsys, changes, body, code):
    found = certificate("x*x", "bf16", (1.0, 1.5), 0.5)
    (tmp_path / "a.cuh").write_text(header("f_bf16_1", body, dict.fromkeys(KINDS, 0.5)))
    (tmp_path / "a.json").write_text(json.dumps(found | changes))
    assert main([str(tmp_path / "a.cuh"), str(tmp_path / "a.json")]) == code
    output = capsys.readouterr()
    assert (output.out + output.err).count("\n") == 1
    assert main([str(tmp_path / "a.cuh"), str(tmp_path / "none.json")]) == main([]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["approximations", "native_halves"])
def test_all_shipped_certificates_hold(name, capsys):
    folder = EXAMPLES / "certificates" / ("native" if name == "native_halves" else "")
    paths = [str(path) for path in sorted(folder.glob("*.json"))]
    assert len(paths) >= 20
    assert main([str(EXAMPLES / f"{name}.cuh"), *paths]) == 0, capsys.readouterr().out
