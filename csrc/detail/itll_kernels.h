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
 * Matrices are row-major. "Units" are columns of a layer: random waves, hidden units. Their number is a multiple of 32.
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
ITLL__INLINE ItllF itll__select(ItllI mask, ItllF yes, ItllF no) { return (ItllF)((mask & (ItllI)yes) | (~mask & (ItllI)no)); }

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

ITLL__INLINE ItllI itll__max_s32(ItllI a, ItllI b) {
#if ITLL__LANES == 16
    return (ItllI)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif ITLL__LANES == 8
    return (ItllI)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    const ItllI is_greater = a > b;
    return (a & is_greater) | (b & ~is_greater);
#endif
}

/* Bit k: whether lane k of a is greater. */
ITLL__INLINE uint32_t itll__greater(ItllI a, ItllI b) {
#if ITLL__LANES == 16
    return (uint32_t)_mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b);
#elif ITLL__LANES == 8
    return (uint32_t)_mm256_movemask_ps((__m256)(a > b));
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_ps((__m128)(a > b));
#else
    const ItllI greater = a > b;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < ITLL__LANES; i++) mask |= (uint32_t)(greater[i] & 1) << i;
    return mask;
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

/* ---- functions of one vector ------------------------------------------------------------------------------------- */

/* The nearest integer, for magnitudes below 2^22. */
ITLL__INLINE ItllF itll__round(ItllF x) { return (x + 12582912.0f) - 12582912.0f; }

/* ITLL__WAVE cos(2 pi t), rounded to an integer. The sine's polynomial is that of ptx_vm_kernels.h: error 2^-22. */
ITLL__INLINE ItllF itll__wave(ItllF t) {
    const ItllF turns = t - itll__round(t);
    const ItllF r = 0.25f - (ItllF)((ItllI)turns & INT32_MAX), r2 = r * r;
    ItllF p = r2 * 40.87591f - 76.727905f;
    p = r2 * p + 81.60862f;
    p = r2 * p - 41.341766f;
    p = r2 * p + 6.2831855f;
    return itll__round(r * p * ITLL__WAVE);
}

/* 2^x for x in [-126, 126], clamped; error 2 ulp. The polynomial is that of ptx_vm_kernels.h. */
ITLL__INLINE ItllF itll__ex2(ItllF x) {
    const ItllF low = itll__set(-126.0f), high = itll__set(126.0f);
    x = itll__select(x > low, x, low);
    x = itll__select(x < high, x, high);
    const ItllF magic = x + 12582912.0f, f = x - (magic - 12582912.0f);
    ItllF p = f * 0.00015326471f + 0.0013390806f;
    p = f * p + 0.009618506f;
    p = f * p + 0.0555036f;
    p = f * p + 0.24022648f;
    p = f * p + 0.6931472f;
    p = f * p + 1.0f;
    return (ItllF)((ItllU)p + ((ItllU)magic << 23));
}

/* tanh x = 1 - 2 / (e^2x + 1); absolute error 2^-22. */
ITLL__INLINE ItllF itll__tanh(ItllF x) { return 1.0f - 2.0f / (itll__ex2(x * 2.8853901f) + 1.0f); }

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

enum { ITLL__WAVES, ITLL__TANH, ITLL__DISTANCES };

