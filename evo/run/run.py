"""A run: its parts built from a config, and the loop that consumes generations and writes them.

Owns the wiring between task, search, evaluator and run folder, the stops, and what a checkpoint holds. Knows nothing of
how progress is shown (`evo.cli`) or of formats (`evo.run.checkpoint`).
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from ribs.archives import ArchiveBase

from evo.config import RunConfig, dump_config, first_difference, load_config
from evo.errors import DeviceFailure, UserError
from evo.evaluate import Failure, Status
from evo.language.program import program_length
from evo.native.stack_ptx import HASH_VERSION
from evo.run.problem import Problem, Quarantine, choose_backend, load_problem, why_no_cuda
from evo.run.run_dir import RunDir
from evo.search.archive import Elites, elites_by_cell, make_archive, restore_elites
from evo.search.emitter import ProgramEmitter
from evo.search.map_elites import Counters, Generation, map_elites
from evo.search.memory import ResultMemory
from evo.search.vocabulary import VariationOptions, VocabularyOptions, make_variation
from evo.task import task_digest

NUM_TRIED = 4  # programs scored before a run begins
PACKAGES = ("numpy", "ribs", "pydantic", "matplotlib")


class Run:
    """A search in progress and the folder that it is written to."""

    def __init__(self, problem: Problem, centroids: np.ndarray | None = None):
        """An empty search; `centroids` `(cells, num_measures)` are those of a CVT that was made before.

        Raises:
            UserError: the archive or the vocabulary cannot be made from the config.
        """
        config = problem.config
        self.problem = problem
        self.run_dir: RunDir | None = None
        self.quarantine: dict[bytes, tuple[Status, str]] = {}
        self.counters = Counters()
        self.elapsed_s = 0.0
        self.archive = _make_archive(problem, centroids)
        self.memory = ResultMemory(config.search.memory_size, len(problem.task.measures))
        self.emitter = ProgramEmitter(
            self.archive,
            make_variation(problem.language, *_variation_options(config)),
            seed=config.seed,
            max_length=config.program.max_length,
            num_initial=config.search.initial.num_programs,
            batch_size=config.search.batch_size,
            num_immigrants=round(config.search.immigrants * config.search.batch_size),
        )

    @property
    def elites(self) -> Elites:
        """The archive's elites, sorted by cell."""
        return elites_by_cell(self.archive)

    @classmethod
    def start(cls, config: RunConfig, name: str) -> Run:
        """A new run in a folder of its own, with the checkpoint of its empty state.

        Raises:
            UserError: the config's task, or the folder, is wrong.
        """
        run = cls(load_problem(config, choose_backend(config)))
        run._try_task()
        run.run_dir = RunDir.create(Path(config.output.runs), name, config.seed, dump_config(config), environment(run.problem))
        run.save()
        return run

    @classmethod
    def resume(cls, path: Path, overrides: tuple[str, ...] = ()) -> tuple[Run, list[str]]:
        """The run in a folder, as its newest intact checkpoint left it, and lines about what its user should know: each damaged
        checkpoint, and programs that run on something else from now on.

        Raises:
            UserError: no run, no intact checkpoint, its config or task has changed, or the GPU that it ran on is gone.
        """
        run_dir = RunDir(path, writable=True)
        run, meta, damaged = cls._load(run_dir, overrides, search=True)
        notes = [f"{line}; going back to the checkpoint before" for line in damaged]
        was, now = _ran_on(meta), run.problem.runs_on
        run_dir.cut_metrics(meta["metrics_num_bytes"])
        if was != now:
            notes.append(
                f"programs ran on {was} and run on {now} from now on: approximate instructions may differ in their last bits"
            )
        return run, notes

    @classmethod
    def view(cls, path: Path, overrides: tuple[str, ...] = ()) -> Run:
        """As `resume`, only to look at: nothing is locked or written, also while the run goes on.

        Raises:
            UserError: as `resume`.
        """
        return cls._load(RunDir(path, writable=False), overrides, search=False)[0]

    @classmethod
    def _load(cls, run_dir: RunDir, overrides: tuple[str, ...], *, search: bool) -> tuple[Run, dict[str, Any], list[str]]:
        config = load_config(run_dir.path / "config.yaml", overrides)
        meta, arrays, damaged = run_dir.load_checkpoint()
        quarantine = _read_quarantine(run_dir, meta)
        problem = _load_same(run_dir.path, config, meta, quarantine, search)
        run = cls(problem, arrays.get("centroids"))
        run.run_dir = run_dir
        run.quarantine = quarantine
        restore_elites(run.archive, Elites(**_part(arrays, "elites.")))
        run.memory.restore(_part(arrays, "memory."))
        run.counters = Counters(**meta["counters"])
        run.emitter.generation = run.counters.generations
        run.elapsed_s = meta["elapsed_s"]
        return run, meta, damaged

    def execute(self, on_generation: Callable[[Generation, float], None], interrupted: Callable[[], bool]) -> str:
        """Runs until a stop is reached or `interrupted()`; returns which. All is saved when it returns.

        Args:
            on_generation: called after each generation with it and the seconds that the run has taken.
            interrupted: asked after each generation.

        Raises:
            DeviceFailure: the GPU failed. The last checkpoint stands, and the programs at fault are in quarantine.
        """
        elites = self.elites
        reason = self._stop_reached(float(elites.objective.max()) if len(elites) else float("-inf"))
        if reason:
            # Resumed at its end: whatever was still to be written after the last checkpoint is written now.
            self.run_dir.save_archive(_elite_arrays(elites))
            return reason
        start_s = time.monotonic() - self.elapsed_s
        saved_s = time.monotonic()
        save_s = 0.0
        generations = map_elites(
            self.archive,
            self.emitter,
            self.problem.evaluator,
            self.problem.language.lowering,
            self.memory,
            self.problem.ranges,
            self.counters,
        )
        for generation in self._without_failed(generations):
            self.elapsed_s = time.monotonic() - start_s
            self.run_dir.append_metrics(_metrics_row(generation, self.elapsed_s, save_s))
            on_generation(generation, self.elapsed_s)
            reason = self._stop_reached(generation.best_objective) or ("interrupted" if interrupted() else None)
            save_s = 0.0
            if reason or time.monotonic() - saved_s >= self.problem.config.output.checkpoint_seconds:
                saved_s = time.monotonic()
                self.save()
                save_s = time.monotonic() - saved_s
            if reason:
                break
        self.run_dir.save_archive(_elite_arrays(self.elites))
        return reason

    def _without_failed(self, generations: Iterator[Generation]) -> Iterator[Generation]:
        """The generations, with what failed in them in quarantine, also where the GPU failed: nobody tries it again."""
        while True:
            number = self.counters.generations
            try:
                generation = next(generations)
            except DeviceFailure as failure:
                self._put_in_quarantine(failure.failures, number)
                raise
            self._put_in_quarantine(generation.failures, number)
            yield generation

    def _put_in_quarantine(self, failures: Sequence[Failure], generation: int) -> None:
        """Notes programs that failed, born in a generation, each with what is needed to see it again."""
        if not failures:
            return
        language = self.problem.language
        hashes = language.lowering.analyze(np.stack([failure.words for failure in failures]))[0]
        for failure, row in zip(failures, hashes, strict=True):
            if row.tobytes() not in self.quarantine:
                self.quarantine[row.tobytes()] = (failure.status, failure.log)
                words = [f"{int(word):016x}" for word in failure.words[: program_length(failure.words)]]
                record = {"status": failure.status.name, "log": failure.log, "generation": generation, "words": words}
                self.run_dir.save_quarantine(row.tobytes().hex(), record)

    def save(self) -> None:
        """Writes a checkpoint of the whole state."""
        config = self.problem.config
        meta = {
            "evo_version": version("evo"),
            "hash_version": HASH_VERSION,
            "identity": config.identity(),
            "task_digest": self.problem.task_digest,
            "instruction_set_digest": self.problem.instruction_set_digest,
            "counters": asdict(self.counters),
            "elapsed_s": self.elapsed_s,
            "runs_on": self.problem.runs_on,
            "quarantine": {
                key.hex(): {"status": status.name, "log": log} for key, (status, log) in sorted(self.quarantine.items())
            },
        }
        arrays = {f"elites.{name}": array for name, array in _elite_arrays(self.elites).items()}
        arrays |= {f"memory.{name}": array for name, array in self.memory.state().items()}
        if config.search.archive.type == "CVTArchive":
            arrays["centroids"] = self.archive.centroids
        self.run_dir.save_checkpoint(self.counters.generations, meta, arrays)

    def _try_task(self) -> None:
        """Scores a few programs, so that a task that cannot do it is refused before there is a folder."""
        words = self.emitter.random_programs(NUM_TRIED)
        self.problem.evaluator.evaluate(words, self.problem.language.lowering.analyze(words)[1])

    def close(self) -> None:
        """Ends the evaluator and gives the folder back."""
        self.problem.close()
        self.run_dir.close()

    def _stop_reached(self, best_objective: float) -> str | None:
        stop = self.problem.config.stop
        if stop.generations is not None and self.counters.generations >= stop.generations:
            return f"stop.generations: {stop.generations}"
        if stop.evaluations is not None and self.counters.evaluations >= stop.evaluations:
            return f"stop.evaluations: {stop.evaluations}"
        if stop.seconds is not None and self.elapsed_s >= stop.seconds:
            return f"stop.seconds: {stop.seconds}"
        if stop.objective is not None and best_objective >= stop.objective:
            return f"stop.objective: {stop.objective}"
        return None


