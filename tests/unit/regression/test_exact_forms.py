"""evo.regression.exact_forms: laws are told and predict with the numbers that exact data have, and without dust."""

import numpy as np
import pandas as pd
import pytest

import evo
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.formula_text import infix
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.regression.exact_forms import displayed_form

SET = shipped_instruction_set("default")
LANGUAGE = Language(SET, (("x", "f32"), ("y", "f32")), (("f", "f32"),))
RNG = np.random.default_rng(5)
X, Y = RNG.uniform(1.0, 60.0, 80), RNG.uniform(0.2, 3.0, 80)


def formula(text, offset=0.0, scale=1.0):
    """The formula of a program, whose constants are float32."""
    words = parse_infix(LANGUAGE, text, "text", 100, {instruction.name for instruction in SET.instructions})
    return formula_of(dag_of(LANGUAGE, words), {}, {"f": (offset, scale)})


@pytest.mark.parametrize(
    ("found", "offset", "scale", "law", "expected"),
    [
        # Antoine, Magnus, August
        (
            "exp(-3984.92285/(233.426 + x))",
            3e-7,
            117844671,
            10 ** (8.07131 - 1730.63 / (233.426 + X)),
            "10**(8.07131 - 1730.63/(233.426 + x))",
        ),
        (
            "exp(-4283.7745/(243.12 + x))",
            0.0,
            27444307200,
            611.2 * np.exp(17.62 * X / (243.12 + X)),
            "611.2*exp(17.62*x/(243.12 + x))",
        ),
        ("exp(-51.32/x)", 0.0, 713719082, np.exp(20.386 - 51.32 / X), "exp(20.386 - 51.32/x)"),
        ("y*exp(0.07419373*x)", 0.0, 0.2267574, Y * 2.1 ** ((X - 20) / 10), "y*2.1**(0.1*x)/4.41"),  # Q10
        ("sqrt(273.15 + x)", 0.0, 20.0456819, 331.3 * np.sqrt(1 + X / 273.15), "331.3*sqrt(1 + x/273.15)"),  # speed of sound
        ("exp(-0.02216576*pow(y, 1.7))", 1.0, -1.0, 1 - np.exp(-((Y / 9.4) ** 1.7)), "1 - exp(-(y/9.4)**1.7)"),  # Weibull
        ("1/pow(x, 4.5454547)", 0.0, 243806735700, (320 / X) ** (1 / 0.22), "(320/x)**(50/11)"),  # Taylor's tool life
        ("exp2(5.9794707*y)", 0.0, 1.0, 10 ** (1.8 * Y), "10**(1.8*y)"),
        ("y*exp(-0.12096809*x)", 0.0, 1.0, Y * 0.5 ** (X / 5.73), "y*exp2(-x/5.73)"),  # half-life
        ("exp(-y*0.45454547)", 9.0, -9.0, 9.0 * (1 - np.exp(-Y / 2.2)), "9*(1 - exp(-y/2.2))"),
        ("exp(-y*2.7027028)", 4.9, -4.9, 4.9 * (1 - np.exp(-Y / 0.37)), "4.9*(1 - exp(-y/0.37))"),
        # dust
        ("x/(1 - exp((1e-16 - y)*1.3))", 0.0, 1.0, X / (1 - np.exp(-1.3 * Y)), "x/(1 - exp(-1.3*y))"),
        ("pow(y, 1.7000002)/(x + 1.3e-6)", 2e-8, 0.37, 0.37 * Y**1.7 / X, "0.37*y**1.7/x"),
        # numbers that say the same
        (
            "x*(0.871755 - 0.2179388*x - 0.2179388*y/(1 + x))",
            9e-7,
            4.588442966,
            X * (4 - X - Y / (1 + X)),
            "x*(4 - x - y/(1 + x))",
        ),
        # nothing is negative
        ("abs(x)*sqrt(y*y)", 0.0, 1.0, X * Y, "x*y"),
    ],
)
def test_a_law_of_exact_data_is_told_with_its_own_numbers_and_without_dust(found, offset, scale, law, expected):
    form, has_changed = displayed_form(formula(found, offset, scale), [X, Y], law)
    assert has_changed
    assert infix(form) == f"f = {expected}\n"
    np.testing.assert_allclose(evaluate(form, [X, Y])[0], law, rtol=1e-13)


def test_a_small_offset_that_the_data_have_stays():
    form, _ = displayed_form(formula("x*y", 1.2e-5, 3.0), [X, Y], 1.25e-5 + 3.0 * X * Y)
    assert infix(form) == "f = 1.25e-5 + 3*x*y\n"


def test_of_noisy_data_numbers_stay_as_they_were_found():
    target = 2.7027 * X * np.exp(-1.3 * Y) * (1.0 + 0.01 * RNG.normal(size=80))
    form, has_changed = displayed_form(formula("x*exp(-1.3004*y)", 0.0, 2.7031), [X, Y], target)
    assert infix(form) == "f = 2.7031*x*exp(-1.3004*y)\n" and not has_changed


def test_a_fit_prints_and_predicts_a_positive_column_without_its_absolute_value():
    table = pd.DataFrame({"R": X, "L": Y})
    model = evo.SymbolicRegressor(max_evaluations=1, functions=["add", "mul", "div", "sqrt", "abs", "neg"], random_state=1)
    model.set_params(guesses=["abs(R)*sqrt(1 + L*L/(R*R))"])
    model.fit(table, np.hypot(X, Y))
    assert model.get_best().equation == "sqrt(R**2 + L**2)"
    beyond = pd.DataFrame({"R": [0.0, 3.0], "L": [2.0, 4.0]})  # where the guess is undefined
    np.testing.assert_allclose(model.predict(beyond), [2.0, 5.0], rtol=1e-15)
