/*
 * Tests of ptx_vm.h as a C library: memory of exactly the size that the queries tell and of any alignment, one test for each
 * error code, and programs whose results are worked out by hand. What instructions compute is tested from Python
 * (tests/unit/native/test_ptx_vm.py), at every SIMD level; here there are only the baseline's kernels.
 *
 * PTX_VM_DEBUG is not tested here: it makes errors asserts.
 */

#define STACK_PTX_IMPLEMENTATION
#define PTX_VM_IMPLEMENTATION
#define PTX_VM_KERNELS ptx_vm__kernels_baseline
#include "detail/ptx_vm_kernels.h"

#include "block.h"
#include "check.h"
#include "stack_ptx_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORD(type, aux, payload)                                \
    {                                                           \
        STACK_PTX_INSTRUCTION_TYPE_##type, (aux), { (payload) } \
    }
#define INPUT(idx) WORD(INPUT, 0, (idx))
#define PTX(idx) WORD(PTX, 0, (idx))
#define CONSTANT(stack, bits) WORD(CONSTANT, (stack), (bits))
#define SPECIAL(idx) WORD(SPECIAL, 0, (idx))
#define RETURN WORD(RETURN, 0, 0)

#define TWO_F32 0x40000000u

enum { X, Y, U, P, OUT, OUT_2, OUT_U, OUT_P, NUM_REGISTERS };
static const StackPtxRegister registers[NUM_REGISTERS] = {
    {"x", F32}, {"y", F32}, {"u", U32}, {"p", PRED}, {"out", F32}, {"out_2", F32}, {"out_u", U32}, {"out_p", PRED},
};

enum { MAX_POINTS = 1000, MAX_REQUESTS = 4 };

/* A program from words to a workspace. */
typedef struct Bench {
    Block language_memory, lowering, set_memory, program_memory, workspace;
    const StackPtxLanguage* language;
    StackPtxLowered lowered;
    const PtxVmSet* set;
    const PtxVmProgram* program;
    PtxVmResult result; /* of ptx_vm_program_init */
    uint32_t node;
} Bench;

static Bench bench_of(
    const StackPtxInstruction* words, size_t num_words, const size_t* requests, size_t num_requests, PtxVmRunKind kind
) {
    Bench bench;
    StackPtxLanguageInfo info;
    size_t num_bytes = 0;
    memset(&bench, 0, sizeof bench);
    memset(&info, 0, sizeof info);
    info.stack_info = &stack_info;
    info.traits = &traits;
    info.limits.stack_size = 64;
    info.limits.max_nodes = 4096;
    info.limits.max_frame_depth = 1;
    info.limits.execution_limit = 8192;
    info.registers = registers;
    info.num_registers = NUM_REGISTERS;
    info.requests = requests;
    info.num_requests = num_requests;
    CHECK_UINT(stack_ptx_language_size(&info, &num_bytes), STACK_PTX_SUCCESS);
    bench.language_memory = block_of(num_bytes);
    CHECK_UINT(stack_ptx_language_init(&info, bench.language_memory.memory, num_bytes, &bench.language), STACK_PTX_SUCCESS);
    CHECK_UINT(stack_ptx_workspace_size(bench.language, &num_bytes), STACK_PTX_SUCCESS);
    bench.lowering = block_of(num_bytes);
    CHECK_UINT(
        stack_ptx_lower(
            bench.language, STACK_PTX_MODE_LENIENT, 0, words, num_words, bench.lowering.memory, num_bytes, &bench.lowered, NULL
        ),
        STACK_PTX_SUCCESS
    );
    CHECK_UINT(ptx_vm_set_size(&stack_info, &num_bytes), PTX_VM_SUCCESS);
    bench.set_memory = block_of(num_bytes);
    CHECK_UINT(ptx_vm_set_init(&stack_info, bench.set_memory.memory, num_bytes, &bench.set), PTX_VM_SUCCESS);
    CHECK_UINT(ptx_vm_program_size(&bench.lowered, &num_bytes), PTX_VM_SUCCESS);
    bench.program_memory = block_of(num_bytes);
    bench.result = ptx_vm_program_init(
        bench.set, PTX_VM_LEVEL_BASELINE, kind, &bench.lowered, bench.program_memory.memory, num_bytes, &bench.program,
        &bench.node
    );
    num_bytes = 0;
    if (bench.result == PTX_VM_SUCCESS) CHECK_UINT(ptx_vm_workspace_size(bench.program, &num_bytes), PTX_VM_SUCCESS);
    bench.workspace = block_of(num_bytes);
    return bench;
}

static void bench_free(Bench* bench) {
    free(bench->language_memory.base);
    free(bench->lowering.base);
    free(bench->set_memory.base);
    free(bench->program_memory.base);
    free(bench->workspace.base);
}

