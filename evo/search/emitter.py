"""The emitter: breeds programs from the archive's elites with the operators of vary.h.

Owns the generation counter. It decides everything random, together with the seed; there is no other state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.native.vary import Variation
from evo.search.blocks import Blocks
from evo.search.starts import Starts

RANDOM = -1  # operator code of a program that has no parents


@dataclass(frozen=True)
class Origin:
    """Where the programs of one `ask` came from: parents `(n, 2)` int32 cells and `(n, 2, 2)` uint64 hashes (-1 and zero
    for none), operator `(n,)` int32 (a code of `evo.native.vary.OPERATORS`, or `RANDOM`).
    """

    parents: NDArray[np.int32]
    parent_hashes: NDArray[np.uint64]
    operator: NDArray[np.int32]


class ProgramEmitter:
    """Emits random programs in generation 0, at each start, and while there are no elites, then offspring of uniformly drawn
    elites, followed by immigrants: random programs that start new lines of descent.

    Args:
        starts: the elites that parents are drawn from.
        variation: native operators with their options.
        seed: the run's 64-bit seed.
        max_length: words of a program.
        num_initial: programs in generation 0 and of each start.
        batch_size: programs in each later generation.
        num_immigrants: how many of those are immigrants.
        generation: the first generation to emit.
        blocks: threads that breed together.
        parent_shares: generation g draws its parents from this share of the elites, the best; entry g modulo their number.
    """

    def __init__(
        self,
        starts: Starts,
        variation: Variation,
        *,
        seed: int,
        max_length: int,
        num_initial: int,
        batch_size: int,
        num_immigrants: int = 0,
        generation: int = 0,
        blocks: Blocks | None = None,
        parent_shares: Sequence[float] = (1.0,),
    ):
        self._blocks = blocks or Blocks()
        self._starts = starts
        self._max_length = max_length
        self._variation = variation
        self._seed = seed
        self._num_initial = num_initial
        self._batch_size = batch_size
        self._num_immigrants = num_immigrants
        self._parent_shares = parent_shares
        self.generation = generation
        self.origin = _no_origin(0)

    def ask(self) -> NDArray[np.uint64]:
        """The next generation's programs, `(n, width)` uint64; `origin` tells where they came from.

        Rows are no wider than the programs need, so they may be narrower than `max_length`.
        """
        generation, self.generation = self.generation, self.generation + 1
        population = self._starts.population
        if self._starts.is_fresh(generation) or not len(population):
            num_programs = self._num_initial if self._starts.is_fresh(generation) else self._batch_size
            self.origin = _no_origin(num_programs)
            return self._short_random_programs(num_programs, generation, 0)
        candidates = population.best_cells(self._parent_shares[generation % len(self._parent_shares)])
        num_offspring = self._batch_size - self._num_immigrants

        def breed(first: int, end: int) -> tuple[NDArray[Any], ...]:
            return self._variation.offspring(self._seed, generation, first, end - first, population.words, candidates, trim=True)

        blocks, parents, operators = zip(*self._blocks.map(breed, num_offspring), strict=True)
        parents = np.concatenate(parents)
        exists = parents >= 0
        hashes = np.where(exists[:, :, None], population.hashes(np.where(exists, parents, 0)), np.uint64(0))
        immigrants = _no_origin(self._num_immigrants)
        self.origin = Origin(
            np.concatenate([parents.astype(np.int32), immigrants.parents]),
            np.concatenate([hashes, immigrants.parent_hashes]),
            np.concatenate([*operators, immigrants.operator]).astype(np.int32),
        )
        if self._num_immigrants:
            blocks += (self._short_random_programs(self._num_immigrants, generation, num_offspring),)
        return _one_below_the_other(blocks)

    def random_programs(self, num_programs: int, generation: int = 0, first_slot: int = 0) -> NDArray[np.uint64]:
        """Random programs for the slots from `first_slot` on, `(num_programs, max_length)` uint64. Changes no state."""
        return self._variation.random_programs(self._seed, generation, first_slot, num_programs, self._max_length)

    def _short_random_programs(self, num_programs: int, generation: int, first_slot: int) -> NDArray[np.uint64]:
        """As `random_programs`, in rows no wider than the longest initial program and its RETURN."""
        width = min(self._variation.initial_max_length + 1, self._max_length)
        return self._variation.random_programs(self._seed, generation, first_slot, num_programs, width)


def _one_below_the_other(blocks: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Programs in one array, as wide as the widest block."""
    if len(blocks) == 1:
        return blocks[0]
    words = np.zeros((sum(map(len, blocks)), max(block.shape[1] for block in blocks)), np.uint64)
    first = 0
    for block in blocks:
        words[first : first + len(block), : block.shape[1]] = block
        first += len(block)
    return words


def _no_origin(num_programs: int) -> Origin:
    """The origin of random programs."""
    return Origin(
        np.full((num_programs, 2), -1, np.int32),
        np.zeros((num_programs, 2, 2), np.uint64),
        np.full(num_programs, RANDOM, np.int32),
    )
