# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, freethreading_compatible=True
"""Variation of programs: random programs and offspring, batches of rows of instruction words at a time.

Owns the step between NumPy arrays and csrc/vary.h, whose opening comment defines rows, operators and randomness. Knows nothing
of the meaning of words, of archives or of configs. Batch calls release the GIL; a `Variation` never changes, so threads may
share it.
"""

from enum import IntEnum
from operator import index
from typing import NamedTuple

import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcpy, memset

from evo.native.arrays cimport address
from evo.native.row_threads cimport RowThreads


class Draw(IntEnum):
    """Ways to make the payload of a drawn word; `params` are two numbers of its vocabulary entry."""

    LITERAL = VARY_DRAW_LITERAL
    """The word unchanged; `params` are not used."""
    GAUSSIAN = VARY_DRAW_GAUSSIAN
    """f32 constant of mean `params[0]` and standard deviation `params[1]`."""
    UNIFORM = VARY_DRAW_UNIFORM
    """f32 constant, even between `params[0]` and `params[1]`."""
    INTEGER = VARY_DRAW_INTEGER
    """Integer, even in `params[0] <= x < params[1]`."""


class Rate(NamedTuple):
    """A number that tunes an operator, from `lowest`, or above it if `is_lowest_refused`, to `highest`."""

    operator: str
    name: str
    default: float
    lowest: float
    highest: float
    is_lowest_refused: bool

    @property
    def key(self) -> str:
        """Operator and name, such as `umad_addition_rate`."""
        return f"{self.operator}_{self.name}"


MAX_PHRASE: int = VARY_MAX_PHRASE
"""Words of the longest phrase."""

OPERATORS: tuple[str, ...] = tuple(vary_operator_to_string(code).decode() for code in range(VARY_NUM_OPERATORS))
"""Names of the operators by their code: VARY_OPERATORS of vary.h."""


def _rate_info(rate):
    cdef const VaryRateInfo* info = vary_rate_info(rate)
    return Rate(
        OPERATORS[info.operator_code], info.name.decode(), info.default_value, info.lowest, info.highest, info.is_lowest_refused
    )


RATES: tuple[Rate, ...] = tuple(_rate_info(rate) for rate in range(VARY_NUM_RATES))
"""The rates of all operators: VARY_RATES of vary.h."""


# Words that a thread breeds in one go, which takes 0.03 ms.
cdef enum: _BRED_AT_ONCE = 8192


cdef struct _Breeding:
    const VaryTables* tables
    const VaryBatch* batch
    VaryResult result


cdef void _breed(void* context, size_t member, size_t first, size_t end) noexcept nogil:
    cdef _Breeding* breeding = <_Breeding*>context
    cdef VaryBatch part = breeding.batch[0]
    cdef VaryResult result
    part.first_slot += <uint32_t>first
    part.num_offspring = end - first
    part.words_out += first * part.max_length
    part.parents_out += 2 * first
    part.operators_out += first
    if part.lengths_out != NULL:
        part.lengths_out += first
    result = vary_offspring(breeding.tables, &part)
    if result != VARY_SUCCESS:
        breeding.result = result


