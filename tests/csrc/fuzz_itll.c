/*
 * Fuzz target: whatever rows come, every model predicts, goes on from its state with the same bits, and survives any other state.
 * fuzz.h says how to run it.
 */

#define ITLL_IMPLEMENTATION
#include "itll.h"

#include "block.h"

#include "fuzz.h"

enum { MAX_ROWS = 24, MAX_FEATURES = 3, MAX_TARGETS = 2 };

/* The next byte, or 0 past the end. */
static uint8_t next(const uint8_t** data, const uint8_t* end) { return *data < end ? *(*data)++ : 0; }

/* Small numbers, often equal ones; huge, tiny and not finite ones. */
static float number(uint8_t byte) {
    static const float odd[] = {0.0f, -0.0f, 1e-40f, 1e30f, -3.4e38f, INFINITY, -INFINITY, NAN};
    return byte < 240 ? (float)(byte % 60) / 8.0f - 3.0f : odd[byte % 8];
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const uint8_t* end = data + size;
    float rows[MAX_ROWS * MAX_FEATURES], targets[MAX_ROWS * MAX_TARGETS];
    float means[MAX_ROWS * MAX_TARGETS], again[MAX_ROWS * MAX_TARGETS], deviations[MAX_ROWS * MAX_TARGETS];
    const ItllModelKind kind = (ItllModelKind)(next(&data, end) % ITLL_MODEL_NUM_ENUMS);
    const bool has_deviations = kind == ITLL_MODEL_RIDGE;
    ItllOptions options = itll_default_options(kind, 1u + next(&data, end) % MAX_FEATURES, 1u + next(&data, end) % MAX_TARGETS);
    if (kind == ITLL_MODEL_PCA && options.num_targets > options.num_features) options.num_targets = options.num_features;
    options.window = 1u + next(&data, end) % 40;
    options.num_units = 32;
    size_t num_bytes;
    ItllModel *model = NULL, *other = NULL;
    REQUIRE(itll_model_size(&options, &num_bytes) == ITLL_SUCCESS);
    Block memory = block_of(num_bytes), other_memory = block_of(num_bytes);
    REQUIRE(itll_model_init(&options, itll_best_level(), memory.memory, num_bytes, &model) == ITLL_SUCCESS);
    REQUIRE(itll_model_init(&options, itll_best_level(), other_memory.memory, num_bytes, &other) == ITLL_SUCCESS);
    REQUIRE(itll_workspace_size(model, &num_bytes) == ITLL_SUCCESS);
    Block workspace = block_of(num_bytes);
    size_t num_rows = MAX_ROWS;
    for (int update = 0; update < 4; update++) {
        num_rows = next(&data, end) % (MAX_ROWS + 1u);
        for (size_t i = 0; i < MAX_ROWS * MAX_FEATURES; i++) rows[i] = number(next(&data, end));
        for (size_t i = 0; i < MAX_ROWS * MAX_TARGETS; i++) targets[i] = number(next(&data, end));
        REQUIRE(itll_update(model, rows, targets, num_rows) == ITLL_SUCCESS);
        REQUIRE(kind == ITLL_MODEL_PCA || itll_model_num_rows(model) <= options.window);
    }
    const size_t num_means = MAX_ROWS * options.num_targets;
    REQUIRE(
        itll_predict(model, rows, MAX_ROWS, means, has_deviations ? deviations : NULL, workspace.memory, num_bytes) ==
        ITLL_SUCCESS
    );
    for (size_t i = 0; has_deviations && i < num_means; i++) REQUIRE(deviations[i] >= 0.0f || isnan(deviations[i]));

    size_t state_bytes;
    REQUIRE(itll_state_size(model, &state_bytes) == ITLL_SUCCESS);
    Block state = block_of(state_bytes);
    REQUIRE(itll_save(model, state.memory, state_bytes) == ITLL_SUCCESS);
    REQUIRE(itll_load(other, state.memory, state_bytes) == ITLL_SUCCESS);
    REQUIRE(itll_predict(other, rows, MAX_ROWS, again, NULL, workspace.memory, num_bytes) == ITLL_SUCCESS);
    REQUIRE(memcmp(means, again, num_means * sizeof *means) == 0);
    REQUIRE(itll_update(model, rows, targets, num_rows) == ITLL_SUCCESS);
    REQUIRE(itll_update(other, rows, targets, num_rows) == ITLL_SUCCESS);
    (void)itll_predict(model, rows, MAX_ROWS, means, NULL, workspace.memory, num_bytes);
    (void)itll_predict(other, rows, MAX_ROWS, again, NULL, workspace.memory, num_bytes);
    REQUIRE(memcmp(means, again, num_means * sizeof *means) == 0);

    for (int i = 0; i < 6; i++) { /* some of it changed, also the counts that come after the options */
        const size_t at = i < 2 ? (7u + next(&data, end) % 3u) * 8u : next(&data, end) * 251u;
        state.memory[at % state_bytes] = (char)next(&data, end);
    }
    if (itll_load(other, state.memory, state_bytes) == ITLL_SUCCESS) {
        REQUIRE(itll_update(other, rows, targets, num_rows) == ITLL_SUCCESS);
        REQUIRE(itll_predict(other, rows, MAX_ROWS, again, NULL, workspace.memory, num_bytes) == ITLL_SUCCESS);
    }
    free(memory.base);
    free(other_memory.base);
    free(workspace.base);
    free(state.base);
    return 0;
}
