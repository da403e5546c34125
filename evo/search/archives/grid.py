"""Cells of equal size along each measure: pyribs' GridArchive."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.search_rows import grid_cells
from evo.search.archives.base import ProgramArchive
from evo.search.archives.pyribs import GridArchive


class ProgramGridArchive(ProgramArchive, GridArchive):
    """A grid of programs; `dims` are the cells along each measure."""

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """As of `ProgramArchive`: what pyribs computes, in one pass.

        Raises:
            ValueError: a measure is NaN.
        """
        rows = np.asarray(measures, np.float64)
        cells = grid_cells(
            rows, self.lower_bounds, self.upper_bounds, self.dims.astype(np.int64), self.interval_size, float(self.epsilon)
        )
        return cells if (cells >= 0).all() else super().index_of(rows)  # which raises
