"""The copy of its task that a run folder holds, so that the run goes on at another place and on another machine.

Owns what is copied where, and which strings of the task's options are paths of copied files. Knows nothing of the rest of a run
folder.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from evo.errors import UserError
from evo.evaluate import TaskSource
from evo.instructions import SHIPPED
from evo.run.loaded_task import Problem, located_options
from evo.storage.files import open_file, write_atomically
from evo.task import Task
from evo.tasks.folder import declared_files, task_digest, task_files

TASK, FILES = "task", "task_files"  # in the run folder
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class TaskCopy:
    """Contents of a copy. Paths in it are relative.

    folder: the task's. declared: the files and folders that the task declares, in its order. files: path in the copy -> the
    file. options: strings of the task's options that are paths of such files, or begin with one and a colon -> these in the copy.
    """

    folder: Path
    declared: tuple[Path, ...]
    files: Mapping[Path, Path]
    options: Mapping[str, Path]


def plan_copy(task: Task, source: TaskSource) -> TaskCopy:
    """Plans the copy: the task's folder goes to `task`, declared files outside it to `task_files` if an option names them.

    Other declared files keep their path relative to the task's folder, below the folder that holds them all.

    Raises:
        UserError: a declared file does not exist.
    """
    folder = source.folder.resolve()
    declared = [Path(os.path.abspath(path)) for path in declared_files(task, folder)]
    named = {text: Path(os.path.abspath(_path_of(text))) for text in _strings(dict(source.options)) if _path_of(text)}
    root = Path(os.path.commonpath([folder, *(top.parent for top in declared if not _is_named(top, folder, named.values()))]))
    targets = {folder: Path(TASK, folder.relative_to(root))}
    for top in declared:
        if top.is_relative_to(root) and not _is_named(top, folder, named.values()):
            targets[top] = Path(TASK, top.relative_to(root))
        elif top not in targets:
            names = (Path(FILES, f"{number}-{top.name}" if number > 1 else top.name) for number in count(1))
            targets[top] = next(name for name in names if name not in targets.values())
    files = {target / path.relative_to(top): path for top, target in targets.items() for path in task_files(top)}
    options = {}
    for text, path in named.items():
        for top, target in targets.items():
            if path == top or (path.is_relative_to(top) and path.is_file()):
                options[text] = Path(f"{target / path.relative_to(top)}{text[len(_path_of(text)) :]}")
    return TaskCopy(targets[folder], tuple(targets[top] for top in declared), files, options)


def hold_task(problem: Problem, folder: Path, warn: Callable[[str], None]) -> Problem:
    """The problem with its task, and an instruction set that evo does not ship, copied into a run's folder.

    Args:
        warn: called with a line if the task is larger than `output.task_megabytes`. Then it stays where it is.

    Raises:
        UserError: a file cannot be copied, or the task's files have changed since they were loaded.
    """
    folder = folder.resolve()  # as the config of a run names it
    config, source = problem.config, problem.source
    if config.program.instruction_set not in SHIPPED:
        # Named by its content: `evo compare` goes by the names of files in configs.
        path = folder / f"instruction_set-{str(problem.instruction_set_digest)[:8]}.json"
        _copy(Path(config.program.instruction_set), path)
        program = config.program.model_copy(update={"instruction_set": str(path)})
        config = config.model_copy(update={"program": program})
    if not isinstance(source, TaskSource):
        return replace(problem, config=config)
    copy = plan_copy(problem.task, source)
    num_bytes = sum(path.stat().st_size for path in copy.files.values())
    most = config.output.task_megabytes
    if num_bytes > most * MEGABYTE:
        if most:
            warn(
                f"the run folder does not hold its task, which has {num_bytes / MEGABYTE:,.0f} MB with its files, more than "
                f"output.task_megabytes ({most}): the run goes on only with {source.folder}"
            )
        return replace(problem, config=config)
    for name, path in copy.files.items():
        _copy(path, folder / name)
    if task_digest(folder / copy.folder, [folder / declared for declared in copy.declared]) != problem.task_digest:
        raise UserError("the task's files have changed since they were loaded; start again", source.folder)
    files = {text: str(folder / path) for text, path in copy.options.items()}
    for text, located in config.task_files.items():  # of a run folder's config: the options have the strings given at first
        files[text] = files.pop(located, located)
    config = config.model_copy(update={"task": str(folder / copy.folder), "task_files": files})
    return replace(problem, config=config, source=TaskSource(folder / copy.folder, located_options(config)))


def _is_named(top: Path, folder: Path, named: Iterable[Path]) -> bool:
    """Return whether an option is a path in a declared file or folder that lies outside of the task's folder."""
    return not top.is_relative_to(folder) and any(path.is_relative_to(top) for path in named)


def _path_of(text: str) -> str:
    """The path that a string is, or begins with before a colon, as FILE:NAME; empty: there is no such file."""
    return next((path for path in (text, text.rpartition(":")[0]) if path and Path(path).exists()), "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _copy(path: Path, to: Path) -> None:
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with open_file(path) as file:
            write_atomically(to, iter(lambda: file.read(1 << 20), b""), durable=True)
        shutil.copymode(path, to)  # a task may bring a program that it runs
    except OSError as error:
        raise UserError(f"cannot copy the task into the run folder: {error.strerror}", error.filename or to) from error
