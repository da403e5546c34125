/*
 * Tests of derive.h, tune.h, ptx_vm_gram, ptx_vm_contract and device_code.h as C libraries: memory of any alignment and of exactly
 * the size that the queries tell, one test for each error code, and sums, fits and steps that are worked out by hand. What programs
 * compute is tested from Python (tests/unit/native).
 */

#define DEVICE_CODE_IMPLEMENTATION
#include "check.h"
#include "tuning.h"
#include "device_code.h"

#include <math.h>

enum { MAX_POINTS = 3000 };
static float x[MAX_POINTS], y[MAX_POINTS], target[MAX_POINTS];

__attribute__((constructor)) static void fill(void) {
    for (int i = 0; i < MAX_POINTS; i++) {
        x[i] = (float)(i % 97) / 8.0f - 6.0f;
        y[i] = (float)(i % 11) - 5.0f;
        target[i] = (float)(i % 5);
    }
}

/* ---- derivatives ---- */

/* f = sin(1.5 x) */
static const StackPtxInstruction sine[] = {INPUT(X), NUMBER(1.5f), OPERATION(mul_ftz_f32), OPERATION(sin_approx_ftz_f32), RETURN};

TEST(test_wrong_parameters_are_refused) {
    Tools tools = tools_of(1);
    const StackPtxLowered lowered = lower(&tools, sine, COUNT(sine));
    StackPtxLowered derived;
    const uint32_t constant[] = {1}, input[] = {0}, product[] = {2}, twice[] = {1, 1}, beyond[] = {99};
    uint32_t found[4];
    size_t num_bytes = 0, count = 0;
    CHECK_UINT(derive_size(&lowered, 2, &num_bytes), DERIVE_SUCCESS);
    Block memory = block_of(num_bytes);
#define DERIVE(set, program, request, parameters, num, out)                                                      \
    derive_program(set, program, request, parameters, num, DERIVE_KEEP_CONSTANTS, memory.memory, num_bytes, out)
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, constant, 1, &derived), DERIVE_SUCCESS);
    CHECK_UINT(DERIVE(NULL, &lowered, 0, constant, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, NULL, 0, constant, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 1, constant, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, NULL, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, input, 1, &derived), DERIVE_SUCCESS);
    CHECK_UINT(derived.nodes[0].kind, STACK_PTX_NODE_INPUT);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, product, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, twice, 2, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, beyond, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, constant, 1, NULL), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(
        derive_program(tools.derive_set, &lowered, 0, twice, 2, 3, memory.memory, num_bytes - 1, &derived),
        DERIVE_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        derive_constants(tools.derive_set, &lowered, 0, memory.memory, num_bytes, found, COUNT(found), &count), DERIVE_SUCCESS
    );
    CHECK_UINT(count, 1);
    CHECK_UINT(found[0], 1);
    CHECK_UINT(
        derive_constants(tools.derive_set, &lowered, 0, memory.memory, num_bytes, NULL, 1, &count), DERIVE_ERROR_INVALID_VALUE
    );
    CHECK_UINT(
        derive_constants(tools.derive_set, &lowered, 0, memory.memory, 1, found, 1, &count), DERIVE_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(derive_size(NULL, 1, &num_bytes), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(derive_set_size(NULL, &num_bytes), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(derive_set_init(&stack_ptx_stack_info, memory.memory, 1, &tools.derive_set), DERIVE_ERROR_INSUFFICIENT_MEMORY);
    CHECK_TEXT(derive_result_to_string(DERIVE_ERROR_INSUFFICIENT_MEMORY), "DERIVE_ERROR_INSUFFICIENT_MEMORY");
    CHECK_TEXT(derive_result_to_string(DERIVE_RESULT_NUM_ENUMS), "DERIVE_RESULT_UNKNOWN");
    free(memory.base);
    tools_free(&tools);
}

/* Without copysign, abs has no rule; without fma, nothing has. */
TEST(test_rule_needs_its_instructions) {
    enum { NUM_STRINGS = COUNT(stack_ptx_ptx_instructions) };
    const char* strings[NUM_STRINGS];
    StackPtxStackInfo info = stack_ptx_stack_info;
    const DeriveSet* set = NULL;
    size_t num_bytes = 0;
    CHECK_UINT(derive_set_size(&info, &num_bytes), DERIVE_SUCCESS);
    Block memory = block_of(num_bytes);
    memcpy(strings, info.ptx_instruction_strings, sizeof strings);
    info.ptx_instruction_strings = strings;
    strings[STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32] = "other.f32";
    CHECK_UINT(derive_set_init(&info, memory.memory, num_bytes, &set), DERIVE_SUCCESS);
    CHECK(!derive_set_has_rule(set, STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32));
    CHECK(!derive_set_has_rule(set, STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32));
    CHECK(derive_set_has_rule(set, STACK_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32));
    CHECK(!derive_set_has_rule(set, NUM_STRINGS));
    strings[STACK_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32] = "other.f32";
    CHECK_UINT(derive_set_init(&info, memory.memory, num_bytes, &set), DERIVE_SUCCESS);
    for (size_t i = 0; i < NUM_STRINGS; i++) CHECK(!derive_set_has_rule(set, i));
    free(memory.base);
}

/* ---- sums of products ---- */

/* f = x + y and f = x y, as two requests of one program. */
TEST(test_gram_sums_products_of_every_two_columns) {
    static const StackPtxInstruction words[] = {INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32),
                                                INPUT(X), INPUT(Y), OPERATION(add_ftz_f32),
                                                RETURN};
    static const size_t counts[] = {1, 7, 8, 33, 1000, 1024, 1025, 3000};
    Tools tools = tools_of(2);
    const StackPtxLowered lowered = lower(&tools, words, COUNT(words));
    const PtxVmProgram* program = NULL;
    const PtxVmInput inputs[] = {{x, false}, {y, false}, {NULL, false}};
    size_t num_bytes = 0;
    (void)ptx_vm_program_size(&lowered, &num_bytes);
    Block program_memory = block_of(num_bytes);
    CHECK_UINT(
        ptx_vm_program_init(
            tools.vm_set, PTX_VM_LEVEL_BASELINE, PTX_VM_RUN_GRAM, &lowered, program_memory.memory, num_bytes, &program, NULL
        ),
        PTX_VM_SUCCESS
    );
    (void)ptx_vm_workspace_size(program, &num_bytes);
    Block workspace = block_of(num_bytes);
    Block sums_memory = block_of(PTX_VM_GRAM_NUM_ENTRIES(2) * sizeof(double) + 7);
    double* sums = (double*)(void*)(sums_memory.memory + 7);
    double references[3];
    target[20] = (float)INFINITY; /* left out */
    x[30] = 3e38f; /* x y is infinite, x + y is not: a point whose other request counts as zero */
    y[30] = 5.0f;
    for (size_t k = 0; k < COUNT(counts); k++) {
        CHECK_UINT(
            ptx_vm_gram(
                program, inputs, NUM_REGISTERS, counts[k], target, NULL, false, sums, references, workspace.memory, num_bytes
            ),
            PTX_VM_SUCCESS
        );
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j <= i; j++) {
                long double expected = 0.0L, size = 0.0L;
                for (size_t point = 0; point < counts[k]; point++) {
                    const float product = x[point] * y[point];
                    const double columns[] = {
                        1.0, (double)target[point], (double)(x[point] + y[point]), isinf(product) ? 0.0 : (double)product
                    };
                    if (point == 20) continue;
                    expected += (long double)columns[i] * (long double)columns[j];
                    size += fabsl((long double)columns[i] * (long double)columns[j]);
                }
                CHECK(fabsl((long double)sums[i * (i + 1) / 2 + j] - expected) <= size * 1e-15L);
            }
        }
    }
    CHECK_UINT(
        ptx_vm_gram(program, inputs, NUM_REGISTERS, 5, target, NULL, false, sums, references, workspace.memory, num_bytes - 1),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        ptx_vm_gram(program, inputs, 1, 5, target, NULL, false, sums, references, workspace.memory, num_bytes),
        PTX_VM_ERROR_INVALID_VALUE
    );
    CHECK_UINT(
        ptx_vm_gram(program, inputs, NUM_REGISTERS, 5, NULL, NULL, false, sums, references, workspace.memory, num_bytes),
        PTX_VM_ERROR_INVALID_VALUE
    );
    fill();
    free(program_memory.base);
    free(workspace.base);
    free(sums_memory.base);
    tools_free(&tools);
}

