"""Declarations of csrc/derive.h. The C implementation is compiled into evo.native.derive and evo.native.tune."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from evo.native.stack_ptx cimport Lowering, StackPtxLowered, StackPtxStackInfo


cdef extern from "derive.h" nogil:
    ctypedef enum DeriveResult:
        DERIVE_SUCCESS
        DERIVE_ERROR_INVALID_VALUE

    ctypedef struct DeriveSet:
        pass

    const uint32_t DERIVE_KEEP_CONSTANTS

    const char* derive_result_to_string(DeriveResult result)
    DeriveResult derive_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out)
    DeriveResult derive_set_init(
        const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const DeriveSet** set_out
    )
    bint derive_set_has_rule(const DeriveSet* derive_set, size_t instruction_idx)
    DeriveResult derive_size(const StackPtxLowered* lowered, size_t num_parameters, size_t* bytes_out)
    DeriveResult derive_constants(
        const DeriveSet* derive_set, const StackPtxLowered* lowered, size_t request_idx, void* memory, size_t memory_bytes,
        uint32_t* nodes_out, size_t max_nodes, size_t* num_nodes_out
    )
    DeriveResult derive_program(
        const DeriveSet* derive_set, const StackPtxLowered* lowered, size_t request_idx, const uint32_t* parameters,
        size_t num_parameters, uint32_t first_register, void* memory, size_t memory_bytes, StackPtxLowered* derived_out
    )


cdef class Derivation:
    cdef readonly Lowering lowering
    cdef readonly frozenset differentiable  # names of the set's instructions that pass derivatives
    cdef const DeriveSet* derive_set
    cdef object set_memory
