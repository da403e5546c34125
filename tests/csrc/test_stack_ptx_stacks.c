/* Tests of stack_ptx.h: stacks, the store, routines, and the limits on frames, words and nodes. See stack_ptx_bench.h. */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- stacks ---- */

static const StackPtxLimits three_deep = {3, 256, 4, 8, 1024};

TEST(test_push_onto_a_full_stack_is_dropped) {
    static const StackPtxInstruction input[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(D), RETURN};
    static const StackPtxInstruction dup[] = {INPUT(A), INPUT(B), INPUT(C), META(DUP, F32), RETURN};
    static const StackPtxInstruction yank_dup[] = {INPUT(A), INPUT(B), INPUT(C), NUMBER(2), META(YANK_DUP, F32), RETURN};
    static const StackPtxInstruction load[] = {INPUT(D), STORE(F32, 0), INPUT(A), INPUT(B), INPUT(C), LOAD(0), RETURN};
    /* The result of an instruction finds room where its operands were, but not on another, full stack. */
    static const StackPtxInstruction result[] = {INPUT(A), INPUT(B), INPUT(C), INPUT(IN_U32), PTX(CVT), RETURN};
    static const StackPtxInstruction constant[] = {INPUT(A), INPUT(B), INPUT(C), CONSTANT(F32, 1), RETURN};
    static const StackPtxInstruction meta_constant[] = {INPUT(A),  INPUT(B),  INPUT(C),        NUMBER(1), NUMBER(1),
                                                        NUMBER(1), NUMBER(2), META(DROP, F32), RETURN};
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, input), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, dup), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, yank_dup), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, load), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, result), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, constant), "cba...");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, meta_constant), "ba....");
}

TEST(test_vector_results_that_find_no_room_are_dropped_one_by_one) {
    /* Results {t0, t1} onto one free place: t1 is pushed first, t0 is dropped. */
    static const StackPtxLimits limits = {4, 256, 4, 8, 1024};
    static const size_t requests[] = {IN_T0};
    static const StackPtxInstruction words[] = {INPUT(IN_T0), INPUT(IN_T0), INPUT(IN_T0), INPUT(A), PTX(SPLIT), RETURN};
    static const StackPtxInstruction special[] = {INPUT(IN_U32), INPUT(IN_U32), SPECIAL(TID), RETURN};
    static const size_t u32_requests[] = {OUT_U32, OUT_U32};
    Bench bench;
    open_bench(&bench, &limits, requests, 1);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    CHECK_UINT(bench.lowered.request_values[0], bench.lowered.nodes[bench.lowered.num_nodes - 1].first_value + 1);
    close_bench(&bench);
    open_bench(&bench, &limits, u32_requests, 2);
    CHECK_TEXT(
        STUB(&bench, special),
        "{\n.reg .u32 %_s1_<2>;\nmov.u32 %_s1_0, %tid.x;\nmov.u32 %_s1_1, %tid.y;\nmov.u32 %ou, %_s1_1;\nmov.u32 %ou, %_s1_0;\n}"
    );
    close_bench(&bench);
}

TEST(test_stack_size_zero_holds_nothing) {
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

TEST(test_meta_operations_on_empty_short_and_exact_stacks) {
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
        {"a", -1, OP(ROTATE), "a....."},     {"ab", -1, OP(ROTATE), "ba...."},     {"abcd", -1, OP(ROTATE), "cbda.."},
        {"", -1, OP(REVERSE), "......"},     {"a", -1, OP(REVERSE), "a....."},     {"abcd", -1, OP(REVERSE), "abcd.."},
        {"abc", -1, OP(REVERSE), "abc..."},
    };
    check_meta_cases(&roomy, cases, COUNT(cases));
}

TEST(test_meta_operations_on_full_stacks) {
    static const MetaCase cases[] = {
        {"abc", -1, OP(DUP), "cba..."},      {"abc", 1, OP(YANK_DUP), "cba..."}, {"abc", -1, OP(SWAP), "bca..."},
        {"abc", 2, OP(SWAP_WITH), "cba..."}, {"abc", 1, OP(REPLACE), "cba..."},  {"abc", 1, OP(DROP), "ba...."},
        {"abc", -1, OP(CLEAR), "......"},    {"abc", -1, OP(ROTATE), "bac..."},  {"abc", -1, OP(REVERSE), "abc..."},
        {"ab", 1, OP(SWAP_WITH), "ab...."},  {"ab", 1, OP(REPLACE), "b....."},
    };
    check_meta_cases(&three_deep, cases, COUNT(cases));
}

