/*
 * custom_types.c - your own types from end to end: z = popcount(x & y) * w, where y is a mask and w a weight.
 *
 *     custom_types INPUT.ptx OUTPUT.ptx
 *
 * INPUT.ptx is the PTX of ../cuda/custom_types.cu after `ptxinject --types ../custom_types/data_types.json`. Each type of PTX
 * Inject has its own stack here, so that a program can never add a mask to a number. The headers come from
 *
 *     python -m evo.ptx_inject generate --input ../custom_types/data_types.json --output custom_data_types.h
 *     python -m evo.instructions generate --input ../custom_types/instructions.json --output custom_instructions.h --lang c
 *
 * Prints ../expected/custom_types.txt.
 */

#define PTX_INJECT_IMPLEMENTATION
#include "custom_data_types.h"
#include "custom_instructions.h"
#include "print_stub.h"
#include "text_file.h"

#include <string.h>

#define MAX_NUM_REGISTERS 16

/* The stack of a data type: both have the same name, here in lower case, there in upper case. */
static uint16_t stack_of(const char* data_type) {
    static const uint16_t stacks[PTX_INJECT_DATA_TYPE_NUM_ENUMS] = {
        [PTX_INJECT_DATA_TYPE_U32] = STACK_PTX_STACK_TYPE_U32,
        [PTX_INJECT_DATA_TYPE_MASK] = STACK_PTX_STACK_TYPE_MASK,
        [PTX_INJECT_DATA_TYPE_WEIGHT] = STACK_PTX_STACK_TYPE_WEIGHT,
        [PTX_INJECT_DATA_TYPE_F32] = STACK_PTX_STACK_TYPE_F32,
    };
    size_t i = 0;
    while (strcmp(ptx_inject_data_types[i].name, data_type) != 0) ++i; /* create accepts no others */
    return stacks[i];
}

/* Sites have their variables in the order out, in. */
enum { REG_Z, REG_X, REG_Y, REG_W };

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_ptx_instruction_apply_mask,
    stack_ptx_encode_ptx_instruction_popc_b32,
    stack_ptx_encode_ptx_instruction_cvt_rn_f32_u32,
    stack_ptx_encode_input(REG_W),
    stack_ptx_encode_ptx_instruction_weight_to_f32,
    stack_ptx_encode_ptx_instruction_mul_f32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_Z};

int main(int argc, char** argv) {
    StackPtxRegister registers[MAX_NUM_REGISTERS];
    PtxInjectHandle inject;
    char* ptx;
    char* stub;
    char* rendered;
    const char* stubs[1];
    size_t num_registers, size, i;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: %s INPUT.ptx OUTPUT.ptx\n", argv[0]);
        return EXIT_FAILURE;
    }
    ptx = read_text(argv[1]);
    ptxInjectCheck(ptx_inject_create_with_types(&inject, ptx, ptx_inject_data_types, PTX_INJECT_DATA_TYPE_NUM_ENUMS));
    free(ptx);

    ptxInjectCheck(ptx_inject_inject_info_by_index(inject, 0, NULL, &num_registers, NULL));
    if (num_registers > MAX_NUM_REGISTERS) return EXIT_FAILURE;
    for (i = 0; i < num_registers; ++i) {
        const char* name;
        const char* data_type;
        ptxInjectCheck(ptx_inject_variable_info_by_index(inject, 0, i, &name, &registers[i].name, NULL, NULL, &data_type));
        registers[i].stack_idx = stack_of(data_type);
        (void)printf("%s %s in %%%s\n", data_type, name, registers[i].name);
    }

    stub = make_stub(&stack_ptx_stack_info, registers, num_registers, NULL, 0, program, requests, COUNT(requests));
    (void)puts(stub);
    stubs[0] = stub;
    ptxInjectCheck(ptx_inject_render_ptx(inject, stubs, COUNT(stubs), NULL, 0, &size));
    rendered = allocate(size);
    ptxInjectCheck(ptx_inject_render_ptx(inject, stubs, COUNT(stubs), rendered, size, &size));
    write_text(argv[2], rendered);

    free(rendered);
    free(stub);
    ptxInjectCheck(ptx_inject_destroy(inject));
    return EXIT_SUCCESS;
}
