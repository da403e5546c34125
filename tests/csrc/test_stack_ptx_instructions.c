/* Tests of stack_ptx.h: words, the format of descriptions, and instructions. See stack_ptx_bench.h. */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- format ---- */

TEST(test_words_and_descriptors_have_the_documented_layout) {
    const StackPtxInstruction word = WORD(META, 0x1234, 0xDEADBEEFu);
    const unsigned char expected[8] = {5, 0, 0x34, 0x12, 0xEF, 0xBE, 0xAD, 0xDE};
    CHECK_UINT(sizeof(StackPtxInstruction), 8);
    CHECK(memcmp(&word, expected, 8) == 0);
    CHECK_UINT(sizeof(StackPtxArgTypeInfo), 4);
    CHECK_UINT(sizeof(StackPtxPtxInstructionStackRequirement), 4);
    CHECK_UINT(sizeof(StackPtxPtxInstructionDescriptor), 31);
    CHECK_UINT(sizeof(StackPtxSpecialRegisterDescriptor), 2);
    CHECK_UINT(offsetof(StackPtxPtxInstructionDescriptor, ret_types), 8);
    CHECK_UINT(offsetof(StackPtxPtxInstructionDescriptor, num_unique_stacks), 12);
    CHECK_UINT(offsetof(StackPtxPtxInstructionDescriptor, is_aligned), 14);
    CHECK_UINT(offsetof(StackPtxPtxInstructionDescriptor, unique_stacks), 15);
}

TEST(test_enumerators_have_the_documented_values) {
    static const int in_order[] = {
        STACK_PTX_INSTRUCTION_TYPE_NONE,          STACK_PTX_INSTRUCTION_TYPE_PTX,       STACK_PTX_INSTRUCTION_TYPE_CONSTANT,
        STACK_PTX_INSTRUCTION_TYPE_INPUT,         STACK_PTX_INSTRUCTION_TYPE_SPECIAL,   STACK_PTX_INSTRUCTION_TYPE_META,
        STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT, STACK_PTX_INSTRUCTION_TYPE_ROUTINE,   STACK_PTX_INSTRUCTION_TYPE_REGISTER,
        STACK_PTX_INSTRUCTION_TYPE_AST_IDX,       STACK_PTX_INSTRUCTION_TYPE_RETURN,    STACK_PTX_INSTRUCTION_TYPE_STORE,
        STACK_PTX_INSTRUCTION_TYPE_LOAD,          STACK_PTX_META_INSTRUCTION_DUP,       STACK_PTX_META_INSTRUCTION_YANK_DUP,
        STACK_PTX_META_INSTRUCTION_SWAP,          STACK_PTX_META_INSTRUCTION_SWAP_WITH, STACK_PTX_META_INSTRUCTION_REPLACE,
        STACK_PTX_META_INSTRUCTION_DROP,          STACK_PTX_META_INSTRUCTION_CLEAR,     STACK_PTX_META_INSTRUCTION_ROTATE,
        STACK_PTX_META_INSTRUCTION_REVERSE
    };
    enum { NUM_TYPES = 13 };
    int i;
    for (i = 0; i < (int)COUNT(in_order); ++i) CHECK_UINT(in_order[i], i < NUM_TYPES ? i : i - NUM_TYPES);
}

TEST(test_each_result_has_its_documented_value_and_name) {
    static const char* const names[STACK_PTX_RESULT_NUM_ELEMS] = {
        "STACK_PTX_SUCCESS",
        "STACK_PTX_ERROR_INTERNAL",
        "STACK_PTX_ERROR_WRONG_TYPE_DISPATCH",
        "STACK_PTX_ERROR_INSUFFICIENT_BUFFER",
        "STACK_PTX_ERROR_INVALID_VALUE",
        "STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE",
        "STACK_PTX_ERROR_INSUFFICIENT_AST_VISIT_SIZE",
        "STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN",
        "STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE",
        "STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS",
        "STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS"
    };
    int i;
    CHECK_UINT(STACK_PTX_RESULT_NUM_ELEMS, 19);
    for (i = 0; i < STACK_PTX_RESULT_NUM_ELEMS; ++i) CHECK_TEXT(stack_ptx_result_to_string((StackPtxResult)i), names[i]);
    CHECK_TEXT(stack_ptx_result_to_string(STACK_PTX_RESULT_NUM_ELEMS), "STACK_PTX_RESULT_UNKNOWN");
}

/* ---- instructions ---- */

