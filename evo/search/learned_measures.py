"""Learned measures: principal components of what programs compute, in place of the measures that a task declares.

As AURORA (Cully, Autonomous skill discovery with quality-diversity and unsupervised descriptors, 2019; Grillotti and Cully,
Unsupervised behaviour discovery with quality-diversity optimisation, 2022): a model is fitted to the elites, its coordinates span
the archive, and now and then it is fitted anew, and the archive is filled anew from its elites.

Owns the model, when it is fitted, and the ranges of its coordinates. All of this follows from counts and elites, so that a search
stays exact. Knows nothing of tasks and files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.itll import Model
from evo.language.batch import ProgramRows

GROWTH = 2  # the model is fitted again once the number of evaluated programs has grown by this factor
QUANTILES = (0.01, 0.99)  # of the coordinates that a model is fitted to; they become 0 and 1
RANGE = (0.0, 1.0)  # of each measure, that the archive's cells divide

Describe = Callable[[ProgramRows], NDArray[np.float32]]


@dataclass(frozen=True)
class Fit:
    """Result of fitting a model. explained: share of the variance of the outputs that the components have. elites_before, elites:
    in the archive before and after it was filled anew; None at the first fit, when there are none.
    """

    explained: float
    elites_before: int | None = None
    elites: int | None = None


def component_names(count: int) -> list[str]:
    """Names of the coordinates, by falling variance."""
    return [f"component_{number}" for number in range(1, count + 1)]


class LearnedMeasures:
    """Principal components of programs' outputs, in units in which the middle 98 percent of those fitted lie from 0 to 1.

    A component along which they do not vary is 0.5 for all.

    Args:
        describe: outputs `(n, num_outputs)` of programs, each finite.
        num_measures: components.
        arrays: what `arrays` gave for this object in an earlier process; empty: it is new.

    Raises:
        ValueError: there are more outputs than the model takes, or fewer than components; or the arrays are of another version.
    """

    def __init__(self, describe: Describe, num_measures: int, arrays: dict[str, NDArray[Any]] | None = None):
        self._describe = describe
        self._model = Model("pca", describe(np.zeros((1, 1), np.uint64)).shape[1], num_measures)
        self._ends = np.array([RANGE] * num_measures).T  # coordinates that become 0, and those that become 1
        self._num_evaluations = 0  # at the last fit
        if arrays:
            self._model.load(arrays["model"])
            self._ends = arrays["ends"]
            self._num_evaluations = int(arrays["evaluations"][0])

    @property
    def is_fitted(self) -> bool:
        """Return whether it has seen a program."""
        return self._model.num_rows > 0

    def is_due(self, num_evaluations: int) -> bool:
        """Return whether it is to be fitted after this number of evaluations."""
        return num_evaluations >= GROWTH * self._num_evaluations

    def fit(self, programs: ProgramRows, num_evaluations: int = 0) -> float:
        """Forgets all, and learns from programs. Returns the share of their variance that the components explain.

        Args:
            num_evaluations: of the search so far.
        """
        rows = self._describe(programs)
        self._model.reset()
        self._model.update(rows)
        self._num_evaluations = num_evaluations
        coordinates = self._model.predict(rows).astype(np.float64)
        # Of the data, none between them: no arithmetic that could differ from machine to machine.
        low, high = np.quantile(coordinates, QUANTILES, axis=0, method="inverted_cdf")
        is_flat = high <= low
        self._ends = np.where(is_flat, [low - 0.5, low + 0.5], [low, high])
        total = float(rows.astype(np.float64).var(axis=0).sum())
        return float(coordinates.var(axis=0).sum()) / total if total else 1.0

    def of(self, programs: ProgramRows) -> NDArray[np.float64]:
        """The measures of programs, `(n, num_measures)`. They may lie beyond 0 and 1."""
        low, high = self._ends
        measures: NDArray[np.float64] = (self._model.predict(self._describe(programs)) - low) / (high - low)
        return measures

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays needed to resume."""
        return {"model": self._model.save(), "ends": self._ends, "evaluations": np.array([self._num_evaluations], np.int64)}
