"""Proofs: values and errors against mpmath and plain loops, intervals against GPUs that err as far as they may.

Slightly long: all of these share the references of instructions.
"""

import math

import mpmath
import numpy as np
import pytest

from evo.approximation.certificate import certified
from evo.approximation.formats import FORMATS
from evo.approximation.functions import Function
from evo.approximation.intervals import IntervalProgram, interval_program
from evo.approximation.pieces import pieces_of
from evo.approximation.sweep import PART, Sweep
from evo.instructions import shipped_instruction_set
from evo.language.infix import parse_infix
from evo.language.program import Language, parse_program
from evo.native.proof import intervals
from evo.native.ptx_vm import VirtualMachine

LANGUAGE = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))


ONE_BELOW, ONE_ABOVE = 1.0 - 3 * 2.0**-24, 1.0 + 2.0**-23  # by the bound of rcp.approx: one ulp from the nearest float


def words_of(text: str) -> np.ndarray:
    if "%x" in text:
        return parse_program(LANGUAGE, text, "test", 64)
    return parse_infix(LANGUAGE, text, "test", 64, [each.name for each in LANGUAGE.instruction_set.instructions])


def run(text: str, x: np.ndarray) -> np.ndarray:
    return VirtualMachine(LANGUAGE.lowering).store(words_of(text)[None], [x.astype(np.float32), None])[0, 0]


def test_ulps_just_below_a_power_of_two_are_the_smaller_ones():
    """tanh(20) is 1 - 8e-18: the next float32 below 1 is a whole ulp from it, not half of one."""
    form = FORMATS["f32"]
    first, last = form.keys_of(17.0, 33.0)
    pieces, below = pieces_of(Function("tanh"), form, first, last), np.array([1.0 - 2.0**-24], np.float32)
    for key in np.linspace(first, last, 400).astype(int).tolist():
        value, bound = pieces.exact(key, form.of_keys(np.array([key])))
        [ulps, _, _], _, _ = pieces.compare(below, value)
        assert ulps + bound >= 1.0 - 2.0**-28
    found = certified(
        LANGUAGE,
        words_of("min(x, 0.99999994)"),
        Function("tanh"),
        form,
        (20.0, 20.001),
        instruction_set="default",
        target="sm_90",
    )
    assert float(found.cpu["ulp"].worst) == pytest.approx(1.0)


def test_of_equal_errors_the_first_is_named():
    form, exact = FORMATS["f32"], np.ones(100)
    results = exact.astype(np.float32)
    results[[9, 41, 73, 74]] += np.float32(2.0**-23)  # the first three are in one lane of a vector
    assert pieces_of(Function("x"), form, *form.keys_of(1.0, 2.0)).compare(results, exact)[1] == [9, 9, 9]


def test_a_large_relative_error_is_not_told_too_small_by_its_reference():
    found = certified(
        LANGUAGE, words_of("x"), Function("sin"), FORMATS["f16"], (6.25, 6.5), instruction_set="default", target="sm_90"
    )
    with mpmath.workprec(200):
        x = mpmath.mpf("6.28125")
        assert (x - mpmath.sin(x)) / abs(mpmath.sin(x)) <= mpmath.mpf(found.cpu["relative"].bound)


def test_minus_zero_is_an_input_too():
    form = FORMATS["bf16"]
    found = Sweep(LANGUAGE, words_of("copysign(1.0, x)"), Function("1 + 0*x"), form, 0, 5, 1).run()
    assert found.cpu.errors[1] == 2.0
    assert math.copysign(1.0, found.cpu.at[1]) == -1.0
    assert found.num_wrong_signs == 1


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_nan_is_never_right(form):
    nan = "%x 0.0 mul_ftz_f32 rcp_approx_ftz_f32 0.0 mul_ftz_f32"
    found = Sweep(LANGUAGE, words_of(nan), Function("exp(x - 100)"), form, 1, 40, 1).run()
    assert (found.num_nans, found.cpu.errors[0]) == (40, math.inf)


def test_what_is_finite_is_infinitely_wrong_where_the_function_is_larger_than_is_known():
    form = FORMATS["f32"]
    first = form.key(200.0)
    found = Sweep(LANGUAGE, words_of("x"), Function("exp"), form, first, first + 50, 1).run()
    assert found.cpu.errors == [math.inf] * 3


