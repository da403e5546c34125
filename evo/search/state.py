"""The state of a search: everything needed to resume it, except its programs' language and evaluator.

Owns which of it a checkpoint holds, and under which names. Knows nothing of files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from evo.search.emitter import ProgramEmitter
from evo.search.lineage import Lineage
from evo.search.memory import HashMemory
from evo.search.prescreen import Prescreen
from evo.search.restarts import Restarts

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive

Arrays = dict[str, NDArray[Any]]


@dataclass
class Counters:
    """A run's totals so far. They are part of its state: a resumed run goes on counting.

    generations: finished. offspring: programs that were asked for. evaluations: programs that were evaluated. duplicates:
    programs whose hash was seen before. neutral: offspring with the hash of a parent. rejected: evaluated, but not OK.
    out_of_range: evaluated, with a measure outside its range, which counts to the cell at the edge. failed: could not be
    compiled or run. tuned: new programs from tuning; they count as evaluated, and so does each run that tuning took. screened:
    new programs that the prescreen passed over.
    """

    generations: int = 0
    offspring: int = 0
    evaluations: int = 0
    duplicates: int = 0
    neutral: int = 0
    rejected: int = 0
    out_of_range: int = 0
    failed: int = 0
    tuned: int = 0
    screened: int = 0


@dataclass
class SearchState:
    """State that changes from generation to generation.

    archive: keeps the elites. restarts: which of them are bred from. prescreen: chooses what is evaluated; None: every new
    program is.
    """

    archive: ProgramArchive
    restarts: Restarts
    emitter: ProgramEmitter
    memory: HashMemory
    lineage: Lineage
    counters: Counters
    prescreen: Prescreen | None = None

    def arrays(self) -> Arrays:
        """Copies of all of it, except the counters and the records of `lineage`."""
        population = self.restarts.population
        return {
            **({} if population is self.archive else with_prefix("population.", population.elites().arrays())),
            **with_prefix("elites.", self.archive.elites().arrays()),
            **with_prefix("memory.", self.memory.arrays()),
            **self.lineage.arrays(),
            **with_prefix("archive.", self.archive.layout.arrays()),
            **(with_prefix("prescreen.", self.prescreen.arrays()) if self.prescreen else {}),
            "emitters.success": self.emitter.success_counts.copy(),
        }


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Arrays with a prefix before each name."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def part(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names have a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
