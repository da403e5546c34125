"""Declarations of csrc/device_code.h. The C implementation is compiled into evo.native.device_code alone."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from evo.native.stack_ptx cimport StackPtxLowered


cdef extern from "device_code.h" nogil:
    ctypedef enum DeviceCodeResult:
        DEVICE_CODE_SUCCESS
        DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER
        DEVICE_CODE_ERROR_NO_CASE
        DEVICE_CODE_ERROR_TOO_MANY_SLOTS

    enum:
        DEVICE_CODE_NUM_FORMS
        DEVICE_CODE_MAX_VECTORS
        DEVICE_CODE_CASE_BITS
        DEVICE_CODE_RESULT_SHIFT
        DEVICE_CODE_SECOND_SHIFT
        DEVICE_CODE_FIRST_SHIFT
        DEVICE_CODE_VECTOR_BITS

    ctypedef struct DeviceCodeKernel:
        const uint16_t* cases
        const uint8_t* num_commutative
        size_t num_instructions
        const uint8_t* register_vectors
        size_t num_registers
        uint32_t first_slot
        uint32_t num_slots
        uint32_t num_vectors

    DeviceCodeResult device_code_workspace_size(const StackPtxLowered*, size_t*)
    DeviceCodeResult device_code_encode(
        const DeviceCodeKernel*, const StackPtxLowered*, uint32_t, void*, size_t, uint32_t*, size_t, size_t*
    )
