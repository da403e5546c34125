/*
 * Tests of ptx_inject.h: both languages, every query, every error. Expected texts are the guide's listings of PTX Inject or
 * worked out by hand from the contract. Python tests what compilers make of the macros.
 *
 * No test provokes PTX_INJECT_ERROR_INTERNAL, because nothing can. test_ptx_inject_limits.c tests the errors of memory and of
 * PTX_INJECT_MAX_UNIQUE_INJECTS.
 */

#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_RESULT(call, result) CHECK_TEXT(ptx_inject_result_to_string(call), #result)
#define CHECK_SUCCESS(call) CHECK_RESULT(call, PTX_INJECT_SUCCESS)

/* ---- both languages in lines ---- */

/* The processed text in a buffer of exactly its size. To be freed. */
static char* process_with(const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types) {
    size_t size = 0, written = 0;
    char* buffer;
    CHECK_SUCCESS(ptx_inject_process_cuda(cuda, types, num_types, NULL, 0, &size));
    buffer = (char*)calloc(size + 1, 1);
    if (buffer == NULL) abort();
    CHECK_SUCCESS(ptx_inject_process_cuda(cuda, types, num_types, buffer, size, &written));
    CHECK_UINT(written, strlen(buffer));
    CHECK_UINT(size, strlen(buffer) + 1);
    return buffer;
}

static void check_processed(const char* cuda, const char* expected) {
    char* processed = process_with(cuda, NULL, 0);
    CHECK_TEXT(processed, expected);
    free(processed);
}

static void check_same_after_processing(const char* cuda) { check_processed(cuda, cuda); }

/* Rendered in a buffer of exactly the size. To be freed. */
static char* render(PtxInjectHandle handle, const char* const* stubs, size_t num_stubs) {
    size_t size = 0, written = 0;
    char* buffer;
    CHECK_SUCCESS(ptx_inject_render_ptx(handle, stubs, num_stubs, NULL, 0, &size));
    buffer = (char*)calloc(size + 1, 1);
    if (buffer == NULL) abort();
    CHECK_SUCCESS(ptx_inject_render_ptx(handle, stubs, num_stubs, buffer, size, &written));
    CHECK_UINT(written, strlen(buffer));
    CHECK_UINT(size, strlen(buffer) + 1);
    return buffer;
}

