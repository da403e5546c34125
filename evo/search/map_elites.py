"""MAP-Elites (Mouret & Clune 2015), one generation at a time.

Owns the loop: ask, hash, choose from what is new, evaluate it, tune the best of it, tell. Knows nothing of files, configs or
devices.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation, Evaluator, Failure, Status, join
from evo.language.batch import Batch
from evo.native.stack_ptx import Lowering
from evo.search.ancestry import Ancestry
from evo.search.emitter import ProgramEmitter, Success
from evo.search.learned_measures import Fit, LearnedMeasures
from evo.search.lineages import Lineages
from evo.search.memory import HashMemory
from evo.search.prescreen import Prescreen, Screening
from evo.search.restarts import Restarts
from evo.search.row_threads import RowThreads

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive


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


class Tuner(Protocol):
    """Fits the constants of programs. A program's result depends on that program alone."""

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        """Tuned copies, which of them changed, and how many evaluations it took."""


@dataclass(frozen=True)
class Tuning:
    """Tunes the best `share` of the programs that are evaluated in a generation."""

    tuner: Tuner
    share: float


@dataclass(frozen=True)
class Generation:
    """What one generation did.

    num_lineages, largest_lineage: of the elites (`Lineages`). success: of each emitter so far. failures: programs that could not
    be compiled or run. times_s: seconds by stage, those of the evaluator (`Evaluation.times_s`) included. lanes: as in
    `Evaluation`. screening: None without a prescreen. fit: None if the model of learned measures stays as it was.
    """

    counters: Counters
    num_elites: int
    coverage: float
    qd_score: float
    best_objective: float
    num_inserted: int
    num_lineages: int
    largest_lineage: float
    success: dict[str, Success]
    failures: tuple[Failure, ...]
    times_s: dict[str, float]
    lanes: dict[str, int] = field(default_factory=dict)
    screening: Screening | None = None
    fit: Fit | None = None


def map_elites(
    archive: ProgramArchive,
    emitter: ProgramEmitter,
    evaluator: Evaluator,
    lowering: Lowering,
    memory: HashMemory,
    counters: Counters,
    lineages: Lineages,
    ancestry: Ancestry,
    starts: Restarts,
    blocks: RowThreads | None = None,
    tuning: Tuning | None = None,
    prescreen: Prescreen | None = None,
    learned: LearnedMeasures | None = None,
) -> Iterator[Generation]:
    """Yields after each generation, without end. Between two yields the state is consistent and may be saved.

    Args:
        archive, emitter, memory, counters, lineages, ancestry, starts: the state of the search; all of it.
        evaluator: scores programs.
        lowering: hashes programs.
        blocks: threads that hash together.
        tuning: None: constants stay as they were bred.
        prescreen: None: every new program is evaluated.
        learned: measures that span the archive; None: the task's do. They go neither with a prescreen nor with starts.
    """
    blocks = blocks or RowThreads()
    while True:
        clock = _Clock()
        generation = emitter.generation
        if starts.begin(generation):
            memory.clear()
            lineages.begin(starts.population.elites())
            ancestry.begin(is_archive=starts.population is archive)
        factor = prescreen.begin(generation, starts.population, is_fresh=starts.is_fresh(generation)) if prescreen else 1
        words = emitter.ask(factor)
        founders = lineages.founders(emitter.origin, generation)
        clock.lap("variation")

        facts = blocks.map(lambda first, end, words=words: lowering.analyze(words[first:end]), len(words))  # type: ignore[misc]
        batch = Batch(words, *map(np.concatenate, zip(*facts, strict=True)))
        new = _first_of_each(batch.hashes) & ~memory.contains(batch.hashes)
        num_different = int(new.sum())
        clock.lap("hash")

        if prescreen:
            new = prescreen.choose(batch.words, new, emitter.origin.parents, starts.population)
            clock.lap("prescreen")
        new_batch = batch[new]
        evaluation = evaluator.evaluate(new_batch)
        clock.lap("evaluation")

        memory.add(new_batch.hashes)
        slots = np.flatnonzero(new)
        num_new = len(slots)
        num_runs = 0
        if tuning:
            promising = _promising(evaluation, tuning.share)
            tuned, rows, num_runs = _tune(tuning.tuner, lowering, memory, new_batch[promising])
            evaluation = join([evaluation, evaluator.evaluate(tuned)], evaluation.measures.shape[1])
            memory.add(tuned.hashes)
            new_batch = new_batch.joined(tuned)
            slots = np.concatenate([slots, slots[promising[rows]]])
            clock.lap("tuning")

        fit = None
        spanning = evaluation.measures
        if learned:
            is_ok = np.isfinite(evaluation.objective)
            if is_ok.any() and not learned.is_fitted:
                fit = Fit(learned.fit(new_batch.words[is_ok], counters.evaluations + len(slots) + num_runs))
            spanning = np.full((len(is_ok), len(archive.lower_bounds)), np.nan)
            spanning[is_ok] = learned.of(new_batch.words[is_ok])
            clock.lap("measures")

        # A duplicate scores what its first copy scored, so it can only tie with an elite, and ties keep the incumbent.
        # Only new programs are added.
        fields = {
            "parents": emitter.origin.parents[slots],
            "operator": emitter.origin.operator[slots],
            "generation": np.full(len(slots), generation),
            "slot": slots,
            "hash": new_batch.hashes,
            "num_instructions": new_batch.num_instructions,
            **({"task_measures": evaluation.measures} if learned else {}),
        }
        added = archive.add(new_batch.words, evaluation.objective, spanning, **fields)
        is_elite = added["elite"]
        emitter.tell(slots, is_elite, added["new"])
        is_parent, population = is_elite, starts.population
        if population is not archive:
            is_parent = population.add(new_batch.words, evaluation.objective, spanning, **fields)["elite"]
        lineages.update(population.index_of(spanning[is_parent]), founders[slots][is_parent])
        rows = np.flatnonzero(is_elite | is_parent)
        ancestry.update(
            archive.index_of(spanning[rows]),
            new_batch.words[rows],
            evaluation.objective[rows],
            {name: values[rows] for name, values in fields.items()},
            is_elite[rows],
            is_parent[rows],
        )
        clock.lap("archive")

        screening = None
        if prescreen:
            scores = evaluation.objective[:num_new], evaluation.measures[:num_new]
            num_evaluations, num_improved = len(slots) + num_runs, int(is_parent.sum())
            screening = prescreen.learn(*scores, len(batch), num_evaluations, num_improved, starts.population)
            clock.lap("learning")

        ok = evaluation.status == Status.OK
        outside = (spanning < archive.lower_bounds) | (spanning > archive.upper_bounds)
        counters.generations += 1
        counters.offspring += len(batch)
        counters.evaluations += len(slots) + num_runs
        counters.tuned += len(slots) - num_new
        counters.duplicates += len(batch) - num_different
        counters.screened += num_different - num_new
        counters.neutral += _count_neutral(batch.hashes, emitter.origin.parent_hashes)
        counters.rejected += int((~ok).sum())
        counters.failed += len(evaluation.failures)
        counters.out_of_range += int(outside[ok].any(axis=1).sum())
        if learned and len(archive) and learned.is_due(counters.evaluations):
            fit = _fit(learned, counters.evaluations, archive, lineages, ancestry)
            clock.lap("learning")
        clock.lap("statistics")
        yield Generation(
            counters=counters,
            num_elites=len(archive),
            coverage=len(archive) / archive.cells,
            qd_score=archive.qd_score,
            best_objective=archive.best_objective,
            num_inserted=int(is_elite.sum()),
            num_lineages=len(lineages),
            largest_lineage=lineages.largest_share,
            success=emitter.success(),
            failures=evaluation.failures,
            times_s={**clock.times_s, **evaluation.times_s},
            lanes=evaluation.lanes,
            screening=screening,
            fit=fit,
        )


