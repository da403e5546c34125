"""The interface of evaluators: programs in, scores out.

Owns that interface and the checks of what a task's `score` returns. Knows nothing of the archive, of files or of configs.
`evo.evaluate.backends` registers the implementations.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evo.errors import FailureKind, UserError
from evo.language.batch import Batch
from evo.task import DTYPES, MAX_OBJECTIVE, Programs, Scores, Task
from evo.tasks.answers import method_place, task_errors
from evo.tasks.sums import Regression


class Status(IntEnum):
    """The outcome of a program. Only OK lets it into the archive."""

    OK = 0
    REJECTED = 1  # the task's score gives it an objective or a measure that is not finite
    FAILED = 2  # it did not compile or run; its `Failure` says why


_OK, _REJECTED = np.uint8(Status.OK), np.uint8(Status.REJECTED)


@dataclass(frozen=True)
class Failure:
    """A program that did not compile or run.

    words: `(max_length,)` uint64. hash: canonical, 16 bytes. log: the compiler's or driver's message.
    """

    words: NDArray[np.uint64]
    hash: bytes
    kind: FailureKind
    log: str


@dataclass(frozen=True)
class Stats:
    """Facts about the work on a batch.

    times_s: seconds by stage; names ending in `_threads` or `_workers` are sums over these. lanes: programs that each lane of a
    GPU took; empty without a GPU. farm: `CompileFarm.status`; empty without a farm.
    """

    times_s: dict[str, float] = field(default_factory=dict)
    lanes: dict[str, int] = field(default_factory=dict)
    farm: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """A batch's results.

    status: `(batch_size,)` uint8 of `Status`. objective: `(batch_size,)` float64. measures: `(batch_size, num_measures)` float64.
    Scores are NaN unless the status is OK. failures: the programs that failed, now or earlier, in the batch's order.
    """

    status: NDArray[np.uint8]
    objective: NDArray[np.float64]
    measures: NDArray[np.float64]
    failures: tuple[Failure, ...] = ()
    stats: Stats = field(default_factory=Stats)


@dataclass(frozen=True)
class TaskSource:
    """Source of a task, as `evo.task.load_task` takes it."""

    folder: Path
    options: Mapping[str, Any]


@dataclass(frozen=True)
class PickledTask:
    """A task of a script or notebook for worker processes, written by `evo.evaluate.pickled_task`."""

    pickled: bytes


class Evaluator(Protocol):
    """Scores programs. Every bit of a program's result depends on that program alone.

    Attributes:
        uses_lowered: it gains by `Batch.lowered`. Other processes lower programs for themselves.
    """

    uses_lowered: bool

    @property
    def device(self) -> str:
        """A readable name of what runs the programs: `CPU`, or a GPU's name."""

    def evaluate(self, batch: Batch) -> Evaluation:
        """Scores programs.

        Raises:
            UserError: the task's `score` raises or returns the wrong thing.
            DeviceFailure: the device failed, and this process can no longer use it.
        """

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Compute each output, `(batch_size, num_points)`, of programs at given points, such as a picture's.

        Raises:
            UserError: the points do not fit the task's inputs.
            DeviceFailure: the device failed, and this process can no longer use it.
        """

    def environment(self) -> dict[str, str | int]:
        """Facts about what runs the programs, for the run's records. `device` is among them, unless it is the CPU."""

    def close(self) -> None:
        """Ends threads and processes and frees the device."""


# Programs scored at once that ran on a GPU. Two outputs of 32 programs at 4,096 points take 1 MiB: a core's L2 cache holds them.
CHUNK_SIZE = 32


