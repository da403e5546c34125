"""tasks/erf: its shipped run against formulas that people write by hand, their constants fitted by SciPy in float64."""

import pytest

from evo.config import load_config
from evo.language.batch import Batch
from evo.report.show import read_program
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.shipped import shipped


def horner(variable: str, *coefficients: float) -> str:
    """A polynomial, its highest power first, by fma."""
    text = str(coefficients[0])
    for each in coefficients[1:]:
        text = f"fma({text}, {variable}, {each})"
    return text


SQUARE, MAGNITUDE = "(x*x)", "abs(x)"
# Left out, since the run ends below them: 1 - 2^(|x| p(|x|)), with 10 instructions (degree 5) 6.89 digits, with 16 (11) 7.75.
BY_HAND = {
    5: [
        f"tanh(x*{horner(SQUARE, 0.1003017, 1.129325)})",
        f"tanh(x*{horner(SQUARE, -0.00181362, 0.10414107, 1.12812424)})",
        "copysign(1 - exp2(abs(x)*-2.4433286), x)",
        "t = min(max(x, -1.4), 1.4); y = t*fma(-0.16384566, t*t, 1.02911434)",
        "1.20570177*x/(0.52958073 + abs(x))",
    ],
    10: [
        f"tanh(x*{horner(SQUARE, 3.31831e-05, -0.00042245825, -0.0004800961, 0.10292074, 1.12836015)})",
        # Abramowitz and Stegun 7.1.27
        f"t = {horner(MAGNITUDE, 0.078108, 0.000972, 0.230389, 0.278393, 1)}; u = t*t; y = copysign(1 - 1/(u*u), x)",
        (
            f"t = min(max(x, -2.4), 2.4); "
            f"y = t*{horner('(t*t)', -8.196122e-05, 0.001863596, -0.018068733, 0.10043323, -0.36825293, 1.12691832)}"
        ),
        (
            f"t = min(max(x, -3.5), 3.5); y = t*{horner('(t*t)', 0.03304305, 0.2694934, 1.12771463)}"
            f"/{horner('(t*t)', 0.003286327, 0.12565047, 0.56829524, 1)}"
        ),
        f"copysign(1 - exp2(abs(x)*{horner(MAGNITUDE, 0.01878028, -0.1355936, -0.92447748, -1.62706888)}), x)",
    ],
    20: [
        # Abramowitz and Stegun 7.1.25, 7.1.26 and 7.1.28
        (
            f"t = 1/fma(0.47047, abs(x), 1); "
            f"y = copysign(fma(t*{horner('t', -0.7478556, 0.0958798, -0.3480242)}, exp2(x*x*-1.442695041), 1), x)"
        ),
        (
            f"t = 1/fma(0.3275911, abs(x), 1); y = copysign(fma(t*"
            f"{horner('t', -1.061405429, 1.453152027, -1.421413741, 0.284496736, -0.254829592)}, exp2(x*x*-1.442695041), 1), x)"
        ),
        (
            f"t = {horner(MAGNITUDE, 4.30638e-05, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1)}; "
            f"u = t*t; v = u*u; w = v*v; y = copysign(1 - 1/(w*w), x)"
        ),
        (
            f"t = min(max(x, -3.9), 3.9); y = t*"
            f"{horner('(t*t)', 2.0368832e-08, -1.9931972e-06, 0.00014410961, 0.0037419771, 0.05065423, 0.20051106, 1.1283789)}"
            f"/{horner('(t*t)', 0.00097030155, 0.014413898, 0.11524793, 0.51102799, 1)}"
        ),
        (
            f"copysign(1 - exp2(abs(x)*"
            f"{horner(MAGNITUDE, 0.0001818382, -0.003868379, 0.031271666, -0.150002405, -0.918061674, -1.627936482)}), x)"
        ),
    ],
}


THREADS = ("evaluation.backend=cpu", "evaluation.executor=threads")


def score_by_hand(text: str, size: int) -> float:
    problem = load_problem(load_config(shipped("configs")["erf"], THREADS))
    batch = Batch.analyze(problem.language.lowering, read_program(problem, text)[None])
    [score], [num_instructions] = problem.evaluator.evaluate(batch).objective, batch.num_instructions
    problem.close()
    assert num_instructions <= size and score > 1.0, text
    return float(score)


def is_beaten_by_run(lines: dict[int, float], *overrides: str) -> bool:
    """Whether the shipped run comes to have, for each size, a better elite with at most so many instructions.

    Its best elites of a size only get better, so that it need not go on from there.
    """
    problem = load_problem(load_config(shipped("configs")["erf"], (*THREADS, *overrides)))
    search = Search(problem)
    is_beaten = False
    for number, _ in enumerate(search.generations()):
        if number % 10 == 0:
            elites = search.elites()
            is_beaten = all(elites.objective[elites.measures[:, 0] <= size].max() > line for size, line in lines.items())
            if is_beaten:
                break
    problem.close()
    return is_beaten


@pytest.mark.parametrize(("size", "best"), [(5, 4.3067), (10, 5.0659), (20, 7.1545)])
def test_formulas_by_hand_score_what_scipy_fitted_them_to(size, best):
    assert max(score_by_hand(text, size) for text in BY_HAND[size]) == pytest.approx(best, abs=0.005)


def test_a_short_run_ends_above_the_line_that_users_write_first():
    line = score_by_hand("tanh(x*(0.1*x*x + 1.1283))", 5)
    assert line == pytest.approx(3.598, abs=0.001)
    assert is_beaten_by_run(dict.fromkeys(BY_HAND, line), "stop.evaluations=60000", "search.starts={count: 2, generations: 10}")


@pytest.mark.slow
def test_the_shipped_run_ends_above_formulas_by_hand_of_each_size():
    assert is_beaten_by_run({size: max(score_by_hand(text, size) for text in formulas) for size, formulas in BY_HAND.items()})
