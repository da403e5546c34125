"""Declarations of csrc/stack_ptx.h, and the class with which other native modules lower programs.

The C implementation is compiled into evo.native.stack_ptx alone; other modules use it through the class.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from evo.native.row_threads cimport RowThreads


cdef extern from "stack_ptx.h":
    ctypedef struct StackPtxInstruction:
        pass

    ctypedef enum StackPtxResult:
        STACK_PTX_SUCCESS
        STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE

    ctypedef enum StackPtxMode:
        STACK_PTX_MODE_LENIENT

    ctypedef enum StackPtxFoldKind:
        pass

    ctypedef StackPtxFoldKind (*StackPtxFoldFunction)(
        const void* context, uint32_t instruction_idx, uint32_t known, const uint32_t* operands, uint32_t* result_out
    ) noexcept nogil

    ctypedef struct StackPtxFolding:
        StackPtxFoldFunction fold
        const void* context

    ctypedef enum StackPtxNodeKind:
        STACK_PTX_NODE_INPUT
        STACK_PTX_NODE_CONSTANT
        STACK_PTX_NODE_SPECIAL
        STACK_PTX_NODE_PTX

    ctypedef struct StackPtxNode:
        uint16_t kind
        uint16_t num_operands
        uint16_t num_values
        uint32_t payload
        uint32_t first_operand
        uint32_t first_value

    const uint32_t STACK_PTX_NO_VALUE

    ctypedef struct StackPtxLowered:
        const StackPtxNode* nodes
        const uint32_t* operands
        const uint32_t* value_nodes
        const uint16_t* value_stacks
        const uint32_t* request_values
        uint32_t num_nodes
        uint32_t num_operands
        uint32_t num_values
        uint32_t num_requests
        uint32_t num_instructions

    ctypedef struct StackPtxLanguage:
        pass

    const int STACK_PTX_HASH_VERSION
    const size_t STACK_PTX_MAIN_PROGRAM
    const uint32_t STACK_PTX_FLAG_NO_VALUE_NUMBERING
    const uint32_t STACK_PTX_FLAG_NO_FOLDING

    ctypedef struct StackPtxArgTypeInfo:
        pass

    ctypedef struct StackPtxPtxInstructionDescriptor:
        pass

    ctypedef struct StackPtxSpecialRegisterDescriptor:
        pass

    ctypedef struct StackPtxStackInfo:
        const char** ptx_instruction_strings
        const StackPtxPtxInstructionDescriptor* ptx_instruction_descriptors
        size_t num_ptx_instructions
        const char** special_register_strings
        const StackPtxSpecialRegisterDescriptor* special_register_descriptors
        size_t num_special_registers
        const char** stack_literal_prefixes
        size_t num_stacks
        const StackPtxArgTypeInfo* arg_type_info
        size_t num_arg_types

    ctypedef struct StackPtxRegister:
        pass

    ctypedef struct StackPtxInstructionTraits:
        pass

    ctypedef struct StackPtxTraits:
        const StackPtxInstructionTraits* instructions
        const uint8_t* volatile_special_registers
        const uint8_t* constant_types

    ctypedef struct StackPtxLimits:
        uint32_t stack_size
        uint32_t max_nodes
        uint32_t max_frame_depth
        uint32_t store_size
        uint32_t execution_limit

    ctypedef StackPtxResult (*StackPtxDeriveFunction)(
        const void*, const StackPtxLowered*, uint32_t, void*, size_t, StackPtxLowered*
    ) noexcept nogil

    ctypedef struct StackPtxDerivation:
        StackPtxDeriveFunction derive
        const void* context
        size_t memory_bytes

    ctypedef struct StackPtxLanguageInfo:
        const StackPtxStackInfo* stack_info
        const StackPtxTraits* traits
        StackPtxLimits limits
        const StackPtxRegister* registers
        size_t num_registers
        const size_t* requests
        size_t num_requests
        const StackPtxInstruction** routines
        const size_t* routine_lengths
        size_t num_routines
        StackPtxFolding folding
        const StackPtxInstruction* template_words
        size_t template_length
        StackPtxDerivation derivation

    ctypedef struct StackPtxPlace:
        size_t routine_idx
        size_t word_idx

    ctypedef struct StackPtxHash:
        pass

    const char* stack_ptx_result_to_string(StackPtxResult) nogil
    StackPtxResult stack_ptx_check_name(const char*) nogil
    StackPtxResult stack_ptx_language_size(const StackPtxLanguageInfo*, size_t*) nogil
    StackPtxResult stack_ptx_language_init(const StackPtxLanguageInfo*, void*, size_t, const StackPtxLanguage**) nogil
    StackPtxResult stack_ptx_workspace_size(const StackPtxLanguage*, size_t*) nogil
    StackPtxResult stack_ptx_lower(
        const StackPtxLanguage*, StackPtxMode, uint32_t, const StackPtxInstruction*, size_t, void*, size_t, StackPtxLowered*,
        StackPtxPlace*
    ) nogil
    StackPtxResult stack_ptx_emit(const StackPtxLanguage*, const StackPtxLowered*, void*, size_t, char*, size_t, size_t*) nogil
    StackPtxResult stack_ptx_hash(const StackPtxLanguage*, const StackPtxLowered*, void*, size_t, StackPtxHash*) nogil


# `tables` is what `instruction_set_tables` gives; it must live as long as what is filled in is used.
cdef int fill_stack_info(object tables, StackPtxStackInfo* info, StackPtxTraits* traits) except -1


# Visitor of a lowered program. 0: the visit goes on; other numbers, none of them negative, end it. A visitor that needs more
# memory than it is given, which may have any contents, says how much and is called again.
ctypedef int (*Visitor)(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil


cdef class Lowering:
    cdef readonly object instruction_set
    cdef readonly tuple registers  #: tuple[tuple[str, int], ...] - (name, stack index) pairs
    cdef readonly tuple requests  #: tuple[int, ...] - register indices
    cdef readonly object limits
    cdef readonly tuple routines  #: tuple[NDArray[np.uint64], ...] - uint64 arrays
    cdef readonly object folding  # evo.native.ptx_vm.Folding or None
    cdef readonly object template  #: NDArray[np.uint64] - words
    cdef const StackPtxLanguage* language
    cdef readonly size_t workspace_bytes
    cdef list owned                    # keeps alive what `language` points to
    cdef list idle_workspaces

    # Visits programs one after the other, as `programs_of` gives them: words are lowered in lenient mode. The GIL is released. Visits
    # `count` rows in an order, or all if it is NULL; program_idx counts visits. Threads that visit the same programs share the number
    # `turn`, of the next visit: each program is visited by one of them. With `row_threads`, these visit them together. Returns the
    # last visitor's number.
    cdef int visit(
        self, programs, Visitor visitor, void* context, uint32_t flags=*, const int64_t* order=*, size_t count=*, size_t* turn=*,
        RowThreads row_threads=*
    ) except -1


cdef class LoweredPrograms:
    cdef readonly Lowering lowering
    cdef object places  # address of each program's StackPtxLowered
    cdef tuple owned    # what they lie in


# Arguments of `Lowering.visit`: lowered programs, or their words as `word_rows` gives them. Raises ValueError.
cdef object programs_of(object programs)
