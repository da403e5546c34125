/*
 * Tests of tune.h and ptx_vm_gram as a C library: memory of any alignment that grows as asked for, one test for each error code,
 * sums and fits that are worked out by hand. Programs of every kind are tested from Python (tests/unit/native/test_tune.py).
 */

#include "check.h"
#include "tuning.h"

#include <math.h>

enum { MAX_POINTS = 3000 };
static float x[MAX_POINTS], y[MAX_POINTS], target[MAX_POINTS];

static void fill(void) {
    for (int i = 0; i < MAX_POINTS; i++) {
        x[i] = (float)(i % 97) / 8.0f - 6.0f;
        y[i] = (float)(i % 11) - 5.0f;
        target[i] = (float)(i % 5);
    }
}

/* f = x + y and f = x y, as two requests of one program. */
static void test_gram_sums_products_of_every_two_columns(void) {
    static const StackPtxInstruction words[] = {
        INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32), INPUT(X), INPUT(Y), OPERATION(add_ftz_f32), RETURN
    };
    static const size_t counts[] = {1, 7, 8, 33, 1000, 1024, 1025, 3000};
    static const size_t two[] = {F, F};
    Tools tools = tools_of_default_set();
    StackPtxLanguageInfo info;
    StackPtxLowered lowered;
    const StackPtxLanguage* language = NULL;
    const PtxVmProgram* program = NULL;
    const PtxVmInput inputs[] = {{x, false}, {y, false}, {NULL, false}};
    size_t num_bytes = 0;
    memset(&info, 0, sizeof info);
    info.stack_info = &stack_ptx_stack_info;
    info.limits.stack_size = info.limits.max_nodes = info.limits.max_frame_depth = info.limits.execution_limit = 64;
    info.registers = registers;
    info.num_registers = NUM_REGISTERS;
    info.requests = two;
    info.num_requests = 2;
    (void)stack_ptx_language_size(&info, &num_bytes);
    Block language_memory = block_of(num_bytes);
    (void)stack_ptx_language_init(&info, language_memory.memory, num_bytes, &language);
    (void)stack_ptx_workspace_size(language, &num_bytes);
    Block lowering = block_of(num_bytes);
    (void)stack_ptx_lower(language, STACK_PTX_MODE_LENIENT, 0, words, COUNT(words), lowering.memory, num_bytes, &lowered, NULL);
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
    target[20] = (float)INFINITY; /* left out */
    x[30] = 3e38f; /* x y is infinite, x + y is not: a point whose other request counts as zero */
    y[30] = 5.0f;
    for (size_t k = 0; k < COUNT(counts); k++) {
        CHECK_UINT(
            ptx_vm_gram(program, inputs, NUM_REGISTERS, counts[k], target, sums, workspace.memory, num_bytes), PTX_VM_SUCCESS
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
        ptx_vm_gram(program, inputs, NUM_REGISTERS, 5, target, sums, workspace.memory, num_bytes - 1),
        PTX_VM_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(ptx_vm_gram(program, inputs, 1, 5, target, sums, workspace.memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE);
    CHECK_UINT(
        ptx_vm_gram(program, inputs, NUM_REGISTERS, 5, NULL, sums, workspace.memory, num_bytes), PTX_VM_ERROR_INVALID_VALUE
    );
    fill();
    free(language_memory.base);
    free(lowering.base);
    free(program_memory.base);
    free(workspace.base);
    free(sums_memory.base);
    tools_free(&tools);
}

static const PtxVmInput xy[] = {{x, false}, {y, false}, {NULL, false}};

static TuneProblem problem_of(const Tools* tools, uint32_t num_iterations, bool is_scaled) {
    TuneProblem problem;
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

static void test_linear_fit_is_found_in_one_step(void) {
    /* f = 0.5 x + 0.25 y + 1 to 3 x - 2 y + 7 */
    StackPtxInstruction words[] = {
        INPUT(X),
        NUMBER(0.5f),
        OPERATION(mul_ftz_f32),
        INPUT(Y),
        NUMBER(0.25f),
        OPERATION(mul_ftz_f32),
        OPERATION(add_ftz_f32),
        NUMBER(1.0f),
        OPERATION(add_ftz_f32),
        RETURN,
        NUMBER(0.5f), /* after the program's end */
    };
    Tools tools = tools_of_default_set();
    TuneProblem problem = problem_of(&tools, 5, false);
    TuneOutcome outcome;
    for (int i = 0; i < 100; i++) target[i] = 3.0f * x[i] - 2.0f * y[i] + 7.0f;
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_SUCCESS);
    CHECK_UINT(outcome.num_parameters, 3);
    CHECK_UINT(outcome.is_changed, 1);
    CHECK(outcome.num_evaluations >= 2 && outcome.num_evaluations <= 6);
    CHECK(fabsf(words[1].payload.f - 3.0f) < 1e-5f);
    CHECK(fabsf(words[4].payload.f + 2.0f) < 1e-5f);
    CHECK(fabsf(words[7].payload.f - 7.0f) < 1e-5f);
    CHECK(words[10].payload.f == 0.5f);
    CHECK(outcome.error_after < 1e-6 * outcome.error_before);
    tools_free(&tools);
}

static void test_equal_constants_stay_equal(void) {
    /* f = (c x) + c: one constant in two words, and a third that is dead. The target 2.5 x + 2.5 has c = 2.5. */
    StackPtxInstruction words[] = {
        NUMBER(1.0f), INPUT(X), NUMBER(1.0f), OPERATION(mul_ftz_f32), NUMBER(1.0f), OPERATION(add_ftz_f32), RETURN
    };
    Tools tools = tools_of_default_set();
    TuneProblem problem = problem_of(&tools, 5, false);
    TuneOutcome outcome;
    for (int i = 0; i < 100; i++) target[i] = 2.5f * x[i] + 2.5f;
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_SUCCESS);
    CHECK_UINT(outcome.num_parameters, 1);
    CHECK(fabsf(words[2].payload.f - 2.5f) < 1e-5f);
    CHECK_UINT(words[4].payload.u, words[2].payload.u);
    CHECK_UINT(words[0].payload.u, words[2].payload.u);
    tools_free(&tools);
}

/* (a + b) x: only the sum matters. */
static void test_constants_that_depend_on_each_other_stay_finite(void) {
    StackPtxInstruction words[] = {NUMBER(1.0f), NUMBER(2.0f), OPERATION(add_ftz_f32), INPUT(X), OPERATION(mul_ftz_f32), RETURN};
    Tools tools = tools_of_default_set();
    TuneProblem problem = problem_of(&tools, 8, false);
    TuneOutcome outcome;
    for (int i = 0; i < 100; i++) target[i] = 10.0f * x[i];
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_SUCCESS);
    CHECK(fabsf(words[0].payload.f + words[1].payload.f - 10.0f) < 1e-4f);
    CHECK(fabsf(words[0].payload.f) < 20.0f && fabsf(words[1].payload.f) < 20.0f);
    tools_free(&tools);
}

