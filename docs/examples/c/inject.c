/*
 * inject.c - PTX Inject from annotated PTX to PTX with a stub, in one file: y = x + y, then z = x + y.
 *
 *     inject OUTPUT.ptx
 *
 * inject_ptx.h is the PTX of ../cuda/inject.cu as C data, so that the program needs no file at run time:
 *
 *     nvcc -ptx -I csrc docs/examples/cuda/inject.cu -o inject.ptx
 *     python -m evo.ptx_inject embed --input inject.ptx --output inject_ptx.h --name annotated_ptx
 *
 * Prints ../expected/inject.txt.
 */

#define PTX_INJECT_IMPLEMENTATION
#include <ptx_inject.h>
#include <check_result_helper.h>

#include "inject_ptx.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    static const char* const mut_types[] = {"out", "mod", "in"};
    PtxInjectHandle inject;
    size_t inject_idx, num_injects, num_args, num_sites, i;
    const char* x;
    const char* y;
    const char* z;
    char stub[256];
    const char** stubs;
    char* rendered;
    size_t rendered_size;
    FILE* file;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s OUTPUT.ptx\n", argv[0]);
        return EXIT_FAILURE;
    }
    ptxInjectCheck(ptx_inject_create(&inject, annotated_ptx));

    /* What the PTX contains. */
    ptxInjectCheck(ptx_inject_inject_info_by_name(inject, "func", &inject_idx, &num_args, &num_sites));
    (void)printf("func: sites %u\n", (unsigned)num_sites);
    for (i = 0; i < num_args; ++i) {
        const char* name;
        const char* register_name;
        const char* data_type;
        PtxInjectMutType mut_type;
        ptxInjectCheck(
            ptx_inject_variable_info_by_index(inject, inject_idx, i, &name, &register_name, &mut_type, NULL, &data_type)
        );
        (void)printf("%s %s %s in %%%s\n", mut_types[mut_type], data_type, name, register_name);
    }

    /* A stub over the registers that the variables are in: the same at all sites of a name. */
    ptxInjectCheck(ptx_inject_variable_info_by_name(inject, inject_idx, "x", NULL, &x, NULL, NULL, NULL));
    ptxInjectCheck(ptx_inject_variable_info_by_name(inject, inject_idx, "y", NULL, &y, NULL, NULL, NULL));
    ptxInjectCheck(ptx_inject_variable_info_by_name(inject, inject_idx, "z", NULL, &z, NULL, NULL, NULL));
    (void)snprintf(stub, sizeof stub, "\tadd.ftz.f32 %%%s, %%%s, %%%s;\n\tadd.ftz.f32 %%%s, %%%s, %%%s;", y, x, y, z, x, y);
    (void)puts(stub);

    /* One stub for each name. Without a buffer the result is measured, its NUL included. */
    ptxInjectCheck(ptx_inject_num_injects(inject, &num_injects));
    stubs = (const char**)calloc(num_injects, sizeof *stubs);
    if (stubs == NULL) return EXIT_FAILURE;
    stubs[inject_idx] = stub;
    ptxInjectCheck(ptx_inject_render_ptx(inject, stubs, num_injects, NULL, 0, &rendered_size));
    rendered = (char*)malloc(rendered_size);
    if (rendered == NULL) return EXIT_FAILURE;
    ptxInjectCheck(ptx_inject_render_ptx(inject, stubs, num_injects, rendered, rendered_size, &rendered_size));

    file = fopen(argv[1], "w");
    if (file == NULL || fputs(rendered, file) == EOF || fclose(file) != 0) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    free(rendered);
    free((void*)stubs);
    ptxInjectCheck(ptx_inject_destroy(inject));
    return EXIT_SUCCESS;
}
