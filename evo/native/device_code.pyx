# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Programs as code for the kernel that interprets them: words in, steps out.

Owns the batch call and its memory. Knows nothing of kernels' text and launches. csrc/device_code.h documents the code.
"""

from enum import IntEnum

import numpy as np


from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from evo.native.arrays cimport address
from evo.native.row_threads cimport RowThreads
from evo.native.stack_ptx cimport Lowering, StackPtxLowered, programs_of


class Encoded(IntEnum):
    """Outcome of a program. Only OK has code of its own."""

    OK = DEVICE_CODE_SUCCESS
    NO_ROOM = DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER
    NO_CASE = DEVICE_CODE_ERROR_NO_CASE
    TOO_MANY_SLOTS = DEVICE_CODE_ERROR_TOO_MANY_SLOTS


# Words of a program's room beside its own: one that the kernel reads ahead.
cdef enum: _NUM_EXTRA = 1
NUM_EXTRA_WORDS: int = _NUM_EXTRA

# As in csrc/device_code.h.
CASE_BITS: int = DEVICE_CODE_CASE_BITS
VECTOR_BITS: int = DEVICE_CODE_VECTOR_BITS
RESULT_SHIFT: int = DEVICE_CODE_RESULT_SHIFT
SLOT_SHIFTS: tuple[int, int] = (DEVICE_CODE_FIRST_SHIFT, DEVICE_CODE_SECOND_SHIFT)


def max_words(num_instructions: Any, num_requests: int, in_registers: bool = False) -> Any:
    """The most words of programs with these numbers of live instructions, an array or a number."""
    # As DEVICE_CODE_MAX_WORDS and DEVICE_CODE_MAX_REGISTER_WORDS.
    return (10 if in_registers else 6) * num_instructions + 4 * num_requests + 1


cdef struct _Batch:
    # One call. places: where each program's room begins, and the last one's ends.
    const DeviceCodeKernel* kernel
    uint32_t* words
    const int64_t* places
    uint32_t* starts
    uint8_t* results
    uint32_t first_output


cdef int _encode(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor; always gives 0."""
    cdef _Batch* batch = <_Batch*>context
    cdef size_t needed = 0, num_words = 0, place = <size_t>batch.places[program_idx]
    cdef size_t room = <size_t>batch.places[program_idx + 1] - place
    device_code_workspace_size(lowered, &needed)
    if needed > num_bytes:
        needed_out[0] = 2 * needed
        return 0
    batch.starts[program_idx] = <uint32_t>place
    batch.results[program_idx] = <uint8_t>device_code_encode(
        batch.kernel, lowered, batch.first_output, memory, num_bytes, batch.words + place, room - _NUM_EXTRA, &num_words
    )
    return 0


cdef class DeviceEncoder:
    """Encodes programs of one language for one kernel. Immutable, so threads may share it; `encode` releases the GIL.

    Args:
        lowering: lowers the programs. Its registers are inputs and then outputs that are not inputs.
        cases: `(num_instructions, 27)` uint16 (`evo.kernel.interpreter_cases`).
        register_vectors: the vector that holds each register's values.
        first_slot, num_slots: vectors for values that are needed later.
        num_vectors: all vectors, if they are registers (`evo.kernel.register_cases`); 0: steps name them.

    Raises:
        ValueError: an array has the wrong shape, or there are more vectors than a step can name.
    """

    cdef readonly Lowering lowering
    cdef DeviceCodeKernel kernel
    cdef list owned  # keeps alive what `kernel` points to

    def __cinit__(
        self,
        Lowering lowering,
        cases: ArrayLike,
        register_vectors: Sequence[int],
        uint32_t first_slot,
        uint32_t num_slots,
        uint32_t num_vectors = 0,
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
        self.kernel.num_vectors = num_vectors
        if first_slot + num_slots > self.max_vectors or vectors.max(initial=0) >= self.max_vectors:
            raise ValueError(f"a step can name {self.max_vectors} vectors, not {first_slot + num_slots}")
        self.lowering = lowering
        self.owned = [cases, commutative, vectors]
        self.kernel.cases = <const uint16_t*>address(cases)
        self.kernel.num_commutative = <const uint8_t*>address(commutative)
        self.kernel.num_instructions = len(instructions)
        self.kernel.register_vectors = <const uint8_t*>address(vectors)
        self.kernel.num_registers = len(vectors)
        self.kernel.first_slot = first_slot
        self.kernel.num_slots = num_slots

    @property
    def max_vectors(self) -> int:
        """The most vectors that steps can name."""
        return self.kernel.num_vectors or DEVICE_CODE_MAX_VECTORS

    @property
    def in_registers(self) -> bool:
        """Whether vectors are registers, for `max_words`."""
        return self.kernel.num_vectors > 0

    def encode(
        self,
        programs: NDArray[np.uint64] | LoweredPrograms,
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        words: NDArray[np.uint32],
        starts: NDArray[np.uint32],
        uint32_t first_output,
        row_threads: RowThreads | None = None,
    ) -> NDArray[np.uint8]:
        """Writes the code of some programs of a batch, each into room of its own.

        Args:
            programs: `(num_programs, max_length)` uint64, or lowered.
            rows: `(count,)` int64, which of the programs.
            places: `(count + 1,)` int64, where each one's room begins, and the last one's ends. `max_words` says how much is enough,
                besides NUM_EXTRA_WORDS.
            words: uint32, is written to.
            starts: `(count,)` uint32, is written to: the first word of each program.
            first_output: vector of the first output.
            row_threads: encode together.

        Returns:
            `(count,)` uint8 of `Encoded`.

        Raises:
            ValueError: an array has the wrong type or shape.
        """
        cdef _Batch batch
        cdef const int64_t[::1] order = rows
        cdef const int64_t[::1] place_view = places
        cdef uint32_t[::1] word_view = words
        cdef uint32_t[::1] start_view = starts
        cdef size_t count = len(rows), num_requests = len(self.lowering.requests)
        programs = programs_of(programs)
        if start_view.shape[0] < count or place_view.shape[0] != count + 1:
            raise ValueError(f"expected {count} starts and {count + 1} places, got {len(starts)} and {len(places)}")
        if places[0] < 0 or places[count] > len(words) or (np.diff(places) < NUM_EXTRA_WORDS).any():
            raise ValueError(f"places: expected ascending ones up to {len(words)}, {NUM_EXTRA_WORDS} apart or more")
        if first_output + num_requests > self.max_vectors:
            raise ValueError(f"a step can name {self.max_vectors} vectors")
        if count and not 0 <= rows.min() <= rows.max() < len(programs):
            raise ValueError(f"rows: expected numbers below {len(programs)}")
        results = np.empty(count, np.uint8)
        if count:
            batch.kernel = &self.kernel
            batch.words, batch.places = &word_view[0], &place_view[0]
            batch.starts, batch.results = &start_view[0], <uint8_t*>address(results)
            batch.first_output = first_output
            self.lowering.visit(programs, _encode, &batch, 0, &order[0], count, NULL, row_threads)
        return results
