/*
 * inject.c - times ptx_inject.h on PTX as compilers write it.
 *
 *     inject KIND NUM_SITES STUB_INSTRUCTIONS
 *
 * Prints `CREATE RENDER COPY`: the best times in microseconds of creating a handle, of rendering, and of copying what was rendered.
 * Kinds: `one`, macro form, all sites of one name; `macro`, a name for each; `distinct`, and other variables at each; `comment`, the
 * comment form. Uses the public names of mm-ptx alone, so that its header can stand in for ours.
 */

#define _POSIX_C_SOURCE 199309L
#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES_PER_SITE 800u /* more than any site takes */

static double now_us(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* Sites between a load and a store. */
static char* make_ptx(const char* kind, unsigned num_sites) {
    const int is_distinct = strcmp(kind, "distinct") == 0, is_one = strcmp(kind, "one") == 0;
    char* text = (char*)malloc(num_sites * BYTES_PER_SITE + 200u);
    char* out = text + sprintf(text, ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 p)\n{\n");
    unsigned i;
    for (i = 0; i < num_sites; ++i) {
        const unsigned x = 3 * i, y = 3 * i + 1, z = 3 * i + 2, own = is_distinct ? i : 0, name = is_one ? 0 : i;
        out += sprintf(out, "\tld.global.f32 \t%%f%u, [%%rd%u];\n\tmul.f32 \t%%f%u, %%f%u, 0f3F000000;\n", x, i, y, x);
        out += sprintf(out, "\t// begin inline asm\n");
        if (strcmp(kind, "comment") == 0) {
            out += sprintf(out, "\t// PTX_INJECT_START site_%u\n\t// %%f%u out f32 z\n", i, z);
            out += sprintf(out, "\t// %%f%u in f32 x\n\t// %%f%u in f32 y\n\t// PTX_INJECT_END\n", x, y);
        } else {
            out += sprintf(out, "\t{\n\t.reg .f32 %%_x0;\n\t.reg .f32 %%_x1;\n\tmov.f32 %%_x1, %%f%u;\n", x);
            out += sprintf(out, "\t.reg .f32 %%_x2;\n\tmov.f32 %%_x2, %%f%u;\n\t// PTX_INJECT_START site_%u\n", y, name);
            out += sprintf(out, "\t// _x0 o f32 F32 z%u\n\t// _x1 i f32 F32 x%u\n\t// _x2 i f32 F32 y%u\n", own, own, own);
            out += sprintf(out, "\t// PTX_INJECT_END\n\tmov.f32 %%f%u, %%_x0;\n\t}\n", z);
        }
        out += sprintf(out, "\t// end inline asm\n\tst.global.f32 \t[%%rd%u], %%f%u;\n", i, z);
    }
    (void)sprintf(out, "\tret;\n}\n");
    return text;
}

/* Every site has its own copy of the stub, as if each were another program. */
static char* make_stub(unsigned num_instructions) {
    char* text = (char*)malloc(num_instructions * 48u + 100u);
    char* out = text + sprintf(text, "\t{\n\t.reg .f32 %%_s0_<%u>;\n", num_instructions);
    unsigned i;
    out += sprintf(out, "\tadd.ftz.f32 %%_s0_0, %%_x1, %%_x2;\n");
    for (i = 1; i < num_instructions; ++i) out += sprintf(out, "\tmul.ftz.f32 %%_s0_%u, %%_s0_%u, %%_x1;\n", i, i - 1);
    (void)sprintf(out, "\tmov.f32 %%_x0, %%_s0_%u;\n\t}", num_instructions - 1);
    return text;
}

static void check(PtxInjectResult result) {
    if (result != PTX_INJECT_SUCCESS) {
        (void)fprintf(stderr, "%s\n", ptx_inject_result_to_string(result));
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char** argv) {
    const char* kind = argc == 4 ? argv[1] : "";
    const unsigned num_sites = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
    const unsigned num_stubs = strcmp(kind, "one") == 0 ? 1 : num_sites;
    const unsigned num_rounds = 20 + 100000u / (num_sites + 1);
    char* ptx = make_ptx(kind, num_sites);
    const char** stubs = (const char**)malloc((num_stubs + 1) * sizeof *stubs);
    PtxInjectHandle handle = NULL;
    double create = 1e30, render = 1e30, copy = 1e30;
    size_t size = 0, written = 0;
    char *buffer, *other;
    unsigned i;

    if (num_sites == 0 || atoi(argv[3]) <= 0) {
        (void)fprintf(stderr, "usage: %s KIND NUM_SITES STUB_INSTRUCTIONS\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (i = 0; i < num_stubs; ++i) stubs[i] = make_stub((unsigned)atoi(argv[3]));
    for (i = 0; i < num_rounds; ++i) {
        const double start = now_us();
        double time;
        check(ptx_inject_create(&handle, ptx));
        time = now_us() - start;
        create = time < create ? time : create;
        check(ptx_inject_destroy(handle));
    }
    check(ptx_inject_create(&handle, ptx));
    check(ptx_inject_render_ptx(handle, stubs, num_stubs, NULL, 0, &size));
    buffer = (char*)malloc(size + 1);
    other = (char*)malloc(size + 1);
    for (i = 0; i < num_rounds; ++i) {
        const double start = now_us();
        double between, end;
        check(ptx_inject_render_ptx(handle, stubs, num_stubs, buffer, size + 1, &written));
        between = now_us();
        memcpy(other, buffer, written);
        end = now_us();
        if (other[size / 2] != buffer[size / 2])  /* so that the copy is made */
            exit(EXIT_FAILURE);
        render = between - start < render ? between - start : render;
        copy = end - between < copy ? end - between : copy;
    }
    (void)printf("%.2f %.2f %.2f\n", create, render, copy);
    check(ptx_inject_destroy(handle));
    for (i = 0; i < num_stubs; ++i) free((void*)stubs[i]);
    free(other);
    free(buffer);
    free((void*)stubs);
    free(ptx);
    return EXIT_SUCCESS;
}
