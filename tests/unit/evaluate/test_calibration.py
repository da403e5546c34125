"""evo.evaluate.calibration: what programs cost, measured on a clock of the tests, and what follows from it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from evo.evaluate import Evaluation, Stats, calibration
from evo.evaluate.calibration import Calibration, measure_cpu, measure_gpu
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
    """A GPU's evaluator in a lane: a batch takes 400 us of the clock, and each program these seconds."""

    def __init__(self, clock, lane: str, program_s: float):
        self.clock, self.lane, self.program_s = clock, lane, program_s
        self.sizes: list[int] = []

    def evaluate(self, batch):
        count = len(batch)
        self.sizes.append(count)
        self.clock.s += 4e-4 + self.program_s * count
        lanes = {"compile": 0, "interpret": 0} | {self.lane: count}
        return Evaluation(np.zeros(count, np.uint8), np.zeros(count), np.zeros((count, 1)), stats=Stats({}, lanes))


def test_compiled_programs_are_measured_in_about_the_time_that_is_allowed(clock):
    gpu = Gpu(clock, "compile", 5.5e-3)
    assert measure_gpu(gpu, batch_of(100), 1 << 18) == ("compile", pytest.approx(5.5e-3, rel=0.02))
    assert set(gpu.sizes[-3:]) == {11} and set(gpu.sizes[:-3]) == {4}


@pytest.mark.parametrize(("batch_size", "measured"), [(64, 64), (512, 512), (4096, 4096), (1 << 18, 4096)])
def test_an_interpreted_program_costs_what_it_costs_in_a_batch_of_the_search(clock, batch_size, measured):
    gpu = Gpu(clock, "interpret", 2e-6)
    lane, gpu_s = measure_gpu(gpu, batch_of(100), batch_size)
    assert (lane, gpu_s) == ("interpret", pytest.approx(4e-4 / measured + 2e-6))
    assert gpu.sizes[-1] == measured


def test_the_fastest_is_taken_scoring_included():
    both = Calibration(1000, 20.0, 4, 6e-5, 8e-5, "compile", 7.5e-5)
    assert both.costs() == {"cpu": pytest.approx(8e-5), "compile": 7.5e-5}
    assert both.fastest() == "compile"
    assert Calibration(1000, 20.0, 4, 5e-5, 8e-5, "compile", 7.5e-5).fastest() == "cpu"
    assert Calibration(1000, 20.0, 4, None, 0.0, "compile", 7.5e-5).fastest() == "compile"


def test_the_costs_are_one_line_and_one_record():
    both = Calibration(1000, 20.0, 4, 6e-5, 8e-5, "interpret", 6e-6)
    assert str(both) == "a program takes: CPU 80 us (4 threads), GPU interpreted 6 us, scoring 80 us a thread"
    record = json.loads(json.dumps(both.record()))
    assert (record["cpu_s"], record["lane"], record["gpu_s"]) == (6e-5, "interpret", 6e-6)
