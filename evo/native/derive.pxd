"""csrc/derive.h for the extensions that derive programs."""

from libc.stdint cimport uint32_t

from evo.native.stack_ptx cimport StackPtxLowered, StackPtxStackInfo


cdef extern from "derive.h" nogil:
    ctypedef struct DeriveSet:
        pass

    ctypedef enum DeriveResult:
        DERIVE_SUCCESS

    const uint32_t DERIVE_KEEP_CONSTANTS

    DeriveResult derive_set_size(const StackPtxStackInfo*, size_t*)
    DeriveResult derive_set_init(const StackPtxStackInfo*, void*, size_t, const DeriveSet**)
    DeriveResult derive_size(const StackPtxLowered*, size_t, size_t*)
    DeriveResult derive_program(
        const DeriveSet*, const StackPtxLowered*, size_t, const uint32_t*, size_t, uint32_t, void*, size_t, StackPtxLowered*
    )


cdef inline bytearray derive_set_of(const StackPtxStackInfo* stack_info, const DeriveSet** set_out):
    """The memory of an instruction set's rules, which must live as long as they are used."""
    cdef size_t num_bytes = 0
    derive_set_size(stack_info, &num_bytes)
    memory = bytearray(num_bytes)
    derive_set_init(stack_info, <char*>memory, num_bytes, set_out)
    return memory
