"""Loops over rows on several threads, for native functions that release the interpreter lock.

Owns the threads. Which thread does which rows decides no result.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")

MIN_ROWS = 128  # of a block, unless said otherwise; to wake a thread for fewer costs more than it gains


class RowThreads:
    """Cuts rows into equal blocks, one for each thread. The caller does the first; the others end with this object."""

    def __init__(self, num_threads: int = 1):
        self._num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads, "blocks")  # which starts threads when it needs them

    def map(self, function: Callable[[int, int], Result], num_rows: int, min_rows: int | None = None) -> list[Result]:
        """What `function(first, end)` returns for each block, in order. Without rows there is one empty block."""
        num_blocks = max(1, min(self._num_threads, num_rows // (min_rows or MIN_ROWS)))
        blocks = list(pairwise(num_rows * block // num_blocks for block in range(num_blocks + 1)))
        others = [self._pool.submit(function, *block) for block in blocks[1:]]
        return [function(*blocks[0]), *(other.result() for other in others)]
