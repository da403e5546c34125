"""Parts of a task that most tasks leave as they are, as base classes of `evo.Task`: each may be skipped until it is needed.

Owns what a task can declare and define beside inputs, outputs, measures, points and score. Knows nothing of evaluation.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.native.picture import PictureSums
from evo.native.tune import PointErrors, PointLoss
from evo.tasks.rollout import Rollout
from evo.tasks.sums import Regression


@dataclass(frozen=True)
class Scores:
    """Result of `Task.score`.

    Attributes:
        objective: `(batch_size,)` float64, higher is better; NaN, or more than 1e150 either way, rejects the program: it never
            enters the archive.
        measures: `(batch_size, num_measures)` float64, in the order of `Task.measures`.
    """

    objective: NDArray[Any]
    measures: NDArray[Any]


class Window(NamedTuple):
    """Part of a picture: it begins `left` pixels to the right of the top left corner of a picture of `side` x `side`
    pixels, and `top` pixels below. It may lie beside the picture.
    """

    side: int
    left: int = 0
    top: int = 0


@dataclass(frozen=True)
class Programs:
    """Facts about the programs of a batch, beside what they computed.

    Attributes:
        num_instructions: `(batch_size,)` int32, PTX instructions left after dead code is gone and equal values are merged.
        check: if the task has check points, the `Regression` there; of a program that is not finite at all `points()`, zeros.
    """

    num_instructions: NDArray[Any]
    check: Regression | None = None


@dataclass(frozen=True)
class RunnablePrograms:
    """The programs of a batch, as `Task.simulate` gets them. `len(programs)` is batch_size.

    Attributes:
        num_instructions: as of `Programs`.
        run: takes the value of each input, name -> `(batch_size, num_points)` if each program has values of its own, else
            `(num_points,)` or a number, and gives name -> `(batch_size, num_points)` of each output, of its type.
    """

    num_instructions: NDArray[np.int32]
    run: Callable[[dict[str, Any]], dict[str, NDArray[Any]]]

    def __len__(self) -> int:
        return len(self.num_instructions)


class Part:
    """A part of a task."""

    def _lacks(self, what: str) -> UserError:
        return UserError(f"class {type(self).__name__} {what}", place_of(type(self)))


class Reduced(Part):
    """Scores by sums over points, against targets.

    Attributes:
        reduction: None, and `score` gets the outputs; or `"regression"`, and `score` gets their `Regression` against
            `targets()`. The evaluator sums it up and never stores the outputs.
    """

    reduction: str | None = None

    def targets(self) -> dict[str, NDArray[Any]]:
        """With a reduction, or for `search.tuning`: each output's target, `(num_points,)`. Searches read the nearest float32."""
        raise self._lacks("has a reduction, so it must define targets()")

    def weights(self) -> NDArray[Any] | None:
        """With a reduction: how much each point counts, `(num_points,)`, above 0, in sums and when constants are tuned; None: all
        are equal. `check_points` have no weights.
        """
        return None

    def point_errors(self) -> PointErrors | None:
        """Errors whose largest is the score, so that constants are tuned to it; None: they are fitted by least squares."""
        return None

    def point_loss(self) -> PointLoss | None:
        """With a reduction, one output and scaling: what is fitted in place of squared errors, on the CPU. `score` gets its
        `linear_scaling`, and its sum as `sum_squared_error`. None: squared errors.
        """
        return None

    def check_points(self) -> dict[str, NDArray[Any]]:
        """With a reduction: as `points`, a second set of points, where programs run too; empty: none.

        `score` gets the sums there as `programs.check`, such as to reject programs with poles between the points.
        """
        return {}

    def check_targets(self) -> dict[str, NDArray[Any]]:
        """For each output its target at the check points, `(num_check_points,)` float32."""
        raise self._lacks("has check points, so it must define check_targets()")


class Simulated(Part):
    """Programs in a loop, or run as often as the task likes.

    Attributes:
        rollout: None, and programs run once at each point; or `evo.Rollout`, and they run in a loop. `points` gives the
            beginnings of trajectories then, `score` gets the records of each state, `(batch_size, num_records,
            num_trajectories)`, and `targets` has the recorded data, `(num_records, num_trajectories)`, by state.
    """

    rollout: Rollout | None = None

    def simulate(self, programs: RunnablePrograms) -> Scores:
        """In place of `points` and `score`: runs the programs as often as it likes, at inputs that depend on what they computed
        before, and scores them. For simulators in Python; where formulas will do, `rollout` is faster. On the CPU alone.

        The result of a row must depend on that row alone. Several threads may call it at once.
        """
        raise self._lacks("must define simulate(programs)")

    @classmethod
    def has_simulation(cls) -> bool:
        """Return whether the task defines `simulate`."""
        return cls.simulate is not Simulated.simulate


class Summed(Part):
    """Scores from numbers that a kernel, or the CPU, sums up where the outputs are.

    A folder may have a `kernel.cu` beside its `task.py`: CUDA that scores programs on the GPU. See docs/guide/task-kernels.md.
    `score` is needed too: CPUs use it, and `evo doctor RUN` compares the kernel with it.

    Attributes:
        kernel_sums: None, and the task's kernel.cu writes objective and measures; or how many numbers it writes for each program
            instead, of which `score_sums` makes the scores.
        cpu_sums: None; or what makes these numbers of the outputs on the CPU, such as `evo.pictures.PictureSums`: the CPU then
            calls `score_sums` in place of `score` and stores no outputs. Not with a reduction or a rollout.
        needs_kernel: whether a run on a GPU is refused where kernel.cu cannot be compiled, because NVRTC is missing. False:
            `score` does its work then.
    """

    kernel_sums: int | None = None
    cpu_sums: PictureSums | None = None
    needs_kernel: bool = True

    def kernel_defines(self) -> dict[str, int | float | str] | None:
        """Macros for the task's own kernel.cu, such as options of the task that decide its score.

        None: kernel.cu does not serve the task with these options; its programs are scored by `score`.
        """
        return {}

    def score_sums(self, sums: NDArray[np.float64], programs: Programs) -> Scores:
        """With `kernel_sums`: as `score`, of what kernel.cu has written, `(batch_size, kernel_sums)`; NaN where it has not. With
        `cpu_sums` also of those.
        """
        raise self._lacks("has kernel_sums, so it must define score_sums()")


