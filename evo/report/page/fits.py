"""Curves of programs against the task's target, for tasks that draw no pictures.

Owns which points are shown, and in what order. Knows nothing of how curves are drawn.
"""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.run.loaded_task import Problem
from evo.task import DTYPES, Task
from evo.tasks.answers import point_arrays, task_errors

NUM_POINTS = 128  # of a curve
_TOP = 65534  # stands for the upper edge of a curve's picture, 0 for the lower
_GAP = 65535  # stands for values that are not finite
_MARGIN = 0.15  # of the target's range, above and below it


def fits(problem: Problem, words: NDArray[np.uint64]) -> Any:
    """Curves of `(n, max_length)` programs as JSON data, or None if the task has no target to compare them with.

    Points lie along the input that varies. If several do, they are sorted by target. Outputs that the task scales are scaled to
    the target here (Keijzer 2003): a target may be in other units than predictions are.

    Returns:
        `output`, its name; `scaled`, whether it is; `input`, its name or null; `x`, the ends of its range; `places`, of the
        points, from 0 to 1; `y`, the values at the edges; `target` and `curves`: uint16 in base64.
    """
    task = problem.task
    name = next((name for name, kind in task.outputs.items() if kind == "f32"), None)
    if type(task).targets is Task.targets or name is None or task.rollout is not None:
        return None
    with task_errors(type(task), "targets"):
        points, targets = task.points(), task.targets()
    arrays, num_points = point_arrays(task, points, "points()")
    target = np.asarray(targets[name], np.float64)
    if target.shape != (num_points,) or not np.isfinite(target).all():
        return None
    varying = [index for index, array in enumerate(arrays) if array.ndim and (array != array[0]).any()]
    along = np.asarray(arrays[varying[0]], np.float64) if len(varying) == 1 else target
    shown = np.argsort(along, kind="stable")
    shown = shown[np.unique(np.linspace(0, num_points - 1, NUM_POINTS).round().astype(int))]
    chosen = {key: array[shown] if array.ndim else array for key, array in zip(task.inputs, arrays, strict=True)}
    outputs = problem.evaluator.outputs(words, {key: np.asarray(a, DTYPES[task.inputs[key]]) for key, a in chosen.items()})
    values = np.asarray(outputs[name], np.float64)
    target = target[shown]
    if task.has_scaling():
        values = _scaled(values, target)
    low, high = float(target.min()), float(target.max())
    margin = _MARGIN * (high - low) or 0.5 * max(1.0, abs(low))
    ends = low - margin, high + margin
    if len(varying) == 1:
        offset, scale = task.input_scaling().get(list(task.inputs)[varying[0]], (0.0, 1.0))
        first, last = (offset + scale * float(along[shown[end]]) for end in (0, -1))
        fractions = (along[shown] - along[shown[0]]) / (along[shown[-1]] - along[shown[0]])
    else:
        first, last, fractions = 1.0, float(num_points), np.linspace(0.0, 1.0, len(shown))
    return {
        "output": name,
        "scaled": task.has_scaling(),
        "input": list(task.inputs)[varying[0]] if len(varying) == 1 else None,
        "x": [first, last],
        "places": fractions.round(5).tolist(),
        "y": list(ends),
        "target": _levels(target, *ends),
        "curves": [_levels(row, *ends) for row in values],
    }


def _scaled(values: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row by its linear function of least squared error where the row is finite."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(values)
        count = finite.sum(axis=1, keepdims=True)
        y, t = (np.where(finite, array, 0.0) for array in (values, target))
        y_mean, t_mean = (array.sum(axis=1, keepdims=True) / count for array in (y, t))
        y, t = (np.where(finite, array - mean, 0.0) for array, mean in ((values, y_mean), (target, t_mean)))
        variance = (y * y).sum(axis=1, keepdims=True)
        slope = np.where(variance > 0.0, (y * t).sum(axis=1, keepdims=True) / variance, 0.0)
        return np.where(finite, t_mean + slope * (values - y_mean), np.nan)


def _levels(values: NDArray[np.float64], low: float, high: float) -> str:
    """Values as uint16, those beyond the edges at the edges."""
    with np.errstate(all="ignore"):
        levels = np.clip((values - low) / (high - low), 0.0, 1.0) * _TOP
    return base64.b64encode(np.where(np.isfinite(values), levels.round(), _GAP).astype("<u2").tobytes()).decode()
