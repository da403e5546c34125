/*
 * Tests of ast_ptx_interpreter.h: programs, points and errors. tests/unit/ast_ptx/test_interpreter.py compares what instructions
 * compute with the virtual machine, bit by bit.
 *
 * No test provokes AST_PTX_ERROR_INTERNAL, because nothing can, nor AST_PTX_ERROR_INSUFFICIENT_BUFFER and
 * AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS, since an interpreter has neither a buffer nor a table. AST_PTX_IMPLEMENTATION
 * is not defined here: the interpreter does not need it.
 */

#include "ast_ptx_interpreter.h"

#include "check.h"

#define INPUT(idx) ast_ptx_encode_input(idx)
#define CONSTANT(value) ast_ptx_encode_constant(value)
#define RETURN ast_ptx_encode_return
#define CALL(idx, num_args) ast_ptx_encode_routine(idx, num_args)
#define ARG(idx) ast_ptx_encode_routine_arg(idx)
#define PTX(name) ast_ptx_encode_ptx_instruction_##name

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The bits that a program gives for up to three inputs given as bits. */
static uint32_t run(const AstPtxInstruction* program, uint32_t a, uint32_t b, uint32_t c) {
    uint32_t input_bits[3];
    float inputs[3];
    float value = 0.0f;
    input_bits[0] = a;
    input_bits[1] = b;
    input_bits[2] = c;
    memcpy(inputs, input_bits, sizeof inputs);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, inputs, 3, &value), AST_PTX_SUCCESS);
    return bits_of(value);
}

#define CHECK_ONE(name, a, expected)                                        \
    do {                                                                    \
        const AstPtxInstruction program_[] = {INPUT(0), PTX(name), RETURN}; \
        CHECK_UINT(run(program_, a, 0, 0), expected);                       \
    } while (0)
#define CHECK_TWO(name, a, b, expected)                                               \
    do {                                                                              \
        const AstPtxInstruction program_[] = {INPUT(0), INPUT(1), PTX(name), RETURN}; \
        CHECK_UINT(run(program_, a, b, 0), expected);                                 \
    } while (0)
#define CHECK_THREE(name, a, b, c, expected)                                                    \
    do {                                                                                        \
        const AstPtxInstruction program_[] = {INPUT(0), INPUT(1), INPUT(2), PTX(name), RETURN}; \
        CHECK_UINT(run(program_, a, b, c), expected);                                           \
    } while (0)
#define CHECK_ERROR(code, ...)                                                                   \
    do {                                                                                         \
        const AstPtxInstruction program_[] = {__VA_ARGS__};                                      \
        float value_ = 5.0f;                                                                     \
        CHECK_UINT(ast_ptx_interpret(program_, NULL, 0, one, 1, &value_), AST_PTX_ERROR_##code); \
        CHECK(value_ == 5.0f);                                                                   \
    } while (0)

static const float one[] = {1.0f};

TEST(test_the_listing_of_the_guide) {
    static const AstPtxInstruction program[] = {INPUT(0), INPUT(1), PTX(mul_ftz_f32), CONSTANT(1.0f), PTX(add_ftz_f32), RETURN};
    static const float inputs[] = {3.0f, 4.0f};
    float value = 0.0f;
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, inputs, 2, &value), AST_PTX_SUCCESS);
    CHECK(value == 13.0f);
}

TEST(test_operands_are_taken_in_push_order) {
    CHECK_TWO(sub_ftz_f32, bits_of(5.0f), bits_of(3.0f), bits_of(2.0f));
    CHECK_TWO(div_approx_ftz_f32, bits_of(6.0f), bits_of(2.0f), bits_of(3.0f));
    CHECK_THREE(fma_rn_ftz_f32, bits_of(2.0f), bits_of(3.0f), bits_of(10.0f), bits_of(16.0f));
}

TEST(test_a_run_flushes_subnormals_and_leaves_the_mode_of_its_thread) {
    volatile float smallest = 1.17549435e-38f, half = 0.5f;
    CHECK_TWO(mul_ftz_f32, 0x80800000u, bits_of(0.5f), 0x80000000u);
    CHECK_ONE(tanh_approx_f32, 0x00000001u, 0x00000001u);
    CHECK(smallest * half > 0.0f);
}

TEST(test_routines_take_arguments_and_leave_a_value) {
    static const AstPtxInstruction square[] = {ARG(0), ARG(0), PTX(mul_ftz_f32), RETURN};
    static const AstPtxInstruction distance[] = {ARG(0),     CALL(0, 1),       ARG(1),
                                                 CALL(0, 1), PTX(add_ftz_f32), PTX(sqrt_approx_ftz_f32),
                                                 RETURN};
    static const AstPtxInstruction* const routines[] = {square, distance};
    static const AstPtxInstruction program[] = {CONSTANT(100.0f), INPUT(0), INPUT(1), CALL(1, 2), PTX(sub_ftz_f32), RETURN};
    static const float inputs[] = {3.0f, 4.0f};
    float value = 0.0f;
    CHECK_UINT(ast_ptx_interpret(program, routines, 2, inputs, 2, &value), AST_PTX_SUCCESS);
    CHECK(value == 95.0f);
}

