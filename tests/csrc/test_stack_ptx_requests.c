/* Tests of stack_ptx.h: requests, dead code and value numbering. See stack_ptx_bench.h. */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

TEST(test_requests_pop_their_stacks_in_order) {
    static const size_t requests[] = {OUT_U32, O1, O0};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(IN_U32), RETURN};
    CHECK_STUB(requests, words, "{\nmov.u32 %ou, %iu;\nmov.f32 %o1, %c;\nmov.f32 %o0, %b;\n}");
}

TEST(test_no_requests_need_nothing) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(ADD), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, NULL, 0);
    CHECK_TEXT(STUB(&bench, words), "{\n}");
    CHECK_UINT(bench.lowered.num_nodes, 0);
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

TEST(test_many_swaps_at_once) {
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
    for (; (line = strstr(line, "mov.f32")) != NULL; ++line) ++num_moves;
    CHECK_UINT(num_moves, 30);
    for (i = 0; i < 10; ++i) {
        char expected[96];
        (void)snprintf(
            expected, sizeof expected, "mov.f32 %%_s0_%u, %%q%02u;\nmov.f32 %%q%02u, %%q%02u;\nmov.f32 %%q%02u, %%_s0_%u;\n",
            (unsigned)i, (unsigned)(2 * i), (unsigned)(2 * i), (unsigned)(2 * i + 1), (unsigned)(2 * i + 1), (unsigned)i
        );
        CHECK(strstr(bench.text, expected) != NULL);
    }
    close_bench(&bench);
}

TEST(test_last_request_for_a_register_counts) {
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

/* ---- dead code and value numbering ---- */

TEST(test_lowered_form_is_in_evaluation_order_with_operands_before_their_use) {
    static const size_t requests[] = {O0, O1};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), META(DUP, F32), CONSTANT(F32, ONE_F32),
                                                PTX(ADD), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, requests, 2);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
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
    CHECK_RESULT(lower(&bench, words, num_words), SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, merged);
    bench.flags = STACK_PTX_FLAG_NO_VALUE_NUMBERING;
    CHECK_RESULT(lower(&bench, words, num_words), SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, apart);
    close_bench(&bench);
}

TEST(test_equal_values_are_merged_unless_switched_off) {
    static const StackPtxInstruction equal[] = {INPUT(A), INPUT(B), PTX(SUB), INPUT(A), INPUT(B), PTX(SUB), RETURN};
    static const StackPtxInstruction nested[] = {INPUT(A), PTX(NEG), INPUT(B), PTX(SUB), INPUT(A),
                                                 PTX(NEG), INPUT(B), PTX(SUB), RETURN};
    static const StackPtxInstruction commuted[] = {INPUT(A), INPUT(B), PTX(ADD), INPUT(B), INPUT(A), PTX(ADD), RETURN};
    static const StackPtxInstruction not_commuted[] = {INPUT(A), INPUT(B), PTX(SUB), INPUT(B), INPUT(A), PTX(SUB), RETURN};
    /* fma commutes in its first two operands, the values popped first: a b c and a c b, but not b a c. */
    static const StackPtxInstruction fma[] = {INPUT(A), INPUT(B), INPUT(C), PTX(FMA), INPUT(A), INPUT(C), INPUT(B),
                                              PTX(FMA), INPUT(B), INPUT(A), INPUT(C), PTX(FMA), RETURN};
    static const StackPtxInstruction zeros[] = {
        CONSTANT(F32, 0), PTX(NEG), CONSTANT(F32, 0x80000000u), PTX(NEG), CONSTANT(F32, 0), PTX(NEG), RETURN
    };
    static const StackPtxInstruction other_stack[] = {CONSTANT(U32, 1), CONSTANT(U32, 1), PTX(ADD_U32), CONSTANT(U32, 1),
                                                      CONSTANT(U32, 2), PTX(ADD_U32),     RETURN};
    check_merging(equal, COUNT(equal), 1, 2);
    check_merging(nested, COUNT(nested), 2, 4);
    check_merging(commuted, COUNT(commuted), 1, 2);
    check_merging(not_commuted, COUNT(not_commuted), 2, 2);
    check_merging(fma, COUNT(fma), 2, 3);
    check_merging(zeros, COUNT(zeros), 2, 3);
    check_merging(other_stack, COUNT(other_stack), 2, 2);
}

