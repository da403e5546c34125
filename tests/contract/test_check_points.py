"""Check points and inputs that depend on options: every evaluator gives the same, and what NumPy gives."""

import numpy as np
import pytest

from evo.evaluate import TaskSource
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.tasks.folder import load_task

OPTIONS = {"num_inputs": 3}
# At the points x0 is 1, 2, 4, 0 and x2 is 1, 2, 4, 2; at the check points x0 is -2 ... 2 and x2 is 0 ... 4.
PROGRAMS = {
    "%x0": lambda x0, x2: x0,
    "%x2": lambda x0, x2: x2,
    "%x2 %x0 add_ftz_f32": lambda x0, x2: x0 + x2,
    "%x2 rcp_approx_ftz_f32": lambda x0, x2: 1.0 / x2,
    "%x0 rcp_approx_ftz_f32": lambda x0, x2: 1.0 / x0,
}


@pytest.fixture
def problem(repository):
    folder = repository / "tests" / "data" / "checked"
    task = load_task(folder, OPTIONS)
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    words = np.stack([parse_program(language, text, "test", 8) for text in PROGRAMS])
    return folder, task, language, Batch.analyze(language.lowering, words)


WEIGHTS = np.array([0.9, 1.1, 0.5, 2.0])


def expected(function, weights=1.0) -> tuple[float, float, float]:
    """Objective and measures of a program, from the task's definition."""
    with np.errstate(divide="ignore"):
        y = function(np.array([1.0, 2.0, 4.0, 0.0]), np.array([1.0, 2.0, 4.0, 2.0]))
        checked = function(np.linspace(-2.0, 2.0, 5), np.linspace(0.0, 4.0, 5))
    finite, checked_finite = np.isfinite(y), np.isfinite(checked)
    objective = -((weights * (y - [1.0, 2.0, 4.0, 1.0]) ** 2)[finite]).sum() - 100.0 * (~finite).sum()
    if not finite.all():
        return objective, 0.0, 0.0
    objective -= 0.001 * ((checked - [0.0, 1.0, 0.0, 1.0, 0.0])[checked_finite] ** 2).sum()
    return objective, checked[checked_finite].sum(), (~checked_finite).sum()


def assert_expected(evaluation, weights=1.0) -> None:
    found = np.column_stack([evaluation.objective, evaluation.measures])
    np.testing.assert_allclose(found, [expected(function, weights) for function in PROGRAMS.values()], rtol=1e-6)
    assert (evaluation.measures[:, 1] > 0).sum() == 1  # one program has its pole at a check point
    assert (evaluation.objective < -100).sum() == 1  # one at a point


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_sums_at_check_points_are_those_of_numpy(problem, executor):
    folder, task, language, batch = problem
    evaluator = CpuEvaluator(language, task, 2, executor=executor, source=TaskSource(folder, OPTIONS))
    try:
        assert_expected(evaluator.evaluate(batch))
    finally:
        evaluator.close()


def test_points_have_weights_and_check_points_have_not(problem):
    _, task, language, batch = problem
    task.weights = lambda: WEIGHTS
    evaluator = CpuEvaluator(language, task, 1)
    try:
        assert_expected(evaluator.evaluate(batch), WEIGHTS)
    finally:
        evaluator.close()


@pytest.mark.parametrize(("lane", "weights"), [("interpret", None), ("interpret", WEIGHTS), ("compile", WEIGHTS)])
def test_sums_at_check_points_on_a_gpu_are_those_of_numpy(problem, emulated_gpu, lane, weights):
    pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    from evo.evaluate.cuda.evaluator import CudaEvaluator
    from evo.evaluate.options import EvaluationOptions

    _, task, language, batch = problem
    task.weights = lambda: weights
    evaluator = CudaEvaluator(language, task, EvaluationOptions(lane=lane))
    try:
        evaluation = evaluator.evaluate(batch)
        assert evaluation.stats.lanes[lane] == len(batch)
        assert_expected(evaluation, 1.0 if weights is None else weights)
    finally:
        evaluator.close()
