"""Cells around centroids that are spread evenly over the measures: pyribs' CVTArchive (Vassiliades et al. 2018)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ribs.archives import CVTArchive, k_means_centroids

from evo.search.archives.base import ProgramArchive


class ProgramCvtArchive(ProgramArchive, CVTArchive):
    """A centroidal Voronoi tessellation; `centroids` is their number. The seed decides where they are.

    Distances are in units of the measures' ranges: if one range is much wider than another, cells would otherwise be slivers.
    """

    def __init__(
        self,
        max_length: int,
        ranges: Sequence[tuple[float, float]],
        seed: int,
        options: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        *more: Any,
    ):
        self._low, self._high = np.array(ranges, np.float64).T
        places = (options | arrays)["centroids"]
        if isinstance(places, int):
            units, _ = k_means_centroids(centroids=places, ranges=[(0.0, 1.0)] * len(ranges), seed=seed)
            places = self._low + units * (self._high - self._low)
        self._places: NDArray[np.float64] = places
        # Also if they have just been found: an archive made from `arrays` must have the same bits.
        units = self._in_units(self._places)
        super().__init__(max_length, ranges, seed, options, {"centroids": units}, *more)

    @property
    def centroids(self) -> NDArray[np.float64]:
        """Where the cells are, `(cells, num_measures)`."""
        return self._places

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """As `ProgramArchive.index_of`."""
        units = self._in_units(np.clip(measures, self._low, self._high))
        cells: NDArray[np.int32] = CVTArchive.index_of(self, units)
        return cells

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The centroids, `(cells, num_measures)`: to find them takes long, and other versions might find others."""
        return {"centroids": self.centroids}

    def _in_units(self, measures: NDArray[np.float64]) -> NDArray[np.float64]:
        units: NDArray[np.float64] = (measures - self._low) / (self._high - self._low)
        return units
