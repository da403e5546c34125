/*
 * stack_ptx_bench.h - shared by the tests of stack_ptx.h: words as initialisers, a language with registers of every type, and
 * shortcuts from words to a stub or a hash.
 *
 * Expected texts and orders are worked out by hand from the rules of the contract.
 *
 * No test provokes these codes, because nothing can: STACK_PTX_ERROR_INTERNAL (nothing fails halfway),
 * STACK_PTX_ERROR_INSUFFICIENT_AST_VISIT_SIZE (graphs are walked without a stack) and
 * STACK_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS (an input is a register: its code is REGISTER_IDX_OUT_OF_BOUNDS).
 */

#ifndef STACK_PTX_BENCH_H
#define STACK_PTX_BENCH_H

#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_set.h"

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
#define STORE(stack, index) WORD(STORE, (stack), (index))
#define LOAD(index) WORD(LOAD, 0, (index))
#define RETURN WORD(RETURN, 0, 0)

#define ONE_F32 0x3F800000u
#define THREE_F32 0x40400000u

#define CHECK_RESULT(call, result) CHECK_TEXT(stack_ptx_result_to_string(call), "STACK_PTX_" #result)

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

static inline void open_language(Bench* bench) {
    size_t num_bytes = 0;
    free(bench->memory);
    free(bench->workspace);
    bench->workspace = NULL;
    CHECK_RESULT(stack_ptx_language_size(&bench->info, &num_bytes), SUCCESS);
    bench->memory = malloc(num_bytes);
    CHECK_RESULT(stack_ptx_language_init(&bench->info, bench->memory, num_bytes, &bench->language), SUCCESS);
    CHECK_RESULT(stack_ptx_workspace_size(bench->language, &bench->workspace_bytes), SUCCESS);
    bench->workspace = malloc(bench->workspace_bytes);
    CHECK(bench->memory != NULL && bench->workspace != NULL);
    /* A workspace may have any contents. */
    memset(bench->workspace, 0xA5, bench->workspace_bytes);
}

static inline void open_bench(Bench* bench, const StackPtxLimits* limits, const size_t* requests, size_t num_requests) {
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

static inline void close_bench(Bench* bench) {
    free(bench->memory);
    free(bench->workspace);
}

static inline StackPtxResult lower(Bench* bench, const StackPtxInstruction* words, size_t num_words) {
    return stack_ptx_lower(
        bench->language, bench->mode, bench->flags, words, num_words, bench->workspace, bench->workspace_bytes, &bench->lowered,
        &bench->place
    );
}

static inline const char* stub_of(Bench* bench, const StackPtxInstruction* words, size_t num_words) {
    size_t length = 0;
    CHECK_RESULT(lower(bench, words, num_words), SUCCESS);
    CHECK_RESULT(
        stack_ptx_emit(
            bench->language, &bench->lowered, bench->workspace, bench->workspace_bytes, bench->text, sizeof bench->text, &length
        ),
        SUCCESS
    );
    CHECK_UINT(length, strlen(bench->text));
    return bench->text;
}

static inline StackPtxHash hash_of(Bench* bench, const StackPtxInstruction* words, size_t num_words) {
    StackPtxHash hash = {{0, 0}};
    CHECK_RESULT(lower(bench, words, num_words), SUCCESS);
    CHECK_RESULT(stack_ptx_hash(bench->language, &bench->lowered, bench->workspace, bench->workspace_bytes, &hash), SUCCESS);
    return hash;
}

#define STUB(bench, words) stub_of((bench), (words), COUNT(words))
#define HASH(bench, words) hash_of((bench), (words), COUNT(words))
#define LOWER(bench, words) lower((bench), (words), COUNT(words))

static inline int is_equal(StackPtxHash first, StackPtxHash second) {
    return first.words[0] == second.words[0] && first.words[1] == second.words[1];
}

static const size_t request_o0[1] = {O0};

#endif /* STACK_PTX_BENCH_H */
