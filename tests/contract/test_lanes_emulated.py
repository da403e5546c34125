"""The lanes of a GPU, over a stand-in: interpreted and compiled programs give the same bits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

import evo
from evo.errors import DeviceFailure
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda import interpret
from evo.evaluate.cuda.agreement import (
    LANGUAGE,
    NAMES,
    Operands,
    different_rows,
    edge_columns,
    points_of,
    programs_of,
    results_of,
)
from evo.evaluate.cuda.choice import COMPILE, INTERPRET, LANES
from evo.evaluate.cuda.device_tests import random_programs
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program

DEFAULT = shipped_instruction_set("default")
EXACT = ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "min_ftz_f32", "max_ftz_f32", "neg_ftz_f32"]


@pytest.fixture
def lanes(emulated_gpu):
    """Gives for a language and a task an evaluator of each lane, which ends with the test, when nothing may be left."""
    made = []

    def make(language: Language, task: evo.Task, instructions=None) -> tuple[CudaEvaluator, CudaEvaluator]:
        for lane in (INTERPRET, COMPILE):
            options = EvaluationOptions(compile_workers=1, threads=2, lane=lane)
            made.append(CudaEvaluator(language, task, options, instructions=instructions))
        return made[-2], made[-1]

    yield make
    for evaluator in made:
        evaluator.close()
    assert not any(emulated_gpu.leaked().values())


def assert_same_outputs(one: dict, two: dict) -> None:
    assert not different_rows(one.values(), two.values()).size


def test_every_instruction_gives_the_same_bits_in_both_lanes(lanes):
    task = Operands(points_of([column[::7] for column in edge_columns()]))
    assert_same_outputs(*(lane.outputs(programs_of(NAMES), task.points()) for lane in lanes(LANGUAGE, task, NAMES)))


class Mixed(evo.Task):
    """Floats and integers, in and out."""

    inputs = {"x": "f32", "y": "f32", "i": "u32"}
    outputs = {"f": "f32", "u": "u32"}
    measures = {"unused": (0.0, 1.0)}

    def points(self):
        rng = np.random.default_rng(8)
        return {"x": rng.normal(size=300).astype(np.float32), "y": np.float32(0.75), "i": rng.integers(0, 2**32, 300, np.uint32)}


@pytest.mark.slow
def test_many_random_programs_give_the_same_bits_in_both_lanes(lanes):
    task = Mixed()
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    names = [
        instruction.name for instruction in DEFAULT.instructions if "mma" not in instruction.ptx and "u8" not in instruction.ptx
    ]
    one, two = lanes(language, task)
    for words in np.split(random_programs(language, names, 10_000), 4):  # a pack of all of them may take more than its limit
        assert_same_outputs(one.outputs(words, task.points()), two.outputs(words, task.points()))


class Line(evo.Task):
    """A regression whose scores show the sums."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"f": "f32", "g": "f32", "h": "f32"}
    measures = dict.fromkeys(("y", "t", "yy", "tt", "yt", "worst", "nonfinite"), (-1.0, 1.0))
    reduction = "regression"

    def __init__(self, num_points: int):
        values = np.random.default_rng(num_points).normal(size=(5, num_points)).astype(np.float32)
        values[3:, ::17] = np.float32(np.inf)  # of targets: these points are left out
        self.values = values

    def points(self):
        return {"x": self.values[0], "y": self.values[1]}

    def targets(self):
        return dict(zip("fgh", self.values[2:], strict=True))

    def score(self, sums, programs):
        columns = (sums.sum_y, sums.sum_t, sums.sum_yy, sums.sum_tt, sums.sum_yt, sums.max_abs_error, sums.num_nonfinite)
        weighted = [column[:, 0] + 3.0 * column[:, 1] + 7.0 * column[:, 2] for column in (sums.sum_squared_error, *columns)]
        return evo.Scores(weighted[0], np.stack(weighted[1:], axis=1))


