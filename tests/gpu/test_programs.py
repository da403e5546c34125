"""Whole programs and packs: what a program computes on the GPU depends on the program alone."""

from pathlib import Path

import numpy as np
import pytest
from float_edges import random_bits

import evo
from evo.compile.packing import Packing
from evo.evaluate import Status
from evo.evaluate.cuda.agreement import BOUNDS, EXACT, LANGUAGE, NAMES, programs_of
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, LANES
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.language.batch import Batch
from evo.storage.disk_cache import DiskCache
from evo.task_folder import load_task

from .conftest import Points, language_of, random_programs

APPROXIMATE = tuple(BOUNDS)


def points_task(num_points: int = 1000) -> Points:
    """Random bits; c is the same at all points."""
    values = {name: random_bits(seed, 2 * num_points)[num_points // 2 :][:num_points] for seed, name in enumerate("abcuvw")}
    floats = {name: values[name].view(np.float32) for name in "ab"}
    return Points(values | floats | {"c": np.float32(0.75)})


def assert_same(one, two) -> None:
    for name in ("status", "objective", "measures"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name


def test_programs_of_exact_instructions_have_the_same_scores_on_both(both):
    task = points_task()
    cpu, gpu = both(task)
    words = random_programs(language_of(task), EXACT, 700)
    batch = Batch.analyze(language_of(task).lowering, words)
    expected = cpu.evaluate(batch)
    assert len(np.unique(expected.objective)) > 300
    assert_same(gpu.evaluate(batch), expected)


@pytest.mark.parametrize(("sites", "kernels"), [(1, 1), (1, 3), (7, 1), (64, 2), (128, 1), (1024, 1), (64, 64)])
def test_no_packing_changes_a_score(both, sites, kernels):
    task = points_task(300)
    cpu, gpu = both(task, EvaluationOptions(packing=Packing(sites_per_kernel=sites, kernels_per_module=kernels), lane="compile"))
    words = random_programs(language_of(task), EXACT, min(3 * sites * kernels + 2, 1100), 40)
    batch = Batch.analyze(language_of(task).lowering, words)
    assert_same(gpu.evaluate(batch), cpu.evaluate(batch))


@pytest.mark.parametrize("num_points", [1, 31, 255, 256, 257, 70_000])
def test_any_number_of_points_is_covered(both, num_points):
    task = points_task(num_points)
    cpu, gpu = both(task)
    words = random_programs(language_of(task), EXACT, 40)
    batch = Batch.analyze(language_of(task).lowering, words)
    assert_same(gpu.evaluate(batch), cpu.evaluate(batch))


class Sums(evo.Task):
    """Regression of two outputs; the measures see every sum."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"f": "f32", "g": "f32"}
    measures = dict.fromkeys(("y", "t", "yy", "tt", "yt", "worst", "nonfinite", "points"), (-1.0, 1.0))
    reduction = "regression"

    def __init__(self, num_points: int):
        rng = np.random.default_rng(5)
        self.x, self.y, f, g = rng.normal(size=(4, num_points)).astype(np.float32) * 10
        self.goals = {"f": f, "g": g}

    def points(self):
        return {"x": self.x, "y": self.y}

    def targets(self):
        return self.goals

    def score(self, sums, programs):
        columns = (
            sums.sum_y,
            sums.sum_t,
            sums.sum_yy,
            sums.sum_tt,
            sums.sum_yt,
            sums.max_abs_error,
            sums.num_nonfinite,
            sums.num_points,
        )
        return evo.Scores(
            sums.sum_squared_error.sum(axis=1), np.stack([column[:, 0] - column[:, 1] for column in columns], axis=1)
        )


@pytest.mark.parametrize("num_points", [1, 1000, 5000, 100_001])
def test_sums_of_a_regression_are_those_of_the_cpu_bit_by_bit(both, num_points):
    task = Sums(num_points)
    cpu, gpu = both(task)
    names = tuple(name for name in EXACT if "u32" not in name)
    words = random_programs(language_of(task), names, 200 if num_points <= 5000 else 40)
    batch = Batch.analyze(language_of(task).lowering, words)
    expected = cpu.evaluate(batch)
    assert (expected.status == Status.OK).mean() > 0.5
    assert_same(gpu.evaluate(batch), expected)


def test_results_depend_neither_on_workers_nor_the_cache_nor_the_order_nor_the_assembler(both, tmp_path):
    task = points_task(500)
    words = random_programs(language_of(task), (*EXACT, *APPROXIMATE), 400)
    batch = Batch.analyze(language_of(task).lowering, words)
    cache = DiskCache(tmp_path)
    _, gpu = both(
        task,
        EvaluationOptions(compile_workers=1, packing=Packing(sites_per_kernel=16, kernels_per_module=1), lane="compile"),
        cache=cache,
    )
    expected = gpu.evaluate(batch)
    assert_same(gpu.evaluate(batch), expected)  # out of the cache
    _, other = both(
        task,
        EvaluationOptions(
            compile_workers=3, packing=Packing(sites_per_kernel=50, kernels_per_module=3), opt_level=3, lane="compile"
        ),
    )
    order = np.random.default_rng(2).permutation(len(words))
    shuffled = other.evaluate(batch[order])
    for name in ("status", "objective", "measures"):
        assert getattr(shuffled, name).tobytes() == getattr(expected, name)[order].tobytes()


def test_in_a_tasks_own_kernel_interpreted_programs_have_the_bits_of_compiled_ones():
    """Every instruction, in a kernel whose threads part ways."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    task = load_task(Path(__file__).parents[1] / "data" / "kernel_bits", {})
    batch = Batch.analyze(LANGUAGE.lowering, programs_of(NAMES))
    found = {}
    for lane in LANES:
        evaluator = CudaEvaluator(LANGUAGE, task, EvaluationOptions(compile_workers=1, lane=lane), instructions=NAMES)
        found[lane] = evaluator.evaluate(batch)
        evaluator.close()
    assert found[INTERPRET].lanes[INTERPRET] > 0.9 * len(batch)
    assert_same(found[INTERPRET], found[COMPILE])
