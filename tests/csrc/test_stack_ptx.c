/*
 * Tests of stack_ptx.h against the rules of its contract. Expected texts and orders are worked out by hand from those rules.
 *
 * Codes that no test provokes, because nothing can: STACK_PTX_ERROR_INTERNAL (nothing fails halfway),
 * STACK_PTX_ERROR_INSUFFICIENT_AST_VISIT_SIZE (graphs are walked without a stack) and
 * STACK_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS (an input is a register: its code is REGISTER_IDX_OUT_OF_BOUNDS).
 */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"
#include "stack_ptx_default_info.h"

#include "check.h"
#include "stack_ptx_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

#define WORD(type, aux, payload)                                \
    {                                                           \
        STACK_PTX_INSTRUCTION_TYPE_##type, (aux), { (payload) } \
    }
#define INPUT(idx) WORD(INPUT, 0, (idx))
#define PTX(idx) WORD(PTX, 0, (idx))
#define CONSTANT(stack, bits) WORD(CONSTANT, (stack), (bits))
#define SPECIAL(idx) WORD(SPECIAL, 0, (idx))
#define META(operation, stack) WORD(META, (stack), STACK_PTX_META_INSTRUCTION_##operation)
#define NUMBER(number) WORD(META_CONSTANT, 0, (number))
#define ROUTINE(idx) WORD(ROUTINE, 0, (idx))
#define STORE(stack, slot) WORD(STORE, (stack), (slot))
#define LOAD(slot) WORD(LOAD, 0, (slot))
#define RETURN WORD(RETURN, 0, 0)

#define ONE_F32 0x3F800000u
#define THREE_F32 0x40400000u

/* ---- languages ---- */

/* Inputs a b c d and outputs o0 .. o5 are f32; then one input and one output of each other type, and two of b32. */
enum {
    A,
    B,
    C,
    D,
    O0,
    O1,
    O2,
    O3,
    O4,
    O5,
    IN_U32,
    OUT_U32,
    IN_S32,
    OUT_S32,
    IN_PRED,
    OUT_PRED,
    IN_T0,
    IN_T1,
    OUT_F64,
    NUM_REGISTERS
};

static const StackPtxRegister registers[NUM_REGISTERS] = {
    {"a", F32},   {"b", F32},   {"c", F32},    {"d", F32},    {"o0", F32}, {"o1", F32}, {"o2", F32},
    {"o3", F32},  {"o4", F32},  {"o5", F32},   {"iu", U32},   {"ou", U32}, {"is", S32}, {"os", S32},
    {"ip", PRED}, {"op", PRED}, {"it0", TF32}, {"it1", TF32}, {"od", F64},
};

static const StackPtxLimits roomy = {64, 256, 4, 8, 1024};

typedef struct Bench {
    StackPtxLanguageInfo info;
    StackPtxMode mode;
    uint32_t flags;
    const StackPtxLanguage* language;
    void* memory;
    void* workspace;
    size_t workspace_bytes;
    StackPtxLowered lowered;
    StackPtxPlace place;
    char text[16384];
} Bench;

static void open_language(Bench* bench) {
    size_t num_bytes = 0;
    free(bench->memory);
    free(bench->workspace);
    bench->workspace = NULL;
    CHECK(stack_ptx_language_size(&bench->info, &num_bytes) == STACK_PTX_SUCCESS);
    bench->memory = malloc(num_bytes);
    CHECK(stack_ptx_language_init(&bench->info, bench->memory, num_bytes, &bench->language) == STACK_PTX_SUCCESS);
    CHECK(stack_ptx_workspace_size(bench->language, &bench->workspace_bytes) == STACK_PTX_SUCCESS);
    bench->workspace = malloc(bench->workspace_bytes);
    CHECK(bench->memory != NULL && bench->workspace != NULL);
    /* A workspace may have any contents. */
    memset(bench->workspace, 0xA5, bench->workspace_bytes);
}

static void open_bench(Bench* bench, const StackPtxLimits* limits, const size_t* requests, size_t num_requests) {
    memset(bench, 0, sizeof *bench);
    bench->info.stack_info = &stack_info;
    bench->info.traits = &traits;
    bench->info.limits = *limits;
    bench->info.registers = registers;
    bench->info.num_registers = NUM_REGISTERS;
    bench->info.requests = requests;
    bench->info.num_requests = num_requests;
    bench->mode = STACK_PTX_MODE_LENIENT;
    open_language(bench);
}

static void close_bench(Bench* bench) {
    free(bench->memory);
    free(bench->workspace);
}

static StackPtxResult lower(Bench* bench, const StackPtxInstruction* words, size_t num_words) {
    return stack_ptx_lower(
        bench->language,
        bench->mode,
        bench->flags,
        words,
        num_words,
        bench->workspace,
        bench->workspace_bytes,
        &bench->lowered,
        &bench->place
    );
}

static const char* stub_of(Bench* bench, const StackPtxInstruction* words, size_t num_words) {
    size_t length = 0;
    CHECK(lower(bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK(
        stack_ptx_emit(
            bench->language, &bench->lowered, bench->workspace, bench->workspace_bytes, bench->text, sizeof bench->text, &length
        ) == STACK_PTX_SUCCESS
    );
    CHECK_UINT(length, strlen(bench->text));
    return bench->text;
}

static StackPtxHash hash_of(Bench* bench, const StackPtxInstruction* words, size_t num_words) {
    StackPtxHash hash = {{0, 0}};
    CHECK(lower(bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK(stack_ptx_hash(bench->language, &bench->lowered, bench->workspace, bench->workspace_bytes, &hash) == STACK_PTX_SUCCESS);
    return hash;
}

#define COUNT(words) (sizeof(words) / sizeof(words)[0])
#define STUB(bench, words) stub_of((bench), (words), COUNT(words))
#define HASH(bench, words) hash_of((bench), (words), COUNT(words))
#define LOWER(bench, words) lower((bench), (words), COUNT(words))

static int is_equal(StackPtxHash first, StackPtxHash second) {
    return first.words[0] == second.words[0] && first.words[1] == second.words[1];
}

static const size_t request_o0[1] = {O0};
static const size_t request_all_f32[6] = {O0, O1, O2, O3, O4, O5};

/* Names of the f32 inputs on the stack after the words have run, the top first; `.` where there is none. */
static const char* f32_stack_after(const StackPtxLimits* limits, const StackPtxInstruction* words, size_t num_words) {
    static char names[7];
    Bench bench;
    size_t i;
    open_bench(&bench, limits, request_all_f32, 6);
    CHECK(lower(&bench, words, num_words) == STACK_PTX_SUCCESS);
    for (i = 0; i < 6; ++i) {
        const uint32_t value = bench.lowered.request_values[i];
        const StackPtxNode* node = value == STACK_PTX_NO_VALUE ? NULL : &bench.lowered.nodes[bench.lowered.value_nodes[value]];
        names[i] = node == NULL ? '.' : node->kind == STACK_PTX_NODE_INPUT ? registers[node->payload].name[0] : '?';
    }
    names[6] = '\0';
    close_bench(&bench);
    return names;
}

#define F32_STACK_AFTER(limits, words) f32_stack_after((limits), (words), COUNT(words))

/* ---- format ---- */

static void test_words_and_descriptors_have_the_documented_layout(void) {
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

static void test_enumerators_have_the_documented_values(void) {
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_NONE, 0);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_PTX, 1);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_CONSTANT, 2);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_INPUT, 3);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_SPECIAL, 4);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_META, 5);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT, 6);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_ROUTINE, 7);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_REGISTER, 8);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_AST_IDX, 9);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_RETURN, 10);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_STORE, 11);
    CHECK_UINT(STACK_PTX_INSTRUCTION_TYPE_LOAD, 12);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_DUP, 0);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_YANK_DUP, 1);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_SWAP, 2);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_SWAP_WITH, 3);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_REPLACE, 4);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_DROP, 5);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_CLEAR, 6);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_ROTATE, 7);
    CHECK_UINT(STACK_PTX_META_INSTRUCTION_REVERSE, 8);
}

static void test_each_result_has_its_documented_value_and_name(void) {
    static const char* const names[STACK_PTX_RESULT_NUM_ENUMS] = {
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
        "STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS",
    };
    int i;
    CHECK_UINT(STACK_PTX_RESULT_NUM_ENUMS, 19);
    for (i = 0; i < STACK_PTX_RESULT_NUM_ENUMS; ++i) {
        CHECK_TEXT(stack_ptx_result_to_string((StackPtxResult)i), names[i]);
    }
    CHECK_TEXT(stack_ptx_result_to_string(STACK_PTX_RESULT_NUM_ENUMS), "STACK_PTX_RESULT_UNKNOWN");
}

/* ---- instructions ---- */

static void test_popped_top_is_the_first_operand(void) {
    static const StackPtxInstruction sub[] = {INPUT(A), INPUT(B), PTX(SUB), RETURN};
    static const StackPtxInstruction fma[] = {INPUT(A), INPUT(B), CONSTANT(F32, THREE_F32), PTX(FMA), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(STUB(&bench, sub), "{\n.reg .f32 %_s0_<1>;\nsub.ftz.f32 %_s0_0, %b, %a;\nmov.f32 %o0, %_s0_0;\n}");
    CHECK_TEXT(STUB(&bench, fma), "{\n.reg .f32 %_s0_<1>;\nfma.rn.ftz.f32 %_s0_0, 0f40400000, %b, %a;\nmov.f32 %o0, %_s0_0;\n}");
    close_bench(&bench);
}

static void test_operands_of_several_stacks_come_from_each_in_pop_order(void) {
    /* a < c is setp with c pushed first; then selp pops its two f32 and the predicate. */
    static const StackPtxInstruction words[] = {
        INPUT(C),
        INPUT(A),
        PTX(SETP),
        INPUT(A),
        INPUT(B),
        PTX(SELP),
        INPUT(IN_U32),
        PTX(CVT),
        PTX(ADD),
        RETURN,
    };
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<3>;\n.reg .pred %_s3_<1>;\n"
        "setp.lt.ftz.f32 %_s3_0, %a, %c;\n"
        "selp.f32 %_s0_0, %b, %a, %_s3_0;\n"
        "cvt.rn.f32.u32 %_s0_1, %iu;\n"
        "add.ftz.f32 %_s0_2, %_s0_1, %_s0_0;\n"
        "mov.f32 %o0, %_s0_2;\n}"
    );
    close_bench(&bench);
}

static void test_operands_of_three_stacks_come_from_each(void) {
    static const size_t requests[] = {OUT_S32};
    static const StackPtxInstruction words[] = {INPUT(IN_PRED), INPUT(IN_U32), INPUT(A), PTX(PICK), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 1);
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .s32 %_s2_<1>;\npick.s32 %_s2_0, %a, %iu, %ip;\nmov.s32 %os, %_s2_0;\n}");
    close_bench(&bench);
}

static void test_too_few_values_on_any_stack_is_a_no_op(void) {
    static const StackPtxInstruction one_of_two[] = {INPUT(A), PTX(ADD), RETURN};
    static const StackPtxInstruction two_of_three[] = {INPUT(A), INPUT(B), PTX(FMA), RETURN};
    static const StackPtxInstruction no_predicate[] = {INPUT(A), INPUT(B), PTX(SELP), RETURN};
    static const StackPtxInstruction one_value_and_predicate[] = {INPUT(IN_PRED), INPUT(A), PTX(SELP), RETURN};
    static const StackPtxInstruction no_u32_of_three_stacks[] = {INPUT(IN_PRED), INPUT(A), PTX(PICK), RETURN};
    static const StackPtxInstruction three_of_four_elements[] = {
        INPUT(IN_T0),
        INPUT(IN_T0),
        INPUT(IN_T0),
        INPUT(A),
        INPUT(B),
        INPUT(C),
        PTX(MMA),
        RETURN,
    };
    CHECK_TEXT(F32_STACK_AFTER(&roomy, one_of_two), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, two_of_three), "ba....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, no_predicate), "ba....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, one_value_and_predicate), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, no_u32_of_three_stacks), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, three_of_four_elements), "cba...");
}

static void test_vectors_take_elements_in_pop_order_and_first_results_are_on_top(void) {
    /* Pops: {t1, t0} of the two pushed last, {t0}, and {d, c, b, a}. The request takes the first-named result. */
    static const size_t requests[] = {O0, O1, O2, O3};
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        INPUT(D),
        INPUT(IN_T0),
        INPUT(IN_T0),
        INPUT(IN_T1),
        PTX(MMA),
        RETURN,
    };
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

static void test_two_results_are_pushed_so_that_the_first_is_on_top(void) {
    /* selp takes the predicate on top: p of p|q. */
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SETP_2), INPUT(A), INPUT(B), PTX(SELP), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<1>;\n.reg .pred %_s3_<2>;\n"
        "setp.lt.ftz.f32 %_s3_0|%_s3_1, %b, %a;\n"
        "selp.f32 %_s0_0, %b, %a, %_s3_0;\n"
        "mov.f32 %o0, %_s0_0;\n}"
    );
    close_bench(&bench);
}

