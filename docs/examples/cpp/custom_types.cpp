// custom_types.cpp - your own types from end to end: z = popcount(x & y) * w, where y is a mask and w a weight.
//
//     custom_types INPUT.ptx OUTPUT.ptx
//
// INPUT.ptx is the PTX of ../cuda/custom_types.cu after `ptxinject --types ../custom_types/data_types.json`. Each type of PTX
// Inject has its own stack here, so that a program can never add a mask to a number. The headers come from
//
//     python -m evo.ptx_inject generate --input ../custom_types/data_types.json --output custom_data_types.h
//     python -m evo.instructions generate --input ../custom_types/instructions.json --output custom_instructions.hpp --lang cpp
//
// Prints ../expected/custom_types.txt.

#include "inject_file.hpp"
#include "custom_data_types.h"
#include "custom_instructions.hpp"
#include "print_stub.hpp"

using namespace stack_ptx;

// Sites have their variables in the order out, in.
enum { REG_Z, REG_X, REG_Y, REG_W };

constexpr StackPtxInstruction program[] = {
    encode_input(REG_Y),
    encode_input(REG_X),
    encode_ptx_instruction_apply_mask,
    encode_ptx_instruction_popc_b32,
    encode_ptx_instruction_cvt_rn_f32_u32,
    encode_input(REG_W),
    encode_ptx_instruction_weight_to_f32,
    encode_ptx_instruction_mul_f32,
    encode_return,
};

int main(int argc, char** argv) {
    const std::map<std::string, StackType> stacks = {
        {"u32", StackType::U32}, {"mask", StackType::MASK}, {"weight", StackType::WEIGHT}, {"f32", StackType::F32}
    };
    if (argc != 3) {
        std::cerr << "usage: " << argv[0] << " INPUT.ptx OUTPUT.ptx\n";
        return 1;
    }
    const Inject inject = read_ptx(read_text(argv[1]), ptx_inject_data_types, PTX_INJECT_DATA_TYPE_NUM_ENUMS);

    size_t num_variables = 0;
    check(ptx_inject_inject_info_by_index(inject.get(), 0, nullptr, &num_variables, nullptr));
    std::vector<StackPtxRegister> registers;
    for (size_t i = 0; i < num_variables; ++i) {
        const char *name, *register_name, *data_type;
        check(ptx_inject_variable_info_by_index(inject.get(), 0, i, &name, &register_name, nullptr, nullptr, &data_type));
        registers.push_back({register_name, stack_idx(stacks.at(data_type))});
        std::cout << data_type << " " << name << " in %" << register_name << "\n";
    }

    const std::string stub = make_stub(stack_info, registers, program, {REG_Z});
    std::cout << stub << "\n";
    write_text(argv[2], render(inject, {{"func", stub}}));
}
