"""evo.language.textbook: found laws are written as textbooks have them, and keep their values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.instructions import shipped_instruction_set
from evo.language.dag import REAL, Builder, Dag, dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.formula_text import infix
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.language.textbook import textbook, written

SET = shipped_instruction_set("wide")
NAMES = {instruction.name for instruction in SET.instructions}
INPUTS = ("x", "y", "z", "w")
LANGUAGE = Language(SET, tuple((name, "f32") for name in INPUTS), (("f", "f32"),))


def formula(text: str) -> Dag:
    return formula_of(dag_of(LANGUAGE, parse_infix(LANGUAGE, text, "text", 200, NAMES)), {}, {"f": (0.0, 1.0)})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        # sums that are products
        ("1 + x*(1.4 + 0.49*x) + y*(3.8 + 2.66*x + 3.61*y)", "(1 + 0.7*x + 1.9*y)**2"),  # two adsorbates
        ("4.6*(1 - 2*exp(-1.9*x) + exp(-3.8*x))", "4.6*(1 - exp(-1.9*x))**2"),  # Morse
        ("x*(x*(11 - x) - 28)*0.3", "0.3*x*(7 - x)*(x - 4)"),  # Allee
        ("3.3/(9.5 - x*(6 - x))", "3.3/(0.5 + (x - 3)**2)"),  # Lorentz
        ("x/(2.4 + x + 3*y + 1.25*x*y)", "x/((2.4 + x)*(1 + 1.25*y))"),  # inhibition
        ("x*y + z - x*z", "x*(y - z) + z"),  # Raoult
        ("2 - 3*x + 4.9*x*x", "2 + 4.9*x**2 - 3*x"),
        # powers and roots
        ("503.29*exp2(-0.5*log2(x*y/z))", "503.29*sqrt(z/(x*y))"),  # frequency of a string
        ("x*pow(x, -0.313)", "x**0.687"),
        ("exp2(0.5*(log2(x) + log2(19600*y)))", "140*sqrt(x*y)"),
        ("sqrt(2*x*y)", "sqrt(2*x*y)"),  # Torricelli
        ("pow(x, 1.5)*pow(y + z, -0.5)", "sqrt(x**3/(y + z))"),  # Kepler
        ("sqrt(x)/sqrt(y)", "sqrt(x/y)"),
        ("exp2(2*log2(x) - 3*log2(y))", "x**2/y**3"),
        ("pow(x/y, 0.25)*3.1", "3.1*(x/y)**0.25"),
        ("x/sqrt(1 - y*y/(z*z))", "x/sqrt(1 - y**2/z**2)"),  # relativistic mass
        ("sqrt(x*x + y*y)", "sqrt(x**2 + y**2)"),
        ("sqrt(x*x)", "abs(x)"),
        ("x/(y*sqrt(z))", "x/(y*sqrt(z))"),
        # exponentials and logarithms
        ("exp2(1.442695*x)*y", "y*exp(x)"),
        ("log2(x)*0.6931472*y", "y*log(x)"),
        ("exp(x)*exp(-y)", "exp(x - y)"),
        ("x*exp(-x*x)", "x*exp(-x**2)"),
        ("10*log10(x/y)", "10*log10(x/y)"),  # decibel
        ("log(x) - log(y)", "log(x/y)"),
        ("-x*log(y/z)", "x*log(z/y)"),
        ("-3*(0 - exp(x))", "3*exp(x)"),
        ("0.3 + 2.1/(1 + exp(-0.85*(x - 2)))", "0.3 + 2.1/(1 + exp(-0.85*(x - 2)))"),  # logistic
        ("x*exp(-3985/(233.4 + y))", "x*exp(-3985/(233.4 + y))"),  # vapour pressure
        ("2*exp(-4.5*exp(-0.3*x))", "2*exp(-4.5*exp(-0.3*x))"),  # Gompertz
        ("3*(1 - exp(-2*(x - 0.74)))*(1 - exp(-2*(x - 0.74)))", "3*(1 - exp(-2*(x - 0.74)))**2"),  # Morse
        ("x*x*x/(exp(x/y) - 1)", "x**3/(exp(x/y) - 1)"),  # Planck
        ("pow(x, y)", "x**y"),
        # waves
        ("2.5*sin(-x)", "-2.5*sin(x)"),
        ("cos(3 - 2*x)", "cos(2*x - 3)"),
        ("sin(x + 1.5707964)", "cos(x)"),
        ("sin(x + 2e12)", "sin(x - 1.3152495182735728)"),  # as mpmath reduces it
        ("1 - 2*sin(x)*sin(x)", "cos(2*x)"),
        ("0.5 - 0.5*cos(2*x)", "sin(x)**2"),
        ("1 - cos(x)*cos(x)", "sin(x)**2"),
        ("y*sin(x)*sin(x) + y*cos(x)*cos(x)", "y"),
        ("0.5*cos(x + y) + 0.5*cos(x - y)", "cos(x)*cos(y)"),
        ("cos(x + y) + 3*cos(x - y)", "cos(x + y) + 3*cos(x - y)"),
        ("0.5*sin(x + y) + 0.5*cos(x - y)", "0.5*(cos(x - y) + sin(x + y))"),
        ("sin(x)/cos(x)", "tan(x)"),
        ("6*y*sin(x)*cos(x)", "3*y*sin(2*x)"),
        ("1 - cos(x)", "1 - cos(x)"),
        # quotients and sums
        ("1/(x + 1/x)", "x/(1 + x**2)"),
        ("1/(1/x + 1/y)", "x*y/(x + y)"),  # resistors in parallel
        ("2.1/(1 + 0.7/x)", "2.1*x/(0.7 + x)"),  # Michaelis and Menten
        ("x - 0.1*x*x - 0.5*x*y + 0.25*x*x*y/(1 + 0.5*x)", "x - 0.1*x**2 - 0.5*x*y/(1 + 0.5*x)"),
        ("1 - 1/(1 + x)", "x/(1 + x)"),
        ("2*x*cos(y)/(x*cos(y) + z*w) - 1", "(x*cos(y) - z*w)/(x*cos(y) + z*w)"),  # Fresnel
        ("1 + 2*x/(x + y)", "1 + 2*x/(x + y)"),
        ("3*x/(1.2 + 2*x)", "1.5*x/(0.6 + x)"),
        ("x/y/z/w", "x/(y*z*w)"),
        ("x*y*y*0.5", "0.5*x*y**2"),
        ("2*x - 3*(y - x)", "5*x - 3*y"),
        ("1.5*(x - 2) + 3", "1.5*x"),
        ("0.5*(y + 2*sin(x))", "sin(x) + 0.5*y"),
        ("3 + 2*(x*y + 0.5*sin(z))", "3 + 2*x*y + sin(z)"),
        ("0.1*(3*x - 10*y)*z", "z*(0.3*x - y)"),
        ("-0.5*(x - 2*y)", "y - 0.5*x"),
        ("x + y*x - x", "x*y"),
        ("x*y + x + y + 1", "1 + x + x*y + y"),
        ("4*x*(1 - x)", "4*x*(1 - x)"),
        ("-3*x*(y - z)", "3*x*(z - y)"),
        ("x*y/((w - 1)*(y - x))", "1/((1/x - 1/y)*(w - 1))"),  # lens maker
        ("x*x*y*y/(y*y - x*x)", "1/(1/x**2 - 1/y**2)"),  # Rydberg
        ("x*y*z/(x*y + x*z + y*z)", "1/(1/x + 1/y + 1/z)"),  # three resistors
    ],
)
def test_a_found_law_is_written_as_textbooks_have_it(found, expected):
    assert infix(formula(found)) == f"f = {expected}\n"


POSITIVE = {"x": (0.2, 3.0), "y": (4.0, 9.0), "z": (0.5, 0.9)}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("abs(x)/sqrt(x*x + y*y)", "x/sqrt(x**2 + y**2)"),  # power factor
        ("x*sqrt(1 + y*y/(x*x))", "sqrt(x**2 + y**2)"),  # impedance
        ("sqrt(x*x*z/(y*y))", "x*sqrt(z)/y"),
        ("pow(x, 2.5)*(w/x - 0.2)", "x**1.5*(w - 0.2*x)"),  # weir
        ("abs(x - y)", "y - x"),
        ("x*(x - y)/(z - 1)", "x*(y - x)/(1 - z)"),
        ("-w/(pow(y, -x) - 1)", "w/(1 - y**(-x))"),  # annuity
        ("abs(w)*sqrt(w*w)", "w**2"),
        ("abs(w)", "abs(w)"),  # nothing is known of it
        ("abs(x - 1)", "abs(x - 1)"),
    ],
)
def test_what_is_positive_in_the_range_of_the_inputs_needs_no_absolute_value(found, expected):
    assert infix(written(formula(found), POSITIVE)) == f"f = {expected}\n"


def test_phases_lie_within_half_a_turn_and_large_numbers_leave_exponents():
    builder = Builder()
    x = builder.node(formula("x").nodes[0])
    angle = builder.apply("a + b", x, builder.real(7.25), name="sum")
    result = builder.apply("sin(a)", angle)
    wave = Dag(tuple(builder.nodes), (result,), (("x", REAL),), (("f", REAL),))
    assert float(infix(wave).partition("x + ")[2].rstrip(")\n")) == pytest.approx(7.25 - 2.0 * np.pi, abs=1e-14)
    number = infix(formula("-1.64e31*(0 - exp(x - 71.9))")).removeprefix("f = ").removesuffix("*exp(x)\n")
    assert float(number) == pytest.approx(1.64e31 * np.exp(-71.9), rel=1e-5)  # 71.9 is a float32


def test_an_exponential_that_float64_does_not_hold_by_itself_stays_whole():
    program = dag_of(LANGUAGE, parse_infix(LANGUAGE, "exp2(285.68*log2(x) - 2308.3)", "text", 200, NAMES))
    given_form = formula_of(program, {}, {"f": (0.0, 2.69e117)})
    is_same_where_defined(given_form, textbook(given_form), [np.array([250.0, 299.0]) for _ in INPUTS])


def test_sines_have_the_shortest_phase_by_quarters_of_a_turn():
    builder = Builder()
    angle = builder.apply("a*b", builder.real(3.3), builder.node(formula("x").nodes[0]))
    parts = [
        builder.apply("a*b", builder.real(1.7 * size), builder.apply(name, angle))
        for name, size in (("sin(a)", np.cos(1.0)), ("cos(a)", np.sin(1.0)))
    ]
    shifted = builder.apply("sin(a)", builder.apply("a + b", angle, builder.real(1.0 - np.pi / 2.0)))
    results = builder.apply("a + b", *parts), shifted
    assert (
        infix(Dag(tuple(builder.nodes), results, (("x", REAL),), (("f", REAL), ("g", REAL))))
        == "f = 1.7*sin(3.3*x + 1)\ng = -cos(3.3*x + 1)\n"
    )


ONE = ["sin({0})", "cos({0})", "exp({0})", "log({0})", "sqrt({0})", "1/({0})", "-({0})", "abs({0})", "tanh({0})", "floor({0})"]
ONE += ["({0})*({0})", "({0})*({0})*({0})", "pow({0}, 0.7)", "pow({0}, -1.5)", "exp2({0})", "log2({0})", "round({0})"]
TWO = ["({0} + {1})", "({0} - {1})", "({0}*{1})", "({0}/{1})", "max({0}, {1})", "pow({0}, {1})"]
TEXTS = st.recursive(
    st.sampled_from(["x", "y", "z", "2", "0.5", "3.7", "1"]),
    lambda part: st.one_of(
        st.builds(str.format, st.sampled_from(ONE), part), st.builds(str.format, st.sampled_from(TWO), part, part)
    ),
    max_leaves=8,
)


@given(TEXTS)
def test_where_a_formula_is_defined_its_written_form_has_the_same_value(text):
    rng = np.random.default_rng(1)
    points = [np.concatenate([rng.uniform(0.2, 3.0, 40), rng.uniform(-3.0, 3.0, 40)]) for _ in INPUTS]
    given_form = formula(text)
    is_same_where_defined(given_form, textbook(given_form), points)
    points = [each[:40] for each in points]
    is_same_where_defined(given_form, written(given_form, dict.fromkeys(INPUTS, (0.2, 3.0))), points)


def is_same_where_defined(given_form, form, points):
    values, found = evaluate(given_form, points)[0], evaluate(form, points)[0]
    with np.errstate(all="ignore"):
        moved = np.abs(evaluate(given_form, [each * (1.0 + 1e-13) for each in points])[0] - values)  # how far rounding may reach
        is_far = np.abs(values - found) > 1e-9 * np.maximum(np.abs(values), 1e-6) + 1e4 * moved
    assert not np.any(np.isfinite(values) & np.isfinite(moved) & is_far)
