# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Stack PTX: turns arrays of words into PTX stubs, hashes and lowered programs.

Owns the workspaces and the one place where a C error becomes an exception. Knows nothing of tasks, evaluation or files.
csrc/stack_ptx.h documents words. Longer than most modules: the class and the messages of its errors belong together.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from evo.native.stack_ptx_tables import check_connections, connection_tables, instruction_set_tables, word_rows
from evo.native.stack_ptx_words import ProgramError, explain

from libc.stdint cimport int32_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from evo.native.arrays cimport address


cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t, Py_UCS4)
    void* PyUnicode_1BYTE_DATA(object)


# Programs whose stubs are emitted at once; then the GIL is taken to copy them into str.
cdef enum:
    CHUNK = 32


class NodeKind(IntEnum):
    """The kind of a lowered program's node."""

    INPUT = STACK_PTX_NODE_INPUT
    CONSTANT = STACK_PTX_NODE_CONSTANT
    SPECIAL = STACK_PTX_NODE_SPECIAL
    PTX = STACK_PTX_NODE_PTX


# Names of StackPtxMode, by value; csrc/stack_ptx.h documents them.
MODES: tuple[str, ...] = ("lenient", "strict", "compatible")

# Part of every hash: hashes of different versions differ.
HASH_VERSION: int = STACK_PTX_HASH_VERSION

# In request_values: the stack of the request was empty.
NO_VALUE: int = STACK_PTX_NO_VALUE

NODE_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("kind", np.uint16),
        ("stack_idx", np.uint16),
        ("num_operands", np.uint16),
        ("num_values", np.uint16),
        ("payload", np.uint32),
        ("first_operand", np.uint32),
        ("first_value", np.uint32),
    ]
)


class Lowered(NamedTuple):
    """A lowered program: the nodes that requests need, in evaluation order. All arrays are read-only copies.

    nodes: `(num_nodes,)` of NODE_DTYPE; operands: value ids, a node's from its first_operand on; value_nodes: the node that
    defines each value; value_stacks: the stack of each value; request_values: the value of each request, or NO_VALUE;
    num_instructions: number of nodes that are PTX instructions; stub: the PTX; hash: `(2,)` uint64.
    """

    nodes: NDArray[np.void]
    operands: NDArray[np.uint32]
    value_nodes: NDArray[np.uint32]
    value_stacks: NDArray[np.uint16]
    request_values: NDArray[np.uint32]
    num_instructions: int
    stub: str
    hash: NDArray[np.uint64]


def check_name(name: str) -> None:
    """Raises ValueError with the reason if a register cannot have this name."""
    encoded = name.encode("utf-8")
    if b"\0" not in encoded and stack_ptx_check_name(encoded) == STACK_PTX_SUCCESS:
        return
    if not name or not all(character.isascii() and (character.isalnum() or character in "_$") for character in name):
        raise ValueError(f"register name '{name}': use letters, digits, _ and $, without a percent sign")
    raise ValueError(
        f"register name '{name}': %{name} belongs to the CUDA compiler, to PTX or to the stub itself; "
        f"choose another, such as '{name}_in'"
    )


cdef class _Workspace:
    """Memory for lowering, used by one thread at a time."""

    cdef void* memory
    cdef char* text
    cdef size_t text_bytes

    def __cinit__(self, size_t num_bytes):
        self.text = NULL
        self.text_bytes = 0
        self.memory = malloc(num_bytes)
        if self.memory == NULL:
            raise MemoryError(f"no {num_bytes} bytes for lowering; smaller limits need less")

    def __dealloc__(self):
        free(self.memory)
        free(self.text)


cdef int _check(StackPtxResult result) except -1:
    """Checks every C result that is not about a program's word."""
    if result != STACK_PTX_SUCCESS:
        raise ValueError(f"Stack PTX refused its input: {stack_ptx_result_to_string(result).decode()}")
    return 0


