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


BY_HAND = {  # of at most so many instructions, the best of fifteen
    5: f"tanh(x*{horner('(x*x)', -0.00181362, 0.10414107, 1.12812424)})",
    10: f"copysign(1 - exp2(abs(x)*{horner('abs(x)', 0.01878028, -0.1355936, -0.92447748, -1.62706888)}), x)",
    20: (
        f"t = min(max(x, -3.9), 3.9); y = t*"
        f"{horner('(t*t)', 2.0368832e-08, -1.9931972e-06, 0.00014410961, 0.0037419771, 0.05065423, 0.20051106, 1.1283789)}"
        f"/{horner('(t*t)', 0.00097030155, 0.014413898, 0.11524793, 0.51102799, 1)}"
    ),
}


def test_the_shipped_run_ends_above_formulas_by_hand_of_each_size():
    problem = load_problem(load_config(shipped("configs")["erf"], ("evaluation.backend=cpu", "evaluation.executor=threads")))
    lines = {}
    for size, text in BY_HAND.items():
        batch = Batch.analyze(problem.language.lowering, read_program(problem, text)[None])
        assert batch.num_instructions[0] <= size
        [lines[size]] = problem.evaluator.evaluate(batch).objective
    assert 13 < lines[5] < lines[10] < lines[20]
    search = Search(problem)
    for _, _ in zip(range(40), search.generations(), strict=False):
        elites = search.elites()
        best = {size: elites.objective[elites.measures[:, 0] <= size].max() for size in lines}
        if all(best[size] >= line for size, line in lines.items()):
            break  # its best elites of a size only get better
    else:
        pytest.fail(f"{best} against {lines}")
    problem.close()
