"""Scores from outputs that come back from the GPU: by the task's `score`, in worker processes or on the calling thread.

Owns this choice, which decides no result. Knows nothing of devices.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import CHUNK_SIZE, Evaluation, PickledTask, TaskSource, by_name, join, score_batch
from evo.evaluate.chunks import ChunkScorer, slices
from evo.evaluate.scoring_pool import ScoringPool, WorkerError
from evo.language.program import Language
from evo.task import Task
from evo.tasks.answers import method_place
from evo.workers.crew import Crew


class OutputScorer:
    """Has a task score outputs. Safe to use from many threads at once; processes serve one after the other, all with one.

    Args:
        task: its `score` may hold Python's interpreter lock.
    """

    def __init__(self, task: Task):
        self._task = task
        self._crew: Crew | None = None
        self._processes: ScoringPool | None = None
        self._is_needed = False
        self._lock = threading.Lock()

    def start_processes(
        self, language: Language, source: TaskSource | PickledTask, num_workers: int, score_seconds: float, *, is_needed: bool
    ) -> None:
        """Lets worker processes score from now on.

        Args:
            source: where they find the task.
            score_seconds: limit for a chunk.
            is_needed: whether failing to start or load the task is an error; otherwise a warning is printed, and threads score.

        Raises:
            UserError: see `is_needed`.
        """
        self._is_needed = is_needed
        self._crew, location = Crew(num_workers), method_place(type(self._task), "score")
        scorer = ChunkScorer(language, self._task)
        self._processes = processes = ScoringPool(self._crew, location, scorer, language, source, CHUNK_SIZE, score_seconds)
        try:
            processes.start()
        except WorkerError as error:
            self._give_up(processes, error)

    def score(self, outputs: NDArray[Any], num_instructions: NDArray[np.int32]) -> Evaluation:
        """The results of programs from their outputs, `(num_programs, num_outputs, num_points)` of 4 bytes.

        Raises:
            UserError: `score` raises, returns the wrong thing, or takes too long.
        """
        if self._processes:
            with self._lock:
                if processes := self._processes:  # no other thread has given them up
                    try:
                        return processes.score(outputs, num_instructions)
                    except WorkerError as error:
                        # If `score` is wrong, it raises here too, with its own message.
                        evaluation = self._score_here(outputs, num_instructions)
                        self._give_up(processes, error)
                        return evaluation
        return self._score_here(outputs, num_instructions)

    def close(self) -> None:
        """Ends the processes."""
        if self._processes:
            self._processes.close()
        if self._crew:
            self._crew.close()

    def _score_here(self, outputs: NDArray[Any], num_instructions: NDArray[np.int32]) -> Evaluation:
        parts = [
            score_batch(self._task, by_name(self._task, outputs[rows]), num_instructions[rows])
            for rows in slices(len(num_instructions), CHUNK_SIZE)
        ]
        return join(parts, len(self._task.measures))

    def _give_up(self, processes: ScoringPool, error: WorkerError) -> None:
        if self._is_needed:
            processes.close()
            raise error
        processes.give_up(error)
        self._processes = None
