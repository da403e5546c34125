"""A run: a search and the folder that it is written to.

Owns what is written when. `evo.run.restore` decides whether a run may resume. Knows nothing of how progress is shown
(`evo.cli`) or of formats (`evo.run.checkpoint`). Slightly long: how a run begins, goes on and is saved is one sequence.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evo.about import VERSION
from evo.config import RunConfig, dump_config, with_paths_in
from evo.errors import UserError, renamed
from evo.evaluate import TaskSource
from evo.evaluate.backends import BACKENDS, Backend
from evo.language.formula import scaling_notes
from evo.run.loaded_task import Problem, load_problem, located_options
from evo.run.new_run import new_run_dir, run_paths, take_name
from evo.run.restore import MakeTask, load, loader, reader, refuse, restore, same_backend
from evo.run.run_dir import RunDir
from evo.run.saved_search import SavedSearch
from evo.run.search import Interrupted, Journal, OnStep, Search
from evo.run.task_copy import hold_task
from evo.search.lineage_records import Records, joined

if TYPE_CHECKING:
    from evo.evaluate.calibration import Calibration

PACKAGES = ("numpy", "ribs", "pydantic", "matplotlib")


class Run:
    """A search and the folder that it is written to, to look at.

    Attributes:
        backend: that the elites' scores come from.
    """

    search: SavedSearch

    def __init__(self, search: SavedSearch, run_dir: RunDir, backend: Backend, meta: dict[str, Any] | None = None):
        self.search = search
        self.run_dir = run_dir
        self.backend = backend
        self._meta = meta or {}  # of the checkpoint

    @classmethod
    def view(cls, path: Path, overrides: tuple[str, ...] = (), *, with_task: bool = True) -> tuple[Run, list[str]]:
        """As `LiveRun.resume`, only to look at: nothing is locked or written, even while the run goes on. This machine evaluates.

        The lines for the user also tell what would keep the run from going on, such as a changed task.

        Args:
            with_task: the task's code is needed, if there is any. False: none of it runs, and a changed task is not noticed.

        Raises:
            UserError: no run, no intact checkpoint, or its elites cannot be read with this config and task.
        """
        run_dir = RunDir(path.absolute(), writable=False)
        meta, arrays, damaged = load(run_dir)
        config = run_dir.config(overrides)
        notes = [f"{line}; this is the checkpoint before" for line in damaged]
        search = restore(run_dir, config, meta, arrays, None, notes.append, reader(path, with_task, notes.append))
        search.problem = search.problem.here()
        return cls(search, run_dir, BACKENDS[meta["backend"]], meta), notes

    def records(self) -> Records:
        """The programs that became elites (`evo.search.lineage`). Raises UserError: the lineage log is damaged."""
        return self.run_dir.records(self._meta)

    def close(self) -> None:
        """Ends the evaluator and unlocks the folder."""
        self.search.problem.close()
        self.run_dir.close()


class LiveRun(Run):
    """A search in progress and the folder that it is written to.

    Attributes:
        calibration: what programs cost, if that decided where they run; None for a run that goes on.
    """

    search: Search

    def __init__(self, search: Search, run_dir: RunDir, original: Problem | None = None, calibration: Calibration | None = None):
        super().__init__(search, run_dir, search.problem.backend)
        self.calibration = calibration
        self._original = original or search.problem  # whose files messages name

    @classmethod
    def start(cls, config: RunConfig, name: str, warn: Callable[[str], None] = lambda _: None) -> LiveRun:
        """A new run in a new folder, with the checkpoint of its empty state.

        Args:
            warn: called with a line that the user should read, if there is one.

        Raises:
            UserError: the config's task, or the folder, is wrong.
        """
        runs = Path(config.output.runs).absolute()  # before the task's code runs, which may change the working folder
        problem = load_problem(config)
        with new_run_dir(runs / name) as run_dir:
            held = hold_task(problem, run_dir.path, warn)
            run_dir.save_config(dump_config(with_paths_in(held.config, run_dir.path)))
            take_name(run_dir, run_paths(runs, name, config.seed))
            return cls._begin(_held_in(problem, run_dir), run_dir, problem, warn)

    @classmethod
    def _begin(cls, problem: Problem, run_dir: RunDir, original: Problem, warn: Callable[[str], None]) -> LiveRun:
        """A run of a folder that has all but a first checkpoint: it gets that."""
        with _naming_originals(problem, original):
            search = Search(problem)
            calibration = search.choose_backend(warn)
            search.try_task()
        for line in (*original.task.notes, *scaling_notes(problem.task.input_scaling())):
            warn(line)
        facts = environment(search.problem)
        if calibration:
            facts["calibration"] = calibration.record()
        run_dir.save_environment(facts)
        run_dir.save_config(dump_config(with_paths_in(search.problem.config, run_dir.path)))
        run = cls(search, run_dir, original, calibration)
        run._save()
        run_dir.wait_for_checkpoint()
        return run

    @classmethod
    def resume(cls, path: Path, overrides: tuple[str, ...] = (), make_task: MakeTask | None = None) -> tuple[LiveRun, list[str]]:
        """The run in a folder, as its newest intact checkpoint left it, and lines that its user should read: each damaged
        checkpoint, metrics that are missing, and a change of the device. The overrides become part of the run's config.

        Args:
            make_task: makes the task again, of a run that no folder holds the task of.

        A run that was killed before its first checkpoint begins.

        Raises:
            UserError: no run, no intact checkpoint, its config or task has changed, or the GPU that it ran on is gone.
        """
        run_dir = RunDir(path.absolute(), writable=True)
        try:
            return cls._resume(path, run_dir, overrides, make_task)
        except BaseException:
            run_dir.close()  # a notebook lives on
            raise

    @classmethod
    def _resume(
        cls, path: Path, run_dir: RunDir, overrides: tuple[str, ...], make_task: MakeTask | None
    ) -> tuple[LiveRun, list[str]]:
        config = run_dir.config(overrides)
        if not run_dir.has_begun():
            notes: list[str] = []
            problem = loader(path, make_task)(config, {}, None, {})
            return cls._begin(problem, run_dir, problem, notes.append), notes
        meta, arrays, damaged = load(run_dir)
        notes = [f"{line}; going back to the checkpoint before" for line in damaged]
        try:
            records = run_dir.records(meta)
        except UserError as error:
            records = joined([])
            notes.append(f"{error}; lines of descent begin anew")
        backend = same_backend(path, config, meta)
        saved = restore(run_dir, config, meta, arrays, backend, refuse, loader(path, make_task))
        search = Search(saved.problem, saved, records)
        was, now = meta["device"], search.problem.evaluator.device
        if was != now:
            notes.append(
                f"programs ran on {was} and run on {now} from now on: approximate instructions may differ in their last bits"
            )
        generations = search.counters.generations
        if saved.counters.evaluations and not search.counters.evaluations:
            notes.append(f"{path}: was stopped inside generation 0, which begins anew")
        num_bytes = meta["metrics_num_bytes"] if search.counters.evaluations else 0
        if missing := run_dir.cut_metrics(num_bytes, generations):
            notes.append(f"{path}/metrics.jsonl: {missing} of {generations} generations are missing; curves leave them out")
        run_dir.cut_records(meta)
        if overrides:
            run_dir.save_config(dump_config(with_paths_in(config, run_dir.path)))
        return cls(search, run_dir), notes

    def execute(self, on_step: OnStep = lambda *_: None, interrupted: Interrupted = lambda _: False) -> str:
        """Runs until a stop is reached or `interrupted`; returns which. Everything is saved when it returns.

        Args:
            on_step, interrupted: as of `Search.generations`.

        Raises:
            DeviceFailure: the GPU failed. The last checkpoint is kept.
            UserError: the task failed, or something could not be written.
        """
        run_dir, search = self.run_dir, self.search
        self._saved_s = time.monotonic()
        journal = Journal(run_dir.append_metrics, run_dir.save_quarantine, self._save_if_due)
        with _naming_originals(search.problem, self._original):
            try:
                for _ in search.generations(on_step, interrupted, journal):
                    pass
            finally:
                run_dir.wait_for_checkpoint()
            # A run that is resumed at its end writes what was still to be written after the last checkpoint.
            run_dir.save_archive(search.elites().arrays())
        return str(search.stop_reason)

    def _save_if_due(self, is_last: bool) -> float:
        """Seconds that the search waits for a checkpoint, if it is time for one."""
        seconds = self.search.problem.config.output.checkpoint_seconds
        is_saving = self.run_dir.is_saving()
        start_s = time.monotonic()
        # A checkpoint of a large archive may take longer than the time between two.
        if not is_last and (start_s - self._saved_s < seconds or (is_saving and seconds)):
            return 0.0
        self._saved_s = start_s
        self._save()
        waited_s = time.monotonic() - start_s
        if is_last:
            self.run_dir.wait_for_checkpoint()
        return waited_s

    def records(self) -> Records:
        """Implement `Run`."""
        return self.search.lineage.records()

    def _save(self) -> None:
        """Starts to write a checkpoint of copies, so the search can go on."""
        records, is_all = self.search.lineage.take()
        _save_checkpoint(self.run_dir, self.search, records, is_all=is_all)


def save_search(
    search: Search,
    folder: Path,
    facts: dict[str, Any],
    metrics: Iterable[dict[str, Any]],
    quarantine: Mapping[str, dict[str, Any]],
    warn: Callable[[str], None],
) -> None:
    """Writes a search that has no folder as a run, in a new one, with a copy of its task if that is from a folder.

    Args:
        facts: of `environment`. metrics: rows of metrics.jsonl. quarantine: facts of failed programs, by hash.
        warn: called with a line if the task stays where it is.

    Raises:
        UserError: the folder exists or cannot be written, or the task's files have changed since they were loaded.
    """
    with new_run_dir(folder.parent) as run_dir:
        config = hold_task(search.problem, run_dir.path, warn).config
        run_dir.save_environment(facts)
        run_dir.save_config(dump_config(with_paths_in(config, run_dir.path)))
        for row in metrics:
            run_dir.append_metrics(row)
        for key, record in quarantine.items():
            run_dir.save_quarantine(key, record)
        _save_checkpoint(run_dir, search, search.lineage.records(), is_all=True)
        run_dir.save_archive(search.elites().arrays())
        take_name(run_dir, [folder])
        run_dir.close()


def _save_checkpoint(run_dir: RunDir, search: Search, records: Records, *, is_all: bool) -> None:
    is_kept = bool(search.problem.config.output.lineage_megabytes)
    meta, arrays = search.saved()
    run_dir.save_checkpoint(search.counters.generations, meta, arrays, records if is_kept else None, is_all=is_all)


def environment(problem: Problem) -> dict[str, Any]:
    """Versions and machine of a run."""
    return {
        "evo": VERSION,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "backend": problem.backend.name,
        **problem.evaluator.environment(),
        "task_digest": problem.task_digest,
    }


def _held_in(problem: Problem, run_dir: RunDir) -> Problem:
    """The problem with the task that a new run's folder holds."""
    config = run_dir.config()
    return replace(problem, config=config, source=TaskSource(Path(config.task), located_options(config)))


def _naming_originals(held: Problem, original: Problem) -> AbstractContextManager[None]:
    """Has errors name the user's files in place of the run's copies, in the process that began the run."""
    copies = {copy: source for source, copy in held.config.task_files.items()}
    return renamed({held.config.task: original.config.task, **copies})
