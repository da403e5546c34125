# cython: language_level=3, freethreading_compatible=True
"""AST PTX: compiles batches of postorder programs to stubs, and interprets them.

Owns the C tables that a batch is compiled with and the one place where a C error becomes an exception. Knows nothing of the form
of programs in Python (`evo.ast_ptx`). csrc/ast_ptx.h documents words, and csrc/ast_ptx_interpreter.h their arithmetic.
"""

from enum import IntEnum

import numpy as np

from evo.native.stack_ptx_tables import c_strings, word_lists, word_rows

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint16_t, uint64_t
from libc.stdlib cimport free, realloc

from evo.native.arrays cimport address


STACK_DEPTH: int = AST_PTX_STACK_DEPTH
ROUTINE_DEPTH: int = AST_PTX_ROUTINE_DEPTH
MAX_INSTRUCTIONS: int = AST_PTX_MAX_INSTRUCTIONS
MAX_INSTRUCTION_ARGS: int = AST_PTX_MAX_INSTRUCTION_ARGS

INSTRUCTIONS: tuple[tuple[str, int], ...] = tuple(
    (ast_ptx_ptx_instruction_names[i].decode(), int(ast_ptx_ptx_instruction_num_args[i]))
    for i in range(AST_PTX_PTX_INSTRUCTION_NUM_ENUMS)
)
"""(PTX, number of operands) of each of the library's instructions, by index."""


class WordType(IntEnum):
    """The type of a word: its bits 0-15. csrc/ast_ptx.h documents them."""

    NONE = AST_PTX_INSTRUCTION_TYPE_NONE
    INPUT = AST_PTX_INSTRUCTION_TYPE_INPUT
    CONSTANT = AST_PTX_INSTRUCTION_TYPE_CONSTANT
    PTX_INSTRUCTION = AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION
    ROUTINE = AST_PTX_INSTRUCTION_TYPE_ROUTINE
    RETURN = AST_PTX_INSTRUCTION_TYPE_RETURN
    ROUTINE_ARG = AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG
    REGISTER = AST_PTX_INSTRUCTION_TYPE_REGISTER


class ProgramError(ValueError):
    """A word is wrong.

    Attributes:
        program_idx: row of the batch.
        routine_idx: the routine with the word, or None for the program itself.
        word_idx: within that word list; its length if a return is missing.
        code: name of the C result, such as `STACK_UNDERFLOW`.
    """

    program_idx: int
    routine_idx: int | None
    word_idx: int
    code: str

    def __init__(self, program_idx: int, routine_idx: int | None, word_idx: int, code: str):
        place = "" if routine_idx is None else f"routine {routine_idx}, "
        super().__init__(f"program {program_idx}, {place}word {word_idx}: {code}")
        self.program_idx = program_idx
        self.routine_idx = routine_idx
        self.word_idx = word_idx
        self.code = code

    def __reduce__(self):
        return type(self), (self.program_idx, self.routine_idx, self.word_idx, self.code)


def is_register_name(name: str) -> bool:
    """Return whether a register may have this name (without the percent sign); see ast_ptx_check_name."""
    encoded = name.encode()
    return b"\0" not in encoded and ast_ptx_check_name(PyBytes_AS_STRING(encoded)) == AST_PTX_SUCCESS


cdef void _fill(AstPtxProgram* program, routines, size_t num_words):
    program.num_instructions = num_words
    program.routines = <const AstPtxInstruction**>address(routines.addresses)
    program.routine_lengths = <const size_t*>address(routines.lengths)
    program.num_routines = len(routines.words)