/* A tile of a layer; constants let the compiler keep it in registers. */
ITLL__INLINE void itll__layer_tile(
    const float* const* rows,
    const float* weights,
    const float* bias,
    uint32_t num_features,
    size_t stride,
    int function,
    float scale,
    float* const* out
) {
    ItllF sums[ITLL__TILE][2];
    for (uint32_t i = 0; i < ITLL__TILE; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            sums[i][k] = function == ITLL__DISTANCES ? itll__set(0.0f) : itll__load(bias + k * ITLL__LANES);
        }
    }
    for (uint32_t f = 0; f < num_features; f++) {
        const ItllF w0 = itll__load(weights + f * stride), w1 = itll__load(weights + f * stride + ITLL__LANES);
        for (uint32_t i = 0; i < ITLL__TILE; i++) {
            const ItllF x = itll__set(rows[i][f]);
            if (function == ITLL__DISTANCES) {
                const ItllF d0 = x - w0, d1 = x - w1;
                sums[i][0] += d0 * d0;
                sums[i][1] += d1 * d1;
            } else {
                sums[i][0] += x * w0;
                sums[i][1] += x * w1;
            }
        }
    }
    ITLL__UNROLL
    for (uint32_t i = 0; i < ITLL__TILE; i++) {
        ITLL__UNROLL
        for (uint32_t k = 0; k < 2; k++) {
            ItllF y = sums[i][k];
            if (function == ITLL__WAVES) y = itll__wave(y);
            if (function == ITLL__TANH) y = itll__tanh(y);
            if (function == ITLL__DISTANCES) y = itll__ex2(y * scale);
            itll__store(out[i] + k * ITLL__LANES, y);
        }
    }
}

ITLL__INLINE void itll__layer_of(
    const float* rows,
    size_t num_rows,
    uint32_t num_features,
    const float* weights,
    const float* bias,
    size_t num_units,
    int function,
    float scale,
    float* out
) {
    for (size_t first = 0; first < num_rows; first += ITLL__TILE) {
        const float* inputs[ITLL__TILE];
        for (size_t i = 0; i < ITLL__TILE; i++) {
            inputs[i] = rows + (first + i < num_rows ? first + i : num_rows - 1) * num_features; /* the last may repeat */
        }
        for (size_t unit = 0; unit < num_units; unit += 2 * ITLL__LANES) {
            float* outputs[ITLL__TILE];
            for (size_t i = 0; i < ITLL__TILE; i++) {
                outputs[i] = out + (first + i < num_rows ? first + i : num_rows - 1) * num_units + unit;
            }
            itll__layer_tile(
                inputs, weights + unit, bias == NULL ? NULL : bias + unit, num_features, num_units, function, scale, outputs
            );
        }
    }
}

/* out[row][unit] = waves(bias[unit] + sum over f of rows[row][f] weights[f][unit]), in turns. */
static void itll__waves(
    const float* rows,
    size_t num_rows,
    uint32_t num_features,
    const float* weights,
    const float* bias,
    size_t num_units,
    float* out
) {
    itll__layer_of(rows, num_rows, num_features, weights, bias, num_units, ITLL__WAVES, 0.0f, out);
}

static void itll__hidden(
    const float* rows,
    size_t num_rows,
    uint32_t num_features,
    const float* weights,
    const float* bias,
    size_t num_units,
    float* out
) {
    itll__layer_of(rows, num_rows, num_features, weights, bias, num_units, ITLL__TANH, 0.0f, out);
}

/* out[row][unit] = 2^(scale |rows[row] - points[.][unit]|^2). */
static void itll__similarities(
    const float* rows, size_t num_rows, uint32_t num_features, const float* points, size_t num_points, float scale, float* out
) {
    itll__layer_of(rows, num_rows, num_features, points, NULL, num_points, ITLL__DISTANCES, scale, out);
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
            if (2 * pair + 1 < num_rows) {
                for (size_t k = 0; k < 32; k++) {
                    to[k] = (int32_t)((uint32_t)(uint16_t)low[column + k] | (uint32_t)(uint16_t)high[column + k] << 16);
                }
            } else {
                for (size_t k = 0; k < 32; k++) to[k] = 2 * pair < num_rows ? (uint16_t)low[column + k] : 0;
            }
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
                    for (uint32_t v = 0; v < 16 / ITLL__LANES_F64; v++) {
                        sums[v] -= itll__load_f64(matrix + r * size + j + v * ITLL__LANES_F64) * a;
                    }
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
            for (uint32_t r = 0; r < k; r++) {
                for (uint32_t n = 0; n < NUM; n++) v[k][n] -= v[r][n] * factor[(block + r) * size + block + k];
            }
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

/* ---- nearest neighbours ------------------------------------------------------------------------------------------ */

#define ITLL__CHUNK 2048u /* rows whose scores are kept; a multiple of 64 */

ITLL__INLINE void itll__insert(ItllNearest* nearest, uint32_t num_wanted, int32_t score, uint32_t row) {
    uint32_t at = nearest->count < num_wanted ? nearest->count++ : num_wanted - 1;
    for (; at > 0 && nearest->scores[at - 1] < score; at--) {
        nearest->scores[at] = nearest->scores[at - 1];
        nearest->rows[at] = nearest->rows[at - 1];
    }
    nearest->scores[at] = score;
    nearest->rows[at] = row;
}

/* A score that as many as `num_wanted` of 16 rows reach; with more wanted, that of none. */
ITLL__INLINE int32_t itll__reached(const int32_t* best, uint32_t num_wanted) {
    int32_t reached = ITLL__NO_SCORE;
    if (num_wanted > 16) return reached;
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t count = 0;
        for (uint32_t j = 0; j < 16; j++) count += (uint32_t)(best[j] >= best[i]);
        reached = count >= num_wanted && best[i] > reached ? best[i] : reached;
    }
    return reached;
}

