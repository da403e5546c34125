"""evo.native.row_threads: each row is done once, by as many threads as there are, whenever they begin and end."""

import os
import signal
import threading

import pytest

from evo.native.row_threads import MIN_ROWS, RowThreads


@pytest.mark.parametrize("num_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("num_rows", [0, 1, MIN_ROWS, 2 * MIN_ROWS, 10 * MIN_ROWS + 3])
def test_blocks_cover_the_rows_in_order(num_threads, num_rows):
    blocks = RowThreads(num_threads).map(lambda first, end: list(range(first, end)), num_rows)
    assert [row for block in blocks for row in block] == list(range(num_rows))
    assert 1 <= len(blocks) <= num_threads


def test_an_error_in_a_block_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        RowThreads(2).map(lambda first, _: 1 // (1 - min(first, 1)), 2 * MIN_ROWS)


def test_blocks_are_done_at_the_same_time_again_and_again():
    """Each waits for the others; between two calls the threads are awake once and asleep once."""
    threads, barrier, pause = RowThreads(3), threading.Barrier(3), threading.Event()
    for _ in range(50):
        assert threads.map(lambda *_: barrier.wait(60) >= 0, 3, 1) == [True] * 3
        assert threads.map(lambda *_: barrier.wait(60) >= 0, 3, 1) == [True] * 3
        pause.wait(0.001)


def test_a_call_during_another_is_done_by_its_caller_alone():
    threads = RowThreads(2)

    def who(*_: int) -> set[int]:
        return {threading.get_ident(), *threads.map(lambda *_: threading.get_ident(), 4, 1)}

    assert [len(each) for each in threads.map(who, 2, 1)] == [1, 1]


def test_the_child_of_a_fork_does_all_rows_itself():
    threads = RowThreads(3)
    assert len(threads.map(lambda *_: None, 3, 1)) == 3
    child = os.fork()
    if not child:
        signal.alarm(60)
        found = threads.map(lambda first, _: first, 3, 1)
        del threads
        os._exit(0 if found == [0, 1, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
