"""Constraints on formulas: what a search hands over keeps to them, and they reject just what is beyond."""

import re

import numpy as np
import pytest

import evo
from evo.evaluate.constraints import Constraints
from evo.language.dag import dag_of
from evo.language.program import parse_program
from evo.language.real_programs import language
from evo.regression.defaults import FUNCTIONS

pytestmark = pytest.mark.usefixtures("searched_only")
X = np.random.default_rng(1).uniform(0.5, 2.0, (150, 2))
Y = np.sin(np.exp(X[:, 0])) * np.sin(3.0 * X[:, 1]) + np.exp(X[:, 1] - np.sin(X[:, 0]))


def regressor(**parameters) -> evo.SymbolicRegressor:
    return evo.SymbolicRegressor(max_time=None, max_evaluations=6000, random_state=1, **parameters)


SPOKEN = language(("a", "b"), ("y",))
SIN, EXP2, ADD = (FUNCTIONS[name][0] for name in ("sin", "exp2", "add"))


@pytest.mark.parametrize(
    ("program", "size", "depth", "sines_in_exp2", "exp2s_in_sin"),
    [
        (f"%a {SIN}", 1, 1, 0, 0),
        (f"%a {SIN} {SIN} {EXP2}", 3, 3, 2, 0),
        (f"%a {EXP2} {SIN} %b {SIN} {ADD}", 4, 3, 0, 1),
        (f"%a {SIN} dup.f32 {EXP2} {ADD} {SIN}", 4, 4, 1, 1),
        ("%a", 0, 0, 0, 0),
    ],
)
def test_programs_are_measured_along_their_longest_paths(program, size, depth, sines_in_exp2, exp2s_in_sin):
    words = parse_program(SPOKEN, program, "test")[None]

    def admits(**limits) -> bool:
        return bool(Constraints(**limits).admitted(SPOKEN, words)[0])

    assert Constraints(costs={SIN: 2.5}).cost_of(SPOKEN, words)[0] == size + 1.5 * program.count(SIN)
    assert admits(max_size=size) and (size == 0 or not admits(max_size=size - 0.5))
    assert depth == 0 or (admits(max_depth=depth) and (depth == 1 or not admits(max_depth=depth - 1)))
    for outer, inner, most in ((EXP2, SIN, sines_in_exp2), (SIN, EXP2, exp2s_in_sin)):
        assert admits(nesting={outer: {inner: most}})
        assert most == 0 or not admits(nesting={outer: {inner: most - 1}})


@pytest.mark.parametrize(
    ("program", "depth"), [(f"%a {SIN}", 0), (f"%a {EXP2} {SIN} {EXP2}", 1), (f"%a %b {ADD} {EXP2} {SIN}", 2)]
)
def test_the_depth_of_arguments_is_bounded(program, depth):
    words = parse_program(SPOKEN, program, "test")[None]
    assert Constraints(nesting={SIN: {"any": depth}}).admitted(SPOKEN, words)[0]
    assert depth == 0 or not Constraints(nesting={SIN: {"any": depth - 1}}).admitted(SPOKEN, words)[0]


def test_no_formula_is_larger_than_allowed():
    sizes = regressor(max_size=5).fit(X, Y).equations_.complexity
    assert 3 <= sizes.max() <= 5 < regressor().fit(X, Y).equations_.complexity.max()


def test_no_function_is_nested_where_that_is_forbidden():
    def num_nested(**parameters) -> int:
        """Equations with a sine in a sine."""
        found = 0
        language, _, words, _ = regressor(functions=["add", "mul", "sin"], **parameters).fit(X, Y).found()
        for formula in (dag_of(language, each) for each in words):
            has_sine: list[bool] = []
            is_nested = False
            for value in formula.nodes:
                below = any(has_sine[operand] for operand in value.operands)
                is_sine = value.semantics.infix == "sin(a)"
                is_nested |= is_sine and below
                has_sine.append(is_sine or below)
            found += is_nested
        return found

    assert num_nested() > 0
    assert num_nested(nesting={"sin": {"sin": 0}}) == 0


def test_costs_are_the_complexity():
    model = regressor(functions=["add", "mul", "sin"], costs={"sin": 4, "mul": 2}).fit(X, Y)
    for row, text in model.equations_.equation.items():
        if "t0" not in text:
            formula = re.sub(r"^[-\d.e]+ [+-] |^-?[\d.e]+\*", "", text)
            assert model.equations_.complexity[row] >= 4 * formula.count("sin")
    assert (np.diff(model.equations_.complexity[1:]) > 0).all() and set(model.equations_.complexity) - set(range(5)) != set()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_size": 0}, "max_size is 0, must be a number above 0"),
        ({"max_depth": "3"}, "max_depth is '3', must be a number above 0"),
        ({"costs": {"sine": 2}}, "costs: 'sine' is not a function of one instruction, one of: "),
        ({"costs": {"sin": 0}}, "costs: sin has 0, must be a number above 0"),
        ({"nesting": {"sin": {"cos": -1}}}, "nesting: cos has -1, must be a number from 0 on"),
    ],
)
def test_a_wrong_constraint_is_refused_in_one_line(parameters, message):
    with pytest.raises(ValueError, match=message):
        regressor(**parameters).fit(X, Y)