class Bounded(Part):
    """Bounds of what programs may be.

    Attributes:
        slots: None, or the GPU, such as `"sm_90"`, with whose issue slots evo fills the measure `slots`, whatever `score` says.
        constraints: None, or `evo.evaluate.constraints.Constraints` that programs keep to.
        template: None, or `evo.language.template.Template` of which programs are the functions.
    """

    slots: str | None = None
    constraints: Any = None
    template: Any = None


class Reported(Part):
    """Facts and predictions of programs in reports, beside their scores.

    Attributes:
        complexity: None, or the name of the measure that tells how complex a program is: reports then show the front of
            objective against complexity.
        column_names: output -> what `evo predict` calls its column, and input -> what texts call it; else the names themselves.
    """

    complexity: str | None = None
    column_names: dict[str, str] = {}  # noqa: RUF012 - a default that no one changes in place

    def scaling(self, outputs: dict[str, NDArray[Any]]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """If what a program predicts is not its output but `offset + scale * output`: output -> (offset, scale).

        Both are `(batch_size,)` numbers. Exports, predictions and printed formulas apply them. Outputs without a pair stay as
        they are.

        A task that scales predicts by formulas of real numbers: outputs, exports and predictions are computed in float64, by the
        functions themselves in place of instructions that approximate them, where there are such.

        Args:
            outputs: at `points()`, as `score` gets them without a reduction, but in float64.
        """
        return {}

    def input_scaling(self) -> dict[str, tuple[float, float]]:
        """If what a program reads is not an input but `(input - offset) / scale`: input -> (offset, scale).

        `points`, `check_points` and `report_points` are what programs read; predictions, exports and printed formulas take the
        input itself, and so does `read_points`.
        """
        return {}

    def report_points(self) -> dict[str, NDArray[Any]]:
        """As `points`: where programs run for `report`, such as on test data; empty: there is nothing to report."""
        return {}

    def report(self, outputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Name -> `(batch_size,)` numbers, of outputs at the report points as `score` gets them without a reduction."""
        raise self._lacks("has report points, so it must define report(outputs)")

    def description_length(self, objective: NDArray[Any], complexity: NDArray[Any]) -> NDArray[Any] | None:
        """Bits to write down a program and what it leaves unexplained; None: the task does not know. With `complexity` only."""
        return None

    def handicap(self, facts: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
        """Margin by which a program must beat all without a handicap to stand on the front; None: nobody has one.

        Args:
            facts: what `report` says of programs, `(num_programs,)` each, such as of formulas with poles, and their `objective`.
        """
        return None

    def known_of(self, program: str, run_folder: Path) -> str:
        """Further text for the head of a program's export; `""`: none. program: as reports have it."""
        return ""

    def read_points(self, path: Path, inputs: Sequence[str]) -> dict[str, NDArray[Any]]:
        """As `points`, but before `input_scaling`, from a user's file without targets, such as a table for `evo predict`.

        Args:
            inputs: those that the program uses; the others may be left out.

        Raises:
            UserError: the file cannot be read, or does not have what these inputs need.
        """
        raise self._lacks("reads no files (it has no read_points)")

    @classmethod
    def has_scaling(cls) -> bool:
        """Return whether the task defines `scaling`."""
        return cls.scaling is not Reported.scaling


class Drawn(Part):
    """Pictures that programs draw: a task that draws defines both methods."""

    def picture_points(self, size: int, t: float, window: Window | None = None) -> dict[str, NDArray[Any]]:
        """As `points`, for a picture of `size` x `size` pixels at time `t` in [0, 1).

        With a `window`, for its `size` x `size` pixels. Only films that are not square, and large stills, ask for windows, from
        several threads at once; a task need not know that argument.
        """
        raise self._lacks("draws no pictures (it has no picture_points)")

    def picture(self, outputs: dict[str, NDArray[Any]], size: int) -> NDArray[Any]:
        """`(batch_size, size, size, 3)` uint8 RGB of the outputs at `picture_points(size, t)`."""
        raise self._lacks("draws no pictures (it has no picture)")

    @classmethod
    def has_pictures(cls) -> bool:
        """Return whether the task defines both `picture_points` and `picture`."""
        return cls.picture_points is not Drawn.picture_points and cls.picture is not Drawn.picture

    @classmethod
    def has_windows(cls) -> bool:
        """Return whether the task's `picture_points` knows windows."""
        return "window" in inspect.signature(cls.picture_points).parameters


def place_of(task_class: type) -> str:
    """The file of a task's class, as messages name it."""
    if task_class.__module__ == "__main__":  # which is another module in a worker process, and has no file in a notebook
        codes = (getattr(value, "__code__", None) for value in vars(task_class).values())
        return next((code.co_filename for code in codes if code), task_class.__module__)
    return getattr(sys.modules.get(task_class.__module__), "__file__", None) or task_class.__module__
