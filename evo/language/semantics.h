/*
 * semantics.h - what each PTX instruction computes, as C: the functions that exported C consists of.
 *
 * The same semantics as semantics.py and ptx_vm.h, bit for bit as on x86-64. Floats are float, integers uint32_t and predicates
 * bool. Not a header to include: an export contains copies of the definitions that it needs.
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

static inline float canonical(float a) { return isnan(a) ? f32(0x7fffffffu) : a; }

/* Flushes what is still subnormal after rounding to 24 bits. */
static inline float rounded(double a) {
    return fabs(a) < 0x1p-126 * (1.0 - 0x1p-25) ? (float)copysign(0.0, a) : canonical((float)a);
}

static inline float add_ftz_f32(float a, float b) { return rounded(wide(a) + wide(b)); }

static inline float sub_ftz_f32(float a, float b) { return rounded(wide(a) - wide(b)); }

static inline float mul_ftz_f32(float a, float b) { return rounded(wide(a) * wide(b)); }

/* Rounds the sum to odd: then the rounding to float is as good as the only one. */
static inline float fma_rn_ftz_f32(float a, float b, float c) {
    const double product = wide(a) * wide(b), addend = wide(c);
    double total = product + addend;
    const double part = total - product;
    const double error = (product - (total - part)) + (addend - part);
    uint64_t bits;
    memcpy(&bits, &total, sizeof bits);
    if (isfinite(error) && error != 0.0 && (bits & 1u) == 0) bits = (error > 0.0) == (total > 0.0) ? bits + 1 : bits - 1;
    memcpy(&total, &bits, sizeof bits);
    return rounded(total);
}

static inline float rcp_approx_ftz_f32(float a) { return rounded(1.0 / wide(a)); }

static inline float div_approx_ftz_f32(float a, float b) { return mul_ftz_f32(a, rcp_approx_ftz_f32(b)); }

static inline float sqrt_approx_ftz_f32(float a) { return rounded(sqrt(wide(a))); }

static inline float rsqrt_approx_ftz_f32(float a) { return rcp_approx_ftz_f32(sqrt_approx_ftz_f32(a)); }

static inline float abs_ftz_f32(float a) { return rounded(fabs(wide(a))); }

static inline float neg_ftz_f32(float a) { return rounded(-wide(a)); }

static inline float min_ftz_f32(float a, float b) {
    const double x = wide(a), y = wide(b);
    return rounded(x < y || (x == y && signbit(x)) || isnan(y) ? x : y);
}

static inline float max_ftz_f32(float a, float b) {
    const double x = wide(a), y = wide(b);
    return rounded(x > y || (x == y && signbit(y)) || isnan(y) ? x : y);
}

/* The sign of a, the magnitude of b. */
static inline float copysign_f32(float a, float b) { return f32((bits_of(a) & 0x80000000u) | (bits_of(b) & 0x7fffffffu)); }

/* |a| in turns: times 1/2pi rounded toward zero, less the nearest integer, as a GPU does it. NaN if a is infinite. */
static inline float turns_of(float a) {
    const double product = fabs(wide(a)) * (double)0.15915494f;
    float turns = (float)product;
    if ((double)turns > product) turns = nextafterf(turns, 0.0f);
    if (turns < 0x1p-126f) turns = 0.0f;
    return turns - rintf(turns);
}

/* sin(2 pi r) for r in [-1/4, 1/4]. */
static inline float sin_of_turns(float r) {
    const float r2 = mul_ftz_f32(r, r);
    float p = fma_rn_ftz_f32(r2, 40.87591f, -76.727905f);
    p = fma_rn_ftz_f32(r2, p, 81.60862f);
    p = fma_rn_ftz_f32(r2, p, -41.341766f);
    p = fma_rn_ftz_f32(r2, p, 6.2831855f);
    return mul_ftz_f32(r, p);
}

/* 6291456 rounds to half turns and shows their parity in the last bit. */
static inline float sin_approx_ftz_f32(float a) {
    const float turns = turns_of(a), halves = turns + 6291456.0f;
    const uint32_t sign = (bits_of(halves) << 31) ^ (bits_of(a) & 0x80000000u);
    return canonical(f32(bits_of(sin_of_turns(turns - (halves - 6291456.0f))) ^ sign));
}

static inline float cos_approx_ftz_f32(float a) { return sin_of_turns(0.25f - fabsf(turns_of(a))); }

