"""Learning of a search: the prescreen of a config.

Owns the probe points of programs' features.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate.cpu import without_cpu_meaning
from evo.evaluate.sampling import spread
from evo.itll import ProgramFeatures
from evo.language.batch import ProgramRows
from evo.native.ptx_vm import VirtualMachine
from evo.native.row_threads import RowThreads
from evo.run.loaded_task import Problem
from evo.search.prescreen import Describe, Prescreen
from evo.tasks.answers import ask, point_arrays


def make_prescreen(problem: Problem, row_threads: RowThreads, arrays: dict[str, NDArray[Any]]) -> Prescreen | None:
    """The prescreen of a config; None if it has none.

    Args:
        row_threads: threads that describe together.
        arrays: of the same prescreen in an earlier process; empty: it is new.

    Raises:
        UserError: the programs cannot be described, or the arrays are of another version of evo.
    """
    config = problem.config
    if config.search.learning.prescreen == 1:
        return None
    try:
        return Prescreen(
            config.search.learning,
            _describe(row_threads, _features(problem)),
            num_measures=len(problem.task.measures),
            seed=config.seed,
            arrays=arrays,
        )
    except ValueError as error:
        raise UserError(f"the checkpoint does not fit: {error}", "search.learning") from error


def _features(problem: Problem) -> ProgramFeatures:
    """Describes programs, at points of the task spread evenly over their order."""
    language, task, config = problem.language, problem.task, problem.config
    if missing := without_cpu_meaning(language, list(config.program.vocabulary.instructions)):
        raise UserError(f"programs are described on the CPU, which has no {missing[0]}; set prescreen to 1", "search.learning")
    if task.rollout is not None:
        raise UserError("programs of a task with a rollout are not described; leave it out", "search.learning")
    inputs, num_points = point_arrays(task, ask(task, "points"), "points()")
    rows = spread(num_points, config.search.learning.points)
    probes = [values[rows] if values.ndim else values for values in inputs]
    return ProgramFeatures(
        VirtualMachine(language.lowering),
        [*probes, *[None] * (len(language.registers) - len(inputs))],
        is_scaled=task.has_scaling(),
    )


def _describe(row_threads: RowThreads, features: ProgramFeatures) -> Describe:
    """Gives the features of programs."""

    def describe(programs: ProgramRows) -> NDArray[np.float32]:
        return np.concatenate(row_threads.map(lambda first, end: features.describe(programs[first:end]), len(programs)))

    return describe
