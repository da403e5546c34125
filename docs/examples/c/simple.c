/*
 * simple.c - Stack PTX from a program to its stub, in one file: z = x * y + 1.
 *
 * Prints ../expected/simple.txt. stack_ptx_descriptions.h is the default instruction set, written by
 *
 *     python -m evo.instructions generate --input default --output stack_ptx_descriptions.h --lang c
 */

#define STACK_PTX_IMPLEMENTATION
#include <stack_ptx.h>
#include <stack_ptx_default_info.h>
#include <check_result_helper.h>

#include "stack_ptx_descriptions.h"

#include <stdio.h>
#include <stdlib.h>

enum { REG_X, REG_Y, REG_Z, NUM_REGISTERS };

/* Registers that exist around the stub, by their bare names: x is %x in PTX. */
static const StackPtxRegister registers[NUM_REGISTERS] = {
    [REG_X] = {.name = "x", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Y] = {.name = "y", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_Z] = {.name = "z", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

/* The top of the stack is an instruction's first operand. */
static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_X),
    stack_ptx_encode_input(REG_Y),
    stack_ptx_encode_ptx_instruction_mul_ftz_f32,
    stack_ptx_encode_constant_f32(1.0f),
    stack_ptx_encode_ptx_instruction_add_ftz_f32,
    stack_ptx_encode_return,
};

/* Registers that the stub writes, each from the top of its stack. */
static const size_t requests[] = {REG_Z};

#define NUM_REQUESTS (sizeof requests / sizeof requests[0])
#define EXECUTION_LIMIT 100 /* words run; bounds programs that come from a search */

int main(void) {
    size_t workspace_bytes = 0;
    size_t length = 0;
    void* workspace;
    char* stub;

    stackPtxCheck(stack_ptx_compile_workspace_size(&compiler_info, &stack_ptx_stack_info, &workspace_bytes));
    workspace = malloc(workspace_bytes);
    if (workspace == NULL) return EXIT_FAILURE;

    /* Without a buffer the text is measured; its NUL takes one byte more. */
    stackPtxCheck(stack_ptx_compile(
        &compiler_info, &stack_ptx_stack_info, program, registers, NUM_REGISTERS, NULL, 0, requests, NUM_REQUESTS,
        EXECUTION_LIMIT, workspace, workspace_bytes, NULL, 0, &length
    ));
    stub = (char*)malloc(length + 1);
    if (stub == NULL) return EXIT_FAILURE;
    stackPtxCheck(stack_ptx_compile(
        &compiler_info, &stack_ptx_stack_info, program, registers, NUM_REGISTERS, NULL, 0, requests, NUM_REQUESTS,
        EXECUTION_LIMIT, workspace, workspace_bytes, stub, length + 1, &length
    ));
    (void)puts(stub);

    free(stub);
    free(workspace);
    return EXIT_SUCCESS;
}
