/*
 * half_types.c - two f16 in one register: sum = low + high of `pair`, as f32.
 *
 * f16x2_to_v2_f16 has two results; the first (low) is popped first. Prints ../expected/half_types.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_PAIR, REG_SUM };

static const StackPtxRegister registers[] = {
    [REG_PAIR] = {.name = "pair", .stack_idx = STACK_PTX_STACK_TYPE_F16X2},
    [REG_SUM] = {.name = "sum", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_PAIR),
    stack_ptx_encode_ptx_instruction_f16x2_to_v2_f16,
    stack_ptx_encode_ptx_instruction_f16_to_f32,
    stack_ptx_encode_ptx_instruction_f16_to_f32,
    stack_ptx_encode_ptx_instruction_add_ftz_f32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_SUM};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
