"""Laws that every variation operator keeps, with the vocabulary of the main experiment.

The meaning of each operator has tests of its own; these are the laws that the search relies on.
"""

import numpy as np
import pytest

from evo.native.vary import OPERATORS
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation

MAX_LENGTH = 32
RETURN = 10
PTX, CONSTANT, INPUT, META, META_CONSTANT, STORE, LOAD = 1, 2, 3, 5, 6, 11, 12

VOCABULARY = VocabularyOptions(
    instructions={"add_ftz_f32": 1.0, "mul_ftz_f32": 1.0, "fma_rn_ftz_f32": 1.0, "sin_approx_ftz_f32": 1.0, "add_u32": 1.0},
    meta={"dup": 1.0, "swap": 1.0, "yank_dup": 0.5, "constant": 0.5},
    groups={"instructions": 0.4, "inputs": 0.25, "constants": 0.2, "meta": 0.1, "store": 0.05},
    constants=ConstantOptions(f32_sigma=1.0, u32_max=255, meta_max=4),
)
OPTIONS = VariationOptions(
    umad={"addition_rate": 0.2, "deletion_rate": 0.15},
    alternation={"rate": 0.1, "deviation": 2.0},
    replacement={"rate": 0.1},
)


def variation_of(language, name):
    """A variation that has this one operator only."""
    return make_variation(language, VOCABULARY, OPTIONS.model_copy(update={"operators": {name: 1.0}}), (1, 28))


@pytest.fixture(params=OPERATORS)
def operator(request, language):
    """A variation that has this one operator only."""
    return variation_of(language, request.param)


@pytest.fixture(scope="module")
def pool(language):
    """Parents of every length, from empty to full, with extreme constants among them."""
    random = variation_of(language, "umad").random_programs(3, 0, 0, 60, MAX_LENGTH)
    random[0] = 0
    random[0, 0] = RETURN  # no words at all
    full = np.full(MAX_LENGTH, INPUT, np.uint64)
    full[::2] = CONSTANT | 0x7F7FFFFF << 32  # the greatest finite f32, which no step may take to infinity
    extremes = np.array([0, 0x80000000, 1, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF], np.uint64)
    constants = np.zeros(MAX_LENGTH, np.uint64)
    constants[: len(extremes)] = extremes << np.uint64(32) | np.uint64(CONSTANT)
    constants[len(extremes)] = RETURN
    return np.concatenate([random, full[None], constants[None]])


def prefix(row: np.ndarray) -> list[int]:
    """The words before the first RETURN."""
    returns = np.flatnonzero(row & np.uint64(0xFFFF) == RETURN)
    return row[: returns[0] if returns.size else len(row)].tolist()


def test_every_word_of_an_offspring_is_a_parents_or_one_of_the_vocabulary(operator, pool, language):
    words, parents, _ = operator.offspring(5, 1, 0, 500, pool)
    indices = [language.instruction_set.instruction_index(name) for name in VOCABULARY.instructions]
    for row, parent_rows in zip(words, parents, strict=True):
        inherited = {word for parent in parent_rows if parent >= 0 for word in prefix(pool[parent])}
        for word in prefix(row):
            kind, aux, payload = word & 0xFFFF, word >> 16 & 0xFFFF, word >> 32
            new = {
                PTX: payload in indices,
                CONSTANT: aux <= 1,
                INPUT: payload < 3,
                META: aux <= 1 and payload in (0, 1, 2),
                META_CONSTANT: payload <= 4,
                STORE: aux <= 1 and payload < 16,
                LOAD: payload < 16,
            }
            assert word in inherited or new.get(kind), f"{word:#018x}"


def test_every_offspring_can_be_lowered_and_emitted(operator, pool, language):
    words, _, _ = operator.offspring(5, 1, 0, 500, pool)
    hashes, num_instructions = language.lowering.analyze(words)
    assert hashes.shape == (500, 2) and (num_instructions >= 0).all() and (num_instructions <= MAX_LENGTH).all()
    assert all(stub.startswith("{") and stub.rstrip().endswith("}") for stub in language.lowering.emit(words))


def test_the_same_seed_generation_and_slot_give_the_same_offspring_in_batches_of_any_size(operator, pool):
    whole = operator.offspring(5, 9, 100, 64, pool)
    for size in (1, 7, 64):
        starts = range(0, 64, size)
        parts = [operator.offspring(5, 9, 100 + start, min(size, 64 - start), pool) for start in starts]
        for together, apart in zip(whole, zip(*parts, strict=True), strict=True):
            np.testing.assert_array_equal(together, np.concatenate(apart))


@pytest.mark.parametrize("changed", [(6, 9, 100), (5, 10, 100), (5, 9, 101), (5 + 2**32, 9, 100)])
def test_another_seed_generation_or_slot_gives_other_offspring(operator, pool, changed):
    one = operator.offspring(5, 9, 100, 64, pool)[0]
    other = operator.offspring(*changed, 64, pool)[0]
    assert (one != other).any(axis=1).mean() > 0.5


def test_words_after_a_return_are_not_inherited(operator, pool):
    behind = pool.copy()
    for row in behind:
        row[len(prefix(row)) + 1 :] = 2**64 - 1
    for clean, dirty in zip(operator.offspring(5, 1, 0, 300, pool), operator.offspring(5, 1, 0, 300, behind), strict=True):
        np.testing.assert_array_equal(clean, dirty)


def test_most_offspring_differ_from_their_parents(operator, pool):
    words, parents, _ = operator.offspring(5, 1, 0, 500, pool)
    changed = [prefix(row) != prefix(pool[parent]) for row, parent in zip(words, parents[:, 0], strict=True)]
    assert np.mean(changed) > 0.5