/* Scores of four queries with rows of 64, and the best score of every sixteenth row so far. */
ITLL__INLINE void itll__scores(
    const int32_t* block,
    const int32_t* norms,
    uint32_t num_pairs,
    const int32_t* const* queries,
    int32_t (*scores)[ITLL__CHUNK],
    ItllI (*best)[ITLL__PARTS]
) {
    enum { VECTORS = ITLL__LANES == 16 ? 4 : 2 };
    ITLL__UNROLL
    for (uint32_t part = 0; part < 64; part += VECTORS * ITLL__LANES) {
        ItllI sums[4][VECTORS];
        for (uint32_t v = 0; v < VECTORS; v++) {
            const ItllI norm = itll__load_s32(norms + part + v * ITLL__LANES);
            for (uint32_t q = 0; q < 4; q++) sums[q][v] = norm;
        }
        for (uint32_t pair = 0; pair < num_pairs; pair++) {
            ItllI rows[VECTORS];
            for (uint32_t v = 0; v < VECTORS; v++) rows[v] = itll__load_s32(block + pair * 64 + part + v * ITLL__LANES);
            for (uint32_t q = 0; q < 4; q++) {
                const ItllI x = itll__set_s32(queries[q][pair]);
                for (uint32_t v = 0; v < VECTORS; v++) {
                    sums[q][v] = (ItllI)((ItllU)sums[q][v] + (ItllU)itll__multiply_pairs(x, rows[v]));
                }
            }
        }
        ITLL__UNROLL
        for (uint32_t q = 0; q < 4; q++) {
            ITLL__UNROLL
            for (uint32_t v = 0; v < VECTORS; v++) {
                const uint32_t slot = (part / ITLL__LANES + v) % ITLL__PARTS;
                best[q][slot] = itll__max_s32(best[q][slot], sums[q][v]);
                memcpy(scores[q] + part + v * ITLL__LANES, &sums[q][v], sizeof sums[q][v]);
            }
        }
    }
}

/* Bit k: whether score k of 64 is greater. Mostly none is, which one comparison tells. */
ITLL__INLINE uint64_t itll__passing(const int32_t* scores, int32_t least) {
    const ItllI bound = itll__set_s32(least);
    ItllI most = itll__load_s32(scores);
    uint64_t mask = 0;
    for (uint32_t i = ITLL__LANES; i < 64; i += ITLL__LANES) most = itll__max_s32(most, itll__load_s32(scores + i));
    if (itll__greater(most, bound) == 0) return 0;
    for (uint32_t i = 0; i < 64; i += ITLL__LANES) mask |= (uint64_t)itll__greater(itll__load_s32(scores + i), bound) << i;
    return mask;
}

/* The rows with the greatest scores 2 query.row - |row|^2, for four queries: the nearest, of equal ones the first. `blocks` has pairs
   of columns of 64 rows, blocks[block][pair][row]; `norms` minus |row|^2, of rows that do not count ITLL__NO_ROW. Scores of a
   chunk are looked through once its bound is known, which few rows pass: branches on each would mispredict. */
