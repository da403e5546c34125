"""evo.evaluate.tidy: terms and digits that data do not ask for go, others stay."""

import math

import numpy as np
import pytest

from evo.errors import UserError
from evo.evaluate.tidy import MAX_INSTRUCTIONS, MAX_OPERATIONS, Tidier
from evo.instructions import shipped_instruction_set
from evo.language.dag import Dag, dag_of
from evo.language.formula_text import infix_line
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind
from evo.regression.defaults import FUNCTIONS
from evo.regression.task import RegressionTask
from evo.report.export.sympy_text import sympy_outputs
from evo.task import Task

NAMES = [name for name, _ in FUNCTIONS.values()]
LANGUAGE = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("f", "f32"),))
X, Y = np.random.default_rng(0).uniform(0.5, 2.0, (2, 200)).astype(np.float32).astype(np.float64)
NOISE = 0.01 * np.random.default_rng(1).normal(size=len(X))


def tidied_expression(
    text: str, target: np.ndarray, allowed: list[str] = NAMES, *, x: np.ndarray = X, weights: np.ndarray | None = None
) -> Dag:
    words = parse_infix(LANGUAGE, text, "text", 48, NAMES)
    found = Tidier(LANGUAGE, RegressionTask({"x": x, "y": Y}, target, weights=weights), allowed).tidy(words)
    assert found is not None
    return dag_of(LANGUAGE, found.words)


def tidied(text: str, target: np.ndarray, allowed: list[str] = NAMES, **data: np.ndarray) -> str:
    return infix_line(tidied_expression(text, target, allowed, **data)).removeprefix("f = ")