static inline float lg2_approx_ftz_f32(float a) {
    const double x = wide(a);
    const uint32_t bits = bits_of(a), shifted = bits - 0x3f3504f3u;
    const int32_t exponent = (int32_t)(shifted >> 23) - (shifted >> 31 != 0 ? 512 : 0);
    const float f = f32(bits - ((uint32_t)exponent << 23)) - 1.0f;
    float p = fma_rn_ftz_f32(f, 0.12585415f, -0.21009192f);
    p = fma_rn_ftz_f32(f, p, 0.2170651f);
    p = fma_rn_ftz_f32(f, p, -0.2385357f);
    p = fma_rn_ftz_f32(f, p, 0.2877022f);
    p = fma_rn_ftz_f32(f, p, -0.3607217f);
    p = fma_rn_ftz_f32(f, p, 0.48092026f);
    p = fma_rn_ftz_f32(f, p, -0.7213471f);
    p = fma_rn_ftz_f32(f, p, 1.4426949f);
    if (isnan(a) || x < 0.0) return f32(0x7fffffffu);
    if (x == 0.0) return -INFINITY;
    return isinf(a) ? a : fma_rn_ftz_f32(f, p, (float)exponent);
}

/* 12582912 rounds to an integer and shows it in the low bits. */
static inline float ex2_approx_ftz_f32(float a) {
    const float x = (float)wide(a), clamped = x < 128.0f ? x : 128.0f;
    const float integer = clamped + 12582912.0f, f = clamped - (integer - 12582912.0f);
    float p = fma_rn_ftz_f32(f, 0.00015326471f, 0.0013390806f);
    p = fma_rn_ftz_f32(f, p, 0.009618506f);
    p = fma_rn_ftz_f32(f, p, 0.0555036f);
    p = fma_rn_ftz_f32(f, p, 0.24022648f);
    p = fma_rn_ftz_f32(f, p, 0.6931472f);
    p = fma_rn_ftz_f32(f, p, 1.0f);
    if (isnan(x)) return f32(0x7fffffffu);
    return x >= -126.0f ? f32(bits_of(p) + (bits_of(integer) << 23)) : 0.0f;
}

/* Not ftz: small numbers, also subnormal ones, are their own result. */
static inline float tanh_approx_f32(float a) {
    const float limit = 5.1939778f, x = a > limit ? limit : a < -limit ? -limit : a, x2 = mul_ftz_f32(x, x);
    const float p = fma_rn_ftz_f32(x2, fma_rn_ftz_f32(x2, 0.00065158348f, 0.10179524f), 0.9999354f);
    const float q = fma_rn_ftz_f32(x2, fma_rn_ftz_f32(x2, 0.012630122f, 0.4347445f), 1.0f);
    return fabsf(a) < 0.0078125f ? a : rounded(wide(mul_ftz_f32(x, p)) / wide(q));
}

static inline int32_t as_signed(uint32_t a) {
    int32_t value;
    memcpy(&value, &a, sizeof value);
    return value;
}

static inline float cvt_rn_f32_u32(uint32_t a) { return (float)a; }

static inline float cvt_rn_f32_s32(uint32_t a) { return (float)as_signed(a); }

static inline bool setp_lt_ftz_f32(float a, float b) { return wide(a) < wide(b); }

static inline float selp_f32(float a, float b, bool p) { return p ? a : b; }

static inline uint32_t selp_u32(uint32_t a, uint32_t b, bool p) { return p ? a : b; }

#define selp_s32 selp_u32

static inline uint32_t mov_b32(uint32_t a) { return a; }

static inline uint32_t add_u32(uint32_t a, uint32_t b) { return a + b; }

static inline uint32_t sub_u32(uint32_t a, uint32_t b) { return a - b; }

static inline uint32_t mul_lo_u32(uint32_t a, uint32_t b) { return a * b; }

static inline uint32_t mul_hi_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }

static inline uint32_t mul_hi_s32(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)((int64_t)as_signed(a) * as_signed(b)) >> 32);
}

static inline uint32_t mad_lo_u32(uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }

#define add_s32 add_u32

#define sub_s32 sub_u32

#define mul_lo_s32 mul_lo_u32

#define mad_lo_s32 mad_lo_u32

static inline uint32_t neg_s32(uint32_t a) { return 0u - a; }

static inline uint32_t abs_s32(uint32_t a) { return a >> 31 != 0 ? 0u - a : a; }

static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a < b ? b : a; }

static inline uint32_t min_s32(uint32_t a, uint32_t b) { return as_signed(a) < as_signed(b) ? a : b; }

static inline uint32_t max_s32(uint32_t a, uint32_t b) { return as_signed(a) < as_signed(b) ? b : a; }

static inline uint32_t and_b32(uint32_t a, uint32_t b) { return a & b; }

static inline uint32_t or_b32(uint32_t a, uint32_t b) { return a | b; }

static inline uint32_t xor_b32(uint32_t a, uint32_t b) { return a ^ b; }

static inline uint32_t not_b32(uint32_t a) { return ~a; }

static inline bool and_pred(bool a, bool b) { return a && b; }

