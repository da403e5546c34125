/*
 * Fuzz target: any program is tuned or left alone, its errors are finite, and only its constants change.
 * fuzz.h says how to run it.
 */

#include "fuzz_program.h"

#include <math.h>

#define MAX_WORDS 120u
#define FUZZ_MAX_BYTES (3 * MAX_WORDS)
#include "fuzz.h"

enum { NUM_POINTS = 45 };

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static Tools tools;
    static Block memory;
    static float x[NUM_POINTS], y[NUM_POINTS], target[NUM_POINTS];
    static bool is_ready = false;
    StackPtxInstruction words[MAX_WORDS], before[MAX_WORDS];
    const PtxVmInput inputs[] = {{x, false}, {y, false}, {NULL, false}};
    TuneOutcome outcome;
    size_t needed = 0;
    TuneResult result;
    if (!is_ready) {
        is_ready = true;
        tools = tools_of(1);
        memory = block_of(1);
        for (int i = 0; i < NUM_POINTS; i++) {
            x[i] = (float)i / 10.0f - 2.0f;
            y[i] = (float)((i * 7) % 13) / 4.0f;
            target[i] = x[i] * y[i] + 1.0f;
        }
    }
    const size_t num_words = program_of(data, size, words, MAX_WORDS);
    memcpy(before, words, num_words * sizeof *words);
    const TuneProblem problem = {
        tools.derive_set, tools.vm_set, PTX_VM_LEVEL_BASELINE, inputs, NUM_REGISTERS, NUM_POINTS, target, 4, size % 2 == 0, NULL
    };
    const StackPtxLowered lowered = lower(&tools, words, num_words);
    const uint32_t num_instructions = lowered.num_instructions;
    for (;;) {
        result = tune_program(&problem, &lowered, words, num_words, memory.memory, memory.num_bytes, &needed, &outcome);
        if (result != TUNE_ERROR_INSUFFICIENT_MEMORY) break;
        REQUIRE(needed > memory.num_bytes);
        free(memory.base);
        memory = block_of(needed);
    }
    REQUIRE(result == TUNE_SUCCESS);
    REQUIRE(outcome.num_parameters <= TUNE_MAX_PARAMETERS && outcome.num_evaluations <= 5);
    if (outcome.num_evaluations > 0) REQUIRE(isfinite(outcome.error_before) && isfinite(outcome.error_after));
    for (size_t i = 0; i < num_words; i++) {
        const bool is_f32 =
            words[i].instruction_type == STACK_PTX_INSTRUCTION_TYPE_CONSTANT && words[i].aux == STACK_PTX_STACK_TYPE_F32;
        REQUIRE(words[i].instruction_type == before[i].instruction_type && words[i].aux == before[i].aux);
        REQUIRE(words[i].payload.u == before[i].payload.u || (is_f32 && outcome.is_changed && isfinite(words[i].payload.f)));
    }
    REQUIRE(lower(&tools, words, num_words).num_instructions <= num_instructions);
    return 0;
}
