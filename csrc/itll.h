/*
 * itll.h - in-the-loop learning: two small models that learn from rows as they come, while a search runs, in microseconds.
 *
 *   ITLL_MODEL_RIDGE   ridge regression on random Fourier features (Rahimi & Recht 2007), by exact rank-one updates. Its uncertainty
 *                      is that of Bayesian linear regression.
 *   ITLL_MODEL_PCA     principal components of the newest rows: learned measures, as in AURORA (Cully 2019). It predicts coordinates.
 *
 *     #define ITLL_IMPLEMENTATION           in exactly one C or C++ file
 *     #include "itll.h"
 *
 *     ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, 32, 1);    32 features, 1 target; itll.hpp owns the memory in C++
 *     itll_model_size(&options, &bytes);
 *     itll_model_init(&options, itll_best_level(), malloc(bytes), bytes, &model);
 *     itll_workspace_size(model, &workspace_bytes);
 *     itll_update(model, rows, targets, num_rows);                            as often as there is something to learn
 *     itll_predict(model, rows, num_rows, means, deviations, workspace, workspace_bytes);
 *
 * Rows are (num_rows, num_features) f32, row by row; targets and means (num_rows, num_targets). The newest `window` rows count; for PCA
 * those of the newest update, however many. Columns are taken in standard deviations from their mean over the window, at most 8, renewed
 * whenever twice as many rows have been learned from as at the last time; PCA only subtracts means. A value that is not finite
 * counts as its column's mean, infinity as 8 standard deviations. A column that does not vary counts for nothing. A row with a
 * target that is not finite is not learned from. Without rows every prediction is 0 and its deviation infinite.
 *
 * Bits. Options and the rows in order decide every bit, at every SIMD level and on every machine with IEEE arithmetic: there is no
 * libm but its square root, no fma, and sums have a fixed order. Compile with -ffp-contract=off, and gain from -O3. Waves have 12
 * bits, so sums of their products are exact integers: a row that leaves takes away exactly what it brought. The same rows in other
 * batches give results that agree, but not always in their bits.
 *
 * Build. Alone, the file with ITLL_IMPLEMENTATION has kernels for its own compiler flags. On x86-64, detail/itll_baseline.c,
 * itll_avx2.c and itll_avx512.c, compiled with ITLL_X86_LEVELS and the flags that they state, let the level be chosen at run time.
 * ITLL_STATIC, defined before: functions are static, and each including file also defines ITLL_IMPLEMENTATION. ITLL_DEBUG: errors
 * assert where they are found.
 *
 * Memory and threads. A model lies in one piece of the caller's memory, of any alignment and contents; nothing is allocated, and
 * there is no global state. Any number of threads may predict from a model, each with a workspace of its own; while one changes
 * it, no other may use it. Functions refuse NULL unless their comment says otherwise.
 */

#ifndef ITLL_H
#define ITLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail/result.h"

#define ITLL_VERSION_MAJOR 3
#define ITLL_VERSION_MINOR 0
#define ITLL_VERSION_PATCH 0
#define ITLL_VERSION (10000 * ITLL_VERSION_MAJOR + 100 * ITLL_VERSION_MINOR + ITLL_VERSION_PATCH)
#define ITLL_VERSION_STRING "3.0.0"

/* Changes whenever a state means something else, or the same rows give other bits. */
#define ITLL_STATE_VERSION 3

#define ITLL_MAX_FEATURES 4096u
#define ITLL_MAX_TARGETS 64u
#define ITLL_MAX_WINDOW 1048576u
#define ITLL_MAX_UNITS 4096u
#define ITLL_MAX_PCA_FEATURES 512u

/* Before each declaration. It sets the linkage of the definition too. */
#define ITLL_API EVO__API(ITLL_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

#define ITLL__RESULTS(X)                                                                               \
    X(ITLL_SUCCESS, 0)                                                                                 \
    X(ITLL_ERROR_INVALID_VALUE, 1)       /* NULL, an option out of range, deviations of PCA */         \
    X(ITLL_ERROR_INSUFFICIENT_MEMORY, 2) /* less memory than the size query returned */                \
    X(ITLL_ERROR_NO_LEVEL, 3)            /* a SIMD level that this build or this CPU lacks */          \
    X(ITLL_ERROR_INVALID_STATE, 4)       /* bytes that are not a state, of another version, cut off */ \
    X(ITLL_ERROR_OTHER_OPTIONS, 5)       /* the state of a model with other options */

typedef enum { ITLL__RESULTS(EVO__ENUMERATOR) ITLL_RESULT_NUM_ENUMS } ItllResult;

/* The enumerator's name, or "ITLL_RESULT_UNKNOWN". The text is static. */
ITLL_API const char* itll_result_to_string(ItllResult result);

typedef enum {
    ITLL_LEVEL_BASELINE = 0, /* what the compiler's flags give */
    ITLL_LEVEL_AVX2 = 1,
    ITLL_LEVEL_AVX512 = 2, /* F, DQ, BW and VL */
    ITLL_LEVEL_NUM_ENUMS
} ItllLevel;

/* "baseline", "avx2", "avx512"; otherwise "unknown". The text is static. */
ITLL_API const char* itll_level_to_string(ItllLevel level);

