/*
 * itll_kernels.h - the loops of itll.h that take the time, at the SIMD level of the compiler's flags.
 *
 * Private to itll.h. A file that includes it defines one function, named by ITLL_KERNELS: itll_avx2.c shows how.
 *
 * Bits. Every result is the same at each level and on each machine: products and sums are rounded one by one (no fma), each element
 * has its operations in an order of its own that no vector width changes, and sums over a row go to 16 partial sums that are
 * added as a tree. Sums of products of waves are exact integers. Matrices are row-major; num_units and size are multiples of 32.
 */
#ifndef ITLL_KERNELS_H_INCLUDED
#define ITLL_KERNELS_H_INCLUDED

#include <math.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ITLL__LANES 8
#elif defined(__AVX2__)
#define ITLL__LANES 4
#else
#define ITLL__LANES 2
#endif

/* Vectors, wherever their elements lie. */
typedef double ItllD __attribute__((vector_size(8 * ITLL__LANES), aligned(8), may_alias));
typedef float ItllF __attribute__((vector_size(8 * ITLL__LANES), aligned(4), may_alias));

/* The nearest integer, for magnitudes below 2^22. */
static inline float itll__round(float x) { return (x + 12582912.0f) - 12582912.0f; }

/* ITLL__WAVE cos(2 pi t), rounded to an integer. The sine's polynomial is that of ptx_vm_functions.h: error 2^-22. */
static inline float itll__wave(float t) {
    const float r = 0.25f - fabsf(t - itll__round(t)), r2 = r * r;
    const float p = (((r2 * 40.87591f - 76.727905f) * r2 + 81.60862f) * r2 - 41.341766f) * r2 + 6.2831855f;
    return itll__round(r * p * ITLL__WAVE);
}

/* out[row][unit] = the wave of phases[unit] + the sum over f of z[row][f] frequencies[f][unit], in turns, of ITLL__BLOCK rows. z,
   which is written too, has the rows in standard deviations, at most ITLL__MAX_DEVIATIONS; what is not a number is 0. */
static void itll__waves(
    const float* rows, size_t num_rows, size_t num_features, const float* means, const float* inverses, const float* frequencies,
    const float* phases, size_t num_units, float* __restrict z, float* __restrict out
) {
    for (size_t i = 0; i < ITLL__BLOCK * num_features; i++) {
        const float given = i < num_rows * num_features ? (rows[i] - means[i % num_features]) * inverses[i % num_features] : 0.0f;
        const float low = given > -ITLL__MAX_DEVIATIONS ? given : -ITLL__MAX_DEVIATIONS;
        z[i] = given == given ? (low < ITLL__MAX_DEVIATIONS ? low : ITLL__MAX_DEVIATIONS) : 0.0f;
    }
    for (size_t row = 0; row < num_rows; row += 4) { /* up to the block's end */
        for (size_t unit = 0; unit < num_units; unit += 4 * ITLL__LANES) {
            ItllF sums[4][2];
            for (size_t i = 0; i < 4; i++) memcpy(sums[i], phases + unit, sizeof sums[i]);
            for (size_t f = 0; f < num_features; f++) {
                const ItllF* w = (const ItllF*)(frequencies + f * num_units + unit);
                for (size_t i = 0; i < 4; i++) {
                    sums[i][0] += w[0] * z[(row + i) * num_features + f];
                    sums[i][1] += w[1] * z[(row + i) * num_features + f];
                }
            }
            for (size_t i = 0; i < 4 && row + i < num_rows; i++)
                memcpy(out + (row + i) * num_units + unit, sums[i], sizeof sums[i]);
        }
    }
    for (size_t i = 0; i < num_rows * num_units; i++) out[i] = itll__wave(out[i]);
}

/* out[row][target] = the sum over units of values[row][unit] weights[target][unit]. */
static void itll__dots(
    const float* values, size_t num_rows, const float* weights, size_t num_units, size_t num_targets, float* out
) {
    for (size_t i = 0; i < num_rows * num_targets; i++) {
        const float *x = values + i / num_targets * num_units, *w = weights + i % num_targets * num_units;
        float s[16] = {0.0f};
        for (size_t unit = 0; unit < num_units; unit += 16)
            for (size_t k = 0; k < 16; k++) s[k] += x[unit + k] * w[unit + k];
        for (size_t k = 0; k < 8; k++) s[k] += s[k + 8];
        for (size_t k = 0; k < 4; k++) s[k] += s[k + 4];
        out[i] = (s[0] + s[2]) + (s[1] + s[3]);
    }
}

