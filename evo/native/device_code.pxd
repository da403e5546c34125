"""Declarations of csrc/device_code.h. The C implementation is compiled into evo.native.device_code alone."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from evo.native.stack_ptx cimport StackPtxLowered


cdef extern from "device_code.h" nogil:
    ctypedef enum DeviceCodeResult:
        DEVICE_CODE_SUCCESS
        DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER
        DEVICE_CODE_ERROR_NO_CASE
        DEVICE_CODE_ERROR_TOO_MANY_SLOTS
        DEVICE_CODE_RESULT_NUM_ENUMS

    enum:
        DEVICE_CODE_CASE_END
        DEVICE_CODE_NUM_FORMS
        DEVICE_CODE_MAX_VECTORS

    ctypedef struct DeviceCodeKernel:
        const uint16_t* cases
        const uint8_t* num_commutative
        size_t num_instructions
        const uint8_t* register_vectors
        size_t num_registers
        uint32_t first_slot
        uint32_t num_slots

    const char* device_code_result_to_string(DeviceCodeResult result)
    DeviceCodeResult device_code_workspace_size(const StackPtxLowered* lowered, size_t* bytes_out)
    DeviceCodeResult device_code_encode(
        const DeviceCodeKernel* kernel, const StackPtxLowered* lowered, uint32_t first_output, void* workspace,
        size_t workspace_bytes, uint64_t* steps, size_t max_steps, size_t* num_steps_out
    )