/* Whether this build has the level and this CPU can run it. */
ITLL_API bool itll_level_is_available(ItllLevel level);

/* The fastest level that is available. */
ITLL_API ItllLevel itll_best_level(void);

typedef enum { ITLL_MODEL_RIDGE = 0, ITLL_MODEL_PCA = 1, ITLL_MODEL_NUM_ENUMS } ItllModelKind;

/* PCA ignores what only RIDGE needs, but it has to be in range. */
typedef struct ItllOptions {
    ItllModelKind kind;
    uint32_t num_features; /* 1 to ITLL_MAX_FEATURES; PCA: to ITLL_MAX_PCA_FEATURES */
    uint32_t num_targets;  /* 1 to ITLL_MAX_TARGETS; PCA: components, at most num_features */
    uint32_t window;       /* RIDGE: rows; 1 to ITLL_MAX_WINDOW */
    uint32_t num_units;    /* RIDGE: random features; 1 to ITLL_MAX_UNITS, rounded up to a multiple of 32 */
    float length_scale;    /* RIDGE: of the kernel, in units of the root of num_features; 1e-3 to 1e3 */
    float noise;           /* RIDGE: lambda, variance of what features cannot tell, by the target's; 1e-6 to 1e6 */
    uint64_t seed;         /* RIDGE: of its features */
} ItllOptions;

/* A window of 2,000 rows, 256 random features, length scale 1, noise 0.1, seed 0. */
ITLL_API ItllOptions itll_default_options(ItllModelKind kind, uint32_t num_features, uint32_t num_targets);

typedef struct ItllModel ItllModel;

ITLL_API ItllResult itll_model_size(const ItllOptions* options, size_t* bytes_out);
ITLL_API ItllResult
itll_model_init(const ItllOptions* options, ItllLevel level, void* memory, size_t memory_bytes, ItllModel** model_out);

/* The options that it was made with, num_units rounded up; NULL of NULL. */
ITLL_API const ItllOptions* itll_model_options(const ItllModel* model);

/* Rows that it knows now. 0 of NULL. */
ITLL_API size_t itll_model_num_rows(const ItllModel* model);

/* Forgets everything. */
ITLL_API ItllResult itll_reset(ItllModel* model);

/* Learns from rows, the oldest first. `targets` may be NULL for PCA; both may be NULL if num_rows is 0. */
ITLL_API ItllResult itll_update(ItllModel* model, const float* rows, const float* targets, size_t num_rows);

/* Bytes of workspace that predictions of this model need. */
ITLL_API ItllResult itll_workspace_size(const ItllModel* model, size_t* bytes_out);

/* Predicts targets, and the standard deviation of what a target will be around its prediction. `deviations_out` may be NULL; of PCA it
   must be. A row's prediction does not depend on the others. The rows may be NULL if num_rows is 0. */
ITLL_API ItllResult itll_predict(
    const ItllModel* model, const float* rows, size_t num_rows, float* means_out, float* deviations_out, void* workspace,
    size_t workspace_bytes
);

/* A state is everything that a model has learned, in little-endian bytes: a model that loads it goes on as if it had never been
   saved. Its length depends on the number of rows. */
ITLL_API ItllResult itll_state_size(const ItllModel* model, size_t* bytes_out);
ITLL_API ItllResult itll_save(const ItllModel* model, void* state, size_t state_bytes);

/* The options of a state. */
ITLL_API ItllResult itll_state_options(const void* state, size_t state_bytes, ItllOptions* options_out);

/* The model has the options that itll_state_options tells, and any level. After an error it has forgotten everything. */
ITLL_API ItllResult itll_load(ItllModel* model, const void* state, size_t state_bytes);

/* ---- private: shared with the kernels and itll_features.h --------------------------------------------------------- */

#define ITLL__ERROR(code) EVO__ERROR(ITLL_DEBUG, ITLL_ERROR_##code)

#define ITLL__MAX_DEVIATIONS 8.0f /* of a feature from its mean */
#define ITLL__BLOCK 16u /* rows that are predicted or added up at a time */
#define ITLL__WAVE 4095.0f /* a random feature is an integer up to this */

/* detail/itll_kernels.h says what they do. */
typedef struct ItllKernels {
    void (*waves)(const float*, size_t, size_t, const float*, const float*, const float*, const float*, size_t, float*, float*);
    void (*dots)(const float*, size_t, const float*, size_t, size_t, float*);
    void (*cross)(const float*, const float*, size_t, size_t, double*);
    void (*add_products)(const double*, const double*, size_t, size_t, size_t, double*);
    void (*factor)(double*, size_t, double*, double*);
    void (*solve_lanes)(const double*, const double*, size_t, double*);
} ItllKernels;

ITLL_API const ItllKernels* itll__kernels_baseline(void);
const ItllKernels* itll__kernels_avx2(void);
const ItllKernels* itll__kernels_avx512(void);

#ifdef __cplusplus
}
#endif

#endif /* ITLL_H */

#if defined(ITLL_IMPLEMENTATION) && !defined(ITLL_IMPLEMENTATION_INCLUDED)
#define ITLL_IMPLEMENTATION_INCLUDED

