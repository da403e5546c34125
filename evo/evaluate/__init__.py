"""What an evaluator is: programs in, scores out.

Owns the interface and the checks of what a task's `score` returns. Knows nothing of the archive, of files or of
configs; each backend is a module beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from evo.errors import UserError
from evo.task import Programs, Scores, Task, task_errors


class Status(IntEnum):
    """What came of a program. Anything but OK keeps it out of the archive."""

    OK = 0
    NONFINITE = 1  # its objective or a measure is NaN or infinite


@dataclass(frozen=True)
class Evaluation:
    """Results of a batch: status `(batch_size,)` uint8 of `Status`, objective `(batch_size,)` and measures
    `(batch_size, num_measures)` float64, NaN where the status is not OK.

    evaluate_s and score_s: seconds of this batch's threads in running the programs and in the task's `score`, summed.
    """

    status: np.ndarray
    objective: np.ndarray
    measures: np.ndarray
    evaluate_s: float = 0.0
    score_s: float = 0.0


class Evaluator(Protocol):
    """Scores programs. The result for a program depends on the program alone, bit by bit."""

    def evaluate(self, words: np.ndarray, num_instructions: np.ndarray) -> Evaluation:
        """Scores `(batch_size, max_length)` uint64 programs; `num_instructions` `(batch_size,)` goes to the task."""

    def outputs(self, words: np.ndarray, points: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Each output `(batch_size, num_points)` of programs at other points than the task's own, such as a picture's."""

    def environment(self) -> dict[str, str | int]:
        """What programs are run by, for the record: `backend` and what there is to say about it."""

    def close(self) -> None:
        """Ends threads, processes and device state."""


def score_batch(task: Task, outputs, num_instructions: np.ndarray) -> Evaluation:
    """Calls the task's `score` and checks what it returns.

    Raises:
        UserError: `score` raises, or returns other shapes than documented.
    """
    code = type(task).score.__code__
    place = f"{code.co_filename}:{code.co_firstlineno}"
    batch_size = len(num_instructions)
    with np.errstate(all="ignore"), task_errors(type(task), "score"):
        scores = task.score(outputs, Programs(num_instructions))
        if not isinstance(scores, Scores):
            raise UserError(f"{place}: score() must return evo.Scores, got {type(scores).__name__}")
        objective = np.asarray(scores.objective, dtype=np.float64)
        measures = np.asarray(scores.measures, dtype=np.float64)
    if objective.shape != (batch_size,) or measures.shape != (batch_size, len(task.measures)):
        raise UserError(
            f"{place}: score() must return objective of shape ({batch_size},) and measures of shape "
            f"({batch_size}, {len(task.measures)}), got {objective.shape} and {measures.shape}"
        )
    finite = np.isfinite(objective) & np.isfinite(measures).all(axis=1)
    return Evaluation(
        status=np.where(finite, Status.OK, Status.NONFINITE).astype(np.uint8),
        objective=np.where(finite, objective, np.nan),
        measures=np.where(finite[:, None], measures, np.nan),
    )
