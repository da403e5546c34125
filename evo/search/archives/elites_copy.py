"""A second copy of an archive's elites, which stands still while another thread reads it and the archive changes.

Owns when rows are copied: each generation those of the cells that it changed, so that no generation waits for a copy of all
elites.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.search.archives.elites import Elites


class ElitesCopy:
    """The elites of an archive.

    Args:
        num_cells: of the archive.
        max_length: words of a program.
        columns: the columns of `Elites` but `cell`, by name, of some cells' elites as they are now; words without zeros that no
            program needs.
    """

    def __init__(self, num_cells: int, max_length: int, columns: Callable[[NDArray[np.integer[Any]]], dict[str, NDArray[Any]]]):
        self._columns_of = columns
        self._columns = {
            name: np.zeros((num_cells, *column.shape[1:]), column.dtype) for name, column in columns(np.zeros(0, int)).items()
        }
        self._columns["solution"] = padded(np.zeros((0, 0), np.uint64), num_cells, max_length)
        self._width = 0  # of its rows, that is used
        self._is_occupied = np.zeros(num_cells, bool)
        self._changed: list[NDArray[np.integer[Any]]] = []  # cells that are not copied yet
        self._is_read = True

    def update(self, cells: NDArray[np.integer[Any]]) -> None:
        """Takes over the elites of cells that have changed; while it is read, afterwards."""
        self._changed.append(cells)
        if self._is_read:
            self._catch_up()

    def freeze(self) -> Callable[[], Elites]:
        """Gives what another thread calls once: the elites as they are now. It stands still until then, or until the next call of
        this, when nobody reads any more.
        """
        self._catch_up()
        self._is_read = False
        return self._read

    def _catch_up(self) -> None:
        for cells in self._changed:
            changed = self._columns_of(cells)
            words = changed.pop("solution")
            self._width = words.shape[1]
            self._columns["solution"][cells, : self._width] = words
            for name, column in changed.items():
                self._columns[name][cells] = column
            self._is_occupied[cells] = True
        self._changed.clear()

    def _read(self) -> Elites:
        cells = np.flatnonzero(self._is_occupied)
        columns = {name: column[cells] for name, column in self._columns.items() if name != "solution"}
        words = self._columns["solution"]
        columns["solution"] = padded(words[cells, : self._width], len(cells), words.shape[1])
        self._is_read = True
        return Elites.of({"cell": cells, **columns})


def padded(words: NDArray[np.uint64], num_rows: int, max_length: int) -> NDArray[np.uint64]:
    """Programs with zeros behind them. The system gives zeroed pages when they are first written: long rows cost what is used."""
    rows = np.zeros((num_rows, max_length), np.uint64)
    rows[: len(words), : words.shape[1]] = words
    return rows
