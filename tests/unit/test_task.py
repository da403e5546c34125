"""evo.task: every fault of a task's folder is one line with file and place; statistics agree with scipy."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from regression_sums import regression_of

from evo.errors import UserError
from evo.evaluate import score_batch
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.task import Task
from evo.tasks.answers import point_arrays, target_array, weight_array
from evo.tasks.folder import declared_files, load_task, task_digest

GOOD = """\
import numpy as np
import evo

class Line(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"size": (0.0, 1.0)}

    def __init__(self, slope: float = 1.0):
        self.slope = slope
"""


def refusal(folder, options=None) -> str:
    with pytest.raises(UserError) as caught:
        load_task(folder, options or {})
    return str(caught.value)


def test_a_task_may_import_modules_of_its_folder_that_other_tasks_do_not_see(make_task):
    first, second = (make_task("from .shared import SLOPE\n" + GOOD.replace("1.0):", "SLOPE):"), name) for name in ("one", "two"))
    (first / "shared.py").write_text("SLOPE = 3.0\n")
    (second / "shared.py").write_text("SLOPE = 4.0\n")
    assert (load_task(first, {}).slope, load_task(second, {}).slope) == (3.0, 4.0)


def test_a_missing_folder_is_named(tmp_path):
    message = f"{tmp_path}/none/task.py: no such file; a task is a folder with a task.py, or the name of a shipped one, one of: "
    assert refusal(tmp_path / "none").startswith(message)


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("import evo\n\ny = 2 3\n", 3, "does not import: SyntaxError: "),
        ("import evo\n\nimport no_such_module\n", 3, "does not import: ModuleNotFoundError: No module named 'no_such_module'"),
        ("from .neighbour import x\n", 1, "does not import: ModuleNotFoundError: "),
        ("import evo\ndef f():\n    return 1 / 0\nf()\n", 3, "does not import: ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_does_not_import_is_named_with_its_line(make_task, source, line, message):
    folder = make_task(source)
    assert refusal(folder).startswith(f"{folder}/task.py:{line}: {message}")


def test_an_error_in_a_neighbour_is_placed_there(make_task):
    folder = make_task("from .shared import x\n")
    (folder / "shared.py").write_text("a = 1\nx = a + 'b'\n")
    assert refusal(folder).startswith(f"{folder}/shared.py:2: does not import: TypeError: ")


@pytest.mark.parametrize(
    ("source", "found"),
    [("from evo import Task\n", "none"), ("import evo\nclass B(evo.Task): pass\nclass A(evo.Task): pass\n", "A, B")],
)
def test_a_file_without_exactly_one_task_is_refused_with_what_it_holds(make_task, source, found):
    folder = make_task(source)
    assert refusal(folder) == f"{folder}/task.py: must define exactly one class that derives from evo.Task, found: {found}"


NO_DICT = " must be a dict of name -> type, and not empty"
NO_RANGE = ", must be (low, high) with low < high"
NO_OBJECTIVE_RANGE = ", must be None or (low, high) with low < high"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        *((f"{name} = {{}}", name + NO_DICT) for name in ("inputs", "outputs")),
        *((f"{name} = ['x']", name + NO_DICT) for name in ("inputs", "outputs")),
        *((f"{name} = {{'x': 'f64'}}", f"{name}['x'] is 'f64', must be one of: f32, u32, s32") for name in ("inputs", "outputs")),
        ("outputs = {1: 'f32'}", "outputs[1]"),
        ("inputs = {f'x{i}': 'f32' for i in range(70_000)}", "inputs has 70,000 names, at most 16,384 fit"),
        ("objective_range = [0, 1]", f"objective_range is [0, 1]{NO_OBJECTIVE_RANGE}"),
        ("objective_range = (float('-inf'), 0)", f"objective_range is (-inf, 0){NO_OBJECTIVE_RANGE}"),
        ("objective_range = -1.0", f"objective_range is -1.0{NO_OBJECTIVE_RANGE}"),
        ("measures = {}", "measures must be a dict of name -> (low, high), and not empty"),
        *(
            (f"measures = {{'size': {bounds}}}", f"measures['size'] is {eval(bounds)}{NO_RANGE}")
            for bounds in ("(1.0, 1.0)", "(0.0, float('inf'))", "(float('nan'), 1)", "(0, 1, 2)", "[0, 1]", "('a', 'b')")
        ),
        (
            "measures = {'size': (-1e308, 1e308)}",
            "measures['size'] is (-1e+308, 1e+308), low and high must be at most",
        ),
        ("kernel_sums = 0", "kernel_sums is 0, must be None or a whole number from 1"),
        ("cpu_sums = 3", "cpu_sums is 3, must be None or such as evo.pictures.PictureSums, with as many sums as kernel_sums"),
        ("complexity = 'length'", "complexity is 'length', must be None or a measure: size"),
        ("reduction = 'mean'", "reduction is 'mean', must be None or one of: regression"),
        ("outputs, reduction = {'y': 'u32'}, 'regression'", "reduction needs outputs of type f32"),
    ],
)
def test_what_a_class_declares_wrongly_is_named(make_task, declared, message):
    folder = make_task(f"{GOOD}    {declared}\n")
    assert refusal(folder).startswith(f"{folder}/task.py: Line.{message}")


SCORED_BY = """\
import functools
import numpy as np
import evo