TEST(test_points_are_worked_on_in_blocks) {
    enum { NUM_POINTS = 3 * AST_PTX_INTERPRETER_BLOCK + 5 };
    static const AstPtxInstruction words[] = {INPUT(0), INPUT(2), PTX(sub_ftz_f32), RETURN};
    float first[NUM_POINTS];
    float third[NUM_POINTS];
    const float* inputs[3];
    AstPtxProgram program;
    AstPtxPlace place = {7, 7};
    size_t i;
    inputs[0] = first;
    inputs[1] = NULL; /* not read */
    inputs[2] = third;
    program.instructions = words;
    program.num_instructions = 4;
    program.routines = NULL;
    program.routine_lengths = NULL;
    program.num_routines = 0;
    for (i = 0; i < NUM_POINTS; ++i) {
        first[i] = (float)i;
        third[i] = 2.0f * (float)i;
    }
    CHECK_UINT(ast_ptx_interpret_program(&program, inputs, 3, NUM_POINTS, first, &place), AST_PTX_SUCCESS);
    for (i = 0; i < NUM_POINTS; ++i) CHECK(first[i] == -(float)i);
    CHECK_UINT(place.word_idx, 7);
    CHECK_UINT(ast_ptx_interpret_program(&program, inputs, 3, 0, NULL, NULL), AST_PTX_SUCCESS);
    inputs[2] = NULL;
    CHECK_UINT(ast_ptx_interpret_program(&program, inputs, 3, 1, first, &place), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(place.word_idx, 1);
    CHECK_UINT(ast_ptx_interpret_program(NULL, inputs, 3, 1, first, &place), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret_program(&program, NULL, 3, 1, first, &place), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret_program(&program, inputs, 3, 1, NULL, &place), AST_PTX_ERROR_INVALID_VALUE);
}

/* ---- errors, by code ---- */

TEST(test_error_invalid_value) {
    static const AstPtxInstruction program[] = {INPUT(0), RETURN};
    static const AstPtxInstruction* const no_routine[] = {NULL};
    static const AstPtxInstruction calls[] = {CALL(0, 0), RETURN};
    float value;
    CHECK_UINT(ast_ptx_interpret(NULL, NULL, 0, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 1, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, NULL, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(program, NULL, 0, one, 1, NULL), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_interpret(calls, no_routine, 1, one, 1, &value), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_ERROR(INVALID_VALUE, INPUT(0), INPUT(0), RETURN);
    CHECK_ERROR(INVALID_VALUE, INPUT(0), ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_ADD_FTZ_F32, 1), RETURN);
}

TEST(test_errors_of_words) {
    static const AstPtxInstruction endless[] = {CALL(0, 0), RETURN};
    static const AstPtxInstruction* const itself[] = {endless};
    static AstPtxInstruction overfull[AST_PTX_STACK_DEPTH + 1];
    static const AstPtxInstruction input = INPUT(0);
    float value = 0.0f;
    size_t i;
    CHECK_ERROR(BAD_INSTRUCTION_MAYBE_FORGOT_RETURN, INPUT(0), {AST_PTX_INSTRUCTION_TYPE_REGISTER, 0, {0.0f}}, RETURN);
    CHECK_ERROR(INPUT_IDX_OUT_OF_BOUNDS, INPUT(1), RETURN);
    CHECK_ERROR(STACK_UNDERFLOW, INPUT(0), PTX(fma_rn_ftz_f32), RETURN);
    CHECK_ERROR(TOO_MANY_ARGS, INPUT(0), ast_ptx_encode_ptx_instruction(0, AST_PTX_MAX_INSTRUCTION_ARGS + 1), RETURN);
    CHECK_ERROR(UNSUPPORTED_INSTRUCTION, INPUT(0), ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, 1), RETURN);
    CHECK_ERROR(ROUTINE_IDX_OUT_OF_BOUNDS, CALL(0, 0), RETURN);
    CHECK_ERROR(ROUTINE_ARG_IDX_OUT_OF_BOUNDS, ARG(0), RETURN);
    CHECK_UINT(ast_ptx_interpret(endless, itself, 1, one, 1, &value), AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED);
    for (i = 0; i <= AST_PTX_STACK_DEPTH; ++i) overfull[i] = input;
    CHECK_UINT(ast_ptx_interpret(overfull, NULL, 0, one, 1, &value), AST_PTX_ERROR_STACK_OVERFLOW);
}