OTHERS = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "gelu": lambda x: x * mpmath.ncdf(x),
    "erfinv": mpmath.erfinv,
    "j0": mpmath.j0,
    "silu_grad": lambda x: mpmath.diff(lambda v: v / (1 + mpmath.exp(-v)), x),
    "sinpi": mpmath.sinpi,
    "besselk(0, x)": lambda x: mpmath.besselk(0, x),
    "fabs(x - 1)": lambda x: abs(x - 1),
    "floor(x*1.0011)": lambda x: mpmath.floor(x * 1.0011),
}


@pytest.mark.parametrize(
    ("name", "low", "high", "form"),
    [
        ("exp", -100.0, 80.0, "f32"),
        ("erfinv", -0.9, 0.99, "f32"),
        ("j0", -9.0, 9.0, "f32"),
        ("silu_grad", -90.0, 40.0, "bf16"),
        ("besselk(0, x)", 0.5, 1.0, "bf16"),
        ("log", 1e-3, 3.0, "f32"),
        ("sin", -7.0, 7.0, "f32"),
        ("gelu", -14.0, 2.0, "bf16"),
        ("sinpi", -2.5, 2.5, "f16"),
        ("fabs(x - 1)", 0.0, 4.0, "f16"),
        ("floor(x*1.0011)", 1.0, 1.9999, "f32"),
    ],
)
def test_the_pieces_of_a_function_are_as_near_as_they_say(name, low, high, form):
    form, function = FORMATS[form], Function(name)
    first, last = form.keys_of(low, high)
    pieces = pieces_of(function, form, first, last)
    rng = np.random.default_rng(3)
    near_zeros = [form.key(zero) + step for zero in (1.0, math.pi, 2 * math.pi, 2.0, 1.9979) for step in range(-2, 3)]
    keys = np.array([first, last, *rng.integers(first, last + 1, 60), *near_zeros])
    for key in keys[(keys >= first) & (keys <= last)].tolist():
        [x] = form.of_keys(np.array([key]))
        found, bound = pieces.exact(key, np.array([x]))
        with mpmath.workprec(300):
            error = abs(OTHERS[name](mpmath.mpf(float(x))) - mpmath.mpf(float(found[0])))
        assert error <= (bound + 2.0**-28) * form.ulp(np.abs(found))[0], float(x)
        assert bound < 1e-3


def prove(text: str, function: str, interval: tuple[float, float], form: str = "bf16"):
    return certified(
        LANGUAGE, words_of(text), Function(function), FORMATS[form], interval, instruction_set="default", target="sm_90"
    )


def test_what_lies_between_nodes_is_found():
    """A bump of width 1e-4, which no sample of a binade sees."""
    found = prove("x*0", "exp(-((x - 17/10)*10**4)**2)", (1.0, 2.0), "f32")
    assert float(found.cpu["absolute"].worst) == pytest.approx(1.0, abs=1e-4)
    assert float(found.cpu["absolute"].at) == pytest.approx(1.7, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "function", "interval", "ulps"),
    [  # just above the least normal number: 2^-126 is 128 units of 2^-133
        ("x*0", "(1 + x/10**15)/2**126", (0.5, 1.0), 128.0),
        ("x*0", "(1 + x/10**15)/2**126", (1.0, 1.0078125), 128.0),
        ("x*0", "-(1 + x/10**15)/2**126", (0.5, 1.0), 128.0),
        ("x*0", "(1 - x/10**13)/2**126", (0.5, 1.0), 0.0),
        ("x*0", "x/2", (2.0**-125, 2.0**-125 * 1.01), 129.0),
        ("x*0", "x/2", (2.0**-126, 2.0**-125 * 0.99), 0.0),
        ("x*0.5", "silu", (2.0**-126, 2.0**-124), 0.01),
        ("x*0", "sin", (2.0**-126, 2.0**-126 * 1.001), 0.0),
        ("x*0", "tan", (2.0**-126, 2.0**-126 * 1.001), 128.0),
    ],
)
def test_a_zero_is_right_only_below_the_least_normal_number(text, function, interval, ulps):
    found = prove(text, function, interval)
    assert float(found.cpu["ulp"].worst) == pytest.approx(ulps, rel=1e-9, abs=0.011)


