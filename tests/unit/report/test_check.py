"""evo.report.check: the verdict counts elites whose objectives differ; the report lists them, worst first."""

import numpy as np
import pytest

from evo.evaluate import Evaluation, finite_only
from evo.report.check import CheckReport


def evaluation(objective) -> Evaluation:
    objective = np.array(objective, float)
    return finite_only(objective, np.zeros((len(objective), 2)))


def report(cpu, gpu, is_accurate=None) -> CheckReport:
    is_accurate = np.ones(len(cpu), bool) if is_accurate is None else is_accurate
    return CheckReport([f"cell {i}" for i in range(len(cpu))], "GPU of the tests", evaluation(cpu), evaluation(gpu), is_accurate)


def test_programs_that_amplify_rounding_pass():
    assert report([1.0] * 100, [1.0] * 51 + [1.0099] * 49).passed


@pytest.mark.parametrize(("difference", "passes"), [(4.9e-6, True), (5.1e-6, False)])
def test_half_of_the_accurate_elites_must_be_near(difference, passes):
    """A wrong instruction may move every elite by less than the tolerance."""
    cpu = np.ones(100)
    assert report(cpu, cpu + difference).passed is passes
    is_accurate = np.arange(100) < 40
    assert report(cpu, np.where(is_accurate, cpu, cpu + 0.005), is_accurate).passed
    assert report(cpu, np.where(is_accurate, cpu + difference, cpu), is_accurate).passed is passes
    assert report(cpu, cpu + 0.005, np.zeros(100, bool)).passed


@pytest.mark.parametrize(("num_apart", "passes"), [(3, True), (4, False)])
def test_three_elites_in_a_hundred_may_differ(num_apart, passes):
    cpu = np.ones(100)
    gpu = cpu.copy()
    gpu[:num_apart] += 0.5
    assert report(cpu, gpu).passed is passes


def test_a_program_differs_if_it_fails_on_one_side_only():
    np.testing.assert_array_equal(report([np.nan, np.nan, 1.0], [np.nan, 1.0, 1.0]).difference, [0.0, np.inf, 0.0])


def test_elites_that_differ_are_listed_worst_first():
    lines = report([1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 5.0, 4.001]).text().splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("cell")] == [["cell", "2"], ["cell", "0"]]
    assert "CPU 3  GPU 5" in lines[-2]
    shares = {line[:26].strip(): line[27:] for line in lines}
    assert shares["bit-identical scores"] == "25.00%"
    assert shares["objective within 0.01"] == "50.00%"
    assert shares["verdict"].startswith("FAILED")
