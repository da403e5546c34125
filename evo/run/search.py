"""A search made from a config: its parts, its stops, and all of its state.

Owns the wiring of archive, emitter, memory and evaluator, and what it takes to go on later. Knows nothing of the folder that a
run is written to (`evo.run.run`). Slightly long, since every part of a search is made and saved here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.about import VERSION
from evo.config import RunConfig
from evo.errors import DeviceFailure, FailureKind, UserError
from evo.evaluate import Failure
from evo.evaluate.backends import choose_backend
from evo.language.batch import Batch
from evo.language.program import Language
from evo.native.stack_ptx import HASH_VERSION
from evo.native.vary import Variation
from evo.run.initial_programs import read_initial, with_digest
from evo.run.learning import make_learned_measures, make_prescreen
from evo.run.loaded_task import Problem
from evo.run.task_identity import declarations
from evo.search.ancestry import NONE, Ancestry, Records, joined
from evo.search.archives import make_archive, make_layout
from evo.search.archives.elites import Elites
from evo.search.archives.layout import Layout
from evo.search.emitter import RANDOM, Emitter, ProgramEmitter
from evo.search.learned_measures import LearnedMeasures
from evo.search.lineages import Lineages
from evo.search.map_elites import Counters, Generation, Tuning, map_elites
from evo.search.memory import HashMemory
from evo.search.prescreen import Prescreen
from evo.search.restarts import Restarts
from evo.search.row_threads import RowThreads
from evo.search.vocabulary import VariationOptions, make_variation

if TYPE_CHECKING:
    from evo.evaluate.calibration import Calibration
    from evo.search.archives.base import ProgramArchive

NUM_TRIED = 4  # programs that are scored before a search begins
NUM_DRAWN, NUM_TYPICAL = 1024, 128  # random programs, and the longest of them, which what programs cost is measured with
PICTURE_TRIED = 8  # side in pixels of the picture that is drawn then
PICTURE_PLOTS = {"contact_sheet", "best", "animation", "gallery", "lineage"}
PLOTS_WITH_PICTURES = PICTURE_PLOTS | {"page"}  # if the task draws any

Arrays = dict[str, NDArray[Any]]


class Search:
    """A search in progress.

    A restored search makes archive, emitter and memory when they are first asked for. To look at its elites takes none of them.

    Attributes:
        problem, counters: two of its parts.
        quarantine: canonical hash (16 bytes) -> kind and log of each program that could not be compiled or run.
        elapsed_s: seconds that it has run.
        stop_reason: the stop that was reached, or None.
    """

    def __init__(self, problem: Problem, saved: Arrays | None = None, records: Records | None = None):
        """An empty search; `restore` passes the arrays and records of a saved one.

        Raises:
            UserError: the archive or the vocabulary cannot be made from the config, or its initial programs are wrong.
        """
        given = read_initial(problem) if saved is None else saved.get("initial.words")  # until generation 0 is done
        self._given = np.zeros((0, 1), np.uint64) if given is None else given
        self.problem = with_digest(problem, self._given) if saved is None else problem
        self.counters = Counters()
        self.quarantine: dict[bytes, tuple[FailureKind, str]] = dict(problem.quarantine)
        self.elapsed_s = 0.0
        self.stop_reason: str | None = None
        self._saved = saved  # until the search goes on
        self._records = records or joined([])
        if saved is None:
            self.emitter  # noqa: B018 - made here, so that errors are reported before a run folder exists
            if problem.config.search.learning.features:
                make_learned_measures(problem, self._blocks)  # for its errors

    @cached_property
    def archive(self) -> ProgramArchive:
        """The archive. Making it imports pyribs, which takes seconds."""
        if self._saved is None:
            return _make_archive(self.problem, {})
        archive = _make_archive(self.problem, _part(self._saved, "archive."))
        try:
            archive.restore(Elites.of(_part(self._saved, "elites.")))
        except ValueError as error:
            raise UserError(f"search.archive: the checkpoint does not fit: {error}") from error
        return archive

    @cached_property
    def emitter(self) -> ProgramEmitter:
        """The emitter of the next generation."""
        config, language = self.problem.config, self.problem.language
        variation = _variation(config, language, config.search.variation)
        return ProgramEmitter(
            self.starts,
            variation,
            seed=config.seed,
            max_length=config.program.max_length,
            num_initial=config.search.initial.num_programs,
            batch_size=config.search.batch_size,
            emitters=_emitters(config, language, variation),
            given=self._given,
            generation=self.counters.generations,
            blocks=self._blocks,
            success=None if self._saved is None else self._saved.get("emitters.success"),
        )

    @cached_property
    def _blocks(self) -> RowThreads:
        return RowThreads(self.problem.config.evaluation.threads or len(os.sched_getaffinity(0)))

    @cached_property
    def memory(self) -> HashMemory:
        """The hashes of the programs that were evaluated."""
        memory = HashMemory(self.problem.config.search.memory_size)
        if self._saved is not None:
            memory.restore(_part(self._saved, "memory."))
        return memory

    @cached_property
    def starts(self) -> Restarts:
        """The elites that are bred from."""

        def make() -> ProgramArchive:
            return _make_archive(self.problem, self.archive.arrays())

        config = self.problem.config.search.starts
        starts = Restarts(self.archive, make, config.count, config.generations)
        if self._saved is not None and (elites := _part(self._saved, "population.")):
            starts.population = make()
            starts.population.restore(Elites.of(elites))
        return starts

    @cached_property
    def lineages(self) -> Lineages:
        """Which random programs the elites descend from."""
        lineages = Lineages(int(self.archive.cells))
        if self._saved is not None:
            lineages.restore(self.starts.population.elites(), _part(self._saved, "lineages."))
        return lineages

    @cached_property
    def ancestry(self) -> Ancestry:
        """The programs that the elites descend from."""
        ancestry = Ancestry(int(self.archive.cells), self.problem.config.output.lineage_megabytes << 20)
        if self._saved is not None:
            ancestry.restore(_part(self._saved, "ancestry."), self._records)
        return ancestry

    @cached_property
    def prescreen(self) -> Prescreen | None:
        """What chooses offspring for evaluation; None if nothing does. Making a new one may measure what an evaluation costs."""
        saved = {} if self._saved is None else _part(self._saved, "prescreen.")
        return make_prescreen(self.problem, self.emitter, self._blocks, saved)

    @cached_property
    def learned(self) -> LearnedMeasures | None:
        """The measures that span the archive in place of the task's; None if those do."""
        if not self.problem.config.search.learning.is_spanning:
            return None
        return make_learned_measures(self.problem, self._blocks, {} if self._saved is None else _part(self._saved, "learned."))

    def latent(self) -> NDArray[np.float64]:
        """The principal components of what the elites compute, `(num_elites, search.learning.features)`: the learned measures
        where these span the archive, else those of components fitted to these elites alone.

        Raises:
            UserError: the programs cannot be described.
        """
        elites, learning = self.elites(), self.problem.config.search.learning
        if learning.is_spanning or not learning.features:
            return elites.latent
        if not len(elites):
            return np.zeros((0, learning.features))
        components = make_learned_measures(self.problem, self._blocks)
        components.fit(elites.solution)
        return components.of(elites.solution)

    def elite_columns(self) -> Arrays:
        """The elites as `archive.npz` has them.

        Raises:
            UserError: as of `latent`.
        """
        return replace(self.elites(), latent=self.latent()).arrays()

    def record_numbers(self) -> NDArray[np.int64]:
        """The numbers of the elites' records (`evo.search.ancestry`), in the order of `elites`; NONE of those that have none."""
        cells = self.elites().cell
        if self._saved is None or "ancestry" in vars(self):
            return self.ancestry.numbers(cells)
        saved = _part(self._saved, "ancestry.")
        return saved["archive"][cells] if saved else np.full(len(cells), NONE, np.int64)

    def elites(self) -> Elites:
        """All elites, sorted by cell."""
        if self._saved is None or "archive" in vars(self):
            return self.archive.elites()
        return Elites.of(_part(self._saved, "elites."))

    @property
    def layout(self) -> Layout:
        """Names and places of the archive's cells."""
        archive = self.problem.config.search.archive
        arrays = self.archive.arrays() if self._saved is None else _part(self._saved, "archive.")
        return make_layout(archive.type, list(self.problem.spanning.values()), archive.options(), arrays)

    def generations(self) -> Iterator[Generation]:
        """Yields after each generation until a stop is reached; `stop_reason` then says which.

        Raises:
            DeviceFailure: the device failed. The programs at fault are in quarantine.
        """
        start_s = time.monotonic() - self.elapsed_s
        self.stop_reason = self._stop_reached(self.archive.best_objective)
        if self.stop_reason:
            return
        problem, config = self.problem, self.problem.config.search
        generations = map_elites(
            self.archive,
            self.emitter,
            problem.evaluator,
            problem.language.lowering,
            self.memory,
            self.counters,
            self.lineages,
            self.ancestry,
            self.starts,
            self._blocks,
            Tuning(problem.tuner, config.tuning.share) if problem.tuner else None,
            self.prescreen,
            self.learned,
        )
        self._saved = None
        while not self.stop_reason:
            try:
                generation = next(generations)
            except DeviceFailure as failure:
                self._put_in_quarantine(failure.failures)
                raise
            self._put_in_quarantine(generation.failures)
            self.elapsed_s = time.monotonic() - start_s
            self.stop_reason = self._stop_reached(generation.best_objective)
            yield generation

    @property
    def is_finished(self) -> bool:
        """Whether a stop is reached already."""
        return self._stop_reached(max(self.elites().objective, default=float("-inf"))) is not None

    def insert(self, words: NDArray[np.uint64], generation: int) -> None:
        """Evaluates programs, `(num_programs, max_length)`, such as another search's elites, and adds them to the archive as if
        they were random. The search goes on with this generation. The task's own measures span the archive.
        """
        batch = Batch.analyze(self.problem.language.lowering, words)
        evaluation = self.problem.evaluator.evaluate(batch)
        count = len(batch)
        self.memory.add(batch.hashes)
        fields = {
            "parents": np.full((count, 2), -1, np.int32),
            "operator": np.full(count, RANDOM, np.int32),
            "generation": np.full(count, generation),
            "slot": np.arange(count, dtype=np.int32),
            "hash": batch.hashes,
            "num_instructions": batch.num_instructions,
        }
        is_elite = self.archive.add(batch.words, evaluation.objective, evaluation.measures, **fields)["elite"]
        self.ancestry.update(
            self.archive.index_of(evaluation.measures[is_elite]),
            batch.words[is_elite],
            evaluation.objective[is_elite],
            {name: values[is_elite] for name, values in fields.items()},
            np.ones(int(is_elite.sum()), bool),
            np.ones(int(is_elite.sum()), bool),
        )
        self.counters.evaluations += count
        self.emitter.generation = generation

    def typical_programs(self) -> Batch:
        """Programs about as long as evolved ones: the longest of random ones. The search does not notice that they are drawn."""
        drawn = Batch.analyze(self.problem.language.lowering, self.emitter.random_programs(NUM_DRAWN))
        longest = np.argsort(-drawn.num_instructions, kind="stable")[:NUM_TYPICAL]
        return drawn[longest]

    def choose_backend(self, warn: Callable[[str], None] = lambda _: None) -> Calibration | None:
        """Decides what programs run on, before the evaluator is asked for. Gives what they cost, if that decided.

        Args:
            warn: called with a line if a backend could be used but fails.

        Raises:
            UserError: the task's points or score are wrong.
        """
        problem = self.problem
        choice = choose_backend(problem.config.evaluation.backend, problem.assignment, self.typical_programs, warn)
        self.problem = replace(problem, backend=choice.backend)
        return choice.calibration

    def try_task(self) -> None:
        """Scores a few programs, and draws one if the plots at the end will.

        Raises:
            UserError: the task cannot do it.
        """
        words = self.emitter.random_programs(NUM_TRIED)
        self.problem.evaluator.evaluate(Batch.analyze(self.problem.language.lowering, words))
        if self.problem.task.has_pictures() and PLOTS_WITH_PICTURES & set(self.problem.config.output.plots):
            self.problem.draw(words[:1], PICTURE_TRIED, 0.0)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """All that it takes to go on, but for the records of `ancestry`: plain JSON values, and arrays. `restore` takes both
        back.
        """
        problem = self.problem
        meta = {
            "evo_version": VERSION,
            "hash_version": HASH_VERSION,
            "identity": problem.config.identity(),
            "task_digest": problem.task_digest,
            "task": declarations(problem.task),
            "made_task": asdict(problem.made) if problem.made else None,
            "instruction_set_digest": problem.instruction_set_digest,
            "counters": asdict(self.counters),
            "elapsed_s": self.elapsed_s,
            "backend": problem.backend.name,
            "device": problem.evaluator.device,
            "quarantine": {key.hex(): {"kind": kind, "log": log} for key, (kind, log) in sorted(self.quarantine.items())},
        }
        population = self.starts.population
        is_to_come = len(self._given) and not self.counters.generations
        return meta, {
            **({"initial.words": self._given} if is_to_come else {}),
            **({} if population is self.archive else _with_prefix("population.", population.elites().arrays())),
            **_with_prefix("elites.", self.elites().arrays()),
            **_with_prefix("memory.", self.memory.arrays()),
            **_with_prefix("lineages.", self.lineages.arrays()),
            **_with_prefix("ancestry.", self.ancestry.arrays()),
            **_with_prefix("archive.", self.archive.arrays()),
            **(_with_prefix("prescreen.", self.prescreen.arrays()) if self.prescreen else {}),
            **(_with_prefix("learned.", self.learned.arrays()) if self.learned else {}),
            "emitters.success": self.emitter.success_counts.copy(),
        }

    @classmethod
    def restore(cls, problem: Problem, meta: dict[str, Any], arrays: Arrays, records: Records | None = None) -> Search:
        """The search that `state` was asked of, with the same problem.

        Args:
            records: those of `ancestry`; None: elites are of unknown descent.
        """
        search = cls(problem, arrays, records)
        search.counters = Counters(**meta["counters"])
        search.elapsed_s = meta["elapsed_s"]
        return search

    def _put_in_quarantine(self, failures: Sequence[Failure]) -> None:
        for failure in failures:
            self.quarantine.setdefault(failure.hash, (failure.kind, failure.log))

    def _stop_reached(self, best_objective: float) -> str | None:
        stop = self.problem.config.stop
        done = {
            "generations": self.counters.generations,
            "evaluations": self.counters.evaluations,
            "seconds": self.elapsed_s,
            "objective": best_objective,
        }
        for name, value in done.items():
            bound = getattr(stop, name)
            if bound is not None and value >= bound:
                return f"stop.{name}: {bound}"
        return None