def _make_archive(problem: Problem, centroids: np.ndarray | None) -> ArchiveBase:
    config, measures = problem.config, problem.task.measures
    dims = config.search.archive.dims
    if dims is not None and len(dims) != len(measures):
        raise UserError(
            f"search.archive.dims: {dims} has {len(dims)} numbers, but the task has {len(measures)} measures: {', '.join(measures)}"
        )
    options = config.search.archive.model_dump(exclude={"type"}, exclude_none=True)
    if centroids is not None:
        options["centroids"] = centroids
    try:
        return make_archive(config.search.archive.type, config.program.max_length, list(measures.values()), options, config.seed)
    except (TypeError, ValueError, MemoryError) as error:
        raise UserError(f"search.archive: {type(error).__name__}: {error}") from error


def _elite_arrays(elites: Elites) -> dict[str, np.ndarray]:
    return {field.name: getattr(elites, field.name) for field in fields(elites)}


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _variation_options(config: RunConfig) -> tuple[VocabularyOptions, VariationOptions]:
    vocabulary, variation, initial = config.program.vocabulary, config.search.variation, config.search.initial
    if initial.max_length > config.program.max_length:
        raise UserError(
            f"search.initial.max_length: {initial.max_length} is more than program.max_length {config.program.max_length}"
        )
    return (
        VocabularyOptions(vocabulary.instructions, vocabulary.meta, vocabulary.groups, **vocabulary.constants.model_dump()),
        VariationOptions(
            operator_weights=variation.operators,
            rates=variation.rates,
            initial_min_length=initial.min_length,
            initial_max_length=initial.max_length,
        ),
    )


