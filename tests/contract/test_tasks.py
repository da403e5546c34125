"""Laws that every shipped task keeps, those of the templates and the tests' own with them."""

import ast
from pathlib import Path

import numpy as np
import pytest
from regression_sums import regression_of

from evo.evaluate import Status, score_batch
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.loops import LoopRunner
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.task import Programs
from evo.tasks.answers import point_arrays, target_array
from evo.tasks.folder import load_task
from evo.tasks.sums import Regression

TESTS = Path(__file__).parents[1]
SHIPPED = [path.parent for path in sorted(TESTS.parent.glob("tasks/*/task.py"))]
TEMPLATES = [path.parent for path in sorted(TESTS.parent.glob("templates/*/task/task.py"))]
TASKS = [TESTS / "data" / "plane", *SHIPPED, *TEMPLATES]
PROGRAMS = sorted(TESTS.parent.glob("tasks/*/programs/*.txt"))
NUM_ROWS = 22
TYPES = {"f32": np.float32, "u32": np.uint32, "s32": np.int32, "b32": np.uint32}


def name_of(folder: Path) -> str:
    """A task's; a template's with `template` before it."""
    return f"template-{folder.parent.name}" if folder in TEMPLATES else folder.name


@pytest.fixture(scope="module", params=TASKS, ids=name_of)
def task(request):
    # Thousands of points of a function take seconds to compute.
    return load_task(request.param, {"num_points": 500} if request.param.name == "approximation" else {})


def arrays_of(task, points, method: str) -> tuple[list[np.ndarray], int]:
    """Of a task's points, and how many there are: with a rollout, trajectories."""
    if task.rollout is None:
        return point_arrays(task, points, method)
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    return LoopRunner(language, task).columns(points, method)


def outputs_shape(task, num_points: int) -> tuple[int, ...]:
    """Of what `score` gets of a program."""
    if task.rollout is None:
        return (len(task.outputs), num_points)
    cells = task.rollout.grid.shape if task.rollout.grid else ()
    return (len(task.rollout.state), task.rollout.num_records, num_points // int(np.prod(cells)), *cells)


def outputs_of(task, values: np.ndarray):
    """The arguments of `score` for f32 values `(batch_size, *outputs_shape)`."""
    if task.reduction is None:
        types = dict.fromkeys(task.rollout.state, "f32") if task.rollout else task.outputs
        with np.errstate(all="ignore"):
            return {name: values[:, i].astype(TYPES[type_name]) for i, (name, type_name) in enumerate(types.items())}
    return regression_of(values, target_array(task, values.shape[2]))


def rows_of(outputs, rows):
    if isinstance(outputs, dict):
        return {name: array[rows] for name, array in outputs.items()}
    return Regression(**{name: array[rows] for name, array in vars(outputs).items()})


@pytest.fixture(scope="module")
def values(task) -> np.ndarray:
    """Outputs of all kinds: smooth, noisy, huge, tiny, constant, partly and wholly not finite."""
    rng = np.random.default_rng(4)
    shape = (NUM_ROWS, *outputs_shape(task, arrays_of(task, task.points(), "points()")[1]))
    ramp = np.linspace(-1, 1, shape[-1])
    found = np.sin(rng.normal(0, 8, (*shape[:-1], 1)) * ramp + rng.uniform(0, 6, (*shape[:-1], 1)))
    found[5:10] = rng.normal(size=found[5:10].shape)
    found[10:12] *= 1e30
    found[12:14] *= 1e-30
    found[14] = 0.0
    found[15] = 1.5
    found[16] = np.where(rng.random(shape[1:]) < 0.3, np.nan, found[16])
    found[17] = np.nan
    found[18] = np.inf
    found[19] = -np.inf
    found[20] = np.where(rng.random(shape[1:]) < 0.5, np.inf, -np.inf)
    found[21, ..., 0] = np.nan
    return found.astype(np.float32)


NUM_INSTRUCTIONS = np.arange(NUM_ROWS, dtype=np.int32)


def score(task, values, rows=slice(None)):
    with np.errstate(all="ignore"):
        return task.score(rows_of(outputs_of(task, values), rows), Programs(NUM_INSTRUCTIONS[rows]))


@pytest.fixture(scope="module")
def whole(task, values):
    """The scores of all rows together."""
    return score(task, values)


def assert_same(one, two, rows=slice(None)) -> None:
    for name in ("objective", "measures"):
        first, second = np.asarray(getattr(one, name)), np.asarray(getattr(two, name))[rows]
        np.testing.assert_array_equal(first, second, err_msg=name)
        assert first.tobytes() == second.tobytes(), name


def test_points_are_the_same_each_time(task):
    first, num_points = arrays_of(task, task.points(), "points()")
    second, _ = arrays_of(task, task.points(), "points()")
    assert num_points >= 1
    for one, two in zip(first, second, strict=True):
        assert np.isfinite(one).all()
        assert one.tobytes() == two.tobytes()


def test_scores_have_the_documented_shapes_and_nothing_warns(task, values, recwarn):
    evaluation = score_batch(task, outputs_of(task, values), NUM_INSTRUCTIONS)
    assert not recwarn.list
    assert evaluation.objective.shape == (NUM_ROWS,)
    assert evaluation.measures.shape == (NUM_ROWS, len(task.measures))
    assert (evaluation.status == Status.OK).any()


def test_a_score_depends_on_its_own_row_alone(task, values, whole):
    order = np.random.default_rng(2).permutation(NUM_ROWS)
    assert_same(score(task, values, order), whole, order)
    for row in range(NUM_ROWS):
        assert_same(score(task, values, [row]), whole, [row])
    assert_same(score(task, values, slice(3, 20)), whole, slice(3, 20))


def test_a_score_does_not_depend_on_earlier_scores(task, values, whole):
    score(task, values[::-1] * np.float32(3))
    assert_same(score(task, values), whole)


def test_scoring_does_not_change_its_arguments(task, values):
    outputs = outputs_of(task, values)
    before = {name: array.copy() for name, array in (outputs if isinstance(outputs, dict) else vars(outputs)).items()}
    with np.errstate(all="ignore"):
        task.score(outputs, Programs(NUM_INSTRUCTIONS.copy()))
    for name, array in (outputs if isinstance(outputs, dict) else vars(outputs)).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_programs_without_finite_outputs_are_rejected_or_worthless(task, values):
    """Such a program has no score, or the worst of all."""
    if "f32" not in task.outputs.values():
        pytest.skip("the outputs are integers")
    evaluation = score_batch(task, outputs_of(task, values), NUM_INSTRUCTIONS)
    worst = np.nanmin(evaluation.objective)
    assert np.nanmax(evaluation.objective) > worst
    for row in (17, 18, 19, 20):
        assert evaluation.status[row] != Status.OK or evaluation.objective[row] == worst


def test_two_threads_may_score_at_once(task, values, whole):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: score(task, values), range(4)):
            assert_same(found, whole)


