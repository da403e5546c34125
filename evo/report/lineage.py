"""Lineage of elites: as text, and as JSON data for the page.

Owns which ancestors are listed, and what is said of each: by the run's lineage log, or by what the archive has of their parents.
`evo.search.lineage` owns which are remembered.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, one_line, plural
from evo.language.formula_text import infix_line
from evo.report.elites import cell_names, operator_name
from evo.report.pareto import row_of_elite
from evo.report.recompute import program_expression
from evo.report.table import shortened, table
from evo.run.run import Run
from evo.search.archives.elites import Elites
from evo.search.emitter import GIVEN, RANDOM
from evo.search.lineage_records import RECORD_DTYPE, joined, lines_of

MAX_TEXT = 100  # characters of an expression
LINE_LENGTHS = (12, 6, 3, 2)  # programs of a line that are shown, itself among them; the first that leaves few enough ancestors
MAX_ANCESTORS = 2000  # of all lines together


@dataclass(frozen=True)
class Ancestor:
    """A program of a line of descent.

    objective: its own. operator: how it was made of its parents. cell: where it became an elite. second_parent: the cell and
    generation of the other parent; None without one, or if it is forgotten. words: `(max_length,)`.
    """

    generation: int
    slot: int
    cell: str
    objective: float
    operator: str
    second_parent: tuple[str, int] | None
    words: NDArray[np.uint64]


class LinesOfDescent:
    """The ancestors of a run's elites.

    Attributes:
        records: the programs that are remembered.
        numbers: of the elites' records, in the order of `run.search.elites()`; NONE of those that have none.

    Raises:
        UserError: the run's lineage log is damaged.
    """

    def __init__(self, run: Run):
        self._run = run
        self.records = run.records()
        self.numbers = run.search.record_numbers()

    @cached_property
    def _rows(self) -> dict[int, int]:
        return {number: row for row, number in enumerate(self.records.facts["number"].tolist())}

    def rows_of(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """For each of these rows of elites the rows of `records` that `line` describes."""
        return lines_of(self.records.facts, self.numbers[rows])

    def line(self, row: int) -> list[Ancestor]:
        """The line of the elite in a row of the archive's elites, oldest first, itself last; empty if it is not known."""
        facts, layout, [rows] = self.records.facts, self._run.search.layout, self.rows_of(np.array([row]))
        programs = self.records.programs(rows, self._run.search.problem.config.program.max_length)
        return [
            Ancestor(
                generation=int(record["generation"]),
                slot=int(record["slot"]),
                cell=layout.cell_name(int(record["cell"])),
                objective=float(record["objective"]),
                operator=operator_name(int(record["operator"])),
                second_parent=self._cell_of(int(record["parents"][1])),
                words=words,
            )
            for record, words in zip(facts[rows], programs, strict=True)
        ]

    def _cell_of(self, number: int) -> tuple[str, int] | None:
        if number not in self._rows:
            return None
        record: Any = self.records.facts[self._rows[number]]
        return self._run.search.layout.cell_name(int(record["cell"])), int(record["generation"])


def describe_lineage(run: Run, name: str | None) -> str:
    """The line of an elite as a table.

    Args:
        name: of the elite, as in `row_of_elite`.

    Raises:
        UserError: there is no such elite, or the lineage log is damaged.
    """
    row, lines = row_of_elite(run, name), LinesOfDescent(run)
    [cell] = cell_names(run, [row])
    line = lines.line(row)
    if not line:
        return f"# lineage of cell {cell}: not known (output.lineage_megabytes, or a run of an earlier version)\n"
    first = int(lines.records.facts["operator"][lines.rows_of(np.array([row]))[0][0]])
    forgotten = "its beginning is forgotten (output.lineage_megabytes)"
    begins = {RANDOM: "from a random program on", GIVEN: "from a given program on"}.get(first, forgotten)
    rows = [("generation", "slot", "cell", "objective", "operator", "second parent", "expression")]
    for step in line:
        partner = f"{step.second_parent[0]} of {step.second_parent[1]}" if step.second_parent else ""
        text = shortened(infix_line(program_expression(run.search.problem, step.words)), MAX_TEXT)
        rows.append((str(step.generation), str(step.slot), step.cell, f"{step.objective:.6g}", step.operator, partner, text))
    count = plural(len(line), "program")
    return f"# lineage of cell {cell}: {count}, {begins}\n" + table(rows)


