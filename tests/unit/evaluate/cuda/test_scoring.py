"""evo.evaluate.cuda.scoring: outputs scored in worker processes."""

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evo.errors import UserError
from evo.evaluate import TaskSource
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.cuda.scoring import OutputScorer
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.tasks.folder import load_task

# Three outputs at 5 points are not a whole number of words. Scores see every bit, and say which process they come from.
SOURCE = """\
import os

import numpy as np

import evo


class Bits(evo.Task):
    inputs = {{"x": "f32"}}
    outputs = {{"f": "f32", "u": "u32", "g": "f32"}}
    measures = {{"sum": (0.0, 1e9), "process": (0.0, 1e9), "instructions": (0.0, 99.0)}}

    def points(self):
        return {{"x": np.linspace(1, 2, 5, dtype=np.float32)}}

    def score(self, outputs, programs):
        {body}
        bits = [outputs["f"].view(np.uint32), outputs["u"], outputs["g"].view(np.uint32)]
        assert all(each.shape == (len(programs.num_instructions), 5) for each in bits)
        mixed = [(each * np.uint32(2654435761) >> i).astype(np.float64) for i, each in enumerate(bits)]
        sums = sum(each @ np.arange(1, 6) for each in mixed)
        process = np.full(len(sums), os.getpid())
        return evo.Scores(sums, np.stack([sums, process, programs.num_instructions], axis=1))
"""
NUM_PROGRAMS = 41
RNG = np.random.default_rng(3)
OUTPUTS = RNG.integers(0, 2**32, (NUM_PROGRAMS, 3, 5), np.uint32).view(np.float32)  # among them NaNs of all kinds
NUM_INSTRUCTIONS = np.arange(NUM_PROGRAMS, dtype=np.int32)


@pytest.fixture
def problem(make_task):
    """A task whose `score` begins with some code, its language, and its source."""

    def make(body: str = "pass"):
        folder = make_task(SOURCE.format(body=body))
        task = load_task(folder, {})
        language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
        return task, language, TaskSource(folder, {})

    return make


@pytest.fixture
def scorer(problem):
    """Makes scorers, and closes them after the test."""
    made = []

    def make(body: str = "pass", is_needed: bool = True) -> OutputScorer:
        task, language, source = problem(body)
        made.append(OutputScorer(task))
        made[-1].start_processes(language, source, 2, 60.0, is_needed=is_needed)
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_processes_give_every_program_the_scores_that_threads_give(scorer, problem):
    expected = OutputScorer(problem()[0]).score(OUTPUTS, NUM_INSTRUCTIONS)
    found = scorer().score(OUTPUTS, NUM_INSTRUCTIONS)
    assert found.objective.tobytes() == expected.objective.tobytes()
    assert found.measures[:, [0, 2]].tobytes() == expected.measures[:, [0, 2]].tobytes()
    assert set(expected.measures[:, 1]) == {os.getpid()}
    assert os.getpid() not in found.measures[:, 1]
    assert found.stats.times_s["score_workers"] > 0


def test_many_threads_share_the_processes(scorer):
    shared = scorer()
    start = threading.Barrier(3)

    def score(first: int):
        start.wait()
        return shared.score(OUTPUTS[first : first + 7], NUM_INSTRUCTIONS[first : first + 7]).measures[:, 2].tolist()

    with ThreadPoolExecutor(3) as threads:
        firsts = [0, 11, 30]
        assert list(threads.map(score, firsts)) == [list(range(first, first + 7)) for first in firsts]


UNLOADABLE = 'assert "evo.workers" not in str(__import__("sys").modules["__main__"].__spec__)'


def test_where_processes_fail_threads_score_and_a_line_says_so(scorer, capfd):
    found = scorer(UNLOADABLE, is_needed=False).score(OUTPUTS, NUM_INSTRUCTIONS)
    assert set(found.measures[:, 1]) == {os.getpid()}
    line = capfd.readouterr().err
    assert line.count("\n") == 1 and "threads go on" in line


def test_processes_that_are_needed_and_fail_are_an_error(scorer):
    with pytest.raises(UserError, match="AssertionError"):
        scorer(UNLOADABLE).score(OUTPUTS, NUM_INSTRUCTIONS)


def test_a_system_without_room_for_the_outputs_is_an_error_in_one_line(scorer, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "no space is left")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with pytest.raises(UserError, match=r"^cannot share \d+ bytes with worker processes: no space is left$"):
        scorer().score(OUTPUTS, NUM_INSTRUCTIONS)


@pytest.mark.parametrize(("executor", "in_processes"), [("auto", True), ("processes", True), ("threads", False)])
def test_the_evaluator_scores_outputs_of_the_gpu_in_processes(emulated_gpu, problem, executor, in_processes):
    task, language, source = problem()
    texts = [f"%x {i}.5 mul_ftz_f32" for i in range(20)]
    batch = Batch.analyze(language.lowering, np.stack([parse_program(language, text, "test", 8) for text in texts]))
    options = EvaluationOptions(compile_workers=1, threads=2, executor=executor, lane="compile")
    evaluator = CudaEvaluator(language, task, options, source=source)
    found = evaluator.evaluate(batch)
    evaluator.close()
    assert (os.getpid() not in found.measures[:, 1]) == in_processes
    assert (found.stats.times_s["score_workers"] > 0) == in_processes
    assert len(set(found.objective)) == len(batch)
