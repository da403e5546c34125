"""Tasks that travel to worker processes as they are: their classes are defined in a script or notebook.

Owns what is pickled by value. Workers never import the script itself, which would run it again.
"""

import pickle
import sys
from contextlib import ExitStack

from evo.errors import UserError
from evo.evaluate import PickledTask, TaskSource
from evo.task import Task
from evo.tasks.folder import declared_files, load_task, task_digest


def pickle_task(task: Task) -> PickledTask:
    """Pickles a task, with its class unless workers can import that by its name.

    Raises:
        UserError: an attribute of the task, or something that its class refers to, cannot be pickled.
    """
    import cloudpickle

    name = type(task).__name__
    try:
        with ExitStack() as stack:
            for module in {base.__module__ for base in type(task).__mro__ if not _is_importable(base.__module__)}:
                cloudpickle.register_pickle_by_value(sys.modules[module])
                stack.callback(cloudpickle.unregister_pickle_by_value, sys.modules[module])
            return PickledTask(cloudpickle.dumps(task))
    except Exception as error:  # whatever the task's objects raise
        raise UserError(f"cannot be sent to worker processes: {type(error).__name__}: {error}", name) from error


def task_of(source: TaskSource | PickledTask, digest: str) -> Task:
    """The task that another process uses. digest: of the files of its folder there.

    Raises:
        UserError: they have changed, or it cannot be loaded.
    """
    if isinstance(source, PickledTask):
        pickled: Task = pickle.loads(source.pickled)
        return pickled
    task = load_task(source.folder, dict(source.options))
    if task_digest(source.folder, declared_files(task, source.folder)) != digest:
        raise UserError("the task's files have changed since the run began; a run goes on with the same only", source.folder)
    return task


def _is_importable(module: str) -> bool:
    """Return whether other processes find a module; `__main__`, which cloudpickle takes by value itself, counts."""
    if module == "__main__" or module not in sys.modules:
        return True
    package = module.partition(".")[0]
    return any(finder.find_spec(package, None) for finder in sys.meta_path)
