"""Loops over rows on several threads.

Owns the threads. Which thread does which rows decides no result. csrc/detail/row_threads.h says how they wait for work.
"""

from itertools import pairwise

from libc.stdlib cimport calloc, free


cdef extern from "detail/row_threads.h":
    void evo__rows_init(EvoRows*, EvoRowsMember*, size_t) nogil
    void evo__rows_end(EvoRows*) nogil
    void evo__rows_do(EvoRows*, RowsFunction, void*, size_t, size_t) nogil


MIN_ROWS: int = 128  # of a block that Python does, unless said otherwise; to hand over fewer costs more than it gains


cdef class RowThreads:
    """Threads that do rows together with the caller. They end with this object."""

    def __cinit__(self, num_threads: int = 1):
        cdef size_t count = num_threads
        self.members = <EvoRowsMember*>calloc(count, sizeof(EvoRowsMember))
        if self.members == NULL:
            raise MemoryError(f"no memory for {num_threads} threads")
        self.num_threads = num_threads
        with nogil:
            evo__rows_init(&self.rows, self.members, count)

    def __dealloc__(self):
        if self.members != NULL:
            with nogil:
                evo__rows_end(&self.rows)
            free(self.members)

    cdef void run(self, RowsFunction function, void* context, size_t num_rows, size_t block) noexcept nogil:
        evo__rows_do(&self.rows, function, context, num_rows, block)

    def map(self, function: Any, num_rows: int, min_rows: int | None = None) -> list[Any]:
        """Results of `function(first, end)` for each of some equal blocks, in order: one for each thread, if they have at least
        `min_rows`. Without rows there is one empty block. An error in a block is raised.
        """
        num_blocks = max(1, min(self.num_threads, num_rows // (min_rows or MIN_ROWS)))
        blocks = list(pairwise(num_rows * block // num_blocks for block in range(num_blocks + 1)))
        if num_blocks == 1:
            return [function(*blocks[0])]
        results, errors = [None] * num_blocks, []
        job = (function, blocks, results, errors)
        cdef void* context = <void*>job
        cdef size_t count = num_blocks
        with nogil:
            self.run(_call, context, count, 1)
        if errors:
            raise errors[0]
        return results


cdef void _call(void* context, size_t member, size_t first, size_t end) noexcept with gil:
    function, blocks, results, errors = <tuple>context
    for block in range(first, end):
        try:
            results[block] = function(*blocks[block])
        except BaseException as error:  # the caller gets whatever it is
            errors.append(error)
