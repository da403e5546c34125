"""A task's folder: how a task is loaded from it, checked, and told apart from another.

Owns the import of users' code. Knows nothing of how programs are evaluated or bred.
"""

import hashlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from evo.errors import UserError, did_you_mean
from evo.shipped import shipped
from evo.storage.files import open_file
from evo.task import DTYPES, MAX_MEASURE_RANGE, MAX_NAMES, REDUCTIONS, Task, place_of
from evo.tasks.answers import error_place, forks_ended, task_errors
from evo.tasks.rollout import Rollout


def check_options(task_class: type[Task], options: Mapping[str, Any]) -> None:
    """Refuses options that a task's class does not take.

    Raises:
        UserError: a name is unknown or missing; the message has those that there are.
    """
    try:
        inspect.signature(task_class).bind(**options)
    except TypeError as error:
        accepted = inspect.signature(task_class).parameters
        unknown = [str(name) for name in options if name not in accepted]
        hint = did_you_mean(unknown[0], accepted) if unknown else f"{task_class.__name__} takes: {', '.join(accepted)}"
        raise UserError(f"{error}; {hint}", "task_options") from error


def load_task(folder: Path, options: dict[str, Any]) -> Task:
    """The task in `folder`/task.py, made with `options` as keyword arguments.

    The folder is imported as a package: `task.py` may say `from .other import name`.

    Raises:
        UserError: no such folder or file, it does not import, it does not hold exactly one task, or the options do not fit.
    """
    path = folder / "task.py"
    if not path.is_file():
        named = "" if folder.exists() else f", or the name of a shipped one, {did_you_mean(folder.name, shipped('tasks'))}"
        raise UserError(f"no such file; a task is a folder with a task.py{named}", path)
    package = "evo_task_" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    if package not in sys.modules:
        module = types.ModuleType(package)
        module.__path__ = [str(folder)]
        sys.modules[package] = module
    try:
        with _staying_here():
            module = importlib.import_module(f"{package}.task")
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        raise UserError(f"does not import: {type(error).__name__}: {error}", error_place(error, folder) or path) from error
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Task) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        class_names = ", ".join(sorted(c.__name__ for c in classes)) or "none"
        raise UserError(f"must define exactly one class that derives from evo.Task, found: {class_names}", path)
    task_class = classes[0]
    check_options(task_class, options)
    try:
        with _staying_here():
            task = task_class(**options)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        call = f"{task_class.__name__}({', '.join(f'{name}={value!r}' for name, value in options.items())})"
        raise UserError(f"{call} raised {type(error).__name__}: {error}", error_place(error, folder) or path) from error
    check_declarations(task)
    return task


@contextmanager
def _staying_here() -> Iterator[None]:
    """Goes back to the working folder if the task's code leaves it: relative paths of the command line begin here. Leaves no
    bytecode beside the code, which may be a run's.
    """
    folder, writes_none = os.open(".", os.O_PATH), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        with forks_ended():
            yield
    finally:
        sys.dont_write_bytecode = writes_none
        os.fchdir(folder)
        os.close(folder)


def declared_files(task: Task, folder: Path) -> list[Path]:
    """The paths of `task.files()`. Raises UserError if one does not exist."""
    with task_errors(type(task), "files"):
        paths = [folder / path for path in task.files()]
    for path in paths:
        if not path.exists():
            raise UserError(f"files(): {path}: no such file or folder", place_of(type(task)))
    return paths


