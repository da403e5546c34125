/*
 * Tests of ptx_inject.h: which bytes names may have, and where a text has no sites. Expected values follow from PTX's identifiers
 * (letters, digits, _ and $), from PTX being ASCII, and from C's phases of translation.
 */

#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_RESULT(call, result) CHECK_TEXT(ptx_inject_result_to_string(call), #result)
#define CHECK_SUCCESS(call) CHECK_RESULT(call, PTX_INJECT_SUCCESS)

static void check_place(const char* text, const PtxInjectPlace* place, size_t line, size_t column) {
    if (place->line != line || place->column != column) CHECK_TEXT(text, place->reason);
    CHECK_UINT(place->line, line);
    CHECK_UINT(place->column, column);
}

static void check_refused_ptx(const char* ptx, size_t line, size_t column) {
    PtxInjectPlace place = {99, 99, NULL};
    CHECK_RESULT(ptx_inject_diagnose_ptx(ptx, NULL, 0, &place), PTX_INJECT_ERROR_FORMATTING);
    check_place(ptx, &place, line, column);
}

static void check_refused_cuda(const char* cuda, size_t line, size_t column) {
    PtxInjectPlace place = {99, 99, NULL};
    CHECK_RESULT(ptx_inject_diagnose_cuda(cuda, NULL, 0, &place), PTX_INJECT_ERROR_FORMATTING);
    check_place(cuda, &place, line, column);
}

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