TEST(test_operands_of_several_stacks_come_from_each_in_pop_order) {
    /* a < c is setp with c pushed first; then selp pops its two f32 and the predicate. */
    static const StackPtxInstruction words[] = {INPUT(C),  INPUT(A),      PTX(SETP), INPUT(A), INPUT(B),
                                                PTX(SELP), INPUT(IN_U32), PTX(CVT),  PTX(ADD), RETURN};
    CHECK_STUB(
        request_o0, words,
        "{\n.reg .f32 %_s0_<3>;\n.reg .pred %_s3_<1>;\n"
        "setp.lt.ftz.f32 %_s3_0, %a, %c;\n"
        "selp.f32 %_s0_0, %b, %a, %_s3_0;\n"
        "cvt.rn.f32.u32 %_s0_1, %iu;\n"
        "add.ftz.f32 %_s0_2, %_s0_1, %_s0_0;\n"
        "mov.f32 %o0, %_s0_2;\n}"
    );
}

TEST(test_operands_of_three_stacks_come_from_each) {
    static const size_t requests[] = {OUT_S32};
    static const StackPtxInstruction words[] = {INPUT(IN_PRED), INPUT(IN_U32), INPUT(A), PTX(PICK), RETURN};
    CHECK_STUB(requests, words, "{\n.reg .s32 %_s2_<1>;\npick.s32 %_s2_0, %a, %iu, %ip;\nmov.s32 %os, %_s2_0;\n}");
}

TEST(test_vectors_take_elements_in_pop_order_and_first_results_are_on_top) {
    /* Pops: {t1, t0} of the two pushed last, {t0}, and {d, c, b, a}. The request takes the first-named result. */
    static const size_t requests[] = {O0, O1, O2, O3};
    static const StackPtxInstruction words[] = {INPUT(A),     INPUT(B),     INPUT(C), INPUT(D), INPUT(IN_T0),
                                                INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 4);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<4>;\n"
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%_s0_0, %_s0_1, %_s0_2, %_s0_3}, {%it1, %it0}, {%it0}, "
        "{%d, %c, %b, %a};\n"
        "mov.f32 %o0, %_s0_0;\nmov.f32 %o1, %_s0_1;\nmov.f32 %o2, %_s0_2;\nmov.f32 %o3, %_s0_3;\n}"
    );
    CHECK_UINT(bench.lowered.num_instructions, 1);
    close_bench(&bench);
}

TEST(test_two_results_are_pushed_so_that_the_first_is_on_top) {
    /* selp takes the predicate on top: p of p|q. */
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SETP_2), INPUT(A), INPUT(B), PTX(SELP), RETURN};
    CHECK_STUB(
        request_o0, words,
        "{\n.reg .f32 %_s0_<1>;\n.reg .pred %_s3_<2>;\n"
        "setp.lt.ftz.f32 %_s3_0|%_s3_1, %b, %a;\n"
        "selp.f32 %_s0_0, %b, %a, %_s3_0;\n"
        "mov.f32 %o0, %_s0_0;\n}"
    );
}

TEST(test_results_of_one_node_may_lie_on_several_stacks) {
    static const size_t requests[] = {OUT_U32};
    static const StackPtxInstruction words[] = {INPUT(A), PTX(SPLIT), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .u32 %_s1_<1>;\n.reg .b32 %_s4_<2>;\nsplit.b32 {%_s4_0, %_s4_1}|%_s1_0, %a;\nmov.u32 %ou, %_s1_0;\n}"
    );
    CHECK_UINT(bench.lowered.num_values, 4);
    CHECK_UINT(bench.lowered.value_stacks[1], TF32);
    CHECK_UINT(bench.lowered.value_stacks[2], TF32);
    CHECK_UINT(bench.lowered.value_stacks[3], U32);
    CHECK_UINT(bench.lowered.value_nodes[3], 1);
    close_bench(&bench);
}

TEST(test_four_operands_and_a_long_name) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(D), PTX(QUAD), RETURN};
    CHECK_STUB(
        request_o0, words,
        "{\n.reg .f32 %_s0_<1>;\nquad.of.a.name.longer.than.half.a.slot.f32 %_s0_0, %d, %c, %b, %a;\nmov.f32 %o0, %_s0_0;\n}"
    );
}

TEST(test_constants_are_moved_into_registers_for_instructions_that_take_no_others) {
    static const StackPtxInstruction words[] = {INPUT(A),  CONSTANT(F32, ONE_F32),
                                                INPUT(B),  CONSTANT(F32, ONE_F32),
                                                PTX(QUAD), CONSTANT(F32, ONE_F32),
                                                PTX(ADD),  CONSTANT(F32, THREE_F32),
                                                PTX(ADD),  RETURN};
    CHECK_STUB(
        request_o0, words,
        "{\n.reg .f32 %_s0_<4>;\nmov.f32 %_s0_0, 0f3F800000;\n"
        "quad.of.a.name.longer.than.half.a.slot.f32 %_s0_1, %_s0_0, %b, %_s0_0, %a;\nadd.ftz.f32 %_s0_2, %_s0_0, %_s0_1;\n"
        "add.ftz.f32 %_s0_3, 0f40400000, %_s0_2;\nmov.f32 %o0, %_s0_3;\n}"
    );
}

