"""The hashes of programs that were evaluated, so that none is evaluated twice.

Owns a bounded set. When it is full, the oldest hashes are forgotten first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class HashMemory:
    """The last `capacity` canonical hashes that were added.

    Results are not kept: programs with one hash compute the same, so the second could only tie with the first, and ties keep
    the incumbent.
    """

    def __init__(self, capacity: int):
        self._ring = np.zeros((capacity, 2), np.uint64)
        self._num_added = 0  # ever; the next hash goes to this row, modulo capacity
        # A hash table with linear probing: rows of the ring, counted from 1; 0 is a free place. Rows that have been written again
        # stay in it, where they match their new hash alone. It is made again when half full, so that probes are short.
        self._table = np.zeros(1 << (4 * capacity - 1).bit_length(), np.int32)
        self._num_used = 0

    def __len__(self) -> int:
        return min(self._num_added, len(self._ring))

    def contains(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of `(n, 2)` uint64 hashes are remembered, `(n,)`."""
        found = np.zeros(len(hashes), np.bool_)
        left, places = np.arange(len(hashes)), self._places(hashes)
        while len(left):
            rows = self._table[places] - 1
            is_same = (self._ring[rows, 0] == hashes[left, 0]) & (self._ring[rows, 1] == hashes[left, 1]) & (rows >= 0)
            found[left[is_same]] = True
            goes_on = (rows >= 0) & ~is_same
            left, places = left[goes_on], self._after(places[goes_on])
        return found

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Remembers hashes, `(n, 2)` uint64, that are new and differ from each other."""
        capacity = len(self._ring)
        hashes = hashes[-capacity:]
        rows = (self._num_added + np.arange(len(hashes))) % capacity
        self._ring[rows] = hashes
        self._num_added += len(hashes)
        if self._num_used + len(rows) > len(self._table) // 2:
            self._table[:] = self._num_used = 0
            rows = np.arange(len(self))
        self._num_used += len(rows)
        places = self._places(self._ring[rows])
        while len(rows):
            is_free = self._table[places] == 0
            self._table[places[is_free]] = rows[is_free] + 1  # where several want one place, one of them gets it
            is_left = self._table[places] != rows + 1
            rows, places = rows[is_left], self._after(places[is_left])

    def clear(self) -> None:
        """Forgets all hashes."""
        self._table[:] = self._num_used = self._num_added = 0

    def _places(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Where the search for each hash begins."""
        return (hashes[:, 0] & np.uint64(len(self._table) - 1)).astype(np.int64)

    def _after(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return (places + 1) & (len(self._table) - 1)

    def arrays(self) -> dict[str, NDArray[np.uint64]]:
        """What a checkpoint holds: the remembered hashes, oldest first."""
        capacity = len(self._ring)
        rows = np.arange(max(0, self._num_added - capacity), self._num_added) % capacity
        return {"hash": self._ring[rows]}

    def restore(self, arrays: dict[str, NDArray[np.uint64]]) -> None:
        """Takes back what `arrays` gave, into an empty memory of the same capacity."""
        self.add(arrays["hash"])