static void test_scale_and_offset_are_left_alone_if_projected_out(void) {
    /* 2 x + 3: any target that is linear in x fits as it is. */
    StackPtxInstruction words[] = {INPUT(X), NUMBER(2.0f), OPERATION(mul_ftz_f32), NUMBER(3.0f), OPERATION(add_ftz_f32), RETURN};
    Tools tools = tools_of_default_set();
    TuneProblem problem = problem_of(&tools, 5, true);
    TuneOutcome outcome;
    for (int i = 0; i < 100; i++) target[i] = -40.0f * x[i] + (float)(i % 3);
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_SUCCESS);
    CHECK_UINT(outcome.num_evaluations, 1);
    CHECK_UINT(outcome.is_changed, 0);
    CHECK(words[1].payload.f == 2.0f && words[3].payload.f == 3.0f);
    tools_free(&tools);
}

static void test_program_without_constants_is_left_alone(void) {
    StackPtxInstruction words[] = {INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32), RETURN};
    StackPtxInstruction infinite[] = {INPUT(X), NUMBER(0.0f), OPERATION(mul_ftz_f32), RETURN};
    Tools tools = tools_of_default_set();
    TuneProblem problem = problem_of(&tools, 5, true);
    TuneOutcome outcome;
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_SUCCESS);
    CHECK_UINT(outcome.num_parameters, 0);
    CHECK_UINT(outcome.num_evaluations, 0);
    CHECK(isnan(outcome.error_before) && isnan(outcome.error_after));
    infinite[1].payload.f = (float)INFINITY;
    CHECK_UINT(tune(&problem, &tools, infinite, COUNT(infinite), &outcome), TUNE_SUCCESS);
    CHECK_UINT(outcome.num_parameters, 0);
    tools_free(&tools);
}

static void test_program_that_is_finite_nowhere_is_left_alone(void) {
    StackPtxInstruction words[] = {
        INPUT(X), OPERATION(abs_ftz_f32), NUMBER(-200.0f), OPERATION(sub_ftz_f32), OPERATION(lg2_approx_ftz_f32), RETURN
    }; /* -200 - |x| */
    Tools tools = tools_of_default_set();
    TuneProblem problem = problem_of(&tools, 5, false);
    TuneOutcome outcome;
    CHECK_UINT(tune(&problem, &tools, words, COUNT(words), &outcome), TUNE_SUCCESS);
    CHECK_UINT(outcome.num_evaluations, 1);
    CHECK_UINT(outcome.is_changed, 0);
    tools_free(&tools);
}

static void test_wrong_arguments_are_refused(void) {
    StackPtxInstruction words[] = {INPUT(X), NUMBER(2.0f), OPERATION(mul_ftz_f32), RETURN};
    Tools tools = tools_of_default_set();
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

int main(void) {
    fill();
    test_gram_sums_products_of_every_two_columns();
    test_linear_fit_is_found_in_one_step();
    test_equal_constants_stay_equal();
    test_constants_that_depend_on_each_other_stay_finite();
    test_scale_and_offset_are_left_alone_if_projected_out();
    test_program_without_constants_is_left_alone();
    test_program_that_is_finite_nowhere_is_left_alone();
    test_wrong_arguments_are_refused();
    return check_num_failures != 0;
}