def logged(score):
    @functools.wraps(score)
    def wrapped(*args):
        return score(*args)

    return wrapped


class Rows:
    def __call__(self, outputs, programs, rows=3):
        return rows


class Line(evo.Task):
    inputs, outputs, measures = {"x": "f32"}, {"y": "f32"}, {"size": (0.0, 1.0)}

    def points(self):
        return {"x": np.zeros(3)}

    @logged
    def score(self, outputs, programs):
        return 3
"""


@pytest.mark.parametrize("score", [None, "Rows()", "functools.partial(Rows(), rows=4)"])
def test_a_score_that_is_no_plain_method_is_named_with_the_line_of_what_it_wraps_or_of_its_class(make_task, score):
    folder = make_task(SCORED_BY + (f"\n    score = {score}\n" if score else ""))
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))
    batch = Batch.analyze(language.lowering, np.zeros((1, 2), np.uint64))
    line = SCORED_BY.splitlines().index("class Line(evo.Task):" if score else "    @logged") + 1
    with pytest.raises(UserError, match=rf"^{folder}/task\.py:{line}: score\(\) must return evo\.Scores, got int$"):
        CpuEvaluator(language, load_task(folder, {}), 1).evaluate(batch)


BY_COUNT = GOOD.replace("slope: float = 1.0", "count: int = 2").replace(
    "self.slope = slope", "self.inputs = {f'x{i}': 'f32' for i in range(count)}"
)


def test_what_init_sets_counts_instead_of_the_class_and_for_that_task_alone(make_task):
    folder = make_task(BY_COUNT)
    three, one = (load_task(folder, {"count": count}) for count in (3, 1))
    assert (list(three.inputs), list(one.inputs)) == (["x0", "x1", "x2"], ["x0"])
    assert list(type(three).inputs) == ["x"]
    assert len(point_arrays(three, {f"x{i}": np.zeros(4) for i in range(3)}, "points()")[0]) == 3


def test_what_init_sets_is_checked(make_task):
    folder = make_task(BY_COUNT)
    assert refusal(folder, {"count": 0}) == f"{folder}/task.py: Line.inputs must be a dict of name -> type, and not empty"
    assert refusal(make_task(BY_COUNT + "        self.measures = {'size': (1.0, 0.0)}\n", "other")).endswith(
        "Line.measures['size'] is (1.0, 0.0), must be (low, high) with low < high"
    )


def test_kernel_sums_without_score_sums_are_the_tasks_error(make_task):
    folder = make_task(GOOD + "    kernel_sums = 3\n")
    with pytest.raises(UserError) as error:
        score_batch(load_task(folder, {}), np.zeros((2, 3)), np.zeros(2, np.int32), method="score_sums")
    assert str(error.value) == f"{folder}/task.py: class Line has kernel_sums, so it must define score_sums()"


def test_options_that_the_task_does_not_take_are_refused_with_those_that_it_takes(make_task):
    message = refusal(make_task(GOOD), {"speed": 1})
    assert message.startswith("task_options: ")
    assert "'speed'" in message and message.endswith("one of: slope")
    message = refusal(make_task("import evo\nclass Bare(evo.Task):\n" + "\n".join(GOOD.splitlines()[4:7]), "bare"), {"speed": 1})
    assert message.endswith("one of: none")


def test_an_option_that_the_task_refuses_is_reported_at_its_place(make_task):
    folder = make_task(GOOD + "        if slope < 0:\n            raise ValueError('slope must not be negative')\n")
    message = refusal(folder, {"slope": -1.0})
    assert message == f"{folder}/task.py:12: Line(slope=-1.0) raised ValueError: slope must not be negative"


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_the_digest_changes_with_every_file(make_task):
    folder = make_task(GOOD)
    seen = [task_digest(folder)]
    names = ("kernel.cu", "sub/deep.py", "task.py", "labels.csv", "data/more/points", "config.yaml")
    for name, content in ((name, content) for name in names for content in ("", "1", "2")):
        write(folder / name, content)
        seen.append(task_digest(folder))
    (folder / "sub" / "deep.py").rename(folder / "sub" / "moved.py")
    assert len({*seen, task_digest(folder)}) == len(seen) + 1


def test_a_pipe_among_a_tasks_files_is_refused_and_nobody_waits(make_task):
    folder = make_task(GOOD)
    os.mkfifo(folder / "data.csv")
    with pytest.raises(UserError, match=r"data\.csv: cannot read this file of the task: not a regular file$"):
        task_digest(folder)


def test_the_digest_sees_through_links_even_if_they_lead_upwards(make_task, tmp_path):
    folder = make_task(GOOD)
    write(tmp_path / "far" / "labels.csv", "1")
    (folder / "data").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "loop").symlink_to(folder)
    digest = task_digest(folder)
    write(tmp_path / "far" / "labels.csv", "2")
    assert task_digest(folder) != digest


def test_caches_hidden_files_and_runs_do_not_count_in_the_digest(make_task):
    folder = make_task(GOOD)
    digest = task_digest(folder)
    names = ("__pycache__/task.nbi", "old.pyc", ".git/HEAD", "data/.hidden", "runs/a/1/config.yaml", "runs/a/1/checkpoints/1")
    for name in names:
        write(folder / name, "x")
    assert task_digest(folder) == digest


def test_the_digest_counts_the_files_that_a_task_declares_wherever_they_lie(make_task, tmp_path):
    folder = make_task(GOOD + "\n    def files(self):\n        return ['../data', '../more.csv']\n")
    write(tmp_path / "data" / "labels.csv", "1")
    write(tmp_path / "more.csv", "1")
    others = declared_files(load_task(folder, {}), folder)
    digest = task_digest(folder, others)
    for name in ("data/labels.csv", "more.csv"):
        write(tmp_path / name, "2")
        assert task_digest(folder, others) != digest
        write(tmp_path / name, "1")
    (tmp_path / "moved").mkdir()
    (tmp_path / "data").rename(tmp_path / "moved" / "data")
    assert task_digest(folder, [tmp_path / "moved" / "data", others[1]]) == digest
    with pytest.raises(UserError) as caught:
        declared_files(load_task(folder, {}), folder)
    assert str(caught.value) == f"{folder}/task.py: files(): {folder}/../data: no such file or folder"


class Points(Task):
    inputs = {"t": "f32", "n": "u32", "k": "s32"}
    outputs = {"y": "f32", "z": "f32"}
    measures = {"m": (0.0, 1.0)}
    given = None

    def targets(self):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def test_points_come_in_the_order_and_types_of_the_inputs():
    arrays, num_points = point_arrays(Points(), {"k": [-1, 2], "n": np.array([1, 2]), "t": 0.5}, "points()")
    assert num_points == 2
    assert [a.dtype for a in arrays] == [np.float32, np.uint32, np.int32]
    assert [a.shape for a in arrays] == [(), (2,), (2,)]
    assert arrays[2].tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"t": [0.0], "n": [1]}, "must return a dict of exactly t, n, k; got t, n"),
        ({"t": [0.0, 1.0], "n": [1], "k": 1}, "got t (2,), n (1,), k ()"),
        ({"t": [[0.0]], "n": [1], "k": [1]}, "got t (1, 1), n (1,), k (1,)"),
        ({"t": ["a"], "n": [1], "k": [1]}, "'t' is not an array of f32"),
        ({"t": [[0.0], [1.0, 2.0]], "n": [1], "k": [1]}, "'t' is not an array of f32"),
        ({"t": [], "n": [], "k": []}, "gives no points"),
    ],
)
def test_malformed_points_are_refused(points, message):
    with pytest.raises(UserError) as caught:
        point_arrays(Points(), points, "points()")
    assert str(caught.value).startswith(f"{__file__}: points(): ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({"y": [1.0, 2.0]}, "must return a dict of exactly y, z"),
        ({"y": [1.0, 2.0], "z": [1.0]}, "'z' has shape (1,), the points have (2,)"),
        ({"y": ["a", "b"], "z": [1.0, 2.0]}, "'y' is not an array of f32"),
        (KeyError("gone"), "targets() raised KeyError: 'gone'"),
    ],
)
def test_malformed_targets_are_refused(targets, message):
    task = Points()
    task.given = targets
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        target_array(task, 2)
    assert str(caught.value).startswith(__file__)


@pytest.mark.parametrize("method", ["points", "targets", "check_targets", "report", "picture_points", "picture", "score"])
def test_a_method_that_is_not_defined_is_named_with_the_file(method):
    arguments = {"report": ({},), "picture_points": (8, 0.0), "picture": ({}, 8), "score": (None, None)}.get(method, ())

    class Empty(Task):
        pass

    with pytest.raises(UserError, match=rf"{re.escape(__file__)}: class Empty .*{method}"):
        getattr(Empty(), method)(*arguments)


values = st.floats(-100.0, 100.0).map(lambda value: round(value, 2))


@given(hnp.arrays(np.float64, (2, 12), elements=values, unique=True))
def test_regression_statistics_agree_with_scipy(data):
    y, t = data
    found = regression_of(y[None, None], t)
    line = scipy.stats.linregress(y, t)
    slope, intercept = found.linear_scaling
    tolerance = {"rtol": 1e-6, "atol": 1e-6}
    for name, terms in {"sum_y": y, "sum_t": t, "sum_yy": y * y, "sum_tt": t * t, "sum_yt": y * t}.items():
        np.testing.assert_allclose(getattr(found, name)[0, 0], terms.sum(), **tolerance)
    np.testing.assert_allclose(found.mse[0, 0], np.mean((y - t) ** 2), **tolerance)
    np.testing.assert_allclose(found.r2[0, 0], 1 - np.sum((t - y) ** 2) / np.sum((t - t.mean()) ** 2), **tolerance)
    np.testing.assert_allclose(found.correlation[0, 0], line.rvalue, **tolerance)
    np.testing.assert_allclose(slope[0, 0], line.slope, **tolerance)
    np.testing.assert_allclose(intercept[0, 0], line.intercept, **tolerance)


def test_statistics_that_do_not_exist_are_nan_or_infinite_without_a_warning(recwarn):
    constant = regression_of(np.ones((1, 1, 3)), np.array([1.0, 2.0, 3.0]))
    assert np.isnan(constant.correlation[0, 0])
    nothing = regression_of(np.full((1, 1, 3), np.nan), np.array([1.0, 2.0, 3.0]))
    assert np.isnan(nothing.mse[0, 0])
    flat_target = regression_of(np.array([[[1.0, 2.0]]]), np.array([2.0, 2.0]))
    assert not np.isfinite(flat_target.r2[0, 0])
    assert not recwarn.list


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"weights\(\): has shape \(2,\), the points have \(3,\)"),
        ([1.0, 0.0, 2.0], r"weights\(\): must be numbers above 0"),
        ([1.0, -1.0, 2.0], "above 0"),
        ([1.0, np.nan, 2.0], "above 0"),
        (["a", 1, 2], r"weights\(\): is not an array of f32"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    class Weighted(Task):
        def weights(self):
            return weights

    with pytest.raises(UserError, match=message):
        weight_array(Weighted(), 3)
    assert weight_array(Task(), 3) is None


def test_targets_come_in_the_order_of_the_outputs():
    task = Points()
    task.given = {"z": [3.0, 4.0], "y": [1.0, 2.0]}
    array = target_array(task, 2)
    assert array.dtype == np.float32 and array.flags.c_contiguous
    assert array.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_points_that_are_not_finite_are_left_out_of_the_statistics():
    y, t = np.array([1.0, np.nan, 2.0, np.inf, 4.0]), np.array([1.5, 7.0, 1.0, 7.0, 5.0])
    found, whole = regression_of(y[None, None], t), regression_of(y[[0, 2, 4]][None, None], t[[0, 2, 4]])
    assert found.num_nonfinite[0, 0] == 2
    for name in ("mse", "r2", "correlation"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name))
    np.testing.assert_allclose(found.linear_scaling, whole.linear_scaling)
