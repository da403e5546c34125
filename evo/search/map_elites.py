"""MAP-Elites (Mouret & Clune 2015), one generation at a time.

Owns the loop: ask, hash, choose from what is new, evaluate it, tune the best of it, tell. Knows nothing of files, configs or
devices.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Evaluation, Evaluator, Failure, Stats, Status, join
from evo.language.batch import Batch
from evo.native.stack_ptx import Lowering
from evo.search.emitter import GIVEN, Success
from evo.search.state import Counters, SearchState

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive, Winners


@dataclass(frozen=True)
class Beginning:
    """Progress of generation 0: programs `evaluated` or `tuned`, of how many, and how many evaluated ones have a score."""

    stage: str
    done: int
    total: int
    num_scored: int


Watch = Callable[[Beginning], bool]
Tune = Callable[[NDArray[np.uint64]], tuple[NDArray[np.uint64], NDArray[np.bool_], int]]


class Tuner(Protocol):
    """Fits the constants of programs. A program's result depends on that program alone."""

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        """Tuned copies, which of them changed, and how many evaluations it took."""

    def finish(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_], int]:
        """As `tune`, at greater cost and to the end."""


@dataclass(frozen=True)
class Tuning:
    """Tunes the best `share` of the programs that are evaluated in a generation, and then finishes `num_finished` of the programs
    that come closest to elites, and all that generation 0 is given.
    """

    tuner: Tuner
    share: float
    num_finished: int = 0


