"""Tables for estimators: the user's columns, and the rows that a search sees.

Owns the checks and the advice in their messages, the order of rows, and the choice of the most telling columns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from evo.evaluate.sampling import spread, weighted_spread

Table = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]  # columns, target and weights of rows

FIRST_SHARE_LOG2, FEWEST = 5, 1024  # of most rows, those that a search begins with: one in 32, but not fewer
MAX_REPEATED = 4  # times the rows: integer weights repeat rows up to here, beyond they are factors
FILL = ", or fill them, such as by scikit-learn's SimpleImputer"
UNNAMED = re.compile(r"|Unnamed: \d+")  # as pandas writes and reads an index
NUM_TREES, TREE_DEPTH = 100, 3  # that rank columns


def numbers_of(table: Any, known: Sequence[str] | None = None) -> Any:
    """A frame of pandas, Polars or Arrow as one of pandas with columns of numbers; whatever has no names stays as it is.

    Columns without a number or a name, such as an index, are left out.

    Args:
        known: columns that are asked for; None: a warning names those that are left out.

    Raises:
        ValueError: a column has numbers as text, is asked for and no number, or a value of it is missing; or no column is left.
    """
    names = getattr(table, "column_names", getattr(table, "columns", None))
    if names is None or isinstance(names, str):
        check_numbers("X", table)
        return table
    if isinstance(table, pd.DataFrame):
        columns = [table.iloc[:, i] for i in range(len(names))]
    else:
        columns = [pd.Series(np.asarray(table[name])) for name in names]
    kept = []
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        reason = _no_input(name, column)
        if reason is None or (known is not None and name in known):
            if reason:
                raise ValueError(f"X: column '{name}' {reason}, but was a number in fit")
            refuse_missing(f"X: column '{name}'", column.isna().to_numpy(), FILL)
            refuse_infinite(f"X: column '{name}'", column.to_numpy(np.float64))
            kept.append(i)
        elif known is None:
            warnings.warn(f"X: left out column '{name}', which {reason}", stacklevel=3)
    if not kept:
        raise ValueError("X: no column of numbers is left")
    called = [names[i] for i in kept]
    if twice := [name for name in called if called.count(name) > 1]:
        raise ValueError(f"X: {called.count(twice[0])} columns are called '{twice[0]}'; rename all but one")
    if isinstance(table, pd.DataFrame):
        return table if len(kept) == len(names) else table.iloc[:, kept]
    return pd.DataFrame({names[i]: columns[i].to_numpy(np.float64) for i in kept})


def _no_input(name: Any, column: pd.Series) -> str | None:
    """Why a column is left out. Raises ValueError if it has numbers as text."""
    if isinstance(name, str) and UNNAMED.fullmatch(name):
        return "has no name"
    if (pd.api.types.is_numeric_dtype(column) and column.dtype.kind != "c") or column.map(type).isin([bool, np.bool_]).all():
        return None
    kind, first = column.dtype, column.dropna().iloc[:1].tolist()
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        span = f"X['{name}']" if pd.api.types.is_timedelta64_dtype(kind) else f"(X['{name}'] - X['{name}'].min())"
        return f"is {kind}; make it numbers to use it, such as seconds: {span}.dt.total_seconds()"
    if first and isinstance(first[0], Decimal):
        raise ValueError(f"X: column '{name}' has decimal.Decimal in it; make them numbers: X['{name}'].astype(float)")
    texts = column.dropna().astype(str)
    if pd.to_numeric(texts.str.replace(",", "."), errors="coerce").notna().any():
        raise ValueError(
            f"X: column '{name}' is {column.dtype}, no number; leave it out, or encode it, such as by pandas.get_dummies or "
            "scikit-learn's OneHotEncoder; numbers in text become numbers by pandas.to_numeric"
        )
    return f"is {column.dtype}" + (f", such as '{texts.iloc[0]}'" if len(texts) else "")


def check_numbers(what: str, table: Any) -> None:
    """Raises ValueError if an array of data, which messages call `what`, has anything but finite numbers."""
    array = np.asarray(table)
    is_x = what == "X"
    if is_x and array.ndim == 1:
        raise ValueError(f"X: Expected 2D array, got {len(array)} values; Reshape your data: X.reshape(-1, 1) is one feature")
    if array.dtype.kind == "c":
        raise ValueError(f"{what}: Complex data not supported; use real and imaginary parts")
    if array.dtype.kind in "mM":
        span = what if array.dtype.kind == "m" else f"({what} - {what}.min())"
        raise ValueError(f"{what} is {array.dtype}; make it numbers, such as seconds: {span}/np.timedelta64(1, 's')")
    for i, values in enumerate(array.T if is_x and array.ndim == 2 else [array]):
        column = f"{what}: column {i}" if is_x else what
        if array.dtype.kind in "OUS" and values.ndim == 1:
            is_text = np.array([isinstance(value, str) for value in values], bool)
            numbers = pd.to_numeric(pd.Series(values).where(is_text), errors="coerce")
            if len(wrong := np.flatnonzero(numbers.isna() & is_text)):
                raise ValueError(f"{column}: row {wrong[0]} is {str(values[wrong[0]])!r}, no number")
            refuse_missing(column, pd.isna(values), FILL * is_x)
        elif array.dtype.kind == "f" and values.ndim == 1:
            masked = np.ma.getmaskarray(table).T if isinstance(table, np.ma.MaskedArray) else False
            is_masked = masked[i] if isinstance(masked, np.ndarray) and is_x else masked
            refuse_missing(column, np.isnan(values) | is_masked, FILL * is_x)
            refuse_infinite(column, values)


def refuse_infinite(what: str, values: NDArray[Any]) -> None:
    """Raises ValueError if a value is infinite."""
    is_infinite = np.isinf(values)
    if is_infinite.any():
        raise ValueError(f"{what} contains infinity, the first in row {int(is_infinite.argmax())}; drop these rows")


def refuse_missing(what: str, is_missing: NDArray[np.bool_], fill: str = "") -> None:
    """Raises ValueError if a value is missing. is_missing: of each row."""
    if count := int(is_missing.sum()):
        row = int(is_missing.argmax())
        raise ValueError(f"{what} contains NaN: {count} missing values, the first in row {row}; drop these rows{fill}")


def most_telling(
    columns: NDArray[np.float64], target: NDArray[np.float64], weights: NDArray[np.float64] | None, count: int | None
) -> NDArray[np.int64]:
    """The `count` columns that shallow trees use most for the target, in their order; None: all. The order of rows does not
    matter.
    """
    if count is None or count >= columns.shape[1]:
        return np.arange(columns.shape[1])
    from sklearn.ensemble import RandomForestRegressor

    columns, target, weights = prepared(columns, target.astype(np.float64), weights)
    trees = RandomForestRegressor(NUM_TREES, max_depth=TREE_DEPTH, random_state=0)
    trees.fit(rankdata(columns, axis=0), target, weights)  # trees only compare, and take no more than float32 holds
    return np.sort(np.argsort(-trees.feature_importances_, kind="stable")[:count])


def counted(columns: NDArray[np.float64], target: NDArray[np.float64], weights: NDArray[np.float64] | None) -> Table:
    """The rows that count; weights: None if all are equal."""
    if weights is not None:
        if not (weights >= 0).all() or not weights.any():
            raise ValueError("sample_weight: must be numbers from 0 on, not all of them 0")
        counts = weights > 0
        if not counts.all():
            columns, target, weights = columns[counts], target[counts], weights[counts]
        if (weights == weights[0]).all():
            weights = None
    with np.errstate(over="ignore"):
        deviations = target - target.mean()
        squares = np.square(deviations).sum()
        if not np.isfinite(squares):
            raise ValueError("y: squares of its deviations from the mean exceed float64; scale it down")
        if squares == 0.0 and deviations.any():
            raise ValueError("y: squares of its deviations from the mean are too small for float64; scale it up")
    return columns, target, weights


def growing(table: Table, most: int, num_columns: int | None) -> tuple[NDArray[np.int64], list[Table], Table]:
    """Indices of the `num_columns` most telling columns; None: all. Then, with these alone: samples of at most `most` of the
    rows that count, spread evenly over their order, each with all rows of the one before it; and the whole table. One of few rows
    is its own sample.
    """
    columns, target, weights = table
    if len(target) <= most:
        used = most_telling(*table, num_columns)
        table = prepared(columns[:, used], target, weights)
        return used, [table], table
    samples: list[Table] = []
    for size in sorted({min(max(most >> FIRST_SHARE_LOG2, FEWEST), most), most}):
        rows, chosen = (spread(len(target), size), None) if weights is None else weighted_spread(weights, size)
        samples.append((columns[rows], target[rows], chosen))
    used = most_telling(*samples[0], num_columns)
    samples = [prepared(rows[:, used], values, chosen) for rows, values, chosen in samples if np.ptp(values)]
    if not samples and np.ptp(target):
        raise ValueError(f"y: has one value in nearly all rows, and in each of {most} of them; set max_rows")
    columns = columns[:, used] if len(used) < columns.shape[1] else columns
    return used, samples, (columns, target, None if weights is None else weights / weights.max())


def prepared(columns: NDArray[np.float64], target: NDArray[np.float64], weights: NDArray[np.float64] | None) -> Table:
    """The rows that count, in an order that depends on them alone; weights: None if all are equal.

    Rows with integer weights are repeated, unless that makes too many.
    """
    columns, target, weights = counted(columns, target, weights)
    if weights is not None and (weights == np.floor(weights)).all() and weights.sum() <= MAX_REPEATED * len(weights):
        times = weights.astype(np.int64)
        columns, target, weights = columns.repeat(times, axis=0), target.repeat(times), None
    elif weights is not None:
        weights = weights / weights.max()  # products of sums stay within float64
    order = np.argsort(target, kind="stable")
    if (np.diff(target[order]) == 0).any():
        order = np.lexsort([*columns.T, target] if weights is None else [weights, *columns.T, target])
    return columns[order], target[order], None if weights is None else weights[order]
