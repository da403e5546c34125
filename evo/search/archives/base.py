"""What every archive of programs has beside pyribs' own methods, and the elites read out of one.

Owns the fields kept beside each elite, and the order in which elites are read (by cell). Failed programs never reach pyribs,
which would raise on them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from ribs.archives import ArchiveBase

# Where an elite came from, and facts about it. parents: cells (-1: none).
EXTRA_FIELDS = {
    "parents": ((2,), np.int32),
    "operator": ((), np.int32),
    "generation": ((), np.int64),
    "slot": ((), np.int32),
    "hash": ((2,), np.uint64),
    "num_instructions": ((), np.int32),
}


@dataclass(frozen=True)
class Elites:
    """The elites of an archive, one row each, sorted by cell; arrays as in `archive.data()`."""

    cell: NDArray[np.int64]
    solution: NDArray[np.uint64]
    objective: NDArray[np.float64]
    measures: NDArray[np.float64]
    parents: NDArray[np.int32]
    operator: NDArray[np.int32]
    generation: NDArray[np.int64]
    slot: NDArray[np.int32]
    hash: NDArray[np.uint64]
    num_instructions: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def qd_score(self) -> float:
        """Sum of the objectives, in cell order."""
        return float(np.add.reduce(self.objective)) if len(self) else 0.0

    @property
    def best_objective(self) -> float:
        """The greatest objective; NaN where there are no elites."""
        return float(self.objective.max()) if len(self) else float("nan")


class ProgramArchive(ArchiveBase):
    """An archive of programs: a class of pyribs, with what checkpoints and reports need.

    A subclass names its class of pyribs as the second base, after this one, and is entered in `evo.search.archives.ARCHIVES`.

    Args:
        max_length: words of a program.
        ranges: `(low, high)` of each measure.
        seed: of whatever the archive draws.
        options: the keyword arguments of the pyribs class that `ARCHIVES` allows in a config.
        arrays: what `arrays` gave for this archive in an earlier process, by name.

    Raises:
        TypeError, ValueError: the options are wrong; the message says in what way.
    """

    # The function of ribs.visualize that draws an archive of one or two measures.
    heatmap: ClassVar[str]

    def __init__(
        self,
        max_length: int,
        ranges: Sequence[tuple[float, float]],
        seed: int,
        options: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
    ):
        arguments: dict[str, Any] = {
            "solution_dim": max_length,
            "ranges": ranges,
            "seed": seed,
            "solution_dtype": np.uint64,
            "objective_dtype": np.float64,
            "measures_dtype": np.float64,
            "extra_fields": EXTRA_FIELDS,
        }
        super().__init__(**arguments, **(options | arrays))

    if TYPE_CHECKING:  # what pyribs' classes have, though their base class does not say so

        @property
        def cells(self) -> int:
            """The number of cells."""

        @property
        def lower_bounds(self) -> NDArray[np.float64]:
            """Of each measure, `(num_measures,)`."""

        @property
        def upper_bounds(self) -> NDArray[np.float64]:
            """Of each measure, `(num_measures,)`."""

    def index_of(self, measures: Any) -> NDArray[np.int32]:
        """The cell of each row of measures. Measures out of range count to the cells at the edge.

        They are clipped here because pyribs does not do it for all archives, and its grid overflows where they are large.
        """
        cells: NDArray[np.int32] = super().index_of(np.clip(measures, self.lower_bounds, self.upper_bounds))  # type: ignore[misc]
        return cells

    def add(self, solution: Any, objective: Any, measures: Any, **fields: Any) -> dict[str, NDArray[Any]]:
        """As pyribs' own; rows whose objective is not finite are left out, and reported as not added. An elite keeps its measures
        as they are, even if they are out of range.
        """
        kept = np.isfinite(objective)
        add_info = {"status": np.zeros(len(kept), np.int32), "value": np.full(len(kept), np.nan)}
        if kept.any():
            added = super().add(
                solution[kept], objective[kept], measures[kept], **{name: array[kept] for name, array in fields.items()}
            )
            for name, array in added.items():
                add_info.setdefault(name, np.zeros(len(kept), array.dtype))[kept] = array
        return add_info

    def elites(self) -> Elites:
        """All elites, sorted by cell."""
        data = self.data(["index", "solution", "objective", "measures", *EXTRA_FIELDS])
        order = np.argsort(data["index"])
        return Elites(data["index"][order].astype(np.int64), *(data[name][order] for name in list(data) if name != "index"))

    def restore(self, elites: Elites) -> None:
        """Puts elites of `elites` back into an empty archive of the same kind.

        Raises:
            ValueError: an elite does not fall into its cell: the archive has another shape.
        """
        if not len(elites):
            return
        if not np.array_equal(self.index_of(elites.measures), elites.cell):
            raise ValueError("the elites do not fall into their cells")
        fields = {name: getattr(elites, name) for name in EXTRA_FIELDS}
        self.add(elites.solution, elites.objective, elites.measures, **fields)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it takes beside the options to make this archive again."""
        return {}

    def cell_name(self, cell: int) -> str:
        """What people call a cell."""
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
        if not 0 <= number < self.cells:
            raise ValueError(f"no such cell; the archive has {self.cells} cells")
        return number

    @abstractmethod
    def places(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Where cells are, `(len(cells), num_measures)`, in units in which neighbours are about as far apart along every axis."""

    def nearest(self, cell: int, cells: NDArray[np.int64]) -> int:
        """Of some cells, the one nearest to a cell: by the sum of distances along the axes."""
        places = self.places(np.append(cells, cell))
        return int(cells[np.argmin(np.abs(places[:-1] - places[-1]).sum(axis=1))])

    def grid_shape(self) -> tuple[int, int] | None:
        """Columns and rows, if the cells are those of a grid of two measures; None otherwise."""
        return None