def test_an_interval_on_gpus_that_reaches_zero_is_wrong_where_the_function_is_normal():
    """A product below 2^-126 that rounds to it may be flushed; one that is 2^-126 may not."""
    for factor, ulps in ((0.49999997, 128.0), (0.5, 0.0)):
        found = prove(f"%x {factor} mul_ftz_f32 0.0 tanh_approx_f32 add_ftz_f32", "silu", (2.0**-125, 2.0**-125 * 1.001))
        assert float(found.any_gpu["ulp"].worst) == pytest.approx(ulps, abs=1e-30)


NEAR = "x*(1 - 1/2**13)*(1 + 1/10**7)/2"  # just above 2^-126 at 2^-125 (1 + 2^-13), where 2^-126 (1 - 2^-26) is the product below


@pytest.mark.parametrize(
    ("text", "start", "gpu", "why_not"),
    [
        ("%x 0.49993896484375 mul_ftz_f32", 1 + 2.0**-13, 2.0**23, ""),
        ("0.0 0.49993896484375 %x fma_rn_ftz_f32", 1 + 2.0**-13, 2.0**23, ""),
        ("%x 0.49993896484375 mul_ftz_f32", 1 + 2.0**-12, 0.0, ""),
        ("%x 0.49993896484375 mul_ftz_f32 f32_to_u32 u32_to_f32", 1 + 2.0**-13, None, "products that may be flushed"),
        ("0.0 0.49993896484375 %x fma_rn_ftz_f32 f32_to_u32 u32_to_f32", 1 + 2.0**-13, None, "products that may be flushed"),
        ("%x 0.49993896484375 mul_ftz_f32 f32_to_u32 u32_to_f32", 1 + 2.0**-12, 0.0, ""),
        ("%x 0.0 0.5 fma_rn_ftz_f32 0.49993896484375 mul_ftz_f32 f32_to_u32 u32_to_f32", 0.5, 0.0, ""),  # 2^-126 is exact
    ],
)
def test_a_product_that_one_gpu_flushes_and_another_rounds_is_not_the_same_on_all(text, start, gpu, why_not):
    language = Language(shipped_instruction_set("wide"), (("x", "f32"),), (("y", "f32"),))
    first, last = start * 2.0**-125, start * 2.0**-125 * (1 + 2.0**-20)
    found = certified(
        language, parse_program(language, text, "test"), Function(NEAR), FORMATS["f32"], (first, last),
        instruction_set="wide", target="sm_90",
    )  # fmt: skip
    assert found.why_not == why_not
    if gpu == 0.0:
        assert found.any_gpu == found.cpu
    elif gpu:
        assert float(found.any_gpu["ulp"].bound) >= gpu > float(found.cpu["ulp"].bound)


def test_a_flushed_product_is_0_and_no_number_next_to_it():
    """1 - 2^-24 times 2^-126 is 0 on a CPU, and 2^-126 or 0 on a GPU: as far from 2^-126 as a result can be."""
    language = Language(shipped_instruction_set("halves"), (("x", "bf16"),), (("y", "bf16"),))
    words = parse_program(language, "%x cvt_f32_bf16 0.99999994 mul_ftz_f32 cvt_rn_bf16_f32", "test")
    found = certified(language, words, Function("x"), FORMATS["bf16"], (2.0**-126, 1.0), instruction_set="halves", target="sm_90")
    assert float(found.any_gpu["ulp"].bound) >= float(found.cpu["ulp"].bound) >= 128.0


def test_a_subnormal_between_a_flushed_end_and_the_other_is_no_flushed_result():
    """tanh of halves may give 2^-11 at 0, and a product with 2^-122 then 2^-133, which is 63 units from 2^-127."""
    language = Language(shipped_instruction_set("halves"), (("x", "bf16"),), (("y", "bf16"),))
    text = "0.0:bf16 %x mul_bf16 tanh_approx_bf16 1.88079096e-37:bf16 mul_bf16 0.0:bf16 max_bf16"
    words = parse_program(language, text, "test", 32)
    found = certified(
        language, words, Function("2**(-127)"), FORMATS["bf16"], (1.0, 2.0), instruction_set="halves", target="sm_90"
    )
    assert float(found.any_gpu["ulp"].bound) >= 63.0


