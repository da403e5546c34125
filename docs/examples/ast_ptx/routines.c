/*
 * routines.c - AST PTX with routines, which are written out at each call: z = sqrt(x * x + y * y), by a square and a distance.
 *
 * Prints routines.txt. C99 and C++11.
 */

#define AST_PTX_IMPLEMENTATION
#include <ast_ptx.h>
#include <ast_ptx_instructions.h>
#include <check_result_helper.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROUTINE_SQUARE, ROUTINE_DISTANCE, NUM_ROUTINES };

static const char* const input_names[] = {"x", "y"};

static const AstPtxInstruction square[] = {
    ast_ptx_encode_routine_arg(0),
    ast_ptx_encode_routine_arg(0),
    ast_ptx_encode_ptx_instruction_mul_ftz_f32,
    ast_ptx_encode_return,
};

/* A call pops its arguments; argument 0 was pushed first. */
static const AstPtxInstruction distance[] = {
    ast_ptx_encode_routine_arg(0),
    ast_ptx_encode_routine(ROUTINE_SQUARE, 1),
    ast_ptx_encode_routine_arg(1),
    ast_ptx_encode_routine(ROUTINE_SQUARE, 1),
    ast_ptx_encode_ptx_instruction_add_ftz_f32,
    ast_ptx_encode_ptx_instruction_sqrt_approx_ftz_f32,
    ast_ptx_encode_return,
};

static const AstPtxInstruction* const routines[NUM_ROUTINES] = {square, distance};

static const AstPtxInstruction program[] = {
    ast_ptx_encode_input(0),
    ast_ptx_encode_input(1),
    ast_ptx_encode_routine(ROUTINE_DISTANCE, 2),
    ast_ptx_encode_return,
};

int main(void) {
    char stub[1024]; /* enough here; measure to know */
    size_t length = 0;
    ASSERT(
        ast_ptx_compile(
            "z", input_names, 2, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args,
            AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, routines, NUM_ROUTINES, program, stub, sizeof stub, &length
        ) == AST_PTX_SUCCESS
    );
    (void)puts(stub);
    return EXIT_SUCCESS;
}
