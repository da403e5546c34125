"""The elites of a run as CSV, one row each, for spreadsheets and pandas.

Owns the columns. Reads runs and never changes them.
"""

from __future__ import annotations

import csv
import io

from evo.language.expression import expression_of, infix_line
from evo.language.program import format_program
from evo.report.elites import cell_names, hash_text
from evo.run.run import Run


def elites_csv(run: Run) -> str:
    """The elites sorted by cell, below a line with the names of the columns.

    The cell is its index along each measure in a grid (`cell_NAME`), else its number (`cell`). Then follow the objective, each
    measure (`measure_NAME`), learned ones last, all with all their digits, the number of live instructions, the hash as
    `evo show` prints it, and the program as an expression and as text; `evo eval` reads the latter.
    """
    layout, elites, language = run.search.layout, run.search.elites(), run.search.problem.language
    problem = run.search.problem
    spanning = list(problem.spanning)
    measures = [*problem.task.measures, *(spanning if elites.latent.shape[1] else [])]
    cells = [name.split(",") for name in cell_names(run)]
    is_grid = "," in layout.cell_name(0)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(
        [
            *([f"cell_{name}" for name in spanning] if is_grid else ["cell"]),
            "objective",
            *(f"measure_{name}" for name in measures),
            "num_instructions",
            "hash",
            "expression",
            "program",
        ]
    )
    for row, indices in enumerate(cells):
        words = elites.solution[row]
        writer.writerow(
            [
                *indices,
                float(elites.objective[row]),
                *elites.measures[row].tolist(),
                *elites.latent[row].tolist(),
                int(elites.num_instructions[row]),
                hash_text(elites.hash[row]),
                infix_line(expression_of(language, words)),
                " ".join(format_program(language, words).split()),
            ]
        )
    return table.getvalue()
