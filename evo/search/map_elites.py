"""MAP-Elites (Mouret & Clune 2015), one generation at a time.

Owns the loop: ask, hash, evaluate what is new, tell. Knows nothing of files, configs or devices.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluator, Failure, Status
from evo.language.batch import Batch
from evo.native.stack_ptx import Lowering
from evo.search.emitter import ProgramEmitter
from evo.search.memory import HashMemory

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive


@dataclass
class Counters:
    """A run's totals so far. They are part of its state: a resumed run goes on counting.

    generations: finished. offspring: programs that were asked for. evaluations: programs that were evaluated. duplicates:
    programs whose hash was seen before. neutral: offspring with the hash of a parent. rejected: evaluated, but not OK.
    out_of_range: evaluated, with a measure outside its range, which counts to the cell at the edge. failed: could not be
    compiled or run.
    """

    generations: int = 0
    offspring: int = 0
    evaluations: int = 0
    duplicates: int = 0
    neutral: int = 0
    rejected: int = 0
    out_of_range: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Generation:
    """What one generation did.

    failures: programs that could not be compiled or run. times_s: seconds by stage, those of the evaluator (`Evaluation.times_s`)
    included.
    """

    counters: Counters
    num_elites: int
    coverage: float
    qd_score: float
    best_objective: float
    num_inserted: int
    failures: tuple[Failure, ...]
    times_s: dict[str, float]


def map_elites(
    archive: ProgramArchive,
    emitter: ProgramEmitter,
    evaluator: Evaluator,
    lowering: Lowering,
    memory: HashMemory,
    counters: Counters,
) -> Iterator[Generation]:
    """Yields after each generation, without end. Between two yields the state is consistent and may be saved.

    Args:
        archive, emitter, memory, counters: the state of the search; all of it.
        evaluator: scores programs.
        lowering: hashes programs.
    """
    while True:
        clock = _Clock()
        generation = emitter.generation
        words = emitter.ask()
        clock.lap("variation")

        batch = Batch.analyze(lowering, words)
        new = _first_of_each(batch.hashes) & ~memory.contains(batch.hashes)
        clock.lap("hash")

        new_batch = batch[new]
        evaluation = evaluator.evaluate(new_batch)
        clock.lap("evaluation")

        memory.add(new_batch.hashes)
        # A duplicate scores what its first copy scored, so it can only tie with an elite, and ties keep the incumbent.
        # Only new programs are added.
        slots = np.flatnonzero(new)
        added = archive.add(
            new_batch.words,
            evaluation.objective,
            evaluation.measures,
            parents=emitter.origin.parents[slots],
            operator=emitter.origin.operator[slots],
            generation=np.full(len(slots), generation),
            slot=slots,
            hash=new_batch.hashes,
            num_instructions=new_batch.num_instructions,
        )
        clock.lap("archive")

        ok = evaluation.status == Status.OK
        outside = (evaluation.measures < archive.lower_bounds) | (evaluation.measures > archive.upper_bounds)
        num_new = int(new.sum())
        counters.generations += 1
        counters.offspring += len(batch)
        counters.evaluations += num_new
        counters.duplicates += len(batch) - num_new
        counters.neutral += int((batch.hashes[:, None] == emitter.origin.parent_hashes).all(axis=2).any(axis=1).sum())
        counters.rejected += int((~ok).sum())
        counters.failed += len(evaluation.failures)
        counters.out_of_range += int(outside[ok].any(axis=1).sum())
        clock.lap("statistics")
        yield Generation(
            counters=counters,
            num_elites=len(archive),
            coverage=len(archive) / archive.cells,
            qd_score=archive.qd_score,
            best_objective=archive.best_objective,
            num_inserted=int(added["elite"].sum()),
            failures=evaluation.failures,
            times_s={**clock.times_s, **evaluation.times_s},
        )


def _first_of_each(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True at the first row of each distinct hash."""
    first = np.zeros(len(hashes), bool)
    first[np.unique(hashes.view("V16")[:, 0], return_index=True)[1]] = True
    return first


class _Clock:
    """Seconds between laps, by name."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.times_s[name] = now - self._last
        self._last = now
