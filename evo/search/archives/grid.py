"""Cells of equal size along each measure: pyribs' GridArchive."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.search_rows import grid_cells
from evo.search.archives.base import ProgramArchive
from evo.search.archives.pyribs import GridArchive


class ProgramGridArchive(ProgramArchive, GridArchive):
    """A grid of programs; `dims` are the cells along each measure."""

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """As of `ProgramArchive`: what pyribs computes, in one pass; -1 where a measure is NaN."""
        dims, size, margin = self.dims.astype(np.int64), self.interval_size, float(self.epsilon)
        return grid_cells(np.asarray(measures, np.float64), self.lower_bounds, self.upper_bounds, dims, size, margin)

    def _cells_of(self, measures: NDArray[np.float64], is_counted: NDArray[np.bool_]) -> NDArray[np.int32]:
        return np.where(is_counted, self.index_of(measures), np.int32(-1))
