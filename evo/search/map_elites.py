"""MAP-Elites (Mouret & Clune 2015), one generation at a time.

Owns the loop: ask, hash, remember or evaluate, tell. Knows nothing of files, configs or devices.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from ribs.archives import ArchiveBase
from ribs.schedulers import Scheduler

from evo.evaluate import Evaluator, Failure, Status
from evo.native.stack_ptx import Lowering
from evo.search.archive import elites_by_cell
from evo.search.emitter import ProgramEmitter
from evo.search.memory import ResultMemory


@dataclass
class Counters:
    """Totals of a run so far. They are part of its state: a resumed run goes on counting.

    generations: done; offspring: programs asked for; evaluations: programs really evaluated; duplicates: programs whose
    hash was seen before; neutral: offspring with the hash of a parent; rejected: evaluated, but not OK; out_of_range:
    evaluated, with a measure outside its range (clipped into an edge cell); failed: could not be compiled or run.
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
    """What one generation did. failures: programs that could not be compiled; times_s: seconds by stage, the evaluator's own
    stages (`Evaluation.times_s`) among them.
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
    archive: ArchiveBase,
    emitter: ProgramEmitter,
    evaluator: Evaluator,
    lowering: Lowering,
    memory: ResultMemory,
    ranges: np.ndarray,
    counters: Counters,
) -> Iterator[Generation]:
    """Yields after each generation, for ever; between two yields all state is consistent and may be saved.

    Args:
        archive, emitter, memory, counters: the state of the run; all of it.
        evaluator: scores programs.
        lowering: hashes programs.
        ranges: `(num_measures, 2)`, the measures' bounds.
    """
    scheduler = Scheduler(archive, [emitter])
    while True:
        clock = _Clock()
        generation = emitter.generation
        programs = scheduler.ask()
        clock.lap("variation")

        hashes, num_instructions = lowering.analyze(programs)
        rows = memory.find(hashes)
        first = _first_of_each(hashes)
        new = first & (rows < 0)
        clock.lap("hash")

        evaluation = evaluator.evaluate(programs[new], num_instructions[new])
        clock.lap("evaluation")

        memory.add(hashes[new], evaluation.status, evaluation.objective, evaluation.measures)
        # A duplicate scores what its first copy scored, so it can only tie with an elite, and ties keep the incumbent:
        # only new programs need to be told. The rest go in as rejected.
        objective = np.full(len(programs), np.nan)
        measures = np.full((len(programs), len(ranges)), np.nan)
        objective[new] = evaluation.objective
        measures[new] = evaluation.measures
        with warnings.catch_warnings():
            # pyribs blames a threshold where every program failed; the generation says that there are no elites.
            warnings.filterwarnings("ignore", message="`archive` was empty before adding")
            scheduler.tell(
                objective,
                measures,
                parents=emitter.origin.parents,
                operator=emitter.origin.operator,
                generation=np.full(len(programs), generation),
                slot=np.arange(len(programs)),
                hash=hashes,
                num_instructions=num_instructions,
            )
        clock.lap("archive")

        ok = evaluation.status == Status.OK
        outside = (evaluation.measures < ranges[:, 0]) | (evaluation.measures > ranges[:, 1])
        counters.generations += 1
        counters.offspring += len(programs)
        counters.evaluations += int(new.sum())
        counters.duplicates += len(programs) - int(new.sum())
        counters.neutral += int((hashes[:, None] == emitter.origin.parent_hashes).all(axis=2).any(axis=1).sum())
        counters.rejected += int((~ok).sum())
        counters.failed += len(evaluation.failures)
        counters.out_of_range += int(outside[ok].any(axis=1).sum())
        elites = elites_by_cell(archive)
        clock.lap("statistics")
        yield Generation(
            counters=counters,
            num_elites=len(elites),
            coverage=len(elites) / archive.cells,
            qd_score=elites.qd_score,
            best_objective=float(elites.objective.max()) if len(elites) else float("nan"),
            num_inserted=int((elites.generation == generation).sum()),
            failures=evaluation.failures,
            times_s={**clock.times_s, **evaluation.times_s},
        )


def _first_of_each(hashes: np.ndarray) -> np.ndarray:
    """True at the first row of each distinct hash."""
    first = np.zeros(len(hashes), bool)
    first[np.unique(hashes.view("V16")[:, 0], return_index=True)[1]] = True
    return first


class _Clock:
    """Seconds between laps, by name."""

    def __init__(self):
        self.times_s: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.times_s[name] = now - self._last
        self._last = now
