"""A task whose scores say which process they come from, for tests of where programs are scored."""

import os

import numpy as np
import pytest

from evo.evaluate import TaskSource
from evo.evaluate.chunks import MAX_CHUNK
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import levels
from evo.tasks.folder import load_task

PARENT = os.getpid()

# Scores with the number of the process, so that a test sees where it was; `top` and `body` decide what else happens.
SOURCE = """\
import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

import evo

{top}


class Where(evo.Task):
    inputs = {{"x": "f32"}}
    outputs = {{"y": "f32"}}
    measures = {{"process": (0.0, 1e9)}}

    def __init__(self, marker: str = ""):
        self.marker = Path(marker)

    def points(self):
        assert "evo.workers" not in str(sys.modules["__main__"].__spec__)  # workers share the array
        return {{"x": np.linspace(0, 1, 5, dtype=np.float32)}}

    def score(self, outputs, programs):
        {body}
        y = outputs["y"][:, 0]
        return evo.Scores(y, np.full((len(y), 1), os.getpid()))
"""


def source(body: str = "", top: str = "") -> str:
    return SOURCE.format(body=body, top=top)


SCORE_LINE = 1 + SOURCE.splitlines().index("    def score(self, outputs, programs):")


@pytest.fixture
def evaluator(make_task):
    """Makes evaluators of a task with this body, and closes them after the test."""
    made = []

    def make(
        body: str = "",
        options: dict | None = None,
        number: int = 2,
        executor: str = "processes",
        top: str = "",
        **rest,
    ) -> CpuEvaluator:
        folder = make_task(source(body, top), f"task_{len(made)}")
        task = load_task(folder, options or {})
        origin = TaskSource(folder, options or {})
        made.append(CpuEvaluator(language_of(task), task, number, levels()[0], executor=executor, source=origin, **rest))
        return made[-1]

    yield make
    for each in made:
        each.close()


def language_of(task) -> Language:
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def numbers(count: int, max_length: int = 4) -> Batch:
    """Programs that compute 0.0, 1.0, 2.0, ..."""
    language = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))
    words = np.zeros((count, max_length), np.uint64)
    for number in range(count):
        words[number] = parse_program(language, f"{number}.0", "text", max_length)
    return Batch.analyze(language.lowering, words)


def processes_of(evaluation) -> set[int]:
    return set(evaluation.measures[:, 0].astype(int))


def places(each: CpuEvaluator, num_batches: int) -> str:
    """The lane that scores each batch: t for threads, p for processes."""
    found = ""
    for _ in range(num_batches):
        evaluation = each.evaluate(numbers(2 * MAX_CHUNK))
        assert evaluation.objective.tolist() == [float(number) for number in range(2 * MAX_CHUNK)]
        found += "t" if processes_of(evaluation) == {PARENT} else "p"
    return found
