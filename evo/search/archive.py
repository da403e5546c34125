"""Archives of elites: pyribs' own, kept free of failed programs.

Owns the choice of the class, the fields kept beside each elite, and the order in which elites are read (by cell).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ribs import archives
from ribs.archives import ArchiveBase

ARCHIVE_CLASSES = ("GridArchive", "CVTArchive")

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

    cell: np.ndarray
    solution: np.ndarray
    objective: np.ndarray
    measures: np.ndarray
    parents: np.ndarray
    operator: np.ndarray
    generation: np.ndarray
    slot: np.ndarray
    hash: np.ndarray
    num_instructions: np.ndarray

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def qd_score(self) -> float:
        """Sum of the objectives, in cell order."""
        return float(np.add.reduce(self.objective)) if len(self) else 0.0


class _OnlyFinite:
    """Keeps rows whose objective is NaN (programs that failed) away from the archive, which would raise on them."""

    def add(self, solution, objective, measures, **fields):
        kept = np.isfinite(objective)
        add_info = {"status": np.zeros(len(kept), np.int32), "value": np.full(len(kept), np.nan)}
        if kept.any():
            added = super().add(
                solution[kept], objective[kept], measures[kept], **{name: array[kept] for name, array in fields.items()}
            )
            for name, array in added.items():
                add_info.setdefault(name, np.zeros(len(kept), array.dtype))[kept] = array
        return add_info


def make_archive(class_name: str, max_length: int, ranges: list[tuple[float, float]], options: dict, seed: int) -> ArchiveBase:
    """An empty archive of programs.

    Args:
        class_name: one of `ARCHIVE_CLASSES`, from `ribs.archives`.
        max_length: words a program.
        ranges: `(low, high)` of each measure.
        options: further keyword arguments of the class: `dims` of a grid, `centroids` of a CVT (a number or an array).
        seed: for the CVT's centroids; a grid draws nothing.

    Raises:
        TypeError, ValueError: the class does not take these options.
    """
    base = getattr(archives, class_name)
    archive_class = type(f"Finite{class_name}", (_OnlyFinite, base), {})
    return archive_class(
        solution_dim=max_length,
        ranges=ranges,
        seed=seed,
        solution_dtype=np.uint64,
        objective_dtype=np.float64,
        measures_dtype=np.float64,
        extra_fields=EXTRA_FIELDS,
        **options,
    )


def elites_by_cell(archive: ArchiveBase) -> Elites:
    """All elites, sorted by cell."""
    data = archive.data(["index", "solution", "objective", "measures", *EXTRA_FIELDS])
    order = np.argsort(data["index"])
    return Elites(data["index"][order].astype(np.int64), *(data[name][order] for name in list(data) if name != "index"))


def restore_elites(archive: ArchiveBase, elites: Elites) -> None:
    """Puts elites read by `elites_by_cell` back into an empty archive of the same kind.

    Raises:
        ValueError: an elite does not fall into its cell: the archive is of another shape.
    """
    if not len(elites):
        return
    if not np.array_equal(archive.index_of(elites.measures), elites.cell):
        raise ValueError("the elites do not fall into their cells")
    fields = {name: getattr(elites, name) for name in EXTRA_FIELDS}
    archive.add(elites.solution, elites.objective, elites.measures, **fields)
