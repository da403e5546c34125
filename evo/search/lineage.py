"""Lineage: how elites came about. The programs that became elites with their parents, and which random program the line of first
parents of each elite began with, its founder.

Owns which records are remembered and for how long, and how many elites descend from each founder, so that a run shows when one
takes over. It decides nothing.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.search_rows import FounderSizes
from evo.native.vary import program_lengths
from evo.search.archives.elites import Elites
from evo.search.lineage_records import NONE, RECORD_DTYPE, Records, joined


class Lineage:
    """The founder of each cell's elite, a number made of generation and slot of a random program; and the records of a search.

    If records take more than `max_bytes`, those without living descendants are forgotten, and if that leaves more than half, the
    oldest. Which, depends on the search alone, not on when it is saved.

    Args:
        num_cells: of the archive.
        max_bytes: 0: nothing is recorded.
    """

    def __init__(self, num_cells: int, max_bytes: int):
        self._founders = np.full(num_cells, NONE, np.int64)  # of the elites that are bred from
        self._sizes = FounderSizes()
        self._max_bytes = max_bytes
        self._archive = np.full(num_cells, NONE, np.int64)  # the record of each cell's elite
        self._population = self._archive  # of the elites that are bred from: another array during a start
        self._next = 0
        self._parts: list[Records] = []
        self._num_bytes = 0
        self._num_taken = 0  # of the parts
        self._is_all_new = True  # nothing was taken yet, or some of it is forgotten

    @property
    def num_founders(self) -> int:
        """The founders that have an elite."""
        return len(self._sizes.sizes)

    @property
    def largest_share(self) -> float:
        """The share of the elites that descend from the most common founder; 0 without elites."""
        return self._sizes.largest / max(self._sizes.num_elites, 1)

    def begin(self, elites: Elites, *, is_archive: bool) -> None:
        """Breeds from the archive from now on, or from an empty population.

        Args:
            elites: that are bred from; each is the founder of a line.
        """
        self._found(elites.cell, _founders_of(elites.generation, elites.slot))
        self._population = self._archive if is_archive else np.full_like(self._archive, NONE)

    def update(
        self,
        cells: NDArray[np.integer[Any]],
        words: NDArray[np.uint64],
        objective: NDArray[np.float64],
        fields: dict[str, NDArray[Any]],
        in_archive: NDArray[np.bool_],
        in_population: NDArray[np.bool_],
    ) -> None:
        """Takes over the new elites of a generation, a row each.

        Args:
            fields: of the archive (`evo.search.archives.base.EXTRA_FIELDS` and `hash`); parents are cells of the population.
            in_archive, in_population: whether each is an elite there now.
        """
        parents, own_founders = fields["parents"], _founders_of(fields["generation"], fields["slot"])
        founders = np.where(parents[:, 0] >= 0, self._founders[parents[:, 0]], own_founders)
        self._replace(cells[in_population], founders[in_population])
        if not (self._max_bytes and len(cells)):
            return
        facts = np.zeros(len(cells), RECORD_DTYPE)
        facts["number"] = numbers = np.arange(self._next, self._next + len(cells))
        facts["parents"] = np.where(parents >= 0, self._population[parents], NONE)
        facts["objective"], facts["cell"], facts["in_archive"] = objective, cells, in_archive
        for name in ("generation", "hash", "slot", "operator"):
            facts[name] = fields[name]
        facts["num_words"] = lengths = np.minimum(program_lengths(words) + 1, words.shape[1])
        self._next += len(cells)
        self._archive[cells[in_archive]] = numbers[in_archive]
        if self._population is not self._archive:
            self._population[cells[in_population]] = numbers[in_population]
        records = Records(facts, words[np.arange(words.shape[1]) < lengths[:, None]])
        self._parts.append(records)
        self._num_bytes += records.num_bytes
        if self._num_bytes > self._max_bytes:
            self._forget()

    def take(self) -> tuple[Records, bool]:
        """The records since the last call, and False; or all, and True: the first time, and after some were forgotten."""
        is_all, self._is_all_new = self._is_all_new, False
        first = 0 if is_all else self._num_taken
        taken = joined(self._parts[first:])
        self._parts = [*self._parts[:first], taken]
        self._num_taken = len(self._parts)
        return taken, is_all

    def records(self) -> Records:
        """All records."""
        return joined(self._parts)

    def numbers(self, cells: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The records of the archive's elites in these cells; NONE where they are not known."""
        numbers: NDArray[np.int64] = self._archive[cells]
        return numbers

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state beside the records, for a checkpoint."""
        arrays = {
            "lineages.founders": self._founders.copy(),
            "ancestry.archive": self._archive.copy(),
            "ancestry.next": np.array([self._next], np.int64),
        }
        if self._population is not self._archive:
            arrays["ancestry.population"] = self._population.copy()
        return arrays

    def restore(self, elites: Elites, arrays: dict[str, NDArray[Any]], records: Records) -> None:
        """Restores the results of `arrays` and `records`.

        Args:
            elites: that are bred from.
        """
        self.begin(elites, is_archive="ancestry.population" not in arrays)
        self._replace(elites.cell, arrays["lineages.founders"][elites.cell])
        self._archive[:] = arrays["ancestry.archive"]
        if "ancestry.population" in arrays:
            self._population[:] = arrays["ancestry.population"]
        self._next = int(arrays["ancestry.next"][0])
        self._parts, self._num_bytes, self._num_taken = [records], records.num_bytes, 1
        self._is_all_new = not len(records)

    def _found(self, cells: NDArray[np.int64], founders: NDArray[np.int64]) -> None:
        self._founders[:] = NONE
        self._sizes = FounderSizes()
        self._replace(cells, founders)

    def _replace(self, cells: NDArray[np.integer[Any]], founders: NDArray[np.int64]) -> None:
        """Takes over the founders of the new elites of some cells, each cell once."""
        self._sizes.change(self._founders[cells], founders)
        self._founders[cells] = founders

    def _forget(self) -> None:
        records = self.records()
        facts = records.facts
        is_kept = np.zeros(len(facts), bool)
        reached = np.concatenate([self._archive, self._population])
        while len(reached := np.unique(reached[reached != NONE])):
            rows = np.searchsorted(facts["number"], reached)
            known = rows < len(facts)
            known[known] = facts["number"][rows[known]] == reached[known]
            rows = rows[known]
            rows = rows[~is_kept[rows]]
            is_kept[rows] = True
            reached = facts["parents"][rows].ravel()
        num_bytes = np.where(is_kept, RECORD_DTYPE.itemsize + 8 * facts["num_words"].astype(np.int64), 0)
        of_younger = np.cumsum(num_bytes[::-1])[::-1]  # of each and those after it
        is_kept &= of_younger <= self._max_bytes // 2
        kept = records.only(is_kept)
        self._parts, self._num_bytes, self._is_all_new = [kept], kept.num_bytes, True


def _founders_of(generation: NDArray[Any], slot: NDArray[Any]) -> NDArray[np.int64]:
    return generation.astype(np.int64) << 32 | slot.astype(np.int64)
