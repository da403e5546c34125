"""Task.rollout on the CPU: trajectories are those of a loop in NumPy, whatever the chunks, threads and SIMD level are."""

import numpy as np
import pytest
from rollout_programs import RolloutTask, language_of, records_of, scores_however_computed, words_of
from scipy.integrate import solve_ivp

import evo
from evo.evaluate.chunks import ChunkScorer
from evo.tasks.folder import check_declarations
from evo.tasks.sums import Regression

RNG = np.random.default_rng(5)
COUNT = 150  # trajectories: more than a block of any level, and no multiple


def test_a_map_repeats_what_a_program_computes():
    x = RNG.uniform(0.1, 0.9, COUNT).astype(np.float32)
    rollout = evo.Rollout(steps=20, state={"x": "next"}, record_every=5)
    found = records_of(RolloutTask(["x", "r"], ["next"], rollout, {"x": x, "r": 3.7}), "next = r*x*(1 - x)")["x"]
    expected = []
    for step in range(1, 21):
        x = np.float32(3.7) * x * (np.float32(1) - x)
        if step % 5 == 0:
            expected.append(x)
    assert found.shape == (1, 4, COUNT)
    np.testing.assert_array_equal(found[0], expected)  # these instructions are exact


def oscillator(steps, integrator, dt, **more) -> RolloutTask:
    rollout = evo.Rollout(steps=steps, state={"x": "v", "v": "force - 0.1*v"}, integrator=integrator, dt=dt, **more)
    return RolloutTask(["x", "v"], ["force"], rollout, {"x": np.linspace(0.5, 2.0, COUNT), "v": 0.0})


def exact_oscillator(times) -> np.ndarray:
    found = solve_ivp(
        lambda _, y: [y[1], -4.0 * y[0] - 0.1 * y[1]], (0.0, times[-1]), [1.0, 0.0], t_eval=times, rtol=1e-9, atol=1e-9
    )
    return found.y[0]


def test_runge_kutta_is_exact_to_the_fourth_order_and_euler_to_the_first():
    unit = np.linspace(0.5, 2.0, COUNT)
    errors = {}
    for integrator, steps in (("rk4", 20), ("rk4", 40), ("euler", 200), ("euler", 400)):
        task = oscillator(steps, integrator, 2.0 / steps, record_every=steps)
        end = records_of(task, "force = 0 - 4*x")["x"][0, 0]
        errors[integrator, steps] = np.abs(end / unit - exact_oscillator([2.0])[0]).max()
    assert errors["rk4", 40] < 1e-5 and errors["rk4", 20] / errors["rk4", 40] == pytest.approx(16, rel=0.3)
    assert errors["euler", 200] / errors["euler", 400] == pytest.approx(2, rel=0.1)


def test_a_trajectory_ends_at_its_first_record_that_is_not_finite():
    x = np.array([0.5, 1e30, 2.0], np.float32)
    task = RolloutTask(["x"], ["next"], evo.Rollout(steps=4, state={"x": "next"}), {"x": x})
    found = records_of(task, "next = 1/(x*x) - x")["x"][0]  # 1/inf is 0
    assert np.isfinite(found[:, [0, 2]]).all()
    task = RolloutTask(["x"], ["next"], evo.Rollout(steps=8, state={"x": "next"}), {"x": x})
    squares = records_of(task, "next = x*x")["x"][0]
    assert np.isnan(squares[:, 1]).all() and np.isfinite(squares[:, 0]).all()
    np.testing.assert_array_equal(np.isfinite(squares[:, 2]), np.arange(1, 9) < 7)  # 2^(2^7) is infinite
    assert (squares[6:, 2].view(np.uint32) == 0x7FFFFFFF).all()


def test_what_has_ended_records_the_same_whoever_its_neighbours_are():
    rollout = evo.Rollout(steps=6, state={"x": "next", "count": "add_u32(count, one)"})
    for others in ([], [0.5]):  # one that goes on
        x = np.array([1e10, *others], np.float32)
        task = RolloutTask(["x"], ["next"], rollout, {"x": x, "count": np.zeros(len(x), np.uint32), "one": np.uint32(1)})
        task.inputs = {"x": "f32", "count": "u32", "one": "u32"}
        found = records_of(task, "next = x*x")
        np.testing.assert_array_equal(found["count"][0, :, 0], [1, 0, 0, 0, 0, 0])  # 1e40 is infinite
        np.testing.assert_array_equal(found["count"][0, :, 1:].ravel(), [1, 2, 3, 4, 5, 6][: 6 * len(others)])