/* ---- contractions ---- */

TEST(test_contract_reduces_every_pair_of_rows) {
    static const StackPtxInstruction words[] = {INPUT(F), INPUT(Y), INPUT(X), OPERATION(fma_rn_ftz_f32), RETURN};
    enum { M = 3, N = 530, K = 17 };
    Tools tools = tools_of(1);
    const StackPtxLowered lowered = lower(&tools, words, COUNT(words));
    size_t num_bytes = 0;
    (void)ptx_vm_program_size(&lowered, &num_bytes);
    Block program_memory = block_of(num_bytes);
    PtxVmContract contract;
    memset(&contract, 0, sizeof contract);
    CHECK_UINT(
        ptx_vm_program_init(
            tools.vm_set, PTX_VM_LEVEL_BASELINE, PTX_VM_RUN_CONTRACT, &lowered, program_memory.memory, num_bytes,
            &contract.program, NULL
        ),
        PTX_VM_SUCCESS
    );
    float left[M * K], right[N * K], results[M * N];
    for (int i = 0; i < M * K; i++) left[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N * K; i++) right[i] = (float)(i % 5 - 2);
    const PtxVmOperand operands[] = {
        {left, {K, 1}, PTX_VM_AXES_ROW, PTX_VM_ELEMENT_F32}, {right, {K, 1}, PTX_VM_AXES_COLUMN, PTX_VM_ELEMENT_F32}
    };
    const PtxVmState states[] = {{results, {N, 1}, PTX_VM_AXES_PAIR, 100.0f}};
    contract.operands = operands;
    contract.num_operands = COUNT(operands);
    contract.states = states;
    contract.k_size = K;
    CHECK_UINT(ptx_vm_contract_size(&contract, &num_bytes), PTX_VM_SUCCESS);
    Block workspace = block_of(num_bytes);
    CHECK_UINT(ptx_vm_contract(&contract, 0, M, 0, N, workspace.memory, num_bytes), PTX_VM_SUCCESS);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float expected = 100.0f; /* of small integers: exact */
            for (int k = 0; k < K; k++) expected += left[m * K + k] * right[n * K + k];
            CHECK(results[m * N + n] == expected);
        }
    CHECK_UINT(ptx_vm_contract(&contract, 0, M, 0, N, workspace.memory, num_bytes - 1), PTX_VM_ERROR_INSUFFICIENT_MEMORY);
    contract.num_operands = 0; /* fewer than the program reads */
    CHECK_UINT(ptx_vm_contract_size(&contract, &num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    contract.num_operands = COUNT(operands);
    contract.k_size = (size_t)PTX_VM_CONTRACT_MAX_DEPTH + 1;
    CHECK_UINT(ptx_vm_contract_size(&contract, &num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    free(program_memory.base);
    free(workspace.base);
    tools_free(&tools);
}

/* ---- tuning ---- */

static const PtxVmInput xy[] = {{x, false}, {y, false}, {NULL, false}};

static TuneProblem problem_of(const Tools* tools, uint32_t num_iterations, bool is_scaled) {
    TuneProblem problem = {0};
    problem.derive_set = tools->derive_set;
    problem.vm_set = tools->vm_set;
    problem.level = PTX_VM_LEVEL_BASELINE;
    problem.inputs = xy;
    problem.num_inputs = NUM_REGISTERS;
    problem.num_points = 100;
    problem.target = target;
    problem.num_iterations = num_iterations;
    problem.is_scaled = is_scaled;
    return problem;
}

/* Grows the memory as told. */
static TuneResult tune(
    const TuneProblem* problem, const Tools* tools, StackPtxInstruction* words, size_t num, TuneOutcome* outcome
) {
    const StackPtxLowered lowered = lower(tools, words, num);
    TuneResult result = TUNE_ERROR_INSUFFICIENT_MEMORY;
    size_t needed = 0, last = 0;
    while (result == TUNE_ERROR_INSUFFICIENT_MEMORY) {
        Block memory = block_of(needed);
        result = tune_program(problem, &lowered, words, num, needed > 0 ? memory.memory : NULL, needed, &needed, outcome);
        CHECK(result != TUNE_ERROR_INSUFFICIENT_MEMORY || needed > last);
        last = needed;
        free(memory.base);
    }
    return result;
}

static TuneOutcome tuned(StackPtxInstruction* words, size_t num, uint32_t num_iterations, bool is_scaled) {
    Tools tools = tools_of(1);
    const TuneProblem problem = problem_of(&tools, num_iterations, is_scaled);
    TuneOutcome outcome;
    CHECK_UINT(tune(&problem, &tools, words, num, &outcome), TUNE_SUCCESS);
    tools_free(&tools);
    return outcome;
}

TEST(test_equal_constants_stay_equal) {
    /* f = (c x) + c: one constant in two words, and a third that is dead. The target 2.5 x + 2.5 has c = 2.5. */
    StackPtxInstruction words[] = {
        NUMBER(1.0f),           INPUT(X), NUMBER(1.0f), OPERATION(mul_ftz_f32), NUMBER(1.0f),
        OPERATION(add_ftz_f32), RETURN,   NUMBER(1.0f), /* after the program's end */
    };
    for (int i = 0; i < 100; i++) target[i] = 2.5f * x[i] + 2.5f;
    const TuneOutcome outcome = tuned(words, COUNT(words), 5, false);
    CHECK_UINT(outcome.num_parameters, 1);
    CHECK_UINT(outcome.is_changed, 1);
    CHECK(outcome.num_evaluations >= 2 && outcome.num_evaluations <= 6);
    CHECK(outcome.error_after < 1e-6 * outcome.error_before);
    CHECK(fabsf(words[2].payload.f - 2.5f) < 1e-5f);
    CHECK_UINT(words[4].payload.u, words[2].payload.u);
    CHECK_UINT(words[0].payload.u, words[2].payload.u);
    CHECK(words[7].payload.f == 1.0f);
}

/* (a + b) x: only the sum matters. */
TEST(test_constants_that_depend_on_each_other_stay_finite) {
    StackPtxInstruction words[] = {NUMBER(1.0f), NUMBER(2.0f), OPERATION(add_ftz_f32), INPUT(X), OPERATION(mul_ftz_f32), RETURN};
    for (int i = 0; i < 100; i++) target[i] = 10.0f * x[i];
    (void)tuned(words, COUNT(words), 8, false);
    CHECK(fabsf(words[0].payload.f + words[1].payload.f - 10.0f) < 1e-4f);
    CHECK(fabsf(words[0].payload.f) < 20.0f && fabsf(words[1].payload.f) < 20.0f);
}

TEST(test_scale_and_offset_are_left_alone_if_projected_out) {
    /* 2 x + 3: any target that is linear in x fits as it is. */
    StackPtxInstruction words[] = {INPUT(X), NUMBER(2.0f), OPERATION(mul_ftz_f32), NUMBER(3.0f), OPERATION(add_ftz_f32), RETURN};
    for (int i = 0; i < 100; i++) target[i] = -40.0f * x[i] + (float)(i % 3);
    const TuneOutcome outcome = tuned(words, COUNT(words), 5, true);
    CHECK_UINT(outcome.num_evaluations, 1);
    CHECK_UINT(outcome.is_changed, 0);
    CHECK(words[1].payload.f == 2.0f && words[3].payload.f == 3.0f);
}

TEST(test_what_cannot_be_tuned_is_left_alone) {
    StackPtxInstruction none[] = {INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32), RETURN};
    StackPtxInstruction infinite[] = {INPUT(X), NUMBER(0.0f), OPERATION(mul_ftz_f32), RETURN};
    StackPtxInstruction finite_nowhere[] = {
        INPUT(X), OPERATION(abs_ftz_f32), NUMBER(-200.0f), OPERATION(sub_ftz_f32), OPERATION(lg2_approx_ftz_f32),
        RETURN
    }; /* -200 - |x| */
    TuneOutcome outcome = tuned(none, COUNT(none), 5, true);
    CHECK_UINT(outcome.num_parameters, 0);
    CHECK_UINT(outcome.num_evaluations, 0);
    CHECK(isnan(outcome.error_before) && isnan(outcome.error_after));
    infinite[1].payload.f = (float)INFINITY;
    outcome = tuned(infinite, COUNT(infinite), 5, true);
    CHECK_UINT(outcome.num_parameters, 0);
    outcome = tuned(finite_nowhere, COUNT(finite_nowhere), 5, false);
    CHECK_UINT(outcome.num_evaluations, 1);
    CHECK_UINT(outcome.is_changed, 0);
}

TEST(test_wrong_problem_is_refused) {
    StackPtxInstruction words[] = {INPUT(X), NUMBER(2.0f), OPERATION(mul_ftz_f32), RETURN};
    Tools tools = tools_of(1);
    TuneProblem problem = problem_of(&tools, 5, false);
    TuneOutcome outcome;
    size_t needed = 0;
    const StackPtxLowered lowered = lower(&tools, words, COUNT(words));
    const PtxVmInput none[] = {{NULL, false}, {NULL, false}, {NULL, false}};
    CHECK_UINT(tune_program(NULL, &lowered, words, COUNT(words), NULL, 0, &needed, &outcome), TUNE_ERROR_INVALID_VALUE);
    CHECK_UINT(tune_program(&problem, NULL, words, COUNT(words), NULL, 0, &needed, &outcome), TUNE_ERROR_INVALID_VALUE);
    CHECK_UINT(tune_program(&problem, &lowered, NULL, 1, NULL, 0, &needed, &outcome), TUNE_ERROR_INVALID_VALUE);
    CHECK_UINT(tune_program(&problem, &lowered, words, COUNT(words), NULL, 0, NULL, &outcome), TUNE_ERROR_INVALID_VALUE);
    CHECK_UINT(tune_program(&problem, &lowered, words, COUNT(words), NULL, 0, &needed, NULL), TUNE_ERROR_INVALID_VALUE);
    CHECK_UINT(tune_program(&problem, &lowered, words, COUNT(words), NULL, 0, &needed, &outcome), TUNE_ERROR_INSUFFICIENT_MEMORY);
    CHECK(needed > 0);
    problem.inputs = none;
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_ERROR_INVALID_VALUE);
    problem.target = NULL;
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_ERROR_INVALID_VALUE);
    CHECK_TEXT(tune_result_to_string(TUNE_ERROR_INVALID_VALUE), "TUNE_ERROR_INVALID_VALUE");
    CHECK_TEXT(tune_result_to_string(TUNE_RESULT_NUM_ENUMS), "TUNE_RESULT_UNKNOWN");
    tools_free(&tools);
}

