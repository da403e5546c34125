# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Contractions of programs over all pairs of rows, and derivatives of programs by their inputs.

Owns the prepared programs and the memory of a call. Knows nothing of tensors, semirings or threads. csrc/ptx_vm.h documents a
contraction, csrc/derive.h a derivative.
"""

import numpy as np

from evo.native.stack_ptx_tables import instruction_set_tables

from libc.stdint cimport uint32_t, uintptr_t

from evo.native.arrays cimport address
from evo.native.derive cimport DERIVE_SUCCESS, DeriveSet, derive_program, derive_set_of, derive_size
from evo.native.ptx_vm cimport PtxVmProgram, PtxVmResult, PtxVmRunKind
from evo.native.stack_ptx cimport (
    STACK_PTX_FLAG_NO_FOLDING, STACK_PTX_NO_VALUE, STACK_PTX_NODE_CONSTANT, Lowering, StackPtxLowered, StackPtxStackInfo,
    StackPtxTraits, fill_stack_info,
)
from evo.native.vm_program cimport check, prepared

from evo.native.stack_ptx import NO_VALUE, NODE_DTYPE


cdef extern from "ptx_vm.h" nogil:
    PtxVmRunKind PTX_VM_RUN_CONTRACT

    ctypedef struct PtxVmOperand:
        pass

    ctypedef struct PtxVmState:
        pass

    ctypedef struct PtxVmContract:
        const PtxVmProgram* program
        const PtxVmOperand* operands
        size_t num_operands
        const PtxVmState* states
        const PtxVmProgram* finish
        const PtxVmState* results
        size_t k_size

    size_t PTX_VM_CONTRACT_COLUMNS
    size_t PTX_VM_CONTRACT_MAX_DEPTH
    PtxVmResult ptx_vm_contract_size(const PtxVmContract*, size_t*)
    PtxVmResult ptx_vm_contract(const PtxVmContract*, size_t, size_t, size_t, size_t, void*, size_t)


# Columns that are computed together: parts begin at multiples of it.
CHUNK: int = PTX_VM_CONTRACT_COLUMNS

# The largest number of terms of a reduction.
MAX_DEPTH: int = PTX_VM_CONTRACT_MAX_DEPTH

# Laid out like PtxVmOperand. axes: 0 none, 1 row, 2 column, 3 pair, 4 index; element: 0 f32, 1 f16, 2 bf16.
OPERAND_DTYPE: np.dtype[np.void] = np.dtype(
    [("values", np.uintp), ("strides", np.intp, 2), ("axes", np.int32), ("element", np.int32)]
)

# Laid out like PtxVmState.
STATE_DTYPE: np.dtype[np.void] = np.dtype(
    [("values", np.uintp), ("strides", np.intp, 2), ("axes", np.int32), ("initial", np.float32)]
)


cdef class Contraction:
    """A program over all pairs of rows. Immutable, so threads may share it; runs release the GIL.

    Args:
        machine: of the step's language, whose registers are the operands and then the states.
        step: `(length,)` uint64, the program that gives the new states.
        finish_machine, finish: of the language of what is made of the states at the end, with the same registers; or None.

    Raises:
        ValueError: a program has an instruction that the CPU cannot run.
    """

    cdef PtxVmContract contract
    cdef tuple owned

    def __cinit__(
        self, machine: Any, step: NDArray[np.uint64], finish_machine: Any = None, finish: NDArray[np.uint64] | None = None
    ):
        self.contract.finish = NULL
        memory = prepared(machine, step, PTX_VM_RUN_CONTRACT, &self.contract.program)
        self.contract.num_operands = len(machine.lowering.registers) - len(machine.lowering.requests)
        finish_memory = None
        if finish is not None:
            finish_memory = prepared(finish_machine, finish, PTX_VM_RUN_CONTRACT, &self.contract.finish)
        self.owned = machine, finish_machine, memory, finish_memory

    def run(
        self, operands: NDArray[np.void], states: NDArray[np.void], results: NDArray[np.void], k_size: int,
        rows: tuple[int, int], columns: tuple[int, int]
    ) -> None:
        """Computes the part with these rows and columns, first and past the last.

        Args:
            operands, states, results: contiguous, of OPERAND_DTYPE, STATE_DTYPE and STATE_DTYPE; the arrays that they point to
                must live, and results of parts that run at once must not overlap.

        Raises:
            ValueError: a register has no operand, or k_size is above MAX_DEPTH.
        """
        cdef PtxVmContract contract = self.contract
        cdef size_t num_bytes = 0, first_row, end_row, first_column, end_column
        cdef PtxVmResult result
        first_row, end_row = rows
        first_column, end_column = columns
        if len(operands) != contract.num_operands:
            raise ValueError(f"operands: expected {contract.num_operands}, got {len(operands)}")
        contract.operands = <const PtxVmOperand*>address(operands)
        contract.states = <const PtxVmState*>address(states)
        contract.results = <const PtxVmState*>address(results)
        contract.k_size = k_size
        check(ptx_vm_contract_size(&contract, &num_bytes))
        workspace = np.empty(num_bytes, np.uint8)
        cdef void* memory = address(workspace)
        with nogil:
            result = ptx_vm_contract(&contract, first_row, end_row, first_column, end_column, memory, num_bytes)
        check(result)


cdef struct _Derivation:
    const DeriveSet* derive_set
    const uint32_t* bits      # of each parameter
    uint32_t* nodes           # room for one to each
    size_t num_parameters
    void* derived             # list of arrays


cdef int _derive(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept with gil:
    """A visitor that leaves copies of the derived program's arrays."""
    cdef _Derivation* derivation = <_Derivation*>context
    cdef StackPtxLowered derived
    cdef size_t needed = 0, i
    cdef uint32_t node
    derive_size(lowered, derivation.num_parameters, &needed)
    if needed > num_bytes:
        needed_out[0] = needed
        return 0
    for i in range(derivation.num_parameters):
        for node in range(lowered.num_nodes):
            if lowered.nodes[node].kind == STACK_PTX_NODE_CONSTANT and lowered.nodes[node].payload == derivation.bits[i]:
                derivation.nodes[i] = node
    if derive_program(
        derivation.derive_set, lowered, 0, derivation.nodes, derivation.num_parameters, 0, memory, num_bytes, &derived
    ) != DERIVE_SUCCESS:
        return 1
    arrays = (
        (<uintptr_t>derived.nodes, derived.num_nodes, NODE_DTYPE),
        (<uintptr_t>derived.operands, derived.num_operands, np.dtype(np.uint32)),
        (<uintptr_t>derived.value_stacks, derived.num_values, np.dtype(np.uint16)),
        (<uintptr_t>derived.request_values, derived.num_requests, np.dtype(np.uint32)),
    )
    for where, count, dtype in arrays:
        copy = np.empty(count, dtype)
        if count:
            copy.view(np.uint8)[:] = <unsigned char[:count * dtype.itemsize]><unsigned char*><uintptr_t>where
        (<list>derivation.derived).append(copy)
    return 0


