/*
 * Fuzz target: any text gives a handle with consistent answers that renders, or an error with a place in the text.
 */

#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include "fuzz_text.h"

static const char fragments[] =
    "// PTX_INJECT_START s\n|// PTX_INJECT_START s\n|// PTX_INJECT_START t\n|// PTX_INJECT_START t\n|"
    "\t// PTX_INJECT_START u\n|// PTX_INJECT_END\n|// PTX_INJECT_END\n|// PTX_INJECT_END\n|\t// PTX_INJECT_END\r\n|"
    "// PTX_INJECT_START |// PTX_INJECT_END|// PTX_INJECT_START v\n// _x0 i f32 F32 x\n// PTX_INJECT_END\n|"
    "\t// PTX_INJECT_START w\n\t// %f1 in f32 x\n\t// PTX_INJECT_END\n|// _x0 i f32 F32 x\n|// _x1 m u32 U32 y\n|"
    "// acc o b16 F16 z\n|// %f1 in f32 x\n|// %r2 mod u32 y\n|\t// %rs3 out f16 z\r\n|// 5 in s32 one\n|// %f9 in f32 x\n|"
    "\r\n|\n| |\t|//|// |%f1|%_x1|_x7|f1|in |out |mod |i |o |m |f32 |f16X2 |u8 |x|y[0]|a b|s|mov.u32 %r1, 0;\n|PTX_INJECT_|"
    "// begin inline asm\n|/*|/*\n|*/|*/\n|\"|\x80|\x1f";

static size_t num_lines(const char* text) {
    size_t count = 1;
    for (; *text != '\0'; ++text) count += *text == '\n';
    return count;
}

static void check_refused(const char* ptx, PtxInjectResult result) {
    PtxInjectPlace place = {99, 99, NULL};
    REQUIRE(result == PTX_INJECT_ERROR_FORMATTING || result == PTX_INJECT_ERROR_INCONSISTENT_INJECTION);
    REQUIRE(ptx_inject_diagnose_ptx(ptx, NULL, 0, &place) == result);
    REQUIRE(place.line >= 1 && place.line <= num_lines(ptx));
    REQUIRE(place.column >= 1 && place.column <= strlen(ptx) + 1);
    REQUIRE(place.reason != NULL && place.reason[0] != '\0');
}

#define IDENTIFIER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"

/* Every variable is found by its name, and its register can be written after a percent sign. */
static size_t check_inject(PtxInjectHandle handle, size_t inject_idx) {
    const char* name = NULL;
    size_t num_args = 0, num_sites = 0, found = 0, i;
    REQUIRE(ptx_inject_inject_info_by_index(handle, inject_idx, &name, &num_args, &num_sites) == PTX_INJECT_SUCCESS);
    REQUIRE(name[0] != '\0' && strspn(name, IDENTIFIER) == strlen(name) && num_sites > 0);
    REQUIRE(ptx_inject_inject_info_by_name(handle, name, &found, NULL, NULL) == PTX_INJECT_SUCCESS && found == inject_idx);
    for (i = 0; i < num_args; ++i) {
        const char *variable = NULL, *register_name = NULL, *register_type = NULL, *data_type = NULL;
        PtxInjectMutType mut_type = PTX_INJECT_MUT_TYPE_NUM_ENUMS;
        REQUIRE(
            ptx_inject_variable_info_by_index(
                handle, inject_idx, i, &variable, &register_name, &mut_type, &register_type, &data_type
            ) == PTX_INJECT_SUCCESS
        );
        REQUIRE(variable[0] != '\0' && register_type[0] != '\0' && data_type[0] != '\0');
        REQUIRE(mut_type < PTX_INJECT_MUT_TYPE_NUM_ENUMS);
        REQUIRE(register_name[0] != '\0' && strspn(register_name, IDENTIFIER) == strlen(register_name));
        REQUIRE(
            ptx_inject_variable_info_by_name(handle, inject_idx, variable, &found, NULL, NULL, NULL, NULL) == PTX_INJECT_SUCCESS
        );
        REQUIRE(found == i);
    }
    REQUIRE(
        ptx_inject_variable_info_by_name(handle, inject_idx, "", NULL, NULL, NULL, NULL, NULL) ==
        PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND
    );
    return num_sites;
}

/* A stub that the text cannot contain is rendered once for each site, and the result has no sites left. */
static void check_rendered(PtxInjectHandle handle, size_t num_injects, size_t num_sites, size_t shortage) {
    const char** stubs = (const char**)malloc((num_injects + 1) * sizeof *stubs);
    size_t size = 0, written = 0, num_stubs = 0, i;
    PtxInjectHandle again = NULL;
    char* buffer;
    const char* at;
    REQUIRE(stubs != NULL);
    for (i = 0; i < num_injects; ++i) stubs[i] = "\x01\x02";
    REQUIRE(ptx_inject_render_ptx(handle, stubs, num_injects, NULL, 0, &size) == PTX_INJECT_SUCCESS);
    buffer = (char*)malloc(size);
    REQUIRE(buffer != NULL);
    REQUIRE(ptx_inject_render_ptx(handle, stubs, num_injects, buffer, size, &written) == PTX_INJECT_SUCCESS);
    REQUIRE(written + 1 == size && strlen(buffer) == written);
    for (at = buffer; (at = strstr(at, "\x01\x02")) != NULL; ++at) ++num_stubs;
    REQUIRE(num_stubs >= num_sites);
    REQUIRE(ptx_inject_create(&again, buffer) == PTX_INJECT_SUCCESS);
    REQUIRE(ptx_inject_num_injects(again, &i) == PTX_INJECT_SUCCESS && i == 0);
    REQUIRE(ptx_inject_destroy(again) == PTX_INJECT_SUCCESS);
    free(buffer);
    if (shortage > 0 && shortage <= size) {
        buffer = (char*)malloc(size - shortage + 1);
        REQUIRE(buffer != NULL);
        REQUIRE(
            ptx_inject_render_ptx(handle, stubs, num_injects, buffer, size - shortage, &written) ==
            PTX_INJECT_ERROR_INSUFFICIENT_BUFFER
        );
        REQUIRE(written == size);
        free(buffer);
    }
    free((void*)stubs);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    char* ptx = fuzz_text(data, size, fragments);
    PtxInjectHandle handle = NULL;
    const PtxInjectResult result = ptx_inject_create(&handle, ptx);
    if (result == PTX_INJECT_SUCCESS) {
        size_t num_injects = 0, num_sites = 0, i;
        REQUIRE(ptx_inject_num_injects(handle, &num_injects) == PTX_INJECT_SUCCESS);
        for (i = 0; i < num_injects; ++i) num_sites += check_inject(handle, i);
        check_rendered(handle, num_injects, num_sites, size > 0 ? data[size - 1] : 0);
    } else {
        REQUIRE(handle == NULL);
        check_refused(ptx, result);
    }
    REQUIRE(ptx_inject_destroy(handle) == PTX_INJECT_SUCCESS);
    free(ptx);
    return 0;
}