/* ---- device code ---- */

/* f = sin(1.5 x) + y */
static const StackPtxInstruction wave[] = {
    INPUT(Y), INPUT(X), NUMBER(1.5f), OPERATION(mul_ftz_f32), OPERATION(sin_approx_ftz_f32), OPERATION(add_ftz_f32), RETURN
};

enum { NUM_INSTRUCTIONS = STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS, FIRST_OUTPUT = 10 };

static uint16_t cases[NUM_INSTRUCTIONS * DEVICE_CODE_NUM_FORMS];
static uint8_t num_commutative[NUM_INSTRUCTIONS];
static const uint8_t vectors[NUM_REGISTERS] = {0, 1, FIRST_OUTPUT};

/* A kernel that knows three instructions: the case is 100 times its number plus twice the form's. */
static DeviceCodeKernel kernel_of(uint32_t num_slots) {
    static const uint32_t known[] = {
        STACK_PTX_PTX_INSTRUCTION_ADD_FTZ_F32, STACK_PTX_PTX_INSTRUCTION_MUL_FTZ_F32, STACK_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32
    };
    DeviceCodeKernel kernel = {cases, num_commutative, NUM_INSTRUCTIONS, vectors, NUM_REGISTERS, 2, num_slots, 0};
    memset(cases, 0xFF, sizeof cases);
    for (uint32_t i = 0; i < 3; i++) {
        num_commutative[known[i]] = i < 2 ? 2 : 0;
        for (uint32_t form = 0; form < DEVICE_CODE_NUM_FORMS; form++)
            cases[known[i] * DEVICE_CODE_NUM_FORMS + form] = (uint16_t)(100 * (i + 1) + 2 * form);
    }
    return kernel;
}

