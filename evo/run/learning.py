"""Learning of a search: the prescreen and the learned measures of a config.

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
from evo.native.itll import MAX_PCA_FEATURES
from evo.native.ptx_vm import VirtualMachine
from evo.native.row_threads import RowThreads
from evo.run.loaded_task import Problem
from evo.search.learned_measures import Describe, LearnedMeasures
from evo.search.prescreen import Prescreen
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
            _describe(row_threads, _features(problem)[0]),
            num_measures=len(problem.task.measures),
            seed=config.seed,
            arrays=arrays,
        )
    except ValueError as error:
        raise UserError(f"the checkpoint does not fit: {error}", "search.learning") from error


def make_learned_measures(
    problem: Problem, row_threads: RowThreads, arrays: dict[str, NDArray[Any]] | None = None
) -> LearnedMeasures:
    """Principal components of programs' outputs, as many as a config has `features`.

    Args:
        row_threads: threads that describe together.
        arrays: of the same measures in an earlier process; empty or None: they are new.

    Raises:
        UserError: the programs cannot be described, they have too many outputs or too few, or the arrays are of another version.
    """
    wanted = problem.config.search.learning.features
    features, num_outputs = _features(problem)
    if not wanted <= num_outputs <= MAX_PCA_FEATURES:
        raise UserError(
            f"programs have {num_outputs} outputs at all points; {wanted} features need {wanted} to {MAX_PCA_FEATURES}",
            "search.learning.points",
        )
    try:
        return LearnedMeasures(_describe(row_threads, features, num_outputs), wanted, arrays)
    except ValueError as error:
        raise UserError(f"the checkpoint does not fit: {error}", "search.learning") from error


def _features(problem: Problem) -> tuple[ProgramFeatures, int]:
    """Describes programs, at points of the task spread evenly over their order; and how many features, the first, are outputs."""
    language, task, config = problem.language, problem.task, problem.config
    if missing := without_cpu_meaning(language, list(config.program.vocabulary.instructions)):
        raise UserError(
            f"programs are described on the CPU, which has no {missing[0]}; set prescreen to 1, descriptors to "
            "task and features to 0",
            "search.learning",
        )
    if task.rollout is not None:
        raise UserError("programs of a task with a rollout are not described; leave it out", "search.learning")
    inputs, num_points = point_arrays(task, ask(task, "points"), "points()")
    rows = spread(num_points, config.search.learning.points)
    probes = [values[rows] if values.ndim else values for values in inputs]
    features = ProgramFeatures(
        VirtualMachine(language.lowering),
        [*probes, *[None] * (len(language.registers) - len(inputs))],
        is_scaled=task.has_scaling(),
    )
    return features, len(task.outputs) * len(rows)


def _describe(row_threads: RowThreads, features: ProgramFeatures, num_features: int | None = None) -> Describe:
    """Gives the first features of programs, or all of them."""

    def describe(programs: ProgramRows) -> NDArray[np.float32]:
        return np.concatenate(
            row_threads.map(lambda first, end: features.describe(programs[first:end])[:, :num_features], len(programs))
        )

    return describe
