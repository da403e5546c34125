cdef extern from "ptx_inject.h" nogil:
    ctypedef enum PtxInjectResult:
        PTX_INJECT_SUCCESS
        PTX_INJECT_ERROR_INVALID_INPUT
        PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND
        PTX_INJECT_ERROR_OUT_OF_MEMORY

    ctypedef enum PtxInjectMutType:
        PTX_INJECT_MUT_TYPE_OUT
        PTX_INJECT_MUT_TYPE_MOD
        PTX_INJECT_MUT_TYPE_IN

    ctypedef struct PtxInjectPlace:
        size_t line
        size_t column
        const char* reason

    ctypedef struct PtxInjectHandleImpl:
        pass
    ctypedef PtxInjectHandleImpl* PtxInjectHandle
    ctypedef struct PtxInjectDataTypeInfo:
        const char* name
        const char* register_type
        const char* mov_postfix
        char register_char
        const char* register_cast_str

    const char* ptx_inject_result_to_string(PtxInjectResult)
    const PtxInjectDataTypeInfo* ptx_inject_default_types(size_t*)
    PtxInjectResult ptx_inject_process_cuda(const char*, const PtxInjectDataTypeInfo*, size_t, char*, size_t, size_t*)
    PtxInjectResult ptx_inject_diagnose_cuda(const char*, const PtxInjectDataTypeInfo*, size_t, PtxInjectPlace*)
    PtxInjectResult ptx_inject_create_with_types(PtxInjectHandle*, const char*, const PtxInjectDataTypeInfo*, size_t)
    PtxInjectResult ptx_inject_diagnose_ptx(const char*, const PtxInjectDataTypeInfo*, size_t, PtxInjectPlace*)
    PtxInjectResult ptx_inject_destroy(PtxInjectHandle)
    PtxInjectResult ptx_inject_num_injects(PtxInjectHandle, size_t*)
    PtxInjectResult ptx_inject_inject_info_by_name(PtxInjectHandle, const char*, size_t*, size_t*, size_t*)
    PtxInjectResult ptx_inject_inject_info_by_index(PtxInjectHandle, size_t, const char**, size_t*, size_t*)
    PtxInjectResult ptx_inject_variable_info_by_index(
        PtxInjectHandle, size_t, size_t, const char**, const char**, PtxInjectMutType*, const char**, const char**
    )
    PtxInjectResult ptx_inject_render_ptx_sized(
        PtxInjectHandle, const char* const*, const size_t*, size_t, char*, size_t, size_t*
    )
