/*
 * Tests of ast_ptx.h and ast_ptx_interpreter.h with the user's own limits and register name. What instructions compute is
 * compared with the virtual machine in tests/unit/ast_ptx/test_interpreter.py.
 */

#define AST_PTX_STACK_DEPTH 3
#define AST_PTX_ROUTINE_DEPTH 1
#define AST_PTX_MAX_INSTRUCTIONS 10
#define AST_PTX_MAX_INSTRUCTION_ARGS 2
#define AST_PTX_REGISTER_NAME "temporary_2_"
#define AST_PTX_INTERPRETER_BLOCK 2
#define AST_PTX_IMPLEMENTATION
#include "ast_ptx_interpreter.h"

#include "check.h"

#include <math.h>

#define INPUT(idx) ast_ptx_encode_input(idx)
#define RETURN ast_ptx_encode_return
#define CALL(idx, num_args) ast_ptx_encode_routine(idx, num_args)
#define ARG(idx) ast_ptx_encode_routine_arg(idx)
#define ADD ast_ptx_encode_ptx_instruction_add_ftz_f32
#define FMA ast_ptx_encode_ptx_instruction_fma_rn_ftz_f32
#define ABS ast_ptx_encode_ptx_instruction_abs_ftz_f32

static const char* const names[] = {"x"};
static const float one[] = {1.0f};
static char text[1024];
static float value;

/* The result of compiling, which is also that of interpreting. */
static AstPtxResult run(const AstPtxInstruction* const* routines, size_t num_routines, const AstPtxInstruction* program) {
    size_t length = 0;
    const AstPtxResult result = ast_ptx_compile(
        "z", names, 1, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args, AST_PTX_PTX_INSTRUCTION_NUM_ENUMS,
        routines, num_routines, program, text, sizeof text, &length
    );
    value = 0.0f;
    CHECK_UINT(ast_ptx_interpret(program, routines, num_routines, one, 1, &value), result);
    return result;
}

TEST(test_stack_depth) {
    static const AstPtxInstruction fits[] = {INPUT(0), INPUT(0), INPUT(0), ADD, ADD, RETURN};
    static const AstPtxInstruction not[] = {INPUT(0), INPUT(0), INPUT(0), INPUT(0), RETURN};
    CHECK_UINT(run(NULL, 0, fits), AST_PTX_SUCCESS);
    CHECK(value == 3.0f);
    CHECK_UINT(run(NULL, 0, not), AST_PTX_ERROR_STACK_OVERFLOW);
}

TEST(test_arguments_count_towards_the_stack_depth) {
    static const AstPtxInstruction two[] = {ARG(0), ARG(0), ADD, RETURN};
    static const AstPtxInstruction* const routines[] = {two};
    static const AstPtxInstruction fits[] = {INPUT(0), CALL(0, 1), RETURN};
    static const AstPtxInstruction not[] = {INPUT(0), INPUT(0), CALL(0, 2), RETURN};
    CHECK_UINT(run(routines, 1, fits), AST_PTX_SUCCESS);
    CHECK(value == 2.0f);
    CHECK_UINT(run(routines, 1, not), AST_PTX_ERROR_STACK_OVERFLOW);
}

TEST(test_routine_depth) {
    static const AstPtxInstruction inner[] = {INPUT(0), RETURN};
    static const AstPtxInstruction outer[] = {CALL(0, 0), RETURN};
    static const AstPtxInstruction outermost[] = {CALL(1, 0), RETURN};
    static const AstPtxInstruction* const routines[] = {inner, outer};
    CHECK_UINT(run(routines, 2, outer), AST_PTX_SUCCESS);
    CHECK_UINT(run(routines, 2, outermost), AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED);
}

