/*
 * Tests of ast_ptx.h against the rules of its contract. Expected texts are worked out by hand from those rules.
 *
 * Codes that no test provokes: AST_PTX_ERROR_INTERNAL, because nothing can (a program that passed its check cannot fail), and
 * here AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION, which only interpreters give (tests/unit/ast_ptx).
 */

#define AST_PTX_IMPLEMENTATION
#include "ast_ptx.h"
#include "ast_ptx_instructions.h"
#include "stack_ptx.h"

#include "check.h"

#include <stdlib.h>

#define INPUT(idx) ast_ptx_encode_input(idx)
#define CONSTANT(value) ast_ptx_encode_constant(value)
#define RETURN ast_ptx_encode_return
#define CALL(idx, num_args) ast_ptx_encode_routine(idx, num_args)
#define ADD ast_ptx_encode_ptx_instruction_add_ftz_f32
#define MUL ast_ptx_encode_ptx_instruction_mul_ftz_f32
static const char* const inputs[] = {"x", "y", "w"};
static char text[4096];

/* With the shipped table and inputs x, y, w to z. */
#define COMPILE(routines, num_routines, program, buffer, size, length)                                                      \
    ast_ptx_compile(                                                                                                        \
        "z", inputs, 3, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args, AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, \
        routines, num_routines, program, buffer, size, length                                                               \
    )

/* Compiles to text, in a buffer of exactly the size that the first call tells. */
static AstPtxResult compile(const AstPtxInstruction* const* routines, size_t num_routines, const AstPtxInstruction* program) {
    size_t measured = 0, written = 0;
    AstPtxResult result = COMPILE(routines, num_routines, program, NULL, 0, &measured);
    text[0] = '\0';
    if (result == AST_PTX_SUCCESS) {
        CHECK(measured < sizeof text);
        result = COMPILE(routines, num_routines, program, text, measured + 1, &written);
        CHECK_UINT(written, measured);
        CHECK_UINT(strlen(text), measured);
    }
    return result;
}

#define CHECK_ERROR(code, ...)                                        \
    do {                                                              \
        const AstPtxInstruction program_[] = {__VA_ARGS__};           \
        CHECK_UINT(compile(NULL, 0, program_), AST_PTX_ERROR_##code); \
    } while (0)

/* ---- layout and tables ---- */

TEST(test_a_word_is_eight_bytes_of_type_aux_and_payload) {
    const AstPtxInstruction word = {0x1122, 0x3344, {1.0f}};
    uint64_t bits = 0;
    CHECK_UINT(sizeof word, 8);
    memcpy(&bits, &word, sizeof bits);
    CHECK_UINT(bits, UINT64_C(0x3F80000033441122));
}

TEST(test_enumerators_have_the_values_of_the_contract) {
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_NONE, 0);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_INPUT, 1);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_CONSTANT, 2);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION, 3);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_ROUTINE, 4);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_RETURN, 5);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG, 6);
    CHECK_UINT(AST_PTX_INSTRUCTION_TYPE_REGISTER, 7);
    CHECK_UINT(AST_PTX_SUCCESS, 0);
    CHECK_UINT(AST_PTX_ERROR_INTERNAL, 1);
    CHECK_UINT(AST_PTX_ERROR_INSUFFICIENT_BUFFER, 2);
    CHECK_UINT(AST_PTX_ERROR_INVALID_VALUE, 3);
    CHECK_UINT(AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN, 4);
    CHECK_UINT(AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS, 5);
    CHECK_UINT(AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS, 6);
    CHECK_UINT(AST_PTX_ERROR_STACK_OVERFLOW, 7);
    CHECK_UINT(AST_PTX_ERROR_STACK_UNDERFLOW, 8);
    CHECK_UINT(AST_PTX_ERROR_TOO_MANY_ARGS, 9);
    CHECK_UINT(AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION, 10);
    CHECK_UINT(AST_PTX_ERROR_ROUTINE_IDX_OUT_OF_BOUNDS, 11);
    CHECK_UINT(AST_PTX_ERROR_ROUTINE_ARG_IDX_OUT_OF_BOUNDS, 12);
    CHECK_UINT(AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED, 13);
    CHECK_UINT(AST_PTX_STACK_DEPTH, 256);
    CHECK_UINT(AST_PTX_ROUTINE_DEPTH, 8);
    CHECK_UINT(AST_PTX_MAX_INSTRUCTIONS, 65536);
    CHECK_UINT(AST_PTX_MAX_INSTRUCTION_ARGS, 4);
    CHECK_TEXT(AST_PTX_REGISTER_NAME, "ast");
}