static DeviceCodeResult encode(
    const DeviceCodeKernel* kernel, const StackPtxLowered* lowered, size_t missing_bytes, uint32_t* words, size_t room,
    size_t* count
) {
    size_t num_bytes = 0;
    CHECK_UINT(device_code_workspace_size(lowered, &num_bytes), DEVICE_CODE_SUCCESS);
    Block workspace = block_of(num_bytes - missing_bytes);
    const DeviceCodeResult result =
        device_code_encode(kernel, lowered, FIRST_OUTPUT, workspace.memory, num_bytes - missing_bytes, words, room, count);
    free(workspace.base);
    return result;
}

TEST(test_steps_are_those_of_the_format) {
    Tools tools = tools_of(1);
    const StackPtxLowered lowered = lower(&tools, wave, COUNT(wave));
    const DeviceCodeKernel kernel = kernel_of(0);
    uint32_t words[8];
    size_t count = 0;
    CHECK_UINT(encode(&kernel, &lowered, 0, words, 8, &count), DEVICE_CODE_SUCCESS);
    /* x (vector 0) times the constant: places slot and constant, form 1 + 3 * 2. Then the sine of the accumulator, form 0. Then
       accumulator plus y (vector 1), form 0 + 3 * 1, stored to vector 10. Each case stands in the step before. */
    const uint32_t expected[] = {214, 300, 0x3fc00000, 106 + DEVICE_CODE_STORES, DEVICE_CODE_CASE_END | 1u << 26 | 10u << 14};
    CHECK_UINT(count, COUNT(expected));
    for (uint32_t i = 0; i < COUNT(expected); i++) CHECK_UINT(words[i], expected[i]);
    tools_free(&tools);
}

