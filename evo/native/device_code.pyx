# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Programs as code for the kernel that interprets them: words in, steps out.

Owns the batch call and its memory. Knows nothing of kernels' text and launches. csrc/device_code.h documents the code.
"""

from enum import IntEnum

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from evo.native.stack_ptx cimport Lowering, StackPtxLowered


class Encoded(IntEnum):
    """What became of a program. Only OK has code of its own."""

    OK = DEVICE_CODE_SUCCESS
    NO_ROOM = DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER
    NO_CASE = DEVICE_CODE_ERROR_NO_CASE
    TOO_MANY_SLOTS = DEVICE_CODE_ERROR_TOO_MANY_SLOTS


# Steps of a buffer beside those of programs: one that the kernel reads ahead.
NUM_EXTRA_STEPS: int = 1


def max_steps(num_instructions: Any, num_requests: int) -> Any:
    """The most steps of programs with so many live instructions, an array or a number."""
    return 3 * num_instructions + 2 * num_requests + 1  # as DEVICE_CODE_MAX_STEPS


cdef class DeviceEncoder:
    """Encodes programs of one language for one kernel. Immutable, so threads may share it; `encode` releases the GIL.

    Args:
        lowering: lowers the programs. Its registers are inputs and then outputs that are no inputs.
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
        self.kernel.cases = <const uint16_t*>_address(cases)
        self.kernel.num_commutative = <const uint8_t*>_address(commutative)
        self.kernel.num_instructions = len(instructions)
        self.kernel.register_vectors = <const uint8_t*>_address(vectors)
        self.kernel.num_registers = len(vectors)
        self.kernel.first_slot = first_slot
        self.kernel.num_slots = num_slots

    def encode(
        self, words: NDArray[np.uint64], rows: NDArray[np.int64], steps: NDArray[np.uint64], starts: NDArray[np.uint32],
        uint32_t first_output, uint32_t num_buffered
    ) -> tuple[NDArray[np.uint8], int]:
        """Writes the code of some programs of a batch.

        Args:
            words: `(num_programs, max_length)` uint64.
            rows: `(count,)` int64, which of the programs, in the order of their code.
            steps: `(num_steps,)` uint64, is written to. `max_steps` says how much room is enough, besides NUM_EXTRA_STEPS.
            starts: `(count,)` uint32, is written to: the first step of each program that is OK.
            first_output: vector of the first output of the first program that is OK; the one after it has the next outputs, and
                so on through `num_buffered` programs, after which they begin again.

        Returns:
            `(count,)` uint8 of `Encoded`, and the number of steps that were written, with one after the last program.

        Raises:
            ValueError: an array has the wrong type or shape.
        """
        cdef const uint64_t[:, ::1] word_rows = np.ascontiguousarray(words)
        cdef const int64_t[::1] row_view = rows
        cdef uint64_t[::1] step_view = steps
        cdef uint32_t[::1] start_view = starts
        cdef Py_ssize_t count = row_view.shape[0], length = word_rows.shape[1], i, num_taken = 0
        results = np.empty(count, np.uint8)
        cdef uint8_t[::1] result_view = results
        cdef size_t room = step_view.shape[0], used = 0, needed = 0, num_bytes = 0, num_steps = 0
        cdef uint32_t num_requests = len(self.lowering.requests)
        cdef const uint64_t* first = &word_rows[0, 0] if word_rows.shape[0] and length else NULL
        cdef StackPtxLowered lowered
        cdef void* lowering_memory
        cdef void* memory = NULL
        cdef int result = DEVICE_CODE_SUCCESS
        cdef bint has_memory = True
        if start_view.shape[0] < count or room < NUM_EXTRA_STEPS or num_buffered == 0:
            raise ValueError(f"expected {count} starts and at least {NUM_EXTRA_STEPS} steps, got {start_view.shape[0]} and {room}")
        if first_output + num_buffered * num_requests > DEVICE_CODE_MAX_VECTORS:
            raise ValueError(f"a step can name {DEVICE_CODE_MAX_VECTORS} vectors")
        if count and not 0 <= rows.min() <= rows.max() < word_rows.shape[0]:
            raise ValueError(f"rows: expected numbers below {word_rows.shape[0]}")
        room -= 1
        with nogil:
            lowering_memory = malloc(self.lowering.workspace_bytes)
            has_memory = lowering_memory != NULL
            for i in range(count):
                if not has_memory:
                    break
                self.lowering.lower_program(first + row_view[i] * length, length, lowering_memory, &lowered)
                device_code_workspace_size(&lowered, &needed)
                if needed > num_bytes:
                    free(memory)
                    num_bytes = 2 * needed
                    memory = malloc(num_bytes)
                    has_memory = memory != NULL
                    if not has_memory:
                        break
                result = device_code_encode(
                    &self.kernel, &lowered, first_output + <uint32_t>(num_taken % num_buffered) * num_requests, memory, num_bytes,
                    &step_view[used], room - used, &num_steps
                )
                result_view[i] = <uint8_t>result
                if result == DEVICE_CODE_SUCCESS:
                    start_view[num_taken] = <uint32_t>used
                    num_taken += 1
                    used += num_steps
            free(memory)
            free(lowering_memory)
        if not has_memory:
            raise MemoryError("no memory to encode a program")
        step_view[used] = DEVICE_CODE_CASE_END
        return results, used + 1


cdef void* _address(array):
    """The address of an array's data."""
    return <void*><uintptr_t>array.ctypes.data
