"""Values of functions, and formats: against libm, SciPy, and NumPy's and struct's own rounding."""

import math
import pickle
from contextlib import suppress

import mpmath
import numpy as np
import pytest
from flint import arb, arb_series, ctx
from scipy import special

from evo.approximation.formats import FORMATS
from evo.approximation.formulas import FUNCTIONS, bounds, evaluate, parse
from evo.approximation.functions import FORMULAS, LARGEST, Function
from evo.errors import UserError

X = np.concatenate([-np.geomspace(1e-30, 5.0, 12), np.geomspace(1e-30, 5.0, 12)])
OTHERS = {
    "expm1": np.expm1,
    "log1p": lambda x: special.log1p(np.where(x > -1, x, np.nan)),
    "gelu": lambda x: x * special.ndtr(x),
    "gelu_grad": lambda x: special.ndtr(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_tanh": lambda x: x * special.expit(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "silu": lambda x: x * special.expit(x),
    "silu_grad": lambda x: special.expit(x) * (1 + x * special.expit(-x)),
    "sigmoid_grad": lambda x: special.expit(x) * special.expit(-x),
    "softplus": lambda x: np.logaddexp(0, x),
    "tanh_grad": lambda x: 1 / np.cosh(x) ** 2,
    "erfinv": lambda x: special.erfinv(np.where(abs(x) < 1, x, np.nan)),
    "j0": special.j0,
    "cbrt": np.cbrt,
    "sinpi": special.sindg,
    "asinh": np.arcsinh,  # mpmath's name
    "pi": lambda x: np.full_like(x, math.pi),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_named_function_is_what_scipy_has(name):
    expected = OTHERS[name](X * 180 if name == "sinpi" else X)
    np.testing.assert_allclose(Function(name).values(X), expected, rtol=2e-13 if name != "j0" else 1e-12)


def test_a_formula_that_cancels_keeps_its_digits():
    x = np.array([1e-30, 1e-10, 0.5])
    np.testing.assert_allclose(Function("(exp(x) - 1 - x)/x").values(x), [x[0] / 2, x[1] / 2 * (1 + x[1] / 3), 0.29744254140025])
    tiny = np.array([1e-45, 1e-38, 1e-20])
    np.testing.assert_array_equal(Function("(1 - cos(x))/x**2").values(tiny).astype(np.float32), 0.5)
    assert Function("(x - 1/3)*10**16").values(np.array([1 / 3]))[0] == pytest.approx(-0.1850371707708594, rel=1e-12)


def test_values_round_on_to_the_nearest_float():
    """1 + 2^-24 + 2^-80 is above the middle of two floats, and its nearest float64 is that middle."""
    [value] = Function("1 + x + x**(10/3)").values(np.array([2.0**-24]))
    assert float(np.float64(1 + 2.0**-24)) == 1 + 2.0**-24
    assert np.float32(value) == np.float32(1) + np.float32(2.0**-23)


def test_values_beyond_all_formats_are_bounded_and_missing_ones_nan():
    found = Function("exp").values(np.array([1e4, -1e4]))
    assert found.tolist() == [LARGEST, 0.0]
    assert np.isnan(Function("log").values(np.array([-1.0]))).all()


def test_a_function_of_a_module_is_found():
    assert Function("mpmath:airyai").values(np.array([0.5]))[0] == pytest.approx(special.airy(0.5)[0], rel=1e-14)


NO_FUNCTIONS = ["gel", "x.real", "exp(x", "nowhere:f", "exp(dps=x)", "x if x else 1", "lambda: x", "[x]", "x[0]", "'x'"]
NO_FUNCTIONS += ["exp(x, x)", "x; x", "1e400*x", "True", "(" * 3000 + "x" + ")" * 3000, "x+" * 20000 + "x", "x\0", "", "1j*x"]
NO_FUNCTIONS += [
    "f(x)(x)",
    "x or x",
    "__import__('os')",
    "open(x)",
    "quad(sin)",
    "plot(sin)",
    "findroot(sin, 3)",
    "mpf(x)",
    "eval(x)",
]


@pytest.mark.parametrize("text", NO_FUNCTIONS)
def test_what_is_no_function_is_refused_in_a_short_line(text):
    with pytest.raises(UserError, match=r"^task_options\.function") as refused:
        Function(text)
    assert len(str(refused.value)) < 400 and "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["-" * 15000 + "x", "x**" * 6000 + "x"], ids=["minus", "power"])
def test_a_formula_that_is_too_deep_is_refused_or_computed(text):
    with suppress(UserError):
        Function(text).values(np.array([0.5]))


@pytest.mark.parametrize("text", ["sin(10**5000*x)", "(10**5000 + x) - 10**5000", "sin(10**(10**10)*x)"])
def test_a_value_without_digits_is_refused(text):
    with pytest.raises(UserError, match=r"no digits to be had at x = 1\.5"):
        Function(text).values(np.array([1.5]))


def test_a_value_that_cannot_be_told_from_a_number_is_below_it_but_for_the_least_normal_one():
    values = Function("exp(log(x))").values(np.array([8.0, 2.0**-126, 1.1]))
    assert values.tolist() == [np.nextafter(8.0, 0.0), 2.0**-126, np.nextafter(1.1, 0.0)]
    overflow = 2.0**128 - 2.0**103
    assert Function("2**128 - 2**103 - 10**(-2000)").values(np.array([1.0]))[0] < overflow


@pytest.mark.parametrize("text", ["x**(2**(2**33))", "x**(2**(2**40))", "x**x**(2**(2**36))", "besselk(0, x)**(2**(2**36))"])
def test_a_huge_exponent_takes_no_memory(text):
    found = Function(text).values(np.array([1.5]))
    assert math.isnan(found[0]) or found[0] in (0.0, LARGEST)


def test_a_formula_of_two_thousand_terms_is_computed():
    assert Function("+".join(["x"] * 2000)).values(np.array([0.5])) == [1000.0]


@pytest.mark.parametrize("name", FORMULAS)
def test_each_name_has_a_value_and_an_enclosure(name):
    function = Function(name)
    assert np.isfinite(function.values(np.array([0.375]))[0]) and function.enclosure == "rigorous"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_balls_and_series_enclose_what_mpmath_computes(name):
    meaning = FUNCTIONS[name]
    if not meaning.ball:
        assert Function(f"{name}(2, x)" if meaning.counts == (2,) else f"{name}(x)").enclosure == f"validated: {name}"
        return
    steps, call, num_seen = parse(f"{name}(x)"), getattr(mpmath.mp, name), 0
    for x in (-2.25, -0.6875, 0.3125, 0.875, 2.25, 9.5):
        with mpmath.workdps(70), ctx.workprec(250):
            ctx.cap = 12
            width = 2.0**-8
            try:
                expected, beside = (mpmath.mpmathify(call(mpmath.mpf(at))) for at in (x, x + width))
            except ValueError:
                expected = beside = mpmath.nan
            if isinstance(expected, mpmath.mpc) or isinstance(beside, mpmath.mpc) or mpmath.isnan(beside):
                assert not evaluate(steps, arb(x)).is_finite()
                continue
            num_seen += 1
            ball = evaluate(steps, arb(x))
            assert abs(mpmath.mpf(ball.str(45, radius=False)) - expected) <= abs(expected) * 1e-36
            if meaning.series:  # the Taylor polynomial of 11 terms with Lagrange's remainder, from a ball of the whole step
                centre, around = (evaluate(steps, arb_series([at, width], 12)) for at in (arb(x), arb(x).union(arb(x + width))))
                found = sum((centre[i] for i in range(11)), arb(0)) + around[11]
                assert found.is_finite() and found.overlaps(arb(mpmath.nstr(beside, 65))), x
                assert not meaning.trend or bounds(steps, x, x + width)
    assert num_seen >= 2


def test_ends_of_monotonic_steps_bound_a_function_on_intervals_that_are_too_wide_for_balls():
    for text, low, high in (("x/(1 + exp(-x))", -1e30, -400.0), ("x*sech(x/2)**2", 400.0, 3e38), ("x**3*erfc(x)", 30.0, 1e38)):
        least, most = bounds(parse(text), low, high)
        assert -(2.0**-300) < least <= most < 2.0**-300
    least, most = bounds(parse("1/(2 - x) + x**2*3"), -1.0, 1.5)
    assert least <= 1 / 3 and most >= 2 + 6.75 and bounds(parse("sin(x)"), 0.0, 1.0) is None


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_all_values_of_a_format_are_in_order_and_rounding_finds_the_nearest(name):
    form = FORMATS[name]
    last = form.key(form.largest)
    values = form.of_keys(np.arange(-last, last + 1))
    assert len(values) == {"f16": 2 * 31743 + 1, "bf16": 2 * 32639 + 1}[name]
    assert (np.diff(values) > 0).all()
    if name == "f16":
        halves = np.arange(65536).astype(np.uint16).view(np.float16)
        assert set(values.tolist()) == set(halves[np.isfinite(halves)].tolist())
    rng = np.random.default_rng(1)
    some = values[rng.integers(0, len(values) - 1, 4000)]
    x = some * rng.uniform(0.5, 2.0, len(some))
    x = x[np.abs(x) <= form.largest].astype(np.float32)
    nearest = values[np.clip(np.searchsorted(values, x), 1, len(values) - 1)[:, None] - [1, 0]]
    distance = np.abs(nearest.astype(np.float64) - x[:, None]).min(axis=1)
    np.testing.assert_array_equal(np.abs(form.round(x).astype(np.float64) - x), distance)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_an_ulp_is_the_distance_of_neighbours(form):
    keys = np.array([1, 5, 200, 1 << form.digits, (3 << form.digits) - 1, form.key(1.0), form.key(form.largest) - 1])
    low, high = form.of_keys(keys).astype(np.float64), form.of_keys(keys + 1).astype(np.float64)
    np.testing.assert_array_equal(form.ulp((low + high) / 2), high - low)


def test_an_interval_has_the_values_within():
    form = FORMATS["bf16"]
    first, last = form.keys_of(-1.0000001, 1.9999999)
    assert form.of_keys(np.array([first, last])).tolist() == [-1.0, 1.9921875]


def test_a_function_that_was_evaluated_goes_to_other_processes():
    function = Function("exp(x)/3")
    function.exact(1.0)
    copy = pickle.loads(pickle.dumps(function))
    assert float(copy.exact(2.0)) == pytest.approx(math.exp(2.0) / 3, rel=1e-15)
