"""A search's elites in an archive of pyribs. Importing it imports pyribs, and with it PyTorch where that is installed."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from ribs.archives import CVTArchive, GridArchive

from evo.search.archives.elites import Elites
from evo.search.archives.layout import Layout

RibsArchive: TypeAlias = GridArchive | CVTArchive


class _Located:
    """Takes cells from a layout: also those of measures far out of range, and near centroids in units of the ranges."""

    def __init__(self, layout: Layout, **fields: Any):
        self.layout = layout
        super().__init__(**{name: getattr(layout, name) for name in layout.options}, **fields)

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """The cell of each row of measures."""
        return self.layout.index_of(measures)


class ProgramGridArchive(_Located, GridArchive):
    """pyribs' GridArchive of programs."""


class ProgramCVTArchive(_Located, CVTArchive):
    """pyribs' CVTArchive of programs."""


_CLASSES: dict[str, Any] = {"GridArchive": ProgramGridArchive, "CVTArchive": ProgramCVTArchive}


def to_ribs(name: str, layout: Layout, elites: Elites, qd_score_offset: float, seed: int) -> RibsArchive:
    """A new archive of pyribs with these elites. Solutions are programs, `max_length` words each with zeros at the end.

    Further fields are the other columns of `Elites`.

    Args:
        name: of pyribs' class.
        seed: of elites that users sample.
    """
    columns = elites.arrays()
    del columns["cell"]
    core_fields = ("solution", "objective", "measures")
    extra_fields = {field: (column.shape[1:], column.dtype) for field, column in columns.items() if field not in core_fields}
    archive: RibsArchive = _CLASSES[name](
        layout,
        solution_dim=elites.solution.shape[1],
        solution_dtype=np.uint64,
        ranges=list(zip(layout.low, layout.high, strict=True)),
        qd_score_offset=qd_score_offset,
        seed=seed,
        extra_fields=extra_fields,
    )
    if len(elites):
        archive.add(**columns)
    return archive
