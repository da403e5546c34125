# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Programs in a loop, on the CPU: blocks of words and the beginnings of trajectories in, recorded states out.

Owns the memory of runs. Knows nothing of tasks or scores. csrc/detail/rollout.h says what a step is.
"""

from typing import NamedTuple

import numpy as np

from evo.native.ptx_vm import empty

from libc.stdint cimport uint16_t, uint32_t, uintptr_t

from evo.native.arrays cimport address
from evo.native.ptx_vm cimport PtxVmLevel, PtxVmResult, PtxVmSet, ptx_vm_result_to_string
from evo.native.stack_ptx cimport Lowering, StackPtxLowered, StackPtxNode, programs_of


cdef extern from "detail/rollout.h" nogil:
    ctypedef struct RolloutColumn:
        const uint32_t* values
        size_t step_stride
        size_t trajectory_stride

    ctypedef struct RolloutNeighbour:
        pass

    ctypedef struct RolloutGrid:
        size_t height
        size_t width
        uint32_t boundary
        const uint32_t* outside
        const RolloutNeighbour* neighbours

    ctypedef struct RolloutPlan:
        uint32_t integrator
        uint32_t num_columns
        uint32_t num_inputs
        uint32_t num_states
        uint32_t f32_stack
        uint32_t add
        uint32_t fma
        const StackPtxLowered* field
        const RolloutColumn* columns
        const uint32_t* state_columns
        const float* dt
        size_t dt_stride
        size_t num_trajectories
        size_t num_steps
        size_t record_every
        const RolloutGrid* grid

    PtxVmResult rollout_run(
        const RolloutPlan*, const PtxVmSet*, PtxVmLevel, const StackPtxLowered*, void*, size_t, size_t*, uint32_t*
    )


INTEGRATORS: tuple[str, ...] = ("map", "euler", "rk4")
BOUNDARIES: tuple[str, ...] = ("periodic", "reflect", "constant")
NEIGHBOUR_DTYPE: np.dtype[np.void] = np.dtype([("state", np.uint32), ("dy", np.int32), ("dx", np.int32)])
NO_STATE: int = 0xFFFFFFFF

_COLUMN_DTYPE = np.dtype([("values", np.uintp), ("step_stride", np.uintp), ("trajectory_stride", np.uintp)])


class GridLoop(NamedTuple):
    """Trajectories that are the cells of grids. boundary: one of BOUNDARIES. outside: with `constant`, the bits of each state.
    neighbours: of each column, NEIGHBOUR_DTYPE; NO_STATE, 0, 0 for one with values of its own.
    """

    height: int
    width: int
    boundary: str
    outside: object
    neighbours: object


class Loop(NamedTuple):
    """The step that is repeated.

    integrator: one of INTEGRATORS. state_columns: the column of each state. field: of `Lowering.lower`, whose registers are the
    columns and then the program's requests, and whose requests are the states' changes, or with `map` their next values. f32_stack,
    add, fma: of the instruction set; -1 for instructions that it lacks. dt: `()` or `(num_steps,)` float32. record_every: steps.
    grid: None if trajectories know nothing of each other.
    """

    integrator: str
    state_columns: tuple[int, ...]
    field: object
    f32_stack: int
    add: int
    fma: int
    dt: object
    num_steps: int
    record_every: int
    grid: GridLoop | None = None


cdef struct _Batch:
    RolloutPlan plan
    const PtxVmSet* vm_set
    PtxVmLevel level
    size_t num_values  # recorded of a program
    uint32_t* outputs
    size_t program_idx


cdef int _run(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor; gives a PtxVmResult."""
    cdef _Batch* batch = <_Batch*>context
    cdef size_t needed = 0
    cdef PtxVmResult result
    batch.program_idx = program_idx
    result = rollout_run(
        &batch.plan, batch.vm_set, batch.level, lowered, memory, num_bytes, &needed, batch.outputs + program_idx * batch.num_values
    )
    if needed > num_bytes:
        needed_out[0] = needed
    return result


