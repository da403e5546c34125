"""The hashes of programs that were evaluated, so that none is evaluated twice.

Owns a bounded set. When it is full, the oldest hashes are forgotten first.
"""

import numpy as np
from numpy.typing import NDArray

from evo.native.search_rows import enter_hashes, new_hashes


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

    def is_new(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Mask of the `(n, 2)` uint64 hashes that are neither remembered nor equal to an earlier row, `(n,)`."""
        return new_hashes(self._ring, self._table, hashes)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Remembers hashes, `(n, 2)` uint64, that are new and differ from each other."""
        capacity = len(self._ring)
        hashes = hashes[-capacity:]
        first, num_rows = self._num_added % capacity, len(hashes)
        at_the_end = hashes[: capacity - first]
        self._ring[first : first + len(at_the_end)] = at_the_end
        self._ring[: num_rows - len(at_the_end)] = hashes[len(at_the_end) :]
        self._num_added += num_rows
        if self._num_used + num_rows > len(self._table) // 2:
            self._table[:] = self._num_used = 0
            first, num_rows = 0, len(self)
        self._num_used += num_rows
        enter_hashes(self._ring, self._table, first, num_rows)

    def clear(self) -> None:
        """Forgets all hashes."""
        self._table[:] = self._num_used = self._num_added = 0

    def arrays(self) -> dict[str, NDArray[np.uint64]]:
        """Arrays of a checkpoint: the remembered hashes, oldest first."""
        capacity = len(self._ring)
        rows = np.arange(max(0, self._num_added - capacity), self._num_added) % capacity
        return {"hash": self._ring[rows]}

    def restore(self, arrays: dict[str, NDArray[np.uint64]]) -> None:
        """Restores the result of `arrays` into an empty memory of the same capacity."""
        self.add(arrays["hash"])