def _make_archive(problem: Problem, arrays: Arrays) -> ProgramArchive:
    config, ranges = problem.config, list(problem.spanning.values())
    archive = config.search.archive
    num_kept = len(problem.task.measures) if config.search.learning.is_spanning else 0
    lowest = problem.task.objective_range[0] if problem.task.objective_range else 0.0
    try:
        return make_archive(
            archive.type, config.program.max_length, ranges, config.seed, archive.options(), arrays, lowest, num_kept
        )
    except (TypeError, ValueError, MemoryError) as error:
        raise UserError(f"search.archive: {error}") from error


def _with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _emitters(config: RunConfig, language: Language, variation: Variation) -> list[Emitter]:
    """The emitters that `search.emitters` names, by name, those of random programs last; without any, what `search.parents`,
    `search.variation` and `search.immigrants` stand for.
    """
    search = config.search
    if not search.emitters:
        num_random = round(search.immigrants * search.batch_size)
        return [
            Emitter("variation", search.batch_size - num_random, variation, search.parents),
            Emitter("immigrants", num_random, None),
        ]
    emitters = []
    for name, emitter in sorted(search.emitters.items(), key=lambda pair: (pair[1].kind == "random", pair[0])):
        own = None
        if emitter.kind != "random":
            own = _variation(config, language, emitter.variation, f"search.emitters.{name}.variation")
        emitters.append(Emitter(name, emitter.weight, own, emitter.parents))
    return emitters


def _variation(config: RunConfig, language: Language, options: VariationOptions, source: str = "search.variation") -> Variation:
    initial = config.search.initial
    if initial.max_length > config.program.max_length:
        raise UserError(
            f"search.initial.max_length: {initial.max_length} is more than program.max_length {config.program.max_length}"
        )
    return make_variation(language, config.program.vocabulary, options, (initial.min_length, initial.max_length), source)
