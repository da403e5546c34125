"""Emitters: they breed programs from the archive's elites with the operators of vary.h, or make random ones.

Owns the generation counter, how the slots of a generation are divided among emitters, and what became of their programs. It
decides everything random, together with the seed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.native.row_threads import RowThreads
from evo.native.stack_ptx_words import WordType
from evo.native.vary import Variation, program_lengths
from evo.search.restarts import Restarts

RANDOM = -1  # operator code of a random program
GIVEN = -2  # of a program that generation 0 was given
TIDY = -3  # of tidy programs that replace elites at the end of a search
COMBINED = -4  # of a program that joins two elites
OWN = -5  # of a program by an emitter in `EMITTERS`

TRIMMED_LENGTH = 128  # words; in longer rows, zeros after programs cost more than copies without them
NUM_PARTNERS = 192  # of each sort, that one is chosen from
MAX_RANDOM_PARTNER = 8  # words
RANDOM_PARTNER_SLOT = 1 << 31  # first slot of random partners, behind the batch
MOST_DRAWN = 1024  # elites that are looked at for partners
GOLDEN_GAMMA = 0x9E3779B97F4A7C15

INITIAL = "initial"  # stands for an emitter where programs have none: in generation 0, at a start, and while there are no elites


class Combiner(Protocol):
    """Joins programs in pairs. Results depend on the programs alone. num_inputs: of programs."""

    kinds: Sequence[str]
    num_inputs: int

    def combine(
        self, programs: NDArray[np.uint64], partners: NDArray[np.uint64], max_length: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """For each program and each of `kinds`, its words with the best partner, and the partner's row or -1."""


@dataclass(frozen=True)
class Parents:
    """Elites that a user's emitter breeds from, one for each program that it makes.

    words: `(num_programs, max_length)` uint64. seed: of this generation and emitter. Random choices follow from it, so that a
    search stays exact.
    """

    words: NDArray[np.uint64]
    seed: int


Breed: TypeAlias = Callable[[Parents], NDArray[np.uint64]]

EMITTERS: dict[str, Breed] = {}
"""Users' emitters by the `kind` that a config names. Each gives words `(num_programs, width)`, width at most max_length."""


@dataclass(frozen=True)
class Emitter:
    """One source of programs. weight: its share of the slots, relative to the others. source: its operators, what joins elites,
    or one of `EMITTERS`; None: it makes random programs. parent_shares: generation g draws its parents from this share of the
    elites, the best; entry g modulo their number.
    """

    name: str
    weight: float
    source: Variation | Combiner | Breed | None
    parent_shares: Sequence[float] = (1.0,)


@dataclass(frozen=True)
class Success:
    """Success of an emitter's programs.

    offspring: programs made. evaluations: evaluated, tuned copies included. new_cells: elites of a cell that was empty. improved:
    elites of a cell that had one. In a batch, only the best of a cell counts.
    """

    offspring: int = 0
    evaluations: int = 0
    new_cells: int = 0
    improved: int = 0


@dataclass(frozen=True)
class Origin:
    """Origin of the programs of one `ask`: parents `(n, 2)` int32 cells (-1 for none), operator `(n,)` int32 (a code of
    `evo.native.vary.OPERATORS`, or `RANDOM` or `GIVEN`), emitter `(n,)` int32 (an index into `ProgramEmitter.names`).
    """

    parents: NDArray[np.int32]
    operator: NDArray[np.int32]
    emitter: NDArray[np.int32]


Part: TypeAlias = tuple[NDArray[np.uint64], Origin]


