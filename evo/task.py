"""Interface of a task.

Owns the interface between a problem and the search: names and types of a program's inputs and outputs, the points at which
programs are evaluated, the measures, and the score. `evo.tasks.parts` has what few tasks need. Knows nothing of how programs are
evaluated or bred. `evo.tasks.folder` loads one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.tasks.parts import (
    Bounded,
    Drawn,
    Programs,
    Reduced,
    Reported,
    RunnablePrograms,
    Scores,
    Simulated,
    Summed,
    Window,
    place_of,
)

__all__ = ["DTYPES", "REDUCTIONS", "Programs", "RunnablePrograms", "Scores", "Task", "Window", "place_of"]

REDUCTIONS = ("regression",)
MAX_OBJECTIVE = 1e150  # of magnitudes; squares and sums over an archive must not overflow
MAX_MEASURE_RANGE = 1e300  # times the number of cells it must not overflow
MAX_NAMES = 1 << 14  # of inputs or outputs; the search slows down with the square of them
# f16 and bf16 are given, and come back, as float32 of their values.
DTYPES = {"f32": np.float32, "u32": np.uint32, "s32": np.int32, "f16": np.float32, "bf16": np.float32, "b32": np.uint32}


class Task(Reduced, Simulated, Summed, Bounded, Reported, Drawn):
    """A problem to search programs for. A task is a subclass of this one, in the `task.py` of its own folder.

    Every task has these; each base class adds what some tasks need. These are attributes of the class; `__init__` may replace
    them by attributes of the task if they depend on its options.

    Attributes:
        inputs: name -> type (`"f32"`, `"u32"`, `"s32"`; on the CPU `"f16"`, `"bf16"`) of each value that a program reads.
        outputs: name -> type of each value that a program must leave on its stacks; the first is popped first.
        measures: name -> `(low, high)`, the range that the archive's cells divide.
        objective_range: `(low, high)`, or None if it is not known. The QD score sums objectives above `low`, so that each new
            cell adds to it; None counts as a `low` of 0.
        notes: lines to print when a run begins, such as which columns of a table are left out.
    """

    inputs: dict[str, str] = {}  # noqa: RUF012 - a default that no one changes in place
    outputs: dict[str, str] = {}  # noqa: RUF012
    measures: dict[str, tuple[float, float]] = {}  # noqa: RUF012
    objective_range: tuple[float, float] | None = None
    notes: Sequence[str] = ()

    def points(self) -> dict[str, NDArray[Any]]:
        """The value of each input at each point: `(num_points,)`, or a scalar if it is the same at all points."""
        raise self._lacks("must define points()")

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """Objective and measures of a batch of programs.

        The result of a row must depend on that row alone. Several threads may call it at once.

        Args:
            outputs: name -> `(batch_size, num_points)` of the output's type, NaN and infinities included; with a
                reduction, its result (`Regression`).
            programs: facts about the programs themselves.
        """
        raise self._lacks("must define score(outputs, programs)")

    def files(self) -> Sequence[str | Path]:
        """Files and folders outside the task's folder that decide its scores, such as data. A run is only resumed with the same.

        Relative paths begin at the task's folder. What lies in it always counts, except hidden files and caches.
        """
        return []

    def programs(self) -> Sequence[str]:
        """Programs that generation 0 is given, as formulas or in text form. Those that the config's vocabulary or length does
        not allow are left out.
        """
        return []
