/*
 * print_stub.h - shared by the examples: the steps of simple.c as one function. Each example includes it once.
 */

#ifndef PRINT_STUB_H
#define PRINT_STUB_H

#define STACK_PTX_IMPLEMENTATION
#include <stack_ptx.h>
#include <stack_ptx_default_info.h>
#include <check_result_helper.h>

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Words that a program may run; bounds programs that come from a search. */
#define EXECUTION_LIMIT 1000

/* The stub of a program, which the caller frees. `routines` may be NULL if there are none. */
static inline char* make_stub(
    const StackPtxStackInfo* stack_info, const StackPtxRegister* registers, size_t num_registers,
    const StackPtxInstruction** routines, size_t num_routines, const StackPtxInstruction* program, const size_t* requests,
    size_t num_requests
) {
    size_t workspace_bytes = 0;
    size_t length = 0;
    void* workspace;
    char* stub;

    stackPtxCheck(stack_ptx_compile_workspace_size(&compiler_info, stack_info, &workspace_bytes));
    workspace = malloc(workspace_bytes);
    if (workspace == NULL) exit(EXIT_FAILURE);
    stackPtxCheck(stack_ptx_compile(
        &compiler_info, stack_info, program, registers, num_registers, routines, num_routines, requests, num_requests,
        EXECUTION_LIMIT, workspace, workspace_bytes, NULL, 0, &length
    ));
    stub = (char*)malloc(length + 1);
    if (stub == NULL) exit(EXIT_FAILURE);
    stackPtxCheck(stack_ptx_compile(
        &compiler_info, stack_info, program, registers, num_registers, routines, num_routines, requests, num_requests,
        EXECUTION_LIMIT, workspace, workspace_bytes, stub, length + 1, &length
    ));
    free(workspace);
    return stub;
}

/* Prints the stub of a program. */
static inline void print_stub(
    const StackPtxStackInfo* stack_info, const StackPtxRegister* registers, size_t num_registers,
    const StackPtxInstruction** routines, size_t num_routines, const StackPtxInstruction* program, const size_t* requests,
    size_t num_requests
) {
    char* stub = make_stub(stack_info, registers, num_registers, routines, num_routines, program, requests, num_requests);
    (void)puts(stub);
    free(stub);
}

#endif /* PRINT_STUB_H */
