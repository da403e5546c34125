"""evo.search.memory: bounded, oldest out first, and the same after a checkpoint."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.search.memory import HashMemory


def hashes(*numbers: int) -> np.ndarray:
    """Hashes whose low words are all zero, so that a memory that looks at one word only mixes them up."""
    return np.array([[0, number] for number in numbers], np.uint64).reshape(-1, 2)


def known(memory: HashMemory, *numbers: int) -> list[bool]:
    return memory.contains(hashes(*numbers)).tolist()


def test_both_words_of_a_hash_count():
    memory = HashMemory(4)
    memory.add(np.array([[1, 2]], np.uint64))
    assert memory.contains(np.array([[1, 2], [2, 1], [1, 3], [0, 2]], np.uint64)).tolist() == [True, False, False, False]


def test_a_place_that_was_never_used_is_not_a_hash_of_zeros():
    memory = HashMemory(3)
    memory.add(hashes(0, 1))
    memory.add(hashes(2))
    assert known(memory, 0, 1, 2) == [True, True, True]


@pytest.mark.parametrize("before", [(), (1, 2), (1, 2, 3, 4)])
def test_of_a_batch_greater_than_the_memory_the_last_stay(before):
    memory = HashMemory(3)
    memory.add(hashes(*before))
    memory.add(hashes(11, 12, 13, 14, 15))
    assert known(memory, *before, 11, 12, 13, 14, 15) == [False] * (len(before) + 2) + [True] * 3
    assert len(memory) == 3


batches = st.lists(st.lists(st.integers(0, 30), max_size=9, unique=True), max_size=12)


def add_new(memory: HashMemory, batch: list[int]) -> None:
    memory.add(hashes(*[number for number, seen in zip(batch, known(memory, *batch), strict=True) if not seen]))


@given(st.integers(1, 8), batches)
def test_it_behaves_as_a_list_that_forgets_its_oldest(capacity, numbers):
    memory, model = HashMemory(capacity), OrderedDict()
    for batch in numbers:
        add_new(memory, batch)
        model.update((number, None) for number in batch if number not in model)
        while len(model) > capacity:
            model.popitem(last=False)
        assert len(memory) == len(model)
        assert known(memory, *range(31)) == [number in model for number in range(31)]
    assert memory.arrays()["hash"][:, 1].tolist() == list(model)


@given(st.integers(1, 8), batches, batches)
def test_a_restored_memory_behaves_as_the_one_that_was_saved(capacity, before, after):
    memory, restored = HashMemory(capacity), HashMemory(capacity)
    for batch in before:
        add_new(memory, batch)
    restored.restore({name: array.copy() for name, array in memory.arrays().items()})
    assert len(restored) == len(memory)
    for batch in after:
        add_new(memory, batch)
        add_new(restored, batch)
        assert known(restored, *range(31)) == known(memory, *range(31))
    np.testing.assert_array_equal(restored.arrays()["hash"], memory.arrays()["hash"])


def test_the_arrays_are_copies():
    memory = HashMemory(2)
    memory.add(hashes(1, 2))
    arrays = memory.arrays()
    memory.add(hashes(3))
    assert arrays["hash"][:, 1].tolist() == [1, 2]
