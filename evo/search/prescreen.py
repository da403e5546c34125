"""The prescreen: a model that learns while the search runs picks which offspring are evaluated.

More offspring are bred than are evaluated. A model predicts objective and measures of each from its features, and those are
evaluated that promise the greatest expected improvement of the cell that they are predicted to fall into (as SAIL: Gaier,
Asteroth and Mouret, Data-efficient design exploration through surrogate-assisted illumination, 2018), with some exploration.

Owns the model and the choice. Whether it pays is decided by the cost of an evaluation that its options give. Knows nothing of
tasks, files or clocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from evo.itll import Model
from evo.language.batch import ProgramRows
from evo.options import Integer, Options, Probability

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive

Describe = Callable[[ProgramRows], NDArray[np.float32]]
LENGTH_SCALE = 2.0  # of the model: on regression and domain colouring better than 0.5, 1 and 4
LEAST_COST = 4  # of an evaluation, for each offspring that is looked at: where it begins to pay (docs/benchmarks.md)


class LearningOptions(Options):
    """Options of learning in a search: the choice of offspring.

    `prescreen`: offspring bred for each one that is evaluated; 1: no model. `exploration`: share of the evaluated that is chosen
    without the model, which learns from the newest `window` programs; their outputs at `points` of the task's points are among
    their features.
    `evaluation_cost`: cost of an evaluation relative to inspecting an offspring (about 5 us); a prescreen needs it.
    """

    prescreen: Annotated[Integer, Field(ge=1, le=64)] = 1
    exploration: Probability = 0.1
    window: Annotated[Integer, Field(ge=16, le=10000)] = 2000
    points: Annotated[Integer, Field(ge=1, le=256)] = 32
    evaluation_cost: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _has_cost(self) -> Self:
        if self.prescreen > 1 and (self.evaluation_cost or 0.0) < LEAST_COST * self.prescreen:
            raise ValueError(
                "a prescreen needs 'evaluation_cost', microseconds of a core for an evaluation divided by 5, of at least "
                f"{LEAST_COST} for each of its {self.prescreen} offspring: with less it loses"
            )
        return self


class Prescreen:
    """Chooses offspring, and learns from those that were evaluated.

    Args:
        options: how it chooses.
        describe: features `(n, num_features)` of programs.
        num_measures: of the archive.
        seed: of the model.
        arrays: what `arrays` gave for this prescreen in an earlier process; None: it is new.

    Raises:
        ValueError: the arrays are of another version.
    """

    def __init__(
        self,
        options: LearningOptions,
        describe: Describe,
        *,
        num_measures: int,
        seed: int,
        arrays: dict[str, NDArray[Any]] | None = None,
    ):
        self._options = options
        self._describe = describe
        self._num_targets = 1 + num_measures
        num_features = describe(np.zeros((1, 1), np.uint64)).shape[1] + self._num_targets
        self._model = Model("ridge", num_features, self._num_targets, window=options.window, length_scale=LENGTH_SCALE, seed=seed)
        if arrays:
            self._model.load(arrays["model"])
        self._is_screening = False
        self._rows = np.zeros((0, num_features), np.float32)  # of the programs that are being evaluated
        self._predicted = np.zeros((0, self._num_targets), np.float32)  # of them

    def begin(self, population: ProgramArchive, *, is_fresh: bool) -> int:
        """Begins a generation; returns how many offspring to breed for each one that is evaluated.

        Args:
            population: the parents.
            is_fresh: its programs will have no parents.
        """
        self._is_screening = bool(not is_fresh and len(population) and self._model.num_rows)
        return self._options.prescreen if self._is_screening else 1

    def choose(
        self, programs: ProgramRows, is_new: NDArray[np.bool_], parents: NDArray[np.int32], population: ProgramArchive
    ) -> NDArray[np.bool_]:
        """Mask of the programs to evaluate, `(n,)`.

        Args:
            programs: the offspring.
            is_new: `(n,)`, those that need an evaluation.
            parents: `(n, 2)`, their parents' cells in the population; -1: none.
        """
        slots = np.flatnonzero(is_new)
        # The model forgets all but its window.
        described = slots if self._is_screening else slots[-self._options.window :]
        rows = np.column_stack([self._describe(programs[described]), _scores_of(population, parents[described, 0])])
        predicted = np.stack(self._model.predict(rows, return_std=True))
        num_wanted = len(programs) // self._options.prescreen
        if self._is_screening and num_wanted < len(slots):
            kept = self._picked(predicted, population, num_wanted)
            slots, rows, predicted = slots[kept], rows[kept], predicted[:, kept]
        self._rows, self._predicted = rows, predicted[0]
        chosen = np.zeros(len(programs), bool)
        chosen[slots] = True
        return chosen

    def learn(self, objective: NDArray[np.float64], measures: NDArray[np.float64], population: ProgramArchive) -> None:
        """Learns from the programs that were chosen.

        Args:
            objective, measures: `(n,)` and `(n, num_measures)`, in their order; NaN: rejected.
            population: that they were added to.
        """
        first = len(objective) - len(self._rows)
        objective, measures = objective[first:], measures[first:]
        # Programs without a score are as bad as the worst that matter, and tell nothing about measures.
        floor = _floor(population)
        is_ok = np.isfinite(objective)
        clipped = np.clip(measures, population.layout.low, population.layout.high)
        targets = np.column_stack([np.maximum(objective, floor), clipped])
        targets[~is_ok] = self._predicted[~is_ok]
        targets[~is_ok, 0] = floor
        self._model.update(self._rows, targets)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything needed to go on."""
        return {"model": self._model.save()}

    def _picked(self, predicted: NDArray[np.float32], population: ProgramArchive, num_wanted: int) -> NDArray[np.int64]:
        """The rows to evaluate, sorted: those of greatest expected improvement, and for exploration some of the others, evenly
        spread over their slots. Only one program can take a cell, so the n-th best of a predicted cell counts an n-th.
        """
        means, deviations = predicted.astype(np.float64)
        lowest = min(population.qd_score_offset, _floor(population))
        gain = np.zeros(len(means))
        # Over the predicted cell and those a deviation away in either direction of each measure.
        for direction in (np.zeros(self._num_targets - 1), *np.eye(self._num_targets - 1), *-np.eye(self._num_targets - 1)):
            cells = population.index_of(means[:, 1:] + direction * deviations[:, 1:])
            incumbent = population.scores(cells)[0]
            gain += expected_improvement(means[:, 0] - np.where(np.isnan(incumbent), lowest, incumbent), deviations[:, 0])
        order = np.argsort(-gain / _ranks(population.index_of(means[:, 1:]), gain), kind="stable")
        num_explored = round(self._options.exploration * num_wanted)
        best, rest = np.split(order, [num_wanted - num_explored])
        explored = np.sort(rest)[np.arange(num_explored) * len(rest) // max(num_explored, 1)]
        return np.sort(np.concatenate([best, explored]))


def _ranks(cells: NDArray[Any], gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """The rank of each row among the rows of its cell by falling gain, from 1; if two are equal, the first leads."""
    order = np.lexsort((-gain, cells))
    first = np.flatnonzero(np.diff(cells[order], prepend=-1))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order))) + 1
    return ranks


def expected_improvement(lead: NDArray[np.float64], deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much a program is expected to beat an incumbent that it leads by `lead`, give or take `deviation`; never negative.

    E max(0, lead + deviation x) for an x with Student's distribution of two degrees of freedom, scaled so that at lead 0 it is
    that of a normal distribution. It needs no exponential function, which has other bits on other machines, and its heavy tails
    forgive a model that is too sure of itself.
    """
    return 0.5 * (lead + np.sqrt(lead * lead + (2.0 / math.pi) * deviation * deviation))


def _scores_of(population: ProgramArchive, cells: NDArray[np.int32]) -> NDArray[np.float64]:
    """Objective and measures of the elites in some cells, `(n, 1 + num_measures)`; NaN where there is none or the cell is -1."""
    scores = np.column_stack(population.scores(np.maximum(cells, 0)))
    scores[cells < 0] = np.nan
    return scores


def _floor(population: ProgramArchive) -> float:
    """The objective below which programs count as equal: that of the worst elite, unless it is an outlier."""
    objective = population.scores(population.occupied_cells)[0]
    return max(objective.min(), 5.0 * np.median(objective) - 4.0 * objective.max()) if len(objective) else 0.0
