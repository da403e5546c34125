"""evo.RegressionTask and the defaults of formulas."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import KDTree

import evo
from evo.config import load_config, make_config
from evo.evaluate import Evaluation, Status
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.regression.defaults import PROGRAM, SEARCH
from evo.report.pareto import row_of_elite
from evo.tasks import answers

REPOSITORY = Path(__file__).parents[3]
RNG = np.random.default_rng(1)
X, Z = RNG.uniform(0.5, 2.0, (2, 50))
TARGET = 3.0 * X * Z + RNG.normal(size=50)


def evaluate(task: evo.RegressionTask, *texts: str) -> Evaluation:
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    words = np.stack([parse_program(language, text, "test", 32) for text in texts])
    return CpuEvaluator(language, task, 1).evaluate(Batch.analyze(language.lowering, words))


def status_of(text: str, **options) -> Status:
    return evaluate(evo.RegressionTask({"x": X}, TARGET, **options), text).status[0]


def test_a_task_of_regression_stays_as_it_is_when_asked_and_is_not_hashed_for_it(monkeypatch):
    methods = ("points", "targets", "weights", "check_points", "check_targets", "point_loss", "point_errors")
    for options in ({}, {"loss": "huber(1)"}, {"weights": X}):
        task = evo.RegressionTask({"x": X, "z": Z}, TARGET, **options)
        before = answers.attributes_digest(task)
        for method in methods:
            answers.ask(task, method)
        assert answers.attributes_digest(task) == before
        assert not answers.changes_when_asked(task)
    monkeypatch.setattr(answers, "attributes_digest", None)
    answers.ask(task, "points")


def test_the_defaults_are_those_of_the_shipped_config():
    shipped = load_config(REPOSITORY / "configs" / "symbolic_regression.yaml")
    own = make_config({"task": "", "program": PROGRAM, "search": SEARCH, "stop": {"seconds": 1}}, "own")
    assert own.program == shipped.program
    assert own.search == shipped.search


def test_a_box_says_where_formulas_must_be_finite():
    text, wide = "%x rcp_approx_ftz_f32", {"x": (0.0, 1000.0)}
    assert status_of(text) == Status.OK and status_of(text, box={"x": (-1.0, 2.0)}) == Status.REJECTED
    assert status_of("%x", box=wide) == Status.REJECTED and status_of("%x", box=wide, max_spread=0.0) == Status.OK


def test_formulas_without_a_value_at_zero_between_rows_share_one_shape():
    """sin(x)/x and x0/x1*x1 are accepted, since limits fill their gaps; none of them takes a place of formulas without gaps."""
    grid = np.arange(-4.9, 5.0, 0.2)
    sinc = evo.RegressionTask({"x": grid}, np.sin(grid) / grid)
    found = evaluate(sinc, "%x %x sin_approx_ftz_f32 div_approx_ftz_f32", "%x cos_approx_ftz_f32")
    assert (found.status == Status.OK).all() and found.objective[0] > 6
    assert found.measures[0, 1] == 0.0 < found.measures[1, 1]
    rows = np.random.default_rng(2).uniform(-1.0, 1.0, (5, 200))
    sums = evo.RegressionTask({f"x{i}": row for i, row in enumerate(rows)}, rows.sum(axis=0))
    gaps = (f"%x{i} %x0 %x{i} mul_ftz_f32 div_approx_ftz_f32" for i in range(1, 5))
    found = evaluate(sums, "%x0", *gaps)
    assert (found.status == Status.OK).all()
    assert found.measures[0, 1] > 0.0 == found.measures[1:, 1].max()


def test_a_target_that_is_the_same_everywhere_is_refused():
    with pytest.raises(evo.UserError, match="target: is the same at all points"):
        evo.RegressionTask({"x": X}, np.full(50, 2.5))


def test_of_many_rows_with_many_inputs_a_part_is_searched_for_neighbours(monkeypatch):
    """A tree of 15 inputs has to be searched row by row: ten seconds for 20,000 rows."""
    asked, query = [], KDTree.query
    monkeypatch.setattr(KDTree, "query", lambda tree, points, *rest: asked.append(len(points)) or query(tree, points, *rest))
    columns = np.random.default_rng(0).normal(size=(15, 5000))
    evo.RegressionTask({f"x{i}": column for i, column in enumerate(columns)}, columns[0] * columns[1])
    evo.RegressionTask({f"x{i}": column for i, column in enumerate(columns[:2])}, columns[0] * columns[1])
    assert asked == [4096, 5000]


def test_what_a_search_shows_is_in_the_users_units():
    seconds = np.arange(60.0)
    task = evo.RegressionTask({"t": 1.7e9 + seconds}, np.sin(seconds / 7.0))
    with pytest.warns(UserWarning, match="programs read \\(t - 1.7e9\\)"):
        result = evo.evolve(task, guesses=["sin((t - 1.7e9)/7)"], generations=1, search={"initial": {"num_programs": 64}})
    assert result.archive.objective.max() > 9.0
    shown = [*result.archive.expression, repr(result.program())]
    assert any("t - 1.7e9" in text for text in shown)
    names = {
        "t": 1.7e9 + seconds,
        "sin": np.sin,
        "cos": np.cos,
        "sqrt": np.sqrt,
        "exp": np.exp,
        "log": np.log,
        "exp2": np.exp2,
        "log2": np.log2,
        "tanh": np.tanh,
    }
    exec(result.program().expression, names)
    np.testing.assert_allclose(names["f"], np.sin(seconds / 7.0), rtol=0, atol=1e-5)
    assert not any(re.search(r"\bt\b", text.replace("t - 1.7e9", "")) for text in shown)


def test_a_result_and_the_reports_take_the_shortest_description():
    noise = np.random.default_rng(0).normal(0.0, 0.2, 60)
    x = np.linspace(-2.0, 2.0, 60)
    result = evo.evolve(evo.RegressionTask({"x": x}, x**2 + noise), guesses=["x*x"], generations=40, seed=3)
    assert result.best.num_instructions == 1 and result.best.objective < result.archive.objective.max()
    assert result.program().expression == result.best.expression.replace("; ", "\n") + "\n"
    assert row_of_elite(result, None) == row_of_elite(result, "shortest") == result.best.name
    assert row_of_elite(result, "best") == result.archive.objective.argmax()


def claimed_digits(columns, target, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Digits by the task, and by extended precision from their float32 outputs."""
    task = evo.RegressionTask(columns, target, max_spread=0.0)
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    words = np.stack([parse_program(language, text, "test", 32) for text in texts])
    evaluator = CpuEvaluator(language, task, 1)
    try:
        claimed = evaluator.evaluate(Batch.analyze(language.lowering, words)).objective
        [outputs] = evaluator.outputs(words, task.points()).values()
    finally:
        evaluator.close()
    y, t = outputs.astype(np.longdouble), task.targets()["f"].astype(np.longdouble)
    y, t = y - y.mean(axis=1, keepdims=True), t - t.mean()
    with np.errstate(invalid="ignore"):  # of an output that does not vary
        slope = (y * t).sum(axis=1) / (y * y).sum(axis=1)
    residual = t - slope[:, None] * y
    return claimed, -np.log10(np.clip((residual**2).sum(axis=1) / (t * t).sum(), 1e-12, 1.0)).astype(np.float64)


