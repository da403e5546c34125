/* Plans and statistics of picture.h, and its kernels for any machine of the architecture. Flags: -ffp-contract=off. */
#define PICTURE_KERNELS picture__kernels_baseline
#include "picture_kernels.h"

#define PICTURE__TINY 1e-12

#define PICTURE__NAME(name) #name,
const char* const picture_sum_names[PICTURE_HISTOGRAM] = {PICTURE_SUMS(PICTURE__NAME)};
const char* const picture_statistic_names[PICTURE_NUM_STATISTICS] = {PICTURE_STATISTICS(PICTURE__NAME)};

const PictureKernels* picture_kernels(unsigned int level) {
#if defined(PICTURE_X86_LEVELS) && defined(__x86_64__)
    if (level == 1 && __builtin_cpu_supports("avx2")) return picture__kernels_avx2();
    if (level == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return picture__kernels_avx512();
    }
#endif
    return level == 0 ? picture__kernels_baseline() : NULL;
}

static unsigned int picture__log2(size_t number) {
    unsigned int exponent = 0;
    while (number >>= 1) exponent++;
    return exponent;
}

static size_t picture__reversed(size_t number, unsigned int num_bits) {
    size_t reversed = 0;
    for (unsigned int bit = 0; bit < num_bits; bit++) reversed |= (number >> bit & 1u) << (num_bits - 1 - bit);
    return reversed;
}

static PicturePlan* picture__lay_plan(EvoArena* arena, size_t size) {
    const size_t half = size / 2, log_size = picture__log2(size);
    PicturePlan empty, *plan = (PicturePlan*)evo__take(arena, 1, sizeof *plan);
    PicturePlan* laid = plan != NULL ? plan : &empty;
    laid->taper = (float*)evo__take(arena, size, sizeof(float));
    laid->roots = (float*)evo__take(arena, size, sizeof(float));
    laid->row_roots = (float*)evo__take(arena, log_size * size, sizeof(float));
    laid->band = (int32_t*)evo__take(arena, half * size, sizeof(int32_t));
    laid->first_band = (int32_t*)evo__take(arena, half, sizeof(int32_t));
    laid->reversed = (int32_t*)evo__take(arena, half, sizeof(int32_t));
    laid->is_inside = (int32_t*)evo__take(arena, size, sizeof(int32_t));
    return plan;
}

size_t picture_plan_size(size_t size) {
    if (size < PICTURE_MIN_SIZE || size > PICTURE_MAX_SIZE || (size & (size - 1)) != 0) return 0;
    EvoArena arena = evo__arena(NULL, 0);
    (void)picture__lay_plan(&arena, size);
    return arena.num_bytes;
}

const PicturePlan* picture_plan_init(size_t size, const PictureKernels* kernels, void* memory, size_t memory_bytes) {
    EvoArena arena = evo__arena(memory, memory_bytes);
    PicturePlan* plan = picture__lay_plan(&arena, size);
    const unsigned int log_size = picture__log2(size);
    const size_t half = size / 2;
    const double pi = 3.14159265358979323846;
    plan->kernels = kernels;
    plan->size = size;
    plan->num_bands = 2 * log_size - 3;
    for (size_t i = 0; i < size; i++) {
        const double wave = sin(pi * ((double)i + 0.5) / (double)size);
        plan->taper[i] = (float)(wave * wave);
        plan->is_inside[i] = i + 1 < size;
    }
    for (size_t i = 0; i < half; i++) {
        plan->roots[i] = (float)cos(2.0 * pi * (double)i / (double)size);
        plan->roots[half + i] = (float)-sin(2.0 * pi * (double)i / (double)size);
        plan->reversed[i] = (int32_t)picture__reversed(i, log_size - 1);
    }
    for (unsigned int stage = 0; stage < log_size; stage++) {
        float* roots = plan->row_roots + stage * size;
        for (size_t i = 0; i < half; i++) {
            roots[i] = plan->roots[i >> stage << stage];
            roots[half + i] = plan->roots[half + (i >> stage << stage)];
        }
    }
    double samples[PICTURE_MAX_BANDS] = {0}, frequencies[PICTURE_MAX_BANDS] = {0};
    for (size_t row = 0; row < half; row++) {
        const size_t down = picture__reversed(row, log_size - 1);
        const double copies = down > 0 ? 2.0 : 1.0; /* negative frequencies have the same power */
        plan->first_band[row] = (int32_t)plan->num_bands;
        for (size_t i = 0; i < size; i++) {
            /* Position at which the last stage leaves the value at place 2 i or 2 i + 1 of the one before. */
            const size_t column = picture__reversed(i < half ? 2 * i : 2 * (i - half) + 1, log_size);
            const size_t across = column < half ? column : size - column;
            const size_t square = down * down + across * across;
            const int32_t band = square >= 2 && square < half * half ? (int32_t)picture__log2(square) - 1 : -1;
            plan->band[row * size + i] = band;
            if (band < 0) continue;
            if (band < plan->first_band[row]) plan->first_band[row] = band;
            samples[band] += copies;
            frequencies[band] += copies * sqrt((double)square);
        }
    }
    for (size_t band = 0; band < plan->num_bands; band++) {
        const double frequency = frequencies[band] / samples[band];
        plan->whitening[band] = frequency * frequency / samples[band];
    }
    return plan;
}

