"""Functions that users define: what their words compute, and where formulas have their names."""

import numpy as np
import pytest

import evo
from evo.language.dag import Dag, dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.formula_text import INFIX
from evo.language.functions import DEFINED, functions
from evo.language.printer import lines_of
from evo.language.program import Language, parse_program
from evo.language.real_programs import language
from evo.language.textbook import textbook
from evo.native.ptx_vm import VirtualMachine
from evo.regression.own_functions import named, own_function, programs_of

A, B = np.linspace(0.2, 2.0, 7, dtype=np.float32), np.linspace(1.0, 3.0, 7, dtype=np.float32)


def regressor(functions: dict) -> evo.SymbolicRegressor:
    return evo.SymbolicRegressor(max_time=None, max_evaluations=10_000, random_state=1, functions=functions)


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ("sq(x)", "x*x", A * A),
        ("inv(x)", "1/x", 1.0 / A),
        ("sigm(x)", "1/(1 + exp(-x))", 1.0 / (1.0 + np.exp(-A))),
        ("g(t)", "sin(t)*cos(t) - 2*t", np.sin(A) * np.cos(A) - 2.0 * A),
        ("h(x)", "x - sin(x)", A - np.sin(A)),
        ("q(x)", "3 - x*x*x", 3.0 - A**3),
        ("leaky(x)", "x if x > 1 else 0.1*x", np.where(A > 1, A, 0.1 * A)),
        ("d(x, y)", "sqrt(x**2 + y**2)", np.hypot(A, B)),
        ("k(x, y)", "y - x*y", B - A * B),
    ],
)
def test_words_of_a_definition_compute_it_of_the_topmost_values(head, body, expected):
    function = own_function(head, body)
    spoken: Language = language(("a", "b"), ("y",))
    program = parse_program(spoken, f"%b %a {function.phrase}", "test")
    found = VirtualMachine(spoken.lowering).store(program[None], [A, B, None])[0, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_law_is_found_and_written_with_them_and_sympy_has_what_they_stand_for():
    import sympy

    x = np.random.default_rng(0).uniform(-2.0, 2.0, (200, 2))
    y = 1.0 + 3.0 / (1.0 + np.exp(-x[:, 0])) * x[:, 1] ** 2
    model = regressor({"add": 1, "mul": 1, "sq(x)": "x*x", "sigm(x)": "1/(1+exp(-x))"}).fit(x, y)
    assert model.get_best().equation == "1 + 3*sigm(x0)*sq(x1)"
    first, second = sympy.symbols("x0 x1", real=True)
    assert sympy.simplify(model.sympy() - (1 + 3 * second**2 / (1 + sympy.exp(-first)))) == 0
    np.testing.assert_allclose(model.predict(x), y, rtol=1e-9)


def test_steps_are_found_and_a_guess_with_a_function_that_is_not_drawn_is_refused():
    x = np.random.default_rng(1).uniform(-5.0, 20.0, (80, 2))
    limits = {"max_time": None, "max_evaluations": 20_000, "random_state": 1}
    model = evo.SymbolicRegressor(functions=["add", "sub", "mul", "div", "mod", "round"], guesses=["mod(x1, 4)"], **limits)
    new = np.array([[2.5, 7.0], [3.5, -1.0], [-0.5, 8.0]])
    model.fit(x, 3.0 * np.rint(x[:, 0]) + x[:, 1])
    np.testing.assert_allclose(model.predict(new), [13.0, 11.0, 8.0], atol=1e-9)  # ties to even
    model.fit(x, np.mod(x[:, 1], 4.0))
    np.testing.assert_allclose(model.predict(new), [3.0, 3.0, 0.0], atol=1e-9)  # the sign of the divisor
    with pytest.raises(ValueError, match=r"^guesses\[0\]: 'floor\(x0\)': `functions` has no floor$"):
        evo.SymbolicRegressor(guesses=["floor(x0)"], **limits).fit(x, x[:, 0])


@pytest.mark.parametrize(
    ("head", "body", "message"),
    [
        ("sq", "x", r"functions: 'sq': a definition begins like 'name\(x\)'"),
        ("sq(x)", "y*y", r"functions: 'sq\(x\)':1: unknown name 'y', one of: x"),
        ("sin(x)", "x*x", r"functions: 'sin\(x\)': there is a function sin already; choose another name"),
        ("f(x, y)", "x*x", r"functions: 'f\(x, y\)': 'x\*x' does not use y"),
        ("f(x)", "x", r"functions: 'f\(x\)': 'x' is its argument"),
        ("f(x)", "sin(x)*sin(2*x)*sin(3*x)*sin(4*x)*sin(5*x)", r"is 25 words, 16 are the most"),
    ],
)
def test_a_wrong_definition_is_refused_in_one_line(head, body, message):
    with pytest.raises(ValueError, match=message):
        regressor({head: body}).fit(np.ones((20, 1)), np.ones(20))


OWN = {each.name: each for each in (own_function(f"{name}({', '.join(a)})", body) for name, (a, body) in DEFINED.items())}
SPOKEN = language(("x", "y", "z"), ("f",))
NAMES = [each.name for each in SPOKEN.instruction_set.instructions]


def known(text: str) -> Dag:
    [program] = programs_of([text], SPOKEN, OWN, NAMES, 64, {})
    return formula_of(dag_of(SPOKEN, parse_program(SPOKEN, program, "text", 64)), {}, {})


@pytest.mark.parametrize(
    "text",
    [
        *(f"2*{name}({', '.join('xyz'[: len(arguments)])}) - 1" for name, (arguments, _) in DEFINED.items()),
        *(f"2*{name}({', '.join('xyz'[: form.count(',') + 1])}) - 1" for name, form in functions().items() if name != "select"),
        "x if y < z else 2*z",
    ],
)
def test_a_printed_formula_is_read_as_the_same_one(text):
    formula = known(text)
    lines = lines_of(textbook(named(formula, OWN)), INFIX)
    printed = "; ".join([*(f"{name} = {part}" for name, _, part in lines.locals), *lines.outputs])
    points = list(np.random.default_rng(2).uniform(-2.0, 2.0, (3, 50)))
    np.testing.assert_allclose(evaluate(known(printed), points)[0], evaluate(formula, points)[0], rtol=1e-6, atol=1e-6)
