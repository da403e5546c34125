"""Recordings as users have them: times, states and inputs as arrays, and the names of columns.

Owns the checks, whose messages are one line with the remedy. Knows nothing of laws.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

LARGEST = 1e100  # of samples and times, whose squares must not overflow
MOST_GAP = 10_000  # times the usual step between samples, beyond which a recording has two parts

Trajectory = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # times, states, inputs


def trajectories(t: Any, X: Any, u: Any, least: int) -> tuple[list[str], list[str], list[Trajectory]]:  # noqa: N803
    """Names of states, names of inputs, and each trajectory.

    Args:
        t, X, u: as for `SymbolicDynamics.fit`.
        least: samples that each state needs.

    Raises:
        ValueError: one is wrong; the message says which.
    """
    is_list = isinstance(X, (list, tuple)) and (len(X) == 0 or hasattr(X[0], "shape") or np.ndim(X[0]) == 2)
    tables = list(X) if is_list else [X]
    all_times, all_inputs = (
        list(values) if is_list and isinstance(values, (list, tuple)) else [values] * len(tables) for values in (t, u)
    )
    if not len(all_times) == len(tables) == len(all_inputs) > 0:
        raise ValueError(f"t, X and u: lists of {len(all_times)}, {len(tables)} and {len(all_inputs)} trajectories")
    states, inputs = names_of(tables[0], "x"), [] if all_inputs[0] is None else names_of(all_inputs[0], "u")
    names = [*states, *inputs]
    if shared := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"X and u: {shared[0]} is the name of two columns; rename one")
    checked = []
    for number, (times, table, raw_inputs) in enumerate(zip(all_times, tables, all_inputs, strict=True)):
        suffix = f"[{number}]" if is_list else ""
        if names_of(table, "x") != states or ([] if raw_inputs is None else names_of(raw_inputs, "u")) != inputs:
            raise ValueError(f"X{suffix} and u{suffix}: all trajectories must have the same states and inputs, in the same order")
        checked.append(
            _trajectory(times_of(times, f"t{suffix}", least), table_of(table, f"X{suffix}"), raw_inputs, suffix, states, least)
        )
    return states, inputs, checked


def _trajectory(
    times: NDArray[np.float64], states: NDArray[np.float64], raw_inputs: Any, suffix: str, names: Sequence[str], least: int
) -> Trajectory:
    if len(times) != len(states):
        raise ValueError(f"t{suffix} has {len(times)} times, X{suffix} has {len(states)} rows")
    inputs = inputs_of(raw_inputs, len(states))
    if (is_infinite := np.isinf(states).any(axis=1)).any():
        raise ValueError(f"X{suffix}: row {is_infinite.argmax()} has infinite values; a missing sample is NaN")
    if (is_unknown := ~np.isfinite(inputs).all(axis=1)).any():
        raise ValueError(f"u{suffix}: row {is_unknown.argmax()} is not finite; inputs are all known")
    if (few := np.isfinite(states).sum(axis=0)).min() < least:
        raise ValueError(f"X{suffix}: {names[int(few.argmin())]} has {few.min()} samples, at least {least} are needed")
    largest = max(np.nanmax(np.abs(states)), np.abs(inputs).max(initial=0.0), np.abs(times).max())
    if not largest < LARGEST or np.ptp(times) < 1.0 / LARGEST:
        raise ValueError(
            f"t{suffix}, X{suffix} and u{suffix}: numbers must be below {LARGEST:g}, and times farther apart than {1 / LARGEST:g}"
        )
    if (gap := np.diff(times).max()) > MOST_GAP * np.median(np.diff(times)):
        raise ValueError(
            f"t{suffix}: {gap:g} passes between two samples, more than {MOST_GAP} times as much as usual; pass what lies "
            "before and after as two trajectories, in lists"
        )
    return times, states, inputs


def names_of(table: Any, letter: str) -> list[str]:
    """Names of columns, as equations have them: in backticks unless they are plain."""
    if hasattr(table, "columns"):
        names = map(str, table.columns)
        return [name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`" for name in names]
    shape = _numbers(table, {"x": "X"}.get(letter, letter)).shape
    return [f"{letter}{i}" for i in range(1 if len(shape) < 2 else shape[1])]


def table_of(values: Any, name: str) -> NDArray[np.float64]:
    """States as `(num_samples, num_states)`."""
    table = _numbers(values, name)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(
            f"{name}: expected an array of shape (num_samples, num_states), got {table.shape}; one state is a column, x[:, None]"
        )
    return table


def inputs_of(values: Any, count: int) -> NDArray[np.float64]:
    """Inputs as `(count, num_inputs)`."""
    inputs = np.zeros((count, 0)) if values is None else _numbers(values, "u")
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    if inputs.ndim != 2 or len(inputs) != count:
        raise ValueError(f"u: expected an array of shape ({count}, num_inputs), got {np.shape(values)}")
    return inputs


def times_of(values: Any, name: str, least: int) -> NDArray[np.float64]:
    """Times as `(num_samples,)`; dates and durations become seconds, since the first."""
    if np.ndim(values) != 1 or len(values) < least:
        raise ValueError(f"{name}: expected at least {least} times, (num_samples,), got an array of shape {np.shape(values)}")
    column = pd.Series(values).reset_index(drop=True)
    if column.dtype.kind == "M":  # with a time zone, too
        column = column - column.iloc[0]
    if column.dtype.kind == "m":
        column = column.dt.total_seconds()
    times = _numbers(column, name, "; text becomes dates by pandas.to_datetime")
    is_wrong = ~np.isfinite(times) | np.append(False, ~(np.diff(times) > 0))
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(
            f"{name}: row {row} is {times[row]:g}{f', after {times[row - 1]:g}' if row else ''}; times must be finite, each "
            "later than the one before"
        )
    return times


def are_dates(values: Any) -> bool:
    """Return whether times are dates or durations."""
    return np.ndim(values) == 1 and pd.Series(values).dtype.kind in "mM"


def _numbers(values: Any, name: str, advice: str = "") -> NDArray[np.float64]:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":
            raise TypeError(f"{array.dtype} values")
        if not array.ndim:
            raise TypeError("a single value")
        return np.asarray(pd.DataFrame(values).to_numpy(np.float64, na_value=np.nan).reshape(array.shape))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected real numbers, all rows of equal length{advice} ({error})") from error
