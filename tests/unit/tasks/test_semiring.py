"""tasks/semiring: its accuracies are those of a classifier made of the semiring that a program stands for."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from evo.config import load_config
from evo.errors import UserError
from evo.language.batch import Batch
from evo.report.show import read_program
from evo.run.loaded_task import load_problem
from evo.semiring import Semiring
from evo.shipped import shipped
from evo.tasks.folder import load_task

FORMULAS = [
    ("(a - b)*(a - b)", "exp(-2*x)", lambda x: np.exp(-2 * x)),
    ("abs(a - b)", "tanh(-x)", lambda x: np.tanh(-x)),
    ("a*b", "x", lambda x: x),
    ("min(a, b)", "exp(x)", np.exp),
]


def accuracy_of(term, kernel, first_asked, num_asked):
    """By evo.semiring and NumPy alone: means of 4 pixels, sums of mean 0 and deviation 1, the class whose mean is the largest."""
    pixels, labels = load_digits(return_X_y=True)
    rows = sum(pixels.reshape(-1, 8, 8)[:, i::2, j::2] for i in (0, 1) for j in (0, 1)).reshape(-1, 16).astype(np.float32) / 64
    end = first_asked + num_asked
    sums = Semiring(term)(rows[:100], rows[first_asked:end])
    similar = kernel((sums - sums.mean()) / sums.std())
    means = np.array([similar[labels[:100] == digit].mean(axis=0) for digit in range(10)])
    return (means.argmax(axis=0) == labels[first_asked:end]).mean()


def test_scores_are_the_accuracies_of_the_semirings_that_programs_stand_for():
    problem = load_problem(load_config(shipped("configs")["semiring"], ("evaluation.executor=threads",)))
    texts = [f"term = {term}; kernel = {kernel}" for term, kernel, _ in FORMULAS]
    rows = np.stack([read_program(problem, text) for text in texts])
    scores = problem.evaluator.evaluate(Batch.analyze(problem.language.lowering, rows))
    reported = problem.task.report(problem.evaluator.outputs(rows, problem.task.report_points()))
    problem.close()
    # A kernel is interpolated, which decides a row or two.
    np.testing.assert_allclose(scores.objective, [accuracy_of(term, f, 100, 200) for term, _, f in FORMULAS], atol=0.021)
    expected = [accuracy_of(term, f, 300, 269) for term, _, f in FORMULAS]
    np.testing.assert_allclose(reported["test_accuracy"], expected, atol=0.021)
    assert scores.objective.min() > 0.5
    likeness = scores.measures[:, 1]
    assert likeness[0] == pytest.approx(1, abs=1e-6) and likeness[1] > 0.9 and likeness[2] < 0


def test_programs_that_are_not_finite_or_do_not_depend_on_the_rows_are_rejected():
    problem = load_problem(load_config(shipped("configs")["semiring"], ("evaluation.executor=threads",)))
    texts = ["term = a/0; kernel = x", "term = 1 + 0*a; kernel = x", "term = a*b; kernel = log2(x)"]
    rows = np.stack([read_program(problem, text) for text in texts])
    scores = problem.evaluator.evaluate(Batch.analyze(problem.language.lowering, rows))
    problem.close()
    assert np.isnan(scores.objective).all()


def test_data_that_the_task_does_not_have_is_refused():
    folder = shipped("tasks")["semiring"]
    assert load_task(folder, {"data": "breast_cancer"}).points()["a"].size == 100 * 200 * 30 + 257
    with pytest.raises(UserError, match=r"task_options\.data: 'iris', expected one of: digits, breast_cancer"):
        load_task(folder, {"data": "iris"})
