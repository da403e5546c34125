"""Worker processes that score chunks of programs, for tasks whose `score` holds Python's interpreter lock.

Owns the processes, what they do, the memory shared with them, and the blame for one that dies or hangs. `evo.evaluate.crew` has
the threads that wait for them. Knows nothing of how a chunk is scored.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ParamSpec

import numpy as np
from numpy.typing import NDArray

from evo.compile.language import decode_language, encode_language
from evo.errors import UserError
from evo.escape import echo
from evo.evaluate import Evaluation, PickledTask, TaskSource, join
from evo.evaluate.chunks import ChunkScorer, Points, slices, whole
from evo.evaluate.crew import Crew, overtime_message
from evo.evaluate.pickled_task import task_of
from evo.language.batch import Batch
from evo.language.program import Language
from evo.task_folder import declared_files, task_digest
from evo.worker_process import ProcessDied, WorkerProcess

LOAD_S = 120.0  # for a worker to start and load the task
FLUSH_S = 1.0  # for workers to end by themselves, with what Python and the task do at their end
MAX_DEATHS = 2  # of workers, with the same programs or at the start: the system may have caused the first
PARTS_PER_WORKER = 4  # of a batch, which are chunks that a worker gets together: the last part is waited for

_P = ParamSpec("_P")


class WorkerError(UserError):
    """Workers cannot start or load the task, or the task raises in one. Threads may do better."""


class ScoringPool:
    """Workers that score chunks. They start with the first call of `start` or `evaluate`.

    Args:
        crew: threads; there is a process for each.
        scorer: scores as the workers are to.
        language: what the programs are written in.
        source: where workers find the task, or the task itself.
        chunk_size: most programs of a chunk.
        score_seconds: limit for a chunk.

    Attributes:
        num_deaths: workers that died since there are some.
    """

    def __init__(
        self,
        crew: Crew,
        scorer: ChunkScorer,
        language: Language,
        source: TaskSource | PickledTask,
        chunk_size: int,
        score_seconds: float,
    ):
        self.num_deaths = 0
        self._last_end = ""
        self._told_from = 1  # deaths; twice as many after each line
        self._crew = crew
        digest = ""
        if isinstance(source, TaskSource):
            digest = task_digest(source.folder, declared_files(scorer.task, source.folder))
        self._setup = Setup(source, digest, encode_language(language), scorer.points, outputs=-1)
        self._num_measures = len(scorer.task.measures)
        self._chunk_size = chunk_size
        self._score_seconds = score_seconds
        self._folder = os.getcwd()  # a task may leave it
        self._memory: _Memory | None = None
        self._workers: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts the workers, unless they run. Waits for nothing. Raises WorkerError: the system refuses."""
        try:
            self._memory = self._memory or _Memory()
            while len(self._workers) < self._crew.size:
                self._idle.append(self._started(self._memory))
        except OSError as error:
            raise WorkerError(f"cannot start a process that scores programs: {error.strerror}") from error
        except WorkerError:
            self.close()
            raise

    def are_ready(self) -> bool:
        """Whether all workers have loaded the task. Waits for nothing. Raises WorkerError: they cannot."""
        if not self._idle or not all(worker.has_begun() for worker in self._idle):
            return False
        try:
            for worker in self._idle:
                self._wait_until_ready(worker)
        except UserError as error:
            raise WorkerError(str(error)) from None
        except ProcessDied as death:
            raise WorkerError(f"{self._crew.place}: the processes that score programs do not start: {death}") from None
        return True

    def evaluate(self, batch: Batch, level: str) -> Evaluation:
        """The results of a batch, run at a SIMD level.

        Raises:
            WorkerError: see there. The workers are gone then; the next call starts others.
            UserError: the task hangs, or ends its process. The workers are gone, too.
        """
        num_chunks = -(-len(batch) // self._chunk_size)
        together = -(-num_chunks // (PARTS_PER_WORKER * self._crew.size))

        def score(rows: slice) -> Evaluation:
            words, sizes = batch.words[rows], batch.num_instructions[rows]
            return self._call(together, score_programs, words, sizes, self._chunk_size, level)

        return self._evaluate(score, slices(len(batch), together * self._chunk_size))

    def score(self, outputs: NDArray[np.float32], num_instructions: NDArray[np.int32]) -> Evaluation:
        """The results of programs that ran elsewhere, given their outputs, `(num_programs, num_outputs, num_points)`.

        Raises as `evaluate`.
        """

        def score(rows: slice) -> Evaluation:
            return self._call(1, score_stored, rows.start, num_instructions[rows])

        chunk_size = min(self._chunk_size, -(-len(outputs) // self._crew.size))
        return self._evaluate(score, slices(len(outputs), chunk_size), outputs)

    def close(self) -> None:
        """Ends the workers: those that can by themselves, so that nothing that the task prints is lost."""
        with self._lock:
            memory, busy, idle = self._memory, self._workers.difference(self._idle), self._idle
            self._memory, self._workers, self._idle = None, set(), []
        for worker in (*busy, *(each for each in idle if not each.is_ready)):
            worker.kill(waits=False)
        for worker in busy:
            worker.kill()  # the thread that waits for it closes it
        for worker in idle:
            worker.hang_up()
        end_s = time.monotonic() + FLUSH_S
        for worker in idle:
            worker.close(max(0.0, end_s - time.monotonic()) if worker.is_ready else 0.0)
        if memory:
            os.close(memory.file)

    def give_up(self, error: WorkerError) -> None:
        """Ends the workers, which fail where threads may do better, and says so in a line."""
        self.close()
        line = " ".join(str(error).splitlines())
        echo(f"evo: the processes that score programs fail, threads go on: {line}", err=True)

    def _evaluate(
        self, score: Callable[[slice], Evaluation], parts: list[slice], outputs: NDArray[np.float32] | None = None
    ) -> Evaluation:
        try:
            self.start()
            if outputs is not None and self._memory:
                self._memory.share(outputs)
            evaluation = whole(self._crew.map(score, parts), self._num_measures, "workers")
        except BaseException:
            self.close()
            raise
        if self.num_deaths >= self._told_from:
            self._told_from = 2 * self.num_deaths
            told = f"{self.num_deaths} so far died while they scored programs; the last {self._last_end}, another took its place"
            echo(f"evo: worker processes: {told}", err=True)
        return evaluation

    def _call(self, num_chunks: int, function: Callable[_P, Evaluation], *args: _P.args, **kwargs: _P.kwargs) -> Evaluation:
        """What a worker makes of some chunks; another one if it dies. Called by threads of the crew."""
        with self._lock:
            memory = self._memory
            if not (memory and self._idle):
                raise WorkerError("the processes that score programs were ended")
            worker = self._idle.pop()
        num_deaths = num_failed_starts = 0
        try:
            while True:
                try:
                    if worker.is_alive or not worker.is_ready:  # else it died while it was idle
                        self._wait_until_ready(worker)
                        result = worker.call(function, num_chunks * self._score_seconds, *args, **kwargs)
                        break
                except UserError as error:
                    raise WorkerError(str(error)) from None
                except ProcessDied:
                    num_deaths += worker.is_ready
                    num_failed_starts += not worker.is_ready
                how = worker.how_it_ended()
                if num_failed_starts >= MAX_DEATHS:
                    raise WorkerError(f"{self._crew.place}: the processes that score programs do not start: {how}")
                if num_deaths >= MAX_DEATHS:
                    raise UserError(
                        f"{self._crew.place}: the process that ran and scored programs {how}, twice with the same programs; "
                        "a run goes on from its last checkpoint"
                    )
                worker.close()
                worker = self._replaced(worker, memory, how)
        except BaseException as error:
            worker.close()
            if isinstance(error, TimeoutError):
                raise UserError(overtime_message(self._crew.place, self._score_seconds)) from None
            raise
        with self._lock:
            if self._memory is memory:
                self._idle.append(worker)
        return result

    def _wait_until_ready(self, worker: WorkerProcess) -> None:
        try:
            worker.wait_until_ready(LOAD_S)
        except TimeoutError:
            raise WorkerError(
                f"{self._crew.place}: a process that scores programs has not loaded the task within {LOAD_S:g} s; "
                "it may wait for something that another process holds"
            ) from None

    def _replaced(self, worker: WorkerProcess, memory: _Memory, how: str) -> WorkerProcess:
        """Another worker in place of one that died."""
        with self._lock:
            if self._memory is not memory:
                raise WorkerError("the processes that score programs were ended")
            if worker.is_ready:
                self.num_deaths += 1
                self._last_end = how
            self._workers.remove(worker)
            return self._started(memory)

    def _started(self, memory: _Memory) -> WorkerProcess:
        try:
            worker = WorkerProcess(load, replace(self._setup, outputs=memory.file), files=[memory.file], folder=self._folder)
        except (OSError, RuntimeError) as error:  # it refuses files, processes or threads
            reason = f"{error.strerror}: {error.filename or ''}".removesuffix(": ") if isinstance(error, OSError) else error
            raise WorkerError(f"cannot start a process that scores programs: {reason}") from error
        self._workers.add(worker)
        return worker


class _Memory:
    """Memory that workers inherit, for outputs. file: its number."""

    def __init__(self) -> None:
        self.file = os.memfd_create("evo-outputs")
        self._mapped: mmap.mmap | None = None

    def share(self, outputs: NDArray[np.float32]) -> None:
        """Copies outputs to it."""
        try:
            if self._mapped is None or len(self._mapped) < outputs.nbytes:
                os.ftruncate(self.file, outputs.nbytes)
                self._mapped = mmap.mmap(self.file, outputs.nbytes)
        except OSError as error:
            raise WorkerError(f"cannot share {outputs.nbytes} bytes with worker processes: {error.strerror}") from error
        np.frombuffer(self._mapped, np.float32, outputs.size)[:] = outputs.ravel()


# ---- in a worker


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know before its first chunk.

    task_digest: of the folder's task that the parent has loaded. language: of `encode_language`. outputs: number of the inherited
    file in which outputs come.
    """

    source: TaskSource | PickledTask
    task_digest: str
    language: bytes
    points: Points
    outputs: int


class _Worker:
    """What a process scores with. `load` makes the only one."""

    def __init__(self, setup: Setup):
        self.place = setup.source.place
        self.scorer = ChunkScorer(decode_language(setup.language), task_of(setup.source, setup.task_digest), None, setup.points)
        self._file = setup.outputs
        self._memory: mmap.mmap | None = None

    def outputs(self, first: int, num_programs: int) -> NDArray[np.float32]:
        """The outputs of some of the programs in the shared memory."""
        shape = (num_programs, self.scorer.num_outputs, self.scorer.points.num_points)
        size = shape[1] * shape[2]
        if self._memory is None or len(self._memory) < 4 * size * (first + num_programs):
            self._memory = mmap.mmap(self._file, 0)
        return np.frombuffer(self._memory, np.float32, num_programs * size, 4 * size * first).reshape(shape)


_workers: list[_Worker] = []  # of this process


def load(setup: Setup) -> None:
    """Loads the task."""
    with _told(setup.source.place):
        _workers.append(_Worker(setup))


def score_programs(words: NDArray[np.uint64], num_instructions: NDArray[np.int32], chunk_size: int, level: str) -> Evaluation:
    """The results of programs, run at a SIMD level and scored in chunks."""
    [worker] = _workers
    scorer = worker.scorer
    with _told(worker.place):
        scorer.use_level(level)
        parts = [scorer.score(words[rows], num_instructions[rows]) for rows in slices(len(words), chunk_size)]
        return join(parts, len(scorer.task.measures))


def score_stored(first: int, num_instructions: NDArray[np.int32]) -> Evaluation:
    """The results of a chunk of programs that ran elsewhere. first: of them among those whose outputs are in the memory."""
    [worker] = _workers
    with _told(worker.place):
        return worker.scorer.score_stored(worker.outputs(first, len(num_instructions)), num_instructions)


@contextmanager
def _told(place: str) -> Iterator[None]:
    """The parent says in one line whatever it is."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:  # noqa: BLE001
        raise UserError(f"{place}: the process that scores programs failed: {type(error).__name__}: {error}") from None
