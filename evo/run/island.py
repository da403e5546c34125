"""One island: a search in another process, or on a Dask worker, that goes on with what it is told and tells what it found.

Owns what travels between islands. `evo.run.islands` decides when.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig
from evo.evaluate import Failure, PickledTask, TaskSource
from evo.evaluate.backends import BACKENDS, Quarantine, share_gpus
from evo.evaluate.pickled_task import task_of
from evo.run.loaded_task import problem_for
from evo.run.saved_search import SavedSearch
from evo.run.search import Search
from evo.search.archives.elites import Elites
from evo.search.lineage_records import Records
from evo.search.state import Arrays, Counters


@dataclass(frozen=True)
class Travellers:
    """Elites for another island. numbers, founders: theirs in the lineage, `(n,)`."""

    elites: Elites
    numbers: NDArray[np.int64]
    founders: NDArray[np.int64]

    @classmethod
    def of(cls, search: Search, rows: NDArray[np.int64]) -> Travellers:
        """Elites of an archive, by their numbers in the order of cells."""
        elites = search.archived().only(rows)
        return cls(elites, search.lineage.numbers(elites.cell), search.lineage.founders_in(elites.cell))

    def arrive(self, search: Search) -> None:
        """Adds them to another island's archive."""
        search.adopt(self.elites, self.numbers, self.founders)


@dataclass(frozen=True)
class News:
    """What an island did since its last news. travellers: the elites that changed. counters: what was added to them."""

    travellers: Travellers
    records: Records
    counters: dict[str, int]
    num_inserted: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Settlement:
    """What a process makes its island of. config: JSON values. arrays: of its state after these generations; empty: it is new."""

    number: int
    config: dict[str, Any]
    source: TaskSource | PickledTask
    task_digest: str
    backend: str
    quarantine: Quarantine
    generations: int
    arrays: Arrays


class Island:
    """The search of this process."""

    def __init__(self, settlement: Settlement):
        share_gpus()
        source, digest = settlement.source, settlement.task_digest
        backend, task = BACKENDS[settlement.backend], task_of(source, digest)
        problem = problem_for(RunConfig.model_validate(settlement.config), task, source, digest, backend, settlement.quarantine)
        saved = None
        if settlement.arrays:
            counters = Counters(generations=settlement.generations)
            saved = SavedSearch(problem, {"counters": asdict(counters), "elapsed_s": 0.0}, settlement.arrays)
        self.search = Search(problem, saved, island=settlement.number)
        self._loop = self.search.loop()

    def breed(self, num_generations: int, migrants: Travellers) -> News:
        """Takes over the migrants, breeds, and tells of it."""
        search = self.search
        migrants.arrive(search)
        known, before = self._hashes(), asdict(search.counters)
        generations = [self._loop.step() for _ in range(num_generations)]
        is_new = (self._hashes() != known).any(axis=1)
        return News(
            Travellers.of(search, np.flatnonzero(is_new[search.archive.occupied_cells])),
            search.lineage.drain(),
            {name: count - before[name] for name, count in asdict(search.counters).items() if name != "generations"},
            sum(each.num_inserted for each in generations),
            tuple(failure for each in generations for failure in each.failures),
        )

    def _hashes(self) -> NDArray[np.uint64]:
        """Those of each cell's elite, `(cells, 2)`; zero where there is none."""
        archive = self.search.archive
        hashes = np.zeros((int(archive.cells), 2), np.uint64)
        hashes[archive.occupied_cells] = archive.hashes(archive.occupied_cells)
        return hashes

    def arrays(self) -> Arrays:
        """What checkpoints hold of it."""
        return self.search.state.snapshot()()
