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

    nvPTXCompileResult nvPTXCompilerGetVersion(unsigned int*, unsigned int*)
    nvPTXCompileResult nvPTXCompilerCreate(nvPTXCompilerHandle*, size_t, const char*)
    nvPTXCompileResult nvPTXCompilerDestroy(nvPTXCompilerHandle*)
    nvPTXCompileResult nvPTXCompilerCompile(nvPTXCompilerHandle, int, const char* const*)
    nvPTXCompileResult nvPTXCompilerGetCompiledProgramSize(nvPTXCompilerHandle, size_t*)
    nvPTXCompileResult nvPTXCompilerGetCompiledProgram(nvPTXCompilerHandle, void*)
    nvPTXCompileResult nvPTXCompilerGetErrorLogSize(nvPTXCompilerHandle, size_t*)
    nvPTXCompileResult nvPTXCompilerGetErrorLog(nvPTXCompilerHandle, char*)
