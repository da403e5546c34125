"""How an elite came about: its line of first parents, from a random program on.

Owns what is told of each ancestor. `evo.search.ancestry` owns which are remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.language.expression import expression_of, infix_line
from evo.report.show import operator_name, row_of_elite
from evo.run.run import Run
from evo.search.ancestry import line_of
from evo.search.emitter import GIVEN, RANDOM

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

    def rows_of(self, row: int) -> NDArray[np.int64]:
        """The rows of `records` that `of` tells of."""
        return line_of(self.records.facts, int(self.numbers[row]))

    def of(self, row: int) -> list[Ancestor]:
        """The line of the elite in a row of the archive's elites, oldest first, itself last; empty if it is not known."""
        facts, layout, rows = self.records.facts, self._run.search.layout, self.rows_of(row)
        programs = self.records.programs(rows, self._run.search.problem.config.program.max_length)
        return [
            Ancestor(
                generation=int(record["generation"]),
                slot=int(record["slot"]),
                cell=layout.cell_name(int(record["cell"])),
                objective=float(record["objective"]),
                operator=operator_name(int(record["operator"])),
                second_parent=self._place_of(int(record["parents"][1])),
                words=words,
            )
            for record, words in zip(facts[rows], programs, strict=True)
        ]

    def _place_of(self, number: int) -> tuple[str, int] | None:
        if number not in self._rows:
            return None
        record: Any = self.records.facts[self._rows[number]]
        return self._run.search.layout.cell_name(int(record["cell"])), int(record["generation"])


def describe_lineage(run: Run, cell: str | None) -> str:
    """The line of an elite as a table.

    Args:
        cell: of the elite; None: the best.

    Raises:
        UserError: there is no such elite, or the lineage log is damaged.
    """
    row, lines = row_of_elite(run, cell), LinesOfDescent(run)
    name = run.search.layout.cell_name(int(run.search.elites().cell[row]))
    line = lines.of(row)
    if not line:
        return f"# lineage of cell {name}: not known (output.lineage_megabytes, or a run of an earlier version)\n"
    first = int(lines.records.facts["operator"][lines.rows_of(row)[0]])
    forgotten = "its beginning is forgotten (output.lineage_megabytes)"
    begins = {RANDOM: "from a random program on", GIVEN: "from a given program on"}.get(first, forgotten)
    table = [("generation", "slot", "cell", "objective", "operator", "second parent", "expression")]
    for each in line:
        other = f"{each.second_parent[0]} of {each.second_parent[1]}" if each.second_parent else ""
        text = infix_line(expression_of(run.search.problem.language, each.words), MAX_TEXT)
        table.append((str(each.generation), str(each.slot), each.cell, f"{each.objective:.6g}", each.operator, other, text))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = ["  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip() for texts in table]
    count = "1 program" if len(line) == 1 else f"{len(line)} programs"
    return f"# lineage of cell {name}: {count}, {begins}\n" + "".join(f"{each}\n" for each in rows)