static void itll__nearest(
    const int32_t* blocks,
    const int32_t* norms,
    size_t first_block,
    size_t end_block,
    uint32_t num_pairs,
    const int32_t* const* queries,
    uint32_t num_wanted,
    ItllNearest* nearest
) {
    int32_t scores[4][ITLL__CHUNK];
    for (size_t first = first_block; first < end_block; first += ITLL__CHUNK / 64) {
        const size_t end = first + ITLL__CHUNK / 64 < end_block ? first + ITLL__CHUNK / 64 : end_block;
        const uint32_t num_scores = (uint32_t)(end - first) * 64;
        ItllI best[4][ITLL__PARTS];
        for (uint32_t q = 0; q < 4; q++) {
            for (uint32_t i = 0; i < ITLL__PARTS; i++) best[q][i] = itll__set_s32(ITLL__NO_SCORE);
        }
        for (size_t block = first; block < end; block++) {
            int32_t (*to)[ITLL__CHUNK] = (int32_t (*)[ITLL__CHUNK])(void*)(&scores[0][(block - first) * 64]);
            itll__scores(blocks + block * num_pairs * 64, norms + block * 64, num_pairs, queries, to, best);
        }
        for (uint32_t q = 0; q < 4; q++) {
            ItllNearest* to = &nearest[q];
            int32_t lanes[16];
            memcpy(lanes, best[q], sizeof lanes);
            const int32_t reached = itll__reached(lanes, num_wanted);
            int32_t least = reached > ITLL__NO_SCORE ? reached - 1 : reached;
            if (to->count == num_wanted && to->scores[num_wanted - 1] > least) least = to->scores[num_wanted - 1];
            for (uint32_t at = 0; at < num_scores; at += 64) {
                for (uint64_t mask = itll__passing(&scores[q][at], least); mask != 0; mask &= mask - 1) {
                    const uint32_t row = at + (uint32_t)__builtin_ctzll(mask);
                    if (to->count == num_wanted && scores[q][row] <= to->scores[num_wanted - 1]) continue;
                    itll__insert(to, num_wanted, scores[q][row], (uint32_t)(first * 64) + row);
                }
            }
        }
    }
}

/* ---- training of a perceptron ------------------------------------------------------------------------------------ */

/* sums[a][unit] = the sum over rows of left[row][a] right[row][unit]. */
static void itll__outer(
    const float* left, uint32_t num_left, const float* right, size_t num_units, size_t num_rows, float* sums
) {
    for (uint32_t a = 0; a < num_left; a += 4) {
        uint32_t at[4];
        for (uint32_t i = 0; i < 4; i++) at[i] = a + i < num_left ? a + i : num_left - 1; /* the last may repeat */
        for (size_t unit = 0; unit < num_units; unit += 2 * ITLL__LANES) {
            ItllF s[4][2];
            for (uint32_t i = 0; i < 4; i++) s[i][0] = s[i][1] = itll__set(0.0f);
            for (size_t row = 0; row < num_rows; row++) {
                const float* from = right + row * num_units + unit;
                const ItllF r0 = itll__load(from), r1 = itll__load(from + ITLL__LANES);
                for (uint32_t i = 0; i < 4; i++) {
                    const ItllF x = itll__set(left[row * num_left + at[i]]);
                    s[i][0] += x * r0;
                    s[i][1] += x * r1;
                }
            }
            for (uint32_t i = 0; i < 4; i++) {
                itll__store(sums + at[i] * num_units + unit, s[i][0]);
                itll__store(sums + at[i] * num_units + unit + ITLL__LANES, s[i][1]);
            }
        }
    }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

const ItllKernels* ITLL_KERNELS(void) {
    static const ItllKernels kernels = {
        itll__scale_rows,
        itll__waves,
        itll__hidden,
        itll__similarities,
        itll__dots,
        itll__pack,
        itll__add_products,
        itll__cross,
        itll__subtract_products,
        itll__factor,
        itll__solve_lanes,
        itll__nearest,
        itll__outer,
    };
    return &kernels;
}

#endif /* ITLL_KERNELS_H_INCLUDED */
