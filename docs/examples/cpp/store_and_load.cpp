// store_and_load.cpp - store entries for values that are used again: s = x + y, z = s * s - x.
//
// A load needs no type: a store entry knows which stack its value came from. Prints ../expected/store_and_load.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_X, REG_Y, REG_Z };
enum { ENTRY_S };

constexpr StackPtxInstruction program[] = {
    encode_input(REG_Y),
    encode_input(REG_X),
    encode_ptx_instruction_add_ftz_f32,
    encode_store(StackType::F32, ENTRY_S),
    encode_input(REG_X),
    encode_load(ENTRY_S),
    encode_load(ENTRY_S),
    encode_ptx_instruction_mul_ftz_f32,
    encode_ptx_instruction_sub_ftz_f32,
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
