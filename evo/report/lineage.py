"""Lineage of elites, as text.

Owns which ancestors are listed, and what is said of each, by the run's lineage log.
`evo.search.lineage` owns which are remembered.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import plural
from evo.language.formula_text import infix_line
from evo.report.elites import cell_names, operator_name
from evo.report.pareto import row_of_elite
from evo.report.recompute import program_expression
from evo.report.table import shortened, table
from evo.run.run import Run
from evo.search.emitter import GIVEN, RANDOM
from evo.search.lineage_records import lines_of

MAX_TEXT = 100  # characters of an expression


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
