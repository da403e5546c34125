/*
 * bytes.c - four u8 in one register: sum = 1st + 2nd + 3rd + 4th byte of `packed`, counted from the lowest.
 *
 * PTX cannot add bytes, so each is converted to u32 first. Prints ../expected/bytes.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_PACKED, REG_SUM };

static const StackPtxRegister registers[] = {
    [REG_PACKED] = {.name = "packed", .stack_idx = STACK_PTX_STACK_TYPE_U32},
    [REG_SUM] = {.name = "sum", .stack_idx = STACK_PTX_STACK_TYPE_U32},
};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_PACKED),          stack_ptx_encode_ptx_instruction_u32_to_v4_u8,
    stack_ptx_encode_ptx_instruction_cvt_u32_u8, stack_ptx_encode_ptx_instruction_cvt_u32_u8,
    stack_ptx_encode_ptx_instruction_add_u32,    stack_ptx_encode_ptx_instruction_cvt_u32_u8,
    stack_ptx_encode_ptx_instruction_add_u32,    stack_ptx_encode_ptx_instruction_cvt_u32_u8,
    stack_ptx_encode_ptx_instruction_add_u32,    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_SUM};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
