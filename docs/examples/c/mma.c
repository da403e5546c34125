/*
 * mma.c - a tensor core instruction: d = a * b + c on the tiles that a warp holds: 16x4, 4x8 and 16x8 elements.
 *
 * Its operands are vectors of 2, 1 and 4 registers, and so is its result; elements are popped in order, the first
 * from the top. The factors are rounded to tf32, which has its own stack. Prints ../expected/mma.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_A0, REG_A1, REG_B, REG_C0, REG_C1, REG_C2, REG_C3, REG_D0, REG_D1, REG_D2, REG_D3 };

#define F32_REGISTER(text) {.name = text, .stack_idx = STACK_PTX_STACK_TYPE_F32}

static const StackPtxRegister registers[] = {
    [REG_A0] = F32_REGISTER("a0"), [REG_A1] = F32_REGISTER("a1"), [REG_B] = F32_REGISTER("b"),   [REG_C0] = F32_REGISTER("c0"),
    [REG_C1] = F32_REGISTER("c1"), [REG_C2] = F32_REGISTER("c2"), [REG_C3] = F32_REGISTER("c3"), [REG_D0] = F32_REGISTER("d0"),
    [REG_D1] = F32_REGISTER("d1"), [REG_D2] = F32_REGISTER("d2"), [REG_D3] = F32_REGISTER("d3"),
};

static const StackPtxInstruction program[] = {
    /* On the tf32 stack, bottom to top: b a1 a0. */
    stack_ptx_encode_input(REG_B),
    stack_ptx_encode_ptx_instruction_cvt_rna_tf32_f32,
    stack_ptx_encode_input(REG_A1),
    stack_ptx_encode_ptx_instruction_cvt_rna_tf32_f32,
    stack_ptx_encode_input(REG_A0),
    stack_ptx_encode_ptx_instruction_cvt_rna_tf32_f32,
    stack_ptx_encode_input(REG_C3),
    stack_ptx_encode_input(REG_C2),
    stack_ptx_encode_input(REG_C1),
    stack_ptx_encode_input(REG_C0),
    stack_ptx_encode_ptx_instruction_mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_D0, REG_D1, REG_D2, REG_D3};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