TEST(test_vector_instructions_are_merged_too) {
    static const StackPtxInstruction words[] = {INPUT(A),     INPUT(B),     INPUT(C), INPUT(D),  INPUT(IN_T0),
                                                INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), NUMBER(3), META(DROP, F32),
                                                INPUT(A),     INPUT(B),     INPUT(C), INPUT(D),  INPUT(IN_T0),
                                                INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), RETURN};
    /* The last of the operands differs. */
    static const StackPtxInstruction different[] = {INPUT(A),     INPUT(B),     INPUT(C), INPUT(D),  INPUT(IN_T0),
                                                    INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), NUMBER(3), META(DROP, F32),
                                                    INPUT(B),     INPUT(B),     INPUT(C), INPUT(D),  INPUT(IN_T0),
                                                    INPUT(IN_T0), INPUT(IN_T1), PTX(MMA), RETURN};
    Bench bench;
    check_merging(words, COUNT(words), 1, 2);
    check_merging(different, COUNT(different), 2, 2);
    open_bench(&bench, &roomy, request_all_f32, 5);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    /* Four results of the one node, then the last of the first time: its fourth again. */
    CHECK_UINT(bench.lowered.request_values[4], bench.lowered.request_values[3]);
    close_bench(&bench);
}

TEST(test_volatile_reads_are_never_merged) {
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
    CHECK_RESULT(LOWER(&bench, one_clock), SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1);
    CHECK_RESULT(LOWER(&bench, tids), SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1);
    CHECK_TEXT(
        STUB(&bench, masks),
        "{\n.reg .u32 %_s1_<2>;\nactivemask.b32 %_s1_0;\nactivemask.b32 %_s1_1;\nmov.u32 %ou, %_s1_1;\nmov.u32 %ou, %_s1_0;\n}"
    );
    close_bench(&bench);
}

/* A program of more distinct values than the first part of the table holds, then all of them again. */
TEST(test_many_values_are_numbered_and_named) {
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
    CHECK_RESULT(lower(&bench, words, num_words), SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1 + 2 * NUM_CONSTANTS);
    CHECK_UINT(bench.lowered.request_values[0], bench.lowered.request_values[1]);
    CHECK_RESULT(
        stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, text, sizeof text, &length),
        SUCCESS
    );
    CHECK(strncmp(text, beginning, strlen(beginning)) == 0);
    for (i = 1; i < NUM_CONSTANTS; ++i) {
        char line[128];
        (void)snprintf(line, sizeof line, "\nsub.ftz.f32 %%_s0_%u, 0f%08X, %%_s0_%u;\n", i, i, i - 1);
        CHECK(strstr(text, line) != NULL);
    }
    bench.flags = STACK_PTX_FLAG_NO_VALUE_NUMBERING;
    CHECK_RESULT(lower(&bench, words, num_words), SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, 2 * NUM_CONSTANTS);
    close_bench(&bench);
}

TEST(test_values_that_differ_in_a_later_operand_are_kept_apart) {
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
    CHECK_RESULT(lower(&bench, words, num_words), SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 2 + NUM_LINKS);
    close_bench(&bench);
}

TEST(test_values_of_a_routine_called_often_are_numbered) {
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
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    CHECK_UINT(bench.lowered.num_nodes, 1 + 2 * NUM_CONSTANTS);
    CHECK_UINT(bench.lowered.request_values[0], bench.lowered.request_values[1]);
    close_bench(&bench);
}
