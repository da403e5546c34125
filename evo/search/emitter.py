"""The emitter: breeds programs from the archive's elites with the operators of vary.h.

Owns the counter of generations, which with the seed decides everything random; it holds no other state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ribs.archives import ArchiveBase
from ribs.emitters import EmitterBase

from evo.native.vary import Variation
from evo.search.archive import elites_by_cell

INITIAL = -1  # operator code of a program that has no parents


@dataclass(frozen=True)
class Origin:
    """Where the programs of one `ask` came from: parents `(n, 2)` int32 cells and `(n, 2, 2)` uint64 hashes (-1 and zero
    for none), operator `(n,)` int32 (a code of `evo.native.vary.OPERATORS`, or `INITIAL`)."""

    parents: np.ndarray
    parent_hashes: np.ndarray
    operator: np.ndarray


class ProgramEmitter(EmitterBase):
    """Emits random programs in generation 0 (and while the archive is empty), then offspring of elites drawn uniformly.

    Args:
        archive: the archive that parents are drawn from.
        variation: native operators with their options.
        seed: 64-bit seed of the run.
        max_length: words a program.
        num_initial: programs of generation 0.
        batch_size: programs of each generation after that.
        generation: the generation to go on with.
    """

    def __init__(
        self,
        archive: ArchiveBase,
        variation: Variation,
        *,
        seed: int,
        max_length: int,
        num_initial: int,
        batch_size: int,
        generation: int = 0,
    ):
        bounds = np.iinfo(np.uint64)
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
        self.generation = generation
        self.origin: Origin | None = None

    def ask(self) -> np.ndarray:
        """The programs of the next generation, `(n, max_length)` uint64; where they came from is in `origin`."""
        generation, self.generation = self.generation, self.generation + 1
        if generation == 0 or self.archive.empty:
            num_programs = self._num_initial if generation == 0 else self._batch_size
            words = self.random_programs(num_programs, generation)
            self.origin = Origin(
                np.full((num_programs, 2), -1, np.int32),
                np.zeros((num_programs, 2, 2), np.uint64),
                np.full(num_programs, INITIAL, np.int32),
            )
            return words
        elites = elites_by_cell(self.archive)
        words, rows, operator = self._variation.offspring(
            self._seed, generation, 0, self._batch_size, np.ascontiguousarray(elites.solution)
        )
        exists = rows >= 0
        self.origin = Origin(
            np.where(exists, elites.cell[rows], -1).astype(np.int32),
            np.where(exists[:, :, None], elites.hash[rows], np.uint64(0)),
            operator.astype(np.int32),
        )
        return words

    def random_programs(self, num_programs: int, generation: int = 0) -> np.ndarray:
        """The first random programs of a generation, `(num_programs, max_length)` uint64; no state changes."""
        return self._variation.random_programs(self._seed, generation, 0, num_programs, self.solution_dim)