@dataclass(frozen=True)
class Origins:
    """The origins of a page's elites.

    elites: JSON data, one each: `generation`, `slot`, `operator`; `parents`, pairs of a cell's name and the parent's place among
    the elites, null if it has been replaced; `line`, numbers of the programs of its line of first parents that are shown, oldest
    first, itself last; `length` of the whole line; `end`: `complete`, `forgotten`, or `archive` where only ancestors that are
    still elites are known. A number of a line is a place among the elites or, from their count on, among the ancestors.
    facts: `(n,)` of RECORD_DTYPE, the ancestors that are not elites. words: `(n, max_length)`, theirs.
    note: why the lineage log cannot be read; None: it can, or there is none.
    """

    elites: list[dict[str, Any]]
    facts: NDArray[Any]
    words: NDArray[np.uint64]
    note: str | None


def origins(run: Run, rows: NDArray[np.int64]) -> Origins:
    """The origins of the elites in these rows of `run.search.elites()`, in this order."""
    elites, positions = run.search.elites(), {int(row): position for position, row in enumerate(rows)}
    records, note, lines = joined([]), None, None
    try:
        lines = LinesOfDescent(run)
        records = lines.records
    except UserError as error:
        note = one_line(error)
    parents = [_parents(run, elites, int(row), positions) for row in rows]
    position_of_number = {}
    if lines:
        position_of_number = {number: position for position, number in enumerate(lines.numbers[rows].tolist())}
    # A line's programs: positions of elites, or -1 - the row of a record.
    of_lines = lines.rows_of(rows) if lines else [np.zeros(0, np.int64)] * len(rows)
    full_lines: list[list[int]] = []
    ends: list[str] = []
    for position, of_line in enumerate(of_lines):
        numbers = records.facts["number"][of_line].tolist()
        line = [position_of_number.get(number, -1 - record) for number, record in zip(numbers, of_line.tolist(), strict=True)]
        full_lines.append(line or _still_there(position, parents))
        first = int(records.facts["operator"][of_line[0]] if len(of_line) else elites.operator[rows[full_lines[-1][0]]])
        ends.append("complete" if first < 0 else "forgotten" if len(of_line) else "archive")
    for most in LINE_LENGTHS:
        shown = [_steps(line, most) for line in full_lines]
        ancestors = np.unique([-1 - member for line in shown for member in line if member < 0]).astype(np.int64)
        if len(ancestors) <= MAX_ANCESTORS:
            break
    number_of = {-1 - record: len(rows) + number for number, record in enumerate(ancestors.tolist())}
    return Origins(
        elites=[
            {
                "generation": int(elites.generation[row]),
                "slot": int(elites.slot[row]),
                "operator": operator_name(int(elites.operator[row])),
                "parents": parents[position],
                "line": [number_of.get(member, member) for member in shown[position]],
                "length": len(full_lines[position]),
                "end": ends[position],
            }
            for position, row in enumerate(rows.tolist())
        ],
        facts=records.facts[ancestors] if len(ancestors) else np.zeros(0, RECORD_DTYPE),
        words=records.programs(ancestors, run.search.problem.config.program.max_length),
        note=note,
    )


def _parents(run: Run, elites: Elites, child: int, positions: dict[int, int]) -> list[tuple[str, int | None]]:
    """An elite's parents: the names of their cells, and their positions.

    An archive knows parents by their cells. A parent is still there if the elite of its cell is older than the child, since an
    elite's generation is that in which it took the cell. While a search has starts, parents are of another population.
    """
    layout, starts = run.search.layout, run.search.problem.config.search.starts
    born = int(elites.generation[child])
    is_of_archive = born >= starts.count * starts.generations
    parents = []
    for cell in dict.fromkeys(elites.parents[child].tolist()):
        if cell < 0:
            continue
        row = int(np.searchsorted(elites.cell, cell))
        is_there = row < len(elites) and elites.cell[row] == cell and elites.generation[row] < born and is_of_archive
        parents.append((layout.cell_name(int(cell)), positions.get(row) if is_there else None))
    return parents


def _still_there(position: int, parents: list[list[tuple[str, int | None]]]) -> list[int]:
    """The line of an elite as far as its first parents are elites."""
    line: list[int] = []
    at: int | None = position
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
