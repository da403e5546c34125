"""Declarations of csrc/ptx_vm.h. The C implementation is compiled into evo.native.ptx_vm alone."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from evo.native.stack_ptx cimport StackPtxFoldKind, StackPtxLowered, StackPtxStackInfo


cdef extern from "ptx_vm.h" nogil:
    ctypedef enum PtxVmResult:
        PTX_VM_SUCCESS
        PTX_VM_ERROR_INVALID_VALUE
        PTX_VM_ERROR_NO_CPU_MEANING

    ctypedef enum PtxVmLevel:
        PTX_VM_LEVEL_BASELINE
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
        bint is_uniform

    ctypedef struct PtxVmTarget:
        const float* values
        const float* weights
        const double* sums

    ctypedef struct PtxVmSums:
        pass

    const char* ptx_vm_result_to_string(PtxVmResult result)
    const char* ptx_vm_level_to_string(PtxVmLevel level)
    bint ptx_vm_level_is_available(PtxVmLevel level)
    PtxVmLevel ptx_vm_best_level()
    PtxVmResult ptx_vm_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out)
    PtxVmResult ptx_vm_set_init(
        const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const PtxVmSet** set_out
    )
    bint ptx_vm_set_has_instruction(const PtxVmSet* vm_set, size_t instruction_idx)
    StackPtxFoldKind ptx_vm_fold(
        const void* vm_set, uint32_t instruction_idx, uint32_t known, const uint32_t* operands, uint32_t* result_out
    )
    PtxVmResult ptx_vm_program_size(const StackPtxLowered* lowered, size_t* bytes_out)
    PtxVmResult ptx_vm_program_init(
        const PtxVmSet* vm_set, PtxVmLevel level, PtxVmRunKind kind, const StackPtxLowered* lowered, void* memory,
        size_t memory_bytes, const PtxVmProgram** program_out, uint32_t* node_out
    )
    PtxVmResult ptx_vm_workspace_size(const PtxVmProgram* program, size_t* bytes_out)
    PtxVmResult ptx_vm_store(
        const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points,
        void** outputs, void* workspace, size_t workspace_bytes
    )
    PtxVmResult ptx_vm_reduce(
        const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points,
        const PtxVmTarget* targets, PtxVmSums* sums_out, void* workspace, size_t workspace_bytes
    )
    size_t PTX_VM_TARGET_NUM_SUMS(size_t num_points)
    PtxVmResult ptx_vm_target_sums(const float* values, const float* weights, size_t num_points, double* sums_out)
