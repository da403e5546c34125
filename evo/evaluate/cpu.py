"""The CPU evaluator: programs run by the virtual machine of ptx_vm.h, in threads over programs.

Owns the threads. A batch is cut into chunks of a fixed size, so that neither the number of threads nor the order of
completion can show in a result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

import numpy as np

from evo.errors import UserError
from evo.evaluate import CHUNK_SIZE, Evaluation, by_name, join, score_batch
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.task import Regression, Task, point_arrays, target_array, task_errors

WAKE_S = 0.1  # the longest time for which the calling thread waits without looking up


class CpuEvaluator:
    """Runs and scores programs on this machine's cores.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        num_threads: threads, each working on one chunk at a time; None: one for each core this process may use.
        level: SIMD level of the virtual machine, or None for the best that this CPU has; results are the same.

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
        self.num_threads = num_threads or len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self.num_threads, thread_name_prefix="evaluate") if self.num_threads > 1 else None

    def evaluate(self, words: np.ndarray, num_instructions: np.ndarray) -> Evaluation:
        chunks = [slice(start, start + CHUNK_SIZE) for start in range(0, len(words), CHUNK_SIZE)]
        parts = self._run([partial(self._evaluate_chunk, words[chunk], num_instructions[chunk]) for chunk in chunks])
        return join(parts, len(self._task.measures))

    def outputs(self, words: np.ndarray, points: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        inputs, _ = self._point_arrays(points, "picture_points()")
        return by_name(self._task, self._machine.store(words, inputs))

    def environment(self) -> dict[str, str | int]:
        return {"backend": "cpu", "simd": self._machine.level, "threads": self.num_threads}

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()

    def _run(self, calls: list[Callable[[], Evaluation]]) -> list[Evaluation]:
        """The results of all calls, in order."""
        if not self._pool:
            return [call() for call in calls]
        futures = [self._pool.submit(call) for call in calls]
        # Python handles signals in the main thread, but the system may hand one to any thread, which wakes nobody: a main
        # thread that waited without end would not see Ctrl-C before the batch is done.
        while wait(futures, WAKE_S).not_done:
            pass
        return [future.result() for future in futures]

    def _evaluate_chunk(self, words: np.ndarray, num_instructions: np.ndarray) -> Evaluation:
        start = time.perf_counter()
        if self._targets is None:
            results = by_name(self._task, self._machine.store(words, self._inputs))
        else:
            sums = self._machine.reduce(words, self._inputs, self._targets)
            results = Regression(**{name: sums[name].astype(np.float64) for name in sums.dtype.names})
        evaluated = time.perf_counter()
        part = score_batch(self._task, results, num_instructions)
        scored = time.perf_counter()
        return replace(part, times_s={"evaluate_threads": evaluated - start, "score_threads": scored - evaluated})

    def _point_arrays(self, points: dict[str, np.ndarray], method: str) -> tuple[list[np.ndarray | None], int]:
        arrays, num_points = point_arrays(self._task, points, method)
        return [*arrays, *[None] * (len(self._language.registers) - len(arrays))], num_points


def check_cpu_meaning(language: Language, names: list[str], key: str) -> None:
    """Refuses instructions that the CPU evaluator cannot run.

    Raises:
        UserError: one of the names has no CPU meaning.
    """
    unsupported = [name for name in names if name in VirtualMachine(language.lowering).unsupported]
    if unsupported:
        raise UserError(f"{key}: no CPU meaning for {', '.join(unsupported)}: take them out, or use a GPU backend")
