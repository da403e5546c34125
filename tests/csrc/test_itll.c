/*
 * Tests of itll.h as a C library: memory of exactly the size that the queries tell and of any alignment, each error code, and
 * predictions that are worked out by hand. Models are compared with scikit-learn, and SIMD levels with each other, from Python
 * (tests/unit/native/test_itll.py).
 */

#define ITLL_IMPLEMENTATION
#include "itll.h"

#include "block.h"
#include "check.h"

typedef struct Bench {
    Block memory, workspace;
    ItllModel* model;
} Bench;

static Bench bench_of(const ItllOptions* options) {
    Bench bench;
    size_t num_bytes = 0;
    CHECK_UINT(itll_model_size(options, &num_bytes), ITLL_SUCCESS);
    bench.memory = block_of(num_bytes);
    CHECK_UINT(itll_model_init(options, ITLL_LEVEL_BASELINE, bench.memory.memory, num_bytes, &bench.model), ITLL_SUCCESS);
    CHECK_UINT(itll_workspace_size(bench.model, &num_bytes), ITLL_SUCCESS);
    bench.workspace = block_of(num_bytes);
    return bench;
}

static void bench_free(Bench* bench) {
    free(bench->memory.base);
    free(bench->workspace.base);
}

static ItllResult predict(const Bench* bench, const float* rows, size_t num_rows, float* means, float* deviations) {
    return itll_predict(bench->model, rows, num_rows, means, deviations, bench->workspace.memory, bench->workspace.num_bytes);
}

TEST(test_without_rows_nothing_is_known) {
    static const float row[] = {3.0f, -1.0f}, target = NAN;
    for (int kind = 0; kind < ITLL_MODEL_NUM_ENUMS; kind++) {
        const ItllOptions options = itll_default_options((ItllModelKind)kind, 2, 1);
        const bool has_deviations = kind == ITLL_MODEL_RIDGE;
        float mean = 5.0f, deviation = 5.0f;
        Bench bench = bench_of(&options);
        CHECK_UINT(itll_update(bench.model, NULL, NULL, 0), ITLL_SUCCESS);
        if (has_deviations) CHECK_UINT(itll_update(bench.model, row, &target, 1), ITLL_SUCCESS);
        CHECK_UINT(itll_model_num_rows(bench.model), 0);
        CHECK_UINT(predict(&bench, row, 1, &mean, has_deviations ? &deviation : NULL), ITLL_SUCCESS);
        CHECK(mean == 0.0f && (!has_deviations || isinf(deviation)));
        CHECK_UINT(predict(&bench, NULL, 0, NULL, NULL), ITLL_SUCCESS);
        bench_free(&bench);
    }
}

TEST(test_options_out_of_range_are_refused) {
    const ItllOptions valid = itll_default_options(ITLL_MODEL_RIDGE, 2, 1);
    ItllOptions options = valid;
    size_t num_bytes;
#define REFUSED(field, value)                                                   \
    options = valid;                                                            \
    options.field = (value);                                                    \
    CHECK_UINT(itll_model_size(&options, &num_bytes), ITLL_ERROR_INVALID_VALUE)
    REFUSED(num_features, 0);
    REFUSED(num_features, ITLL_MAX_FEATURES + 1);
    REFUSED(num_targets, 0);
    REFUSED(num_targets, ITLL_MAX_TARGETS + 1);
    REFUSED(window, 0);
    REFUSED(window, ITLL_MAX_WINDOW + 1);
    REFUSED(num_units, ITLL_MAX_UNITS + 1);
    REFUSED(noise, 0.0f);
    REFUSED(noise, NAN);
    REFUSED(length_scale, INFINITY);
    REFUSED(kind, ITLL_MODEL_NUM_ENUMS);
    options = itll_default_options(ITLL_MODEL_PCA, ITLL_MAX_PCA_FEATURES + 1, 1);
    CHECK_UINT(itll_model_size(&options, &num_bytes), ITLL_ERROR_INVALID_VALUE);
    options = itll_default_options(ITLL_MODEL_PCA, 2, 3);
    CHECK_UINT(itll_model_size(&options, &num_bytes), ITLL_ERROR_INVALID_VALUE);
#undef REFUSED
}

TEST(test_null_is_refused) {
    const ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, 2, 1);
    float row[] = {3.0f, -1.0f}, mean, target = 7.0f;
    ItllOptions read;
    ItllModel* model;
    size_t num_bytes;
    Bench bench = bench_of(&options);
