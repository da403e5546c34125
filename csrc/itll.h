/*
 * itll.h - in-the-loop learning: two small models that learn while a search runs, in microseconds.
 *
 * Made for some thousand rows, tens to hundreds of columns, and predictions of ten thousand rows at once. A model learns from rows as
 * they come.
 *
 *   ITLL_MODEL_RIDGE   ridge regression on random Fourier features (Rahimi & Recht 2007). Rows come and go by exact rank-one
 *                      updates. It says how sure it is: its uncertainty is that of Bayesian linear regression.
 *   ITLL_MODEL_PCA     principal components of all rows so far: learned measures, as in AURORA (Cully 2019). It predicts coordinates.
 *
 * Usage
 *
 *     #define ITLL_IMPLEMENTATION           in exactly one C or C++ file
 *     #include "itll.h"
 *
 *     ItllOptions options = itll_default_options(ITLL_MODEL_RIDGE, 32, 1);    32 features, 1 target
 *     itll_model_size(&options, &bytes);
 *     itll_model_init(&options, itll_best_level(), malloc(bytes), bytes, &model);
 *     itll_workspace_size(model, &workspace_bytes);
 *
 *     itll_update(model, rows, targets, num_rows);                            as often as there is something to learn
 *     itll_predict(model, rows, num_rows, means, deviations, workspace, workspace_bytes);
 *
 * Rows are (num_rows, num_features) f32, row by row; targets and means (num_rows, num_targets).
 *
 * Meaning
 *
 *   window       The newest `window` rows count; older ones leave without a trace. PCA keeps no rows and forgets none.
 *   scales       Columns are taken in standard deviations from their mean over the window, at most 8. The scales are renewed
 *                whenever twice as many rows have been learned from as at the last time. PCA only subtracts means.
 *   features     A value that is not finite counts as its column's mean, infinity as 8 standard deviations. A column that does
 *                not vary counts for nothing.
 *   targets      A row with a target that is not finite is not learned from.
 *   noise        Variance of what the features cannot tell, relative to the target's: lambda of the ridge.
 *   length_scale Of the kernel, in units of the root of num_features.
 *   no rows      Without rows every prediction is 0 and its deviation infinite.
 *
 * Bits. Options and the rows in order decide every bit, at every SIMD level and on every machine with IEEE arithmetic: there is no
 * libm but its square root, no fma, and sums have a fixed order. Compile with -ffp-contract=off, and gain from -O3. Ridge calculates
 * with rounded features (of 12 bits), whose sums of products are exact integers: a row that leaves takes away exactly what it brought. Learn from the same rows in other batches, and the results agree, but not always in their bits.
 *
 * Build. Alone, the file with ITLL_IMPLEMENTATION has kernels for its own compiler flags. On x86-64, detail/itll_baseline.c,
 * itll_avx2.c and itll_avx512.c, compiled with ITLL_X86_LEVELS and the flags that they state, let the level be chosen at run time.
 *
 * Memory and threads. Nothing is allocated: a model lies in one piece of the caller's memory, of any alignment and contents.
 * There is no global state. Any number of threads may predict from a model, each with a workspace of its own; while one changes
 * it, no other may use it. Functions refuse NULL unless their comment says otherwise.
 *
 * Options, defined before this header is included
 *
 *     ITLL_STATIC      functions are static; each including file also defines ITLL_IMPLEMENTATION
 *     ITLL_DEBUG       errors assert where they are found
 */

#ifndef ITLL_H
#define ITLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail/result.h"

#define ITLL_VERSION_MAJOR 2
#define ITLL_VERSION_MINOR 0
#define ITLL_VERSION_PATCH 0
#define ITLL_VERSION (10000 * ITLL_VERSION_MAJOR + 100 * ITLL_VERSION_MINOR + ITLL_VERSION_PATCH)
#define ITLL_VERSION_STRING "2.0.0"

/* Changes whenever a state means something else, or the same rows give other bits. */
#define ITLL_STATE_VERSION 2

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

/* ---- results and levels ------------------------------------------------------------------------------------------ */

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

/* ---- models ------------------------------------------------------------------------------------------------------ */

typedef enum { ITLL_MODEL_RIDGE = 0, ITLL_MODEL_PCA = 1, ITLL_MODEL_NUM_ENUMS } ItllModelKind;

