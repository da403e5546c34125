/*
 * Tests of ptx_inject.h compiled with its options: an allocator that fails on demand, and a limit on names.
 */

#include <stddef.h>
#include <stdlib.h>

static size_t num_allocations;
static size_t num_frees;
static size_t failing_allocation; /* counted from 1; 0: none fails */

static void* counted_realloc(void* pointer, size_t size) {
    void* result = NULL;
    if (++num_allocations != failing_allocation) {
        result = realloc(pointer, size);
        num_frees += pointer != NULL && result != NULL; /* the old one is gone */
    }
    return result;
}

static void counted_free(void* pointer) {
    num_frees += pointer != NULL;
    free(pointer);
}

#define PTX_INJECT_MALLOC(size) counted_realloc(NULL, size)
#define PTX_INJECT_REALLOC(pointer, size) counted_realloc(pointer, size)
#define PTX_INJECT_FREE(pointer) counted_free(pointer)
#define PTX_INJECT_MAX_UNIQUE_INJECTS 300
#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include "check.h"

#define CHECK_RESULT(call, result) CHECK_TEXT(ptx_inject_result_to_string(call), #result)

/* Sites of both forms, each with its own name and variables: every array has to grow. To be freed. */
static char* make_ptx(unsigned num_names) {
    char* ptx = (char*)malloc(num_names * 200u + 1);
    size_t length = 0;
    unsigned i;
    ptx[0] = '\0';
    for (i = 0; i < num_names; ++i) {
        if (i % 2 == 0) {
            length += (size_t)sprintf(
                ptx + length, "// PTX_INJECT_START n%u\n// _x0 m f32 F32 a%u\n// _x1 i f32 F32 b\n// PTX_INJECT_END\n", i, i
            );
        } else {
            length += (size_t)sprintf(
                ptx + length, "\t// PTX_INJECT_START n%u\n\t// %%f1 mod f32 a%u\n\t// %%f2 in s32 b\n\t// PTX_INJECT_END\n", i, i
            );
        }
    }
    return ptx;
}

TEST(test_memory_that_fails_anywhere_is_reported_and_nothing_is_lost) {
    char* ptx = make_ptx(300);
    size_t num_needed;
    PtxInjectHandle handle = NULL;

    failing_allocation = 0;
    num_allocations = 0;
    num_frees = 0;
    CHECK_RESULT(ptx_inject_create(&handle, ptx), PTX_INJECT_SUCCESS);
    num_needed = num_allocations;
    CHECK_RESULT(ptx_inject_destroy(handle), PTX_INJECT_SUCCESS);
    CHECK_UINT(num_frees, num_allocations);
    CHECK(num_needed > 10);

    for (failing_allocation = 1; failing_allocation <= num_needed; ++failing_allocation) {
        PtxInjectPlace place;
        num_allocations = 0;
        num_frees = 0;
        handle = (PtxInjectHandle)&handle;
        CHECK_RESULT(ptx_inject_create(&handle, ptx), PTX_INJECT_ERROR_OUT_OF_MEMORY);
        CHECK(handle == NULL);
        CHECK_UINT(num_frees + 1, num_allocations); /* all but the one that failed */
        num_allocations = 0;
        CHECK_RESULT(ptx_inject_diagnose_ptx(ptx, NULL, 0, &place), PTX_INJECT_ERROR_OUT_OF_MEMORY);
        CHECK_UINT(place.line, 0);
        CHECK_TEXT(place.reason, "out of memory");
    }
    failing_allocation = 0;
    free(ptx);
}

TEST(test_rendering_and_queries_allocate_nothing) {
    char* ptx = make_ptx(2);
    const char* stubs[] = {"a", "b"};
    char buffer[1000];
    size_t size = 0;
    PtxInjectHandle handle = NULL;

    CHECK_RESULT(ptx_inject_create(&handle, ptx), PTX_INJECT_SUCCESS);
    num_allocations = 0;
    CHECK_RESULT(ptx_inject_render_ptx(handle, stubs, 2, buffer, sizeof buffer, &size), PTX_INJECT_SUCCESS);
    CHECK_RESULT(ptx_inject_inject_info_by_name(handle, "n1", &size, NULL, NULL), PTX_INJECT_SUCCESS);
    CHECK_RESULT(ptx_inject_variable_info_by_name(handle, 1, "b", &size, NULL, NULL, NULL, NULL), PTX_INJECT_SUCCESS);
    CHECK_RESULT(
        ptx_inject_process_cuda("/* PTX_INJECT a\nin f32 x\n*/", NULL, 0, buffer, sizeof buffer, &size), PTX_INJECT_SUCCESS
    );
    CHECK_UINT(num_allocations, 0);
    CHECK_RESULT(ptx_inject_destroy(handle), PTX_INJECT_SUCCESS);
    free(ptx);
}

TEST(test_names_beyond_the_limit_are_refused_where_they_stand) {
    char* ptx = make_ptx(301);
    PtxInjectHandle handle = NULL;
    PtxInjectPlace place;

    CHECK_RESULT(ptx_inject_create(&handle, ptx), PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED);
    CHECK(handle == NULL);
    CHECK_RESULT(ptx_inject_diagnose_ptx(ptx, NULL, 0, &place), PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED);
    CHECK_UINT(place.line, 1201);
    free(ptx);
}
