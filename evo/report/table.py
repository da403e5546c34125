"""Text in aligned columns.

Owns the padding. Knows nothing of what stands in the columns.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence


def aligned(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """A line for each row, two spaces between its columns, those in `right` aligned to the right; all lines are equally long."""
    columns = [*zip(*rows, strict=True)]
    padded = []
    for number, column in enumerate(columns):
        width = max(map(len, column))
        padded.append([text.rjust(width) if number in right else text.ljust(width) for text in column])
    return ["  ".join(line) for line in zip(*padded, strict=True)]


def table(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> str:
    """As `aligned`, as one text without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in aligned(rows, right))
