/*
 * Tests of itll_features.h as a C library: memory of any alignment that grows as asked for, each error code, and features of a
 * program. More programs are tested from Python (tests/unit/native/test_program_features.py).
 */

#define ITLL_FEATURES_IMPLEMENTATION
#include "check.h"
#include "tuning.h"
#include "itll_features.h"

enum { NUM_POINTS = 5, NUM_BIGRAMS = 4, MAX_FEATURES = 200 };

static const float x[NUM_POINTS] = {-2.0f, -1.0f, 0.0f, 1.0f, 3.0f};
static const PtxVmInput inputs[] = {{x, false}, {NULL, false}, {NULL, false}};

static ItllFeaturesInfo info_of(const Tools* tools) {
    ItllFeaturesInfo info;
    info.stack_info = &stack_ptx_stack_info;
    info.vm_set = tools->vm_set;
    info.level = PTX_VM_LEVEL_BASELINE;
    info.inputs = inputs;
    info.num_inputs = NUM_REGISTERS;
    info.num_points = NUM_POINTS;
    info.num_requests = 1;
    info.num_bigrams = NUM_BIGRAMS;
    info.is_scaled = false;
    return info;
}

/* Grows the memory as told. */
static ItllResult describe(
    const ItllFeaturesInfo* info, const Tools* tools, const StackPtxInstruction* words, size_t num_words, float* features
) {
    const StackPtxLowered lowered = lower(tools, words, num_words);
    ItllResult result = ITLL_ERROR_INSUFFICIENT_MEMORY;
    size_t needed = 0, last = 0;
    while (result == ITLL_ERROR_INSUFFICIENT_MEMORY) {
        Block memory = block_of(needed);
        result = itll_features_of(info, &lowered, needed > 0 ? memory.memory : NULL, needed, &needed, features);
        CHECK(result != ITLL_ERROR_INSUFFICIENT_MEMORY || needed > last);
        last = needed;
        free(memory.base);
    }
    return result;
}

TEST(test_a_small_program_has_its_features) {
    static const StackPtxInstruction words[] = {INPUT(X), INPUT(X), OPERATION(mul_ftz_f32), NUMBER(3.0f), OPERATION(add_ftz_f32),
                                                RETURN};
    static const float expected[NUM_POINTS] = {7.0f / 8.0f, 4.0f / 5.0f, 3.0f / 4.0f, 4.0f / 5.0f, 12.0f / 13.0f};
    Tools tools = tools_of(1);
    const ItllFeaturesInfo info = info_of(&tools);
    float features[MAX_FEATURES];
    const size_t num_instructions = stack_ptx_stack_info.num_ptx_instructions;
    CHECK_UINT(itll_features_count(&info), NUM_POINTS + num_instructions + NUM_BIGRAMS + ITLL_FEATURES_NUM_STATISTICS);
    CHECK_UINT(describe(&info, &tools, words, COUNT(words), features), ITLL_SUCCESS);
    for (size_t i = 0; i < NUM_POINTS; i++) CHECK(features[i] == expected[i]);
    CHECK(features[NUM_POINTS + num_instructions + NUM_BIGRAMS + ITLL_FEATURES_CONSTANTS_MEAN] == 0.75f);
    tools_free(&tools);
}

TEST(test_wrong_arguments_are_refused) {
    static const StackPtxInstruction words[] = {INPUT(Y), RETURN};
    Tools tools = tools_of(1);
    ItllFeaturesInfo info = info_of(&tools);
    float features[MAX_FEATURES];
    size_t needed = 0;
    const StackPtxLowered lowered = lower(&tools, words, COUNT(words));
    CHECK_UINT(describe(&info, &tools, words, COUNT(words), features), ITLL_ERROR_INVALID_VALUE); /* y has no values */
    CHECK_UINT(itll_features_of(NULL, &lowered, NULL, 0, &needed, features), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(itll_features_of(&info, NULL, NULL, 0, &needed, features), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(itll_features_of(&info, &lowered, NULL, 0, &needed, NULL), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(itll_features_of(&info, &lowered, NULL, 9, &needed, features), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(itll_features_of(&info, &lowered, NULL, 0, &needed, features), ITLL_ERROR_INSUFFICIENT_MEMORY);
    CHECK(needed > 0);
    info.num_requests = 2;
    CHECK_UINT(itll_features_of(&info, &lowered, NULL, 0, &needed, features), ITLL_ERROR_INVALID_VALUE);
    CHECK_UINT(itll_features_count(NULL), 0);
    info.stack_info = NULL;
    CHECK_UINT(itll_features_count(&info), 0);
    tools_free(&tools);
}
