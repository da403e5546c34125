"""How elites came about, as far as it is known: by the run's lineage log, or by what the archive has of their parents.

Owns which ancestors are told of. Knows nothing of how they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.report.lineage import LinesOfDescent
from evo.report.show import operator_name
from evo.run.run import Run
from evo.search.ancestry import RECORD_DTYPE, joined

LINE_LENGTHS = (12, 6, 3, 2)  # programs of a line that are shown, itself among them; the first that leaves few enough ancestors
MAX_ANCESTORS = 2000  # of all lines together


@dataclass(frozen=True)
class Origins:
    """The origins of a page's elites.

    elites: JSON data, one each: `generation`, `slot`, `operator`; `parents`, pairs of a cell's name and the parent's place among
    the elites, null if it has been replaced; `line`, numbers of the programs of its line of first parents that are shown, oldest
    first, itself last; `length` of the whole line; `end`: `complete`, `forgotten`, or `archive` where only ancestors that are
    still elites are known. A number of a line is a place among the elites or, from their count on, among the ancestors.
    facts: `(n,)` of RECORD_DTYPE, the ancestors that are no elites. words: `(n, max_length)`, theirs.
    note: why the lineage log cannot be read; None: it can, or there is none.
    """

    elites: list[dict[str, Any]]
    facts: NDArray[Any]
    words: NDArray[np.uint64]
    note: str | None


def origins(run: Run, rows: NDArray[np.int64]) -> Origins:
    """The origins of the elites in these rows of `run.search.elites()`, in this order."""
    elites, places = run.search.elites(), {int(row): place for place, row in enumerate(rows)}
    records, note, lines = joined([]), None, None
    try:
        lines = LinesOfDescent(run)
        records = lines.records
    except UserError as error:
        note = " ".join(str(error).splitlines())
    parents = [_parents(run, int(row), places) for row in rows]
    place_of_number = {}
    if lines:
        place_of_number = {number: place for place, number in enumerate(lines.numbers[rows].tolist())}
    # A line's programs: places of elites, or -1 - the row of a record.
    found: list[list[int]] = []
    ends: list[str] = []
    for place, row in enumerate(rows.tolist()):
        of_line = lines.rows_of(row) if lines else np.zeros(0, np.int64)
        numbers = records.facts["number"][of_line].tolist()
        line = [place_of_number.get(number, -1 - record) for number, record in zip(numbers, of_line.tolist(), strict=True)]
        found.append(line or _still_there(place, parents))
        first = int(records.facts["operator"][of_line[0]] if len(of_line) else elites.operator[rows[found[-1][0]]])
        ends.append("complete" if first < 0 else "forgotten" if len(of_line) else "archive")
    for most in LINE_LENGTHS:
        shown = [_steps(line, most) for line in found]
        ancestors = np.unique([-1 - each for line in shown for each in line if each < 0]).astype(np.int64)
        if len(ancestors) <= MAX_ANCESTORS:
            break
    number_of = {-1 - record: len(rows) + number for number, record in enumerate(ancestors.tolist())}
    return Origins(
        elites=[
            {
                "generation": int(elites.generation[row]),
                "slot": int(elites.slot[row]),
                "operator": operator_name(int(elites.operator[row])),
                "parents": parents[place],
                "line": [number_of.get(each, each) for each in shown[place]],
                "length": len(found[place]),
                "end": ends[place],
            }
            for place, row in enumerate(rows.tolist())
        ],
        facts=records.facts[ancestors] if len(ancestors) else np.zeros(0, RECORD_DTYPE),
        words=records.programs(ancestors, run.search.problem.config.program.max_length),
        note=note,
    )


def _parents(run: Run, child: int, places: dict[int, int]) -> list[tuple[str, int | None]]:
    """An elite's parents: the names of their cells, and their places.

    An archive knows parents by their cells. A parent is still there if the elite of its cell is older than the child, since an
    elite's generation is that in which it took the cell. While a search has starts, parents are of another population.
    """
    layout, elites, starts = run.search.layout, run.search.elites(), run.search.problem.config.search.starts
    born = int(elites.generation[child])
    is_of_archive = born >= starts.count * starts.generations
    found = []
    for cell in dict.fromkeys(elites.parents[child].tolist()):
        if cell < 0:
            continue
        row = int(np.searchsorted(elites.cell, cell))
        is_there = row < len(elites) and elites.cell[row] == cell and elites.generation[row] < born and is_of_archive
        found.append((layout.cell_name(int(cell)), places.get(row) if is_there else None))
    return found


def _still_there(place: int, parents: list[list[tuple[str, int | None]]]) -> list[int]:
    """The line of an elite as far as its first parents are elites."""
    line: list[int] = []
    at: int | None = place
    while at is not None:
        line.append(at)
        at = parents[at][0][1] if parents[at] else None
    return line[::-1]


def _steps(line: list[int], most: int) -> list[int]:
    """Programs of a line at even steps from its beginning, and its last.

    Steps are powers of two, so that lines which begin alike show the same programs.
    """
    step = 1
    while -(-(len(line) - 1) // step) > most - 1:
        step *= 2
    return [*line[:-1:step], line[-1]]
