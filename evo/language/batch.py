"""A batch of programs with what lowering tells of each.

Owns the form in which programs go from the loop to evaluators and compilers: analysed once, never hashed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.row_threads import RowThreads
from evo.native.stack_ptx import LoweredPrograms, Lowering

ProgramRows = NDArray[np.uint64] | LoweredPrograms
"""Programs as native functions take them, a row each: `(n, width)` words, which they lower, or programs lowered before."""


class Batch:
    """Programs, one row each. Immutable.

    Args:
        words: `(batch_size, max_length)` uint64.
        hashes: `(batch_size, 2)` uint64, canonical: equal hashes, equal results.
        num_instructions: `(batch_size,)` int32, PTX instructions left after dead code is gone and equal values are merged.
        lowered: where they were kept.
        rows: those of `words` that the programs are, in order; None: all of them.
    """

    def __init__(
        self,
        words: NDArray[np.uint64],
        hashes: NDArray[np.uint64],
        num_instructions: NDArray[np.int32],
        lowered: LoweredPrograms | None = None,
        rows: NDArray[np.int64] | None = None,
    ):
        self.hashes, self.num_instructions, self.lowered = hashes, num_instructions, lowered
        self._words, self._rows = words, rows

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """`(batch_size, max_length)`. Copied when they are first asked for: much of what is done with a batch needs none."""
        return self._words if self._rows is None else self._words[self._rows]

    @property
    def programs(self) -> ProgramRows:
        """Lowered if they were kept so."""
        return self.words if self.lowered is None else self.lowered

    @classmethod
    def analyze(
        cls, lowering: Lowering, words: NDArray[np.uint64], row_threads: RowThreads | None = None, *, keep: bool = False
    ) -> Batch:
        """The batch of these programs, `(batch_size, max_length)` uint64. keep: as they were lowered, at 1 kB a program."""
        return cls(words, *(lowering.lower_all if keep else lowering.analyze)(words, row_threads))

    def joined(self, others: Sequence[Batch]) -> Batch:
        """Join this batch and others whose rows are as wide, all kept or none."""
        batches = (self, *others)
        kept = [batch.lowered for batch in others if batch.lowered is not None]
        return Batch(
            np.concatenate([batch.words for batch in batches]),
            np.concatenate([batch.hashes for batch in batches]),
            np.concatenate([batch.num_instructions for batch in batches]),
            None if self.lowered is None else self.lowered.joined(kept),
        )

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, rows: slice | NDArray[np.bool_] | NDArray[np.integer]) -> Batch:
        """The batch of some of the rows, chosen as in NumPy by a slice, a mask or indices."""
        lowered = None if self.lowered is None else self.lowered[rows]
        chosen = np.arange(len(self)) if self._rows is None else self._rows
        return Batch(self._words, self.hashes[rows], self.num_instructions[rows], lowered, chosen[rows])

    def __reduce__(self) -> tuple[type[Batch], tuple[NDArray[Any], ...]]:
        """Another process gets no lowered programs."""
        return Batch, (self.words, self.hashes, self.num_instructions)
