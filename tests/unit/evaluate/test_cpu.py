"""evo.evaluate.cpu: runs programs on the task's points and has the task score them, with any number of threads."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from evo.errors import UserError
from evo.evaluate import Status, chunks
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import levels
from evo.pictures import Coloring, PictureStatistics, PictureSums
from evo.task import Scores, Task
from evo.workers.crew import Crew

X = np.linspace(-2.0, 2.0, 33, dtype=np.float32)
CHUNK_SIZE = 256  # of a task with so few points


class Mixed(Task):
    """Inputs and outputs of every type, one input shared by all points, one register that is both."""

    inputs = {"t": "f32", "x": "f32", "n": "u32", "k": "s32"}
    outputs = {"y": "f32", "m": "u32", "k": "s32", "x": "f32"}
    measures = {"a": (0.0, 1.0)}

    def __init__(self):
        self.threads: set[int] = set()
        self.batches: list[int] = []
        self.received = None

    def points(self):
        return {"t": np.float32(0.5), "x": X, "n": np.arange(33), "k": -np.arange(33)}

    def score(self, outputs, programs):
        self.threads.add(threading.get_ident())
        self.batches.append(len(outputs["y"]))
        self.received = outputs
        return Scores(outputs["y"].astype(np.float64).mean(axis=1), programs.num_instructions[:, None] / 8)


class Fitted(Task):
    """Two outputs, reduced against targets."""

    inputs = {"x": "f32"}
    outputs = {"y": "f32", "z": "f32"}
    measures = {"a": (0.0, 1.0)}
    reduction = "regression"

    def points(self):
        return {"x": X}

    def targets(self):
        return {"z": -X, "y": X * X}

    def score(self, outputs, programs):
        self.received = outputs
        return Scores(-outputs.mse.sum(axis=1), np.zeros((len(outputs.mse), 1)))


class Pictured(Task):
    """Pictures of complex numbers, or of colours with three outputs; their sums are taken by `score`, or without it."""

    inputs = {"x": "f32", "y": "f32"}
    measures = {"a": (0.0, 1.0)}

    def __init__(self, num_outputs: int, is_summed: bool, size: int = 32):
        self.outputs = dict.fromkeys("fgh"[:num_outputs], "f32")
        self.statistics, self.coloring = PictureStatistics(32), Coloring() if num_outputs == 2 else None
        self.kernel_sums = self.statistics.num_sums
        self.cpu_sums = PictureSums(self.statistics, self.coloring) if is_summed else None
        self.axis = np.linspace(0.0, 1.0, size, dtype=np.float32)

    def points(self):
        x, y = np.meshgrid(self.axis, self.axis)
        return {"x": x.ravel(), "y": y.ravel()}

    def score(self, outputs, programs):
        assert self.cpu_sums is None
        planes = [outputs[name] for name in self.outputs]
        sums = self.statistics.sums_of_complex(*planes, self.coloring) if self.coloring else self.statistics.sums(planes)
        return self.score_sums(sums, programs)

    def score_sums(self, sums, programs):
        self.received = sums
        return Scores(sums[:, 0], programs.num_instructions[:, None] / 8)


def language_of(task: Task) -> Language:
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


@pytest.fixture
def evaluator():
    """Makes evaluators and closes them after the test."""
    made = []

    def make(task: Task, num_threads: int | None = 1) -> CpuEvaluator:
        made.append(CpuEvaluator(language_of(task), task, num_threads, levels()[0]))
        return made[-1]

    yield make
    for each in made:
        each.close()


def rows(task: Task, *texts: str) -> np.ndarray:
    return np.stack([parse_program(language_of(task), text, "text", 16) for text in texts])


def batch_of(words: np.ndarray) -> Batch:
    """The programs, each with another number of instructions."""
    return Batch(words, np.zeros((len(words), 2), np.uint64), np.arange(len(words), dtype=np.int32))


def test_outputs_have_their_names_types_and_values(evaluator):
    task = Mixed()
    words = rows(task, "%k %n %n add_u32 %x %t add_ftz_f32", "%x %x mul_ftz_f32 1.5")
    evaluation = evaluator(task).evaluate(batch_of(words))
    y, m, k, x = (task.received[name] for name in ("y", "m", "k", "x"))
    assert (y.dtype, m.dtype, k.dtype, x.dtype) == (np.float32, np.uint32, np.int32, np.float32)
    np.testing.assert_array_equal(y, [X + np.float32(0.5), np.full(33, 1.5)])
    np.testing.assert_array_equal(m, [2 * np.arange(33), np.zeros(33)])
    np.testing.assert_array_equal(k, [-np.arange(33), np.zeros(33)])
    np.testing.assert_array_equal(x, [np.zeros(33), X * X])
    assert evaluation.status.tolist() == [Status.OK, Status.OK]
    np.testing.assert_array_equal(evaluation.objective, y.astype(np.float64).mean(axis=1))
    np.testing.assert_array_equal(evaluation.measures, [[0.0], [0.125]])


@pytest.mark.parametrize("num_threads", [1, 3])
def test_the_sums_of_a_reduction_are_scored_once_a_batch_in_order(evaluator, num_threads):
    task = Fitted()
    numbers = np.arange(3 * chunks.MAX_REDUCED + 1)
    evaluation = evaluator(task, num_threads).evaluate(batch_of(rows(task, *[f"0.0 {number}.0" for number in numbers])))
    assert task.received.mse.shape == (len(numbers), 2)
    np.testing.assert_array_equal(task.received.sum_y, np.stack([len(X) * numbers, 0 * numbers], axis=1))
    np.testing.assert_array_equal(evaluation.objective, -task.received.mse.sum(axis=1))
    assert evaluation.status.tolist() == [Status.OK] * len(numbers)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("num_outputs", [2, 3])
def test_sums_of_pictures_have_the_bits_of_stored_outputs_in_order(evaluator, num_threads, num_outputs):
    stored, summed = Pictured(num_outputs, False), Pictured(num_outputs, True)
    texts = [f"%x {number / 64} mul_ftz_f32 %y %x {number / 32} mul_ftz_f32 sin_approx_ftz_f32" for number in range(60)]
    batch = batch_of(rows(stored, *texts))
    expected = evaluator(stored).evaluate(batch)
    found = evaluator(summed, num_threads).evaluate(batch)
    np.testing.assert_array_equal(summed.received, stored.received)
    np.testing.assert_array_equal(found.objective, expected.objective)
    np.testing.assert_array_equal(found.measures, expected.measures)
    assert len(np.unique(found.objective)) == 60


def test_sums_of_outputs_that_are_no_picture_are_refused(evaluator):
    with pytest.raises(UserError, match=r"Pictured\.cpu_sums: expected outputs of type f32 and shape \(2, 1024\), got .*1089"):
        evaluator(Pictured(2, True, size=33))


@pytest.mark.parametrize("num_threads", [1, 2])
def test_the_callers_thread_scores_nothing_so_it_can_end_what_hangs(evaluator, num_threads):
    task = Mixed()
    evaluator(task, num_threads).evaluate(batch_of(rows(task, *["%x"] * (4 * CHUNK_SIZE))))
    assert 1 <= len(task.threads) <= num_threads
    assert threading.get_ident() not in task.threads


@pytest.mark.parametrize("num_threads", [1, 2])
def test_times_are_summed_over_threads(evaluator, monkeypatch, num_threads):
    """Each thread's clock shows a second for running a chunk and ten for scoring it."""
    clock = threading.local()

    def perf_counter() -> float:
        clock.looks = getattr(clock, "looks", -1) + 1
        return 20.0 * (clock.looks // 3) + (0.0, 1.0, 11.0)[clock.looks % 3]

    monkeypatch.setattr(chunks, "time", SimpleNamespace(perf_counter=perf_counter))
    evaluation = evaluator(Mixed(), num_threads).evaluate(batch_of(rows(Mixed(), *["%x"] * (3 * CHUNK_SIZE + 1))))
    assert evaluation.stats.times_s == {"evaluate_threads": 4.0, "score_threads": 40.0}


def test_a_batch_ends_where_a_thread_could_not_even_tell_of_an_error(monkeypatch):
    """As where memory is short: nobody would answer for its part."""

    def refuse(_):
        raise MemoryError

    monkeypatch.setattr("threading.excepthook", lambda _: None)
    monkeypatch.setattr("evo.workers.crew._Job.take_part", refuse)
    crew = Crew(2)
    with pytest.raises(MemoryError, match="a thread that runs programs has ended"):
        crew.map(abs, [1, 2])
    crew.close()
