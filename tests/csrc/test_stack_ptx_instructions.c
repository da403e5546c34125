/* Tests of stack_ptx.h: words, the format of descriptions, instructions without results, and requests. Stubs are pinned in
   tests/data/stubs.json, and tests/unit/native/test_stack_ptx.py runs words by a reference. See stack_ptx_bench.h. */

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

TEST(test_instruction_without_results_pops_and_counts_nothing) {
    static const StackPtxInstruction words[] = {INPUT(A),     INPUT(B), INPUT(C),     PTX(DISCARD), PTX(DISCARD),
                                                PTX(DISCARD), INPUT(D), PTX(DISCARD), INPUT(B),     RETURN};
    static const size_t requests[] = {O0, O1};
    static StackPtxInstruction many[1000];
    StackPtxLimits limits = roomy;
    Bench bench;
    size_t i;
    limits.max_nodes = 5;
    open_bench(&bench, &limits, requests, 2);
    CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, %b;\nmov.f32 %o1, 0f00000000;\n}");
    close_bench(&bench);
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

/* ---- requests ---- */

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
        if (strncmp(target, "_s0_", 4) == 0) t = 16 + atoi(target + 4);
        if (strncmp(source, "%_s0_", 5) == 0) s = 16 + atoi(source + 5);
        value = s >= 0 ? values[s] : '0';
        CHECK(t >= 0);
        if (t >= 0) values[t] = value;
    }
}

TEST(test_any_assignment_among_four_registers_is_a_parallel_move) {
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
        for (k = 0; k < 4; ++k) CHECK_UINT(values[k], letters[digits[k]]);
    }
    close_bench(&bench);
}

TEST(test_registers_of_one_name_are_one_register) {
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
