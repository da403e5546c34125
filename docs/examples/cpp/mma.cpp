// mma.cpp - a tensor core instruction: d = a * b + c on the tiles that a warp holds: 16x4, 4x8 and 16x8 elements.
//
// Its operands are vectors of 2, 1 and 4 registers, and so is its result; elements are popped in order, the first
// from the top. The factors are rounded to tf32, which has its own stack. Prints ../expected/mma.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_A0, REG_A1, REG_B, REG_C0, REG_C1, REG_C2, REG_C3, REG_D0, REG_D1, REG_D2, REG_D3 };

constexpr StackPtxInstruction program[] = {
    // On the tf32 stack, bottom to top: b a1 a0.
    encode_input(REG_B),
    encode_ptx_instruction_cvt_rna_tf32_f32,
    encode_input(REG_A1),
    encode_ptx_instruction_cvt_rna_tf32_f32,
    encode_input(REG_A0),
    encode_ptx_instruction_cvt_rna_tf32_f32,
    encode_input(REG_C3),
    encode_input(REG_C2),
    encode_input(REG_C1),
    encode_input(REG_C0),
    encode_ptx_instruction_mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32,
    encode_return,
};

int main() {
    std::vector<StackPtxRegister> registers;
    for (const char* name : {"a0", "a1", "b", "c0", "c1", "c2", "c3", "d0", "d1", "d2", "d3"})
        registers.push_back({name, stack_idx(StackType::F32)});
    std::cout << make_stub(stack_info, registers, program, {REG_D0, REG_D1, REG_D2, REG_D3}) << "\n";
}