def by_name(task: Task, stored: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Splits 4-byte outputs `(batch_size, num_outputs, num_points)` by name. Gives views of each output's own type.

    With a rollout they are the records of each state, `(batch_size, num_records, num_trajectories)`, of a grid `(..., height,
    width)`.
    """
    outputs, rollout = stored_types(task), task.rollout
    records = (rollout.num_records,) if rollout else ()
    cells = rollout.grid.shape if rollout and rollout.grid else ()
    shape = (len(stored), *records, math.prod(stored.shape[2:]) // math.prod(records + cells), *cells)
    return {name: stored[:, i].view(DTYPES[kind]).reshape(shape) for i, (name, kind) in enumerate(outputs.items())}


def stored_types(task: Task) -> dict[str, str]:
    """The types of what a program leaves, by name: its outputs, or with a rollout the states."""
    return {name: task.inputs.get(name, "f32") for name in task.rollout.state} if task.rollout else task.outputs


def join(parts: list[Evaluation], num_measures: int) -> Evaluation:
    """Joins the results of consecutive parts of a batch and adds up their times."""
    if len(parts) == 1:
        return parts[0]
    stats = [part.stats for part in parts]
    names = dict.fromkeys(name for stat in stats for name in stat.times_s)
    lanes = dict.fromkeys(name for stat in stats for name in stat.lanes)
    return Evaluation(
        status=np.concatenate([np.empty(0, np.uint8), *(part.status for part in parts)]),
        objective=np.concatenate([np.empty(0), *(part.objective for part in parts)]),
        measures=np.concatenate([np.empty((0, num_measures)), *(part.measures for part in parts)]),
        failures=tuple(failure for part in parts for failure in part.failures),
        stats=Stats(
            times_s={name: sum(stat.times_s.get(name, 0.0) for stat in stats) for name in names},
            lanes={name: sum(stat.lanes.get(name, 0) for stat in stats) for name in lanes},
            farm=stats[-1].farm if stats else {},
        ),
    )


def score_batch(
    task: Task,
    outputs: Regression | dict[str, NDArray[Any]] | NDArray[np.float64],
    num_instructions: NDArray[np.int32],
    check: Regression | None = None,
    method: str = "score",
) -> Evaluation:
    """Calls the task's `score`, or `score_sums`, and checks what it returns.

    Raises:
        UserError: the method raises or returns the wrong thing.
    """
    return checked(task, method, len(num_instructions), outputs, Programs(num_instructions, check))


def checked(task: Task, method: str, batch_size: int, *args: Any) -> Evaluation:
    """The results of a batch, scored by one of the task's methods from these arguments.

    Raises:
        UserError: the method raises or returns the wrong thing.
    """
    with np.errstate(all="ignore"), task_errors(type(task), method):
        scores = getattr(task, method)(*args)
        if not isinstance(scores, Scores):
            raise UserError(f"{method}() must return evo.Scores, got {type(scores).__name__}", method_place(type(task), method))
        if np.iscomplexobj(scores.objective) or np.iscomplexobj(scores.measures):
            raise UserError(f"{method}() returned complex numbers, must return real ones", method_place(type(task), method))
        objective = np.asarray(scores.objective, dtype=np.float64)
        measures = np.asarray(scores.measures, dtype=np.float64)
    if objective.shape != (batch_size,) or measures.shape != (batch_size, len(task.measures)):
        raise UserError(
            f"{method}() must return objective of shape ({batch_size},) and measures of "
            f"shape ({batch_size}, {len(task.measures)}), got {objective.shape} and {measures.shape}",
            method_place(type(task), method),
        )
    return finite_only(objective, measures)


def finite_only(objective: NDArray[np.float64], measures: NDArray[np.float64]) -> Evaluation:
    """The results of a batch with these scores. Rejects programs with a score that is not finite, or with an objective that sums
    and squares would make infinite.
    """
    finite = (np.abs(objective) <= MAX_OBJECTIVE) & np.isfinite(measures).all(axis=1)
    return Evaluation(
        status=np.where(finite, _OK, _REJECTED),
        objective=np.where(finite, objective, np.nan),
        measures=np.where(finite[:, None], measures, np.nan),
    )