@dataclass(frozen=True)
class Generation:
    """Result of one generation.

    num_lineages, largest_lineage: of the elites (`Lineage`). success: of each emitter so far. failures: programs that could not
    be compiled or run. stats: of the evaluator, and seconds of the loop's stages.
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
    stats: Stats


Step: TypeAlias = Generation | Beginning


@dataclass(frozen=True)
class _Offspring:
    """Offspring of a generation. is_new: not evaluated yet. num_neutral: number of programs that equal a parent."""

    generation: int
    batch: Batch
    is_new: NDArray[np.bool_]
    num_neutral: int


@dataclass(frozen=True)
class _Scored:
    """The programs of a generation that were evaluated, those from tuning last.

    slots: of the offspring that they are or come from. num_chosen: without those from tuning. num_evaluations: with each run that
    tuning took.
    """

    batch: Batch
    slots: NDArray[np.int64]
    evaluation: Evaluation
    num_chosen: int
    num_evaluations: int


class MapElites:
    """Breeds, evaluates and inserts programs, generation by generation.

    Args:
        state: of the search; all of it. Between two generations it is consistent and may be saved.
        evaluator: scores programs; None: for `ask` and `tell` alone.
        lowering: hashes programs.
        tuning: None: constants stay as they were bred.
        keeps_lowered: for an evaluator or a model that gains by it.
        watch: called with each part of generation 0; a True ends the generation, whose counter stays at 0 then: it is for a
            look, and a search goes on by doing generation 0 anew.
    """

    def __init__(
        self,
        state: SearchState,
        evaluator: Evaluator | None,
        lowering: Lowering,
        tuning: Tuning | None = None,
        keeps_lowered: bool = False,
        watch: Watch | None = None,
    ):
        self._state = state
        self._evaluator = evaluator
        self._lowering = lowering
        self._tuning = tuning
        self._keeps_lowered = keeps_lowered
        self._watch = watch
        self._is_cut = False
        self._num_scored = 0
        self._clock = _Clock()

    def step(self) -> Generation:
        """One generation."""
        self._clock = _Clock()
        offspring = self._breed()
        return self._finish(offspring, self._evaluate(offspring))

    def ask(self) -> Batch:
        """The new programs of the next generation, for a caller who scores them and calls `tell`."""
        self._clock = _Clock()
        self._asked = self._breed()
        return self._asked.batch[self._asked.is_new]

    def tell(self, evaluation: Evaluation) -> Generation:
        """The generation of the programs that were asked for last, with their results."""
        offspring = self._asked
        batch, slots = offspring.batch[offspring.is_new], np.flatnonzero(offspring.is_new)
        self._state.memory.add(batch.hashes)
        return self._finish(offspring, _Scored(batch, slots, evaluation, len(slots), len(slots)))

    def _finish(self, offspring: _Offspring, scored: _Scored) -> Generation:
        if self._is_cut:
            end = int(scored.slots.max()) + 1
            offspring = replace(offspring, batch=offspring.batch[:end], is_new=offspring.is_new[:end])
        is_elite = self._insert(offspring, scored)
        self._learn(scored)
        self._count(offspring, scored)
        self._clock.lap("statistics")
        archive, lineage, evaluation = self._state.archive, self._state.lineage, scored.evaluation
        return Generation(
            counters=self._state.counters,
            num_elites=len(archive),
            coverage=len(archive) / archive.cells,
            qd_score=archive.qd_score,
            best_objective=archive.best_objective,
            num_inserted=int(np.count_nonzero(is_elite)),
            num_lineages=lineage.num_founders,
            largest_lineage=lineage.largest_share,
            success=self._state.emitter.success(),
            failures=evaluation.failures,
            stats=replace(evaluation.stats, times_s={**self._clock.times_s, **evaluation.stats.times_s}),
        )

    def _breed(self) -> _Offspring:
        state, restarts, prescreen = self._state, self._state.restarts, self._state.prescreen
        generation = state.emitter.generation
        if restarts.begin(generation):
            state.memory.clear()
            state.lineage.begin(restarts.population.elites(), is_archive=restarts.population is state.archive)
        factor = 1
        if prescreen:
            factor = prescreen.begin(restarts.population, is_fresh=restarts.is_fresh(generation))
        words = state.emitter.ask(factor)
        batch = Batch.analyze(self._lowering, words, state.emitter.row_threads, keep=self._keeps_lowered)
        num_neutral = restarts.population.count_neutral(batch.hashes, state.emitter.origin.parents)
        is_new = state.memory.is_new(batch.hashes)
        self._clock.lap("variation")
        return _Offspring(generation, batch, is_new, num_neutral)

    def _evaluate(self, offspring: _Offspring) -> _Scored:
        """Chooses new programs, evaluates them, and tunes the best."""
        state, batch, is_chosen = self._state, offspring.batch, offspring.is_new
        if state.prescreen:
            parents = state.emitter.origin.parents
            is_chosen = state.prescreen.choose(batch.programs, is_chosen, parents, state.restarts.population)
            self._clock.lap("prescreen")
        chosen, parts = batch[is_chosen], []
        for rows in self._parts("evaluated", len(chosen)):
            assert self._evaluator
            parts.append(self._evaluator.evaluate(chosen[rows]))
            self._num_scored += int(np.count_nonzero(parts[-1].status == Status.OK))
        evaluation = join(parts, parts[0].measures.shape[1])
        self._clock.lap("evaluation")
        slots, chosen = np.flatnonzero(is_chosen)[: len(evaluation.status)], chosen[: len(evaluation.status)]
        state.memory.add(chosen.hashes)
        scored = _Scored(chosen, slots, evaluation, len(slots), len(slots))
        if not self._tuning:
            return scored
        scored = self._tune(scored, _promising(evaluation, self._tuning.share), self._tuning.tuner.tune)
        if self._tuning.num_finished:
            scored = self._tune(scored, self._close(scored, self._tuning.num_finished), self._tuning.tuner.finish)
        self._clock.lap("tuning")
        return scored

    def _parts(self, stage: str, count: int) -> Iterator[slice]:
        """The rows of a batch, those of generation 0 part by part until the watch ends it."""
        is_watched = self._watch and not self._state.counters.generations
        size = self._state.emitter.batch_size if is_watched else count
        for end in range(size, count + size, size) if count else [0]:
            if self._is_cut:
                return
            yield slice(end - size, end)
            if self._watch and is_watched:
                is_ended = self._watch(Beginning(stage, min(end, count), count, self._num_scored))
                self._is_cut = is_ended and end < count

    def _tune(self, scored: _Scored, rows: NDArray[np.int64], tune: Tune) -> _Scored:
        """Join the scored batch with the programs that tuning these rows made."""
        for part in self._parts("tuned", len(rows)):
            scored = self._tune_part(scored, rows[part], tune)
        return scored

    def _tune_part(self, scored: _Scored, rows: NDArray[np.int64], tune: Tune) -> _Scored:
        memory, evaluation = self._state.memory, scored.evaluation
        words, changed, num_runs = tune(scored.batch[rows].words)
        tuned = Batch.analyze(self._lowering, words, self._state.emitter.row_threads, keep=self._keeps_lowered)
        is_new = np.flatnonzero(changed & memory.is_new(tuned.hashes))
        tuned = tuned[is_new]
        assert self._evaluator
        evaluation = join([evaluation, self._evaluator.evaluate(tuned)], evaluation.measures.shape[1])
        memory.add(tuned.hashes)
        slots = np.concatenate([scored.slots, scored.slots[rows[is_new]]])
        num_evaluations = scored.num_evaluations + len(is_new) + num_runs
        return _Scored(scored.batch.joined([tuned]), slots, evaluation, scored.num_chosen, num_evaluations)

    def _close(self, scored: _Scored, count: int) -> NDArray[np.int64]:
        """The rows of the programs to finish."""
        evaluation = scored.evaluation
        operators = self._state.emitter.origin.operator[scored.slots]
        given_rows = np.flatnonzero((operators == GIVEN) & (evaluation.status == Status.OK))
        if len(given_rows):
            return given_rows[given_rows < scored.num_chosen]
        return self._state.restarts.population.rivals(evaluation.objective, evaluation.measures, count)

    def _insert(self, offspring: _Offspring, scored: _Scored) -> NDArray[np.bool_]:
        """Mask of the programs that are elites of the archive now.

        A duplicate scores what its first copy scored, so it can only tie with an elite, and ties keep the incumbent: only new
        programs come here.
        """
        state, batch, slots = self._state, scored.batch, scored.slots
        objective, measures = scored.evaluation.objective, scored.evaluation.measures
        archive, population, origin = state.archive, state.restarts.population, state.emitter.origin

        def facts(rows: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.float64], dict[str, NDArray[Any]]]:
            fields = {
                "parents": origin.parents[slots[rows]],
                "operator": origin.operator[slots[rows]],
                "generation": np.full(len(rows), offspring.generation),
                "slot": slots[rows],
                "hash": batch.hashes[rows],
                "num_instructions": batch.num_instructions[rows],
            }
            return batch[rows].words, objective[rows], fields

        def enter(archive: ProgramArchive) -> Winners:
            won = archive.best_of(objective, measures)
            archive.enter(won, *facts(won.rows), measures[won.rows])
            return won

        won = enter(archive)
        parents = won if population is archive else enter(population)
        is_elite, is_new, is_parent = np.zeros((3, len(slots)), bool)
        is_elite[won.rows], is_new[won.rows], is_parent[parents.rows] = True, won.is_new, True
        cells = np.zeros(len(slots), np.int32)
        cells[won.rows], cells[parents.rows] = won.cells, parents.cells
        state.emitter.tell(slots, is_elite, is_new)
        rows = np.flatnonzero(is_elite | is_parent)
        state.lineage.update(cells[rows], *facts(rows), is_elite[rows], is_parent[rows])
        self._clock.lap("archive")
        return is_elite

    def _learn(self, scored: _Scored) -> None:
        prescreen, count = self._state.prescreen, scored.num_chosen
        if not prescreen or self._is_cut:  # generation 0 is done anew
            return
        evaluation = scored.evaluation
        prescreen.learn(evaluation.objective[:count], evaluation.measures[:count], self._state.restarts.population)
        self._clock.lap("learning")

    def _count(self, offspring: _Offspring, scored: _Scored) -> None:
        archive, counters, batch = self._state.archive, self._state.counters, offspring.batch
        num_different = int(np.count_nonzero(offspring.is_new))
        measures = scored.evaluation.measures
        is_outside = (measures < archive.layout.low) | (measures > archive.layout.high)  # never where a measure is NaN
        counters.generations += not self._is_cut
        counters.offspring += len(batch)
        counters.evaluations += scored.num_evaluations
        counters.tuned += len(scored.slots) - scored.num_chosen
        counters.duplicates += len(batch) - num_different
        counters.screened += num_different - scored.num_chosen
        counters.neutral += offspring.num_neutral
        counters.rejected += int(np.count_nonzero(scored.evaluation.status))
        counters.failed += len(scored.evaluation.failures)
        counters.out_of_range += int(np.count_nonzero(is_outside.any(axis=1)))


def _promising(evaluation: Evaluation, share: float) -> NDArray[np.int64]:
    """The rows of the best programs, best first: this share of those that are OK, rounded up. If two are equal, the first
    counts.
    """
    ok = np.flatnonzero(evaluation.status == Status.OK)
    order = np.argsort(-evaluation.objective[ok], kind="stable")
    return ok[order[: math.ceil(share * len(ok))]]


class _Clock:
    """Seconds between laps, by name."""

    def __init__(self) -> None:
        self.times_s: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.times_s[name] = now - self._last
        self._last = now