@pytest.mark.parametrize(("form", "exponent", "digits"), [("f32", 128, 24), ("bf16", 128, 8), ("f16", 16, 11)])
def test_infinity_is_right_only_where_the_nearest_number_is_infinite(form, exponent, digits):
    """From the middle between the largest number and the next power of two on."""
    overflow = f"(2**{exponent} - 2**{exponent - 1 - digits})"
    huge = "2**1000"
    for text, function, worst in (
        ("1/(x*0)", f"{overflow}*(1 - x/10**15)", math.inf),
        ("1/(x*0)", f"{overflow}*(1 + x/10**13)", 0.0),
        ("1/(x*0)", huge, 0.0),
        ("x", huge, math.inf),
    ):
        assert float(prove(text, function, (1.0, 1.5), form).cpu["ulp"].worst) == worst, function
    known, below = pieces_of(Function("x"), FORMATS[form], 1, 99), 2.0**exponent - 0.75 * 2.0 ** (exponent - digits)
    for doubt, worst in ((0.125, math.inf), (0.5, 0.0)):  # a value a quarter of an ulp below, which is so far off at most
        assert known.compare(np.array([np.inf], np.float32), np.array([below]), doubt)[0][0] == worst


def errors_of(form, y: np.ndarray, exact: list[float]) -> dict[str, float]:
    """By a plain loop."""
    worst = dict.fromkeys(("ulp", "absolute", "relative"), 0.0)
    for value, f in zip(y.tolist(), exact, strict=True):
        if value == 0.0 and abs(f) < 2.0**-126:  # flushed
            continue
        ulp = 2.0 ** (max(math.frexp(f)[1] - 1, form.least) - form.digits + 1)
        error = abs(value - f)
        for kind, unit in (("ulp", ulp), ("absolute", 1.0), ("relative", max(abs(f), 2.0**form.least))):
            worst[kind] = max(worst[kind], error / unit)
    return worst


def test_a_certificate_has_the_worst_errors_of_all_values_of_a_format():
    form, text = FORMATS["bf16"], "h = x*0.5; y = h*tanh(h) + h"
    found = certified(LANGUAGE, words_of(text), Function("silu"), form, (-6.0, 3.0), instruction_set="default", target="sm_90")
    x = form.of_keys(np.arange(form.key(-6.0), form.key(3.0) + 1))
    assert found.num_inputs == len(x)
    exact = [v / (1 + math.exp(-v)) for v in x.tolist()]
    y = form.round(run(text, x))
    for kind, worst in errors_of(form, y, exact).items():
        assert float(found.cpu[kind].worst) == pytest.approx(worst, rel=1e-6)
        assert worst * (1 - 1e-9) <= float(found.cpu[kind].bound) <= worst * 1.01
        assert float(found.any_gpu[kind].bound) > float(found.cpu[kind].bound)
    assert found.num_falls == int((np.diff(y) * np.diff(exact) < 0).sum())
    assert (found.num_instructions, float(found.slots)) == (4, 11)


@pytest.mark.parametrize(
    ("text", "function", "exact", "form", "interval"),
    [  # half as large where the function is a power of two, and the bound counts the ulp below it; noise of values of 1e38
        ("x*0 + 0.7944336", "1/(x-1)", lambda v: 1 / (v - 1), "f16", (1.0009765625, 4.0)),
        ("h = x*0.5; y = h*tanh(h) + h", "silu", lambda v: v / (1 + math.exp(-v)), "bf16", (0.5, 1.5e38)),
        ("x*1.001", "x", lambda v: v, "f16", (0.5, 9.0)),
    ],
)
def test_the_worst_error_is_the_largest_also_where_the_bound_is_far_above_another(text, function, exact, form, interval):
    found, form = prove(text, function, interval, form), FORMATS[form]
    x = form.of_keys(np.arange(form.key(interval[0]), form.key(interval[1]) + 1))
    for kind, worst in errors_of(form, form.round(run(text, x)), [exact(v) for v in x.tolist()]).items():
        assert float(found.cpu[kind].worst) == pytest.approx(worst, rel=1e-6), kind
        assert float(found.cpu[kind].bound) >= worst