TEST(test_instruction_without_results_pops_and_counts_nothing) {
    static const StackPtxInstruction words[] = {INPUT(A),     INPUT(B), INPUT(C),     PTX(DISCARD), PTX(DISCARD),
                                                PTX(DISCARD), INPUT(D), PTX(DISCARD), INPUT(B),     RETURN};
    static StackPtxInstruction many[1000];
    StackPtxLimits limits = roomy;
    Bench bench;
    size_t i;
    limits.max_nodes = 5;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "b.....");
    /* Copied operands: no limit but that of execution, and memory for two values. */
    for (i = 0; i < COUNT(many); ++i) {
        static const StackPtxInstruction loop[] = {META(DUP, F32), META(DUP, F32), PTX(DISCARD)};
        static const StackPtxInstruction input = INPUT(A);
        many[i] = i == 0 ? input : loop[(i - 1) % 3];
    }
    limits.max_nodes = 2;
    open_bench(&bench, &limits, request_o0, 1);
    bench.flags = STACK_PTX_FLAG_NO_VALUE_NUMBERING;
    CHECK_TEXT(STUB(&bench, many), "{\nmov.f32 %o0, %a;\n}");
    close_bench(&bench);
}

TEST(test_constants_are_printed_by_their_type) {
    static const size_t requests[] = {O0, OUT_U32, OUT_S32, OUT_F64};
    static const StackPtxInstruction words[] = {
        CONSTANT(F32, ONE_F32), CONSTANT(U32, 1), CONSTANT(S32, 0xFFFFFFFEu), CONSTANT(F64, ONE_F32), RETURN
    };
    CHECK_STUB(
        requests, words,
        "{\nmov.f32 %o0, 0f3F800000;\nmov.u32 %ou, 0x00000001U;\nmov.s32 %os, 0xFFFFFFFE;\nmov.f64 %od, 0d3FF0000000000000;\n}"
    );
}

TEST(test_wide_constants_are_widened_from_32_bits) {
    static const uint8_t types[NUM_STACKS] = {
        STACK_PTX_CONSTANT_TYPE_F64, STACK_PTX_CONSTANT_TYPE_U64, STACK_PTX_CONSTANT_TYPE_S64, 0, 0, 0
    };
    static const StackPtxTraits wide = {instruction_traits, volatile_special, types};
    static const size_t requests[] = {OUT_U32, OUT_S32, O0, O1, O2, O3, O4, O5};
    static const StackPtxInstruction words[] = {
        CONSTANT(U32, 0x80000000u),
        CONSTANT(S32, 0x80000000u),
        CONSTANT(F32, 0xFF800000u), /* -infinity */
        CONSTANT(F32, 0x7FC00001u), /* NaN: payload kept */
        CONSTANT(F32, 0x00000001u), /* smallest subnormal, 2^-149 */
        CONSTANT(F32, 0x807FFFFFu), /* largest subnormal, negative: -(1 - 2^-23) 2^-126 */
        CONSTANT(F32, 0x80000000u), /* -0 */
        CONSTANT(F32, 0x7F7FFFFFu), /* largest finite */
        RETURN,
    };
    Bench bench;
    open_bench(&bench, &roomy, requests, 8);
    bench.info.traits = &wide;
    open_language(&bench);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\nmov.u32 %ou, 0x0000000080000000U;\nmov.s32 %os, 0xFFFFFFFF80000000;\n"
        "mov.f32 %o0, 0d47EFFFFFE0000000;\nmov.f32 %o1, 0d8000000000000000;\nmov.f32 %o2, 0dB80FFFFFC0000000;\n"
        "mov.f32 %o3, 0d36A0000000000000;\nmov.f32 %o4, 0d7FF8000020000000;\nmov.f32 %o5, 0dFFF0000000000000;\n}"
    );
    close_bench(&bench);
}

TEST(test_only_stacks_with_a_constant_type_have_constants) {
    static const size_t requests[] = {OUT_PRED};
    static const StackPtxInstruction words[] = {CONSTANT(PRED, 1), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 1);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    CHECK_UINT(bench.lowered.request_values[0], STACK_PTX_NO_VALUE);
    close_bench(&bench);
}