TEST(test_vectors_in_registers_are_named_by_cases) {
    /* x y + y. */
    static const StackPtxInstruction twice[] = {INPUT(Y), INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32), OPERATION(add_ftz_f32),
                                                RETURN};
    Tools tools = tools_of(1);
    DeviceCodeKernel kernel = kernel_of(0);
    uint32_t words[16];
    size_t count = 0;
    kernel.num_vectors = 11;
    StackPtxLowered lowered = lower(&tools, wave, COUNT(wave));
    CHECK_UINT(encode(&kernel, &lowered, 0, words, 16, &count), DEVICE_CODE_SUCCESS);
    /* As above: the vector of x is 0, of y 1, and of the output 10, to which a step of its own stores. */
    const uint32_t expected[] = {214, 300, 0x3fc00000, 106 + 1, DEVICE_CODE_STORE_REGISTER + 10, DEVICE_CODE_CASE_END};
    CHECK_UINT(count, COUNT(expected));
    for (uint32_t i = 0; i < COUNT(expected); i++) CHECK_UINT(words[i], expected[i]);
    for (size_t room = 0; room < 6; room++)
        CHECK_UINT(encode(&kernel, &lowered, 0, words, room, &count), DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER);
    lowered = lower(&tools, twice, COUNT(twice));
    CHECK_UINT(encode(&kernel, &lowered, 0, words, 16, &count), DEVICE_CODE_SUCCESS);
    /* y is loaded, times x, in the form of two vectors, 1 + 3; then as before. */
    CHECK_UINT(count, 5);
    CHECK(words[0] == DEVICE_CODE_LOAD_REGISTER(11) + 1 && words[1] == 208 + 0);
    CHECK(words[2] == 106 + 1 && words[3] == DEVICE_CODE_STORE_REGISTER + 10 && words[4] == DEVICE_CODE_CASE_END);
    kernel.num_vectors = 10;
    CHECK_UINT(encode(&kernel, &lowered, 0, words, 16, &count), DEVICE_CODE_ERROR_INVALID_VALUE);
    tools_free(&tools);
}

