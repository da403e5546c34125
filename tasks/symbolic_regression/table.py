"""Tables for symbolic regression: numbers by column, or one line that says which cell is wrong.

Owns which columns are inputs, and their names. Knows nothing of training and test points.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import evo

from .delimited import DECIMALS, MISSING, NO_NAMES, SEPARATORS, Cells, decimal_of, is_boolean, is_number, read_cells, values_of

LARGEST = 1e150  # squares stay within float64


@dataclass(frozen=True)
class Table:
    """The columns of a file by identifier.

    target: that of the target. names: identifier -> what the file calls it. decimal: the decimal sign; None: no cell tells.
    left_out: column, quoted if it has a name -> why it cannot be an input. notes: what the user should know.
    """

    columns: dict[str, NDArray[np.float64]]
    target: str
    names: dict[str, str]
    decimal: str | None
    left_out: dict[str, str]
    notes: tuple[str, ...]


def read_table(path: Path, target: str, drop: Sequence[str], min_rows: int, separator: str | None, decimal: str | None) -> Table:
    """The columns of a text file but for those to drop, among which the target may be, and those that can be no input.

    Args:
        separator, decimal: a name in SEPARATORS and DECIMALS; None: the file tells.

    Raises:
        evo.UserError: the file cannot be read, or a name or a value is wrong.
    """
    cells = read_cells(path, SEPARATORS[separator] if separator else None)
    header = cells.names
    is_named = target in header and all(re.fullmatch(r"\d*", name) for name in header)  # such as years
    if all(is_number(name) or not name for name in header) and not is_named:
        raise evo.UserError(f"{path}:{cells.line}: {NO_NAMES}")
    for number, name in enumerate(header):
        if name and header.index(name) != number:
            raise evo.UserError(f"{path}:{cells.line}: two columns are named '{name}'")
    listed = ", ".join(name or "(no name)" for name in header)
    if target not in header or not target:
        raise evo.UserError(f"{path}:{cells.line}: no column '{target}' (task_options.target); the columns are: {listed}")
    for name in drop:
        if name not in header:
            raise evo.UserError(f"{path}: '{name}' in task_options.drop is not a column; the columns are: {listed}")
    if len(cells.lines) < min_rows:
        raise evo.UserError(f"{path}: {len(cells.lines)} rows of data, needs at least {min_rows}")
    kept = {place: cells.columns[place] for place, name in enumerate(header) if name == target or name not in drop}
    left_out = {}
    for place in [place for place in kept if header[place] != target]:
        if reason := _unusable(header[place], kept[place]):
            left_out[f"'{header[place]}'" if header[place] else f"{place + 1}"] = reason
            del kept[place]
    sign = DECIMALS[decimal] if decimal else decimal_of(cells, kept)
    identifiers = dict(zip(kept, evo.RegressionTask.input_names([header[place] for place in kept]), strict=True))
    columns = {}
    for place in kept:
        advice = "" if header[place] == target else f", or leave the column out with task_options.drop=[{header[place]}]"
        values = _numbers(cells, place, sign or ".", advice)
        if values.min() < values.max():
            columns[identifiers[place]] = values
        elif header[place] == target:
            raise evo.UserError(f"{path}: column '{target}' is {values[0]:g} in every row, so there is nothing to find")
        else:
            left_out[f"'{header[place]}'"] = f"is {values[0]:g} in every row"
    if len(columns) < 2:
        reasons = "".join(f"; column {name} {reason}" for name, reason in left_out.items())
        raise evo.UserError(f"{path}: no column but the target '{target}' is left; at least one must be an input{reasons}")
    names = {identifier: header[place] for place, identifier in identifiers.items() if identifier in columns}
    notes = [f"{path}: left out column {name}, which {reason}" for name, reason in left_out.items()]
    notes += [f"{path}: column '{name}' is the input {each} of programs and code" for each, name in names.items() if each != name]
    return Table(columns, identifiers[header.index(target)], names, sign, left_out, (*cells.notes, *notes))


def read_inputs(
    path: Path, names: Mapping[str, str], separator: str | None, decimal: str | None
) -> dict[str, NDArray[np.float64]]:
    """The columns with these names (identifier -> name) of a text file, by identifier. Other columns may be there too.

    Args:
        separator: as for `read_table`, if the file does not tell.
        decimal: the decimal sign, if the file does not tell.

    Raises:
        evo.UserError: the file cannot be read, a column is missing, or a value is wrong.
    """
    try:
        cells = read_cells(path)
    except evo.UserError:
        if separator is None:
            raise
        cells = read_cells(path, SEPARATORS[separator])
    for name in names.values():
        if cells.names.count(name) != 1:
            what = f"two columns are named '{name}'" if name in cells.names else f"no column '{name}'"
            raise evo.UserError(f"{path}:{cells.line}: {what}; the formula's inputs are: {', '.join(names.values())}")
    if not cells.lines:
        raise evo.UserError(f"{path}: no rows of data below the names of the columns")
    used = {cells.names.index(name): cells.columns[cells.names.index(name)] for name in names.values()}
    sign = decimal_of(cells, used, decimal) or decimal or "."
    return {identifier: _numbers(cells, cells.names.index(name), sign, "") for identifier, name in names.items()}


def _unusable(name: str, cells) -> str | None:
    """Why a column can be no input, if no cell of it is a number."""
    if not name or re.fullmatch(r"Unnamed: \d+", name):  # the index, as pandas writes and reads it
        return "has no name"
    first = next((cell for cell in cells if cell.lower() not in MISSING), None)
    if first is None:
        return "has no values"
    if is_number(first) or is_boolean(cells) or any(map(is_number, cells)):
        return None
    return f"is text, such as '{first[:40]}'"


def _numbers(cells: Cells, column: int, decimal: str, advice: str) -> NDArray[np.float64]:
    values = values_of(cells.columns[column], decimal)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if len(wrong):
        row = int(wrong[0])
        cell, place = cells.columns[column].iloc[row], cells.place(column, row)
        if cell.lower() in MISSING:
            raise evo.UserError(f"{place}: the value is missing; fill it in or delete the row{advice}")
        if np.isnan(values[row]):
            sign = {".": "decimal point", ",": "decimal comma"}[decimal]
            what = f"no number with a {sign}, as others in this file" if is_number(cell) else "not a number"
            what = "neither True nor False, as other cells are" if is_boolean(cells.columns[column]) else what
            raise evo.UserError(f"{place}: '{cell[:40]}' is {what}; write it as one{advice}")
        raise evo.UserError(f"{place}: {cell} is beyond 1e150; correct it or delete the row{advice}")
    return values
