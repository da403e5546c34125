/* Tests of stack_ptx.h: instructions of constants, computed by a language's StackPtxFolding. See stack_ptx_bench.h. */

#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

#define TWO_F32 0x40000000u

static float float_of(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* add, neg, setp.lt, selp and add.u32 of the test's set, and sub of a constant as add; `context` counts the calls. */
static StackPtxFoldKind fold(
    const void* context, uint32_t instruction_idx, uint32_t known, const uint32_t* operands, uint32_t* result_out
) {
    ++*(size_t*)(uintptr_t)context;
    switch (instruction_idx) {
        case ADD: *result_out = bits_of(float_of(operands[0]) + float_of(operands[1])); break;
        case NEG: *result_out = operands[0] ^ 0x80000000u; break;
        case SETP: *result_out = float_of(operands[0]) < float_of(operands[1]); break;
        case ADD_U32: *result_out = operands[0] + operands[1]; break;
        case SELP:
            if ((known & 4u) == 0) return STACK_PTX_FOLD_NONE;
            *result_out = operands[2] != 0 ? 0 : 1;
            return STACK_PTX_FOLD_OPERAND;
        case SUB:
            result_out[0] = ADD;
            result_out[1] = 1;
            result_out[2] = operands[1] ^ 0x80000000u;
            return known == 2u ? STACK_PTX_FOLD_INSTRUCTION : STACK_PTX_FOLD_NONE;
        default: return STACK_PTX_FOLD_NONE;
    }
    return known == 3u || (known == 1u && instruction_idx == NEG) ? STACK_PTX_FOLD_CONSTANT : STACK_PTX_FOLD_NONE;
}

static size_t num_calls;

static void open_folding_bench(Bench* bench, const size_t* requests, size_t num_requests) {
    open_bench(bench, &roomy, requests, num_requests);
    bench->info.folding.fold = fold;
    bench->info.folding.context = &num_calls;
    open_language(bench);
    num_calls = 0;
}

TEST(test_a_known_predicate_chooses_although_it_has_no_constant) {
    /* The first operand of selp lies deepest: the words push b, then a. */
    static const StackPtxInstruction first[] = {
        INPUT(B), INPUT(A), CONSTANT(F32, TWO_F32), CONSTANT(F32, ONE_F32), PTX(SETP), PTX(SELP), PTX(NEG), RETURN
    };
    static const StackPtxInstruction second[] = {
        INPUT(B), INPUT(A), CONSTANT(F32, ONE_F32), CONSTANT(F32, TWO_F32), PTX(SETP), PTX(SELP), PTX(NEG), RETURN
    };
    static const StackPtxInstruction of_constants[] = {
        INPUT(B), CONSTANT(F32, ONE_F32), CONSTANT(F32, TWO_F32), CONSTANT(F32, ONE_F32), PTX(SETP), PTX(SELP), PTX(NEG), RETURN
    };
    Bench bench;
    open_folding_bench(&bench, request_o0, 1);
    CHECK_TEXT(STUB(&bench, first), "{\n.reg .f32 %_s0_<1>;\nneg.ftz.f32 %_s0_0, %a;\nmov.f32 %o0, %_s0_0;\n}");
    CHECK_TEXT(STUB(&bench, second), "{\n.reg .f32 %_s0_<1>;\nneg.ftz.f32 %_s0_0, %b;\nmov.f32 %o0, %_s0_0;\n}");
    CHECK_TEXT(STUB(&bench, of_constants), "{\nmov.f32 %o0, 0fBF800000;\n}");
    close_bench(&bench);
}

TEST(test_only_live_instructions_of_constants_are_asked_about) {
    static const StackPtxInstruction words[] = {
        CONSTANT(F32, ONE_F32),
        PTX(NEG), /* dead */
        INPUT(A),
        CONSTANT(F32, ONE_F32),
        PTX(ADD),
        RETURN,
    };
    static const StackPtxInstruction without_meaning[] = {
        CONSTANT(F32, ONE_F32), META(DUP, F32), META(DUP, F32), PTX(FMA), RETURN
    };
    Bench bench;
    open_folding_bench(&bench, request_o0, 1);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    CHECK_UINT(num_calls, 0);
    CHECK_UINT(bench.lowered.num_instructions, 1);
    CHECK_RESULT(LOWER(&bench, without_meaning), SUCCESS);
    CHECK_UINT(num_calls, 1);
    CHECK_UINT(bench.lowered.num_instructions, 1);
    close_bench(&bench);
}

TEST(test_values_of_several_results_stay_in_order_when_their_node_merges) {
    /* split of 3 and of 1 + 2: one node in the end, whose u32 result both requests share. */
    static const size_t requests[] = {OUT_U32};
    static const StackPtxInstruction words[] = {CONSTANT(F32, THREE_F32),
                                                PTX(SPLIT),
                                                CONSTANT(F32, ONE_F32),
                                                CONSTANT(F32, TWO_F32),
                                                PTX(ADD),
                                                PTX(SPLIT),
                                                PTX(ADD_U32),
                                                RETURN};
    Bench bench;
    open_folding_bench(&bench, requests, 1);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    CHECK_UINT(bench.lowered.num_instructions, 2);
    CHECK_UINT(bench.lowered.num_nodes, 3);
    CHECK_UINT(bench.lowered.operands[1], 3); /* the third value of split, after the constant's */
    CHECK_UINT(bench.lowered.operands[2], 3);
    close_bench(&bench);
}