cdef class Variation:
    """Operators over one vocabulary.

    Args:
        words: `(num_entries,)` uint64, the choices for a new word; never a RETURN.
        weights: `(num_entries,)` float64, how often each is drawn; need not sum to one.
        draws: `(num_entries,)` uint32, a `Draw` for each.
        params: `(num_entries, 2)` float64, parameters of the draws.
        num_words: `(num_entries,)` uint32, from 1 on: an entry is drawn together with this many less one of those after it, which
            should have weight 0. None: 1 for each.
        options: any object with the attributes `operator_weights` (one number for each of `OPERATORS`), the key of each of
            `RATES`, `initial_min_length`, `initial_max_length`, and `float_stacks`, `unsigned_stacks`, `signed_stacks`: bit masks
            of stacks by the type of their constants. For `subprogram`, which cannot act without, also `effects`: a pair for each
            PTX instruction, the stacks of the values that it pops and of those that it pushes; and `input_stacks`, the stack of
            each input.

    Raises:
        ValueError: an array has the wrong shape, or an entry or option is out of range; the message names it.
    """

    cdef void* _memory
    cdef tuple _owned  # what the tables point to
    cdef const VaryTables* _tables
    cdef readonly int initial_max_length

    def __cinit__(
        self, words: ArrayLike, weights: ArrayLike, draws: ArrayLike, params: ArrayLike, options: Any,
        num_words: ArrayLike | None = None
    ):
        cdef VaryOptions native
        cdef size_t num_bytes, num_entries
        entries = _entries(words, weights, draws, params, np.ones(len(words), np.uint32) if num_words is None else num_words)
        self._owned = _fill_options(options, &native)
        num_entries = len(entries)
        _check(vary_tables_size(num_entries, &num_bytes), "vocabulary")
        self._memory = PyMem_Malloc(num_bytes)
        if self._memory == NULL:
            raise MemoryError
        self.initial_max_length = native.initial_max_length
        _check(
            vary_init(<const VaryEntry*>address(entries), num_entries, &native, self._memory, num_bytes, &self._tables),
            "vocabulary",
        )

    def __dealloc__(self):
        PyMem_Free(self._memory)

    def random_programs(
        self, seed: int, generation: int, first_slot: int, num_programs: int, max_length: int
    ) -> NDArray[np.uint64]:
        """Random programs for the slots from `first_slot` on, `(num_programs, max_length)` uint64.

        Raises:
            ValueError: a number is out of range, or initial programs do not fit into `max_length`.
        """
        cdef uint64_t key = _integer("seed", seed, 0, 2**64 - 1)
        cdef uint32_t native_generation = _integer("generation", generation, 0, 2**32 - 1)
        cdef uint32_t slot = _integer("first_slot", first_slot, 0, 2**32 - 1)
        cdef size_t count = _integer("num_programs", num_programs, 0, 2**32 - first_slot)
        cdef uint32_t length = _integer("max_length", max_length, 1, VARY_MAX_LENGTH)
        cdef VaryResult result
        if self.initial_max_length > length:
            raise ValueError(
                f"initial_max_length: initial programs of up to {self.initial_max_length} words do not fit into a max_length "
                f"of {length}"
            )
        words = np.empty((count, length), np.uint64)
        cdef uint64_t* words_out = <uint64_t*>address(words)
        with nogil:
            result = vary_random_programs(self._tables, key, native_generation, slot, count, length, words_out)
        _check(result, "random_programs")
        return words

    def offspring(
        self, seed: int, generation: int, first_slot: int, num_offspring: int, pool: NDArray[np.uint64],
        candidates: NDArray[np.uint32] | None = None, *, trim: bool = False, row_threads: RowThreads | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint8]]:
        """Offspring of a pool of programs for the slots from `first_slot` on.

        Args:
            pool: `(num_rows, max_length)` uint64, programs; offspring are rows of the same width.
            candidates: `(num_candidates,)` uint32: the rows of the pool that may be parents, each once; None: all. Offspring
                depend on the candidates' programs alone, not on where in the pool they are.
            trim: make rows no wider than the longest offspring and its RETURN. Long rows then cost what their programs cost.
            row_threads: breed together.

        Returns:
            words: `(num_offspring, max_length)` uint64; narrower with `trim`.
            parents: `(num_offspring, 2)` int64, rows of the pool; the second is -1 if the operator has one parent.
            operators: `(num_offspring,)` uint8, the code in `OPERATORS` of the one applied.

        Raises:
            ValueError: the pool or the candidates are empty or the wrong kind of array, or a number is out of range.
        """
        cdef VaryBatch batch
        cdef _Breeding breeding
        cdef RowThreads threads = row_threads
        pool = _rows("pool", pool)
        batch.seed = _integer("seed", seed, 0, 2**64 - 1)
        batch.generation = _integer("generation", generation, 0, 2**32 - 1)
        cdef uint32_t slot = _integer("first_slot", first_slot, 0, 2**32 - 1)
        cdef size_t count = _integer("num_offspring", num_offspring, 0, 2**32 - first_slot)
        batch.num_rows, batch.max_length = pool.shape
        batch.pool = <const uint64_t*>address(pool)
        batch.candidates = NULL
        if candidates is not None:
            candidates = _candidates(candidates, batch.num_rows)
            batch.candidates = <const uint32_t*>address(candidates)
            batch.num_candidates = len(candidates)
        # Trimmed rows are made a few at a time in one place that stays in the cache.
        cdef size_t num_threads = 1 if threads is None else threads.num_threads
        cdef size_t step = max(1, min(count, num_threads * _TRIMMED_AT_ONCE // batch.max_length)) if trim else count
        cdef size_t block = max(1, _BRED_AT_ONCE // batch.max_length)
        cdef size_t start = 0
        words = np.empty((step, batch.max_length), np.uint64)
        lengths = np.empty(step, np.uint32)
        parents = np.empty((count, 2), np.int64)
        operators = np.empty(count, np.uint8)
        parts = []
        batch.words_out = <uint64_t*>address(words)
        batch.lengths_out = <uint32_t*>address(lengths) if trim else NULL
        batch.parents_out = <int64_t*>address(parents)
        batch.operators_out = <uint8_t*>address(operators)
        while start < count:
            batch.first_slot = <uint32_t>(slot + start)
            batch.num_offspring = min(step, count - start)
            breeding.tables, breeding.batch, breeding.result = self._tables, &batch, VARY_SUCCESS
            with nogil:
                if threads is None:
                    _breed(&breeding, 0, 0, batch.num_offspring)
                else:
                    threads.run(_breed, &breeding, batch.num_offspring, block)
            _check(breeding.result, "offspring")
            if trim:
                parts.append(_without_tails(words[: batch.num_offspring], lengths[: batch.num_offspring], step < count))
            start += batch.num_offspring
            batch.parents_out += 2 * batch.num_offspring
            batch.operators_out += batch.num_offspring
        if trim:
            words = parts[0] if len(parts) == 1 else _joined(parts, count)
        return words, parents, operators


def program_lengths(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Number of words before the first RETURN of each row: `(num_rows, max_length)` uint64 to `(num_rows,)` int64."""
    words = _rows("words", words)
    lengths = np.empty(len(words), np.int64)
    cdef const uint64_t* rows = <const uint64_t*>address(words)
    cdef int64_t* lengths_out = <int64_t*>address(lengths)
    cdef size_t num_rows = len(words), max_length = words.shape[1], row
    with nogil:
        for row in range(num_rows):
            lengths_out[row] = vary_program_length(rows + row * max_length, <uint32_t>max_length)
    return lengths


# Words of the rows that are made before they are trimmed: 512 kB.
cdef enum: _TRIMMED_AT_ONCE = 1 << 16


cdef _without_tails(words, lengths, copied):
    """The rows up to their RETURN, as wide as the longest needs, then zeros. In the rows' own memory if it fits and may be."""
    cdef size_t num_rows = words.shape[0], max_length = words.shape[1], row, used
    cdef size_t width = min(<size_t>np.max(lengths) + 1, max_length)
    trimmed = np.empty((num_rows, width), np.uint64) if copied or width < max_length else words
    cdef const uint64_t* rows = <const uint64_t*>address(words)
    cdef const uint32_t* lengths_of = <const uint32_t*>address(lengths)
    cdef uint64_t* out = <uint64_t*>address(trimmed)
    with nogil:
        for row in range(num_rows):
            used = min(<size_t>lengths_of[row] + 1, width)
            if out != rows:
                memcpy(out + row * width, rows + row * max_length, used * sizeof(uint64_t))
            memset(out + row * width + used, 0, (width - used) * sizeof(uint64_t))
    return trimmed


cdef _joined(parts, num_rows):
    """Blocks of rows one below the other, as wide as the widest."""
    words = np.zeros((num_rows, max((part.shape[1] for part in parts), default=1)), np.uint64)
    first = 0
    for part in parts:
        words[first : first + len(part), : part.shape[1]] = part
        first += len(part)
    return words


cdef _candidates(candidates, num_rows):
    candidates = np.asarray(candidates)
    if candidates.dtype != np.uint32 or candidates.ndim != 1 or not len(candidates):
        raise ValueError(
            f"candidates: expected uint32 of shape (num_candidates,), not empty, got {candidates.dtype} of shape {candidates.shape}"
        )
    if not len(candidates) <= num_rows or candidates.max() >= num_rows:
        raise ValueError(f"candidates: expected different rows of a pool of {num_rows}, got {len(candidates)} up to {candidates.max()}")
    return np.ascontiguousarray(candidates)


# The layout of VaryEntry.
_ENTRY = np.dtype([("word", "u8"), ("weight", "f8"), ("params", "f8", (2,)), ("draw", "u4"), ("num_words", "u4")], align=True)


cdef _entries(words, weights, draws, params, num_words):
    words = np.asarray(words)
    entries = np.zeros(len(words), _ENTRY)
    for name, values, dtype, shape in (
        ("word", words, np.uint64, (len(words),)),
        ("weight", weights, np.float64, (len(words),)),
        ("draw", draws, np.uint32, (len(words),)),
        ("params", params, np.float64, (len(words), 2)),
        ("num_words", num_words, np.uint32, (len(words),)),
    ):
        values = np.asarray(values)
        if values.shape != shape or not np.can_cast(values.dtype, dtype, "same_kind"):
            raise ValueError(
                f"vocabulary {name}: expected {np.dtype(dtype)} of shape {shape}, got {values.dtype} of shape {values.shape}"
            )
        entries[name] = values
    return entries


cdef _fill_options(options, VaryOptions* native):
    weights = tuple(options.operator_weights)
    if len(weights) != VARY_NUM_OPERATORS or not all(0 <= weight < 1e300 for weight in weights) or not any(weights):
        raise ValueError(
            f"operator_weights: {weights}, expected a number of at least 0 for each of {', '.join(OPERATORS)}, one of them above 0"
        )
    for code in range(VARY_NUM_OPERATORS):
        native.operator_weights[code] = weights[code]
    for code, rate in enumerate(RATES):
        native.rates[code] = _rate(rate, getattr(options, rate.key))
    native.initial_max_length = _integer("initial_max_length", options.initial_max_length, 0, VARY_MAX_LENGTH)
    native.initial_min_length = _integer("initial_min_length", options.initial_min_length, 0, native.initial_max_length)
    native.float_stacks = _integer("float_stacks", options.float_stacks, 0, 2**64 - 1)
    native.unsigned_stacks = _integer("unsigned_stacks", options.unsigned_stacks, 0, 2**64 - 1)
    native.signed_stacks = _integer("signed_stacks", options.signed_stacks, 0, 2**64 - 1)
    effects = _effects(getattr(options, "effects", ()))
    input_stacks = np.array(getattr(options, "input_stacks", ()), np.uint8)
    native.effects = <const VaryEffect*>address(effects)
    native.num_effects = len(effects)
    native.input_stacks = <const uint8_t*>address(input_stacks)
    native.num_inputs = len(input_stacks)
    return effects, input_stacks


# The layout of VaryEffect.
_EFFECT = np.dtype([("num_popped", "u1"), ("num_pushed", "u1"), ("stacks", "u1", (VARY_MAX_EFFECT_VALUES,))])


cdef _effects(pairs):
    effects = np.zeros(len(pairs), _EFFECT)
    for effect, (popped, pushed) in zip(effects, pairs, strict=True):
        stacks = [*popped, *pushed]
        if len(stacks) > VARY_MAX_EFFECT_VALUES:
            effect["num_popped"] = VARY_UNKNOWN_EFFECT
            continue
        effect["num_popped"], effect["num_pushed"] = len(popped), len(pushed)
        effect["stacks"][: len(stacks)] = stacks
    return effects


cdef _rate(rate, value):
    if not rate.lowest <= value <= rate.highest or (rate.is_lowest_refused and value == rate.lowest):
        bound = "above" if rate.is_lowest_refused else "from"
        raise ValueError(f"{rate.key}: {value}, expected a number {bound} {rate.lowest:g} to {rate.highest:g}")
    return value


cdef _integer(name, value, lowest, highest):
    value = index(value)
    if not lowest <= value <= highest:
        raise ValueError(f"{name}: {value}, expected an integer from {lowest} to {highest}")
    return value


cdef _rows(name, rows):
    rows = np.asarray(rows)
    if rows.dtype != np.uint64 or rows.ndim != 2 or not 1 <= rows.shape[1] <= VARY_MAX_LENGTH:
        raise ValueError(f"{name}: expected uint64 of shape (rows, max_length), got {rows.dtype} of shape {rows.shape}")
    return np.ascontiguousarray(rows)


cdef _check(VaryResult result, what):
    if result == VARY_ERROR_EMPTY_VOCABULARY:
        raise ValueError("vocabulary: no word has a weight above 0")
    if result == VARY_ERROR_INVALID_SCALE:
        raise ValueError("perturbation_relative, perturbation_absolute: both are 0, expected at least one above 0")
    if result == VARY_ERROR_INVALID_STACKS:
        raise ValueError("float_stacks, unsigned_stacks, signed_stacks: a stack is in more than one of them, or one is not below 64")
    if result != VARY_SUCCESS:
        raise ValueError(f"{what}: {vary_result_to_string(result).decode()}")
