"""Stagnation: the end of a search of noisy data.

Owns that rule. Exact data ends a search by its own digits, and luck may find a law late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evo.regression.task import RegressionTask

if TYPE_CHECKING:
    from evo.run.search import Search

MOST_DIGITS = 6.0  # of noisy data: beyond, the search may be on the way to an exact law
PATIENCE, FEWEST = 3.0, 150_000  # times the evaluations up to the last gain, and at least these, before a search ends
LOOK_EVERY = 5000  # evaluations
GAIN = 1.0  # bits of a description that count as a gain


class Stagnation:
    """The shortest description that a search of a task has found, and when."""

    def __init__(self, task: RegressionTask):
        self._task = task
        self._looked, self._gained, self._least = 0, 0, np.inf

    def is_over(self, search: Search, best_objective: float) -> bool:
        """Return whether the search has gained nothing for long."""
        count = search.counters.evaluations
        if count - self._looked < LOOK_EVERY or best_objective >= MOST_DIGITS:
            return False
        self._looked, elites = count, search.archived()
        least = float(self._task.description_length(elites.objective, elites.measures[:, 0]).min(initial=np.inf))
        if least < self._least - GAIN:
            self._gained, self._least = count, least
        return count >= max(PATIENCE * self._gained, FEWEST)
