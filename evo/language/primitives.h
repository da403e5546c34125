/*
 * primitives.h - what the code of the table of instructions is made of, as C: see evo/language/definitions.py.
 *
 * The same as primitives.py, bit for bit as on x86-64. Not a header to include: exported C contains copies of these functions.
 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float a) {
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static inline double wide(float a) { return fabsf(a) < 0x1p-126f ? copysign(0.0, (double)a) : (double)a; }

static inline float narrow(double a) { return (float)a; }

static inline float canonical(float a) { return isnan(a) ? f32(0x7fffffffu) : a; }

/* Flushes what is still subnormal after rounding to 24 bits. */
static inline float rounded(double a) {
    return fabs(a) < 0x1p-126 * (1.0 - 0x1p-25) ? (float)copysign(0.0, a) : canonical((float)a);
}

/* Rounds toward zero and flushes a number that is not negative. */
static inline float toward_zero(double a) {
    float b = (float)a;
    if ((double)b > a) b = nextafterf(b, 0.0f);
    return b < 0x1p-126f ? 0.0f : b;
}

/* The sum, rounded to odd: then the rounding to float is as good as the only one. */
static inline double odd_sum(double a, double b) {
    double total = a + b;
    const double part = total - a;
    const double error = (a - (total - part)) + (b - part);
    uint64_t bits;
    memcpy(&bits, &total, sizeof bits);
    if (isfinite(error) && error != 0.0 && (bits & 1u) == 0) bits = (error > 0.0) == (total > 0.0) ? bits + 1 : bits - 1;
    memcpy(&total, &bits, sizeof bits);
    return total;
}

/* By Horner's rule with fused steps, the highest power first. */
static inline float polynomial(float x, int count, const float *coefficients) {
    float total = coefficients[0];
    for (int i = 1; i < count; i++) total = rounded(odd_sum(wide(x) * wide(total), wide(coefficients[i])));
    return total;
}

static inline bool is_negative(double a) { return signbit(a) != 0; }

static inline int32_t signed_of(uint32_t a) {
    int32_t value;
    memcpy(&value, &a, sizeof value);
    return value;
}

static inline uint64_t zero_extended(uint32_t a) { return a; }

static inline uint64_t sign_extended(uint32_t a) { return (uint64_t)(int64_t)signed_of(a); }

static inline uint32_t high(uint64_t a) { return (uint32_t)(a >> 32); }

static inline float from_u32(uint32_t a) { return (float)a; }

static inline float from_s32(uint32_t a) { return (float)signed_of(a); }