cdef class AstCompiler:
    """Compiles programs of one set of registers, instructions and routines. Immutable and thread-safe.

    Args:
        output, inputs: names of registers, without the percent sign.
        instructions: (PTX, number of operands) of each.
        routines: words of each, `(length,)` uint64.

    Raises:
        ValueError: a name is reserved, or a text holds a NUL.
    """

    cdef object registers, names  # Strings; of registers the output, then the inputs
    cdef object num_args
    cdef object routines          # WordLists

    def __cinit__(
        self, output: str, inputs: Sequence[str], instructions: Sequence[tuple[str, int]],
        routines: Sequence[NDArray[np.uint64]] = ()
    ):
        registers = [output, *inputs]
        for name in registers:
            if not is_register_name(name):
                raise ValueError(f"register {name!r}: not a name that PTX and compilers leave free")
        instructions = tuple(instructions)
        self.registers = c_strings(registers, "register")
        self.names = c_strings([name for name, _ in instructions], "instruction")
        self.num_args = np.array([num_args for _, num_args in instructions], np.uint16)
        self.routines = word_lists(routines)

    def emit(self, words: NDArray[np.uint64]) -> list[str]:
        """The stub of each program, as a list of str.

        Args:
            words: `(num_programs, max_length)` uint64; each row ends with a RETURN, and the rest is not read.

        Raises:
            ProgramError: a word is wrong.
            ValueError: `words` has another type or shape.
        """
        words = word_rows(words)
        cdef size_t num_programs = words.shape[0], num_words = words.shape[1]
        cdef const uint64_t* rows = <const uint64_t*>address(words)
        ends = np.zeros(num_programs + 1, np.uintp)
        cdef size_t* offsets = <size_t*>address(ends)
        cdef const char** registers = <const char**>address(self.registers.addresses)
        cdef const char** names = <const char**>address(self.names.addresses)
        cdef const uint16_t* num_args = <const uint16_t*>address(self.num_args)
        cdef size_t num_inputs = len(self.registers.addresses) - 1, num_names = len(self.num_args)
        cdef AstPtxProgram program
        cdef AstPtxPlace place
        cdef AstPtxResult result = AST_PTX_SUCCESS
        cdef size_t i = 0, used = 0, capacity = 0, needed = 0, written = 0
        cdef char* buffer = NULL
        cdef char* larger
        cdef bint has_memory = True
        _fill(&program, self.routines, num_words)
        place.routine_idx = AST_PTX_MAIN_PROGRAM
        place.word_idx = 0
        try:
            with nogil:
                needed = 64 * num_words + 128
                while i < num_programs:
                    if capacity - used < needed:
                        capacity = 2 * capacity + needed
                        larger = <char*>realloc(buffer, capacity)
                        if larger == NULL:
                            has_memory = False
                            break
                        buffer = larger
                    program.instructions = <const AstPtxInstruction*>(rows + i * num_words)
                    result = ast_ptx_compile_program(
                        registers[0], registers + 1, num_inputs, names, num_args, num_names, &program, buffer + used,
                        capacity - used, &written, &place
                    )
                    if result == AST_PTX_ERROR_INSUFFICIENT_BUFFER:
                        needed = written + 1
                        continue
                    if result != AST_PTX_SUCCESS:
                        break
                    used += written
                    needed = 128
                    i += 1
                    offsets[i] = used
            if not has_memory:
                raise MemoryError("no memory for stubs")
            _check(result, i, &place)
            return [PyUnicode_DecodeUTF8(buffer + offsets[i], offsets[i + 1] - offsets[i], NULL) for i in range(num_programs)]
        finally:
            free(buffer)


def interpret(
    words: NDArray[np.uint64], inputs: Sequence[NDArray[np.float32] | None], num_points: int,
    routines: Sequence[NDArray[np.uint64]] = ()
) -> NDArray[np.float32]:
    """The value of each program at each point, `(num_programs, num_points)` float32; the GIL is released.

    Args:
        words: `(num_programs, max_length)` uint64, in which instructions are indices of `INSTRUCTIONS`.
        inputs: for each input `(num_points,)` float32, or None for one that no program reads.
        routines: words of each, `(length,)` uint64.

    Raises:
        ProgramError: a word is wrong; INVALID_VALUE at an INPUT means an input without values.
        ValueError: an array has the wrong type or shape.
    """
    words = word_rows(words)
    owned = _points(inputs, num_points)
    routines = word_lists(routines)
    cdef size_t num_programs = words.shape[0], num_words = words.shape[1], num_inputs = len(owned), i = 0
    cdef size_t num_values = num_points
    cdef const uint64_t* rows = <const uint64_t*>address(words)
    table = np.array([0 if values is None else values.ctypes.data for values in owned], np.uintp)
    out = np.empty((num_programs, num_points), np.float32)
    cdef const float** arrays = <const float**>address(table)
    cdef float* values_out = <float*>address(out)
    cdef AstPtxProgram program
    cdef AstPtxPlace place
    cdef AstPtxResult result = AST_PTX_SUCCESS
    _fill(&program, routines, num_words)
    place.routine_idx = AST_PTX_MAIN_PROGRAM
    place.word_idx = 0
    with nogil:
        while i < num_programs:
            program.instructions = <const AstPtxInstruction*>(rows + i * num_words)
            result = ast_ptx_interpret_program(&program, arrays, num_inputs, num_values, values_out + i * num_values, &place)
            if result != AST_PTX_SUCCESS:
                break
            i += 1
    _check(result, i, &place)
    return out


cdef int _check(AstPtxResult result, size_t program_idx, const AstPtxPlace* place) except -1:
    """Checks every C result of a batch."""
    if result != AST_PTX_SUCCESS:
        routine_idx = None if place.routine_idx == AST_PTX_MAIN_PROGRAM else place.routine_idx
        code = ast_ptx_result_to_string(result).decode().removeprefix("AST_PTX_ERROR_")
        raise ProgramError(program_idx, routine_idx, place.word_idx, code)
    return 0


def _points(inputs, num_points):
    owned = [None if values is None else np.ascontiguousarray(values) for values in inputs]
    for number, values in enumerate(owned):
        if values is not None and (values.dtype != np.float32 or values.shape != (num_points,)):
            raise ValueError(f"input {number}: expected float32 of shape ({num_points},), got {values.dtype} of {values.shape}")
    return owned