#include <math.h>
#include <string.h>

#define ITLL_KERNELS itll__kernels_baseline
#include "detail/arena.h"
#include "detail/itll_kernels.h"

#define ITLL__LEAST_VARIATION 1e-12 /* variance of a column that varies, relative to its squared mean: what f32 can tell */

const char* itll_result_to_string(ItllResult result) { EVO__RETURN_NAME(result, ITLL__RESULTS, "ITLL_RESULT_UNKNOWN") }

const char* itll_level_to_string(ItllLevel level) {
    static const char* const names[] = {"baseline", "avx2", "avx512"};
    return (unsigned)level < ITLL_LEVEL_NUM_ENUMS ? names[level] : "unknown";
}

/* NULL if the level is not available. */
static const ItllKernels* itll__kernels(ItllLevel level) {
    if (level == ITLL_LEVEL_BASELINE) return itll__kernels_baseline();
#if defined(ITLL_X86_LEVELS) && defined(__x86_64__)
    if (level == ITLL_LEVEL_AVX2 && __builtin_cpu_supports("avx2")) return itll__kernels_avx2();
    if (level == ITLL_LEVEL_AVX512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return itll__kernels_avx512();
    }
#endif
    return NULL;
}

bool itll_level_is_available(ItllLevel level) { return itll__kernels(level) != NULL; }

ItllLevel itll_best_level(void) {
    if (itll_level_is_available(ITLL_LEVEL_AVX512)) return ITLL_LEVEL_AVX512;
    return itll_level_is_available(ITLL_LEVEL_AVX2) ? ITLL_LEVEL_AVX2 : ITLL_LEVEL_BASELINE;
}

ItllOptions itll_default_options(ItllModelKind kind, uint32_t num_features, uint32_t num_targets) {
    const ItllOptions options = {kind, num_features, num_targets, 2000, 256, 1.0f, 0.1f, 0};
    return options;
}

static size_t itll__round_up(size_t number, size_t multiple) { return (number + multiple - 1) / multiple * multiple; }

static bool itll__is_within(uint32_t number, uint32_t most) { return number >= 1 && number <= most; }

static bool itll__is_valid(const ItllOptions* options) {
    const bool is_pca = options->kind == ITLL_MODEL_PCA;
    return (unsigned)options->kind < ITLL_MODEL_NUM_ENUMS &&
        itll__is_within(options->num_features, is_pca ? ITLL_MAX_PCA_FEATURES : ITLL_MAX_FEATURES) &&
        itll__is_within(options->num_targets, is_pca ? options->num_features : ITLL_MAX_TARGETS) &&
        itll__is_within(options->num_targets, ITLL_MAX_TARGETS) && itll__is_within(options->window, ITLL_MAX_WINDOW) &&
        itll__is_within(options->num_units, ITLL_MAX_UNITS) && options->length_scale >= 1e-3f && options->length_scale <= 1e3f &&
        options->noise >= 1e-6f && options->noise <= 1e6f;
}

static uint64_t itll__mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* In [-1/2, 1/2), of a stream of a seed: SplitMix64 as a hash of a counter. */
static double itll__uniform(uint64_t seed, uint64_t stream, uint64_t counter) {
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t bits = itll__mix(itll__mix(itll__mix(seed + golden) + stream * golden) + (counter + 1) * golden);
    return (double)(bits >> 11) * (1.0 / 9007199254740992.0) - 0.5;
}

/* A number with mean 0, variance 1 and nearly a normal distribution: the sum of 12 uniform ones. */
static double itll__normal(uint64_t seed, uint64_t stream, uint64_t counter) {
    double sum = 0.0;
    for (uint64_t i = 0; i < 12; i++) sum += itll__uniform(seed, stream, 12 * counter + i);
    return sum;
}

enum { ITLL__FREQUENCIES, ITLL__PHASES };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A model's arrays: type, name, length. `units`: padded random features; PCA: padded features. PCA has 0 `rows`. */
#define ITLL__ARRAYS(X)                                                                                       \
    X(float, weights, targets* units)    /* [num_targets][num_units]; PCA: components */                      \
    X(double, gram, units* units)        /* sums of products of columns */                                    \
    X(double, factor, units* units)      /* PCA: the covariance */                                            \
    X(double, diagonal, units)            /* inverses of the factor's; PCA: variances along the covariance */ \
    X(double, batch, ITLL__BLOCK* units) /* rows of waves; PCA: less the shift */                             \
    X(double, left, ITLL__BLOCK* units) /* the same, with the sign with which they are added */               \
    X(float, z, ITLL__BLOCK* features) /* rows in standard deviations */                                      \
    X(double, centre, features) /* PCA: means */                                                              \
    X(float, x, rows* features)          /* the window, as given; x[next] is the next to be written */        \
    X(float, y, rows* targets)                                                                                \
    X(float, waves, rows* units)                                                                              \
    X(float, means, features)                                                                                 \
    X(float, inverses, features)          /* of standard deviations; 0 for a column that does not vary */     \
    X(double, y_means, targets)                                                                               \
    X(double, y_scales, targets)          /* standard deviations; 0 for a target that does not vary */        \
    X(double, variances, targets)         /* of the noise, of targets with variance 1 */                      \
    X(float, column, rows)                /* a target's, in standard deviations */                            \
    X(float, frequencies, rows > 0 ? features * units : 0)                                                    \
    X(float, phases, units)

