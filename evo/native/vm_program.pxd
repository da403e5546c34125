"""A program that the VM runs, for the extensions that hand it to C."""

from libc.stddef cimport size_t
from libc.stdint cimport uintptr_t

from evo.native.arrays cimport address
from evo.native.ptx_vm cimport (
    PTX_VM_SUCCESS, PtxVmLevel, PtxVmProgram, PtxVmResult, PtxVmRunKind, PtxVmSet, ptx_vm_program_init, ptx_vm_program_size,
    ptx_vm_result_to_string,
)
from evo.native.stack_ptx cimport Lowering, StackPtxLowered


cdef struct Preparation:
    const PtxVmSet* vm_set
    PtxVmLevel level
    PtxVmRunKind kind
    void* memory
    size_t num_bytes
    const PtxVmProgram* program


cdef inline int prepare(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor: without memory it asks for the size, with memory it prepares the program there. Gives a PtxVmResult."""
    cdef Preparation* made = <Preparation*>context
    if made.memory == NULL:
        return ptx_vm_program_size(lowered, &made.num_bytes)
    return ptx_vm_program_init(made.vm_set, made.level, made.kind, lowered, made.memory, made.num_bytes, &made.program, NULL)


cdef inline int check(int result) except -1:
    """Raises ValueError unless it is a success."""
    if result != PTX_VM_SUCCESS:
        raise ValueError(f"PTX VM refused its input: {ptx_vm_result_to_string(<PtxVmResult>result).decode()}")
    return 0


cdef inline object prepared(machine, words, PtxVmRunKind kind, const PtxVmProgram** program):
    """The memory of a prepared program, from the VirtualMachine of its language. Raises ValueError if the CPU cannot run it."""
    import numpy as np

    cdef Preparation made
    cdef Lowering lowering = machine.lowering
    vm_set, level = machine.handle()
    made.vm_set, made.level = <const PtxVmSet*><uintptr_t>vm_set, <PtxVmLevel><int>level
    made.kind, made.memory = kind, NULL
    rows = np.ascontiguousarray(words[np.newaxis])
    check(lowering.visit(rows, prepare, &made))
    memory = np.empty(made.num_bytes, np.uint8)
    made.memory = address(memory)
    check(lowering.visit(rows, prepare, &made))
    program[0] = made.program
    return memory
