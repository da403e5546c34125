# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Derivatives of programs by their constants, and constants that are fitted to a target.

Owns the memory of a call. Knows nothing of tasks, scores or which programs are worth it. csrc/derive.h and csrc/tune.h document
the method.
"""

from typing import NamedTuple

import numpy as np

from evo.native.stack_ptx import NODE_DTYPE
from evo.native.stack_ptx_tables import instruction_set_tables

from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from evo.native.ptx_vm cimport PtxVmInput, PtxVmLevel, PtxVmSet
from evo.native.stack_ptx cimport (
    Lowering, StackPtxInstruction, StackPtxLowered, StackPtxStackInfo, StackPtxTraits, fill_lowered, fill_stack_info,
)


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
        const float* root_weights

    ctypedef struct TuneOutcome:
        pass

    const int TUNE_MAX_PARAMETERS

    TuneResult tune_program(
        const TuneProblem* problem, const StackPtxLowered* lowered, StackPtxInstruction* words, size_t num_words, void* memory,
        size_t memory_bytes, size_t* bytes_needed_out, TuneOutcome* outcome_out
    )


# More constants than these are left as they are.
MAX_PARAMETERS: int = TUNE_MAX_PARAMETERS

# What happened to a program, laid out like TuneOutcome.
OUTCOME_DTYPE: np.dtype[np.void] = np.dtype(
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


class Derived(NamedTuple):
    """A derived program, in lenient mode; the fields are those of `evo.native.stack_ptx.Lowered`.

    Its requests are the program's output and then the derivative by each parameter.
    """

    nodes: NDArray[np.void]
    operands: NDArray[np.uint32]
    value_nodes: NDArray[np.uint32]
    value_stacks: NDArray[np.uint16]
    request_values: NDArray[np.uint32]
    num_instructions: int


cdef class Derivation:
    """Derives programs of one language. Immutable and thread-safe.

    Args:
        lowering: lowers the programs.
    """

    cdef readonly Lowering lowering
    cdef readonly frozenset differentiable  #: frozenset[str] - names of the set's instructions that pass derivatives
    cdef const DeriveSet* derive_set
    cdef object set_memory

    def __cinit__(self, Lowering lowering):
        cdef StackPtxStackInfo stack_info
        cdef StackPtxTraits traits
        cdef size_t num_bytes = 0
        self.lowering = lowering
        tables = instruction_set_tables(lowering.instruction_set)
        fill_stack_info(tables, &stack_info, &traits)
        _check(derive_set_size(&stack_info, &num_bytes))
        self.set_memory = np.empty(num_bytes, np.uint8)
        _check(derive_set_init(&stack_info, _address(self.set_memory), num_bytes, &self.derive_set))
        self.differentiable = frozenset(
            instruction.name
            for index, instruction in enumerate(lowering.instruction_set.instructions)
            if derive_set_has_rule(self.derive_set, index)
        )

    def constants(self, lowered: Lowered, size_t request=0) -> NDArray[np.uint32]:
        """The nodes of the constants on which a request depends differentiably, as indices in evaluation order.

        Args:
            lowered: a program of this language (`Lowering.lower`).
            request: index of the request.

        Raises:
            ValueError: there is no such request.
        """
        cdef StackPtxLowered c_lowered
        cdef size_t num_bytes = 0, count = 0
        arrays = fill_lowered(lowered, &c_lowered)
        found = np.empty(len(lowered.nodes), np.uint32)
        _check(derive_size(&c_lowered, 0, &num_bytes))
        memory = np.empty(num_bytes, np.uint8)
        _check(
            derive_constants(
                self.derive_set, &c_lowered, request, _address(memory), num_bytes, <uint32_t*>_address(found), len(found), &count
            )
        )
        return found[:count].copy()

    def derive(self, lowered: Lowered, parameters: ArrayLike, size_t request=0, *, first_register: int | None = None) -> Derived:
        """The program with its derivatives, as a `Derived`.

        Args:
            lowered: a program of this language (`Lowering.lower`).
            parameters: node indices of f32 constants, each once.
            request: index of the request that is derived.
            first_register: parameter k becomes an input of register first_register + k; None: parameters stay constants.

        Raises:
            ValueError: there is no such request, or a parameter is not an f32 constant or is given twice.
        """
        cdef StackPtxLowered c_lowered, derived
        cdef size_t num_bytes = 0
        cdef uint32_t c_register = DERIVE_KEEP_CONSTANTS if first_register is None else first_register
        arrays = fill_lowered(lowered, &c_lowered)
        chosen = np.ascontiguousarray(parameters, np.uint32)
        _check(derive_size(&c_lowered, len(chosen), &num_bytes))
        memory = np.empty(num_bytes, np.uint8)
        _check(
            derive_program(
                self.derive_set, &c_lowered, request, <const uint32_t*>_address(chosen), len(chosen), c_register,
                _address(memory), num_bytes, &derived
            )
        )
        return Derived(
            _copy(derived.nodes, derived.num_nodes, NODE_DTYPE),
            _copy(derived.operands, derived.num_operands, np.uint32),
            _copy(derived.value_nodes, derived.num_values, np.uint32),
            _copy(derived.value_stacks, derived.num_values, np.uint16),
            _copy(derived.request_values, derived.num_requests, np.uint32),
            derived.num_instructions,
        )


cdef class Tuner:
    """Tunes programs of one language against one target. Immutable, so threads may share it; `tune` releases the GIL.

    Args:
        machine: runs the programs.
        inputs: as for `VirtualMachine.store`.
        target: `(num_points,)` float32, what the first request is fitted to.
        iterations: of Levenberg-Marquardt.
        is_scaled: the error is that of a + b y for the best a and b.
        weights: `(num_points,)` float32, above 0, factors of squared errors; None: all are 1.

    Raises:
        ValueError: an array has the wrong type or shape, or the language has routines, whose words cannot be rewritten.
    """

    cdef readonly object machine  #: VirtualMachine
    cdef Lowering lowering
    cdef Derivation derivation
    cdef TuneProblem problem
    cdef tuple owned  # what `problem` points to

    def __cinit__(
        self, machine: VirtualMachine, inputs: Sequence[NDArray[Any] | None], target: NDArray[np.float32], *,
        unsigned int iterations, bint is_scaled, weights: NDArray[np.float32] | None = None
    ):
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
        roots = None if weights is None else np.sqrt(weights, dtype=np.float32)
        if roots is not None and roots.shape != target.shape:
            raise ValueError(f"weights: expected shape {target.shape}, got {roots.shape}")
        self.owned = (table, arrays, target, roots)
        self.problem.root_weights = NULL if roots is None else <const float*>_address(roots)
        self.problem.derive_set = self.derivation.derive_set
        self.problem.vm_set = <const PtxVmSet*><uintptr_t>set_address
        self.problem.level = <PtxVmLevel><int>level
        self.problem.inputs = <const PtxVmInput*>_address(table)
        self.problem.num_inputs = len(table)
        self.problem.num_points = num_points
        self.problem.target = <const float*>_address(target)
        self.problem.num_iterations = iterations
        self.problem.is_scaled = is_scaled

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.void]]:
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


def sums_of_products(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums over points of `left[i] * right[j]`, `(len(left), len(right))`.

    Points are added one after the other, so every machine gives the same bits, as a library for matrices does not.

    Args:
        left, right: `(n, num_points)`.
    """
    right = right.T
    sums = np.zeros((len(left), right.shape[1]))
    cdef const double[:, ::1] a = np.ascontiguousarray(left), b = np.ascontiguousarray(right)
    cdef double[:, ::1] total = sums
    cdef Py_ssize_t point, i, j
    cdef double factor
    with nogil:
        for point in range(b.shape[0]):
            for i in range(a.shape[0]):
                factor = a[i, point]
                for j in range(b.shape[1]):
                    total[i, j] += factor * b[point, j]
    return sums


cdef void* _address(array):
    """The address of an array's data."""
    return <void*><uintptr_t>array.ctypes.data


cdef object _copy(const void* source, size_t count, dtype):
    copy = np.empty(count, dtype)
    if count:
        memcpy(_address(copy), source, copy.nbytes)
    copy.flags.writeable = False
    return copy


cdef int _check(DeriveResult result) except -1:
    if result != DERIVE_SUCCESS:
        raise ValueError(
            f"derive: {derive_result_to_string(result).decode()}: the request must exist, and each parameter must be the index of "
            "an f32 constant's node, given once"
        )
    return 0