def derivatives(
    Lowering lowering, words: NDArray[np.uint64], bits: NDArray[np.uint32]
) -> tuple[NDArray[np.void], NDArray[np.uint32], NDArray[np.uint16], NDArray[np.uint32]]:
    """Nodes, operands, value stacks and request values of a program that gives its first request and the derivative by each parameter.

    Args:
        words: `(length,)`, a program in which each parameter is a constant with bits of its own.
        bits: of each parameter, which becomes the input of its index. Each must be in the program.

    Raises:
        ValueError: a parameter is not in the program.
    """
    cdef StackPtxStackInfo stack_info
    cdef StackPtxTraits traits
    cdef _Derivation derivation
    tables = instruction_set_tables(lowering.instruction_set)
    fill_stack_info(tables, &stack_info, &traits)
    derive_set = derive_set_of(&stack_info, &derivation.derive_set)
    bits = np.ascontiguousarray(bits, np.uint32)
    nodes = np.full(len(bits), NO_VALUE, np.uint32)
    derived = []
    derivation.bits = <const uint32_t*>address(bits)
    derivation.nodes = <uint32_t*>address(nodes)
    derivation.num_parameters = len(bits)
    derivation.derived = <void*>derived
    if lowering.visit(words[np.newaxis], _derive, &derivation, STACK_PTX_FLAG_NO_FOLDING) != 0 or len(derived) != 4:
        raise ValueError("derivatives: a parameter is not in the program")
    return tuple(derived)
