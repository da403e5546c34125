/*
 * itll_models.h - the models of itll.h: memory, scales, windows, learning, prediction, states.
 *
 * Private to itll.h, included by its implementation. The loops that take the time are in itll_kernels.h.
 */
#ifndef ITLL_MODELS_H_INCLUDED
#define ITLL_MODELS_H_INCLUDED

#ifdef ITLL_DEBUG
#include <assert.h>
#define ITLL__ERROR(code) (assert(0 && #code), ITLL_ERROR_##code)
#else
#define ITLL__ERROR(code) ITLL_ERROR_##code
#endif

#define ITLL__ALIGNMENT 64u
#define ITLL__BLOCK 16u           /* rows that are predicted at a time: lanes of a triangular solve */
#define ITLL__BATCH 32u           /* rows of a step of Adam */
#define ITLL__LEAST_VARIATION 1e-12 /* variance of a column that varies, relative to its squared mean: what f32 can tell */

/* ---- results, levels, options ------------------------------------------------------------------------------------ */

const char* itll_result_to_string(ItllResult result) {
    switch (result) {
        case ITLL_SUCCESS: return "ITLL_SUCCESS";
        case ITLL_ERROR_INVALID_VALUE: return "ITLL_ERROR_INVALID_VALUE";
        case ITLL_ERROR_INSUFFICIENT_MEMORY: return "ITLL_ERROR_INSUFFICIENT_MEMORY";
        case ITLL_ERROR_NO_LEVEL: return "ITLL_ERROR_NO_LEVEL";
        case ITLL_ERROR_INVALID_STATE: return "ITLL_ERROR_INVALID_STATE";
        case ITLL_ERROR_OTHER_OPTIONS: return "ITLL_ERROR_OTHER_OPTIONS";
        case ITLL_RESULT_NUM_ENUMS: break;
    }
    return "ITLL_RESULT_UNKNOWN";
}

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
    options.window = kind == ITLL_MODEL_GP ? 1000 : 2000;
    options.num_units = kind == ITLL_MODEL_MLP ? 32 : 256;
    options.num_neighbours = 5;
    options.num_visits = 32;
    options.length_scale = 1.0f;
    options.noise = kind == ITLL_MODEL_GP ? 0.01f : 0.1f;
    options.learning_rate = 0.003f;
    return options;
}

static size_t itll__round_up(size_t number, size_t multiple) { return (number + multiple - 1) / multiple * multiple; }

static bool itll__is_within(uint32_t number, uint32_t most) { return number >= 1 && number <= most; }