def task_digest(folder: Path, declared: Sequence[Path] = ()) -> str:
    """SHA-256 over a task's folder and the files and folders that it has `declared`. A run is only resumed with the same.

    Hidden files, `__pycache__`, `.pyc` files and run folders do not count, nor do locations of folders and declared paths.

    Raises:
        UserError: a file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for number, top in enumerate([folder, *declared]):
            for path in task_files(top):
                with open_file(path) as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
                digest.update(f"{number}\0{path.relative_to(top).as_posix()}\0{content}\0".encode())
    except OSError as error:
        raise UserError(f"cannot read this file of the task: {error.strerror}", error.filename) from error
    return digest.hexdigest()


def task_files(path: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """The files in a folder, sorted, without those that decide no result; or `path` itself if it is a file.

    Args:
        above: folders that are being listed.
    """
    if not path.is_dir():
        yield path
        return
    above |= {path.resolve()}
    for entry in sorted(path.iterdir()):
        is_run = (entry / "config.yaml").is_file() and (entry / "checkpoints").is_dir()
        is_cache = entry.name == "__pycache__" or entry.suffix == ".pyc"
        if not (is_run or is_cache or entry.name.startswith(".") or entry.resolve() in above):  # a link may lead upwards
            yield from task_files(entry, above)


def check_declarations(task: Task) -> None:
    """Raises UserError unless the task's attributes are as `Task` says."""
    path, owner = place_of(type(task)), type(task).__name__

    def need(is_right: object, attribute: str, must: str) -> None:
        if not is_right:
            raise UserError(f"{owner}.{attribute}{must}", path)

    for attribute in ("inputs", "outputs"):
        declared = getattr(task, attribute)
        need(isinstance(declared, dict) and declared, attribute, " must be a dict of name -> type, and not empty")
        need(len(declared) <= MAX_NAMES, attribute, f" has {len(declared):,} names, at most {MAX_NAMES:,} fit")
        for name, kind in declared.items():
            is_known = isinstance(name, str) and kind in tuple(DTYPES)
            need(is_known, f"{attribute}[{name!r}]", f" is {kind!r}, must be one of: {', '.join(DTYPES)}")
    measures, low_high, sums, objective_range = (
        task.measures,
        "(low, high) with low < high",
        task.kernel_sums,
        task.objective_range,
    )
    need(isinstance(measures, dict) and measures, "measures", " must be a dict of name -> (low, high), and not empty")
    for name, bounds in measures.items():
        need(_is_range(bounds), f"measures['{name}']", f" is {bounds!r}, must be {low_high}")
        apart = f" is {bounds!r}, low and high must be at most {MAX_MEASURE_RANGE:g} apart"
        need(bounds[1] - bounds[0] <= MAX_MEASURE_RANGE, f"measures['{name}']", apart)
    is_right = objective_range is None or _is_range(objective_range)
    need(is_right, "objective_range", f" is {objective_range!r}, must be None or {low_high}")
    if task.reduction is not None:
        known = f" is {task.reduction!r}, must be None or one of: {', '.join(REDUCTIONS)}"
        need(task.reduction in REDUCTIONS, "reduction", known)
        need(set(task.outputs.values()) == {"f32"}, "reduction", " needs outputs of type f32")
    if task.rollout is not None:
        need(isinstance(task.rollout, Rollout), "rollout", f" is {task.rollout!r}, must be None or an evo.Rollout")
        task.rollout.check(f"{path}: {owner}.rollout", task.inputs, task.outputs, task.reduction)
    is_right = sums is None or (isinstance(sums, int) and sums >= 1)
    need(is_right, "kernel_sums", f" is {sums!r}, must be None or a whole number from 1")
    is_plain = task.reduction is None and task.rollout is None
    if task.cpu_sums is not None:
        count = getattr(task.cpu_sums, "num_sums", None)
        must = f" is {task.cpu_sums!r}, must be None or such as evo.pictures.PictureSums, with as many sums as kernel_sums, which"
        need(count is not None and count == sums and is_plain, "cpu_sums", f"{must} is {sums}, and without reduction and rollout")
    if task.has_simulation() and not (is_plain and task.cpu_sums is None):
        raise UserError(f"{owner} defines simulate(), so it has no reduction, no rollout and no cpu_sums", path)
    need(isinstance(task.needs_kernel, bool), "needs_kernel", f" is {task.needs_kernel!r}, must be True or False")
    is_right = task.complexity is None or task.complexity in measures
    need(is_right, "complexity", f" is {task.complexity!r}, must be None or a measure: {', '.join(measures)}")


def _is_range(bounds: object) -> bool:
    if not (isinstance(bounds, tuple) and len(bounds) == 2 and all(isinstance(bound, (int, float)) for bound in bounds)):
        return False
    return bool(np.isfinite(bounds).all()) and bounds[0] < bounds[1]
