"""evo.evaluate.loop_tuning: constants become those of the law, whose trajectories a loop in NumPy or SciPy has computed."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import evo
from evo.evaluate.loop_tuning import LoopTuner, _Derived
from evo.evaluate.tuning import ConstantTuner, why_not_tunable
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.stack_ptx_words import WordType

SET = shipped_instruction_set("default")
BEGIN = np.linspace(0.5, 2.0, 6)


class Recorded(evo.Task):
    """Programs with the output `force`, whose states are compared with data."""

    outputs = {"force": "f32"}
    measures = {"num_instructions": (0.0, 64.0)}
    reduction = "regression"

    def __init__(self, rollout, points, data):
        self.inputs = dict.fromkeys(rollout.state, "f32")
        self.rollout, self._points, self._data = rollout, points, data

    def points(self):
        return self._points

    def targets(self):
        return self._data

    def score(self, outputs, programs):
        return evo.Scores(-outputs.sum_squared_error.sum(axis=1), programs.num_instructions[:, None])


def problem(task, *texts) -> tuple[Language, np.ndarray]:
    language = Language(SET, tuple(task.inputs.items()), tuple(task.outputs.items()))
    return language, np.stack([parse_infix(language, each, "text", 64, [row.name for row in SET.instructions]) for each in texts])


def constants_of(words) -> list[float]:
    return [float(np.uint32(int(each) >> 32).view(np.float32)) for each in words if int(each) & 0xFFFF == WordType.CONSTANT]


def pendulum(integrator: str, steps: int, **more) -> Recorded:
    """The recorded law: x' = v, v' = -4 sin x - 0.3 v."""
    ends = 3.0 / steps * np.arange(2, steps + 1, 2)
    found = [
        solve_ivp(lambda _, s: [s[1], -4 * np.sin(s[0]) - 0.3 * s[1]], (0, 3), [x, 0], t_eval=ends, rtol=1e-9, atol=1e-9).y
        for x in BEGIN
    ]
    x, v = np.array(found).transpose(1, 2, 0)
    rollout = evo.Rollout(steps, {"x": "v", "v": "force - 0.3*v"}, integrator, 3.0 / steps, record_every=2, **more)
    return Recorded(rollout, {"x": BEGIN, "v": 0.0}, {"x": x, "v": v})


@pytest.mark.parametrize(
    ("integrator", "steps", "pieces", "near"), [("rk4", 60, 1, 1e-4), ("rk4", 60, 6, 1e-4), ("euler", 3000, 1, 1e-2)]
)
def test_constants_become_those_of_the_law(integrator, steps, pieces, near):
    task = pendulum(integrator, steps, pieces=pieces)
    language, words = problem(task, "force = -2.5*sin(x) + 0.5*v")
    tuned, [outcome] = LoopTuner(language, task, iterations=12, max_points=10**6).tune(words)
    assert outcome["is_changed"] and outcome["error_after"] < 1e-2 * outcome["error_before"]
    found = dict(zip(constants_of(words[0]), constants_of(tuned[0]), strict=True))
    assert found == pytest.approx({-2.5: -4.0, 0.5: 0.0}, abs=near)


def logistic(noise: float, **more) -> Recorded:
    x, records = np.linspace(0.2, 0.7, 4), []
    for _ in range(80):
        x = 3.7 * x * (1 - x)
        records.append(x)
    data = np.array(records) + np.random.default_rng(3).normal(scale=noise, size=(80, 4))
    return Recorded(evo.Rollout(80, {"x": "force"}, **more), {"x": np.linspace(0.2, 0.7, 4)}, {"x": data})


def test_pieces_find_the_constant_of_a_chaotic_map_from_noisy_data():
    found = []
    for pieces in (1, 40):
        task = logistic(0.005, pieces=pieces)
        language, words = problem(task, "force = 3.5*x*(1 - x)")
        tuned, _ = LoopTuner(language, task, iterations=12, max_points=10**6).tune(words)
        found.append(dict(zip(constants_of(words[0]), constants_of(tuned[0]), strict=True))[3.5])
    assert abs(found[1] - 3.7) < 0.01 < abs(found[0] - 3.7)


def test_gradients_are_those_of_the_error():
    task = pendulum("rk4", 20)
    language, words = problem(task, "force = sin(1.25*x)*(0.125*v - 3.5) + exp2(0.25*v)")
    tuner = LoopTuner(language, task, iterations=1, max_points=10**6)
    program = dag_of(language, words[0], folding=False)
    derived = _Derived(tuner._loop, program, tuner._field, tuner._derived_as)
    at = np.array([program.nodes[index].payload for index in derived.constants], np.uint32).view(np.float32)
    gradient = tuner._model(derived, at).gradient
    assert len(gradient) == 4
    for i, slope in enumerate(gradient):
        moved = [at.copy(), at.copy()]
        moved[0][i] += 2e-3
        moved[1][i] -= 2e-3
        errors = [tuner._model(derived, each).error for each in moved]
        assert -2.0 * slope == pytest.approx((errors[0] - errors[1]) / (float(moved[0][i]) - float(moved[1][i])), rel=2e-2)


def test_a_result_depends_on_the_program_alone():
    task = pendulum("rk4", 60)
    language, words = problem(task, *(f"force = 0 - {k}*sin(x)*0.25" for k in range(2, 30)), "force = v", "force = x/(x - x)")
    results = []
    for threads, order in ((1, slice(None)), (2, slice(None, None, -1))):
        tuner = ConstantTuner(language, task, iterations=6, linear_scale=False, max_points=90, num_threads=threads)
        assert not tuner.finishes
        tuned, changed, _ = tuner.tune(np.ascontiguousarray(words[order]))
        tuner.close()
        results.append((tuned[order], changed[order]))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][1].tolist() == [True] * 28 + [False] * 2


def test_a_search_tunes_through_its_rollout():
    options = {"vocabulary": ["add_ftz_f32", "mul_ftz_f32", "sin_approx_ftz_f32"], "seed": 1, "progress": False, "generations": 1}
    search = {"batch_size": 16, "initial": {"num_programs": 16}}
    guess = "(0 - 1.5)*sin(x)"
    best = {
        share: evo.evolve(
            pendulum("rk4", 60), guesses=guess, search={**search, "tuning": {"share": share}}, **options
        ).best.objective
        for share in (None, 0.0)
    }
    assert best[0.0] < -10.0 < 100.0 * best[None]  # by default


def test_what_cannot_be_tuned_is_named():
    task = pendulum("rk4", 60)
    assert why_not_tunable(task) is None
    task.inputs = {"x": "f32", "v": "f32", "n": "u32"}
    assert why_not_tunable(task) == "needs 'n' to be f32"
    task.rollout = evo.Rollout(4, {"x": "force"}, grid=evo.Grid((3, 3)))
    assert why_not_tunable(task) == "needs a rollout without a grid"
    task = pendulum("rk4", 60)
    with pytest.raises(evo.UserError, match="combination: needs a task without a rollout"):
        evo.evolve(task, generations=1, search={"combination": 0.5}, progress=False)
