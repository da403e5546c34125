# cython: language_level=3, freethreading_compatible=True
"""PTX Inject: turns annotations in CUDA into markers, and renders annotated PTX with a stub in every site.

Owns the handles and the one place where a C error becomes an exception. Knows nothing of programs or of compiling.
csrc/ptx_inject.h documents sites and markers.
"""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc


_MUTABILITY = {PTX_INJECT_MUT_TYPE_IN: "in", PTX_INJECT_MUT_TYPE_OUT: "out", PTX_INJECT_MUT_TYPE_MOD: "mod"}


class AnnotationError(ValueError):
    """Annotations or markers are wrong.

    Attributes:
        language: `CUDA` or `PTX`.
        line, column: of the error, from 1; columns are bytes.
        reason: what is wrong, in one line.
    """

    language: str
    line: int
    column: int
    reason: str

    def __init__(self, language: str, line: int, column: int, reason: str):
        super().__init__(f"annotated {language}, line {line}, column {column}: {reason}")
        self.language = language
        self.line = line
        self.column = column
        self.reason = reason

    def __reduce__(self):
        return type(self), (self.language, self.line, self.column, self.reason)


class DataType(NamedTuple):
    """A type of annotations in comments.

    name: in annotations; register_type: of its register, such as `f32`; mov_postfix: of the movs to and from it;
    register_char: constraint letter of inline assembly; register_cast_str: C++ that casts the operand.
    """

    name: str
    register_type: str
    mov_postfix: str
    register_char: str
    register_cast_str: str = ""


class Variable(NamedTuple):
    """A variable of a site.

    name: as in the CUDA source; register: the stub's PTX register, without the percent sign; mutability: `in` (stubs read it),
    `out` (stubs write it, always) or `mod` (both); register_type: PTX type of the register, such as `f32`; data_type: as in the
    CUDA source, such as `F32`.
    """

    name: str
    register: str
    mutability: str
    register_type: str
    data_type: str


class Inject(NamedTuple):
    """All sites of one name. index: of their stub in `AnnotatedPtx.render`."""

    name: str
    index: int  # type: ignore[assignment]  # hides tuple.index
    num_sites: int
    variables: tuple[Variable, ...]


def _default_types():
    cdef size_t num_types = 0
    cdef const PtxInjectDataTypeInfo* types = ptx_inject_default_types(&num_types)
    return tuple(
        DataType(
            types[i].name.decode(), types[i].register_type.decode(), types[i].mov_postfix.decode(), chr(types[i].register_char),
            types[i].register_cast_str.decode(),
        )
        for i in range(num_types)
    )


DEFAULT_TYPES: tuple[DataType, ...] = _default_types()
"""The default types of annotations in comments: f16, f16X2, s32, u32, f32, b32."""


def process_cuda(cuda: AnyStr, types: Sequence[DataType] | None = None) -> AnyStr:
    """Turns `/* PTX_INJECT name ... */` annotations into inline assembly with markers.

    Args:
        cuda: str or bytes.
        types: sequence of `DataType`, instead of `DEFAULT_TYPES`.

    Returns:
        str for str and bytes for bytes, with everything else unchanged.

    Raises:
        AnnotationError: an annotation is wrong, or the text holds a NUL or half of a surrogate pair.
        ValueError: a type is wrong.
    """
    cdef bytes text = _source(cuda, "CUDA")
    cdef _Types native = _Types(types)
    cdef const char* begin = PyBytes_AS_STRING(text)
    cdef size_t num_bytes = 0
    cdef PtxInjectResult result
    cdef bytes processed
    cdef char* buffer
    with nogil:
        result = ptx_inject_process_cuda(begin, native.array, native.count, NULL, 0, &num_bytes)
    if result != PTX_INJECT_SUCCESS:
        _refuse("CUDA", begin, native, result)
    processed = PyBytes_FromStringAndSize(NULL, num_bytes - 1)
    buffer = PyBytes_AS_STRING(processed)
    with nogil:
        result = ptx_inject_process_cuda(begin, native.array, native.count, buffer, num_bytes, &num_bytes)
    _check(result)
    return processed.decode() if isinstance(cuda, str) else processed


