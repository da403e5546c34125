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

    solution: `(n, max_length)` words. measures: as the task gave them. parents: cells (-1: none). latent: learned measures, which
    span the archive; `(n, 0)` where the task's do.
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
    latent: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def spanning(self) -> NDArray[np.float64]:
        """The measures that span the archive, `(n, num_measures)`: the learned ones if there are any, else the task's."""
        return self.latent if self.latent.shape[1] else self.measures

    def only(self, rows: NDArray[Any]) -> Elites:
        """Some of them, by number or by a mask."""
        return Elites(*(getattr(self, field.name)[rows] for field in fields(self)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The columns by name, as `of` takes them back; without `latent` where there are none."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.latent.shape[1]:
            del columns["latent"]
        return columns

    @classmethod
    def of(cls, columns: dict[str, NDArray[Any]]) -> Elites:
        """The elites that `arrays` was asked of."""
        return cls(**{"latent": np.zeros((len(columns["cell"]), 0)), **columns})
