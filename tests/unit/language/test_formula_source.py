"""Formulas as Julia, JAX and Excel read them. The texts are by the reference of each language."""

import pytest

from evo.instructions import shipped_instruction_set
from evo.language.expression import Expression, Unsupported, expression_of
from evo.language.formula import formula_of
from evo.language.formula_source import excel_source, jax_source, julia_source
from evo.language.infix import parse_infix
from evo.language.program import Language, Limits

SET = shipped_instruction_set("default")
LANGUAGE = Language(SET, (("x1", "f32"), ("end", "f32")), (("y", "f32"),), Limits())


def formula(text: str) -> Expression:
    program = expression_of(LANGUAGE, parse_infix(LANGUAGE, text, "test", 100, [each.name for each in SET.instructions]))
    return formula_of(program, {}, {})


@pytest.mark.parametrize(
    ("text", "excel"),
    [
        ("exp(-x1)*log(x1) - -x1**2", "=EXP(-A2)*LN(A2) - (-(A2*A2))"),
        ("x1/log2(x1) + exp2(x1)", "=A2/LOG(A2, 2) + POWER(2, A2)"),
        ("copysign(2, x1)", "=ABS(2)*IF(A2 < 0, -1, 1)"),
        ("max(x1, tanh(x1)) if x1 < 1e-9 else x1**0.7", "=IF(A2 < 1e-09, MAX(A2, TANH(A2)), POWER(A2, 0.7))"),
        ("(x1 + 1)*sin((x1 + 1)/x1)", "=LET(v_0, A2 + 1, v_0*SIN(v_0/A2))"),
    ],
)
def test_excel_gets_cells_and_its_own_functions(text, excel):
    *_, where, line = excel_source(formula(text), "told").splitlines()
    assert where == "For row 2: A2 = x1, B2 = end. Paste into C2, and fill down."
    assert line == excel


def test_excel_gets_all_outputs_in_one_line_of_columns():
    language = Language(SET, (("x", "f32"),), (("y", "f32"), ("z", "f32")), Limits())
    text = "y = (x + 1)*sin(x + 1)\nz = 2*x"
    words = parse_infix(language, text, "test", 100, [each.name for each in SET.instructions])
    *_, where, line = excel_source(formula_of(expression_of(language, words), {}, {}), "told").splitlines()
    assert where == "For row 2: A2 = x. Paste into B2, and fill down."
    assert line.split("\t") == ["=LET(v_0, A2 + 1, v_0*SIN(v_0))", "=LET(v_0, A2 + 1, 2*A2)"]


def test_julia_gets_definitions_and_no_word_of_its_own_as_a_name():
    text = julia_source(formula("max(x1, 2)*(x1 + 3)/(x1 + 3)**0.5"), "told\ntwice")
    assert text.splitlines()[:2] == ["# told", "# twice"]
    assert "larger(a, b) = isnan(a) ? b : isnan(b) ? a : max(a, b)\n" in text and "smaller" not in text
    assert "function program(x1, end_)\n    t0 = x1 + 3\n" in text and text.endswith("\nend\n")


def test_jax_gets_its_own_functions():
    text = jax_source(formula("sin(x1)*min(x1, 2)"), "told")
    assert "import jax.numpy as jnp\n" in text
    assert text.endswith("    return jnp.sin(x1)*jnp.fmin(x1, 2),\n")


def test_a_constant_that_is_no_number_is_refused():
    with pytest.raises(Unsupported, match="the constant inf"):
        excel_source(
            formula_of(expression_of(LANGUAGE, parse_infix(LANGUAGE, "x1", "test", 9, [])), {}, {"y": (float("inf"), 1.0)}), ""
        )