TEST(test_max_instructions) {
    static const AstPtxInstruction routine[] = {ARG(0), ABS, ABS, RETURN};
    static const AstPtxInstruction* const routines[] = {routine};
    static const AstPtxInstruction ten[] = {INPUT(0), ABS, ABS, ABS, ABS, ABS, ABS, ABS, ABS, RETURN};
    static const AstPtxInstruction eleven[] = {INPUT(0), ABS, ABS, ABS, ABS, ABS, ABS, ABS, ABS, ABS, RETURN};
    static const AstPtxInstruction ten_with_call[] = {INPUT(0), ABS, ABS, ABS, CALL(0, 1), RETURN};
    static const AstPtxInstruction twelve_with_calls[] = {INPUT(0), CALL(0, 1), CALL(0, 1), RETURN};
    CHECK_UINT(run(NULL, 0, ten), AST_PTX_SUCCESS);
    CHECK_UINT(run(NULL, 0, eleven), AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
    CHECK_UINT(run(routines, 1, ten_with_call), AST_PTX_SUCCESS);
    CHECK_UINT(run(routines, 1, twelve_with_calls), AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
}

TEST(test_max_instruction_args) {
    static const AstPtxInstruction program[] = {INPUT(0), INPUT(0), INPUT(0), FMA, RETURN};
    CHECK_UINT(run(NULL, 0, program), AST_PTX_ERROR_TOO_MANY_ARGS);
}

TEST(test_register_name) {
    static const AstPtxInstruction program[] = {INPUT(0), ABS, ABS, RETURN};
    CHECK_UINT(run(NULL, 0, program), AST_PTX_SUCCESS);
    CHECK_TEXT(
        text,
        "{\n.reg .f32 %temporary_2_<2>;\nabs.ftz.f32 %temporary_2_0, %x;\nabs.ftz.f32 %temporary_2_1, %temporary_2_0;\n"
        "mov.f32 %z, %temporary_2_1;\n}"
    );
    CHECK_UINT(ast_ptx_check_name("temporary_2_7"), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_check_name("temporary_2"), AST_PTX_SUCCESS);
    CHECK_UINT(ast_ptx_check_name("temporary_2_"), AST_PTX_SUCCESS);
    CHECK_UINT(ast_ptx_check_name("ast0"), AST_PTX_SUCCESS);
}

TEST(test_blocks_join) {
    static const AstPtxInstruction words[] = {INPUT(0), INPUT(0), ADD, RETURN};
    static const float points[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
    const float* const arrays[] = {points};
    AstPtxProgram program;
    float values[5];
    size_t i;
    program.instructions = words;
    program.num_instructions = 4;
    program.routines = NULL;
    program.routine_lengths = NULL;
    program.num_routines = 0;
    CHECK_UINT(ast_ptx_interpret_program(&program, arrays, 1, 5, values, NULL), AST_PTX_SUCCESS);
    for (i = 0; i < 5; ++i) CHECK(values[i] == 2.0f * points[i]);
}

TEST(test_a_run_flushes_subnormals_and_leaves_the_mode_of_its_thread) {
    static const AstPtxInstruction program[] = {INPUT(0), INPUT(0), ADD, RETURN};
    static const float subnormal[] = {-1e-40f};
    volatile float smallest = 1.17549435e-38f, half = 0.5f;
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, subnormal, 1, &value), AST_PTX_SUCCESS);
    CHECK(value == 0.0f && signbit(value));
    CHECK(smallest * half > 0.0f);
}

TEST(test_error_invalid_value) {
    static const AstPtxInstruction program[] = {INPUT(0), RETURN}, calls[] = {CALL(0, 0), RETURN};
    static const AstPtxInstruction two_values[] = {INPUT(0), INPUT(0), RETURN};
    static const AstPtxInstruction* const no_routine[] = {NULL};
    value = 5.0f;
    CHECK_UINT(ast_ptx_interpret(NULL, NULL, 0, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 1, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, NULL, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, one, 1, NULL), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(calls, no_routine, 1, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(two_values, NULL, 0, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK(value == 5.0f);
    CHECK_UINT(ast_ptx_interpret_program(NULL, NULL, 0, 0, NULL, NULL), AST_PTX_ERROR_INVALID_VALUE);
}
