"""The archive of a search: the elite of each cell, in columns.

Owns which programs become elites, their words and the fields kept beside each, the order in which elites are read (by cell), and
the sum over them. `evo.search.archives.layout` owns the cells. What a generation costs here depends on the cells that it changes,
not on how many elites there are.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo.native.search_rows import best_rows, count_neutral, set_leaves
from evo.native.vary import program_lengths
from evo.search.archives.elites import Elites
from evo.search.archives.layout import Layout

# Shape and type of what is kept beside an elite's scores: where it came from, and facts about it. parents: cells (-1: none).
EXTRA_FIELDS: dict[str, tuple[tuple[int, ...], Any]] = {
    "hash": ((2,), np.uint64),
    "parents": ((2,), np.int32),
    "operator": ((), np.int32),
    "generation": ((), np.int64),
    "slot": ((), np.int32),
    "num_instructions": ((), np.int32),
}


class Winners(NamedTuple):
    """Rows of a batch that become elites, by cell. cells: of each. is_new: whether the cell was empty."""

    rows: NDArray[np.int64]
    cells: NDArray[np.int32]
    is_new: NDArray[np.bool_]


class ProgramArchive:
    """An archive of programs.

    Attributes:
        layout: its cells.
        words: `(cells, max_length)` uint64, the elites' programs; rows of empty cells mean nothing.
        best_objective: the greatest objective; NaN where there are no elites.

    Args:
        max_length: words of a program.
        qd_score_offset: the least objective: what an elite adds to the QD score is its objective above this.
    """

    def __init__(self, layout: Layout, max_length: int, qd_score_offset: float = 0.0):
        self.layout = layout
        self.qd_score_offset = qd_score_offset
        # The system gives zeroed pages when they are first written, so long rows cost what the longest program needs.
        self.words = np.zeros((layout.num_cells, max_length), np.uint64)
        fields = {"objective": ((), np.float64), "measures": ((len(layout.low),), np.float64), **EXTRA_FIELDS}
        self._columns = {name: np.zeros((layout.num_cells, *shape), dtype) for name, (shape, dtype) in fields.items()}
        self._best_rows = np.full(layout.num_cells, -1, np.int32)
        self._used_width = 0
        self._is_occupied = np.zeros(self.cells, bool)
        self._num_elites = 0
        self._occupied_cells = np.zeros(0, np.uint32)
        self._qd_scores = _SumTree(self.cells)
        self.best_objective = float("nan")

    def __len__(self) -> int:
        return self._num_elites

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.layout.num_cells

    @property
    def qd_score(self) -> float:
        """The sum of the objectives above `qd_score_offset`.

        Its bits depend on the elites alone, not on the order in which they came.
        """
        return self._qd_scores.total

    @property
    def occupied_cells(self) -> NDArray[np.uint32]:
        """The cells that have an elite, sorted."""
        if len(self._occupied_cells) != len(self):
            self._occupied_cells = np.flatnonzero(self._is_occupied).astype(np.uint32)
        return self._occupied_cells

    def best_cells(self, share: float) -> NDArray[np.uint32]:
        """The cells of this share of the elites, those of greatest objective, sorted. Rounded up; of equals, the first cells."""
        cells = self.occupied_cells
        if share >= 1.0:
            return cells
        objective = self._columns["objective"][cells]
        return np.sort(cells[np.argsort(-objective, kind="stable")[: math.ceil(share * len(cells))]])

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """The cell of each row of measures. Measures out of range count to the cells at the edge."""
        return self.layout.index_of(measures)

    def add(self, solution: Any, objective: Any, measures: Any, **fields: Any) -> dict[str, NDArray[Any]]:
        """Takes the best program of each cell, unless the cell has one as good. If two of a batch are equal, the first wins.

        The cost depends on the rows that get in: the others are dropped before their fields are read.

        Args:
            solution: `(n, width)` uint64 words; a row narrower than `max_length` has its RETURN.
            objective: `(n,)`; rows where it is not finite are left out.
            measures: `(n, num_measures)`, kept as they are, even if they are out of range.
            fields: those of `EXTRA_FIELDS`.

        Returns:
            `elite`, `(n,)` bool: true where the row is an elite now. `new`, `(n,)` bool: where it is the first of its cell.
        """
        won = self.best_of(objective, measures)
        kept = {name: values[won.rows] for name, values in fields.items()}
        self.enter(won, solution[won.rows], objective[won.rows], kept, measures[won.rows])
        is_elite, is_new = np.zeros((2, len(objective)), bool)
        is_elite[won.rows], is_new[won.rows] = True, won.is_new
        return {"elite": is_elite, "new": is_new}

    def best_of(self, objective: NDArray[np.float64], measures: NDArray[np.float64]) -> Winners:
        """The rows that `add` takes; arguments are its own."""
        cells = self._cells_of(measures, objective)
        rows = best_rows(cells, objective, self._is_occupied, self._columns["objective"], self._best_rows)
        cells = cells[rows]
        return Winners(rows, cells, ~self._is_occupied[cells])

    def rivals(self, objective: NDArray[np.float64], measures: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        """The rows of the programs that lead their cell's elite most or trail it least, one of a cell at most and no equal of an
        elite; first those of empty cells, by their objective. Arguments are those of `add`.
        """
        is_occupied, elites = self._is_occupied, self._columns["objective"]
        cells = self._cells_of(measures, objective)
        rows = best_rows(cells, objective, np.zeros_like(is_occupied), elites, self._best_rows)
        is_rival = is_occupied[cells[rows]]
        lead = np.where(is_rival, objective[rows] - np.where(is_rival, elites[cells[rows]], 0.0), np.inf)
        order = np.lexsort((rows, -objective[rows], -lead))
        leading: NDArray[np.int64] = rows[order][lead[order] != 0.0][:count]
        return leading

    def enter(
        self,
        won: Winners,
        words: NDArray[np.uint64],
        objective: NDArray[np.float64],
        fields: dict[str, NDArray[Any]],
        measures: NDArray[np.float64],
    ) -> None:
        """Adds the result of `best_of`, before anything else is added. All other arguments are those of `add` at `won.rows`."""
        if not len(won.rows):
            return
        cells = won.cells
        self._is_occupied[cells] = True
        self._num_elites += int(np.count_nonzero(won.is_new))
        for name, values in {**fields, "objective": objective, "measures": measures}.items():
            self._columns[name][cells] = values
        width = words.shape[1]
        self.words[cells, :width] = words
        self.words[cells, width : self._used_width] = 0
        self._used_width = max(self._used_width, width)
        self._qd_scores.set(cells, objective - self.qd_score_offset)
        # An elite is only replaced by a better one, so the best never leaves.
        self.best_objective = float(np.fmax(self.best_objective, objective.max()))

    def _cells_of(self, measures: NDArray[np.float64], objective: NDArray[np.float64]) -> NDArray[np.int32]:
        """The cells of the rows whose objective is finite; -1 for the others, whose measures may be NaN."""
        is_finite = np.isfinite(objective)
        if is_finite.all():
            return self.index_of(measures)
        cells = np.full(len(measures), -1, np.int32)
        cells[is_finite] = self.index_of(measures[is_finite])
        return cells

    def scores(self, cells: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The objective `(n,)` and measures `(n, num_measures)` of the elites in some cells, `(n,)`; NaN where there is none."""
        is_occupied, objective, measures = self._is_occupied[cells], self._columns["objective"], self._columns["measures"]
        return np.where(is_occupied, objective[cells], np.nan), np.where(is_occupied[:, None], measures[cells], np.nan)

    def count_neutral(self, hashes: NDArray[np.uint64], parents: NDArray[np.int32]) -> int:
        """Count the programs, by `hashes` `(n, 2)`, that equal an elite that they come from, by cells `(n, 2)`, -1 for none."""
        return count_neutral(hashes, parents, self._columns["hash"])

    def hashes(self, cells: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
        """The hashes of the elites in some cells, `(*cells.shape, 2)`."""
        hashes: NDArray[np.uint64] = self._columns["hash"][cells]
        return hashes

    def elites(self) -> Elites:
        """All elites, sorted by cell."""
        cells = self.occupied_cells
        columns = {name: column[cells] for name, column in self._columns.items()}
        columns["solution"] = np.zeros((len(cells), self.words.shape[1]), np.uint64)
        columns["solution"][:, : self._used_width] = self.words[cells, : self._used_width]
        return Elites(**{"cell": cells.astype(np.int64), **columns})

    def restore(self, elites: Elites) -> None:
        """Puts elites of `elites` back into an empty archive of the same kind.

        Raises:
            ValueError: an elite does not fall into its cell: the archive has another shape.
        """
        if not len(elites):
            return
        if not np.array_equal(self.index_of(elites.measures), elites.cell):
            raise ValueError("the elites do not fall into their cells")
        width = int(program_lengths(elites.solution).max()) + 1
        fields = {name: getattr(elites, name) for name in EXTRA_FIELDS}
        self.add(elites.solution[:, :width], elites.objective, elites.measures, **fields)


class _SumTree:
    """The sum of numbered terms, zero at first, which may change a few at a time.

    Terms are added in a fixed binary tree over their numbers, so the bits of the total depend on the terms alone.
    """

    def __init__(self, num_terms: int):
        self._nodes = np.zeros(2 << (num_terms - 1).bit_length())  # as of `set_leaves`; node 1 is the root

    @property
    def total(self) -> float:
        return float(self._nodes[1])

    def set(self, numbers: NDArray[np.int32], terms: NDArray[np.float64]) -> None:
        """Changes some terms."""
        set_leaves(self._nodes, numbers, terms)
