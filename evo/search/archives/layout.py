"""Positions and names of an archive's cells.

Owns the cell of each program, and names, places and neighbours of cells. Needs no elites, and pyribs only to spread centroids,
so that a finished run is quick to look at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.native.search_rows import grid_cells

if TYPE_CHECKING:
    from scipy.spatial import KDTree

_MARGIN = 1e-6  # of pyribs' grid: measures this close below a boundary, in cells, count to the cell above


class Layout(ABC):
    """The cells of one archive.

    Attributes:
        options: keys of an archive in a config, all required.
        num_cells: number of cells.
        dims: cells along each measure of a grid; None for other archives.
        low, high: ends of the measures' ranges, `(num_measures,)`.

    Args:
        ranges: `(low, high)` of each measure.
        options: of the archive, as in the config.
        arrays: as `arrays` gave them for this layout in an earlier process.
        seed: of everything random.

    Raises:
        ValueError: the options do not fit the ranges.
    """

    options: tuple[str, ...]
    num_cells: int
    dims: tuple[int, ...] | None = None

    def __init__(
        self, ranges: Sequence[tuple[float, float]], options: dict[str, Any], arrays: dict[str, NDArray[Any]], seed: int = 0
    ):
        self.low, self.high = np.array(ranges, np.float64).T.copy()
        self._make(options, arrays, seed)

    @abstractmethod
    def _make(self, options: dict[str, Any], arrays: dict[str, NDArray[Any]], seed: int) -> None: ...

    @abstractmethod
    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """The cell of each row of measures. Measures out of range count to the cells at the edge."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything needed beside ranges and options to make this layout again."""
        return {}

    def cell_name(self, cell: int) -> str:
        """Name of a cell."""
        return str(cell)

    def cell_number(self, name: str) -> int:
        """The cell with this name; its number is a name too.

        Raises:
            ValueError: no such cell; the message says what there is.
        """
        try:
            number = int(name)
        except ValueError:
            raise ValueError("write a cell number") from None
        if not 0 <= number < self.num_cells:
            raise ValueError(f"no such cell; the archive has {self.num_cells} cells")
        return number

    @abstractmethod
    def coordinates(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Positions of cells, `(len(cells), num_measures)`, in units that put neighbours about equally far apart."""

    def nearest(self, cell: int, cells: NDArray[np.int64]) -> int:
        """The nearest of some cells to a cell, by the sum of distances along the axes."""
        coordinates = self.coordinates(np.append(cells, cell))
        return int(cells[np.argmin(np.abs(coordinates[:-1] - coordinates[-1]).sum(axis=1))])

    def grid_shape(self) -> tuple[int, int] | None:
        """Columns and rows, if the cells are those of a grid of at least two measures; None otherwise."""
        return None

    def outlines(self) -> list[NDArray[np.float64]] | None:
        """The corners of each cell on a map, `(num_corners, 2)` in order; None if cells have no place on one.

        The first measure runs to the right, the second upwards, both as fractions of their ranges, from 0 to 1. Cells of a
        single measure are as high as the map; those of a grid that differ only in further measures have one place.
        """
        return None


class GridLayout(Layout):
    """Cells of equal size along each measure, numbered with the last measure fastest."""

    options = ("dims",)

    def _make(self, options: dict[str, Any], arrays: dict[str, NDArray[Any]], seed: int) -> None:
        del arrays, seed
        self.dims: tuple[int, ...] = tuple(options["dims"])
        if len(self.dims) != len(self.low):
            raise ValueError(f"dims: {options['dims']} has {len(self.dims)} numbers, but the task has {len(self.low)} measures")
        self.num_cells = int(np.prod(self.dims))

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """As of `Layout`, and -1 where a measure is NaN. pyribs' grid numbers the cells of measures in range alike."""
        rows, dims = np.asarray(measures, np.float64), np.array(self.dims, np.int64)
        return grid_cells(rows, self.low, self.high, dims, self.high - self.low, _MARGIN)

    def cell_name(self, cell: int) -> str:
        """The indices along the measures, such as `3,4`."""
        return ",".join(map(str, np.unravel_index(cell, self.dims)))

    def cell_number(self, name: str) -> int:
        """Indices along the measures such as `3,4`, or a cell number."""
        try:
            indices = tuple(int(part) for part in name.split(","))
        except ValueError:
            raise ValueError("write grid indices such as 3,4, or a cell number") from None
        if len(indices) == 1:
            return super().cell_number(name)
        if len(indices) != len(self.dims):
            raise ValueError(f"no such cell; the grid has {len(self.dims)} axes")
        if any(not 0 <= index < dim for index, dim in zip(indices, self.dims, strict=True)):
            raise ValueError(f"out of range, the grid is {' x '.join(map(str, self.dims))}, counted from 0")
        return int(np.ravel_multi_index(indices, self.dims))

    def coordinates(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """The indices along the measures."""
        return np.stack(np.unravel_index(cells, self.dims), axis=1).astype(np.float64)

    def grid_shape(self) -> tuple[int, int] | None:
        """The cells along the first two measures."""
        return (self.dims[0], self.dims[1]) if len(self.dims) >= 2 else None

    def outlines(self) -> list[NDArray[np.float64]] | None:
        """A rectangle for each cell."""
        dims = np.array([*self.dims, 1][:2])
        low = np.stack(np.unravel_index(np.arange(self.num_cells), (*self.dims, 1))[:2], axis=1)
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        return list((low[:, None] + corners) / dims)


class CentroidLayout(Layout):
    """Cells around centroids that are spread evenly over the measures (Vassiliades et al. 2018); they have numbers for names.

    Distances are in units of the measures' ranges: if one range is much wider than another, cells would otherwise be slivers.

    Attributes:
        centroids: `(num_cells, num_measures)`.
    """

    options = ("centroids",)

    def _make(self, options: dict[str, Any], arrays: dict[str, NDArray[Any]], seed: int) -> None:
        centroids = (options | arrays)["centroids"]
        if isinstance(centroids, int):
            from ribs.archives import k_means_centroids

            units, _ = k_means_centroids(centroids=centroids, ranges=[(0.0, 1.0)] * len(self.low), seed=seed)
            centroids = self.low + units * (self.high - self.low)
        self.centroids: NDArray[np.float64] = centroids
        self.num_cells = len(centroids)
        self._units = self._in_units(centroids)

    @cached_property
    def _tree(self) -> KDTree:
        from scipy.spatial import KDTree

        return KDTree(self._units)

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """As of `Layout`."""
        cells: NDArray[np.int32] = self._tree.query(self._in_units(np.clip(measures, self.low, self.high)))[1].astype(np.int32)
        return cells

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The centroids: spreading them takes long, and other versions might spread them otherwise."""
        return {"centroids": self.centroids}

    def _in_units(self, measures: NDArray[np.float64]) -> NDArray[np.float64]:
        units: NDArray[np.float64] = (measures - self.low) / (self.high - self.low)
        return units

    def coordinates(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """The centroids, in units of the measures' ranges."""
        return self._units[cells]

    def outlines(self) -> list[NDArray[np.float64]] | None:
        """The polygon of each cell: of all places, those nearest to its centroid."""
        from scipy.spatial import Voronoi

        count, num_measures = self._units.shape
        if num_measures > 2:
            return None
        units = np.full((count, 2), 0.5)
        units[:, :num_measures] = self._units
        # The mirror images of the centroids at the four edges make the edges part of the outlines, so that no cell is unbounded.
        mirrored = [np.where(np.arange(2) == axis, 2.0 * edge - units, units) for axis in (0, 1) for edge in (0.0, 1.0)]
        diagram = Voronoi(np.concatenate([units, *mirrored]))
        corners = (diagram.vertices[diagram.regions[region]] for region in diagram.point_region[:count])
        return [np.clip(_around(polygon), 0.0, 1.0) for polygon in corners]


def _around(polygon: NDArray[np.float64]) -> NDArray[np.float64]:
    """The corners of a convex polygon in counterclockwise order."""
    x, y = (polygon - polygon.mean(axis=0)).T
    return polygon[np.argsort(np.arctan2(y, x))]
