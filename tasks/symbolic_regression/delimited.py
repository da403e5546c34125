"""Text tables as people have them: the cells of a file and the numbers in them, or one line that says what is wrong.

Owns encodings, separators, comments, and how numbers are written. What can be read in two ways is refused, never guessed. Knows
nothing of targets and inputs.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import evo

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
DECIMALS = {"point": ".", "comma": ","}
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
BOOLEANS = ("false", "true")
FIRST_ROWS, FIRST_CHARACTERS = 100, 1 << 20  # that tell the separator
COMMENT = "#"
NO_NAMES = "has numbers where the names of the columns belong; write the names above them"
BINARY = {b"PK": "a spreadsheet", b"\xd0\xcf": "a spreadsheet", b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file"}
BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe\0\0", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
GROUPED = r"[1-9]\d{0,2}(?P<sign>[, '\u2019\u00a0\u202f])\d{3}(?:(?P=sign)\d{3})*(?:\.\d*)?"  # signs between thousands
NUMBER = re.compile(rf"[+\u2212-]?(?:{GROUPED}|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))", re.ASCII)


@dataclass(frozen=True)
class Cells:
    """The text of a file by column, without spaces around it.

    names: of the columns; "" if one has none. line: that of the names. lines: those of the rows. separator: what stands between
    cells. has_quotes: whether a cell may contain the separator. notes: what the user should know.
    """

    path: Path
    names: list[str]
    line: int
    columns: list[pd.Series]
    lines: list[int]
    separator: str
    has_quotes: bool
    notes: tuple[str, ...]

    def place(self, column: int, row: int) -> str:
        """Place of a cell, for messages."""
        return f"{self.path}:{self.lines[row]}: column '{self.names[column]}'"


def read_cells(path: Path, separator: str | None = None) -> Cells:
    """The cells of a text file. Blank lines, comments and empty rows at the end are left out.

    Args:
        separator: what stands between cells; None: the one that gives each of the first rows as many cells as there are names.

    Raises:
        evo.UserError: the file cannot be read, has no table, or can be read in two ways.
    """
    text, notes = _text(path)
    if first := re.match(r'"?sep=(.)"?\r?\n', text):  # how spreadsheets are told
        separator, text = separator or first[1], "\n" + text[first.end() :]
    separator = separator or _separator(path, text)
    line, names, lines, rows = _rows(path, text, separator)
    while rows and not any(rows[-1]):
        rows.pop()
    while not (names[-1] or any(row[-1] for row in rows)):  # separators at the ends of lines
        names.pop()
        rows = [row[:-1] for row in rows]
    columns = [pd.Series(cells, dtype=object) for cells in (zip(*rows, strict=True) if rows else [()] * len(names))]
    return Cells(path, names, line, columns, lines[: len(rows)], separator, '"' in text, notes)


def is_number(cell: str) -> bool:
    """Return whether a cell is a number in some way of writing."""
    return bool(NUMBER.fullmatch(cell) or NUMBER.fullmatch(_swapped(cell)))


def _swapped(text: str) -> str:
    """Numbers with decimal commas as numbers with decimal points."""
    return text.replace(",", "\1").replace(".", ",").replace("\1", ".")


def is_missing(cells: pd.Series) -> pd.Series:
    """A mask of the cells that have no value."""
    return cells.str.lower().isin(MISSING)


def is_boolean(cells: pd.Series) -> bool:
    """Return whether the first cell that is not missing is True or False."""
    return next((cell for cell in map(str.lower, cells) if cell not in MISSING), "") in BOOLEANS


def values_of(cells: pd.Series, decimal: str) -> NDArray[np.float64]:
    """The numbers in cells; NaN where there is none. In a column of True and False these are 1 and 0."""
    if is_boolean(cells):
        return cells.str.lower().map({"true": 1.0, "false": 0.0}).to_numpy(np.float64)
    cells = pd.Series(_swapped("\0".join(cells)).split("\0"), dtype=object) if decimal == "," else cells  # fast for all at once
    values = pd.to_numeric(cells, errors="coerce")
    rest = cells[values.isna()]
    rest = rest[rest.str.fullmatch(NUMBER)]
    values[rest.index] = pd.to_numeric(rest.str.replace("[, '\u2019\u00a0\u202f]", "", regex=True).str.replace("\u2212", "-"))
    return values.to_numpy(np.float64)


def decimal_of(cells: Cells, columns: Mapping[int, pd.Series], unclear: str | None = None) -> str | None:
    """The decimal sign of columns by their place; None: no cell has one, nor a sign between thousands.

    Args:
        unclear: the sign where cells such as 1,234 leave it open; None: that is refused.

    Raises:
        evo.UserError: cells contradict each other, or leave it open.
    """
    if cells.separator == "," and not cells.has_quotes:
        return "."
    found: dict[str, tuple[str, str]] = {}  # sign -> place and text of the first cell that has it
    either: tuple[str, str] | None = None

    def first_of(which: NDArray[np.bool_], column: int) -> tuple[str, str] | None:
        row = int(which.argmax())
        return (cells.place(column, row), columns[column].iloc[row]) if which.any() else None

    for column, texts in columns.items():
        point, comma = values_of(texts, "."), values_of(texts, ",")
        if not is_missing(texts[np.isnan(point) & np.isnan(comma)]).all():
            continue  # text, which says nothing
        for sign, which in ((".", ~np.isnan(point) & np.isnan(comma)), (",", np.isnan(point) & ~np.isnan(comma))):
            if sign not in found and (cell := first_of(which, column)):
                found[sign] = cell
        either = either or first_of(~np.isnan(point) & ~np.isnan(comma) & (point != comma), column)
    if len(found) == 2:
        (place, with_comma), (other, with_point) = found[","], found["."]
        raise evo.UserError(
            f"{place}: '{with_comma}' has a decimal comma, but '{with_point}' ({other}) a point; write both alike"
        )
    if found or either is None:
        return next(iter(found), None)
    place, cell = either
    if unclear is None and cells.separator == "," and "." in cell:
        return "."  # the form that all programs write; those with decimal commas separate by semicolons or tabs
    if unclear is None:
        as_thousands, as_decimal = re.sub("[.,]", "", cell), cell.replace(",", ".")
        raise evo.UserError(
            f"{place}: '{cell}' may be {as_decimal} or {as_thousands}, and no other cell tells which; write it plainly, or say "
            f"which by task_options.decimal={'comma' if ',' in cell else 'point'} or {'point' if ',' in cell else 'comma'}"
        )
    return unclear


def _text(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and what the user should know of its encoding."""
    try:
        if path.is_fifo() or path.is_char_device():  # which may never end
            raise OSError("not a regular file")
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise evo.UserError(f"{path}: cannot read the data: {getattr(error, 'strerror', None) or error}") from error
    for start, what in BINARY.items():
        if data.startswith(start):
            raise evo.UserError(f"{path}: is {what}; save the table as CSV")
    encoding = next((name for bom, name in BOMS if data.startswith(bom)), "utf-8")
    notes: tuple[str, ...] = ()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise evo.UserError(f"{path}: is not the {encoding} that its first bytes promise: {error.reason}") from error
        text = data.decode("cp1252", "replace")
        line, start = data[: error.start].count(b"\n") + 1, data.rfind(b"\n", 0, error.start) + 1
        shown = data[start:].partition(b"\n")[0].decode("cp1252", "replace").strip()[:60]
        notes = (f"{path}:{line}: is not UTF-8, so it is read as Windows-1252; check this line: {shown}",)
    if "\0" in text:
        raise evo.UserError(f"{path}: has NUL characters, so it is not a text file; save the table as CSV in UTF-8")
    if not text.strip():
        raise evo.UserError(f"{path}: the file is empty")
    return text, notes


