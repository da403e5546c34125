"""MAP-Elites (Mouret & Clune 2015), one generation at a time.

Owns the loop: ask, hash, evaluate what is new, tell. Knows nothing of files, configs or devices.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ribs.schedulers import Scheduler

from evo.evaluate import Evaluator, Failure, Status
from evo.language.batch import Batch
from evo.native.stack_ptx import Lowering
from evo.search.archives.base import ProgramArchive
from evo.search.emitter import ProgramEmitter
from evo.search.memory import HashMemory


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
    scheduler = Scheduler(archive, [emitter])
    while True:
        clock = _Clock()
        generation = emitter.generation
        words = scheduler.ask()
        clock.lap("variation")

        batch = Batch.analyze(lowering, words)
        new = _first_of_each(batch.hashes) & ~memory.contains(batch.hashes)
        clock.lap("hash")

        evaluation = evaluator.evaluate(batch[new])
        clock.lap("evaluation")

        memory.add(batch.hashes[new])
        # A duplicate scores what its first copy scored, so it can only tie with an elite, and ties keep the incumbent.
        # Only new programs need to be told; the others go in as rejected.
        objective = np.full(len(batch), np.nan)
        measures = np.full((len(batch), archive.measure_dim), np.nan)
        objective[new] = evaluation.objective
        measures[new] = evaluation.measures
        with warnings.catch_warnings():
            # pyribs blames a threshold if every program failed; the yielded generation says that there are no elites.
            warnings.filterwarnings("ignore", message="`archive` was empty before adding")
            scheduler.tell(
                objective,
                measures,
                parents=emitter.origin.parents,
                operator=emitter.origin.operator,
                generation=np.full(len(batch), generation),
                slot=np.arange(len(batch)),
                hash=batch.hashes,
                num_instructions=batch.num_instructions,
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
        elites = archive.elites()
        clock.lap("statistics")
        yield Generation(
            counters=counters,
            num_elites=len(elites),
            coverage=len(elites) / archive.cells,
            qd_score=elites.qd_score,
            best_objective=elites.best_objective,
            num_inserted=int((elites.generation == generation).sum()),
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
