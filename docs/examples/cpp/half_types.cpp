// half_types.cpp - two f16 in one register: sum = low + high of `pair`, as f32.
//
// f16x2_to_v2_f16 has two results; the first (low) is popped first. Prints ../expected/half_types.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_PAIR, REG_SUM };

constexpr StackPtxInstruction program[] = {
    encode_input(REG_PAIR),
    encode_ptx_instruction_f16x2_to_v2_f16,
    encode_ptx_instruction_f16_to_f32,
    encode_ptx_instruction_f16_to_f32,
    encode_ptx_instruction_add_ftz_f32,
    encode_return,
};

int main() {
    const std::vector<StackPtxRegister> registers = {
        {"pair", stack_idx(StackType::F16X2)},
        {"sum", stack_idx(StackType::F32)},
    };
    std::cout << make_stub(stack_info, registers, program, {REG_SUM}) << "\n";
}
