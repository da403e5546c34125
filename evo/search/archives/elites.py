"""The elites read out of an archive.

Owns their form in checkpoints, `archive.npz` and reports. Knows nothing of how an archive keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Elites:
    """The elites of an archive, one row each, sorted by cell.

    solution: `(n, max_length)` words. measures: as the task gave them. parents: cells (-1: none).
    """

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

    def only(self, rows: NDArray[Any]) -> Elites:
        """Some of them, by number or by a mask."""
        return Elites(*(getattr(self, field.name)[rows] for field in fields(self)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
