"""The emitter: breeds programs from the archive's elites with the operators of vary.h.

Owns the generation counter. It decides everything random, together with the seed; there is no other state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evo.native.vary import Variation, program_lengths

if TYPE_CHECKING:
    from evo.search.archives.base import ProgramArchive

RANDOM = -1  # operator code of a program that has no parents
_CHUNK_WORDS = 1 << 17  # of the rows made at once: a megabyte stays in the cache until it is trimmed


@dataclass(frozen=True)
class Origin:
    """Where the programs of one `ask` came from: parents `(n, 2)` int32 cells and `(n, 2, 2)` uint64 hashes (-1 and zero
    for none), operator `(n,)` int32 (a code of `evo.native.vary.OPERATORS`, or `RANDOM`).
    """

    parents: NDArray[np.int32]
    parent_hashes: NDArray[np.uint64]
    operator: NDArray[np.int32]


class ProgramEmitter:
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
        self._archive = archive
        self._max_length = max_length
        self._variation = variation
        self._seed = seed
        self._num_initial = num_initial
        self._batch_size = batch_size
        self._num_immigrants = num_immigrants
        self.generation = generation
        self.origin = _no_origin(0)

    def ask(self) -> NDArray[np.uint64]:
        """The next generation's programs, `(n, width)` uint64; `origin` tells where they came from.

        Rows are as wide as the longest program and its RETURN, at most `max_length`.
        """
        generation, self.generation = self.generation, self.generation + 1
        candidates = self._archive.occupied_cells
        if generation == 0 or not len(candidates):
            num_programs = self._num_initial if generation == 0 else self._batch_size
            self.origin = _no_origin(num_programs)
            return self._trimmed(num_programs, lambda slot, count: self.random_programs(count, generation, slot))
        num_offspring = self._batch_size - self._num_immigrants
        parents = np.full((self._batch_size, 2), -1, np.int32)
        operator = np.full(self._batch_size, RANDOM, np.int32)

        def breed(slot: int, count: int) -> NDArray[np.uint64]:
            num_bred = min(count, max(0, num_offspring - slot))
            rows = slice(slot, slot + num_bred)
            words, parents[rows], operator[rows] = self._variation.offspring(
                self._seed, generation, slot, num_bred, self._archive.words, candidates
            )
            if num_bred == count:
                return words
            return np.concatenate([words, self.random_programs(count - num_bred, generation, slot + num_bred)])

        words = self._trimmed(self._batch_size, breed)
        exists = parents >= 0
        hashes = np.where(exists[:, :, None], self._archive.hashes(np.where(exists, parents, 0)), np.uint64(0))
        self.origin = Origin(parents, hashes, operator)
        return words

    def random_programs(self, num_programs: int, generation: int = 0, first_slot: int = 0) -> NDArray[np.uint64]:
        """Random programs for the slots from `first_slot` on, `(num_programs, max_length)` uint64. Changes no state."""
        return self._variation.random_programs(self._seed, generation, first_slot, num_programs, self._max_length)

    def _trimmed(self, num_programs: int, make: Callable[[int, int], NDArray[np.uint64]]) -> NDArray[np.uint64]:
        """The programs of the slots from 0 on, which `make(first_slot, count)` gives, without the columns that none of them uses.

        They are made a few at a time: the unused part of long rows is much more than the programs.
        """
        step = max(16, _CHUNK_WORDS // self._max_length)
        parts, width = [], 1
        for slot in range(0, num_programs, step):
            words = make(slot, min(step, num_programs - slot))
            part_width = min(int(program_lengths(words).max()) + 1, self._max_length)
            parts.append(words[:, :part_width].copy())
            width = max(width, part_width)
        trimmed = np.zeros((num_programs, width), np.uint64)
        for number, part in enumerate(parts):
            trimmed[number * step : number * step + len(part), : part.shape[1]] = part
        return trimmed


def _no_origin(num_programs: int) -> Origin:
    """The origin of random programs."""
    return Origin(
        np.full((num_programs, 2), -1, np.int32),
        np.zeros((num_programs, 2, 2), np.uint64),
        np.full(num_programs, RANDOM, np.int32),
    )