def environment(problem: Problem) -> dict[str, Any]:
    """What a run was made with: versions and machine."""
    return {
        "evo": version("evo"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        **problem.evaluator.environment(),
        "task_digest": problem.task_digest,
    }


def _load_same(path: Path, config: RunConfig, meta: dict[str, Any], quarantine: Quarantine, search: bool) -> Problem:
    """The problem of a run that goes on. Raises UserError where anything that decides the archive has changed."""
    if meta["hash_version"] != HASH_VERSION:
        raise UserError(
            f"{path}: written by evo {meta['evo_version']} with hash version {meta['hash_version']}, this one has {HASH_VERSION}"
        )
    change = first_difference(meta["identity"], config.identity())
    if change:
        raise UserError(f"{path}/config.yaml: the config has changed since the checkpoint: {change}")
    if not (Path(config.task) / "task.py").is_file():
        raise UserError(f"{config.task}: the run's task is not there any more; say where it is with --set task=FOLDER")
    if task_digest(Path(config.task)) != meta["task_digest"]:
        raise UserError(f"{config.task}: the task's sources have changed since the checkpoint; a run goes on with the same only")
    problem = load_problem(config, _same_backend(path, config, meta) if search else None, quarantine)
    if problem.instruction_set_digest != meta["instruction_set_digest"]:
        raise UserError(f"{config.program.instruction_set}: the instruction set has changed since the checkpoint")
    return problem


def _read_quarantine(run_dir: RunDir, meta: dict[str, Any]) -> dict[bytes, tuple[Status, str]]:
    """That of the checkpoint, and of the folder: it also knows programs that failed later, such as those that ended the run."""
    quarantine = {}
    for key, record in {**meta.get("quarantine", {}), **run_dir.quarantine()}.items():
        try:
            quarantine[bytes.fromhex(key)] = (Status[record["status"]], str(record["log"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{run_dir.path}/quarantine/{key}.json: no record of a failed program ({type(error).__name__}: {error}); delete it, "
                "and the program is tried again"
            ) from error
    return quarantine


def _ran_on(meta: dict[str, Any]) -> str:
    return meta.get("runs_on", "CPU")  # before there was a choice it was the CPU


def _same_backend(path: Path, config: RunConfig, meta: dict[str, Any]) -> str:
    """The backend that a run goes on with: the one that it had, unless the config names one."""
    if config.evaluation.backend != "auto":
        return config.evaluation.backend
    was = "cpu" if _ran_on(meta) == "CPU" else "cuda"
    if was == "cuda" and (reason := why_no_cuda()):
        raise UserError(
            f"{path}: this run's programs ran on {_ran_on(meta)}, which cannot be used here: {reason}; "
            "to go on with the CPU, whose approximate instructions differ in their last bits: --set evaluation.backend=cpu"
        )
    return was


def _metrics_row(generation: Generation, elapsed_s: float, save_s: float) -> dict[str, Any]:
    best = generation.best_objective
    return {
        **asdict(generation.counters),
        "elites": generation.num_elites,
        "inserted": generation.num_inserted,
        "coverage": generation.coverage,
        "qd_score": generation.qd_score,
        "best_objective": best if np.isfinite(best) else None,
        "elapsed_s": round(elapsed_s, 6),
        "times_s": {name: round(value, 6) for name, value in {**generation.times_s, "previous_save": save_s}.items()},
    }
