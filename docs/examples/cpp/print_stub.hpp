// print_stub.hpp - shared by the examples: stack_ptx_compile with memory that C++ owns. Each example includes it once.

#ifndef PRINT_STUB_HPP
#define PRINT_STUB_HPP

#define STACK_PTX_IMPLEMENTATION
#include <stack_ptx.h>
#include <stack_ptx_default_info.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

// Throws if a call of the library failed.
inline void check(StackPtxResult result) {
    if (result != STACK_PTX_SUCCESS) throw std::runtime_error(stack_ptx_result_to_string(result));
}

// The stub of a program, which ends with a RETURN, like each routine. `requests` are indices of registers.
inline std::string make_stub(
    const StackPtxStackInfo& stack_info, const std::vector<StackPtxRegister>& registers, const StackPtxInstruction* program,
    const std::vector<size_t>& requests,
    std::vector<const StackPtxInstruction*> routines = std::vector<const StackPtxInstruction*>()
) {
    const size_t execution_limit = 1000; // words run; bounds programs that come from a search
    size_t workspace_bytes = 0;
    check(stack_ptx_compile_workspace_size(&compiler_info, &stack_info, &workspace_bytes));
    std::vector<unsigned char> workspace(workspace_bytes);

    const auto compile = [&](char* buffer, size_t buffer_size) {
        size_t length = 0;
        check(stack_ptx_compile(
            &compiler_info, &stack_info, program, registers.data(), registers.size(), routines.data(), routines.size(),
            requests.data(), requests.size(), execution_limit, workspace.data(), workspace.size(), buffer, buffer_size, &length
        ));
        return length;
    };
    // Without a buffer the text is measured; its NUL takes one byte more, which a string has.
    std::string stub(compile(nullptr, 0), ' ');
    compile(&stub[0], stub.size() + 1);
    return stub;
}

#endif // PRINT_STUB_HPP
