/*
 * Fuzz target: whatever a program is, its features are finite, in their ranges, and the same once more. fuzz.h says how to run it.
 */

#define ITLL_FEATURES_IMPLEMENTATION
#include "fuzz_program.h"
#include "itll_features.h"

#include <math.h>

#define MAX_WORDS 120u
#define FUZZ_MAX_BYTES (3 * MAX_WORDS)
#include "fuzz.h"

enum { NUM_POINTS = 19, NUM_BIGRAMS = 8, MAX_FEATURES = 300 };

static Block memory;

static void describe(const ItllFeaturesInfo* info, const StackPtxLowered* lowered, float* features) {
    ItllResult result;
    size_t needed = 0;
    for (;;) {
        result = itll_features_of(info, lowered, memory.memory, memory.num_bytes, &needed, features);
        if (result != ITLL_ERROR_INSUFFICIENT_MEMORY) break;
        REQUIRE(needed > memory.num_bytes);
        free(memory.base);
        memory = block_of(needed);
    }
    REQUIRE(result == ITLL_SUCCESS);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static Tools tools;
    static float x[NUM_POINTS], y[NUM_POINTS];
    static bool is_ready = false;
    StackPtxInstruction words[MAX_WORDS];
    const PtxVmInput inputs[] = {{x, false}, {y, false}, {NULL, false}};
    float features[MAX_FEATURES], again[MAX_FEATURES], num_counted = 0.0f;
    if (!is_ready) {
        is_ready = true;
        tools = tools_of(1);
        memory = block_of(1);
        for (int i = 0; i < NUM_POINTS; i++) {
            x[i] = (float)i / 4.0f - 2.0f;
            y[i] = i == 3 ? INFINITY : (float)((i * 7) % 13);
        }
    }
    const size_t num_words = program_of(data, size, words, MAX_WORDS);
    const StackPtxLowered lowered = lower(&tools, words, num_words);
    const ItllFeaturesInfo info = {
        &stack_ptx_stack_info, tools.vm_set, PTX_VM_LEVEL_BASELINE, inputs, NUM_REGISTERS, NUM_POINTS, 1,
        NUM_BIGRAMS,           size % 2 == 0
    };
    const size_t num_features = itll_features_count(&info), num_instructions = stack_ptx_stack_info.num_ptx_instructions;
    REQUIRE(num_features == NUM_POINTS + num_instructions + NUM_BIGRAMS + ITLL_FEATURES_NUM_STATISTICS);
    REQUIRE(num_features <= MAX_FEATURES);
    describe(&info, &lowered, features);
    describe(&info, &lowered, again);
    REQUIRE(memcmp(features, again, num_features * sizeof *features) == 0);
    for (size_t i = 0; i < num_features; i++) REQUIRE(isfinite(features[i]));
    for (size_t i = 0; i < NUM_POINTS; i++) REQUIRE(fabsf(features[i]) <= 1.0f);
    for (size_t i = 0; i < num_instructions; i++) num_counted += features[NUM_POINTS + i];
    const float* statistics = features + num_features - ITLL_FEATURES_NUM_STATISTICS;
    REQUIRE(num_counted == (float)lowered.num_instructions);
    REQUIRE(statistics[ITLL_FEATURES_NUM_INSTRUCTIONS] == num_counted && statistics[ITLL_FEATURES_DEPTH] <= num_counted);
    REQUIRE(statistics[ITLL_FEATURES_CONSTANTS_LEAST] <= statistics[ITLL_FEATURES_CONSTANTS_GREATEST]);
    REQUIRE(statistics[ITLL_FEATURES_NONFINITE] >= 0.0f && statistics[ITLL_FEATURES_NONFINITE] <= 1.0f);
    return 0;
}
