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

    const char* ptx_inject_result_to_string(PtxInjectResult result)
    const PtxInjectDataTypeInfo* ptx_inject_default_types(size_t* num_types_out)
    PtxInjectResult ptx_inject_process_cuda(
        const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, char* buffer, size_t buffer_size,
        size_t* bytes_written_out
    )
    PtxInjectResult ptx_inject_diagnose_cuda(
        const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out
    )
    PtxInjectResult ptx_inject_create_with_types(
        PtxInjectHandle* handle_out, const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types
    )
    PtxInjectResult ptx_inject_diagnose_ptx(
        const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out
    )
    PtxInjectResult ptx_inject_destroy(PtxInjectHandle handle)
    PtxInjectResult ptx_inject_num_injects(PtxInjectHandle handle, size_t* num_injects_out)
    PtxInjectResult ptx_inject_inject_info_by_name(
        PtxInjectHandle handle, const char* name, size_t* inject_idx_out, size_t* num_args_out, size_t* num_sites_out
    )
    PtxInjectResult ptx_inject_inject_info_by_index(
        PtxInjectHandle handle, size_t inject_idx, const char** name_out, size_t* num_args_out, size_t* num_sites_out
    )
    PtxInjectResult ptx_inject_variable_info_by_index(
        PtxInjectHandle handle, size_t inject_idx, size_t arg_idx, const char** variable_name_out,
        const char** register_name_out, PtxInjectMutType* mut_type_out, const char** register_type_name_out,
        const char** data_type_name_out
    )
    PtxInjectResult ptx_inject_render_ptx_sized(
        PtxInjectHandle handle, const char* const* stubs, const size_t* stub_lengths, size_t num_stubs, char* buffer,
        size_t buffer_size, size_t* bytes_written_out
    )
