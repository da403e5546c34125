/*
 * Tests of ptx_vm.h as a C library: memory of exactly the size that the queries tell and of any alignment, one test for each
 * error code, and programs whose results are worked out by hand. What instructions compute is tested from Python
 * (tests/unit/native/test_ptx_vm.py), at every SIMD level; here there are only the baseline's kernels.
 *
 * PTX_VM_DEBUG is not tested here: it makes errors asserts.
 */

#include "ptx_vm.h"

#include "block.h"
#include "check.h"
#include "stack_ptx_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 1000, MAX_REQUESTS = 4 };

/* A program from words to a workspace. */
typedef struct Machine {
    Bench bench;
    Block set_memory, program_memory, workspace;
    const PtxVmSet* set;
    const PtxVmProgram* program;
    PtxVmResult result; /* of ptx_vm_program_init */
    uint32_t node;
} Machine;

static void open_machine(
    Machine* machine, const StackPtxInstruction* words, size_t num_words, const size_t* requests, size_t num_requests,
    PtxVmRunKind kind
) {
    const StackPtxLowered* lowered = &machine->bench.lowered;
    size_t num_bytes = 0;
    memset(machine, 0, sizeof *machine);
    open_bench(&machine->bench, &roomy, requests, num_requests);
    CHECK_RESULT(lower(&machine->bench, words, num_words), SUCCESS);
    CHECK_UINT(ptx_vm_set_size(&stack_info, &num_bytes), PTX_VM_SUCCESS);
    machine->set_memory = block_of(num_bytes);
    CHECK_UINT(ptx_vm_set_init(&stack_info, machine->set_memory.memory, num_bytes, &machine->set), PTX_VM_SUCCESS);
    CHECK_UINT(ptx_vm_program_size(lowered, &num_bytes), PTX_VM_SUCCESS);
    machine->program_memory = block_of(num_bytes);
    machine->result = ptx_vm_program_init(
        machine->set, PTX_VM_LEVEL_BASELINE, kind, lowered, machine->program_memory.memory, num_bytes, &machine->program,
        &machine->node
    );
    num_bytes = 0;
    if (machine->result == PTX_VM_SUCCESS) CHECK_UINT(ptx_vm_workspace_size(machine->program, &num_bytes), PTX_VM_SUCCESS);
    machine->workspace = block_of(num_bytes);
}

static void close_machine(Machine* machine) {
    close_bench(&machine->bench);
    free(machine->set_memory.base);
    free(machine->program_memory.base);
    free(machine->workspace.base);
}

#define OPEN(words, requests, kind) open_machine(&machine, words, COUNT(words), requests, COUNT(requests), kind)

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
    memset(inputs, 0, NUM_REGISTERS * sizeof *inputs);
    inputs[A].values = x;
    inputs[B].values = y;
    inputs[IN_U32].values = u;
    inputs[IN_PRED].values = p;
    return inputs;
}

