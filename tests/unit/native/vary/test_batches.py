"""Any words and options give valid offspring, whatever the batches and threads; errors take one line."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evo.language.program import word
from evo.native.row_threads import RowThreads
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS, Draw, program_lengths

F32, U32, S32 = 0, 1, 2
ONE_PARENT = [OPERATORS.index(name) for name in ("umad", "perturbation", "replacement")]
TWO_PARENTS = [OPERATORS.index(name) for name in ("alternation", "crossover")]
ENTRIES = [(word(WordType.PTX, 0, 5), 1.0, Draw.LITERAL, (0, 0))]


@given(
    pool=hnp.arrays(np.uint64, st.tuples(st.integers(1, 6), st.integers(1, 90))),
    types=st.integers(0, 2**32 - 1),
    only=st.sampled_from([None, *OPERATORS]),
    rates=st.tuples(*[st.floats(1e-6, 1.0)] * 5),
    deviation=st.floats(0.0, 100.0),
    seed=st.integers(0, 2**64 - 1),
)
def test_every_offspring_of_any_pool_is_valid(make, assert_valid, pool, types, only, rates, deviation, seed):
    # Real words among the arbitrary ones; a pool's f32 constants are finite.
    kinds = [WordType.PTX, WordType.CONSTANT, word(WordType.CONSTANT, U32), WordType.RETURN, 77]
    kinds = np.random.default_rng(types).choice(kinds, pool.shape, p=[0.4, 0.3, 0.1, 0.02, 0.18])
    pool = pool & np.uint64(0xBFFFFFFF_00000000) | kinds.astype(np.uint64)
    variation = make(
        only=only,
        umad_addition_rate=rates[0],
        umad_deletion_rate=rates[1],
        alternation_rate=rates[2],
        perturbation_rate=rates[3],
        replacement_rate=rates[4],
        alternation_deviation=deviation,
        perturbation_relative=deviation,
    )
    words, parents, operators = variation.offspring(seed, 3, 5, 40, pool)
    assert_valid(words)
    assert ((parents[:, 0] >= 0) & (parents < len(pool)).all(axis=1)).all()
    has_second = parents[:, 1] >= 0
    assert has_second[np.isin(operators, TWO_PARENTS)].all() and not has_second[np.isin(operators, ONE_PARENT)].any()
    lengths = program_lengths(words)
    for child, n, rows, operator in zip(words, lengths, parents, operators, strict=True):
        if operator in TWO_PARENTS:
            known = set(pool[rows].ravel().tolist())
            assert set(child[:n].tolist()) <= known


@pytest.mark.parametrize("trim", [False, True])
def test_offspring_do_not_depend_on_threads_or_on_the_call_they_are_made_in(make, trim):
    variation = make()
    pool = variation.random_programs(1, 0, 0, 200, 64)
    whole = variation.offspring(1, 1, 0, 6400, pool)
    with ThreadPoolExecutor(4) as executor:
        parts = list(executor.map(lambda slot: variation.offspring(1, 1, slot, 100, pool), range(0, 6400, 100)))
    together = variation.offspring(1, 1, 0, 6400, pool, trim=trim, row_threads=RowThreads(3))
    for expected, found, *pieces in zip(whole, together, *parts, strict=True):
        np.testing.assert_array_equal(np.concatenate(pieces), expected)
        np.testing.assert_array_equal(found, expected[:, : found.shape[1]] if trim and found.ndim == 2 else expected)
    assert not whole[0][:, together[0].shape[1] :].any()


@pytest.mark.parametrize("num_candidates", [1, 20])
def test_offspring_of_some_rows_are_those_of_a_pool_of_these_rows(make, num_candidates):
    variation = make()
    programs = variation.random_programs(1, 0, 0, num_candidates, 64)
    words, parents, operators = variation.offspring(1, 1, 0, 500, programs)
    candidates = np.random.default_rng(2).permutation(50)[:num_candidates].astype(np.uint32)
    pool = np.full((50, 64), 2**64 - 1, np.uint64)
    pool[candidates] = programs
    chosen_words, chosen_parents, chosen_operators = variation.offspring(1, 1, 0, 500, pool, candidates)
    np.testing.assert_array_equal(chosen_words, words)
    np.testing.assert_array_equal(chosen_operators, operators)
    np.testing.assert_array_equal(chosen_parents, np.where(parents >= 0, candidates[parents].astype(np.int64), -1))


@pytest.mark.parametrize(("max_length", "num_offspring"), [(48, 3000), (4096, 100), (4096, 0)])
def test_trimmed_rows_are_the_same_programs_without_columns_that_none_uses(make, max_length, num_offspring):
    variation = make(umad_addition_rate=0.5, umad_deletion_rate=0.3)  # at 48 words some offspring fill their row
    pool = variation.random_programs(1, 0, 0, 30, max_length)
    whole, *others = variation.offspring(1, 1, 7, num_offspring, pool)
    trimmed, *trimmed_others = variation.offspring(1, 1, 7, num_offspring, pool, trim=True)
    longest = int(program_lengths(whole).max()) if num_offspring else 0
    assert trimmed.shape[1] == min(longest + 1, max_length)
    assert (longest == max_length) == (max_length == 48)
    np.testing.assert_array_equal(trimmed, whole[:, : trimmed.shape[1]])
    for one, other in zip(others, trimmed_others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_pool_may_be_read_only_or_strided(make):
    variation = make()
    pool = variation.random_programs(1, 0, 0, 20, 64)
    pool.flags.writeable = False
    whole, _, _ = variation.offspring(1, 1, 0, 50, pool)
    strided = np.repeat(pool, 2, axis=0)[::2]
    np.testing.assert_array_equal(variation.offspring(1, 1, 0, 50, strided)[0], whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entries": [(word(WordType.RETURN), 1.0, Draw.LITERAL, (0, 0))]}, "vocabulary: VARY_ERROR_INVALID_ENTRY"),
        ({"entries": [(word(WordType.PTX), 0.0, Draw.LITERAL, (0, 0))]}, "vocabulary: no word has a weight above 0"),
        (
            {"operator_weights": (1.0,)},
            "operator_weights: (1.0,), expected a number of at least 0 for each of umad, alternation",
        ),
        ({"umad_addition_rate": 0.0}, "umad_addition_rate: 0.0, expected a number above 0 to 1"),
        ({"umad_deletion_rate": float("nan")}, "umad_deletion_rate: nan, expected a number from 0 to 1"),
        ({"perturbation_relative": 0.0, "perturbation_absolute": 0.0}, "both are 0"),
        ({"initial_min_length": 41}, "initial_min_length: 41, expected an integer from 0 to 40"),
        ({"unsigned_stacks": 1}, "a stack is in more than one of them"),
    ],
)
def test_wrong_vocabularies_and_options_are_named(make, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        make(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v, pool: v.offspring(1, 1, 0, 1, pool[:0]), "offspring: VARY_ERROR_EMPTY_POOL"),
        (
            lambda v, pool: v.offspring(1, 1, 0, 1, pool[0]),
            "pool: expected uint64 of shape (rows, max_length), got uint64 of shape (64,)",
        ),
        (lambda v, pool: v.offspring(1, 1, 0, 1, pool, np.zeros(1, np.int64)), "candidates: expected uint32"),
        (
            lambda v, pool: v.offspring(1, 1, 0, 1, pool, np.array([len(pool)], np.uint32)),
            "candidates: expected different rows of a pool of",
        ),
        (
            lambda v, pool: v.offspring(-1, 1, 0, 1, pool),
            "seed: -1, expected an integer from 0 to 18446744073709551615",
        ),
        (lambda v, pool: v.offspring(1, 2**32, 0, 1, pool), "generation: 4294967296"),
        (lambda v, pool: v.offspring(1, 1, 2**32 - 1, 2, pool), "num_offspring: 2, expected an integer from 0 to 1"),
        (
            lambda v, pool: v.random_programs(1, 0, 0, 1, 39),
            "initial programs of up to 40 words do not fit into a max_length of 39",
        ),
    ],
)
def test_wrong_calls_are_named(make, call, message):
    variation = make()
    with pytest.raises(ValueError, match=re.escape(message)):
        call(variation, variation.random_programs(1, 0, 0, 2, 64))
