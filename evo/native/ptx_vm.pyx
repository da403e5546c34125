# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Runs programs on the CPU: blocks of words and arrays of points in, outputs or sums out.

Owns the memory of runs and the place where C errors become exceptions. Knows nothing of tasks or scores. csrc/ptx_vm.h
documents arithmetic and levels. Slightly long: each kind of run fills the same arguments.
"""

from math import prod

import numpy as np

from evo.native.stack_ptx import LoweredPrograms, NodeKind
from evo.native.stack_ptx_tables import instruction_set_tables

from libc.stdint cimport uintptr_t

from evo.native.arrays cimport address
from evo.native.stack_ptx cimport Lowering, StackPtxTraits, fill_stack_info, programs_of

_CACHE_LINE = 64  # bytes

# One row of `reduce`, laid out like PtxVmSums: sums over the points where output y and target t are both finite, each less its
# reference.
SUMS_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("num_points", np.uint64),
        ("num_nonfinite", np.uint64),
        ("weight", np.float64),
        ("reference_y", np.float64),
        ("reference_t", np.float64),
        ("sum_y", np.float64),
        ("sum_t", np.float64),
        ("sum_yy", np.float64),
        ("sum_tt", np.float64),
        ("sum_yt", np.float64),
        ("sum_squared_error", np.float64),
        ("max_abs_error", np.float64),
    ]
)

# Like PtxVmTarget.
_TARGET_DTYPE = np.dtype([("values", np.uintp), ("weights", np.uintp), ("sums", np.uintp)])

# Like PtxVmInput.
_INPUT_DTYPE = np.dtype([("values", np.uintp), ("is_uniform", np.bool_)], align=True)

# Types of an input array by its register's type; f32 and s32 also as bits. Those of b16, f16 and bf16, are given as f32.
_INPUT_TYPES = {
    name: tuple(map(np.dtype, types))
    for name, types in {
        "f32": ("f4", "u4"), "b16": ("f4",), "s32": ("i4", "u4"), "u32": ("u4",), "b32": ("u4",), "pred": ("u4",)
    }.items()
}


_LEVELS = [ptx_vm_level_to_string(<PtxVmLevel>code).decode() for code in range(PTX_VM_LEVEL_NUM_ENUMS)]


def levels() -> list[str]:
    """Names of the SIMD levels that this build has and this CPU can run, slowest first."""
    return [level for code, level in enumerate(_LEVELS) if ptx_vm_level_is_available(<PtxVmLevel><int>code)]


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array as `numpy.empty` gives it, but at the beginning of a cache line: AVX-512 is a fifth faster on those."""
    cdef size_t num_bytes = prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(num_bytes + _CACHE_LINE, np.uint8)
    cdef size_t first = -<uintptr_t>address(memory) % _CACHE_LINE
    return memory[first : first + num_bytes].view(dtype).reshape(shape)


cdef class Folding:
    """Computes instructions of constants of an instruction set, for `Lowering`. Immutable and thread-safe."""

    cdef const PtxVmSet* vm_set
    cdef object set_memory

    def __cinit__(self, instruction_set: Any):
        self.set_memory = _fill_set(instruction_set, &self.vm_set)

    def handle(self) -> tuple[int, int]:
        """For `Lowering`: the addresses of a StackPtxFolding's function and context, valid while this object lives."""
        return <uintptr_t>&ptx_vm_fold, <uintptr_t>self.vm_set


cdef object _fill_set(instruction_set, const PtxVmSet** vm_set):
    """The memory of the PtxVmSet."""
    cdef StackPtxStackInfo stack_info
    cdef StackPtxTraits traits
    cdef size_t num_bytes = 0
    tables = instruction_set_tables(instruction_set)
    fill_stack_info(tables, &stack_info, &traits)
    _check(ptx_vm_set_size(&stack_info, &num_bytes))
    memory = np.empty(num_bytes, np.uint8)
    _check(ptx_vm_set_init(&stack_info, address(memory), num_bytes, vm_set))
    return memory


