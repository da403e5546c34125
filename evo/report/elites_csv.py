"""The elites of a run as CSV, one row each, for spreadsheets and pandas.

Owns the columns. Reads runs and never changes them.
"""

import csv
import io
from collections.abc import Iterable

from evo.escape import cell
from evo.language.formula_text import infix_line
from evo.report.elites import cell_names, hash_text, program_lines
from evo.report.recompute import program_expression
from evo.run.run import Run


def elites_csv(run: Run) -> str:
    """The elites sorted by cell, below a line with the names of the columns.

    The cell is its index along each measure in a grid (`cell_NAME`), else its number (`cell`). Then follow the objective, each
    measure (`measure_NAME`), all with all their digits, the number of live instructions, the hash as
    `evo show` prints it, and the program as an expression and as text; `evo eval` reads the latter.
    """
    problem, elites, cells = run.search.problem, run.search.elites(), [name.split(",") for name in cell_names(run)]
    names = list(problem.task.measures)
    cell_columns = [f"cell_{name}" for name in names] if "," in run.search.layout.cell_name(0) else ["cell"]
    columns: dict[str, Iterable[object]] = {
        **{name: [cell[axis] for cell in cells] for axis, name in enumerate(cell_columns)},
        "objective": elites.objective.tolist(),
        **{f"measure_{name}": values for name, values in zip(names, elites.measures.T.tolist(), strict=True)},
        "num_instructions": elites.num_instructions.tolist(),
        "hash": map(hash_text, elites.hash),
        "expression": [infix_line(program_expression(problem, words)) for words in elites.solution],
        "program": [line if cell(line) == line else f" {line}" for line in program_lines(problem.language, elites.solution)],
    }
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(map(cell, columns))
    writer.writerows(map(cell, row) for row in zip(*columns.values(), strict=True))
    return table.getvalue()
