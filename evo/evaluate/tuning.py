"""The tuner: fits the constants of programs to a task's targets, on this machine's cores.

Owns the threads, and which tasks can be tuned. Knows nothing of which programs are worth it. It decides no result: that of a
program depends on the program and the task alone. It runs on the CPU, whatever backend scores the programs.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.loop_tuning import LoopTuner
from evo.evaluate.sampling import spread, weighted_spread
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.native.tune import LossFitter, PointErrors, Tuner
from evo.task import Task
from evo.tasks.answers import ask, point_arrays, target_array, weight_array
from evo.workers.crew import Crew

DEFAULT_SHARE = 0.25  # of a generation's new programs; docs/regression.md has what other shares find
ROLLOUT_SHARE = 0.05  # with a rollout, which makes tuning a program as costly as evaluating thousands
# A sample of n points tells p constants apart from better ones but for p / n of the error, which is less than structure decides.
SAMPLE_POINTS = 2048
LOSS_POINTS = 512  # with a loss, an iteration of which takes longer
MAX_POINTS = 1 << 16  # beyond, more of them would hold up a GPU and hardly move a constant
FINAL_SHARE_LOG2, FINAL_ITERATIONS = 3, 2  # of programs that go on over all points: one in 8, so that lines of descent get there
CHUNK_POINTS = 1 << 18  # points times programs that a thread tunes in one call, which holds up the end after Ctrl-C
MAX_CHUNK = 32  # programs
FIRST_ITERATIONS = 8  # of least squares, before a largest error is made small
FINISHED_CHUNK = 4  # programs
_MIXER = np.uint64(0x9E3779B97F4A7C15)
Tune = Callable[[NDArray[np.uint64]], tuple[NDArray[np.uint64], NDArray[np.void]]]


class ConstantTuner:
    """Tunes programs by Levenberg-Marquardt, and finishes them if the task scores the largest error. csrc/tune.h documents the
    methods.

    Args:
        language: what the programs are written in.
        task: gives points, targets and weights.
        iterations: at most this many for each program.
        linear_scale: the error is that of the best linear function of the output.
        trials: moves of the last bits of a program's constants.
        max_points: most points of the task to use, spread evenly over their order; None: SAMPLE_POINTS, and then MAX_POINTS for
            some of the programs, chosen by their words. A largest error is that of all points, and exchanges see SAMPLE_POINTS.
        num_threads: None: one for each core that this process may use.

    Attributes:
        is_sampled: the task has more points than most programs are tuned on.
        finishes: the task scores the largest error.

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
        trials: int = 0,
        max_points: int | None = None,
        num_threads: int | None = None,
    ):
        machine = VirtualMachine(language.lowering)

        def tuner(max_points: int, iterations: int, errors: PointErrors | None = None) -> tuple[Tuner | LoopTuner, int]:
            """And the number of its points."""
            if task.rollout:
                looped = LoopTuner(language, task, iterations=iterations, max_points=max_points)
                return looped, looped.num_points
            points = sampled(language, task, max_points)
            if errors:
                points, errors = _sample_first(points, errors)
            made = Tuner(
                machine,
                points.inputs,
                points.target,
                iterations=iterations,
                is_scaled=linear_scale,
                weights=points.weights,
                errors=errors,
                loss=loss_fitter(task, points.target, points.weights),
                trials=trials,
                is_through_origin=bool(task.template and not task.template.has_offset),
            )
            return made, len(points.target)

        few, many = (LOSS_POINTS, SAMPLE_POINTS) if ask(task, "point_loss") else (SAMPLE_POINTS, MAX_POINTS)
        self._tuner, num_points = tuner(max_points or few, iterations)
        final, num_final = tuner(max_points or many, min(iterations, FINAL_ITERATIONS))
        self.is_sampled = num_final > num_points
        self._final, self._finisher = final if self.is_sampled else None, None
        errors = None if task.rollout else ask(task, "point_errors")
        if errors:
            self._finisher, _ = tuner(len(errors.targets), FIRST_ITERATIONS, errors)
        self.finishes = self._finisher is not None
        self._chunk_size = min(max(CHUNK_POINTS // num_points, 1), MAX_CHUNK)
        self._crew = Crew(num_threads or len(os.sched_getaffinity(0)))

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        """Tuned copies of programs, `(num_programs, max_length)`; which of them changed, `(num_programs,)`; and how often a
        program was run for it.
        """
        return self._by_chunks(self._tune, words, self._chunk_size)

    def finish(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        """As `tune`, to the least largest error."""
        return self._by_chunks(self._finisher.tune, words, FINISHED_CHUNK) if self._finisher else self.tune(words[:0])

    def _by_chunks(
        self, tune: Tune, words: NDArray[np.uint64], chunk_size: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        chunks = [words[start : start + chunk_size] for start in range(0, len(words), chunk_size)]
        if not chunks:
            return words.copy(), np.zeros(0, np.bool_), 0
        parts = self._crew.map(tune, chunks)
        outcomes = np.concatenate([part for _, part in parts])
        return np.concatenate([part for part, _ in parts]), outcomes["is_changed"] != 0, int(outcomes["num_evaluations"].sum())

    def _tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.void]]:
        tuned, outcomes = self._tuner.tune(words)
        if self._final:
            mixed = tuned.sum(axis=1, dtype=np.uint64) * _MIXER
            rows = np.flatnonzero(mixed >> np.uint64(64 - FINAL_SHARE_LOG2) == 0)  # by the program alone, not by its neighbours
            tuned[rows], final = self._final.tune(tuned[rows])
            outcomes["is_changed"][rows] |= final["is_changed"]
            outcomes["num_evaluations"][rows] += final["num_evaluations"]
        return tuned, outcomes

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
    """The points of a task with one target, or `max_points` of them: those of `spread`, or with weights of `weighted_spread`.

    Raises:
        UserError: the task's points, targets or weights are malformed, or raise.
    """
    inputs, num_points = point_arrays(task, ask(task, "points"), "points()")
    all_weights = weight_array(task, num_points)
    rows, weights = (spread(num_points, max_points), None) if all_weights is None else weighted_spread(all_weights, max_points)
    columns = [values[rows] if values.ndim else values for values in inputs]
    return Points(
        [*columns, *[None] * (len(language.registers) - len(columns))],
        target_array(task, num_points)[0, rows],
        None if weights is None else weights.astype(np.float32),
    )


def _sample_first(points: Points, errors: PointErrors) -> tuple[Points, PointErrors]:
    """Moves a sample of SAMPLE_POINTS, which alone have targets, to the front of all points."""
    count = len(points.target)
    sample = np.union1d(spread(count, SAMPLE_POINTS), [count - 1])
    order = np.append(sample, np.setdiff1d(np.arange(count), sample))
    inputs = [values[order] if values is not None and values.ndim else values for values in points.inputs]
    weights = None if points.weights is None else points.weights[sample]
    errors = errors._replace(targets=errors.targets[order], scales=errors.scales[order])
    return Points(inputs, points.target[sample], weights), errors


def loss_fitter(
    task: Task, target: NDArray[np.float32], weights: NDArray[np.float32] | None, max_points: int | None = None
) -> LossFitter | None:
    """Make the fitter of the task's own loss, mostly at a sample of the points; None: the task has no loss."""
    loss = ask(task, "point_loss")
    if loss is None:
        return None
    rows = spread(len(target), max_points) if max_points and max_points < len(target) else None
    return LossFitter(VirtualMachine(loss.lowering), loss, target, weights, rows)


def default_share(task: Task) -> float:
    """Share of a generation's programs that are tuned, if a task is tunable and the config leaves it open."""
    return 0.0 if task.reduction is None else ROLLOUT_SHARE if task.rollout else DEFAULT_SHARE


def why_not_tunable(task: Task) -> str | None:
    """Why a task's constants cannot be tuned; None: they can."""
    if type(task).targets is Task.targets:
        return "needs a task with targets(), which the constants are fitted to"
    if task.rollout is not None:
        not_f32 = [name for name, kind in {**task.inputs, **task.outputs}.items() if kind != "f32"]
        return "needs a rollout without a grid" if task.rollout.grid else f"needs '{not_f32[0]}' to be f32" if not_f32 else None
    return None if len(task.outputs) == 1 else f"needs a task with one output, {type(task).__name__} has {len(task.outputs)}"