static void check_rendered(const char* ptx, const char* const* stubs, size_t num_stubs, const char* expected) {
    PtxInjectHandle handle = NULL;
    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    if (handle != NULL) {
        char* rendered = render(handle, stubs, num_stubs);
        CHECK_TEXT(rendered, expected);
        free(rendered);
    }
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

/* ---- the guide's listings ---- */

static const char guide_cuda[] =
    "    float z;\n    /* PTX_INJECT func\n        in  f32 x\n        mod f32 y\n        out f32 z\n    */\n    f(x, y, z);\n}";

static const char guide_processed[] =
    "    float z;\n    asm(\n        \"// PTX_INJECT_START func\\n\\t\"\n        \"// %0 mod f32 y\\n\\t\"\n"
    "        \"// %1 out f32 z\\n\\t\"\n        \"// %2 in f32 x\\n\\t\"\n        \"// PTX_INJECT_END\"\n"
    "        : \"+f\"(y)\n        , \"=f\"(z)\n        : \"f\"(x)\n    );\n    f(x, y, z);\n}";

/* The unrolled loop of the guide: z is in %f2 at one site and in %f6 at the other. */
#define COMMENT_SITE(z)                                                                                              \
    "\t// PTX_INJECT_START func\n\t// %f5 mod f32 y\n\t// " z " out f32 z\n\t// %f7 in f32 x\n\t// PTX_INJECT_END\n"
#define ENTER "\t.reg .f32 %_x0;\n\tmov.f32 %_x0, %f5;\n\t.reg .f32 %_x1;\n\t.reg .f32 %_x2;\n\tmov.f32 %_x2, %f7;\n"
#define LEAVE(z) "\tmov.f32 %f5, %_x0;\n\tmov.f32 " z ", %_x1;\n\t}\n"
static const char guide_ptx[] = "\tmov.f32 \t%f5, 0f40400000;\n" COMMENT_SITE("%f2") "\t// end\n" COMMENT_SITE("%f6") "\tret;";
static const char guide_rendered[] = "\tmov.f32 \t%f5, 0f40400000;\n"
                                     "\t{\n" ENTER "STUB\n" LEAVE("%f2") "\t// end\n"
                                                                         "\t{\n" ENTER "STUB\n" LEAVE("%f6") "\tret;";

/* The same, as the macro makes it. */
static const char macro_ptx[] =
    "\t{\n" ENTER "\t// PTX_INJECT_START func\n\t// _x0 m f32 F32 y\n\t// _x1 o f32 F32 z\n\t// _x2 i f32 F32 x\n"
    "\t// PTX_INJECT_END\n" LEAVE("%f2") "\tret;";
static const char macro_rendered[] = "\t{\n" ENTER "\tSTUB\n" LEAVE("%f2") "\tret;";

/* With CRLF for each line break. To be freed. */
static char* crlf(const char* text) {
    char* result = (char*)malloc(2 * strlen(text) + 1);
    char* out = result;
    if (result == NULL) abort();
    for (; *text != '\0'; ++text) {
        if (*text == '\n') *out++ = '\r';
        *out++ = *text;
    }
    *out = '\0';
    return result;
}

TEST(test_annotations_are_processed_to_the_guides_text_in_lines_of_either_end) {
    char* cuda = crlf(guide_cuda);
    char* expected = crlf(guide_processed);
    check_processed(guide_cuda, guide_processed);
    check_processed(cuda, expected);
    free(cuda);
    free(expected);
}

/* The comment form gets the same registers and its own movs; in the macro form the stub alone takes a site's place. */
TEST(test_sites_of_both_forms_are_rendered_to_the_guides_text_in_lines_of_either_end) {
    const char* stub = "STUB";
    char* macro = crlf(macro_ptx);
    char* expected = crlf(macro_rendered);
    char* comment = crlf(guide_ptx);
    PtxInjectHandle handle = NULL;
    size_t num_args = 0, num_sites = 0;
    const char* name = NULL;
    check_rendered(guide_ptx, &stub, 1, guide_rendered);
    check_rendered(macro_ptx, &stub, 1, macro_rendered);
    check_rendered(macro, &stub, 1, expected);
    CHECK_SUCCESS(ptx_inject_create(&handle, comment));
    CHECK_SUCCESS(ptx_inject_inject_info_by_name(handle, "func", NULL, &num_args, &num_sites));
    CHECK_UINT(num_args, 3);
    CHECK_UINT(num_sites, 2);
    CHECK_SUCCESS(ptx_inject_variable_info_by_index(handle, 0, 2, &name, NULL, NULL, NULL, NULL));
    CHECK_TEXT(name, "x");
    CHECK_SUCCESS(ptx_inject_destroy(handle));
    free(macro);
    free(expected);
    free(comment);
}

/* ---- queries ---- */

static void check_variable(
    PtxInjectHandle handle, size_t inject_idx, size_t arg_idx, const char* name, const char* register_name,
    PtxInjectMutType mut_type, const char* register_type, const char* data_type
) {
    const char* texts[4] = {"", "", "", ""};
    PtxInjectMutType found_mut_type = PTX_INJECT_MUT_TYPE_NUM_ENUMS;
    size_t found_idx = 99;

    CHECK_SUCCESS(ptx_inject_variable_info_by_index(
        handle, inject_idx, arg_idx, &texts[0], &texts[1], &found_mut_type, &texts[2], &texts[3]
    ));
    CHECK_TEXT(texts[0], name);
    CHECK_TEXT(texts[1], register_name);
    CHECK_UINT(found_mut_type, mut_type);
    CHECK_TEXT(texts[2], register_type);
    CHECK_TEXT(texts[3], data_type);

    texts[1] = texts[2] = texts[3] = "";
    found_mut_type = PTX_INJECT_MUT_TYPE_NUM_ENUMS;
    CHECK_SUCCESS(
        ptx_inject_variable_info_by_name(handle, inject_idx, name, &found_idx, &texts[1], &found_mut_type, &texts[2], &texts[3])
    );
    CHECK_UINT(found_idx, arg_idx);
    CHECK_TEXT(texts[1], register_name);
    CHECK_UINT(found_mut_type, mut_type);
    CHECK_TEXT(texts[2], register_type);
    CHECK_TEXT(texts[3], data_type);
}

static const char two_names_ptx[] =
    "// PTX_INJECT_START first\n// _x0 o u32 MASK z\n// acc$1 m b16 F16 a[i + 1]\n// _x2 i f32 F32 v.w\n"
    "// PTX_INJECT_END\n  //\tPTX_INJECT_START  second  \n  //\t%r4  out  f16X2\tpair \n\n  //%rd9 in u32 p->q\n"
    "  // 0f3F800000 in f32 one\n  // PTX_INJECT_END\t\n// PTX_INJECT_START first\n// _x0 o u32 MASK z\n"
    "// acc$1 m b16 F16 a[i + 1]\n// _x2 i f32 F32 v.w\n// PTX_INJECT_END\n";

TEST(test_queries_tell_all_of_every_variable) {
    char ptx[sizeof two_names_ptx];
    PtxInjectHandle handle = NULL;
    size_t num_injects = 0, inject_idx = 99, num_args = 0, num_sites = 0;
    const char* name = "";

    memcpy(ptx, two_names_ptx, sizeof ptx);
    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    memset(ptx, 'x', strlen(ptx)); /* no longer needed */
    CHECK_SUCCESS(ptx_inject_num_injects(handle, &num_injects));
    CHECK_UINT(num_injects, 2);

    CHECK_SUCCESS(ptx_inject_inject_info_by_name(handle, "first", &inject_idx, &num_args, &num_sites));
    CHECK_UINT(inject_idx, 0);
    CHECK_UINT(num_args, 3);
    CHECK_UINT(num_sites, 2);
    CHECK_SUCCESS(ptx_inject_inject_info_by_index(handle, 1, &name, &num_args, &num_sites));
    CHECK_TEXT(name, "second");
    CHECK_UINT(num_args, 3);
    CHECK_UINT(num_sites, 1);

    check_variable(handle, 0, 0, "z", "_x0", PTX_INJECT_MUT_TYPE_OUT, "u32", "MASK");
    check_variable(handle, 0, 1, "a[i + 1]", "acc$1", PTX_INJECT_MUT_TYPE_MOD, "b16", "F16");
    check_variable(handle, 0, 2, "v.w", "_x2", PTX_INJECT_MUT_TYPE_IN, "f32", "F32");
    check_variable(handle, 1, 0, "pair", "_x0", PTX_INJECT_MUT_TYPE_OUT, "b32", "f16X2");
    check_variable(handle, 1, 1, "p->q", "_x1", PTX_INJECT_MUT_TYPE_IN, "u32", "u32");
    check_variable(handle, 1, 2, "one", "_x2", PTX_INJECT_MUT_TYPE_IN, "f32", "f32");
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_any_out_pointer_of_a_query_may_be_null) {
    const char* ptx = two_names_ptx;
    PtxInjectHandle handle = NULL;
    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    CHECK_SUCCESS(ptx_inject_num_injects(handle, NULL));
    CHECK_SUCCESS(ptx_inject_inject_info_by_name(handle, "first", NULL, NULL, NULL));
    CHECK_SUCCESS(ptx_inject_inject_info_by_index(handle, 0, NULL, NULL, NULL));
    CHECK_SUCCESS(ptx_inject_variable_info_by_name(handle, 0, "z", NULL, NULL, NULL, NULL, NULL));
    CHECK_SUCCESS(ptx_inject_variable_info_by_index(handle, 0, 0, NULL, NULL, NULL, NULL, NULL));
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_queries_for_what_is_not_there_give_their_codes) {
    const char* ptx = two_names_ptx;
    PtxInjectHandle handle = NULL;
    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    CHECK_RESULT(ptx_inject_inject_info_by_name(handle, "third", NULL, NULL, NULL), PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND);
    CHECK_RESULT(ptx_inject_inject_info_by_name(handle, "firs", NULL, NULL, NULL), PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND);
    CHECK_RESULT(ptx_inject_inject_info_by_name(handle, "", NULL, NULL, NULL), PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND);
    CHECK_RESULT(ptx_inject_inject_info_by_index(handle, 2, NULL, NULL, NULL), PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX);
    CHECK_RESULT(
        ptx_inject_variable_info_by_name(handle, 0, "pair", NULL, NULL, NULL, NULL, NULL),
        PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND
    );
    CHECK_RESULT(ptx_inject_variable_info_by_name(handle, 2, "z", NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(
        ptx_inject_variable_info_by_index(handle, 2, 0, NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX
    );
    CHECK_RESULT(ptx_inject_variable_info_by_index(handle, 0, 3, NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_results_have_the_contracts_numbers_and_names) {
    static const char* const names[] = {
        "PTX_INJECT_SUCCESS",
        "PTX_INJECT_ERROR_FORMATTING",
        "PTX_INJECT_ERROR_INSUFFICIENT_BUFFER",
        "PTX_INJECT_ERROR_INTERNAL",
        "PTX_INJECT_ERROR_INVALID_INPUT",
        "PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED",
        "PTX_INJECT_ERROR_WRONG_NUM_STUBS",
        "PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX",
        "PTX_INJECT_ERROR_INCONSISTENT_INJECTION",
        "PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND",
        "PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND",
        "PTX_INJECT_ERROR_OUT_OF_MEMORY",
        "PTX_INJECT_RESULT_UNKNOWN"
    };
    size_t i;
    for (i = 0; i < COUNT(names); ++i) CHECK_TEXT(ptx_inject_result_to_string((PtxInjectResult)i), names[i]);
    CHECK_UINT(PTX_INJECT_RESULT_NUM_ELEMS, 12);
    CHECK_UINT(PTX_INJECT_MUT_TYPE_OUT, 0);
    CHECK_UINT(PTX_INJECT_MUT_TYPE_MOD, 1);
    CHECK_UINT(PTX_INJECT_MUT_TYPE_IN, 2);
}

/* ---- rendering ---- */

TEST(test_a_text_without_sites_has_no_injects_and_renders_to_itself) {
    static const char* const texts[] = {
        "",
        "\n",
        ".version 9.0\n.target sm_90\n",
        "// a PTX_INJECT_START b\n",
        "mov.u32 %r1, 0; // PTX_INJECT_START not the first thing on its line\n",
        "// PTX_INJECT_STARTED x\n// XPTX_INJECT_START x\n// PTX_INJECT_ENDING\n/ / PTX_INJECT_END\n",
        "PTX_INJECT_START x",
        "/PTX_INJECT_END",
        "//kernel.cu:5     \"// PTX_INJECT_START func\\n\\t\"\n"
    };
    size_t i;
    for (i = 0; i < COUNT(texts); ++i) {
        PtxInjectHandle handle = NULL;
        size_t num_injects = 99;
        CHECK_SUCCESS(ptx_inject_create(&handle, texts[i]));
        CHECK_SUCCESS(ptx_inject_num_injects(handle, &num_injects));
        CHECK_UINT(num_injects, 0);
        CHECK_RESULT(ptx_inject_inject_info_by_name(handle, "x", NULL, NULL, NULL), PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND);
        CHECK_SUCCESS(ptx_inject_destroy(handle));
        check_rendered(texts[i], NULL, 0, texts[i]);
    }
}

TEST(test_every_smaller_buffer_is_refused_with_the_size_that_is_needed) {
    const char* stub = "add.f32 %_x1, %_x0, %_x2;";
    const char* ptx = guide_ptx;
    PtxInjectHandle handle = NULL;
    size_t size = 0, written = 0, i;

    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    CHECK_SUCCESS(ptx_inject_render_ptx(handle, &stub, 1, NULL, 0, &size));
    for (i = 0; i < size; ++i) {
        char* buffer = (char*)malloc(i + 1); /* a sanitizer sees writes past the end */
        CHECK_RESULT(ptx_inject_render_ptx(handle, &stub, 1, buffer, i, &written), PTX_INJECT_ERROR_INSUFFICIENT_BUFFER);
        CHECK_UINT(written, size);
        free(buffer);
    }
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_stubs_of_known_lengths_need_no_end) {
    const char stub[4] = {'S', 'T', 'U', 'B'};
    const char* stubs[] = {stub};
    const size_t length = sizeof stub;
    const char* ptx = macro_ptx;
    const char* expected = macro_rendered;
    PtxInjectHandle handle = NULL;
    size_t size = 0, written = 0;
    char* buffer;

    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    CHECK_SUCCESS(ptx_inject_render_ptx_sized(handle, stubs, &length, 1, NULL, 0, &size));
    buffer = (char*)malloc(size);
    CHECK_SUCCESS(ptx_inject_render_ptx_sized(handle, stubs, &length, 1, buffer, size, &written));
    CHECK_UINT(written, strlen(buffer));
    CHECK_UINT(size, strlen(buffer) + 1);
    CHECK_TEXT(buffer, expected);
    CHECK_RESULT(
        ptx_inject_render_ptx_sized(handle, stubs, &length, 1, buffer, size - 1, &written), PTX_INJECT_ERROR_INSUFFICIENT_BUFFER
    );
    free(buffer);
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_a_size_beyond_all_memory_is_never_taken_for_a_small_one) {
    static const char lines[] = "// PTX_INJECT_START a\n// PTX_INJECT_END\n// PTX_INJECT_START a\n// PTX_INJECT_END\n";
    const char* stub = "";
    const size_t length = (size_t)-1 / 2 + 2;
    char buffer[64];
    const char* ptx = lines;
    PtxInjectHandle handle = NULL;
    size_t size = 0;

    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    CHECK_SUCCESS(ptx_inject_render_ptx_sized(handle, &stub, &length, 1, NULL, 0, &size));
    CHECK_UINT(size, (size_t)-1);
    CHECK_RESULT(
        ptx_inject_render_ptx_sized(handle, &stub, &length, 1, buffer, sizeof buffer, &size), PTX_INJECT_ERROR_INSUFFICIENT_BUFFER
    );
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_a_count_that_is_not_wanted_may_be_null) {
    static const char* const cuda = "/* PTX_INJECT a */";
    const char* stub = "stub";
    const size_t length = 4;
    PtxInjectHandle handle = NULL;
    char buffer[256];

    CHECK_SUCCESS(ptx_inject_process_cuda(cuda, NULL, 0, NULL, 0, NULL));
    CHECK_RESULT(ptx_inject_process_cuda(cuda, NULL, 0, buffer, 5, NULL), PTX_INJECT_ERROR_INSUFFICIENT_BUFFER);
    CHECK_SUCCESS(ptx_inject_process_cuda(cuda, NULL, 0, buffer, sizeof buffer, NULL));
    CHECK_TEXT(buffer, "asm(\n    \"// PTX_INJECT_START a\\n\\t\"\n    \"// PTX_INJECT_END\"\n);");

    CHECK_SUCCESS(ptx_inject_create(&handle, "// PTX_INJECT_START a\n// PTX_INJECT_END\n"));
    CHECK_SUCCESS(ptx_inject_render_ptx(handle, &stub, 1, NULL, 0, NULL));
    CHECK_SUCCESS(ptx_inject_render_ptx_sized(handle, &stub, &length, 1, NULL, 0, NULL));
    CHECK_RESULT(ptx_inject_render_ptx(handle, &stub, 1, buffer, 5, NULL), PTX_INJECT_ERROR_INSUFFICIENT_BUFFER);
    CHECK_SUCCESS(ptx_inject_render_ptx(handle, &stub, 1, buffer, 6, NULL));
    CHECK_TEXT(buffer, "stub\n");
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_null_where_nothing_says_so_is_an_invalid_input) {
    const char* stub = "";
    const size_t length = 0;
    PtxInjectHandle handle = NULL;
    PtxInjectPlace place;
    size_t size = 0, num_types = 0;
    char buffer[8];

    CHECK_RESULT(ptx_inject_create(NULL, ""), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_create(&handle, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_create_with_types(NULL, "", NULL, 0), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_create_with_types(&handle, "", NULL, 1), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK(handle == NULL);
    CHECK_RESULT(ptx_inject_diagnose_ptx(NULL, NULL, 0, &place), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_UINT(place.line, 0);
    CHECK_RESULT(ptx_inject_diagnose_ptx("", NULL, 0, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_process_cuda(NULL, NULL, 0, buffer, sizeof buffer, &size), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_process_cuda("", NULL, 1, buffer, sizeof buffer, &size), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_diagnose_cuda(NULL, NULL, 0, &place), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_diagnose_cuda("", NULL, 0, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_num_injects(NULL, &size), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_inject_info_by_name(NULL, "a", NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_inject_info_by_index(NULL, 0, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_variable_info_by_name(NULL, 0, "a", NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_variable_info_by_index(NULL, 0, 0, NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_render_ptx(NULL, &stub, 1, NULL, 0, &size), PTX_INJECT_ERROR_INVALID_INPUT);

    CHECK_SUCCESS(ptx_inject_create(&handle, "// PTX_INJECT_START a\n// PTX_INJECT_END\n"));
    CHECK_RESULT(ptx_inject_inject_info_by_name(handle, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_variable_info_by_name(handle, 0, NULL, NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_render_ptx(handle, NULL, 1, NULL, 0, &size), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_render_ptx_sized(handle, &stub, NULL, 1, NULL, 0, &size), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_RESULT(ptx_inject_render_ptx_sized(handle, NULL, &length, 1, NULL, 0, &size), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_SUCCESS(ptx_inject_destroy(handle));
    CHECK_SUCCESS(ptx_inject_destroy(NULL));

    CHECK(ptx_inject_default_types(NULL) == ptx_inject_default_types(&num_types));
    CHECK_UINT(num_types, 6);
}

/* ---- sites of one name ---- */

#define MACRO_SITE(first, second) "// PTX_INJECT_START s\n" first second "// PTX_INJECT_END\n"
#define A_IN "// _x0 i f32 F32 a\n"
#define B_OUT "// _x1 o u32 U32 b\n"

TEST(test_sites_of_one_name_must_agree_in_everything) {
    static const char* const others[] = {
        MACRO_SITE(A_IN, ""),
        MACRO_SITE(A_IN, B_OUT "// _x2 i f32 F32 c\n"),
        MACRO_SITE("", ""),
        MACRO_SITE(A_IN, "// _x1 m u32 U32 b\n"),
        MACRO_SITE(A_IN, "// _x2 o u32 U32 b\n"),
        MACRO_SITE(A_IN, "// _x1 o b32 U32 b\n"),
        MACRO_SITE(A_IN, "// _x1 o u32 MASK b\n"),
        MACRO_SITE(A_IN, "// _x1 o u32 U32 c\n"),
        MACRO_SITE(B_OUT, A_IN),
        MACRO_SITE("// %f1 in f32 a\n", "// %r1 out u32 b\n")
    };
    size_t i;
    for (i = 0; i < COUNT(others); ++i) {
        PtxInjectHandle handle = NULL;
        char ptx[512];
        (void)sprintf(ptx, "%s%s%s", MACRO_SITE(A_IN, B_OUT), MACRO_SITE(A_IN, B_OUT), others[i]);
        CHECK_RESULT(ptx_inject_create(&handle, ptx), PTX_INJECT_ERROR_INCONSISTENT_INJECTION);
        CHECK(handle == NULL);
    }
}

TEST(test_sites_that_agree_may_differ_in_blanks_and_form) {
    static const char* const others[] = {
        MACRO_SITE(A_IN, B_OUT), "\t//  PTX_INJECT_START s \r\n\n //_x0\ti  f32 F32   a \n" B_OUT "// PTX_INJECT_END  \n",
        "// PTX_INJECT_START s\n// %f3 in F32 a\n// %r3 out U32 b\n// PTX_INJECT_END"
    };
    static const PtxInjectDataTypeInfo types[] = {{"U32", "u32", "u32", 'r', NULL}, {"F32", "f32", "f32", 'f', NULL}};
    size_t i;
    for (i = 0; i < COUNT(others); ++i) {
        PtxInjectHandle handle = NULL;
        size_t num_sites = 0;
        char ptx[512];
        (void)sprintf(ptx, "%s%s", MACRO_SITE(A_IN, B_OUT), others[i]);
        CHECK_SUCCESS(ptx_inject_create_with_types(&handle, ptx, types, 2));
        CHECK_SUCCESS(ptx_inject_inject_info_by_name(handle, "s", NULL, NULL, &num_sites));
        CHECK_UINT(num_sites, 2);
        CHECK_SUCCESS(ptx_inject_destroy(handle));
    }
}

/* A site with the same lines as the one before is recognised by them. What differs only at their edges is not the same. */
TEST(test_sites_are_read_alike_whatever_stood_before_them) {
    static const char* const tails[] = {
        MACRO_SITE(A_IN, ""),
        "" MACRO_SITE(A_IN, "") MACRO_SITE(A_IN, ""),
        "x; " MACRO_SITE(A_IN, ""),
        " " MACRO_SITE(A_IN, ""),
        "/* " MACRO_SITE(A_IN, "") "*/\n",
        "/*\n" MACRO_SITE(A_IN, "") "*/\n",
        "// PTX_INJECT_START s\n" A_IN "// PTX_INJECT_END",
        "// PTX_INJECT_START s\n" A_IN "// PTX_INJECT_END x\n",
        "// PTX_INJECT_START st\n" A_IN "// PTX_INJECT_END\n",
        "// PTX_INJECT_START s\n" A_IN B_OUT "// PTX_INJECT_END\n",
        "// PTX_INJECT_START s\n// PTX_INJECT_END\n",
    };
    static const struct {
        PtxInjectResult result;
        size_t num_sites;
        const char* rendered;
    } expected[] = {
        {PTX_INJECT_SUCCESS, 3, "S\n"},
        {PTX_INJECT_SUCCESS, 4, "S\nS\n"},
        {PTX_INJECT_ERROR_FORMATTING, 0, ""}, /* its END stands alone */
        {PTX_INJECT_SUCCESS, 3, " S\n"},
        {PTX_INJECT_SUCCESS, 2, "/* " MACRO_SITE(A_IN, "") "*/\n"},
        {PTX_INJECT_SUCCESS, 2, "/*\n" MACRO_SITE(A_IN, "") "*/\n"},
        {PTX_INJECT_SUCCESS, 3, "S"},
        {PTX_INJECT_ERROR_FORMATTING, 0, ""},
        {PTX_INJECT_SUCCESS, 2, "T\n"},
        {PTX_INJECT_ERROR_INCONSISTENT_INJECTION, 0, ""},
        {PTX_INJECT_ERROR_INCONSISTENT_INJECTION, 0, ""},
    };
    const char* stubs[] = {"S", "T"};
    size_t i;
    for (i = 0; i < COUNT(tails); ++i) {
        PtxInjectHandle handle = NULL;
        char ptx[512], text[512];
        size_t num_sites = 0, num_injects = 0;
        (void)sprintf(ptx, "\n%smid\n%s%s", MACRO_SITE(A_IN, ""), MACRO_SITE(A_IN, ""), tails[i]);
        CHECK_UINT(ptx_inject_create(&handle, ptx), expected[i].result);
        if (handle != NULL) {
            CHECK_SUCCESS(ptx_inject_num_injects(handle, &num_injects));
            CHECK_SUCCESS(ptx_inject_inject_info_by_name(handle, "s", NULL, NULL, &num_sites));
            CHECK_UINT(num_sites, expected[i].num_sites);
            CHECK_SUCCESS(ptx_inject_render_ptx(handle, stubs, num_injects, text, sizeof text, NULL));
            (void)sprintf(ptx, "\nS\nmid\nS\n%s", expected[i].rendered);
            CHECK_TEXT(text, ptx);
        }
        CHECK_SUCCESS(ptx_inject_destroy(handle));
    }
}

TEST(test_names_have_their_own_variables_also_where_those_before_are_alike) {
    PtxInjectHandle handle = NULL;
    CHECK_SUCCESS(ptx_inject_create(
        &handle,
        "// PTX_INJECT_START one\n" A_IN "// PTX_INJECT_END\n"
        "// PTX_INJECT_START two\n" A_IN "// PTX_INJECT_END\n"
        "// PTX_INJECT_START three\n" A_IN B_OUT "// PTX_INJECT_END\n"
        "// PTX_INJECT_START four\n// PTX_INJECT_END\n"
        "// PTX_INJECT_START five\n// %f1 in f32 a\n// PTX_INJECT_END\n"
        "// PTX_INJECT_START six\n// %f2 in f32 a\n// PTX_INJECT_END\n"
        "// PTX_INJECT_START seven\n// %f2 in f32 a\n// %f1 in f32 b\n// PTX_INJECT_END\n"
    ));
    check_variable(handle, 0, 0, "a", "_x0", PTX_INJECT_MUT_TYPE_IN, "f32", "F32");
    check_variable(handle, 1, 0, "a", "_x0", PTX_INJECT_MUT_TYPE_IN, "f32", "F32");
    check_variable(handle, 2, 0, "a", "_x0", PTX_INJECT_MUT_TYPE_IN, "f32", "F32");
    check_variable(handle, 2, 1, "b", "_x1", PTX_INJECT_MUT_TYPE_OUT, "u32", "U32");
    check_variable(handle, 4, 0, "a", "_x0", PTX_INJECT_MUT_TYPE_IN, "f32", "f32");
    check_variable(handle, 5, 0, "a", "_x0", PTX_INJECT_MUT_TYPE_IN, "f32", "f32");
    check_variable(handle, 6, 1, "b", "_x1", PTX_INJECT_MUT_TYPE_IN, "f32", "f32");
    CHECK_RESULT(
        ptx_inject_variable_info_by_name(handle, 0, "b", NULL, NULL, NULL, NULL, NULL),
        PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND
    );
    CHECK_RESULT(ptx_inject_variable_info_by_index(handle, 3, 0, NULL, NULL, NULL, NULL, NULL), PTX_INJECT_ERROR_INVALID_INPUT);
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

TEST(test_sites_of_the_comment_form_that_are_alike_to_the_letter_all_get_their_movs) {
    const char* stubs[] = {"A", "B"};
    check_rendered(
        "// PTX_INJECT_START a\n// %f1 mod f32 v\n// PTX_INJECT_END\n"
        "// PTX_INJECT_START a\n// %f1 mod f32 v\n// PTX_INJECT_END\n"
        "// PTX_INJECT_START b\n// %f1 mod f32 v\n// PTX_INJECT_END\n",
        stubs, 2,
        "{\n.reg .f32 %_x0;\nmov.f32 %_x0, %f1;\nA\nmov.f32 %f1, %_x0;\n}\n"
        "{\n.reg .f32 %_x0;\nmov.f32 %_x0, %f1;\nA\nmov.f32 %f1, %_x0;\n}\n"
        "{\n.reg .f32 %_x0;\nmov.f32 %_x0, %f1;\nB\nmov.f32 %f1, %_x0;\n}\n"
    );
}

TEST(test_a_site_has_as_many_variables_as_documented) {
    char* ptx = (char*)malloc((PTX_INJECT_MAX_ARGS + 1) * 40 + 100);
    PtxInjectHandle handle = NULL;
    size_t num_vars, i;
    for (num_vars = PTX_INJECT_MAX_ARGS; num_vars <= PTX_INJECT_MAX_ARGS + 1; ++num_vars) {
        size_t length = (size_t)sprintf(ptx, "// PTX_INJECT_START s\n");
        for (i = 0; i < num_vars; ++i) length += (size_t)sprintf(ptx + length, "// %%f%u in f32 v%u\n", (unsigned)i, (unsigned)i);
        (void)sprintf(ptx + length, "// PTX_INJECT_END\n");
        if (num_vars == PTX_INJECT_MAX_ARGS) {
            CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
            check_variable(handle, 0, 1023, "v1023", "_x1023", PTX_INJECT_MUT_TYPE_IN, "f32", "f32");
            CHECK_SUCCESS(ptx_inject_destroy(handle));
        } else {
            CHECK_RESULT(ptx_inject_create(&handle, ptx), PTX_INJECT_ERROR_FORMATTING);
        }
    }
    free(ptx);
}

/* ---- PTX that is refused ---- */

typedef struct Refused {
    const char* text;
    size_t line;
    size_t column;
} Refused;

static void check_place(const char* text, const PtxInjectPlace* place, size_t line, size_t column) {
    if (place->line != line || place->column != column) CHECK_TEXT(text, place->reason);
    CHECK_UINT(place->line, line);
    CHECK_UINT(place->column, column);
    CHECK(place->reason != NULL && place->reason[0] != '\0');
}

static void check_refused_ptx(const char* ptx, size_t line, size_t column) {
    PtxInjectHandle handle = (PtxInjectHandle)&handle;
    PtxInjectPlace place = {99, 99, NULL};
    if (ptx_inject_create(&handle, ptx) != PTX_INJECT_ERROR_FORMATTING) CHECK_TEXT(ptx, "refused");
    CHECK(handle == NULL);
    CHECK_RESULT(ptx_inject_diagnose_ptx(ptx, NULL, 0, &place), PTX_INJECT_ERROR_FORMATTING);
    check_place(ptx, &place, line, column);
}

static void check_refused_cuda(const char* cuda, size_t line, size_t column) {
    PtxInjectPlace place = {99, 99, NULL};
    size_t size = 0;
    if (ptx_inject_process_cuda(cuda, NULL, 0, NULL, 0, &size) != PTX_INJECT_ERROR_FORMATTING) CHECK_TEXT(cuda, "refused");
    CHECK_RESULT(ptx_inject_diagnose_cuda(cuda, NULL, 0, &place), PTX_INJECT_ERROR_FORMATTING);
    check_place(cuda, &place, line, column);
}

TEST(test_wrong_markers_are_refused_by_line_and_column) {
    static const Refused all[] = {
        {"// PTX_INJECT_START", 1, 4},
        {"\n\t// PTX_INJECT_START \n", 2, 5},
        {"// PTX_INJECT_START two words\n// PTX_INJECT_END", 1, 25},
        {"// PTX_INJECT_END", 1, 4},
        {"// PTX_INJECT_START a\n// PTX_INJECT_END\n// PTX_INJECT_END", 3, 4},
        {"// PTX_INJECT_START a", 1, 4},
        {"// PTX_INJECT_START a\n// _x0 i f32 F32 x", 1, 4},
        {"// PTX_INJECT_START a\n// PTX_INJECT_START b\n// PTX_INJECT_END", 2, 4},
        {"// PTX_INJECT_START a\nret;\n// PTX_INJECT_END", 2, 1},
        {"// PTX_INJECT_START a\n// PTX_INJECT_END ret;", 2, 18},
        {"// PTX_INJECT_START a\n//\n// PTX_INJECT_END", 2, 3},
        {"// PTX_INJECT_START a\n// _x0\n// PTX_INJECT_END", 2, 7},
        {"// PTX_INJECT_START a\n// _x0 x f32 F32 v\n// PTX_INJECT_END", 2, 8},
        {"// PTX_INJECT_START a\n// _x0 inout f32 v\n// PTX_INJECT_END", 2, 8},
        {"// PTX_INJECT_START a\n// _x0 i\n// PTX_INJECT_END", 2, 9},
        {"// PTX_INJECT_START a\n// _x0 i f-32 F32 v\n// PTX_INJECT_END", 2, 10},
        {"// PTX_INJECT_START a\n// _x0 i f32\n// PTX_INJECT_END", 2, 13},
        {"// PTX_INJECT_START a\n// _x0 i f32 F32\n// PTX_INJECT_END", 2, 17},
        {"// PTX_INJECT_START a\n// %f1 in\n// PTX_INJECT_END", 2, 10},
        {"// PTX_INJECT_START a\n// %f1 in f64 v\n// PTX_INJECT_END", 2, 11},
        {"// PTX_INJECT_START a\n// %f1 in f3 v\n// PTX_INJECT_END", 2, 11},
        {"// PTX_INJECT_START a\n// %f1 in f321 v\n// PTX_INJECT_END", 2, 11},
        {"// PTX_INJECT_START a\n// %f1 in f32\n// PTX_INJECT_END", 2, 14},
        {"// PTX_INJECT_START a\n// _x0 i f32 F32 v\n// %f1 in f32 w\n// PTX_INJECT_END", 3, 4},
        {"// PTX_INJECT_START a\n// _x0 i f32 F32 v\n// _x1 i f32 F32 v\n// PTX_INJECT_END", 3, 18},
        {"// PTX_INJECT_START a\n// %f1 in f32 v\n// %f2 out f32 v\n// PTX_INJECT_END", 3, 16},
        {"// PTX_INJECT_START a\n" A_IN "// PTX_INJECT_END\n// PTX_INJECT_START a\n" A_IN "// PTX_INJECT_END1\n", 6, 19},
    };
    size_t i;
    for (i = 0; i < COUNT(all); ++i) check_refused_ptx(all[i].text, all[i].line, all[i].column);
}

TEST(test_registers_that_compilers_use_and_what_is_no_identifier_are_refused) {
    static const char* const refused[] = {
        "f1",    "r2", "rd3", "p1",   "rs5", "fd4", "h6",   "hh7",      "b8", "rc9", "rq1",
        "r0123", "SP", "SPL", "%_x0", "x.y", "x-1", "x[0]", "\xc3\xa9", "x;", "{x}", "\"x\"",
    };
    static const char* const accepted[] = {"x", "_x0", "f", "r", "f1x", "fx1", "F1", "acc$1", "SPLIT", "x0", "0", "rdx", "s12"};
    char ptx[128];
    size_t i;
    for (i = 0; i < COUNT(refused); ++i) {
        (void)sprintf(ptx, "// PTX_INJECT_START a\n// %s i f32 F32 v\n// PTX_INJECT_END\n", refused[i]);
        check_refused_ptx(ptx, 2, 4);
    }
    for (i = 0; i < COUNT(accepted); ++i) {
        PtxInjectHandle handle = NULL;
        (void)sprintf(ptx, "// PTX_INJECT_START a\n// %s i f32 F32 v\n// PTX_INJECT_END\n", accepted[i]);
        CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
        check_variable(handle, 0, 0, "v", accepted[i], PTX_INJECT_MUT_TYPE_IN, "f32", "F32");
        CHECK_SUCCESS(ptx_inject_destroy(handle));
    }
}

TEST(test_operands_of_the_comment_form_are_registers_or_to_be_read_literals) {
    static const char* const refused[] = {
        "% in",   "f1 in",     "%f1; in", "%f-1 in",   "{%f1} in", "-f1 in",         "- in",
        "1;2 in", "[%rd1] in", "%_x0 in", "%_x12 out", "1 out",    "0f3F800000 mod",
    };
    static const char* const accepted[] = {"%f1 in", "%_x in", "%_xa mod",      "%SP in",
                                           "12 in",  "-3 in",  "0f3F800000 in", "%r1 out"};
    char ptx[128];
    size_t i;
    for (i = 0; i < COUNT(refused); ++i) {
        (void)sprintf(ptx, "// PTX_INJECT_START a\n// %s f32 v\n// PTX_INJECT_END\n", refused[i]);
        check_refused_ptx(ptx, 2, 4);
    }
    for (i = 0; i < COUNT(accepted); ++i) {
        PtxInjectHandle handle = NULL;
        (void)sprintf(ptx, "// PTX_INJECT_START a\n// %s f32 v\n// PTX_INJECT_END\n", accepted[i]);
        CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
        CHECK_SUCCESS(ptx_inject_destroy(handle));
    }
}

/* ---- annotated CUDA ---- */

#define ASM_A "asm(\n    \"// PTX_INJECT_START a\\n\\t\"\n    \"// PTX_INJECT_END\"\n);"

TEST(test_only_what_is_an_annotation_to_a_compiler_is_processed) {
    static const char* const others[] = {
        "",
        "int x;",
        "// /* PTX_INJECT a */",
        "// /* PTX_INJECT a\n// in f32 x\n// */\n",
        "// goes on \\\n/* PTX_INJECT a */",
        "// goes on \\\r\n/* PTX_INJECT a */",
        "/* /* PTX_INJECT a */",
        "/*/* PTX_INJECT a */",
        "/*PTX_INJECT a */",
        "/*  PTX_INJECT a */",
        "/* PTX_INJECT_START a */",
        "/* PTX_INJECTa */",
        "\"/* PTX_INJECT a */\"",
        "\"\\\"/* PTX_INJECT a */\"",
        "\"goes on \\\n/* PTX_INJECT a */\"",
        "\"goes on \\\r\n/* PTX_INJECT a */\"",
        "R\"(\"/* PTX_INJECT a */)\"",
        "u8R\"x(\n)\"/* PTX_INJECT a */)x\"",
        "R\"x(/* PTX_INJECT a */",
        "'\"' '/* PTX_INJECT a */'",
        "/* not closed /* PTX_INJECT a",
    };
    static const char* const annotated[][2] = {
        {"/* PTX_INJECT a */", ASM_A},
        {" /* PTX_INJECT a*/x", " asm(\n     \"// PTX_INJECT_START a\\n\\t\"\n     \"// PTX_INJECT_END\"\n );x"},
        {"/* PTX_INJECT a // why */", ASM_A},
        {"/**//* PTX_INJECT a */", "/**/ " ASM_A},
        {"else/* PTX_INJECT a */", "else " ASM_A},
        {"// x\n/* PTX_INJECT a */", "// x\n" ASM_A},
        {"// x \\ \n/* PTX_INJECT a */", "// x \\ \n" ASM_A},
        {"\"\\\\\" /* PTX_INJECT a */", "\"\\\\\" " ASM_A},
        {"'\\'' /* PTX_INJECT a */", "'\\'' " ASM_A},
        {"1'000'000 /* PTX_INJECT a */", "1'000'000 " ASM_A},
        {"0x1'f /* PTX_INJECT a */", "0x1'f " ASM_A},
        {"#error don't\n/* PTX_INJECT a */", "#error don't\n" ASM_A},
        {"R\"(\\\")\" /* PTX_INJECT a */", "R\"(\\\")\" " ASM_A},
        {"LR\"xy()x\")xy\" /* PTX_INJECT a */", "LR\"xy()x\")xy\" " ASM_A},
        {"BAR\"(\" /* PTX_INJECT a */", "BAR\"(\" " ASM_A},
        {"R\"01234567890123456(\" /* PTX_INJECT a */", "R\"01234567890123456(\" " ASM_A},
        {"a / b /* PTX_INJECT a */", "a / b " ASM_A},
        {"/* PTX_INJECT a *//* PTX_INJECT a */", ASM_A " " ASM_A},
    };
    size_t i;
    for (i = 0; i < COUNT(others); ++i) check_same_after_processing(others[i]);
    for (i = 0; i < COUNT(annotated); ++i) check_processed(annotated[i][0], annotated[i][1]);
}

TEST(test_variables_are_ordered_by_kind_and_keep_their_order_within_one) {
    check_processed(
        "if (b) /* PTX_INJECT s\n"
        "\tin s32 i1\n"
        "\n"
        "  // in s32 skipped\n"
        "\tout u32 o1 // a remark, with ) and ;\n"
        "\tmod b32   v.w  \n"
        "\tin f32 a[f(i, '(')] // it's\n"
        "\tmod s32 m2[1'000]\n"
        "\tout f32 *(&o2)*/ }\n",
        "if (b) asm(\n"
        "    \"// PTX_INJECT_START s\\n\\t\"\n"
        "    \"// %0 mod b32 v.w\\n\\t\"\n"
        "    \"// %1 mod s32 m2[1'000]\\n\\t\"\n"
        "    \"// %2 out u32 o1\\n\\t\"\n"
        "    \"// %3 out f32 *(&o2)\\n\\t\"\n"
        "    \"// %4 in s32 i1\\n\\t\"\n"
        "    \"// %5 in f32 a[f(i, '(')]\\n\\t\"\n"
        "    \"// PTX_INJECT_END\"\n"
        "    : \"+r\"(v.w)\n"
        "    , \"+r\"(m2[1'000])\n"
        "    , \"=r\"(o1)\n"
        "    , \"=f\"(*(&o2))\n"
        "    : \"r\"(i1)\n"
        "    , \"f\"(a[f(i, '(')])\n"
        "); }\n"
    );
}

TEST(test_sites_without_outputs_or_inputs_have_the_colons_that_they_need) {
    check_processed(
        "/* PTX_INJECT s\n in f32 x\n*/",
        "asm(\n    \"// PTX_INJECT_START s\\n\\t\"\n    \"// %0 in f32 x\\n\\t\"\n    \"// PTX_INJECT_END\"\n"
        "    :\n    : \"f\"(x)\n);"
    );
    check_processed(
        "/* PTX_INJECT s\n out f32 x\n*/",
        "asm(\n    \"// PTX_INJECT_START s\\n\\t\"\n    \"// %0 out f32 x\\n\\t\"\n    \"// PTX_INJECT_END\"\n"
        "    : \"=f\"(x)\n);"
    );
}

TEST(test_what_a_string_literal_cannot_hold_is_escaped) {
    check_processed(
        "/* PTX_INJECT s\n in s32 a % b[\"\\n\"]\n*/",
        "asm(\n    \"// PTX_INJECT_START s\\n\\t\"\n    \"// %0 in s32 a %% b[\\\"\\\\n\\\"]\\n\\t\"\n    \"// PTX_INJECT_END\"\n"
        "    :\n    : \"r\"(a % b[\"\\n\"])\n);"
    );
}

TEST(test_the_default_types_are_those_of_the_guide) {
    check_processed(
        "/* PTX_INJECT s\nin f16 a\nin f16X2 b\nin s32 c\nin u32 d\nin f32 e\nin b32 f\n*/",
        "asm(\n    \"// PTX_INJECT_START s\\n\\t\"\n    \"// %0 in f16 a\\n\\t\"\n    \"// %1 in f16X2 b\\n\\t\"\n"
        "    \"// %2 in s32 c\\n\\t\"\n    \"// %3 in u32 d\\n\\t\"\n    \"// %4 in f32 e\\n\\t\"\n"
        "    \"// %5 in b32 f\\n\\t\"\n    \"// PTX_INJECT_END\"\n    :\n    : \"h\"(*(unsigned short*)&a)\n"
        "    , \"r\"(*(unsigned int*)&b)\n    , \"r\"(c)\n    , \"r\"(d)\n    , \"f\"(e)\n    , \"r\"(f)\n);"
    );
}

TEST(test_types_that_cannot_be_written_are_refused) {
    static const PtxInjectDataTypeInfo good = {"t", "u32", "u32", 'r', ""};
    PtxInjectDataTypeInfo types[2];
    PtxInjectHandle handle = NULL;
    PtxInjectPlace place;
    size_t size = 0, i;
    for (i = 0; i < 12; ++i) {
        types[0] = good;
        types[1] = good;
        types[1].name = "u";
        switch (i) {
            case 0: types[0].name = NULL; break;
            case 1: types[0].name = ""; break;
            case 2: types[0].name = "a b"; break;
            case 3: types[0].name = "a\"b"; break;
            case 4: types[0].register_type = NULL; break;
            case 5: types[0].register_type = ""; break;
            case 6: types[0].register_type = "u32;"; break;
            case 7: types[0].mov_postfix = NULL; break;
            case 8: types[0].mov_postfix = "u 32"; break;
            case 9: types[0].register_char = '"'; break;
            case 10: types[0].register_cast_str = "(x)\n"; break;
            default: types[1].name = "t"; break;
        }
        CHECK_RESULT(ptx_inject_process_cuda("", types, 2, NULL, 0, &size), PTX_INJECT_ERROR_INVALID_INPUT);
        CHECK_RESULT(ptx_inject_create_with_types(&handle, "", types, 2), PTX_INJECT_ERROR_INVALID_INPUT);
        CHECK_RESULT(ptx_inject_diagnose_ptx("\n", types, 2, &place), PTX_INJECT_ERROR_INVALID_INPUT);
        CHECK_UINT(place.line, 0);
        CHECK(place.reason[0] != '\0');
    }
}

TEST(test_wrong_annotations_are_refused_by_line_and_column) {
    static const Refused all[] = {
        {"x /* PTX_INJECT", 1, 3},
        {"/* PTX_INJECT\nout f32 y\n*/", 1, 1},
        {"/* PTX_INJECT*/", 1, 1},
        {"\n  /* PTX_INJECT a\nin f32 x", 2, 3},
        {"/* PTX_INJECT a in f32 x */", 1, 17},
        {"/* PTX_INJECT a \\\n in f32 x \\\n*/", 1, 17},
        {"/* PTX_INJECT \"a\" */", 1, 15},
        {"/* PTX_INJECT a%b */", 1, 16},
        {"/* PTX_INJECT a\n inn f32 x\n*/", 2, 2},
        {"/* PTX_INJECT a\n x\n*/", 2, 2},
        {"/* PTX_INJECT a\n in\n*/", 2, 4},
        {"/* PTX_INJECT a\n in float x\n*/", 2, 5},
        {"/* PTX_INJECT a\n in f32\n*/", 2, 8},
        {"/* PTX_INJECT a\n in f32 // x\n*/", 2, 8},
        {"/* PTX_INJECT a\n in f32 x, y\n*/", 2, 10},
        {"/* PTX_INJECT a\n in f32 x;\n*/", 2, 10},
        {"/* PTX_INJECT a\n in f32 x)\n*/", 2, 10},
        {"/* PTX_INJECT a\n in f32 x[0\n*/", 2, 9},
        {"/* PTX_INJECT a\n in f32 x \\\n*/", 2, 11},
        {"/* PTX_INJECT a\n in f32 x /* y\n*/", 2, 11},
        {"/* PTX_INJECT a\n in f32 x['\n*/", 2, 11},
        {"/* PTX_INJECT a\n in f32 x[\"\\\"]\n*/", 2, 11},
        {"/* PTX_INJECT a\n in f32 x[R\"(\"]\n*/", 2, 11},
        {"/* PTX_INJECT a\r\n\r\n out f32 z \r\n in f33 x\r\n*/", 4, 5},
    };
    size_t i;
    for (i = 0; i < COUNT(all); ++i) check_refused_cuda(all[i].text, all[i].line, all[i].column);
}

/* Blanks before a site are repeated before each line that is written for it; endless ones would make endless text. */
TEST(test_output_stays_in_proportion_however_a_site_is_indented) {
    const size_t num_blanks = 100000;
    char* text = (char*)malloc(num_blanks + 4096);
    const char* stub = "";
    PtxInjectHandle handle = NULL;
    size_t length, size = 0, i;

    memset(text, ' ', num_blanks);
    length = num_blanks + (size_t)sprintf(text + num_blanks, "/* PTX_INJECT s\n");
    for (i = 0; i < 50; ++i) length += (size_t)sprintf(text + length, "in f32 x%u\n", (unsigned)i);
    (void)sprintf(text + length, "*/");
    CHECK_SUCCESS(ptx_inject_process_cuda(text, NULL, 0, NULL, 0, &size));
    CHECK(size < num_blanks + 20000);

    length = num_blanks + (size_t)sprintf(text + num_blanks, "// PTX_INJECT_START s\n");
    for (i = 0; i < 50; ++i) length += (size_t)sprintf(text + length, "// %%f%u mod f32 x%u\n", (unsigned)i, (unsigned)i);
    (void)sprintf(text + length, "// PTX_INJECT_END\n");
    CHECK_SUCCESS(ptx_inject_create(&handle, text));
    CHECK_SUCCESS(ptx_inject_render_ptx(handle, &stub, 1, NULL, 0, &size));
    CHECK(size < num_blanks + 20000);
    CHECK_SUCCESS(ptx_inject_destroy(handle));
    free(text);
}

/* ---- names and places: PTX is ASCII, its identifiers are letters, digits, _ and $, and C has phases of translation ---- */

static void check_num_sites(const char* ptx, const char* name, size_t num_sites) {
    PtxInjectHandle handle = NULL;
    size_t found = 99;
    CHECK_SUCCESS(ptx_inject_create(&handle, ptx));
    CHECK_SUCCESS(ptx_inject_inject_info_by_name(handle, name, NULL, NULL, &found));
    if (found != num_sites) CHECK_TEXT(ptx, "another number of sites");
    CHECK_SUCCESS(ptx_inject_destroy(handle));
}

/* Every byte but NUL in the middle of a site's name, in both languages. */
TEST(test_site_names_are_made_of_the_characters_of_identifiers) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
    int byte;
    for (byte = 1; byte < 256; ++byte) {
        char cuda[64], ptx[64];
        PtxInjectPlace place;
        if (strchr(" \t\r\n\v\f", byte) != NULL) continue;
        (void)sprintf(cuda, "/* PTX_INJECT a%cb */", byte);
        (void)sprintf(ptx, "// PTX_INJECT_START a%cb\n// PTX_INJECT_END\n", byte);
        if (strchr(allowed, byte) != NULL) {
            CHECK_SUCCESS(ptx_inject_diagnose_cuda(cuda, NULL, 0, &place));
            CHECK_SUCCESS(ptx_inject_diagnose_ptx(ptx, NULL, 0, &place));
        } else {
            check_refused_cuda(cuda, 1, 16);
            check_refused_ptx(ptx, 1, 22);
        }
    }
}

/* Every byte but blanks and NUL in the middle of a variable's name. Some of CUDA's have their own meaning there. */
TEST(test_variable_names_are_printable_ascii) {
    int byte;
    for (byte = 1; byte < 256; ++byte) {
        char cuda[64], macro[96], comment[96];
        PtxInjectPlace place;
        if (strchr(" \t\r\n\v\f", byte) != NULL) continue;
        (void)sprintf(cuda, "/* PTX_INJECT s\n in f32 a%cb\n*/", byte);
        (void)sprintf(macro, "// PTX_INJECT_START s\n// _x0 i f32 F32 a%cb\n// PTX_INJECT_END\n", byte);
        (void)sprintf(comment, "// PTX_INJECT_START s\n// %%f1 in f32 a%cb\n// PTX_INJECT_END\n", byte);
        if (byte > ' ' && byte <= '~') {
            CHECK_SUCCESS(ptx_inject_diagnose_ptx(macro, NULL, 0, &place));
            CHECK_SUCCESS(ptx_inject_diagnose_ptx(comment, NULL, 0, &place));
        } else {
            check_refused_cuda(cuda, 2, 10);
            check_refused_ptx(macro, 2, 19);
            check_refused_ptx(comment, 2, 16);
        }
    }
    check_refused_cuda("/* PTX_INJECT s\n in f32 a[\"\xc3\xa9\"]\n*/", 2, 12);
    check_refused_cuda("/* PTX_INJECT s\n in f32 a\rb\n*/", 2, 10);
    check_refused_ptx("// PTX_INJECT_START s\n// _x0 i f32 F\x1f v\n// PTX_INJECT_END\n", 2, 15);
}

TEST(test_types_are_printable_ascii) {
    static const PtxInjectDataTypeInfo names[] = {{"t\xc3\xa9", "u32", "u32", 'r', ""}, {"t\x7f", "u32", "u32", 'r', ""}};
    static const PtxInjectDataTypeInfo casts[] = {{"t", "u32", "u32", 'r', "(\xc3\xa9)"}, {"t", "u32", "u32", 'r', "(a)\r"}};
    PtxInjectPlace place;
    size_t i;
    for (i = 0; i < 2; ++i) {
        CHECK_RESULT(ptx_inject_diagnose_cuda("", &names[i], 1, &place), PTX_INJECT_ERROR_INVALID_INPUT);
        CHECK_RESULT(ptx_inject_diagnose_cuda("", &casts[i], 1, &place), PTX_INJECT_ERROR_INVALID_INPUT);
        CHECK_UINT(place.line, 0);
    }
}

TEST(test_variables_of_one_name_are_refused_where_the_second_stands) {
    check_refused_cuda("/* PTX_INJECT s\n in f32 x\n in u32 x\n*/", 3, 9);
    check_refused_cuda("/* PTX_INJECT s\n in f32 x\n out f32  x // again\n*/", 3, 11);
    check_refused_cuda("/* PTX_INJECT s\n mod f32 a[0]\n mod f32 a[1]\n mod f32 a[0]\n*/", 4, 10);
}

TEST(test_an_annotation_has_as_many_variables_as_documented) {
    char* cuda = (char*)malloc((PTX_INJECT_MAX_ARGS + 1) * 20 + 100);
    size_t num_vars, i;
    for (num_vars = PTX_INJECT_MAX_ARGS; num_vars <= PTX_INJECT_MAX_ARGS + 1; ++num_vars) {
        size_t length = (size_t)sprintf(cuda, "/* PTX_INJECT s\n");
        for (i = 0; i < num_vars; ++i) length += (size_t)sprintf(cuda + length, "in f32 v%u\n", (unsigned)i);
        (void)sprintf(cuda + length, "*/");
        if (num_vars == PTX_INJECT_MAX_ARGS) {
            PtxInjectPlace place;
            CHECK_SUCCESS(ptx_inject_diagnose_cuda(cuda, NULL, 0, &place));
        } else {
            check_refused_cuda(cuda, PTX_INJECT_MAX_ARGS + 2, 8);
        }
    }
    free(cuda);
}

TEST(test_annotations_in_directives_are_refused) {
    static const char* const outside[] = {
        "#define F 1\n/* PTX_INJECT s */",
        "#define F 1 // \\ \n/* PTX_INJECT s */",
        "a # b /* PTX_INJECT s */",
        "#error don't\n/* PTX_INJECT s */",
        "#define F \"#\" /* a */\r\n/* PTX_INJECT s */",
        "#if 0\n/* PTX_INJECT s */\n#endif",
        "// \\\n#define\n/* PTX_INJECT s */",
        "/*\n#define */ /* PTX_INJECT s */",
        "#define F\\\n 1\n/* PTX_INJECT s */",
    };
    size_t i;
    check_refused_cuda("#define F() /* PTX_INJECT s */", 1, 13);
    check_refused_cuda("x;\n \t# define F() f(); /* PTX_INJECT s\nin f32 x\n*/", 2, 21);
    check_refused_cuda("/**/ #define F() /* PTX_INJECT s */", 1, 18);
    check_refused_cuda("#define F() \\\n  /* PTX_INJECT s */", 2, 3);
    check_refused_cuda("#define F() \\\r\n  /* PTX_INJECT s */", 2, 3);
    check_refused_cuda("#define F() /* goes\non */ /* PTX_INJECT s */", 2, 7);
    check_refused_cuda("#define F() \"a\\\nb\" /* PTX_INJECT s */", 2, 4);
    for (i = 0; i < COUNT(outside); ++i) {
        size_t size = 0;
        if (ptx_inject_process_cuda(outside[i], NULL, 0, NULL, 0, &size) != PTX_INJECT_SUCCESS || size <= strlen(outside[i]) + 1)
            CHECK_TEXT(outside[i], "processed");
    }
}

#define SITE "// PTX_INJECT_START s\n// PTX_INJECT_END\n"

TEST(test_a_marker_in_a_block_comment_is_none) {
    check_num_sites(SITE "/*\n" SITE "*/\n" SITE, "s", 2);
    check_num_sites(SITE "/* one */ /*\n// PTX_INJECT_END\n" SITE "*/", "s", 1);
    check_num_sites(SITE "/*\n" SITE "// */\n" SITE, "s", 2);
    check_num_sites(SITE "// /*\n" SITE, "s", 2);
    check_num_sites(".file 1 \"a/*b\"\n" SITE "/* */\n" SITE, "s", 2);
    check_num_sites(".file 1 \"//\" /*\n" SITE "\"*/\n" SITE, "s", 1);
    check_num_sites(SITE "/* never closed\n" SITE, "s", 1);
    check_num_sites("/*/\n" SITE "/*/\n" SITE, "s", 1);
    {
        PtxInjectHandle handle = NULL;
        const char* stub = "STUB";
        char buffer[256];
        size_t written = 0;
        CHECK_SUCCESS(ptx_inject_create(
            &handle,
            "/*\n" SITE "*/"
            "\n" SITE
        ));
        CHECK_SUCCESS(ptx_inject_render_ptx(handle, &stub, 1, buffer, sizeof buffer, &written));
        CHECK_TEXT(buffer, "/*\n" SITE "*/\nSTUB\n");
        CHECK_SUCCESS(ptx_inject_destroy(handle));
    }
}
