"""The tuner: fits the constants of programs to a task's targets, on this machine's cores.

Owns the threads, and which tasks can be tuned. Knows nothing of which programs are worth it. It decides no result: that of a
program depends on the program and the task alone. It runs on the CPU, whatever backend scores the programs.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.crew import Crew
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.native.tune import Tuner
from evo.task import Task, ask, point_arrays, target_array, weight_array

DEFAULT_SHARE = 0.25  # of a generation's new programs; docs/regression.md has what other shares find
DEFAULT_POINTS = 1 << 16  # beyond, more of them would hold up a GPU and hardly move a constant
CHUNK_POINTS = 1 << 18  # points times programs that a thread tunes in one call, which holds up the end after Ctrl-C
MAX_CHUNK = 32  # programs
GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0


class ConstantTuner:
    """Tunes programs by Levenberg-Marquardt. csrc/tune.h documents the method.

    Args:
        language: what the programs are written in.
        task: gives points, targets and weights.
        iterations: at most this many for each program.
        linear_scale: the error is that of the best linear function of the output.
        max_points: most points of the task to use, spread evenly over their order; None: DEFAULT_POINTS.
        num_threads: None: one for each core that this process may use.

    Raises:
        UserError: the task's points or targets are malformed, or raise.
    """

    def __init__(
        self,
        language: Language,
        task: Task,
        *,
        iterations: int,
        linear_scale: bool,
        max_points: int | None = None,
        num_threads: int | None = None,
    ):
        points = sampled(language, task, max_points or DEFAULT_POINTS)
        self._tuner = Tuner(
            VirtualMachine(language.lowering),
            points.inputs,
            points.target,
            iterations=iterations,
            is_scaled=linear_scale,
            weights=points.weights,
        )
        self._chunk_size = min(max(CHUNK_POINTS // len(points.target), 1), MAX_CHUNK)
        self._crew = Crew(num_threads or len(os.sched_getaffinity(0)), type(task).__name__)

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        """Tuned copies of programs, `(num_programs, max_length)`; which of them changed, `(num_programs,)`; and how often a
        program was run over all points for it.
        """
        chunks = [words[start : start + self._chunk_size] for start in range(0, len(words), self._chunk_size)]
        if not chunks:
            return words.copy(), np.zeros(0, np.bool_), 0
        parts = self._crew.map(self._tuner.tune, chunks)
        outcomes = np.concatenate([part for _, part in parts])
        return np.concatenate([part for part, _ in parts]), outcomes["is_changed"] != 0, int(outcomes["num_evaluations"].sum())

    def close(self) -> None:
        """Ends the threads."""
        self._crew.close()


@dataclass(frozen=True)
class Points:
    """Some of a task's points. inputs: of each register, `(num_points,)`, `()` or None. target: `(num_points,)` float32. weights:
    the same; None: all are 1.
    """

    inputs: list[NDArray[Any] | None]
    target: NDArray[np.float32]
    weights: NDArray[np.float32] | None


def sampled(language: Language, task: Task, max_points: int) -> Points:
    """The points of a task with one target, or `max_points` of them (`spread`).

    Raises:
        UserError: the task's points, targets or weights are malformed, or raise.
    """
    inputs, num_points = point_arrays(task, ask(task, "points"), "points()")
    rows = spread(num_points, max_points)
    columns = [values[rows] if values.ndim else values for values in inputs]
    weights = weight_array(task, num_points)
    return Points(
        [*columns, *[None] * (len(language.registers) - len(columns))],
        target_array(task, num_points)[0, rows],
        None if weights is None else weights[rows],
    )


def spread(num_points: int, max_points: int) -> NDArray[np.int64]:
    """Points by their index, sorted: all, or `max_points` of them. Multiples of the golden ratio choose these, so that they are
    spread evenly and share no period with a grid.
    """
    if num_points <= max_points:
        return np.arange(num_points)
    return np.sort(np.argsort(np.arange(num_points) * GOLDEN_RATIO % 1.0, kind="stable")[:max_points])


def why_not_tunable(task: Task) -> str | None:
    """Why a task's constants cannot be tuned; None: they can."""
    if type(task).targets is Task.targets:
        return "needs a task with targets(), which the constants are fitted to"
    return None if len(task.outputs) == 1 else f"needs a task with one output, {type(task).__name__} has {len(task.outputs)}"
