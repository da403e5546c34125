"""The class with which other native modules do rows on several threads (csrc/detail/row_threads.h)."""

from libc.stddef cimport size_t

# The work on rows from `first` up to `end`. member: below `num_threads`, of the thread, so that each may have memory of its own.
ctypedef void (*RowsFunction)(void* context, size_t member, size_t first, size_t end) noexcept nogil


cdef extern from "detail/row_threads.h" nogil:
    ctypedef struct EvoRows:
        size_t num_members

    ctypedef struct EvoRowsMember:
        pass


cdef class RowThreads:
    cdef EvoRows rows
    cdef EvoRowsMember* members
    cdef readonly int num_threads  # with the caller's

    # Has threads, the caller among them, take blocks of rows until none is left. During another call the caller does them alone.
    cdef void run(self, RowsFunction function, void* context, size_t num_rows, size_t block) noexcept nogil
