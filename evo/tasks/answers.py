"""Checked answers of a task's methods: points, targets, weights, its own kernel; and the place of its code's error.

Owns the messages that name a task's file and line. Knows nothing of evaluation.
"""

import hashlib
import inspect
import os
import pickle
import sys
import types
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.task import DTYPES, Task, place_of


def task_kernel(task: Task) -> tuple[Path, dict[str, Any]] | None:
    """The task's own kernel, `kernel.cu` beside its `task.py`, and its macros; None if it has none that serves its options."""
    file = getattr(sys.modules.get(type(task).__module__), "__file__", None)
    path = Path(file).with_name("kernel.cu") if file else None
    if not (path and path.is_file()):
        return None
    with task_errors(type(task), "kernel_defines"):
        defines = task.kernel_defines()
    return None if defines is None else (path, defines)


def num_kernel_results(task: Task) -> int:
    """Count of numbers that the task's own kernel writes for each program."""
    return task.kernel_sums or 1 + len(task.measures)


def method_place(task_class: type[Task], method: str) -> str:
    """`file:line` of a task's method; of its class, if the method is a callable without code of its own, such as a partial."""
    code = getattr(inspect.unwrap(getattr(task_class, method)), "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return f"{place_of(task_class)}:{inspect.getsourcelines(task_class)[1]}"


@contextmanager
def forks_ended() -> Iterator[None]:
    """Ends a child process that a task's code has forked and that returns from it: it would go on as a second evo."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)


@contextmanager
def task_errors(task_class: type[Task], method: str) -> Iterator[None]:
    """Turns any exception of a task's code into a UserError that names the line in the task's file."""
    try:
        with forks_ended():
            yield
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:  # an exit of the task's must not look like one of evo's
        location = error_place(error, Path(place_of(task_class)).parent) or method_place(task_class, method)
        raise UserError(f"{method}() raised {type(error).__name__}: {error}", location) from error


_changing: weakref.WeakValueDictionary[int, Task] = weakref.WeakValueDictionary()  # by id: tasks that `ask` has changed


def ask(task: Task, method: str) -> Any:
    """Call the task's method and check its answer: `points`, `targets`, `weights`, `check_points` or `check_targets`."""
    is_ours = type(task).__module__.startswith("evo.")  # such tasks do not change when they are asked
    before = None if is_ours else attributes_digest(task)
    with task_errors(type(task), method):
        answer = getattr(task, method)()
    if not is_ours and (before is None or attributes_digest(task) != before):
        _changing[id(task)] = task
    return answer


def changes_when_asked(task: Task) -> bool:
    """Return whether a call of `ask` may have changed the task's attributes: its `score` may rely on having been asked."""
    return _changing.get(id(task)) is task


def attributes_digest(task: Task) -> str | None:
    """A digest of the task's attributes and all in them; None if they cannot be pickled."""
    digest = hashlib.blake2b()
    pickler = pickle.Pickler(
        types.SimpleNamespace(write=digest.update), protocol=5, buffer_callback=lambda buffer: digest.update(buffer.raw())
    )
    try:
        pickler.dump(dict(vars(task)))
    except Exception:  # noqa: BLE001 - whatever the task's objects raise
        return None
    return digest.hexdigest()


def typed_arrays(
    values: Any, kinds: Mapping[str, str], location: str, dtype: type | None = None, verb: str = "must return"
) -> list[NDArray[Any]]:
    """The arrays of a task's dict in the order of `kinds`, name -> type, each of its type, or of the dtype.

    Args:
        location: the subject of messages, followed by the verb.

    Raises:
        UserError: one is missing, unknown or not a number.
    """
    if not isinstance(values, dict) or set(values) != set(kinds):
        got = ", ".join(map(str, values)) if isinstance(values, dict) else type(values).__name__
        raise UserError(f"{verb} a dict of exactly {', '.join(kinds)}; got {got}", location)
    arrays: list[NDArray[Any]] = []
    for name, kind in kinds.items():
        try:
            arrays.append(np.asarray(values[name], dtype=dtype or DTYPES[kind], order="C"))
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"'{name}' is not an array of {kind}: {error}", location) from error
    return arrays


def point_arrays(task: Task, points: dict[str, NDArray[Any]], method: str) -> tuple[list[NDArray[Any]], int]:
    """The arrays of `points` in the order of `task.inputs`, each of its type, and the number of points.

    Raises:
        UserError: an input is missing, unknown or not a number, the lengths differ, or there is no point.
    """
    location = f"{place_of(type(task))}: {method}"
    arrays = typed_arrays(points, task.inputs, location)
    lengths = {a.shape[0] for a in arrays if a.ndim == 1}
    if any(a.ndim > 1 for a in arrays) or len(lengths) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(task.inputs, arrays, strict=True))
        raise UserError(
            f"each input is a scalar or has the shape (num_points,), and at least one is an array; got {shapes}", location
        )
    if lengths == {0}:
        raise UserError("gives no points", location)
    return arrays, lengths.pop()


def target_array(task: Task, num_points: int, method: str = "targets", dtype: type = np.float32) -> NDArray[Any]:
    """The targets of a task with a reduction, `(num_outputs, num_points)`.

    Args:
        method: `targets`, or `check_targets` for those at the check points.
        dtype: float32, as programs are scored by, or float64.

    Raises:
        UserError: an output is missing, unknown or not a number, or its length is not the number of points.
    """
    location = f"{place_of(type(task))}: {method}()"
    arrays = typed_arrays(ask(task, method), dict.fromkeys(task.outputs, "f32"), location, dtype)
    for name, array in zip(task.outputs, arrays, strict=True):
        if array.shape != (num_points,):
            raise UserError(f"'{name}' has shape {array.shape}, the points have ({num_points},)", location)
    return np.ascontiguousarray(np.stack(arrays))


def weight_array(task: Task, num_points: int) -> NDArray[np.float32] | None:
    """The weights of a task with a reduction, `(num_points,)` float32; None if all points count the same.

    Raises:
        UserError: they are not numbers above 0, or not as many as points.
    """
    weights = ask(task, "weights")
    if weights is None:
        return None
    location = f"{place_of(type(task))}: weights()"
    try:
        array = np.ascontiguousarray(weights, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"is not an array of f32: {error}", location) from error
    if array.shape != (num_points,):
        raise UserError(f"has shape {array.shape}, the points have ({num_points},)", location)
    if not (np.isfinite(array) & (array >= np.finfo(np.float32).tiny)).all():
        raise UserError("must be numbers above 0 that a normal float32 can hold", location)
    return array


def error_place(error: BaseException, folder: Path) -> str | None:
    """`file:line` of the deepest frame of the error's traceback that lies in `folder`, or None."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    location, traceback = None, error.__traceback__
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if Path(filename).is_relative_to(folder):
            location = f"{filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return location