static void test_results_of_one_node_may_lie_on_several_stacks(void) {
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

static void test_four_operands_and_a_long_name(void) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(D), PTX(QUAD), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<1>;\nquad.of.a.name.longer.than.half.a.slot.f32 %_s0_0, %d, %c, %b, %a;\nmov.f32 %o0, %_s0_0;\n}"
    );
    close_bench(&bench);
}

static void test_constants_are_moved_into_registers_for_instructions_that_take_no_others(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A),
        CONSTANT(F32, ONE_F32),
        INPUT(B),
        CONSTANT(F32, ONE_F32),
        PTX(QUAD),
        CONSTANT(F32, ONE_F32),
        PTX(ADD),
        CONSTANT(F32, THREE_F32),
        PTX(ADD),
        RETURN,
    };
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<4>;\nmov.f32 %_s0_0, 0f3F800000;\n"
        "quad.of.a.name.longer.than.half.a.slot.f32 %_s0_1, %_s0_0, %b, %_s0_0, %a;\nadd.ftz.f32 %_s0_2, %_s0_0, %_s0_1;\n"
        "add.ftz.f32 %_s0_3, 0f40400000, %_s0_2;\nmov.f32 %o0, %_s0_3;\n}"
    );
    close_bench(&bench);
}

static void test_instruction_without_results_pops_and_counts_nothing(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        PTX(DISCARD),
        PTX(DISCARD),
        PTX(DISCARD),
        INPUT(D),
        PTX(DISCARD),
        INPUT(B),
        RETURN,
    };
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

static void test_constants_are_printed_by_their_type(void) {
    static const size_t requests[] = {O0, OUT_U32, OUT_S32, OUT_F64};
    static const StackPtxInstruction words[] = {
        CONSTANT(F32, ONE_F32),
        CONSTANT(U32, 1),
        CONSTANT(S32, 0xFFFFFFFEu),
        CONSTANT(F64, ONE_F32),
        RETURN,
    };
    Bench bench;
    open_bench(&bench, &roomy, requests, 4);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\nmov.f32 %o0, 0f3F800000;\nmov.u32 %ou, 0x00000001U;\nmov.s32 %os, 0xFFFFFFFE;\nmov.f64 %od, 0d3FF0000000000000;\n}"
    );
    close_bench(&bench);
}

static void test_wide_constants_are_widened_from_32_bits(void) {
    static const uint8_t types[NUM_STACKS] = {
        STACK_PTX_CONSTANT_TYPE_F64,
        STACK_PTX_CONSTANT_TYPE_U64,
        STACK_PTX_CONSTANT_TYPE_S64,
        0,
        0,
        0,
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

static void test_only_stacks_with_a_constant_type_have_constants(void) {
    static const size_t requests[] = {OUT_PRED};
    static const StackPtxInstruction words[] = {CONSTANT(PRED, 1), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 1);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.request_values[0], STACK_PTX_NO_VALUE);
    close_bench(&bench);
}

static void test_special_registers_are_moved_where_used(void) {
    static const size_t requests[] = {OUT_U32};
    static const StackPtxInstruction words[] = {SPECIAL(CLOCK), SPECIAL(TID_X), INPUT(IN_U32), PTX(ADD_U32), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .u32 %_s1_<2>;\nmov.u32 %_s1_0, %tid.x;\nadd.u32 %_s1_1, %iu, %_s1_0;\nmov.u32 %ou, %_s1_1;\n}"
    );
    close_bench(&bench);
}

static void test_vector_special_pushes_x_to_w_with_w_on_top(void) {
    static const size_t requests[] = {OUT_U32, OUT_U32};
    static const StackPtxInstruction words[] = {SPECIAL(TID), META(SWAP, U32), PTX(ADD_U32), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    /* z and w exchanged: add z, w; below it is y. Only used elements are read. */
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .u32 %_s1_<4>;\nmov.u32 %_s1_0, %tid.y;\nmov.u32 %_s1_1, %tid.z;\nmov.u32 %_s1_2, %tid.w;\n"
        "add.u32 %_s1_3, %_s1_1, %_s1_2;\nmov.u32 %ou, %_s1_3;\nmov.u32 %ou, %_s1_0;\n}"
    );
    CHECK_UINT(bench.lowered.num_instructions, 1);
    close_bench(&bench);
}

/* ---- stacks ---- */

static const StackPtxLimits three_deep = {3, 256, 4, 8, 1024};

static void test_push_onto_a_full_stack_is_dropped(void) {
    static const StackPtxInstruction input[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(D), RETURN};
    static const StackPtxInstruction dup[] = {INPUT(A), INPUT(B), INPUT(C), META(DUP, F32), RETURN};
    static const StackPtxInstruction yank_dup[] = {INPUT(A), INPUT(B), INPUT(C), NUMBER(2), META(YANK_DUP, F32), RETURN};
    static const StackPtxInstruction load[] = {
        INPUT(D),
        STORE(F32, 0),
        INPUT(A),
        INPUT(B),
        INPUT(C),
        LOAD(0),
        RETURN,
    };
    /* The result of an instruction finds room where its operands were, but not on another, full stack. */
    static const StackPtxInstruction result[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(IN_U32), PTX(CVT), RETURN};
    static const StackPtxInstruction constant[] = {INPUT(A), INPUT(B), INPUT(C), CONSTANT(F32, 1), RETURN};
    static const StackPtxInstruction meta_constant[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        NUMBER(1),
        NUMBER(1),
        NUMBER(1),
        NUMBER(2),
        META(DROP, F32),
        RETURN,
    };
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, input), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, dup), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, yank_dup), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, load), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, result), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, constant), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, meta_constant), "ba....");
}

static void test_vector_results_that_find_no_room_are_dropped_one_by_one(void) {
    /* Results {t0, t1} onto one free place: t1 is pushed first, t0 is dropped. */
    static const StackPtxLimits limits = {4, 256, 4, 8, 1024};
    static const size_t requests[] = {IN_T0};
    static const StackPtxInstruction words[] = {
        INPUT(IN_T0),
        INPUT(IN_T0),
        INPUT(IN_T0),
        INPUT(A),
        PTX(SPLIT),
        RETURN,
    };
    static const StackPtxInstruction special[] = {INPUT(IN_U32), INPUT(IN_U32), SPECIAL(TID), RETURN};
    static const size_t u32_requests[] = {OUT_U32, OUT_U32};
    Bench bench;
    open_bench(&bench, &limits, requests, 1);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.request_values[0], bench.lowered.nodes[bench.lowered.num_nodes - 1].first_value + 1);
    close_bench(&bench);
    open_bench(&bench, &limits, u32_requests, 2);
    CHECK_TEXT(
        STUB(&bench, special),
        "{\n.reg .u32 %_s1_<2>;\nmov.u32 %_s1_0, %tid.x;\nmov.u32 %_s1_1, %tid.y;\nmov.u32 %ou, %_s1_1;\nmov.u32 %ou, %_s1_0;\n}"
    );
    close_bench(&bench);
}

static void test_stack_size_zero_holds_nothing(void) {
    static const StackPtxLimits limits = {0, 256, 4, 8, 1024};
    static const StackPtxInstruction words[] = {INPUT(A), NUMBER(0), META(DROP, F32), META(DUP, F32), PTX(ACTIVEMASK), RETURN};
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "......");
}

/* One row: bottom-to-top pushes, the operation with the number before it (-1: none), and the stack after it, top first. */
typedef struct MetaCase {
    const char* pushed;
    int number;
    StackPtxMetaInstruction operation;
    const char* expected;
} MetaCase;

static void check_meta_cases(const StackPtxLimits* limits, const MetaCase* cases, size_t num_cases) {
    size_t i;
    for (i = 0; i < num_cases; ++i) {
        StackPtxInstruction words[16];
        size_t num_words = 0, k;
        memset(words, 0, sizeof words);
        for (k = 0; k < strlen(cases[i].pushed); ++k) {
            words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_INPUT;
            words[num_words++].payload.u = (uint32_t)(cases[i].pushed[k] - 'a');
        }
        if (cases[i].number >= 0) {
            words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT;
            words[num_words++].payload.u = (uint32_t)cases[i].number;
        }
        words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_META;
        words[num_words].aux = F32;
        words[num_words++].payload.u = (uint32_t)cases[i].operation;
        words[num_words++].instruction_type = STACK_PTX_INSTRUCTION_TYPE_RETURN;
        CHECK_TEXT(f32_stack_after(limits, words, num_words), cases[i].expected);
    }
}

#define OP(name) STACK_PTX_META_INSTRUCTION_##name

static void test_meta_operations_on_empty_short_and_exact_stacks(void) {
    static const MetaCase cases[] = {
        {"", -1, OP(DUP), "......"},         {"a", -1, OP(DUP), "aa...."},         {"ab", -1, OP(DUP), "bba..."},
        {"", 0, OP(YANK_DUP), "......"},     {"abc", 0, OP(YANK_DUP), "ccba.."},   {"abc", 2, OP(YANK_DUP), "acba.."},
        {"abc", 3, OP(YANK_DUP), "cba..."},  {"abc", -1, OP(YANK_DUP), "cba..."},  {"", -1, OP(SWAP), "......"},
        {"a", -1, OP(SWAP), "a....."},       {"abc", -1, OP(SWAP), "bca..."},      {"", 0, OP(SWAP_WITH), "......"},
        {"abc", 0, OP(SWAP_WITH), "cba..."}, {"abc", 1, OP(SWAP_WITH), "bca..."},  {"abc", 2, OP(SWAP_WITH), "abc..."},
        {"abc", 3, OP(SWAP_WITH), "cba..."}, {"abc", -1, OP(SWAP_WITH), "cba..."}, {"", 0, OP(REPLACE), "......"},
        {"a", 0, OP(REPLACE), "......"},     {"abc", 0, OP(REPLACE), "ba...."},    {"abc", 1, OP(REPLACE), "ca...."},
        {"abc", 2, OP(REPLACE), "bc...."},   {"abc", 3, OP(REPLACE), "cba..."},    {"abc", -1, OP(REPLACE), "cba..."},
        {"", 0, OP(DROP), "......"},         {"abc", 0, OP(DROP), "cba..."},       {"abc", 2, OP(DROP), "a....."},
        {"abc", 3, OP(DROP), "cba..."},      {"abc", 4, OP(DROP), "cba..."},       {"abc", -1, OP(DROP), "cba..."},
        {"", -1, OP(CLEAR), "......"},       {"abc", -1, OP(CLEAR), "......"},     {"", -1, OP(ROTATE), "......"},
        {"a", -1, OP(ROTATE), "a....."},     {"ab", -1, OP(ROTATE), "ab...."},     {"abcd", -1, OP(ROTATE), "cbad.."},
        {"", -1, OP(REVERSE), "......"},     {"a", -1, OP(REVERSE), "a....."},     {"abcd", -1, OP(REVERSE), "abcd.."},
        {"abc", -1, OP(REVERSE), "abc..."},
    };
    check_meta_cases(&roomy, cases, COUNT(cases));
}

static void test_meta_operations_on_full_stacks(void) {
    static const MetaCase cases[] = {
        {"abc", -1, OP(DUP), "cba..."},
        {"abc", 1, OP(YANK_DUP), "cba..."},
        {"abc", -1, OP(SWAP), "bca..."},
        {"abc", 2, OP(SWAP_WITH), "cba..."},
        {"abc", 1, OP(REPLACE), "cba..."},
        {"abc", 1, OP(DROP), "ba...."},
        {"abc", -1, OP(CLEAR), "......"},
        {"abc", -1, OP(ROTATE), "bac..."},
        {"abc", -1, OP(REVERSE), "abc..."},
        {"ab", 1, OP(SWAP_WITH), "ab...."},
        {"ab", 1, OP(REPLACE), "b....."},
    };
    check_meta_cases(&three_deep, cases, COUNT(cases));
}