#define BENCH(words, requests, kind) bench_of(words, COUNT(words), requests, COUNT(requests), kind)

static float x[MAX_POINTS], y[MAX_POINTS];
static uint32_t u[MAX_POINTS], p[MAX_POINTS];

__attribute__((constructor)) static void fill_inputs(void) {
    for (int i = 0; i < MAX_POINTS; i++) {
        x[i] = (float)i;
        y[i] = (float)(i % 7) - 3.0f;
        u[i] = 0xFFFFFFF0u + (uint32_t)i;
        p[i] = (uint32_t)(i % 3);
    }
}

static const PtxVmInput* all_inputs(PtxVmInput* inputs) {
    const void* const values[NUM_REGISTERS] = {x, y, u, p, NULL, NULL, NULL, NULL};
    for (int i = 0; i < NUM_REGISTERS; i++) {
        inputs[i].values = values[i];
        inputs[i].is_uniform = false;
    }
    return inputs;
}

TEST(test_outputs_of_every_type_and_any_number_of_points) {
    /* On the f32 stack x, y; sub pops y first: y - x, and x is left for the second request. */
    static const StackPtxInstruction words[] = {INPUT(X),          INPUT(X),     INPUT(Y), PTX(SUB), INPUT(U),
                                                CONSTANT(U32, 32), PTX(ADD_U32), INPUT(P), RETURN};
    static const size_t requests[] = {OUT, OUT_2, OUT_U, OUT_P};
    static const size_t counts[] = {0, 1, 31, 32, 33, 999, 1000};
    Bench bench = BENCH(words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(bench.result, PTX_VM_SUCCESS);
    for (size_t k = 0; k < COUNT(counts); k++) {
        const size_t num_points = counts[k];
        PtxVmInput inputs[NUM_REGISTERS];
        void* outputs[MAX_REQUESTS];
        Block blocks[MAX_REQUESTS];
        for (int i = 0; i < MAX_REQUESTS; i++) {
            blocks[i] = block_of(num_points * 4);
            outputs[i] = blocks[i].memory;
        }
        CHECK_UINT(
            ptx_vm_store(
                bench.program, all_inputs(inputs), NUM_REGISTERS, num_points, outputs, bench.workspace.memory,
                bench.workspace.num_bytes
            ),
            PTX_VM_SUCCESS
        );
        for (size_t i = 0; i < num_points; i++) {
            float difference, left;
            uint32_t sum, truth;
            memcpy(&difference, blocks[0].memory + 4 * i, 4);
            memcpy(&left, blocks[1].memory + 4 * i, 4);
            memcpy(&sum, blocks[2].memory + 4 * i, 4);
            memcpy(&truth, blocks[3].memory + 4 * i, 4);
            CHECK(difference == y[i] - x[i]);
            CHECK(left == x[i]);
            CHECK_UINT(sum, u[i] + 32u);
            CHECK_UINT(truth, p[i] != 0);
        }
        for (int i = 0; i < MAX_REQUESTS; i++) free(blocks[i].base);
    }
    bench_free(&bench);
}

TEST(test_what_has_no_cpu_meaning_is_refused_with_its_node) {
    static const StackPtxInstruction volatile_words[] = {INPUT(U), PTX(ACTIVEMASK), PTX(ADD_U32)};
    static const StackPtxInstruction special_words[] = {SPECIAL(TID_X)};
    static const size_t requests[] = {OUT_U};
    Bench bench = BENCH(volatile_words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(bench.result, PTX_VM_ERROR_NO_CPU_MEANING);
    CHECK_UINT(bench.lowered.nodes[bench.node].kind, STACK_PTX_NODE_PTX);
    CHECK_UINT(bench.lowered.nodes[bench.node].payload, ACTIVEMASK);
    CHECK(!ptx_vm_set_has_instruction(bench.set, ACTIVEMASK));
    CHECK(!ptx_vm_set_has_instruction(bench.set, MMA));
    CHECK(!ptx_vm_set_has_instruction(bench.set, SETP_2)); /* the name has a meaning, two results have none */
    CHECK(!ptx_vm_set_has_instruction(bench.set, NUM_INSTRUCTIONS));
    CHECK(!ptx_vm_set_has_instruction(NULL, ADD));
    CHECK(ptx_vm_set_has_instruction(bench.set, ADD));
    CHECK(ptx_vm_set_has_instruction(bench.set, SELP));
    bench_free(&bench);
    bench = BENCH(special_words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(bench.result, PTX_VM_ERROR_NO_CPU_MEANING);
    CHECK_UINT(bench.lowered.nodes[bench.node].kind, STACK_PTX_NODE_SPECIAL);
    bench_free(&bench);
}

TEST(test_wrong_arguments_are_invalid_values) {
    static const StackPtxInstruction words[] = {INPUT(Y), INPUT(X), PTX(ADD)};
    static const StackPtxInstruction integer_words[] = {INPUT(U)};
    static const size_t requests[] = {OUT}, integer_requests[] = {OUT_U};
    Bench bench = BENCH(words, requests, PTX_VM_RUN_STORE);
    PtxVmInput inputs[NUM_REGISTERS];
    float out[4];
    void* const outputs[] = {out};
    void* const no_output[] = {NULL};
    const PtxVmTarget targets[] = {{out, NULL, NULL}};
    const PtxVmSet* set;
    PtxVmSums sums[1];
    char* memory = bench.workspace.memory;
    const size_t num_bytes = bench.workspace.num_bytes;
    size_t size;
    all_inputs(inputs);
    CHECK_UINT(ptx_vm_store(NULL, inputs, NUM_REGISTERS, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(bench.program, NULL, NUM_REGISTERS, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(bench.program, inputs, Y, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(bench.program, inputs, NUM_REGISTERS, 4, NULL, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(bench.program, inputs, NUM_REGISTERS, 4, no_output, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(bench.program, inputs, NUM_REGISTERS, 4, outputs, NULL, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(
        ptx_vm_reduce(bench.program, inputs, NUM_REGISTERS, 4, targets, sums, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE
    );
    inputs[Y].values = NULL;
    CHECK_UINT(ptx_vm_store(bench.program, inputs, NUM_REGISTERS, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_workspace_size(NULL, &size), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_workspace_size(bench.program, NULL), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_program_size(NULL, &size), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_set_size(NULL, &size), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_set_init(&stack_info, NULL, 1000, &set), PTX_VM_ERROR_INVALID_VALUE);
    bench_free(&bench);
    bench = BENCH(words, requests, PTX_VM_RUN_REDUCE);
    all_inputs(inputs);
    CHECK_UINT(
        ptx_vm_reduce(bench.program, inputs, NUM_REGISTERS, 4, targets, NULL, bench.workspace.memory, bench.workspace.num_bytes),
        PTX_VM_ERROR_INVALID_VALUE
    );
    bench_free(&bench);
    bench = BENCH(integer_words, integer_requests, PTX_VM_RUN_REDUCE); /* only f32 is reduced */
    CHECK_UINT(bench.result, PTX_VM_ERROR_INVALID_VALUE);
    bench_free(&bench);
}

TEST(test_one_byte_too_few_is_insufficient_memory) {
    static const StackPtxInstruction words[] = {INPUT(Y), INPUT(X), PTX(ADD)};
    static const size_t requests[] = {OUT};
    Bench bench = BENCH(words, requests, PTX_VM_RUN_STORE);
    PtxVmInput inputs[NUM_REGISTERS];
    float out[4];
    void* const outputs[] = {out};
    const PtxVmSet* set;
    const PtxVmProgram* program;
    CHECK_UINT(
        ptx_vm_set_init(&stack_info, bench.set_memory.memory, bench.set_memory.num_bytes - 1, &set),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        ptx_vm_store(
            bench.program, all_inputs(inputs), NUM_REGISTERS, 4, outputs, bench.workspace.memory, bench.workspace.num_bytes - 1
        ),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        ptx_vm_program_init(
            bench.set, PTX_VM_LEVEL_BASELINE, PTX_VM_RUN_STORE, &bench.lowered, bench.program_memory.memory,
            bench.program_memory.num_bytes - 1, &program, NULL
        ),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    bench_free(&bench);
}

TEST(test_level_that_is_not_linked_is_no_level) {
    static const StackPtxInstruction words[] = {INPUT(X)};
    static const size_t requests[] = {OUT};
    Bench bench = BENCH(words, requests, PTX_VM_RUN_STORE);
    const PtxVmProgram* program;
    CHECK(ptx_vm_level_is_available(PTX_VM_LEVEL_BASELINE));
    CHECK(!ptx_vm_level_is_available(PTX_VM_LEVEL_AVX512));
    CHECK_UINT(ptx_vm_best_level(), PTX_VM_LEVEL_BASELINE);
    CHECK_TEXT(ptx_vm_level_to_string(PTX_VM_LEVEL_AVX512), "avx512");
    CHECK_TEXT(ptx_vm_result_to_string(PTX_VM_ERROR_NO_LEVEL), "PTX_VM_ERROR_NO_LEVEL");
    CHECK_TEXT(ptx_vm_result_to_string((PtxVmResult)99), "PTX_VM_RESULT_UNKNOWN");
    CHECK_UINT(
        ptx_vm_program_init(
            bench.set, PTX_VM_LEVEL_AVX2, PTX_VM_RUN_STORE, &bench.lowered, bench.program_memory.memory,
            bench.program_memory.num_bytes, &program, NULL
        ),
        PTX_VM_ERROR_NO_LEVEL
    );
    bench_free(&bench);
}
