// special_registers.cpp - a thread's place in the grid: i = ctaid.x * ntid.x + tid.x, and the sum of all parts of %tid.
//
// %tid is a vector: it pushes its four elements, the last one on top. Prints ../expected/special_registers.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_I, REG_SUM };

constexpr StackPtxInstruction program[] = {
    encode_special_register_tid,     encode_ptx_instruction_add_u32,    encode_ptx_instruction_add_u32,
    encode_ptx_instruction_add_u32,  encode_special_register_tid_x,     encode_special_register_ntid_x,
    encode_special_register_ctaid_x, encode_ptx_instruction_mad_lo_u32, encode_return,
};

int main() {
    const std::vector<StackPtxRegister> registers = {
        {"i", stack_idx(StackType::U32)},
        {"sum", stack_idx(StackType::U32)},
    };
    std::cout << make_stub(stack_info, registers, program, {REG_I, REG_SUM}) << "\n";
}
