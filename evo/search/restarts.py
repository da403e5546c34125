"""Restarts: several searches from scratch, one after the other, before the main search goes on from all their elites.

Owns which elites are bred from in a generation. Knows nothing of what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive


class Restarts:
    """The population that programs are bred from: elites of the present start, and of the archive after the last one.

    One lineage soon takes over a population, and some never find the way on. Another start is then worth more than patience.

    Args:
        archive: keeps the elites of all starts.
        make_population: an empty archive of the same kind.
        count: starts before the archive itself is bred from; 0: none.
        generations: of each start.
    """

    def __init__(
        self,
        archive: ProgramArchive,
        make_population: Callable[[], ProgramArchive] | None = None,
        count: int = 0,
        generations: int = 1,
    ):
        self._archive = archive
        self._make = make_population
        self._count = count
        self._generations = generations
        self.population = archive

    def begin(self, generation: int) -> bool:
        """Chooses the population of a generation. True if it is another than before, which starts empty or is the archive."""
        start, age = divmod(generation, self._generations)
        if start < self._count:
            if age == 0 and self._make:
                self.population = self._make()
            return age == 0
        was, self.population = self.population, self._archive
        return was is not self._archive

    def is_fresh(self, generation: int) -> bool:
        """Return whether a start begins with this generation."""
        return generation == 0 or (generation % self._generations == 0 and generation // self._generations < self._count)
