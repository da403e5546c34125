/*
 * store_and_load.c - store entries for values that are used again: s = x + y, z = s * s - x.
 *
 * A load needs no type: a store entry knows which stack its value came from. Prints ../expected/store_and_load.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_X, REG_Y, REG_Z };
enum { ENTRY_S };

static const StackPtxRegister registers[] = {
    [REG_X] = {.name = "x", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Y] = {.name = "y", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Z] = {.name = "z", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_F32, ENTRY_S),
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_load(ENTRY_S),
    stack_ptx_encode_load(ENTRY_S),
    stack_ptx_encode_ptx_instruction_mul_ftz_f32,
    stack_ptx_encode_ptx_instruction_sub_ftz_f32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_Z};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