TEST(test_depths_and_counts_are_popped_even_if_nothing_else_happens) {
    /* The first operation takes the 9 and does nothing; the drop then takes the 1. */
    static const StackPtxInstruction yank_dup[] = {INPUT(A),        INPUT(B), NUMBER(1), NUMBER(9), META(YANK_DUP, F32),
                                                   META(DROP, F32), RETURN};
    static const StackPtxInstruction swap_with[] = {INPUT(A),        INPUT(B), NUMBER(1), NUMBER(9), META(SWAP_WITH, F32),
                                                    META(DROP, F32), RETURN};
    static const StackPtxInstruction replace_on_empty[] = {INPUT(A),           INPUT(B),        NUMBER(1), NUMBER(0),
                                                           META(REPLACE, U32), META(DROP, F32), RETURN};
    static const StackPtxInstruction drop[] = {INPUT(A),        INPUT(B),        NUMBER(1), NUMBER(2),
                                               META(DROP, F32), META(DROP, F32), RETURN};
    static const StackPtxInstruction full[] = {INPUT(A),        INPUT(B), INPUT(C), NUMBER(1), NUMBER(1), META(SWAP_WITH, F32),
                                               META(DROP, F32), RETURN};
    static const StackPtxInstruction full_replace[] = {INPUT(A),  INPUT(B),           INPUT(C),        NUMBER(1),
                                                       NUMBER(1), META(REPLACE, F32), META(DROP, F32), RETURN};
    CHECK_TEXT(F32_STACK_AFTER(&roomy, yank_dup), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, swap_with), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, replace_on_empty), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, drop), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, full), "ba....");
    CHECK_TEXT(F32_STACK_AFTER(&three_deep, full_replace), "ba....");
}

TEST(test_operations_without_a_number_leave_the_meta_stack_alone) {
    static const StackPtxInstruction words[] = {
        INPUT(A),          INPUT(B),           INPUT(C),         NUMBER(2),       META(DUP, F32), META(SWAP, F32),
        META(ROTATE, F32), META(REVERSE, F32), META(CLEAR, U32), META(DROP, F32), RETURN
    };
    /* Top first: c c b a after dup and swap; c b c a rotated; a c b c reversed; two dropped: b c. */
    CHECK_TEXT(F32_STACK_AFTER(&roomy, words), "bc....");
}

/* ---- the store ---- */

TEST(test_store_pops_into_an_entry_and_load_pushes_it_onto_its_own_stack) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), STORE(F32, 7), LOAD(7), LOAD(7), RETURN};
    static const StackPtxInstruction another_type[] = {INPUT(IN_U32), STORE(U32, 0), INPUT(A), LOAD(0), RETURN};
    static const StackPtxInstruction overwritten[] = {INPUT(IN_U32), STORE(U32, 0), INPUT(A), STORE(F32, 0), LOAD(0), RETURN};
    static const StackPtxInstruction nothing_to_store[] = {INPUT(A), STORE(F32, 0), STORE(F32, 0), LOAD(0), RETURN};
    static const StackPtxInstruction nothing_stored[] = {INPUT(A), STORE(F32, 1), LOAD(0), RETURN};
    CHECK_TEXT(F32_STACK_AFTER(&roomy, words), "bba...");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, another_type), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, overwritten), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, nothing_to_store), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, nothing_stored), "......");
}

TEST(test_the_store_is_empty_again_in_the_next_program) {
    static const StackPtxInstruction stores[] = {INPUT(A), STORE(F32, 0), NUMBER(1), RETURN};
    static const StackPtxInstruction loads[] = {LOAD(0), INPUT(B), INPUT(C), META(DROP, F32), RETURN};
    static const size_t requests[] = {O0, O1, O2};
    Bench bench;
    open_bench(&bench, &roomy, requests, 3);
    CHECK_RESULT(LOWER(&bench, stores), SUCCESS);
    CHECK_RESULT(LOWER(&bench, loads), SUCCESS);
    CHECK(bench.lowered.request_values[1] != STACK_PTX_NO_VALUE);
    CHECK_UINT(bench.lowered.request_values[2], STACK_PTX_NO_VALUE);
    close_bench(&bench);
}

