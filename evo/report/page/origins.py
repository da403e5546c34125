"""Where elites came from, as far as an archive knows.

Owns which of an elite's parents are still there. Knows nothing of how origins are shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evo.report.show import operator_name
from evo.run.run import Run


def origins(run: Run) -> list[dict[str, Any]]:
    """The origin of each elite as JSON data, in the order of `run.search.elites()`.

    An archive knows parents by their cells. A parent is still there if the elite of its cell is older than the child, since an
    elite's generation is that in which it took the cell. While a search has starts, parents are of another population.

    Returns:
        For each elite `generation`, `slot`, `operator`, and `parents`: pairs of a cell's name and the parent's row among the
        elites, null if it has been replaced.
    """
    search = run.search
    layout, elites, starts = search.layout, search.elites(), search.problem.config.search.starts
    first = starts.count * starts.generations  # generation whose parents are elites of the archive
    rows = {int(cell): row for row, cell in enumerate(elites.cell)}

    def parent(child: int, cell: int) -> tuple[str, int | None]:
        row = rows.get(cell)
        born = int(elites.generation[child])
        is_there = row is not None and elites.generation[row] < born and born >= first
        return layout.cell_name(cell), row if is_there else None

    return [
        {
            "generation": int(elites.generation[row]),
            "slot": int(elites.slot[row]),
            "operator": operator_name(int(elites.operator[row])),
            "parents": [parent(row, int(cell)) for cell in dict.fromkeys(elites.parents[row].tolist()) if cell >= 0],
        }
        for row in np.arange(len(elites)).tolist()
    ]