def rollouts(
    machine: VirtualMachine, programs: NDArray[np.uint64] | LoweredPrograms, loop: Loop, columns: Sequence[NDArray[Any]],
    num_trajectories: int
) -> NDArray[Any]:
    """The recorded states of programs, `(num_programs, num_states, num_steps / record_every, num_trajectories)`.

    Args:
        machine: of the programs' language.
        columns: of 4-byte types, each `()`, `(num_trajectories,)`, `(num_steps, 1)` or `(num_steps, num_trajectories)`: inputs of
            the language first, then others that the field reads.

    Returns:
        float32 if every state is an f32, otherwise uint32 bits.

    Raises:
        ValueError: a program reads a register that is not an input, or has an instruction without CPU meaning.
    """
    cdef _Batch batch
    cdef StackPtxLowered field
    cdef Lowering lowering = machine.lowering
    programs = programs_of(programs)
    table = np.zeros(len(columns), _COLUMN_DTYPE)
    owned = [np.ascontiguousarray(values) if values.ndim else values for values in columns]
    for i, values in enumerate(owned):
        if values.dtype.itemsize != 4 or values.shape not in (
            (), (num_trajectories,), (loop.num_steps, 1), (loop.num_steps, num_trajectories)
        ):
            raise ValueError(f"column {i}: unexpected {values.dtype} of shape {values.shape}")
        width = values.shape[values.ndim - 1] if values.ndim else 0
        table[i] = values.ctypes.data, width if values.ndim == 2 else 0, values.ndim == 1 or width > 1
    states = np.array(loop.state_columns, np.uint32)
    dt = np.ascontiguousarray(loop.dt, np.float32).reshape(-1)
    lowered = loop.field
    field.nodes = <const StackPtxNode*>address(lowered.nodes)
    operands = np.concatenate([lowered.operands, np.zeros(3, np.uint32)])
    field.operands = <const uint32_t*>address(operands)
    field.value_nodes = <const uint32_t*>address(lowered.value_nodes)
    field.value_stacks = <const uint16_t*>address(lowered.value_stacks)
    field.request_values = <const uint32_t*>address(lowered.request_values)
    field.num_nodes, field.num_operands = len(lowered.nodes), len(lowered.operands)
    field.num_values, field.num_requests = len(lowered.value_nodes), len(lowered.request_values)
    set_address, level = machine.handle()
    batch.vm_set = <const PtxVmSet*><uintptr_t>set_address
    batch.level = <PtxVmLevel><int>level
    batch.plan.integrator = INTEGRATORS.index(loop.integrator)
    batch.plan.num_columns, batch.plan.num_states = len(table), len(states)
    batch.plan.num_inputs = min(lowering.requests)
    batch.plan.f32_stack, batch.plan.add, batch.plan.fma = loop.f32_stack, max(loop.add, 0), max(loop.fma, 0)
    batch.plan.field = &field
    batch.plan.columns = <const RolloutColumn*>address(table)
    batch.plan.state_columns = <const uint32_t*>address(states)
    batch.plan.dt = <const float*>address(dt)
    batch.plan.dt_stride = len(dt) > 1
    batch.plan.num_trajectories, batch.plan.num_steps = num_trajectories, loop.num_steps
    batch.plan.record_every = loop.record_every
    batch.plan.grid = NULL
    cdef RolloutGrid grid
    if loop.grid is not None:
        grid.height, grid.width, grid.boundary = loop.grid.height, loop.grid.width, BOUNDARIES.index(loop.grid.boundary)
        grid.outside = <const uint32_t*>address(loop.grid.outside)
        grid.neighbours = <const RolloutNeighbour*>address(loop.grid.neighbours)
        batch.plan.grid = &grid
    num_records = loop.num_steps // loop.record_every
    batch.num_values = len(states) * num_records * num_trajectories
    is_float = all(lowered.value_stacks[value] == loop.f32_stack for value in lowered.request_values)
    out = empty((len(programs), len(states), num_records, num_trajectories), np.float32 if is_float else np.uint32)
    batch.outputs = <uint32_t*>address(out)
    cdef int result = lowering.visit(programs, _run, &batch)
    if result:
        raise ValueError(f"program {batch.program_idx}: {ptx_vm_result_to_string(<PtxVmResult>result).decode()}")
    return out
