"""Views of a search, in progress or from its checkpoint, that do not continue it.

Owns the elites as reports and files have them, where they lie, and which stop is reached.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig
from evo.errors import UserError, shortage
from evo.language.program import Language
from evo.native.row_threads import RowThreads
from evo.native.vary import Variation
from evo.run.loaded_task import Problem
from evo.search.archives import make_archive, make_layout
from evo.search.archives.elites import Elites
from evo.search.archives.layout import Layout
from evo.search.emitter import TIDY
from evo.search.state import Arrays, Counters, part
from evo.search.vocabulary import VariationOptions, make_variation

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive
    from evo.search.archives.pyribs import RibsArchive


class SavedSearch:
    """A search as `Search.saved` gave it.

    Attributes:
        problem: with its config.
        counters: of its programs.
        elapsed_s: seconds that it has run.

    Args:
        problem: the same as then. meta: plain JSON values.
    """

    def __init__(self, problem: Problem, meta: dict[str, Any], arrays: Arrays):
        self.problem = problem
        self.arrays = arrays
        self.counters = Counters(**meta["counters"])
        self.elapsed_s: float = meta["elapsed_s"]

    def part(self, prefix: str) -> Arrays:
        """The arrays of a part of the search."""
        return part(self.arrays, prefix)

    @cached_property
    def archive(self) -> ProgramArchive:
        """The archive. Made when first asked for."""
        archive = make_archive_of(self.problem, self.part("archive."))
        try:
            archive.restore(self.archived())
        except ValueError as error:
            raise UserError(f"the checkpoint does not fit: {error}", "search.archive") from error
        return archive

    def elites(self) -> Elites:
        """All elites, sorted by cell: those of the archive, at its end with tidy ones (`evo.run.tidying`)."""
        tidy = self.part("tidy.")
        return Elites(**tidy) if tidy else self.archived()

    def archived(self) -> Elites:
        """Elites of the archive, which the search goes on with."""
        return Elites(**self.part("elites."))

    def record_numbers(self) -> NDArray[np.int64]:
        """The numbers of the elites' records (`evo.search.lineage`), in the order of `elites`; NONE of those that have none. That
        of a tidy one is its parent's.
        """
        elites = self.elites()
        return self._numbers_of(np.where(elites.operator == TIDY, elites.parents[:, 0], elites.cell))

    def _numbers_of(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = self.arrays["ancestry.archive"][cells]
        return numbers

    def random_programs(self, num_programs: int) -> NDArray[np.uint64]:
        """The first random programs of its seed, `(num_programs, max_length)`."""
        config = self.problem.config
        variation = variation_of(config, self.problem.language, config.search.variation)
        return variation.random_programs(config.seed, 0, 0, num_programs, config.program.max_length)

    @cached_property
    def layout(self) -> Layout:
        """The archive's cells."""
        archive = self.problem.config.search.archive
        return make_layout(archive.type, list(self.problem.task.measures.values()), archive.options(), self.part("archive."))

    def to_ribs(self) -> RibsArchive:
        """The elites in a new archive of pyribs (`evo.search.archives.pyribs`)."""
        from evo.search.archives.pyribs import to_ribs

        config = self.problem.config
        return to_ribs(config.search.archive.type, self.layout, self.elites(), _least_objective(self.problem), config.seed)

    @property
    def is_finished(self) -> bool:
        """Return whether a stop is reached already."""
        return self.stop_reached(max(self.archived().objective, default=float("-inf"))) is not None

    def stop_reached(self, best_objective: float) -> str | None:
        """The stop of the config that is reached, or None. Inside generation 0, which is done anew, only time counts."""
        counters = self.counters
        if not counters.generations:
            return self.problem.config.stop.reached(0, 0, self.elapsed_s, float("-inf"))
        return self.problem.config.stop.reached(counters.generations, counters.evaluations, self.elapsed_s, best_objective)


def row_threads_of(problem: Problem) -> RowThreads:
    """The threads that a config allows."""
    return RowThreads(problem.config.evaluation.threads or len(os.sched_getaffinity(0)))


def variation_of(config: RunConfig, language: Language, options: VariationOptions, source: str = "search.variation") -> Variation:
    """The operators of a config's section with these options.

    Raises:
        UserError: they cannot be made from it; the message begins with `source`.
    """
    initial = config.search.initial
    if initial.max_length > config.program.max_length:
        raise UserError(
            f"{initial.max_length} is more than program.max_length {config.program.max_length}", "search.initial.max_length"
        )
    return make_variation(language, config.program.vocabulary, options, (initial.min_length, initial.max_length), source)


def make_archive_of(problem: Problem, arrays: Arrays) -> ProgramArchive:
    """An empty archive of the config's kind.

    Args:
        arrays: of its layout, beside the config; empty: it is new.

    Raises:
        UserError: it cannot be made.
    """
    config, ranges = problem.config, list(problem.task.measures.values())
    archive = config.search.archive
    lowest = _least_objective(problem)
    try:
        return make_archive(archive.type, config.program.max_length, ranges, config.seed, archive.options(), arrays, lowest)
    except (ValueError, MemoryError) as error:
        raise UserError(shortage(error) or error, "search.archive") from error


def _least_objective(problem: Problem) -> float:
    return problem.task.objective_range[0] if problem.task.objective_range else 0.0
