"""A search in progress, made from a config or from its saved state: its parts and its stops.

Owns the wiring of archive, emitter, memory and evaluator. Knows nothing of the folder that a run is written to (`evo.run.run`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.about import VERSION
from evo.errors import FailureKind, UserError, did_you_mean
from evo.evaluate import Evaluator, Failure
from evo.evaluate.backends import choose_backend
from evo.language.batch import Batch
from evo.language.program import program_length
from evo.native.stack_ptx import HASH_VERSION
from evo.native.vary import Variation
from evo.run.initial_programs import read_initial, with_digest
from evo.run.learning import make_prescreen
from evo.run.loaded_task import Problem
from evo.run.saved_search import SavedSearch, make_archive_of, row_threads_of, variation_of
from evo.run.task_identity import declarations
from evo.run.tidying import tidied
from evo.search.archives.elites import Elites
from evo.search.emitter import EMITTERS, RANDOM, Breed, Combiner, Emitter, Parents, ProgramEmitter
from evo.search.lineage import Lineage
from evo.search.lineage_records import Records, joined
from evo.search.map_elites import Beginning, Generation, MapElites, Step, Tuning, Watch
from evo.search.memory import HashMemory
from evo.search.restarts import Restarts
from evo.search.state import Arrays, Counters, SearchState, with_prefix
from evo.tasks.answers import error_place

if TYPE_CHECKING:
    from evo.evaluate.calibration import Calibration
    from evo.search.archives.base import ProgramArchive

NUM_TRIED = 4  # programs that are scored before a search begins
NUM_DRAWN, NUM_TYPICAL = 1024, 128  # random programs, and the longest of them, to measure costs with
PICTURE_TRIED = 8  # side in pixels of the picture that is drawn then
PICTURE_PLOTS = {"contact_sheet", "best", "animation", "gallery", "poster"}
PLOTS_WITH_PICTURES = PICTURE_PLOTS | {"page"}  # if the task draws any


OnStep: TypeAlias = Callable[[Step, float], Any]
Interrupted: TypeAlias = Callable[[Step], bool]


@dataclass(frozen=True)
class Journal:
    """Takes records of a search as it goes on.

    append_metrics: takes a row of metrics.jsonl. save_quarantine: takes the hash of a failed program and facts about it, of which
    the first stay. save: called after each generation, with whether it is the last; gives the seconds that this took.
    """

    append_metrics: Callable[[dict[str, Any]], Any]
    save_quarantine: Callable[[str, dict[str, Any]], Any]
    save: Callable[[bool], float] = lambda _: 0.0


class Search(SavedSearch):
    """A search in progress.

    Attributes:
        emitter, memory, lineage: its parts.
        quarantine: canonical hash (16 bytes) -> kind and log of each program that could not be compiled or run.
        stop_reason: the stop that was reached, or None.
        preparation_s: seconds that the initial programs took, before the search, whose own seconds are `elapsed_s`.
    """

    def __init__(self, problem: Problem, saved: SavedSearch | None = None, records: Records | None = None):
        """An empty or a resumed search. One that was stopped inside generation 0 begins anew, unless it is finished.

        Args:
            records: those of the saved search's `lineage`; None: elites are of unknown descent.

        Raises:
            UserError: the archive or the vocabulary cannot be made from the config, its initial programs are wrong, or the saved
                search does not fit.
        """
        arrays = saved.arrays if saved else {}
        start_s = time.monotonic()
        given_programs = arrays.get("initial.words") if saved else read_initial(problem)  # until generation 0 is done
        self.preparation_s = time.monotonic() - start_s
        self._given_programs = np.zeros((0, 1), np.uint64) if given_programs is None else given_programs
        self.problem = problem = problem if saved else with_digest(problem, self._given_programs)
        archive_arrays = saved.part("archive.") if saved else {}
        self.elapsed_s = saved.elapsed_s if saved else 0.0
        if saved and not (saved.counters.generations or saved.is_finished):
            saved, arrays = None, {}
        self.counters = replace(saved.counters) if saved else Counters()
        self.quarantine: dict[bytes, tuple[FailureKind, str]] = dict(problem.quarantine)
        self.stop_reason: str | None = None
        self._tidied: Elites | None = None
        self._row_threads = row_threads_of(problem)
        config = problem.config
        self.archive = saved.archive if saved else make_archive_of(problem, archive_arrays)
        self.layout = self.archive.layout
        self._restarts = self._make_restarts(saved)
        self.memory = HashMemory(config.search.memory_size)
        self.lineage = Lineage(self.archive.cells, config.output.lineage_megabytes << 20)
        if saved:
            self.memory.restore(saved.part("memory."))
            self.lineage.restore(self._restarts.population.elites(), arrays, records or joined([]))
        variation = variation_of(config, problem.language, config.search.variation)
        self.emitter = ProgramEmitter(
            self._restarts,
            variation,
            seed=config.seed,
            max_length=config.program.max_length,
            num_initial=config.search.initial.num_programs,
            batch_size=config.search.batch_size,
            emitters=_emitters(problem, variation),
            given_programs=self._given_programs,
            generation=self.counters.generations,
            row_threads=self._row_threads,
            success=arrays.get("emitters.success"),
        )
        self._saved_prescreen = saved.part("prescreen.") if saved else {}

    def _make_restarts(self, saved: SavedSearch | None) -> Restarts:
        def make() -> ProgramArchive:
            return make_archive_of(self.problem, self.archive.layout.arrays())

        config = self.problem.config.search.starts
        restarts = Restarts(self.archive, make, config.count, config.generations)
        if saved and (elites := saved.part("population.")):
            restarts.population = make()
            restarts.population.restore(Elites(**elites))
        return restarts

    @cached_property
    def state(self) -> SearchState:
        """State that changes from generation to generation."""
        prescreen = make_prescreen(self.problem, self._row_threads, self._saved_prescreen)
        return SearchState(self.archive, self._restarts, self.emitter, self.memory, self.lineage, self.counters, prescreen)

    def elites(self) -> Elites:
        """As of `SavedSearch`."""
        return self.archived() if self._tidied is None else self._tidied

    def archived(self) -> Elites:
        """As of `SavedSearch`."""
        return self.archive.elites()

    def _numbers_of(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.lineage.numbers(cells)

    def tidy(self, until_s: float | None = None) -> None:
        """Makes `elites` return tidy ones until the search goes on. until_s: time of `time.monotonic` by which to finish."""
        self._tidied = tidied(self.problem, self.archived(), self.archive.index_of, self.counters, until_s)

    def generations(
        self,
        on_step: OnStep = lambda *_: None,
        interrupted: Interrupted = lambda _: False,
        journal: Journal | None = None,
    ) -> Iterator[Generation]:
        """Yields after each generation until a stop is reached or `interrupted`; `stop_reason` then says which.

        A search stopped inside generation 0 begins anew when it goes on.

        Args:
            on_step: called with each step and the seconds that the search has taken: a part of generation 0, or a generation once
                it is saved.
            interrupted: asked at each step, before it is saved.
            journal: records generations, and the end with tidy elites (`tidy`); None: nothing is recorded or tidied.

        Raises:
            DeviceFailure: the device failed.
        """
        self._tidied = None
        start_s, save_s = time.monotonic() - self.elapsed_s, 0.0

        def watch(beginning: Beginning) -> bool:
            self.elapsed_s = time.monotonic() - start_s
            on_step(beginning, self.elapsed_s)
            stop_s = self.problem.config.stop.seconds
            return interrupted(beginning) or (stop_s is not None and self.elapsed_s >= stop_s)

        step = self.loop(self.problem.evaluator, watch).step
        self.stop_reason = self.stop_reached(self.archive.best_objective)
        while not self.stop_reason:
            generation = step()
            self._put_in_quarantine(generation.failures, max(0, self.counters.generations - 1), journal)
            self.elapsed_s = time.monotonic() - start_s
            if journal:
                journal.append_metrics(self.metrics_row(generation, save_s))
            is_interrupted = interrupted(generation) or not generation.counters.generations
            self.stop_reason = self.stop_reached(generation.best_objective) or ("interrupted" if is_interrupted else None)
            if journal:
                if self.stop_reason:
                    self.tidy()
                save_s = journal.save(bool(self.stop_reason))
            on_step(generation, self.elapsed_s)  # saved before: the watcher may be gone
            yield generation
        if journal and self._tidied is None:
            self.tidy()

    def loop(self, evaluator: Evaluator | None = None, watch: Watch | None = None) -> MapElites:
        """The loop that breeds generations. evaluator, watch: as of `MapElites`."""
        problem, options = self.problem, self.problem.config.search.tuning
        tuning = None
        if evaluator and problem.tuner and options.share:
            tuning = Tuning(problem.tuner, options.share, options.finished if problem.tuner.finishes else 0)
        keeps_lowered = bool((evaluator and evaluator.uses_lowered) or self.state.prescreen)
        return MapElites(self.state, evaluator, problem.language.lowering, tuning, keeps_lowered, watch)

    def insert(self, words: NDArray[np.uint64], generation: int) -> None:
        """Evaluates programs, `(num_programs, max_length)`, such as another search's elites, and adds them to the archive as if
        they were random. The search goes on with this generation.
        """
        batch = Batch.analyze(self.problem.language.lowering, words)
        evaluation = self.problem.evaluator.evaluate(batch)
        count = len(batch)
        self.memory.add(batch.hashes[self.memory.is_new(batch.hashes)])
        fields = {
            "parents": np.full((count, 2), -1, np.int32),
            "operator": np.full(count, RANDOM, np.int32),
            "generation": np.full(count, generation),
            "slot": np.arange(count, dtype=np.int32),
            "hash": batch.hashes,
            "num_instructions": batch.num_instructions,
        }
        is_elite = self.archive.add(batch.words, evaluation.objective, evaluation.measures, **fields)["elite"]
        in_both = np.ones(int(is_elite.sum()), bool)
        self.lineage.update(
            self.archive.index_of(evaluation.measures[is_elite]),
            batch.words[is_elite],
            evaluation.objective[is_elite],
            {name: values[is_elite] for name, values in fields.items()},
            in_both,
            in_both,
        )
        self.counters.evaluations += count
        self.emitter.generation = generation

    def typical_programs(self) -> Batch:
        """Programs about as long as evolved ones: the longest of random ones. The search does not notice that they are drawn."""
        drawn = Batch.analyze(self.problem.language.lowering, self.random_programs(NUM_DRAWN))
        longest = np.argsort(-drawn.num_instructions, kind="stable")[:NUM_TYPICAL]
        return drawn[longest]

    def choose_backend(self, warn: Callable[[str], None] = lambda _: None) -> Calibration | None:
        """Chooses the backend, before the evaluator is used. Returns the programs' costs, if those decided.

        Args:
            warn: called with a line if a backend could be used but fails, or is slower than it could be.

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
        words = self.random_programs(NUM_TRIED)
        self.problem.evaluator.evaluate(Batch.analyze(self.problem.language.lowering, words))
        if self.problem.task.has_pictures() and PLOTS_WITH_PICTURES & set(self.problem.config.output.plots):
            self.problem.draw(words[:1], PICTURE_TRIED, 0.0)

    def saved(self) -> tuple[dict[str, Any], Arrays]:
        """Everything needed to resume the search, except the records of `lineage`: plain JSON values, and arrays that are copies.
        `SavedSearch` takes both.
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
        is_to_come = len(self._given_programs) and not self.counters.generations
        given_arrays = {"initial.words": self._given_programs} if is_to_come else {}
        tidy = {} if self._tidied is None else with_prefix("tidy.", self._tidied.arrays())
        return meta, {**given_arrays, **tidy, **self.state.arrays()}

    def metrics_row(self, generation: Generation, save_s: float) -> dict[str, Any]:
        """A line of metrics.jsonl. save_s: seconds that the search waited for the checkpoint before."""
        best, stats = generation.best_objective, generation.stats
        row = {
            **asdict(generation.counters),
            "elites": generation.num_elites,
            "inserted": generation.num_inserted,
            "lineages": generation.num_lineages,
            "largest_lineage": generation.largest_lineage,
            "coverage": generation.coverage,
            "qd_score": generation.qd_score,
            "best_objective": best if np.isfinite(best) else None,
            "elapsed_s": round(self.elapsed_s, 6),
            **({"lanes": stats.lanes} if stats.lanes else {}),
            **({"farm": stats.farm} if stats.farm else {}),
            "times_s": {name: round(value, 6) for name, value in {**stats.times_s, "previous_save": save_s}.items()},
        }
        if self.problem.config.search.emitters:
            row["emitters"] = {name: asdict(success) for name, success in generation.success.items()}
        return row

    def _put_in_quarantine(self, failures: Sequence[Failure], generation: int, journal: Journal | None) -> None:
        for failure in failures:
            self.quarantine.setdefault(failure.hash, (failure.kind, failure.log))
            if journal:
                words = [f"{int(word):016x}" for word in failure.words[: program_length(failure.words)]]
                record = {"kind": failure.kind, "log": failure.log, "generation": generation, "words": words}
                journal.save_quarantine(failure.hash.hex(), record)


def _emitters(problem: Problem, variation: Variation) -> list[Emitter]:
    """The emitters of `search.emitters` by name, those of random programs last; without any, the emitters that `search.parents`,
    `search.variation`, `search.combination` and `search.immigrants` stand for.
    """
    search = problem.config.search
    if not search.emitters:
        num_random, num_combined = (round(share * search.batch_size) for share in (search.immigrants, search.combination))
        combiner = problem.combiner if num_combined else None
        if not combiner or not combiner.kinds:  # without addition, say, nothing can be joined
            num_combined = 0
        return [
            Emitter("variation", search.batch_size - num_random - num_combined, variation, search.parents),
            Emitter("combination", num_combined, combiner, search.parents),
            Emitter("immigrants", num_random, None),
        ]
    emitters = []
    for name, emitter in sorted(search.emitters.items(), key=lambda pair: (pair[1].kind == "random", pair[0])):
        breed = EMITTERS.get(emitter.kind)
        source: Variation | Combiner | Breed | None = breed and partial(_breed, breed, f"search.emitters.{name}")
        if emitter.kind == "variation":
            source = variation_of(problem.config, problem.language, emitter.variation, f"search.emitters.{name}.variation")
        elif emitter.kind == "combination":
            source = problem.combiner
            if not source.kinds:
                raise UserError("needs add, and mul or div, among program.vocabulary.instructions", f"search.emitters.{name}")
        elif source is None and emitter.kind != "random":
            known = ("variation", "combination", "random", *EMITTERS)
            raise UserError(f"unknown '{emitter.kind}', {did_you_mean(emitter.kind, known)}", f"search.emitters.{name}.kind")
        emitters.append(Emitter(name, emitter.weight, source, emitter.parents))
    return emitters


def _breed(breed: Breed, key: str, parents: Parents) -> NDArray[np.uint64]:
    """Calls an emitter of the user's. Raises UserError, with its line, if that raises."""
    try:
        return breed(parents)
    except Exception as error:
        inner = error.__traceback__ and error.__traceback__.tb_next  # of the emitter's own code, unless that is native
        line = inner and error_place(error, Path(inner.tb_frame.f_code.co_filename))
        raise UserError(f"raised {type(error).__name__}: {error}", key, *([line] if line else ())) from error