class Unscaled(Task):
    """A target without offset and scale, of inputs as they are."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"f": "f32"}
    measures = {"size": (0.0, 8.0)}
    reduction = "regression"

    def __init__(self, x, y, target, weights=None):
        self._points, self._target, self._weights = {"x": x, "y": y}, target, weights

    def points(self):
        return self._points

    def targets(self):
        return {"f": self._target}

    def weights(self):
        return self._weights


@pytest.mark.parametrize(
    "text",
    [
        "x - x + x*y + y",
        "(x*y + y)*1 + (x - x)",
        "min(x*y + y, x*y + y)",
        "-(-(x*y + y))",
        "y + (-y) + (x*y + y) + 0",
        "x*y + y/(1 + 1e-22*x)",
        "max(x*y + y, -1e22)",
        "3.7*(x*y + y) + 2.1",
        "2.3*x*y + 2.2999997*y",
        "(x + sin(y))*y - sin(y)*y + y",
        "sin(x)*(x*y + y)/sin(x)",
        "x*y*sin(x)/sin(x) + y",
    ],
)
def test_what_changes_nothing_goes(text):
    assert tidied(text, X * Y + Y) == "x*y + y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1/x - 1)*(x*x*x*x)", "x*x*x*(1 - x)"),
        ("(3/x + y)*x", "3 + x*y"),
        ("x*x*(1/x + y)", "x*(1 + x*y)"),
        ("(x*y)/x*sin(y)", "y*sin(y)"),
        ("(1/x + 1/y)*(x*y)*sin(y)", "(x + y)*sin(y)"),
        ("y/(1 + 1/x)", "x*y/(1 + x)"),
    ],
)
def test_a_divisor_that_algebra_cancels_goes_and_with_it_the_pole(text, expected):
    x = np.random.default_rng(2).uniform(-0.9, 2.0, len(X)).astype(np.float32).astype(np.float64)
    target = eval(expected, {"sin": np.sin}, {"x": x, "y": Y})
    found = tidied(text, target, x=x)
    around_0 = {"x": np.repeat([-0.5, 0.0, 0.5], len(Y)), "y": np.tile(Y, 3)}
    first, second = (eval(each, {"sin": np.sin}, around_0) for each in (found, expected))
    assert abs(np.corrcoef(first, second)[0, 1]) == pytest.approx(1.0, abs=1e-12)
    assert found.count("/") == expected.count("/")


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("cos(-3.0698626/x*(4.093464*y))", "cos(4*pi*y/x)"),  # neither factor is simple
        ("-0.27142*x*(-3 + (2.0000002*y + x))", "3*x - 2*x*y - x*x"),
        ("x*y/(0.3966734*(-2.999999 + x*y))", "x*y/(1 - x*y/3)"),
        ("0.9999998*sin(x + 1.5707964)*y", "cos(x)*y"),
        ("exp2(-0.7213476*x*x)*y", "exp(-x*x/2)*y"),
        ("exp2(x*x - 1.7213475*(x*x))*y", "exp(-x*x/2)*y"),
        ("(3000 - sin(3*x))*(x*y + 1500)", "2*x*y - sin(3*x)"),  # but for a product of 1/3000
        ("(y*y - 80000)*(40000 + 1/x)", "y*y - 2/x"),
    ],
)
def test_constants_become_those_of_the_law(text, law):
    sympy = pytest.importorskip("sympy")
    names = {name: sympy.Symbol(name, real=True) for name in "xy"}
    target = eval(law, {"sin": np.sin, "cos": np.cos, "exp": np.exp, "pi": np.pi}, {"x": X, "y": Y})
    [found] = sympy_outputs(tidied_expression(text, target))
    assert sympy.simplify(found / sympy.sympify(law, locals=names)).is_constant()


def test_a_constant_loses_digits_that_noise_made_up():
    target = Y * np.sin(2.0 * X) + NOISE
    assert tidied("y*sin(1.9994578*x)", target) == "y*sin(2*x)"
    assert tidied("y*sin(1.87*x)", Y * np.sin(1.8712 * X) + NOISE).startswith("y*sin(1.87")
    task = Unscaled(X, Y, 1e4 * target)  # whose errors are far above 1
    found = Tidier(LANGUAGE, task, NAMES).tidy(parse_infix(LANGUAGE, "10000.123*y*sin(1.9994578*x)", "text", 48, NAMES))
    assert infix_line(dag_of(LANGUAGE, found.words)) == "f = 10000*y*sin(2*x)" and not found.is_coarse


def test_constants_in_exponents_and_before_logarithms_are_those_of_exp_and_log():
    assert tidied("exp2(-1.4312*x)*y", Y * np.exp(-X) + NOISE) == "exp(-x)*y"
    assert tidied("y + 0.48*log2(x)", Y + 0.7 * np.log(X) + NOISE) == "y + 0.7*log(x)"
    assert tidied("exp2(0.7312*log2(x))*y", Y * X**0.73 + NOISE) == "x**0.73*y"


def test_a_term_that_the_data_ask_for_stays():
    assert tidied("x*y + 0.1*y*y", X * Y + 0.1 * Y * Y + NOISE) == "y*(x + 0.1*y)"
    weak = X * Y + 0.007 * Y * Y + NOISE  # to which the data give 45 bits
    assert tidied("x*y + 0.0071234568*y*y", weak) == "y*(x + 0.007*y)"


def test_signs_are_those_that_people_write_if_the_instruction_is_at_hand():
    target = X - 2.0 * X * Y
    assert tidied("x + -2*x*y", target) == "x - 2*x*y"
    assert tidied("x*y/(y*y + (-1*x - y))", X * Y / (Y * Y - X - Y)) == "x*y/(y*y - (x + y))"
    without = [name for name in NAMES if name != FUNCTIONS["sub"][0]]
    assert tidied("x + -2*x*y", target, without) == "x + -2*x*y"


def test_where_f32_is_coarse_only_what_changes_nothing_goes():
    target = np.tanh(X) + 0.01 * Y  # tanh is 2^-11 off in f32
    assert tidied("abs(tanh(-min(x, x))) + 0.0101*y + (y - y)", target) == "tanh(x) + 0.0101*y"


def test_a_weighted_fit_is_that_of_least_squares():
    generator = np.random.default_rng(5)
    weights = 10.0 ** generator.uniform(-3, 3, len(X))
    target = np.where(weights < 0.1, 1.5, 0.73912) * X + Y + generator.normal(size=len(X)) / np.sqrt(weights)
    root = np.sqrt(weights / weights.mean())
    [expected], _, _, _ = np.linalg.lstsq((root * X)[:, None], root * (target - Y), rcond=None)
    deviation = 1.0 / math.sqrt(weights @ X**2)
    task = Unscaled(X, Y, target, weights)
    found = Tidier(LANGUAGE, task, NAMES).tidy(parse_infix(LANGUAGE, "y + 1.2*x", "text", 48, NAMES))
    assert found is not None
    [constant] = [node.number for node in dag_of(LANGUAGE, found.words).nodes if node.kind == NodeKind.CONSTANT and node.number]
    unweighted = float(X @ (target - Y) / (X @ X))
    assert abs(constant - expected) < 3.0 * deviation < 0.2 * abs(unweighted - expected)


def test_the_cost_of_a_program_is_bounded():
    def chain(num_instructions: int) -> np.ndarray:
        text = "x"
        for _ in range(num_instructions // 2):
            text = f"sin(y + {text})"
        return parse_infix(LANGUAGE, text, "text", 4000, NAMES)

    tidier = Tidier(LANGUAGE, RegressionTask({"x": X, "y": Y}, X * Y), NAMES)
    assert tidier.tidy(chain(MAX_INSTRUCTIONS)) is not None
    assert 0.4 * MAX_OPERATIONS < tidier.num_operations < 1.5 * MAX_OPERATIONS
    assert tidier.tidy(chain(MAX_INSTRUCTIONS + 2)) is None


_FORMS = "({a} + {b})|({a} - {b})|({a}*{b})|({a}/{b})|sin({a})|exp2({a})|log2({a})|sqrt({a})|min({a}, {b})|(-{a})".split("|")
_FUNCTIONS = {"sin": np.sin, "cos": np.cos, "exp2": np.exp2, "log2": np.log2, "sqrt": np.sqrt, "min": np.fmin, "max": np.fmax}


def random_text(generator: np.random.Generator, depth: int) -> str:
    if not depth or generator.random() < 0.15:
        number = np.float32(generator.normal() * 10.0 ** generator.choice([0.0, 0.0, generator.uniform(-37, 37)]))
        return str(generator.choice(["x", "y", f"({number})"]))
    a, b = (random_text(generator, depth - 1) for _ in "ab")
    return generator.choice(_FORMS).format(a=a, b=b)


def share_of_error(text: str, x: np.ndarray, target: np.ndarray) -> float:
    names = {"x": x, "y": Y, "nan": np.nan, "inf": np.inf, **_FUNCTIONS}
    with np.errstate(all="ignore"):
        for line in text.split("; "):
            name, _, formula = line.rpartition(" = ")
            names[name] = eval(formula, names)
    values = np.broadcast_to(np.asarray(names["f"], np.float64), x.shape)
    if not np.isfinite(values).all():
        return math.inf
    deviation = values - values.mean()
    size = np.abs(deviation).max()
    if not size > 1e-9 * np.abs(values).max():
        return 1.0  # to float32, a constant
    columns = np.column_stack([np.ones(len(x)), deviation / size])
    left = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
    return float(left @ left / (target.var() * len(target)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [(0.0, 1.0), (0.0, 1e-30), (0.0, 1e30), (1e9, 1.0)])
def test_a_random_program_loses_no_more_than_its_bits(unit):
    generator = np.random.default_rng(3)
    x = unit[0] + unit[1] * X
    for _ in range(40):
        text = "f = " + random_text(generator, generator.integers(1, 6))
        target = generator.normal(size=len(X)) if generator.random() < 0.3 else X * Y + 0.01 * np.sin(9.0 * Y)
        task = RegressionTask({"x": x, "y": Y}, target * generator.choice([1.0, 1e30, 1e-30]))
        try:
            words = parse_infix(LANGUAGE, text.removeprefix("f = "), "text", 128, NAMES)
        except UserError:  # such as 1/0
            continue
        found = Tidier(LANGUAGE, task, NAMES).tidy(words)
        if found is None:
            continue
        given, tidy = (dag_of(LANGUAGE, each) for each in (words, found.words))
        before, after = (sum(bool(value.operands) for value in each.nodes) for each in (given, tidy))
        assert after <= before, text
        constants = sum(not value.operands and not value.name for value in given.nodes)
        bits = 2.0 * math.log2(18) * (before - after) + 34.0 * constants + 4.0
        seen = task.points()["x"]
        lost = share_of_error(infix_line(tidy), seen, target) / max(share_of_error(infix_line(given), seen, target), 1e-12)
        assert lost < 2.0 ** (2.0 * bits / len(X)) * 1.01, (text, infix_line(tidy))
