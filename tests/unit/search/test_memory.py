"""evo.search.memory: bounded, oldest out first, and the same after a checkpoint."""

from collections import OrderedDict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evo.search.memory import HashMemory


def hashes(*numbers: int) -> np.ndarray:
    """Hashes that a memory mixes up if it looks at one of their words only; that of 0 is all zeros."""
    return np.array([[number % 5, number // 5] for number in numbers], np.uint64).reshape(-1, 2)


def numbers_in(memory: HashMemory) -> list[int]:
    return (memory.arrays()["hash"] @ np.array([1, 5], np.uint64)).tolist()


def known(memory: HashMemory, *numbers: int) -> list[bool]:
    return (~memory.is_new(hashes(*numbers))).tolist()


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
    assert numbers_in(memory) == list(model)


@given(batches, st.lists(st.integers(0, 30), max_size=40))
def test_of_equal_hashes_the_first_is_new(before, asked):
    memory = HashMemory(100)
    for batch in before:
        add_new(memory, batch)
    seen = set().union(*before)
    assert known(memory, *asked) == [number in seen or number in asked[:row] for row, number in enumerate(asked)]


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
