"""What a search learns with: the prescreen and the learned measures of a config, and what an evaluation costs on this machine.

Owns the probe points of programs' features, and the only clock that decides anything: the cost is measured once, as the search
begins, and is part of its state from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate.cpu import without_cpu_meaning
from evo.evaluate.tuning import spread
from evo.itll import Model, ProgramFeatures
from evo.language.batch import Batch
from evo.native.itll import MAX_PCA_FEATURES
from evo.native.ptx_vm import VirtualMachine
from evo.run.loaded_task import Problem
from evo.search.emitter import ProgramEmitter
from evo.search.learned_measures import LearnedMeasures
from evo.search.prescreen import Prescreen
from evo.search.row_threads import RowThreads
from evo.task import ask, point_arrays

NUM_ROUNDS = 4  # of which the fastest counts: the first warms up, and others may be interrupted
NUM_LOOKED_AT = 512  # programs that the cost of looking at one is measured with
WARM_UP = 2  # programs that are evaluated before: the first may start threads
MIN_SECONDS = 0.02  # of evaluation, that its cost is taken from

Describe = Callable[[NDArray[np.uint64]], NDArray[np.float32]]


def make_prescreen(
    problem: Problem, emitter: ProgramEmitter, row_threads: RowThreads, arrays: dict[str, NDArray[Any]]
) -> Prescreen | None:
    """The prescreen of a config; None if it has none.

    Args:
        emitter: makes the programs that costs are measured with.
        row_threads: threads that describe together.
        arrays: of the same prescreen in an earlier process; empty: it is new.

    Raises:
        UserError: the programs cannot be described, or the arrays are of another version of evo.
    """
    config = problem.config.search.learning
    if config.prescreen == 1:
        return None
    describe = _describe(row_threads, _features(problem)[0])
    cost = float(arrays["cost"][0]) if arrays else config.evaluation_cost or _measured_cost(problem, emitter, describe)
    num_measures = len(problem.task.measures)
    try:
        return Prescreen(config, describe, num_measures=num_measures, seed=problem.config.seed, cost=cost, arrays=arrays)
    except ValueError as error:
        raise UserError(f"search.learning: the checkpoint does not fit: {error}") from error


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
            f"search.learning.points: programs have {num_outputs} outputs at all points; {wanted} features need {wanted} to "
            f"{MAX_PCA_FEATURES}"
        )
    try:
        return LearnedMeasures(_describe(row_threads, features, num_outputs), wanted, arrays)
    except ValueError as error:
        raise UserError(f"search.learning: the checkpoint does not fit: {error}") from error


def _features(problem: Problem) -> tuple[ProgramFeatures, int]:
    """Describes programs, at points of the task spread evenly over their order; and how many features, the first, are outputs."""
    language, task, config = problem.language, problem.task, problem.config
    if missing := without_cpu_meaning(language, list(config.program.vocabulary.instructions)):
        raise UserError(
            f"search.learning: programs are described on the CPU, which has no {missing[0]}; set prescreen to 1, descriptors to "
            "task and features to 0"
        )
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

    def describe(words: NDArray[np.uint64]) -> NDArray[np.float32]:
        return np.concatenate(
            row_threads.map(lambda first, end: features.describe(words[first:end])[:, :num_features], len(words))
        )

    return describe


def _measured_cost(problem: Problem, emitter: ProgramEmitter, describe: Describe) -> float:
    """Seconds of an evaluation for each second of looking at an offspring: breeding, hashing and describing it, its prediction,
    and the learning from one in so many.
    """
    config, lowering = problem.config.search.learning, problem.language.lowering
    clock = time.perf_counter
    num_learned = max(NUM_LOOKED_AT // config.prescreen, 1)
    model = None
    look_s = float("inf")
    for _ in range(NUM_ROUNDS):
        start_s = clock()
        words = emitter.random_programs(NUM_LOOKED_AT)
        Batch.analyze(lowering, words)
        features = describe(words)
        model = model or Model("ridge", features.shape[1], 1 + len(problem.task.measures), window=config.window)
        model.predict(features, return_std=True)
        model.update(features[:num_learned], np.zeros((num_learned, 1 + len(problem.task.measures))))
        look_s = min(look_s, (clock() - start_s) / NUM_LOOKED_AT)
    problem.evaluator.evaluate(Batch.analyze(lowering, emitter.random_programs(WARM_UP, generation=1)))
    evaluation_s, size, first = 0.0, 4, 0
    while evaluation_s * size < MIN_SECONDS and size <= NUM_LOOKED_AT:
        rounds_s = []
        for _ in range(2):
            batch = Batch.analyze(lowering, emitter.random_programs(size, first_slot=first))
            start_s = clock()
            problem.evaluator.evaluate(batch)
            rounds_s.append(clock() - start_s)
            first += size
        evaluation_s = min(rounds_s) / size
        size *= 4
    return max(evaluation_s / look_s, 1e-9)
