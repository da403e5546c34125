# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Features of programs for models of evo.native.itll: blocks of words in, a row of features for each program out.

Owns the memory of a call. Knows nothing of tasks, scores or models. csrc/itll_features.h documents the features.
"""

import numpy as np

from libc.stdint cimport uintptr_t

from evo.native.arrays cimport address
from evo.native.ptx_vm cimport PtxVmInput, PtxVmLevel, PtxVmSet
from evo.native.stack_ptx cimport Lowering, StackPtxLowered, StackPtxStackInfo, StackPtxTraits, fill_stack_info, programs_of
from evo.native.stack_ptx_tables import instruction_set_tables


cdef extern from "itll_features.h" nogil:
    ctypedef enum ItllResult:
        ITLL_SUCCESS
        ITLL_ERROR_INSUFFICIENT_MEMORY

    ctypedef struct ItllFeaturesInfo:
        const StackPtxStackInfo* stack_info
        const PtxVmSet* vm_set
        PtxVmLevel level
        const PtxVmInput* inputs
        size_t num_inputs
        size_t num_points
        size_t num_requests
        size_t num_bigrams
        bint is_scaled

    const int ITLL_FEATURES_NUM_STATISTICS

    size_t itll_features_count(const ItllFeaturesInfo*)
    ItllResult itll_features_of(const ItllFeaturesInfo*, const StackPtxLowered*, void*, size_t, size_t*, float*)


# The last features, in their order.
STATISTICS: tuple[str, ...] = (
    "num_instructions", "depth", "num_inputs", "num_constants", "constants_mean", "constants_deviation", "constants_least",
    "constants_greatest", "uses", "nonfinite",
)  # fmt: skip

cdef struct _Batch:
    # One call.
    const ItllFeaturesInfo* info
    float* features
    size_t num_features


cdef int _describe(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor; gives an ItllResult."""
    cdef _Batch* batch = <_Batch*>context
    cdef float* features = batch.features + program_idx * batch.num_features
    cdef ItllResult result = itll_features_of(batch.info, lowered, memory, num_bytes, needed_out, features)
    return ITLL_SUCCESS if result == ITLL_ERROR_INSUFFICIENT_MEMORY else result


cdef class ProgramFeatures:
    """Describes programs of one language. Immutable, so threads may share it; `describe` releases the GIL.

    Args:
        machine: runs the programs (evo.native.ptx_vm.VirtualMachine).
        inputs: as for `VirtualMachine.store`: the registers' values at the probe points, of which 16 to 64 are enough.
        num_bigrams: counts among which pairs of instructions are distributed.
        is_scaled: the task takes the best a + b y of an output y, so outputs are compared apart from offset and scale.

    Raises:
        ValueError: an array has the wrong type or shape.
    """

    cdef readonly object machine  #: VirtualMachine
    cdef readonly tuple names  #: tuple[str, ...] - of features: output_REQUEST_POINT, instructions, bigram_NUMBER, STATISTICS
    cdef Lowering lowering
    cdef StackPtxStackInfo stack_info
    cdef ItllFeaturesInfo info
    cdef tuple owned           # what `info` points to

    def __cinit__(
        self, machine: VirtualMachine, inputs: Sequence[NDArray[Any] | None], *, size_t num_bigrams=16, bint is_scaled=False
    ):
        cdef StackPtxTraits traits
        table, arrays, num_points = machine.input_table(inputs, None)
        lowering = machine.lowering
        tables = instruction_set_tables(lowering.instruction_set)
        fill_stack_info(tables, &self.stack_info, &traits)
        set_address, level = machine.handle()
        self.machine = machine
        self.lowering = lowering
        self.owned = (table, arrays, tables)
        self.info.stack_info = &self.stack_info
        self.info.vm_set = <const PtxVmSet*><uintptr_t>set_address
        self.info.level = <PtxVmLevel><int>level
        self.info.inputs = <const PtxVmInput*>address(table)
        self.info.num_inputs = len(table)
        self.info.num_points = num_points
        self.info.num_requests = len(lowering.requests)
        self.info.num_bigrams = num_bigrams
        self.info.is_scaled = is_scaled
        requests = [lowering.registers[request][0] for request in lowering.requests]
        self.names = (
            *(f"output_{name}_{point}" for name in requests for point in range(num_points)),
            *(instruction.name for instruction in lowering.instruction_set.instructions),
            *(f"bigram_{number}" for number in range(num_bigrams)),
            *STATISTICS,
        )

    @property
    def num_features(self) -> int:
        """Features of a program."""
        return itll_features_count(&self.info)

    def describe(self, programs: NDArray[np.uint64] | LoweredPrograms) -> NDArray[np.float32]:
        """The features of programs, `(num_programs, num_features)` float32, all finite.

        Args:
            programs: `(num_programs, max_length)` uint64, or lowered.

        Raises:
            ValueError: the array has the wrong type or shape, or a program reads a register without values.
        """
        cdef _Batch batch
        programs = programs_of(programs)
        features = np.empty((len(programs), self.num_features), np.float32)
        batch.info = &self.info
        batch.features = <float*>address(features)
        batch.num_features = self.num_features
        if self.lowering.visit(programs, _describe, &batch) != ITLL_SUCCESS:
            raise ValueError("describe: a program reads a register that has no values")
        return features