TEST(test_outputs_of_every_type_and_any_number_of_points) {
    /* On the f32 stack x, y; sub pops y first: y - x, and x is left for the second request. */
    static const StackPtxInstruction words[] = {INPUT(A),          INPUT(A),     INPUT(B),       PTX(SUB), INPUT(IN_U32),
                                                CONSTANT(U32, 32), PTX(ADD_U32), INPUT(IN_PRED), RETURN};
    static const size_t requests[] = {O0, O1, OUT_U32, OUT_PRED};
    static const size_t counts[] = {0, 1, 31, 32, 33, 999, 1000};
    Machine machine;
    OPEN(words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(machine.result, PTX_VM_SUCCESS);
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
                machine.program, all_inputs(inputs), NUM_REGISTERS, num_points, outputs, machine.workspace.memory,
                machine.workspace.num_bytes
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
    close_machine(&machine);
}

TEST(test_what_has_no_cpu_meaning_is_refused_with_its_node) {
    static const StackPtxInstruction volatile_words[] = {INPUT(IN_U32), PTX(ACTIVEMASK), PTX(ADD_U32)};
    static const StackPtxInstruction special_words[] = {SPECIAL(TID_X)};
    static const size_t requests[] = {OUT_U32};
    Machine machine;
    OPEN(volatile_words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(machine.result, PTX_VM_ERROR_NO_CPU_MEANING);
    CHECK_UINT(machine.bench.lowered.nodes[machine.node].kind, STACK_PTX_NODE_PTX);
    CHECK_UINT(machine.bench.lowered.nodes[machine.node].payload, ACTIVEMASK);
    CHECK(!ptx_vm_set_has_instruction(machine.set, ACTIVEMASK));
    CHECK(!ptx_vm_set_has_instruction(machine.set, MMA));
    CHECK(!ptx_vm_set_has_instruction(machine.set, SETP_2)); /* the name has a meaning, two results have none */
    CHECK(!ptx_vm_set_has_instruction(machine.set, NUM_INSTRUCTIONS));
    CHECK(!ptx_vm_set_has_instruction(NULL, ADD));
    CHECK(ptx_vm_set_has_instruction(machine.set, ADD));
    CHECK(ptx_vm_set_has_instruction(machine.set, SELP));
    close_machine(&machine);
    OPEN(special_words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(machine.result, PTX_VM_ERROR_NO_CPU_MEANING);
    CHECK_UINT(machine.bench.lowered.nodes[machine.node].kind, STACK_PTX_NODE_SPECIAL);
    close_machine(&machine);
}

TEST(test_wrong_arguments_are_invalid_values) {
    static const StackPtxInstruction words[] = {INPUT(B), INPUT(A), PTX(ADD)};
    static const StackPtxInstruction integer_words[] = {INPUT(IN_U32)};
    static const size_t requests[] = {O0}, integer_requests[] = {OUT_U32};
    Machine machine;
    PtxVmInput inputs[NUM_REGISTERS];
    float out[4];
    void* const outputs[] = {out};
    void* const no_output[] = {NULL};
    const PtxVmTarget targets[] = {{out, NULL, NULL}};
    const PtxVmSet* set;
    PtxVmSums sums[1];
    OPEN(words, requests, PTX_VM_RUN_STORE);
    size_t num_bytes, size;
    char* memory;
    memory = machine.workspace.memory;
    num_bytes = machine.workspace.num_bytes;
    all_inputs(inputs);
    CHECK_UINT(ptx_vm_store(NULL, inputs, NUM_REGISTERS, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(machine.program, NULL, NUM_REGISTERS, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(machine.program, inputs, B, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(machine.program, inputs, NUM_REGISTERS, 4, NULL, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(machine.program, inputs, NUM_REGISTERS, 4, no_output, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_store(machine.program, inputs, NUM_REGISTERS, 4, outputs, NULL, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(
        ptx_vm_reduce(machine.program, inputs, NUM_REGISTERS, 4, targets, sums, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE
    );
    inputs[B].values = NULL;
    CHECK_UINT(ptx_vm_store(machine.program, inputs, NUM_REGISTERS, 4, outputs, memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_workspace_size(NULL, &size), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_workspace_size(machine.program, NULL), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_program_size(NULL, &size), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_set_size(NULL, &size), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(ptx_vm_set_init(&stack_info, NULL, 1000, &set), PTX_VM_ERROR_INVALID_VALUE);
    close_machine(&machine);
    OPEN(words, requests, PTX_VM_RUN_REDUCE);
    all_inputs(inputs);
    CHECK_UINT(
        ptx_vm_reduce(
            machine.program, inputs, NUM_REGISTERS, 4, targets, NULL, machine.workspace.memory, machine.workspace.num_bytes
        ),
        PTX_VM_ERROR_INVALID_VALUE
    );
    close_machine(&machine);
    OPEN(integer_words, integer_requests, PTX_VM_RUN_REDUCE); /* only f32 is reduced */
    CHECK_UINT(machine.result, PTX_VM_ERROR_INVALID_VALUE);
    close_machine(&machine);
}

TEST(test_one_byte_too_few_is_insufficient_memory) {
    static const StackPtxInstruction words[] = {INPUT(B), INPUT(A), PTX(ADD)};
    static const size_t requests[] = {O0};
    Machine machine;
    PtxVmInput inputs[NUM_REGISTERS];
    float out[4];
    void* const outputs[] = {out};
    const PtxVmSet* set;
    const PtxVmProgram* program;
    OPEN(words, requests, PTX_VM_RUN_STORE);
    CHECK_UINT(
        ptx_vm_set_init(&stack_info, machine.set_memory.memory, machine.set_memory.num_bytes - 1, &set),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        ptx_vm_store(
            machine.program, all_inputs(inputs), NUM_REGISTERS, 4, outputs, machine.workspace.memory,
            machine.workspace.num_bytes - 1
        ),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        ptx_vm_program_init(
            machine.set, PTX_VM_LEVEL_BASELINE, PTX_VM_RUN_STORE, &machine.bench.lowered, machine.program_memory.memory,
            machine.program_memory.num_bytes - 1, &program, NULL
        ),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    close_machine(&machine);
}

TEST(test_level_that_is_not_linked_is_no_level) {
    static const StackPtxInstruction words[] = {INPUT(A)};
    static const size_t requests[] = {O0};
    Machine machine;
    const PtxVmProgram* program;
    OPEN(words, requests, PTX_VM_RUN_STORE);
    CHECK(ptx_vm_level_is_available(PTX_VM_LEVEL_BASELINE));
    CHECK(!ptx_vm_level_is_available(PTX_VM_LEVEL_AVX512));
    CHECK_UINT(ptx_vm_best_level(), PTX_VM_LEVEL_BASELINE);
    CHECK_TEXT(ptx_vm_level_to_string(PTX_VM_LEVEL_AVX512), "avx512");
    CHECK_TEXT(ptx_vm_result_to_string(PTX_VM_ERROR_NO_LEVEL), "PTX_VM_ERROR_NO_LEVEL");
    CHECK_TEXT(ptx_vm_result_to_string((PtxVmResult)99), "PTX_VM_RESULT_UNKNOWN");
    CHECK_UINT(
        ptx_vm_program_init(
            machine.set, PTX_VM_LEVEL_AVX2, PTX_VM_RUN_STORE, &machine.bench.lowered, machine.program_memory.memory,
            machine.program_memory.num_bytes, &program, NULL
        ),
        PTX_VM_ERROR_NO_LEVEL
    );
    close_machine(&machine);
}
