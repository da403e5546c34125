// two_sites.cpp - Stack PTX and PTX Inject together: two names, each with a stub made from a program.
//
//     two_sites INPUT.ptx OUTPUT.ptx
//
// INPUT.ptx is the PTX of ../cuda/two_sites.cu. Prints ../expected/two_sites.txt.

#include "inject_file.hpp"
#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

// Both sites have the variables x and y; each program writes y.
enum { REG_X, REG_Y };

// y = x + 1
constexpr StackPtxInstruction start_program[] = {
    encode_constant_f32(1.0f),
    encode_input(REG_X),
    encode_ptx_instruction_add_ftz_f32,
    encode_return,
};

// y = y * x + 1
constexpr StackPtxInstruction step_program[] = {
    encode_constant_f32(1.0f), encode_input(REG_X), encode_input(REG_Y), encode_ptx_instruction_fma_rn_ftz_f32, encode_return,
};

static std::string stub_of(const Inject& inject, const char* name, const StackPtxInstruction* program) {
    size_t num_sites = 0;
    check(ptx_inject_inject_info_by_name(inject.get(), name, nullptr, nullptr, &num_sites));
    std::cout << name << ": sites " << num_sites << "\n";
    const std::vector<StackPtxRegister> registers = {
        {register_of(inject, name, "x"), stack_idx(StackType::F32)},
        {register_of(inject, name, "y"), stack_idx(StackType::F32)},
    };
    const std::string stub = make_stub(stack_info, registers, program, {REG_Y});
    std::cout << stub << "\n";
    return stub;
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: " << argv[0] << " INPUT.ptx OUTPUT.ptx\n";
        return 1;
    }
    const Inject inject = read_ptx(read_text(argv[1]));
    const std::string start_stub = stub_of(inject, "start", start_program);
    const std::string step_stub = stub_of(inject, "step", step_program);
    write_text(argv[2], render(inject, {{"start", start_stub}, {"step", step_stub}}));
}