@pytest.mark.parametrize("num_points", [1, 1025, pytest.param(2050, marks=pytest.mark.slow)])  # a block has 1,024
def test_sums_in_the_interpreter_are_those_of_the_cpu_bit_by_bit(lanes, num_points):
    task = Line(num_points)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, random_programs(language, EXACT, 9))
    one, _ = lanes(language, task)
    found, expected = one.evaluate(batch), CpuEvaluator(language, task, 1).evaluate(batch)
    assert found.stats.lanes == {INTERPRET: len(batch), COMPILE: 0}
    assert (expected.status == 0).any()
    assert not different_rows(results_of(found), results_of(expected)).size


class Weighted(Line):
    """The same with fewer outputs, weights, and targets that are finite but at one point of 1,500."""

    def __init__(self, num_points: int, names: str):
        super().__init__(num_points)
        self.outputs, self.names = dict.fromkeys(names, "f32"), names
        self.values[2:] = np.random.default_rng(9).normal(size=(3, num_points))
        self.values[2, 1500:1501] = np.nan

    def targets(self):
        return dict(zip(self.names, self.values[2:], strict=False))

    def weights(self):
        return np.random.default_rng(5).uniform(0.5, 2.0, self.values.shape[1]).astype(np.float32)

    def score(self, sums, programs):
        columns = (sums.sum_y, sums.sum_t, sums.sum_yy, sums.sum_tt, sums.sum_yt, sums.max_abs_error, sums.num_nonfinite)
        total, *measures = (column @ np.arange(1.0, 1.0 + len(self.names)) for column in (sums.sum_squared_error, *columns))
        return evo.Scores(total + sums.weight[:, 0], np.stack(measures, axis=1))


@pytest.mark.parametrize(
    ("num_points", "num_programs", "names", "order"),
    [(20, 41, "f", "together"), (33, 19, "f", "together"), (300, 5, "fg", "warps reversed"), (2500, 3, "f", "warps")],
)
def test_sums_of_several_programs_at_once_are_those_of_the_cpu(
    lanes, emulated_gpu, monkeypatch, num_points, num_programs, names, order
):
    """Of tiles of 32 to 1,024 points, with and without gaps, one after the other in a block: more than fit into it at once."""
    monkeypatch.setattr("evo.evaluate.cuda.interpreter_kernels.THREADS_PER_MULTIPROCESSOR", 1)
    task = Weighted(num_points, names)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    emulated_gpu.order = order
    words = random_programs(language, ["add_ftz_f32", "mul_ftz_f32", "min_ftz_f32", "rcp_approx_ftz_f32"], num_programs)
    batch = Batch.analyze(language.lowering, words)
    one, _ = lanes(language, task)
    found, expected = one.evaluate(batch), CpuEvaluator(language, task, 1).evaluate(batch)
    assert found.stats.lanes == {INTERPRET: len(batch), COMPILE: 0}
    assert not different_rows(results_of(found), results_of(expected)).size


@pytest.mark.parametrize("lane", [INTERPRET, COMPILE])
def test_the_lane_of_a_run_follows_from_its_points(emulated_gpu, monkeypatch, lane):
    monkeypatch.setattr("evo.evaluate.cuda.choice.MAX_INTERPRETED_POINTS", 1000 if lane == INTERPRET else 1)
    task = Mixed()
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, random_programs(language, EXACT, 4))
    monkeypatch.setattr(task, "score", lambda outputs, programs: mean_scores(outputs), raising=False)
    with closing(CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, threads=1))) as evaluator:
        assert evaluator.evaluate(batch).stats.lanes == {**dict.fromkeys(LANES, 0), lane: len(batch)}


def mean_scores(outputs: dict) -> evo.Scores:
    means = outputs["f"].mean(axis=1, dtype=np.float64)
    return evo.Scores(means, means[:, None])


