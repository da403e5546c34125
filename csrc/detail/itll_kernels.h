/*
 * itll_kernels.h - the loops of itll.h that take the time, at the SIMD level of the compiler's flags.
 *
 * Private to itll.h. A file that includes it defines one function, named by ITLL_KERNELS:
 *
 *     #define ITLL_KERNELS itll__kernels_avx2
 *     #include "../itll.h"
 *     #include "itll_kernels.h"
 *
 * Bits. Every result is the same at each level and on each machine: products and sums are rounded one by one (no fma), each element
 * has its operations in an order of its own that no vector width changes, and sums over a row go to 16 partial sums that are
 * added as a tree. What is counted in integers is exact, so its order is free.
 *
 * Matrices are row-major. "Units" are random waves. Their number is a multiple of 32.
 */
#ifndef ITLL_KERNELS_H_INCLUDED
#define ITLL_KERNELS_H_INCLUDED

#include <math.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define ITLL__UNROLL _Pragma("clang loop unroll(full)")
#else
#define ITLL__UNROLL _Pragma("GCC unroll 8")
#endif
#define ITLL__INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ITLL__LANES 16
#define ITLL__TILE 8 /* rows that share what is loaded: as many as there are registers for */
#elif defined(__AVX2__)
#define ITLL__LANES 8
#define ITLL__TILE 4
#else
#define ITLL__LANES 4
#define ITLL__TILE 4
#endif
#define ITLL__LANES_F64 (ITLL__LANES / 2)
#define ITLL__PARTS (16 / ITLL__LANES) /* vectors of 16 partial sums */

typedef float ItllF __attribute__((vector_size(4 * ITLL__LANES)));
typedef double ItllD __attribute__((vector_size(4 * ITLL__LANES)));
typedef int32_t ItllI __attribute__((vector_size(4 * ITLL__LANES)));
typedef uint32_t ItllU __attribute__((vector_size(4 * ITLL__LANES)));

ITLL__INLINE ItllF itll__load(const float* p) {
    ItllF v;
    memcpy(&v, p, sizeof v);
    return v;
}
ITLL__INLINE ItllD itll__load_f64(const double* p) {
    ItllD v;
    memcpy(&v, p, sizeof v);
    return v;
}
ITLL__INLINE ItllI itll__load_s32(const void* p) {
    ItllI v;
    memcpy(&v, p, sizeof v);
    return v;
}
ITLL__INLINE void itll__store(float* p, ItllF v) { memcpy(p, &v, sizeof v); }
ITLL__INLINE void itll__store_f64(double* p, ItllD v) { memcpy(p, &v, sizeof v); }
ITLL__INLINE ItllF itll__set(float f) {
    ItllF zero = {0};
    return zero + f;
}
ITLL__INLINE ItllI itll__set_s32(int32_t i) {
    ItllI zero = {0};
    return zero + i;
}
/* Products of 16-bit integers, added in pairs. */
ITLL__INLINE ItllI itll__multiply_pairs(ItllI a, ItllI b) {
#if ITLL__LANES == 16
    return (ItllI)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif ITLL__LANES == 8
    return (ItllI)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (ItllI)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    const ItllI low_a = (ItllI)((ItllU)a << 16) >> 16, low_b = (ItllI)((ItllU)b << 16) >> 16;
    return low_a * low_b + (a >> 16) * (b >> 16);
#endif
}

/* 16-bit integers as floats. */
ITLL__INLINE ItllF itll__load_s16(const int16_t* p) {
#if ITLL__LANES == 16
    return (ItllF)_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i*)(const void*)p)));
#elif ITLL__LANES == 8
    return (ItllF)_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i*)(const void*)p)));
#else
    ItllF v = {(float)p[0], (float)p[1], (float)p[2], (float)p[3]};
    return v;
#endif
}