def test_a_sweep_counts_nans_wrong_signs_asymmetry_and_steps_against_the_function():
    form = FORMATS["f32"]
    low, high = form.keys_of(-1.0, 1.0)
    middle = form.key(0.75)
    sweep = Sweep(
        LANGUAGE, words_of("y = (x + 0.000001) * 1/(x*x*4 - 2.25) * (x*x*4 - 2.25)"), Function("sin"), form, low, high, 2
    )
    assert sweep.symmetry == "odd"
    sweep._parts = [(-middle - 5, -middle + 6), (middle - 5, middle + 6)]  # all take seconds
    found = sweep.run()
    assert (found.num_inputs, found.num_nans) == (22, 2)  # 0 times infinity
    assert found.num_asymmetric > 5
    assert math.isinf(found.cpu.errors[0]) and abs(found.cpu.at[0]) == 0.75
    x = form.of_keys(np.arange(form.key(-1e-6), form.key(-0.9e-6)))
    signs = Sweep(LANGUAGE, words_of("x + 0.0000009"), Function("sin"), form, form.key(-1e-6), form.key(-0.9e-6) - 1, 1).run()
    assert signs.num_wrong_signs == int((run("x + 0.0000009", x) > 0).sum()) == 0
    assert Sweep(LANGUAGE, words_of("-x"), Function("sin"), form, 1, 100, 1).run().num_wrong_signs == 0  # all is flushed
    falling = Sweep(LANGUAGE, words_of("-x"), Function("sin"), form, form.key(1.0), form.key(1.0) + 99, 1).run()
    assert (falling.num_wrong_signs, falling.num_falls) == (100, 99)


# Upper and lower results of GPUs: results of approximate instructions, by the ISA's bounds, before they are rounded.
BOUNDS = {
    "exp2": lambda v: (np.exp2(v), 2.5 * 2.0**-23 * np.exp2(v)),  # 2 ulp from the nearest float
    "rcp": lambda v: (1 / v, 2.0**-23 / np.abs(v)),
    "tanh": lambda v: (np.tanh(v), 2.0**-11 * np.abs(np.tanh(v))),
    "log2": lambda v: (np.log2(v), 2.0**-22 * np.maximum(1.0, np.abs(np.log2(v)))),
    "sin": lambda v: (np.sin(v), np.full_like(v, 2.0**-20.5)),
}


def gpu(name: str, v: np.ndarray, push: np.ndarray) -> np.ndarray:
    """A result that is wrong by a part of the bound, -1 to 1, rounded toward the exact one."""
    exact, width = BOUNDS[name](v.astype(np.float64))
    near = (exact + push * width).astype(np.float32)
    outside = np.abs(near - exact) > width
    near[outside] = np.nextafter(near[outside], exact[outside].astype(np.float32))
    return near


def sigmoid(x, push):
    return gpu("rcp", gpu("exp2", x * np.float32(-1.4426950216293335), push) + np.float32(1), push)


def softplus(x, push):
    return gpu("log2", gpu("exp2", x, push) + np.float32(1), push) * np.float32(0.5)


def mixed(x, push):
    return gpu("tanh", gpu("sin", x, push) * x, push) - np.float32(0.25) * x


@pytest.mark.parametrize(
    ("text", "on_gpu"),
    [
        ("1/(exp2(x*-1.442695) + 1)", None),
        ("log2(exp2(x) + 1)*0.5", softplus),
        ("tanh(sin(x)*x) - 0.25*x", mixed),
        ("min(max(fma(exp2(x), x, -x), -1.0), 4.0)", None),
        ("copysign(abs(exp2(x) - 1), x)/(x*x + 0.5)", None),
        ("x/(exp2(x) + 1)", None),
    ],
)
def test_no_gpu_within_its_bounds_leaves_the_interval(text, on_gpu):
    x = np.random.default_rng(5).uniform(-6, 6, 4000).astype(np.float32)
    program = interval_program(LANGUAGE, words_of(text))
    assert isinstance(program, IntervalProgram) and not program.is_exact
    low, high = intervals(program.steps, program.constants, x)
    y = run(text, x)
    assert np.isfinite(low).all() and (low <= y).all() and (y <= high).all()
    for push in (-1.0, 1.0, -0.3) if on_gpu else ():
        pushed = on_gpu(x, np.full(len(x), push))
        assert ((low <= pushed) & (pushed <= high)).all(), push
    assert np.median(high - low) < 1e-2 * np.median(np.abs(y)) + 1e-6


