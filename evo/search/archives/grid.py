"""Cells of equal size along each measure: pyribs' GridArchive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ribs.archives import GridArchive

from evo.search.archives.base import ProgramArchive


class ProgramGridArchive(ProgramArchive, GridArchive):
    """A grid of programs; `dims` are the cells along each measure."""

    heatmap = "grid_archive_heatmap"

    def __init__(
        self,
        max_length: int,
        ranges: Sequence[tuple[float, float]],
        seed: int,
        options: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
    ):
        dims = options["dims"]
        if len(dims) != len(ranges):
            raise ValueError(f"dims: {dims} has {len(dims)} numbers, but the task has {len(ranges)} measures")
        super().__init__(max_length, ranges, seed, options, arrays)

    def cell_name(self, cell: int) -> str:
        """The indices along the measures, such as `3,4`."""
        return ",".join(str(index) for index in self.int_to_grid_index(np.array([cell]))[0])

    def cell_number(self, name: str) -> int:
        """Indices along the measures such as `3,4`, or a cell number."""
        try:
            indices = [int(part) for part in name.split(",")]
        except ValueError:
            raise ValueError("write grid indices such as 3,4, or a cell number") from None
        if len(indices) == 1:
            return super().cell_number(name)
        if len(indices) != len(self.dims):
            raise ValueError(f"no such cell; the grid has {len(self.dims)} axes")
        if any(not 0 <= index < dim for index, dim in zip(indices, self.dims, strict=True)):
            raise ValueError(f"out of range, the grid is {' x '.join(map(str, self.dims))}, counted from 0")
        return int(self.grid_to_int_index(np.array([indices]))[0])

    def places(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """The indices along the measures."""
        return np.asarray(self.int_to_grid_index(cells), dtype=np.float64)

    def grid_shape(self) -> tuple[int, int] | None:
        """Columns and rows of a grid of two measures."""
        return (int(self.dims[0]), int(self.dims[1])) if len(self.dims) == 2 else None