cdef class AnnotatedPtx:
    """Annotated PTX, parsed once. Immutable and thread-safe.

    Args:
        ptx: str or bytes, with markers of either form.
        types: sequence of `DataType` for markers from comments, instead of `DEFAULT_TYPES`.

    Raises:
        AnnotationError: the markers are wrong, or the text holds a NUL or half of a surrogate pair.
        ValueError: a type is wrong.
    """

    cdef PtxInjectHandle handle
    cdef readonly size_t num_injects
    """The number of names; `render` takes one stub for each."""

    def __cinit__(self, ptx: str | bytes, types: Sequence[DataType] | None = None):
        self.handle = NULL
        cdef bytes text = _source(ptx, "PTX")
        cdef _Types native = _Types(types)
        cdef const char* begin = PyBytes_AS_STRING(text)
        cdef PtxInjectResult result
        with nogil:
            result = ptx_inject_create_with_types(&self.handle, begin, native.array, native.count)
        if result != PTX_INJECT_SUCCESS:
            _refuse("PTX", begin, native, result)
        _check(ptx_inject_num_injects(self.handle, &self.num_injects))

    def __dealloc__(self):
        ptx_inject_destroy(self.handle)

    @property
    def injects(self) -> tuple[Inject, ...]:
        """The `Inject` of each name, in order of appearance; made at each access."""
        return tuple([self._inject(index) for index in range(self.num_injects)])

    def names(self) -> list[str]:
        """The names in order of appearance, as a list."""
        cdef const char* name
        cdef list names = []
        cdef size_t index
        for index in range(self.num_injects):
            _check(ptx_inject_inject_info_by_index(self.handle, index, &name, NULL, NULL))
            names.append(name.decode("ascii"))
        return names

    def info(self, name: object) -> Inject:
        """The `Inject` with this name. Raises KeyError."""
        cdef size_t index = 0
        cdef bytes encoded
        cdef PtxInjectResult result
        if isinstance(name, str) and name.isascii() and "\0" not in name:
            encoded = name.encode()
            result = ptx_inject_inject_info_by_name(self.handle, PyBytes_AS_STRING(encoded), &index, NULL, NULL)
            if result != PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND:
                _check(result)
                return self._inject(index)
        raise KeyError(name)

    def render(self, stubs: Sequence[str | bytes]) -> bytes:
        """The PTX with a stub in every site, as bytes.

        Args:
            stubs: sequence of str or bytes, in the order of the names' first appearance (see `Inject.index`).

        Raises:
            ValueError: the number of stubs is not `num_injects`, or a stub holds a NUL.
        """
        cdef list texts = [_encoded(stub, "stub") for stub in stubs]
        cdef size_t num_stubs = len(texts), i, num_bytes = 0
        cdef const char** pointers = NULL
        cdef size_t* lengths = NULL
        cdef bytes rendered
        cdef bytes stub_text
        cdef char* buffer
        cdef PtxInjectResult result
        if num_stubs != self.num_injects:
            raise ValueError(f"stubs: {num_stubs}, but the PTX has sites of {self.num_injects} names")
        try:
            pointers = <const char**>PyMem_Malloc((num_stubs + 1) * sizeof(char*))
            lengths = <size_t*>PyMem_Malloc((num_stubs + 1) * sizeof(size_t))
            if pointers == NULL or lengths == NULL:
                raise MemoryError
            for i in range(num_stubs):
                stub_text = texts[i]
                pointers[i] = PyBytes_AS_STRING(stub_text)
                lengths[i] = len(stub_text)
            _check(ptx_inject_render_ptx_sized(self.handle, pointers, lengths, num_stubs, NULL, 0, &num_bytes))
            # A bytes object has room for the final NUL that the library writes.
            rendered = PyBytes_FromStringAndSize(NULL, num_bytes - 1)
            buffer = PyBytes_AS_STRING(rendered)
            with nogil:
                result = ptx_inject_render_ptx_sized(self.handle, pointers, lengths, num_stubs, buffer, num_bytes, &num_bytes)
            _check(result)
            return rendered
        finally:
            PyMem_Free(pointers)
            PyMem_Free(lengths)

    cdef object _inject(self, size_t index):
        cdef const char* name
        cdef size_t num_args, num_sites, arg_idx
        _check(ptx_inject_inject_info_by_index(self.handle, index, &name, &num_args, &num_sites))
        variables = []
        for arg_idx in range(num_args):
            variables.append(self._variable(index, arg_idx))
        return Inject(name.decode(), index, num_sites, tuple(variables))

    cdef object _variable(self, size_t index, size_t arg_idx):
        cdef const char* name
        cdef const char* register
        cdef const char* register_type
        cdef const char* data_type
        cdef PtxInjectMutType mut_type
        _check(
            ptx_inject_variable_info_by_index(
                self.handle, index, arg_idx, &name, &register, &mut_type, &register_type, &data_type
            )
        )
        return Variable(name.decode(), register.decode(), _MUTABILITY[mut_type], register_type.decode(), data_type.decode())


