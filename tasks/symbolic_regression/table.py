"""CSV files: numbers by column, or one line that says which cell is wrong.

Owns what a table must look like, and the names of inputs. Knows nothing of training and test points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import evo

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
LARGEST = 1e150  # squares stay within float64


@dataclass(frozen=True)
class Table:
    """The columns of a CSV file by identifier. target: that of the target. names: identifier -> what the file calls it."""

    columns: dict[str, NDArray[np.float64]]
    target: str
    names: dict[str, str]


def read_table(path: Path, target: str, drop: Sequence[str], min_rows: int) -> Table:
    """The columns of a CSV file but for those to drop, among which the target may be. The first line has the names.

    Raises:
        evo.UserError: the file cannot be read, or a name or a value is wrong.
    """
    header, rows = _read_cells(path)
    for number, name in enumerate(header, 1):
        if not name:
            raise evo.UserError(f"{path}:1: column {number} has no name; give it one, or write the table without it")
        if header.index(name) != number - 1:
            raise evo.UserError(f"{path}:1: two columns are named '{name}'")
    listed = ", ".join(header)
    if target not in header:
        raise evo.UserError(f"{path}:1: no column '{target}' (task_options.target); the columns are: {listed}")
    for name in drop:
        if name not in header:
            raise evo.UserError(f"{path}: '{name}' in task_options.drop is not a column; the columns are: {listed}")
    if len(rows) < min_rows:
        raise evo.UserError(f"{path}: {len(rows)} rows of data, needs at least {min_rows}")
    kept = [(number, name) for number, name in enumerate(header) if name == target or name not in drop]
    if len(kept) < 2:
        raise evo.UserError(f"{path}: no column but the target '{target}' is left; at least one must be an input")
    identifiers = _identifiers(path, [name for _, name in kept])
    columns = {}
    for (number, name), identifier in zip(kept, identifiers, strict=True):
        advice = "" if name == target else f", or leave the column out with task_options.drop=[{name}]"
        values = _numbers(path, name, rows[number], advice)
        if values.min() == values.max():
            advice = "" if name == target else f"; leave it out with task_options.drop=[{name}]"
            what = "there is nothing to find" if name == target else "it cannot explain anything"
            raise evo.UserError(f"{path}: column '{name}' is {values[0]:g} in every row, so {what}{advice}")
        columns[identifier] = values
    names = dict(zip(identifiers, (name for _, name in kept), strict=True))
    return Table(columns, next(identifier for identifier, name in names.items() if name == target), names)


def read_inputs(path: Path, names: Mapping[str, str]) -> dict[str, NDArray[np.float64]]:
    """The columns with these names (identifier -> name) of a CSV file, by identifier. Other columns may be there too.

    Raises:
        evo.UserError: the file cannot be read, a column is missing, or a value is wrong.
    """
    header, rows = _read_cells(path)
    for name in names.values():
        if header.count(name) != 1:
            what = f"two columns are named '{name}'" if name in header else f"no column '{name}'"
            raise evo.UserError(f"{path}:1: {what}; the formula's inputs are: {', '.join(names.values())}")
    if not len(rows):
        raise evo.UserError(f"{path}: no rows of data below the names of the columns")
    return {identifier: _numbers(path, name, rows[header.index(name)], "") for identifier, name in names.items()}


def _read_cells(path: Path):
    """The header's cells, and those of the other lines but for blank ones at the end, as text; a row's index is its line - 1."""
    import pandas as pd

    try:
        if path.is_fifo() or path.is_char_device():  # which may never end
            raise OSError("not a regular file")
        with path.open(encoding="utf-8-sig") as file:
            header = file.readline()
        for sign, name in ((";", "semicolons"), ("\t", "tabs")):
            if sign in header and "," not in header:
                raise evo.UserError(f"{path}:1: columns are separated by {name}; save it with commas, and numbers with points")
        lines = pd.read_csv(
            path, header=None, dtype=str, keep_default_na=False, skip_blank_lines=False, encoding="utf-8-sig"
        ).fillna("")
    except OSError as error:
        raise evo.UserError(f"{path}: cannot read the data: {error.strerror or error}") from error
    except pd.errors.EmptyDataError as error:
        raise evo.UserError(f"{path}: the file is empty") from error
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ")
        raise evo.UserError(f"{path}: not a table of comma-separated values in UTF-8: {reason}") from error
    rows = lines.iloc[1:]
    used = np.flatnonzero((rows != "").any(axis=1))
    return [str(cell).strip() for cell in lines.iloc[0]], rows.iloc[: used[-1] + 1 if len(used) else 0]


def _identifiers(path: Path, names: list[str]) -> list[str]:
    """A name of letters, digits and underscores for each column."""
    found: dict[str, str] = {}
    for name in names:
        identifier = evo.RegressionTask.input_name(name)
        if not identifier:
            raise evo.UserError(
                f"{path}:1: column '{name}': no input can be named so; use letters a to z, digits and _, or leave the column out "
                f"with task_options.drop=[{name}]"
            )
        if identifier in found:
            raise evo.UserError(f"{path}:1: columns '{found[identifier]}' and '{name}' would both be the input {identifier}")
        found[identifier] = name
    return list(found)


def _numbers(path: Path, name: str, cells, advice: str) -> NDArray[np.float64]:
    import pandas as pd

    cells = cells.str.strip()
    values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if len(wrong):
        cell, place = cells.iloc[wrong[0]], f"{path}:{cells.index[wrong[0]] + 1}: column '{name}'"
        if cell.lower() in MISSING:
            raise evo.UserError(f"{place}: the value is missing; fill it in or delete the row{advice}")
        if np.isnan(values[wrong[0]]):
            raise evo.UserError(f"{place}: '{cell}' is not a number; write it as one{advice}")
        raise evo.UserError(f"{place}: {cell} is beyond 1e150; correct it or delete the row{advice}")
    return values
