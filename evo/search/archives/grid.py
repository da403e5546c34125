"""Cells of equal size along each measure: pyribs' GridArchive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from ribs.archives import GridArchive

from evo.search.archives.base import ProgramArchive


class ProgramGridArchive(ProgramArchive, GridArchive):
    """A grid of programs; `dims` are the cells along each measure."""

    def __init__(
        self,
        max_length: int,
        ranges: Sequence[tuple[float, float]],
        seed: int,
        options: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
        qd_score_offset: float = 0.0,
        num_task_measures: int = 0,
    ):
        dims = options["dims"]
        if len(dims) != len(ranges):
            raise ValueError(f"dims: {dims} has {len(dims)} numbers, but the task has {len(ranges)} measures")
        super().__init__(max_length, ranges, seed, options, arrays, qd_score_offset, num_task_measures)
