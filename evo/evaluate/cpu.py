"""The CPU evaluator: the virtual machine of ptx_vm.h, on threads or processes over chunks of programs.

Owns the threads, and the choice between threads and processes. It decides no result: chunks depend on the task alone, and are
joined in order. Knows nothing of the GPU.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation, PickledTask, TaskSource
from evo.evaluate.chunks import MAX_REDUCED, ChunkScorer
from evo.evaluate.options import ExecutorName
from evo.evaluate.scoring_pool import Ongoing, ScoringPool, WorkerError, overtime_message, threads_go_on
from evo.evaluate.scoring_process import setup_of
from evo.evaluate.trials import Trials
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native.ptx_vm import SUMS_DTYPE, VirtualMachine
from evo.task import Task, method_place
from evo.waiting import WAKE_S

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
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        place = method_place(type(task), "score")
        self._threads = _Threads(self._scorer, place, self._num_threads, score_seconds)
        self._processes: ScoringPool | None = None
        self._trials: Trials | None = None
        if source and executor != "threads" and (executor == "processes" or self._num_threads > 1):
            self._processes = ScoringPool(
                setup_of(self._scorer, language, source),
                place,
                chunk_size=self._scorer.chunk_size,
                num_measures=len(task.measures),
                num_workers=self._num_threads,
                score_seconds=score_seconds,
            )
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
            return self._threads.evaluate(batch)
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
        return {"simd": self._scorer.level, "threads": self._num_threads, "executor": executor}

    def close(self) -> None:
        """Ends the threads and processes."""
        self._threads.close()
        if self._processes:
            self._processes.close()

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
        is_parallel = len(batch) > self._scorer.chunk_size  # a batch of one chunk is no trial
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
            evaluation = self._threads.evaluate(batch)
            self._give_up_processes(processes, error)
            return evaluation
        if processes.num_deaths:  # on a thread it would be this process
            self._trials = None
        evaluation = evaluation or self._threads.evaluate(batch)
        if is_parallel or not trials.is_due:
            trials.note(way, time.perf_counter() - start_s, len(batch))
        return evaluation

    def _give_up_processes(self, processes: ScoringPool, error: WorkerError) -> None:
        threads_go_on(processes, error)
        self._processes = self._trials = None


class _Threads:
    """Threads that score chunks. The caller waits, so that it can end a batch whose score hangs."""

    def __init__(self, scorer: ChunkScorer, place: str, num_threads: int, score_seconds: float):
        self._scorer = scorer
        self._place = place
        self._score_seconds = score_seconds
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._is_abandoned = False
        self._watch = Ongoing()
        # Python's end does not wait for daemons, so a score that hangs cannot hold it.
        self._threads = [threading.Thread(target=self._serve, name=f"evaluate_{i}", daemon=True) for i in range(num_threads)]
        for thread in self._threads:
            thread.start()

    def evaluate(self, batch: Batch) -> Evaluation:
        """The results of a batch."""
        if not self._threads:
            raise RuntimeError("the evaluator is closed")
        job = _Job(self._scorer, batch, len(self._threads))
        for _ in range(job.num_threads):
            self._jobs.put(job)
        try:
            for _ in range(job.num_threads):
                self._wait(job)
        except BaseException:
            self._is_abandoned = True
            job.waiting.clear()
            raise
        return job.evaluation

    def close(self) -> None:
        """Ends the threads, and waits for them unless a batch was given up."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            if not self._is_abandoned:
                thread.join()
        self._threads = []

    def _serve(self) -> None:
        while job := self._jobs.get():
            job.take_part()

    def _wait(self, job: _Job) -> None:
        """Waits until another thread has finished its part.

        Python handles signals in the main thread. The system may deliver Ctrl-C to another one, which does not wake the main
        thread: without a time limit it would see the signal only after the batch.
        """
        while True:
            try:
                error = job.finished.get(timeout=WAKE_S)
            except Empty:
                if self._watch.look(job.since_s.copy().items()) > self._score_seconds:
                    raise UserError(overtime_message(self._place, self._score_seconds)) from None
                continue
            if isinstance(error, Exception):
                raise error
            if error:  # such as asyncio.CancelledError: signals come in the main thread only
                raise UserError(f"{self._place}: score() raised {type(error).__name__}: {error}") from error
            return


class _Job:
    """A batch that threads score together.

    Attributes:
        waiting: the first program of each chunk that nobody has begun.
        num_threads: how many take part.
        since_s: when each thread that takes part began its chunk.
        finished: gets an error or None from each thread.
    """

    def __init__(self, scorer: ChunkScorer, batch: Batch, num_threads: int):
        size, num_measures = len(batch), len(scorer.task.measures)
        self._sums = np.empty((size, scorer.num_sums), SUMS_DTYPE) if scorer.task.reduction else None
        self._chunk_size = scorer.chunk_size if self._sums is None else min(2 * scorer.chunk_size, MAX_REDUCED)
        self.waiting = deque(range(0, size, self._chunk_size))
        self.num_threads = self._num_left = min(num_threads, len(self.waiting))
        self.since_s: dict[int, float] = {}
        self.finished: SimpleQueue[BaseException | None] = SimpleQueue()
        self.evaluation = Evaluation(np.empty(size, np.uint8), np.empty(size), np.empty((size, num_measures)))
        self.evaluation.times_s.update(evaluate_threads=0.0, score_threads=0.0)
        self._scorer = scorer
        self._batch = batch
        self._lock = threading.Lock()

    def take_part(self) -> None:
        """Scores chunks until none is left. With a reduction the last thread scores all sums: a call costs more than a sum."""
        thread, error = threading.get_ident(), None
        try:
            while (first := self._next()) is not None:
                self.since_s[thread] = time.monotonic()
                self._do(slice(first, first + self._chunk_size))
            with self._lock:
                self._num_left -= 1
                is_last = self._num_left == 0
            if self._sums is not None and is_last:
                self.since_s[thread] = time.monotonic()
                start_s = time.perf_counter()
                self._take(slice(None), self._scorer.judge(self._sums, self._batch.num_instructions))
                self._add_times(score=time.perf_counter() - start_s)
        except BaseException as raised:  # noqa: BLE001 - the caller gets whatever it is
            self.waiting.clear()
            error = raised
        self.since_s.pop(thread, None)
        self.finished.put(error)

    def _next(self) -> int | None:
        try:
            return self.waiting.popleft()
        except IndexError:
            return None

    def _do(self, rows: slice) -> None:
        if self._sums is None:
            part = self._scorer.score(self._batch.words[rows], self._batch.num_instructions[rows])
            self._take(rows, part)
            self._add_times(**part.times_s)
        else:
            start_s = time.perf_counter()
            self._sums[rows] = self._scorer.run(self._batch.words[rows])
            self._add_times(evaluate=time.perf_counter() - start_s)

    def _take(self, rows: slice, part: Evaluation) -> None:
        whole = self.evaluation
        whole.status[rows], whole.objective[rows], whole.measures[rows] = part.status, part.objective, part.measures

    def _add_times(self, **times_s: float) -> None:
        with self._lock:
            for name, seconds in times_s.items():
                self.evaluation.times_s[f"{name}_threads"] += seconds


def without_cpu_meaning(language: Language, names: Sequence[str]) -> list[str]:
    """The names of instructions that the virtual machine cannot run."""
    unsupported = VirtualMachine(language.lowering).unsupported
    return [name for name in names if name in unsupported]