def _separator(path: Path, text: str) -> str:
    """The separator that gives each of the first rows as many cells as there are names, which are at least two."""
    names: dict[str, int] = {}
    fits = []
    text = text[: text.rfind("\n", 0, FIRST_CHARACTERS)] if len(text) > FIRST_CHARACTERS else text
    for name, sign in SEPARATORS.items():
        if sign == " " and any(count > 1 for count in names.values()):
            continue  # names may have spaces
        try:
            names[sign] = 0
            names[sign] = len(_rows(path, text, sign, 0)[1])
            if names[sign] > 1 and _rows(path, text, sign, FIRST_ROWS):
                fits.append(name)
        except evo.UserError:
            continue
    if len(fits) > 1:
        line, header, *_ = _rows(path, text, SEPARATORS[fits[0]], 0)
        if not re.search(r"[^\W\d_]", "".join(header)):
            raise evo.UserError(f"{path}:{line}: {NO_NAMES}")
        raise evo.UserError(
            f"{path}: columns may be separated by {fits[0]} or by {fits[1]}; say which by task_options.separator={fits[0]} or "
            f"{fits[1]}"
        )
    return SEPARATORS[fits[0]] if fits else max(",;\t|", key=names.__getitem__)


def _records(path: Path, text: str, sign: str) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each line that is not blank."""
    file = io.StringIO(text, newline="")
    lines = (" ".join(line.split()) + "\n" for line in file) if sign == " " else file
    reader, end = csv.reader(lines, delimiter=sign, skipinitialspace=True, strict=True), 0
    try:
        for cells in reader:
            if cells and cells != [""]:
                yield end + 1, [cell.strip() for cell in cells]
            end = reader.line_num
    except csv.Error as error:
        raise evo.UserError(f"{path}:{end + 1}: quotes do not match: {error}") from error


def _rows(path: Path, text: str, sign: str, most: int | None = None) -> tuple[int, list[str], list[int], list[list[str]]]:
    """Line and cells of the names, and of the first `most` rows; None: all rows."""
    records = _records(path, text, sign)
    commented, comment = 0, [""]
    for line, names in records:
        if not names[0].startswith(COMMENT):
            break
        commented, comment = line, [names[0].lstrip(COMMENT).strip(), *names[1:]]
        comment = comment[sign == " " and not comment[0] :]
    else:
        raise evo.UserError(f"{path}: the file has comments alone")
    if commented and len(comment) == len(names) and all(map(is_number, names)):  # as np.savetxt writes names
        records = itertools.chain([(line, names)], records)
        line, names = commented, comment
    lines, rows, count = [], [], len(names)
    for number, cells in itertools.islice(records, most):
        if cells[0].startswith(COMMENT) and len(cells) != count:
            continue
        if len(cells) < count or any(cells[count:]):
            hint = (
                "; with decimal commas, columns are separated by semicolons or tabs" if sign == "," and len(cells) > count else ""
            )
            raise evo.UserError(f"{path}:{number}: {len(cells)} cells, but line {line} has {count} names{hint}")
        lines.append(number)
        rows.append(cells[:count])
    return line, names, lines, rows
