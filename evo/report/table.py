"""Tables as text in aligned columns, and as files.

Owns the padding. Knows nothing of what stands in the columns.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo.escape import cell
from evo.storage.files import write_outputs

if TYPE_CHECKING:
    import pandas as pd


def aligned(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """A line for each row, two spaces between its columns, those in `right` aligned to the right; all lines are equally long."""
    columns = [*zip(*rows, strict=True)]
    padded = []
    for number, column in enumerate(columns):
        width = max(map(len, column))
        padded.append([text.rjust(width) if number in right else text.ljust(width) for text in column])
    return ["  ".join(line) for line in zip(*padded, strict=True)]


def shortened(text: str, most: int | None) -> str:
    """A text that is cut to this many characters; None: all of it."""
    return text if most is None or len(text) <= most else f"{text[: most - 3]}..."


def table(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> str:
    """As `aligned`, as one text without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in aligned(rows, right))


def write_csv(path: str, frame: pd.DataFrame) -> None:
    """Replaces a CSV file as a whole. Raises UserError if it cannot be written."""
    write_outputs({Path(path).absolute(): csv_text(frame).encode()}, [])


def csv_text(frame: pd.DataFrame, na_rep: str = "") -> str:
    """A table as CSV, with texts as spreadsheets take them. na_rep: what stands for NaN."""
    shown = frame.rename(columns=cell).apply(lambda column: column if column.dtype.kind in "biuf" else column.map(cell))
    return str(shown.to_csv(index=False, lineterminator="\n", na_rep=na_rep))
