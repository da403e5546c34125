# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
"""Passes over the rows of a generation: hashes among those that are remembered, cells, their best rows, sums of neighbours.

Tables are arrays of `evo.search`, which says what they mean. One pass here takes the place of ten calls of NumPy, whose fixed costs
decide what a small generation costs.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from *:
    void prefetch "__builtin_prefetch"(const void*) nogil


# Rows before a hash is looked up, its place in the table is fetched; and half of that before, what is there.
cdef enum: _AHEAD = 16


def new_hashes(
    ring: NDArray[np.uint64], table: NDArray[np.int32], hashes: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Mask of the `(n, 2)` hashes that are neither remembered nor equal to an earlier row, `(n,)`. As to `ring` and `table`:
    `evo.search.memory.HashMemory`.
    """
    cdef const uint64_t[:, ::1] known = ring, asked = np.ascontiguousarray(hashes)
    cdef const int32_t[::1] places = table
    cdef Py_ssize_t num_rows = asked.shape[0], i, row
    cdef uint64_t mask = len(table) - 1
    cdef uint64_t own_mask = (1 << (2 * max(num_rows, 1) - 1).bit_length()) - 1
    cdef int32_t[::1] own_places = np.zeros(own_mask + 1, np.int32)
    cdef uint64_t place
    is_new = np.ones(num_rows, np.bool_)
    cdef uint8_t[::1] found = is_new.view(np.uint8)
    with nogil:
        for i in range(num_rows):
            if i + _AHEAD < num_rows:
                prefetch(&places[asked[i + _AHEAD, 0] & mask])
                row = places[asked[i + _AHEAD / 2, 0] & mask]
                if row > 0:
                    prefetch(&known[row - 1, 0])
            place = asked[i, 0] & mask
            while places[place] and not _is_same(known, places[place] - 1, asked, i):
                place = (place + 1) & mask
            if places[place]:
                found[i] = 0
                continue
            place = asked[i, 0] & own_mask
            while own_places[place] and not _is_same(asked, own_places[place] - 1, asked, i):
                place = (place + 1) & own_mask
            found[i] = own_places[place] == 0
            own_places[place] = <int32_t>(i + 1)
    return is_new


cdef inline bint _is_same(const uint64_t[:, ::1] one, Py_ssize_t row, const uint64_t[:, ::1] other, Py_ssize_t i) noexcept nogil:
    return one[row, 0] == other[i, 0] and one[row, 1] == other[i, 1]


def enter_hashes(ring: NDArray[np.uint64], table: NDArray[np.int32], first: int, num_rows: int) -> None:
    """Enters rows of the ring, from one on and then round, into free places of the table, which has none of them."""
    cdef const uint64_t[:, ::1] known = ring
    cdef int32_t[::1] places = table
    cdef uint64_t mask = len(table) - 1, place
    cdef Py_ssize_t capacity = known.shape[0], begin = first, count = num_rows, i, row
    with nogil:
        for i in range(begin, begin + count):
            if i + _AHEAD < begin + count:
                prefetch(&places[known[(i + _AHEAD) % capacity, 0] & mask])
            row = i % capacity
            place = known[row, 0] & mask
            while places[place]:
                place = (place + 1) & mask
            places[place] = <int32_t>(row + 1)


def count_neutral(hashes: NDArray[np.uint64], parents: NDArray[np.int32], pool: NDArray[np.uint64]) -> int:
    """Number of the `(n, 2)` hashes that are that of a parent, the rows `(n, 2)` of `pool`; negative: none."""
    cdef const uint64_t[:, ::1] asked = hashes, known = pool
    cdef const int32_t[:, ::1] rows = parents
    cdef Py_ssize_t i, count = 0
    with nogil:
        for i in range(asked.shape[0]):
            count += (rows[i, 0] >= 0 and _is_same(known, rows[i, 0], asked, i)) or (
                rows[i, 1] >= 0 and _is_same(known, rows[i, 1], asked, i)
            )
    return count