static void test_depths_and_counts_are_popped_even_if_nothing_else_happens(void) {
    /* The first operation takes the 9 and does nothing; the drop then takes the 1. */
    static const StackPtxInstruction yank_dup[] = {
        INPUT(A),
        INPUT(B),
        NUMBER(1),
        NUMBER(9),
        META(YANK_DUP, F32),
        META(DROP, F32),
        RETURN,
    };
    static const StackPtxInstruction swap_with[] = {
        INPUT(A),
        INPUT(B),
        NUMBER(1),
        NUMBER(9),
        META(SWAP_WITH, F32),
        META(DROP, F32),
        RETURN,
    };
    static const StackPtxInstruction replace_on_empty[] = {
        INPUT(A),
        INPUT(B),
        NUMBER(1),
        NUMBER(0),
        META(REPLACE, U32),
        META(DROP, F32),
        RETURN,
    };
    static const StackPtxInstruction drop[] = {
        INPUT(A),
        INPUT(B),
        NUMBER(1),
        NUMBER(2),
        META(DROP, F32),
        META(DROP, F32),
        RETURN,
    };
    static const StackPtxInstruction full[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        NUMBER(1),
        NUMBER(1),
        META(SWAP_WITH, F32),
        META(DROP, F32),
        RETURN,
    };
    static const StackPtxInstruction full_replace[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        NUMBER(1),
        NUMBER(1),
        META(REPLACE, F32),
        META(DROP, F32),
        RETURN,
    };
    CHECK_TEXT(F32_STACK_AFTER(&roomy, yank_dup), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, swap_with), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, replace_on_empty), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, drop), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, full), "ba....");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, full_replace), "ba....");
}

static void test_operations_without_a_number_leave_the_meta_stack_alone(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        NUMBER(2),
        META(DUP, F32),
        META(SWAP, F32),
        META(ROTATE, F32),
        META(REVERSE, F32),
        META(CLEAR, U32),
        META(DROP, F32),
        RETURN,
    };
    /* Top first: c c b a after dup and swap; c b a c rotated; c a b c reversed; two dropped: b c. */
    CHECK_TEXT(F32_STACK_AFTER(&roomy, words), "bc....");
}

/* ---- slots ---- */

static void test_store_pops_into_a_slot_and_load_pushes_it_onto_its_own_stack(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        STORE(F32, 7),
        LOAD(7),
        LOAD(7),
        RETURN,
    };
    static const StackPtxInstruction another_type[] = {INPUT(IN_U32), STORE(U32, 0), INPUT(A), LOAD(0), RETURN};
    static const StackPtxInstruction overwritten[] = {
        INPUT(IN_U32),
        STORE(U32, 0),
        INPUT(A),
        STORE(F32, 0),
        LOAD(0),
        RETURN,
    };
    static const StackPtxInstruction nothing_to_store[] = {INPUT(A), STORE(F32, 0), STORE(F32, 0), LOAD(0), RETURN};
    static const StackPtxInstruction nothing_stored[] = {INPUT(A), STORE(F32, 1), LOAD(0), RETURN};
    CHECK_TEXT(F32_STACK_AFTER(&roomy, words), "bba...");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, another_type), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, overwritten), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, nothing_to_store), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, nothing_stored), "......");
}

static void test_slots_are_empty_again_in_the_next_program(void) {
    static const StackPtxInstruction stores[] = {INPUT(A), STORE(F32, 0), NUMBER(1), RETURN};
    static const StackPtxInstruction loads[] = {LOAD(0), INPUT(B), INPUT(C), META(DROP, F32), RETURN};
    static const size_t requests[] = {O0, O1, O2};
    Bench bench;
    open_bench(&bench, &roomy, requests, 3);
    CHECK(LOWER(&bench, stores) == STACK_PTX_SUCCESS);
    CHECK(LOWER(&bench, loads) == STACK_PTX_SUCCESS);
    CHECK(bench.lowered.request_values[1] != STACK_PTX_NO_VALUE);
    CHECK_UINT(bench.lowered.request_values[2], STACK_PTX_NO_VALUE);
    close_bench(&bench);
}

/* ---- routines ---- */

static const StackPtxInstruction routine_calls_1[] = {INPUT(B), ROUTINE(1), INPUT(C), RETURN};
static const StackPtxInstruction routine_pushes_d[] = {INPUT(D), RETURN, INPUT(A)};
static const StackPtxInstruction routine_calls_itself[] = {INPUT(B), ROUTINE(2), INPUT(C), RETURN};
static const StackPtxInstruction* const routines[] = {routine_calls_1, routine_pushes_d, routine_calls_itself};

/* The f32 stack after a program with the routines above. */
static const char* after_routines(uint32_t max_frame_depth, uint32_t execution_limit, const size_t* lengths, uint32_t called) {
    static char names[7];
    const StackPtxInstruction words[] = {INPUT(A), ROUTINE(called), INPUT(A), RETURN};
    StackPtxLimits limits = roomy;
    Bench bench;
    size_t i;
    limits.max_frame_depth = max_frame_depth;
    limits.execution_limit = execution_limit;
    open_bench(&bench, &limits, request_all_f32, 6);
    bench.info.routines = routines;
    bench.info.routine_lengths = lengths;
    bench.info.num_routines = 3;
    open_language(&bench);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    for (i = 0; i < 6; ++i) {
        const uint32_t value = bench.lowered.request_values[i];
        names[i] =
            value == STACK_PTX_NO_VALUE ? '.' : registers[bench.lowered.nodes[bench.lowered.value_nodes[value]].payload].name[0];
    }
    close_bench(&bench);
    return names;
}

static void test_frame_depth_counts_the_main_program(void) {
    CHECK_TEXT(after_routines(0, 1024, NULL, 0), "......");
    CHECK_TEXT(after_routines(1, 1024, NULL, 0), "aa....");
    CHECK_TEXT(after_routines(2, 1024, NULL, 0), "acba..");
    CHECK_TEXT(after_routines(3, 1024, NULL, 0), "acdba.");
}

static void test_recursion_ends_at_the_frame_depth(void) { CHECK_TEXT(after_routines(3, 1024, NULL, 2), "accbba"); }

static void test_routine_ends_at_its_length_too(void) {
    static const size_t lengths[] = {2, 1, 4};
    static const size_t nothing[] = {0, 0, 0};
    CHECK_TEXT(after_routines(3, 1024, lengths, 0), "adba..");
    CHECK_TEXT(after_routines(3, 1024, nothing, 0), "aa....");
}

static void test_execution_limit_counts_every_word_and_return(void) {
    /* a, call, b, call, d, RETURN, c, RETURN, a, RETURN */
    CHECK_TEXT(after_routines(3, 0, NULL, 0), "......");
    CHECK_TEXT(after_routines(3, 1, NULL, 0), "a.....");
    CHECK_TEXT(after_routines(3, 3, NULL, 0), "ba....");
    CHECK_TEXT(after_routines(3, 6, NULL, 0), "dba...");
    CHECK_TEXT(after_routines(3, 7, NULL, 0), "cdba..");
    CHECK_TEXT(after_routines(3, 8, NULL, 0), "cdba..");
    CHECK_TEXT(after_routines(3, 9, NULL, 0), "acdba.");
}

static void test_program_ends_at_its_first_return_or_its_length(void) {
    static const StackPtxInstruction returns[] = {INPUT(A), RETURN, INPUT(B)};
    static const StackPtxInstruction runs_out[] = {INPUT(A), INPUT(B)};
    CHECK_TEXT(F32_STACK_AFTER(&roomy, returns), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, runs_out), "ba....");
    CHECK_TEXT(f32_stack_after(&roomy, NULL, 0), "......");
}

static void test_frame_depth_zero_gives_an_empty_stub_but_zeros_in_lenient_mode(void) {
    static const StackPtxLimits limits = {64, 256, 0, 8, 1024};
    static const StackPtxInstruction words[] = {INPUT(A), RETURN};
    Bench bench;
    open_bench(&bench, &limits, request_o0, 1);
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, 0f00000000;\n}");
    bench.mode = STACK_PTX_MODE_COMPATIBLE;
    CHECK_TEXT(STUB(&bench, words), "");
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_TEXT(STUB(&bench, words), "");
    close_bench(&bench);
}

/* ---- the node limit ---- */

static void test_node_limit_counts_values_before_merging(void) {
    /* Three equal inputs are three values; the add is the fourth. */
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(A), INPUT(A), PTX(ADD), INPUT(B), RETURN};
    StackPtxLimits limits = roomy;
    limits.max_nodes = 3;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "aaa...");
    limits.max_nodes = 2;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "aa....");
    limits.max_nodes = 0;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "......");
    limits.max_nodes = 5;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "b?a...");
}

static void test_node_limit_counts_dropped_values_and_ends_the_program(void) {
    static const StackPtxInstruction dropped[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        INPUT(D),
        NUMBER(1),
        META(DROP, F32),
        INPUT(D),
        RETURN,
    };
    /* The word that would go past the limit has no effect, and no word after it. */
    static const StackPtxInstruction ends[] = {INPUT(A), INPUT(B), PTX(ADD), META(DUP, F32), RETURN};
    StackPtxLimits limits = three_deep;
    limits.max_nodes = 5;
    CHECK_TEXT(F32_STACK_AFTER(&limits, dropped), "dba...");
    limits.max_nodes = 4;
    CHECK_TEXT(F32_STACK_AFTER(&limits, dropped), "ba....");
    limits.max_nodes = 2;
    CHECK_TEXT(F32_STACK_AFTER(&limits, ends), "ba....");
}

static void test_words_that_do_nothing_do_not_count_towards_the_node_limit(void) {
    static const StackPtxInstruction words[] = {
        PTX(ADD), INPUT(99), INPUT(A), PTX(ADD), META(DUP, F32), LOAD(0), INPUT(B), RETURN
    };
    StackPtxLimits limits = roomy;
    limits.max_nodes = 2;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "baa...");
}

static void test_all_results_of_a_node_count_towards_the_node_limit(void) {
    static const StackPtxInstruction vector[] = {SPECIAL(TID), INPUT(A), RETURN};
    StackPtxLimits limits = roomy;
    limits.max_nodes = 3;
    CHECK_TEXT(F32_STACK_AFTER(&limits, vector), "......");
    limits.max_nodes = 5;
    CHECK_TEXT(F32_STACK_AFTER(&limits, vector), "a.....");
}

/* ---- requests ---- */

static void test_requests_pop_their_stacks_in_order(void) {
    static const size_t requests[] = {OUT_U32, O1, O0};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(IN_U32), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 3);
    CHECK_TEXT(STUB(&bench, words), "{\nmov.u32 %ou, %iu;\nmov.f32 %o1, %c;\nmov.f32 %o0, %b;\n}");
    close_bench(&bench);
}

static void test_missing_request_is_zero_in_lenient_mode_and_not_written_otherwise(void) {
    static const size_t requests[] = {O0, O1, OUT_U32, OUT_S32, OUT_PRED, IN_T0, OUT_F64};
    static const StackPtxInstruction words[] = {INPUT(A), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 7);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\nmov.f32 %o0, %a;\nmov.f32 %o1, 0f00000000;\nmov.u32 %ou, 0x00000000U;\nmov.s32 %os, 0x00000000;\n"
        "mov.pred %op, 0;\nmov.b32 %it0, 0;\nmov.f64 %od, 0d0000000000000000;\n}"
    );
    bench.mode = STACK_PTX_MODE_COMPATIBLE;
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, %a;\n}");
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, %a;\n}");
    close_bench(&bench);
}

static void test_no_requests_need_nothing(void) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(ADD), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, NULL, 0);
    CHECK_TEXT(STUB(&bench, words), "{\n}");
    CHECK_UINT(bench.lowered.num_nodes, 0);
    close_bench(&bench);
}

static void test_request_that_is_also_an_input_is_written_last(void) {
    static const size_t requests[] = {A};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 1);
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nsub.ftz.f32 %_s0_0, %b, %a;\nmov.f32 %a, %_s0_0;\n}");
    close_bench(&bench);
}

static void test_swapped_registers_need_a_temporary(void) {
    static const size_t requests[] = {A, B};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nmov.f32 %_s0_0, %a;\nmov.f32 %a, %b;\nmov.f32 %b, %_s0_0;\n}");
    bench.mode = STACK_PTX_MODE_COMPATIBLE;
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %a, %b;\nmov.f32 %b, %a;\n}");
    close_bench(&bench);
}

static void test_chain_of_moves_is_put_in_order_without_a_temporary(void) {
    /* a = b, b = c, c = a + 1: as given the second would be right, but c is read before it is written. */
    static const size_t forward[] = {A, B, C};
    static const StackPtxInstruction reads_ahead[] = {
        INPUT(A),
        CONSTANT(F32, ONE_F32),
        PTX(ADD),
        INPUT(C),
        INPUT(B),
        RETURN,
    };
    /* b = a, c = b: c has to be written first. */
    static const size_t backward[] = {B, C};
    static const StackPtxInstruction reads_behind[] = {INPUT(B), INPUT(A), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, forward, 3);
    CHECK_TEXT(
        STUB(&bench, reads_ahead),
        "{\n.reg .f32 %_s0_<1>;\nadd.ftz.f32 %_s0_0, 0f3F800000, %a;\nmov.f32 %a, %b;\nmov.f32 %b, %c;\nmov.f32 %c, %_s0_0;\n}"
    );
    close_bench(&bench);
    open_bench(&bench, &roomy, backward, 2);
    CHECK_TEXT(STUB(&bench, reads_behind), "{\nmov.f32 %c, %b;\nmov.f32 %b, %a;\n}");
    close_bench(&bench);
}