cdef class _Types:
    """Types in the library's form, NULL for None. Owns their texts."""

    cdef PtxInjectDataTypeInfo* array
    cdef size_t count
    cdef list texts

    def __cinit__(self, types):
        cdef bytes name, register_type, mov_postfix, register_cast_str
        cdef PtxInjectDataTypeInfo* info
        self.array = NULL
        self.count = 0
        self.texts = []
        if types is None:
            return
        types = [DataType(*data_type) for data_type in types]
        self.array = <PtxInjectDataTypeInfo*>PyMem_Malloc((len(types) + 1) * sizeof(PtxInjectDataTypeInfo))
        if self.array == NULL:
            raise MemoryError
        for data_type in types:
            if len(data_type.register_char) != 1 or not data_type.register_char.isascii():
                raise ValueError(f"type {data_type.name!r}: register_char is {data_type.register_char!r}, expected one letter")
            name = _encoded(data_type.name, "type")
            register_type = _encoded(data_type.register_type, "register_type")
            mov_postfix = _encoded(data_type.mov_postfix, "mov_postfix")
            register_cast_str = _encoded(data_type.register_cast_str, "register_cast_str")
            self.texts.append((name, register_type, mov_postfix, register_cast_str))
            info = &self.array[self.count]
            info.name = PyBytes_AS_STRING(name)
            info.register_type = PyBytes_AS_STRING(register_type)
            info.mov_postfix = PyBytes_AS_STRING(mov_postfix)
            info.register_char = <char>ord(data_type.register_char)
            info.register_cast_str = PyBytes_AS_STRING(register_cast_str)
            self.count += 1

    def __dealloc__(self):
        PyMem_Free(self.array)


cdef object _refuse(str language, const char* text, _Types types, PtxInjectResult result):
    """Raises an error about what is wrong with a text or with the types."""
    cdef PtxInjectPlace place
    if language == "CUDA":
        ptx_inject_diagnose_cuda(text, types.array, types.count, &place)
    else:
        ptx_inject_diagnose_ptx(text, types.array, types.count, &place)
    if place.line > 0:
        raise AnnotationError(language, place.line, place.column, place.reason.decode())
    if result == PTX_INJECT_ERROR_INVALID_INPUT:
        raise ValueError(place.reason.decode())
    _check(result)


def _source(text, language):
    """A text to parse, as bytes without a NUL."""
    try:
        encoded = _bytes(text, language)
    except UnicodeEncodeError as error:
        before = text[: error.start].encode()
        reason = "half of a surrogate pair, which is not a character"
    else:
        if b"\0" not in encoded:
            return encoded
        before = encoded[: encoded.index(0)]
        reason = "a NUL byte, which ends a text"
    raise AnnotationError(language, before.count(b"\n") + 1, len(before) - before.rfind(b"\n"), reason)


def _encoded(text, what):
    """A stub or a part of a type."""
    encoded = _bytes(text, what)
    if b"\0" in encoded:
        raise ValueError(f"{what}: holds a NUL at byte {encoded.index(0)}")
    return encoded


def _bytes(text, what):
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"{what}: expected str or bytes, not {type(text).__name__}")


cdef int _check(PtxInjectResult result) except -1:
    """Every C result comes through here."""
    if result == PTX_INJECT_ERROR_OUT_OF_MEMORY:
        raise MemoryError("no memory for annotated PTX")
    if result != PTX_INJECT_SUCCESS:
        raise ValueError(f"PTX Inject refused its input: {ptx_inject_result_to_string(result).decode()}")
    return 0
