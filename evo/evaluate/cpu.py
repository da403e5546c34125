"""The CPU evaluator: the virtual machine of ptx_vm.h, on threads or processes over chunks of programs.

Owns the choice between threads and processes. It decides no result: chunks depend on the task alone, and are joined in order.
Knows nothing of the GPU.
"""

import faulthandler
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation, PickledTask, Stats, TaskSource
from evo.evaluate.chunks import MAX_REDUCED, ChunkScorer, slices, whole
from evo.evaluate.options import ExecutorName
from evo.evaluate.scoring_pool import ScoringPool, WorkerError, scoring_in_time
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.task import Task
from evo.tasks.answers import method_place
from evo.workers.crew import Crew

SCORE_SECONDS = 300.0
# Work of threads before processes start for a task that this process has made: most such searches take less time than those do.
PATIENCE_S = 2.0


class CpuEvaluator:
    """Runs and scores programs on this machine's cores.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        num_threads: threads or processes; None: one for each core that this process may use.
        level: the virtual machine's SIMD level; None: the widest. All levels give the same results.
        executor: `processes` run a `score` in parallel that holds Python's interpreter lock, and a task that crashes does not end
            this process. `auto`: threads if all but the scores of a whole batch is native, by a reduction or `cpu_sums`, or if
            there is one; else processes, and threads if processes fail. With a task that this process has made, processes
            start when threads have worked for `PATIENCE_S`.
        source: where processes find the task, or the task itself; None: there are only threads.
        score_seconds: limit for running and scoring a chunk.

    Raises:
        UserError: the task's points or targets are malformed, or raise; or processes cannot start.
    """

    def __init__(
        self,
        language: Language,
        task: Task,
        num_threads: int | None = None,
        level: str | None = None,
        *,
        executor: ExecutorName = "auto",
        source: TaskSource | PickledTask | None = None,
        score_seconds: float = SCORE_SECONDS,
    ):
        if not faulthandler.is_enabled():
            faulthandler.enable(2)  # where a task crashes this process
        self._language = language
        self._scorer = ChunkScorer(language, task, level)
        self._score_seconds = score_seconds
        self._location = method_place(type(task), "simulate" if task.has_simulation() else "score")
        self._crew = Crew(num_threads or len(os.sched_getaffinity(0)))
        self._processes: ScoringPool | None = None
        self._may_fail = executor == "auto"  # processes, and threads go on
        self._waits_s = PATIENCE_S if self._may_fail and isinstance(source, PickledTask) else 0.0
        is_python = not task.reduction and task.cpu_sums is None and self._crew.size > 1
        if source and (executor == "processes" or (self._may_fail and is_python)):
            size = self._scorer.chunk_size
            self._processes = ScoringPool(self._crew, self._location, self._scorer, language, source, size, score_seconds)
            if not self._waits_s:
                try:
                    self._processes.start()  # now, so that they load the task while this process prepares the first batch
                except WorkerError as error:
                    self._give_up(self._processes, error)
        self.uses_lowered = not self._processes or self._waits_s > 0.0

    @property
    def device(self) -> str:
        """Always `CPU`."""
        return "CPU"

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`, chunk by chunk on threads or processes."""
        if (processes := self._processes) and len(batch) and self._waits_s <= 0.0:
            try:
                return processes.evaluate(batch)
            except WorkerError as error:
                if not self._may_fail:
                    raise
                # This process has loaded the task. If its `score` is wrong, it raises here too, with its own message.
                evaluation = self._on_threads(batch)
                self._give_up(processes, error)
                return evaluation
        start_s = time.perf_counter()
        evaluation = self._on_threads(batch)
        self._waits_s -= time.perf_counter() - start_s
        return evaluation

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`, on the calling thread."""
        return self._scorer.outputs(words, points)

    def environment(self) -> dict[str, str | int]:
        """SIMD level, number of threads or processes, and which of them."""
        executor = "processes" if self._processes and self._waits_s <= 0.0 else "threads"
        return {"simd": self._scorer.level, "threads": self._crew.size, "executor": executor}

    def close(self) -> None:
        """Ends the threads and processes."""
        if self._processes:
            self._processes.close()
        self._crew.close()

    def _give_up(self, processes: ScoringPool, error: WorkerError) -> None:
        if not self._may_fail:
            raise error
        processes.give_up(error)
        self._processes = None

    def _on_threads(self, batch: Batch) -> Evaluation:
        """The results of a batch. Those of sums are scored at once: a call costs more than a sum."""
        scorer, size = self._scorer, self._scorer.chunk_size

        def score(rows: slice) -> Evaluation:
            return scorer.score(batch.programs[rows], batch.num_instructions[rows])

        def run(rows: slice) -> tuple[NDArray[Any], float]:
            start_s = time.perf_counter()
            return scorer.run(batch.programs[rows]), time.perf_counter() - start_s

        def judge(results: list[tuple[NDArray[Any], float]]) -> Evaluation:
            start_s = time.perf_counter()
            part = scorer.judge(np.concatenate([outputs for outputs, _ in results]), batch.num_instructions)
            times_s = {"evaluate": sum(seconds for _, seconds in results), "score": time.perf_counter() - start_s}
            return replace(part, stats=Stats(times_s))

        with scoring_in_time(self._location, self._score_seconds):
            if len(batch) and (work := scorer.work(batch.programs)):
                sums, fill_in = work

                def fill(member: int) -> tuple[NDArray[Any], float]:
                    start_s = time.perf_counter()
                    fill_in()
                    return sums[: 0 if member else len(sums)], time.perf_counter() - start_s

                together = range(min(self._crew.size, len(batch)))
                parts = self._crew.map(fill, together, self._score_seconds * -(-len(batch) // size), judge)
            elif scorer.task.reduction and len(batch):
                parts = self._crew.map(run, slices(len(batch), min(2 * size, MAX_REDUCED)), self._score_seconds, judge)
            else:
                parts = self._crew.map(score, slices(len(batch), size), self._score_seconds)
        return whole(parts, len(scorer.task.measures), "threads")


def without_cpu_meaning(language: Language, names: Sequence[str]) -> list[str]:
    """The names of instructions that the virtual machine cannot run."""
    unsupported = VirtualMachine(language.lowering).unsupported
    return [name for name in names if name in unsupported]
