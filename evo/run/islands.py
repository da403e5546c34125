"""Islands: several searches of one run side by side, which exchange elites.

The first is the run's own search, whose archive takes over the elites of all others. Each other one has random numbers, an
archive and all else of its own. Owns when they tell each other what, which depends on the config alone.
"""

import math
import os
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from evo.errors import UserError, shortage
from evo.evaluate.pickled_task import pickle_task
from evo.run.island import Island, News, Settlement, Travellers
from evo.run.island_workers import IslandWorkers
from evo.run.search import Search
from evo.search.emitter import GOLDEN_GAMMA, shuffled
from evo.search.map_elites import Generation
from evo.search.state import Arrays, part, with_prefix
from evo.waiting import WAKE_S
from evo.worker_process import ProcessDied, WorkerProcess

_T = TypeVar("_T")


def generations(search: Search) -> Generator[Generation, None, None]:
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


class _Others(Protocol):
    """The islands but the first, in order."""

    def breed(self, num_generations: int, migrants: list[Travellers]) -> Any:
        """Has each breed, with migrants of its own. Waits for nothing; its result is for `news`."""

    def news(self, started: Any) -> list[News]:
        """What they did. Raises UserError: one is lost, or its task raised one."""

    def arrays(self) -> list[Arrays]:
        """What checkpoints hold of each. Raises UserError as `news`."""

    def close(self) -> None:
        """Ends them."""


class _Archipelago:
    """The islands of a search, which it goes on with.

    Raises:
        UserError: the task cannot go to other processes, or the system refuses them.
    """

    def __init__(self, search: Search):
        self._search = search
        self._options = search.problem.config.search.islands
        self._numbers = range(1, self._options.count)
        self._is_at_rest = True
        problem, arrays = search.problem, search.other_islands()
        config, done = problem.config, search.counters.generations
        source = problem.source or pickle_task(problem.task)
        common = (config.model_dump(mode="json"), source, problem.task_digest, problem.backend.name, search.quarantine, done)
        settlements = [Settlement(number, *common, part(arrays, f"islands.{number}.")) for number in self._numbers]
        cluster = config.evaluation.cluster
        self._others: _Others = IslandWorkers(settlements, problem.task, cluster) if cluster else _Processes(settlements)
        search.other_islands = self.arrays

    def advance(self, step: Callable[[], Generation]) -> Generation:
        """Has each island breed `search.islands.every` generations, the first by `step`, and takes over what the others found."""
        search, every = self._search, self._options.every
        self._is_at_rest = False
        started = self._others.breed(every, [self._migrants(number) for number in self._numbers])
        generations = [step() for _ in range(every)]
        all_news = self._others.news(started)
        for news in all_news:
            news.travellers.arrive(search)
            search.lineage.append(news.records)
            for name, count in news.counters.items():
                setattr(search.counters, name, getattr(search.counters, name) + count)
        self._is_at_rest = True
        archive = search.archive
        parts: list[Generation | News] = [*generations, *all_news]
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
        """The state of the others, by `islands.<number>.` and the names of a search's."""
        parts = zip(self._numbers, self._others.arrays(), strict=True)
        return {name: array for n, arrays in parts for name, array in with_prefix(f"islands.{n}.", arrays).items()}

    def close(self) -> None:
        """Ends the others. The search keeps what they were like, unless something went wrong."""
        try:
            if self._is_at_rest:
                arrays = self.arrays()
                self._search.other_islands = lambda: arrays
        finally:
            self._others.close()

    def _migrants(self, number: int) -> Travellers:
        """Elites of the first island for another, drawn anew each time."""
        search, archive = self._search, self._search.archive
        turn = search.problem.config.seed + (search.counters.generations << 8 | number) * GOLDEN_GAMMA
        return Travellers.of(search, shuffled(archive.hashes(archive.occupied_cells), turn)[: self._options.migrants])


class _Processes:
    """As `_Others`: each in a process of this machine."""

    def __init__(self, settlements: list[Settlement]):
        self._threads = ThreadPoolExecutor(len(settlements), "islands")
        self._processes: list[WorkerProcess] = []
        try:
            for settlement in settlements:
                self._processes.append(WorkerProcess(settle, settlement, folder=os.getcwd()))
        except (OSError, RuntimeError) as error:
            self.close()
            raise UserError(f"search.islands: cannot start a process: {shortage(error) or error}") from error

    def breed(self, num_generations: int, migrants: list[Travellers]) -> list[Future[News]]:
        """As of `_Others`."""
        pairs = zip(self._processes, migrants, strict=True)
        return [self._start(process, breed, num_generations, theirs) for process, theirs in pairs]

    def news(self, started: list[Future[News]]) -> list[News]:
        """As of `_Others`."""
        return self._results(started)

    def arrays(self) -> list[Arrays]:
        """As of `_Others`."""
        return self._results([self._start(process, state) for process in self._processes])

    def close(self) -> None:
        """As of `_Others`."""
        for process in self._processes:
            process.close()
        self._threads.shutdown()

    def _start(self, process: WorkerProcess, function: Callable[..., _T], *args: Any) -> Future[_T]:
        return self._threads.submit(process.call, function, math.inf, *args)

    def _results(self, calls: list[Future[_T]]) -> list[_T]:
        while wait(calls, WAKE_S).not_done:  # without a limit, Ctrl-C in another thread would not wake this one
            pass
        for number, call in enumerate(calls, 1):
            if isinstance(death := call.exception(), ProcessDied):
                raise UserError(f"search.islands: the process of island {number} {death}; a run goes on from its last checkpoint")
        return [call.result() for call in calls]


_islands: list[Island] = []  # of this process


def settle(settlement: Settlement) -> None:
    """Makes the island of this process."""
    _islands.append(Island(settlement))


def breed(num_generations: int, migrants: Travellers) -> News:
    """What this process's island does."""
    [island] = _islands
    return island.breed(num_generations, migrants)


def state() -> Arrays:
    """What checkpoints hold of this process's island."""
    [island] = _islands
    return island.arrays()
