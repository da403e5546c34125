"""The CPU evaluator: the virtual machine of ptx_vm.h, with threads over programs.

Owns the threads. It cuts batches into chunks of a fixed size, so results depend neither on the number of threads nor on the
order of completion. Knows nothing of the GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import CHUNK_SIZE, Evaluation, by_name, join, score_batch
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.task import Regression, Task, point_arrays, target_array, task_errors

WAKE_S = 0.1  # longest uninterrupted wait of the calling thread, so that it sees Ctrl-C


class CpuEvaluator:
    """Runs and scores programs on this machine's cores.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        num_threads: None: one for each core that this process may use.
        level: the virtual machine's SIMD level; None: this CPU's best. All levels give the same results.

    Raises:
        UserError: the task's points or targets are malformed, or raise.
    """

    def __init__(self, language: Language, task: Task, num_threads: int | None = None, level: str | None = None):
        self._language = language
        self._task = task
        self._machine = VirtualMachine(language.lowering, level)
        with task_errors(type(task), "points"):
            points = task.points()
        self._inputs, self._num_points = self._point_arrays(points, "points()")
        self._targets = target_array(task, self._num_points) if task.reduction else None
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self._num_threads, thread_name_prefix="evaluate") if self._num_threads > 1 else None

    @property
    def device(self) -> str:
        """Always `CPU`."""
        return "CPU"

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`, chunk by chunk on the threads."""
        chunks = [slice(start, start + CHUNK_SIZE) for start in range(0, len(batch), CHUNK_SIZE)]
        parts = self._run([partial(self._evaluate_chunk, batch[chunk]) for chunk in chunks])
        return join(parts, len(self._task.measures))

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`, on the calling thread."""
        inputs, _ = self._point_arrays(points, "picture_points()")
        return by_name(self._task, self._machine.store(words, inputs))

    def environment(self) -> dict[str, str | int]:
        """SIMD level and number of threads."""
        return {"simd": self._machine.level, "threads": self._num_threads}

    def close(self) -> None:
        """Ends the threads."""
        if self._pool:
            self._pool.shutdown()

    def _run(self, calls: list[Callable[[], Evaluation]]) -> list[Evaluation]:
        """The results of all calls, in order."""
        if not self._pool:
            return [call() for call in calls]
        futures = [self._pool.submit(call) for call in calls]
        # Python handles signals in the main thread. The system may deliver Ctrl-C to another one, which does not wake the main
        # thread: without a time limit it would see the signal only after the batch.
        while wait(futures, WAKE_S).not_done:
            pass
        return [future.result() for future in futures]

    def _evaluate_chunk(self, batch: Batch) -> Evaluation:
        start = time.perf_counter()
        results: Regression | dict[str, NDArray[Any]]
        if self._targets is None:
            results = by_name(self._task, self._machine.store(batch.words, self._inputs))
        else:
            sums = self._machine.reduce(batch.words, self._inputs, self._targets)
            results = Regression(**{field.name: sums[field.name].astype(np.float64) for field in fields(Regression)})
        evaluated = time.perf_counter()
        part = score_batch(self._task, results, batch.num_instructions)
        scored = time.perf_counter()
        return replace(part, times_s={"evaluate_threads": evaluated - start, "score_threads": scored - evaluated})

    def _point_arrays(self, points: dict[str, NDArray[Any]], method: str) -> tuple[list[NDArray[Any] | None], int]:
        arrays, num_points = point_arrays(self._task, points, method)
        return [*arrays, *[None] * (len(self._language.registers) - len(arrays))], num_points


def without_cpu_meaning(language: Language, names: Sequence[str]) -> list[str]:
    """The names of instructions that the virtual machine cannot run."""
    unsupported = VirtualMachine(language.lowering).unsupported
    return [name for name in names if name in unsupported]