# Sums of a program's outputs, (num_requests, num_points).
ctypedef void (*_SumUp)(const void* context, const void* outputs, void* work, double* sums_out) noexcept nogil


cdef struct _Batch:
    # One call: what runs its programs, their inputs, and where results go.
    const PtxVmSet* vm_set
    PtxVmLevel level
    PtxVmRunKind kind
    PtxVmInput* inputs
    const uintptr_t* strides    # bytes from a program's inputs to the next one's, or NULL: all have the same
    size_t num_inputs
    size_t num_points
    size_t num_requests
    void** pointers             # STORE: room for one to each request
    char* outputs               # STORE: (num_programs, num_requests, num_points) of 4 bytes
    const PtxVmTarget* targets  # REDUCE: of each request
    PtxVmSums* sums             # REDUCE: (num_programs, num_requests)
    _SumUp sum_up               # STORE: what is done with a program's outputs, the only ones that there is room for; or NULL
    const void* sum_context
    char* sum_work
    double* own_sums            # its results: (num_programs, num_own_sums)
    size_t num_own_sums
    size_t program_idx          # the latest


cdef int _run_program(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor; gives a PtxVmResult. The memory's first half is the program's, the second the run's."""
    cdef _Batch* batch = <_Batch*>context
    cdef const PtxVmProgram* program = NULL
    cdef size_t half = num_bytes // 2, program_bytes = 0, run_bytes = 0, first, i
    cdef int result
    batch.program_idx = program_idx
    ptx_vm_program_size(lowered, &program_bytes)
    if program_bytes > half:
        needed_out[0] = 4 * program_bytes
        return PTX_VM_SUCCESS
    result = ptx_vm_program_init(batch.vm_set, batch.level, batch.kind, lowered, memory, half, &program, NULL)
    if result != PTX_VM_SUCCESS:
        return result
    ptx_vm_workspace_size(program, &run_bytes)
    if run_bytes > half:
        needed_out[0] = 4 * run_bytes
        return PTX_VM_SUCCESS
    memory = <char*>memory + half
    if batch.kind == PTX_VM_RUN_STORE:
        for i in range(batch.num_requests):
            first = 0 if batch.sum_up != NULL else program_idx * batch.num_requests
            batch.pointers[i] = batch.outputs + (first + i) * batch.num_points * 4
        result = ptx_vm_store(program, batch.inputs, batch.num_inputs, batch.num_points, batch.pointers, memory, half)
        if batch.strides != NULL:  # of the next program, which comes next
            for i in range(batch.num_inputs):
                batch.inputs[i].values = <const char*>batch.inputs[i].values + batch.strides[i]
        if batch.sum_up != NULL and result == PTX_VM_SUCCESS:
            batch.sum_up(batch.sum_context, batch.outputs, batch.sum_work, batch.own_sums + program_idx * batch.num_own_sums)
        return result
    return ptx_vm_reduce(
        program, batch.inputs, batch.num_inputs, batch.num_points, batch.targets, batch.sums + program_idx * batch.num_requests,
        memory, half
    )


cdef class Targets:
    """Targets of the outputs of programs. Immutable.

    Args:
        values: `(num_requests, num_points)` float32.
        weights: `(num_points,)` float32, above 0, factors of what is summed; None: all are 1.

    `sums`, `(num_requests, 24 * num_blocks)`, are those of the target alone in each block of 1,024 points, by lanes.

    Raises:
        ValueError: an array has the wrong type or shape.
    """

    cdef readonly object values   #: NDArray[np.float32]
    cdef readonly object weights  #: NDArray[np.float32] | None
    cdef readonly object sums     #: NDArray[np.float64]
    cdef object owned             # what `table` points to
    cdef const PtxVmTarget* table

    def __cinit__(self, values: NDArray[np.float32], weights: NDArray[np.float32] | None = None):
        cdef const float* factors = NULL
        self.values = values = np.ascontiguousarray(values)
        if values.dtype != np.float32 or values.ndim != 2:
            raise ValueError(f"targets: expected float32 of shape (num_requests, num_points), got {values.dtype} of {values.shape}")
        num_points = values.shape[1]
        if weights is not None:
            self.weights = weights = np.ascontiguousarray(weights)
            if weights.dtype != np.float32 or weights.shape != (num_points,):
                raise ValueError(f"weights: expected float32 of shape ({num_points},), got {weights.dtype} of {weights.shape}")
            factors = <const float*>address(weights)
        sums = np.empty((len(values), PTX_VM_TARGET_NUM_SUMS(num_points)))
        rows = np.zeros(len(values), _TARGET_DTYPE)
        for row, of_row, of_sums in zip(rows, values, sums, strict=True):
            row["values"], row["weights"], row["sums"] = <uintptr_t>address(of_row), <uintptr_t>factors, <uintptr_t>address(of_sums)
            _check(ptx_vm_target_sums(<const float*>address(of_row), factors, num_points, <double*>address(of_sums)))
        self.owned, self.sums = rows, sums
        self.table = <const PtxVmTarget*>address(rows)

    def __reduce__(self):
        return Targets, (self.values, self.weights)


cdef class VirtualMachine:
    """Runs programs of one language. Immutable, so threads may share it; runs release the GIL.

    Args:
        lowering: lowers the programs.
        level: name of a SIMD level of `levels()`, or None for the fastest. Results do not depend on it.

    Raises:
        ValueError: this CPU or build has no such level.
    """

    cdef readonly Lowering lowering
    cdef readonly frozenset unsupported  #: frozenset[str] - names of the set's instructions that have no CPU meaning
    cdef PtxVmLevel level_code
    cdef const PtxVmSet* vm_set
    cdef object set_memory
    cdef tuple register_types            # PTX type of each register

    def __cinit__(self, Lowering lowering, level: str | None = None):
        self.lowering = lowering
        if level is not None and level not in levels():
            raise ValueError(f"SIMD level '{level}' is not available here, one of: {', '.join(levels())}")
        self.level_code = ptx_vm_best_level() if level is None else <PtxVmLevel><int>_LEVELS.index(level)
        instruction_set = lowering.instruction_set
        self.set_memory = _fill_set(instruction_set, &self.vm_set)
        self.unsupported = frozenset(
            instruction.name
            for index, instruction in enumerate(instruction_set.instructions)
            if not ptx_vm_set_has_instruction(self.vm_set, index)
        )
        self.register_types = tuple(instruction_set.stacks[stack].literal_prefix for _, stack in lowering.registers)

    @property
    def level(self) -> str:
        """Name of the SIMD level."""
        return _LEVELS[self.level_code]

    def handle(self) -> tuple[int, int]:
        """For other native modules: the address of the PtxVmSet, valid while the machine lives, and the PtxVmLevel."""
        return <uintptr_t>self.vm_set, <int>self.level_code

    def store(
        self, programs: NDArray[np.uint64] | LoweredPrograms, inputs: Sequence[NDArray[Any] | None], out: NDArray[Any] | None = None
    ) -> NDArray[np.float32] | NDArray[np.uint32]:
        """The values of each request of each program, `(num_programs, num_requests, num_points)`.

        Args:
            programs: `(num_programs, max_length)` uint64, or lowered.
            inputs: an array for each register, or None for one that no program reads; of the register's type (f32, s32 also as
                uint32 bits; pred as uint32, nonzero for true), `(num_points,)`, or `()` for one value at all points, or
                `(num_programs, num_points)` if each program has its own.
            out: where to write, not overlapping the inputs; allocated if None.

        Returns:
            float32 if every request is an f32, f16 or bf16, otherwise uint32 bits.

        Raises:
            ValueError: an array has the wrong type or shape, or a program reads a register without values or has an
                instruction without CPU meaning.
        """
        cdef _Batch batch
        programs = programs_of(programs)
        table, owned, num_points = self.input_table(inputs, None if out is None else out.shape[out.ndim - 1], len(programs))
        if out is not None and any(np.may_share_memory(out, values) for values in owned):
            raise ValueError("out: overlaps an input; expected memory of its own")
        out = self._output_array(out, (len(programs), len(self.lowering.requests), num_points))
        batch.outputs = <char*>address(out)
        batch.sum_up = NULL
        self._run(programs, &batch, PTX_VM_RUN_STORE, table, num_points, inputs, None)
        return out

    def sum_up(
        self, programs: NDArray[np.uint64] | LoweredPrograms, inputs: Sequence[NDArray[Any] | None], summing: Any, sums: NDArray[np.float64],
        turn: NDArray[np.uintp] | None = None
    ) -> None:
        """Writes what `summing` makes of each program's outputs, which are kept nowhere.

        Args:
            programs, inputs: as for `store`.
            summing: such as `evo.pictures.PictureSums`.
            sums: `(num_programs, summing.num_sums)`, is written to.
            turn: `(1,)`, 0: the next program, of threads that do this together.

        Raises:
            ValueError: as for `store`, or these are not outputs for `summing`.
        """
        cdef _Batch batch
        programs = programs_of(programs)
        table, owned, num_points = self.input_table(inputs, None)
        outputs = self._output_array(None, (1, len(self.lowering.requests), num_points))
        function, context, work_bytes = summing.handle(outputs[0])
        work = empty((work_bytes,), np.uint8)
        if sums.shape != (len(programs), summing.num_sums) or sums.dtype != np.float64 or not sums.flags.c_contiguous:
            raise ValueError(f"sums: expected contiguous float64 of shape {(len(programs), summing.num_sums)}, got {sums.shape}")
        batch.outputs, batch.sum_work, batch.own_sums = <char*>address(outputs), <char*>address(work), <double*>address(sums)
        batch.sum_up, batch.sum_context = <_SumUp><uintptr_t>function, <const void*><uintptr_t>context
        batch.num_own_sums = summing.num_sums
        self._run(programs, &batch, PTX_VM_RUN_STORE, table, num_points, inputs, turn)

    def reduce(self, programs: NDArray[np.uint64] | LoweredPrograms, inputs: Sequence[NDArray[Any] | None], targets: Targets) -> NDArray[np.void]:
        """Sums that compare each request y of each program with its target t, `(num_programs, num_requests)` of SUMS_DTYPE.

        The sums skip points at which y or t is not finite; num_nonfinite counts them.

        Args:
            programs, inputs: as for `store`. Every request must be an f32.
            targets: of each request.

        Raises:
            ValueError: as for `store`.
        """
        cdef _Batch batch
        programs = programs_of(programs)
        num_requests = len(self.lowering.requests)
        if len(targets.values) != num_requests:
            raise ValueError(f"targets: expected those of {num_requests} requests, got {len(targets.values)}")
        if any(self.register_types[request] != "f32" for request in self.lowering.requests):
            raise ValueError("reduce: every request must be an f32; use store for others")
        table, owned, num_points = self.input_table(inputs, targets.values.shape[1])
        sums = np.empty((len(programs), num_requests), SUMS_DTYPE)
        batch.targets = (<Targets?>targets).table
        batch.sums = <PtxVmSums*>address(sums)
        self._run(programs, &batch, PTX_VM_RUN_REDUCE, table, num_points, inputs, None)
        return sums

    cdef int _run(self, programs, _Batch* batch, PtxVmRunKind kind, table, size_t num_points, inputs, turn) except -1:
        """Fills in the rest of a batch, and runs it."""
        pointers = np.empty(len(self.lowering.requests), np.uintp)
        batch.vm_set = self.vm_set
        batch.level = self.level_code
        batch.kind = kind
        batch.inputs, batch.strides = <PtxVmInput*>address(table), NULL
        if any(getattr(values, "ndim", 0) == 2 for values in inputs):
            strides = np.array([4 * num_points if getattr(values, "ndim", 0) == 2 else 0 for values in inputs], np.uintp)
            batch.strides = <const uintptr_t*>address(strides)
        batch.num_inputs = len(table)
        batch.num_points = num_points
        batch.num_requests = len(pointers)
        batch.pointers = <void**>address(pointers)
        cdef size_t* turns = NULL if turn is None else <size_t*>address(turn)
        cdef int result = self.lowering.visit(programs, _run_program, batch, 0, NULL, 0, turns)
        if result != PTX_VM_SUCCESS:
            self._raise(result, programs, batch.program_idx, inputs)
        return 0

    def input_table(
        self, inputs: Sequence[NDArray[Any] | None], num_points: int | None, num_programs: int | None = None
    ) -> tuple[NDArray[np.void], list[NDArray[Any]], int]:
        """The table of inputs for C, the arrays it points to, and the number of points. num_programs: which may have inputs of
        their own; the table has the first one's.
        """
        registers = self.lowering.registers
        if len(inputs) != len(registers):
            raise ValueError(f"inputs: expected one for each of the {len(registers)} registers, got {len(inputs)}")
        table = np.zeros(len(registers), _INPUT_DTYPE)
        owned = []
        for i, ((name, _), type_name, values) in enumerate(zip(registers, self.register_types, inputs, strict=True)):
            if values is None:
                continue
            values = np.ascontiguousarray(values) if np.ndim(values) else np.asarray(values)
            allowed = _INPUT_TYPES.get(type_name, ())
            if values.dtype not in allowed:
                wanted = " or ".join(map(str, allowed)) if allowed else f"none, as {type_name} has no CPU meaning"
                raise ValueError(f"input '{name}': expected an array of type {wanted}, got {values.dtype}")
            is_own = values.ndim == 2 and len(values) == num_programs
            length = values.shape[values.ndim - 1] if values.ndim else num_points
            if (values.ndim > 1 and not is_own) or (num_points is not None and length != num_points):
                wanted = "(num_points,)" if num_points is None else f"({num_points},)"
                own = f", ({num_programs}, {wanted[1:-2]})" if num_programs is not None and values.ndim > 1 else ""
                raise ValueError(f"input '{name}': expected shape {wanted}{own} or (), got {values.shape}")
            num_points = length
            table[i] = <uintptr_t>address(values), values.ndim == 0
            owned.append(values)
        if num_points is None:
            raise ValueError("inputs: at least one must be an array of shape (num_points,)")
        return table, owned, num_points

    def _output_array(self, out, shape):
        is_float = all(self.register_types[request] in ("f32", "b16") for request in self.lowering.requests)
        dtype = np.dtype(np.float32 if is_float else np.uint32)
        if out is None:
            return empty(shape, dtype)
        if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError(f"out: expected writable contiguous {dtype} of shape {shape}, got {out.dtype} of {out.shape}")
        return out

    def _raise(self, int result, programs, size_t program_idx, inputs):
        """Raises for a failed run."""
        instruction_set, registers = self.lowering.instruction_set, self.lowering.registers
        place = f"program {program_idx}: "
        is_lowered = isinstance(programs, LoweredPrograms)
        for node in programs.nodes(program_idx) if is_lowered else self.lowering.lower(programs[program_idx]).nodes:
            kind, payload = NodeKind(node["kind"]), int(node["payload"])
            type_name = instruction_set.stacks[node["stack_idx"]].literal_prefix
            if kind == NodeKind.PTX and not ptx_vm_set_has_instruction(self.vm_set, payload):
                raise ValueError(f"{place}instruction {instruction_set.instructions[payload].name} has no CPU meaning")
            if kind == NodeKind.SPECIAL:
                name = instruction_set.special_registers[payload & 0xFFFF].ptx
                raise ValueError(f"{place}special register %{name} has no CPU meaning")
            if kind == NodeKind.INPUT and inputs[payload] is None:
                raise ValueError(f"{place}reads register '{registers[payload][0]}', which has no values")
            if kind != NodeKind.PTX and type_name not in _INPUT_TYPES:
                raise ValueError(f"{place}type {type_name} has no CPU meaning")
        raise RuntimeError(f"{place}{ptx_vm_result_to_string(<PtxVmResult>result).decode()}")


cdef int _check(PtxVmResult result) except -1:
    if result != PTX_VM_SUCCESS:
        raise ValueError(f"PTX VM refused its input: {ptx_vm_result_to_string(result).decode()}")
    return 0
