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

from evo.evaluate import Evaluation, PickledTask, TaskSource
from evo.evaluate.chunks import MAX_REDUCED, ChunkScorer, slices, whole
from evo.evaluate.crew import Crew
from evo.evaluate.options import ExecutorName
from evo.evaluate.scoring_pool import ScoringPool, WorkerError
from evo.evaluate.trials import Trials
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.task import Task
from evo.task_answers import method_place

SCORE_SECONDS = 300.0
# Of `evo.evaluate.trials`. Threads must be faster by a factor: noise is below it, and a crash of a thread ends the run.
FIRST_S, FIRST_BATCHES, RECHECK_S, NUM_TRIALS, THREADS_GAIN = 2.0, 20, 300.0, 5, 1.1

THREADS, PROCESSES = "threads", "processes"


class CpuEvaluator:
    """Runs and scores programs on this machine's cores.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        num_threads: threads or processes; None: one for each core that this process may use.
        level: the virtual machine's SIMD level; None: the faster of the two widest on the first programs. All levels give the
            same results.
        executor: `processes` run a `score` in parallel that holds Python's interpreter lock, and a task that crashes does not end
            this process. `auto` begins with processes if there are several threads, tries threads in a long run, and keeps
            them for minutes if they are clearly faster, unless a process died. With a task that this process has made, it
            begins with threads: most such searches take less time than processes take to start.
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
        self._is_level_chosen = level is not None
        self._score_seconds = score_seconds
        scoring = "simulate" if task.has_simulation() else "score"
        self._crew = Crew(num_threads or len(os.sched_getaffinity(0)), method_place(type(task), scoring))
        self._processes: ScoringPool | None = None
        self._trials: Trials | None = None
        if source and executor != "threads" and (executor == "processes" or self._crew.size > 1):
            self._processes = ScoringPool(self._crew, self._scorer, language, source, self._scorer.chunk_size, score_seconds)
            if executor == "auto":
                self._trials = Trials(
                    (THREADS, PROCESSES),
                    THREADS if isinstance(source, PickledTask) else PROCESSES,
                    num_trials=NUM_TRIALS,
                    first_s=FIRST_S,
                    first_batches=FIRST_BATCHES,
                    recheck_s=RECHECK_S,
                    gains={THREADS: THREADS_GAIN},
                )
            if not self._trials or self._trials.chosen == PROCESSES:
                self._start(self._processes)
        self.uses_lowered = not self._processes or self._trials is not None

    @property
    def device(self) -> str:
        """Always `CPU`."""
        return "CPU"

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`, chunk by chunk on threads or processes."""
        if not self._is_level_chosen and len(batch):
            self._scorer.choose_level(batch)
            self._is_level_chosen = True
        if not self._processes or not len(batch):
            return self._on_threads(batch)
        if not self._trials:
            return self._processes.evaluate(batch, self._scorer.level)
        return self._evaluate_as_chosen(self._processes, self._trials, batch)

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`, on the calling thread."""
        return self._scorer.outputs(words, points)

    def environment(self) -> dict[str, str | int]:
        """SIMD level, number of threads or processes, and which of them: `auto` if that is still to be seen."""
        executor = PROCESSES if self._processes else THREADS
        if self._trials:
            executor = self._trials.chosen if self._trials.is_decided else "auto"
        return {"simd": self._scorer.level, "threads": self._crew.size, "executor": executor}

    def close(self) -> None:
        """Ends the threads and processes."""
        if self._processes:
            self._processes.close()
        self._crew.close()

    def _start(self, processes: ScoringPool) -> None:
        """Starts processes now, so that they load the task while this process prepares the first batch."""
        try:
            processes.start()
        except WorkerError as error:
            if not self._trials:
                raise
            self._give_up_processes(processes, error)

    def _evaluate_as_chosen(self, processes: ScoringPool, trials: Trials, batch: Batch) -> Evaluation:
        """Evaluates a batch on processes, unless threads have proved faster or it is their turn to be tried."""
        start_s = time.perf_counter()
        is_parallel = len(batch) > self._scorer.chunk_size  # a batch of one chunk is not a trial
        way = trials.way if is_parallel else trials.chosen
        try:
            if trials.chosen == THREADS and not trials.is_due:
                processes.close()
            if way == PROCESSES and trials.chosen == THREADS:
                processes.start()
                way = PROCESSES if processes.are_ready() else THREADS
            evaluation = processes.evaluate(batch, self._scorer.level) if way == PROCESSES else None
        except WorkerError as error:
            # This process has loaded the task. If its `score` is wrong, it raises here too, and nothing else is to be said.
            evaluation = self._on_threads(batch)
            self._give_up_processes(processes, error)
            return evaluation
        if processes.num_deaths:  # on a thread it would be this process
            self._trials = None
        evaluation = evaluation or self._on_threads(batch)
        if is_parallel or not trials.is_due:
            trials.note(way, time.perf_counter() - start_s, len(batch))
        return evaluation

    def _give_up_processes(self, processes: ScoringPool, error: WorkerError) -> None:
        processes.give_up(error)
        self._processes = self._trials = None

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
            part = scorer.judge(np.concatenate([each for each, _ in results]), batch.num_instructions)
            times_s = {"evaluate": sum(seconds for _, seconds in results), "score": time.perf_counter() - start_s}
            return replace(part, times_s=times_s)

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
