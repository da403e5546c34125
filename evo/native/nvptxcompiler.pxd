cdef extern from "nvPTXCompiler.h" nogil:
    ctypedef struct nvPTXCompiler:
        pass
    ctypedef nvPTXCompiler* nvPTXCompilerHandle
    ctypedef enum nvPTXCompileResult:
        NVPTXCOMPILE_SUCCESS
        NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE
        NVPTXCOMPILE_ERROR_INVALID_INPUT
        NVPTXCOMPILE_ERROR_COMPILATION_FAILURE
        NVPTXCOMPILE_ERROR_INTERNAL
        NVPTXCOMPILE_ERROR_OUT_OF_MEMORY
        NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE
        NVPTXCOMPILE_ERROR_UNSUPPORTED_PTX_VERSION
        NVPTXCOMPILE_ERROR_UNSUPPORTED_DEVSIDE_SYNC
        NVPTXCOMPILE_ERROR_CANCELLED

    nvPTXCompileResult nvPTXCompilerGetVersion(unsigned int* major, unsigned int* minor)
    nvPTXCompileResult nvPTXCompilerCreate(nvPTXCompilerHandle* compiler, size_t ptx_length, const char* ptx)
    nvPTXCompileResult nvPTXCompilerDestroy(nvPTXCompilerHandle* compiler)
    nvPTXCompileResult nvPTXCompilerCompile(nvPTXCompilerHandle compiler, int num_options, const char* const* options)
    nvPTXCompileResult nvPTXCompilerGetCompiledProgramSize(nvPTXCompilerHandle compiler, size_t* num_bytes)
    nvPTXCompileResult nvPTXCompilerGetCompiledProgram(nvPTXCompilerHandle compiler, void* program)
    nvPTXCompileResult nvPTXCompilerGetErrorLogSize(nvPTXCompilerHandle compiler, size_t* num_bytes)
    nvPTXCompileResult nvPTXCompilerGetErrorLog(nvPTXCompilerHandle compiler, char* log)
