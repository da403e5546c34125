"""templates/: what a project's task refuses, and what its run finds beside formulas that people write by hand."""

import shutil

import numpy as np
import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.language.batch import Batch
from evo.report.show import read_program
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.shipped import shipped
from evo.tasks.folder import load_task

ROWS = "".join(f"{i},{i * i}\n" for i in range(20))


@pytest.fixture
def with_table(tmp_path):
    """The task of a regression project whose table has this text."""
    folder = shutil.copytree(shipped("templates")["regression"] / "task", tmp_path / "task")

    def load(text: str):
        (folder / "data.csv").write_text(text, encoding="utf-8")
        return load_task(folder, {})

    return load


def test_a_table_of_ones_own_has_its_last_column_as_the_target(with_table):
    task = with_table("\ufeffspeed (m/s),way [m]\n" + ROWS)
    assert (list(task.inputs), task.column_names) == (["speed_m_s"], {"f": "way_m"})
    assert task.points()["speed_m_s"].tolist() == [i for i in range(20) if i % 4]


def test_rows_to_predict_need_the_inputs_alone_and_keep_their_digits(with_table, tmp_path):
    task = with_table("time,y\n" + ROWS)
    (tmp_path / "new.csv").write_text("time\n1700000123.5\n")
    assert task.read_points(tmp_path / "new.csv", ["time"])["time"].tolist() == [1700000123.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y\n1\n2\n", ":1: needs a column to predict 'y' from"),
        ("a;y\n1,5;2,5\n", ":1: columns must be separated by commas, and decimals written with points"),
        ("a,y\n1,2\nlow,3\n" + ROWS, ": not a table of numbers: could not convert string 'low'"),
        ("a,y\n1,2\n,3\n" + ROWS, ": not a table of numbers: could not convert string ''"),
        ("a,y\n1,2\nnan,3\n" + ROWS, ": not a table of numbers: row 1 has nan or inf"),
        ("a,b,y\n" + ROWS, ": 3 names but 2 columns"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(with_table, tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        with_table(text)
    assert str(caught.value).startswith(f"{tmp_path}/task/data.csv{message}") and "\n" not in str(caught.value)


# Instructions -> what a person writes with at most so many, and its score; for the kernel with SciPy's constants.
SQUARE, THIRD = "r = fma(x, x, y*y)", "t = fma(0.15878106, exp2(-0.12705733*r), 0.020348932)"
BY_HAND = {
    "kernel": {
        5: (f"{SQUARE}; v = fma(exp2(-0.56670249*r), 0.71640479, 0.05051213)", 1.568),
        6: (f"{SQUARE}; t = fma(exp2(-0.39347688*r), 0.67522951, 0.21782842); v = t*t", 1.694),
        8: (f"{SQUARE}; v = fma(0.2887799, exp2(-0.21891071*r), fma(0.63871555, exp2(-1.4796878*r), 0.030189409))", 3.002),
        11: (f"{SQUARE}; {THIRD}; v = fma(0.40836392, exp2(-0.64438091*r), fma(0.40409859, exp2(-2.5026317*r), t))", 4.498),
    },
    "regression": {
        2: ("sqrt(length/gravity)", 2.051),
        9: ("sqrt(length/gravity)*(1 + amplitude**2/16 + 11/3072*amplitude**4)", 5.479),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(("template", "num_evaluations"), [("kernel", 1_200_000), ("regression", 500_000)])
def test_a_projects_run_is_no_worse_than_formulas_by_hand(template, num_evaluations):
    config = shipped("templates")[template] / f"{template}.yaml"
    settings = ("evaluation.backend=cpu", "evaluation.executor=threads", f"stop={{evaluations: {num_evaluations}}}")
    problem = load_problem(load_config(config, settings))
    by_hand = Batch.analyze(
        problem.language.lowering, np.stack([read_program(problem, text) for text, _ in BY_HAND[template].values()])
    )
    objective = problem.evaluator.evaluate(by_hand).objective
    np.testing.assert_allclose(objective, [score for _, score in BY_HAND[template].values()], atol=5e-3)
    assert (by_hand.num_instructions <= list(BY_HAND[template])).all()
    search = Search(problem)

    def lacking() -> list[int]:
        elites = search.archive.elites()
        best = (elites.objective[elites.num_instructions <= size].max(initial=-np.inf) for size in BY_HAND[template])
        return [size for size, one, score in zip(BY_HAND[template], best, objective, strict=True) if one <= score - 1e-3]

    for _ in search.generations():
        if not lacking():
            break
    problem.close()
    assert lacking() == []
