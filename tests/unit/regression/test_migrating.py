"""The tables of docs/guide/regression-migrating.md: each answer is one that works, and PySR's users nearly always have one."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evo

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "regression-migrating.md"
X = np.random.default_rng(1).uniform(0.5, 2.0, (60, 2))
IN_WORDS = {
    "`sample_weight` of `fit`": lambda: evo.SymbolicRegressor(max_time=0.02, max_evaluations=200).fit(X, X[:, 0], X[:, 1]),
    "`y` with several columns": lambda: evo.SymbolicRegressor(max_time=0.02, max_evaluations=200).fit(X, X),
    "columns of a frame": lambda: evo.SymbolicRegressor(max_time=0.02, max_evaluations=200).fit(
        pd.DataFrame({"a": X[:, 0]}), X[:, 1]
    ),
    '`template="c[x1]*f(x0)"`': lambda: evo.SymbolicRegressor(max_time=0.02, max_evaluations=200, template="c[x1]*f(x0)").fit(
        X.round(), X[:, 0]
    ),
    "by the same names": lambda: evo.SymbolicRegressor(max_time=0.02, max_evaluations=200).fit(X, X[:, 0]).get_best().equation,
    "`evo.SymbolicClassifier`": lambda: evo.SymbolicClassifier,
}


def rows(heading: str) -> list[list[str]]:
    section = PAGE.read_text().partition(f"## From {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


NOT_NEEDED = "not needed"  # evo always does it; the note says how
ROWS = [row for name in ("PySR", "gplearn", "Operon") for row in rows(name)]
ANSWERS = sorted({row[1] for row in ROWS} - {"-", NOT_NEEDED})


@pytest.mark.parametrize("answer", ANSWERS)
def test_each_answer_fits_a_formula(answer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if answer in IN_WORDS:
        IN_WORDS[answer]()
        return
    given = eval(f"dict({answer.strip('`')})", {})
    model = evo.SymbolicRegressor(**{**given, "max_time": 0.02, "max_evaluations": 200}).fit(X, X[:, 0] * X[:, 1] + 1.0)
    assert np.isfinite(model.predict(X)).all()


def test_a_row_without_code_has_a_note():
    assert all(note for _, answer, note in ROWS if answer in ("-", NOT_NEEDED))


def test_nine_tenths_of_pysrs_parameters_have_an_answer():
    answers = [row[1] for row in rows("PySR")]
    assert len(answers) >= 35 and sum(each != "-" for each in answers) >= 0.85 * len(answers)
