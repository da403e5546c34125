"""A run: a search and the folder that it is written to.

Owns what is written when, and whether a folder's run may go on here. Knows nothing of how progress is shown (`evo.cli`) or of
formats (`evo.run.checkpoint`).
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evo.config import RunConfig, dump_config, first_difference, load_config
from evo.errors import DeviceFailure, FailureKind, UserError
from evo.evaluate import Failure
from evo.evaluate.backends import AUTO, BACKENDS, Backend, Quarantine
from evo.language.program import program_length
from evo.native.stack_ptx import HASH_VERSION
from evo.run.problem import Problem, load_problem
from evo.run.run_dir import RunDir
from evo.run.search import Arrays, Search, elite_arrays
from evo.search.map_elites import Generation

if TYPE_CHECKING:
    from evo.evaluate.calibration import Calibration

PACKAGES = ("numpy", "ribs", "pydantic", "matplotlib")


class Run:
    """A search in progress and the folder that it is written to.

    Attributes:
        backend: that the elites' scores come from.
        calibration: what programs cost, if that decided where they run; None for a run that goes on.
    """

    def __init__(self, search: Search, run_dir: RunDir, backend: Backend | None = None, calibration: Calibration | None = None):
        self.search = search
        self.run_dir = run_dir
        self.backend = backend or search.problem.backend
        self.calibration = calibration

    @classmethod
    def start(cls, config: RunConfig, name: str, warn: Callable[[str], None] = lambda _: None) -> Run:
        """A new run in a new folder, with the checkpoint of its empty state.

        Args:
            warn: called with a line that the user should read, if there is one.

        Raises:
            UserError: the config's task, or the folder, is wrong.
        """
        runs = Path(config.output.runs).absolute()  # before the task's code runs, which may change the working folder
        search = Search(load_problem(config))
        calibration = search.choose_backend(warn)
        search.try_task()
        facts = environment(search.problem)
        if calibration:
            facts["calibration"] = calibration.record()
        run_dir = RunDir.create(runs, name, config.seed, dump_config(config), facts)
        run = cls(search, run_dir, calibration=calibration)
        run._save()
        run_dir.wait_for_checkpoint()
        return run

    @classmethod
    def resume(cls, path: Path, overrides: tuple[str, ...] = ()) -> tuple[Run, list[str]]:
        """The run in a folder, as its newest intact checkpoint left it, and lines that its user should read: each damaged
        checkpoint, metrics that are missing, and a change of the device. The overrides become part of the run's config.

        Raises:
            UserError: no run, no intact checkpoint, its config or task has changed, or the GPU that it ran on is gone.
        """
        run_dir = RunDir(path.absolute(), writable=True)
        meta, arrays, damaged = run_dir.load_checkpoint()
        config = load_config(run_dir.path / "config.yaml", overrides)
        search = _restore(run_dir, config, meta, arrays, _same_backend(path, config, meta), _refuse)
        notes = [f"{line}; going back to the checkpoint before" for line in damaged]
        was, now = meta["device"], search.problem.evaluator.device
        if was != now:
            notes.append(
                f"programs ran on {was} and run on {now} from now on: approximate instructions may differ in their last bits"
            )
        generations = search.counters.generations
        if missing := run_dir.cut_metrics(meta["metrics_num_bytes"], generations):
            notes.append(f"{path}/metrics.jsonl: {missing} of {generations} generations are missing; curves leave them out")
        if overrides:
            run_dir.save_config(dump_config(config))
        return cls(search, run_dir), notes

    @classmethod
    def view(cls, path: Path, overrides: tuple[str, ...] = ()) -> tuple[Run, list[str]]:
        """As `resume`, only to look at: nothing is locked or written, even while the run goes on, and this machine evaluates.

        The lines for the user also tell what would keep the run from going on, such as a changed task.

        Raises:
            UserError: no run, no intact checkpoint, or its elites cannot be read with this config and task.
        """
        run_dir = RunDir(path.absolute(), writable=False)
        meta, arrays, damaged = run_dir.load_checkpoint()
        config = load_config(run_dir.path / "config.yaml", overrides)
        notes = [f"{line}; this is the checkpoint before" for line in damaged]
        search = _restore(run_dir, config, meta, arrays, None, notes.append)
        search.problem = search.problem.here()
        return cls(search, run_dir, BACKENDS[meta["backend"]]), notes

    def execute(self, on_generation: Callable[[Generation, float], None], interrupted: Callable[[], bool]) -> str:
        """Runs until a stop is reached or `interrupted()`; returns which. Everything is saved when it returns.

        Args:
            on_generation: called after each generation with it and the seconds that the run has taken.
            interrupted: asked after each generation.

        Raises:
            DeviceFailure: the GPU failed. The last checkpoint stands, and the programs at fault are in quarantine.
            UserError: the task failed, or something could not be written.
        """
        search = self.search
        checkpoint_seconds = search.problem.config.output.checkpoint_seconds
        reason = None
        saved_s = time.monotonic()
        save_s = 0.0
        try:
            for generation in search.generations():
                self._save_failures(generation.failures, search.counters.generations - 1)
                self.run_dir.append_metrics(_metrics_row(generation, search.elapsed_s, save_s))
                reason = search.stop_reason or ("interrupted" if interrupted() else None)
                save_s = 0.0
                is_saving = self.run_dir.is_saving()
                is_due = time.monotonic() - saved_s >= checkpoint_seconds
                # A checkpoint of a large archive may take longer than the time between two.
                if reason or (is_due and not (is_saving and checkpoint_seconds)):
                    saved_s = time.monotonic()
                    self._save()
                    save_s = time.monotonic() - saved_s
                if reason:
                    self.run_dir.wait_for_checkpoint()
                on_generation(generation, search.elapsed_s)  # saved before: whoever watches may be gone
                if reason:
                    break
        except DeviceFailure as failure:
            self._save_failures(failure.failures, search.counters.generations)
            raise
        finally:
            self.run_dir.wait_for_checkpoint()
        # A run that is resumed at its end writes what was still to be written after the last checkpoint.
        self.run_dir.save_archive(elite_arrays(search.elites()))
        return reason or str(search.stop_reason)

    def _save(self) -> None:
        """Starts to write a checkpoint. `state` gives copies, so the search goes on meanwhile."""
        self.run_dir.save_checkpoint(self.search.counters.generations, *self.search.state())

    def close(self) -> None:
        """Ends the evaluator and unlocks the folder."""
        self.search.problem.close()
        self.run_dir.close()

    def _save_failures(self, failures: Iterable[Failure], generation: int) -> None:
        """Writes what it takes to see programs fail again that were born in a generation."""
        for failure in failures:
            words = [f"{int(word):016x}" for word in failure.words[: program_length(failure.words)]]
            record = {"kind": failure.kind, "log": failure.log, "generation": generation, "words": words}
            self.run_dir.save_quarantine(failure.hash.hex(), record)


def environment(problem: Problem) -> dict[str, Any]:
    """What a run was made with: versions and machine."""
    return {
        "evo": version("evo"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "backend": problem.backend.name,
        **problem.evaluator.environment(),
        "task_digest": problem.task_digest,
    }


def _refuse(message: str) -> None:
    raise UserError(message)


def _restore(
    run_dir: RunDir,
    config: RunConfig,
    meta: dict[str, Any],
    arrays: Arrays,
    backend: Backend | None,
    differs: Callable[[str], None],
) -> Search:
    """The search of a checkpoint.

    Args:
        differs: called with a line for whatever has changed that decides how the run goes on.

    Raises:
        UserError: something has changed without which the elites cannot be read.
    """
    path = run_dir.path
    if meta["hash_version"] != HASH_VERSION:
        differs(
            f"{path}: written by evo {meta['evo_version']} with hash version {meta['hash_version']}, this one has {HASH_VERSION}"
        )
    was, now = meta["identity"], config.identity()
    if change := first_difference(_shape(was), _shape(now)):
        raise UserError(f"{path}/config.yaml: the config has changed since the checkpoint: {change}")
    if change := first_difference(was, now):
        differs(f"{path}/config.yaml: the config has changed since the checkpoint: {change}")
    if not (Path(config.task) / "task.py").is_file():
        raise UserError(f"{config.task}: the run's task is not there any more; say where it is with --set task=FOLDER")
    problem = load_problem(config, backend, _read_quarantine(run_dir, meta))
    if problem.task_digest != meta["task_digest"]:
        differs(f"{config.task}: the task's files have changed since the checkpoint; a run goes on with the same only")
    if problem.instruction_set_digest != meta["instruction_set_digest"]:
        raise UserError(f"{config.program.instruction_set}: the instruction set has changed since the checkpoint")
    num_measures = arrays["elites.measures"].shape[1]
    if num_measures != len(problem.task.measures):
        raise UserError(f"{config.task}: the task has {len(problem.task.measures)} measures, this run's elites {num_measures}")
    return Search.restore(problem, meta, arrays)


def _shape(identity: dict[str, Any]) -> dict[str, Any]:
    """The part of an identity that decides the arrays of a checkpoint."""
    return {
        "program": {"max_length": identity["program"]["max_length"]},
        "search": {name: identity["search"][name] for name in ("archive", "memory_size")},
    }


def _read_quarantine(run_dir: RunDir, meta: dict[str, Any]) -> Quarantine:
    """The checkpoint's and the folder's, which also knows programs that failed later, such as those that ended the run."""
    quarantine = {}
    for key, record in {**meta["quarantine"], **run_dir.quarantine()}.items():
        try:
            quarantine[bytes.fromhex(key)] = (FailureKind(record["kind"]), str(record["log"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{run_dir.path}/quarantine/{key}.json: not a record of a failed program ({type(error).__name__}: {error}); "
                "delete it, and the program is tried again"
            ) from error
    return quarantine


def _same_backend(path: Path, config: RunConfig, meta: dict[str, Any]) -> Backend:
    """The backend that a run goes on with: the one that it had, unless the config names one."""
    if config.evaluation.backend != AUTO:
        return BACKENDS[config.evaluation.backend]
    backend = BACKENDS[meta["backend"]]
    if reason := backend.why_unusable() or backend.why_untrusted(config.evaluation.model_dump()):
        raise UserError(
            f"{path}: this run's programs ran on {meta['device']}, which cannot be used here: {reason}; "
            "to go on with the CPU, whose approximate instructions differ in their last bits: --set evaluation.backend=cpu"
        )
    return backend


def _metrics_row(generation: Generation, elapsed_s: float, save_s: float) -> dict[str, Any]:
    best = generation.best_objective
    return {
        **asdict(generation.counters),
        "elites": generation.num_elites,
        "inserted": generation.num_inserted,
        "lineages": generation.num_lineages,
        "largest_lineage": generation.largest_lineage,
        "coverage": generation.coverage,
        "qd_score": generation.qd_score,
        "best_objective": best if np.isfinite(best) else None,
        "elapsed_s": round(elapsed_s, 6),
        **({"lanes": generation.lanes} if generation.lanes else {}),
        "times_s": {name: round(value, 6) for name, value in {**generation.times_s, "previous_save": save_s}.items()},
    }
