/*
 * A model that learns from rows as they come, predicts those to come, and goes on from a saved state.
 *
 *     gcc -std=c99 -I csrc docs/examples/c/itll.c -o itll -lm && ./itll
 */
#define ITLL_IMPLEMENTATION
#include "itll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_FEATURES = 2, BATCH = 50, NUM_BATCHES = 8 };

static void check(ItllResult result) {
    if (result == ITLL_SUCCESS) return;
    (void)fprintf(stderr, "%s\n", itll_result_to_string(result));
    exit(1);
}

int main(void) {
    ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, NUM_FEATURES, 1);
    options.window = 200;
    options.num_units = 64;
    options.noise = 0.01f;

    size_t model_bytes, workspace_bytes, state_bytes;
    ItllModel *model, *restored;
    check(itll_model_size(&options, &model_bytes));
    void* memory = malloc(model_bytes);
    check(itll_model_init(&options, itll_best_level(), memory, model_bytes, &model));
    check(itll_workspace_size(model, &workspace_bytes));
    void* workspace = malloc(workspace_bytes);

    float rows[BATCH * NUM_FEATURES], targets[BATCH], means[BATCH], deviations[BATCH], again[BATCH];
    for (int batch = 0; batch < NUM_BATCHES; batch++) {
        for (int i = 0; i < BATCH; i++) {
            const int number = batch * BATCH + i;
            rows[2 * i] = (float)(number * 7919 % 1000) / 500.0f - 1.0f;
            rows[2 * i + 1] = (float)(number * 104729 % 1000) / 500.0f - 1.0f;
            targets[i] = rows[2 * i] * rows[2 * i + 1];
        }
        /* First predict, then learn: the error is that of rows not yet learned from. */
        check(itll_predict(model, rows, BATCH, means, deviations, workspace, workspace_bytes));
        double error = 0.0;
        for (int i = 0; i < BATCH; i++)
            error += means[i] > targets[i] ? (double)(means[i] - targets[i]) : (double)(targets[i] - means[i]);
        printf("%3zu rows: mean error %.4f\n", itll_model_num_rows(model), error / BATCH);
        check(itll_update(model, rows, targets, BATCH));
    }

    check(itll_state_size(model, &state_bytes));
    void* state = malloc(state_bytes);
    check(itll_save(model, state, state_bytes));
    void* other_memory = malloc(model_bytes);
    check(itll_model_init(&options, ITLL_LEVEL_BASELINE, other_memory, model_bytes, &restored));
    check(itll_load(restored, state, state_bytes));

    check(itll_predict(model, rows, BATCH, means, deviations, workspace, workspace_bytes));
    check(itll_predict(restored, rows, BATCH, again, NULL, workspace, workspace_bytes));
    printf(
        "%.4f at (%.3f, %.3f): %.4f +- %.4f\n", (double)targets[0], (double)rows[0], (double)rows[1], (double)means[0],
        (double)deviations[0]
    );
    printf(
        "restored from %zu bytes: %s\n", state_bytes, memcmp(means, again, sizeof means) == 0 ? "the same bits" : "other bits"
    );
    free(memory);
    free(other_memory);
    free(workspace);
    free(state);
    return 0;
}