def _fit(learned: LearnedMeasures, num_evaluations: int, archive: ProgramArchive, lineages: Lineages, ancestry: Ancestry) -> Fit:
    """Fits learned measures to the elites, and fills the archive anew."""
    words = archive.elites().solution
    explained, num_before = learned.fit(words, num_evaluations), len(archive)
    cells = archive.rebuild(learned.of(words))
    lineages.move(*cells)
    ancestry.move(*cells)
    return Fit(explained, num_before, len(archive))


def _count_neutral(hashes: NDArray[np.uint64], parent_hashes: NDArray[np.uint64]) -> int:
    """The number of programs with the hash of a parent."""
    is_equal = hashes[:, None] == parent_hashes
    is_parents = is_equal[:, :, 0] & is_equal[:, :, 1]
    return int(np.count_nonzero(is_parents[:, 0] | is_parents[:, 1]))


def _promising(evaluation: Evaluation, share: float) -> NDArray[np.int64]:
    """The rows of the best programs, best first: this share of those that are OK, rounded up. Of equals, the first."""
    ok = np.flatnonzero(evaluation.status == Status.OK)
    order = np.argsort(-evaluation.objective[ok], kind="stable")
    return ok[order[: math.ceil(share * len(ok))]]


def _tune(tuner: Tuner, lowering: Lowering, memory: HashMemory, batch: Batch) -> tuple[Batch, NDArray[np.int64], int]:
    """The programs that tuning made and that were not evaluated before, the rows of `batch` that they come from, and the
    evaluations that it took.
    """
    words, changed, num_runs = tuner.tune(batch.words)
    tuned = Batch.analyze(lowering, words)
    rows = np.flatnonzero(changed & _first_of_each(tuned.hashes) & ~memory.contains(tuned.hashes))
    return tuned[rows], rows, num_runs


def _first_of_each(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True at the first row of each distinct hash."""
    is_first = np.ones(len(hashes), bool)
    # Only rows that agree with another one in the first half need a close look.
    order = np.argsort(hashes[:, 0])
    agrees = np.flatnonzero(np.diff(hashes[order, 0]) == 0)
    rows = np.unique(order[np.concatenate([agrees, agrees + 1])])
    is_first[rows] = False
    is_first[rows[np.unique(hashes[rows].view("V16")[:, 0], return_index=True)[1]]] = True
    return is_first


class _Clock:
    """Seconds between laps, by name."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.times_s[name] = now - self._last
        self._last = now