def grid_cells(
    measures: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], dims: NDArray[np.int64],
    intervals: NDArray[np.float64], epsilon: float
) -> NDArray[np.int32]:
    """The cell of each row of measures, clipped to their ranges, as pyribs' GridArchive numbers them; -1 where one is NaN."""
    cdef const double[:, :] rows = measures
    cdef const double[::1] least = low, most = high, sizes = intervals
    cdef const int64_t[::1] nums = dims
    cdef double margin = epsilon, value
    cdef Py_ssize_t i, k
    cdef int64_t cell
    cells = np.empty(rows.shape[0], np.int32)
    cdef int32_t[::1] cells_view = cells
    with nogil:
        for i in range(rows.shape[0]):
            cell = 0
            for k in range(rows.shape[1]):
                value = rows[i, k]
                if value != value:
                    cell = -1
                    break
                value = min(max(value, least[k]), most[k])
                value = (nums[k] * (value - least[k]) + margin) / sizes[k]
                cell = cell * nums[k] + <int64_t>min(max(value, 0.0), <double>(nums[k] - 1))
            cells_view[i] = <int32_t>cell
    return cells


def best_rows(
    cells: NDArray[np.int32], objective: NDArray[np.float64], is_occupied: NDArray[np.bool_], incumbents: NDArray[np.float64],
    best: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The row of greatest objective of each cell, by cell, unless the cell's incumbent is as good; of equals the first.

    Args:
        cells, objective: `(n,)`, of the rows; a negative cell leaves its row out.
        is_occupied, incumbents: `(num_cells,)`.
        best: `(num_cells,)`, room to work in; -1 before and after.
    """
    cdef const int32_t[::1] of_rows = cells
    cdef const double[:] scores = objective
    cdef const double[::1] bars = incumbents
    cdef const uint8_t[::1] has_bar = is_occupied.view(np.uint8)
    cdef int32_t[::1] rows = best
    cdef Py_ssize_t count = 0, i
    cdef int32_t cell
    touched = np.empty(len(cells), np.int32)
    cdef int32_t[::1] touched_view = touched
    with nogil:
        for i in range(of_rows.shape[0]):
            cell = of_rows[i]
            if cell < 0 or has_bar[cell] and not scores[i] > bars[cell]:
                continue
            if rows[cell] < 0:
                touched_view[count] = cell
                count += 1
                rows[cell] = <int32_t>i
            elif scores[i] > scores[rows[cell]]:
                rows[cell] = <int32_t>i
    touched = np.sort(touched[:count])
    chosen = best[touched].astype(np.int64)
    best[touched] = -1
    return chosen


def set_leaves(nodes: NDArray[np.float64], numbers: NDArray[np.int32], terms: NDArray[np.float64]) -> None:
    """Sets leaves of a binary tree, whose node i is the sum of 2 i and 2 i + 1 and whose second half are the leaves."""
    cdef double[::1] sums = nodes
    cdef const int32_t[::1] leaves = numbers
    cdef const double[::1] values = terms
    cdef Py_ssize_t half = sums.shape[0] // 2, i, node
    with nogil:
        for i in range(leaves.shape[0]):
            node = half + leaves[i]
            sums[node] = values[i]
            while node > 1:
                node = node // 2
                sums[node] = sums[2 * node] + sums[2 * node + 1]


cdef class FounderSizes:
    """Number of elites of each founder, a few of which change at a time. The cost of a change does not depend on how many there are.

    Attributes:
        sizes: of each founder that has elites.
        largest: of them; 0 without any.
        num_elites: the sum of the sizes.
    """

    cdef readonly object sizes  #: dict[int, int]
    cdef readonly int largest
    cdef readonly int num_elites
    cdef dict num_of_size  # number of elites -> how many founders have it

    def __cinit__(self):
        self.sizes, self.num_of_size = {}, {}

    def change(self, left: NDArray[np.int64], joined: NDArray[np.int64]) -> None:
        """Elites of these founders leave, negative numbers aside, and others join."""
        for founder in left.tolist():
            if founder >= 0:
                self._resize(founder, -1)
        for founder in joined.tolist():
            self._resize(founder, 1)

    cdef _resize(self, founder, int change):
        cdef int before = self.sizes.get(founder, 0), after
        after = before + change
        self.num_elites += change
        self.num_of_size[before] = self.num_of_size.get(before, 0) - 1
        self.num_of_size[after] = self.num_of_size.get(after, 0) + 1
        if after:
            self.sizes[founder] = after
        else:
            del self.sizes[founder]
        if after > self.largest or (before == self.largest and not self.num_of_size[before]):
            self.largest = after
