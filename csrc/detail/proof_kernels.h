/* proof_kernels.h - the sweeps of proof.h at the SIMD level of the compiler's flags, as the function PROOF_KERNELS. Flags: -O3
   -ffp-contract=off -fno-trapping-math -Wno-psabi. */
#include "proof.h"

#include <math.h>
#include <string.h>

#define PROOF__INLINE static inline __attribute__((always_inline))

#define PROOF__FLUSHED 0x1p-126
#define PROOF__LARGEST 0x1p200 /* stands for all that is larger */
enum { PROOF__LANES = 8 };
typedef float ProofF __attribute__((vector_size(4 * PROOF__LANES)));
typedef double ProofV __attribute__((vector_size(8 * PROOF__LANES)));
typedef int64_t ProofQ __attribute__((vector_size(8 * PROOF__LANES)));

PROOF__INLINE ProofV proof__choose(ProofQ mask, ProofV yes, ProofV no) {
    return (ProofV)((mask & (ProofQ)yes) | (~mask & (ProofQ)no));
}
PROOF__INLINE ProofV proof__abs(ProofV v) { return (ProofV)((ProofQ)v & INT64_MAX); }

/* 1 / ulp of each number: a power of two. */
PROOF__INLINE ProofV proof__inverse_ulps(ProofV size, const ProofFormat* format) {
    const ProofQ zero = {0}, least = zero + (1023 + format->least_exponent);
    ProofQ exponent = (ProofQ)size >> 52;
    const ProofQ is_low = exponent < least;
    exponent = (is_low & least) | (~is_low & exponent);
    return (ProofV)((2046 + format->digits - 1 - exponent) << 52);
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

PROOF__INLINE ProofV proof__polynomial(const double* c, ProofV t) {
    ProofV sum = t - t + c[PROOF_DEGREE];
    for (int i = PROOF_DEGREE - 1; i >= 0; i--) sum = sum * t + c[i];
    return sum;
}

static double proof__reference(
    const ProofPieces* pieces, const ProofFormat* format, int64_t first_key, const float* x, size_t num_points, double* exact_out
) {
    size_t piece = 0, high = pieces->num_pieces, i = 0;
    double worst = 0.0;
    while (high - piece > 1) {
        const size_t middle = piece + (high - piece) / 2;
        if (pieces->first_keys[middle] <= first_key)
            piece = middle;
        else
            high = middle;
    }
    for (; i < num_points; piece++) {
        const int64_t begin = pieces->first_keys[piece], end = pieces->first_keys[piece + 1];
        const size_t stop = end - first_key < (int64_t)num_points ? (size_t)(end - first_key) : num_points;
        const double* c = pieces->coefficients + piece * PROOF_NUM_COEFFICIENTS;
        if (end - begin <= PROOF_NUM_COEFFICIENTS) {
            for (; i < stop; i++) exact_out[i] = c[first_key + (int64_t)i - begin];
            continue;
        }
        const ProofV zero = {0};
        const double bound = pieces->bounds[piece];
        ProofV least = zero + INFINITY;
        ProofQ is_moved = {0};
        while (i < stop) {
            const size_t count = stop - i < PROOF__LANES ? stop - i : PROOF__LANES;
            double out[PROOF__LANES];
            ProofF v;
            if (count == PROOF__LANES)
                memcpy(&v, x + i, sizeof v);
            else
                for (size_t lane = 0; lane < PROOF__LANES; lane++) v[lane] = x[i + (lane < count ? lane : 0)];
            const ProofV t = (__builtin_convertvector(v, ProofV) - pieces->centres[piece]) * pieces->inverses[piece];
            ProofV value = proof__polynomial(c, t), size = proof__abs(value);
            /* A case that the bound leaves open is decided against the program: below a power of two the ulp is the smaller one, at 2^-126
               no zero is a flushed result, and below the overflow infinity is wrong. */
            const ProofV highest = size + bound, lowest = size - bound;
            const ProofQ power = (ProofQ)size & ((int64_t)0x7FF << 52);
            const ProofQ is_near = (ProofQ)(lowest < (ProofV)power) & (power > 0);
            const ProofQ is_over = (size >= format->overflow) & (lowest < format->overflow);
            size = proof__choose(is_near, (ProofV)(power - 1), size);
            size = proof__choose(is_over, (ProofV)((ProofQ)(zero + format->overflow) - 1), size);
            const ProofQ is_normal = (size < PROOF__FLUSHED) & (highest >= PROOF__FLUSHED);
            size = proof__choose(is_normal, zero + PROOF__FLUSHED, size);
            value = (ProofV)((ProofQ)size | ((ProofQ)value & INT64_MIN));
            is_moved |= is_near | is_over | is_normal;
            least = proof__choose(size < least, size, least);
            if (count == PROOF__LANES) {
                memcpy(exact_out + i, &value, sizeof value);
            } else {
                memcpy(out, &value, sizeof out);
                memcpy(exact_out + i, out, count * sizeof *out);
            }
            i += count;
        }
        const ProofV ratios = proof__choose(is_moved, zero + 2.0 * bound, zero + bound) * proof__inverse_ulps(least, format);
        for (int lane = 0; lane < PROOF__LANES; lane++)
            if (ratios[lane] > worst) worst = ratios[lane];
    }
    return worst;
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void proof__compare(
    const ProofFormat* format, const float* results, const double* exact, size_t num_points, double doubt, ProofErrors* errors_out
) {
    const ProofV zero = {0};
    const ProofV least_normal = (ProofV)((ProofQ){0} + ((int64_t)(1023 + format->least_exponent) << 52));
    const ProofQ lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    ProofV worst[PROOF_NUM_ERRORS] = {zero - 1.0, zero - 1.0, zero - 1.0};
    ProofQ at[PROOF_NUM_ERRORS] = {lanes, lanes, lanes}, nans = {0}, signs = {0}, falls = {0};
    for (size_t i = 0; i < num_points; i += PROOF__LANES) {
        ProofF narrow, next;
        ProofV r, r1;
        if (i + PROOF__LANES < num_points) {
            memcpy(&narrow, results + i, sizeof narrow);
            memcpy(&next, results + i + 1, sizeof next);
            memcpy(&r, exact + i, sizeof r);
            memcpy(&r1, exact + i + 1, sizeof r1);
        } else { /* the last ones again and again */
            for (size_t lane = 0; lane < PROOF__LANES; lane++) {
                const size_t here = i + lane < num_points ? i + lane : num_points - 1;
                const size_t after = here + 1 < num_points ? here + 1 : here;
                narrow[lane] = i + lane < num_points ? results[here] : 1.0f;
                r[lane] = i + lane < num_points ? exact[here] : 1.0;
                next[lane] = i + lane < num_points ? results[after] : 1.0f;
                r1[lane] = i + lane < num_points ? exact[after] : 1.0;
            }
        }
        const ProofV y = __builtin_convertvector(narrow, ProofV), y1 = __builtin_convertvector(next, ProofV);
        const ProofV size = proof__abs(r), open = doubt / proof__inverse_ulps(size, format);
        const ProofQ is_nan = y != y, is_infinite = proof__abs(y) == INFINITY, differ = ((ProofQ)y ^ (ProofQ)r) < 0;
        const ProofQ is_flushed = (y == 0.0) & (size - open < PROOF__FLUSHED);
        const ProofQ is_right = (is_infinite & (size + open >= format->overflow) & ~differ) | is_flushed;
        ProofV error = proof__abs(y - r) - open;
        error = proof__choose(is_right | (error < 0.0), zero, error);
        error = proof__choose(is_nan | (~is_right & (size >= PROOF__LARGEST)), zero + INFINITY, error);
        const ProofV divisor = proof__choose(size < least_normal, least_normal, size);
        const ProofV errors[PROOF_NUM_ERRORS] = {error * proof__inverse_ulps(size + open, format), error, error / divisor};
        for (int kind = 0; kind < PROOF_NUM_ERRORS; kind++) {
            const ProofQ is_worse = errors[kind] > worst[kind];
            worst[kind] = proof__choose(is_worse, errors[kind], worst[kind]);
            at[kind] = (is_worse & (lanes + (int64_t)i)) | (~is_worse & at[kind]);
        }
        nans -= is_nan;
        signs -= differ & (y != 0.0) & (r != 0.0) & ~is_nan;
        falls -= ((y1 > y) & (r1 < r)) | ((y1 < y) & (r1 > r));
    }
    memset(errors_out, 0, sizeof *errors_out);
    for (int kind = 0; kind < PROOF_NUM_ERRORS; kind++) {
        errors_out->worst[kind] = -1.0;
        for (int lane = 0; lane < PROOF__LANES; lane++) {
            const int is_first = worst[kind][lane] == errors_out->worst[kind] && at[kind][lane] < errors_out->at[kind];
            if (worst[kind][lane] > errors_out->worst[kind] || is_first) {
                errors_out->worst[kind] = worst[kind][lane];
                errors_out->at[kind] = at[kind][lane];
            }
        }
    }
    for (int lane = 0; lane < PROOF__LANES; lane++) {
        errors_out->num_nans += nans[lane];
        errors_out->num_wrong_signs += signs[lane];
        errors_out->num_falls += falls[lane];
    }
}

/* Rounding is monotonic: what holds for the ends of a group in exact arithmetic holds for errors as proof__compare rounds them. */
static void proof__screen(
    const ProofFormat* format, const double* exact, size_t num_points, const int64_t* starts, size_t num_groups, size_t size,
    const float* low, const float* high, const double* sampled, const double* before, uint8_t* may_be_out
) {
    const double overflow = format->overflow, normal = ldexp(1.0, format->least_exponent);
    for (size_t group = 0; group < num_groups; group++) {
        const size_t start = (size_t)starts[group], stop = num_points - start < size ? num_points : start + size;
        double least = exact[start], most = least;
        size_t i = start;
        if (stop - start >= PROOF__LANES) {
            ProofV v, leasts, mosts;
            memcpy(&leasts, exact + i, sizeof leasts);
            mosts = leasts;
            for (i += PROOF__LANES; i + PROOF__LANES <= stop; i += PROOF__LANES) {
                memcpy(&v, exact + i, sizeof v);
                leasts = proof__choose(v < leasts, v, leasts);
                mosts = proof__choose(v > mosts, v, mosts);
            }
            for (int lane = 0; lane < PROOF__LANES; lane++) {
                least = leasts[lane] < least ? leasts[lane] : least;
                most = mosts[lane] > most ? mosts[lane] : most;
            }
        }
        for (; i < stop; i++) {
            least = exact[i] < least ? exact[i] : least;
            most = exact[i] > most ? exact[i] : most;
        }
        const double y0 = low[group], y1 = high[group], over = y1 - least, under = most - y0;
        const double largest = most > -least ? most : -least;
        const double smallest = least > 0.0 ? least : most < 0.0 ? -most : 0.0;
        const int is_right = (y0 == INFINITY && least >= overflow) || (y1 == -INFINITY && most <= -overflow) ||
            (y0 == 0.0 && y1 == 0.0 && largest < PROOF__FLUSHED);
        const double error = is_right ? 0.0 : largest >= PROOF__LARGEST ? INFINITY : over > under ? over : under;
        const ProofV size_of = {smallest};
        const double errors[PROOF_NUM_ERRORS] = {
            error * proof__inverse_ulps(size_of, format)[0], error, error / (smallest < normal ? normal : smallest)
        };
        may_be_out[group] = 0;
        for (int kind = 0; kind < PROOF_NUM_ERRORS; kind++)
            may_be_out[group] |= errors[kind] >= sampled[kind] && errors[kind] > before[kind];
    }
}

/* ---- intervals --------------------------------------------------------------------------------------------------- */

/* Ends are floats held in double. Rounding to nearest and flushing are monotonic, so the ends of an exact instruction's interval are
   its results at ends of its operands. */

PROOF__INLINE double proof__least(double a, double b) { return a < b ? a : b; }
PROOF__INLINE double proof__most(double a, double b) { return a > b ? a : b; }
PROOF__INLINE double proof__flush(double v) { return fabs(v) < PROOF__FLUSHED ? 0.0 : v; }
PROOF__INLINE double proof__round(double v) { return proof__flush((double)(float)v); }

/* A value below the least normal number that rounds to it may be flushed before. */
PROOF__INLINE double proof__round_down(double v) {
    const double near = proof__round(v);
    return near == PROOF__FLUSHED && v < PROOF__FLUSHED ? 0.0 : near;
}
PROOF__INLINE double proof__round_up(double v) { return -proof__round_down(-v); }

#define PROOF__OUT 0x1p-50 /* relative, of values that are not exact */

/* The sum, rounded to odd: inexact ones end with a one. So what is nearest to it, of any shorter format, is nearest to the exact sum,
   and it is on the same side of each number of a shorter format. */
PROOF__INLINE double proof__odd_sum(double a, double b) {
    const double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    uint64_t bits, error_bits;
    double odd;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&error_bits, &error, sizeof error_bits);
    bits = (bits - ((bits ^ error_bits) >> 63)) | 1;
    memcpy(&odd, &bits, sizeof odd);
    return (error < 0.0) | (error > 0.0) ? odd : sum;
}

/* The largest float up to v, and the least from v on; infinity where that overflows. */
PROOF__INLINE double proof__floor(double v) {
    /* The part taken off is more than half of a step and less than one and a half, also at powers of two and of subnormal numbers. */
    const double near = (double)(float)v, step = proof__most(fabs(near) * 0x1.004p-24, 0x1.8p-150);
    return near <= v || near == INFINITY ? near : (double)(float)(near - step);
}
PROOF__INLINE double proof__ceil(double v) { return -proof__floor(-v); }

/* ---- halves ---- */

static const double proof__largest_halves[12] = {[8] = 0x1.fep127, [11] = 65504.0}; /* by digits */

/* The exponent of a number's last digit in a half format. */
PROOF__INLINE int64_t proof__last_digit(const ProofStep* step, double v) {
    int64_t bits, exponent;
    memcpy(&bits, &v, sizeof bits);
    exponent = (bits >> 52 & 0x7ff) - 1023;
    exponent = exponent < step->least_exponent ? step->least_exponent : exponent > 300 ? 300 : exponent;
    return exponent - step->digits + 1;
}

PROOF__INLINE double proof__overflowed(const ProofStep* step, double v) {
    return fabs(v) > proof__largest_halves[step->digits] ? copysign(INFINITY, v) : v;
}

/* The nearest half, ties to even. */
PROOF__INLINE double proof__half(const ProofStep* step, double v) {
    const int64_t bits = (proof__last_digit(step, v) + 52 + 1023) << 52 | INT64_C(0x8000000000000);
    double magic;
    memcpy(&magic, &bits, sizeof magic);
    return proof__overflowed(step, copysign((v + magic) - magic, v));
}

/* The largest half up to v, and the least from v on; infinity where v overflows. */
PROOF__INLINE double proof__half_floor(const ProofStep* step, double v) {
    const double near = proof__half(step, v);
    const int64_t bits = (proof__last_digit(step, v) + 1023) << 52;
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return near <= v || near == INFINITY ? near : proof__overflowed(step, near - unit);
}
PROOF__INLINE double proof__half_ceil(const ProofStep* step, double v) { return -proof__half_floor(step, -v); }

typedef struct ProofRow {
    const double *low, *high;
} ProofRow;

#define PROOF__LOOP for (size_t i = 0; i < PROOF_BLOCK; i++)

PROOF__INLINE void proof__forget_if(int is_unknown, double* low, double* high) {
    *low = is_unknown ? -INFINITY : *low;
    *high = is_unknown ? INFINITY : *high;
}

/* Ends that make no interval mean unknown: a NaN is somewhere in it. */
static void proof__mend(double* low, double* high) { PROOF__LOOP proof__forget_if(!(low[i] <= high[i]), low + i, high + i); }

static void proof__spread(ProofRow operand, double* low, double* high) {
    PROOF__LOOP proof__forget_if(
        (!(operand.low[i] > -INFINITY)) & (!(operand.high[i] < INFINITY)), low + i, high + i
    ); /* or NaN */
}

/* b is a number. */
PROOF__INLINE void proof__multiples(ProofRow a, const double* b, size_t i, double* low, double* high) {
    const double p = a.low[i] * b[i], q = a.high[i] * b[i], sum = p + q;
    *low = proof__least(p, q);
    *high = proof__most(p, q);
    proof__forget_if(sum != sum, low, high);
}

PROOF__INLINE void proof__products(ProofRow a, ProofRow b, size_t i, double* low, double* high) {
    const double p = a.low[i] * b.low[i], q = a.low[i] * b.high[i], r = a.high[i] * b.low[i], s = a.high[i] * b.high[i];
    const double sum = (p + q) + (r + s); /* NaN if one of them is, or if infinities of both signs are there */
    *low = proof__least(proof__least(p, q), proof__least(r, s));
    *high = proof__most(proof__most(p, q), proof__most(r, s));
    proof__forget_if(sum != sum, low, high);
}

/* Ends of an instruction's results, of those of its operands; of a product, from the least to the most. */
#define PROOF__ENDS(lowest, highest) \
    PROOF__LOOP {                    \
        low[i] = (lowest);           \
        high[i] = (highest);         \
    }                                \
    break
#define PROOF__PRODUCT_ENDS(lowest, highest)                    \
    if (is_multiple) PROOF__LOOP {                              \
            proof__multiples(factor, number, i, &least, &most); \
            low[i] = (lowest);                                  \
            high[i] = (highest);                                \
        }                                                       \
    else                                                        \
        PROOF__LOOP {                                           \
            proof__products(a, b, i, &least, &most);            \
            low[i] = (lowest);                                  \
            high[i] = (highest);                                \
        }                                                       \
    break

static void proof__exact(int operation, ProofRow a, ProofRow b, ProofRow c, double* restrict low, double* restrict high) {
    const ProofRow factor = a.low == a.high ? b : a; /* of a product with a number */
    const double* number = a.low == a.high ? a.low : b.low;
    const int is_multiple = a.low == a.high || b.low == b.high;
    double least, most;
    switch (operation) {
        case PROOF_ADD: PROOF__ENDS(proof__round(a.low[i] + b.low[i]), proof__round(a.high[i] + b.high[i]));
        case PROOF_SUB: PROOF__ENDS(proof__round(a.low[i] - b.high[i]), proof__round(a.high[i] - b.low[i]));
        case PROOF_MUL: PROOF__PRODUCT_ENDS(proof__round_down(least), proof__round_up(most));
        case PROOF_FMA:
            PROOF__PRODUCT_ENDS(
                proof__round_down(proof__odd_sum(least, c.low[i])), proof__round_up(proof__odd_sum(most, c.high[i]))
            );
        case PROOF_NEG: PROOF__ENDS(-a.high[i], -a.low[i]);
        case PROOF_ABS:
            PROOF__ENDS(
                a.low[i] <= 0.0 && a.high[i] >= 0.0 ? 0.0 : proof__least(fabs(a.low[i]), fabs(a.high[i])),
                proof__most(fabs(a.low[i]), fabs(a.high[i]))
            );
        case PROOF_MIN: PROOF__ENDS(proof__least(a.low[i], b.low[i]), proof__least(a.high[i], b.high[i]));
        case PROOF_MAX: PROOF__ENDS(proof__most(a.low[i], b.low[i]), proof__most(a.high[i], b.high[i]));
        default: break;
    }
}

/* Of halves: products are exact in double. What is rounded is monotonic. */
static void proof__exact_half(
    const ProofStep* step, ProofRow a, ProofRow b, ProofRow c, double* restrict low, double* restrict high
) {
    const ProofRow factor = a;
    const double* number = b.low;
    const int is_multiple = 0;
    double least, most;
    switch (step->operation) {
        case PROOF_ADD:
            PROOF__ENDS(
                proof__half(step, proof__odd_sum(a.low[i], b.low[i])), proof__half(step, proof__odd_sum(a.high[i], b.high[i]))
            );
        case PROOF_SUB:
            PROOF__ENDS(
                proof__half(step, proof__odd_sum(a.low[i], -b.high[i])), proof__half(step, proof__odd_sum(a.high[i], -b.low[i]))
            );
        case PROOF_MUL: PROOF__PRODUCT_ENDS(proof__half(step, least), proof__half(step, most));
        case PROOF_FMA:
            PROOF__PRODUCT_ENDS(
                proof__half(step, proof__odd_sum(least, c.low[i])), proof__half(step, proof__odd_sum(most, c.high[i]))
            );
        case PROOF_ROUND: PROOF__ENDS(proof__half(step, a.low[i]), proof__half(step, a.high[i]));
        default: proof__exact(step->operation, a, b, c, low, high);
    }
}

/* copysign gives the second operand the first one's sign. Zeros have either sign, but what the program reads has its own. */
static void proof__copysign(int is_input, ProofRow a, ProofRow b, double* low, double* high) {
    PROOF__LOOP {
        const double p = fabs(b.low[i]), q = fabs(b.high[i]), most = proof__most(p, q);
        const double least = b.low[i] <= 0.0 && b.high[i] >= 0.0 ? 0.0 : proof__least(p, q);
        const int may_be_low = is_input ? signbit(a.low[i]) != 0 : a.low[i] <= 0.0;
        const int may_be_high = is_input ? !signbit(a.low[i]) : a.high[i] >= 0.0;
        low[i] = may_be_low ? -most : least;
        high[i] = may_be_high ? most : -least;
    }
}

/* Bounds of an approximate instruction, and of libm, about values at ends of operands: the floats there. */
static void proof__widen(const ProofStep* step, const double* values, double* low, double* high) {
    if (step->digits < 24) {
        /* Relative bounds say nothing of subnormal results: these are taken to be a unit off at most. */
        const double normal = ldexp(1.0, step->least_exponent), unit = ldexp(normal, 1 - step->digits);
        PROOF__LOOP {
            const double v = values[i], width = proof__most(step->absolute, step->relative * fabs(v));
            const double out = proof__most(width, fabs(v) < normal ? unit : 0.0) + fabs(v) * PROOF__OUT;
            const int is_flushed = step->operation == PROOF_EX2 && step->digits == 8;
            const double least = proof__half_ceil(step, v - out), most = proof__half_floor(step, v + out);
            low[i] = fabs(v) < INFINITY ? (is_flushed ? proof__flush(least) : least) : v;
            high[i] = fabs(v) < INFINITY ? (is_flushed ? proof__flush(most) : most) : v;
        }
        return;
    }
    const double threshold = step->operation == PROOF_TANH ? 0.0 : PROOF__FLUSHED;
    PROOF__LOOP {
        const double v = values[i], width = proof__most(step->absolute, step->relative * fabs(v)) + fabs(v) * PROOF__OUT;
        const double least = proof__ceil(v - width), most = proof__floor(v + width);
        const int is_finite = fabs(v) < INFINITY;
        low[i] = !is_finite ? v : fabs(least) < threshold ? 0.0 : least;
        high[i] = !is_finite ? v : fabs(most) < threshold ? 0.0 : most;
    }
}

#define PROOF__VALUES(expression)              \
    for (size_t i = 0; i < PROOF_BLOCK; i++) { \
        const double v = operands[i];          \
        values[i] = (expression);              \
    }                                          \
    break

#define PROOF__MAGIC 0x1.8p52 /* the last bit of what is added to it is 1 */

/* 2^whole, of an integer from -1022 to 1023. */
PROOF__INLINE double proof__power(double whole) {
    const double sum = whole + PROOF__MAGIC;
    int64_t bits;
    double power;
    memcpy(&bits, &sum, sizeof bits);
    bits = (int64_t)((uint64_t)(bits + 1023) << 52);
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The functions that follow are within 2^-50, relative. The series of exp(z) - 1, z at most ln(2)/2. */
PROOF__INLINE double proof__expm1(double z) {
    static const double c[13] = {
        1.0 / 6227020800.0,
        1.0 / 479001600.0,
        1.0 / 39916800.0,
        1.0 / 3628800.0,
        1.0 / 362880.0,
        1.0 / 40320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0
    };
    double sum = c[0];
    for (int i = 1; i < 13; i++) sum = sum * z + c[i];
    return sum * z;
}

PROOF__INLINE double proof__exp2(double v) {
    const double clamped = proof__least(proof__most(v, -1000.0), 1000.0);
    const double whole = (clamped + PROOF__MAGIC) - PROOF__MAGIC;
    const double value = (proof__expm1((clamped - whole) * 0.693147180559945309417) + 1.0) * proof__power(whole);
    return v > 1000.0 ? INFINITY : v < -1000.0 ? 0.0 : v == v ? value : v;
}

/* e / (e + 2) with e = exp(2 |v|) - 1. */
PROOF__INLINE double proof__tanh(double v) {
    const double z = proof__least(2.0 * fabs(v), 80.0), whole = (z * 1.44269504088896340736 + PROOF__MAGIC) - PROOF__MAGIC;
    const double power = proof__power(whole), rest = (z - whole * 0x1.62e42feep-1) - whole * 0x1.a39ef35793c76p-33; /* ln(2) */
    const double e = power * proof__expm1(rest) + (power - 1.0);
    return v == v ? copysign(e / (e + 2.0), v) : v;
}

/* An exponent and the series of log((1 + s) / (1 - s)), s at most 0.172. */
PROOF__INLINE double proof__log2(double v) {
    uint64_t bits; /* of a negative number, with which a signed difference would overflow */
    double m;
    memcpy(&bits, &v, sizeof bits);
    const int64_t exponent = (int64_t)(bits - 0x3FE6A09E667F3BCD) >> 52; /* of sqrt(1/2) */
    bits -= (uint64_t)exponent << 52;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1.0) / (m + 1.0), t = s * s;
    double sum = 1.0 / 23.0;
    for (int i = 21; i > 0; i -= 2) sum = sum * t + 1.0 / i;
    const double value = (double)exponent + s * sum * 2.88539008177792681472;
    return v > 0.0 && v < INFINITY ? value : v == 0.0 ? -INFINITY : v > 0.0 ? v : NAN;
}

static void proof__values(int operation, const double* operands, double* values) {
    switch (operation) {
        case PROOF_RCP: PROOF__VALUES(1.0 / v);
        case PROOF_SQRT: PROOF__VALUES(sqrt(v));
        case PROOF_RSQRT: PROOF__VALUES(1.0 / sqrt(v));
        case PROOF_EX2: PROOF__VALUES(proof__exp2(v));
        case PROOF_LG2: PROOF__VALUES(proof__log2(v));
        case PROOF_TANH: PROOF__VALUES(proof__tanh(v));
        case PROOF_SIN: PROOF__VALUES(sin(v));
        default: PROOF__VALUES(cos(v));
    }
}

static void proof__approximate(const ProofStep* step, int is_point, ProofRow a, double* low, double* high) {
    const int operation = step->operation;
    double values[PROOF_BLOCK], middles[PROOF_BLOCK], lows[PROOF_BLOCK], highs[PROOF_BLOCK];
    if (operation == PROOF_SIN || operation == PROOF_COS) { /* which move by no more than their operand */
        PROOF__LOOP middles[i] = (a.low[i] + a.high[i]) / 2.0;
        proof__values(operation, middles, values);
        proof__widen(step, values, low, high);
        PROOF__LOOP {
            const double reach = (a.high[i] - a.low[i]) / 2.0, width = step->absolute + reach + PROOF__OUT;
            low[i] = reach > 0.0 ? proof__floor(values[i] - width) : low[i];
            high[i] = reach > 0.0 ? proof__ceil(values[i] + width) : high[i];
        }
    } else { /* the others are monotonic */
        proof__values(operation, a.low, values);
        proof__widen(step, values, low, high);
        if (!is_point) {
            proof__values(operation, a.high, values);
            proof__widen(step, values, lows, highs);
            PROOF__LOOP {
                low[i] = proof__least(low[i], lows[i]);
                high[i] = proof__most(high[i], highs[i]);
            }
        }
    }
    /* Zeros have either sign. */
    const int no_zero = operation == PROOF_RCP || operation == PROOF_RSQRT;
    const int no_negative = operation == PROOF_SQRT || operation == PROOF_RSQRT || operation == PROOF_LG2;
    PROOF__LOOP {
        const double size = proof__most(fabs(a.low[i]), fabs(a.high[i]));
        const int is_unknown = (!(size <= step->limit)) | (no_zero & (a.low[i] <= 0.0) & (a.high[i] >= 0.0)) |
            (no_negative & (a.low[i] < 0.0)) | !(low[i] <= high[i]);
        proof__forget_if(is_unknown, low + i, high + i);
    }
}

/* The result is within the bounds, relative to the quotient. */
static void proof__quotients(const ProofStep* step, ProofRow a, ProofRow b, double* low, double* high) {
    double leasts[PROOF_BLOCK], mosts[PROOF_BLOCK], lows[PROOF_BLOCK], highs[PROOF_BLOCK];
    PROOF__LOOP {
        lows[i] = 1.0 / b.high[i];
        highs[i] = 1.0 / b.low[i];
    }
    const ProofRow inverse = {lows, highs};
    PROOF__LOOP proof__products(a, inverse, i, leasts + i, mosts + i);
    proof__widen(step, leasts, low, highs);
    proof__widen(step, mosts, lows, high);
    PROOF__LOOP {
        const double size = proof__most(fabs(b.low[i]), fabs(b.high[i]));
        const int is_unknown = (!(size <= step->limit)) | ((b.low[i] <= 0.0) & (b.high[i] >= 0.0));
        proof__forget_if(is_unknown, low + i, high + i);
    }
}

/* Exact instructions of what no approximate one has touched. Whether each result is one number on all GPUs, and no NaN. */
#define PROOF__POINTS(expression)                                      \
    for (size_t i = 0; i < PROOF_BLOCK; i++) {                         \
        const float x = (float)a[i], y = (float)b[i], z = (float)c[i]; \
        (void)y, (void)z;                                              \
        out[i] = (expression);                                         \
    }                                                                  \
    break

static int proof__points(int operation, const double* a, const double* b, const double* c, double* low) {
    float out[PROOF_BLOCK];
    switch (operation) {
        case PROOF_ADD: PROOF__POINTS(x + y);
        case PROOF_SUB: PROOF__POINTS(x - y);
        case PROOF_MUL: PROOF__POINTS(x * y);
        case PROOF_FMA: PROOF__POINTS(fmaf(x, y, z));
        case PROOF_NEG: PROOF__POINTS(-x);
        case PROOF_ABS: PROOF__POINTS(fabsf(x));
        case PROOF_MIN: PROOF__POINTS(x < y || y != y ? x : y);
        default: PROOF__POINTS(x > y || y != y ? x : y);
    }
    int may_flush = 0, is_nan = 0;
    PROOF__LOOP {
        low[i] = proof__flush(out[i]);
        may_flush |= fabs(low[i]) == PROOF__FLUSHED;
        is_nan |= low[i] != low[i];
    }
    return !is_nan && (!may_flush || (operation != PROOF_MUL && operation != PROOF_FMA));
}

static int proof__is_flushed(const double* in) {
    int is_subnormal = 0;
    PROOF__LOOP is_subnormal |= (fabs(in[i]) < PROOF__FLUSHED) & (in[i] != 0.0);
    return !is_subnormal;
}

static int proof__are_numbers(const double* in) {
    int are_numbers = 1;
    PROOF__LOOP are_numbers &= in[i] == in[i];
    return are_numbers;
}

/* An operand as an instruction reads it: `in`, or its copy in `flushed`. */
static const double* proof__operand(int is_kept, const double* in, double* flushed) {
    if (is_kept) return in;
    PROOF__LOOP flushed[i] = proof__flush(in[i]);
    return flushed;
}

static void proof__intervals(
    const ProofStep* steps, size_t num_steps, const float* constants, size_t num_constants, const float* x, const float* x_high,
    size_t num_points, double* memory, float* low_out, float* high_out
) {
    static const int num_operands[PROOF_NUM_OPERATIONS] = {2, 2, 2, 3, 1, 1, 2, 2, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1};
    const size_t num_values = 1 + num_constants + num_steps;
    double ends[3][2][PROOF_BLOCK];
    unsigned char is_point[PROOF_MAX_VALUES]; /* whose high ends are not written */
    unsigned char is_flushed[PROOF_MAX_VALUES];
    memset(is_point, 1, sizeof is_point);
    is_point[0] = x_high == NULL;
    for (size_t value = 0; value < num_constants; value++) {
        PROOF__LOOP memory[(1 + value) * 2 * PROOF_BLOCK + i] = constants[value];
        is_flushed[1 + value] = (unsigned char)proof__is_flushed(memory + (1 + value) * 2 * PROOF_BLOCK);
    }
    for (size_t start = 0; start < num_points; start += PROOF_BLOCK) {
        const size_t count = num_points - start < PROOF_BLOCK ? num_points - start : PROOF_BLOCK;
        PROOF__LOOP memory[i] = x[start + (i < count ? i : 0)];
        if (x_high != NULL) PROOF__LOOP memory[PROOF_BLOCK + i] = x_high[start + (i < count ? i : 0)];
        is_flushed[0] = (unsigned char)(proof__is_flushed(memory) && (is_point[0] || proof__is_flushed(memory + PROOF_BLOCK)));
        for (size_t number = 0; number < num_steps; number++) {
            const ProofStep* step = steps + number;
            const size_t value = 1 + num_constants + number;
            double *low = memory + value * 2 * PROOF_BLOCK, *high = low + PROOF_BLOCK;
            const int is_half = step->digits < 24, is_exact = step->operation <= PROOF_MAX || step->operation == PROOF_ROUND;
            const int keeps_subnormals = is_half || step->operation == PROOF_COPYSIGN || step->operation == PROOF_TANH;
            ProofRow rows[3];
            int are_points = 1;
            is_flushed[value] = step->operation < PROOF_TANH && step->operation != PROOF_COPYSIGN; /* sin and cos end anywhere */
            if (is_half) is_flushed[value] = step->least_exponent > -126; /* no f16 is a subnormal f32 */
            for (int i = 0; i < 3; i++) {
                const int32_t operand = i < num_operands[step->operation] ? step->operands[i] : step->operands[0];
                const double* in = memory + (size_t)operand * 2 * PROOF_BLOCK;
                const int is_kept = is_flushed[operand] || keeps_subnormals;
                rows[i].low = rows[i].high = proof__operand(is_kept, in, ends[i][0]);
                if (is_point[operand]) continue;
                rows[i].high = proof__operand(is_kept, in + PROOF_BLOCK, ends[i][1]);
                are_points = 0;
            }
            is_point[value] =
                are_points && !is_half && is_exact && proof__points(step->operation, rows[0].low, rows[1].low, rows[2].low, low);
            if (is_point[value]) continue;
            if (is_half && is_exact) {
                proof__exact_half(step, rows[0], rows[1], rows[2], low, high);
                is_point[value] = (unsigned char)(are_points && proof__are_numbers(low));
                if (is_point[value]) continue;
            } else if (step->operation == PROOF_COPYSIGN)
                proof__copysign(step->operands[0] == 0, rows[0], rows[1], low, high);
            else if (step->operation == PROOF_DIV)
                proof__quotients(step, rows[0], rows[1], low, high);
            else if (step->operation >= PROOF_RCP)
                proof__approximate(step, rows[0].low == rows[0].high, rows[0], low, high);
            else
                proof__exact(step->operation, rows[0], rows[1], rows[2], low, high);
            /* A NaN may be in what is unknown. Minimum and maximum drop it, others give NaN. */
            for (int i = 0; i < num_operands[step->operation] && step->operation != PROOF_MIN && step->operation != PROOF_MAX;
                 i++)
                if (rows[i].low != rows[i].high) proof__spread(rows[i], low, high);
            proof__mend(low, high);
        }
        const double* low = memory + (num_values - 1) * 2 * PROOF_BLOCK;
        const double* high = is_point[num_values - 1] ? low : low + PROOF_BLOCK;
        for (size_t i = 0; i < count; i++) {
            low_out[start + i] = (float)low[i];
            high_out[start + i] = (float)high[i];
        }
    }
}

const ProofKernels* PROOF_KERNELS(void) {
    static const ProofKernels kernels = {proof__reference, proof__compare, proof__screen, proof__intervals};
    return &kernels;
}