def test_pictures_have_the_documented_shape_at_any_size_and_time(task):
    if not task.has_pictures():
        pytest.skip("it draws nothing")
    rng = np.random.default_rng(5)
    for size, t in ((8, 0.0), (33, 0.5), (64, 0.999)):
        _, num_points = arrays_of(task, task.picture_points(size, t), "picture_points()")
        assert task.rollout or num_points >= size * size  # a task may draw finer than it shows
        values = rng.normal(size=(3, *outputs_shape(task, num_points))).astype(np.float32)
        values[2, ..., ::2] = np.nan
        values[1, ..., ::3] = np.inf
        outputs = outputs_of(task, values)
        with np.errstate(all="ignore"):
            pictures = task.picture(outputs, size)
            alone = task.picture({name: array[:1] for name, array in outputs.items()}, size)
        assert pictures.shape == (3, size, size, 3)
        assert pictures.dtype == np.uint8
        np.testing.assert_array_equal(pictures[:1], alone)


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_a_shipped_task_explains_itself(folder):
    assert (folder / "README.md").read_text().startswith("# ")
    tree = ast.parse((folder / "task.py").read_text())
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.parent.name}/{path.stem}")
def test_a_program_written_by_hand_is_worth_something(path):
    task = load_task(path.parent.parent, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    words = parse_program(language, path.read_text(), str(path), 128)[None]
    batch = Batch.analyze(language.lowering, words)
    evaluation = CpuEvaluator(language, task, 1).evaluate(batch)
    assert batch.num_instructions[0] > 0
    assert evaluation.status[0] == Status.OK
    low, high = np.array(list(task.measures.values())).T
    assert ((low <= evaluation.measures[0]) & (evaluation.measures[0] <= high)).all()


def test_the_hand_written_programs_are_found():
    assert PROGRAMS
