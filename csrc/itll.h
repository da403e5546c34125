/*
 * itll.h - in-the-loop learning: small models that learn while a search runs, in microseconds.
 *
 * Made for some thousand rows, tens to hundreds of columns, and predictions of ten thousand rows at once. A model learns from rows as
 * they come, remembers the newest of them, predicts, and says how sure it is.
 *
 *   ITLL_MODEL_RIDGE   ridge regression on random Fourier features (Rahimi & Recht 2007). Rows come and go by exact rank-one
 *                      updates. Its uncertainty is that of Bayesian linear regression.
 *   ITLL_MODEL_KNN     the mean of the nearest neighbours, weighted by their inverse distances, and their spread
 *   ITLL_MODEL_MLP     a perceptron with one hidden layer of tanh, trained by Adam (Kingma & Ba 2015). It has no uncertainty.
 *   ITLL_MODEL_GP      a Gaussian process with a squared exponential kernel, on at most ITLL_MAX_GP_ROWS rows: what SAIL searches
 *                      with (Gaier, Asteroth & Mouret 2018)
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
 * libm but its square root, no fma, and sums have a fixed order. Compile with -ffp-contract=off, and gain from -O3. Ridge and neighbours
 * calculate with rounded features (of 12 bits), whose sums of products are exact integers: a row that leaves takes away exactly
 * what it brought. Learn from the same rows in other batches, and the results agree, but not always in their bits.
 *
 * Build. Alone, the file with ITLL_IMPLEMENTATION has kernels for its own compiler flags. On x86-64, detail/itll_baseline.c,
 * itll_avx2.c and itll_avx512.c, compiled with ITLL_X86_LEVELS and the flags that they state, let the level be chosen at run time.
 *
 * Memory and threads. Nothing is allocated: a model lies in one piece of the caller's memory, of any alignment and contents.
 * There is no global state. Any number of threads may predict from a model, each with a workspace of its own; while one changes
 * it, no other may use it. No pointer may be NULL unless its comment says so.
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

#define ITLL_VERSION_MAJOR 1
#define ITLL_VERSION_MINOR 0
#define ITLL_VERSION_PATCH 0
#define ITLL_VERSION (10000 * ITLL_VERSION_MAJOR + 100 * ITLL_VERSION_MINOR + ITLL_VERSION_PATCH)
#define ITLL_VERSION_STRING "1.0.0"

/* Changes whenever a state means something else, or the same rows give other bits. */
#define ITLL_STATE_VERSION 1

#define ITLL_MAX_FEATURES 4096u
#define ITLL_MAX_TARGETS 64u
#define ITLL_MAX_WINDOW 1048576u
#define ITLL_MAX_UNITS 4096u
#define ITLL_MAX_NEIGHBOURS 32u
#define ITLL_MAX_GP_ROWS 1024u
#define ITLL_MAX_PCA_FEATURES 512u

/* Before each declaration. It sets the linkage of the definition too. */
#if !defined(ITLL_STATIC)
#define ITLL_API
#elif defined(__GNUC__)
#define ITLL_API static __attribute__((unused))
#else
#define ITLL_API static
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results and levels ------------------------------------------------------------------------------------------ */

typedef enum {
    ITLL_SUCCESS = 0,
    ITLL_ERROR_INVALID_VALUE = 1,       /* NULL, an option out of range, deviations of a model that has none */
    ITLL_ERROR_INSUFFICIENT_MEMORY = 2, /* less memory than the size query returned */
    ITLL_ERROR_NO_LEVEL = 3,            /* a SIMD level that this build or this CPU lacks */
    ITLL_ERROR_INVALID_STATE = 4,       /* bytes that are no state, of another version, or cut off */
    ITLL_ERROR_OTHER_OPTIONS = 5,       /* the state of a model with other options */
    ITLL_RESULT_NUM_ENUMS
} ItllResult;

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

typedef enum {
    ITLL_MODEL_RIDGE = 0,
    ITLL_MODEL_KNN = 1,
    ITLL_MODEL_MLP = 2,
    ITLL_MODEL_GP = 3,
    ITLL_MODEL_PCA = 4,
    ITLL_MODEL_NUM_ENUMS
} ItllModelKind;

/* What a model does not need is ignored, but has to be in range. */
typedef struct ItllOptions {
    ItllModelKind kind;
    uint32_t num_features;   /* 1 to ITLL_MAX_FEATURES; PCA: to ITLL_MAX_PCA_FEATURES */
    uint32_t num_targets;    /* 1 to ITLL_MAX_TARGETS; PCA: components, at most num_features */
    uint32_t window;         /* rows; 1 to ITLL_MAX_WINDOW, GP: to ITLL_MAX_GP_ROWS */
    uint32_t num_units; /* RIDGE: random features, MLP: hidden units; 1 to ITLL_MAX_UNITS, rounded up to a multiple of 32 */
    uint32_t num_neighbours; /* KNN; 1 to ITLL_MAX_NEIGHBOURS */
    uint32_t num_visits; /* MLP: rows of the window that it is trained on for each row that comes; at least 1 */
    float length_scale; /* RIDGE, GP; 1e-3 to 1e3 */
    float noise; /* RIDGE, GP; 1e-6 to 1e6 */
    float learning_rate; /* MLP; 1e-8 to 1 */
    uint64_t seed; /* RIDGE: of its features, MLP: of its first weights and of the order of rows */
} ItllOptions;