static bool itll__is_valid(const ItllOptions* options) {
    const bool is_pca = options->kind == ITLL_MODEL_PCA;
    return (unsigned)options->kind < ITLL_MODEL_NUM_ENUMS &&
        itll__is_within(options->num_features, is_pca ? ITLL_MAX_PCA_FEATURES : ITLL_MAX_FEATURES) &&
        itll__is_within(options->num_targets, ITLL_MAX_TARGETS) && (!is_pca || options->num_targets <= options->num_features) &&
        itll__is_within(options->window, options->kind == ITLL_MODEL_GP ? ITLL_MAX_GP_ROWS : ITLL_MAX_WINDOW) &&
        itll__is_within(options->num_units, ITLL_MAX_UNITS) && itll__is_within(options->num_neighbours, ITLL_MAX_NEIGHBOURS) &&
        itll__is_within(options->num_visits, 1u << 20) && options->length_scale >= 1e-3f && options->length_scale <= 1e3f &&
        options->noise >= 1e-6f && options->noise <= 1e6f && options->learning_rate >= 1e-8f && options->learning_rate <= 1.0f;
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

enum { ITLL__FREQUENCIES, ITLL__PHASES, ITLL__WEIGHTS, ITLL__ORDER };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

struct ItllModel {
    const ItllKernels* kernels;
    ItllOptions options;
    size_t num_units;    /* RIDGE, MLP: padded units; GP: rows of its matrix; PCA: padded features */
    size_t capacity;     /* rows that there is room for: the window moves through twice its length */
    size_t first, count; /* the window */
    uint64_t num_seen;   /* rows that were learned from */
    uint64_t num_scaled; /* num_seen when the scales were made */
    uint64_t num_steps;  /* MLP */
    float* x;            /* [capacity][num_features] as given */
    float* y;            /* [capacity][num_targets] */
    float* means;        /* of features */
    float* inverses;     /* of their standard deviations; 0 for a column that does not vary */
    double* y_means;
    double* y_scales;
    double* variances;   /* RIDGE, GP: of the noise or the function, of targets with variance 1 */
    float* scaled;       /* some rows in standard deviations */
    float* column;       /* a target's column */
    float* weights;      /* RIDGE, GP: [num_targets][num_units]; MLP: all parameters; PCA: components */
    float* bias;         /* RIDGE: phases */
    float* frequencies;  /* RIDGE: [num_features][num_units]; GP: rows, as columns */
    float* values;       /* of units, for some rows; GP: similarities of all rows */
    int16_t* waves;      /* RIDGE: [capacity][num_units] */
    int32_t* packed;     /* RIDGE: some rows */
    double* gram;        /* RIDGE: exact integers; PCA: minus the sum of products */
    double* factor;      /* [num_units][num_units]; PCA: the covariance */
    double* diagonal;    /* inverses of the factor's */
    double* right_side;
    float* gradient;     /* MLP, as the next two: like weights */
    float* moments;
    float* squares;
    float* errors;       /* [ITLL__BATCH][num_targets] */
    float* deltas;       /* [ITLL__BATCH][num_units] */
    float* batch_y;
    int32_t* blocks;     /* KNN: [capacity / 64][pairs][64] */
    int32_t* norms;      /* [capacity] */
    double* shift;       /* PCA: what is subtracted from rows before they are added up */
    double* totals;
    double* deviations;  /* some rows */
};

/* Lays arrays one after the other; with a NULL base it only counts. */
typedef struct ItllLayout {
    char* base;
    size_t num_bytes;
} ItllLayout;

static ItllLayout itll__layout(const void* memory) {
    ItllLayout layout = {NULL, ITLL__ALIGNMENT}; /* room to align the base */
    if (memory != NULL) {
        const size_t misalignment = (size_t)((uintptr_t)memory % ITLL__ALIGNMENT);
        layout.base = (char*)(uintptr_t)memory + (misalignment ? ITLL__ALIGNMENT - misalignment : 0) - ITLL__ALIGNMENT;
    }
    return layout;
}

static void* itll__lay(ItllLayout* layout, size_t count, size_t item_bytes) {
    void* array = layout->base == NULL ? NULL : layout->base + layout->num_bytes;
    layout->num_bytes += itll__round_up(count * item_bytes, ITLL__ALIGNMENT);
    return array;
}

static float* itll__lay_f32(ItllLayout* layout, size_t count) { return (float*)itll__lay(layout, count, sizeof(float)); }
static double* itll__lay_f64(ItllLayout* layout, size_t count) { return (double*)itll__lay(layout, count, sizeof(double)); }

static size_t itll__num_pairs(const ItllOptions* options) { return ((size_t)options->num_features + 1) / 2; }

/* Parameters of a perceptron: [num_features][units] and [units] of the hidden layer, [num_targets][units] and [num_targets]. */
static size_t itll__num_parameters(const ItllModel* model) {
    const size_t targets = model->options.num_targets;
    return (model->options.num_features + 1 + targets) * model->num_units + targets;
}

static void itll__lay_model(ItllLayout* layout, const ItllOptions* options, ItllModel* model) {
    const size_t features = options->num_features, targets = options->num_targets, window = options->window;
    memset(model, 0, sizeof *model);
    model->options = *options;
    model->options.num_units = (uint32_t)itll__round_up(options->num_units, 32);
    size_t units = model->options.num_units;
    if (options->kind == ITLL_MODEL_GP) units = itll__round_up(window, 32);
    if (options->kind == ITLL_MODEL_PCA) units = itll__round_up(features, 32);
    model->num_units = units;
    if (options->kind == ITLL_MODEL_PCA) {
        model->weights = itll__lay_f32(layout, targets * units);
        model->variances = itll__lay_f64(layout, targets);
        model->gram = itll__lay_f64(layout, units * units);
        model->factor = itll__lay_f64(layout, units * units);
        model->diagonal = itll__lay_f64(layout, units);
        model->shift = itll__lay_f64(layout, units);
        model->totals = itll__lay_f64(layout, units);
        model->deviations = itll__lay_f64(layout, ITLL__BLOCK * units);
        return;
    }
    model->capacity = itll__round_up(2 * window, 64);
    model->x = itll__lay_f32(layout, model->capacity * features);
    model->y = itll__lay_f32(layout, model->capacity * targets);
    model->means = itll__lay_f32(layout, features);
    model->inverses = itll__lay_f32(layout, features);
    model->y_means = itll__lay_f64(layout, targets);
    model->y_scales = itll__lay_f64(layout, targets);
    model->variances = itll__lay_f64(layout, targets);
    model->scaled = itll__lay_f32(layout, (options->kind == ITLL_MODEL_GP ? units : 2 * ITLL__GRAM_PAIRS) * features);
    if (options->kind == ITLL_MODEL_RIDGE || options->kind == ITLL_MODEL_GP) {
        model->column = itll__lay_f32(layout, window);
        model->weights = itll__lay_f32(layout, targets * units);
        model->frequencies = itll__lay_f32(layout, features * units);
        model->factor = itll__lay_f64(layout, units * units);
        model->diagonal = itll__lay_f64(layout, units);
        model->right_side = itll__lay_f64(layout, units);
    }
    switch (options->kind) {
        case ITLL_MODEL_RIDGE:
            model->bias = itll__lay_f32(layout, units);
            model->values = itll__lay_f32(layout, 2 * ITLL__GRAM_PAIRS * units);
            model->waves = (int16_t*)itll__lay(layout, model->capacity * units, sizeof(int16_t));
            model->packed = (int32_t*)itll__lay(layout, ITLL__GRAM_PAIRS * units, sizeof(int32_t));
            model->gram = itll__lay_f64(layout, units * units);
            break;
        case ITLL_MODEL_GP: model->values = itll__lay_f32(layout, units * units); break;
        case ITLL_MODEL_KNN:
            model->blocks = (int32_t*)itll__lay(layout, model->capacity * itll__num_pairs(options), sizeof(int32_t));
            model->norms = (int32_t*)itll__lay(layout, model->capacity, sizeof(int32_t));
            break;
        case ITLL_MODEL_MLP: {
            const size_t num_parameters = itll__num_parameters(model);
            model->weights = itll__lay_f32(layout, num_parameters);
            model->gradient = itll__lay_f32(layout, num_parameters);
            model->moments = itll__lay_f32(layout, num_parameters);
            model->squares = itll__lay_f32(layout, num_parameters);
            model->values = itll__lay_f32(layout, ITLL__BATCH * units);
            model->deltas = itll__lay_f32(layout, ITLL__BATCH * units);
            model->errors = itll__lay_f32(layout, ITLL__BATCH * targets);
            model->batch_y = itll__lay_f32(layout, ITLL__BATCH * targets);
            break;
        }
        case ITLL_MODEL_PCA:
        case ITLL_MODEL_NUM_ENUMS: break;
    }
}

ItllResult itll_model_size(const ItllOptions* options, size_t* bytes_out) {
    if (options == NULL || bytes_out == NULL || !itll__is_valid(options)) return ITLL__ERROR(INVALID_VALUE);
    ItllLayout layout = itll__layout(NULL);
    ItllModel model;
    (void)itll__lay(&layout, 1, sizeof model);
    itll__lay_model(&layout, options, &model);
    *bytes_out = layout.num_bytes;
    return ITLL_SUCCESS;
}

/* What seed and options alone decide. */
static void itll__draw(ItllModel* model) {
    const ItllOptions* options = &model->options;
    const size_t features = options->num_features, units = model->num_units;
    const uint64_t seed = options->seed;
    if (options->kind == ITLL_MODEL_RIDGE) {
        /* Frequencies of the kernel exp(-|a - b|^2 / 2 l^2), in turns. */
        const double scale = 1.0 / ((double)options->length_scale * sqrt((double)features) * 6.283185307179586);
        for (size_t i = 0; i < features * units; i++) {
            model->frequencies[i] = (float)(itll__normal(seed, ITLL__FREQUENCIES, i) * scale);
        }
        for (size_t i = 0; i < units; i++) {
            model->bias[i] = (float)(itll__uniform(itll__random(seed, ITLL__PHASES, i)) - 0.5);
        }
    }
    if (options->kind == ITLL_MODEL_MLP) {
        /* Uniform, as wide as layers of tanh want it (Glorot & Bengio 2010). Biases begin at 0. */
        const double first = sqrt(6.0 / (double)(features + units)), second = sqrt(6.0 / (double)(units + options->num_targets));
        memset(model->weights, 0, itll__num_parameters(model) * sizeof(float));
        for (size_t i = 0; i < features * units; i++) {
            model->weights[i] = (float)((2.0 * itll__uniform(itll__random(seed, ITLL__WEIGHTS, i)) - 1.0) * first);
        }
        for (size_t i = (features + 1) * units; i < (features + 1 + options->num_targets) * units; i++) {
            model->weights[i] = (float)((2.0 * itll__uniform(itll__random(seed, ITLL__WEIGHTS, i)) - 1.0) * second);
        }
    }
}

ItllResult itll_model_init(
    const ItllOptions* options, ItllLevel level, void* memory, size_t memory_bytes, ItllModel** model_out
) {
    size_t num_bytes;
    if (options == NULL || memory == NULL || model_out == NULL || !itll__is_valid(options)) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_model_size(options, &num_bytes);
    if (memory_bytes < num_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    if (itll__kernels(level) == NULL) return ITLL__ERROR(NO_LEVEL);
    ItllLayout layout = itll__layout(memory);
    ItllModel* model = (ItllModel*)itll__lay(&layout, 1, sizeof *model);
    itll__lay_model(&layout, options, model);
    model->kernels = itll__kernels(level);
    if (options->kind == ITLL_MODEL_RIDGE) itll__draw(model);
    *model_out = model;
    return itll_reset(model);
}

const ItllOptions* itll_model_options(const ItllModel* model) { return &model->options; }

size_t itll_model_num_rows(const ItllModel* model) {
    return model->options.kind == ITLL_MODEL_PCA ? (size_t)model->num_seen : model->count;
}

ItllResult itll_reset(ItllModel* model) {
    if (model == NULL) return ITLL__ERROR(INVALID_VALUE);
    const size_t units = model->num_units;
    model->first = model->count = 0;
    model->num_seen = model->num_scaled = model->num_steps = 0;
    if (model->gram != NULL) memset(model->gram, 0, units * units * sizeof(double));
    if (model->options.kind != ITLL_MODEL_PCA) {
        memset(model->means, 0, model->options.num_features * sizeof(float));
        memset(model->inverses, 0, model->options.num_features * sizeof(float));
        memset(model->y_means, 0, model->options.num_targets * sizeof(double));
        memset(model->y_scales, 0, model->options.num_targets * sizeof(double));
    }
    if (model->options.kind == ITLL_MODEL_MLP) {
        itll__draw(model);
        memset(model->moments, 0, itll__num_parameters(model) * sizeof(float));
        memset(model->squares, 0, itll__num_parameters(model) * sizeof(float));
    }
    if (model->options.kind == ITLL_MODEL_KNN) {
        memset(model->blocks, 0, model->capacity * itll__num_pairs(&model->options) * sizeof(int32_t));
    }
    if (model->options.kind == ITLL_MODEL_PCA) {
        memset(model->shift, 0, units * sizeof(double));
        memset(model->totals, 0, units * sizeof(double));
        memset(model->weights, 0, model->options.num_targets * units * sizeof(float));
        memset(model->variances, 0, model->options.num_targets * sizeof(double));
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
        double parts[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
        size_t j = k + 1;
        for (; j < size && j % 8 != 0; j++) parts[j % 8] += u[j] * b[j];
        for (; j < size; j += 8) {
            for (size_t lane = 0; lane < 8; lane++) parts[lane] += u[j + lane] * b[j + lane];
        }
        const double sum = ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
        b[k] = (b[k] - sum) * inverses[k];
    }
    return product;
}

/* A sum of squares by the number of rows; rounding may make it negative. */
static double itll__variance(double squares, size_t num_rows) { return squares > 0.0 ? squares / (double)num_rows : 0.0; }

/* The size is a multiple of 8. */
static double itll__dot(const double* a, const double* b, size_t size) {
    double parts[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    for (size_t i = 0; i < size; i += 8) {
        for (size_t lane = 0; lane < 8; lane++) parts[lane] += a[i + lane] * b[i + lane];
    }
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

/* ---- ridge ------------------------------------------------------------------------------------------------------- */

/* Waves of rows [begin, end) of the window's array. */
static void itll__ridge_waves(ItllModel* model, size_t begin, size_t end) {
    const size_t features = model->options.num_features, units = model->num_units;
    while (begin < end) {
        const size_t count = end - begin < 2 * ITLL__GRAM_PAIRS ? end - begin : 2 * ITLL__GRAM_PAIRS;
        itll__scale(model, model->x + begin * features, count, model->scaled);
        model->kernels->waves(model->scaled, count, (uint32_t)features, model->frequencies, model->bias, units, model->values);
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
        model->variances[t] = itll__variance(squares - explained, count);
    }
}

/* ---- Gaussian process -------------------------------------------------------------------------------------------- */

/* log2 of the kernel, of a squared distance. */
static float itll__gp_scale(const ItllModel* model) {
    const double length = (double)model->options.length_scale;
    return (float)(-0.5 * 1.4426950408889634 / (length * length * (double)model->options.num_features));
}

/* (K + noise) w = y, with K of the window's rows; the rest of the padded matrix is that of rows that resemble none. */
static void itll__gp_solve(ItllModel* model) {
    const size_t features = model->options.num_features, units = model->num_units, count = model->count;
    const double noise = (double)model->options.noise;
    itll__scale(model, model->x + model->first * features, count, model->scaled);
    memset(model->frequencies, 0, features * units * sizeof(float));
    for (size_t row = 0; row < count; row++) {
        for (size_t f = 0; f < features; f++) model->frequencies[f * units + row] = model->scaled[row * features + f];
    }
    model->kernels->similarities(
        model->scaled, count, (uint32_t)features, model->frequencies, units, itll__gp_scale(model), model->values
    );
    memset(model->factor, 0, units * units * sizeof(double));
    for (size_t i = 0; i < units; i++) {
        for (size_t j = i; i < count && j < count; j++) {
            model->factor[i * units + j] = (double)model->values[i * units + j];
        }
        model->factor[i * units + i] = 1.0 + noise;
    }
    model->kernels->factor(model->factor, units, model->diagonal);
    itll__rescale_targets(model);
    for (size_t t = 0; t < model->options.num_targets; t++) {
        for (size_t row = 0; row < units; row++) {
            model->right_side[row] = row < count ? (double)itll__scaled_target(model, model->first + row, t) : 0.0;
        }
        const double explained = itll__solve(model->factor, model->diagonal, units, model->right_side);
        for (size_t i = 0; i < units; i++) model->weights[t * units + i] = (float)model->right_side[i];
        model->variances[t] = itll__variance(explained, count);
    }
}

/* ---- nearest neighbours ------------------------------------------------------------------------------------------ */

/* Steps of a rounded feature to a standard deviation: so many that a squared distance fits 32 bits. */
static float itll__knn_steps(const ItllModel* model) {
    const double most = floor(sqrt(268435456.0 / (double)model->options.num_features));
    return (float)((most < 4095.0 ? most : 4095.0) / (double)ITLL__MAX_DEVIATIONS);
}

/* A scaled row as integers, in pairs. Returns its squared norm. */
static int32_t itll__knn_round(const ItllModel* model, const float* scaled, int32_t factor, int32_t* pairs, size_t stride) {
    const size_t features = model->options.num_features;
    const float steps = itll__knn_steps(model);
    int32_t norm = 0;
    for (size_t f = 0; f < features; f += 2) {
        const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
        const int32_t a = (int32_t)((scaled[f] * steps + magic) - magic);
        const int32_t b = f + 1 < features ? (int32_t)((scaled[f + 1] * steps + magic) - magic) : 0;
        norm += a * a + b * b;
        pairs[f / 2 * stride] = (int32_t)((uint32_t)(uint16_t)(factor * a) | (uint32_t)(uint16_t)(factor * b) << 16);
    }
    return norm;
}

/* Enters rows [begin, end) of the window's array, and tells the ends of the window. */
static void itll__knn_enter(ItllModel* model, size_t begin, size_t end) {
    const size_t features = model->options.num_features, num_pairs = itll__num_pairs(&model->options);
    for (size_t row = begin; row < end; row++) {
        itll__scale(model, model->x + row * features, 1, model->scaled);
        int32_t* pairs = model->blocks + row / 64 * num_pairs * 64 + row % 64;
        model->norms[row] = -itll__knn_round(model, model->scaled, 1, pairs, 64);
    }
    for (size_t row = model->first / 64 * 64; row < model->first; row++) model->norms[row] = ITLL__NO_ROW;
    for (size_t row = end; row < itll__round_up(end, 64); row++) model->norms[row] = ITLL__NO_ROW;
}

/* Weighs a neighbour at a distance, in standard deviations; one nearer than a thousandth weighs as if it were there. */
static double itll__knn_weight(double distance) { return 1.0 / (distance > 1e-3 ? distance : 1e-3); }

static void itll__knn_predict(
    const ItllModel* model, const ItllNearest* nearest, int32_t norm, float* means_out, float* deviations_out
) {
    const size_t targets = model->options.num_targets;
    const double steps = (double)itll__knn_steps(model);
    double weights[ITLL_MAX_NEIGHBOURS], total = 0.0;
    for (uint32_t i = 0; i < nearest->count; i++) {
        weights[i] = itll__knn_weight(sqrt((double)(norm - nearest->scores[i])) / steps);
        total += weights[i];
    }
    for (size_t t = 0; t < targets; t++) {
        double mean = 0.0, spread = 0.0;
        for (uint32_t i = 0; i < nearest->count; i++) mean += weights[i] * (double)model->y[nearest->rows[i] * targets + t];
        mean /= total;
        for (uint32_t i = 0; i < nearest->count; i++) {
            const double difference = (double)model->y[nearest->rows[i] * targets + t] - mean;
            spread += weights[i] * (difference * difference);
        }
        means_out[t] = (float)mean;
        if (deviations_out != NULL) deviations_out[t] = (float)sqrt(spread / total);
    }
}

/* ---- perceptron -------------------------------------------------------------------------------------------------- */

static double itll__power(double base, uint64_t exponent) {
    double power = 1.0;
    for (; exponent > 0; exponent >>= 1, base *= base) power = exponent & 1 ? power * base : power;
    return power;
}

/* A step of Adam on ITLL__BATCH rows of the window, drawn with replacement: half the mean squared error falls. */
static void itll__mlp_step(ItllModel* model) {
    const size_t features = model->options.num_features, targets = model->options.num_targets, units = model->num_units;
    float* weights = model->weights;
    float* output_weights = weights + (features + 1) * units;
    float* gradient = model->gradient;
    const size_t num_parameters = itll__num_parameters(model);
    for (size_t i = 0; i < ITLL__BATCH; i++) {
        const uint64_t drawn = itll__random(model->options.seed, ITLL__ORDER, model->num_steps * ITLL__BATCH + i) >> 32;
        const size_t row = model->first + (size_t)(drawn * model->count >> 32);
        itll__scale(model, model->x + row * features, 1, model->scaled + i * features);
        for (size_t t = 0; t < targets; t++) model->batch_y[i * targets + t] = itll__scaled_target(model, row, t);
    }
    model->kernels->hidden(
        model->scaled, ITLL__BATCH, (uint32_t)features, weights, weights + features * units, units, model->values
    );
    model->kernels->dots(model->values, ITLL__BATCH, output_weights, units, (uint32_t)targets, model->errors);
    memset(gradient, 0, num_parameters * sizeof *gradient);
    for (size_t i = 0; i < ITLL__BATCH; i++) {
        float* delta = model->deltas + i * units;
        for (size_t unit = 0; unit < units; unit++) delta[unit] = 0.0f;
        for (size_t t = 0; t < targets; t++) {
            const float output = model->errors[i * targets + t] + output_weights[targets * units + t];
            const float error = (output - model->batch_y[i * targets + t]) * (1.0f / (float)ITLL__BATCH);
            model->errors[i * targets + t] = error;
            gradient[num_parameters - targets + t] += error;
            for (size_t unit = 0; unit < units; unit++) delta[unit] += error * output_weights[t * units + unit];
        }
        for (size_t unit = 0; unit < units; unit++) {
            const float h = model->values[i * units + unit];
            delta[unit] *= 1.0f - h * h;
            gradient[features * units + unit] += delta[unit];
        }
    }
    model->kernels->outer(model->scaled, (uint32_t)features, model->deltas, units, ITLL__BATCH, gradient);
    model->kernels->outer(model->errors, (uint32_t)targets, model->values, units, ITLL__BATCH, gradient + (features + 1) * units);
    model->num_steps++;
    const float first = (float)(1.0 - itll__power(0.9, model->num_steps)),
                second = (float)(1.0 - itll__power(0.999, model->num_steps));
    const float rate = model->options.learning_rate;
    for (size_t i = 0; i < num_parameters; i++) {
        const float g = gradient[i];
        const float moment = model->moments[i] * 0.9f + g * 0.1f, square = model->squares[i] * 0.999f + g * g * 0.001f;
        model->moments[i] = moment;
        model->squares[i] = square;
        weights[i] -= rate * (moment / first) / (sqrtf(square / second) + 1e-8f);
    }
}

static void itll__mlp_learn(ItllModel* model, size_t num_rows) {
    const uint64_t num_visits = (uint64_t)num_rows * model->options.num_visits;
    for (uint64_t i = 0; i < num_visits; i += ITLL__BATCH) itll__mlp_step(model);
}

/* ---- principal components ---------------------------------------------------------------------------------------- */

/* Eigenvectors of the covariance, which is symmetric and positive: rotations make its rows orthogonal (Hestenes 1958). */
static void itll__pca_rotate(double* matrix, size_t size, size_t stride) {
    for (int sweep = 0, num_rotations = 1; sweep < 60 && num_rotations > 0; sweep++) {
        num_rotations = 0;
        for (size_t p = 0; p < size; p++) {
            for (size_t q = p + 1; q < size; q++) {
                double *a = matrix + p * stride, *b = matrix + q * stride;
                const double aa = itll__dot(a, a, stride), bb = itll__dot(b, b, stride), ab = itll__dot(a, b, stride);
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
    memset(model->variances, 0, model->options.num_targets * sizeof(double));
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
    for (size_t i = 0; i < features; i++) {
        model->diagonal[i] = sqrt(itll__dot(model->factor + i * units, model->factor + i * units, units));
    }
    for (size_t t = 0; t < model->options.num_targets; t++) {
        size_t best = 0, greatest = 0;
        for (size_t i = 1; i < features; i++) {
            if (model->diagonal[i] > model->diagonal[best]) best = i;
        }
        const double* row = model->factor + best * units;
        const double variance = model->diagonal[best];
        model->diagonal[best] = -1.0;
        if (!(variance > 1e-12 * total)) continue; /* rounding alone */
        for (size_t k = 1; k < features; k++) {
            if (row[k] * row[k] > row[greatest] * row[greatest]) greatest = k;
        }
        const double scale = (row[greatest] < 0.0 ? -1.0 : 1.0) / variance;
        for (size_t k = 0; k < features; k++) model->weights[t * units + k] = (float)(row[k] * scale);
        model->variances[t] = variance;
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

ItllResult itll_components(const ItllModel* model, float* components_out, float* variances_out) {
    if (model == NULL || components_out == NULL || variances_out == NULL || model->options.kind != ITLL_MODEL_PCA) {
        return ITLL__ERROR(INVALID_VALUE);
    }
    const size_t features = model->options.num_features;
    for (size_t t = 0; t < model->options.num_targets; t++) {
        memcpy(components_out + t * features, model->weights + t * model->num_units, features * sizeof(float));
        variances_out[t] = (float)model->variances[t];
    }
    return ITLL_SUCCESS;
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

/* Drops the oldest rows, so that `num_rows` more have room in the window and in memory. */
static void itll__make_room(ItllModel* model, size_t num_rows) {
    const size_t features = model->options.num_features, targets = model->options.num_targets, window = model->options.window;
    const size_t num_leaving = model->count + num_rows > window ? model->count + num_rows - window : 0;
    if (model->options.kind == ITLL_MODEL_RIDGE) itll__ridge_add(model, model->first, model->first + num_leaving, -1.0);
    model->first += num_leaving;
    model->count -= num_leaving;
    if (model->first + model->count + num_rows <= model->capacity) return;
    memmove(model->x, model->x + model->first * features, model->count * features * sizeof(float));
    memmove(model->y, model->y + model->first * targets, model->count * targets * sizeof(float));
    if (model->options.kind == ITLL_MODEL_RIDGE) {
        const size_t units = model->num_units;
        memmove(model->waves, model->waves + model->first * units, model->count * units * sizeof(int16_t));
    }
    model->first = 0;
    if (model->options.kind == ITLL_MODEL_KNN) itll__knn_enter(model, 0, model->count);
}

/* Makes what follows from rows [begin, end) of the window's array, the newest. */
static void itll__enter(ItllModel* model, size_t begin, size_t end) {
    switch (model->options.kind) {
        case ITLL_MODEL_RIDGE:
            itll__ridge_waves(model, begin, end);
            itll__ridge_add(model, begin, end, 1.0);
            break;
        case ITLL_MODEL_KNN: itll__knn_enter(model, begin, end); break;
        case ITLL_MODEL_MLP:
        case ITLL_MODEL_GP:
        case ITLL_MODEL_PCA:
        case ITLL_MODEL_NUM_ENUMS: break;
    }
}

/* The same for all rows of the window, with the scales as they are now. */
static void itll__enter_all(ItllModel* model) {
    if (model->options.kind == ITLL_MODEL_RIDGE) {
        memset(model->gram, 0, model->num_units * model->num_units * sizeof(double));
    }
    itll__enter(model, model->first, model->first + model->count);
}

static bool itll__has_targets(const ItllModel* model, const float* targets) {
    for (size_t t = 0; t < model->options.num_targets; t++) {
        if (!itll__is_finite(targets[t])) return false;
    }
    return true;
}

/* The rest of an update, once rows and scales are in place. */
static void itll__finish(ItllModel* model) {
    if (model->count == 0) return;
    if (model->options.kind == ITLL_MODEL_RIDGE) itll__ridge_solve(model);
    if (model->options.kind == ITLL_MODEL_GP) itll__gp_solve(model);
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
        itll__rescale_targets(model);
        itll__enter_all(model);
    } else {
        itll__enter(model, begin, end);
    }
    if (model->options.kind == ITLL_MODEL_MLP) itll__mlp_learn(model, num_valid);
    itll__finish(model);
    return ITLL_SUCCESS;
}

/* ---- prediction -------------------------------------------------------------------------------------------------- */

typedef struct ItllWorkspace {
    float* scaled;  /* [ITLL__BLOCK][num_features, PCA: padded] */
    float* values;  /* [ITLL__BLOCK][num_units] */
    double* lanes;  /* [num_units][ITLL__BLOCK] */
    int32_t* pairs; /* [4][pairs] */
} ItllWorkspace;

static ItllWorkspace itll__lay_workspace(ItllLayout* layout, const ItllModel* model) {
    ItllWorkspace workspace;
    memset(&workspace, 0, sizeof workspace);
    const ItllModelKind kind = model->options.kind;
    const size_t width = kind == ITLL_MODEL_PCA ? model->num_units : model->options.num_features;
    workspace.scaled = itll__lay_f32(layout, ITLL__BLOCK * width);
    if (kind == ITLL_MODEL_RIDGE || kind == ITLL_MODEL_GP || kind == ITLL_MODEL_MLP) {
        workspace.values = itll__lay_f32(layout, ITLL__BLOCK * model->num_units);
    }
    if (kind == ITLL_MODEL_RIDGE || kind == ITLL_MODEL_GP)
        workspace.lanes = itll__lay_f64(layout, ITLL__BLOCK * model->num_units);
    if (kind == ITLL_MODEL_KNN) {
        workspace.pairs = (int32_t*)itll__lay(layout, 4 * itll__num_pairs(&model->options), sizeof(int32_t));
    }
    return workspace;
}

ItllResult itll_workspace_size(const ItllModel* model, size_t* bytes_out) {
    if (model == NULL || bytes_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    ItllLayout layout = itll__layout(NULL);
    (void)itll__lay_workspace(&layout, model);
    *bytes_out = layout.num_bytes;
    return ITLL_SUCCESS;
}

/* The nearest f32 that is finite. */
static float itll__finite(double number) {
    const double most = 3.4028234663852886e38;
    return (float)(number < most ? (number > -most ? number : -most) : most);
}

/* Of ridge and Gaussian process: from values of units (similarities) v of U'v = values, and what |v|^2 leaves unknown. */
static void itll__deviations(const ItllModel* model, const ItllWorkspace* workspace, size_t num_rows, float* deviations_out) {
    const size_t units = model->num_units, targets = model->options.num_targets;
    double squares[ITLL__BLOCK];
    for (size_t i = 0; i < units; i++) {
        for (size_t row = 0; row < ITLL__BLOCK; row++) {
            workspace->lanes[i * ITLL__BLOCK + row] = row < num_rows ? (double)workspace->values[row * units + i] : 0.0;
        }
    }
    model->kernels->solve_lanes(model->factor, model->diagonal, units, workspace->lanes);
    for (size_t row = 0; row < ITLL__BLOCK; row++) squares[row] = 0.0;
    for (size_t i = 0; i < units; i++) {
        const double* v = workspace->lanes + i * ITLL__BLOCK;
        for (size_t row = 0; row < ITLL__BLOCK; row++) squares[row] += v[row] * v[row];
    }
    for (size_t row = 0; row < num_rows; row++) {
        double share = 1.0 + squares[row];
        if (model->options.kind == ITLL_MODEL_GP) {
            share = 1.0 + (double)model->options.noise - squares[row];
            share = share > 1e-12 ? share : 1e-12;
        }
        for (size_t t = 0; t < targets; t++) {
            deviations_out[row * targets + t] = itll__finite(model->y_scales[t] * sqrt(model->variances[t] * share));
        }
    }
}

static void itll__predict_linear(
    const ItllModel* model,
    const ItllWorkspace* workspace,
    const float* rows,
    size_t num_rows,
    float* means_out,
    float* deviations_out
) {
    const size_t features = model->options.num_features, targets = model->options.num_targets, units = model->num_units;
    const float* output_weights = model->weights;
    itll__scale(model, rows, num_rows, workspace->scaled);
    if (model->options.kind == ITLL_MODEL_RIDGE) {
        model->kernels->waves(
            workspace->scaled, num_rows, (uint32_t)features, model->frequencies, model->bias, units, workspace->values
        );
    } else if (model->options.kind == ITLL_MODEL_GP) {
        model->kernels->similarities(
            workspace->scaled, num_rows, (uint32_t)features, model->frequencies, units, itll__gp_scale(model), workspace->values
        );
        for (size_t row = 0; row < num_rows; row++) { /* padding resembles nothing */
            memset(workspace->values + row * units + model->count, 0, (units - model->count) * sizeof(float));
        }
    } else {
        const float* bias = model->weights + features * units;
        output_weights = bias + units;
        model->kernels->hidden(workspace->scaled, num_rows, (uint32_t)features, model->weights, bias, units, workspace->values);
    }
    model->kernels->dots(workspace->values, num_rows, output_weights, units, (uint32_t)targets, means_out);
    for (size_t row = 0; row < num_rows; row++) {
        for (size_t t = 0; t < targets; t++) {
            float* mean = &means_out[row * targets + t];
            if (model->options.kind == ITLL_MODEL_MLP) *mean += output_weights[targets * units + t];
            *mean = itll__finite(model->y_means[t] + model->y_scales[t] * (double)*mean);
        }
    }
    if (deviations_out != NULL) itll__deviations(model, workspace, num_rows, deviations_out);
}

static void itll__predict_nearest(
    const ItllModel* model,
    const ItllWorkspace* workspace,
    const float* rows,
    size_t num_rows,
    float* means_out,
    float* deviations_out
) {
    const size_t features = model->options.num_features, num_pairs = itll__num_pairs(&model->options);
    const size_t targets = model->options.num_targets, end = model->first + model->count;
    itll__scale(model, rows, num_rows, workspace->scaled);
    for (size_t begin = 0; begin < num_rows; begin += 4) {
        const size_t count = num_rows - begin < 4 ? num_rows - begin : 4;
        ItllNearest nearest[4];
        const int32_t* queries[4];
        int32_t norms[4] = {0, 0, 0, 0};
        for (size_t i = 0; i < 4; i++) {
            nearest[i].count = 0;
            queries[i] = workspace->pairs + (i < count ? i : 0) * num_pairs;
            if (i >= count) continue;
            int32_t* pairs = workspace->pairs + i * num_pairs;
            norms[i] = itll__knn_round(model, workspace->scaled + (begin + i) * features, 2, pairs, 1);
        }
        model->kernels->nearest(
            model->blocks,
            model->norms,
            model->first / 64,
            itll__round_up(end, 64) / 64,
            (uint32_t)num_pairs,
            queries,
            model->options.num_neighbours,
            nearest
        );
        for (size_t i = 0; i < count; i++) {
            float* deviations = deviations_out == NULL ? NULL : deviations_out + (begin + i) * targets;
            itll__knn_predict(model, &nearest[i], norms[i], means_out + (begin + i) * targets, deviations);
        }
    }
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
    const ItllModel* model,
    const float* rows,
    size_t num_rows,
    float* means_out,
    float* deviations_out,
    void* workspace,
    size_t workspace_bytes
) {
    size_t num_bytes;
    if (model == NULL || workspace == NULL || (num_rows > 0 && (rows == NULL || means_out == NULL))) {
        return ITLL__ERROR(INVALID_VALUE);
    }
    const ItllModelKind kind = model->options.kind;
    if (deviations_out != NULL && (kind == ITLL_MODEL_MLP || kind == ITLL_MODEL_PCA)) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_workspace_size(model, &num_bytes);
    if (workspace_bytes < num_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    ItllLayout layout = itll__layout(workspace);
    const ItllWorkspace work = itll__lay_workspace(&layout, model);
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    for (size_t first = 0; first < num_rows; first += ITLL__BLOCK) {
        const size_t count = num_rows - first < ITLL__BLOCK ? num_rows - first : ITLL__BLOCK;
        const float* block = rows + first * features;
        float* means = means_out + first * targets;
        float* deviations = deviations_out == NULL ? NULL : deviations_out + first * targets;
        if (itll_model_num_rows(model) == 0) {
            for (size_t i = 0; i < count * targets; i++) means[i] = 0.0f;
            for (size_t i = 0; deviations != NULL && i < count * targets; i++) deviations[i] = (float)INFINITY;
        } else if (kind == ITLL_MODEL_PCA) {
            itll__predict_components(model, &work, block, count, means);
        } else if (kind == ITLL_MODEL_KNN) {
            itll__predict_nearest(model, &work, block, count, means, deviations);
        } else {
            itll__predict_linear(model, &work, block, count, means, deviations);
        }
    }
    return ITLL_SUCCESS;
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

enum {
    ITLL__STATE_MAGIC,
    ITLL__STATE_VERSION,
    ITLL__STATE_KIND,
    ITLL__STATE_FEATURES,
    ITLL__STATE_TARGETS,
    ITLL__STATE_WINDOW,
    ITLL__STATE_UNITS,
    ITLL__STATE_NEIGHBOURS,
    ITLL__STATE_VISITS,
    ITLL__STATE_LENGTH_SCALE,
    ITLL__STATE_NOISE,
    ITLL__STATE_LEARNING_RATE,
    ITLL__STATE_SEED,
    ITLL__STATE_COUNT,
    ITLL__STATE_SEEN,
    ITLL__STATE_SCALED,
    ITLL__STATE_STEPS,
    ITLL__STATE_NUM_WORDS
};

#define ITLL__MAGIC UINT64_C(0x4c4c54496f7665) /* "evoITLL" */

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

static uint64_t itll__bits(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static float itll__number(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float number;
    memcpy(&number, &low, sizeof number);
    return number;
}

static void itll__header(const ItllModel* model, uint64_t* words) {
    const ItllOptions* options = &model->options;
    words[ITLL__STATE_MAGIC] = ITLL__MAGIC;
    words[ITLL__STATE_VERSION] = ITLL_STATE_VERSION;
    words[ITLL__STATE_KIND] = (uint64_t)options->kind;
    words[ITLL__STATE_FEATURES] = options->num_features;
    words[ITLL__STATE_TARGETS] = options->num_targets;
    words[ITLL__STATE_WINDOW] = options->window;
    words[ITLL__STATE_UNITS] = options->num_units;
    words[ITLL__STATE_NEIGHBOURS] = options->num_neighbours;
    words[ITLL__STATE_VISITS] = options->num_visits;
    words[ITLL__STATE_LENGTH_SCALE] = itll__bits(options->length_scale);
    words[ITLL__STATE_NOISE] = itll__bits(options->noise);
    words[ITLL__STATE_LEARNING_RATE] = itll__bits(options->learning_rate);
    words[ITLL__STATE_SEED] = options->seed;
    words[ITLL__STATE_COUNT] = model->count;
    words[ITLL__STATE_SEEN] = model->num_seen;
    words[ITLL__STATE_SCALED] = model->num_scaled;
    words[ITLL__STATE_STEPS] = model->num_steps;
}

/* What comes after the header. */
static void itll__move_arrays(ItllModel* model, ItllStream* stream) {
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    if (model->options.kind == ITLL_MODEL_PCA) {
        itll__move(stream, model->shift, features * sizeof(double));
        itll__move(stream, model->totals, features * sizeof(double));
        for (size_t i = 0; i < features; i++) {
            itll__move(stream, model->gram + i * model->num_units + i, (features - i) * sizeof(double));
        }
        return;
    }
    itll__move(stream, model->means, features * sizeof(float));
    itll__move(stream, model->inverses, features * sizeof(float));
    itll__move(stream, model->x + model->first * features, model->count * features * sizeof(float));
    itll__move(stream, model->y + model->first * targets, model->count * targets * sizeof(float));
    if (model->options.kind == ITLL_MODEL_MLP) {
        const size_t num_bytes = itll__num_parameters(model) * sizeof(float);
        itll__move(stream, model->y_means, targets * sizeof(double));
        itll__move(stream, model->y_scales, targets * sizeof(double));
        itll__move(stream, model->weights, num_bytes);
        itll__move(stream, model->moments, num_bytes);
        itll__move(stream, model->squares, num_bytes);
    }
}

ItllResult itll_state_size(const ItllModel* model, size_t* bytes_out) {
    if (model == NULL || bytes_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    ItllModel copy = *model;
    ItllStream stream = {NULL, NULL, ITLL__STATE_NUM_WORDS * sizeof(uint64_t)};
    itll__move_arrays(&copy, &stream);
    *bytes_out = stream.num_bytes;
    return ITLL_SUCCESS;
}

ItllResult itll_save(const ItllModel* model, void* state, size_t state_bytes) {
    size_t num_bytes;
    uint64_t words[ITLL__STATE_NUM_WORDS];
    if (model == NULL || state == NULL) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_state_size(model, &num_bytes);
    if (state_bytes < num_bytes) return ITLL__ERROR(INSUFFICIENT_MEMORY);
    ItllModel copy = *model;
    ItllStream stream = {(char*)state, NULL, 0};
    itll__header(model, words);
    itll__move(&stream, words, sizeof words);
    itll__move_arrays(&copy, &stream);
    return ITLL_SUCCESS;
}

/* The words of a state whose options are valid. */
static bool itll__read_header(const void* state, size_t state_bytes, uint64_t* words, ItllOptions* options) {
    if (state_bytes < ITLL__STATE_NUM_WORDS * sizeof(uint64_t)) return false;
    memcpy(words, state, ITLL__STATE_NUM_WORDS * sizeof(uint64_t));
    if (words[ITLL__STATE_MAGIC] != ITLL__MAGIC || words[ITLL__STATE_VERSION] != ITLL_STATE_VERSION) return false;
    for (int i = ITLL__STATE_KIND; i < ITLL__STATE_SEED; i++) {
        if (words[i] > UINT32_MAX) return false;
    }
    if (words[ITLL__STATE_KIND] >= ITLL_MODEL_NUM_ENUMS) return false;
    memset(options, 0, sizeof *options);
    options->kind = (ItllModelKind)words[ITLL__STATE_KIND];
    options->num_features = (uint32_t)words[ITLL__STATE_FEATURES];
    options->num_targets = (uint32_t)words[ITLL__STATE_TARGETS];
    options->window = (uint32_t)words[ITLL__STATE_WINDOW];
    options->num_units = (uint32_t)words[ITLL__STATE_UNITS];
    options->num_neighbours = (uint32_t)words[ITLL__STATE_NEIGHBOURS];
    options->num_visits = (uint32_t)words[ITLL__STATE_VISITS];
    options->length_scale = itll__number(words[ITLL__STATE_LENGTH_SCALE]);
    options->noise = itll__number(words[ITLL__STATE_NOISE]);
    options->learning_rate = itll__number(words[ITLL__STATE_LEARNING_RATE]);
    options->seed = words[ITLL__STATE_SEED];
    return itll__is_valid(options);
}

ItllResult itll_state_options(const void* state, size_t state_bytes, ItllOptions* options_out) {
    uint64_t words[ITLL__STATE_NUM_WORDS];
    ItllOptions options;
    if (state == NULL || options_out == NULL) return ITLL__ERROR(INVALID_VALUE);
    if (!itll__read_header(state, state_bytes, words, &options)) return ITLL__ERROR(INVALID_STATE);
    *options_out = options;
    return ITLL_SUCCESS;
}

/* Whether the counts of a state agree with each other. */
static bool itll__are_counts_valid(const ItllModel* model, const uint64_t* words) {
    const uint64_t count = words[ITLL__STATE_COUNT], seen = words[ITLL__STATE_SEEN], scaled = words[ITLL__STATE_SCALED];
    if (seen > UINT64_MAX / 4 || words[ITLL__STATE_STEPS] > UINT64_MAX / ITLL__BATCH - 1) return false;
    if (model->options.kind == ITLL_MODEL_PCA) return count == 0 && scaled == 0;
    if (count == 0) return seen == 0 && scaled == 0;
    return count <= model->options.window && count <= seen && scaled <= seen;
}

static bool itll__are_values_valid(const ItllModel* model) {
    const size_t features = model->options.num_features, targets = model->options.num_targets;
    for (size_t f = 0; model->means != NULL && f < features; f++) {
        if (!itll__is_finite(model->means[f]) || !(model->inverses[f] >= 0.0f) || !itll__is_finite(model->inverses[f]))
            return false;
    }
    for (size_t i = 0; i < model->count; i++) {
        if (!itll__has_targets(model, model->y + (model->first + i) * targets)) return false;
    }
    return true;
}

ItllResult itll_load(ItllModel* model, const void* state, size_t state_bytes) {
    uint64_t words[ITLL__STATE_NUM_WORDS], own[ITLL__STATE_NUM_WORDS];
    ItllOptions options;
    size_t num_bytes;
    if (model == NULL || state == NULL) return ITLL__ERROR(INVALID_VALUE);
    (void)itll_reset(model);
    if (!itll__read_header(state, state_bytes, words, &options)) return ITLL__ERROR(INVALID_STATE);
    itll__header(model, own);
    if (memcmp(words, own, ITLL__STATE_COUNT * sizeof words[0]) != 0) return ITLL__ERROR(OTHER_OPTIONS);
    if (!itll__are_counts_valid(model, words)) return ITLL__ERROR(INVALID_STATE);
    model->count = (size_t)words[ITLL__STATE_COUNT];
    (void)itll_state_size(model, &num_bytes);
    if (state_bytes != num_bytes) {
        (void)itll_reset(model);
        return ITLL__ERROR(INVALID_STATE);
    }
    model->num_seen = words[ITLL__STATE_SEEN];
    model->num_scaled = words[ITLL__STATE_SCALED];
    model->num_steps = words[ITLL__STATE_STEPS];
    ItllStream stream = {NULL, (const char*)state, sizeof words};
    itll__move_arrays(model, &stream);
    if (!itll__are_values_valid(model)) {
        (void)itll_reset(model);
        return ITLL__ERROR(INVALID_STATE);
    }
    if (model->count > 0) {
        itll__enter_all(model);
        itll__finish(model);
    }
    if (model->options.kind == ITLL_MODEL_PCA) itll__pca_solve(model);
    return ITLL_SUCCESS;
}

#endif /* ITLL_MODELS_H_INCLUDED */