def test_intervals_are_unknown_where_the_bounds_say_nothing():
    def ends(text, *x):
        program = interval_program(LANGUAGE, words_of(text))
        return np.stack(intervals(program.steps, program.constants, np.array(x, np.float32))).T.tolist()

    everything = [-math.inf, math.inf]
    assert ends("1/x", 0.0, -0.0) == [everything] * 2
    assert ends("sin(x)", 7.0, 100.0) == [everything] * 2
    assert ends("log2(x)", -1.0) == [everything]
    assert ends("1/sqrt(x)", -2.0) == [everything]
    assert ends("%x ex2_approx_ftz_f32 1.0 add_ftz_f32 rcp_approx_ftz_f32", 200.0, -200.0) == [[0.0, 0.0], [ONE_BELOW, ONE_ABOVE]]
    nan = "%x ex2_approx_ftz_f32 0.0 mul_ftz_f32"  # of infinity
    assert ends(f"{nan} tanh_approx_f32", 200.0) == [everything]
    assert ends(f"{nan} abs_ftz_f32 ex2_approx_ftz_f32 1.0 add_ftz_f32 rcp_approx_ftz_f32", 200.0) == [everything]
    assert ends(f"{nan} %x copysign_f32", 200.0) == [everything]
    assert ends(f"1.0 {nan} -1.0 max_ftz_f32 min_ftz_f32", 200.0) == [[-1.0, 1.0]]
    assert ends("%x %x mul_ftz_f32 %x %x mul_ftz_f32 sub_ftz_f32 %x sin_approx_ftz_f32 copysign_f32", 1e30) == [everything]
    assert interval_program(LANGUAGE, words_of("exp2(x) if x < 1 else x")) == "setp_lt_ftz_f32"
    long = parse_program(LANGUAGE, "%x " + "ex2_approx_ftz_f32 " * 256, "test", 512)
    assert interval_program(LANGUAGE, long) == "programs of more than 256 values"


def test_what_all_gpus_compute_alike_has_one_figure_though_no_intervals_are_known():
    language = Language(shipped_instruction_set("wide"), (("x", "f32"),), (("y", "f32"),))
    half_an_exponent = "%x f32_to_u32 1:u32 swap.u32 shr_u32 532676608:u32 add_u32 u32_to_f32"
    words = parse_program(language, half_an_exponent, "test", 32)
    found = certified(language, words, Function("sqrt(x)"), FORMATS["f32"], (1.0, 1.001), instruction_set="wide", target="sm_90")
    assert found.why_not == "" and found.any_gpu["absolute"].bound == found.cpu["absolute"].bound
    bits = np.arange(*np.array([1.0, 1.001], np.float32).view(np.uint32), dtype=np.uint32)
    errors = ((bits >> 1) + 532676608).astype(np.uint32).view(np.float32) - np.sqrt(bits.view(np.float32).astype(np.float64))
    assert float(found.cpu["absolute"].worst) == pytest.approx(np.abs(errors).max(), rel=1e-6)


def test_intervals_have_all_that_two_ulp_and_flushing_allow():
    def ends(text, x):
        program = interval_program(LANGUAGE, words_of(text))
        low, high = intervals(program.steps, program.constants, np.array([x], np.float32))
        return [low[0], high[0]]

    low, _ = ends("%x tanh_approx_f32 lg2_approx_ftz_f32 0.0 max_ftz_f32 sin_approx_ftz_f32", 1e20)
    assert low <= -math.floor(2.0**23.5) * 2.0**-44  # the float at the end of the absolute bound, 2^-20.5
    assert ends("%x %x 0.0 add_ftz_f32 div_approx_ftz_f32", 127.0) == [1.0 - 5 * 2.0**-24, 1.0 + 2.0**-22]
    least = 2.0**-126
    assert ends("%x 0.99999994 mul_ftz_f32", least) == [0.0, least]
    assert ends("0.0 0.99999994 %x fma_rn_ftz_f32", -least) == [-least, 0.0]
    assert ends("%x 0.99999994 0.0 fma_rn_ftz_f32", -least) == [-least, -least]  # exactly
    assert ends("%x 0.99999994 mul_ftz_f32 1.0 add_ftz_f32 rcp_approx_ftz_f32", least) == [ONE_BELOW, ONE_ABOVE]
    above = 2.0**126 * (1.0 + 2.0**-23)  # whose reciprocal with its whole bound is the least normal number
    assert [ends("%x rcp_approx_ftz_f32", x) for x in (-above, above)] == [[-least, 0.0], [0.0, least]]
    assert ends("%x rcp_approx_ftz_f32", 2.0**126 * (1.0 - 3 * 2.0**-24))[0] == least  # the lower end itself, which is normal
    assert ends("%x 2.0 mul_ftz_f32 1e-45 mul_ftz_f32" + 28 * " 2.0 mul_ftz_f32", 1e38) == [0.0, 0.0]  # a subnormal constant is 0


