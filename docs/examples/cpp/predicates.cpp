// predicates.cpp - a comparison and a choice: z = x < y ? x : y. Predicates have their own stack.
//
// Prints ../expected/predicates.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_X, REG_Y, REG_Z };

constexpr StackPtxInstruction program[] = {
    encode_input(REG_Y),
    encode_input(REG_X),
    encode_ptx_instruction_setp_lt_ftz_f32,
    encode_input(REG_Y),
    encode_input(REG_X),
    encode_ptx_instruction_selp_f32, // pops x and y off the f32 stack and the comparison off the pred stack
    encode_return,
};

int main() {
    const std::vector<StackPtxRegister> registers = {
        {"x", stack_idx(StackType::F32)},
        {"y", stack_idx(StackType::F32)},
        {"z", stack_idx(StackType::F32)},
    };
    std::cout << make_stub(stack_info, registers, program, {REG_Z}) << "\n";
}