#define REFUSED(call) CHECK_UINT(call, ITLL_ERROR_INVALID_VALUE)
    REFUSED(itll_model_size(NULL, &num_bytes));
    REFUSED(itll_model_size(&options, NULL));
    REFUSED(itll_model_init(NULL, ITLL_LEVEL_BASELINE, bench.memory.memory, bench.memory.num_bytes, &model));
    REFUSED(itll_model_init(&options, ITLL_LEVEL_BASELINE, NULL, bench.memory.num_bytes, &model));
    REFUSED(itll_model_init(&options, ITLL_LEVEL_BASELINE, bench.memory.memory, bench.memory.num_bytes, NULL));
    CHECK(itll_model_options(NULL) == NULL && itll_model_num_rows(NULL) == 0);
    REFUSED(itll_reset(NULL));
    REFUSED(itll_update(NULL, row, &target, 1));
    REFUSED(itll_update(bench.model, NULL, &target, 1));
    REFUSED(itll_update(bench.model, row, NULL, 1));
    REFUSED(itll_workspace_size(NULL, &num_bytes));
    REFUSED(itll_workspace_size(bench.model, NULL));
    REFUSED(itll_predict(NULL, row, 1, &mean, NULL, bench.workspace.memory, bench.workspace.num_bytes));
    REFUSED(itll_predict(bench.model, row, 1, &mean, NULL, NULL, bench.workspace.num_bytes));
    REFUSED(predict(&bench, NULL, 1, &mean, NULL));
    REFUSED(predict(&bench, row, 1, NULL, NULL));
    REFUSED(itll_state_size(NULL, &num_bytes));
    REFUSED(itll_state_size(bench.model, NULL));
    REFUSED(itll_save(NULL, row, sizeof row));
    REFUSED(itll_save(bench.model, NULL, 1000));
    REFUSED(itll_state_options(NULL, 1000, &read));
    REFUSED(itll_state_options(row, sizeof row, NULL));
    REFUSED(itll_load(NULL, row, sizeof row));
    REFUSED(itll_load(bench.model, NULL, 1000));
#undef REFUSED
    bench_free(&bench);
}

TEST(test_wrong_arguments_are_refused) {
    static const float row[] = {3.0f, -1.0f};
    const ItllOptions options = itll_default_options(ITLL_MODEL_PCA, 2, 1);
    float mean, deviation;
    ItllModel* model;
    Bench bench = bench_of(&options);
    const size_t num_bytes = bench.memory.num_bytes;
    CHECK_UINT(
        itll_model_init(&options, ITLL_LEVEL_BASELINE, bench.memory.memory, num_bytes - 1, &model), ITLL_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(itll_model_init(&options, ITLL_LEVEL_AVX512, bench.memory.memory, num_bytes, &model), ITLL_ERROR_NO_LEVEL);
    CHECK(!itll_level_is_available(ITLL_LEVEL_NUM_ENUMS) && itll_best_level() == ITLL_LEVEL_BASELINE);
    CHECK_UINT(predict(&bench, row, 1, &mean, &deviation), ITLL_ERROR_INVALID_VALUE); /* no uncertainty */
    CHECK_UINT(
        itll_predict(bench.model, row, 1, &mean, NULL, bench.workspace.memory, bench.workspace.num_bytes - 1),
        ITLL_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_TEXT(itll_result_to_string(ITLL_ERROR_NO_LEVEL), "ITLL_ERROR_NO_LEVEL");
    CHECK_TEXT(itll_result_to_string(ITLL_RESULT_NUM_ENUMS), "ITLL_RESULT_UNKNOWN");
    CHECK_TEXT(itll_level_to_string(ITLL_LEVEL_AVX512), "avx512");
    bench_free(&bench);
}

TEST(test_a_wrong_state_is_refused_and_leaves_nothing) {
    static const float rows[] = {3.0f, -1.0f, 2.0f, 5.0f}, targets[] = {7.0f, 8.0f};
    ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, 2, 1), read;
    size_t num_bytes;
    Bench bench = bench_of(&options);
    (void)itll_update(bench.model, rows, targets, 2);
    CHECK_UINT(itll_state_size(bench.model, &num_bytes), ITLL_SUCCESS);
    Block state = block_of(num_bytes);
    CHECK_UINT(itll_save(bench.model, state.memory, num_bytes - 1), ITLL_ERROR_INSUFFICIENT_MEMORY);
    CHECK_UINT(itll_save(bench.model, state.memory, num_bytes), ITLL_SUCCESS);
    CHECK_UINT(itll_state_options(state.memory, num_bytes, &read), ITLL_SUCCESS);
    CHECK(read.num_features == 2 && read.num_units == 256 && read.noise == options.noise);
    CHECK_UINT(itll_load(bench.model, state.memory, num_bytes), ITLL_SUCCESS);
    CHECK_UINT(itll_model_num_rows(bench.model), 2);
    CHECK_UINT(itll_load(bench.model, state.memory, num_bytes - 1), ITLL_ERROR_INVALID_STATE);
    CHECK_UINT(itll_model_num_rows(bench.model), 0);
    state.memory[8]++; /* the version */
    CHECK_UINT(itll_load(bench.model, state.memory, num_bytes), ITLL_ERROR_INVALID_STATE);
    state.memory[8]--;
    options.seed = 1;
    Bench other = bench_of(&options);
    CHECK_UINT(itll_load(other.model, state.memory, num_bytes), ITLL_ERROR_OTHER_OPTIONS);
    bench_free(&bench);
    bench_free(&other);
    free(state.base);
}
