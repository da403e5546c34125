/* Tests of stack_ptx.h: the canonical hash and the modes. See stack_ptx_bench.h. */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- hash ---- */

TEST(test_hash_ignores_dead_code_names_and_value_numbering) {
    static const StackPtxRegister renamed[] = {{"alpha", F32}, {"beta", F32}, {"gamma", F32}, {"delta", F32}, {"omega", F32}};
    static const StackPtxInstruction plain[] = {INPUT(A), INPUT(B), PTX(SUB), META(DUP, F32), PTX(ADD), RETURN};
    static const StackPtxInstruction with_dead_code[] = {INPUT(C), PTX(NEG),  SPECIAL(CLOCK), INPUT(A), INPUT(B),
                                                         PTX(SUB), NUMBER(5), INPUT(A),       INPUT(B), PTX(SUB),
                                                         PTX(ADD), PTX(99),   LOAD(3),        RETURN,   PTX(NEG)};
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

TEST(test_hash_orders_commutative_operands_and_only_those) {
    static const StackPtxInstruction ab[] = {INPUT(A), INPUT(B), PTX(ADD), RETURN};
    static const StackPtxInstruction ba[] = {INPUT(B), INPUT(A), PTX(ADD), RETURN};
    static const StackPtxInstruction sub_ab[] = {INPUT(A), INPUT(B), PTX(SUB), RETURN};
    static const StackPtxInstruction sub_ba[] = {INPUT(B), INPUT(A), PTX(SUB), RETURN};
    static const StackPtxInstruction fma_abc[] = {INPUT(A), INPUT(B), INPUT(C), PTX(FMA), RETURN};
    static const StackPtxInstruction fma_acb[] = {INPUT(A), INPUT(C), INPUT(B), PTX(FMA), RETURN};
    static const StackPtxInstruction fma_cab[] = {INPUT(C), INPUT(A), INPUT(B), PTX(FMA), RETURN};
    static const StackPtxInstruction fma_cba[] = {INPUT(C), INPUT(B), INPUT(A), PTX(FMA), RETURN};
    static const StackPtxInstruction fma_bac[] = {INPUT(B), INPUT(A), INPUT(C), PTX(FMA), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK(is_equal(HASH(&bench, ab), HASH(&bench, ba)));
    CHECK(!is_equal(HASH(&bench, sub_ab), HASH(&bench, sub_ba)));
    CHECK(is_equal(HASH(&bench, fma_abc), HASH(&bench, fma_acb)));
    CHECK(is_equal(HASH(&bench, fma_cab), HASH(&bench, fma_cba)));
    CHECK(!is_equal(HASH(&bench, fma_abc), HASH(&bench, fma_bac)));
    close_bench(&bench);
}

TEST(test_hash_tells_different_programs_apart) {
    static const StackPtxInstruction programs[][5] = {
        {INPUT(A), INPUT(B), PTX(ADD), RETURN, RETURN},       {INPUT(A), INPUT(B), PTX(SUB), RETURN, RETURN},
        {INPUT(A), INPUT(C), PTX(ADD), RETURN, RETURN},       {INPUT(A), INPUT(A), PTX(ADD), RETURN, RETURN},
        {INPUT(A), RETURN, RETURN, RETURN, RETURN},           {INPUT(B), RETURN, RETURN, RETURN, RETURN},
        {CONSTANT(F32, 0), RETURN, RETURN, RETURN, RETURN},   {CONSTANT(F32, 0x80000000u), RETURN, RETURN, RETURN, RETURN},
        {CONSTANT(F32, 1), RETURN, RETURN, RETURN, RETURN},   {INPUT(A), PTX(NEG), RETURN, RETURN, RETURN},
        {INPUT(A), PTX(NEG), PTX(NEG), RETURN, RETURN},       {RETURN, RETURN, RETURN, RETURN, RETURN},
        {SPECIAL(CLOCK), PTX(CVT), RETURN, RETURN, RETURN},   {SPECIAL(TID_X), PTX(CVT), RETURN, RETURN, RETURN},
        {CONSTANT(U32, 1), PTX(CVT), RETURN, RETURN, RETURN}, {INPUT(IN_U32), PTX(CVT), RETURN, RETURN, RETURN},
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

TEST(test_hash_depends_on_each_limit) {
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
        for (k = 0; k < i; ++k) CHECK(!is_equal(hashes[i], hashes[k]));
    }
}

TEST(test_hash_depends_on_the_number_and_types_of_requests) {
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

TEST(test_hash_does_not_depend_on_indices_of_instructions_and_stacks) {
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

TEST(test_hash_tells_results_of_one_node_and_operand_types_apart) {
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

TEST(test_hash_of_special_registers) {
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

TEST(test_hash_version_3_is_as_it_was) {
    /* Not derived from the rules: the value that version 3 gave when it was made. If this fails, stored hashes are void: raise
       STACK_PTX_HASH_VERSION. */
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), CONSTANT(F32, ONE_F32), PTX(ADD), SPECIAL(TID),
                                                PTX(CVT), PTX(ADD), RETURN};
    Bench bench;
    StackPtxHash hash;
    open_bench(&bench, &roomy, request_o0, 1);
    hash = HASH(&bench, words);
    CHECK_UINT(STACK_PTX_HASH_VERSION, 3);
    CHECK_UINT(hash.words[0], 0x51959dc14b887718ull);
    CHECK_UINT(hash.words[1], 0xad78a9a2a598962bull);
    close_bench(&bench);
}

/* ---- modes ---- */

typedef struct WrongWord {
    StackPtxInstruction word;
    StackPtxResult strict;
    StackPtxResult compatible;
} WrongWord;

TEST(test_each_wrong_word_is_a_no_op_or_its_error) {
    static const WrongWord cases[] = {
        {WORD(NONE, 0, 0), STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {WORD(REGISTER, 0, 0), STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {WORD(AST_IDX, 0, 0), STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {WORD(NUM_ENUMS, 0, 0), STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {{0xFFFF, 0xFFFF, {UINT32_MAX}},
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,
         STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN},
        {PTX(NUM_INSTRUCTIONS), STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS,
         STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS},
        {PTX(UINT32_MAX), STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS},
        {INPUT(NUM_REGISTERS), STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS},
        {SPECIAL(NUM_SPECIAL), STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS,
         STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS},
        {CONSTANT(NUM_STACKS, 0), STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS},
        {CONSTANT(PRED, 0), STACK_PTX_ERROR_WRONG_TYPE_DISPATCH, STACK_PTX_ERROR_WRONG_TYPE_DISPATCH},
        {META(DUP, NUM_STACKS), STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS},
        {META(NUM_ENUMS, F32), STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS,
         STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS},
        {META(YANK_DUP, F32), STACK_PTX_ERROR_INVALID_VALUE, STACK_PTX_SUCCESS},
        {META(SWAP_WITH, F32), STACK_PTX_ERROR_INVALID_VALUE, STACK_PTX_SUCCESS},
        {META(REPLACE, F32), STACK_PTX_ERROR_INVALID_VALUE, STACK_PTX_SUCCESS},
        {STORE(NUM_STACKS, 0), STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS},
        {STORE(F32, 8), STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS},
        {LOAD(8), STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS},
        {ROUTINE(3), STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS, STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS},
        /* No-ops of every mode: too few values, a count, an empty store entry. */
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

TEST(test_strict_errors_in_a_routine_name_it) {
    static const StackPtxInstruction words[] = {INPUT(A), ROUTINE(2), RETURN};
    StackPtxLimits limits = roomy;
    Bench bench;
    limits.max_frame_depth = 2;
    open_bench(&bench, &limits, request_o0, 1);
    bench.info.routines = routines;
    bench.info.num_routines = 3;
    open_language(&bench);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_RESULT(LOWER(&bench, words), ERROR_INVALID_VALUE);
    CHECK_UINT(bench.place.routine_idx, 2);
    CHECK_UINT(bench.place.word_idx, 1);
    bench.mode = STACK_PTX_MODE_COMPATIBLE;
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    close_bench(&bench);
}

TEST(test_strict_reports_the_limits) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(ADD), RETURN};
    static const StackPtxInstruction calls[] = {INPUT(A), ROUTINE(0), RETURN};
    static const StackPtxMode other_modes[] = {STACK_PTX_MODE_LENIENT, STACK_PTX_MODE_COMPATIBLE};
    size_t i;
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
    CHECK(LOWER(&bench, words) == STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
    CHECK_UINT(bench.place.word_idx, 2);
    CHECK(bench.place.routine_idx == STACK_PTX_MAIN_PROGRAM);
    /* Two words that end without a RETURN fit. */
    CHECK_RESULT(lower(&bench, words, 2), SUCCESS);
    for (i = 0; i < COUNT(other_modes); ++i) {
        bench.mode = other_modes[i];
        CHECK_TEXT(STUB(&bench, words), "{\nmov.f32 %o0, %b;\n}");
    }
    close_bench(&bench);
    /* The RETURN counts. */
    for (i = 3; i <= 4; ++i) {
        limits.execution_limit = (uint32_t)i;
        open_bench(&bench, &limits, request_o0, 1);
        bench.mode = STACK_PTX_MODE_STRICT;
        CHECK(LOWER(&bench, words) == (i < 4 ? STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN : STACK_PTX_SUCCESS));
        close_bench(&bench);
    }
    /* a, call, b: the next word of the routine is its second. */
    limits.execution_limit = 3;
    open_bench(&bench, &limits, request_o0, 1);
    bench.info.routines = routines;
    bench.info.num_routines = 3;
    open_language(&bench);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK(LOWER(&bench, calls) == STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
    CHECK_UINT(bench.place.routine_idx, 0);
    CHECK_UINT(bench.place.word_idx, 1);
    close_bench(&bench);
}

TEST(test_aux_of_words_that_do_not_use_it_is_not_read) {
    static const StackPtxInstruction words[] = {WORD(INPUT, 77, A),  WORD(INPUT, 77, B), WORD(META_CONSTANT, 77, 1),
                                                META(YANK_DUP, F32), WORD(PTX, 77, SUB), WORD(RETURN, 77, 77)};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nsub.ftz.f32 %_s0_0, %a, %b;\nmov.f32 %o0, %_s0_0;\n}");
    close_bench(&bench);
}
