"""evo.evaluate.calibration: what programs cost, measured on a clock of the tests, and what follows from it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from evo.evaluate import Evaluation, Stats, calibration
from evo.evaluate.calibration import Calibration, LaneCosts, measure_cpu, measure_lane
from evo.language.batch import Batch


def batch_of(count: int) -> Batch:
    return Batch(np.arange(count, dtype=np.uint64)[:, None], np.zeros((count, 2), np.uint64), np.ones(count, np.int32))


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless the test moves it."""
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(calibration.time, "perf_counter", lambda: now.s)
    return now


class Scorer:
    """Runs a program in 3 us and scores it in 2 us, at most five of them in one go."""

    chunk_size = 5

    def __init__(self, clock):
        self.clock, self.most = clock, 0

    def run(self, words):
        self.most = max(self.most, len(words))
        self.clock.s += 3e-6 * len(words)
        return len(words)

    def judge(self, results, num_instructions):
        assert results == len(num_instructions)
        self.clock.s += 2e-6 * results


def test_the_cpu_is_measured_by_program_in_chunks(clock):
    scorer = Scorer(clock)
    run_s, score_s = measure_cpu(scorer, batch_of(7), 1)
    assert (run_s, score_s) == (pytest.approx(3e-6), pytest.approx(2e-6))
    assert scorer.most == 5


class Gpu:
    """A GPU's evaluator with two compile workers: each program takes these seconds, and of the clock their sum."""

    def __init__(self, clock):
        self.clock = clock
        self.sizes: list[int] = []

    def evaluate(self, batch):
        count = len(batch)
        self.sizes.append(count)
        self.clock.s += 5.5e-3 * count
        stages = {"compiler_workers": 3e-3, "emission_workers": 1e-3, "load": 5e-4, "kernels": 1e-4, "score_threads": 9e-4}
        times_s = {name: seconds * count for name, seconds in stages.items()} | {"wait_for_cubins": 7.0}
        scores = np.zeros(count), np.zeros((count, 1))
        return Evaluation(np.zeros(count, np.uint8), *scores, stats=Stats(times_s, {"compile": count, "interpret": 0}))

    def environment(self):
        return {"compile_workers": 2}


def test_a_lane_is_measured_by_stage_in_about_the_time_that_is_allowed(clock):
    gpu = Gpu(clock)
    costs = measure_lane(gpu, "compile", batch_of(100), num_threads=3)
    assert costs == LaneCosts(pytest.approx(4e-3), pytest.approx(5e-4), pytest.approx(1e-4), pytest.approx(9e-4), 2, 3)
    assert costs.total_s == pytest.approx(2e-3)  # two workers compile
    assert gpu.sizes[-3:] == [int(calibration.BUDGET_S / 3 / 5.5e-3)] * 3 and set(gpu.sizes[:-3]) == {4}


def test_a_lane_that_a_gpu_has_not_costs_nothing_that_could_be_told(clock):
    assert measure_lane(Gpu(clock), "interpret", batch_of(100), num_threads=3) is None


class Interpreter(Gpu):
    """Interprets: a batch takes 400 us of the clock, and each of its programs 2 us."""

    def evaluate(self, batch):
        count = len(batch)
        self.sizes.append(count)
        self.clock.s += 4e-4 + 2e-6 * count
        times_s = {"kernels": 2e-6 * count, "score_threads": 2e-6 * count, "load": 1e-7 * count}
        return Evaluation(
            np.zeros(count, np.uint8), np.zeros(count), np.zeros((count, 1)), stats=Stats(times_s, {"interpret": count})
        )


@pytest.mark.parametrize(("batch_size", "measured"), [(64, 64), (512, 512), (4096, 4096), (1 << 18, 4096)])
def test_an_interpreted_program_costs_what_it_costs_in_a_batch_of_the_search(clock, batch_size, measured):
    gpu = Interpreter(clock)
    costs = measure_lane(gpu, "interpret", batch_of(100), 2, batch_size)
    assert costs.total_s == pytest.approx(4e-4 / measured + 2e-6)
    assert costs.total_s / (4e-4 / batch_size + 2e-6) < 1.1
    assert gpu.sizes[-1] == measured


LANE = LaneCosts(compile_s=1.2e-3, host_s=0.0, kernels_s=2e-6, score_s=1e-5, num_workers=16, num_threads=4)


@pytest.mark.parametrize(
    ("costs", "total_s"),
    [
        ({}, 7.5e-5),
        ({"host_s": 1e-4}, 1e-4),
        ({"kernels_s": 2e-4}, 2e-4),
        ({"score_s": 4e-3}, 1e-3),
        ({"compile_s": 0.0}, 2.5e-6),
    ],
)
def test_the_longest_stage_decides_what_a_lane_costs(costs, total_s):
    assert LaneCosts(**{**vars(LANE), **costs}).total_s == pytest.approx(total_s)


def test_the_fastest_is_taken_scoring_included():
    both = Calibration(1000, 20.0, 4, 6e-5, 8e-5, {"compile": LANE})
    assert both.costs() == {"cpu": pytest.approx(8e-5), "compile": pytest.approx(7.5e-5)}
    assert both.fastest() == "compile"
    assert Calibration(1000, 20.0, 4, 5e-5, 8e-5, {"compile": LANE}).fastest() == "cpu"
    assert Calibration(1000, 20.0, 4, None, 0.0, {"compile": LANE}).fastest() == "compile"


def test_the_costs_are_one_line_and_one_record():
    both = Calibration(1000, 20.0, 4, 6e-5, 8e-5, {"interpret": LaneCosts(0.0, 6e-6, 0.0, 0.0, 1, 4), "compile": LANE})
    line = (
        "a program takes: CPU 80 us (4 threads), GPU interpreted 6 us, GPU compiled 75 us (1.2 ms a core), scoring 80 us a thread"
    )
    assert str(both) == line
    record = json.loads(json.dumps(both.record()))
    assert record["cpu_s"] == 6e-5
    assert record["lanes"]["compile"] == {**vars(LANE), "total_s": pytest.approx(7.5e-5)}
