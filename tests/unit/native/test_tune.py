"""Tuning of constants: against NumPy in float64, for every SIMD level, in any batch, and with points that are not finite."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from float64_programs import run_float64

from evo.instructions import shipped_instruction_set
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine, levels
from evo.native.stack_ptx import NodeKind
from evo.native.tune import Tuner

SET = shipped_instruction_set("default")
LANGUAGE = Language(SET, (("x", "f32"), ("y", "f32")), (("f", "f32"),))
RNG = np.random.default_rng(40)
POINTS = RNG.uniform(-1.5, 1.5, (2, 2500)).astype(np.float32)
DAMPING = 1e-3  # of the first step

# A formula with its constants, and the same with others: the target.
FORMULAS = {
    "wave": ("%x {} mul_ftz_f32 {} add_ftz_f32 sin_approx_ftz_f32 %y mul_ftz_f32", (1.5, 0.3), (1.9, 0.1)),
    "exponential": ("%x {} mul_ftz_f32 ex2_approx_ftz_f32 %y {} mul_ftz_f32 add_ftz_f32", (0.5, 1.0), (1.2, -0.7)),
    "pole": ("%x dup.f32 mul_ftz_f32 {} add_ftz_f32 %y {} add_ftz_f32 div_approx_ftz_f32", (1.0, 2.0), (0.6, 1.1)),
    "bend": ("%x {} mul_ftz_f32 {} add_ftz_f32 tanh_approx_f32 %y add_ftz_f32", (1.0, 0.5), (1.6, 0.2)),
}


def encode(*texts: str) -> np.ndarray:
    rows = [[LANGUAGE.encode(token) for token in text.split()] + [LANGUAGE.encode("return")] for text in texts]
    words = np.zeros((len(rows), max(map(len, rows))), np.uint64)
    for row, values in zip(words, rows, strict=True):
        row[: len(values)] = values
    return words


def tuner(target, *, iterations=8, is_scaled=True, level=None, num_points=200, inputs=None, weights=None) -> Tuner:
    machine = VirtualMachine(LANGUAGE.lowering, level)
    inputs = POINTS[:, :num_points] if inputs is None else inputs
    inputs = [*map(np.ascontiguousarray, inputs), None]
    return Tuner(machine, inputs, target, iterations=iterations, is_scaled=is_scaled, weights=weights)


def outputs(words: np.ndarray, num_points: int = 200) -> np.ndarray:
    return VirtualMachine(LANGUAGE.lowering).store(words, [*map(np.ascontiguousarray, POINTS[:, :num_points]), None])[0, 0]


def scaled_error(y: np.ndarray, target: np.ndarray, weights: np.ndarray | float = 1.0) -> float:
    y, roots = y.astype(np.float64), np.sqrt(weights) * np.ones(len(y))
    columns, target = np.stack([roots, roots * (y - y.mean()) / np.abs(y - y.mean()).max()], axis=1), roots * target
    coefficients = np.linalg.lstsq(columns, target, rcond=None)[0]
    return float(((columns @ coefficients - target) ** 2).sum())


def random_programs(num_programs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    names = ("add_ftz_f32", "mul_ftz_f32", "sub_ftz_f32", "sin_approx_ftz_f32", "div_approx_ftz_f32", "max_ftz_f32")
    texts = []
    for _ in range(num_programs):
        tokens = [str(rng.choice(("%x", "%y", *names, f"{rng.normal():.4f}", f"{rng.normal():.4f}"))) for _ in range(30)]
        texts.append(" ".join(tokens))
    return encode(*texts)


@pytest.mark.parametrize("is_scaled", [True, False])
@pytest.mark.parametrize("name", FORMULAS)
def test_constants_of_the_target_are_found(name, is_scaled):
    formula, start, wanted = FORMULAS[name]
    target = outputs(encode(formula.format(*wanted)))
    if is_scaled:
        target = 3 * target - 7
    words, outcomes = tuner(target, iterations=20, is_scaled=is_scaled).tune(encode(formula.format(*start)))
    constants = [float(token) for token in map(LANGUAGE.decode, words[0].tolist()) if token[-1].isdigit() and "f32" not in token]
    # tanh.approx and the target's rounding leave a relative error near 1e-5.
    np.testing.assert_allclose(constants, wanted, rtol=1e-3)
    assert outcomes["error_after"] < 1e-5 * outcomes["error_before"]


@pytest.mark.parametrize("name", FORMULAS)
def test_error_is_that_of_the_best_scale(name):
    formula, start, _ = FORMULAS[name]
    target = np.float32(RNG.normal(size=200))
    words, outcomes = tuner(target).tune(encode(formula.format(*start)))
    assert outcomes["error_before"][0] == pytest.approx(scaled_error(outputs(encode(formula.format(*start))), target), rel=1e-9)
    assert outcomes["error_after"][0] == pytest.approx(scaled_error(outputs(words), target), rel=1e-9)
    assert outcomes["error_after"] < outcomes["error_before"]
    assert outcomes["is_changed"] == 1
    # In another unit, a power of two, each step is the same.
    np.testing.assert_array_equal(tuner(target * np.float32(2.0**-20)).tune(encode(formula.format(*start)))[0], words)


def test_error_of_an_output_with_a_large_mean_keeps_its_digits():
    x = POINTS[0, :200]
    words, target = encode("%x 1.9 mul_ftz_f32 sin_approx_ftz_f32 1e5 add_ftz_f32"), np.sin(np.float32(1.9) * x)
    _, outcomes = tuner(target).tune(words)
    assert outcomes["error_before"][0] == pytest.approx(scaled_error(outputs(words), target), rel=1e-3)


@pytest.mark.parametrize("is_scaled", [True, False])
def test_weights_are_factors_of_squared_errors(is_scaled):
    formula, start, truth = FORMULAS["bend"]
    target, weights = outputs(encode(formula.format(*truth))).copy(), np.ones(200, np.float32)
    target[::2], weights[::2] = 7.0, 1e-9
    words, outcomes = tuner(target, is_scaled=is_scaled, weights=weights).tune(encode(formula.format(*start)))
    tuned = outputs(words)
    np.testing.assert_allclose(tuned[1::2], target[1::2], atol=1e-4)
    error = scaled_error(tuned, target, weights) if is_scaled else (weights * (tuned - target.astype(np.float64)) ** 2).sum()
    assert outcomes["error_after"][0] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("is_scaled", [True, False])
@pytest.mark.parametrize("name", FORMULAS)
def test_first_step_solves_the_damped_normal_equations(name, is_scaled):
    formula, start, wanted = FORMULAS[name]
    # Close by, so that the first step is taken.
    near = [a + 0.2 * (b - a) for a, b in zip(start, wanted, strict=True)]
    target = outputs(encode(formula.format(*near))) + np.float32(0.01) * POINTS[0, :200] ** 2
    words = encode(formula.format(*start))
    lowered = LANGUAGE.lowering.lower(words[0])
    nodes = [i for i, node in enumerate(lowered.nodes) if node["kind"] == NodeKind.CONSTANT]
    inputs = {i: POINTS[i, :200].astype(np.float64) for i in range(2)}

    def run(constants):
        return np.broadcast_to(run_float64(SET, lowered, inputs, dict(zip(nodes, constants, strict=True)))[0], 200)

    values = np.array([np.uint32(lowered.nodes[i]["payload"]).view(np.float32) for i in nodes], np.float64)
    y = run(values)
    jacobian = np.stack([(run(values + h) - run(values - h)) / 2e-6 for h in 1e-6 * np.eye(len(nodes))], axis=1)
    residual = target - y
    if is_scaled:
        columns = np.stack([np.ones(200), y], axis=1)
        project = np.eye(200) - columns @ np.linalg.pinv(columns)
        slope = np.linalg.lstsq(columns, target.astype(np.float64), rcond=None)[0][1]
        jacobian, residual = slope * project @ jacobian, project @ target
    matrix = jacobian.T @ jacobian
    step = np.linalg.solve(matrix + DAMPING * np.diag(np.diag(matrix)), jacobian.T @ residual)
    tuned, outcomes = tuner(target, iterations=1, is_scaled=is_scaled).tune(words)
    assert outcomes["num_evaluations"] == 2
    after = LANGUAGE.lowering.lower(tuned[0])
    moved = [np.uint32(after.nodes[i]["payload"]).view(np.float32) for i in nodes]
    np.testing.assert_allclose(moved - values, step, rtol=2e-3, atol=1e-6)


def test_result_depends_on_the_program_alone_and_not_on_level_or_threads():
    words = random_programs(200, 41)
    before = words.copy()
    target = np.sin(3 * POINTS[0]) + POINTS[1]
    whole, outcomes = tuner(target, num_points=2500).tune(words)
    assert outcomes["is_changed"].sum() > 50
    np.testing.assert_array_equal(words, before)
    np.testing.assert_array_equal((whole != before).any(axis=1), outcomes["is_changed"] == 1)
    for level in levels():
        shared = tuner(target, level=level, num_points=2500)
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(shared.tune, np.array_split(words, 7)))
        np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), whole)
        assert np.concatenate([part for _, part in parts]).tobytes() == outcomes.tobytes()


def test_what_cannot_improve_is_evaluated_once():
    words = encode("%x 1.5 mul_ftz_f32", "%x %x sub_ftz_f32 rcp_approx_ftz_f32 1.5 mul_ftz_f32")  # a perfect fit; nothing finite
    _, outcomes = tuner(outputs(words[:1]), is_scaled=False).tune(words)
    assert outcomes["num_evaluations"].tolist() == [1, 1]


def test_no_point_is_lost():
    # lg2(x + c) is finite where x > -c: the fit would like c near 0.2, and points in [-1.5, -0.2] would be lost.
    target = np.sqrt(np.abs(POINTS[0, :200]))
    words = encode("%x 1.6 add_ftz_f32 lg2_approx_ftz_f32 %y mul_ftz_f32")
    assert np.isfinite(outputs(words)).all()
    tuned, outcomes = tuner(target, iterations=15).tune(words)
    assert outcomes["num_evaluations"] > 1
    assert np.isfinite(outputs(tuned)).all()


def test_point_with_an_infinite_derivative_counts_without_it():
    # sqrt(c x) at x = 0: y is 0, its derivative 0 / 0.
    x = np.array([0.0, 1.0, 4.0, 9.0], np.float32)
    target = 3 * np.sqrt(x)
    words, outcomes = tuner(target, is_scaled=False, inputs=[x, x]).tune(encode("2.0 %x mul_ftz_f32 sqrt_approx_ftz_f32"))
    assert LANGUAGE.decode(int(words[0, 0])).startswith(("9.0", "8.9999"))
    assert outcomes["error_after"] < 1e-9


def test_wrong_arrays_are_refused():
    machine = VirtualMachine(LANGUAGE.lowering)
    inputs = [*map(np.ascontiguousarray, POINTS[:, :200]), None]
    with pytest.raises(ValueError, match="target: expected float32"):
        Tuner(machine, inputs, np.zeros(200), iterations=5, is_scaled=True)
    with pytest.raises(ValueError, match="expected shape"):
        Tuner(machine, inputs, np.zeros(100, np.float32), iterations=5, is_scaled=True)
    with pytest.raises(ValueError, match="words: expected uint64"):
        tuner(np.zeros(200, np.float32)).tune(np.zeros((2, 5), np.int64))
    with pytest.raises(ValueError, match="reads a register that has no values"):
        Tuner(machine, [inputs[0], None, None], np.zeros(200, np.float32), iterations=5, is_scaled=True).tune(
            encode("%y 2.0 mul_ftz_f32")
        )
