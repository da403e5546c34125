"""The search of a run's checkpoint, to go on with or to look at.

Owns what must be the same as when the checkpoint was written, and where the task comes from. Writes nothing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from evo.config import RunConfig, first_difference
from evo.errors import FailureKind, UserError, command_line
from evo.evaluate.backends import BACKENDS, Backend, Quarantine
from evo.evaluate.options import AUTO
from evo.native.stack_ptx import HASH_VERSION
from evo.run.loaded_task import Problem, load_problem, problem_of, unloaded_problem
from evo.run.run_dir import RunDir
from evo.run.saved_search import SavedSearch
from evo.run.task_identity import DeclaredTask, MadeTask
from evo.search.state import Arrays
from evo.task import Task

MakeTask: TypeAlias = Callable[[RunConfig], Task]
Load: TypeAlias = Callable[[RunConfig, dict[str, Any], Backend | None, Quarantine], Problem]


def refuse(message: str) -> None:
    """For `restore` of a run that is to go on: every difference ends it. Raises UserError."""
    raise UserError(message)


def load(run_dir: RunDir) -> tuple[dict[str, Any], Arrays, list[str]]:
    """As `RunDir.load_checkpoint`, of a search by this version of evo. Raises UserError."""
    meta, arrays, notes = run_dir.load_checkpoint()
    if meta["hash_version"] != HASH_VERSION:
        raise run_dir.other_version(f"hash version {meta['hash_version']}; this evo has {HASH_VERSION}")
    return meta, arrays, notes


def restore(
    run_dir: RunDir,
    config: RunConfig,
    meta: dict[str, Any],
    arrays: Arrays,
    backend: Backend | None,
    differs: Callable[[str], None],
    load: Load,
) -> SavedSearch:
    """The search of a checkpoint.

    Args:
        differs: called with a line for whatever has changed that decides how the run goes on.
        load: gives the problem of a config and a checkpoint's facts.

    Raises:
        UserError: something has changed without which the elites cannot be read.
    """
    path = run_dir.path
    was, now = meta["identity"], config.identity()
    if change := first_difference(_shape(was), _shape(now)):
        raise UserError(f"the config has changed since the checkpoint: {change}", f"{path}/config.yaml")
    if change := first_difference(was, now):
        differs(f"{path}/config.yaml: the config has changed since the checkpoint: {change}")
    problem = load(config, meta, backend, _read_quarantine(run_dir, meta))
    if problem.task_digest != meta["task_digest"]:
        differs(f"{config.task}: the task's files have changed since the checkpoint; a run goes on with the same only")
    if problem.instruction_set_digest != meta["instruction_set_digest"]:
        raise UserError("the instruction set has changed since the checkpoint", config.program.instruction_set)
    num_measures = arrays["elites.measures"].shape[1]
    if num_measures != len(problem.task.measures):
        raise UserError(f"the task has {len(problem.task.measures)} measures, this run's elites {num_measures}", config.task)
    return SavedSearch(problem, meta, arrays)


def loader(path: Path, make_task: MakeTask | None) -> Load:
    """For `restore`: loads the problem of a run to resume, with its folder's task or one that this process makes."""

    def load(config: RunConfig, meta: dict[str, Any], backend: Backend | None, quarantine: Quarantine) -> Problem:
        made = MadeTask(**meta["made_task"]) if meta.get("made_task") else None
        if not made:
            if make_task:
                raise UserError(f"this run has a task of its own; go on with: {command_line('resume', path)}", path)
            return _load_from_folder(config, backend, quarantine)
        if not make_task:
            raise UserError(_made_elsewhere(path, made))
        task = make_task(config)
        if difference := made.difference(MadeTask.of_task(task)):
            raise UserError(f"{difference}; a run goes on with the same only", path)
        return problem_of(config, task, backend, quarantine)

    return load


def reader(path: Path, with_task: bool, note: Callable[[str], None]) -> Load:
    """For `restore`: loads the problem of a run that is looked at."""

    def load(config: RunConfig, meta: dict[str, Any], backend: Backend | None, quarantine: Quarantine) -> Problem:
        made = MadeTask(**meta["made_task"]) if meta["made_task"] else None
        if made and with_task:
            note(f"{path}: what the task reports is left out, since it is the class {made.name} of a script or notebook")
        if made or not with_task:
            reason = _made_elsewhere(path, made) if made else f"{path}: the run's task is not loaded"
            return unloaded_problem(config, DeclaredTask(meta["task"], reason), meta["task_digest"])
        return _load_from_folder(config, backend, quarantine)

    return load


def _load_from_folder(config: RunConfig, backend: Backend | None, quarantine: Quarantine) -> Problem:
    if not (Path(config.task) / "task.py").is_file():
        raise UserError("the run's task is not there any more; say where it is with --set task=FOLDER", config.task)
    return load_problem(config, backend, quarantine)


def _made_elsewhere(path: Path, made: MadeTask) -> str:
    return (
        f"{path}: the run's task is the class {made.name} of a script or notebook; go on there with: "
        f"evo.resume({made.name}, {str(path)!r})"
    )


def _shape(identity: dict[str, Any]) -> dict[str, Any]:
    """The part of an identity that decides the arrays of a checkpoint."""
    decisive = {"program": ("max_length",), "search": ("archive", "memory_size", "learning")}
    return {part: {name: identity[part][name] for name in names if name in identity[part]} for part, names in decisive.items()}


def _read_quarantine(run_dir: RunDir, meta: dict[str, Any]) -> Quarantine:
    """Failed programs of the checkpoint and of the folder, which also knows later ones, such as those that ended the run."""
    quarantine = {}
    for key, record in {**meta["quarantine"], **run_dir.quarantine()}.items():
        try:
            quarantine[bytes.fromhex(key)] = (FailureKind(record["kind"]), str(record["log"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"not a record of a failed program ({type(error).__name__}: {error}); delete it, and the program is tried again",
                f"{run_dir.path}/quarantine/{key}.json",
            ) from error
    return quarantine


def same_backend(path: Path, config: RunConfig, meta: dict[str, Any]) -> Backend:
    """The backend of a resumed run: its previous one, unless the config names another."""
    if config.evaluation.backend != AUTO:
        return BACKENDS[config.evaluation.backend]
    backend = BACKENDS[meta["backend"]]
    if reason := backend.why_unusable() or backend.why_untrusted(config.evaluation):
        raise UserError(
            f"this run's programs ran on {meta['device']}, which cannot be used here: {reason}; "
            "to go on with the CPU, whose approximate instructions differ in their last bits: --set evaluation.backend=cpu",
            path,
        )
    return backend