@pytest.mark.parametrize(("work", "block_rows"), [(0, 128), (1 << 23, 1)], ids=["small packs", "a pack in blocks"])
def test_what_the_interpreter_cannot_run_is_compiled_and_counted(lanes, monkeypatch, work, block_rows):
    monkeypatch.setattr(interpret, "_MIN_PROGRAMS", 3)
    monkeypatch.setattr(interpret, "_MIN_WORK", work)
    monkeypatch.setattr("evo.native.row_threads.MIN_ROWS", block_rows)
    task = Line(70)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    texts = [f"%x {i}.0 sub_ftz_f32 {'' if i % 3 else 'sin_approx_ftz_f32'} %y add_ftz_f32" for i in range(1, 20)]
    batch = Batch.analyze(language.lowering, np.stack([parse_program(language, text, "test", 8) for text in texts]))
    one, two = lanes(language, task, ["sub_ftz_f32", "add_ftz_f32"])
    found, expected = one.evaluate(batch), two.evaluate(batch)
    assert (found.stats.lanes, expected.stats.lanes) == ({INTERPRET: 13, COMPILE: 6}, {INTERPRET: 0, COMPILE: 19})
    assert found.objective.tobytes() == expected.objective.tobytes()
    assert found.measures.tobytes() == expected.measures.tobytes()
    assert len(set(found.objective)) == len(texts)


def test_a_pack_has_room_for_programs_of_usual_length(emulated_gpu):
    task = Line(2)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    evaluator, launches = CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, threads=1, lane=INTERPRET)), []
    for length in (1, 100):
        texts = [f"%x {i}.0 {'%y add_ftz_f32 ' * length}" for i in range(60)]
        words = np.stack([parse_program(language, text, "test", 210) for text in texts])
        before = emulated_gpu.num_calls("launch")
        assert evaluator.evaluate(Batch.analyze(language.lowering, words)).stats.lanes[INTERPRET] == 60
        launches.append(emulated_gpu.num_calls("launch") - before)
    evaluator.close()
    assert launches[0] == launches[1] > 0


@pytest.mark.parametrize("asks_for_outputs", [False, True])
def test_a_device_that_fails_under_the_interpreter_is_left_alone(emulated_gpu, asks_for_outputs):
    task = Line(8)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, random_programs(language, EXACT, 4))
    evaluator = CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, threads=1, lane=INTERPRET))
    emulated_gpu.configure("fault=launch:1:719")
    with pytest.raises(DeviceFailure, match="CUDA_ERROR_LAUNCH_FAILED"):
        evaluator.outputs(batch.words, task.points()) if asks_for_outputs else evaluator.evaluate(batch)
    calls = emulated_gpu.num_calls("free")
    evaluator.close()
    assert emulated_gpu.num_calls("free") == calls


@pytest.mark.parametrize("lane", [INTERPRET, COMPILE])
def test_an_evaluator_works_on_whatever_thread_calls_it(emulated_gpu, lane):
    """As on a Dask worker with several: a context is current on the thread that made it alone."""
    task = Line(20)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, random_programs(language, EXACT, 4))
    evaluator = CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, threads=1, lane=lane))
    first = evaluator.evaluate(batch)
    outputs = evaluator.outputs(batch.words, task.points())
    with ThreadPoolExecutor(1) as thread:
        elsewhere = thread.submit(evaluator.evaluate, batch).result()
        others = thread.submit(evaluator.outputs, batch.words, task.points()).result()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(evaluator.close).result()
    np.testing.assert_array_equal(elsewhere.objective, first.objective)
    assert_same_outputs(others, outputs)
    assert not any(emulated_gpu.leaked().values())


def test_an_empty_batch_has_empty_results(lanes):
    task = Line(8)
    language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
    one, _ = lanes(language, task)
    evaluation = one.evaluate(Batch.analyze(language.lowering, np.zeros((0, 10), np.uint64)))
    assert evaluation.status.shape == (0,) and evaluation.measures.shape == (0, 7)