#define ITLL__FIELD(type, name, length) type* name;
struct ItllModel {
    const ItllKernels* kernels;
    ItllOptions options;
    size_t num_units, count, next; /* count: of rows in the window */
    uint64_t num_seen, num_scaled; /* rows that were learned from, by now and when the scales were made */
    ITLL__ARRAYS(ITLL__FIELD)
};

static void itll__lay_model(EvoArena* arena, const ItllOptions* options, ItllModel* model) {
    const bool is_pca = options->kind == ITLL_MODEL_PCA;
    const size_t features = options->num_features, targets = options->num_targets, rows = is_pca ? 0 : options->window;
    const size_t units = itll__round_up(is_pca ? features : options->num_units, 32);
    memset(model, 0, sizeof *model);
    model->options = *options;
    model->options.num_units = (uint32_t)itll__round_up(options->num_units, 32);
    model->num_units = units;
#define ITLL__TAKE(type, name, length) model->name = (type*)evo__take(arena, length, sizeof(type));
    ITLL__ARRAYS(ITLL__TAKE)
}

ItllResult itll_model_size(const ItllOptions* options, size_t* bytes_out) {
    if (options == NULL || bytes_out == NULL || !itll__is_valid(options)) return ITLL__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    ItllModel model;
    (void)evo__take(&arena, 1, sizeof model);
    itll__lay_model(&arena, options, &model);
    *bytes_out = arena.num_bytes;
    return ITLL_SUCCESS;
}

