"""The emitter: breeds programs from the archive's elites with the operators of vary.h.

Owns the generation counter. It decides everything random, together with the seed; there is no other state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ribs.emitters import EmitterBase

from evo.native.vary import Variation
from evo.search.archives.base import ProgramArchive

RANDOM = -1  # operator code of a program that has no parents


@dataclass(frozen=True)
class Origin:
    """Where the programs of one `ask` came from: parents `(n, 2)` int32 cells and `(n, 2, 2)` uint64 hashes (-1 and zero
    for none), operator `(n,)` int32 (a code of `evo.native.vary.OPERATORS`, or `RANDOM`).
    """

    parents: NDArray[np.int32]
    parent_hashes: NDArray[np.uint64]
    operator: NDArray[np.int32]


class ProgramEmitter(EmitterBase):
    """Emits random programs in generation 0 (and while the archive is empty), then offspring of uniformly drawn elites,
    followed by immigrants: random programs that start new lines of descent.

    Args:
        archive: the archive that parents are drawn from.
        variation: native operators with their options.
        seed: the run's 64-bit seed.
        max_length: words of a program.
        num_initial: programs in generation 0.
        batch_size: programs in each later generation.
        num_immigrants: how many of those are immigrants.
        generation: the first generation to emit.
    """

    def __init__(
        self,
        archive: ProgramArchive,
        variation: Variation,
        *,
        seed: int,
        max_length: int,
        num_initial: int,
        batch_size: int,
        num_immigrants: int = 0,
        generation: int = 0,
    ):
        bounds = np.iinfo(np.uint64)
        self._programs = archive
        self._max_length = max_length
        super().__init__(
            archive,
            solution_dim=max_length,
            bounds=None,
            lower_bounds=np.full(max_length, bounds.min, np.uint64),
            upper_bounds=np.full(max_length, bounds.max, np.uint64),
        )
        self._variation = variation
        self._seed = seed
        self._num_initial = num_initial
        self._batch_size = batch_size
        self._num_immigrants = num_immigrants
        self.generation = generation
        self.origin = _no_origin(0)

    def ask(self) -> NDArray[np.uint64]:
        """The next generation's programs, `(n, max_length)` uint64; `origin` tells where they came from."""
        generation, self.generation = self.generation, self.generation + 1
        if generation == 0 or self.archive.empty:
            num_programs = self._num_initial if generation == 0 else self._batch_size
            self.origin = _no_origin(num_programs)
            return self.random_programs(num_programs, generation)
        elites = self._programs.elites()
        num_offspring = self._batch_size - self._num_immigrants
        words, rows, operator = self._variation.offspring(
            self._seed, generation, 0, num_offspring, np.ascontiguousarray(elites.solution)
        )
        exists = rows >= 0
        immigrants = _no_origin(self._num_immigrants)
        self.origin = Origin(
            np.concatenate([np.where(exists, elites.cell[rows], -1).astype(np.int32), immigrants.parents]),
            np.concatenate([np.where(exists[:, :, None], elites.hash[rows], np.uint64(0)), immigrants.parent_hashes]),
            np.concatenate([operator.astype(np.int32), immigrants.operator]),
        )
        return np.concatenate([words, self.random_programs(self._num_immigrants, generation, num_offspring)])

    def random_programs(self, num_programs: int, generation: int = 0, first_slot: int = 0) -> NDArray[np.uint64]:
        """Random programs for the slots from `first_slot` on, `(num_programs, max_length)` uint64. Changes no state."""
        return self._variation.random_programs(self._seed, generation, first_slot, num_programs, self._max_length)


def _no_origin(num_programs: int) -> Origin:
    """The origin of random programs."""
    return Origin(
        np.full((num_programs, 2), -1, np.int32),
        np.zeros((num_programs, 2, 2), np.uint64),
        np.full(num_programs, RANDOM, np.int32),
    )
