"""The elites that cells had before their present ones, as JSON data, and which of the large lines of descent each belongs to.

Owns how much of it the page has where a run is long. Knows nothing of looks.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.run.run import Run
from evo.search.lineage_records import NONE, Records

MOMENTS = 256  # of the run: of the elites that a cell had between two moments, the page has the last
NUM_LINES = 12  # that are told apart, by their present elites


def timeline(run: Run, rows: NDArray[np.int64], records: Records) -> list[dict[str, Any]]:
    """Past of the elites in these rows of `run.search.elites()`, in this order.

    Args:
        records: the run's, as far as they are remembered.

    Returns:
        For each, `line`: the number of its line of first parents by how many present elites are of it, from 0; NONE: of a smaller
        line, or not known. `past`: `[generation, objective, line]` one after the other, of the earlier elites of its cell, the
        oldest first. Cells of learned measures have no past: they do not stay where they are.
    """
    elites, facts = run.search.elites(), records.facts
    own_numbers = run.search.record_numbers()
    founders = _founders(records)
    numbers, of_present = np.unique(founders[np.isin(facts["number"], own_numbers)], return_counts=True)
    lines = np.full(len(facts) + 1, NONE)  # by founder; the last: of an unknown one
    largest = numbers[np.argsort(-of_present, kind="stable")[:NUM_LINES]]
    lines[largest] = np.arange(len(largest))
    line_of = dict(zip(facts["number"].tolist(), lines[founders].tolist(), strict=True))
    pasts: dict[int, list[float]] = {}
    for row in (
        []
        if run.search.problem.config.search.learning.is_spanning
        else _kept(facts, own_numbers, run.search.counters.generations)
    ):
        fact = facts[row]
        objective = float(f"{fact['objective']:.5g}")
        pasts.setdefault(int(fact["cell"]), []).extend([int(fact["generation"]), objective, int(lines[founders[row]])])
    return [
        {"line": line_of.get(int(own_numbers[row]), NONE), "past": pasts.get(int(elites.cell[row]), [])} for row in rows.tolist()
    ]


def _founders(records: Records) -> NDArray[np.int64]:
    """The row of the record with which the line of first parents of each record begins, as far as it is remembered."""
    numbers, parents = records.facts["number"], records.facts["parents"][:, 0]
    rows = np.searchsorted(numbers, parents).clip(max=len(numbers) - 1)
    founders = np.where(numbers[rows] == parents, rows, np.arange(len(numbers)))
    while (further := founders[founders]).tolist() != founders.tolist():
        founders = further
    return founders


def _kept(facts: NDArray[Any], own_numbers: NDArray[np.int64], generations: int) -> list[int]:
    """The rows of the earlier elites that the page has, by cell and generation: the first, and the last before each moment."""
    rows = np.flatnonzero((facts["in_archive"] != 0) & ~np.isin(facts["number"], own_numbers))
    rows = rows[np.lexsort((facts["generation"][rows], facts["cell"][rows]))]
    cells, moments = facts["cell"][rows], facts["generation"][rows] * MOMENTS // max(1, generations)
    is_first = np.diff(cells, prepend=-1) != 0
    is_last = (np.diff(cells, append=-1) != 0) | (np.diff(moments, append=-1) != 0)
    kept: list[int] = rows[is_first | is_last].tolist()
    return kept
