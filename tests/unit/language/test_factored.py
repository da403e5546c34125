"""evo.language.factored: what is written from its factored form is the same to SymPy, and shorter."""

import numpy as np
import pytest

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.factored import rewritten
from evo.language.formula_text import infix_line
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.stack_ptx import NodeKind
from evo.regression.defaults import FUNCTIONS

NAMES = [name for name, _ in FUNCTIONS.values()]
LANGUAGE = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("f", "f32"),))


def shorter_forms(text: str, allowed: list[str] = NAMES) -> list[str]:
    """The forms that `rewritten` gives, as infix texts."""
    graph = dag_of(LANGUAGE, parse_infix(LANGUAGE, text, "text", 256, NAMES))
    assert graph is not None
    values = {
        index: float(np.uint32(node.payload).view(np.float32))
        for index, node in enumerate(graph.nodes)
        if node.kind == NodeKind.CONSTANT
    }
    found = [each.words(LANGUAGE, 256) for each in rewritten(LANGUAGE, graph, values, frozenset(allowed))]
    return [infix_line(dag_of(LANGUAGE, words)) for words in found if words is not None]


def value_of(text: str):
    """The expression that SymPy reads in the lines of an infix text."""
    sympy = pytest.importorskip("sympy")
    names = {name: sympy.Symbol(name) for name in "xy"} | {"exp2": lambda x: 2**x, "log2": lambda x: sympy.log(x, 2)}
    for line in text.split("; "):
        name, _, formula = line.rpartition(" = ")
        names[name or "f"] = sympy.sympify(formula, locals=names, rational=True)
    return names["f"]


def random_text(generator: np.random.Generator, depth: int) -> str:
    if not depth or generator.random() < 0.1:
        return str(generator.choice(["x", "y", "x", "y", "2", "(-1)", "0.5", "sin(x)"]))
    a, b = (random_text(generator, depth - 1) for _ in "ab")
    if generator.random() < 0.15:
        return f"exp2(log2({a}*{a}) - {b}*0.0625)"
    return str(generator.choice([f"({a} + {b})", f"({a} - {b})", f"({a}*{b})", f"({a}/{b})", f"(1/{a})", f"({a}*{a})"]))


def test_each_form_is_the_same_function():
    sympy = pytest.importorskip("sympy")
    generator = np.random.default_rng(4)
    num_forms = 0
    for _ in range(60):
        text = random_text(generator, 4)
        try:
            found = shorter_forms(text)
        except UserError:  # such as 1/0
            continue
        num_forms += len(found)
        place = {"x": sympy.Rational(17, 13), "y": sympy.Rational(-5, 7)}
        expected = value_of(text).subs(place).evalf(30)
        for form in found:  # whose constants are of float32
            value = value_of(form).subs(place).evalf(30)
            assert not expected.is_finite or value == pytest.approx(expected, rel=1e-6), (text, form)
    assert num_forms > 60


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x - 1.75*x", "f = -0.75*x"),
        ("x + exp2(log2(y - x) - 0.5*x)", "f = x + (y - x)*exp2(-0.5*x)"),
        ("exp2(y - 2*log2(x))", "f = exp2(y)/(x*x)"),
        ("exp2(3*log2(x))", "f = x*x*x"),
        ("x*x*y + x*x*2 + x", "f = x*(1 + x*(2 + y))"),
        ("y/(x*x + x)*x", "f = y/(1 + x)"),
        ("y/(1 + 1/x)", "f = x*y/(1 + x)"),
        ("(x + y)*(x + y)/(y + x)", "f = x + y"),
        ("x*x*x*x*x*y*y*y*y*y", "t0 = x*y; t1 = t0*t0; f = t1*t1*x*y"),
        ("x*y - y*x + sin(x)", "f = sin(x)"),
        ("(1/x)*(1/y)", "f = 1/(x*y)"),
        ("-(x - y)", "f = y - x"),
        ("(2*x - 0.5)*(2*x - 0.5)*((2*x - 0.5)*(2*x - 0.5)) - 6*(x*x) + x", "f = 0.0625 - 16*(x*x*x*(1 - x))"),
    ],
)
def test_forms_by_hand(text, expected):
    assert expected in shorter_forms(text)