TEST(test_the_table_has_the_order_of_the_contract) {
    static const char* const names[] = {"copysign", "add", "sub",  "mul",   "fma", "div", "abs", "neg", "min",
                                        "max",      "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"};
    static const AstPtxInstruction words[] = {
        ast_ptx_encode_ptx_instruction_copysign_f32,         ast_ptx_encode_ptx_instruction_add_ftz_f32,
        ast_ptx_encode_ptx_instruction_sub_ftz_f32,          ast_ptx_encode_ptx_instruction_mul_ftz_f32,
        ast_ptx_encode_ptx_instruction_fma_rn_ftz_f32,       ast_ptx_encode_ptx_instruction_div_approx_ftz_f32,
        ast_ptx_encode_ptx_instruction_abs_ftz_f32,          ast_ptx_encode_ptx_instruction_neg_ftz_f32,
        ast_ptx_encode_ptx_instruction_min_ftz_f32,          ast_ptx_encode_ptx_instruction_max_ftz_f32,
        ast_ptx_encode_ptx_instruction_rcp_approx_ftz_f32,   ast_ptx_encode_ptx_instruction_sqrt_approx_ftz_f32,
        ast_ptx_encode_ptx_instruction_rsqrt_approx_ftz_f32, ast_ptx_encode_ptx_instruction_sin_approx_ftz_f32,
        ast_ptx_encode_ptx_instruction_cos_approx_ftz_f32,   ast_ptx_encode_ptx_instruction_lg2_approx_ftz_f32,
        ast_ptx_encode_ptx_instruction_ex2_approx_ftz_f32,   ast_ptx_encode_ptx_instruction_tanh_approx_f32
    };
    size_t i;
    CHECK_UINT(AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, COUNT(names));
    CHECK_UINT(COUNT(words), COUNT(names));
    for (i = 0; i < COUNT(names); ++i) {
        CHECK(strncmp(ast_ptx_ptx_instruction_names[i], names[i], strlen(names[i])) == 0);
        CHECK(ast_ptx_ptx_instruction_names[i][strlen(names[i])] == '.');
        CHECK_UINT(words[i].instruction_type, AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION);
        CHECK_UINT(words[i].payload.idx, i);
        CHECK_UINT(words[i].aux, ast_ptx_ptx_instruction_num_args[i]);
    }
    CHECK_UINT(ast_ptx_ptx_instruction_num_args[AST_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32], 3);
    CHECK_UINT(ast_ptx_ptx_instruction_num_args[AST_PTX_PTX_INSTRUCTION_TANH_APPROX_F32], 1);
}

/* ---- stubs ---- */

TEST(test_constants_keep_their_bits) {
    static const uint32_t bits[] = {0x7f800001u, 0xffc12345u, 0x80000000u, 0x00000001u, 0xdeadbeefu};
    static const char* const literals[] = {"0f7f800001", "0fffc12345", "0f80000000", "0f00000001", "0fdeadbeef"};
    size_t i;
    for (i = 0; i < COUNT(bits); ++i) {
        char expected[64];
        AstPtxInstruction program[] = {CONSTANT(0.0f), RETURN};
        program[0].payload.idx = bits[i];
        CHECK_UINT(compile(NULL, 0, program), AST_PTX_SUCCESS);
        (void)snprintf(expected, sizeof expected, "{\nmov.f32 %%z, %s;\n}", literals[i]);
        CHECK_TEXT(text, expected);
    }
}

TEST(test_names_and_tables_of_any_length_are_written_whole) {
    static const char* const names[] = {
        "a",
        "b",
        "c",
        "d",
        "e",
        "g",
        "h",
        "i",
        "j",
        "k",
        "l",
        "m",
        "n",
        "o",
        "q",
        "s",
        "behind_the_ones_that_are_kept",
        "a_name_that_is_longer_than_its_slot"
    };
    static const char* const instructions[] = {
        "four.f32", "none.f32", "a.name.of.an.instruction.that.is.longer.than.its.slot.f32"
    };
    static const uint16_t num_args[] = {4, 0, 1};
    static const AstPtxInstruction program[] = {
        INPUT(16),
        INPUT(17),
        INPUT(15),
        ast_ptx_encode_ptx_instruction(1, 0),
        ast_ptx_encode_ptx_instruction(0, 4),
        ast_ptx_encode_ptx_instruction(2, 1),
        RETURN
    };
    size_t length = 0;
    CHECK_UINT(
        ast_ptx_compile("q$9", names, 18, instructions, num_args, 3, NULL, 0, program, text, sizeof text, &length),
        AST_PTX_SUCCESS
    );
    CHECK_TEXT(
        text,
        "{\n.reg .f32 %ast<3>;\nnone.f32 %ast0;\n"
        "four.f32 %ast1, %behind_the_ones_that_are_kept, %a_name_that_is_longer_than_its_slot, %s, %ast0;\n"
        "a.name.of.an.instruction.that.is.longer.than.its.slot.f32 %ast2, %ast1;\nmov.f32 %q$9, %ast2;\n}"
    );
    CHECK_UINT(length, strlen(text));
}

