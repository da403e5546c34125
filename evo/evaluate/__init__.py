"""What an evaluator is: programs in, scores out.

Owns the interface and the checks of what a task's `score` returns. Knows nothing of the archive, of files or of
configs. The implementations are entered in `evo.evaluate.backends`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evo.errors import FailureKind, UserError
from evo.language.batch import Batch
from evo.task import DTYPES, Programs, Regression, Scores, Task, task_errors


class Status(IntEnum):
    """What came of a program. Anything but OK keeps it out of the archive."""

    OK = 0
    NONFINITE = 1  # its objective or a measure is NaN or infinite
    FAILED = 2  # it could not be compiled or run; its `Failure` says why


@dataclass(frozen=True)
class Failure:
    """A program that could not be compiled or run.

    words: `(max_length,)` uint64. hash: canonical, 16 bytes. log: the compiler's or driver's message.
    """

    words: NDArray[np.uint64]
    hash: bytes
    kind: FailureKind
    log: str


@dataclass(frozen=True)
class Evaluation:
    """A batch's results.

    status: `(batch_size,)` uint8 of `Status`. objective: `(batch_size,)` and measures: `(batch_size, num_measures)` float64, NaN
    where the status is not OK. failures: programs that could not be compiled or run, now or earlier, in the batch's order.
    times_s: seconds by stage of this evaluator; a stage's name says if it is summed over threads or processes.
    """

    status: NDArray[np.uint8]
    objective: NDArray[np.float64]
    measures: NDArray[np.float64]
    failures: tuple[Failure, ...] = ()
    times_s: dict[str, float] = field(default_factory=dict)


class Evaluator(Protocol):
    """Scores programs. A program's result depends on the program alone, bit by bit."""

    @property
    def device(self) -> str:
        """What programs run on, as people call it: `CPU`, or a GPU's name."""

    def evaluate(self, batch: Batch) -> Evaluation:
        """Scores programs.

        Raises:
            DeviceFailure: the device failed, and this process cannot use it any more.
        """

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Each output, `(batch_size, num_points)`, of programs at other points than the task's own, such as a picture's."""

    def environment(self) -> dict[str, str | int]:
        """What runs programs, for the record."""

    def close(self) -> None:
        """Ends threads, processes and device state."""


# Programs scored at once: outputs of 32 programs at 4,096 points and two outputs are 1 MiB, which stays in a core's L2 cache.
CHUNK_SIZE = 32


def by_name(task: Task, stored: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Outputs `(batch_size, num_outputs, num_points)` of 4 bytes by name, each of its type; views, not copies."""
    return {name: stored[:, i].view(DTYPES[type_name]) for i, (name, type_name) in enumerate(task.outputs.items())}


def join(parts: list[Evaluation], num_measures: int) -> Evaluation:
    """Joins the results of consecutive parts of a batch; times are added up."""
    names = dict.fromkeys(name for part in parts for name in part.times_s)
    return Evaluation(
        status=np.concatenate([np.empty(0, np.uint8), *(part.status for part in parts)]),
        objective=np.concatenate([np.empty(0), *(part.objective for part in parts)]),
        measures=np.concatenate([np.empty((0, num_measures)), *(part.measures for part in parts)]),
        failures=tuple(failure for part in parts for failure in part.failures),
        times_s={name: sum(part.times_s[name] for part in parts) for name in names},
    )


def score_batch(task: Task, outputs: Regression | dict[str, NDArray[Any]], num_instructions: NDArray[np.int32]) -> Evaluation:
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
    return finite_only(objective, measures)


def finite_only(objective: NDArray[np.float64], measures: NDArray[np.float64]) -> Evaluation:
    """The results of a batch with these scores. Whatever is not finite is rejected."""
    finite = np.isfinite(objective) & np.isfinite(measures).all(axis=1)
    return Evaluation(
        status=np.where(finite, Status.OK, Status.NONFINITE).astype(np.uint8),
        objective=np.where(finite, objective, np.nan),
        measures=np.where(finite[:, None], measures, np.nan),
    )
