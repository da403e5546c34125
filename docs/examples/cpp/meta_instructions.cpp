// meta_instructions.cpp - moves values on a stack. A meta instruction emits no PTX; it decides what later ones work on.
//
// Each program puts a, b, c, d on the stack (d is on top), does one thing, and takes the top three off again: into first,
// second and third. Prints ../expected/meta_instructions.txt.

#include "print_stub.hpp"
#include "stack_ptx_descriptions.hpp"

using namespace stack_ptx;

enum { REG_A, REG_B, REG_C, REG_D, REG_FIRST, REG_SECOND, REG_THIRD };

struct Example {
    const char* name;
    std::vector<StackPtxInstruction> words;
};

int main() {
    std::vector<StackPtxRegister> registers;
    for (const char* name : {"a", "b", "c", "d", "first", "second", "third"})
        registers.push_back({name, stack_idx(StackType::F32)});
    // A depth or count comes from the meta stack; 0 is the top.
    const std::vector<Example> examples = {
        {"dup", {encode_meta_dup(StackType::F32)}},
        {"yank_dup 2", {encode_meta_constant(2), encode_meta_yank_dup(StackType::F32)}},
        {"swap", {encode_meta_swap(StackType::F32)}},
        {"swap_with 2", {encode_meta_constant(2), encode_meta_swap_with(StackType::F32)}},
        {"replace 2", {encode_meta_constant(2), encode_meta_replace(StackType::F32)}},
        {"drop 1", {encode_meta_constant(1), encode_meta_drop(StackType::F32)}},
        {"clear", {encode_meta_clear(StackType::F32), encode_input(REG_A)}},
        {"rotate", {encode_meta_rotate(StackType::F32)}},
        {"reverse", {encode_meta_reverse(StackType::F32)}},
    };
    for (const Example& example : examples) {
        std::vector<StackPtxInstruction> program = {
            encode_input(REG_A), encode_input(REG_B), encode_input(REG_C), encode_input(REG_D)
        };
        program.insert(program.end(), example.words.begin(), example.words.end());
        program.push_back(encode_return);
        std::cout << example.name << "\n"
                  << make_stub(stack_info, registers, program.data(), {REG_FIRST, REG_SECOND, REG_THIRD}) << "\n";
    }
}