@pytest.mark.parametrize(
    "text",
    [
        "x/(exp2(x*(x*x*-0.1 - 2.3)) + 1)",
        "log2(exp2(x) + 1)*0.5",
        "tanh(sin(x)*x) - 0.25*x",
        "copysign(abs(x*x - 2), x)/(x*x + 0.5)",
        "min(max(fma(x, cos(x), -x), -1.0), sqrt(abs(x)))",
        "%x %x mul_ftz_f32 %x %x mul_ftz_f32 sub_ftz_f32 %x rcp_approx_ftz_f32 max_ftz_f32",  # of a NaN and a number
    ],
)
def test_the_interval_of_neighbours_has_those_of_each(text):
    program, form = interval_program(LANGUAGE, words_of(text)), FORMATS["f32"]
    starts = [
        form.key(sign * x) for sign in (-1, 1) for x in (1e-40, 1.1e-38, 1e-20, 0.01, 0.9999, 1.4142, 3.1415, 6.0, 90.0, 1e30)
    ]
    for count in (8, 64, 5000):
        x = np.stack([form.of_keys(start + np.arange(count)) for start in starts])
        low, high = (ends.reshape(x.shape) for ends in intervals(program.steps, program.constants, x.ravel()))
        least, most = intervals(program.steps, program.constants, x[:, 0], x[:, -1])
        assert (least <= low.min(axis=1)).all() and (high.max(axis=1) <= most).all()


@pytest.mark.parametrize(
    ("form", "text", "function", "low", "high"),
    [
        ("f32", "x/(exp2(x*(x*x*-0.1 - 2.3)) + 1)", "gelu", -1.01, -1.0),
        ("f32", "exp2(x*1.442695)", "exp", 88.6, 88.8),  # overflows
        ("f32", "exp2(x*1.442695)", "exp", -104.0, -87.3),  # is flushed
        ("f16", "exp2(x*1.442695)", "exp", -18.0, 12.0),
        ("bf16", "sin(x)*1.0001", "sin", -6.0, 6.0),
    ],
)
def test_what_a_sweep_leaves_out_changes_nothing(monkeypatch, form, text, function, low, high):
    monkeypatch.setattr("evo.approximation.sweep.PART", 1 << 9)
    first, last = FORMATS[form].keys_of(low, high)
    sweep, num_looked_at = Sweep(LANGUAGE, words_of(text), Function(function), FORMATS[form], first, last, 2), 0
    sweep._parts = [*sweep._parts[:40], *sweep._parts[-40:]]
    found, worth = sweep.run(), sweep._worth_a_look

    def everything(x, *rest):
        nonlocal num_looked_at
        num_looked_at += len(x[worth(x, *rest)])
        return slice(None)

    monkeypatch.setattr(sweep, "_worth_a_look", everything)
    assert sweep.run() == found
    assert num_looked_at < 0.8 * found.num_inputs


def test_a_sweep_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    form = FORMATS["f32"]
    first = form.key(1.0)
    sweep = Sweep(LANGUAGE, words_of("exp2(x*1.442695)"), Function("exp"), form, first, first + 7 * PART + 5, 2)
    whole, state = sweep.run(), tmp_path / "state"
    monkeypatch.setattr("evo.approximation.sweep.SAVE_S", 0.0)

    def stop(done: int, total: int) -> None:
        assert total == 7 * PART + 6
        if done > 3 * PART:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.run(state, stop)
    seen: list[int] = []
    assert sweep.run(state, lambda done, _: seen.append(done)) == whole
    assert seen[0] > 3 * PART and not state.exists()