ItllResult itll_model_init(
    const ItllOptions* options, ItllLevel level, void* memory, size_t memory_bytes, ItllModel** model_out
) {
    size_t num_bytes;
    if (options == NULL || memory == NULL || model_out == NULL || !itll__is_valid(options)) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_model_size(options, &num_bytes);
    if (memory_bytes < num_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    if (itll__kernels(level) == NULL) return ITLL__ERROR(NO_LEVEL);
    EvoArena arena = evo__arena(memory, memory_bytes);
    ItllModel* model = (ItllModel*)evo__take(&arena, 1, sizeof *model);
    itll__lay_model(&arena, options, model);
    model->kernels = itll__kernels(level);
    *model_out = model;
    if (options->kind == ITLL_MODEL_RIDGE) { /* the kernel exp(-|a - b|^2 / 2 l^2): frequencies, in turns, and phases */
        const size_t features = options->num_features, units = model->num_units;
        const double scale = 1.0 / ((double)options->length_scale * sqrt((double)features) * 6.283185307179586);
        for (size_t i = 0; i < features * units; i++)
            model->frequencies[i] = (float)(itll__normal(options->seed, ITLL__FREQUENCIES, i) * scale);
        for (size_t i = 0; i < units; i++) model->phases[i] = (float)itll__uniform(options->seed, ITLL__PHASES, i);
    }
    return itll_reset(model);
}

const ItllOptions* itll_model_options(const ItllModel* model) { return model == NULL ? NULL : &model->options; }

size_t itll_model_num_rows(const ItllModel* model) { return model == NULL ? 0 : model->count; }

ItllResult itll_reset(ItllModel* model) {
    if (model == NULL) return ITLL__ERROR(INVALID_VALUE);
    const size_t units = model->num_units, num_bytes = model->options.num_features * sizeof(double);
    model->count = model->next = 0;
    model->num_seen = model->num_scaled = 0;
    memset(model->gram, 0, units * units * sizeof(double));
    memset(model->weights, 0, model->options.num_targets * units * sizeof(float));
    memset(model->centre, 0, num_bytes);
    memset(model->means, 0, num_bytes / 2);
    memset(model->inverses, 0, num_bytes / 2);
    return ITLL_SUCCESS;
}

static bool itll__is_finite(float number) { return number - number == 0.0f; }

/* Mean and standard deviation of the finite values of a column; 0 without any. */
static void itll__moments_of(const float* values, size_t stride, size_t num_rows, double* mean_out, double* deviation_out) {
    double sum = 0.0, squares = 0.0, count = 0.0;
    for (size_t i = 0; i < num_rows * stride; i += stride) {
        count += itll__is_finite(values[i]) ? 1.0 : 0.0;
        sum += itll__is_finite(values[i]) ? (double)values[i] : 0.0;
    }
    const double mean = count > 0.0 ? sum / count : 0.0;
    for (size_t i = 0; i < num_rows * stride; i += stride) {
        const double difference = itll__is_finite(values[i]) ? (double)values[i] - mean : 0.0;
        squares += difference * difference;
    }
    const double variance = count > 0.0 ? squares / count : 0.0;
    *mean_out = mean;
    *deviation_out = variance > ITLL__LEAST_VARIATION * (mean * mean) ? sqrt(variance) : 0.0;
}

/* The sum of products from `first` on; the size is a multiple of 8. */
static double itll__dot(const double* a, const double* b, size_t first, size_t size) {
    double parts[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (; first < size && first % 8 != 0; first++) parts[first % 8] += a[first] * b[first];
    for (; first < size; first += 8)
        for (size_t lane = 0; lane < 8; lane++) parts[lane] += a[first + lane] * b[first + lane];
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

/* ---- ridge ------------------------------------------------------------------------------------------------------- */

/* Adds rows [begin, end) of the window to the matrix of products, or takes them out with the waves that they have. */
static void itll__ridge_add(ItllModel* model, size_t begin, size_t end, double sign) {
    const size_t features = model->options.num_features, units = model->num_units;
    for (size_t count; begin < end; begin += count) {
        count = end - begin < ITLL__BLOCK ? end - begin : ITLL__BLOCK;
        float* waves = model->waves + begin * units;
        if (sign > 0.0)
            model->kernels->waves(
                model->x + begin * features, count, features, model->means, model->inverses, model->frequencies, model->phases,
                units, model->z, waves
            );
        for (size_t i = 0; i < count * units; i++) {
            model->batch[i] = (double)waves[i];
            model->left[i] = sign * model->batch[i];
        }
        model->kernels->add_products(model->left, model->batch, count, 0, units, model->gram);
    }
}

/* Adds all rows of the window to an empty matrix. is_new: with scales of now. */
static void itll__ridge_add_all(ItllModel* model, bool is_new) {
    const size_t features = model->options.num_features;
    for (size_t f = 0; is_new && f < features; f++) {
        double mean, deviation;
        itll__moments_of(model->x + f, features, model->count, &mean, &deviation);
        model->means[f] = (float)mean;
        model->inverses[f] = deviation > 1e-37 ? (float)(1.0 / deviation) : 0.0f;
    }
    if (is_new) model->num_scaled = model->num_seen;
    memset(model->gram, 0, model->num_units * model->num_units * sizeof(double));
    itll__ridge_add(model, 0, model->count, 1.0);
}

/* With Q the waves as integers and y in standard deviations: (Q'Q + lambda) w = Q'y. The features are sqrt(2 / D) q /
   ITLL__WAVE, which lambda takes up. The noise's variance is the one of the greatest evidence. */
static void itll__ridge_solve(ItllModel* model) {
    const size_t units = model->num_units, count = model->count, targets = model->options.num_targets;
    const double wave = (double)ITLL__WAVE, lambda = (double)model->options.noise * (double)units * 0.5 * wave * wave;
    double *factor = model->factor, *b = model->batch;
    memcpy(factor, model->gram, units * units * sizeof(double));
    for (size_t i = 0; i < units; i++) factor[i * units + i] += lambda;
    model->kernels->factor(factor, units, model->diagonal, model->batch);
    for (size_t t = 0; t < targets; t++) {
        const float* y = model->y + t;
        double *mean = &model->y_means[t], *scale = &model->y_scales[t], unexplained = 0.0;
        itll__moments_of(y, targets, count, mean, scale);
        for (size_t row = 0; row < count; row++) {
            model->column[row] = *scale > 0.0 ? (float)(((double)y[row * targets] - *mean) / *scale) : 0.0f;
            unexplained += (double)model->column[row] * (double)model->column[row];
        }
        model->kernels->cross(model->waves, model->column, count, units, b);
        double explained = 0.0; /* solves U'U w = b */
        for (size_t k = 0; k < units; k++) {
            b[k] *= model->diagonal[k];
            explained += b[k] * b[k];
            for (size_t j = k + 1; j < units; j++) b[j] -= factor[k * units + j] * b[k];
        }
        for (size_t k = units; k-- > 0;) {
            b[k] = (b[k] - itll__dot(factor + k * units, b, k + 1, units)) * model->diagonal[k];
            model->weights[t * units + k] = (float)b[k];
        }
        unexplained -= explained; /* which rounding may make negative */
        model->variances[t] = unexplained > 0.0 ? unexplained / (double)count : 0.0;
    }
}

static bool itll__has_targets(const ItllModel* model, const float* targets) {
    for (size_t t = 0; t < model->options.num_targets; t++)
        if (!itll__is_finite(targets[t])) return false;
    return true;
}

static void itll__ridge_update(ItllModel* model, const float* rows, const float* targets, size_t num_rows) {
    const size_t num_features = model->options.num_features, num_targets = model->options.num_targets;
    const size_t window = model->options.window;
    size_t num_left = 0;
    for (size_t row = 0; row < num_rows; row++) num_left += (size_t)itll__has_targets(model, targets + row * num_targets);
    if (num_left == 0) return;
    model->num_seen += num_left;
    const bool is_new = num_left >= window || model->num_seen >= 2 * model->num_scaled; /* what is added up begins anew */
    if (num_left >= window) model->count = model->next = 0;
    while (num_left > 0) { /* slots that are all free, or all taken */
        const size_t begin = model->next, free = window - begin, end = begin + (num_left < free ? num_left : free);
        if (model->count == window && !is_new) itll__ridge_add(model, begin, end, -1.0);
        for (; model->next < end; rows += num_features, targets += num_targets) {
            if (!itll__has_targets(model, targets)) continue;
            memcpy(model->x + model->next * num_features, rows, num_features * sizeof(float));
            memcpy(model->y + model->next++ * num_targets, targets, num_targets * sizeof(float));
        }
        num_left -= end - begin;
        model->count = model->count > end ? model->count : end;
        model->next = end % window;
        if (!is_new) itll__ridge_add(model, begin, end, 1.0);
    }
    if (is_new) itll__ridge_add_all(model, model->num_seen >= 2 * model->num_scaled);
    itll__ridge_solve(model);
}

/* ---- principal components ---------------------------------------------------------------------------------------- */

/* Eigenvectors of the covariance, which is symmetric and positive: rotations make its rows orthogonal (Hestenes 1958). */
static void itll__pca_rotate(double* matrix, size_t size, size_t stride) {
    for (int sweep = 0, num_rotations = 1; sweep < 60 && num_rotations > 0; sweep++) {
        num_rotations = 0;
        for (size_t p = 0; p < size; p++) {
            for (size_t q = p + 1; q < size; q++) {
                double *a = matrix + p * stride, *b = matrix + q * stride;
                const double aa = itll__dot(a, a, 0, stride), bb = itll__dot(b, b, 0, stride), ab = itll__dot(a, b, 0, stride);
                if (!(ab * ab > 1e-28 * aa * bb)) continue;
                num_rotations++;
                const double zeta = (bb - aa) / (2.0 * ab), sign = zeta < 0.0 ? -1.0 : 1.0;
                const double tangent = sign / (sign * zeta + sqrt(1.0 + zeta * zeta));
                const double cosine = 1.0 / sqrt(1.0 + tangent * tangent), sine = cosine * tangent;
                for (size_t k = 0; k < stride; k++) {
                    const double x = a[k], y = b[k];
                    a[k] = cosine * x - sine * y;
                    b[k] = sine * x + cosine * y;
                }
            }
        }
    }
}

static double itll__pca_difference(const ItllModel* model, float value, size_t feature) {
    const double difference = (double)value - model->centre[feature], most = 1e18; /* whose fourth powers can be added up */
    if (!itll__is_finite(value)) return 0.0;
    return difference > most ? most : (difference < -most ? -most : difference);
}

static void itll__pca_update(ItllModel* model, const float* rows, size_t num_rows) {
    const size_t features = model->options.num_features, units = model->num_units;
    double *matrix = model->factor, *variances = model->diagonal, total = 0.0;
    (void)itll_reset(model);
    model->count = num_rows;
    for (size_t f = 0; f < features; f++) itll__moments_of(rows + f, features, num_rows, &model->centre[f], &variances[f]);
    memset(model->batch, 0, ITLL__BLOCK * units * sizeof(double));
    for (size_t first = 0, count; first < num_rows; first += count) {
        count = num_rows - first < ITLL__BLOCK ? num_rows - first : ITLL__BLOCK;
        for (size_t i = 0; i < count * features; i++)
            model->batch[i / features * units + i % features] =
                itll__pca_difference(model, rows[first * features + i], i % features);
        model->kernels->add_products(model->batch, model->batch, count, 0, units, model->gram);
    }
    for (size_t i = 0; i < units; i++) {
        for (size_t j = 0; j < units; j++) matrix[i * units + j] = model->gram[i <= j ? i * units + j : j * units + i];
        total += matrix[i * units + i];
    }
    itll__pca_rotate(matrix, features, units);
    for (size_t i = 0; i < features; i++) variances[i] = sqrt(itll__dot(matrix + i * units, matrix + i * units, 0, units));
    for (size_t t = 0; t < model->options.num_targets; t++) {
        size_t best = 0, greatest = 0;
        for (size_t i = 1; i < features; i++) best = variances[i] > variances[best] ? i : best;
        const double *row = matrix + best * units, variance = variances[best];
        variances[best] = -1.0;
        if (!(variance > 1e-12 * total)) continue; /* rounding alone */
        for (size_t k = 1; k < features; k++) greatest = row[k] * row[k] > row[greatest] * row[greatest] ? k : greatest;
        const double scale = (row[greatest] < 0.0 ? -1.0 : 1.0) / variance;
        for (size_t k = 0; k < features; k++) model->weights[t * units + k] = (float)(row[k] * scale);
    }
}

ItllResult itll_update(ItllModel* model, const float* rows, const float* targets, size_t num_rows) {
    if (model == NULL || (rows == NULL && num_rows > 0)) return ITLL__ERROR(INVALID_VALUE);
    if (num_rows == 0) return ITLL_SUCCESS;
    if (model->options.kind == ITLL_MODEL_RIDGE && targets == NULL) return ITLL__ERROR(INVALID_VALUE);
    if (model->options.kind == ITLL_MODEL_PCA)
        itll__pca_update(model, rows, num_rows);
    else
        itll__ridge_update(model, rows, targets, num_rows);
    return ITLL_SUCCESS;
}

/* ---- prediction -------------------------------------------------------------------------------------------------- */

typedef struct ItllWorkspace {
    float* values; /* [ITLL__BLOCK][num_units]: waves; PCA: rows less their means */
    double* lanes; /* [num_units][ITLL__BLOCK] */
    float* z;      /* [ITLL__BLOCK][num_features] */
} ItllWorkspace;

static ItllWorkspace itll__lay_workspace(const ItllModel* model, EvoArena* arena) {
    const size_t units = ITLL__BLOCK * model->num_units, features = ITLL__BLOCK * model->options.num_features;
    ItllWorkspace workspace;
    workspace.values = (float*)evo__take(arena, units, sizeof(float));
    workspace.lanes = (double*)evo__take(arena, units, sizeof(double));
    workspace.z = (float*)evo__take(arena, features, sizeof(float));
    return workspace;
}

ItllResult itll_workspace_size(const ItllModel* model, size_t* bytes_out) {
    if (model == NULL || bytes_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    (void)itll__lay_workspace(model, &arena);
    *bytes_out = arena.num_bytes;
    return ITLL_SUCCESS;
}

/* The nearest f32 that is finite. */
static float itll__finite(double number) {
    const double most = 3.4028234663852886e38;
    return (float)(number < most ? (number > -most ? number : -most) : most);
}

static void itll__predict_targets(
    const ItllModel* model, const ItllWorkspace* work, const float* rows, size_t count, float* means, float* deviations
) {
    const size_t targets = model->options.num_targets, units = model->num_units;
    double squares[ITLL__BLOCK] = {0.0};
    model->kernels->waves(
        rows, count, model->options.num_features, model->means, model->inverses, model->frequencies, model->phases, units,
        work->z, work->values
    );
    model->kernels->dots(work->values, count, model->weights, units, targets, means);
    for (size_t i = 0; i < count * targets; i++)
        means[i] = itll__finite(model->y_means[i % targets] + model->y_scales[i % targets] * (double)means[i]);
    if (deviations == NULL) return;
    for (size_t i = 0; i < units * ITLL__BLOCK; i++)
        work->lanes[i] = i % ITLL__BLOCK < count ? (double)work->values[i % ITLL__BLOCK * units + i / ITLL__BLOCK] : 0.0;
    model->kernels->solve_lanes(model->factor, model->diagonal, units, work->lanes);
    /* From v of U'v = values: |v|^2 is what the rows leave unknown, relative to the noise. */
    for (size_t i = 0; i < units * ITLL__BLOCK; i++) squares[i % ITLL__BLOCK] += work->lanes[i] * work->lanes[i];
    for (size_t i = 0; i < count * targets; i++)
        deviations[i] =
            itll__finite(model->y_scales[i % targets] * sqrt(model->variances[i % targets] * (1.0 + squares[i / targets])));
}

static void itll__predict_components(
    const ItllModel* model, const ItllWorkspace* work, const float* rows, size_t count, float* means
) {
    const size_t features = model->options.num_features, units = model->num_units;
    memset(work->values, 0, count * units * sizeof(float));
    for (size_t i = 0; i < count * features; i++) {
        const double difference = itll__pca_difference(model, rows[i], i % features);
        work->values[i / features * units + i % features] = (float)difference;
    }
    model->kernels->dots(work->values, count, model->weights, units, model->options.num_targets, means);
}

ItllResult itll_predict(
    const ItllModel* model, const float* rows, size_t num_rows, float* means_out, float* deviations_out, void* workspace,
    size_t workspace_bytes
) {
    if (model == NULL || workspace == NULL || (num_rows > 0 && (rows == NULL || means_out == NULL)))
        return ITLL__ERROR(INVALID_VALUE);
    const bool is_pca = model->options.kind == ITLL_MODEL_PCA;
    if (deviations_out != NULL && is_pca) return ITLL__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(workspace, workspace_bytes);
    const ItllWorkspace work = itll__lay_workspace(model, &arena);
    if (arena.num_bytes > workspace_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    const size_t targets = model->options.num_targets, features = model->options.num_features;
    for (size_t i = 0; model->count == 0 && i < num_rows * targets; i++) {
        means_out[i] = 0.0f;
        if (deviations_out != NULL) deviations_out[i] = (float)INFINITY;
    }
    for (size_t first = 0; model->count > 0 && first < num_rows; first += ITLL__BLOCK) {
        const size_t count = num_rows - first < ITLL__BLOCK ? num_rows - first : ITLL__BLOCK;
        float *means = means_out + first * targets, *deviations = deviations_out ? deviations_out + first * targets : NULL;
        if (is_pca)
            itll__predict_components(model, &work, rows + first * features, count, means);
        else
            itll__predict_targets(model, &work, rows + first * features, count, means, deviations);
    }
    return ITLL_SUCCESS;
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

/* First values of a state. numbers: num_features to noise of the options. */
typedef struct ItllHeader {
    uint64_t magic, version;
    uint32_t kind, numbers[6], zero;
    uint64_t seed, count, next, num_seen, num_scaled;
} ItllHeader;

static ItllHeader itll__header(const ItllModel* model) {
    ItllHeader header = {
        UINT64_C(0x4c4c54496f7665), /* "evoITLL" */
        ITLL_STATE_VERSION,
        (uint32_t)model->options.kind,
        {0},
        0,
        model->options.seed,
        model->count,
        model->next,
        model->num_seen,
        model->num_scaled,
    };
    memcpy(header.numbers, (const char*)&model->options + offsetof(ItllOptions, num_features), sizeof header.numbers);
    return header;
}

/* Copies what comes after the header from a model to a state, or back; with neither, only counts. Returns the bytes of the state. */
static size_t itll__move(const ItllModel* model, char* to, const char* from) {
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    const bool is_pca = model->options.kind == ITLL_MODEL_PCA;
    const size_t rows = is_pca ? 0 : model->count;
    void* const arrays[] = {model->centre, model->weights, model->means, model->inverses, model->x, model->y};
    const size_t sizes[] = {
        is_pca ? features * sizeof(double) : 0,
        is_pca ? targets * model->num_units * sizeof(float) : 0,
        features * sizeof(float),
        features * sizeof(float),
        rows * features * sizeof(float),
        rows * targets * sizeof(float),
    };
    size_t num_bytes = sizeof(ItllHeader);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; num_bytes += sizes[i++]) {
        if (to != NULL) memcpy(to + num_bytes, arrays[i], sizes[i]);
        if (from != NULL) memcpy(arrays[i], from + num_bytes, sizes[i]);
    }
    return num_bytes;
}

ItllResult itll_state_size(const ItllModel* model, size_t* bytes_out) {
    if (model == NULL || bytes_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    *bytes_out = itll__move(model, NULL, NULL);
    return ITLL_SUCCESS;
}

ItllResult itll_save(const ItllModel* model, void* state, size_t state_bytes) {
    if (model == NULL || state == NULL) return ITLL__ERROR(INVALID_VALUE);
    if (state_bytes < itll__move(model, NULL, NULL)) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    const ItllHeader header = itll__header(model);
    memcpy(state, &header, sizeof header);
    (void)itll__move(model, (char*)state, NULL);
    return ITLL_SUCCESS;
}

ItllResult itll_state_options(const void* state, size_t state_bytes, ItllOptions* options_out) {
    ItllHeader header;
    if (state == NULL || options_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    if (state_bytes < sizeof header) return ITLL__ERROR(INVALID_STATE);
    memcpy(&header, state, sizeof header);
    if (header.kind >= ITLL_MODEL_NUM_ENUMS) return ITLL__ERROR(INVALID_STATE);
    ItllModel model; /* to compare with the header that it would have */
    memset(&model, 0, sizeof model);
    model.options.kind = (ItllModelKind)header.kind;
    model.options.seed = header.seed;
    memcpy((char*)&model.options + offsetof(ItllOptions, num_features), header.numbers, sizeof header.numbers);
    const ItllHeader expected = itll__header(&model);
    if (memcmp(&header, &expected, offsetof(ItllHeader, count)) != 0 || !itll__is_valid(&model.options))
        return ITLL__ERROR(INVALID_STATE);
    *options_out = model.options;
    return ITLL_SUCCESS;
}

/* Whether counts and values that were read are those of a model: all else that is computed from them stays in memory. */
static bool itll__is_sound(const ItllModel* model) {
    const size_t window = model->options.window, count = model->options.kind == ITLL_MODEL_PCA ? 0 : model->count;
    bool is_sound = model->next < window && (count == window || model->next == count) && (count > 0 || model->num_seen == 0) &&
        model->num_seen <= UINT64_MAX / 4 && model->num_scaled <= model->num_seen;
    for (size_t f = 0; f < model->options.num_features; f++)
        is_sound &= itll__is_finite(model->means[f]) && model->inverses[f] >= 0.0f && itll__is_finite(model->inverses[f]);
    for (size_t i = 0; i < count; i++) is_sound &= itll__has_targets(model, model->y + i * model->options.num_targets);
    return is_sound;
}

ItllResult itll_load(ItllModel* model, const void* state, size_t state_bytes) {
    ItllHeader header;
    ItllOptions options;
    if (model == NULL || state == NULL) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_reset(model);
    if (itll_state_options(state, state_bytes, &options) != ITLL_SUCCESS) return ITLL__ERROR(INVALID_STATE);
    const ItllHeader own = itll__header(model);
    memcpy(&header, state, sizeof header);
    if (memcmp(&header, &own, offsetof(ItllHeader, count)) != 0) return ITLL__ERROR(OTHER_OPTIONS);
    const bool is_pca = options.kind == ITLL_MODEL_PCA;
    if (header.count > (is_pca ? UINT64_MAX / 4 : options.window)) return ITLL__ERROR(INVALID_STATE);
    model->count = (size_t)header.count;
    model->next = (size_t)header.next;
    model->num_seen = header.num_seen;
    model->num_scaled = header.num_scaled;
    bool is_sound = state_bytes == itll__move(model, NULL, NULL);
    if (is_sound) (void)itll__move(model, NULL, (const char*)state);
    if (!is_sound || !itll__is_sound(model)) {
        (void)itll_reset(model);
        return ITLL__ERROR(INVALID_STATE);
    }
    if (is_pca || model->count == 0) return ITLL_SUCCESS;
    itll__ridge_add_all(model, false);
    itll__ridge_solve(model);
    return ITLL_SUCCESS;
}

#endif /* ITLL_IMPLEMENTATION */