static inline bool or_pred(bool a, bool b) { return a || b; }

static inline bool xor_pred(bool a, bool b) { return a != b; }

static inline bool not_pred(bool a) { return !a; }

static inline uint32_t cnot_b32(uint32_t a) { return a == 0 ? 1u : 0u; }

/* Zero from 32 on. */
static inline uint32_t shl_b32(uint32_t a, uint32_t b) { return b < 32 ? a << b : 0u; }

/* Zero from 32 on. */
static inline uint32_t shr_u32(uint32_t a, uint32_t b) { return b < 32 ? a >> b : 0u; }

/* The sign from 32 on. */
static inline uint32_t shr_s32(uint32_t a, uint32_t b) {
    const uint32_t n = b < 31 ? b : 31u;
    return a >> 31 != 0 ? ~(~a >> n) : a >> n;
}

/* The upper word of b:a shifted left by c, at most 32. */
static inline uint32_t shf_l_clamp_b32(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = c < 32 ? c : 32u;
    return shl_b32(b, n) | shr_u32(a, 32u - n);
}

/* The lower word of b:a shifted right by c, at most 32. */
static inline uint32_t shf_r_clamp_b32(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = c < 32 ? c : 32u;
    return shr_u32(a, n) | shl_b32(b, 32u - n);
}

static inline uint32_t shf_l_wrap_b32(uint32_t a, uint32_t b, uint32_t c) { return shf_l_clamp_b32(a, b, c & 31u); }

static inline uint32_t shf_r_wrap_b32(uint32_t a, uint32_t b, uint32_t c) { return shf_r_clamp_b32(a, b, c & 31u); }

/* The bits in reverse order. */
static inline uint32_t brev_b32(uint32_t a) {
    uint32_t total = 0;
    for (int i = 0; i < 32; i++) total |= (a >> i & 1u) << (31 - i);
    return total;
}

/* The number of bits that are one. */
static inline uint32_t popc_b32(uint32_t a) {
    uint32_t count = 0;
    for (int i = 0; i < 32; i++) count += a >> i & 1u;
    return count;
}

/* The highest bit that is one, counted from 0; 0xffffffff if there is none. */
static inline uint32_t bfind_u32(uint32_t a) {
    uint32_t position = 0xffffffffu;
    for (; a != 0; a >>= 1) position++;
    return position;
}

/* The highest bit that differs from the sign. */
static inline uint32_t bfind_s32(uint32_t a) { return bfind_u32(a >> 31 != 0 ? ~a : a); }

/* The number of zeros above the highest bit that is one. */
static inline uint32_t clz_b32(uint32_t a) { return 31u - bfind_u32(a); }

/* How far left the highest bit that is one can be shifted; 0xffffffff if there is none. */
static inline uint32_t bfind_shiftamt_u32(uint32_t a) { return a == 0 ? 0xffffffffu : clz_b32(a); }

static inline uint32_t bfind_shiftamt_s32(uint32_t a) { return bfind_shiftamt_u32(a >> 31 != 0 ? ~a : a); }

/* The c bits of a from bit b on. Positions and lengths are bytes. */
static inline uint32_t bfe_u32(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t rest = 32u - min_u32(c & 255u, 32u);
    return shr_u32(shl_b32(shr_u32(a, b & 255u), rest), rest);
}

/* As bfe_u32, filled with the sign; zero without a length. */
static inline uint32_t bfe_s32(uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t rest = 32u - min_u32(c & 255u, 32u);
    return (c & 255u) == 0 ? 0u : shr_s32(shl_b32(shr_s32(a, b & 255u), rest), rest);
}

static inline bool setp_eq_u32(uint32_t a, uint32_t b) { return a == b; }

static inline bool setp_ne_u32(uint32_t a, uint32_t b) { return a != b; }

static inline bool setp_lt_u32(uint32_t a, uint32_t b) { return a < b; }

static inline bool setp_le_u32(uint32_t a, uint32_t b) { return a <= b; }

static inline bool setp_gt_u32(uint32_t a, uint32_t b) { return a > b; }

static inline bool setp_ge_u32(uint32_t a, uint32_t b) { return a >= b; }

#define setp_eq_s32 setp_eq_u32

#define setp_ne_s32 setp_ne_u32

static inline bool setp_lt_s32(uint32_t a, uint32_t b) { return as_signed(a) < as_signed(b); }

static inline bool setp_le_s32(uint32_t a, uint32_t b) { return as_signed(a) <= as_signed(b); }

static inline bool setp_gt_s32(uint32_t a, uint32_t b) { return as_signed(a) > as_signed(b); }

static inline bool setp_ge_s32(uint32_t a, uint32_t b) { return as_signed(a) >= as_signed(b); }
