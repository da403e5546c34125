"""The end of a search before its time: its law is found, or noisy data have no more to give.

Owns these rules. A formula of 12 digits in float32 may be an approximation: a law is exact in float64 with refined numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.regression.task import BEST_DIGITS, RegressionTask

if TYPE_CHECKING:
    from evo.run.search import Search

Words = NDArray[Any]  # of a program
MORE_EVALUATIONS = 0.2  # share of the evaluations so far: how long the search goes on for a simpler formula once one is the law
FEWEST_EVALUATIONS = 3000  # that a search has anyhow, since its first formulas may be longer than they need be
MOST_DIGITS = 6.0  # of noisy data: beyond, the search may be on the way to an exact law
PATIENCE, FEWEST = 3.0, 150_000  # times the evaluations up to the last gain, and at least these, before a search ends
LOOK_EVERY = 5000  # evaluations
GAIN = 1.0  # bits of a description that count as a gain


class Stagnation:
    """The shortest description that a search of a task has found, and when.

    Args:
        is_law: whether a program of 12 digits, `(max_length,)`, is exact.
        is_misfit: whether a program's errors tell that its formula lacks something.
    """

    def __init__(self, task: RegressionTask, is_law: Callable[[Words], bool], is_misfit: Callable[[Words], bool]):
        self._task, self._is_law, self._is_misfit = task, is_law, is_misfit
        self._looked, self._gained, self._least = 0, 0, np.inf
        self._shortest, self._most = np.inf, np.inf

    def has_law(self, search: Search, best_objective: float) -> bool:
        """Return whether the search has found a law, and looked for a simpler one for long."""
        if self._most == np.inf and best_objective >= BEST_DIGITS:
            elites = search.archived()
            rows = np.flatnonzero(elites.objective >= BEST_DIGITS)
            row = rows[elites.measures[rows, 0].argmin()]
            if elites.measures[row, 0] < self._shortest:
                self._shortest = elites.measures[row, 0]
                if self._is_law(elites.solution[row]):
                    self._most = max((1.0 + MORE_EVALUATIONS) * search.counters.evaluations, FEWEST_EVALUATIONS)
        return search.counters.evaluations >= self._most

    def is_over(self, search: Search, best_objective: float) -> bool:
        """Return whether the search has gained nothing for long, and what its best formula leaves is noise."""
        count = search.counters.evaluations
        if count - self._looked < LOOK_EVERY or best_objective >= MOST_DIGITS:
            return False
        self._looked, elites = count, search.archived()
        bits = self._task.description_length(elites.objective, elites.measures[:, 0])
        if (least := float(bits.min(initial=np.inf))) < self._least - GAIN:
            self._gained, self._least = count, least
        if count < max(PATIENCE * self._gained, FEWEST):
            return False
        if is_misfit := bool(len(bits)) and self._is_misfit(elites.solution[bits.argmin()]):
            self._gained = count
        return not is_misfit
