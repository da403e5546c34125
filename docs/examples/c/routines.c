/*
 * routines.c - a word list that programs call: z = x * x + y * y. A routine works on the same stacks as its caller.
 *
 * Prints ../expected/routines.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_X, REG_Y, REG_Z };
enum { ROUTINE_SQUARE };

static const StackPtxRegister registers[] = {
    [REG_X] = {.name = "x", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Y] = {.name = "y", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Z] = {.name = "z", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

static const StackPtxInstruction square[] = {
    stack_ptx_encode_meta_dup(STACK_PTX_STACK_TYPE_F32),
    stack_ptx_encode_ptx_instruction_mul_ftz_f32,
    stack_ptx_encode_return,
};

static const StackPtxInstruction* routines[] = {[ROUTINE_SQUARE] = square};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_routine(ROUTINE_SQUARE),
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_routine(ROUTINE_SQUARE),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_Z};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), routines, COUNT(routines), program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
