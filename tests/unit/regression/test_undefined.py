"""Limits of formulas where they have no value."""

import math

import numpy as np
import pytest

from evo.language.dag import dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.real_programs import language, read, words_of
from evo.regression.undefined import filled

NAMES, OUTPUT = ("x", "y"), ("f",)


@pytest.mark.filterwarnings("ignore:equation 0 has no finite value")
@pytest.mark.parametrize(
    ("text", "point", "limit"),
    [
        ("sin(x)/x + y", (0.0, 3.0), 4.0),
        ("sin(x*y)/(x*y)", (0.0, 0.0), 1.0),  # along no axis is there a value
        ("sin(x + y)/(x + y)", (1.0, -1.0), 1.0),
        ("(x*x - y*y)/(x - y)", (1.0, 1.0), 2.0),
        ("x*y/(x*x + y*y)", (0.0, 0.0), math.nan),  # 0 along both axes, 1/2 along the diagonal
        ("log(x) + y", (-1.0, 1.0), math.nan),
        ("1/x + y", (0.0, 0.0), math.nan),
        ("y + 0.00001*log(x*x)", (0.0, 1.0), math.nan),  # tends to -inf, but slowly
    ],
)
def test_a_limit_is_one_from_all_directions(text, point, limit):
    words = words_of(read(text, NAMES, "text"), NAMES, OUTPUT)
    formula = formula_of(dag_of(language(NAMES, OUTPUT), words), {}, {})
    columns = [np.array([each]) for each in point]
    found = filled(formula, 0, columns, evaluate(formula, columns)[0], math.nan)
    np.testing.assert_allclose(found, [limit], atol=1e-12)