/* A window of 2,000 rows (GP: 1,000), 256 random features or 32 hidden units, 5 neighbours, 32 visits; length scale 1, noise 0.1 (GP:
   0.01), learning rate 0.003, seed 0. */
ITLL_API ItllOptions itll_default_options(ItllModelKind kind, uint32_t num_features, uint32_t num_targets);

typedef struct ItllModel ItllModel;

ITLL_API ItllResult itll_model_size(const ItllOptions* options, size_t* bytes_out);

ITLL_API ItllResult
itll_model_init(const ItllOptions* options, ItllLevel level, void* memory, size_t memory_bytes, ItllModel** model_out);

/* The options that it was made with, num_units rounded up. */
ITLL_API const ItllOptions* itll_model_options(const ItllModel* model);

/* Rows that it knows now; PCA: all that it has seen. */
ITLL_API size_t itll_model_num_rows(const ItllModel* model);

/* Forgets everything. */
ITLL_API ItllResult itll_reset(ItllModel* model);

/* Learns from rows, the oldest first. `targets` may be NULL for PCA; both may be NULL if num_rows is 0. */
ITLL_API ItllResult itll_update(ItllModel* model, const float* rows, const float* targets, size_t num_rows);

/* Bytes of workspace that predictions of this model need. */
ITLL_API ItllResult itll_workspace_size(const ItllModel* model, size_t* bytes_out);

/* Predicts targets, and the standard deviation of what a target will be around its prediction. `deviations_out` may be NULL; it must be
   for MLP and PCA. A row's prediction does not depend on the others. The rows may be NULL if num_rows is 0. */
ITLL_API ItllResult itll_predict(
    const ItllModel* model,
    const float* rows,
    size_t num_rows,
    float* means_out,
    float* deviations_out,
    void* workspace,
    size_t workspace_bytes
);

/* PCA: unit vectors (num_targets, num_features), the greatest entry of each positive, by falling variance; and those variances. A
   component without variance is zero. */
ITLL_API ItllResult itll_components(const ItllModel* model, float* components_out, float* variances_out);

/* ---- state ------------------------------------------------------------------------------------------------------- */

/* A state is everything that a model has learned, in little-endian bytes: a model that loads it goes on as if it had never been
   saved. Its length depends on the number of rows. */
ITLL_API ItllResult itll_state_size(const ItllModel* model, size_t* bytes_out);

ITLL_API ItllResult itll_save(const ItllModel* model, void* state, size_t state_bytes);

/* The options of a state. */
ITLL_API ItllResult itll_state_options(const void* state, size_t state_bytes, ItllOptions* options_out);

/* The model has the options that itll_state_options tells, and any level. After an error it has forgotten everything. */
ITLL_API ItllResult itll_load(ItllModel* model, const void* state, size_t state_bytes);

/* ---- between this header and the kernels: private ---------------------------------------------------------------- */

#define ITLL__MAX_DEVIATIONS 8.0f /* of a feature from its mean */
#define ITLL__WAVE 4095.0f /* a random feature is an integer up to this: sums of 128 products fit 32 bits */
#define ITLL__GRAM_PAIRS 64u /* pairs of rows that are added up in 32 bits */
#define ITLL__NO_SCORE (-1073741824) /* less than the score of any row, more than that of one that does not count */

#define ITLL__NO_ROW (-1610612736) /* minus the norm of a row that does not count */

/* The best rows so far of a query, the best first. */
typedef struct ItllNearest {
    uint32_t count;
    int32_t scores[ITLL_MAX_NEIGHBOURS];
    uint32_t rows[ITLL_MAX_NEIGHBOURS];
} ItllNearest;

/* detail/itll_kernels.h says what they do. */
typedef struct ItllKernels {
    void (*scale_rows)(const float*, size_t, size_t, const float*, const float*, float*);
    void (*waves)(const float*, size_t, uint32_t, const float*, const float*, size_t, float*);
    void (*hidden)(const float*, size_t, uint32_t, const float*, const float*, size_t, float*);
    void (*similarities)(const float*, size_t, uint32_t, const float*, size_t, float, float*);
    void (*dots)(const float*, size_t, const float*, size_t, uint32_t, float*);
    void (*pack)(const int16_t*, size_t, size_t, int32_t*);
    void (*add_products)(const int32_t*, size_t, double, double*);
    void (*cross)(const int16_t*, const float*, size_t, size_t, double*);
    void (*subtract_products)(const double*, uint32_t, size_t, size_t, double*);
    void (*factor)(double*, size_t, double*);
    void (*solve_lanes)(const double*, const double*, size_t, double*);
    void (*nearest)(const int32_t*, const int32_t*, size_t, size_t, uint32_t, const int32_t* const*, uint32_t, ItllNearest*);
    void (*outer)(const float*, uint32_t, const float*, size_t, size_t, float*);
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
#include "detail/itll_kernels.h"
#include "detail/itll_models.h"

#endif /* ITLL_IMPLEMENTATION */