def test_all_levels_chunks_and_threads_give_the_same_bits():
    task = oscillator(30, "rk4", 0.05)
    found = scores_however_computed(task, *(f"force = sin(x*{k}) - {k}*x + v*v*0.01" for k in range(1, 40)))
    assert np.isfinite(found).all() and len(set(found)) == len(found)


def test_sums_are_those_of_the_records():
    task = oscillator(40, "rk4", 0.05, record_every=2)
    truth = records_of(task, "force = 0 - 4*x")
    data = {name: values[0] + RNG.normal(scale=0.01, size=values[0].shape) for name, values in truth.items()}
    reduced = RolloutTask(["x", "v"], ["force"], task.rollout, task.points(), data)
    texts = "force = 0 - 4*x", "force = 0 - 3*x"
    scorer = ChunkScorer(language_of(reduced), reduced)
    sums = Regression.of_sums(scorer.run(words_of(reduced, *texts)))
    records = records_of(task, *texts)
    for column, name in enumerate(("x", "v")):
        errors = records[name].astype(np.float64) - data[name].astype(np.float32)
        np.testing.assert_allclose(sums.sum_squared_error[:, column], (errors**2).sum(axis=(1, 2)), rtol=1e-9)
    best = scorer.score(words_of(reduced, *texts), np.array([1, 1], np.int32)).objective
    assert best[0] > best[1]


class Pushed(RolloutTask):
    """An oscillator with all shapes of inputs, recorded with noise; `pieces` of 8 of its 24 steps."""

    def __init__(self, pieces, **changes):
        rng = np.random.default_rng(2)
        state = {"x": "v", "v": "force + by_step*mass + by_both"}
        more = {"steps": 24, "integrator": "rk4", "dt": [0.05, 0.1] * 12, "record_every": 2, "pieces": pieces}
        points = {"x": rng.normal(size=5), "v": 0.0, "by_step": rng.normal(size=(24, 1)), "mass": rng.normal(size=5)}
        points["by_both"] = rng.normal(size=(24, 5))
        data = {name: rng.normal(size=(12, 5)) for name in "xv"}
        super().__init__(["x", "v"], ["force"], evo.Rollout(state=state, **{**more, **changes}), points, data)

    def weights(self):
        return np.linspace(0.5, 2.0, 60).reshape(12, 5).ravel()


@pytest.mark.parametrize("are_given", [False, True])
def test_pieces_begin_at_what_is_recorded_or_where_points_say(are_given):
    task, whole = Pushed(3), Pushed(1)
    check_declarations(task)
    begins = {name: np.vstack([whole.points()[name] + np.zeros(5), whole.targets()[name][3:-1:4]]) for name in "xv"}
    if are_given:
        begins["v"] = begins["v"] + 0.125
        task._points = {**task.points(), "v": begins["v"]}
    words = words_of(task, "force = 0 - 4*x")
    sums = Regression.of_sums(ChunkScorer(language_of(task), task).run(words))
    errors = {name: [] for name in "xv"}
    for piece in range(3):  # each as a task of its own
        rows, records = slice(8 * piece, 8 * piece + 8), slice(4 * piece, 4 * piece + 4)
        points = {name: values[rows] if np.ndim(values) == 2 else values for name, values in whole.points().items()}
        points |= {name: begins[name][piece] for name in "xv"}
        alone = RolloutTask(["x", "v"], ["force"], evo.Rollout(8, whole.rollout.state, "rk4", [0.05, 0.1] * 4, 2), points)
        for name, found in records_of(alone, "force = 0 - 4*x").items():
            errors[name].append(found[0].astype(np.float64) - whole.targets()[name][records].astype(np.float32))
    weights = whole.weights().reshape(12, 5)
    expected = [(weights * np.concatenate(errors[name]) ** 2).sum() for name in "xv"]
    np.testing.assert_allclose(sums.sum_squared_error[0], expected, rtol=1e-6)
    pictures = [ChunkScorer(language_of(each), each).outputs(words, whole.points())["x"] for each in (task, whole)]
    np.testing.assert_array_equal(*pictures)  # which are not cut