/* out[unit] = the sum over rows of waves[row][unit] y[row]. */
static void itll__cross(const float* waves, const float* y, size_t num_rows, size_t num_units, double* __restrict out) {
    memset(out, 0, num_units * sizeof *out);
    for (size_t row = 0; row < num_rows; row++)
        for (size_t unit = 0; unit < num_units; unit++) out[unit] += (double)waves[row * num_units + unit] * (double)y[row];
}

/* matrix[i][j] += the sum over k of left[k][i] right[k][j], in the order of k, for j >= i; some j < i are changed too. i and j go
   from `first`, a multiple of 16. */
static void itll__add_products(
    const double* left, const double* right, size_t num_rows, size_t first, size_t size, double* matrix
) {
    for (size_t i = first; i < size; i += 4) {
        for (size_t j = i / 16 * 16; j < size; j += 2 * ITLL__LANES) {
            ItllD sums[4][2];
            for (size_t t = 0; t < 4; t++) memcpy(sums[t], matrix + (i + t) * size + j, sizeof sums[t]);
            for (size_t k = 0; k < num_rows; k++) {
                const ItllD* b = (const ItllD*)(right + k * size + j);
                for (size_t t = 0; t < 4; t++) {
                    sums[t][0] += b[0] * left[k * size + i + t];
                    sums[t][1] += b[1] * left[k * size + i + t];
                }
            }
            for (size_t t = 0; t < 4; t++) memcpy(matrix + (i + t) * size + j, sums[t], sizeof sums[t]);
        }
    }
}

/* U of matrix = U'U, in the upper triangle, and the inverses of its diagonal. negated: room for 16 rows. */
static void itll__factor(double* matrix, size_t size, double* inverses, double* negated) {
    for (size_t block = 0; block < size; block += 16) {
        for (size_t k = block; k < block + 16; k++) {
            double* row = matrix + k * size;
            for (size_t r = block; r < k; r++) {
                const double *above = matrix + r * size, factor = above[k];
                for (size_t j = k; j < size; j++) row[j] -= above[j] * factor;
            }
            inverses[k] = 1.0 / sqrt(row[k] > 1e-30 ? row[k] : 1e-30);
            for (size_t j = k; j < size; j++) row[j] *= inverses[k];
        }
        for (size_t i = 0; i < 16 * size; i++) negated[i] = -matrix[block * size + i];
        itll__add_products(negated, matrix + block * size, 16, block + 16, size, matrix);
    }
}

/* Solves U'v = b in place for 16 right sides, lanes of b[size][16]. */
static void itll__solve_lanes(const double* factor, const double* inverses, size_t size, double* b) {
    for (size_t lane = 0; lane < 16; lane += ITLL__LANES) {
        for (size_t block = 0; block < size; block += 4) { /* four values and a sum fit the registers of every level */
            const double* u = factor + block * size;
            ItllD v[4];
            for (size_t k = 0; k < 4; k++) {
                ItllD* to = (ItllD*)(b + (block + k) * 16 + lane);
                v[k] = *to;
                for (size_t r = 0; r < k; r++) v[k] -= v[r] * u[r * size + block + k];
                *to = v[k] *= inverses[block + k];
            }
            for (size_t i = block + 4; i < size; i++) {
                ItllD* to = (ItllD*)(b + i * 16 + lane);
                *to = (((*to - v[0] * u[i]) - v[1] * u[size + i]) - v[2] * u[2 * size + i]) - v[3] * u[3 * size + i];
            }
        }
    }
}

const ItllKernels* ITLL_KERNELS(void) {
    static const ItllKernels kernels = {
        itll__waves, itll__dots, itll__cross, itll__add_products, itll__factor, itll__solve_lanes,
    };
    return &kernels;
}

#endif /* ITLL_KERNELS_H_INCLUDED */
