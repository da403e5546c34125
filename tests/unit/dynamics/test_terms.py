"""evo.dynamics.terms: formulas become sums of terms that compute the same, whose numbers can be read, changed and written."""

import numpy as np
import pytest
from law_texts import law_of

from evo.dynamics.terms import (
    NoLaw,
    evaluate,
    numbers_of,
    saturating,
    with_numbers,
    with_simple_powers,
    written,
)

COLUMNS = np.array([[0.3, 1.2, 2.5], [1.1, 0.4, 3.0]])
FORMULAS = [
    "2*x0 - 0.5*(x1*x0 - 3*x1)",
    "(x0 - 2*x1)**3",
    "1 - x0/(2 + 0.5*x1)",
    "3*sin(2*x0 + 1)*x1 - cos(x1)**2",
    "sqrt(4*x0*x1)/x1",
    "t0 = x0 + x1; t1 = t0*2; t1*t0 - exp(-t0)",
    "-(x0 - 5*x1)**-2",
    "2*tanh(3*x0)*x1/(5 + x1)/x0",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_law_computes_what_its_formula_does(formula):
    law = law_of(formula, ["x0", "x1"])
    names = {"x0": COLUMNS[0], "x1": COLUMNS[1]} | {name: getattr(np, name) for name in ("sin", "cos", "sqrt", "exp", "tanh")}
    *lines, last = formula.split("; ")
    for line in lines:
        exec(line, {}, names)
    np.testing.assert_allclose(evaluate(law, COLUMNS), eval(last, {}, names), rtol=1e-12)
    np.testing.assert_allclose(evaluate(law_of(written(law, ["x0", "x1"], repr), ["x0", "x1"]), COLUMNS), evaluate(law, COLUMNS))


def test_products_are_multiplied_out_and_like_terms_join():
    law = law_of("(x0 - 2*x1)*(x0 + 2*x1) - x0*x0", ["x0", "x1"])
    assert law == ((-4.0, ((1, 2.0),)),)


def test_numbers_are_those_that_data_decide_and_can_be_changed():
    law = law_of("3*sin(2*x0) + x0/(4 + 2*x1)", ["x0", "x1"])
    assert sorted(numbers_of(law)) == [0.25, 0.5, 2.0, 3.0]  # 4 + 2 x1 is 4 (1 + 0.5 x1)
    changed = with_numbers(law, [2.0 * number for number in numbers_of(law)])
    np.testing.assert_allclose(
        evaluate(changed, COLUMNS), 6.0 * np.sin(4.0 * COLUMNS[0]) + 0.5 * COLUMNS[0] / (1.0 + COLUMNS[1]), rtol=1e-12
    )


def test_a_law_is_written_as_people_write_it():
    law = law_of("x0*x1 - 1*x1 + 28*x0 - x0*x0/(1 + 3*x1)", ["x0", "x1"])
    assert written(law, ["a", "b"], lambda number: f"{number:g}") == "28*a - b + a*b - a**2/(1 + 3*b)"
    assert written((), ["a"], str) == "0"
    assert written(((2.0, ((0, 1.23456789), (1, -2.0))),), ["a", "b"], str) == "2.0*a**1.23456789/b**2"
    law = law_of("pow(x0, 1.98)*sin(pow(x1, 0.51))", ["x0", "x1"])
    assert written(with_simple_powers(law), ["a", "b"], str) == "1.0*sin(1.0*b**0.5)*a**2"


@pytest.mark.parametrize("formula", ["max(x0, x1)", "(x0 + x1 + 1)**3*(x0 - x1 + 2)**3", "sqrt(-2*x0)", "sqrt(x0*x0)"])
def test_a_formula_that_is_no_sum_of_terms_is_refused(formula):
    with pytest.raises(NoLaw):
        law_of(formula, ["x0", "x1"])


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("3*x1 - 0.9*x0*x1 + 1.8*x0*x1**2/(1 + 2*x1)", "3*x1 - 0.9*x0*x1/(1 + 2*x1)"),
        ("2*x0 - 2*x0**3/(1 + x0**2)", "2*x0/(1 + x0**2)"),
        ("2*x0 - 2*x0*x1/(1 + x0)", None),
        ("2*x0 - 2*x0**2/(1 + x0 + x1)", None),
    ],
)
def test_two_terms_that_saturate_together_may_be_one(formula, expected):
    laws = [*saturating(law_of(formula, ["x0", "x1"]))]
    assert len(laws) == (expected is not None)
    for law in laws:
        np.testing.assert_allclose(evaluate(law, COLUMNS), evaluate(law_of(expected, ["x0", "x1"]), COLUMNS), rtol=1e-12)
