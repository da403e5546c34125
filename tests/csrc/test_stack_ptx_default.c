/*
 * Tests of the generated header of the default instruction set with stack_ptx_compile: the programs of the documentation and the
 * stubs that they give, worked out by hand (the popped top is the first operand).
 */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"
#include "stack_ptx_default_info.h"

#include "check_result_helper.h"

#include "generated/stack_ptx_descriptions.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { X, Y, Z, W, U, V, P, H2, H, B, C, T0, T1, T2, A, D, R, S, NUM_REGISTERS };

static const StackPtxRegister registers[NUM_REGISTERS] = {
    [X] = {.name = "x", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [Y] = {.name = "y", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [Z] = {.name = "z", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [W] = {.name = "w", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [U] = {.name = "u", .stack_idx = STACK_PTX_STACK_TYPE_U32},
    [V] = {.name = "v", .stack_idx = STACK_PTX_STACK_TYPE_U32},
    [P] = {.name = "q", .stack_idx = STACK_PTX_STACK_TYPE_PRED},
    [H2] = {.name = "h2in", .stack_idx = STACK_PTX_STACK_TYPE_F16X2},
    [H] = {.name = "half", .stack_idx = STACK_PTX_STACK_TYPE_F16},
    [B] = {.name = "byte", .stack_idx = STACK_PTX_STACK_TYPE_U8},
    [C] = {.name = "byte_out", .stack_idx = STACK_PTX_STACK_TYPE_U8},
    [T0] = {.name = "t0", .stack_idx = STACK_PTX_STACK_TYPE_TF32},
    [T1] = {.name = "t1", .stack_idx = STACK_PTX_STACK_TYPE_TF32},
    [T2] = {.name = "t2", .stack_idx = STACK_PTX_STACK_TYPE_TF32},
    [A] = {.name = "a", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [D] = {.name = "d", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [R] = {.name = "state", .stack_idx = STACK_PTX_STACK_TYPE_PHILOX},
    [S] = {.name = "s", .stack_idx = STACK_PTX_STACK_TYPE_S32},
};

static const StackPtxInstruction square[] = {
    stack_ptx_encode_meta_dup(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_ptx_instruction_mul_ftz_f32, stack_ptx_encode_return
};
static const StackPtxInstruction fourth_power[] = {
    stack_ptx_encode_routine(0), stack_ptx_encode_routine(0), stack_ptx_encode_return
};
static const StackPtxInstruction* routines[] = {square, fourth_power};

static const char* compile_with(
    const StackPtxStackInfo* info, const StackPtxInstruction* words, const StackPtxRegister* of_registers, size_t num_registers,
    const size_t* requests, size_t num_requests
) {
    static char text[4096];
    size_t num_bytes = 0, length = 0;
    StackPtxResult result;
    void* workspace;
    stackPtxCheck(stack_ptx_compile_workspace_size(&compiler_info, &stack_ptx_stack_info, &num_bytes));
    workspace = malloc(num_bytes);
    CHECK(workspace != NULL);
    result = stack_ptx_compile(
        &compiler_info, info, words, of_registers, num_registers, routines, 2, requests, num_requests, 100, workspace, num_bytes,
        text, sizeof text, &length
    );
    free(workspace);
    CHECK(result != STACK_PTX_SUCCESS || length == strlen(text));
    return result == STACK_PTX_SUCCESS ? text : stack_ptx_result_to_string(result);
}

static const size_t request_z[] = {Z};

/* PTX has mov for no 8-bit type and for neither f16 type. */
TEST(test_moves_are_what_ptx_has_for_the_type) {
    static const char* const types[][2] = {
        {"u8", "cvt.u8.u8"}, {"s8", "cvt.u8.u8"}, {"b8", "cvt.u8.u8"},  {"f16", "mov.b16"}, {"f16x2", "mov.b32"},
        {"b16", "mov.b16"},  {"u16", "mov.u16"},  {"pred", "mov.pred"}, {"b64", "mov.b64"}, {"f64", "mov.f64"},
    };
    static const StackPtxInstruction words[] = {stack_ptx_encode_input(B), stack_ptx_encode_return};
    static const size_t request[] = {C};
    const char* prefixes[STACK_PTX_STACK_TYPE_NUM_ENUMS];
    StackPtxStackInfo info = stack_ptx_stack_info;
    size_t i;
    memcpy(prefixes, stack_ptx_literal_prefixes, sizeof prefixes);
    info.stack_literal_prefixes = prefixes;
    for (i = 0; i < COUNT(types); ++i) {
        char expected[64];
        prefixes[STACK_PTX_STACK_TYPE_U8] = types[i][0];
        (void)snprintf(expected, sizeof expected, "{\n%s %%byte_out, %%byte;\n}", types[i][1]);
        CHECK_TEXT(compile_with(&info, words, registers, NUM_REGISTERS, request, 1), expected);
    }
}

TEST(test_immediates_follow_the_operands) {
    const char* strings[STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS];
    StackPtxStackInfo info = stack_ptx_stack_info;
    static const StackPtxInstruction words[] = {
        stack_ptx_encode_input(U), stack_ptx_encode_constant_u32(7), stack_ptx_encode_input(V),
        stack_ptx_encode_ptx_instruction_mad_lo_u32, stack_ptx_encode_return
    };
    static const size_t request[] = {V};
    memcpy(strings, stack_ptx_ptx_instruction_strings, sizeof strings);
    strings[STACK_PTX_PTX_INSTRUCTION_MAD_LO_U32] = "lop3.b32 0x96, 1";
    info.ptx_instruction_strings = strings;
    CHECK_TEXT(
        compile_with(&info, words, registers, NUM_REGISTERS, request, 1),
        "{\n.reg .u32 %_s1_<1>;\nlop3.b32 %_s1_0, %v, 0x00000007U, %u, 0x96, 1;\nmov.u32 %v, %_s1_0;\n}"
    );
}

TEST(test_any_number_of_registers) {
    enum { MANY = 200 };
    static char names[MANY][8];
    static StackPtxRegister many[MANY];
    size_t counts[] = {64, 65, MANY};
    size_t i, k;
    for (i = 0; i < MANY; ++i) {
        (void)snprintf(names[i], sizeof names[i], "in%u", (unsigned)i);
        many[i].name = names[i];
        many[i].stack_idx = STACK_PTX_STACK_TYPE_F32;
    }
    for (k = 0; k < COUNT(counts); ++k) {
        char expected[128];
        const size_t last = counts[k] - 1;
        const StackPtxInstruction words[] = {
            stack_ptx_encode_input(last), stack_ptx_encode_input(0), stack_ptx_encode_input(last),
            stack_ptx_encode_ptx_instruction_fma_rn_ftz_f32, stack_ptx_encode_return
        };
        (void)snprintf(
            expected, sizeof expected,
            "{\n.reg .f32 %%_s0_<1>;\nfma.rn.ftz.f32 %%_s0_0, %%in%u, %%in0, %%in%u;\nmov.f32 %%in%u, %%_s0_0;\n}",
            (unsigned)last, (unsigned)last, (unsigned)last
        );
        CHECK_TEXT(compile_with(&stack_ptx_stack_info, words, many, counts[k], &last, 1), expected);
    }
}

/* The size query checks the whole set; compiling checks the instructions and special registers that the program uses. */
TEST(test_broken_descriptions_are_found_where_they_are_used) {
    static const StackPtxInstruction uses[] = {
        stack_ptx_encode_input(X), stack_ptx_encode_ptx_instruction_abs_ftz_f32, stack_ptx_encode_return
    };
    static const StackPtxInstruction uses_special[] = {stack_ptx_encode_special_register_laneid, stack_ptx_encode_return};
    static const StackPtxInstruction uses_neither[] = {stack_ptx_encode_input(X), stack_ptx_encode_return};
    StackPtxPtxInstructionDescriptor descriptors[STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS];
    StackPtxSpecialRegisterDescriptor specials[STACK_PTX_SPECIAL_REGISTER_NUM_ENUMS];
    const char* strings[STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS];
    StackPtxStackInfo info = stack_ptx_stack_info;
    size_t num_bytes = 0;
    memcpy(descriptors, stack_ptx_ptx_instruction_descriptors, sizeof descriptors);
    memcpy(specials, stack_ptx_special_register_descriptors, sizeof specials);
    memcpy(strings, stack_ptx_ptx_instruction_strings, sizeof strings);
    info.ptx_instruction_descriptors = descriptors;
    info.special_register_descriptors = specials;
    info.ptx_instruction_strings = strings;

    descriptors[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32].arg_types[0] = STACK_PTX_ARG_TYPE_NUM_ENUMS + 1;
    CHECK_TEXT(compile_with(&info, uses, registers, NUM_REGISTERS, request_z, 1), "STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS");
    CHECK_TEXT(compile_with(&info, uses_neither, registers, NUM_REGISTERS, request_z, 1), "{\nmov.f32 %z, %x;\n}");
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &info, &num_bytes) == STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
    descriptors[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32].arg_types[0] = STACK_PTX_ARG_TYPE_F32;

    strings[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32] = NULL;
    CHECK_TEXT(compile_with(&info, uses, registers, NUM_REGISTERS, request_z, 1), "STACK_PTX_ERROR_INVALID_VALUE");
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &info, &num_bytes) == STACK_PTX_ERROR_INVALID_VALUE);
    strings[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32] = "abs.ftz.f32";

    specials[STACK_PTX_SPECIAL_REGISTER_LANEID].arg_type_idx = STACK_PTX_ARG_TYPE_NUM_ENUMS;
    CHECK_TEXT(
        compile_with(&info, uses_special, registers, NUM_REGISTERS, request_z, 1), "STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS"
    );
    CHECK_TEXT(compile_with(&info, uses, registers, NUM_REGISTERS, NULL, 0), "{\n}");
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &info, &num_bytes) == STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
}

TEST(test_tables_are_in_the_documented_order) {
    CHECK_UINT(STACK_PTX_STACK_TYPE_PHILOX, 8);
    CHECK_UINT(STACK_PTX_ARG_TYPE_PHILOX, 14);
    CHECK_UINT(STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32, 4);
    CHECK_UINT(STACK_PTX_PTX_INSTRUCTION_MUL_HI_PHILOX, 37);
    CHECK_UINT(STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS, 38);
    CHECK_UINT(stack_ptx_ptx_instructions[STACK_PTX_PTX_INSTRUCTION_SELP_F32].payload.u, 25);
    CHECK_UINT(stack_ptx_ptx_instructions[37].instruction_type, STACK_PTX_INSTRUCTION_TYPE_PTX);
    CHECK_UINT(stack_ptx_stack_info.num_ptx_instructions, 38);
    CHECK_UINT(stack_ptx_traits.instructions[STACK_PTX_PTX_INSTRUCTION_ADD_FTZ_F32].num_commutative, 2);
    CHECK_UINT(stack_ptx_ptx_instruction_descriptors[STACK_PTX_PTX_INSTRUCTION_SELP_F32].num_unique_stacks, 2);
    CHECK_UINT(stack_ptx_ptx_instruction_descriptors[STACK_PTX_PTX_INSTRUCTION_SELP_F32].unique_stacks[0].num_values, 2);
}