/* The sum of 16 partial sums. */
ITLL__INLINE float itll__tree(const ItllF* parts) {
    float s[16];
    memcpy(s, parts, sizeof s);
    for (uint32_t i = 0; i < 8; i++) s[i] += s[i + 8];
    for (uint32_t i = 0; i < 4; i++) s[i] += s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* The nearest integer, for magnitudes below 2^22. */
ITLL__INLINE ItllF itll__round(ItllF x) { return (x + 12582912.0f) - 12582912.0f; }

/* ITLL__WAVE cos(2 pi t), rounded to an integer. The sine's polynomial is that of ptx_vm_functions.h: error 2^-22. */
ITLL__INLINE ItllF itll__wave(ItllF t) {
    const ItllF turns = t - itll__round(t);
    const ItllF r = 0.25f - (ItllF)((ItllI)turns & INT32_MAX), r2 = r * r;
    ItllF p = r2 * 40.87591f - 76.727905f;
    p = r2 * p + 81.60862f;
    p = r2 * p - 41.341766f;
    p = r2 * p + 6.2831855f;
    return itll__round(r * p * ITLL__WAVE);
}

/* ---- scales ------------------------------------------------------------------------------------------------------ */

/* Rows in standard deviations, at most ITLL__MAX_DEVIATIONS; what is not a number is 0. */
static void itll__scale_rows(
    const float* rows, size_t num_rows, size_t num_features, const float* means, const float* inverses, float* scaled
) {
    for (size_t row = 0; row < num_rows; row++) {
        for (size_t f = 0; f < num_features; f++) {
            const float z = (rows[row * num_features + f] - means[f]) * inverses[f];
            const float low = z > -ITLL__MAX_DEVIATIONS ? z : -ITLL__MAX_DEVIATIONS;
            const float bounded = low < ITLL__MAX_DEVIATIONS ? low : ITLL__MAX_DEVIATIONS;
            scaled[row * num_features + f] = z == z ? bounded : 0.0f;
        }
    }
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* The waves of a tile of rows and units; constants let the compiler keep it in registers. */
ITLL__INLINE void itll__wave_tile(
    const float* const* rows, const float* frequencies, const float* phases, uint32_t num_features, size_t stride,
    float* const* out
) {
    ItllF sums[ITLL__TILE][2];
    for (uint32_t i = 0; i < ITLL__TILE; i++)
        for (uint32_t k = 0; k < 2; k++) sums[i][k] = itll__load(phases + k * ITLL__LANES);
    for (uint32_t f = 0; f < num_features; f++) {
        const ItllF w0 = itll__load(frequencies + f * stride), w1 = itll__load(frequencies + f * stride + ITLL__LANES);
        for (uint32_t i = 0; i < ITLL__TILE; i++) {
            const ItllF x = itll__set(rows[i][f]);
            sums[i][0] += x * w0;
            sums[i][1] += x * w1;
        }
    }
    ITLL__UNROLL
    for (uint32_t i = 0; i < ITLL__TILE; i++) {
        ITLL__UNROLL
        for (uint32_t k = 0; k < 2; k++) itll__store(out[i] + k * ITLL__LANES, itll__wave(sums[i][k]));
    }
}

/* out[row][unit] = the wave of phases[unit] + the sum over f of rows[row][f] frequencies[f][unit], in turns. */
static void itll__waves(
    const float* rows, size_t num_rows, uint32_t num_features, const float* frequencies, const float* phases, size_t num_units,
    float* out
) {
    for (size_t first = 0; first < num_rows; first += ITLL__TILE) {
        size_t tile[ITLL__TILE];
        const float* inputs[ITLL__TILE];
        float* outputs[ITLL__TILE];
        for (size_t i = 0; i < ITLL__TILE; i++) {
            tile[i] = first + i < num_rows ? first + i : num_rows - 1; /* the last may repeat */
            inputs[i] = rows + tile[i] * num_features;
        }
        for (size_t unit = 0; unit < num_units; unit += 2 * ITLL__LANES) {
            for (size_t i = 0; i < ITLL__TILE; i++) outputs[i] = out + tile[i] * num_units + unit;
            itll__wave_tile(inputs, frequencies + unit, phases + unit, num_features, num_units, outputs);
        }
    }
}

/* out[row][target] = the sum over units of values[row][unit] weights[target][unit]. */
static void itll__dots(
    const float* values, size_t num_rows, const float* weights, size_t num_units, uint32_t num_targets, float* out
) {
    for (size_t row = 0; row < num_rows; row++) {
        for (uint32_t first = 0; first < num_targets; first += 4) {
            const uint32_t count = num_targets - first < 4 ? num_targets - first : 4;
            const float* w[4];
            ItllF parts[4][ITLL__PARTS];
            for (uint32_t t = 0; t < 4; t++) {
                w[t] = weights + (first + (t < count ? t : 0)) * num_units;
                for (uint32_t k = 0; k < ITLL__PARTS; k++) parts[t][k] = itll__set(0.0f);
            }
            for (size_t unit = 0; unit < num_units; unit += 16) {
                for (uint32_t k = 0; k < ITLL__PARTS; k++) {
                    const ItllF x = itll__load(values + row * num_units + unit + k * ITLL__LANES);
                    for (uint32_t t = 0; t < 4; t++) parts[t][k] += x * itll__load(w[t] + unit + k * ITLL__LANES);
                }
            }
            for (uint32_t t = 0; t < count; t++) out[row * num_targets + first + t] = itll__tree(parts[t]);
        }
    }
}

/* ---- ridge: integers, so every sum is exact ---------------------------------------------------------------------- */

/* Adds `sign` times the products of every two columns to the upper triangle of `gram`; some of what lies below the diagonal changes
   too. `packed` holds ITLL__GRAM_PAIRS pairs of rows, 16 bits each, in panels of 32 columns: packed[panel][pair][column]. */
static void itll__add_products(const int32_t* packed, size_t num_units, double sign, double* gram) {
    for (size_t column = 0; column < num_units; column += 32) {
        for (size_t part = 0; part < 32; part += 2 * ITLL__LANES) {
            for (size_t row = 0; row < column + 32; row += ITLL__TILE) {
                const int32_t* a = packed + row / 32 * 32 * ITLL__GRAM_PAIRS + row % 32;
                const int32_t* b = packed + column * ITLL__GRAM_PAIRS + part;
                ItllI sums[ITLL__TILE][2];
                for (uint32_t i = 0; i < ITLL__TILE; i++) sums[i][0] = sums[i][1] = itll__set_s32(0);
                for (uint32_t pair = 0; pair < ITLL__GRAM_PAIRS; pair++) {
                    const ItllI b0 = itll__load_s32(b + pair * 32), b1 = itll__load_s32(b + pair * 32 + ITLL__LANES);
                    for (uint32_t i = 0; i < ITLL__TILE; i++) {
                        const ItllI x = itll__set_s32(a[pair * 32 + i]);
                        sums[i][0] += itll__multiply_pairs(x, b0);
                        sums[i][1] += itll__multiply_pairs(x, b1);
                    }
                }
                for (uint32_t i = 0; i < ITLL__TILE; i++) {
                    int32_t s[2 * ITLL__LANES];
                    double* to = gram + (row + i) * num_units + column + part;
                    memcpy(s, sums[i], sizeof s);
                    for (uint32_t k = 0; k < 2 * ITLL__LANES; k++) to[k] += sign * (double)s[k];
                }
            }
        }
    }
}

/* Packs up to 2 ITLL__GRAM_PAIRS rows for itll__add_products; the rest is zero. */
static void itll__pack(const int16_t* rows, size_t num_rows, size_t num_units, int32_t* packed) {
    for (size_t pair = 0; pair < ITLL__GRAM_PAIRS; pair++) {
        const int16_t* low = rows + 2 * pair * num_units;
        const int16_t* high = low + num_units;
        for (size_t column = 0; column < num_units; column += 32) {
            int32_t* to = packed + column * ITLL__GRAM_PAIRS + pair * 32;
            if (2 * pair + 1 < num_rows)
                for (size_t k = 0; k < 32; k++)
                    to[k] = (int32_t)((uint32_t)(uint16_t)low[column + k] | (uint32_t)(uint16_t)high[column + k] << 16);
            else
                for (size_t k = 0; k < 32; k++) to[k] = 2 * pair < num_rows ? (uint16_t)low[column + k] : 0;
        }
    }
}

/* out[unit] = the sum over rows of values[row][unit] y[row]: in f32 over 64 rows, those in f64. */
static void itll__cross(const int16_t* values, const float* y, size_t num_rows, size_t num_units, double* out) {
    for (size_t unit = 0; unit < num_units; unit++) out[unit] = 0.0;
    for (size_t first = 0; first < num_rows; first += 64) {
        const size_t end = first + 64 < num_rows ? first + 64 : num_rows;
        for (size_t unit = 0; unit < num_units; unit += 2 * ITLL__LANES) {
            ItllF s0 = itll__set(0.0f), s1 = s0;
            float s[2 * ITLL__LANES];
            for (size_t row = first; row < end; row++) {
                const ItllF target = itll__set(y[row]);
                s0 += itll__load_s16(values + row * num_units + unit) * target;
                s1 += itll__load_s16(values + row * num_units + unit + ITLL__LANES) * target;
            }
            itll__store(s, s0);
            itll__store(s + ITLL__LANES, s1);
            for (uint32_t k = 0; k < 2 * ITLL__LANES; k++) out[unit + k] += (double)s[k];
        }
    }
}

/* ---- linear systems ---------------------------------------------------------------------------------------------- */

/* matrix[i][j] -= the sum over k of rows[k][i] rows[k][j], in the order of k, for j >= i; some j < i are changed too. i and j go
   from `first`, a multiple of 16. */
static void itll__subtract_products(const double* rows, uint32_t num_rows, size_t first, size_t size, double* matrix) {
    for (size_t i = first; i < size; i += 4) {
        for (size_t j = i / 16 * 16; j < size; j += 2 * ITLL__LANES_F64) {
            double* to = matrix + i * size + j;
            ItllD sums[4][2];
            for (uint32_t t = 0; t < 4; t++) {
                sums[t][0] = itll__load_f64(to + t * size);
                sums[t][1] = itll__load_f64(to + t * size + ITLL__LANES_F64);
            }
            for (uint32_t k = 0; k < num_rows; k++) {
                const ItllD b0 = itll__load_f64(rows + k * size + j), b1 = itll__load_f64(rows + k * size + j + ITLL__LANES_F64);
                for (uint32_t t = 0; t < 4; t++) {
                    const double a = rows[k * size + i + t];
                    sums[t][0] -= b0 * a;
                    sums[t][1] -= b1 * a;
                }
            }
            for (uint32_t t = 0; t < 4; t++) {
                itll__store_f64(to + t * size, sums[t][0]);
                itll__store_f64(to + t * size + ITLL__LANES_F64, sums[t][1]);
            }
        }
    }
}

/* U of matrix = U'U, in the upper triangle, and the inverses of its diagonal. `size` is a multiple of 16. */
static void itll__factor(double* matrix, size_t size, double* inverses) {
    for (size_t block = 0; block < size; block += 16) {
        for (size_t k = block; k < block + 16; k++) {
            double* row = matrix + k * size;
            for (size_t j = block; j < size; j += 16) {
                ItllD sums[16 / ITLL__LANES_F64];
                memcpy(sums, row + j, sizeof sums);
                for (size_t r = block; r < k; r++) {
                    const double a = matrix[r * size + k];
                    for (uint32_t v = 0; v < 16 / ITLL__LANES_F64; v++)
                        sums[v] -= itll__load_f64(matrix + r * size + j + v * ITLL__LANES_F64) * a;
                }
                memcpy(row + j, sums, sizeof sums);
            }
            const double pivot = row[k] > 1e-30 ? row[k] : 1e-30;
            const double inverse = 1.0 / sqrt(pivot);
            for (size_t j = k; j < size; j++) row[j] *= inverse;
            inverses[k] = inverse;
        }
        itll__subtract_products(matrix + block * size, 16, block + 16, size, matrix);
    }
}

/* Solves U'v = b in place for 16 right sides, lanes of b[size][16]. */
static void itll__solve_lanes(const double* factor, const double* inverses, size_t size, double* b) {
    enum { NUM = 16 / ITLL__LANES_F64 };
    for (size_t block = 0; block < size; block += 4) {
        ItllD v[4][NUM];
        for (uint32_t k = 0; k < 4; k++) {
            memcpy(v[k], b + (block + k) * 16, sizeof v[k]);
            for (uint32_t r = 0; r < k; r++)
                for (uint32_t n = 0; n < NUM; n++) v[k][n] -= v[r][n] * factor[(block + r) * size + block + k];
            for (uint32_t n = 0; n < NUM; n++) v[k][n] *= inverses[block + k];
            memcpy(b + (block + k) * 16, v[k], sizeof v[k]);
        }
        const double* u = factor + block * size;
        for (uint32_t n = 0; n < NUM; n++) { /* one vector at a time: four values and a sum fit the registers of every level */
            const ItllD v0 = v[0][n], v1 = v[1][n], v2 = v[2][n], v3 = v[3][n];
            for (size_t i = block + 4; i < size; i++) {
                double* to = b + i * 16 + n * ITLL__LANES_F64;
                ItllD sum = itll__load_f64(to);
                sum -= v0 * u[i];
                sum -= v1 * u[size + i];
                sum -= v2 * u[2 * size + i];
                sum -= v3 * u[3 * size + i];
                itll__store_f64(to, sum);
            }
        }
    }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

const ItllKernels* ITLL_KERNELS(void) {
    static const ItllKernels kernels = {
        itll__scale_rows,        itll__waves,  itll__dots,        itll__pack, itll__add_products, itll__cross,
        itll__subtract_products, itll__factor, itll__solve_lanes,
    };
    return &kernels;
}

#endif /* ITLL_KERNELS_H_INCLUDED */
