/*
 * simple.c - AST PTX from an expression to its stub and to its value, in one file: z = x * y + 1.
 *
 * Prints simple.txt. C99 and C++11.
 */

#define AST_PTX_IMPLEMENTATION
#include <ast_ptx.h>
#include <ast_ptx_instructions.h>
#include <ast_ptx_interpreter.h>
#include <check_result_helper.h>

#include <stdio.h>
#include <stdlib.h>

enum { INPUT_X, INPUT_Y, NUM_INPUTS };

/* Registers that exist around the stub, by their bare names: x is %x in PTX. */
static const char output_name[] = "z";
static const char* const input_names[NUM_INPUTS] = {"x", "y"};

/* Postorder: operands, in their order, before their instruction. */
static const AstPtxInstruction program[] = {
    ast_ptx_encode_input(INPUT_X),
    ast_ptx_encode_input(INPUT_Y),
    ast_ptx_encode_ptx_instruction_mul_ftz_f32,
    ast_ptx_encode_constant(1.0f),
    ast_ptx_encode_ptx_instruction_add_ftz_f32,
    ast_ptx_encode_return,
};

int main(void) {
    static const float inputs[NUM_INPUTS] = {3.0f, 4.0f};
    float value = 0.0f;
    size_t length = 0;
    char* stub;

    /* Without a buffer the text is measured; its NUL takes one byte more. */
    ASSERT(
        ast_ptx_compile(
            output_name, input_names, NUM_INPUTS, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args,
            AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, NULL, 0, program, NULL, 0, &length
        ) == AST_PTX_SUCCESS
    );
    stub = (char*)malloc(length + 1);
    ASSERT(
        ast_ptx_compile(
            output_name, input_names, NUM_INPUTS, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args,
            AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, NULL, 0, program, stub, length + 1, &length
        ) == AST_PTX_SUCCESS
    );
    (void)puts(stub);
    free(stub);

    ASSERT(ast_ptx_interpret(program, NULL, 0, inputs, NUM_INPUTS, &value) == AST_PTX_SUCCESS);
    (void)printf("at x = 3, y = 4: %g\n", (double)value);
    return EXIT_SUCCESS;
}
