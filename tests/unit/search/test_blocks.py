"""evo.search.blocks: each row is done once, in as many blocks as there are threads."""

import threading

import pytest

from evo.search.blocks import MIN_ROWS, Blocks


@pytest.mark.parametrize("num_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("num_rows", [0, 1, MIN_ROWS, 2 * MIN_ROWS, 10 * MIN_ROWS + 3])
def test_blocks_cover_the_rows_in_order(num_threads, num_rows):
    blocks = Blocks(num_threads).map(lambda first, end: list(range(first, end)), num_rows)
    assert [row for block in blocks for row in block] == list(range(num_rows))
    assert 1 <= len(blocks) <= num_threads


def test_blocks_are_done_at_the_same_time():
    everyone = threading.Barrier(3, timeout=60)
    threads = Blocks(3).map(lambda *_: everyone.wait() >= 0 and threading.get_ident(), 3 * MIN_ROWS)
    assert len(set(threads)) == 3


def test_few_rows_are_done_by_the_caller():
    assert Blocks(8).map(lambda *_: threading.get_ident(), 2 * MIN_ROWS - 1) == [threading.get_ident()]


def test_an_error_in_a_block_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        Blocks(2).map(lambda first, _: 1 // (1 - min(first, 1)), 2 * MIN_ROWS)