@pytest.mark.parametrize("num_points", [20, 1000, 5000])
@pytest.mark.parametrize("mean", [0.0, 30.0, 1e3, 1e5, 1e6])
def test_claimed_digits_are_those_of_the_outputs_however_large_their_mean(num_points, mean):
    rng = np.random.default_rng([num_points, int(mean)])
    moved = f"%x {mean + 0.7} add_ftz_f32"
    texts = [
        moved,
        f"3.0 {moved} mul_ftz_f32",
        f"%z {moved} add_ftz_f32",
        f"0.7 %z -{mean} fma_rn_ftz_f32",
        f"{moved} {moved} mul_ftz_f32",
    ]
    for noise in (0.0, 1e-4, 0.1):
        x = rng.normal(size=num_points)
        x[0] += 5.0  # the first point is the reference of sums
        target = -4e7 + 1e3 * (x + noise * rng.normal(size=num_points))
        claimed, true = claimed_digits({"x": x, "z": rng.normal(size=num_points)}, target, texts)
        np.testing.assert_allclose(claimed, true, rtol=0, atol=0.1)
        assert true[0] > 2.0 or noise == 0.1


def test_digits_that_float32_does_not_resolve_are_not_claimed():
    x = np.arange(8.0)
    claimed, true = claimed_digits({"x": x}, x, ["%x", "%x 1048576.0 add_ftz_f32", "2.0"])
    assert true.tolist()[:2] == [12.0, 12.0]  # the sum is exact, by luck
    assert claimed[0] == 12.0 and claimed[1] < 5.0  # its mean is 4.6e5 deviations
    assert np.isnan(claimed[2])


@pytest.mark.parametrize("seed", range(8))
def test_simple_offsets_and_scales_lose_little_where_outputs_are_far_from_0(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(-147.0, 23.0, 300)
    target = rng.uniform(30.0, 50.0) + rng.uniform(0.1, 0.3) * values + rng.normal(0.0, 1.0, 300)
    [(offset, scale)] = evo.RegressionTask({"x": values}, target).scaling({"f": values[None]}).values()
    least = np.polyfit(values, target, 1, full=True)[1][0]
    lost = 150.0 * np.log2(((target - offset[0] - scale[0] * values) ** 2).sum() / least)
    assert lost < 12.0  # bits, of two numbers
