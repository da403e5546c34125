# cython: language_level=3, freethreading_compatible=True
"""PTX to cubin by nvPTXCompiler, NVIDIA's assembler as a library: without driver, GPU or nvcc.

Owns the calls to that library, which is linked into this extension alone. Knows nothing of programs, kernels or devices. This
module is optional: a build without the wheel nvidia-nvptxcompiler leaves it out.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc

_RESULT_NAMES = {
    NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE: "invalid compiler handle",
    NVPTXCOMPILE_ERROR_INVALID_INPUT: "invalid input",
    NVPTXCOMPILE_ERROR_COMPILATION_FAILURE: "compilation failed",
    NVPTXCOMPILE_ERROR_INTERNAL: "internal error",
    NVPTXCOMPILE_ERROR_OUT_OF_MEMORY: "out of memory",
    NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE: "nothing was compiled",
    NVPTXCOMPILE_ERROR_UNSUPPORTED_PTX_VERSION: "unsupported PTX version",
    NVPTXCOMPILE_ERROR_UNSUPPORTED_DEVSIDE_SYNC: "unsupported device-side synchronisation",
    NVPTXCOMPILE_ERROR_CANCELLED: "cancelled",
}


class CompileError(Exception):
    """PTX or options were rejected.

    Attributes:
        reason: the meaning of nvPTXCompiler's result code, such as "compilation failed".
        log: the compiler's own messages, with line numbers of the PTX; may be empty.
    """

    reason: str
    log: str

    def __init__(self, reason: str, log: str):
        super().__init__(f"nvPTXCompiler: {reason}" + (f"\n{log}" if log else ""))
        self.reason = reason
        self.log = log

    def __reduce__(self):
        return type(self), (self.reason, self.log)


def version() -> tuple[int, int]:
    """The version of nvPTXCompiler, (major, minor)."""
    cdef unsigned int major = 0
    cdef unsigned int minor = 0
    _check(nvPTXCompilerGetVersion(&major, &minor), NULL)
    return major, minor


def compile(ptx: str | bytes, options: Sequence[str] = ("--gpu-name=sm_90",)) -> bytes:
    """Assembles PTX; the GIL is released.

    Args:
        ptx: a PTX module, str or bytes.
        options: sequence of str, long options of ptxas, such as `--gpu-name=sm_90`, `--opt-level=3`, `--fmad=false`.

    Returns:
        bytes, the cubin.

    Raises:
        CompileError: the PTX or an option was rejected; the exception has the compiler's log.
    """
    cdef nvPTXCompilerHandle compiler = NULL
    cdef const char** native_options = NULL
    cdef const char* text
    cdef size_t length
    cdef size_t num_bytes = 0
    cdef int num_options
    cdef int i
    cdef nvPTXCompileResult result
    cdef bytes cubin
    cdef bytes option
    cdef char* target
    if isinstance(options, (str, bytes)):
        raise TypeError(f"options: expected a sequence of str such as ('--gpu-name=sm_90',), got {options!r}")
    cdef bytes source = ptx.encode() if isinstance(ptx, str) else bytes(ptx)
    cdef list encoded = [text_option.encode() for text_option in options]
    num_options = len(encoded)
    text = PyBytes_AS_STRING(source)
    length = len(source)
    native_options = <const char**>PyMem_Malloc((num_options + 1) * sizeof(char*))
    if native_options == NULL:
        raise MemoryError
    try:
        for i in range(num_options):
            option = encoded[i]
            native_options[i] = PyBytes_AS_STRING(option)
        with nogil:
            result = nvPTXCompilerCreate(&compiler, length, text)
        _check(result, NULL)
        with nogil:
            result = nvPTXCompilerCompile(compiler, num_options, native_options)
        _check(result, compiler)
        _check(nvPTXCompilerGetCompiledProgramSize(compiler, &num_bytes), compiler)
        cubin = PyBytes_FromStringAndSize(NULL, num_bytes)
        target = PyBytes_AS_STRING(cubin)
        _check(nvPTXCompilerGetCompiledProgram(compiler, target), compiler)
        return cubin
    finally:
        PyMem_Free(native_options)
        if compiler != NULL:
            nvPTXCompilerDestroy(&compiler)


cdef _check(nvPTXCompileResult result, nvPTXCompilerHandle compiler):
    """Raises CompileError, with the log of `compiler` unless it is NULL, if the result is an error."""
    cdef size_t num_bytes = 0
    cdef bytes log = b""
    if result == NVPTXCOMPILE_SUCCESS:
        return
    if compiler != NULL and nvPTXCompilerGetErrorLogSize(compiler, &num_bytes) == NVPTXCOMPILE_SUCCESS and num_bytes > 0:
        log = PyBytes_FromStringAndSize(NULL, num_bytes)
        if nvPTXCompilerGetErrorLog(compiler, PyBytes_AS_STRING(log)) != NVPTXCOMPILE_SUCCESS:
            log = b""
    # The size may or may not include the final NUL.
    text = log.split(b"\0", 1)[0].decode(errors="replace").strip()
    raise CompileError(_RESULT_NAMES.get(result, f"result {<int>result}"), text)
