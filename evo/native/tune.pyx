# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Fits the constants of programs to a target: blocks of words in, words with better constants out.

Owns the memory of a call. Knows nothing of tasks, scores or which programs are worth it. csrc/tune.h documents the method.
"""

import numpy as np

from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from evo.native.derive cimport Derivation, DeriveSet
from evo.native.ptx_vm cimport PtxVmInput, PtxVmLevel, PtxVmSet
from evo.native.stack_ptx cimport Lowering, StackPtxInstruction, StackPtxLowered


cdef extern from *:
    """
    #define DERIVE_IMPLEMENTATION
    #define TUNE_IMPLEMENTATION
    #include "derive.h"
    #include "tune.h"
    """


cdef extern from "tune.h" nogil:
    ctypedef enum TuneResult:
        TUNE_SUCCESS
        TUNE_ERROR_INVALID_VALUE
        TUNE_ERROR_INSUFFICIENT_MEMORY

    ctypedef struct TuneProblem:
        const DeriveSet* derive_set
        const PtxVmSet* vm_set
        PtxVmLevel level
        const PtxVmInput* inputs
        size_t num_inputs
        size_t num_points
        const float* target
        unsigned int num_iterations
        bint is_scaled

    ctypedef struct TuneOutcome:
        pass

    const int TUNE_MAX_PARAMETERS

    TuneResult tune_program(
        const TuneProblem* problem, const StackPtxLowered* lowered, StackPtxInstruction* words, size_t num_words, void* memory,
        size_t memory_bytes, size_t* bytes_needed_out, TuneOutcome* outcome_out
    )


# More constants than these are left as they are.
MAX_PARAMETERS = TUNE_MAX_PARAMETERS

# What happened to a program, laid out like TuneOutcome.
OUTCOME_DTYPE = np.dtype(
    [
        ("num_parameters", np.uint32),
        ("num_evaluations", np.uint32),
        ("is_changed", np.uint64),
        ("error_before", np.float64),
        ("error_after", np.float64),
    ]
)

cdef enum:
    _OUT_OF_MEMORY = -1


cdef class Tuner:
    """Tunes programs of one language against one target. Immutable, so threads may share it; `tune` releases the GIL.

    Args:
        machine: runs the programs.
        inputs: as for `VirtualMachine.store`.
        target: `(num_points,)` float32, what the first request is fitted to.
        iterations: of Levenberg-Marquardt.
        is_scaled: the error is that of a + b y for the best a and b.

    Raises:
        ValueError: an array has the wrong type or shape, or the language has routines, whose words cannot be rewritten.
    """

    cdef readonly object machine
    cdef Lowering lowering
    cdef Derivation derivation
    cdef TuneProblem problem
    cdef tuple owned  # what `problem` points to

    def __cinit__(self, machine, inputs, target, *, unsigned int iterations, bint is_scaled):
        target = np.ascontiguousarray(target)
        if target.dtype != np.float32 or target.ndim != 1:
            raise ValueError(f"target: expected float32 of shape (num_points,), got {target.dtype} of {target.shape}")
        instruction_set, registers, requests = machine.lowering.instruction_set, machine.lowering.registers, machine.lowering.requests
        if machine.lowering.routines:
            raise ValueError("the language has routines, whose constants cannot be tuned; expected none")
        if not requests or instruction_set.stacks[registers[requests[0]][1]].literal_prefix != "f32":
            raise ValueError("the language's first request must be an f32")
        table, arrays, num_points = machine.input_table(inputs, len(target))
        set_address, level = machine.handle()
        self.machine = machine
        self.lowering = machine.lowering
        self.derivation = Derivation(machine.lowering)
        self.owned = (table, arrays, target)
        self.problem.derive_set = self.derivation.derive_set
        self.problem.vm_set = <const PtxVmSet*><uintptr_t>set_address
        self.problem.level = <PtxVmLevel><int>level
        self.problem.inputs = <const PtxVmInput*>_address(table)
        self.problem.num_inputs = len(table)
        self.problem.num_points = num_points
        self.problem.target = <const float*>_address(target)
        self.problem.num_iterations = iterations
        self.problem.is_scaled = is_scaled

    def tune(self, words):
        """Tuned copies of programs, and what happened to each, `(num_programs,)` of OUTCOME_DTYPE.

        Args:
            words: `(num_programs, max_length)` uint64.

        Raises:
            ValueError: a program reads a register without values.
        """
        tuned = np.array(words, order="C")
        if tuned.dtype != np.uint64 or tuned.ndim != 2:
            raise ValueError(f"words: expected uint64 of shape (num_programs, max_length), got {tuned.dtype} of {tuned.shape}")
        outcomes = np.empty(len(tuned), OUTCOME_DTYPE)
        cdef uint64_t* rows = <uint64_t*>_address(tuned)
        cdef TuneOutcome* results = <TuneOutcome*>_address(outcomes)
        cdef size_t num_programs = tuned.shape[0], num_words = tuned.shape[1], i
        cdef int result = TUNE_SUCCESS
        cdef void* memory = NULL
        cdef size_t memory_bytes = 0
        cdef void* lowering_memory = NULL
        with nogil:
            lowering_memory = malloc(self.lowering.workspace_bytes)
            if lowering_memory == NULL:
                result = _OUT_OF_MEMORY
            for i in range(num_programs):
                if result != TUNE_SUCCESS:
                    break
                result = self._tune_one(rows + i * num_words, num_words, lowering_memory, &memory, &memory_bytes, results + i)
            free(lowering_memory)
            free(memory)
        if result == _OUT_OF_MEMORY:
            raise MemoryError("no memory to tune programs")
        if result != TUNE_SUCCESS:
            raise ValueError("tune: a program reads a register that has no values")
        return tuned, outcomes

    cdef int _tune_one(
        self, uint64_t* words, size_t num_words, void* lowering_memory, void** memory, size_t* memory_bytes, TuneOutcome* outcome
    ) noexcept nogil:
        cdef StackPtxLowered lowered
        cdef size_t needed = 0
        cdef int result = TUNE_ERROR_INSUFFICIENT_MEMORY
        self.lowering.lower_unfolded(words, num_words, lowering_memory, &lowered)
        while result == TUNE_ERROR_INSUFFICIENT_MEMORY:
            result = tune_program(
                &self.problem, &lowered, <StackPtxInstruction*>words, num_words, memory[0], memory_bytes[0], &needed, outcome
            )
            if result == TUNE_ERROR_INSUFFICIENT_MEMORY:
                free(memory[0])
                memory_bytes[0] = 0
                memory[0] = malloc(needed)
                if memory[0] == NULL:
                    return _OUT_OF_MEMORY
                memory_bytes[0] = needed
        return result


cdef void* _address(array):
    """The address of an array's data."""
    return <void*><uintptr_t>array.ctypes.data