/* What a stub's movs leave in registers that began as A B C D and O0 O1, each holding its own letter. */
static void run_moves(const char* text, char* values /* indexed by register, temporaries above */) {
    const char* line = text;
    while ((line = strstr(line, "mov.f32 %")) != NULL) {
        char target[16], source[16];
        int t = -1, s = -1, i;
        char value = '?';
        line += 9;
        CHECK_UINT((unsigned)sscanf(line, "%15[^,], %15[^;]", target, source), 2);
        for (i = 0; i <= O5; ++i) {
            t = strcmp(target, registers[i].name) == 0 ? i : t;
            s = source[0] == '%' && strcmp(source + 1, registers[i].name) == 0 ? i : s;
        }
        if (strncmp(target, "_s0_", 4) == 0) {
            t = 16 + atoi(target + 4);
        }
        if (strncmp(source, "%_s0_", 5) == 0) {
            s = 16 + atoi(source + 5);
        }
        value = s >= 0 ? values[s] : '0';
        CHECK(t >= 0);
        if (t >= 0) {
            values[t] = value;
        }
    }
}

static void test_any_assignment_among_four_registers_is_a_parallel_move(void) {
    /* All 5^4 ways to give each of a b c d the value of one of them, or zero. */
    static const size_t requests[] = {A, B, C, D};
    static const char* const letters = "abcd0";
    Bench bench;
    unsigned code;
    open_bench(&bench, &roomy, requests, 4);
    for (code = 0; code < 625; ++code) {
        StackPtxInstruction words[5];
        char values[64] = "abcd";
        unsigned digits[4], k;
        memset(words, 0, sizeof words);
        digits[0] = code % 5;
        digits[1] = code / 5 % 5;
        digits[2] = code / 25 % 5;
        digits[3] = code / 125;
        for (k = 0; k < 4; ++k) {
            /* The first request takes the top: push in reverse. */
            const unsigned digit = digits[3 - k];
            words[k].instruction_type =
                (uint16_t)(digit == 4 ? STACK_PTX_INSTRUCTION_TYPE_CONSTANT : STACK_PTX_INSTRUCTION_TYPE_INPUT);
            words[k].payload.u = digit == 4 ? 0 : digit;
        }
        words[4].instruction_type = STACK_PTX_INSTRUCTION_TYPE_RETURN;
        run_moves(STUB(&bench, words), values);
        for (k = 0; k < 4; ++k) {
            CHECK_UINT(values[k], letters[digits[k]]);
        }
    }
    close_bench(&bench);
}

static void test_many_swaps_at_once(void) {
    /* Ten pairs, exchanged pair by pair: each needs three movs. */
    static StackPtxRegister pairs[20];
    static char names[20][4];
    static size_t requests[20];
    StackPtxInstruction words[21];
    const char* line;
    size_t i, num_moves = 0;
    Bench bench;
    memset(words, 0, sizeof words);
    for (i = 0; i < 20; ++i) {
        (void)snprintf(names[i], sizeof names[i], "q%02u", (unsigned)i);
        pairs[i].name = names[i];
        pairs[i].stack_idx = F32;
        requests[i] = i;
        words[i].instruction_type = STACK_PTX_INSTRUCTION_TYPE_INPUT;
        words[i].payload.u = (uint32_t)((19 - i) ^ 1u); /* request 19 - i gets the other of its pair */
    }
    words[20].instruction_type = STACK_PTX_INSTRUCTION_TYPE_RETURN;
    open_bench(&bench, &roomy, NULL, 0);
    bench.info.registers = pairs;
    bench.info.num_registers = 20;
    bench.info.requests = requests;
    bench.info.num_requests = 20;
    open_language(&bench);
    line = STUB(&bench, words);
    CHECK(strstr(line, ".reg .f32 %_s0_<10>;") != NULL);
    for (; (line = strstr(line, "mov.f32")) != NULL; ++line) {
        ++num_moves;
    }
    CHECK_UINT(num_moves, 30);
    for (i = 0; i < 10; ++i) {
        char expected[96];
        (void)snprintf(
            expected,
            sizeof expected,
            "mov.f32 %%_s0_%u, %%q%02u;\nmov.f32 %%q%02u, %%q%02u;\nmov.f32 %%q%02u, %%_s0_%u;\n",
            (unsigned)i,
            (unsigned)(2 * i),
            (unsigned)(2 * i),
            (unsigned)(2 * i + 1),
            (unsigned)(2 * i + 1),
            (unsigned)i
        );
        CHECK(strstr(bench.text, expected) != NULL);
    }
    close_bench(&bench);
}

static void test_last_request_for_a_register_counts(void) {
    /* a = b, b = a, a = c: of the two for a the last counts, so b = a comes first. */
    static const size_t requests[] = {A, B, A};
    static const StackPtxInstruction words[] = {INPUT(C), INPUT(A), INPUT(B), RETURN};
    static const size_t without_hazard[] = {O0, O0};
    static const StackPtxInstruction two[] = {INPUT(A), INPUT(B), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 3);
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %b, %a;\nmov.f32 %a, %c;\n}");
    close_bench(&bench);
    open_bench(&bench, &roomy, without_hazard, 2);
    CHECK_TEXT(STUB(&bench, two), "{\nmov.f32 %o0, %b;\nmov.f32 %o0, %a;\n}");
    close_bench(&bench);
}

static void test_registers_of_one_name_are_one_register(void) {
    /* "x" twice: as input 0 and as request 2. */
    static const StackPtxRegister twice[] = {{"x", F32}, {"y", F32}, {"x", F32}};
    static const size_t requests[] = {2, 1};
    static const StackPtxInstruction words[] = {INPUT(0), INPUT(1), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, NULL, 0);
    bench.info.registers = twice;
    bench.info.num_registers = 3;
    bench.info.requests = requests;
    bench.info.num_requests = 2;
    open_language(&bench);
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nmov.f32 %_s0_0, %x;\nmov.f32 %x, %y;\nmov.f32 %y, %_s0_0;\n}");
    close_bench(&bench);
}

/* ---- dead code and value numbering ---- */

static void test_only_what_requests_need_is_emitted(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A),
        PTX(NEG),
        SPECIAL(CLOCK),
        INPUT(B),
        PTX(NEG),
        INPUT(C),
        INPUT(D),
        PTX(ADD),
        META(SWAP, F32),
        RETURN,
    };
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nneg.ftz.f32 %_s0_0, %b;\nmov.f32 %o0, %_s0_0;\n}");
    CHECK_UINT(bench.lowered.num_nodes, 2);
    CHECK_UINT(bench.lowered.num_instructions, 1);
    close_bench(&bench);
}

static void test_lowered_form_is_in_evaluation_order_with_operands_before_their_use(void) {
    static const size_t requests[] = {O0, O1};
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        PTX(SUB),
        META(DUP, F32),
        CONSTANT(F32, ONE_F32),
        PTX(ADD),
        RETURN,
    };
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 5);
    CHECK_UINT(bench.lowered.num_values, 5);
    CHECK_UINT(bench.lowered.num_operands, 4);
    CHECK_UINT(bench.lowered.num_requests, 2);
    CHECK_UINT(bench.lowered.mode, STACK_PTX_MODE_LENIENT);
    CHECK_UINT(bench.lowered.nodes[0].kind, STACK_PTX_NODE_INPUT);
    CHECK_UINT(bench.lowered.nodes[0].payload, A);
    CHECK_UINT(bench.lowered.nodes[1].payload, B);
    CHECK_UINT(bench.lowered.nodes[2].kind, STACK_PTX_NODE_PTX);
    CHECK_UINT(bench.lowered.nodes[2].payload, SUB);
    CHECK_UINT(bench.lowered.nodes[2].num_operands, 2);
    CHECK_UINT(bench.lowered.operands[bench.lowered.nodes[2].first_operand], 1);
    CHECK_UINT(bench.lowered.operands[bench.lowered.nodes[2].first_operand + 1], 0);
    CHECK_UINT(bench.lowered.nodes[3].kind, STACK_PTX_NODE_CONSTANT);
    CHECK_UINT(bench.lowered.nodes[3].payload, ONE_F32);
    CHECK_UINT(bench.lowered.operands[bench.lowered.nodes[4].first_operand], 3);
    CHECK_UINT(bench.lowered.operands[bench.lowered.nodes[4].first_operand + 1], 2);
    CHECK_UINT(bench.lowered.request_values[0], 4);
    CHECK_UINT(bench.lowered.request_values[1], 2);
    close_bench(&bench);
}

/* Live instructions with value numbering and without. */
static void check_merging(const StackPtxInstruction* words, size_t num_words, uint32_t merged, uint32_t apart) {
    static const size_t requests[] = {O0, O1, O2, O3, O4, OUT_U32, OUT_U32};
    Bench bench;
    open_bench(&bench, &roomy, requests, 7);
    CHECK(lower(&bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, merged);
    bench.flags = STACK_PTX_FLAG_NO_VALUE_NUMBERING;
    CHECK(lower(&bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, apart);
    close_bench(&bench);
}

static void test_equal_values_are_merged_unless_switched_off(void) {
    static const StackPtxInstruction equal[] = {INPUT(A), INPUT(B), PTX(SUB), INPUT(A), INPUT(B), PTX(SUB), RETURN};
    static const StackPtxInstruction nested[] = {
        INPUT(A),
        PTX(NEG),
        INPUT(B),
        PTX(SUB),
        INPUT(A),
        PTX(NEG),
        INPUT(B),
        PTX(SUB),
        RETURN,
    };
    static const StackPtxInstruction commuted[] = {INPUT(A), INPUT(B), PTX(ADD), INPUT(B), INPUT(A), PTX(ADD), RETURN};
    static const StackPtxInstruction not_commuted[] = {INPUT(A), INPUT(B), PTX(SUB), INPUT(B), INPUT(A), PTX(SUB), RETURN};
    /* fma commutes in its first two operands, the values popped first: a b c and a c b, but not b a c. */
    static const StackPtxInstruction fma[] = {
        INPUT(A),
        INPUT(B),
        INPUT(C),
        PTX(FMA),
        INPUT(A),
        INPUT(C),
        INPUT(B),
        PTX(FMA),
        INPUT(B),
        INPUT(A),
        INPUT(C),
        PTX(FMA),
        RETURN,
    };
    static const StackPtxInstruction zeros[] = {
        CONSTANT(F32, 0),
        PTX(NEG),
        CONSTANT(F32, 0x80000000u),
        PTX(NEG),
        CONSTANT(F32, 0),
        PTX(NEG),
        RETURN,
    };
    static const StackPtxInstruction other_stack[] = {
        CONSTANT(U32, 1),
        CONSTANT(U32, 1),
        PTX(ADD_U32),
        CONSTANT(U32, 1),
        CONSTANT(U32, 2),
        PTX(ADD_U32),
        RETURN,
    };
    check_merging(equal, COUNT(equal), 1, 2);
    check_merging(nested, COUNT(nested), 2, 4);
    check_merging(commuted, COUNT(commuted), 1, 2);
    check_merging(not_commuted, COUNT(not_commuted), 2, 2);
    check_merging(fma, COUNT(fma), 2, 3);
    check_merging(zeros, COUNT(zeros), 2, 3);
    check_merging(other_stack, COUNT(other_stack), 2, 2);
}

static void test_vector_instructions_are_merged_too(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A), INPUT(B), INPUT(C), INPUT(D), INPUT(IN_T0), INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), NUMBER(3), META(DROP, F32),
        INPUT(A), INPUT(B), INPUT(C), INPUT(D), INPUT(IN_T0), INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), RETURN,
    };
    /* The last of the operands differs. */
    static const StackPtxInstruction different[] = {
        INPUT(A), INPUT(B), INPUT(C), INPUT(D), INPUT(IN_T0), INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), NUMBER(3), META(DROP, F32),
        INPUT(B), INPUT(B), INPUT(C), INPUT(D), INPUT(IN_T0), INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), RETURN,
    };
    Bench bench;
    check_merging(words, COUNT(words), 1, 2);
    check_merging(different, COUNT(different), 2, 2);
    open_bench(&bench, &roomy, request_all_f32, 5);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    /* Four results of the one node, then the last of the first time: its fourth again. */
    CHECK_UINT(bench.lowered.request_values[4], bench.lowered.request_values[3]);
    close_bench(&bench);
}

static void test_emitted_operands_keep_the_order_in_which_they_were_popped(void) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), INPUT(B), INPUT(A), PTX(ADD), PTX(SUB), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<3>;\nsub.ftz.f32 %_s0_0, %b, %a;\nadd.ftz.f32 %_s0_1, %a, %b;\nsub.ftz.f32 %_s0_2, %_s0_1, %_s0_0;\n"
        "mov.f32 %o0, %_s0_2;\n}"
    );
    close_bench(&bench);
}

