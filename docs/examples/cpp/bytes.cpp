// bytes.cpp - four u8 in one register: sum = 1st + 2nd + 3rd + 4th byte of `packed`, counted from the lowest.
//
// PTX cannot add bytes, so each is converted to u32 first. Prints ../expected/bytes.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_PACKED, REG_SUM };

constexpr StackPtxInstruction program[] = {
    encode_input(REG_PACKED),          encode_ptx_instruction_u32_to_v4_u8,
    encode_ptx_instruction_cvt_u32_u8, encode_ptx_instruction_cvt_u32_u8,
    encode_ptx_instruction_add_u32,    encode_ptx_instruction_cvt_u32_u8,
    encode_ptx_instruction_add_u32,    encode_ptx_instruction_cvt_u32_u8,
    encode_ptx_instruction_add_u32,    encode_return,
};

int main() {
    const std::vector<StackPtxRegister> registers = {
        {"packed", stack_idx(StackType::U32)},
        {"sum", stack_idx(StackType::U32)},
    };
    std::cout << make_stub(stack_info, registers, program, {REG_SUM}) << "\n";
}
