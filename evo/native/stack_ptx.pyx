# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Stack PTX: turns arrays of words into PTX stubs, hashes and lowered programs.

Owns the workspaces and the one place where a C error becomes an exception. Knows nothing of tasks, evaluation or files.
csrc/stack_ptx.h documents words. Longer than most modules: the class and the messages of its errors belong together.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from evo.native.stack_ptx_tables import check_connections, connection_tables, instruction_set_tables, word_rows
from evo.native.stack_ptx_words import META_OPERATIONS, TEMPLATE_DERIVATIVE, ProgramError, WordType, explain

from libc.stdint cimport int32_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from evo.native.arrays cimport address
from evo.native.derive cimport DERIVE_KEEP_CONSTANTS, DERIVE_SUCCESS, DeriveResult, DeriveSet, derive_program, derive_set_of, derive_size
from evo.native.row_threads cimport RowThreads


cdef extern from *:
    size_t next_turn "__sync_fetch_and_add"(size_t*, size_t) nogil


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
        template: words that put the functions of programs together; empty: programs run as they are.

    Raises:
        ValueError: a name, index or limit is out of range.
    """

    def __cinit__(
        self, instruction_set: Any, registers: Iterable[tuple[str, int]], requests: Iterable[int], limits: Any,
        routines: Sequence[NDArray[np.uint64]] = (), folding: Any = None, template: Sequence[int] = ()
    ):
        self.instruction_set = instruction_set
        self.registers = tuple((str(name), int(stack_idx)) for name, stack_idx in registers)
        self.requests = tuple(int(request) for request in requests)
        self.limits = limits
        self.routines = tuple(np.array(routine, np.uint64, ndmin=1) for routine in routines)
        self.folding = folding
        self.template = np.array(template, np.uint64)
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
        info.template_words, info.template_length = <const StackPtxInstruction*>address(self.template), len(self.template)
        derive_set = _fill_derivation(self.template, &info)
        _check(stack_ptx_language_size(&info, &num_bytes))
        memory = np.empty(num_bytes, np.uint8)
        self.owned = [tables, connections, memory, derive_set]
        _check(stack_ptx_language_init(&info, address(memory), num_bytes, &self.language))
        _check(stack_ptx_workspace_size(self.language, &self.workspace_bytes))

    cdef int visit(
        self, programs, Visitor visitor, void* context, uint32_t flags=0, const int64_t* order=NULL, size_t count=0, size_t* turn=NULL,
        RowThreads row_threads=None
    ) except -1:
        cdef LoweredPrograms kept = programs if isinstance(programs, LoweredPrograms) else None
        cdef size_t num_visits = count if order != NULL else len(programs), num_members = 1
        cdef size_t i
        cdef _Workspace workspace
        cdef _Visits visits
        cdef _Memory own = _Memory(NULL, NULL, 0)
        visits.memories = &own
        if row_threads is not None:
            num_members = row_threads.num_threads
            memories = np.zeros((num_members, sizeof(_Memory)), np.uint8)
            visits.memories = <_Memory*>address(memories)
        workspaces = [] if kept is not None else [_take_workspace(self) for _ in range(num_members)]
        for i, workspace in enumerate(workspaces):
            visits.memories[i].workspace = workspace.memory
        visits.language, visits.workspace_bytes, visits.flags = self.language, self.workspace_bytes, flags
        visits.rows, visits.length, visits.places = NULL, 0, NULL
        visits.order, visits.visitor, visits.context = order, visitor, context
        visits.result, visits.missing_bytes = 0, 0
        if kept is None:
            visits.rows, visits.length = <const uint64_t*>address(programs), programs.shape[1]
        elif kept.lowering is not self or flags:
            raise ValueError("the programs were lowered for another language or in another way; expected their words")
        else:
            visits.places = <const uintptr_t*>address(kept.places)
        with nogil:
            if row_threads is not None:
                row_threads.run(_visit_rows, &visits, num_visits, _LOWERED_AT_ONCE)
            elif turn == NULL:
                _visit_rows(&visits, 0, 0, num_visits)
            else:
                while True:
                    i = next_turn(turn, 1)
                    if i >= num_visits or not _visit(&visits, 0, i):
                        break
            for i in range(num_members):
                free(visits.memories[i].memory)
        self.idle_workspaces += workspaces
        if visits.missing_bytes != 0:
            raise MemoryError(f"no {visits.missing_bytes} bytes for a program")
        return visits.result

    def analyze(
        self, words: NDArray[np.uint64], row_threads: RowThreads | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Hashes and sizes of programs, in lenient mode.

        Args:
            words: `(num_programs, max_length)` uint64; each row ends at its first RETURN or at max_length.
            row_threads: do this together.

        Returns:
            hashes `(num_programs, 2)` uint64, equal for programs that compute the same by the rules of stack_ptx_hash, and
            the numbers of live PTX instructions `(num_programs,)` int32.
        """
        return _analyzed(self, word_rows(words), row_threads, None, None)

    def lower_all(
        self, words: NDArray[np.uint64], row_threads: RowThreads | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32], LoweredPrograms]:
        """As `analyze`, and the lowered programs, which other native functions take in place of words, to lower nothing again."""
        cdef _Shelf shelf = _Shelf(1 if row_threads is None else row_threads.num_threads)
        places = np.empty(len(words), np.uintp)
        hashes, num_instructions = _analyzed(self, word_rows(words), row_threads, shelf, places)
        return hashes, num_instructions, _lowered_programs(self, places, (shelf,))

    def sums(self, programs: NDArray[np.uint64] | LoweredPrograms, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each program the sum of its live instructions' numbers, `(num_programs,)`.

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

    def longest(
        self, programs: NDArray[np.uint64] | LoweredPrograms, numbers: NDArray[np.float64], at: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The greatest sum of `numbers` on a path to the operands of an instruction where `at` is not 0, itself left out; 0 if
        there is none, `(num_programs,)`.

        Args:
            programs: words, as for `analyze`, or lowered.
            numbers, at: of each instruction of the set; numbers from 0 on.
        """
        cdef _Sums sums
        numbers, at = np.ascontiguousarray(numbers, np.float64), np.ascontiguousarray(at, np.float64)
        if not numbers.shape == at.shape == (len(self.instruction_set.instructions),):
            raise ValueError(f"numbers, at: expected one for each of the set's instructions, got {numbers.shape} and {at.shape}")
        programs = programs_of(programs)
        found = np.zeros(len(programs))
        sums.numbers, sums.at, sums.found = <const double*>address(numbers), <const double*>address(at), <double*>address(found)
        self.visit(programs, _longest, &sums)
        return found

    def rewritten(
        self, programs: NDArray[np.uint64] | LoweredPrograms, max_length: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Programs in words that compute the same and leave only the outputs on the stacks.

        A value that is used more than once is duplicated if all its uses follow each other. Others go through the store, as long
        as there are entries; then they are computed again.

        Args:
            programs: words, as for `analyze`, or lowered.

        Returns:
            words `(num_programs, max_length)` uint64, without RETURN, and their numbers `(num_programs,)` int32; -1 where they
            would be more than `max_length`, or an instruction has several results.
        """
        cdef _Rewriting rewriting
        programs = programs_of(programs)
        words, lengths = np.zeros((len(programs), max_length), np.uint64), np.empty(len(programs), np.int32)
        rewriting.words, rewriting.lengths = <uint64_t*>address(words), <int32_t*>address(lengths)
        rewriting.max_length, rewriting.store_size = max_length, self.limits.store_size
        self.visit(programs, _rewrite, &rewriting)
        words[lengths < 0] = 0
        return words, lengths

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


cdef struct _Rewriting:
    uint64_t* words
    int32_t* lengths
    size_t max_length
    uint32_t store_size


cdef uint64_t _CONSTANT_WORD = WordType.CONSTANT, _PTX_WORD = WordType.PTX, _INPUT_WORD = WordType.INPUT
cdef uint64_t _SPECIAL_WORD = WordType.SPECIAL, _STORE_WORD = WordType.STORE, _LOAD_WORD = WordType.LOAD
cdef uint64_t _DUP_WORD = WordType.META | META_OPERATIONS.index("dup") << 32


cdef int _rewrite(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor. The memory has each node's number of uses and entry in the store, then the stack of what is to be written."""
    cdef const _Rewriting* rewriting = <const _Rewriting*>context
    cdef size_t num_todo = 0, length = 0, max_length = rewriting.max_length
    cdef uint64_t* words = rewriting.words + program_idx * max_length
    cdef int32_t* uses = <int32_t*>memory
    cdef int32_t* entries = uses + lowered.num_nodes
    cdef int32_t* todo = entries + lowered.num_nodes
    cdef const StackPtxNode* node
    cdef int32_t index, num_entries = 0
    cdef uint32_t i, num_next
    cdef uint64_t stack, written
    needed_out[0] = sizeof(int32_t) * (3 * <size_t>lowered.num_nodes + lowered.num_operands + lowered.num_requests)
    if num_bytes < needed_out[0]:
        return 0
    rewriting.lengths[program_idx] = -1
    for i in range(lowered.num_nodes):
        uses[i], entries[i] = 0, -1
        if lowered.nodes[i].num_values != 1:
            return 0
    for i in range(lowered.num_operands):
        uses[lowered.value_nodes[lowered.operands[i]]] += 1
    for i in range(lowered.num_requests):
        if lowered.request_values[i] != STACK_PTX_NO_VALUE:
            todo[num_todo] = <int32_t>lowered.value_nodes[lowered.request_values[i]]
            uses[todo[num_todo]] += 1
            num_todo += 1
    while num_todo:
        num_todo -= 1
        index = todo[num_todo]
        node = &lowered.nodes[index if index >= 0 else ~index]
        written = (<uint64_t>node.payload) << 32
        if index < 0:  # its operands are on the stacks
            index = ~index
            stack = (<uint64_t>lowered.value_stacks[node.first_value]) << 16
            written |= _PTX_WORD
            num_next = 0
            while num_next < num_todo and todo[num_todo - 1 - num_next] == index:
                num_next += 1
            if uses[index] == 1 + <int32_t>num_next:
                num_todo -= num_next
                if length + num_next >= max_length:
                    return 0
                words[length] = written
                for i in range(num_next):
                    words[length + 1 + i] = _DUP_WORD | stack
                length += 1 + num_next
                continue
            if num_entries < <int32_t>rewriting.store_size and entries[index] < 0:
                entries[index] = num_entries
                num_entries += 1
            if entries[index] >= 0:
                if length + 2 >= max_length:
                    return 0
                words[length] = written
                words[length + 1] = _STORE_WORD | stack | (<uint64_t>entries[index]) << 32
                length += 2
                written = _LOAD_WORD | (<uint64_t>entries[index]) << 32
        elif entries[index] >= 0:
            written = _LOAD_WORD | (<uint64_t>entries[index]) << 32
        elif node.kind == STACK_PTX_NODE_PTX:
            todo[num_todo] = ~index
            for i in range(node.num_operands):
                todo[num_todo + 1 + i] = <int32_t>lowered.value_nodes[lowered.operands[node.first_operand + i]]
            num_todo += 1 + node.num_operands
            continue
        elif node.kind == STACK_PTX_NODE_CONSTANT:
            written |= _CONSTANT_WORD | (<uint64_t>lowered.value_stacks[node.first_value]) << 16
        else:
            written |= _INPUT_WORD if node.kind == STACK_PTX_NODE_INPUT else _SPECIAL_WORD
        if length >= max_length:
            return 0
        words[length] = written
        length += 1
    rewriting.lengths[program_idx] = <int32_t>length
    return 0


cdef struct _Sums:
    const double* numbers
    const double* at  # of _longest
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


cdef int _longest(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor. The memory has the longest path below and with each node."""
    cdef const _Sums* sums = <const _Sums*>context
    cdef double* paths = <double*>memory
    cdef double longest
    cdef uint32_t i, k, operand
    if num_bytes < lowered.num_nodes * sizeof(double):
        needed_out[0] = lowered.num_nodes * sizeof(double)
        return 0
    for i in range(lowered.num_nodes):
        longest = 0.0
        for k in range(lowered.nodes[i].num_operands):
            operand = lowered.value_nodes[lowered.operands[lowered.nodes[i].first_operand + k]]
            longest = max(longest, paths[operand])
        if lowered.nodes[i].kind == STACK_PTX_NODE_PTX:
            if sums.at[lowered.nodes[i].payload] != 0.0:
                sums.found[program_idx] = max(sums.found[program_idx], longest)
            longest += sums.numbers[lowered.nodes[i].payload]
        paths[i] = longest
    return 0


cdef _Workspace _take_workspace(Lowering lowering):
    # A single list operation is atomic while the GIL is held.
    try:
        return lowering.idle_workspaces.pop()
    except IndexError:
        return _Workspace(lowering.workspace_bytes)


# Programs that a thread lowers in one go, which take 0.03 ms.
cdef enum: _LOWERED_AT_ONCE = 32


cdef struct _Memory:
    # A thread's. workspace: for programs that are not lowered yet; memory: for visitors, num_bytes.
    void* workspace
    void* memory
    size_t num_bytes


cdef struct _Visits:
    # One call of `Lowering.visit`. Either rows or places is NULL.
    const StackPtxLanguage* language
    size_t workspace_bytes
    uint32_t flags
    const uint64_t* rows
    size_t length
    const uintptr_t* places
    const int64_t* order
    Visitor visitor
    void* context
    _Memory* memories
    int result
    size_t missing_bytes


cdef bint _visit(_Visits* visits, size_t member, size_t i) noexcept nogil:
    """Return whether visits go on."""
    cdef _Memory* own = &visits.memories[member]
    cdef size_t row = visits.order[i] if visits.order != NULL else i, needed
    cdef StackPtxLowered made
    cdef const StackPtxLowered* lowered = &made
    cdef int result
    if visits.places != NULL:
        lowered = <const StackPtxLowered*>visits.places[row]
    else:
        stack_ptx_lower(
            visits.language, STACK_PTX_MODE_LENIENT, visits.flags, <const StackPtxInstruction*>(visits.rows + row * visits.length),
            visits.length, own.workspace, visits.workspace_bytes, &made, NULL
        )
    while True:
        needed = 0
        result = visits.visitor(visits.context, lowered, i, own.memory, own.num_bytes, &needed)
        if needed <= own.num_bytes:
            visits.result = result
            return result == 0
        free(own.memory)
        own.memory = malloc(needed)
        own.num_bytes = needed
        if own.memory == NULL:
            own.num_bytes = 0
            visits.missing_bytes = needed
            return False


cdef void _visit_rows(void* context, size_t member, size_t first, size_t end) noexcept nogil:
    cdef size_t i
    for i in range(first, end):
        if not _visit(<_Visits*>context, member, i):
            break


cdef struct _Analysis:
    # workspaces, boards: of each thread; boards: NULL if nothing is kept.
    const StackPtxLanguage* language
    const uint64_t* words
    size_t length
    void** workspaces
    size_t workspace_bytes
    _Board* boards
    StackPtxHash* hashes
    int32_t* counts
    uintptr_t* places
    bint has_memory


cdef void _analyze(void* context, size_t member, size_t first, size_t end) noexcept nogil:
    cdef _Analysis* analysis = <_Analysis*>context
    cdef void* workspace = analysis.workspaces[member]
    cdef StackPtxLowered lowered
    cdef size_t i
    for i in range(first, end):
        stack_ptx_lower(
            analysis.language, STACK_PTX_MODE_LENIENT, 0, <const StackPtxInstruction*>(analysis.words + i * analysis.length),
            analysis.length, workspace, analysis.workspace_bytes, &lowered, NULL
        )
        stack_ptx_hash(analysis.language, &lowered, workspace, analysis.workspace_bytes, analysis.hashes + i)
        analysis.counts[i] = <int32_t>lowered.num_instructions
        if analysis.boards != NULL:
            analysis.places[i] = <uintptr_t>_kept(&analysis.boards[member], &lowered)
            if analysis.places[i] == 0:
                analysis.has_memory = False


cdef tuple _analyzed(Lowering lowering, words, RowThreads row_threads, _Shelf shelf, places):
    cdef size_t num_programs = words.shape[0]
    cdef _Analysis analysis
    cdef _Workspace workspace
    hashes = np.empty((num_programs, 2), np.uint64)
    num_instructions = np.empty(num_programs, np.int32)
    workspaces = [_take_workspace(lowering) for _ in range(1 if row_threads is None else row_threads.num_threads)]
    memories = np.empty(len(workspaces), np.uintp)
    for i, workspace in enumerate(workspaces):
        memories[i] = <uintptr_t>workspace.memory
    analysis.language, analysis.length, analysis.workspace_bytes = lowering.language, words.shape[1], lowering.workspace_bytes
    analysis.words, analysis.workspaces = <const uint64_t*>address(words), <void**>address(memories)
    analysis.hashes, analysis.counts = <StackPtxHash*>address(hashes), <int32_t*>address(num_instructions)
    analysis.boards = NULL if shelf is None else shelf.boards
    analysis.places = NULL if shelf is None else <uintptr_t*>address(places)
    analysis.has_memory = True
    with nogil:
        if row_threads is None:
            _analyze(&analysis, 0, 0, num_programs)
        else:
            row_threads.run(_analyze, &analysis, num_programs, _LOWERED_AT_ONCE)
    lowering.idle_workspaces += workspaces
    if not analysis.has_memory:
        raise MemoryError("no memory for lowered programs; smaller batches need less")
    return hashes, num_instructions


# Bytes of a block of lowered programs; a typical one takes one thousand.
cdef enum: _BLOCK = 1 << 20


cdef struct _Board:
    # Blocks of memory that do not move; each begins with the address of the one before.
    char* block
    size_t used
    size_t room


cdef class _Shelf:
    """A board for each thread."""

    cdef _Board* boards
    cdef size_t num_boards

    def __cinit__(self, size_t num_boards):
        self.boards = <_Board*>calloc(num_boards, sizeof(_Board))
        if self.boards == NULL:
            raise MemoryError("no memory for lowered programs; smaller batches need less")
        self.num_boards = num_boards

    def __dealloc__(self):
        cdef char* before
        cdef size_t i
        for i in range(self.num_boards):
            while self.boards[i].block != NULL:
                before = (<char**>self.boards[i].block)[0]
                free(self.boards[i].block)
                self.boards[i].block = before
        free(self.boards)


cdef char* _taken(_Board* board, size_t num_bytes) noexcept nogil:
    cdef char* block
    num_bytes = (num_bytes + 7) & ~<size_t>7
    if board.used + num_bytes > board.room:
        board.room = max(<size_t>_BLOCK, num_bytes + sizeof(char*))
        block = <char*>malloc(board.room)
        if block == NULL:
            board.room = board.used = 0
            return NULL
        (<char**>block)[0] = board.block
        board.block = block
        board.used = sizeof(char*)
    board.used += num_bytes
    return board.block + board.used - num_bytes


cdef char* _moved(const void* array, size_t num_bytes, char** place) noexcept nogil:
    cdef char* copy = place[0]
    memcpy(copy, array, num_bytes)
    place[0] = copy + num_bytes
    return copy


cdef StackPtxLowered* _kept(_Board* board, const StackPtxLowered* lowered) noexcept nogil:
    """A copy of a lowered program, or NULL."""
    cdef size_t nodes = lowered.num_nodes * sizeof(StackPtxNode), values = lowered.num_values, requests = lowered.num_requests
    cdef StackPtxLowered* copy = <StackPtxLowered*>_taken(
        board, sizeof(StackPtxLowered) + nodes + 4 * (lowered.num_operands + values + requests) + 2 * values
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


cdef object _fill_derivation(template, StackPtxLanguageInfo* info):
    """The memory of what derives, if the template does. The rest of `info` is filled."""
    cdef const DeriveSet* derive_set
    cdef StackPtxLowered largest
    info.derivation.derive, info.derivation.context, info.derivation.memory_bytes = NULL, NULL, 0
    if not (template & 0xFFFF == TEMPLATE_DERIVATIVE).any():
        return None
    memory = derive_set_of(info.stack_info, &derive_set)
    largest.num_nodes = largest.num_values = info.limits.max_nodes + <uint32_t>info.num_registers
    largest.num_operands = 4 * largest.num_nodes
    derive_size(&largest, 1, &info.derivation.memory_bytes)
    info.derivation.derive, info.derivation.context = _derive, derive_set
    return memory


cdef StackPtxResult _derive(
    const void* context, const StackPtxLowered* lowered, uint32_t node, void* memory, size_t num_bytes, StackPtxLowered* derived_out
) noexcept nogil:
    cdef DeriveResult result = derive_program(
        <const DeriveSet*>context, lowered, 0, &node, 1, DERIVE_KEEP_CONSTANTS, memory, num_bytes, derived_out
    )
    return STACK_PTX_SUCCESS if result == DERIVE_SUCCESS else STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE


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
