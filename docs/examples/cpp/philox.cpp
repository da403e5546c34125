// philox.cpp - random numbers from a counter: Philox 2x32-10, ten calls of a routine. u is uniform in [0, 1]; state counts on.
//
// The generator's words have their own stack, so that a search never mixes them with other numbers.
// The algorithm is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Prints ../expected/philox.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_STATE, REG_U };
enum { ROUTINE_ROUND };
enum { ENTRY_KEY, ENTRY_LEFT, ENTRY_RIGHT };

constexpr uint32_t multiplier = 0xD256D193u;
constexpr uint32_t weyl = 0x9E3779B9u;
constexpr uint32_t key = 12345u;
constexpr int num_rounds = 10;

// left, right, key = high(left * multiplier) ^ key ^ right, low(left * multiplier), key + weyl
constexpr StackPtxInstruction philox_round[] = {
    encode_constant_philox(multiplier),
    encode_load(ENTRY_LEFT),
    encode_ptx_instruction_mul_lo_philox,
    encode_constant_philox(multiplier),
    encode_load(ENTRY_LEFT),
    encode_ptx_instruction_mul_hi_philox,
    encode_load(ENTRY_KEY),
    encode_ptx_instruction_xor_philox,
    encode_load(ENTRY_RIGHT),
    encode_ptx_instruction_xor_philox,
    encode_store(StackType::PHILOX, ENTRY_LEFT),
    encode_store(StackType::PHILOX, ENTRY_RIGHT),
    encode_constant_philox(weyl),
    encode_load(ENTRY_KEY),
    encode_ptx_instruction_add_philox,
    encode_store(StackType::PHILOX, ENTRY_KEY),
    encode_return,
};

int main() {
    const std::vector<StackPtxRegister> registers = {
        {"state", stack_idx(StackType::PHILOX)},
        {"u", stack_idx(StackType::F32)},
    };
    std::vector<StackPtxInstruction> program = {
        encode_input(REG_STATE),     encode_store(StackType::PHILOX, ENTRY_LEFT),
        encode_constant_philox(0),   encode_store(StackType::PHILOX, ENTRY_RIGHT),
        encode_constant_philox(key), encode_store(StackType::PHILOX, ENTRY_KEY),
    };
    program.insert(program.end(), num_rounds, encode_routine(ROUTINE_ROUND));
    const std::vector<StackPtxInstruction> results = {
        // u = left * 2^-32
        encode_load(ENTRY_LEFT),
        encode_ptx_instruction_philox_to_u32,
        encode_ptx_instruction_cvt_rn_f32_u32,
        encode_constant_f32(2.3283064365386963e-10f),
        encode_ptx_instruction_mul_ftz_f32,
        // state = state + 1
        encode_constant_philox(1),
        encode_input(REG_STATE),
        encode_ptx_instruction_add_philox,
        encode_return,
    };
    program.insert(program.end(), results.begin(), results.end());
    std::cout << make_stub(stack_info, registers, program.data(), {REG_U, REG_STATE}, {philox_round}) << "\n";
}