/* ---- buffers ---- */

TEST(test_every_buffer_that_is_too_small_is_refused_and_told_the_size) {
    static const AstPtxInstruction program[] = {INPUT(0), INPUT(1), MUL, CONSTANT(1.0f), ADD, RETURN};
    size_t needed, size;
    CHECK_UINT(compile(NULL, 0, program), AST_PTX_SUCCESS);
    needed = strlen(text) + 1;
    for (size = 0; size <= needed; ++size) {
        /* Exactly the size, so that a sanitizer sees writes past the end. */
        char* buffer = (char*)malloc(size + (size == 0));
        size_t written = 0;
        const AstPtxResult result = COMPILE(NULL, 0, program, buffer, size, &written);
        CHECK_UINT(result, size < needed ? AST_PTX_ERROR_INSUFFICIENT_BUFFER : AST_PTX_SUCCESS);
        CHECK_UINT(written, needed - 1);
        if (result == AST_PTX_SUCCESS) CHECK_TEXT(buffer, text);
        free(buffer);
    }
}

/* ---- errors, by code ---- */

TEST(test_error_invalid_value) {
    static const AstPtxInstruction program[] = {INPUT(0), RETURN};
    static const char* const hole[] = {"x", NULL};
    static const char* const bad[] = {"x", "f1"};
    static const uint16_t num_args[] = {1, 1};
    static const AstPtxInstruction calls[] = {CALL(0, 0), RETURN};
    static const AstPtxInstruction* const no_routine[] = {NULL};
    size_t length = 7;
    AstPtxPlace place = {5, 5};
#define COMPILE_WITH(output, names, num, table, args, num_table, words, length_out)                  \
    ast_ptx_compile(output, names, num, table, args, num_table, NULL, 0, words, NULL, 0, length_out)
    CHECK_UINT(COMPILE_WITH("z", inputs, 3, hole, num_args, 1, program, &length), AST_PTX_SUCCESS);
    length = 7;
    CHECK_UINT(COMPILE_WITH(NULL, inputs, 3, hole, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("", inputs, 3, hole, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("rd7", inputs, 3, hole, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", NULL, 3, hole, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", hole, 2, hole, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", bad, 2, hole, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", inputs, 3, NULL, num_args, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", inputs, 3, hole, NULL, 1, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", inputs, 3, hole, num_args, 2, program, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", inputs, 3, hole, num_args, 1, NULL, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(COMPILE_WITH("z", inputs, 3, hole, num_args, 1, program, NULL), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_compile("z", inputs, 3, NULL, NULL, 0, NULL, 1, program, NULL, 0, &length), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(
        ast_ptx_compile("z", inputs, 3, NULL, NULL, 0, no_routine, 1, calls, NULL, 0, &length), AST_PTX_ERROR_INVALID_VALUE
    );
    CHECK_UINT(
        ast_ptx_compile_program("z", inputs, 3, NULL, NULL, 0, NULL, NULL, 0, &length, &place), AST_PTX_ERROR_INVALID_VALUE
    );
    CHECK_UINT(length, 7);
    CHECK_UINT(place.word_idx, 5);
    CHECK_ERROR(INVALID_VALUE, INPUT(0), INPUT(1), RETURN);
    CHECK_ERROR(
        INVALID_VALUE, INPUT(0), INPUT(1), ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_ADD_FTZ_F32, 1), RETURN
    );
#undef COMPILE_WITH
}

/* ---- names ---- */

TEST(test_names_of_temporaries_are_refused) {
    CHECK_UINT(ast_ptx_check_name("ast0"), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_check_name("ast123"), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_check_name("ast"), AST_PTX_SUCCESS);
    CHECK_UINT(ast_ptx_check_name("ast1x"), AST_PTX_SUCCESS);
    CHECK_UINT(ast_ptx_check_name("last1"), AST_PTX_SUCCESS);
    CHECK_UINT(ast_ptx_check_name("_s0_1"), AST_PTX_SUCCESS);
    CHECK_UINT(ast_ptx_check_name("f1"), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_check_name("x.y"), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_check_name(""), AST_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(ast_ptx_check_name(NULL), AST_PTX_ERROR_INVALID_VALUE);
}
