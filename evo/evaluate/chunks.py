"""Chunks: the programs that are run and scored in one go.

Owns their size, which decides no result, and what is done with one. A chunk's size depends on the task alone, never on the
number of threads or processes.
"""

from __future__ import annotations

import time
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation, by_name, score_batch
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native import ptx_vm
from evo.native.ptx_vm import VirtualMachine
from evo.task import Regression, Task, point_arrays, target_array, task_errors

OUTPUT_BYTES = 1 << 20  # of one chunk: fits a core's L2 cache
MIN_CHUNK, MAX_CHUNK = 8, 256
MEASURE_S = 0.01  # for each SIMD level
NUM_MEASURED = 16  # programs


def chunk_size(num_points: int, num_outputs: int) -> int:
    """Programs of a chunk: as many as have `OUTPUT_BYTES` of 4-byte outputs, within bounds."""
    return min(max(OUTPUT_BYTES // (4 * num_points * num_outputs), MIN_CHUNK), MAX_CHUNK)


class ChunkScorer:
    """Runs programs at a task's points and has the task score them. Safe to use from many threads at once.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        level: the virtual machine's SIMD level; None: this CPU's best. All levels give the same results.

    Raises:
        UserError: the task's points or targets are malformed, or raise.
    """

    def __init__(self, language: Language, task: Task, level: str | None = None):
        self.task = task
        self._language = language
        self._machine = VirtualMachine(language.lowering, level)
        with task_errors(type(task), "points"):
            points = task.points()
        self._inputs, num_points = self._point_arrays(points, "points()")
        self._targets = target_array(task, num_points) if task.reduction else None
        self.chunk_size = chunk_size(num_points, len(task.outputs))

    @property
    def level(self) -> str:
        """The SIMD level in use."""
        return self._machine.level

    def score(self, words: NDArray[np.uint64], num_instructions: NDArray[np.int32]) -> Evaluation:
        """The results of a chunk. times_s: `evaluate` and `score`."""
        start = time.perf_counter()
        results: Regression | dict[str, NDArray[Any]]
        if self._targets is None:
            results = by_name(self.task, self._machine.store(words, self._inputs))
        else:
            sums = self._machine.reduce(words, self._inputs, self._targets)
            results = Regression(**{field.name: sums[field.name].astype(np.float64) for field in fields(Regression)})
        evaluated = time.perf_counter()
        part = score_batch(self.task, results, num_instructions)
        scored = time.perf_counter()
        return replace(part, times_s={"evaluate": evaluated - start, "score": scored - evaluated})

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`."""
        inputs, _ = self._point_arrays(points, "picture_points()")
        return by_name(self.task, self._machine.store(words, inputs))

    def choose_level(self, batch: Batch) -> None:
        """Runs some of the programs at the two widest SIMD levels in turn, and keeps the faster level."""
        words = np.ascontiguousarray(batch.words[:NUM_MEASURED])
        machines = [VirtualMachine(self._language.lowering, level) for level in ptx_vm.levels()[-2:]]
        best_s = [float("inf")] * len(machines)
        spent_s = 0.0
        while spent_s < MEASURE_S * len(machines):
            for index, machine in enumerate(machines):
                start = time.perf_counter()
                machine.store(words, self._inputs)
                taken_s = time.perf_counter() - start
                best_s[index] = min(best_s[index], taken_s)
                spent_s += taken_s
        self._machine = machines[best_s.index(min(best_s))]

    def _point_arrays(self, points: dict[str, NDArray[Any]], method: str) -> tuple[list[NDArray[Any] | None], int]:
        arrays, num_points = point_arrays(self.task, points, method)
        return [*arrays, *[None] * (len(self._language.registers) - len(arrays))], num_points
