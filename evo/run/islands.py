"""Islands: several searches of one run side by side, which exchange elites.

The first is the run's own search, whose archive takes over the elites of all others. Each other one is in a process, with random
numbers, an archive and all else of its own. Owns what islands tell each other and when, which depends on the config alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig
from evo.errors import UserError
from evo.evaluate import Failure, PickledTask, TaskSource
from evo.evaluate.backends import BACKENDS, Quarantine
from evo.evaluate.pickled_task import pickle_task, task_of
from evo.run.loaded_task import problem_for
from evo.run.saved_search import SavedSearch
from evo.run.search import Search
from evo.search.archives.elites import Elites
from evo.search.emitter import GOLDEN_GAMMA, shuffled
from evo.search.lineage_records import Records
from evo.search.map_elites import Generation
from evo.search.state import Arrays, Counters, part, with_prefix
from evo.waiting import WAKE_S
from evo.worker_process import ProcessDied, WorkerProcess

_T = TypeVar("_T")


def generations(search: Search) -> Iterator[Generation]:
    """As `Search.generations`, with the islands that the config asks for.

    Raises:
        UserError: as there; or the task cannot go to other processes, or one of them cannot start or ends.
    """
    if search.problem.config.search.islands.count == 1 or search.is_finished:
        yield from search.generations()
        return
    islands = _Archipelago(search)
    try:
        yield from search.generations(islands.advance)
    finally:
        islands.close()


@dataclass(frozen=True)
class _Travellers:
    """Elites for another island. numbers, founders: theirs in the lineage, `(n,)`."""

    elites: Elites
    numbers: NDArray[np.int64]
    founders: NDArray[np.int64]

    @classmethod
    def of(cls, search: Search, rows: NDArray[np.int64]) -> _Travellers:
        """Elites of an archive, by their numbers in the order of cells."""
        elites = search.archived().only(rows)
        return cls(elites, search.lineage.numbers(elites.cell), search.lineage.founders_in(elites.cell))

    def arrive(self, search: Search) -> None:
        search.adopt(self.elites, self.numbers, self.founders)


@dataclass(frozen=True)
class _News:
    """What an island did since its last news. travellers: the elites that changed. counters: what was added to them."""

    travellers: _Travellers
    records: Records
    counters: dict[str, int]
    num_inserted: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class _Settlement:
    """What a process makes its island of. config: JSON values. arrays: of its state after these generations; empty: it is new."""

    number: int
    config: dict[str, Any]
    source: TaskSource | PickledTask
    task_digest: str
    backend: str
    quarantine: Quarantine
    generations: int
    arrays: Arrays


class _Archipelago:
    """The other islands of a search, which it goes on with.

    Raises:
        UserError: the task cannot go to other processes, or the system refuses them.
    """

    def __init__(self, search: Search):
        self._search = search
        self._options = search.problem.config.search.islands
        self._processes: list[WorkerProcess] = []
        self._is_at_rest = True
        problem, arrays = search.problem, search.other_islands()
        source = problem.source or pickle_task(problem.task)
        common = (problem.config.model_dump(mode="json"), source, problem.task_digest, problem.backend.name, search.quarantine)
        self._threads = ThreadPoolExecutor(self._options.count, "islands")
        try:
            for number in range(1, self._options.count):
                settlement = _Settlement(number, *common, search.counters.generations, part(arrays, f"islands.{number}."))
                self._processes.append(WorkerProcess(settle, settlement, folder=os.getcwd()))
        except (OSError, RuntimeError) as error:
            self._end()
            raise UserError(f"search.islands: cannot start a process: {error}") from error
        search.other_islands = self.arrays

    def advance(self, step: Callable[[], Generation]) -> Generation:
        """Has each island breed `search.islands.every` generations, the first by `step`, and takes over what the others found."""
        search, every = self._search, self._options.every
        self._is_at_rest = False
        calls = [self._start(number, breed, every, self._migrants(number)) for number in self._numbers]
        generations = [step() for _ in range(every)]
        all_news = self._results(calls)
        for news in all_news:
            news.travellers.arrive(search)
            search.lineage.append(news.records)
            for name, count in news.counters.items():
                setattr(search.counters, name, getattr(search.counters, name) + count)
        self._is_at_rest = True
        archive = search.archive
        parts: list[Generation | _News] = [*generations, *all_news]
        times_s = {name: sum(each.times_s.get(name, 0.0) for each in generations) for name in generations[-1].times_s}
        return replace(
            generations[-1],
            num_elites=len(archive),
            coverage=len(archive) / archive.cells,
            qd_score=archive.qd_score,
            best_objective=archive.best_objective,
            num_inserted=sum(each.num_inserted for each in parts),
            num_lineages=search.lineage.num_founders,
            largest_lineage=search.lineage.largest_share,
            failures=tuple(failure for each in parts for failure in each.failures),
            times_s=times_s,
        )

    def arrays(self) -> Arrays:
        """The state of all, by `islands.<number>.` and the names of a search's."""
        found = self._results([self._start(number, state) for number in self._numbers])
        parts = (with_prefix(f"islands.{number}.", arrays) for number, arrays in zip(self._numbers, found, strict=True))
        return {name: array for arrays in parts for name, array in arrays.items()}

    def close(self) -> None:
        """Ends the processes. The search keeps what they were like, unless something went wrong."""
        try:
            if self._is_at_rest:
                arrays = self.arrays()
                self._search.other_islands = lambda: arrays
        finally:
            self._end()

    @property
    def _numbers(self) -> range:
        return range(1, self._options.count)

    def _migrants(self, number: int) -> _Travellers:
        """Elites of the first island for another, drawn anew each time."""
        search, archive = self._search, self._search.archive
        turn = search.problem.config.seed + (search.counters.generations << 8 | number) * GOLDEN_GAMMA
        return _Travellers.of(search, shuffled(archive.hashes(archive.occupied_cells), turn)[: self._options.migrants])

    def _start(self, number: int, function: Callable[..., _T], *args: Any) -> Future[_T]:
        return self._threads.submit(self._processes[number - 1].call, function, math.inf, *args)

    def _results(self, calls: list[Future[_T]]) -> list[_T]:
        while wait(calls, WAKE_S).not_done:  # without a limit, Ctrl-C in another thread would not wake this one
            pass
        for number, call in zip(self._numbers, calls, strict=True):
            if isinstance(death := call.exception(), ProcessDied):
                raise UserError(f"search.islands: the process of island {number} {death}; a run goes on from its last checkpoint")
        return [call.result() for call in calls]

    def _end(self) -> None:
        for process in self._processes:
            process.close()
        self._threads.shutdown()


