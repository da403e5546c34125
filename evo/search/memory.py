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
        self._known: set[bytes] = set()
        self._num_added = 0  # ever; the next hash goes to this row, modulo capacity

    def __len__(self) -> int:
        return len(self._known)

    def contains(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of `(n, 2)` uint64 hashes are remembered, `(n,)`."""
        return np.fromiter(map(self._known.__contains__, _keys(hashes)), np.bool_, len(hashes))

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Remembers hashes, `(n, 2)` uint64, that are new and differ from each other."""
        capacity = len(self._ring)
        hashes = hashes[-capacity:]
        rows = (self._num_added + np.arange(len(hashes))) % capacity
        num_forgotten = max(0, len(self._known) + len(hashes) - capacity)
        self._known.difference_update(_keys(self._ring[rows[len(hashes) - num_forgotten :]]))
        self._ring[rows] = hashes
        self._known.update(_keys(hashes))
        self._num_added += len(hashes)

    def arrays(self) -> dict[str, NDArray[np.uint64]]:
        """What a checkpoint holds: the remembered hashes, oldest first."""
        capacity = len(self._ring)
        rows = np.arange(max(0, self._num_added - capacity), self._num_added) % capacity
        return {"hash": self._ring[rows]}

    def restore(self, arrays: dict[str, NDArray[np.uint64]]) -> None:
        """Takes back what `arrays` gave, into an empty memory of the same capacity."""
        self.add(arrays["hash"])


def _keys(hashes: NDArray[np.uint64]) -> list[bytes]:
    keys: list[bytes] = np.ascontiguousarray(hashes).view("V16")[:, 0].tolist()
    return keys
