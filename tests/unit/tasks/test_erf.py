"""configs/erf.yaml: its run against formulas that people write by hand, their constants fitted by SciPy in float64."""

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


@pytest.fixture
def problem():
    """Of the shipped config, on the CPU."""
    problem = load_problem(load_config(shipped("configs")["erf"], ("evaluation.backend=cpu", "evaluation.executor=threads")))
    yield problem
    problem.close()


def test_the_shipped_run_ends_above_formulas_by_hand_of_each_size(problem):
    lines = {}
    for size, formulas in BY_HAND.items():
        batches = [Batch.analyze(problem.language.lowering, read_program(problem, text)[None]) for text in formulas]
        assert max(int(batch.num_instructions[0]) for batch in batches) <= size
        lines[size] = max(float(problem.evaluator.evaluate(batch).objective[0]) for batch in batches)
    assert 12 < lines[5] < lines[10] < lines[20]
    search = Search(problem)
    for _, _ in zip(range(40), search.generations(), strict=False):
        elites = search.elites()
        best = {size: elites.objective[elites.measures[:, 0] <= size].max() for size in lines}
        if all(best[size] >= line for size, line in lines.items()):
            return  # its best elites of a size only get better
    pytest.fail(f"{best} against {lines}")
