"""evo.language.formula_source: formulas as Excel reads them, and as LibreOffice computes them."""

import numpy as np
import pytest
from run_exports import run_excel

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.dag import Dag, dag_of
from evo.language.formula import evaluate, formula_of, is_real_function
from evo.language.formula_source import excel_source
from evo.language.infix import parse_infix
from evo.language.printer import Unsupported
from evo.language.program import Language, Limits, word
from evo.native.stack_ptx_words import WordType
from evo.report.export.arithmetic import values_of

SET = shipped_instruction_set("wide")
LANGUAGE = Language(SET, (("x1", "f32"), ("e", "f32")), (("y", "f32"),), Limits())


def formula(text: str, inputs=("x1", "e"), outputs=("y",), scaling=None) -> Dag:
    language = Language(SET, tuple((name, "f32") for name in inputs), tuple((name, "f32") for name in outputs), Limits())
    words = parse_infix(language, text, "test", 100, [each.name for each in SET.instructions])
    return formula_of(dag_of(language, words), {}, scaling or {})


TEXTS = [
    ("exp(-x1)*log(x1) - -x1**2", "=EXP(-A2)*LN(A2) - (-(A2*A2))"),
    ("x1/log2(x1) + exp2(x1)", "=A2/LOG(A2, 2) + POWER(2, A2)"),
    ("copysign(2, x1)", "=ABS(2)*IF(A2 < 0, -1, 1)"),
    ("e/copysign(2, x1)", "=B2/(ABS(2)*IF(A2 < 0, -1, 1))"),
    ("max(x1, tanh(x1)) if x1 < 1e-9 else e**0.7", "=IF(A2 < 1e-09, MAX(A2, TANH(A2)), POWER(B2, 0.7))"),
    ("floor(x1) - round(e)", "=INT(A2) - (INT(B2 + 0.5) - INT(0.25 - 0.5*B2) - INT(0.5*B2 - 0.25) - 1)"),
    ("(x1 + 1)*sin((x1 + 1)/x1)", "=(A2 + 1)*SIN((A2 + 1)/A2)"),
]


@pytest.mark.parametrize(("text", "excel"), TEXTS)
def test_excel_gets_cells_and_its_own_functions(text, excel):
    *_, where, line = excel_source(formula(text), "told").splitlines()
    assert where == "For row 2: A2 = x1, B2 = e. Paste into C2, and fill down."
    assert line == excel


def test_excel_gets_all_outputs_in_one_line_of_columns():
    text = "y = (e + 1)*sin(e + 1)\nz = 2*e"
    *_, where, line = excel_source(formula(text, ["e"], ["y", "z"]), "told").splitlines()
    assert where == "For row 2: A2 = e. Paste into B2, and fill down."
    assert line.split("\t") == ["=(A2 + 1)*SIN((A2 + 1))", "=2*A2"]


def test_what_a_spreadsheet_cannot_hold_is_refused():
    with pytest.raises(Unsupported, match="the constant inf"):
        excel_source(formula("x1", scaling={"y": (float("inf"), 1.0)}), "")
    doubled = "t0 = x1 + e\n" + "".join(f"t{i + 1} = t{i}*t{i}\n" for i in range(40))
    for text in (f"{doubled}y = t40", "sin(" * 65 + "x1" + ")" * 65):
        with pytest.raises(UserError, match="Excel takes 8192 characters and 64 levels of parentheses, and the formula has more"):
            excel_source(formula(text), "")


@pytest.mark.slow
def test_libreoffice_computes_random_formulas_of_all_functions(tmp_path):
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=40), rng.uniform(0.1, 3.0, size=40)]
    usable = [i for i, each in enumerate(SET.instructions) if is_real_function(SET, each)]
    formulas = [formula(text) for text in (*dict(TEXTS), "log10(e)*abs(x1) + min(x1, e)", "sin(" * 50 + "x1" + ")" * 50)]
    while len(formulas) < 200:
        words = [word(WordType.INPUT, payload=int(rng.integers(2))) for _ in range(6)]
        words += [word(WordType.PTX, payload=int(rng.choice(usable))) for _ in range(12)]
        words += [word(WordType.CONSTANT, SET.stack_index("f32"), int(np.float32(rng.normal()).view(np.uint32)))]
        words = [*rng.permutation(np.array(words, np.uint64)), word(WordType.RETURN)]
        program = dag_of(LANGUAGE, np.array(words, np.uint64))
        if all(np.isfinite(np.uint32(value.payload).view(np.float32)) for value in program.nodes):
            formulas.append(formula_of(program, {}, {}))
    computed = run_excel([excel_source(each, "") for each in formulas], inputs, tmp_path)
    used, num_compared = set(), 0
    for each, found in zip(formulas, computed, strict=True):
        parts = []
        evaluate(each, inputs, lambda _, part, __, parts=parts: parts.append(np.broadcast_to(part, 40)) or part)
        [expected], [allowed] = values_of(each, inputs, is_f32=False)
        is_usual = np.all([np.isfinite(part) & (np.abs(part) < 1e9) for part in parts], axis=0)  # PTX knows more numbers
        is_near = np.isnan(allowed) | (np.abs(found - expected) <= np.maximum(2.0**-23 * np.abs(expected), 30.0 * allowed))
        assert is_near[is_usual].all(), excel_source(each, "")
        used |= {value.semantics.infix for value in each.nodes}
        num_compared += is_usual.sum()
    assert num_compared > 4000 and len(used) >= 24
