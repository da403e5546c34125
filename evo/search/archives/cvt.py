"""Cells around centroids that are spread evenly over the measures: pyribs' CVTArchive (Vassiliades et al. 2018)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from ribs.archives import CVTArchive

from evo.search.archives.base import ProgramArchive


class ProgramCvtArchive(ProgramArchive, CVTArchive):
    """A centroidal Voronoi tessellation; `centroids` is their number. The seed decides where they are."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The centroids, `(cells, num_measures)`: to find them takes long, and other versions might find others."""
        return {"centroids": self.centroids}
