"""Declarations of csrc/ptx_vm.h. The C implementation is compiled into evo.native.ptx_vm alone."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from evo.native.stack_ptx cimport StackPtxFoldKind, StackPtxLowered, StackPtxStackInfo


cdef extern from "ptx_vm.h" nogil:
    ctypedef enum PtxVmResult:
        PTX_VM_SUCCESS

    ctypedef enum PtxVmLevel:
        PTX_VM_LEVEL_NUM_ENUMS

    ctypedef enum PtxVmRunKind:
        PTX_VM_RUN_STORE
        PTX_VM_RUN_REDUCE

    ctypedef struct PtxVmSet:
        pass

    ctypedef struct PtxVmProgram:
        pass

    ctypedef struct PtxVmInput:
        const void* values

    ctypedef struct PtxVmTarget:
        pass

    ctypedef struct PtxVmSums:
        pass

    const char* ptx_vm_result_to_string(PtxVmResult)
    const char* ptx_vm_level_to_string(PtxVmLevel)
    bint ptx_vm_level_is_available(PtxVmLevel)
    PtxVmLevel ptx_vm_best_level()
    PtxVmResult ptx_vm_set_size(const StackPtxStackInfo*, size_t*)
    PtxVmResult ptx_vm_set_init(const StackPtxStackInfo*, void*, size_t, const PtxVmSet**)
    bint ptx_vm_set_has_instruction(const PtxVmSet*, size_t)
    StackPtxFoldKind ptx_vm_fold(const void*, uint32_t, uint32_t, const uint32_t*, uint32_t*)
    PtxVmResult ptx_vm_program_size(const StackPtxLowered*, size_t*)
    PtxVmResult ptx_vm_program_init(
        const PtxVmSet*, PtxVmLevel, PtxVmRunKind, const StackPtxLowered*, void*, size_t, const PtxVmProgram**, uint32_t*
    )
    PtxVmResult ptx_vm_workspace_size(const PtxVmProgram*, size_t*)
    PtxVmResult ptx_vm_store(const PtxVmProgram*, const PtxVmInput*, size_t, size_t, void**, void*, size_t)
    PtxVmResult ptx_vm_reduce(
        const PtxVmProgram*, const PtxVmInput*, size_t, size_t, const PtxVmTarget*, PtxVmSums*, void*, size_t
    )
    size_t PTX_VM_TARGET_NUM_SUMS(size_t)
    PtxVmResult ptx_vm_target_sums(const float*, const float*, size_t, double*)
