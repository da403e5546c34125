# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Programs as code for the kernel that interprets them: words in, steps out.

Owns the batch call and its memory. Knows nothing of kernels' text and launches. csrc/device_code.h documents the code.
"""

from enum import IntEnum

import numpy as np


from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from evo.native.arrays cimport address
from evo.native.stack_ptx cimport Lowering, StackPtxLowered, programs_of


class Encoded(IntEnum):
    """What became of a program. Only OK has code of its own."""

    OK = DEVICE_CODE_SUCCESS
    NO_ROOM = DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER
    NO_CASE = DEVICE_CODE_ERROR_NO_CASE
    TOO_MANY_SLOTS = DEVICE_CODE_ERROR_TOO_MANY_SLOTS


# Steps of a buffer beside those of programs: one that the kernel reads ahead.
NUM_EXTRA_STEPS: int = 1


def max_steps(num_instructions: Any, num_requests: int) -> Any:
    """The most steps of programs with these numbers of live instructions, an array or a number."""
    return 3 * num_instructions + 2 * num_requests + 1  # as DEVICE_CODE_MAX_STEPS


cdef struct _Batch:
    # One call, and how far it is.
    const DeviceCodeKernel* kernel
    DeviceCodeStep* steps
    size_t room
    size_t used
    uint32_t* starts
    size_t num_taken
    uint8_t* results
    uint32_t first_output


cdef int _encode(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor; always gives 0."""
    cdef _Batch* batch = <_Batch*>context
    cdef size_t needed = 0, num_steps = 0
    device_code_workspace_size(lowered, &needed)
    if needed > num_bytes:
        needed_out[0] = 2 * needed
        return 0
    batch.results[program_idx] = <uint8_t>device_code_encode(
        batch.kernel, lowered, batch.first_output, memory, num_bytes, batch.steps + batch.used, batch.room - batch.used, &num_steps
    )
    if batch.results[program_idx] == DEVICE_CODE_SUCCESS:
        batch.starts[batch.num_taken] = <uint32_t>batch.used
        batch.num_taken += 1
        batch.used += num_steps
    return 0


cdef class DeviceEncoder:
    """Encodes programs of one language for one kernel. Immutable, so threads may share it; `encode` releases the GIL.

    Args:
        lowering: lowers the programs. Its registers are inputs and then outputs that are not inputs.
        cases: `(num_instructions, 27)` uint16 (`evo.kernel.interpreter_cases`).
        register_vectors: the vector that holds each register's values.
        first_slot, num_slots: vectors for values that are needed later.

    Raises:
        ValueError: an array has the wrong shape, or there are more vectors than a step can name.
    """

    cdef readonly Lowering lowering
    cdef DeviceCodeKernel kernel
    cdef list owned  # keeps alive what `kernel` points to

    def __cinit__(
        self, Lowering lowering, cases: ArrayLike, register_vectors: Sequence[int], uint32_t first_slot, uint32_t num_slots
    ):
        instructions = lowering.instruction_set.instructions
        cases = np.ascontiguousarray(cases, np.uint16)
        commutative = np.array([instruction.num_commutative for instruction in instructions], np.uint8)
        vectors = np.array(register_vectors, np.uint8)
        if cases.shape != (len(instructions), DEVICE_CODE_NUM_FORMS) or len(vectors) != len(lowering.registers):
            raise ValueError(
                f"expected cases of shape ({len(instructions)}, {DEVICE_CODE_NUM_FORMS}) and {len(lowering.registers)} vectors, "
                f"got {cases.shape} and {len(vectors)}"
            )
        if first_slot + num_slots > DEVICE_CODE_MAX_VECTORS or vectors.max(initial=0) >= DEVICE_CODE_MAX_VECTORS:
            raise ValueError(f"a step can name {DEVICE_CODE_MAX_VECTORS} vectors, not {first_slot + num_slots}")
        self.lowering = lowering
        self.owned = [cases, commutative, vectors]
        self.kernel.cases = <const uint16_t*>address(cases)
        self.kernel.num_commutative = <const uint8_t*>address(commutative)
        self.kernel.num_instructions = len(instructions)
        self.kernel.register_vectors = <const uint8_t*>address(vectors)
        self.kernel.num_registers = len(vectors)
        self.kernel.first_slot = first_slot
        self.kernel.num_slots = num_slots

    def encode(
        self, programs: NDArray[np.uint64] | LoweredPrograms, rows: NDArray[np.int64], steps: NDArray[np.uint32], starts: NDArray[np.uint32],
        uint32_t first_output
    ) -> tuple[NDArray[np.uint8], int]:
        """Writes the code of some programs of a batch.

        Args:
            programs: `(num_programs, max_length)` uint64, or lowered.
            rows: `(count,)` int64, which of the programs, in the order of their code.
            steps: `(num_steps, 4)` uint32, is written to. `max_steps` says how much room is enough, besides NUM_EXTRA_STEPS.
            starts: `(count,)` uint32, is written to: the first step of each program that is OK.
            first_output: vector of the first output.

        Returns:
            `(count,)` uint8 of `Encoded`, and the number of steps that were written, with one after the last program.

        Raises:
            ValueError: an array has the wrong type or shape.
        """
        cdef _Batch batch
        cdef const int64_t[::1] order = rows
        cdef uint32_t[:, ::1] step_view = steps
        cdef uint32_t[::1] start_view = starts
        cdef size_t count = len(rows), room = step_view.shape[0], num_requests = len(self.lowering.requests)
        programs = programs_of(programs)
        if start_view.shape[0] < count or room < NUM_EXTRA_STEPS or step_view.shape[1] != 4:
            raise ValueError(
                f"expected {count} starts and at least {NUM_EXTRA_STEPS} steps of 4 words, got {start_view.shape[0]} and {steps.shape}"
            )
        if first_output + num_requests > DEVICE_CODE_MAX_VECTORS:
            raise ValueError(f"a step can name {DEVICE_CODE_MAX_VECTORS} vectors")
        if count and not 0 <= rows.min() <= rows.max() < len(programs):
            raise ValueError(f"rows: expected numbers below {len(programs)}")
        results = np.empty(count, np.uint8)
        batch.kernel = &self.kernel
        batch.steps = <DeviceCodeStep*>&step_view[0, 0]
        batch.room = room - NUM_EXTRA_STEPS
        batch.starts = <uint32_t*>address(starts)
        batch.results = <uint8_t*>address(results)
        batch.used = batch.num_taken = 0
        batch.first_output = first_output
        if count:
            self.lowering.visit(programs, _encode, &batch, 0, &order[0], count)
        steps[batch.used] = 0
        return results, batch.used + 1