TEST(test_what_cannot_be_encoded_is_refused) {
    static const StackPtxInstruction unknown[] = {INPUT(X), OPERATION(cos_approx_ftz_f32), RETURN};
    /* (x y) + (x + y): one of the operands must wait. */
    static const StackPtxInstruction wide[] = {
        INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32), INPUT(X), INPUT(Y), OPERATION(add_ftz_f32), OPERATION(add_ftz_f32), RETURN
    };
    Tools tools = tools_of(1);
    const DeviceCodeKernel kernel = kernel_of(0), with_slot = kernel_of(1);
    uint32_t words[8];
    size_t count = 9, num_bytes = 0;
    StackPtxLowered lowered = lower(&tools, wave, COUNT(wave));
    CHECK_UINT(encode(&kernel, &lowered, 8, words, 8, &count), DEVICE_CODE_ERROR_INSUFFICIENT_MEMORY);
    CHECK_UINT(count, 0);
    for (size_t room = 0; room < 5; room++)
        CHECK_UINT(encode(&kernel, &lowered, 0, words, room, &count), DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER);
    CHECK_UINT(device_code_workspace_size(NULL, &num_bytes), DEVICE_CODE_ERROR_INVALID_VALUE);
    CHECK_UINT(device_code_encode(&kernel, &lowered, 64, words, 8, words, 8, &count), DEVICE_CODE_ERROR_INVALID_VALUE);
    CHECK_UINT(device_code_encode(NULL, &lowered, 10, words, 8, words, 8, &count), DEVICE_CODE_ERROR_INVALID_VALUE);
    lowered = lower(&tools, unknown, COUNT(unknown));
    CHECK_UINT(encode(&kernel, &lowered, 0, words, 8, &count), DEVICE_CODE_ERROR_NO_CASE);
    lowered = lower(&tools, wide, COUNT(wide));
    CHECK_UINT(encode(&kernel, &lowered, 0, words, 8, &count), DEVICE_CODE_ERROR_TOO_MANY_SLOTS);
    CHECK_UINT(encode(&with_slot, &lowered, 0, words, 8, &count), DEVICE_CODE_SUCCESS);
    CHECK_TEXT(device_code_result_to_string(DEVICE_CODE_ERROR_NO_CASE), "DEVICE_CODE_ERROR_NO_CASE");
    CHECK_TEXT(device_code_result_to_string((DeviceCodeResult)99), "DEVICE_CODE_RESULT_UNKNOWN");
    tools_free(&tools);
}
