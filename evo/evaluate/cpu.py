"""The CPU evaluator: the virtual machine of ptx_vm.h, on threads or processes over chunks of programs.

Owns the threads, and the choice between threads and processes. It decides no result: chunks depend on the task alone, and are
joined in order. Knows nothing of the GPU.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation, TaskSource, join
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.processes import Processes
from evo.evaluate.worker import Setup
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.task import Task

WAKE_S = 0.1  # longest uninterrupted wait of the calling thread, so that it sees Ctrl-C
SCORE_SECONDS = 300.0
START_S = 2.0  # of work on threads, after which a run is long enough for processes to pay
NUM_TRIALS = 3  # batches each way
MIN_TRIAL_CHUNKS = 2  # a batch of one is no parallel work

ExecutorName = Literal["auto", "threads", "processes"]


class CpuEvaluator:
    """Runs and scores programs on this machine's cores.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        num_threads: threads or processes; None: one for each core that this process may use.
        level: the virtual machine's SIMD level; None: the faster of the two widest on the first programs. All levels give the
            same results.
        executor: `processes` run a `score` in parallel that holds Python's interpreter lock. `auto` uses threads, and tries
            processes in a long run if there are several threads and `score` gets outputs; the faster way is kept.
        source: where processes find the task; None: there are only threads.
        score_seconds: limit for scoring a chunk. A single thread is the caller's and has no limit.

    Raises:
        UserError: the task's points or targets are malformed, or raise.
    """

    def __init__(
        self,
        language: Language,
        task: Task,
        num_threads: int | None = None,
        level: str | None = None,
        *,
        executor: ExecutorName = "auto",
        source: TaskSource | None = None,
        score_seconds: float = SCORE_SECONDS,
    ):
        self._language = language
        self._task = task
        self._scorer = ChunkScorer(language, task, level)
        self._is_level_chosen = level is not None
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        code = type(task).score.__code__
        place = f"{code.co_filename}:{code.co_firstlineno}"
        self._threads = _Threads(self._scorer, place, self._num_threads, score_seconds)
        self._processes: Processes | None = None
        self._choice: _Choice | None = None
        if source and executor != "threads" and (executor == "processes" or (self._num_threads > 1 and not task.reduction)):
            self._processes = Processes(
                partial(self._setup, source),
                place,
                chunk_size=self._scorer.chunk_size,
                num_measures=len(task.measures),
                num_workers=self._num_threads,
                score_seconds=score_seconds,
            )
            self._choice = _Choice() if executor == "auto" else None

    @property
    def device(self) -> str:
        """Always `CPU`."""
        return "CPU"

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`, chunk by chunk on threads or processes."""
        if not self._is_level_chosen and len(batch):
            self._scorer.choose_level(batch)
            self._is_level_chosen = True
        size = self._scorer.chunk_size
        chunks = [batch[start : start + size] for start in range(0, len(batch), size)]
        if not self._processes or not chunks:
            return self._threads.evaluate(chunks)
        if not self._choice:
            return self._processes.evaluate(chunks)
        return self._try_both(self._processes, self._choice, chunks)

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`, on the calling thread."""
        return self._scorer.outputs(words, points)

    def environment(self) -> dict[str, str | int]:
        """SIMD level, number of threads or processes, and which of them: `auto` if that is still to be seen."""
        executor = "auto" if self._choice else "processes" if self._processes else "threads"
        return {"simd": self._scorer.level, "threads": self._num_threads, "executor": executor}

    def close(self) -> None:
        """Ends the threads and processes."""
        self._threads.close()
        if self._processes:
            self._processes.close()

    def _try_both(self, processes: Processes, choice: _Choice, chunks: Sequence[Batch]) -> Evaluation:
        """Evaluates a batch one way, and decides if both ways are known well enough."""
        on_processes = False
        try:
            if choice.is_worth_starting:
                processes.start()
                on_processes = choice.wants_processes(len(chunks)) and processes.are_ready()
        except UserError as error:  # this process has loaded the task and can go on
            self._keep_threads(processes, f"the processes that score programs cannot start, threads go on: {error}")
            return self._threads.evaluate(chunks)
        start_s = time.perf_counter()
        evaluation = processes.evaluate(chunks) if on_processes else self._threads.evaluate(chunks)
        choice.note(on_processes, time.perf_counter() - start_s, len(evaluation.status), len(chunks))
        if choice.is_made:
            self._choice = None
            if choice.are_threads_faster:
                self._keep_threads(processes)
        return evaluation

    def _keep_threads(self, processes: Processes, warning: str = "") -> None:
        processes.close()
        self._processes = self._choice = None
        if warning:
            print(f"evo: {warning}", file=sys.stderr)

    def _setup(self, source: TaskSource) -> Setup:
        language = self._language
        return Setup(
            source,
            tuple(sys.path),
            language.instruction_set,
            language.inputs,
            language.outputs,
            language.limits,
            self._scorer.level,
        )


class _Choice:
    """Which of threads and processes are faster, from the first batches of a long run."""

    def __init__(self) -> None:
        self._thread_s = 0.0
        self._num_noted = {False: 0, True: 0}  # on processes? -> batches
        self._seconds = {False: 0.0, True: 0.0}
        self._programs = {False: 0, True: 0}

    @property
    def is_worth_starting(self) -> bool:
        """Whether the run has taken long enough."""
        return self._thread_s >= START_S

    @property
    def is_made(self) -> bool:
        """Whether both ways have had enough batches."""
        return min(self._num_noted.values()) > NUM_TRIALS

    @property
    def are_threads_faster(self) -> bool:
        """Whether they have scored more programs a second."""
        return self._programs[False] * self._seconds[True] >= self._programs[True] * self._seconds[False]

    def wants_processes(self, num_chunks: int) -> bool:
        """Whether it is the turn of processes with a batch of this many chunks."""
        return num_chunks >= MIN_TRIAL_CHUNKS and self._num_noted[True] <= self._num_noted[False]

    def note(self, on_processes: bool, seconds: float, num_programs: int, num_chunks: int) -> None:
        """Takes the time of a batch. The first one each way warms up. Threads count as soon as processes have had a batch."""
        if not on_processes:
            self._thread_s += seconds
            if not self._num_noted[True] or num_chunks < MIN_TRIAL_CHUNKS:
                return
        if self._num_noted[on_processes]:
            self._seconds[on_processes] += seconds
            self._programs[on_processes] += num_programs
        self._num_noted[on_processes] += 1


class _Threads:
    """Threads that score chunks. With one, the caller does it."""

    def __init__(self, scorer: ChunkScorer, place: str, num_threads: int, score_seconds: float):
        self._scorer = scorer
        self._place = place
        self._score_seconds = score_seconds
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_abandoned = False
        # Python's end does not wait for daemons, so a score that hangs cannot hold it.
        self._threads = [threading.Thread(target=self._serve, name=f"evaluate_{i}", daemon=True) for i in range(num_threads)]
        if num_threads == 1:
            self._threads = []
        for thread in self._threads:
            thread.start()

    def evaluate(self, chunks: Sequence[Batch]) -> Evaluation:
        """The results of consecutive chunks."""
        num_measures = len(self._scorer.task.measures)
        if not self._threads:
            return join([self._score(chunk) for chunk in chunks], num_measures)
        jobs = [_Job(partial(self._score, chunk)) for chunk in chunks]
        for job in jobs:
            self._calls.put(job.run)
        try:
            self._wait(jobs)
        except BaseException:
            self._is_abandoned = True
            for job in jobs:
                job.future.cancel()
            raise
        return join([job.future.result() for job in jobs], num_measures)

    def close(self) -> None:
        """Ends the threads, and waits for them unless a batch was given up."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            if not self._is_abandoned:
                thread.join()
        self._threads = []

    def _serve(self) -> None:
        while call := self._calls.get():
            call()

    def _wait(self, jobs: Sequence[_Job]) -> None:
        # Python handles signals in the main thread. The system may deliver Ctrl-C to another one, which does not wake the main
        # thread: without a time limit it would see the signal only after the batch.
        while wait([job.future for job in jobs], WAKE_S).not_done:
            now_s = time.monotonic()
            if any(now_s - job.start_s > self._score_seconds for job in jobs if not job.future.done()):
                raise UserError(
                    f"{self._place}: score() did not return within evaluation.score_seconds ({self._score_seconds:g} s); "
                    "a run goes on from its last checkpoint"
                )

    def _score(self, chunk: Batch) -> Evaluation:
        part = self._scorer.score(chunk.words, chunk.num_instructions)
        return replace(part, times_s={f"{name}_threads": value for name, value in part.times_s.items()})


class _Job:
    """A call with its future. start_s: when it started, in the future if it has not."""

    def __init__(self, call: Callable[[], Evaluation]):
        self._call = call
        self.future: Future[Evaluation] = Future()
        self.start_s = float("inf")

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        self.start_s = time.monotonic()
        try:
            self.future.set_result(self._call())
        except BaseException as error:  # noqa: BLE001 - the caller gets whatever it is
            self.future.set_exception(error)


def without_cpu_meaning(language: Language, names: Sequence[str]) -> list[str]:
    """The names of instructions that the virtual machine cannot run."""
    unsupported = VirtualMachine(language.lowering).unsupported
    return [name for name in names if name in unsupported]
