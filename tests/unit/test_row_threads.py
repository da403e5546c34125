"""evo.row_threads: each row is done once, in as many blocks as there are threads."""

import pytest

from evo.row_threads import MIN_ROWS, RowThreads


@pytest.mark.parametrize("num_threads", [1, 2, 3, 7])
@pytest.mark.parametrize("num_rows", [0, 1, MIN_ROWS, 2 * MIN_ROWS, 10 * MIN_ROWS + 3])
def test_blocks_cover_the_rows_in_order(num_threads, num_rows):
    blocks = RowThreads(num_threads).map(lambda first, end: list(range(first, end)), num_rows)
    assert [row for block in blocks for row in block] == list(range(num_rows))
    assert 1 <= len(blocks) <= num_threads


def test_an_error_in_a_block_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        RowThreads(2).map(lambda first, _: 1 // (1 - min(first, 1)), 2 * MIN_ROWS)