/* PCA ignores what only RIDGE needs, but it has to be in range. */
typedef struct ItllOptions {
    ItllModelKind kind;
    uint32_t num_features; /* 1 to ITLL_MAX_FEATURES; PCA: to ITLL_MAX_PCA_FEATURES */
    uint32_t num_targets;  /* 1 to ITLL_MAX_TARGETS; PCA: components, at most num_features */
    uint32_t window;       /* RIDGE: rows; 1 to ITLL_MAX_WINDOW */
    uint32_t num_units;    /* RIDGE: random features; 1 to ITLL_MAX_UNITS, rounded up to a multiple of 32 */
    float length_scale;    /* RIDGE; 1e-3 to 1e3 */
    float noise;           /* RIDGE; 1e-6 to 1e6 */
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

/* Rows that it knows now; PCA: all that it has seen. 0 of NULL. */
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

/* ---- state ------------------------------------------------------------------------------------------------------- */

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
#define ITLL__WAVE 4095.0f /* a random feature is an integer up to this: sums of 128 products fit 32 bits */
#define ITLL__GRAM_PAIRS 64u /* pairs of rows that are added up in 32 bits */

/* detail/itll_kernels.h says what they do. */
typedef struct ItllKernels {
    void (*scale_rows)(const float*, size_t, size_t, const float*, const float*, float*);
    void (*waves)(const float*, size_t, uint32_t, const float*, const float*, size_t, float*);
    void (*dots)(const float*, size_t, const float*, size_t, uint32_t, float*);
    void (*pack)(const int16_t*, size_t, size_t, int32_t*);
    void (*add_products)(const int32_t*, size_t, double, double*);
    void (*cross)(const int16_t*, const float*, size_t, size_t, double*);
    void (*subtract_products)(const double*, uint32_t, size_t, size_t, double*);
    void (*factor)(double*, size_t, double*);
    void (*solve_lanes)(const double*, const double*, size_t, double*);
} ItllKernels;

ITLL_API const ItllKernels* itll__kernels_baseline(void);
const ItllKernels* itll__kernels_avx2(void);
const ItllKernels* itll__kernels_avx512(void);

#ifdef __cplusplus
}
#endif

#endif /* ITLL_H */

/* ================================================================================================================== */

#if defined(ITLL_IMPLEMENTATION) && !defined(ITLL_IMPLEMENTATION_INCLUDED)
#define ITLL_IMPLEMENTATION_INCLUDED

#include <math.h>
#include <string.h>

#define ITLL_KERNELS itll__kernels_baseline
#include "detail/arena.h"
#include "detail/itll_kernels.h"

#define ITLL__BLOCK 16u           /* rows that are predicted at a time: lanes of a triangular solve */
#define ITLL__LEAST_VARIATION 1e-12 /* variance of a column that varies, relative to its squared mean: what f32 can tell */

/* ---- results, levels, options ------------------------------------------------------------------------------------ */

const char* itll_result_to_string(ItllResult result) { EVO__RETURN_NAME(result, ITLL__RESULTS, "ITLL_RESULT_UNKNOWN") }

const char* itll_level_to_string(ItllLevel level) {
    switch (level) {
        case ITLL_LEVEL_BASELINE: return "baseline";
        case ITLL_LEVEL_AVX2: return "avx2";
        case ITLL_LEVEL_AVX512: return "avx512";
        case ITLL_LEVEL_NUM_ENUMS: break;
    }
    return "unknown";
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
    if (itll_level_is_available(ITLL_LEVEL_AVX2)) return ITLL_LEVEL_AVX2;
    return ITLL_LEVEL_BASELINE;
}

