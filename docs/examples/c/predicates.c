/*
 * predicates.c - a comparison and a choice: z = x < y ? x : y. Predicates have their own stack.
 *
 * Prints ../expected/predicates.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_X, REG_Y, REG_Z };

static const StackPtxRegister registers[] = {
    [REG_X] = {.name = "x", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Y] = {.name = "y", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Z] = {.name = "z", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_ptx_instruction_setp_lt_ftz_f32,
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_ptx_instruction_selp_f32, /* pops x and y off the f32 stack and the comparison off the pred stack */
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_Z};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
