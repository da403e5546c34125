"""Functions of a template made tidy: the same values, by fewer instructions, wherever a template calls them."""

import numpy as np
import pytest

import evo
from evo.evaluate.formulas import Formulas
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula_text import INFIX
from evo.language.infix import parse_infix
from evo.language.printer import lines_of
from evo.language.program import Language, Limits, word
from evo.native.stack_ptx_words import META_OPERATIONS, WordType
from evo.run.template_tidying import TemplateTidier

SET = shipped_instruction_set("default")
NAMES = [each.name for each in SET.instructions]
CLEAR = word(WordType.META, SET.stack_index("f32"), META_OPERATIONS.index("clear"))
X = np.random.default_rng(0).uniform(0.5, 3.0, (100, 2))


def tidy_words(template: str, functions: dict[str, str], y: np.ndarray) -> tuple[Language, np.ndarray | None]:
    """The words of the whole tidy program. functions: formulas, by their arguments."""
    task = evo.RegressionTask({"a": X[:, 0], "b": X[:, 1]}, y, template=template)
    words: list[int] = []
    for arguments, formula in functions.items():
        alone = Language(SET, tuple((name, "f32") for name in arguments.split()), (("y", "f32"),), Limits(store_size=0))
        part = parse_infix(alone, formula, "test", 64, NAMES).tolist()
        words += [*([CLEAR] if words else []), *part[: part.index(word(WordType.RETURN))]]
    program = np.array([*words, word(WordType.RETURN), *[0] * (63 - len(words))], np.uint64)
    language = Language(SET, (("a", "f32"), ("b", "f32")), (("y", "f32"),), template=task.template.words(SET, Limits()))
    tidy = TemplateTidier(language, task, NAMES).tidy(program)
    return language, tidy and tidy.words


def tidied(template: str, functions: dict[str, str], y: np.ndarray) -> tuple[str, np.ndarray]:
    """The text of the whole tidy program, and what it gives."""
    language, words = tidy_words(template, functions, y)
    assert words is not None
    graph = dag_of(language, words)
    assert graph is not None
    lines = lines_of(dag_of(language, words), INFIX)
    assert not lines.locals
    return lines.outputs[0], Formulas(language, [*X.T], has_choices=True).formula(graph).outputs()


def test_a_function_whose_arguments_are_infinite_is_left_as_it_is():
    assert tidy_words("f(a, g(b))", {"x y": "x", "z": "1/(z - z)"}, X[:, 0])[1] is None


def test_functions_beside_a_choice_become_shorter():
    y = np.where(X[:, 1] < 1.5, np.sin(X[:, 0]), X[:, 0] ** 2)
    found, values = tidied("f(a) if b < 1.5 else g(a)", {"x": "sin(x + x - x)", "u": "u*u + 2 - 2"}, y)
    np.testing.assert_allclose(values, y, rtol=1e-6)
    assert found == "select(b < 1.5, sin(a), a*a)"


@pytest.mark.parametrize(
    ("template", "functions", "law", "text"),
    [
        ("f(a) - f(b)", {"x": "sin(x)*(x - 3*x)"}, lambda a, b: a * np.sin(a) - b * np.sin(b), "a*sin(a) - b*sin(b)"),
        ("f(g(a) + b)", {"x": "cos(x + x - x)", "y": "y*y + 2 - 2"}, lambda a, b: np.cos(a * a + b), "cos(a*a + b)"),
        ("c()*a + f(b)", {"": "1 + 1", "x": "x*x + x - x"}, lambda a, b: 2 * a + b * b, "2*a + b*b"),
        ("sqrt(f(a) + b)", {"x": "x/2 + x/2"}, lambda a, b: np.sqrt(a + b), "sqrt(a + b)"),
    ],
    ids=["scaled", "nested", "number", "unscaled"],
)
def test_functions_become_shorter_and_take_up_the_scale(template, functions, law, text):
    y = law(*X.T)
    found, values = tidied(template, functions, y)
    np.testing.assert_allclose(values, y, rtol=1e-6)
    assert found == text


def test_a_scale_that_takes_more_instructions_stays_the_templates():
    y = 0.7 * np.sin(X[:, 0]) + 0.7 * np.sin(X[:, 1])
    found, values = tidied("f(a) + f(b)", {"x": "sin(x + x - x)"}, y)
    np.testing.assert_allclose(values, y / 0.7, rtol=1e-6)
    assert found == "sin(a) + sin(b)"