def test_wrong_pieces_are_named():
    for task, words in (
        (Pushed(5), "pieces is 5, must be a divisor of the records, 12"),
        (Pushed(3, dt=[*[0.1] * 23, 0.2]), "dt is .* must be the same in all 3 pieces"),
    ):
        with pytest.raises(evo.UserError, match=words):
            check_declarations(task)
    task = Pushed(3)
    task.reduction = None
    with pytest.raises(evo.UserError, match="pieces: they need a task with a reduction"):
        check_declarations(task)
    task.reduction = "regression"
    task._points["v"] = np.zeros((2, 5))
    with pytest.raises(evo.UserError, match=r"'v' has shape \(2, 5\); .*; \(3, num_trajectories\), by piece; "):
        ChunkScorer(language_of(task), task)
    task._points["v"] = 0.0
    task._targets["v"][7, 2] = np.nan
    with pytest.raises(evo.UserError, match="'v' is not finite at record 7, where a piece"):
        ChunkScorer(language_of(task), task)


def looped_law() -> RolloutTask:
    task = oscillator(40, "rk4", 0.05, record_every=4)
    data = {name: values[0] for name, values in records_of(task, "force = 0 - 4*x").items()}
    return RolloutTask(["x", "v"], ["force"], task.rollout, task.points(), data)


def test_a_search_finds_a_law_through_its_rollout_and_resumes_to_the_same_archive(tmp_path):
    options = {"vocabulary": ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32"], "seed": 1, "progress": False}
    whole = evo.evolve(looped_law(), generations=4, **options)
    assert whole.best.objective > -1.0  # of 3,000 squares
    part = evo.evolve(looped_law(), generations=2, **options).save(tmp_path / "run")
    resumed = evo.resume(looped_law(), part, generations=4, progress=False)
    np.testing.assert_array_equal(resumed.search.elites().solution, whole.search.elites().solution)
    np.testing.assert_array_equal(resumed.search.elites().objective, whole.search.elites().objective)


def test_a_grid_is_refused_on_a_gpu():
    rollout = evo.Rollout(steps=4, state={"x": "next"}, grid=evo.Grid((3, 3)))
    task = RolloutTask(["x"], ["next"], rollout, {"x": np.zeros((2, 3, 3))})
    with pytest.raises(evo.UserError, match="a task whose rollout has a grid runs on the CPU"):
        evo.evolve(task, generations=1, evaluation={"backend": "cuda"}, progress=False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 0}, "steps is 0, must be a whole number from 1"),
        ({"record_every": 3}, "record_every is 3, must be a divisor of steps, 4"),
        ({"integrator": "rk5"}, "one of: map, euler, rk4"),
        ({"dt": -1.0}, "dt is -1.0, must be a number above 0"),
        ({"dt": 1e-60}, "dt is 1e-60, must be a number above 0"),  # 0 in f32
        ({"dt": [1.0, [2.0]]}, "must be a number above 0, or 4 of them"),
        ({"state": {"e": "x"}}, "'e' cannot be the name of a state"),  # formulas read Euler's number
        ({"state": {3: "x"}}, "3 cannot be the name of a state"),
        ({"state": {"x": "v +"}}, r"state\['x'\] is 'v \+', must be an output or a formula"),
        ({"state": {"force": "x"}}, "'force' is an output"),
    ],
)
def test_a_wrong_declaration_is_named(change, words):
    task = oscillator(4, "rk4", 0.1)
    task.rollout = evo.Rollout(**{"steps": 4, "state": {"x": "v"}, **change})
    with pytest.raises(evo.UserError, match=words):
        check_declarations(task)


def test_sums_are_of_floats_and_have_no_check_points():
    task = RolloutTask(["x"], ["next"], evo.Rollout(steps=2, state={"x": "next"}), {"x": np.zeros(3)}, {"x": np.zeros((2, 3))})
    task.inputs = {"x": "u32"}
    with pytest.raises(evo.UserError, match="'x' is u32; regression needs f32"):
        check_declarations(task)
    task.inputs, task.check_points = {"x": "f32"}, task.points
    with pytest.raises(evo.UserError, match=r"check_points\(\): a task with a rollout has none"):
        ChunkScorer(language_of(task), task)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ({"x": np.zeros(3)}, "exactly x, v; got x"),
        ({"x": np.zeros(3), "v": np.zeros((4, 1))}, r"'v' has shape \(4, 1\); a state is a scalar"),
        ({"x": np.zeros(3), "v": np.zeros(4)}, r"has shape \(3,\)"),
    ],
)
def test_wrong_points_are_named(points, words):
    task = oscillator(4, "rk4", 0.1)
    task._points = points
    with pytest.raises(evo.UserError, match=words):
        ChunkScorer(language_of(task), task)
