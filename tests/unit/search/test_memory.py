"""evo.search.memory: bounded, oldest out first, and the same after a checkpoint."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.search.memory import ResultMemory


def hashes(*numbers: int) -> np.ndarray:
    """Hashes whose low words are all zero, so that a table that looks at one word only mixes them up."""
    return np.array([[0, number] for number in numbers], np.uint64).reshape(-1, 2)


def add(memory: ResultMemory, *numbers: int) -> None:
    """Remembers, for each number, results that can be told from the number."""
    values = np.array(numbers, float)
    memory.add(hashes(*numbers), (values % 2).astype(np.uint8), values, np.stack([values, -values], axis=1))


def known(memory: ResultMemory, *numbers: int) -> list[bool]:
    return (memory.find(hashes(*numbers)) >= 0).tolist()


def test_what_was_added_is_found_with_its_results():
    memory = ResultMemory(8, 2)
    add(memory, 5, 6, 7)
    rows = memory.find(hashes(7, 9, 5))
    assert rows.dtype == np.int64
    assert (rows >= 0).tolist() == [True, False, True]
    status, objective, measures = memory.results(rows[[0, 2]])
    assert status.tolist() == [1, 1]
    assert objective.tolist() == [7.0, 5.0]
    assert measures.tolist() == [[7.0, -7.0], [5.0, -5.0]]


def test_both_words_of_a_hash_count():
    memory = ResultMemory(4, 2)
    memory.add(np.array([[1, 2]], np.uint64), np.zeros(1, np.uint8), np.zeros(1), np.zeros((1, 2)))
    assert (memory.find(np.array([[1, 2], [2, 1], [1, 3], [0, 2]], np.uint64)) >= 0).tolist() == [True, False, False, False]


def test_an_empty_batch_changes_nothing():
    memory = ResultMemory(4, 2)
    add(memory, 1)
    add(memory)
    assert len(memory) == 1
    assert memory.find(hashes()).shape == (0,)


def test_the_table_is_bounded_and_the_oldest_go_first():
    memory = ResultMemory(3, 2)
    add(memory, 1, 2)
    add(memory, 3, 4)
    assert len(memory) == 3
    assert known(memory, 1, 2, 3, 4) == [False, True, True, True]
    add(memory, 5)
    assert known(memory, 1, 2, 3, 4, 5) == [False, False, True, True, True]


@pytest.mark.parametrize("before", [(), (1, 2), (1, 2, 3, 4)])
def test_of_a_batch_greater_than_the_table_the_last_stay(before):
    memory = ResultMemory(3, 2)
    add(memory, *before)
    add(memory, 11, 12, 13, 14, 15)
    assert known(memory, *before, 11, 12, 13, 14, 15) == [False] * (len(before) + 2) + [True] * 3
    assert memory.results(memory.find(hashes(13, 14, 15)))[1].tolist() == [13.0, 14.0, 15.0]


batches = st.lists(st.lists(st.integers(1, 30), max_size=9, unique=True), max_size=12)


def add_new(memory: ResultMemory, batch: list[int]) -> None:
    add(memory, *[number for number, seen in zip(batch, known(memory, *batch), strict=True) if not seen])


@given(st.integers(1, 8), batches)
def test_it_behaves_as_a_list_that_forgets_its_oldest(capacity, numbers):
    memory, model = ResultMemory(capacity, 2), OrderedDict()
    for batch in numbers:
        add_new(memory, batch)
        model.update((number, None) for number in batch if number not in model)
        while len(model) > capacity:
            model.popitem(last=False)
        assert len(memory) == len(model)
        assert known(memory, *range(1, 31)) == [number in model for number in range(1, 31)]
    assert memory.state()["objective"].tolist() == [float(number) for number in model]
    rows = memory.find(hashes(*model))
    assert memory.results(rows)[1].tolist() == [float(number) for number in model]


@given(st.integers(1, 8), batches, batches)
def test_a_restored_table_behaves_as_the_one_that_was_saved(capacity, before, after):
    memory, restored = ResultMemory(capacity, 2), ResultMemory(capacity, 2)
    for batch in before:
        add_new(memory, batch)
    restored.restore({name: array.copy() for name, array in memory.state().items()})
    assert len(restored) == len(memory)
    for batch in after:
        add_new(memory, batch)
        add_new(restored, batch)
        assert known(restored, *range(1, 31)) == known(memory, *range(1, 31))
    for name, array in memory.state().items():
        np.testing.assert_array_equal(restored.state()[name], array)


def test_the_state_is_a_copy():
    memory = ResultMemory(2, 2)
    add(memory, 1, 2)
    state = memory.state()
    add(memory, 3)
    assert state["objective"].tolist() == [1.0, 2.0]