class ProgramEmitter:
    """Emits the given programs and random ones in generation 0, random ones at each start and while there are no elites, then
    what its emitters make, each in slots of its own.

    Args:
        restarts: the elites that parents are drawn from.
        variation: makes random programs.
        seed: the run's 64-bit seed.
        max_length: words of a program.
        num_initial: random programs in generation 0 and of each start.
        batch_size: programs in each later generation.
        emitters: at least one has a weight above 0. Their slots are in this order.
        given_programs: `(n, width)` words of programs that generation 0 begins with; None: none.
        generation: the first generation to emit.
        row_threads: breed together.
        success: `(1 + number of emitters, 4)`, what `success_counts` was before; None: nothing yet.

    Attributes:
        names: of `INITIAL` and the emitters.
        origin: of the programs that were asked for last.
        success_counts: the fields of `Success` for each of `names`, one row each.
    """

    def __init__(
        self,
        restarts: Restarts,
        variation: Variation,
        *,
        seed: int,
        max_length: int,
        num_initial: int,
        batch_size: int,
        emitters: Sequence[Emitter],
        given_programs: NDArray[np.uint64] | None = None,
        generation: int = 0,
        row_threads: RowThreads | None = None,
        success: NDArray[np.int64] | None = None,
    ):
        self.row_threads = row_threads
        self._restarts = restarts
        self._max_length = max_length
        self._variation = variation
        self._seed = seed
        self._num_initial = num_initial
        self.batch_size = batch_size
        self._emitters = emitters
        self._given_programs = given_programs
        self.names = (INITIAL, *(emitter.name for emitter in emitters))
        self.generation = generation
        self.origin = no_origin(0)
        self.success_counts = np.zeros((len(self.names), len(asdict(Success()))), np.int64) if success is None else success.copy()

    def ask(self, factor: int = 1) -> NDArray[np.uint64]:
        """The next generation's programs, `(n, width)` uint64; `origin` tells where they came from.

        `factor`: emitters make this many times `batch_size`. Rows are no wider than the programs need, so they may be
        narrower than `max_length`.
        """
        generation, self.generation = self.generation, self.generation + 1
        is_fresh = self._restarts.is_fresh(generation)
        if is_fresh or not len(self._restarts.population):
            parts = self._initial_programs(generation, self._num_initial if is_fresh else self.batch_size)
        else:
            slots = slots_of([emitter.weight for emitter in self._emitters], factor * self.batch_size, generation)
            parts = [
                self._emit(emitter, index, generation, first, end - first)
                for index, (emitter, (first, end)) in enumerate(zip(self._emitters, pairwise(slots), strict=True), start=1)
                if end > first
            ]
        origins = [origin for _, origin in parts]
        self.origin = origins[0] if len(origins) == 1 else _joined(origins)
        return _one_below_the_other([words for words, _ in parts])

    def tell(self, slots: NDArray[np.int64], is_elite: NDArray[np.bool_], is_new: NDArray[np.bool_]) -> None:
        """Counts the outcomes of the programs that were asked for last.

        Args:
            slots: `(n,)`, those of the programs that were evaluated.
            is_elite: `(n,)`, whether each is an elite now.
            is_new: `(n,)`, whether each took an empty cell.
        """
        num_names = len(self.names)
        self.success_counts[:, 0] += np.bincount(self.origin.emitter, minlength=num_names)
        outcomes = self.origin.emitter[slots] * 3 + is_elite + is_new  # of each emitter: no elite, one that had a cell, a new one
        not_elite, improved, new = np.bincount(outcomes, minlength=3 * num_names).reshape(num_names, 3).T
        self.success_counts[:, 1:] += np.stack([not_elite + improved + new, new, improved], axis=1)

    def success(self) -> dict[str, Success]:
        """Success of each emitter's programs so far, by name."""
        return {name: Success(*counts) for name, counts in zip(self.names, self.success_counts.tolist(), strict=True)}

    def random_programs(self, num_programs: int, generation: int = 0, first_slot: int = 0) -> NDArray[np.uint64]:
        """Random programs for the slots from `first_slot` on, `(num_programs, max_length)` uint64. Changes no state."""
        return self._variation.random_programs(self._seed, generation, first_slot, num_programs, self._max_length)

    def _initial_programs(self, generation: int, num_random: int) -> list[Part]:
        num_given = 0 if self._given_programs is None or generation else len(self._given_programs)
        parts = [(self._short_random_programs(num_random, generation, num_given), no_origin(num_random))]
        if num_given and self._given_programs is not None:
            parts.insert(0, (self._given_programs, no_origin(num_given, operator=GIVEN)))
        return parts

    def _emit(self, emitter: Emitter, index: int, generation: int, first_slot: int, num_programs: int) -> Part:
        """An emitter's programs for the slots from `first_slot` on."""
        source = emitter.source
        if source is None:
            return self._short_random_programs(num_programs, generation, first_slot), no_origin(num_programs, index)
        population = self._restarts.population
        candidates = population.best_cells(emitter.parent_shares[generation % len(emitter.parent_shares)])
        if callable(source):
            return self._bred(emitter.name, source, candidates, index, generation, num_programs)
        if not isinstance(source, Variation):
            return self._combined(source, candidates, index, generation, num_programs)
        where = (self._seed, generation, first_slot, num_programs, population.words, candidates)
        is_long = self._max_length > TRIMMED_LENGTH
        words, parents, operators = source.offspring(*where, trim=is_long, row_threads=self.row_threads)
        emitters = np.full(num_programs, index, np.int32)
        return words, Origin(parents.astype(np.int32), operators.astype(np.int32), emitters)

    def _bred(
        self, name: str, breed: Breed, candidates: NDArray[np.uint32], index: int, generation: int, num_programs: int
    ) -> Part:
        """Programs that a user's emitter makes of elites in turn. Raises UserError if that has the wrong form."""
        turn = (self._seed + (generation << 8 | index) * GOLDEN_GAMMA) % 2**64
        rows = np.resize(candidates[_shuffled(self._restarts.population.hashes(candidates), turn)], num_programs)
        words = np.array(breed(Parents(self._restarts.population.words[rows], turn)))
        if words.dtype != np.uint64 or words.ndim != 2 or len(words) != num_programs or words.shape[1] > self._max_length:
            shape = f"{words.dtype} of shape {words.shape}"
            reason = f"gave {shape}; must be uint64 of shape ({num_programs}, width), width at most {self._max_length}"
            raise UserError(reason, f"search.emitters.{name}")
        words[np.arange(words.shape[1]) >= program_lengths(words)[:, None]] = 0
        parents = np.stack([rows, np.full(num_programs, -1)], axis=1).astype(np.int32)
        return words, Origin(parents, *np.full((2, num_programs), [[OWN], [index]], np.int32))

    def _combined(
        self, combiner: Combiner, candidates: NDArray[np.uint32], index: int, generation: int, num_programs: int
    ) -> tuple[NDArray[np.uint64], Origin]:
        """Candidates joined with partners: short elites, these with inputs exchanged or in part, or short random programs. A
        candidate without a partner is emitted unchanged, which costs nothing.
        """
        population, num_kinds = self._restarts.population, len(combiner.kinds)
        turn = self._seed + (generation << 8 | index) * GOLDEN_GAMMA
        first = self._drawn(candidates, turn, self._max_length // 2)[: -(-num_programs // num_kinds)]
        second = self._drawn(population.occupied_cells, ~turn, self._max_length // 3)[:NUM_PARTNERS]
        elites = population.words[second]
        random = self._short_random_programs(NUM_PARTNERS, generation, RANDOM_PARTNER_SLOT)
        random[np.arange(random.shape[1]) > np.arange(NUM_PARTNERS)[:, None] % MAX_RANDOM_PARTNER] = 0
        partners = _one_below_the_other([elites, _varied(elites, population.hashes(second), turn, combiner.num_inputs), random])
        joined, chosen = combiner.combine(population.words[first], partners, self._max_length)
        rows = np.resize(np.repeat(first, num_kinds), num_programs)
        words = population.words[rows]
        parents = np.stack([rows, np.full(num_programs, -1)], axis=1).astype(np.int32)
        is_pair = np.flatnonzero(chosen[:num_programs] >= 0)
        words[is_pair] = joined[is_pair]
        of_elite = is_pair[chosen[is_pair] < 2 * len(second)]
        parents[of_elite, 1] = second[chosen[of_elite] % len(second)]
        operators, emitters = np.full((2, num_programs), [[COMBINED], [index]], np.int32)
        return words, Origin(parents, operators, emitters)

    def _drawn(self, cells: NDArray[np.uint32], turn: int, max_length: int) -> NDArray[np.uint32]:
        """The first cells in an order that each turn shuffles, of programs with at most `max_length` words, if there are any."""
        drawn = cells[_shuffled(self._restarts.population.hashes(cells), turn)[:MOST_DRAWN]]
        lengths = (self._restarts.population.words[drawn] != 0).sum(axis=1)
        short = drawn[lengths <= max_length]
        return short if len(short) else drawn[:1]

    def _short_random_programs(self, num_programs: int, generation: int, first_slot: int) -> NDArray[np.uint64]:
        """As `random_programs`, in rows no wider than the longest initial program and its RETURN."""
        width = min(self._variation.initial_max_length + 1, self._max_length)
        return self._variation.random_programs(self._seed, generation, first_slot, num_programs, width)


def _shuffled(hashes: NDArray[np.uint64], turn: int) -> NDArray[np.int64]:
    """The numbers of `(n, 2)` hashes in an order that each turn mixes anew."""
    return np.argsort(_mixed(hashes[:, :1], turn)[:, 0], kind="stable")


def _mixed(keys: NDArray[np.uint64], turn: int) -> NDArray[np.uint64]:
    """Numbers that look random, others for each turn (SplitMix64: Steele et al., 2014)."""
    keys = keys + np.array([turn % 2**64], np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ keys >> np.uint64(shift)) * np.uint64(factor)
    return keys ^ keys >> np.uint64(31)


def _varied(words: NDArray[np.uint64], hashes: NDArray[np.uint64], turn: int, num_inputs: int) -> NDArray[np.uint64]:
    """Permutes the inputs of programs, and cuts every second one off somewhere, which leaves a part of its computation. Hashes
    and the turn decide how.
    """
    draws = _mixed(hashes[:, :1] + np.arange(1 + num_inputs, dtype=np.uint64) * np.uint64(GOLDEN_GAMMA), turn)
    permutations = np.argsort(draws[:, 1:], axis=1, kind="stable").astype(np.uint64)
    is_input = (words & np.uint64(0xFFFF) == WordType.INPUT) & (words >> np.uint64(32) < num_inputs)
    inputs = np.where(is_input, words >> np.uint64(32), np.uint64(0)).astype(np.intp)
    varied = np.where(
        is_input, np.take_along_axis(permutations, inputs, axis=1) << np.uint64(32) | np.uint64(WordType.INPUT), words
    )
    lengths = (words != 0).sum(axis=1).astype(np.uint64)
    ends = np.where(np.arange(len(words)) % 2, 1 + draws[:, 0] % np.maximum(lengths, 1), lengths)
    varied[np.arange(words.shape[1]) >= ends[:, None]] = 0
    return varied


def slots_of(weights: Sequence[float], batch_size: int, generation: int) -> list[int]:
    """The slots of a generation's emitters: emitter i has those from entry i up to entry i + 1.

    Each has its share of the batch, rounded down or up. Slots that are left over go to emitters by their fractions (systematic
    sampling: Madow and Madow, 1944), from an offset that the golden ratio moves from generation to generation, so that in the
    long run shares are kept. A share below one slot thus has a slot in some generations.
    """
    total = sum(weights)
    shares = [round(weight * batch_size / total, 9) for weight in weights]  # without the noise of weights such as 0.1 and 0.2
    whole = [math.floor(share) for share in shares]
    offset = (generation * 0x9E3779B9 % 2**32) / 2**32
    fractions = accumulate((share - floor for share, floor in zip(shares, whole, strict=True)), initial=0.0)
    extras = [math.ceil(round(fraction, 6) - offset) for fraction in fractions]
    return [floor + extra for floor, extra in zip(accumulate(whole, initial=0), extras, strict=True)]


def _joined(origins: Sequence[Origin]) -> Origin:
    return Origin(*(np.concatenate([vars(origin)[name] for origin in origins]) for name in Origin.__dataclass_fields__))


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


def no_origin(num_programs: int, emitter: int = 0, operator: int = RANDOM) -> Origin:
    """The origin of programs without parents."""
    return Origin(
        np.full((num_programs, 2), -1, np.int32),
        np.full(num_programs, operator, np.int32),
        np.full(num_programs, emitter, np.int32),
    )
