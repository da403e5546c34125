"""Ancestry: the programs that became elites, each with its parents, so that a run can tell how an elite came about.

Owns which of them are remembered, and for how long. It decides nothing. `evo.run.lineage_log` owns the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.vary import program_lengths

NONE = -1  # in place of a number: no record
RECORD_DTYPE = np.dtype(
    [
        ("number", "<i8"),
        ("parents", "<i8", 2),
        ("generation", "<i8"),
        ("objective", "<f8"),
        ("hash", "<u8", 2),
        ("slot", "<i4"),
        ("cell", "<i4"),
        ("operator", "<i4"),
        ("num_words", "<i4"),
        ("in_archive", "<i4"),
    ]
)


@dataclass(frozen=True)
class Records:
    """Programs that became elites, in the order in which they did.

    facts: `(n,)` of RECORD_DTYPE. number: counts up through the run. parents: numbers; NONE for none, and for a parent that is
    forgotten perhaps not among these. cell: where it became an elite; in_archive: 0 if only in a start's population.
    words: the programs one after the other, each up to its RETURN; `num_words` says where it ends.
    """

    facts: NDArray[Any]
    words: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def num_bytes(self) -> int:
        """Memory that they take."""
        return self.facts.nbytes + self.words.nbytes

    def programs(self, rows: NDArray[np.int64], max_length: int) -> NDArray[np.uint64]:
        """`(len(rows), max_length)` words."""
        ends = np.cumsum(self.facts["num_words"], dtype=np.int64)
        programs = np.zeros((len(rows), max_length), np.uint64)
        for program, row in zip(programs, rows.tolist(), strict=True):
            count = int(self.facts["num_words"][row])
            program[:count] = self.words[ends[row] - count : ends[row]]
        return programs

    def only(self, is_kept: NDArray[np.bool_]) -> Records:
        """Some of them."""
        return Records(self.facts[is_kept], self.words[np.repeat(is_kept, self.facts["num_words"])])


def joined(parts: list[Records]) -> Records:
    """Records one after the other."""
    return Records(
        np.concatenate([np.zeros(0, RECORD_DTYPE), *(part.facts for part in parts)]),
        np.concatenate([np.zeros(0, np.uint64), *(part.words for part in parts)]),
    )


def line_of(facts: NDArray[Any], number: int) -> NDArray[np.int64]:
    """The rows of a record and of its line of first parents, oldest first, as far back as it is remembered."""
    rows = []
    while number != NONE:
        row = int(np.searchsorted(facts["number"], number))
        if row == len(facts) or facts["number"][row] != number:
            break
        rows.append(row)
        number = int(facts["parents"][row, 0])
    return np.array(rows[::-1], np.int64)


class Ancestry:
    """The records of a search.

    If they take more than `max_bytes`, those are forgotten from which no elite descends, and if that leaves more than half, the
    oldest. Which, depends on the search alone, not on when it is saved.

    Args:
        num_cells: of the archive.
        max_bytes: 0: nothing is recorded.
    """

    def __init__(self, num_cells: int, max_bytes: int):
        self._max_bytes = max_bytes
        self._archive = np.full(num_cells, NONE, np.int64)  # the record of each cell's elite
        self._population = self._archive  # of the elites that are bred from: another array during a start
        self._next = 0
        self._parts: list[Records] = []
        self._num_bytes = 0
        self._num_taken = 0  # of the parts
        self._is_all_new = True  # nothing was taken yet, or some of it is forgotten

    def begin(self, *, is_archive: bool) -> None:
        """Breeds from the archive from now on, or from an empty population."""
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
        """Records the new elites of a generation, a row each.

        Args:
            fields: of the archive (`evo.search.archives.base.EXTRA_FIELDS` and `hash`); parents are cells of the population.
            in_archive, in_population: where each of them is an elite now.
        """
        if not (self._max_bytes and len(cells)):
            return
        facts = np.zeros(len(cells), RECORD_DTYPE)
        parents = fields["parents"]
        facts["number"] = numbers = self._next + np.arange(len(cells))
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

    def move(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> None:
        """The elites of the archive's cells `before` are in the cells `after` from now on, and no others are left."""
        numbers = self._archive[before]
        self._archive[:] = NONE
        self._archive[after] = numbers

    def take(self) -> tuple[Records, bool]:
        """The records since the last call, and False; or all, and True: at first, and if some were forgotten meanwhile."""
        is_all, self._is_all_new = self._is_all_new, False
        first = 0 if is_all else self._num_taken
        taken = joined(self._parts[first:])
        self._parts = [*self._parts[:first], taken]
        self._num_taken = len(self._parts)
        return taken, is_all

    def records(self) -> Records:
        """All of them."""
        return joined(self._parts)

    def numbers(self, cells: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The records of the archive's elites in these cells; NONE where they are not known."""
        numbers: NDArray[np.int64] = self._archive[cells]
        return numbers

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state beside the records, for a checkpoint."""
        arrays = {"archive": self._archive.copy(), "next": np.array([self._next], np.int64)}
        if self._population is not self._archive:
            arrays["population"] = self._population.copy()
        return arrays

    def restore(self, arrays: dict[str, NDArray[Any]], records: Records) -> None:
        """Takes back what `arrays` and `records` gave. Earlier versions saved neither: their elites are of unknown origin."""
        if not arrays:
            return
        self._archive[:] = arrays["archive"]
        self.begin(is_archive="population" not in arrays)
        if "population" in arrays:
            self._population[:] = arrays["population"]
        self._next = int(arrays["next"][0])
        self._parts, self._num_bytes, self._num_taken = [records], records.num_bytes, 1
        self._is_all_new = not len(records)

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