/* ---- routines ---- */

/* The f32 stack after a program that calls a routine of `routines`. */
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
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    for (i = 0; i < 6; ++i) {
        const uint32_t value = bench.lowered.request_values[i];
        names[i] =
            value == STACK_PTX_NO_VALUE ? '.' : registers[bench.lowered.nodes[bench.lowered.value_nodes[value]].payload].name[0];
    }
    close_bench(&bench);
    return names;
}

TEST(test_frame_depth_counts_the_main_program) {
    CHECK_TEXT(after_routines(0, 1024, NULL, 0), "......");
    CHECK_TEXT(after_routines(1, 1024, NULL, 0), "aa....");
    CHECK_TEXT(after_routines(2, 1024, NULL, 0), "acba..");
    CHECK_TEXT(after_routines(3, 1024, NULL, 0), "acdba.");
}

TEST(test_recursion_ends_at_the_frame_depth) { CHECK_TEXT(after_routines(3, 1024, NULL, 2), "accbba"); }

TEST(test_routine_ends_at_its_length_too) {
    static const size_t lengths[] = {2, 1, 4};
    static const size_t nothing[] = {0, 0, 0};
    CHECK_TEXT(after_routines(3, 1024, lengths, 0), "adba..");
    CHECK_TEXT(after_routines(3, 1024, nothing, 0), "aa....");
}

TEST(test_execution_limit_counts_every_word_and_return) {
    /* a, call, b, call, d, RETURN, c, RETURN, a, RETURN */
    CHECK_TEXT(after_routines(3, 0, NULL, 0), "......");
    CHECK_TEXT(after_routines(3, 1, NULL, 0), "a.....");
    CHECK_TEXT(after_routines(3, 3, NULL, 0), "ba....");
    CHECK_TEXT(after_routines(3, 6, NULL, 0), "dba...");
    CHECK_TEXT(after_routines(3, 7, NULL, 0), "cdba..");
    CHECK_TEXT(after_routines(3, 8, NULL, 0), "cdba..");
    CHECK_TEXT(after_routines(3, 9, NULL, 0), "acdba.");
}

TEST(test_program_ends_at_its_first_return_or_its_length) {
    static const StackPtxInstruction returns[] = {INPUT(A), RETURN, INPUT(B)};
    static const StackPtxInstruction runs_out[] = {INPUT(A), INPUT(B)};
    CHECK_TEXT(F32_STACK_AFTER(&roomy, returns), "a.....");
    CHECK_TEXT(F32_STACK_AFTER(&roomy, runs_out), "ba....");
    CHECK_TEXT(f32_stack_after(&roomy, NULL, 0), "......");
}

TEST(test_frame_depth_zero_gives_an_empty_stub_but_zeros_in_lenient_mode) {
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

TEST(test_node_limit_counts_values_before_merging) {
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

TEST(test_node_limit_counts_dropped_values_and_ends_the_program) {
    static const StackPtxInstruction dropped[] = {INPUT(A),  INPUT(B),        INPUT(C), INPUT(D),
                                                  NUMBER(1), META(DROP, F32), INPUT(D), RETURN};
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

TEST(test_words_that_do_nothing_do_not_count_towards_the_node_limit) {
    static const StackPtxInstruction words[] = {PTX(ADD),       INPUT(99), INPUT(A), PTX(ADD),
                                                META(DUP, F32), LOAD(0),   INPUT(B), RETURN};
    StackPtxLimits limits = roomy;
    limits.max_nodes = 2;
    CHECK_TEXT(F32_STACK_AFTER(&limits, words), "baa...");
}

TEST(test_all_results_of_a_node_count_towards_the_node_limit) {
    static const StackPtxInstruction vector[] = {SPECIAL(TID), INPUT(A), RETURN};
    StackPtxLimits limits = roomy;
    limits.max_nodes = 3;
    CHECK_TEXT(F32_STACK_AFTER(&limits, vector), "......");
    limits.max_nodes = 5;
    CHECK_TEXT(F32_STACK_AFTER(&limits, vector), "a.....");
}
