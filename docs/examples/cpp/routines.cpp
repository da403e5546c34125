// routines.cpp - a word list that programs call: z = x * x + y * y. A routine works on the same stacks as its caller.
//
// Prints ../expected/routines.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_X, REG_Y, REG_Z };
enum { ROUTINE_SQUARE };

constexpr StackPtxInstruction square[] = {
    encode_meta_dup(StackType::F32),
    encode_ptx_instruction_mul_ftz_f32,
    encode_return,
};

constexpr StackPtxInstruction program[] = {
    encode_input(REG_X),
    encode_routine(ROUTINE_SQUARE),
    encode_input(REG_Y),
    encode_routine(ROUTINE_SQUARE),
    encode_ptx_instruction_add_ftz_f32,
    encode_return,
};

int main() {
    const std::vector<StackPtxRegister> registers = {
        {"x", stack_idx(StackType::F32)},
        {"y", stack_idx(StackType::F32)},
        {"z", stack_idx(StackType::F32)},
    };
    std::cout << make_stub(stack_info, registers, program, {REG_Z}, {square}) << "\n";
}