class _Island:
    """The search of this process."""

    def __init__(self, settlement: _Settlement):
        source, digest = settlement.source, settlement.task_digest
        backend, task = BACKENDS[settlement.backend], task_of(source, digest)
        problem = problem_for(RunConfig.model_validate(settlement.config), task, source, digest, backend, settlement.quarantine)
        saved = None
        if settlement.arrays:
            counters = Counters(generations=settlement.generations)
            saved = SavedSearch(problem, {"counters": asdict(counters), "elapsed_s": 0.0}, settlement.arrays)
        self.search = Search(problem, saved, island=settlement.number)
        self._loop = self.search.loop()

    def breed(self, num_generations: int, migrants: _Travellers) -> _News:
        """Takes over the migrants, breeds, and tells of it."""
        search = self.search
        migrants.arrive(search)
        known, before = self._hashes(), asdict(search.counters)
        generations = [self._loop.step() for _ in range(num_generations)]
        is_new = (self._hashes() != known).any(axis=1)
        return _News(
            _Travellers.of(search, np.flatnonzero(is_new[search.archive.occupied_cells])),
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


_islands: list[_Island] = []  # of this process


def settle(settlement: _Settlement) -> None:
    """Makes the island of this process."""
    _islands.append(_Island(settlement))


def breed(num_generations: int, migrants: _Travellers) -> _News:
    """What this process's island does."""
    [island] = _islands
    return island.breed(num_generations, migrants)


def state() -> Arrays:
    """What checkpoints hold of this process's island."""
    [island] = _islands
    return island.search.state.snapshot()()
