"""The task of an approximation: errors as they are defined, issue slots as the table has them, and guesses that are worth it."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest

import evo
from evo.approximation.prove import tuned
from evo.config import load_config
from evo.errors import UserError
from evo.language.batch import Batch
from evo.native.ptx_vm import VirtualMachine
from evo.report.show import read_program
from evo.run.initial_programs import read_initial
from evo.run.loaded_task import load_problem


def problem_of(*overrides: str):
    base = ("evaluation.backend=cpu", "evaluation.executor=threads", "evaluation.threads=1", "task_options.num_points=300")
    return load_problem(load_config(Path("approximation"), (*base, *overrides)))


def score(problem, text: str):
    batch = Batch.analyze(problem.language.lowering, read_program(problem, text)[None])
    return problem.evaluator.evaluate(batch)


def nearest_bf16(value: float) -> float:
    """Of the two neighbours, by their bits."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    below, above = (struct.unpack("<f", struct.pack("<I", (bits >> 16) + i << 16))[0] for i in (0, 1))
    return below if abs(below - value) < abs(above - value) else above


def test_errors_of_a_straight_line_are_those_of_libm():
    x = evo.ApproximationTask("tanh", [-1.5, 2], num_points=300).points()["x"].astype(np.float64)
    error = np.abs(x - np.tanh(x))
    options = ("task_options.function=tanh", "task_options.interval=[-1.5, 2]")
    for norm, total in (("max", np.max), ("mean", np.mean)):
        of = {"absolute": 1, "relative": np.abs(np.tanh(x)), "mixed": np.maximum(np.abs(np.tanh(x)), 1)}
        for kind, size in of.items():
            with np.errstate(invalid="ignore"):
                expected = -math.log2(total(np.nan_to_num(error / size)))
            problem = problem_of(*options, f"task_options.error={kind}", f"task_options.norm={norm}")
            assert score(problem, "x").objective[0] == pytest.approx(expected, abs=1e-6), (norm, kind)


@pytest.mark.parametrize(("norm", "of"), [("max", np.max), ("mean", np.mean), ("rms", lambda e: math.sqrt(np.mean(e * e)))])
def test_a_norm_is_taken_over_all_points_and_a_missing_result_spoils_it(norm, of):
    task = evo.ApproximationTask("tanh", [-1.5, 2], norm=norm, num_points=300)
    x = task.points()["x"]
    found = task.score({"y": np.stack([x, np.where(x > 1.9, np.float32(np.inf), x)])}, evo.Programs(np.array([0, 1])))
    error = np.abs(x.astype(np.float64) - np.tanh(x.astype(np.float64)))
    assert found.objective[0] == pytest.approx(-math.log2(of(error)), abs=1e-9)
    assert math.isnan(found.objective[1])


def test_errors_of_bf16_are_those_of_rounded_results_in_its_ulps():
    task = evo.ApproximationTask("exp", [0.25, 3], "bf16", "ulp")
    x = task.points()["x"]
    assert len(x) == 128 * 3 + 64 + 1
    assert all(nearest_bf16(float(each)) == each for each in x)
    worst = max(abs(nearest_bf16(float(1 + v)) - math.exp(v)) / 2.0 ** (math.frexp(math.exp(v))[1] - 8) for v in x)
    found = score(problem_of("task_options={function: exp, interval: [0.25, 3], format: bf16, error: ulp}"), "x + 1")
    assert found.objective[0] == pytest.approx(8 - 1 - math.log2(worst), abs=1e-9)


def test_slots_are_the_tables_whatever_the_program():
    problem = problem_of()
    texts = {"x": 0, "x*x": 1, "tanh(x*x)": 9, "1/x": 8, "exp2(x) + fma(x, x, x)": 10, "min(x, 1.0)": 2}
    for text, slots in texts.items():
        found = score(problem, text).measures[0]
        assert found[1] == slots or text == "1/x", text
    old = problem_of("task_options.target=sm_80")
    assert score(old, "x*x").measures[0, 1] == 2


def test_a_result_that_is_subnormal_may_be_flushed_and_a_missing_one_rejects():
    problem = problem_of("task_options={function: exp, interval: [-90, 0], error: ulp}")
    assert score(problem, "exp2(x*1.442695)").objective[0] > 16
    assert math.isnan(score(problem, "x/x").objective[0])


@pytest.mark.slow
def test_guesses_come_near_where_the_vocabulary_has_their_instructions():
    problem = problem_of("task_options={function: tanh, interval: [-1, 1], error: relative, num_points: 2000}")
    words = read_initial(problem)
    batch = Batch.analyze(problem.language.lowering, words)
    found = problem.evaluator.evaluate(batch)
    assert np.nanmax(found.objective) > 21.5  # a polynomial of degree 19 in f32
    assert len(words) >= 11
    assert not len(read_initial(problem_of("program.vocabulary.instructions=[abs_ftz_f32]", "program.vocabulary.phrases={}")))


SLOW = pytest.mark.slow  # seconds of search


