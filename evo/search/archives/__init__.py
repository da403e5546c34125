"""Archives of elites, by the names of pyribs' classes.

Owns the registry of layouts: the cells of each archive, and its options in a config.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.search.archives.layout import CentroidLayout, GridLayout, Layout

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive

ARCHIVES: dict[str, type[Layout]] = {"GridArchive": GridLayout, "CVTArchive": CentroidLayout}

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
) -> ProgramArchive:
    """An empty archive of programs by its name in `ARCHIVES`; arguments are those of its `Layout` and of `ProgramArchive`.

    Raises:
        ValueError: the options are wrong; the message says in what way.
    """
    from evo.search.archives.base import ProgramArchive

    if (cells := num_cells(options)) > MAX_CELLS:
        raise ValueError(f"{cells:,} cells, at most {MAX_CELLS:,} fit")
    layout = make_layout(name, ranges, options, arrays or {}, seed)
    return ProgramArchive(layout, max_length, qd_score_offset)


def make_layout(
    name: str, ranges: Sequence[tuple[float, float]], options: dict[str, Any], arrays: dict[str, NDArray[Any]], seed: int = 0
) -> Layout:
    """The layout of an archive by its name in `ARCHIVES`; arguments are those of `Layout`."""
    return ARCHIVES[name](ranges, options, arrays, seed)
