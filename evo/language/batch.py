"""A batch of programs with what lowering tells of each.

Owns the form in which programs go from the loop to evaluators and compilers: analysed once, never hashed again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.native.stack_ptx import Lowering


@dataclass(frozen=True)
class Batch:
    """Programs, one row each.

    words: `(batch_size, max_length)` uint64. hashes: `(batch_size, 2)` uint64, canonical: equal hashes, equal results.
    num_instructions: `(batch_size,)` int32, PTX instructions left after dead code is gone and equal values are merged.
    """

    words: NDArray[np.uint64]
    hashes: NDArray[np.uint64]
    num_instructions: NDArray[np.int32]

    @classmethod
    def analyze(cls, lowering: Lowering, words: NDArray[np.uint64]) -> Batch:
        """The batch of these programs, `(batch_size, max_length)` uint64."""
        return cls(words, *lowering.analyze(words))

    def joined(self, other: Batch) -> Batch:
        """This batch and then another whose rows are as wide."""
        return Batch(
            np.concatenate([self.words, other.words]),
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.num_instructions, other.num_instructions]),
        )

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.integer]) -> Batch:
        """The batch of some of the rows, chosen as in NumPy by a slice, a mask or indices."""
        return Batch(self.words[rows], self.hashes[rows], self.num_instructions[rows])
