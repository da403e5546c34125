/*
 * Tests of detail/proof_kernels.h on edges: against libm in long double, and against formats by their definition. The sweeps' laws
 * on programs are those of tests/unit/approximation.
 */

#pragma GCC diagnostic ignored "-Wpsabi" /* vectors are handed only to functions that are inlined */
#define PROOF_KERNELS proof__kernels_baseline
#include "detail/proof_kernels.h"

#include "check.h"

#include <float.h>
#include <math.h>

static const float edges[] = {
    0.0f, -0.0f, 0x1p-149f, -0x1p-149f,    0x1.fffffcp-127f, 0x1p-126f, -0x1p-126f, 0x1.6a09e6p-1f, -0.707f,   -0.5f, 0.5f,
    1.0f, -1.0f, 0x1p10f,   0x1.fffffep9f, 0x1p64f,          FLT_MAX,   -FLT_MAX,   INFINITY,       -INFINITY, NAN
};

static int is_same(double a, double b) { return a != a ? b != b : a == b && signbit(a) == signbit(b); }

static int is_near(double value, long double exact, long double relative) {
    return isfinite(exact) ? fabsl((long double)value - exact) <= relative * fabsl(exact) : is_same(value, (double)exact);
}

/* Every exponent and sign with some fractions, in turn, then the edges. */
enum { NUM_FLOATS = 512 * 5 };
static float float_at(uint32_t i) {
    static const uint32_t fractions[] = {0, 1, 0x3504f3, 0x3504f4, 0x7fffff};
    const uint32_t bits = i / 5 << 23 | fractions[i % 5];
    float value;
    if (i >= NUM_FLOATS) return edges[i - NUM_FLOATS];
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(functions_are_those_of_libm_within_2_to_the_minus_50) {
    for (uint32_t i = 0; i < NUM_FLOATS + COUNT(edges); i++) {
        const double v = float_at(i);
        CHECK(is_near(proof__log2(v), v < 0.0 ? (long double)NAN : log2l(v), 0x1p-50L));
        CHECK(is_near(proof__tanh(v), tanhl(v), 0x1p-50L));
        CHECK(is_near(proof__exp2(v), v < -1000.0 ? 0.0L : v > 1000.0 ? (long double)INFINITY : exp2l(v), 0x1p-50L));
    }
}

TEST(floats_about_a_number_are_its_neighbours) {
    for (uint32_t i = 0; i < NUM_FLOATS + COUNT(edges); i++) {
        const float v = float_at(i);
        if (!(fabsf(v) < FLT_MAX)) continue;
        CHECK(proof__floor(v) == v && proof__ceil(v) == v);
        CHECK(proof__floor(nextafter(v, INFINITY)) == v && proof__ceil(nextafter(v, -INFINITY)) == v);
        CHECK(proof__floor(nextafter(v, -INFINITY)) == nextafterf(v, -INFINITY));
        CHECK(proof__ceil(nextafter(v, INFINITY)) == nextafterf(v, INFINITY));
        CHECK(proof__round(v) == (fabsf(v) < FLT_MIN ? 0.0f : v));
    }
    CHECK(proof__round_down(nextafter(0x1p-126, 0.0)) == 0.0 && proof__round_up(nextafter(0x1p-126, 0.0)) == 0x1p-126);
}

/* A half's value, by its bits from 0 on: numbers rise with them, and the one after the largest would be 2^(most + 1). */
static double half_at(uint32_t bits, int digits, int least_exponent) {
    const uint32_t hidden = 1u << (digits - 1), exponent = bits / hidden;
    return ldexp(
        (double)(bits % hidden + (exponent > 0 ? hidden : 0)),
        least_exponent + (exponent > 0 ? (int)exponent - 1 : 0) - digits + 1
    );
}

TEST(halves_about_a_number_are_its_neighbours) {
    static const ProofStep formats[] = {{.digits = 11, .least_exponent = -14}, {.digits = 8, .least_exponent = -126}};
    static const uint32_t ends[] = {0x7c00, 0x7f80}; /* infinities */
    for (int format = 0; format < 2; format++) {
        const ProofStep* step = &formats[format];
        for (uint32_t bits = 0; bits < ends[format]; bits++) {
            const double low = half_at(bits, step->digits, step->least_exponent);
            const double high = half_at(bits + 1, step->digits, step->least_exponent), middle = low + (high - low) / 2.0;
            const double next = bits + 1 == ends[format] ? (double)INFINITY : high, even = bits % 2 ? next : low;
            CHECK(proof__half(step, low) == low && proof__half(step, -low) == -low);
            CHECK(proof__half(step, middle) == even && proof__half(step, -middle) == -even);
            CHECK(proof__half(step, nextafter(middle, 0.0)) == low && proof__half(step, nextafter(middle, INFINITY)) == next);
            CHECK(
                proof__half_floor(step, nextafter(low, INFINITY)) == low &&
                proof__half_ceil(step, -nextafter(low, INFINITY)) == -low
            );
            CHECK(proof__half_ceil(step, nextafter(low, INFINITY)) == next && proof__half_floor(step, low) == low);
        }
        CHECK(proof__half(step, INFINITY) == INFINITY && proof__half(step, -1e300) == -INFINITY);
        CHECK(proof__half(step, NAN) != proof__half(step, NAN));
    }
}

TEST(sums_are_rounded_to_odd) {
    static const double parts[] = {0.0, -0.0, 1.0, -1.0, 0x1p-53, -0x1p-53, 0x1.8p-52, 0x1p-62, -0x1p-62};
    for (size_t i = 0; i < COUNT(parts) * COUNT(parts); i++) {
        const double a = parts[i / COUNT(parts)], b = parts[i % COUNT(parts)], odd = proof__odd_sum(a, b);
        const long double sum = (long double)a + b, away = sum - (long double)odd; /* exact */
        uint64_t bits;
        memcpy(&bits, &odd, sizeof bits);
        CHECK((long double)odd == sum || (bits & 1 && fabsl(away) < (long double)(nextafter(fabs(odd), INFINITY) - fabs(odd))));
    }
}

TEST(references_are_the_table_and_the_polynomials_of_their_pieces) {
    static const int64_t keys[] = {5, 8, 60};
    static const double centres[] = {0.0, 2.0}, inverses[] = {1.0, 0.5}, bounds[] = {0.0, 0x1p-40};
    static const double coefficients[2 * PROOF_NUM_COEFFICIENTS] = {-1.5, 0.0, 7.0, [PROOF_NUM_COEFFICIENTS] = 4.0, 8.0, 4.0};
    const ProofPieces pieces = {2, keys, centres, inverses, coefficients, bounds}; /* then x * x */
    const ProofFormat format = {24, -126, 0x1.ffffffp127};
    for (int64_t first = 5; first < 60; first++) {
        for (size_t count = 0; count <= (size_t)(60 - first); count += count < 3 ? 1 : 13) {
            double exact[64];
            float x[64];
            for (size_t i = 0; i < count; i++) x[i] = 0.25f * (float)(first + (int64_t)i);
            const double worst = proof__kernels_baseline()->reference(&pieces, &format, first, x, count, exact);
            for (size_t i = 0; i < count; i++) {
                const int64_t key = first + (int64_t)i;
                CHECK(exact[i] == (key < 8 ? coefficients[key - 5] : nextafter((double)x[i] * x[i], exact[i])));
            }
            CHECK((worst > 0.0) == (first + (int64_t)count > 8 && count > 0));
        }
    }
}

TEST(errors_are_the_largest_of_all_points) {
    const ProofFormat format = {24, -126, 0x1.ffffffp127};
    float results[20];
    double exact[20];
    for (size_t count = 0; count <= COUNT(results); count++) {
        ProofErrors errors;
        for (size_t at = 0; at < count; at++) {
            for (size_t i = 0; i < count; i++) exact[i] = results[i] = (float)i + 1.0f;
            results[at] = -results[at]; /* twice as far away as it is from 0 */
            proof__kernels_baseline()->compare(&format, results, exact, count, 0.0, &errors);
            CHECK_UINT(errors.at[PROOF_ABSOLUTE], at);
            CHECK(errors.worst[PROOF_ABSOLUTE] == 2.0 * (double)(at + 1) && errors.worst[PROOF_RELATIVE] == 2.0);
            CHECK(errors.worst[PROOF_ULP] == ldexp((double)(at + 1), 24 - ilogb((double)(at + 1))));
            CHECK_UINT(errors.num_wrong_signs, 1);
            CHECK_UINT(errors.num_falls, at > 0);
        }
    }
    ProofErrors doubted; /* 2^-10 ulps below 4, of which 7.5 is 3.5 away: by the ulp of 4, and less that doubt */
    const float above = 7.5f;
    const double below = 4.0 - ldexp(1.0, -32);
    proof__kernels_baseline()->compare(&format, &above, &below, 1, ldexp(1.0, -9), &doubted);
    CHECK(doubted.worst[PROOF_ABSOLUTE] == (7.5 - below) - ldexp(1.0, -31));
    CHECK(doubted.worst[PROOF_ULP] == doubted.worst[PROOF_ABSOLUTE] * ldexp(1.0, 21));
    const struct {
        float result;
        double exact, error;
    } cases[] = {
        {0.0f, 0x1p-127, 0.0},
        {0.0f, 0x1p-126, 0x1p-126},
        {INFINITY, 0x1.ffffffp127, 0.0},
        {-INFINITY, 0x1.ffffffp127, INFINITY},
        {INFINITY, FLT_MAX, INFINITY},
        {NAN, 1.0, INFINITY},
        {0.0f, -0.0, 0.0},
        {0x1p-149f, 0.0, 0x1p-149}
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ProofErrors errors;
        proof__kernels_baseline()->compare(&format, &cases[i].result, &cases[i].exact, 1, 0.0, &errors);
        CHECK(errors.worst[PROOF_ABSOLUTE] == cases[i].error);
        CHECK_UINT(errors.num_nans, cases[i].result != cases[i].result);
        const int64_t start = 0;
        const double none[PROOF_NUM_ERRORS] = {0.0, 0.0, 0.0};
        uint8_t may_be = 2;
        proof__kernels_baseline()->screen(
            &format, &cases[i].exact, 1, &start, 1, 9, &cases[i].result, &cases[i].result, none, none, &may_be
        );
        CHECK(may_be <= 1 && (cases[i].result != cases[i].result || may_be == (cases[i].error > 0.0)));
    }
}

/* The only step of a program of x and a constant. */
static void run(ProofStep step, float constant, const float* x, const float* x_high, size_t count, float* low, float* high) {
    static double memory[3 * 2 * PROOF_BLOCK];
    proof__kernels_baseline()->intervals(&step, 1, &constant, 1, x, x_high, count, memory, low, high);
}

static long double exact_of(int operation, long double x) {
    switch (operation) {
        case PROOF_RCP: return 1.0L / x;
        case PROOF_DIV: return 3.0L / x;
        case PROOF_SQRT: return sqrtl(x);
        case PROOF_RSQRT: return 1.0L / sqrtl(x);
        case PROOF_EX2: return exp2l(x);
        case PROOF_LG2: return log2l(x);
        case PROOF_TANH: return tanhl(x);
        case PROOF_SIN: return sinl(x);
        default: return cosl(x);
    }
}

TEST(intervals_hold_the_value_and_no_more_than_the_bound) {
    float x[NUM_FLOATS + COUNT(edges)], low[COUNT(x)], high[COUNT(x)];
    for (uint32_t i = 0; i < COUNT(x); i++) x[i] = float_at(i);
    for (int operation = PROOF_RCP; operation <= PROOF_COS; operation++) {
        const int is_turn = operation == PROOF_SIN || operation == PROOF_COS;
        ProofStep step = {
            operation, {0, 0, 0}, 24, -126, is_turn ? 0.0 : 0x1p-20, is_turn ? 0x1p-20 : 0.0, is_turn ? 100.0 : INFINITY
        };
        if (operation == PROOF_DIV) step.operands[0] = 1;
        run(step, 3.0f, x, NULL, COUNT(x), low, high);
        for (uint32_t i = 0; i < COUNT(x); i++) {
            const float v = fabsf(x[i]) < FLT_MIN && operation != PROOF_TANH ? 0.0f : x[i];
            const long double exact = exact_of(operation, v), width = 0x1.1p-20L * (is_turn ? 1.0L : fabsl(exact)) + FLT_MIN;
            CHECK(low[i] <= high[i]);
            if (!isfinite(exact) || !isfinite(v) || fabsl(exact) > FLT_MAX || high[i] - low[i] == INFINITY) continue;
            CHECK(low[i] <= exact || (exact < FLT_MIN && low[i] == 0.0f)); /* smaller ones may be flushed */
            CHECK(high[i] >= exact || (exact > -FLT_MIN && high[i] == 0.0f));
            CHECK(low[i] >= exact - width && high[i] <= exact + width);
        }
    }
}

TEST(a_computed_zero_has_either_sign) {
    static const float constants[] = {0.0f, 2.0f};
    static const struct {
        int limit;
        float x, x_high, low, high;
    } cases[] = {
        {PROOF_MIN, -1.0f, -1.0f, -2.0f, -2.0f},
        {PROOF_MIN, 1.0f, 3.0f, -2.0f, 2.0f}, /* min(x, 0) is a zero */
        {PROOF_MAX, 1.0f, 3.0f, 2.0f, 2.0f},
        {PROOF_MAX, -3.0f, -1.0f, -2.0f, 2.0f},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const ProofStep steps[] = {
            {cases[i].limit, {0, 1, 0}, 24, -126, 0.0, 0.0, INFINITY}, {PROOF_COPYSIGN, {3, 2, 0}, 24, -126, 0.0, 0.0, INFINITY}
        };
        double memory[5 * 2 * PROOF_BLOCK];
        float low, high;
        proof__kernels_baseline()->intervals(steps, 2, constants, 2, &cases[i].x, &cases[i].x_high, 1, memory, &low, &high);
        CHECK(low == cases[i].low && high == cases[i].high);
    }
}

TEST(intervals_of_sums_and_products_are_rounded_results) {
    float x[PROOF_BLOCK + 1], low[COUNT(x)], high[COUNT(x)];
    for (size_t i = 0; i < COUNT(x); i++) x[i] = edges[i % COUNT(edges)];
    for (size_t count = 0; count <= COUNT(x); count += count < 2 ? 1 : PROOF_BLOCK - 1) {
        const ProofStep add = {PROOF_ADD, {0, 1, 0}, 24, -126, 0.0, 0.0, 0.0},
                        mul = {PROOF_MUL, {0, 1, 0}, 24, -126, 0.0, 0.0, 0.0};
        run(add, 0x1p-126f, x, NULL, count, low, high);
        for (size_t i = 0; i < count; i++) {
            const float a = fabsf(x[i]) < FLT_MIN ? 0.0f : x[i], sum = a + 0x1p-126f;
            if (a == a)
                CHECK(low[i] == sum && high[i] == sum);
            else
                CHECK(low[i] == -INFINITY && high[i] == INFINITY);
        }
        run(mul, 0.5f, x, x, count, low, high);
        for (size_t i = 0; i < count; i++) {
            const float a = fabsf(x[i]) < FLT_MIN ? 0.0f : x[i], product = fabsf(0.5f * a) < FLT_MIN ? 0.0f : 0.5f * a;
            if (fabsf(a) <= FLT_MAX)
                CHECK(low[i] == product && high[i] == product);
            else
                CHECK(low[i] <= high[i]);
        }
    }
    static const float from = -FLT_MAX, to = FLT_MAX; /* the whole range */
    for (int operation = 0; operation < PROOF_NUM_OPERATIONS; operation++) {
        const ProofStep step = {operation, {0, operation == PROOF_DIV ? 0 : 1, 1}, 24, -126, 0x1p-20, 0x1p-20, INFINITY};
        run(step, 1.0f, &from, &to, 1, low, high);
        CHECK(low[0] <= high[0]);
        if (operation == PROOF_ABS || operation == PROOF_MAX) CHECK(low[0] == (operation == PROOF_MAX) && high[0] == FLT_MAX);
    }
}
