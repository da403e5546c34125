/* Tests of stack_ptx.h: the canonical hash and the modes. See stack_ptx_bench.h. */

#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- hash ---- */

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

TEST(test_aux_of_words_that_do_not_use_it_is_not_read) {
    static const StackPtxInstruction words[] = {WORD(INPUT, 77, A),  WORD(INPUT, 77, B), WORD(META_CONSTANT, 77, 1),
                                                META(YANK_DUP, F32), WORD(PTX, 77, SUB), WORD(RETURN, 77, 77)};
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    bench.mode = STACK_PTX_MODE_STRICT;
    CHECK_TEXT(STUB(&bench, words), "{\n.reg .f32 %_s0_<1>;\nsub.ftz.f32 %_s0_0, %a, %b;\nmov.f32 %o0, %_s0_0;\n}");
    close_bench(&bench);
}
