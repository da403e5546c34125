"""Worker processes that score chunks of programs, for tasks whose `score` holds Python's interpreter lock.

Owns what they do, the memory shared with them, and the blame for one that dies or hangs. The threads of a crew wait for them.
Knows nothing of how a chunk is scored.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.language import decode_language, encode_language
from evo.errors import UserError, one_line
from evo.escape import echo
from evo.evaluate import Evaluation, PickledTask, TaskSource, join
from evo.evaluate.chunks import ChunkScorer, Points, slices, whole
from evo.evaluate.pickled_task import task_of
from evo.language.batch import Batch
from evo.language.program import Language
from evo.tasks.folder import declared_files, task_digest
from evo.workers.crew import Crew
from evo.workers.processes import Processes, StartError, WorkerDied, start_error

LOAD_S = 120.0  # for a worker to start and load the task
FLUSH_S = 1.0  # for workers to end by themselves, with what Python and the task do at their end
TRIES = 2  # of a part whose worker dies: the system may have caused the first death
PARTS_PER_WORKER = 4  # of a batch, which are chunks that a worker gets together: the last part is waited for


class WorkerError(UserError):
    """Workers cannot start or load the task, or the task raises in one. Threads may do better."""


@contextmanager
def scoring_in_time(location: str, score_seconds: float) -> Iterator[None]:
    """Turns a TimeoutError into a UserError that names the limit and the task's method."""
    try:
        yield
    except TimeoutError:
        raise UserError(
            f"programs were not run and scored within evaluation.score_seconds ({score_seconds:g} s a chunk); "
            "a run goes on from its last checkpoint",
            location,
        ) from None


class ScoringPool:
    """Workers that score chunks. They start with the first call of `start` or `evaluate`.

    Args:
        crew: threads; there is a process for each.
        location: `file:line` of the task's `score`, for messages.
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
        location: str,
        scorer: ChunkScorer,
        language: Language,
        source: TaskSource | PickledTask,
        chunk_size: int,
        score_seconds: float,
    ):
        self.num_deaths = 0
        self._reported_from = 1  # deaths; twice as many after each line
        self._crew, self._location = crew, location
        digest = ""
        if isinstance(source, TaskSource):
            digest = task_digest(source.folder, declared_files(scorer.task, source.folder))
        self._setup = Setup(source, digest, encode_language(language), scorer.points, scorer.level, outputs=-1)
        self._num_measures = len(scorer.task.measures)
        self._chunk_size = chunk_size
        self._score_seconds = score_seconds
        self._folder = os.getcwd()  # a task may leave it
        self._memory: _Memory | None = None
        self._processes: Processes | None = None

    def start(self) -> Processes:
        """Starts the workers, unless they run. Waits for nothing. Raises WorkerError: the system refuses."""
        if not self._processes:
            try:
                self._memory = _Memory()
                setup, files = replace(self._setup, outputs=self._memory.file), [self._memory.file]
                self._processes = Processes(
                    self._crew.size, "scoring", load, setup, begin_s=LOAD_S, files=files, folder=self._folder
                )
            except (OSError, UserError) as error:
                self.close()
                failure = error if isinstance(error, UserError) else start_error("scoring", error)
                raise WorkerError(failure.reason, *failure.place) from error
        return self._processes

    def evaluate(self, batch: Batch) -> Evaluation:
        """The results of a batch.

        Raises:
            WorkerError: see there. The workers are gone then; the next call starts others.
            UserError: the task hangs, or ends its process. The workers are gone, too.
        """
        num_chunks = -(-len(batch) // self._chunk_size)
        together = -(-num_chunks // (PARTS_PER_WORKER * self._crew.size))

        def arguments(rows: slice) -> tuple[Any, ...]:
            return batch.words[rows], batch.num_instructions[rows], self._chunk_size

        return self._evaluate(score_programs, arguments, slices(len(batch), together * self._chunk_size), together)

    def score(self, outputs: NDArray[np.float32], num_instructions: NDArray[np.int32]) -> Evaluation:
        """The results of programs that ran elsewhere, given their outputs, `(num_programs, num_outputs, num_points)`.

        Raises as `evaluate`.
        """

        def arguments(rows: slice) -> tuple[Any, ...]:
            return rows.start, num_instructions[rows]

        chunk_size = min(self._chunk_size, -(-len(outputs) // self._crew.size))
        return self._evaluate(score_stored, arguments, slices(len(outputs), chunk_size), 1, outputs)

    def close(self) -> None:
        """Ends the workers: those that can by themselves, so that nothing that the task prints is lost."""
        processes, memory = self._processes, self._memory
        self._processes = self._memory = None
        if processes:
            processes.close(FLUSH_S)
        if memory:
            os.close(memory.file)

    def give_up(self, error: WorkerError) -> None:
        """Ends the workers, which fail where threads may do better, and says so in a line."""
        self.close()
        echo(f"evo: the scoring processes fail, threads go on: {one_line(error)}", err=True)

    def _evaluate(
        self,
        function: Callable[..., Evaluation],
        arguments: Callable[[slice], tuple[Any, ...]],
        parts: list[slice],
        num_chunks: int,
        outputs: NDArray[np.float32] | None = None,
    ) -> Evaluation:
        """The results of parts by a function of workers. num_chunks: of a part."""
        processes = self.start()

        def score(rows: slice) -> Evaluation:
            try:
                return processes.call(function, num_chunks * self._score_seconds, *arguments(rows), tries=TRIES)
            except UserError as error:
                location = (self._location,) if isinstance(error, StartError) else error.place
                raise WorkerError(error.reason, *location) from None

        try:
            if outputs is not None and self._memory:
                self._memory.share(outputs)
            with scoring_in_time(self._location, self._score_seconds):
                evaluation = whole(self._crew.map(score, parts), self._num_measures, "workers")
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerDied):
                reason = f"{error}, twice with the same programs; a run goes on from its last checkpoint"
                raise UserError(reason, self._location) from None
            raise
        self.num_deaths = processes.num_deaths
        if self.num_deaths >= self._reported_from:
            self._reported_from = 2 * self.num_deaths
            deaths = f"{self.num_deaths} so far died while they scored programs"
            echo(f"evo: worker processes: {deaths}; the last {processes.last_end}, another took its place", err=True)
        return evaluation


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
    """Everything that a worker needs before its first chunk.

    task_digest: of the folder's task that the parent has loaded. language: of `encode_language`. level: of SIMD. outputs: number
    of the inherited file in which outputs come.
    """

    source: TaskSource | PickledTask
    task_digest: str
    language: bytes
    points: Points
    level: str
    outputs: int


class _Worker:
    """The scorer of a process. `load` makes the only one."""

    def __init__(self, setup: Setup):
        self.scorer = ChunkScorer(
            decode_language(setup.language), task_of(setup.source, setup.task_digest), setup.level, setup.points
        )
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
    _workers.append(_Worker(setup))


def score_programs(words: NDArray[np.uint64], num_instructions: NDArray[np.int32], chunk_size: int) -> Evaluation:
    """The results of programs, run and scored in chunks."""
    [worker] = _workers
    scorer = worker.scorer
    parts = [scorer.score(words[rows], num_instructions[rows]) for rows in slices(len(words), chunk_size)]
    return join(parts, len(scorer.task.measures))


def score_stored(first: int, num_instructions: NDArray[np.int32]) -> Evaluation:
    """The results of a chunk of programs that ran elsewhere. first: of them among those whose outputs are in the memory."""
    [worker] = _workers
    return worker.scorer.score_stored(worker.outputs(first, len(num_instructions)), num_instructions)