cdef class Lowering:
    """Lowers, emits and hashes programs of one language. Immutable and thread-safe.

    Args:
        instruction_set: an `evo.instructions.InstructionSet` or an object with its attributes.
        registers: `(name, stack index)` pairs; INPUT words refer to them by index.
        requests: indices of the registers that a program writes, in order.
        limits: an object with `stack_size`, `max_nodes`, `max_frame_depth`, `store_size` and `execution_limit`.
        routines: uint64 word lists that ROUTINE words run.
        folding: computes instructions of constants (`evo.native.ptx_vm.Folding`); None: they stay as they are.

    Raises:
        ValueError: a name, index or limit is out of range.
    """

    def __cinit__(
        self, instruction_set: Any, registers: Iterable[tuple[str, int]], requests: Iterable[int], limits: Any,
        routines: Sequence[NDArray[np.uint64]] = (), folding: Any = None
    ):
        self.instruction_set = instruction_set
        self.registers = tuple((str(name), int(stack_idx)) for name, stack_idx in registers)
        self.requests = tuple(int(request) for request in requests)
        self.limits = limits
        self.routines = tuple(np.array(routine, np.uint64, ndmin=1) for routine in routines)
        self.folding = folding
        self.idle_workspaces = []
        for name, _ in self.registers:
            check_name(name)
        check_connections(instruction_set, self.registers, self.requests, limits)

        cdef StackPtxStackInfo stack_info
        cdef StackPtxTraits traits
        cdef StackPtxLanguageInfo info
        cdef size_t num_bytes = 0
        tables = instruction_set_tables(instruction_set)
        connections = connection_tables(self.registers, self.requests, self.routines)
        fill_stack_info(tables, &stack_info, &traits)
        info.stack_info = &stack_info
        info.traits = &traits
        _fill_connections(connections, limits, &info)
        _fill_folding(folding, &info.folding)
        _check(stack_ptx_language_size(&info, &num_bytes))
        memory = np.empty(num_bytes, np.uint8)
        self.owned = [tables, connections, memory]
        _check(stack_ptx_language_init(&info, address(memory), num_bytes, &self.language))
        _check(stack_ptx_workspace_size(self.language, &self.workspace_bytes))

    cdef int visit(
        self, programs, Visitor visitor, void* context, uint32_t flags=0, const int64_t* order=NULL, size_t count=0
    ) except -1:
        cdef LoweredPrograms kept = programs if isinstance(programs, LoweredPrograms) else None
        cdef const uint64_t* rows = NULL
        cdef const uintptr_t* places = NULL
        cdef size_t num_visits = count if order != NULL else len(programs), length = 0, num_bytes = 0, needed, row, i
        cdef _Workspace workspace = None
        cdef StackPtxLowered own
        cdef const StackPtxLowered* lowered = &own
        cdef void* memory = NULL
        cdef bint has_memory = True
        cdef int result = 0
        if kept is None:
            rows, length = <const uint64_t*>address(programs), programs.shape[1]
            workspace = _take_workspace(self)
        elif kept.lowering is not self or flags:
            raise ValueError("the programs were lowered for another language or in another way; expected their words")
        else:
            places = <const uintptr_t*>address(kept.places)
        with nogil:
            for i in range(num_visits):
                row = order[i] if order != NULL else i
                if places != NULL:
                    lowered = <const StackPtxLowered*>places[row]
                else:
                    stack_ptx_lower(
                        self.language, STACK_PTX_MODE_LENIENT, flags, <const StackPtxInstruction*>(rows + row * length), length,
                        workspace.memory, self.workspace_bytes, &own, NULL
                    )
                while has_memory:
                    needed = 0
                    result = visitor(context, lowered, i, memory, num_bytes, &needed)
                    if needed <= num_bytes:
                        break
                    free(memory)
                    memory = malloc(needed)
                    num_bytes = needed
                    has_memory = memory != NULL
                if result != 0 or not has_memory:
                    break
            free(memory)
        if workspace is not None:
            self.idle_workspaces.append(workspace)
        if not has_memory:
            raise MemoryError(f"no {needed} bytes for a program")
        return result

    def analyze(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Hashes and sizes of programs, in lenient mode.

        Args:
            words: `(num_programs, max_length)` uint64; each row ends at its first RETURN or at max_length.

        Returns:
            hashes `(num_programs, 2)` uint64, equal for programs that compute the same by the rules of stack_ptx_hash, and
            the numbers of live PTX instructions `(num_programs,)` int32.
        """
        return _analyzed(self, word_rows(words), None, None)

    def lower_all(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32], LoweredPrograms]:
        """As `analyze`, and the lowered programs, which other native functions take in place of words, to lower nothing again."""
        cdef _Shelf shelf = _Shelf()
        places = np.empty(len(words), np.uintp)
        hashes, num_instructions = _analyzed(self, word_rows(words), shelf, places)
        return hashes, num_instructions, _lowered_programs(self, places, (shelf,))

    def sums(self, programs: NDArray[np.uint64] | LoweredPrograms, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each program the sum of its live instructions' numbers, `(num_programs,)`.

        Args:
            programs: words, as for `analyze`, or lowered.
            numbers: of each instruction of the set.
        """
        cdef _Sums sums
        numbers = np.ascontiguousarray(numbers, np.float64)
        if numbers.shape != (len(self.instruction_set.instructions),):
            raise ValueError(f"numbers: expected one for each of the set's instructions, got the shape {numbers.shape}")
        programs = programs_of(programs)
        found = np.zeros(len(programs))
        sums.numbers, sums.found = <const double*>address(numbers), <double*>address(found)
        self.visit(programs, _add_numbers, &sums)
        return found

    def emit(self, words: NDArray[np.uint64], *, mode: str = "lenient", bint value_numbering=True) -> list[str]:
        """The PTX stubs of programs; the GIL is released.

        Args:
            words: as for `analyze`.
            mode: one of `MODES`.
            value_numbering: merges equal values. Without it, `compatible` gives the text of stack_ptx_compile.

        Returns:
            list of str, one for each program.

        Raises:
            ProgramError: a word is wrong; the first one is reported. Not in lenient mode.
        """
        words = word_rows(words)
        cdef StackPtxMode c_mode = _mode(mode)
        cdef uint32_t flags = 0 if value_numbering else STACK_PTX_FLAG_NO_VALUE_NUMBERING
        cdef StackPtxResult result = STACK_PTX_SUCCESS
        cdef StackPtxPlace place
        cdef Py_ssize_t num_programs = words.shape[0], length = words.shape[1], start, stop, i
        cdef const uint64_t* first = <const uint64_t*>address(words)
        cdef _Workspace workspace = _take_workspace(self)
        cdef StackPtxLowered lowered
        cdef size_t[CHUNK + 1] ends
        cdef bint has_memory = True
        stubs = []
        # Texts are copied into str while they are in the CPU's cache.
        for start in range(0, num_programs, CHUNK):
            stop = min(start + CHUNK, num_programs)
            ends[0] = 0
            with nogil:
                for i in range(start, stop):
                    result = stack_ptx_lower(
                        self.language, c_mode, flags, <const StackPtxInstruction*>(first + i * length), length,
                        workspace.memory, self.workspace_bytes, &lowered, &place
                    )
                    if result != STACK_PTX_SUCCESS:
                        break
                    ends[i - start + 1] = ends[i - start]
                    has_memory = _append_stub(
                        self.language, &lowered, workspace, self.workspace_bytes, &ends[i - start + 1]
                    )
                    if not has_memory:
                        break
            if result != STACK_PTX_SUCCESS:
                raise _program_error(self, result, words[i], &place, i, num_programs)
            if not has_memory:
                raise MemoryError("no memory for the text of a stub")
            for i in range(stop - start):
                stubs.append(_ascii_text(workspace.text + ends[i], ends[i + 1] - ends[i]))
        self.idle_workspaces.append(workspace)
        return stubs

    def lower(self, words: NDArray[np.uint64], *, mode: str = "lenient", bint value_numbering=True, bint folding=True) -> Lowered:
        """One program as a `Lowered`.

        Args:
            words: `(length,)` uint64.
            mode: one of `MODES`.
            value_numbering: merges equal values.
            folding: computes instructions of constants, if this lowering does.

        Raises:
            ProgramError: a word is wrong; not in lenient mode.
        """
        [words] = word_rows(np.asarray(words)[None])
        cdef size_t length = len(words), used = 0
        cdef _Workspace workspace = _take_workspace(self)
        cdef StackPtxLowered lowered
        cdef StackPtxPlace place
        cdef StackPtxHash hash
        cdef StackPtxResult result = stack_ptx_lower(
            self.language,
            _mode(mode),
            (0 if value_numbering else STACK_PTX_FLAG_NO_VALUE_NUMBERING) | (0 if folding else STACK_PTX_FLAG_NO_FOLDING),
            <const StackPtxInstruction*>address(words), length, workspace.memory, self.workspace_bytes, &lowered, &place,
        )
        if result != STACK_PTX_SUCCESS:
            raise _program_error(self, result, words, &place, 0, 1)
        _check(stack_ptx_hash(self.language, &lowered, workspace.memory, self.workspace_bytes, &hash))
        if not _append_stub(self.language, &lowered, workspace, self.workspace_bytes, &used):
            raise MemoryError("no memory for the text of a stub")
        arrays = (
            _copy(lowered.nodes, lowered.num_nodes, NODE_DTYPE),
            _copy(lowered.operands, lowered.num_operands, np.uint32),
            _copy(lowered.value_nodes, lowered.num_values, np.uint32),
            _copy(lowered.value_stacks, lowered.num_values, np.uint16),
            _copy(lowered.request_values, lowered.num_requests, np.uint32),
        )
        stub = _ascii_text(workspace.text, used)
        hash_words = _copy(&hash, 2, np.uint64)
        self.idle_workspaces.append(workspace)
        return Lowered(*arrays, lowered.num_instructions, stub, hash_words)


cdef struct _Sums:
    const double* numbers
    double* found


cdef int _add_numbers(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor."""
    cdef const _Sums* sums = <const _Sums*>context
    cdef uint32_t i
    for i in range(lowered.num_nodes):
        if lowered.nodes[i].kind == STACK_PTX_NODE_PTX:
            sums.found[program_idx] += sums.numbers[lowered.nodes[i].payload]
    return 0


cdef _Workspace _take_workspace(Lowering lowering):
    # A single list operation is atomic while the GIL is held.
    try:
        return lowering.idle_workspaces.pop()
    except IndexError:
        return _Workspace(lowering.workspace_bytes)


cdef tuple _analyzed(Lowering lowering, words, _Shelf shelf, places):
    cdef Py_ssize_t num_programs = words.shape[0], length = words.shape[1], i
    hashes = np.empty((num_programs, 2), np.uint64)
    num_instructions = np.empty(num_programs, np.int32)
    cdef StackPtxHash* hash = <StackPtxHash*>address(hashes)
    cdef int32_t* count = <int32_t*>address(num_instructions)
    cdef uintptr_t* copies = NULL if shelf is None else <uintptr_t*>address(places)
    cdef const uint64_t* first = <const uint64_t*>address(words)
    cdef _Workspace workspace = _take_workspace(lowering)
    cdef StackPtxLowered lowered
    cdef bint has_memory = True
    with nogil:
        for i in range(num_programs):
            stack_ptx_lower(
                lowering.language, STACK_PTX_MODE_LENIENT, 0, <const StackPtxInstruction*>(first + i * length), length,
                workspace.memory, lowering.workspace_bytes, &lowered, NULL
            )
            stack_ptx_hash(lowering.language, &lowered, workspace.memory, lowering.workspace_bytes, hash + i)
            count[i] = <int32_t>lowered.num_instructions
            if copies != NULL:
                copies[i] = <uintptr_t>_kept(shelf, &lowered)
                has_memory = copies[i] != 0
                if not has_memory:
                    break
    lowering.idle_workspaces.append(workspace)
    if not has_memory:
        raise MemoryError("no memory for lowered programs; smaller batches need less")
    return hashes, num_instructions


# Bytes of a block of lowered programs; a typical one takes one thousand.
cdef enum: _BLOCK = 1 << 20


cdef class _Shelf:
    """Blocks of memory that do not move; each begins with the address of the one before."""

    cdef char* block
    cdef size_t used, room

    def __dealloc__(self):
        cdef char* before
        while self.block != NULL:
            before = (<char**>self.block)[0]
            free(self.block)
            self.block = before


cdef char* _taken(_Shelf shelf, size_t num_bytes) noexcept nogil:
    cdef char* block
    num_bytes = (num_bytes + 7) & ~<size_t>7
    if shelf.used + num_bytes > shelf.room:
        shelf.room = max(<size_t>_BLOCK, num_bytes + sizeof(char*))
        block = <char*>malloc(shelf.room)
        if block == NULL:
            shelf.room = shelf.used = 0
            return NULL
        (<char**>block)[0] = shelf.block
        shelf.block = block
        shelf.used = sizeof(char*)
    shelf.used += num_bytes
    return shelf.block + shelf.used - num_bytes


cdef char* _moved(const void* array, size_t num_bytes, char** place) noexcept nogil:
    cdef char* copy = place[0]
    memcpy(copy, array, num_bytes)
    place[0] = copy + num_bytes
    return copy


cdef StackPtxLowered* _kept(_Shelf shelf, const StackPtxLowered* lowered) noexcept nogil:
    """A copy of a lowered program, or NULL."""
    cdef size_t nodes = lowered.num_nodes * sizeof(StackPtxNode), values = lowered.num_values, requests = lowered.num_requests
    cdef StackPtxLowered* copy = <StackPtxLowered*>_taken(
        shelf, sizeof(StackPtxLowered) + nodes + 4 * (lowered.num_operands + values + requests) + 2 * values
    )
    cdef char* place = <char*>(copy + 1)
    if copy != NULL:
        copy[0] = lowered[0]
        copy.nodes = <const StackPtxNode*>_moved(lowered.nodes, nodes, &place)
        copy.operands = <const uint32_t*>_moved(lowered.operands, 4 * lowered.num_operands, &place)
        copy.value_nodes = <const uint32_t*>_moved(lowered.value_nodes, 4 * values, &place)
        copy.request_values = <const uint32_t*>_moved(lowered.request_values, 4 * requests, &place)
        copy.value_stacks = <const uint16_t*>_moved(lowered.value_stacks, 2 * values, &place)
    return copy


cdef class LoweredPrograms:
    """Programs as `Lowering.lower_all` leaves them, one each row; rows are chosen as in NumPy, without copying programs. Immutable."""

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> LoweredPrograms:
        return _lowered_programs(self.lowering, np.ascontiguousarray(self.places[rows]), self.owned)

    def joined(self, others: Sequence[LoweredPrograms]) -> LoweredPrograms:
        """These programs and then those of others of their language."""
        cdef LoweredPrograms each
        places, owned = [self.places], self.owned
        for each in others:
            places.append(each.places)
            owned += each.owned
        return _lowered_programs(self.lowering, np.concatenate(places), owned)

    def nodes(self, row: int) -> NDArray[np.void]:
        """`Lowered.nodes` of a program."""
        cdef const StackPtxLowered* lowered = <const StackPtxLowered*><uintptr_t>self.places[row]
        return _copy(lowered.nodes, lowered.num_nodes, NODE_DTYPE)


cdef LoweredPrograms _lowered_programs(Lowering lowering, places, tuple owned):
    cdef LoweredPrograms programs = LoweredPrograms.__new__(LoweredPrograms)
    programs.lowering, programs.places, programs.owned = lowering, places, owned
    return programs


cdef object programs_of(programs):
    return programs if isinstance(programs, LoweredPrograms) else word_rows(programs)


cdef int fill_stack_info(tables, StackPtxStackInfo* info, StackPtxTraits* traits) except -1:
    info.ptx_instruction_strings = <const char**>address(tables.instruction_strings.addresses)
    info.ptx_instruction_descriptors = <const StackPtxPtxInstructionDescriptor*>address(tables.descriptors)
    info.num_ptx_instructions = len(tables.descriptors)
    info.special_register_strings = <const char**>address(tables.special_strings.addresses)
    info.special_register_descriptors = <const StackPtxSpecialRegisterDescriptor*>address(tables.special_arg_types)
    info.num_special_registers = len(tables.special_arg_types)
    info.stack_literal_prefixes = <const char**>address(tables.literal_prefixes.addresses)
    info.num_stacks = len(tables.constant_types)
    info.arg_type_info = <const StackPtxArgTypeInfo*>address(tables.arg_types)
    info.num_arg_types = len(tables.arg_types)
    traits.instructions = <const StackPtxInstructionTraits*>address(tables.instruction_traits)
    traits.volatile_special_registers = <const uint8_t*>address(tables.volatile_specials)
    traits.constant_types = <const uint8_t*>address(tables.constant_types)
    return 0


cdef int _fill_connections(tables, limits, StackPtxLanguageInfo* info) except -1:
    info.limits.stack_size = limits.stack_size
    info.limits.max_nodes = limits.max_nodes
    info.limits.max_frame_depth = limits.max_frame_depth
    info.limits.store_size = limits.store_size
    info.limits.execution_limit = limits.execution_limit
    info.registers = <const StackPtxRegister*>address(tables.registers)
    info.num_registers = len(tables.registers)
    info.requests = <const size_t*>address(tables.requests)
    info.num_requests = len(tables.requests)
    info.routines = <const StackPtxInstruction**>address(tables.routines.addresses)
    info.routine_lengths = <const size_t*>address(tables.routines.lengths)
    info.num_routines = len(tables.routines.words)
    return 0


cdef int _fill_folding(folding, StackPtxFolding* c_folding) except -1:
    c_folding.fold = NULL
    c_folding.context = NULL
    if folding is not None:
        function, context = folding.handle()
        c_folding.fold = <StackPtxFoldFunction><uintptr_t>function
        c_folding.context = <const void*><uintptr_t>context
    return 0


cdef StackPtxMode _mode(mode) except *:
    if mode not in MODES:
        raise ValueError(f"mode: '{mode}', must be one of: {', '.join(MODES)}")
    return <StackPtxMode><int>MODES.index(mode)


cdef object _program_error(
    Lowering lowering, StackPtxResult code, words, const StackPtxPlace* place, Py_ssize_t program_idx, Py_ssize_t num_programs
):
    routine_idx = None if place.routine_idx == STACK_PTX_MAIN_PROGRAM else place.routine_idx
    word = int(words[place.word_idx] if routine_idx is None else lowering.routines[routine_idx][place.word_idx])
    where = f"word {place.word_idx}" if routine_idx is None else f"word {place.word_idx} of routine {routine_idx}"
    if num_programs > 1:
        where = f"program {program_idx}, {where}"
    name = stack_ptx_result_to_string(code).decode()
    return ProgramError(explain(lowering, name, word, where), name, place.word_idx, routine_idx, program_idx)


cdef object _copy(const void* source, size_t count, dtype):
    copy = np.empty(count, dtype)
    if count:
        memcpy(address(copy), source, copy.nbytes)
    copy.flags.writeable = False
    return copy


cdef object _ascii_text(const char* text, size_t length):
    """A str of known ASCII characters: names are checked, and the emitter writes the rest."""
    result = PyUnicode_New(length, 127)
    memcpy(PyUnicode_1BYTE_DATA(result), text, length)
    return result


cdef bint _append_stub(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, _Workspace workspace, size_t workspace_bytes,
    size_t* used
) noexcept nogil:
    """Appends a stub to the workspace's text, which grows as needed. False: out of memory."""
    cdef size_t room, length = 0, wanted
    cdef char* grown
    while True:
        room = workspace.text_bytes - used[0]
        if room > 0 and stack_ptx_emit(
            language, lowered, workspace.memory, workspace_bytes, workspace.text + used[0], room, &length
        ) == STACK_PTX_SUCCESS:
            used[0] += length
            return True
        wanted = 2 * (workspace.text_bytes + length) + 65536
        grown = <char*>realloc(workspace.text, wanted)
        if grown == NULL:
            return False
        workspace.text = grown
        workspace.text_bytes = wanted