static void test_volatile_reads_are_never_merged(void) {
    static const size_t requests[] = {OUT_U32, OUT_U32};
    static const StackPtxInstruction clocks[] = {SPECIAL(CLOCK), SPECIAL(CLOCK), RETURN};
    static const StackPtxInstruction one_clock[] = {SPECIAL(CLOCK), META(DUP, U32), RETURN};
    static const StackPtxInstruction tids[] = {SPECIAL(TID_X), SPECIAL(TID_X), RETURN};
    static const StackPtxInstruction masks[] = {PTX(ACTIVEMASK), PTX(ACTIVEMASK), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    CHECK_TEXT(
        STUB(&bench, clocks),
        "{\n.reg .u32 %_s1_<2>;\nmov.u32 %_s1_0, %clock;\nmov.u32 %_s1_1, %clock;\nmov.u32 %ou, %_s1_1;\nmov.u32 %ou, %_s1_0;\n}"
    );
    CHECK(LOWER(&bench, one_clock) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1);
    CHECK(LOWER(&bench, tids) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1);
    CHECK_TEXT(
        STUB(&bench, masks),
        "{\n.reg .u32 %_s1_<2>;\nactivemask.b32 %_s1_0;\nactivemask.b32 %_s1_1;\nmov.u32 %ou, %_s1_1;\nmov.u32 %ou, %_s1_0;\n}"
    );
    close_bench(&bench);
}

/* A program of more distinct values than the first part of the table holds, then all of them again. */
static void test_many_values_are_numbered_and_named(void) {
    enum { NUM_CONSTANTS = 1500 };
    static StackPtxInstruction words[2 * (2 * NUM_CONSTANTS + 2) + 1];
    static const size_t requests[] = {O0, O1};
    StackPtxLimits limits = {4, 20000, 4, 8, 40000};
    static char text[131072];
    static const char* const beginning = "{\n.reg .f32 %_s0_<1500>;\nsub.ftz.f32 %_s0_0, 0f00000000, %a;\n";
    size_t num_words = 0, length = 0, k;
    uint32_t i;
    Bench bench;
    memset(words, 0, sizeof words);
    for (k = 0; k < 2; ++k) {
        words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_INPUT;
        words[num_words++].payload.u = A;
        for (i = 0; i < NUM_CONSTANTS; ++i) {
            words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_CONSTANT;
            words[num_words++].payload.u = i;
            words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_PTX;
            words[num_words++].payload.u = SUB;
        }
    }
    open_bench(&bench, &limits, requests, 2);
    CHECK(lower(&bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1 + 2 * NUM_CONSTANTS);
    CHECK_UINT(bench.lowered.request_values[0], bench.lowered.request_values[1]);
    CHECK(
        stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, text, sizeof text, &length) ==
        STACK_PTX_SUCCESS
    );
    CHECK(strncmp(text, beginning, strlen(beginning)) == 0);
    for (i = 1; i < NUM_CONSTANTS; ++i) {
        char line[128];
        (void)snprintf(line, sizeof line, "\nsub.ftz.f32 %%_s0_%u, 0f%08X, %%_s0_%u;\n", i, i, i - 1);
        CHECK(strstr(text, line) != NULL);
    }
    bench.flags = STACK_PTX_FLAG_NO_VALUE_NUMBERING;
    CHECK(lower(&bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, 2 * NUM_CONSTANTS);
    close_bench(&bench);
}

static void test_values_that_differ_in_a_later_operand_are_kept_apart(void) {
    /* A chain fma(b, a, the one before): many values that share all but the third operand. Constants of no use lie between
       them, now more, now fewer, so that some of them meet in the table. */
    enum { NUM_LINKS = 1500 };
    static StackPtxInstruction words[10000];
    static const StackPtxInstruction link[] = {INPUT(A), INPUT(B), PTX(FMA)};
    static const StackPtxLimits limits = {4, 20000, 4, 8, 40000};
    uint32_t state = 1;
    size_t num_words = 0, i;
    Bench bench;
    words[num_words++] = link[0];
    for (i = 0; i < 3 * NUM_LINKS; ++i) {
        words[num_words++] = link[i % 3];
        if (i % 3 == 2) {
            uint32_t count = (state = state * 1664525u + 1013904223u) >> 30;
            for (; count > 0; --count) {
                const StackPtxInstruction constant = CONSTANT(U32, (uint32_t)num_words);
                words[num_words++] = constant;
            }
        }
    }
    open_bench(&bench, &limits, request_o0, 1);
    CHECK(lower(&bench, words, num_words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 2 + NUM_LINKS);
    close_bench(&bench);
}

static void test_values_of_a_routine_called_often_are_numbered(void) {
    /* Two words that make 1,000 distinct values: the table grows while the program runs. */
    enum { NUM_CONSTANTS = 500 };
    static StackPtxInstruction routine[2 * NUM_CONSTANTS];
    static const StackPtxInstruction* const only_routine[] = {routine};
    static const size_t lengths[] = {2 * NUM_CONSTANTS};
    static const size_t requests[] = {O0, O1};
    static const StackPtxInstruction words[] = {INPUT(A), ROUTINE(0), INPUT(A), ROUTINE(0)};
    static const StackPtxLimits limits = {4, 20000, 4, 8, 40000};
    Bench bench;
    uint32_t i;
    for (i = 0; i < NUM_CONSTANTS; ++i) {
        routine[2 * i].instruction_type = STACK_PTX_INSTRUCTION_TYPE_CONSTANT;
        routine[2 * i].payload.u = i;
        routine[2 * i + 1].instruction_type = STACK_PTX_INSTRUCTION_TYPE_PTX;
        routine[2 * i + 1].payload.u = ADD;
    }
    open_bench(&bench, &limits, requests, 2);
    bench.info.routines = only_routine;
    bench.info.routine_lengths = lengths;
    bench.info.num_routines = 1;
    open_language(&bench);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1 + 2 * NUM_CONSTANTS);
    CHECK_UINT(bench.lowered.request_values[0], bench.lowered.request_values[1]);
    close_bench(&bench);
}

/* ---- hash ---- */

static void test_hash_ignores_dead_code_names_and_value_numbering(void) {
    static const StackPtxRegister renamed[] = {{"alpha", F32}, {"beta", F32}, {"gamma", F32}, {"delta", F32}, {"omega", F32}};
    static const StackPtxInstruction plain[] = {INPUT(A), INPUT(B), PTX(SUB), META(DUP, F32), PTX(ADD), RETURN};
    static const StackPtxInstruction with_dead_code[] = {
        INPUT(C),
        PTX(NEG),
        SPECIAL(CLOCK),
        INPUT(A),
        INPUT(B),
        PTX(SUB),
        NUMBER(5),
        INPUT(A),
        INPUT(B),
        PTX(SUB),
        PTX(ADD),
        PTX(99),
        LOAD(3),
        RETURN,
        PTX(NEG),
    };
    Bench bench;
    StackPtxHash hash;
    open_bench(&bench, &roomy, request_o0, 1);
    hash = HASH(&bench, plain);
    CHECK(is_equal(HASH(&bench, with_dead_code), hash));
    bench.flags = STACK_PTX_FLAG_NO_VALUE_NUMBERING;
    CHECK(is_equal(HASH(&bench, with_dead_code), hash));
    bench.info.registers = renamed;
    bench.info.num_registers = 5;
    open_language(&bench);
    CHECK(is_equal(HASH(&bench, plain), hash));
    close_bench(&bench);
}

static void test_hash_orders_commutative_operands_and_only_those(void) {
    static const StackPtxInstruction ab[] = {INPUT(A), INPUT(B), PTX(ADD), RETURN};
    static const StackPtxInstruction ba[] = {INPUT(B), INPUT(A), PTX(ADD), RETURN};
    static const StackPtxInstruction sub_ab[] = {INPUT(A), INPUT(B), PTX(SUB), RETURN};
    static const StackPtxInstruction sub_ba[] = {INPUT(B), INPUT(A), PTX(SUB), RETURN};
    static const StackPtxInstruction fma_abc[] = {INPUT(A), INPUT(B), INPUT(C), PTX(FMA), RETURN};
    static const StackPtxInstruction fma_acb[] = {INPUT(A), INPUT(C), INPUT(B), PTX(FMA), RETURN};
    static const StackPtxInstruction fma_bac[] = {INPUT(B), INPUT(A), INPUT(C), PTX(FMA), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK(is_equal(HASH(&bench, ab), HASH(&bench, ba)));
    CHECK(!is_equal(HASH(&bench, sub_ab), HASH(&bench, sub_ba)));
    CHECK(is_equal(HASH(&bench, fma_abc), HASH(&bench, fma_acb)));
    CHECK(!is_equal(HASH(&bench, fma_abc), HASH(&bench, fma_bac)));
    close_bench(&bench);
}

static void test_hash_tells_different_programs_apart(void) {
    static const StackPtxInstruction programs[][5] = {
        {INPUT(A), INPUT(B), PTX(ADD), RETURN, RETURN},
        {INPUT(A), INPUT(B), PTX(SUB), RETURN, RETURN},
        {INPUT(A), INPUT(C), PTX(ADD), RETURN, RETURN},
        {INPUT(A), INPUT(A), PTX(ADD), RETURN, RETURN},
        {INPUT(A), RETURN, RETURN, RETURN, RETURN},
        {INPUT(B), RETURN, RETURN, RETURN, RETURN},
        {CONSTANT(F32, 0), RETURN, RETURN, RETURN, RETURN},
        {CONSTANT(F32, 0x80000000u), RETURN, RETURN, RETURN, RETURN},
        {CONSTANT(F32, 1), RETURN, RETURN, RETURN, RETURN},
        {INPUT(A), PTX(NEG), RETURN, RETURN, RETURN},
        {INPUT(A), PTX(NEG), PTX(NEG), RETURN, RETURN},
        {RETURN, RETURN, RETURN, RETURN, RETURN},
        {SPECIAL(CLOCK), PTX(CVT), RETURN, RETURN, RETURN},
        {SPECIAL(TID_X), PTX(CVT), RETURN, RETURN, RETURN},
        {CONSTANT(U32, 1), PTX(CVT), RETURN, RETURN, RETURN},
        {INPUT(IN_U32), PTX(CVT), RETURN, RETURN, RETURN},
    };
    StackPtxHash hashes[COUNT(programs)];
    Bench bench;
    size_t i, k;
    open_bench(&bench, &roomy, request_o0, 1);
    for (i = 0; i < COUNT(programs); ++i) {
        hashes[i] = HASH(&bench, programs[i]);
        for (k = 0; k < i; ++k) {
            CHECK(hashes[i].words[0] != hashes[k].words[0]);
            CHECK(hashes[i].words[1] != hashes[k].words[1]);
        }
    }
    close_bench(&bench);
}

static void test_hash_depends_on_each_limit(void) {
    static const StackPtxInstruction words[] = {INPUT(A), RETURN};
    StackPtxHash hashes[6];
    size_t i, k;
    for (i = 0; i < 6; ++i) {
        StackPtxLimits limits = roomy;
        Bench bench;
        limits.stack_size += i == 1;
        limits.max_nodes += i == 2;
        limits.max_frame_depth += i == 3;
        limits.store_size += i == 4;
        limits.execution_limit += i == 5;
        open_bench(&bench, &limits, request_o0, 1);
        hashes[i] = HASH(&bench, words);
        close_bench(&bench);
        for (k = 0; k < i; ++k) {
            CHECK(!is_equal(hashes[i], hashes[k]));
        }
    }
}

static void test_hash_depends_on_the_number_and_types_of_requests(void) {
    static const size_t one[] = {O0};
    static const size_t two[] = {O0, O1};
    static const size_t another_register[] = {O1};
    static const size_t another_type[] = {OUT_U32};
    static const StackPtxInstruction nothing[] = {RETURN};
    static const StackPtxInstruction inputs[] = {INPUT(A), INPUT(B), RETURN};
    static const StackPtxInstruction exchanged[] = {INPUT(B), INPUT(A), RETURN};
    Bench bench;
    StackPtxHash hash, hash_2;
    open_bench(&bench, &roomy, one, 1);
    hash = HASH(&bench, nothing);
    close_bench(&bench);
    open_bench(&bench, &roomy, two, 2);
    CHECK(!is_equal(HASH(&bench, nothing), hash));
    hash_2 = HASH(&bench, inputs);
    CHECK(!is_equal(HASH(&bench, exchanged), hash_2));
    close_bench(&bench);
    open_bench(&bench, &roomy, another_register, 1);
    CHECK(is_equal(HASH(&bench, nothing), hash));
    close_bench(&bench);
    open_bench(&bench, &roomy, another_type, 1);
    CHECK(!is_equal(HASH(&bench, nothing), hash));
    close_bench(&bench);
}

static void test_hash_does_not_depend_on_indices_of_instructions_and_stacks(void) {
    /* The same instruction in a set of its own, at another index and on another stack. */
    static const char* const two_prefixes[] = {"u32", "f32"};
    static const StackPtxArgTypeInfo types[] = {{0, 0}, {1, 0}};
    static const char* const strings[] = {"neg.ftz.f32", "sub.ftz.f32"};
    static const StackPtxPtxInstructionDescriptor two[] = {
        {{1, 2, 2, 2}, {1, 2}, 1, false, UNREAD_REQUIREMENTS},
        {{1, 1, 2, 2}, {1, 2}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxStackInfo info = {strings, two, 2, NULL, NULL, 0, two_prefixes, 2, types, 2};
    static const StackPtxRegister three[] = {{"a", 1}, {"b", 1}, {"z", 1}};
    static const size_t requests[] = {2};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), CONSTANT(F32, 5), PTX(SUB), RETURN};
    static const StackPtxInstruction others[] = {INPUT(0), INPUT(1), PTX(1), CONSTANT(1, 5), PTX(1), RETURN};
    Bench bench;
    StackPtxHash hash;
    open_bench(&bench, &roomy, request_o0, 1);
    hash = HASH(&bench, words);
    bench.info.stack_info = &info;
    bench.info.traits = NULL;
    bench.info.registers = three;
    bench.info.num_registers = 3;
    bench.info.requests = requests;
    open_language(&bench);
    CHECK(is_equal(HASH(&bench, others), hash));
    close_bench(&bench);
}

static void test_hash_tells_results_of_one_node_and_operand_types_apart(void) {
    static const size_t requests[] = {IN_T0, IN_T1};
    static const StackPtxInstruction first_on_top[] = {INPUT(A), PTX(SPLIT), RETURN};
    static const StackPtxInstruction exchanged[] = {INPUT(A), PTX(SPLIT), META(SWAP, TF32), RETURN};
    /* p of setp p|q and p of setp p have the same text and operands. */
    static const size_t predicate[] = {OUT_PRED};
    static const StackPtxInstruction one_result[] = {INPUT(A), INPUT(B), PTX(SETP), RETURN};
    static const StackPtxInstruction two_results[] = {INPUT(A), INPUT(B), PTX(SETP_2), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    CHECK(!is_equal(HASH(&bench, first_on_top), HASH(&bench, exchanged)));
    close_bench(&bench);
    open_bench(&bench, &roomy, predicate, 1);
    CHECK(!is_equal(HASH(&bench, one_result), HASH(&bench, two_results)));
    close_bench(&bench);
}

static void test_hash_of_special_registers(void) {
    static const size_t requests[] = {OUT_U32, IN_U32};
    static const StackPtxInstruction element[] = {SPECIAL(TID), META(DUP, U32), RETURN};
    static const StackPtxInstruction scalar[] = {SPECIAL(TID_W), META(DUP, U32), RETURN};
    static const StackPtxInstruction x[] = {SPECIAL(TID_X), META(DUP, U32), RETURN};
    static const StackPtxInstruction one_read[] = {SPECIAL(CLOCK), META(DUP, U32), RETURN};
    static const StackPtxInstruction two_reads[] = {SPECIAL(CLOCK), SPECIAL(CLOCK), RETURN};
    static const StackPtxInstruction exchanged[] = {SPECIAL(CLOCK), SPECIAL(CLOCK), META(SWAP, U32), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    CHECK(is_equal(HASH(&bench, element), HASH(&bench, scalar)));
    CHECK(!is_equal(HASH(&bench, scalar), HASH(&bench, x)));
    CHECK(!is_equal(HASH(&bench, one_read), HASH(&bench, two_reads)));
    CHECK(!is_equal(HASH(&bench, two_reads), HASH(&bench, exchanged)));
    close_bench(&bench);
}

static void test_hash_version_1_is_as_it_was(void) {
    /* Not derived from the rules: the value that version 1 gave when it was made. If this fails, stored hashes are void: raise
       STACK_PTX_HASH_VERSION. */
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        PTX(SUB),
        CONSTANT(F32, ONE_F32),
        PTX(ADD),
        SPECIAL(TID),
        PTX(CVT),
        PTX(ADD),
        RETURN,
    };
    Bench bench;
    StackPtxHash hash;
    open_bench(&bench, &roomy, request_o0, 1);
    hash = HASH(&bench, words);
    CHECK_UINT(STACK_PTX_HASH_VERSION, 1);
    CHECK_UINT(hash.words[0], 0xc10050d3de0a8202ull);
    CHECK_UINT(hash.words[1], 0x0724a0ef5cba73efull);
    close_bench(&bench);
}

/* ---- modes ---- */

typedef struct WrongWord {
    StackPtxInstruction word;
    StackPtxResult strict;
    StackPtxResult compatible;
} WrongWord;

static void test_each_wrong_word_is_a_no_op_or_its_error(void) {
    static const WrongWord cases[] = {
        {WORD(NONE, 0, 0),
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {WORD(REGISTER, 0, 0),
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {WORD(AST_IDX, 0, 0),
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {WORD(NUM_ENUMS, 0, 0),
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {{0xFFFF, 0xFFFF, {UINT32_MAX}},
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {PTX(NUM_INSTRUCTIONS),
         STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS,
         STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS},
        {PTX(UINT32_MAX), STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS},
        {INPUT(NUM_REGISTERS), STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS},
        {SPECIAL(NUM_SPECIAL),
         STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS,
         STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS},
        {CONSTANT(NUM_STACKS, 0), STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS},
        {CONSTANT(PRED, 0), STACK_PTX_ERROR_WRONG_TYPE_DISPATCH, STACK_PTX_ERROR_WRONG_TYPE_DISPATCH},
        {META(DUP, NUM_STACKS), STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS},
        {META(NUM_ENUMS, F32),
         STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS,
         STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS},
        {META(YANK_DUP, F32), STACK_PTX_ERROR_INVALID_VALUE, STACK_PTX_SUCCESS},
        {META(SWAP_WITH, F32), STACK_PTX_ERROR_INVALID_VALUE, STACK_PTX_SUCCESS},
        {META(REPLACE, F32), STACK_PTX_ERROR_INVALID_VALUE, STACK_PTX_SUCCESS},
        {STORE(NUM_STACKS, 0), STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS},
        {STORE(F32, 8), STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS},
        {LOAD(8), STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS},
        {ROUTINE(3), STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS},
        /* No-ops of every mode: too few values, a count, an empty slot. */
        {PTX(FMA), STACK_PTX_SUCCESS, STACK_PTX_SUCCESS},
        {META(DROP, F32), STACK_PTX_SUCCESS, STACK_PTX_SUCCESS},
        {META(SWAP, U32), STACK_PTX_SUCCESS, STACK_PTX_SUCCESS},
        {STORE(U32, 0), STACK_PTX_SUCCESS, STACK_PTX_SUCCESS},
        {LOAD(0), STACK_PTX_SUCCESS, STACK_PTX_SUCCESS},
    };
    Bench bench;
    size_t i;
    open_bench(&bench, &roomy, request_o0, 1);
    bench.info.routines = routines;
    bench.info.num_routines = 3;
    open_language(&bench);
    for (i = 0; i < COUNT(cases); ++i) {
        /* The meta constant is a depth and a count that no stack here has. */
        StackPtxInstruction words[] = {INPUT(A), NUMBER(7), RETURN, RETURN};
        words[2] = cases[i].word;
        bench.mode = STACK_PTX_MODE_LENIENT;
        CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, %a;\n}");
        bench.mode = STACK_PTX_MODE_COMPATIBLE;
        CHECK_TEXT(stack_ptx_result_to_string(LOWER(&bench, words)), stack_ptx_result_to_string(cases[i].compatible));
        bench.mode = STACK_PTX_MODE_STRICT;
        memset(&bench.place, 0, sizeof bench.place);
        CHECK_TEXT(stack_ptx_result_to_string(LOWER(&bench, words)), stack_ptx_result_to_string(cases[i].strict));
        if (cases[i].strict != STACK_PTX_SUCCESS) {
            CHECK_UINT(bench.place.word_idx, 2);
            CHECK_UINT(bench.place.routine_idx, STACK_PTX_MAIN_PROGRAM);
        }
        CHECK(
            stack_ptx_lower(
                bench.language, bench.mode, 0, words, COUNT(words), bench.workspace, bench.workspace_bytes, &bench.lowered, NULL
            ) == cases[i].strict
        );
    }
    close_bench(&bench);
}

static void test_strict_errors_in_a_routine_name_it(void) {
    static const StackPtxInstruction words[] = {INPUT(A), ROUTINE(2), RETURN};
    StackPtxLimits limits = roomy;
    Bench bench;
    limits.max_frame_depth = 2;
    open_bench(&bench, &limits, request_o0, 1);
    bench.info.routines = routines;
    bench.info.num_routines = 3;
    open_language(&bench);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK(LOWER(&bench, words) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK_UINT(bench.place.routine_idx, 2);
    CHECK_UINT(bench.place.word_idx, 1);
    bench.mode = STACK_PTX_MODE_COMPATIBLE;
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    close_bench(&bench);
}

static void test_strict_reports_the_node_limit_but_not_the_execution_limit(void) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(ADD), RETURN};
    StackPtxLimits limits = roomy;
    Bench bench;
    limits.max_nodes = 2;
    open_bench(&bench, &limits, request_o0, 1);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK(LOWER(&bench, words) == STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE);
    CHECK_UINT(bench.place.word_idx, 2);
    bench.mode = STACK_PTX_MODE_COMPATIBLE;
    CHECK(LOWER(&bench, words) == STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE);
    close_bench(&bench);
    limits.max_nodes = 3;
    limits.execution_limit = 2;
    open_bench(&bench, &limits, request_o0, 1);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, %b;\n}");
    close_bench(&bench);
}

static void test_aux_of_words_that_do_not_use_it_is_not_read(void) {
    static const StackPtxInstruction words[] = {
        WORD(INPUT, 77, A),
        WORD(INPUT, 77, B),
        WORD(META_CONSTANT, 77, 1),
        META(YANK_DUP, F32),
        WORD(PTX, 77, SUB),
        WORD(RETURN, 77, 77),
    };
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nsub.ftz.f32 %_s0_0, %a, %b;\nmov.f32 %o0, %_s0_0;\n}");
    close_bench(&bench);
}

/* ---- text and memory ---- */

static void test_every_buffer_size_is_respected(void) {
    static const size_t requests[] = {O0, OUT_U32, A, B};
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        INPUT(IN_T0),
        INPUT(IN_T0),
        INPUT(IN_T1),
        INPUT(A),
        INPUT(B),
        INPUT(C),
        INPUT(D),
        PTX(MMA),
        PTX(ADD),
        INPUT(A),
        PTX(FMA),
        SPECIAL(TID),
        RETURN,
    };
    static char expected[2048], buffer[2048];
    Bench bench;
    size_t length = 0, size, written;
    open_bench(&bench, &roomy, requests, 4);
    (void)memcpy(expected, STUB(&bench, words), sizeof expected);
    CHECK(
        stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, NULL, 0, &length) ==
        STACK_PTX_SUCCESS
    );
    CHECK_UINT(length, strlen(expected));
    for (size = 0; size < sizeof buffer; ++size) {
        StackPtxResult result;
        size_t k, num_touched = 0;
        memset(buffer, 0x7E, sizeof buffer);
        written = 0;
        result = stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, buffer, size, &written);
        CHECK(result == (size > length ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INSUFFICIENT_BUFFER));
        CHECK_UINT(written, length);
        for (k = size; k < sizeof buffer; ++k) {
            num_touched += buffer[k] != 0x7E;
        }
        CHECK_UINT(num_touched, 0);
        if (size > length) {
            CHECK_TEXT(buffer, expected);
        }
    }
    close_bench(&bench);
}

static void test_long_names_give_the_same_text_as_short_ones(void) {
    /* 80 characters each: longer than any padded slot. */
#define LONG_A "a23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_"
#define LONG_Z "z23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_"
#define LONG_ADD "add.23456789.123456789.123456789.123456789.123456789.123456789.123456789.123456789"
    static const char* const strings[] = {LONG_ADD};
    static const StackPtxStackInfo info = {strings, descriptors, 1, NULL, NULL, 0, prefixes, NUM_STACKS, arg_types, NUM_ARGS};
    static const StackPtxRegister long_names[] = {{LONG_A, F32}, {LONG_Z, F32}};
    static const size_t requests[] = {1, 0};
    static const StackPtxInstruction words[] = {INPUT(1), INPUT(0), INPUT(1), PTX(0), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, NULL, 0);
    bench.info.stack_info = &info;
    bench.info.traits = NULL;
    bench.info.registers = long_names;
    bench.info.num_registers = 2;
    bench.info.requests = requests;
    bench.info.num_requests = 2;
    open_language(&bench);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<1>;\n" LONG_ADD " %_s0_0, %" LONG_Z ", %" LONG_A ";\n"
        "mov.f32 %" LONG_A ", %" LONG_Z ";\nmov.f32 %" LONG_Z ", %_s0_0;\n}"
    );
    close_bench(&bench);
}

static void test_memory_may_have_any_alignment_but_not_too_few_bytes(void) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), RETURN};
    Bench bench;
    StackPtxHash hash;
    size_t offset, length = 0;
    open_bench(&bench, &roomy, request_o0, 1);
    hash = HASH(&bench, words);
    for (offset = 0; offset < 65; offset += 13) {
        size_t language_bytes = 0, work_bytes = 0;
        char* memory;
        char* workspace;
        const StackPtxLanguage* language = NULL;
        StackPtxHash other;
        CHECK(stack_ptx_language_size(&bench.info, &language_bytes) == STACK_PTX_SUCCESS);
        memory = (char*)malloc(language_bytes + offset);
        CHECK(
            stack_ptx_language_init(&bench.info, memory + offset, language_bytes - 1, &language) ==
            STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK(stack_ptx_language_init(&bench.info, memory + offset, language_bytes, &language) == STACK_PTX_SUCCESS);
        CHECK(stack_ptx_workspace_size(language, &work_bytes) == STACK_PTX_SUCCESS);
        workspace = (char*)malloc(work_bytes + offset);
        CHECK(
            stack_ptx_lower(
                language, STACK_PTX_MODE_LENIENT, 0, words, COUNT(words), workspace + offset, work_bytes - 1, &bench.lowered, NULL
            ) == STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK(
            stack_ptx_lower(
                language, STACK_PTX_MODE_LENIENT, 0, words, COUNT(words), workspace + offset, work_bytes, &bench.lowered, NULL
            ) == STACK_PTX_SUCCESS
        );
        CHECK(
            stack_ptx_emit(language, &bench.lowered, workspace + offset, work_bytes - 1, NULL, 0, &length) ==
            STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK(
            stack_ptx_hash(language, &bench.lowered, workspace + offset, work_bytes - 1, &other) ==
            STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK(stack_ptx_hash(language, &bench.lowered, workspace + offset, work_bytes, &other) == STACK_PTX_SUCCESS);
        CHECK(is_equal(hash, other));
        free(memory);
        free(workspace);
    }
    close_bench(&bench);
}

static void test_null_where_nothing_says_so_is_an_invalid_value(void) {
    static const StackPtxInstruction words[] = {INPUT(A), RETURN};
    const StackPtxLanguage* language = NULL;
    Bench bench;
    StackPtxHash hash;
    size_t size = 0;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    CHECK(stack_ptx_check_name(NULL) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_language_size(NULL, &size) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_language_size(&bench.info, NULL) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_language_init(NULL, bench.memory, 1u << 20, &language) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_language_init(&bench.info, NULL, 1u << 20, &language) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_language_init(&bench.info, bench.memory, 1u << 20, NULL) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_language_stack_info(NULL) == NULL);
    CHECK(stack_ptx_language_stack_info(bench.language)->num_ptx_instructions == NUM_INSTRUCTIONS);
    CHECK(stack_ptx_workspace_size(NULL, &size) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_workspace_size(bench.language, NULL) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(
        stack_ptx_lower(
            NULL, STACK_PTX_MODE_LENIENT, 0, words, 2, bench.workspace, bench.workspace_bytes, &bench.lowered, NULL
        ) == STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_lower(
            bench.language, STACK_PTX_MODE_LENIENT, 0, NULL, 2, bench.workspace, bench.workspace_bytes, &bench.lowered, NULL
        ) == STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_lower(bench.language, STACK_PTX_MODE_LENIENT, 0, words, 2, NULL, bench.workspace_bytes, &bench.lowered, NULL) ==
        STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_lower(
            bench.language, STACK_PTX_MODE_LENIENT, 0, words, 2, bench.workspace, bench.workspace_bytes, NULL, NULL
        ) == STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_lower(
            bench.language, STACK_PTX_MODE_LENIENT, 2, words, 2, bench.workspace, bench.workspace_bytes, &bench.lowered, NULL
        ) == STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(LOWER(&bench, words) == STACK_PTX_SUCCESS);
    CHECK(
        stack_ptx_emit(NULL, &bench.lowered, bench.workspace, bench.workspace_bytes, NULL, 0, &size) ==
        STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_emit(bench.language, NULL, bench.workspace, bench.workspace_bytes, NULL, 0, &size) ==
        STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_emit(bench.language, &bench.lowered, NULL, bench.workspace_bytes, NULL, 0, &size) ==
        STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, NULL, 0, NULL) ==
        STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(stack_ptx_hash(bench.language, NULL, bench.workspace, bench.workspace_bytes, &hash) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(
        stack_ptx_hash(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, NULL) ==
        STACK_PTX_ERROR_INVALID_VALUE
    );
    close_bench(&bench);
}

/* ---- descriptions ---- */

/* The result of preparing a language; all of its memory is there. */
static StackPtxResult init_result(const StackPtxLanguageInfo* info) {
    const StackPtxLanguage* language = NULL;
    size_t num_bytes = 0;
    StackPtxResult result = stack_ptx_language_size(info, &num_bytes);
    if (result == STACK_PTX_SUCCESS) {
        void* memory = malloc(num_bytes);
        result = stack_ptx_language_init(info, memory, num_bytes, &language);
        free(memory);
    }
    return result;
}

static void test_wrong_descriptions_are_refused_by_their_code(void) {
    static const StackPtxArgTypeInfo bad_stack[] = {{NUM_STACKS, 0}};
    static const StackPtxArgTypeInfo too_wide[] = {{F32, STACK_PTX_MAX_NUM_VEC_ELEMS + 1}};
    static const StackPtxPtxInstructionDescriptor bad_arg[] = {
        {{NUM_ARGS + 1, NONE_ARG, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxPtxInstructionDescriptor bad_ret[] = {
        {{ARG_F32, NONE_ARG, NONE_ARG, NONE_ARG}, {NUM_ARGS + 1, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxPtxInstructionDescriptor gap[] = {
        {{NONE_ARG, ARG_F32, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxInstructionTraits one_commutes[] = {{1, 0, 0}};
    static const StackPtxInstructionTraits two_commute[] = {{2, 0, 0}};
    static const StackPtxSpecialRegisterDescriptor bad_special[] = {{NUM_ARGS}};
    static const StackPtxSpecialRegisterDescriptor wide_special[] = {{0}};
    static const StackPtxArgTypeInfo five[] = {{F32, 5}};
    static const uint8_t bad_constant[NUM_STACKS] = {STACK_PTX_CONSTANT_TYPE_NUM_ENUMS, 0, 0, 0, 0, 0};
    static const StackPtxRegister bad_register[] = {{"x", NUM_STACKS}};
    static const StackPtxRegister bad_name[] = {{"f1", F32}};
    static const StackPtxRegister no_name[] = {{NULL, F32}};
    static const StackPtxRegister two_types[] = {{"x", F32}, {"x", U32}};
    static const size_t bad_request[] = {NUM_REGISTERS};
    static const StackPtxInstruction* const no_routine[] = {NULL};
    static const size_t no_length[] = {0};
    StackPtxLanguageInfo good, info;
    StackPtxStackInfo set;
    StackPtxTraits of_set;
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    good = bench.info;
    close_bench(&bench);
    good.stack_info = &set;
    good.traits = &of_set;

#define EXPECT(code, change)                                                            \
    do {                                                                                \
        info = good;                                                                    \
        set = stack_info;                                                               \
        of_set = traits;                                                                \
        change;                                                                         \
        CHECK_TEXT(stack_ptx_result_to_string(init_result(&info)), "STACK_PTX_" #code); \
    } while (0)

    EXPECT(SUCCESS, (void)0);
    EXPECT(SUCCESS, info.traits = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.stack_info = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.registers = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.requests = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.num_routines = 1);
    EXPECT(ERROR_INVALID_VALUE, info.limits.stack_size = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, info.limits.max_nodes = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, info.limits.max_frame_depth = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, info.limits.store_size = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, set.ptx_instruction_strings = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.ptx_instruction_descriptors = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.special_register_strings = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.special_register_descriptors = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.stack_literal_prefixes = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.arg_type_info = NULL);
    EXPECT(ERROR_INVALID_VALUE, of_set.constant_types = bad_constant);
    EXPECT(
        ERROR_STACK_IDX_OUT_OF_BOUNDS,
        (set.arg_type_info = bad_stack, set.num_arg_types = 1, set.num_ptx_instructions = 0, set.num_special_registers = 0)
    );
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.arg_type_info = too_wide, set.num_arg_types = 1, set.num_ptx_instructions = 0, set.num_special_registers = 0)
    );
    EXPECT(ERROR_ARG_IDX_OUT_OF_BOUNDS, (set.ptx_instruction_descriptors = bad_arg, set.num_ptx_instructions = 1));
    EXPECT(ERROR_ARG_IDX_OUT_OF_BOUNDS, (set.ptx_instruction_descriptors = bad_ret, set.num_ptx_instructions = 1));
    EXPECT(ERROR_INVALID_VALUE, (set.ptx_instruction_descriptors = gap, set.num_ptx_instructions = 1));
    EXPECT(ERROR_INVALID_VALUE, (of_set.instructions = one_commutes, set.num_ptx_instructions = 1));
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.ptx_instruction_descriptors = &descriptors[NEG], of_set.instructions = two_commute, set.num_ptx_instructions = 1)
    );
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.ptx_instruction_descriptors = &descriptors[MMA], of_set.instructions = two_commute, set.num_ptx_instructions = 1)
    );
    EXPECT(ERROR_ARG_IDX_OUT_OF_BOUNDS, (set.special_register_descriptors = bad_special, set.num_special_registers = 1));
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.special_register_descriptors = wide_special,
         set.num_special_registers = 1,
         set.num_ptx_instructions = 0,
         set.arg_type_info = five,
         set.num_arg_types = 1)
    );
    EXPECT(ERROR_STACK_IDX_OUT_OF_BOUNDS, (info.registers = bad_register, info.num_registers = 1, info.num_requests = 0));
    EXPECT(ERROR_INVALID_VALUE, (info.registers = bad_name, info.num_registers = 1, info.num_requests = 0));
    EXPECT(ERROR_INVALID_VALUE, (info.registers = no_name, info.num_registers = 1, info.num_requests = 0));
    EXPECT(ERROR_INVALID_VALUE, (info.registers = two_types, info.num_registers = 2, info.num_requests = 0));
    EXPECT(ERROR_REGISTER_IDX_OUT_OF_BOUNDS, info.requests = bad_request);
    EXPECT(ERROR_INVALID_VALUE, (info.routines = no_routine, info.num_routines = 1));
    EXPECT(SUCCESS, (info.routines = no_routine, info.routine_lengths = no_length, info.num_routines = 1));
#undef EXPECT
}

static void test_names_of_compilers_and_of_ptx_are_refused(void) {
    static const char* const refused[] = {
        "f1",    "r2",     "rd3",   "p1",      "fd4",         "rs5",     "h6",  "hh7",      "b8",
        "rc9",   "rq10",   "f0123", "_s0_0",   "_s12_345",    "SP",      "SPL", "tid",      "ntid",
        "ctaid", "laneid", "clock", "clock64", "lanemask_lt", "envreg3", "pm0", "pm7_64",   "dynamic_smem_size",
        "",      "%x",     "a b",   "a-b",     "x.y",         "x,",      "x;",  "\xC3\xA4", "x\n",
    };
    static const char* const accepted[] = {
        "x",    "X",    "_x0",   "f",      "r", "rd",  "p",  "f1a", "f_1",  "r1_",    "fx1", "x1", "out0", "s0_0", "_s0",
        "_s0_", "_s_0", "_sx_1", "_s0_0a", "$", "a$b", "9a", "0",   "tidx", "clocks", "SPX", "b",  "h",    "spl",
    };
    size_t i;
    for (i = 0; i < COUNT(refused); ++i) {
        if (stack_ptx_check_name(refused[i]) != STACK_PTX_ERROR_INVALID_VALUE) {
            CHECK_TEXT(refused[i], "a name that is refused");
        }
    }
    for (i = 0; i < COUNT(accepted); ++i) {
        if (stack_ptx_check_name(accepted[i]) != STACK_PTX_SUCCESS) {
            CHECK_TEXT(accepted[i], "a name that is accepted");
        }
    }
}

/* ---- stack_ptx_compile ---- */

/* The stub of one program, or the name of what is wrong. */
static const char* compile(
    const StackPtxCompilerInfo* limits,
    const StackPtxInstruction* words,
    size_t execution_limit,
    const size_t* requests,
    size_t num_requests
) {
    static char text[4096];
    static const StackPtxInstruction* called[] = {routine_calls_1, routine_pushes_d, routine_calls_itself};
    size_t num_bytes = 0, length = 0, written = 0;
    StackPtxResult result;
    void* workspace;
    CHECK(stack_ptx_compile_workspace_size(limits, &stack_info, &num_bytes) == STACK_PTX_SUCCESS);
    workspace = malloc(num_bytes);
    CHECK(workspace != NULL);
    result = stack_ptx_compile(
        limits,
        &stack_info,
        words,
        registers,
        NUM_REGISTERS,
        called,
        3,
        requests,
        num_requests,
        execution_limit,
        workspace,
        num_bytes,
        NULL,
        0,
        &length
    );
    if (result == STACK_PTX_SUCCESS) {
        CHECK(
            stack_ptx_compile(
                limits,
                &stack_info,
                words,
                registers,
                NUM_REGISTERS,
                called,
                3,
                requests,
                num_requests,
                execution_limit,
                workspace,
                num_bytes,
                text,
                length,
                &written
            ) == STACK_PTX_ERROR_INSUFFICIENT_BUFFER
        );
        CHECK(
            stack_ptx_compile(
                limits,
                &stack_info,
                words,
                registers,
                NUM_REGISTERS,
                called,
                3,
                requests,
                num_requests,
                execution_limit,
                workspace,
                num_bytes,
                text,
                length + 1,
                &written
            ) == STACK_PTX_SUCCESS
        );
        CHECK_UINT(written, length);
        CHECK_UINT(strlen(text), length);
        CHECK(
            stack_ptx_compile(
                limits,
                &stack_info,
                words,
                registers,
                NUM_REGISTERS,
                called,
                3,
                requests,
                num_requests,
                execution_limit,
                workspace,
                num_bytes - 1,
                text,
                length + 1,
                &written
            ) == STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE
        );
    }
    free(workspace);
    return result == STACK_PTX_SUCCESS ? text : stack_ptx_result_to_string(result);
}

static void test_compile_gives_the_stub_in_one_call(void) {
    static const StackPtxInstruction words[] = {
        INPUT(A),
        INPUT(B),
        PTX(SUB),
        CONSTANT(F32, ONE_F32),
        PTX(ADD),
        INPUT(C),
        PTX(NEG),
        META(SWAP, F32),
        RETURN,
    };
    CHECK_TEXT(
        compile(&compiler_info, words, 100, request_o0, 1),
        "{\n.reg .f32 %_s0_<2>;\nsub.ftz.f32 %_s0_0, %b, %a;\nadd.ftz.f32 %_s0_1, 0f3F800000, %_s0_0;\nmov.f32 %o0, %_s0_1;\n}"
    );
}

static void test_default_info_has_the_documented_limits(void) {
    CHECK_UINT(compiler_info.max_ast_size, 65536);
    CHECK_UINT(compiler_info.max_ast_to_visit_stack_depth, 1024);
    CHECK_UINT(compiler_info.stack_size, 128);
    CHECK_UINT(compiler_info.max_frame_depth, 4);
    CHECK_UINT(compiler_info.store_size, 16);
}

static void test_compile_keeps_equal_values_apart_and_shares_copied_ones(void) {
    static const StackPtxInstruction equal[] = {INPUT(A), PTX(NEG), INPUT(A), PTX(NEG), PTX(ADD), RETURN};
    static const StackPtxInstruction copied[] = {INPUT(A), PTX(NEG), META(DUP, F32), PTX(ADD), RETURN};
    CHECK_TEXT(
        compile(&compiler_info, equal, 100, request_o0, 1),
        "{\n.reg .f32 %_s0_<3>;\nneg.ftz.f32 %_s0_0, %a;\nneg.ftz.f32 %_s0_1, %a;\nadd.ftz.f32 %_s0_2, %_s0_1, %_s0_0;\n"
        "mov.f32 %o0, %_s0_2;\n}"
    );
    CHECK_TEXT(
        compile(&compiler_info, copied, 100, request_o0, 1),
        "{\n.reg .f32 %_s0_<2>;\nneg.ftz.f32 %_s0_0, %a;\nadd.ftz.f32 %_s0_1, %_s0_0, %_s0_0;\nmov.f32 %o0, %_s0_1;\n}"
    );
}

static void test_compile_runs_routines_to_the_frame_depth(void) {
    static const StackPtxInstruction words[] = {INPUT(A), ROUTINE(0), RETURN};
    StackPtxCompilerInfo limits = compiler_info;
    limits.max_frame_depth = 0;
    CHECK_TEXT(compile(&limits, words, 100, request_o0, 1), "");
    limits.max_frame_depth = 1;
    CHECK_TEXT(compile(&limits, words, 100, request_o0, 1), "{\nmov.f32 %o0, %a;\n}");
    limits.max_frame_depth = 2;
    CHECK_TEXT(compile(&limits, words, 100, request_all_f32, 3), "{\nmov.f32 %o0, %c;\nmov.f32 %o1, %b;\nmov.f32 %o2, %a;\n}");
    limits.max_frame_depth = 3;
    CHECK_TEXT(compile(&limits, words, 100, request_all_f32, 2), "{\nmov.f32 %o0, %c;\nmov.f32 %o1, %d;\n}");
    CHECK_TEXT(compile(&limits, words, 3, request_all_f32, 6), "{\nmov.f32 %o0, %b;\nmov.f32 %o1, %a;\n}");
}

static void test_compile_does_not_write_missing_requests_however_many(void) {
    static size_t requests[5000];
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(IN_U32), RETURN};
    size_t i;
    for (i = 0; i < COUNT(requests); ++i) {
        requests[i] = O5;
    }
    requests[4999] = OUT_U32;
    CHECK_TEXT(compile(&compiler_info, words, 100, requests, COUNT(requests)), "{\nmov.f32 %o5, %a;\nmov.u32 %ou, %iu;\n}");
    CHECK_TEXT(compile(&compiler_info, words, 100, NULL, 0), "{\n}");
}

static void test_compile_reports_its_errors(void) {
    static const StackPtxInstruction unknown[] = {INPUT(A), WORD(NONE, 0, 0), RETURN};
    static const StackPtxInstruction depth[] = {INPUT(A), NUMBER(1), META(YANK_DUP, F32), RETURN};
    static const StackPtxInstruction three[] = {INPUT(A), INPUT(A), INPUT(A), RETURN};
    static const size_t bad_request[] = {NUM_REGISTERS};
    StackPtxCompilerInfo limits = compiler_info;
    StackPtxStackInfo set = stack_info;
    char text[64];
    size_t size = 0;
    CHECK_TEXT(compile(&limits, unknown, 100, request_o0, 1), "STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN");
    CHECK_TEXT(compile(&limits, depth, 100, request_o0, 1), "{\nmov.f32 %o0, %a;\n}");
    CHECK_TEXT(compile(&limits, three, 100, bad_request, 1), "STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS");
    limits.max_ast_size = 2;
    CHECK_TEXT(compile(&limits, three, 100, request_o0, 1), "STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE");
    limits.max_ast_size = SIZE_MAX;
    CHECK(stack_ptx_compile_workspace_size(&limits, &stack_info, &size) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_compile_workspace_size(NULL, &stack_info, &size) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, NULL, &size) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &stack_info, NULL) == STACK_PTX_ERROR_INVALID_VALUE);
    set.stack_literal_prefixes = NULL;
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &set, &size) == STACK_PTX_ERROR_INVALID_VALUE);
    CHECK(
        stack_ptx_compile(
            &compiler_info,
            &stack_info,
            NULL,
            registers,
            NUM_REGISTERS,
            NULL,
            0,
            NULL,
            0,
            1,
            text,
            sizeof text,
            text,
            sizeof text,
            &size
        ) == STACK_PTX_ERROR_INVALID_VALUE
    );
    CHECK(
        stack_ptx_compile(
            &compiler_info, &stack_info, three, registers, NUM_REGISTERS, NULL, 0, NULL, 0, 1, NULL, 0, text, sizeof text, &size
        ) == STACK_PTX_ERROR_INVALID_VALUE
    );
}

int main(void) {
    test_words_and_descriptors_have_the_documented_layout();
    test_enumerators_have_the_documented_values();
    test_each_result_has_its_documented_value_and_name();
    test_popped_top_is_the_first_operand();
    test_operands_of_several_stacks_come_from_each_in_pop_order();
    test_operands_of_three_stacks_come_from_each();
    test_too_few_values_on_any_stack_is_a_no_op();
    test_vectors_take_elements_in_pop_order_and_first_results_are_on_top();
    test_two_results_are_pushed_so_that_the_first_is_on_top();
    test_results_of_one_node_may_lie_on_several_stacks();
    test_four_operands_and_a_long_name();
    test_constants_are_moved_into_registers_for_instructions_that_take_no_others();
    test_instruction_without_results_pops_and_counts_nothing();
    test_constants_are_printed_by_their_type();
    test_wide_constants_are_widened_from_32_bits();
    test_only_stacks_with_a_constant_type_have_constants();
    test_special_registers_are_moved_where_used();
    test_vector_special_pushes_x_to_w_with_w_on_top();
    test_push_onto_a_full_stack_is_dropped();
    test_vector_results_that_find_no_room_are_dropped_one_by_one();
    test_stack_size_zero_holds_nothing();
    test_meta_operations_on_empty_short_and_exact_stacks();
    test_meta_operations_on_full_stacks();
    test_depths_and_counts_are_popped_even_if_nothing_else_happens();
    test_operations_without_a_number_leave_the_meta_stack_alone();
    test_store_pops_into_a_slot_and_load_pushes_it_onto_its_own_stack();
    test_slots_are_empty_again_in_the_next_program();
    test_frame_depth_counts_the_main_program();
    test_recursion_ends_at_the_frame_depth();
    test_routine_ends_at_its_length_too();
    test_execution_limit_counts_every_word_and_return();
    test_program_ends_at_its_first_return_or_its_length();
    test_frame_depth_zero_gives_an_empty_stub_but_zeros_in_lenient_mode();
    test_node_limit_counts_values_before_merging();
    test_node_limit_counts_dropped_values_and_ends_the_program();
    test_words_that_do_nothing_do_not_count_towards_the_node_limit();
    test_all_results_of_a_node_count_towards_the_node_limit();
    test_requests_pop_their_stacks_in_order();
    test_missing_request_is_zero_in_lenient_mode_and_not_written_otherwise();
    test_no_requests_need_nothing();
    test_request_that_is_also_an_input_is_written_last();
    test_swapped_registers_need_a_temporary();
    test_chain_of_moves_is_put_in_order_without_a_temporary();
    test_any_assignment_among_four_registers_is_a_parallel_move();
    test_many_swaps_at_once();
    test_last_request_for_a_register_counts();
    test_registers_of_one_name_are_one_register();
    test_only_what_requests_need_is_emitted();
    test_lowered_form_is_in_evaluation_order_with_operands_before_their_use();
    test_equal_values_are_merged_unless_switched_off();
    test_vector_instructions_are_merged_too();
    test_emitted_operands_keep_the_order_in_which_they_were_popped();
    test_volatile_reads_are_never_merged();
    test_many_values_are_numbered_and_named();
    test_values_that_differ_in_a_later_operand_are_kept_apart();
    test_values_of_a_routine_called_often_are_numbered();
    test_hash_ignores_dead_code_names_and_value_numbering();
    test_hash_orders_commutative_operands_and_only_those();
    test_hash_tells_different_programs_apart();
    test_hash_depends_on_each_limit();
    test_hash_depends_on_the_number_and_types_of_requests();
    test_hash_does_not_depend_on_indices_of_instructions_and_stacks();
    test_hash_tells_results_of_one_node_and_operand_types_apart();
    test_hash_of_special_registers();
    test_hash_version_1_is_as_it_was();
    test_each_wrong_word_is_a_no_op_or_its_error();
    test_strict_errors_in_a_routine_name_it();
    test_strict_reports_the_node_limit_but_not_the_execution_limit();
    test_aux_of_words_that_do_not_use_it_is_not_read();
    test_every_buffer_size_is_respected();
    test_long_names_give_the_same_text_as_short_ones();
    test_memory_may_have_any_alignment_but_not_too_few_bytes();
    test_null_where_nothing_says_so_is_an_invalid_value();
    test_wrong_descriptions_are_refused_by_their_code();
    test_names_of_compilers_and_of_ptx_are_refused();
    test_compile_gives_the_stub_in_one_call();
    test_default_info_has_the_documented_limits();
    test_compile_keeps_equal_values_apart_and_shares_copied_ones();
    test_compile_runs_routines_to_the_frame_depth();
    test_compile_does_not_write_missing_requests_however_many();
    test_compile_reports_its_errors();
    return check_num_failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
