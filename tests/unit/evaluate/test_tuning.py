"""evo.evaluate.tuning: results depend on program and task alone, and tasks that cannot be tuned are refused."""

import numpy as np
import pytest

from evo.config import RunConfig, make_config
from evo.errors import UserError
from evo.evaluate.tuning import ConstantTuner, sampled
from evo.instructions import shipped_instruction_set
from evo.language.program import Language
from evo.run.loaded_task import problem_of
from evo.task import Task

SLOPES = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))


class Line(Task):
    """y = 4 x - 3 at 500 points."""

    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"size": (0.0, 8.0)}
    reduction = "regression"

    def points(self):
        return {"x": np.linspace(-1, 1, 500, dtype=np.float32)}

    def targets(self):
        return {"y": 4 * self.points()["x"] - 3}


def config_of(**tuning: object) -> RunConfig:
    data = {
        "task": "Line",
        "program": {"vocabulary": {"instructions": ["mul_ftz_f32"]}},
        "search": {"archive": {"dims": [8]}, "tuning": tuning},
        "stop": {"generations": 1},
    }
    return make_config(data, "here")


def words_of(*texts: str) -> np.ndarray:
    rows = [[SLOPES.encode(token) for token in text.split()] for text in texts]
    table = np.zeros((len(rows), 8), np.uint64)
    for row, values in zip(table, rows, strict=True):
        row[: len(values) + 1] = [*values, SLOPES.encode("return")]
    return table


def test_constants_become_those_of_the_target():
    tuner = ConstantTuner(SLOPES, Line(), iterations=8, linear_scale=False, num_threads=1)
    words, changed, num_evaluations = tuner.tune(words_of("%x 1.0 mul_ftz_f32 0.5 add_ftz_f32", "%x"))
    tuner.close()
    constants = [np.uint32(int(word) >> 32).view(np.float32) for word in words[0, [1, 3]]]
    np.testing.assert_allclose(constants, [4, -3], rtol=1e-5)
    assert changed.tolist() == [True, False]
    assert 2 <= num_evaluations <= 9


def test_of_many_points_the_multiples_of_the_golden_ratio_are_used():
    used = sorted(range(500), key=lambda i: i * (5**0.5 - 1) / 2 % 1)[:60]
    assert max(np.diff(sorted(used))) < 25  # spread over all of them

    class Rubbish(Line):
        """A line at these points; elsewhere the target has nothing to do with it."""

        inputs = {"x": "f32", "scale": "f32"}

        def points(self):
            return {**super().points(), "scale": np.float32(2.0)}

        def targets(self):
            values = np.full(500, 1e4, np.float32)
            values[used] = (4 * self.points()["x"] - 3)[used]
            return {"y": values}

    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("scale", "f32")), (("y", "f32"),))
    text = "%x 1.0 mul_ftz_f32 %scale mul_ftz_f32 0.5 add_ftz_f32 return"
    words = np.array([[language.encode(token) for token in text.split()]], np.uint64)
    for max_points, is_line in ((60, True), (500, False), (None, False)):
        tuner = ConstantTuner(language, Rubbish(), iterations=8, linear_scale=False, max_points=max_points, num_threads=1)
        tuned = tuner.tune(words)[0]
        tuner.close()
        constants = [np.uint32(int(word) >> 32).view(np.float32) for word in tuned[0, [1, 5]]]
        assert np.allclose(constants, [2, -3], rtol=1e-5) == is_line


def test_of_very_many_points_a_sample_is_used_and_all_for_some_programs():
    num_points = 5000
    used = np.argsort(np.arange(num_points) * (5**0.5 - 1) / 2 % 1)[:2048]

    class Bent(Line):
        """Steeper at the points that are no sample."""

        def points(self):
            return {"x": np.linspace(-1, 1, num_points, dtype=np.float32)}

        def targets(self):
            slopes = np.full(num_points, np.float32(6))
            slopes[used] = 4
            return {"y": slopes * self.points()["x"]}

    squares = Bent().points()["x"].astype(float) ** 2
    mean_slope = np.average(np.where(np.isin(np.arange(num_points), used), 4, 6), weights=squares)
    words = words_of(*(f"{dead / 100} %x 1.0 mul_ftz_f32" for dead in range(300)))
    results = []
    for num_threads, max_points in ((1, None), (2, None), (1, 2048)):
        tuner = ConstantTuner(SLOPES, Bent(), iterations=5, linear_scale=False, num_threads=num_threads, max_points=max_points)
        results.append(np.concatenate([tuner.tune(words[part])[0] for part in (slice(100), slice(100, 300))]))
        tuner.close()
    slopes, same, of_sample = ((words[:, 2] >> np.uint64(32)).astype(np.uint32).view(np.float32) for words in results)
    np.testing.assert_array_equal(slopes, same)
    np.testing.assert_allclose(of_sample, 4, rtol=1e-5)
    is_of_all = np.isclose(slopes, mean_slope, rtol=1e-5)
    np.testing.assert_allclose(slopes[~is_of_all], 4, rtol=1e-5)
    assert 300 / 16 < is_of_all.sum() < 300 / 4


