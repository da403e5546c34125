/*
 * two_sites.c - Stack PTX and PTX Inject together: two names, each with a stub made from a program.
 *
 *     two_sites INPUT.ptx OUTPUT.ptx
 *
 * INPUT.ptx is the PTX of ../cuda/two_sites.cu. Prints ../expected/two_sites.txt.
 */

#define PTX_INJECT_IMPLEMENTATION
#include <ptx_inject.h>

#include "print_stub.h"
#include "stack_ptx_descriptions.h"
#include "text_file.h"

/* Both sites have the variables x and y; each program writes y. */
enum { REG_X, REG_Y, NUM_REGISTERS };

/* y = x + 1 */
static const StackPtxInstruction start_program[] = {
    stack_ptx_encode_constant_f32(1.0f),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,
    stack_ptx_encode_return,
};

/* y = y * x + 1 */
static const StackPtxInstruction step_program[] = {
    stack_ptx_encode_constant_f32(1.0f),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_ptx_instruction_fma_rn_ftz_f32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_Y};

/* The stub of a program at the sites of a name, which the caller frees, and its index among the stubs. */
static char* stub_of(PtxInjectHandle inject, const char* name, const StackPtxInstruction* program, size_t* inject_idx_out) {
    static const char* const variables[NUM_REGISTERS] = {[REG_X] = "x", [REG_Y] = "y"};
    StackPtxRegister registers[NUM_REGISTERS];
    size_t num_sites, i;

    ptxInjectCheck(ptx_inject_inject_info_by_name(inject, name, inject_idx_out, NULL, &num_sites));
    (void)printf("%s: sites %u\n", name, (unsigned)num_sites);
    for (i = 0; i < NUM_REGISTERS; ++i) {
        registers[i].stack_idx = STACK_PTX_STACK_TYPE_F32;
        ptxInjectCheck(
            ptx_inject_variable_info_by_name(inject, *inject_idx_out, variables[i], NULL, &registers[i].name, NULL, NULL, NULL)
        );
    }
    return make_stub(&stack_ptx_stack_info, registers, NUM_REGISTERS, NULL, 0, program, requests, COUNT(requests));
}

int main(int argc, char** argv) {
    PtxInjectHandle inject;
    char* ptx;
    char* start_stub;
    char* step_stub;
    char* rendered;
    const char* stubs[2];
    size_t start_idx, step_idx, size;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: %s INPUT.ptx OUTPUT.ptx\n", argv[0]);
        return EXIT_FAILURE;
    }
    ptx = read_text(argv[1]);
    ptxInjectCheck(ptx_inject_create(&inject, ptx));
    free(ptx);

    start_stub = stub_of(inject, "start", start_program, &start_idx);
    (void)puts(start_stub);
    step_stub = stub_of(inject, "step", step_program, &step_idx);
    (void)puts(step_stub);

    stubs[start_idx] = start_stub;
    stubs[step_idx] = step_stub;
    ptxInjectCheck(ptx_inject_render_ptx(inject, stubs, COUNT(stubs), NULL, 0, &size));
    rendered = allocate(size);
    ptxInjectCheck(ptx_inject_render_ptx(inject, stubs, COUNT(stubs), rendered, size, &size));
    write_text(argv[2], rendered);

    free(rendered);
    free(start_stub);
    free(step_stub);
    ptxInjectCheck(ptx_inject_destroy(inject));
    return EXIT_SUCCESS;
}
