# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Derivatives: a lowered program in, a lowered program out that also computes its derivatives by some of its constants.

Owns the memory and the place where C errors become exceptions. Knows nothing of running or tuning. csrc/derive.h documents the
rules.
"""

from typing import NamedTuple

import numpy as np

from evo.native.stack_ptx import NODE_DTYPE
from evo.native.stack_ptx_tables import instruction_set_tables

from libc.stdint cimport uintptr_t
from libc.string cimport memcpy

from evo.native.stack_ptx cimport StackPtxTraits, fill_lowered, fill_stack_info


cdef extern from *:
    """
    #define DERIVE_IMPLEMENTATION
    #include "derive.h"
    """


class Derived(NamedTuple):
    """A derived program, in lenient mode; the fields are those of `evo.native.stack_ptx.Lowered`.

    Its requests are the program's output and then the derivative by each parameter.
    """

    nodes: np.ndarray
    operands: np.ndarray
    value_nodes: np.ndarray
    value_stacks: np.ndarray
    request_values: np.ndarray
    num_instructions: int


cdef class Derivation:
    """Derives programs of one language. Immutable and thread-safe.

    Args:
        lowering: lowers the programs.
    """

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

    def constants(self, lowered, size_t request=0):
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

    def derive(self, lowered, parameters, size_t request=0, *, first_register=None):
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
