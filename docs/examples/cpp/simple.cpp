// simple.cpp - Stack PTX from a program to its stub: z = x * y + 1.
//
// Prints ../expected/simple.txt. stack_ptx_descriptions.hpp is the default instruction set, written by
//
//     python -m evo.instructions generate --input default --output stack_ptx_descriptions.hpp --lang cpp

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_X, REG_Y, REG_Z };

// The top of the stack is an instruction's first operand. The words are compile-time constants.
constexpr StackPtxInstruction program[] = {
    encode_input(REG_X),
    encode_input(REG_Y),
    encode_ptx_instruction_mul_ftz_f32,
    encode_constant_f32(1.0f),
    encode_ptx_instruction_add_ftz_f32,
    encode_return,
};

int main() {
    // Registers that exist around the stub, by their bare names: x is %x in PTX.
    const std::vector<StackPtxRegister> registers = {
        {"x", stack_idx(StackType::F32)},
        {"y", stack_idx(StackType::F32)},
        {"z", stack_idx(StackType::F32)},
    };
    std::cout << make_stub(stack_info, registers, program, {REG_Z}) << "\n";
}
