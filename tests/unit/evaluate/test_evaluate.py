"""evo.evaluate: what a task's score may return, and the errors for everything else."""

import re
from pathlib import Path

import numpy as np
import pytest

from evo.errors import UserError
from evo.evaluate import Evaluation, Stats, Status, join, score_batch
from evo.task import Scores, Task


class Given(Task):
    """Returns or raises the given result."""

    measures = {"a": (0.0, 1.0), "b": (0.0, 1.0)}

    def __init__(self, result):
        self.result = result

    def score(self, outputs, programs):
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result(outputs, programs) if callable(self.result) else self.result


def score(result, batch_size: int = 3):
    return score_batch(Given(result), None, np.zeros(batch_size, np.int32))


def test_a_score_that_is_not_finite_rejects_only_its_own_program():
    objective = np.array([1.0, np.nan, np.inf, -np.inf, 1.0, 1.0])
    measures = np.zeros((6, 2))
    measures[4, 1] = np.nan
    evaluation = score(Scores(objective, measures), 6)
    assert evaluation.status.tolist() == [Status.OK] + [Status.REJECTED] * 4 + [Status.OK]
    assert np.isnan(evaluation.objective[1:5]).all() and np.isnan(evaluation.measures[1:5]).all()
    assert evaluation.objective[[0, 5]].tolist() == [1.0, 1.0] and not evaluation.measures[[0, 5]].any()


def test_parts_are_joined_in_order_and_what_they_count_is_added_up():
    arrays = np.zeros(1, np.uint8), np.array([2.0]), np.zeros((1, 2))
    stats = Stats({"run": 1.0}, {"compile": 3}), Stats({"run": 2.0}, {"interpret": 4})
    parts = [Evaluation(*arrays, (), each) for each in stats]
    whole = join(parts, 2)
    assert (whole.stats.times_s, whole.stats.lanes) == ({"run": 3.0}, {"compile": 3, "interpret": 4})
    assert whole.objective.tolist() == [2.0, 2.0] and join([], 2).measures.shape == (0, 2)


def test_an_objective_whose_sums_or_squares_overflow_rejects_its_program():
    evaluation = score(Scores(np.array([1e308, -1e308, 1e150]), np.zeros((3, 2))))
    assert evaluation.status.tolist() == [Status.REJECTED, Status.REJECTED, Status.OK]
    assert np.isfinite(evaluation.objective[2] ** 2)


@pytest.mark.parametrize(("objective", "measures"), [(1j, 1.0), (1.0, 1j)])
def test_complex_scores_are_refused(objective, measures):
    with pytest.raises(UserError, match=r"score\(\) returned complex numbers, must return real ones"):
        score(Scores(np.full(3, objective), np.full((3, 2), measures)))


def test_arithmetic_in_a_score_does_not_warn(recwarn):
    score(lambda outputs, programs: Scores(np.log(np.array([0.0, -1.0, 1.0])), np.ones((3, 2)) / 0))
    assert not recwarn.list


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (Scores(np.zeros(2), np.zeros((3, 2))), "objective of shape (3,) and measures of shape (3, 2), got (2,) and (3, 2)"),
        (Scores(np.zeros(3), np.zeros((3, 3))), "got (3,) and (3, 3)"),
        (Scores(np.zeros((3, 1)), np.zeros((3, 2))), "got (3, 1) and (3, 2)"),
        (Scores(0.5, np.zeros((3, 2))), "got () and (3, 2)"),
        (np.zeros(3), "score() must return evo.Scores, got ndarray"),
        (None, "score() must return evo.Scores, got NoneType"),
        (Scores(["a", "b", "c"], np.zeros((3, 2))), "score() raised ValueError: could not convert string to float"),
        (Scores([1, [2], 3], np.zeros((3, 2))), "score() raised ValueError: "),
        (ZeroDivisionError("division by zero"), "score() raised ZeroDivisionError: division by zero"),
        (MemoryError(), "score() raised MemoryError"),
    ],
)
def test_any_other_result_is_a_user_error_with_its_place(result, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        score(result)
    assert re.match(rf"{re.escape(str(Path(__file__)))}:\d+: ", str(caught.value))


def test_a_user_error_passes_unchanged():
    with pytest.raises(UserError, match=r"^mine$"):
        score(UserError("mine"))


def test_an_interrupt_is_no_user_error():
    with pytest.raises(KeyboardInterrupt):
        score(KeyboardInterrupt())
