/*
 * Fuzz target: whatever a program is, its features are finite, in their ranges and the same once more; it is tuned or left alone,
 * its errors are finite, and only its constants change.
 * fuzz.h says how to run it.
 */

#define ITLL_FEATURES_IMPLEMENTATION
#include "tuning.h"
#include "itll_features.h"

#include <math.h>

#define MAX_WORDS 120u
#include "fuzz.h"

enum { NUM_POINTS = 45, NUM_BIGRAMS = 8, MAX_FEATURES = 300 };

static Tools tools;
static Block memory;

/* Three bytes a word. Writes at most MAX_WORDS words; returns how many there are. */
static size_t program_of(const uint8_t* data, size_t size, StackPtxInstruction* words) {
    size_t num_words = 0;
    for (; 3 * num_words + 2 < size && num_words < MAX_WORDS; num_words++) {
        const uint8_t* bytes = data + 3 * num_words;
        StackPtxInstruction word;
        memset(&word, 0, sizeof word);
        if (bytes[0] % 8 < 4) {
            word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_PTX;
            word.payload.u = bytes[1] % STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS;
        } else if (bytes[0] % 8 < 6) {
            word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_INPUT;
            word.payload.u = bytes[1] % 2;
        } else {
            word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_CONSTANT;
            word.aux = bytes[0] % 16 == 7 ? STACK_PTX_STACK_TYPE_U32 : STACK_PTX_STACK_TYPE_F32;
            word.payload.u = bytes[1] < 250 ? (uint32_t)(0x3e800000u + bytes[1] * 0x40000u) : (uint32_t)bytes[2] << 23;
        }
        words[num_words] = word;
    }
    return num_words;
}

/* A call that is repeated with the memory that it asks for. */
#define WITH_MEMORY(result, insufficient, call)   \
    while ((result = (call)) == (insufficient)) { \
        REQUIRE(needed > memory.num_bytes);       \
        free(memory.base);                        \
        memory = block_of(needed);                \
    }

static void check_features(const StackPtxLowered* lowered, const PtxVmInput* inputs, bool has_bigrams) {
    float features[MAX_FEATURES], again[MAX_FEATURES], num_counted = 0.0f;
    size_t needed = 0;
    ItllResult result;
    const ItllFeaturesInfo info = {
        &stack_ptx_stack_info, tools.vm_set, PTX_VM_LEVEL_BASELINE, inputs, NUM_REGISTERS, NUM_POINTS, 1,
        NUM_BIGRAMS,           has_bigrams
    };
    const size_t num_features = itll_features_count(&info), num_instructions = stack_ptx_stack_info.num_ptx_instructions;
    REQUIRE(num_features == NUM_POINTS + num_instructions + NUM_BIGRAMS + ITLL_FEATURES_NUM_STATISTICS);
    REQUIRE(num_features <= MAX_FEATURES);
#define DESCRIBE(out) itll_features_of(&info, lowered, memory.memory, memory.num_bytes, &needed, out)
    WITH_MEMORY(result, ITLL_ERROR_INSUFFICIENT_MEMORY, DESCRIBE(features))
    REQUIRE(result == ITLL_SUCCESS && DESCRIBE(again) == ITLL_SUCCESS);
    REQUIRE(memcmp(features, again, num_features * sizeof *features) == 0);
    for (size_t i = 0; i < num_features; i++) REQUIRE(isfinite(features[i]));
    for (size_t i = 0; i < NUM_POINTS; i++) REQUIRE(fabsf(features[i]) <= 1.0f);
    for (size_t i = 0; i < num_instructions; i++) num_counted += features[NUM_POINTS + i];
    const float* statistics = features + num_features - ITLL_FEATURES_NUM_STATISTICS;
    REQUIRE(num_counted == (float)lowered->num_instructions);
    REQUIRE(statistics[ITLL_FEATURES_NUM_INSTRUCTIONS] == num_counted && statistics[ITLL_FEATURES_DEPTH] <= num_counted);
    REQUIRE(statistics[ITLL_FEATURES_CONSTANTS_LEAST] <= statistics[ITLL_FEATURES_CONSTANTS_GREATEST]);
    REQUIRE(statistics[ITLL_FEATURES_NONFINITE] >= 0.0f && statistics[ITLL_FEATURES_NONFINITE] <= 1.0f);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static float x[NUM_POINTS], y[NUM_POINTS], y_with_hole[NUM_POINTS], target[NUM_POINTS];
    StackPtxInstruction words[MAX_WORDS], before[MAX_WORDS];
    const PtxVmInput inputs[] = {{x, false}, {y, false}, {NULL, false}};
    const PtxVmInput with_hole[] = {{x, false}, {y_with_hole, false}, {NULL, false}};
    TuneOutcome outcome;
    size_t needed = 0;
    TuneResult result;
    if (memory.base == NULL) {
        tools = tools_of(1);
        memory = block_of(1);
        for (int i = 0; i < NUM_POINTS; i++) {
            x[i] = (float)i / 10.0f - 2.0f;
            y[i] = (float)((i * 7) % 13) / 4.0f;
            y_with_hole[i] = i == 3 ? INFINITY : y[i];
            target[i] = x[i] * y[i] + 1.0f;
        }
    }
    const size_t num_words = program_of(data, size, words);
    memcpy(before, words, num_words * sizeof *words);
    double targets[NUM_POINTS], scales[NUM_POINTS];
    for (int i = 0; i < NUM_POINTS; i++) {
        targets[i] = target[i];
        scales[i] = 1.0 + i;
    }
    const TuneWorst worst = {NUM_POINTS, targets, scales, size % 5 == 0 ? 8 : 24, -126, 3.4e38, 1.2e-38, 20};
    const bool is_worst = size % 3 == 0;
    const TuneProblem problem = {
        tools.derive_set,           tools.vm_set, PTX_VM_LEVEL_BASELINE,    inputs, NUM_REGISTERS, NUM_POINTS, target, 4,
        size % 2 == 0 && !is_worst, NULL,         is_worst ? &worst : NULL, NULL,   size % 4 == 0
    };
    const StackPtxLowered lowered = lower(&tools, words, num_words);
    const uint32_t num_instructions = lowered.num_instructions;
    check_features(&lowered, with_hole, size % 2 == 0);
    WITH_MEMORY(
        result, TUNE_ERROR_INSUFFICIENT_MEMORY,
        tune_program(&problem, &lowered, words, num_words, memory.memory, memory.num_bytes, &needed, &outcome)
    )
    REQUIRE(result == TUNE_SUCCESS);
    REQUIRE(outcome.num_parameters <= TUNE_MAX_PARAMETERS && outcome.num_evaluations <= (is_worst ? 80u : 5u));
    if (outcome.num_evaluations > 0 && !is_worst) REQUIRE(isfinite(outcome.error_before) && isfinite(outcome.error_after));
    if (outcome.num_evaluations > 0 && is_worst) REQUIRE(outcome.error_after <= outcome.error_before);
    for (size_t i = 0; i < num_words; i++) {
        const bool is_f32 =
            words[i].instruction_type == STACK_PTX_INSTRUCTION_TYPE_CONSTANT && words[i].aux == STACK_PTX_STACK_TYPE_F32;
        REQUIRE(words[i].instruction_type == before[i].instruction_type && words[i].aux == before[i].aux);
        REQUIRE(words[i].payload.u == before[i].payload.u || (is_f32 && outcome.is_changed && isfinite(words[i].payload.f)));
    }
    REQUIRE(lower(&tools, words, num_words).num_instructions <= num_instructions);
    return 0;
}
