/*
 * special_registers.c - a thread's place in the grid: i = ctaid.x * ntid.x + tid.x, and the sum of all parts of %tid.
 *
 * %tid is a vector: it pushes its four elements, the last one on top. Prints ../expected/special_registers.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_I, REG_SUM };

static const StackPtxRegister registers[] = {
    [REG_I] = {.name = "i", .stack_idx = STACK_PTX_STACK_TYPE_U32},
    [REG_SUM] = {.name = "sum", .stack_idx = STACK_PTX_STACK_TYPE_U32},
};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_special_register_tid,
    stack_ptx_encode_ptx_instruction_add_u32,
    stack_ptx_encode_ptx_instruction_add_u32,
    stack_ptx_encode_ptx_instruction_add_u32,
    stack_ptx_encode_special_register_tid_x,
    stack_ptx_encode_special_register_ntid_x,
    stack_ptx_encode_special_register_ctaid_x,
    stack_ptx_encode_ptx_instruction_mad_lo_u32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_I, REG_SUM};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
