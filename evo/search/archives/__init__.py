"""Archives of elites: those of pyribs, by name.

Owns the registry: the name of each archive in a config, its options, the class that makes it and the layout of its cells.
Importing it does not import pyribs; the class is imported when an archive is made.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.search.archives.layout import CentroidLayout, GridLayout, Layout

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive


@dataclass(frozen=True)
class ArchiveType:
    """How an archive is made.

    class_path: `module:class`, a `ProgramArchive`. layout: of its cells. options: its keys in a config, all required.
    """

    class_path: str
    layout: type[Layout]
    options: tuple[str, ...]


# By the name of the pyribs class.
ARCHIVES = {
    "GridArchive": ArchiveType("evo.search.archives.grid:ProgramGridArchive", GridLayout, options=("dims",)),
    "CVTArchive": ArchiveType("evo.search.archives.cvt:ProgramCvtArchive", CentroidLayout, options=("centroids",)),
}

MAX_CELLS = 1 << 27


def num_cells(options: dict[str, Any]) -> int:
    """The cells of an archive with these options."""
    return math.prod(np.ravel(list(options.values())).tolist())


def make_archive(
    name: str,
    max_length: int,
    ranges: Sequence[tuple[float, float]],
    seed: int,
    options: dict[str, Any],
    arrays: dict[str, NDArray[Any]] | None = None,
    qd_score_offset: float = 0.0,
    num_task_measures: int = 0,
) -> ProgramArchive:
    """An empty archive of programs by its name in `ARCHIVES`; arguments and errors are those of `ProgramArchive`."""
    if (cells := num_cells(options)) > MAX_CELLS:
        raise ValueError(f"{cells:,} cells, at most {MAX_CELLS:,} fit")
    module, _, class_name = ARCHIVES[name].class_path.partition(":")
    archive_class: type[ProgramArchive] = getattr(importlib.import_module(module), class_name)
    return archive_class(max_length, ranges, seed, options, arrays or {}, qd_score_offset, num_task_measures)


def make_layout(
    name: str, ranges: Sequence[tuple[float, float]], options: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> Layout:
    """The layout of an archive by its name in `ARCHIVES`; `arrays` are the archive's."""
    return ARCHIVES[name].layout(ranges, options, arrays)
