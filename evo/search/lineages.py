"""Lineages: which random program the line of first parents of each elite began with.

Owns these founders and how many elites descend from each, so that a run shows when one lineage takes over. It decides nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.search.archives.elites import Elites
from evo.search.emitter import Origin

_NONE = -1  # of a cell without an elite


class Lineages:
    """The founder of each cell's elite: a number made of generation and slot of a random program.

    Args:
        num_cells: of the archive.
    """

    def __init__(self, num_cells: int):
        self._founders = np.full(num_cells, _NONE, np.int64)
        self._sizes: dict[int, int] = {}  # founder -> its elites
        self._num_of_size: Counter[int] = Counter()  # number of elites -> the lineages that have so many
        self._largest = self._num_elites = 0

    def __len__(self) -> int:
        """The number of lineages that have an elite."""
        return len(self._sizes)

    @property
    def largest_share(self) -> float:
        """The share of the elites that descend from the most common founder; 0 without elites."""
        return self._largest / max(self._num_elites, 1)

    def founders(self, origin: Origin, generation: int) -> NDArray[np.int64]:
        """The founder of each program of a generation, `(n,)`. Asked before the archive changes."""
        parents = origin.parents[:, 0]
        return np.where(parents >= 0, self._founders[parents], _founders(generation, np.arange(len(parents))))

    def update(self, cells: NDArray[np.integer[Any]], founders: NDArray[np.int64]) -> None:
        """Takes over the new elites of some cells, each cell once."""
        for founder in self._founders[cells].tolist():
            if founder != _NONE:
                self._resize(founder, -1)
        for founder in founders.tolist():
            self._resize(founder, 1)
        self._founders[cells] = founders

    def begin(self, elites: Elites) -> None:
        """Goes on from other elites, each the founder of a lineage."""
        self._begin(elites.cell, _founders(elites.generation, elites.slot))

    def move(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """Goes on from the elites of the cells `before`, which are in the cells `after` from now on."""
        self._begin(after, self._founders[before])

    def _begin(self, cells: NDArray[np.int64], founders: NDArray[np.int64]) -> None:
        self._founders[:] = _NONE
        self._sizes, self._num_of_size = {}, Counter()
        self._largest = self._num_elites = 0
        self.update(cells, founders)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state, for a checkpoint."""
        return {"founders": self._founders.copy()}

    def restore(self, elites: Elites, arrays: dict[str, NDArray[Any]]) -> None:
        """Takes back what `arrays` gave. Without it, as in checkpoints of earlier versions, each elite founds a lineage."""
        self.begin(elites)
        if arrays:
            self.update(elites.cell, arrays["founders"][elites.cell])

    def _resize(self, founder: int, change: int) -> None:
        """One elite more or less. Takes the same time however many lineages there are."""
        before = self._sizes.get(founder, 0)
        after = before + change
        self._num_elites += change
        self._num_of_size[before] -= 1
        self._num_of_size[after] += 1
        if after:
            self._sizes[founder] = after
        else:
            del self._sizes[founder]
        if after > self._largest or (before == self._largest and not self._num_of_size[before]):
            self._largest = after


def _founders(generation: int | NDArray[np.int64], slot: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(generation, np.int64) << 32 | slot.astype(np.int64)