@pytest.mark.parametrize(
    ("options", "bits", "slots"),
    [
        ("{function: gelu, interval: [-8, 8]}", 21.5, 19),  # max(x, 0) less x times a power of two
        pytest.param("{function: softplus, interval: [-8, 8]}", 19.5, 20, marks=SLOW),
        pytest.param("{function: erf, interval: [-4, 4]}", 23.0, 20, marks=SLOW),  # 1 less a power of two, with the sign of x
        pytest.param("{function: atan, interval: [-100, 100]}", 22.4, 26, marks=SLOW),
        ("{function: exp, interval: [-87, 88], error: ulp}", 22.8, 13),  # powers of two by the bits of their exponents
        pytest.param("{function: expm1, interval: [-16, 16], error: ulp}", 22.8, 15, marks=SLOW),
        pytest.param(
            "{function: log, interval: [1.2e-38, 3.0e+38], error: absolute}", 17.7, 17, marks=SLOW
        ),  # exponent and significand
        pytest.param("{function: log1p, interval: [-0.9, 1000], error: ulp}", 22.8, 24, marks=SLOW),
        pytest.param("{function: cbrt, interval: [0.001, 1000], error: ulp}", 22.8, 14, marks=SLOW),  # a first guess by the bits
        pytest.param("{function: tan, interval: [-1.5, 1.5], error: ulp}", 21.3, 17, marks=SLOW),  # with its pole
        pytest.param("{function: silu, interval: [-8, 8]}", 20.0, 18, marks=SLOW),
        ("{function: gelu, interval: [-3.4e38, 3.4e38], error: ulp, format: bf16}", 7.0, 20),  # 1 ulp
        pytest.param("{function: silu, interval: [-3.4e38, 3.4e38], error: ulp, format: bf16}", 7.9, 24, marks=SLOW),
        pytest.param("{function: gelu_grad, interval: [-3.4e38, 3.4e38], error: ulp, format: bf16}", 6.5, 29, marks=SLOW),
    ],
)
def test_functions_begin_with_forms_that_are_cheap_enough(options, bits, slots):
    """Cheap enough: CUDA's fast gelu, softplus, erf, atan, expm1, log1p, cbrt, tan and silu take 36, 36, 32, 31, 54, 27, 34, 27
    and 19 slots, exp without --use_fast_math 17 and log 34; those of bf16 are wrong in their tails.
    """
    problem = problem_of(f"task_options={options}", "task_options.num_points=2000")
    words, *_ = problem.tuner.finish(read_initial(problem))
    found = problem.evaluator.evaluate(Batch.analyze(problem.language.lowering, words))
    assert np.nanmax(found.objective[found.measures[:, 1] <= slots]) > bits


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{function: log, interval: [-1, 2], num_points: 99}", r"interval: log has no value at -1\.0"),
        ("{interval: [2, 1]}", "interval: must be two numbers, the lower first"),
        ("{interval: 3}", "interval: must be two numbers"),
        ("{format: f8}", "format: 'f8', one of: f32, f16, bf16"),
        ("{error: ulps}", "error: 'ulps', did you mean ulp"),
        ("{num_points: 3}", "num_points: must be an integer from 16"),
        ("{interval: [1.0001, 1.0002], format: bf16}", "bf16 has no value in"),
        ("{function: exp, interval: [1, 1.001], format: bf16}", "exp has 1 value of bf16 there; two are needed"),
        ("{function: exp, interval: [100, 101], num_points: 99}", "exp overflows f32"),
        ("{target: sm_91, num_points: 99}", "task_options.target: unknown GPU 'sm_91'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        problem_of(f"task_options={options}").evaluator  # noqa: B018


@pytest.mark.slow
def test_generation_0_has_minimax_polynomials_tuned_to_the_end():
    """The largest error of the best polynomial of degree n for 1/(x - 2) on [-1, 1] is (2 - sqrt(3))^n/3 (Chebyshev)."""
    task = evo.ApproximationTask("1/(x - 2)", [-1, 1], error="absolute", num_points=500)
    search = {"initial": {"num_programs": 8}, "tuning": {"share": 0.25, "finished": 1}}
    found = evo.evolve(task, vocabulary=["fma_rn_ftz_f32"], archive=[32, 64], search=search, generations=1).archive
    for degree in range(2, 9):
        best = found.objective[found.num_instructions == degree].max()
        assert best == pytest.approx(-math.log2((2 - math.sqrt(3)) ** degree / 3), abs=0.02)


@pytest.mark.slow
def test_constants_that_are_tuned_before_a_proof_are_better_between_the_points_of_a_search():
    """By libm, of a polynomial whose rounding errors are as large as its own."""
    problem = problem_of("task_options={function: sin, interval: [-3.1, 3.1], num_points: 64}")
    text = "v = x*x; y = x*fma(fma(fma(fma(2.6e-6, v, -1.98e-4), v, 8.333e-3), v, -0.16667), v, 1.0)"
    given = read_program(problem, text)[None]
    few, _, _ = problem.tuner.finish(given)
    x = np.random.default_rng(1).uniform(-3.1, 3.1, 20_000).astype(np.float32)
    machine = VirtualMachine(problem.language.lowering)
    unused = [None] * (len(problem.language.registers) - 1)
    exact = [math.sin(value) for value in x.tolist()]
    before, after = (
        np.abs(machine.store(words, [x, *unused])[0, 0].astype(np.float64) - exact).max()
        for words in (few, tuned(problem.language, problem.task, few))
    )
    assert after < 0.9 * before
    with pytest.raises(UserError, match="--tune: constants are tuned to the largest error"):
        tuned(problem.language, evo.ApproximationTask("sin", [-3.1, 3.1], norm="rms", num_points=64), few)