size_t picture_work_size(const PicturePlan* plan) {
    EvoArena arena = evo__arena(NULL, 0);
    (void)picture__lay_work(&arena, plan->size);
    return arena.num_bytes;
}

void picture_draw(
    const PictureKernels* kernels, PictureColors colors, const float* f, const float* g, size_t size, float* rows,
    uint8_t* pixels_out
) {
    const size_t plane = 4 * size; /* two rows of numbers */
    for (size_t row = 0; row < size; row++) {
        kernels->color(colors, f + row * plane, g + row * plane, plane, rows, rows + plane, rows + 2 * plane);
        for (size_t i = 0; i < size; i++) {
            for (size_t channel = 0; channel < 3; channel++) {
                const float *upper = rows + channel * plane + 2 * i, *lower = upper + 2 * size;
                const float sum = (upper[0] + lower[0]) + (upper[1] + lower[1]);
                pixels_out[3 * (row * size + i) + channel] = (uint8_t)(int32_t)(sum * 63.75f + 0.5f);
            }
        }
    }
}

static double picture__degrees(double y, double x) { return atan2(y, x) * (180.0 / 3.14159265358979323846); }

void picture_statistics(const PicturePlan* plan, const double* sums, double* statistics_out) {
#define PICTURE__OF(name) sums[PICTURE_SUM_##name]
#define PICTURE__SET(name, value) statistics_out[PICTURE_STATISTIC_##name] = (value)
    const double size = (double)plan->size, num_pixels = size * size;
    const double num_regions = num_pixels / (PICTURE_BLOCK * PICTURE_REGION * PICTURE_BLOCK * PICTURE_REGION);
    const double num_bands = (double)plan->num_bands, amplitude = PICTURE__OF(amplitude) + PICTURE__TINY;
    const double aa = PICTURE__OF(aa) / num_pixels, bb = PICTURE__OF(bb) / num_pixels, ab = PICTURE__OF(ab) / num_pixels;
    const double determinant = aa * bb - ab * ab;
    double entropy = 0.0, mean = 0.0, squares = 0.0, octaves[PICTURE_MAX_BANDS];
    for (size_t level = 0; level < PICTURE_LEVELS; level++) {
        const double share = sums[PICTURE_HISTOGRAM + level] / num_pixels;
        if (share > 0.0) entropy -= share * log2(share);
    }
    for (size_t band = 0; band < plan->num_bands; band++) {
        octaves[band] = log2(sums[PICTURE_BANDS + band] * plan->whitening[band] + PICTURE__TINY);
        mean += octaves[band] / num_bands;
    }
    for (size_t band = 0; band < plan->num_bands; band++) squares += (octaves[band] - mean) * (octaves[band] - mean);
    const double hue = picture__degrees(PICTURE__OF(mean_b), PICTURE__OF(mean_a));
    const double orientation = picture__degrees(PICTURE__OF(twice_imaginary), PICTURE__OF(twice_real)) / 2.0 + 90.0;
    PICTURE__SET(brightness, PICTURE__OF(mean));
    PICTURE__SET(contrast, sqrt(PICTURE__OF(yy) / num_pixels));
    PICTURE__SET(entropy, entropy / log2((double)PICTURE_LEVELS));
    PICTURE__SET(spectral_deviation, sqrt(squares / num_bands));
    PICTURE__SET(coherence, PICTURE__OF(oriented) / (PICTURE__OF(energy) + PICTURE__TINY));
    PICTURE__SET(anisotropy, hypot(PICTURE__OF(twice_real), PICTURE__OF(twice_imaginary)) / amplitude);
    PICTURE__SET(squareness, hypot(PICTURE__OF(fourfold_real), PICTURE__OF(fourfold_imaginary)) / amplitude);
    PICTURE__SET(
        spread,
        PICTURE__OF(region_amplitude) * PICTURE__OF(region_amplitude) / (num_regions * PICTURE__OF(region_energy) + PICTURE__TINY)
    );
    PICTURE__SET(seam, PICTURE__OF(seam) / (size - 1.0));
    PICTURE__SET(hue_variety, 2.0 * sqrt(determinant > 0.0 ? determinant : 0.0) / (aa + bb + PICTURE__TINY));
    PICTURE__SET(colourfulness, sqrt(aa + bb) + 0.3 * hypot(PICTURE__OF(mean_a), PICTURE__OF(mean_b)));
    PICTURE__SET(detail, PICTURE__OF(edges) / ((size - 1.0) * (size - 1.0)));
    PICTURE__SET(hue, hue < 0.0 ? hue + 360.0 : hue);
    PICTURE__SET(orientation, orientation < 180.0 ? orientation : orientation - 180.0);
    PICTURE__SET(finite, sums[PICTURE_BANDS + plan->num_bands] / num_pixels);
}