ItllOptions itll_default_options(ItllModelKind kind, uint32_t num_features, uint32_t num_targets) {
    ItllOptions options;
    memset(&options, 0, sizeof options);
    options.kind = kind;
    options.num_features = num_features;
    options.num_targets = num_targets;
    options.window = 2000;
    options.num_units = 256;
    options.length_scale = 1.0f;
    options.noise = 0.1f;
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

/* ---- random numbers: SplitMix64 as a hash of a counter ------------------------------------------------------------ */

static uint64_t itll__mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t itll__random(uint64_t seed, uint64_t stream, uint64_t counter) {
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    return itll__mix(itll__mix(itll__mix(seed + golden) + stream * golden) + (counter + 1) * golden);
}

/* In [0, 1). */
static double itll__uniform(uint64_t bits) { return (double)(bits >> 11) * (1.0 / 9007199254740992.0); }

/* The natural logarithm of a number in (0, 1], by its atanh series; error 1e-15. */
static double itll__log(double x) {
    double exponent = 0.0, term, sum = 0.0;
    while (x < 0.7071067811865476) {
        x *= 2.0;
        exponent -= 1.0;
    }
    const double s = (x - 1.0) / (x + 1.0);
    term = s;
    for (int n = 1; n < 24; n += 2) {
        sum += term / n;
        term *= s * s;
    }
    return 2.0 * sum + exponent * 0.6931471805599453;
}

/* cos(2 pi t) for t in [0, 1), by the sine's Taylor series; error 1e-14. */
static double itll__cos_turns(double t) {
    const double turns = t > 0.5 ? 1.0 - t : t, x = (0.25 - turns) * 6.283185307179586;
    double term = x, sum = 0.0;
    for (int n = 1; n < 22; n += 2) {
        sum += term;
        term *= -(x * x) / ((n + 1) * (n + 2));
    }
    return sum;
}

/* A standard normal number (Box & Muller 1958). */
static double itll__normal(uint64_t seed, uint64_t stream, uint64_t counter) {
    const double radius = 1.0 - itll__uniform(itll__random(seed, stream, 2 * counter));
    return sqrt(-2.0 * itll__log(radius)) * itll__cos_turns(itll__uniform(itll__random(seed, stream, 2 * counter + 1)));
}

enum { ITLL__FREQUENCIES, ITLL__PHASES };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct ItllModel {
    const ItllKernels* kernels;
    ItllOptions options;
    size_t num_units;    /* padded random features; PCA: padded features */
    uint64_t num_seen;   /* rows that were learned from */
    float* weights;      /* [num_targets][num_units]; PCA: components */
    double* gram;        /* [num_units][num_units], exact integers; PCA: minus the sum of products */
    double* factor;      /* [num_units][num_units]; PCA: the covariance */
    double* diagonal;    /* inverses of the factor's; PCA: variances along rows of the covariance */
    /* RIDGE */
    size_t first, count; /* the window, which moves through twice its length */
    uint64_t num_scaled; /* num_seen when the scales were made */
    float* x;            /* [2 window][num_features] as given */
    float* y;            /* [2 window][num_targets] */
    float* means;        /* of features */
    float* inverses;     /* of their standard deviations; 0 for a column that does not vary */
    double* y_means;     /* and standard deviations of targets */
    double* y_scales;
    double* variances;   /* of the noise, of targets with variance 1 */
    float* scaled;       /* some rows in standard deviations */
    float* column;       /* a target's column */
    float* frequencies;  /* [num_features][num_units] */
    float* phases;
    float* values;       /* waves of some rows */
    int16_t* waves;      /* [2 window][num_units] */
    int32_t* packed;     /* some rows */
    double* right_side;
    /* PCA */
    double* shift;       /* what is subtracted from rows before they are added up */
    double* totals;
    double* deviations;  /* some rows */
};

static float* itll__take_f32(EvoArena* arena, size_t count) { return (float*)evo__take(arena, count, sizeof(float)); }
static double* itll__take_f64(EvoArena* arena, size_t count) { return (double*)evo__take(arena, count, sizeof(double)); }

static void itll__lay_model(EvoArena* arena, const ItllOptions* options, ItllModel* model) {
    const bool is_pca = options->kind == ITLL_MODEL_PCA;
    const size_t features = options->num_features, targets = options->num_targets, rows = 2 * (size_t)options->window;
    memset(model, 0, sizeof *model);
    model->options = *options;
    model->options.num_units = (uint32_t)itll__round_up(options->num_units, 32);
    const size_t units = is_pca ? itll__round_up(features, 32) : model->options.num_units;
    model->num_units = units;
    model->weights = itll__take_f32(arena, targets * units);
    model->gram = itll__take_f64(arena, units * units);
    model->factor = itll__take_f64(arena, units * units);
    model->diagonal = itll__take_f64(arena, units);
    if (is_pca) {
        model->shift = itll__take_f64(arena, units);
        model->totals = itll__take_f64(arena, units);
        model->deviations = itll__take_f64(arena, ITLL__BLOCK * units);
        return;
    }
    model->x = itll__take_f32(arena, rows * features);
    model->y = itll__take_f32(arena, rows * targets);
    model->means = itll__take_f32(arena, features);
    model->inverses = itll__take_f32(arena, features);
    model->y_means = itll__take_f64(arena, targets);
    model->y_scales = itll__take_f64(arena, targets);
    model->variances = itll__take_f64(arena, targets);
    model->scaled = itll__take_f32(arena, 2 * ITLL__GRAM_PAIRS * features);
    model->column = itll__take_f32(arena, options->window);
    model->frequencies = itll__take_f32(arena, features * units);
    model->phases = itll__take_f32(arena, units);
    model->values = itll__take_f32(arena, 2 * ITLL__GRAM_PAIRS * units);
    model->waves = (int16_t*)evo__take(arena, rows * units, sizeof(int16_t));
    model->packed = (int32_t*)evo__take(arena, ITLL__GRAM_PAIRS * units, sizeof(int32_t));
    model->right_side = itll__take_f64(arena, units);
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

/* Random features: frequencies of the kernel exp(-|a - b|^2 / 2 l^2), in turns, and phases. */
static void itll__draw(ItllModel* model) {
    const size_t features = model->options.num_features, units = model->num_units;
    const uint64_t seed = model->options.seed;
    const double scale = 1.0 / ((double)model->options.length_scale * sqrt((double)features) * 6.283185307179586);
    for (size_t i = 0; i < features * units; i++)
        model->frequencies[i] = (float)(itll__normal(seed, ITLL__FREQUENCIES, i) * scale);
    for (size_t i = 0; i < units; i++) model->phases[i] = (float)(itll__uniform(itll__random(seed, ITLL__PHASES, i)) - 0.5);
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
    if (options->kind == ITLL_MODEL_RIDGE) itll__draw(model);
    *model_out = model;
    return itll_reset(model);
}

const ItllOptions* itll_model_options(const ItllModel* model) { return model == NULL ? NULL : &model->options; }

size_t itll_model_num_rows(const ItllModel* model) {
    if (model == NULL) return 0;
    return model->options.kind == ITLL_MODEL_PCA ? (size_t)model->num_seen : model->count;
}

ItllResult itll_reset(ItllModel* model) {
    if (model == NULL) return ITLL__ERROR(INVALID_VALUE);
    const size_t units = model->num_units, features = model->options.num_features, targets = model->options.num_targets;
    model->first = model->count = 0;
    model->num_seen = model->num_scaled = 0;
    memset(model->gram, 0, units * units * sizeof(double));
    memset(model->weights, 0, targets * units * sizeof(float));
    if (model->options.kind == ITLL_MODEL_RIDGE) {
        memset(model->means, 0, features * sizeof(float));
        memset(model->inverses, 0, features * sizeof(float));
    } else {
        memset(model->shift, 0, units * sizeof(double));
        memset(model->totals, 0, units * sizeof(double));
    }
    return ITLL_SUCCESS;
}

/* ---- scales ------------------------------------------------------------------------------------------------------ */

static bool itll__is_finite(float number) { return number - number == 0.0f; }

/* Mean and standard deviation of the finite values of a column; 0 and 1 without any. */
static void itll__moments_of(const float* values, size_t stride, size_t num_rows, double* mean_out, double* deviation_out) {
    double sum = 0.0, squares = 0.0, num_finite = 0.0;
    for (size_t row = 0; row < num_rows; row++) {
        if (!itll__is_finite(values[row * stride])) continue;
        sum += (double)values[row * stride];
        num_finite += 1.0;
    }
    const double mean = num_finite > 0.0 ? sum / num_finite : 0.0;
    for (size_t row = 0; row < num_rows; row++) {
        const double difference = (double)values[row * stride] - mean;
        if (itll__is_finite(values[row * stride])) squares += difference * difference;
    }
    const double variance = num_finite > 0.0 ? squares / num_finite : 0.0;
    *mean_out = mean;
    *deviation_out = variance > ITLL__LEAST_VARIATION * (mean * mean) ? sqrt(variance) : 0.0;
}

/* Means and deviations of features over the window. */
static void itll__rescale(ItllModel* model) {
    const size_t features = model->options.num_features;
    for (size_t f = 0; f < features; f++) {
        double mean, deviation;
        itll__moments_of(model->x + model->first * features + f, features, model->count, &mean, &deviation);
        model->means[f] = (float)mean;
        model->inverses[f] = deviation > 1e-37 ? (float)(1.0 / deviation) : 0.0f;
    }
    model->num_scaled = model->num_seen;
}

/* Means and deviations of targets over the window; a target that does not vary has a deviation of 0. */
static void itll__rescale_targets(ItllModel* model) {
    const size_t targets = model->options.num_targets;
    for (size_t t = 0; t < targets; t++) {
        const float* column = model->y + model->first * targets + t;
        itll__moments_of(column, targets, model->count, &model->y_means[t], &model->y_scales[t]);
    }
}

/* A target in standard deviations. */
static float itll__scaled_target(const ItllModel* model, size_t row, size_t target) {
    const double scale = model->y_scales[target];
    const double difference = (double)model->y[row * model->options.num_targets + target] - model->y_means[target];
    return scale > 0.0 ? (float)(difference / scale) : 0.0f;
}

static void itll__scale(const ItllModel* model, const float* rows, size_t num_rows, float* scaled) {
    model->kernels->scale_rows(rows, num_rows, model->options.num_features, model->means, model->inverses, scaled);
}

/* ---- linear systems ---------------------------------------------------------------------------------------------- */

/* The sum of products from `first` on; the size is a multiple of 8. */
static double itll__dot(const double* a, const double* b, size_t first, size_t size) {
    double parts[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (; first < size && first % 8 != 0; first++) parts[first % 8] += a[first] * b[first];
    for (; first < size; first += 8)
        for (size_t lane = 0; lane < 8; lane++) parts[lane] += a[first + lane] * b[first + lane];
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

/* Solves U'U w = b in place. Returns b'w. */
static double itll__solve(const double* factor, const double* inverses, size_t size, double* b) {
    double product = 0.0;
    for (size_t k = 0; k < size; k++) {
        const double* u = factor + k * size;
        const double v = b[k] * inverses[k];
        b[k] = v;
        product += v * v;
        for (size_t j = k + 1; j < size; j++) b[j] -= u[j] * v;
    }
    for (size_t k = size; k-- > 0;) {
        const double* u = factor + k * size;
        b[k] = (b[k] - itll__dot(u, b, k + 1, size)) * inverses[k];
    }
    return product;
}

/* ---- ridge ------------------------------------------------------------------------------------------------------- */

/* Waves of rows [begin, end) of the window's array. */
static void itll__ridge_waves(ItllModel* model, size_t begin, size_t end) {
    const size_t features = model->options.num_features, units = model->num_units;
    while (begin < end) {
        const size_t count = end - begin < 2 * ITLL__GRAM_PAIRS ? end - begin : 2 * ITLL__GRAM_PAIRS;
        itll__scale(model, model->x + begin * features, count, model->scaled);
        model->kernels->waves(model->scaled, count, (uint32_t)features, model->frequencies, model->phases, units, model->values);
        for (size_t i = 0; i < count * units; i++) model->waves[begin * units + i] = (int16_t)model->values[i];
        begin += count;
    }
}

/* Adds rows to the matrix of products, or takes them out. */
static void itll__ridge_add(ItllModel* model, size_t begin, size_t end, double sign) {
    const size_t units = model->num_units;
    while (begin < end) {
        const size_t count = end - begin < 2 * ITLL__GRAM_PAIRS ? end - begin : 2 * ITLL__GRAM_PAIRS;
        model->kernels->pack(model->waves + begin * units, count, units, model->packed);
        model->kernels->add_products(model->packed, units, sign, model->gram);
        begin += count;
    }
}

/* With Q the waves as integers and y in standard deviations: (Q'Q + lambda) w = Q'y. The features are sqrt(2 / D) q /
   ITLL__WAVE, which lambda takes up. The noise's variance is the one of the greatest evidence. */
static void itll__ridge_solve(ItllModel* model) {
    const size_t units = model->num_units, count = model->count, targets = model->options.num_targets;
    const double wave = (double)ITLL__WAVE;
    const double lambda = (double)model->options.noise * (double)units * 0.5 * wave * wave;
    memcpy(model->factor, model->gram, units * units * sizeof(double));
    for (size_t i = 0; i < units; i++) model->factor[i * units + i] += lambda;
    model->kernels->factor(model->factor, units, model->diagonal);
    itll__rescale_targets(model);
    for (size_t t = 0; t < targets; t++) {
        double squares = 0.0;
        for (size_t row = 0; row < count; row++) {
            const float y = itll__scaled_target(model, model->first + row, t);
            model->column[row] = y;
            squares += (double)y * (double)y;
        }
        model->kernels->cross(model->waves + model->first * units, model->column, count, units, model->right_side);
        const double explained = itll__solve(model->factor, model->diagonal, units, model->right_side);
        for (size_t i = 0; i < units; i++) model->weights[t * units + i] = (float)model->right_side[i];
        const double unexplained = squares - explained; /* which rounding may make negative */
        model->variances[t] = unexplained > 0.0 ? unexplained / (double)count : 0.0;
    }
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
                const double zeta = (bb - aa) / (2.0 * ab);
                const double size_of_zeta = zeta < 0.0 ? -zeta : zeta;
                const double tangent = (zeta < 0.0 ? -1.0 : 1.0) / (size_of_zeta + sqrt(1.0 + zeta * zeta));
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

static void itll__pca_solve(ItllModel* model) {
    const size_t features = model->options.num_features, units = model->num_units;
    const double num_rows = (double)model->num_seen;
    memset(model->weights, 0, model->options.num_targets * units * sizeof(float));
    if (model->num_seen < 2) return;
    for (size_t i = 0; i < features; i++) {
        for (size_t j = 0; j < units; j++) {
            const double product = i <= j ? model->gram[i * units + j] : model->gram[j * units + i];
            model->factor[i * units + j] = (-product - model->totals[i] * model->totals[j] / num_rows) / (num_rows - 1.0);
        }
    }
    double total = 0.0;
    for (size_t i = 0; i < features; i++) total += model->factor[i * units + i];
    itll__pca_rotate(model->factor, features, units);
    for (size_t i = 0; i < features; i++)
        model->diagonal[i] = sqrt(itll__dot(model->factor + i * units, model->factor + i * units, 0, units));
    for (size_t t = 0; t < model->options.num_targets; t++) {
        size_t best = 0, greatest = 0;
        for (size_t i = 1; i < features; i++)
            if (model->diagonal[i] > model->diagonal[best]) best = i;
        const double* row = model->factor + best * units;
        const double variance = model->diagonal[best];
        model->diagonal[best] = -1.0;
        if (!(variance > 1e-12 * total)) continue; /* rounding alone */
        for (size_t k = 1; k < features; k++)
            if (row[k] * row[k] > row[greatest] * row[greatest]) greatest = k;
        const double scale = (row[greatest] < 0.0 ? -1.0 : 1.0) / variance;
        for (size_t k = 0; k < features; k++) model->weights[t * units + k] = (float)(row[k] * scale);
    }
}

static double itll__pca_difference(const ItllModel* model, float value, size_t feature) {
    const double difference = (double)value - model->shift[feature], most = 1e18; /* whose fourth powers can be added up */
    if (!itll__is_finite(value)) return 0.0;
    return difference > most ? most : (difference < -most ? -most : difference);
}

static void itll__pca_update(ItllModel* model, const float* rows, size_t num_rows) {
    const size_t features = model->options.num_features, units = model->num_units;
    if (model->num_seen == 0) {
        for (size_t f = 0; f < features; f++) {
            double deviation;
            itll__moments_of(rows + f, features, num_rows, &model->shift[f], &deviation);
        }
    }
    for (size_t first = 0; first < num_rows; first += ITLL__BLOCK) {
        const size_t count = num_rows - first < ITLL__BLOCK ? num_rows - first : ITLL__BLOCK;
        for (size_t i = 0; i < count; i++) {
            double* row = model->deviations + i * units;
            for (size_t f = 0; f < features; f++) {
                row[f] = itll__pca_difference(model, rows[(first + i) * features + f], f);
                model->totals[f] += row[f];
            }
            for (size_t f = features; f < units; f++) row[f] = 0.0;
        }
        model->kernels->subtract_products(model->deviations, (uint32_t)count, 0, units, model->gram);
    }
    model->num_seen += num_rows;
    itll__pca_solve(model);
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

/* Drops the oldest rows, so that `num_rows` more have room in the window and in memory. */
static void itll__make_room(ItllModel* model, size_t num_rows) {
    const size_t features = model->options.num_features, targets = model->options.num_targets, window = model->options.window;
    const size_t units = model->num_units, num_leaving = model->count + num_rows > window ? model->count + num_rows - window : 0;
    itll__ridge_add(model, model->first, model->first + num_leaving, -1.0);
    model->first += num_leaving;
    model->count -= num_leaving;
    if (model->first + model->count + num_rows <= 2 * window) return;
    memmove(model->x, model->x + model->first * features, model->count * features * sizeof(float));
    memmove(model->y, model->y + model->first * targets, model->count * targets * sizeof(float));
    memmove(model->waves, model->waves + model->first * units, model->count * units * sizeof(int16_t));
    model->first = 0;
}

/* Enters rows [begin, end) of the window's array, the newest. */
static void itll__enter(ItllModel* model, size_t begin, size_t end) {
    itll__ridge_waves(model, begin, end);
    itll__ridge_add(model, begin, end, 1.0);
}

/* The same for all rows of the window, with the scales as they are now. */
static void itll__enter_all(ItllModel* model) {
    memset(model->gram, 0, model->num_units * model->num_units * sizeof(double));
    itll__enter(model, model->first, model->first + model->count);
}

static bool itll__has_targets(const ItllModel* model, const float* targets) {
    for (size_t t = 0; t < model->options.num_targets; t++)
        if (!itll__is_finite(targets[t])) return false;
    return true;
}

ItllResult itll_update(ItllModel* model, const float* rows, const float* targets, size_t num_rows) {
    if (model == NULL || (rows == NULL && num_rows > 0)) return ITLL__ERROR(INVALID_VALUE);
    if (num_rows == 0) return ITLL_SUCCESS;
    if (model->options.kind == ITLL_MODEL_PCA) {
        itll__pca_update(model, rows, num_rows);
        return ITLL_SUCCESS;
    }
    if (targets == NULL) return ITLL__ERROR(INVALID_VALUE);
    const size_t num_features = model->options.num_features, num_targets = model->options.num_targets;
    size_t num_valid = 0, num_skipped = 0;
    for (size_t row = 0; row < num_rows; row++) num_valid += (size_t)itll__has_targets(model, targets + row * num_targets);
    if (num_valid == 0) return ITLL_SUCCESS;
    /* Rows that would leave with this batch do not enter. */
    const size_t num_entering = num_valid < model->options.window ? num_valid : model->options.window;
    itll__make_room(model, num_entering);
    const size_t begin = model->first + model->count;
    size_t end = begin;
    for (size_t row = 0; row < num_rows; row++) {
        if (!itll__has_targets(model, targets + row * num_targets)) continue;
        if (num_skipped++ < num_valid - num_entering) continue;
        memcpy(model->x + end * num_features, rows + row * num_features, num_features * sizeof(float));
        memcpy(model->y + end * num_targets, targets + row * num_targets, num_targets * sizeof(float));
        end++;
    }
    model->count += num_entering;
    model->num_seen += num_valid;
    if (model->num_seen >= 2 * model->num_scaled) {
        itll__rescale(model);
        itll__enter_all(model);
    } else {
        itll__enter(model, begin, end);
    }
    itll__ridge_solve(model);
    return ITLL_SUCCESS;
}

/* ---- prediction -------------------------------------------------------------------------------------------------- */

typedef struct ItllWorkspace {
    float* scaled; /* [ITLL__BLOCK][num_features, PCA: padded] */
    float* values; /* RIDGE: [ITLL__BLOCK][num_units] */
    double* lanes; /* RIDGE: [num_units][ITLL__BLOCK] */
} ItllWorkspace;

static ItllWorkspace itll__lay_workspace(EvoArena* arena, const ItllModel* model) {
    ItllWorkspace workspace = {NULL, NULL, NULL};
    const bool is_pca = model->options.kind == ITLL_MODEL_PCA;
    workspace.scaled = itll__take_f32(arena, ITLL__BLOCK * (is_pca ? model->num_units : model->options.num_features));
    if (is_pca) return workspace;
    workspace.values = itll__take_f32(arena, ITLL__BLOCK * model->num_units);
    workspace.lanes = itll__take_f64(arena, ITLL__BLOCK * model->num_units);
    return workspace;
}

ItllResult itll_workspace_size(const ItllModel* model, size_t* bytes_out) {
    if (model == NULL || bytes_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    (void)itll__lay_workspace(&arena, model);
    *bytes_out = arena.num_bytes;
    return ITLL_SUCCESS;
}

/* The nearest f32 that is finite. */
static float itll__finite(double number) {
    const double most = 3.4028234663852886e38;
    return (float)(number < most ? (number > -most ? number : -most) : most);
}

/* From v of U'v = values: |v|^2 is what the rows leave unknown, relative to the noise. */
static void itll__deviations(const ItllModel* model, const ItllWorkspace* workspace, size_t num_rows, float* deviations_out) {
    const size_t units = model->num_units, targets = model->options.num_targets;
    double squares[ITLL__BLOCK];
    for (size_t i = 0; i < units; i++)
        for (size_t row = 0; row < ITLL__BLOCK; row++)
            workspace->lanes[i * ITLL__BLOCK + row] = row < num_rows ? (double)workspace->values[row * units + i] : 0.0;
    model->kernels->solve_lanes(model->factor, model->diagonal, units, workspace->lanes);
    for (size_t row = 0; row < ITLL__BLOCK; row++) squares[row] = 0.0;
    for (size_t i = 0; i < units; i++) {
        const double* v = workspace->lanes + i * ITLL__BLOCK;
        for (size_t row = 0; row < ITLL__BLOCK; row++) squares[row] += v[row] * v[row];
    }
    for (size_t row = 0; row < num_rows; row++) {
        for (size_t t = 0; t < targets; t++) {
            deviations_out[row * targets + t] =
                itll__finite(model->y_scales[t] * sqrt(model->variances[t] * (1.0 + squares[row])));
        }
    }
}

static void itll__predict_targets(
    const ItllModel* model, const ItllWorkspace* workspace, const float* rows, size_t num_rows, float* means_out,
    float* deviations_out
) {
    const uint32_t features = model->options.num_features, targets = model->options.num_targets;
    const size_t units = model->num_units;
    itll__scale(model, rows, num_rows, workspace->scaled);
    model->kernels->waves(workspace->scaled, num_rows, features, model->frequencies, model->phases, units, workspace->values);
    model->kernels->dots(workspace->values, num_rows, model->weights, units, targets, means_out);
    for (size_t i = 0; i < num_rows * targets; i++)
        means_out[i] = itll__finite(model->y_means[i % targets] + model->y_scales[i % targets] * (double)means_out[i]);
    if (deviations_out != NULL) itll__deviations(model, workspace, num_rows, deviations_out);
}

static void itll__predict_components(
    const ItllModel* model, const ItllWorkspace* workspace, const float* rows, size_t num_rows, float* means_out
) {
    const size_t features = model->options.num_features, units = model->num_units;
    const double num_seen = (double)model->num_seen;
    for (size_t row = 0; row < num_rows; row++) {
        for (size_t f = 0; f < units; f++) {
            float* to = &workspace->scaled[row * units + f];
            *to = 0.0f;
            if (f >= features || !itll__is_finite(rows[row * features + f])) continue;
            *to = (float)(itll__pca_difference(model, rows[row * features + f], f) - model->totals[f] / num_seen);
        }
    }
    model->kernels->dots(workspace->scaled, num_rows, model->weights, units, model->options.num_targets, means_out);
}

ItllResult itll_predict(
    const ItllModel* model, const float* rows, size_t num_rows, float* means_out, float* deviations_out, void* workspace,
    size_t workspace_bytes
) {
    size_t num_bytes;
    if (model == NULL || workspace == NULL || (num_rows > 0 && (rows == NULL || means_out == NULL)))
        return ITLL__ERROR(INVALID_VALUE);
    const bool is_pca = model->options.kind == ITLL_MODEL_PCA;
    if (deviations_out != NULL && is_pca) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_workspace_size(model, &num_bytes);
    if (workspace_bytes < num_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    EvoArena arena = evo__arena(workspace, workspace_bytes);
    const ItllWorkspace work = itll__lay_workspace(&arena, model);
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    for (size_t first = 0; first < num_rows; first += ITLL__BLOCK) {
        const size_t count = num_rows - first < ITLL__BLOCK ? num_rows - first : ITLL__BLOCK;
        const float* block = rows + first * features;
        float* means = means_out + first * targets;
        float* deviations = deviations_out == NULL ? NULL : deviations_out + first * targets;
        if (itll_model_num_rows(model) == 0) {
            for (size_t i = 0; i < count * targets; i++) means[i] = 0.0f;
            for (size_t i = 0; deviations != NULL && i < count * targets; i++) deviations[i] = (float)INFINITY;
        } else if (is_pca) {
            itll__predict_components(model, &work, block, count, means);
        } else {
            itll__predict_targets(model, &work, block, count, means, deviations);
        }
    }
    return ITLL_SUCCESS;
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

#define ITLL__MAGIC UINT64_C(0x4c4c54496f7665) /* "evoITLL" */

/* What a state begins with: from `kind` to `seed` the options, then counts. */
typedef struct ItllHeader {
    uint64_t magic, version;
    uint32_t kind, num_features, num_targets, window, num_units;
    float length_scale, noise;
    uint32_t zero;
    uint64_t seed, count, num_seen, num_scaled;
} ItllHeader;

/* Moves values between a model and a state, in whichever direction; both NULL: only counts. */
typedef struct ItllStream {
    char* to;
    const char* from;
    size_t num_bytes;
} ItllStream;

static void itll__move(ItllStream* stream, void* values, size_t num_bytes) {
    if (stream->to != NULL) memcpy(stream->to + stream->num_bytes, values, num_bytes);
    if (stream->from != NULL) memcpy(values, stream->from + stream->num_bytes, num_bytes);
    stream->num_bytes += num_bytes;
}

static ItllHeader itll__header(const ItllModel* model) {
    const ItllOptions* options = &model->options;
    ItllHeader header;
    memset(&header, 0, sizeof header);
    header.magic = ITLL__MAGIC;
    header.version = ITLL_STATE_VERSION;
    header.kind = (uint32_t)options->kind;
    header.num_features = options->num_features;
    header.num_targets = options->num_targets;
    header.window = options->window;
    header.num_units = options->num_units;
    header.length_scale = options->length_scale;
    header.noise = options->noise;
    header.seed = options->seed;
    header.count = model->count;
    header.num_seen = model->num_seen;
    header.num_scaled = model->num_scaled;
    return header;
}

/* What comes after the header. */
static void itll__move_arrays(ItllModel* model, ItllStream* stream) {
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    if (model->options.kind == ITLL_MODEL_PCA) {
        itll__move(stream, model->shift, features * sizeof(double));
        itll__move(stream, model->totals, features * sizeof(double));
        for (size_t i = 0; i < features; i++)
            itll__move(stream, model->gram + i * model->num_units + i, (features - i) * sizeof(double));
        return;
    }
    itll__move(stream, model->means, features * sizeof(float));
    itll__move(stream, model->inverses, features * sizeof(float));
    itll__move(stream, model->x + model->first * features, model->count * features * sizeof(float));
    itll__move(stream, model->y + model->first * targets, model->count * targets * sizeof(float));
}

ItllResult itll_state_size(const ItllModel* model, size_t* bytes_out) {
    if (model == NULL || bytes_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    ItllModel copy = *model;
    ItllStream stream = {NULL, NULL, sizeof(ItllHeader)};
    itll__move_arrays(&copy, &stream);
    *bytes_out = stream.num_bytes;
    return ITLL_SUCCESS;
}

ItllResult itll_save(const ItllModel* model, void* state, size_t state_bytes) {
    size_t num_bytes;
    if (model == NULL || state == NULL) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_state_size(model, &num_bytes);
    if (state_bytes < num_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    ItllModel copy = *model;
    ItllStream stream = {(char*)state, NULL, 0};
    ItllHeader header = itll__header(model);
    itll__move(&stream, &header, sizeof header);
    itll__move_arrays(&copy, &stream);
    return ITLL_SUCCESS;
}

/* Whether a state begins with a header whose options are valid. */
static bool itll__read_header(const void* state, size_t state_bytes, ItllHeader* header, ItllOptions* options) {
    if (state_bytes < sizeof *header) return false;
    memcpy(header, state, sizeof *header);
    if (header->magic != ITLL__MAGIC || header->version != ITLL_STATE_VERSION || header->kind >= ITLL_MODEL_NUM_ENUMS)
        return false;
    *options = itll_default_options((ItllModelKind)header->kind, header->num_features, header->num_targets);
    options->window = header->window;
    options->num_units = header->num_units;
    options->length_scale = header->length_scale;
    options->noise = header->noise;
    options->seed = header->seed;
    return itll__is_valid(options);
}

ItllResult itll_state_options(const void* state, size_t state_bytes, ItllOptions* options_out) {
    ItllHeader header;
    ItllOptions options;
    if (state == NULL || options_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    if (!itll__read_header(state, state_bytes, &header, &options)) return ITLL__ERROR(INVALID_STATE);
    *options_out = options;
    return ITLL_SUCCESS;
}

/* Whether the counts of a state agree with each other. */
static bool itll__are_counts_valid(const ItllOptions* options, const ItllHeader* header) {
    const uint64_t count = header->count, seen = header->num_seen, scaled = header->num_scaled;
    if (seen > UINT64_MAX / 4) return false;
    if (options->kind == ITLL_MODEL_PCA) return count == 0 && scaled == 0;
    if (count == 0) return seen == 0 && scaled == 0;
    return count <= options->window && count <= seen && scaled <= seen;
}

static bool itll__are_values_valid(const ItllModel* model) {
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    for (size_t f = 0; f < features; f++)
        if (!itll__is_finite(model->means[f]) || !(model->inverses[f] >= 0.0f) || !itll__is_finite(model->inverses[f]))
            return false;
    for (size_t i = 0; i < model->count; i++)
        if (!itll__has_targets(model, model->y + (model->first + i) * targets)) return false;
    return true;
}

ItllResult itll_load(ItllModel* model, const void* state, size_t state_bytes) {
    ItllHeader header;
    ItllOptions options;
    size_t num_bytes;
    if (model == NULL || state == NULL) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_reset(model);
    if (!itll__read_header(state, state_bytes, &header, &options)) return ITLL__ERROR(INVALID_STATE);
    const ItllHeader own = itll__header(model);
    if (memcmp(&header, &own, offsetof(ItllHeader, count)) != 0) return ITLL__ERROR(OTHER_OPTIONS);
    if (!itll__are_counts_valid(&options, &header)) return ITLL__ERROR(INVALID_STATE);
    model->count = (size_t)header.count;
    (void)itll_state_size(model, &num_bytes);
    if (state_bytes != num_bytes) {
        (void)itll_reset(model);
        return ITLL__ERROR(INVALID_STATE);
    }
    model->num_seen = header.num_seen;
    model->num_scaled = header.num_scaled;
    ItllStream stream = {NULL, (const char*)state, sizeof header};
    itll__move_arrays(model, &stream);
    if (options.kind == ITLL_MODEL_PCA) {
        itll__pca_solve(model);
        return ITLL_SUCCESS;
    }
    if (!itll__are_values_valid(model)) {
        (void)itll_reset(model);
        return ITLL__ERROR(INVALID_STATE);
    }
    if (model->count > 0) {
        itll__enter_all(model);
        itll__ridge_solve(model);
    }
    return ITLL_SUCCESS;
}

#endif /* ITLL_IMPLEMENTATION */
