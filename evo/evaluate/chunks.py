"""Chunks: the programs that are run and scored in one go.

Owns their size, which decides no result, and what is done with one. A chunk's size depends on the task alone, never on the
number of threads or processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate import Evaluation, Stats, by_name, checked, join, score_batch, stored_types
from evo.evaluate.loops import LoopRunner, trajectories
from evo.evaluate.tuning import LOSS_POINTS, loss_fitter
from evo.language.batch import ProgramRows
from evo.language.program import Language
from evo.native import ptx_vm
from evo.native.ptx_vm import SUMS_DTYPE, Targets, VirtualMachine
from evo.native.tune import LossFitter
from evo.task import RunnablePrograms, Task, place_of
from evo.tasks.answers import ask, changes_when_asked, point_arrays, target_array, typed_arrays, weight_array
from evo.tasks.sums import Regression

OUTPUT_BYTES = 1 << 20  # of one chunk: fits a core's L2 cache
MIN_CHUNK, MAX_CHUNK = 8, 256
MAX_REDUCED = 128  # programs whose sums a thread computes in one go; they are scored with the whole batch
FITTED_ITERATIONS = 5  # of offset and scale, by a loss


def chunk_size(num_points: int, num_outputs: int) -> int:
    """Programs of a chunk: as many as have `OUTPUT_BYTES` of 4-byte outputs, within bounds."""
    return min(max(OUTPUT_BYTES // (4 * num_points * num_outputs), MIN_CHUNK), MAX_CHUNK)


def slices(num_programs: int, size: int) -> list[slice]:
    """The rows of each chunk of this size."""
    return [slice(first, first + size) for first in range(0, num_programs, size)]


def whole(parts: list[Evaluation], num_measures: int, who: str) -> Evaluation:
    """The results of consecutive parts of a batch. times_s: sums over `threads` or `workers`."""
    joined = join(parts, num_measures)
    times_s = joined.stats.times_s
    return replace(joined, stats=Stats({f"{name}_{who}": times_s.get(name, 0.0) for name in ("evaluate", "score")}))


@dataclass(frozen=True)
class Points:
    """Points at which a task's programs run.

    inputs: an array for each register, None where it is not an input. targets: with a reduction. check: the task's check points,
    if it has any. changes_task: asking for the points changes the task, so `score` may rely on a task that has been asked.
    """

    inputs: list[NDArray[Any] | None]
    num_points: int
    targets: Targets | None
    check: Points | None = None
    changes_task: bool = False


class ChunkScorer:
    """Runs programs at a task's points and has the task score them. Safe to use from many threads at once.

    Args:
        language: what the programs are written in.
        task: gives points and score.
        level: the virtual machine's SIMD level; None: this CPU's best. All levels give the same results.
        points: those of another scorer of this task; None: the task is asked for them.

    Raises:
        UserError: the task's points or targets are malformed, or raise.
    """

    def __init__(self, language: Language, task: Task, level: str | None = None, points: Points | None = None):
        self.task = task
        self._language = language
        self._machine = VirtualMachine(language.lowering, level)
        self._loop = LoopRunner(language, task) if task.rollout is not None else None
        self.points = points or self._ask_for_points()
        if points and points.changes_task:
            self._ask_for_points()  # its effect on the task is needed
        targets, self._loss = self.points.targets, None
        if targets and not self._loop:
            self._loss = loss_fitter(task, targets.values[0], targets.weights, LOSS_POINTS)
        self.num_outputs = len(stored_types(task))  # of a program
        self.chunk_size = chunk_size(self.points.num_points, self.num_outputs)
        if task.cpu_sums:
            try:
                self.run(np.zeros((0, 1), np.uint64))
            except ValueError as error:
                raise UserError(f"class {type(task).__name__}.cpu_sums: {error}", place_of(type(task))) from None

    @property
    def level(self) -> str:
        """The SIMD level in use."""
        return self._machine.level

    def score(self, programs: ProgramRows, num_instructions: NDArray[np.int32]) -> Evaluation:
        """The results of a chunk. times_s: `evaluate` and `score`."""
        start = time.perf_counter()
        if self.task.has_simulation():
            runnable = RunnablePrograms(num_instructions, lambda inputs: self._run_at(programs, inputs))
            part = checked(self.task, "simulate", len(programs), runnable)
            return replace(part, stats=Stats({"score": time.perf_counter() - start}))
        results = self.run(programs)
        evaluated = time.perf_counter()
        part = self.judge(results, num_instructions)
        scored = time.perf_counter()
        return replace(part, stats=Stats({"evaluate": evaluated - start, "score": scored - evaluated}))

    def score_stored(self, outputs: NDArray[np.float32], num_instructions: NDArray[np.int32]) -> Evaluation:
        """As `score`, of the outputs of programs that ran elsewhere, `(num_programs, num_outputs, num_points)`."""
        start = time.perf_counter()
        part = self.judge(outputs, num_instructions)
        return replace(part, stats=Stats({"score": time.perf_counter() - start}))

    def work(self, programs: ProgramRows) -> tuple[NDArray[np.float64], Callable[[], None]] | None:
        """With `cpu_sums`: the array that `run` would return, and a function that fills it in. Any number of threads may call the
        function at once, and take turns at the programs.
        """
        if (summing := self.task.cpu_sums) is None:
            return None
        sums, turn = np.empty((len(programs), summing.num_sums)), np.zeros(1, np.uintp)
        return sums, lambda: self._machine.sum_up(programs, self.points.inputs, summing, sums, turn)

    def run(self, programs: ProgramRows) -> NDArray[Any]:
        """Run programs: outputs, `(num_programs, num_outputs, num_points)`; or `cpu_sums`; or sums of a reduction,
        `(num_programs, num_outputs)`, and beside them those at the check points.
        """
        points, check = self.points, self.points.check
        if work := self.work(programs):
            work[1]()
            return work[0]
        if points.targets is None:
            return self._stored(self._machine, programs, points.inputs)
        if self._loop:
            return self._loop.reduced(self.level, self._stored(self._machine, programs, points.inputs), points.targets)
        sums: NDArray[Any]
        if self._loss:
            sums = _sums_of_losses(self._loss, self._machine.store(programs, points.inputs))
        else:
            sums = self._machine.reduce(programs, points.inputs, points.targets)
        if check is None:
            return sums
        assert check.targets is not None
        checked = np.zeros_like(sums)
        rows = np.flatnonzero((sums["num_nonfinite"] == 0).all(axis=1))
        checked[rows] = self._machine.reduce(programs[rows], check.inputs, check.targets)
        return np.concatenate([sums, checked], axis=1)

    def judge(self, results: NDArray[Any], num_instructions: NDArray[np.int32]) -> Evaluation:
        """Has the task score the results of `run`."""
        if self.task.cpu_sums:
            return score_batch(self.task, results, num_instructions, method="score_sums")
        if self.points.targets is None:
            return score_batch(self.task, by_name(self.task, results), num_instructions)
        num_outputs = self.num_outputs
        check = Regression.of_sums(results[:, num_outputs:]) if self.points.check else None
        return score_batch(self.task, Regression.of_sums(results[:, :num_outputs]), num_instructions, check)

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`."""
        if self._loop:
            return trajectories(self._machine, self._language, self.task, words, points, "picture_points()")
        inputs, _ = self._point_arrays(points, "picture_points()")
        return by_name(self.task, self._machine.store(words, inputs))

    def _run_at(self, programs: ProgramRows, inputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """Implement `RunnablePrograms.run`."""
        arrays = typed_arrays(inputs, self.task.inputs, f"{place_of(type(self.task))}: programs.run()", verb="takes")
        registers = [*arrays, *[None] * (len(self._language.registers) - len(arrays))]
        return by_name(self.task, self._machine.store(programs, registers))

    def _stored(self, machine: VirtualMachine, programs: ProgramRows, inputs: list[Any]) -> NDArray[Any]:
        """Outputs of programs, or with a rollout the records of their trajectories."""
        return self._loop.run(machine, programs, inputs) if self._loop else machine.store(programs, inputs)

    def _ask_for_points(self) -> Points:
        if self.task.has_simulation():
            return Points([], 1, None)
        inputs, num_points = self._point_arrays(ask(self.task, "points"), "points()")
        aligned = [None if values is None else _aligned(values) for values in inputs]
        targets = check = None
        if self.task.reduction:
            if self._loop:
                weights = self._loop.weights(num_points)
                targets = Targets(_aligned(self._loop.targets(num_points // self._loop.num_records)), weights)
            else:
                weights = weight_array(self.task, num_points)
                targets, check = Targets(_aligned(target_array(self.task, num_points)), weights), self._ask_for_check_points()
        return Points(aligned, num_points, targets, check, changes_when_asked(self.task))

    def _ask_for_check_points(self) -> Points | None:
        points = ask(self.task, "check_points")
        if not points:
            return None
        inputs, num_points = self._point_arrays(points, "check_points()")
        targets = Targets(_aligned(target_array(self.task, num_points, "check_targets")))
        return Points([None if values is None else _aligned(values) for values in inputs], num_points, targets)

    def _point_arrays(self, points: dict[str, NDArray[Any]], method: str) -> tuple[list[NDArray[Any] | None], int]:
        if self._loop:
            columns, num_trajectories = self._loop.columns(points, method)
            return [*columns], num_trajectories * self._loop.num_records
        arrays, num_points = point_arrays(self.task, points, method)
        return [*arrays, *[None] * (len(self._language.registers) - len(arrays))], num_points


def _sums_of_losses(loss: LossFitter, outputs: NDArray[Any]) -> NDArray[np.void]:
    """Sums of a reduction, `(num_programs, 1)`, against the targets that offset and scale of the least loss explain in full; that
    loss in place of squared errors.
    """
    fit = loss.fit(outputs[:, 0], FITTED_ITERATIONS)
    sums = np.zeros((len(fit), 1), SUMS_DTYPE)
    row, weight = sums[:, 0], fit["num_points"].astype(np.float64)
    row["num_points"], row["weight"], row["num_nonfinite"] = fit["num_points"], weight, ~np.isfinite(fit["loss"])
    row["reference_y"], row["sum_y"], row["sum_yy"] = fit["reference"], fit["sum_y"], fit["sum_yy"]
    row["sum_squared_error"] = fit["loss"]
    with np.errstate(all="ignore"):
        mean_y = fit["sum_y"] / weight
        varied = np.maximum(fit["sum_yy"] - mean_y * fit["sum_y"], 0.0)
        row["reference_t"] = fit["offset"] + fit["scale"] * (fit["reference"] + mean_y)
        row["sum_yt"], row["sum_tt"] = fit["scale"] * varied, fit["scale"] ** 2 * varied
    return sums


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that suits wide vectors."""
    copy = ptx_vm.empty(array.shape, array.dtype)
    copy[...] = array
    return copy
