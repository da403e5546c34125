# cython: language_level=3, freethreading_compatible=True
"""PTX Inject: annotated PTX in, its sites by name, and PTX with a stub in every site out.

Owns the handles and the one place where a C error becomes an exception. Knows nothing of programs or of compiling; what a
site is and how it is marked is documented in csrc/ptx_inject.h.
"""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc

cdef extern from *:
    """
    #define PTX_INJECT_IMPLEMENTATION
    #include "ptx_inject.h"
    """

_MUT_TYPES = {PTX_INJECT_MUT_TYPE_IN: "in", PTX_INJECT_MUT_TYPE_OUT: "out", PTX_INJECT_MUT_TYPE_MOD: "mod"}


class Variable(NamedTuple):
    """A variable of a site. register: without the percent sign; kind: `in`, `out` or `mod`; both types as the markers say."""

    name: str
    register: str
    kind: str
    register_type: str
    data_type: str


class Inject(NamedTuple):
    """All sites of one name. index: which stub of `PtxInject.render` is theirs."""

    name: str
    index: int
    num_sites: int
    variables: tuple[Variable, ...]


cdef class PtxInject:
    """Annotated PTX, read once. Immutable, and usable from many threads at once.

    Args:
        ptx: str or bytes, with markers of either form.

    Raises:
        ValueError: the markers are wrong; line, column and reason are named.
    """

    cdef PtxInjectHandle handle
    cdef readonly tuple injects
    cdef dict by_name

    def __cinit__(self, ptx):
        self.handle = NULL
        cdef bytes text = _encoded(ptx, "ptx")
        cdef const char* begin = PyBytes_AS_STRING(text)
        cdef PtxInjectResult result
        cdef PtxInjectPlace place
        with nogil:
            result = ptx_inject_create(&self.handle, begin)
        if result != PTX_INJECT_SUCCESS:
            ptx_inject_diagnose_ptx(begin, NULL, 0, &place)
            if place.line > 0:
                raise ValueError(f"annotated PTX, line {place.line}, column {place.column}: {place.reason.decode()}")
            _check(result)
        self.injects = tuple(self._inject(index) for index in range(self._count()))
        self.by_name = {inject.name: inject for inject in self.injects}

    def __dealloc__(self):
        ptx_inject_destroy(self.handle)

    @property
    def num_injects(self):
        """Number of names; `render` takes one stub for each."""
        return len(self.injects)

    def info(self, name):
        """The `Inject` with this name. Raises KeyError."""
        return self.by_name[name]

    def render(self, stubs):
        """The PTX with a stub in every site, as bytes.

        Args:
            stubs: sequence of str or bytes, in the order of the names' first appearance (see `Inject.index`).

        Raises:
            ValueError: there are not as many as `num_injects`, or one holds a NUL.
        """
        cdef list texts = [_encoded(stub, "stub") for stub in stubs]
        cdef size_t num_stubs = len(texts), i, num_bytes = 0
        cdef const char** pointers = NULL
        cdef size_t* lengths = NULL
        cdef bytes rendered
        cdef bytes stub_text
        cdef char* buffer
        cdef PtxInjectResult result
        if num_stubs != <size_t>len(self.injects):
            raise ValueError(f"stubs: {num_stubs}, but the PTX has sites of {len(self.injects)} names")
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
            # The NUL that the library writes has its place behind every bytes object.
            rendered = PyBytes_FromStringAndSize(NULL, num_bytes - 1)
            buffer = PyBytes_AS_STRING(rendered)
            with nogil:
                result = ptx_inject_render_ptx_sized(self.handle, pointers, lengths, num_stubs, buffer, num_bytes, &num_bytes)
            _check(result)
            return rendered
        finally:
            PyMem_Free(pointers)
            PyMem_Free(lengths)

    cdef size_t _count(self) except? 0:
        cdef size_t count = 0
        _check(ptx_inject_num_injects(self.handle, &count))
        return count

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
        cdef PtxInjectMutType kind
        _check(
            ptx_inject_variable_info_by_index(
                self.handle, index, arg_idx, &name, &register, &kind, &register_type, &data_type
            )
        )
        return Variable(name.decode(), register.decode(), _MUT_TYPES[kind], register_type.decode(), data_type.decode())


def _encoded(text, what):
    encoded = text.encode() if isinstance(text, str) else bytes(text)
    if b"\0" in encoded:
        raise ValueError(f"{what}: holds a NUL at byte {encoded.index(0)}")
    return encoded


cdef int _check(PtxInjectResult result) except -1:
    """Every C result comes through here."""
    if result == PTX_INJECT_ERROR_OUT_OF_MEMORY:
        raise MemoryError("no memory for annotated PTX")
    if result != PTX_INJECT_SUCCESS:
        raise ValueError(f"PTX Inject refused its input: {ptx_inject_result_to_string(result).decode()}")
    return 0