def test_a_sample_has_the_heaviest_points_and_others_at_one_weight():
    num_points, heavy = 10_000, np.arange(0, 10_000, 500)

    class Weighted(Line):
        """A line at the heavy points; elsewhere it has another slope."""

        def points(self):
            return {"x": np.linspace(-1, 1, num_points, dtype=np.float32)}

        def targets(self):
            slopes = np.full(num_points, np.float32(9))
            slopes[heavy] = 4
            return {"y": slopes * self.points()["x"]}

        def weights(self):
            weights = np.full(num_points, 1e-3)
            weights[heavy] = np.linspace(1, 10, len(heavy))
            return weights

    points = sampled(SLOPES, Weighted(), 200)
    is_heavy = np.isclose(points.target, 4 * points.inputs[0])
    assert is_heavy.sum() == len(heavy)
    np.testing.assert_allclose(points.weights[is_heavy], np.linspace(1, 10, len(heavy)))
    np.testing.assert_allclose(points.weights[~is_heavy], points.weights[~is_heavy][0])
    assert points.weights[~is_heavy].sum() == pytest.approx(1e-3 * (num_points - len(heavy)), rel=0.05)


def test_threads_and_neighbours_do_not_matter():
    rng = np.random.default_rng(50)
    texts = [f"%x {a:.3f} mul_ftz_f32 {b:.3f} add_ftz_f32 sin_approx_ftz_f32" for a, b in rng.normal(size=(150, 2))]
    words = words_of(*texts)
    results = []
    for num_threads in (1, 3):
        tuner = ConstantTuner(SLOPES, Line(), iterations=5, linear_scale=True, num_threads=num_threads)
        results.append(tuner.tune(words))
        one_by_one = [tuner.tune(words[i : i + 1]) for i in range(150)]
        np.testing.assert_array_equal(np.concatenate([part[0] for part in one_by_one]), results[-1][0])
        assert sum(part[2] for part in one_by_one) == results[-1][2]
        tuner.close()
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    assert results[0][1].sum() > 100


def test_no_programs_give_no_programs():
    tuner = ConstantTuner(SLOPES, Line(), iterations=5, linear_scale=True, num_threads=2)
    words, changed, num_evaluations = tuner.tune(words_of("%x")[:0])
    tuner.close()
    assert words.shape == (0, 8) and changed.shape == (0,) and num_evaluations == 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reduction": None, "targets": Task.targets}, r"search.tuning: needs a task with targets\(\)"),
        ({"outputs": {"y": "f32", "z": "f32"}}, "search.tuning: needs a task with one output, Other has 2"),
    ],
)
def test_a_task_that_cannot_be_tuned_is_refused_if_the_config_asks_and_else_left_alone(changes, reason):
    task = type("Other", (Line,), changes)()
    with pytest.raises(UserError, match=f"^{reason}"):
        problem_of(config_of(share=0.5), task)
    assert problem_of(config_of(), task).tuner is None


def test_a_task_that_can_be_tuned_is_unless_the_config_says_otherwise():
    class Scaled(Line):
        def scaling(self, outputs):
            return {"y": (np.zeros(1), np.ones(1))}

    for task, is_scaled in ((Line(), False), (Scaled(), True)):
        found = problem_of(config_of(), task).config.search.tuning
        assert (found.share, found.linear_scale) == (0.25, is_scaled)
    assert problem_of(config_of(linear_scale=True), Line()).config.search.tuning.linear_scale
    assert problem_of(config_of(share=0.0), Line()).tuner is None


def test_elites_are_combined_only_where_there_is_a_target():
    other = type("Other", (Line,), {"reduction": None, "targets": Task.targets})()
    with pytest.raises(UserError, match=r"^search\.combination: needs a task with targets\(\)"):
        problem_of(config_of(), other).combiner  # noqa: B018
