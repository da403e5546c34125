"""Results remembered by canonical hash, so that no program is evaluated twice.

Owns a bounded table; when it is full the oldest results go first.
"""

from __future__ import annotations

import numpy as np


class ResultMemory:
    """A table of `capacity` results: hash -> status, objective and measures.

    Two programs with one hash compute the same, so a remembered result is the result.
    """

    def __init__(self, capacity: int, num_measures: int):
        self._hash = np.zeros((capacity, 2), np.uint64)
        self._status = np.zeros(capacity, np.uint8)
        self._objective = np.zeros(capacity)
        self._measures = np.zeros((capacity, num_measures))
        self._rows: dict[bytes, int] = {}
        self._next = 0  # results ever added; row of the next one is this modulo capacity

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """Row of each hash of `(n, 2)` uint64, `(n,)` int64; -1 where it is not remembered."""
        get = self._rows.get
        return np.fromiter((get(key, -1) for key in _keys(hashes)), np.int64, len(hashes))

    def results(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Status, objective and measures of rows from `find`."""
        return self._status[rows], self._objective[rows], self._measures[rows]

    def add(self, hashes: np.ndarray, status: np.ndarray, objective: np.ndarray, measures: np.ndarray) -> None:
        """Remembers results whose hashes are new and differ from each other."""
        capacity = len(self._status)
        hashes = hashes[-capacity:]
        rows = (self._next + np.arange(len(hashes))) % capacity
        if self._next + len(hashes) > capacity:
            for key in _keys(self._hash[rows[self._next + np.arange(len(hashes)) >= capacity]]):
                del self._rows[key]
        self._hash[rows] = hashes
        self._status[rows] = status[-capacity:]
        self._objective[rows] = objective[-capacity:]
        self._measures[rows] = measures[-capacity:]
        self._rows.update(zip(_keys(hashes), rows.tolist(), strict=True))
        self._next += len(hashes)

    def state(self) -> dict[str, np.ndarray]:
        """All that is remembered, oldest first, as arrays for a checkpoint."""
        capacity = len(self._status)
        rows = np.arange(max(0, self._next - capacity), self._next) % capacity
        return {
            "hash": self._hash[rows],
            "status": self._status[rows],
            "objective": self._objective[rows],
            "measures": self._measures[rows],
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Takes back what `state` gave, into an empty table of the same capacity."""
        num_rows = len(state["status"])
        self._hash[:num_rows] = state["hash"]
        self._status[:num_rows] = state["status"]
        self._objective[:num_rows] = state["objective"]
        self._measures[:num_rows] = state["measures"]
        self._rows = dict(zip(_keys(self._hash[:num_rows]), range(num_rows), strict=True))
        self._next = num_rows


def _keys(hashes: np.ndarray) -> list[bytes]:
    return np.ascontiguousarray(hashes).view("V16")[:, 0].tolist() if len(hashes) else []
