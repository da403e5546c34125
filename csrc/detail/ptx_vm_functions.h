/*
 * ptx_vm_functions.h - the operations of ptx_vm_operations.h on one vector, at the SIMD level of the compiler's flags.
 *
 * Private to ptx_vm_kernels.h and ast_ptx_interpreter.h. Call them in the mode of ptx_vm_mode.h.
 *
 * Bits. All levels compute the same bits, so everything here is a sequence of correctly rounded operations: no estimates, no
 * contraction (compile with -ffp-contract=off), fma where fma is written. The polynomials are minimax fits of our own
 * (linear programming on a dense grid), each coefficient rounded to f32 in turn and the rest fitted again. The largest error
 * stated at a function is that of its results, over at least 2^28 arguments spread over all floats; the PTX ISA's bound
 * follows in brackets. tests/unit/native/test_ptx_vm.py checks those bounds.
 */

#ifndef PTX_VM_FUNCTIONS_H
#define PTX_VM_FUNCTIONS_H

#include "ptx_vm_mode.h"
#include "ptx_vm_simd.h"

/* ---- functions of one vector ------------------------------------------------------------------------------------- */

#define PTX_VM__NAN_BITS 0x7fffffffu

/* A constant hidden from the compiler, which knows nothing of flushing and would replace x * 1, x + -0 and -0 - x by moves of
 * bits. */
PTX_VM__INLINE PtxVmV ptx_vm__opaque(float f) {
    PtxVmV v = ptx_vm__set(f);
    __asm__("" : PTX_VM__REGISTER(v));
    return v;
}

PTX_VM__INLINE PtxVmV ptx_vm__abs_f32(PtxVmV x) {
    return ptx_vm__add_f32(ptx_vm__and_b32(x, ptx_vm__set_bits(0x7fffffffu)), ptx_vm__opaque(-0.0f));
}

PTX_VM__INLINE PtxVmV ptx_vm__neg_f32(PtxVmV x) { return ptx_vm__sub_f32(ptx_vm__opaque(-0.0f), x); }

PTX_VM__INLINE PtxVmV ptx_vm__round_f32(PtxVmV x) { return ptx_vm__round(ptx_vm__mul_f32(x, ptx_vm__opaque(1.0f))); }

PTX_VM__INLINE PtxVmV ptx_vm__floor_f32(PtxVmV x) {
    const PtxVmV nearest = ptx_vm__round_f32(x);
    return ptx_vm__select(ptx_vm__less(x, nearest), ptx_vm__sub_f32(nearest, ptx_vm__set(1.0f)), nearest);
}

PTX_VM__INLINE PtxVmV ptx_vm__quiet_f32(PtxVmV x) { return ptx_vm__mul_f32(x, ptx_vm__opaque(1.0f)); }

PTX_VM__INLINE PtxVmV ptx_vm__fix_nan_f32(PtxVmV x) {
    return ptx_vm__select(ptx_vm__is_nan(x), ptx_vm__set_bits(PTX_VM__NAN_BITS), x);
}

/* Correctly rounded: 0.5 ulp [1 ulp]. The square root too. */
PTX_VM__INLINE PtxVmV ptx_vm__rcp_f32(PtxVmV x) { return ptx_vm__div(ptx_vm__set(1.0f), x); }

/* Two roundings: 1.5 ulp [2 ulp]. */
PTX_VM__INLINE PtxVmV ptx_vm__div_f32(PtxVmV x, PtxVmV y) { return ptx_vm__mul_f32(x, ptx_vm__rcp_f32(y)); }

/* Relative error 2^-23.4 [2^-22.9]. */
PTX_VM__INLINE PtxVmV ptx_vm__rsqrt_f32(PtxVmV x) { return ptx_vm__rcp_f32(ptx_vm__sqrt_f32(x)); }

/* sin(2 pi r) for r in [-1/4, 1/4]: error 2^-22.6, never above 1, which it is at 1/4. With the reduction, sin and cos are within
 * 2^-20.6 in [-2 pi, 2 pi] [2^-20.5] and 2^-14.73 in [-100 pi, 100 pi] [2^-14.7]. */
PTX_VM__INLINE PtxVmV ptx_vm__sin_turns(PtxVmV r) {
    PtxVmV r2 = ptx_vm__mul_f32(r, r);
    PtxVmV p = ptx_vm__fma_f32(r2, ptx_vm__set(40.87591f), ptx_vm__set(-76.727905f));
    p = ptx_vm__fma_f32(r2, p, ptx_vm__set(81.60862f));
    p = ptx_vm__fma_f32(r2, p, ptx_vm__set(-41.341766f));
    p = ptx_vm__fma_f32(r2, p, ptx_vm__set(6.2831855f));
    return ptx_vm__mul_f32(r, p);
}

/* A magnitude in turns as the GPU reduces it: times 1/2pi in f32, rounded toward zero, less the nearest integer. The result,
 * in [-1/2, 1/2], is exact except for that one product. Infinity may give any number. */
PTX_VM__INLINE PtxVmV ptx_vm__turns(PtxVmV magnitude) {
    const PtxVmV turns_per_radian = ptx_vm__set(0.15915494f);
    PtxVmV product = ptx_vm__mul_f32(magnitude, turns_per_radian);
    product = ptx_vm__toward_zero(product, magnitude, turns_per_radian);
    return ptx_vm__sub_f32(product, ptx_vm__round(product));
}

/* The constant, or NaN if the magnitude is infinite. */
PTX_VM__INLINE PtxVmV ptx_vm__if_finite(PtxVmV magnitude, PtxVmV constant) {
    return ptx_vm__fma_f32(magnitude, ptx_vm__set(0.0f), constant);
}

PTX_VM__INLINE PtxVmV ptx_vm__sin_f32(PtxVmV x) {
    /* 6291456 = 1.5 * 2^22: its last bit stands for 1/2, so adding it rounds to half turns and shows their parity there. */
    const PtxVmV magic = ptx_vm__set(6291456.0f);
    PtxVmV magnitude = ptx_vm__and_b32(x, ptx_vm__set_bits(0x7fffffffu));
    PtxVmV turns = ptx_vm__turns(magnitude);
    PtxVmV halves = ptx_vm__add_f32(turns, ptx_vm__if_finite(magnitude, magic));
    PtxVmV r = ptx_vm__sub_f32(turns, ptx_vm__sub_f32(halves, magic));
    PtxVmV sign = ptx_vm__xor_b32(ptx_vm__shift_left(halves, 31), ptx_vm__and_b32(x, ptx_vm__set(-0.0f)));
    return ptx_vm__xor_b32(ptx_vm__sin_turns(r), sign);
}

PTX_VM__INLINE PtxVmV ptx_vm__cos_f32(PtxVmV x) {
    /* cos(2 pi t) = sin(2 pi (1/4 - |t|)) */
    const PtxVmV magnitude_bits = ptx_vm__set_bits(0x7fffffffu);
    PtxVmV magnitude = ptx_vm__and_b32(x, magnitude_bits);
    PtxVmV turns = ptx_vm__and_b32(ptx_vm__turns(magnitude), magnitude_bits);
    return ptx_vm__sin_turns(ptx_vm__sub_f32(ptx_vm__if_finite(magnitude, ptx_vm__set(0.25f)), turns));
}

/* x = 2^e m with m in [sqrt(1/2), sqrt(2)); log2(1 + f) = f P(f). Absolute error 2^-23.9 in (0.5, 2) [2^-22], elsewhere relative
 * error 2^-23.9 [2^-22]. */
PTX_VM__INLINE PtxVmV ptx_vm__lg2_f32(PtxVmV x) {
    PtxVmV exponent = ptx_vm__shift_right_signed(ptx_vm__sub_u32(x, ptx_vm__set_bits(0x3f3504f3u)), 23);
    PtxVmV f = ptx_vm__sub_f32(ptx_vm__sub_u32(x, ptx_vm__shift_left(exponent, 23)), ptx_vm__set(1.0f));
    PtxVmV p = ptx_vm__fma_f32(f, ptx_vm__set(0.12585415f), ptx_vm__set(-0.21009192f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.2170651f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(-0.2385357f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.2877022f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(-0.3607217f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.48092026f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(-0.7213471f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(1.4426949f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__f32_from_s32(exponent));
    /* All but normal positive numbers: zeros, flushed ones among them, -infinity; negative ones NaN; infinity and NaN
     * themselves. */
    p = ptx_vm__or_b32(p, ptx_vm__from_mask(ptx_vm__less(x, ptx_vm__set(0.0f))));
    p = ptx_vm__select(ptx_vm__equal(x, ptx_vm__set(0.0f)), ptx_vm__set_bits(0xff800000u), p);
    return ptx_vm__select(ptx_vm__less(x, ptx_vm__set_bits(0x7f800000u)), p, x);
}

/* x = n + f with f in [-1/2, 1/2]; 2^f = 1 + f P(f). Error 0.8 ulp [2 ulp]. */
PTX_VM__INLINE PtxVmV ptx_vm__ex2_f32(PtxVmV x) {
    /* 12582912 = 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits. From 128 on the result is
     * infinity, which is 2^128 in the arithmetic on bits below. */
    const PtxVmV magic = ptx_vm__set(12582912.0f);
    PtxVmV clamped = ptx_vm__min_raw_f32(x, ptx_vm__set(128.0f));
    PtxVmV integer = ptx_vm__add_f32(clamped, magic);
    PtxVmV f = ptx_vm__sub_f32(clamped, ptx_vm__sub_f32(integer, magic));
    PtxVmV p = ptx_vm__fma_f32(f, ptx_vm__set(0.00015326471f), ptx_vm__set(0.0013390806f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.009618506f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.0555036f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.24022648f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(0.6931472f));
    p = ptx_vm__fma_f32(f, p, ptx_vm__set(1.0f));
    p = ptx_vm__add_u32(p, ptx_vm__shift_left(integer, 23));
    /* Below -126 the result is zero, which is what the maximum gives; where x is NaN, it gives x. */
    PtxVmM is_normal = ptx_vm__less(ptx_vm__set(-126.00001f), x);
    return ptx_vm__select(is_normal, p, ptx_vm__max_raw_f32(ptx_vm__set(0.0f), x));
}

/* x P(x^2) / Q(x^2) on |x| < 5.194, then 1: relative error 2^-13.9 [2^-11]. Small x, subnormals included,
 * are their own result. */
PTX_VM__INLINE PtxVmV ptx_vm__tanh_f32(PtxVmV x) {
    const PtxVmV limit = ptx_vm__set(5.1939778f), minus_limit = ptx_vm__set(-5.1939778f), one = ptx_vm__set(1.0f);
    PtxVmV clamped = ptx_vm__max_raw_f32(minus_limit, ptx_vm__min_raw_f32(limit, x)); /* in this order NaN stays NaN */
    PtxVmV x2 = ptx_vm__mul_f32(clamped, clamped);
    PtxVmV p = ptx_vm__fma_f32(x2, ptx_vm__set(0.00065158348f), ptx_vm__set(0.10179524f));
    PtxVmV q = ptx_vm__fma_f32(x2, ptx_vm__set(0.012630122f), ptx_vm__set(0.4347445f));
    p = ptx_vm__fma_f32(x2, p, ptx_vm__set(0.9999354f));
    q = ptx_vm__fma_f32(x2, q, one);
    PtxVmV r = ptx_vm__div(ptx_vm__mul_f32(clamped, p), q);
    PtxVmM small = ptx_vm__less(ptx_vm__and_b32(x, ptx_vm__set_bits(0x7fffffffu)), ptx_vm__set(0.0078125f));
    return ptx_vm__select(small, x, r);
}

PTX_VM__INLINE PtxVmV ptx_vm__copysign_f32(PtxVmV x, PtxVmV y) {
    return ptx_vm__or_b32(ptx_vm__and_b32(x, ptx_vm__set(-0.0f)), ptx_vm__and_b32(y, ptx_vm__set_bits(0x7fffffffu)));
}

PTX_VM__INLINE PtxVmV ptx_vm__setp_lt_f32(PtxVmV x, PtxVmV y) { return ptx_vm__from_mask(ptx_vm__less(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__setp_eq_u32(PtxVmV x, PtxVmV y) { return ptx_vm__from_mask(ptx_vm__equal_u32(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__setp_ne_u32(PtxVmV x, PtxVmV y) {
    return ptx_vm__xor_b32(ptx_vm__from_mask(ptx_vm__equal_u32(x, y)), ptx_vm__set_bits(0xffffffffu));
}
PTX_VM__INLINE PtxVmV ptx_vm__truth(PtxVmV x) { return ptx_vm__setp_ne_u32(x, ptx_vm__set(0.0f)); }
PTX_VM__INLINE PtxVmV ptx_vm__selp_b32(PtxVmV x, PtxVmV y, PtxVmV p) { return ptx_vm__select(ptx_vm__to_mask(p), x, y); }
PTX_VM__INLINE PtxVmV ptx_vm__mad_lo_u32(PtxVmV x, PtxVmV y, PtxVmV z) { return ptx_vm__add_u32(ptx_vm__mul_lo_u32(x, y), z); }

/* ---- halves ------------------------------------------------------------------------------------------------------- */

/* All ones where true. */
#define PTX_VM__TRUE(comparison) ((PtxVmU)(comparison))

/* An f16 or bf16 is held as the f32 of equal value. That of an f16 is never subnormal, and products of two are exact. */

/* The sum of a product and a number, rounded to odd: inexact results end with a one. Rounding them once more to a format
   with at least two digits less gives what rounding the exact one would (Boldo and Melquiond 2008). The product and the exact
   error of the sum (Knuth's two-sum) must be exact in f32. */
PTX_VM__INLINE PtxVmV ptx_vm__sum_to_odd(PtxVmV product, PtxVmV c) {
    PtxVmV sum = ptx_vm__add_f32(product, c);
    PtxVmV part = ptx_vm__sub_f32(sum, product);
    PtxVmV error = ptx_vm__add_f32(ptx_vm__sub_f32(product, ptx_vm__sub_f32(sum, part)), ptx_vm__sub_f32(c, part));
    /* One less in size where the sum was rounded away from zero. The error of what is not finite is NaN, and no size. */
    PtxVmV odd = ptx_vm__add_u32(sum, ptx_vm__shift_right_signed(ptx_vm__xor_b32(error, sum), 31));
    PtxVmM is_inexact = ptx_vm__less(ptx_vm__set(0.0f), ptx_vm__and_b32(error, ptx_vm__set_bits(0x7fffffffu)));
    return ptx_vm__select(is_inexact, ptx_vm__or_b32(odd, ptx_vm__set_bits(1u)), sum);
}

/* Adding 1.5 * 2^23 units in the last place of the result, or of the least normal one, rounds to them. */
PTX_VM__INLINE PtxVmV ptx_vm__round_f16(PtxVmV x) {
    const PtxVmV sign_bit = ptx_vm__set(-0.0f), largest = ptx_vm__set(65504.0f), infinity = ptx_vm__set_bits(0x7f800000u);
    PtxVmV magnitude = ptx_vm__and_b32(x, ptx_vm__set_bits(0x7fffffffu));
    PtxVmV exponent =
        ptx_vm__and_b32(ptx_vm__max_raw_f32(ptx_vm__set(6.103515625e-05f), magnitude), infinity); /* of NaN, its own */
    exponent = ptx_vm__min_raw_f32(ptx_vm__set(65536.0f), exponent);
    PtxVmV magic = ptx_vm__add_u32(exponent, ptx_vm__set_bits((13u << 23) | 0x400000u));
    PtxVmV rounded = ptx_vm__sub_f32(ptx_vm__add_f32(magnitude, magic), magic);
    rounded = ptx_vm__select(ptx_vm__less(largest, rounded), infinity, rounded);
    return ptx_vm__or_b32(rounded, ptx_vm__and_b32(x, sign_bit));
}

/* On bits, so that subnormals are kept. */
PTX_VM__INLINE PtxVmV ptx_vm__round_bf16(PtxVmV x) {
    const PtxVmU bits = (PtxVmU)x;
    PtxVmV rounded = (PtxVmV)((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
    return ptx_vm__select(ptx_vm__is_nan(x), x, rounded);
}

/* f32 has more than twice as many digits and two: rounding its sums once more is rounding once (Figueroa 1995). */
PTX_VM__INLINE PtxVmV ptx_vm__add_f16(PtxVmV x, PtxVmV y) { return ptx_vm__round_f16(ptx_vm__add_f32(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__sub_f16(PtxVmV x, PtxVmV y) { return ptx_vm__round_f16(ptx_vm__sub_f32(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__mul_f16(PtxVmV x, PtxVmV y) { return ptx_vm__round_f16(ptx_vm__mul_f32(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__fma_f16(PtxVmV x, PtxVmV y, PtxVmV z) {
    return ptx_vm__round_f16(ptx_vm__sum_to_odd(ptx_vm__mul_f32(x, y), z));
}

/* bf16 as a double, past flushing: its subnormals are integers times 2^-149. */
PTX_VM__INLINE double ptx_vm__wide_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const double small = (double)(int32_t)(bits & 0x7fffffu) * 1.401298464324817e-45; /* 2^-149 */
    const int is_small = (bits & 0x7f800000u) == 0;
    return is_small ? (bits >> 31 ? -small : small) : (double)x;
}

/* Past f32, where it would flush or overflow: in double, which holds the product exactly, rounded to odd before it is rounded to bf16. */
static __attribute__((noinline, unused)) PtxVmV ptx_vm__fma_bf16_in_double(PtxVmV x, PtxVmV y, PtxVmV z) {
    float a[PTX_VM__LANES], b[PTX_VM__LANES], c[PTX_VM__LANES], results[PTX_VM__LANES];
    ptx_vm__store(a, x);
    ptx_vm__store(b, y);
    ptx_vm__store(c, z);
    for (int i = 0; i < PTX_VM__LANES; i++) {
        const double product = ptx_vm__wide_bf16(a[i]) * ptx_vm__wide_bf16(b[i]), addend = ptx_vm__wide_bf16(c[i]);
        const double sum = product + addend, part = sum - product;
        const double error = (product - (sum - part)) + (addend - part);
        uint64_t bits, error_bits;
        memcpy(&bits, &sum, sizeof bits);
        memcpy(&error_bits, &error, sizeof error_bits);
        const uint64_t sign = bits & UINT64_C(1) << 63;
        const int is_inexact = (error < 0.0) | (error > 0.0);
        if (is_inexact) bits = (bits - ((bits ^ error_bits) >> 63)) | 1;
        uint64_t exponent = bits >> 52 & 0x7ff;
        exponent = exponent < 1023 - 126 ? 1023 - 126 : exponent > 1023 + 128 ? 1023 + 128 : exponent;
        const uint64_t magic_bits = ((exponent + 45) << 52) | UINT64_C(0x8000000000000);
        double magnitude, magic;
        bits &= UINT64_MAX >> 1;
        memcpy(&magnitude, &bits, sizeof magnitude);
        memcpy(&magic, &magic_bits, sizeof magic);
        magnitude = (magnitude + magic) - magic;
        const float normal = (float)magnitude; /* infinite from 2^128 on */
        uint32_t result;
        memcpy(&result, &normal, sizeof result);
        if (magnitude < 1.1754943508222875e-38) result = (uint32_t)(int32_t)(magnitude * 7.1362384635298e44); /* 2^-126, 2^149 */
        result |= (uint32_t)(sign >> 32);
        memcpy(&results[i], &result, sizeof result);
    }
    return ptx_vm__load(results);
}

/* In f32 where nothing is small or large: then the product and the error are exact. */
PTX_VM__INLINE PtxVmV ptx_vm__fma_bf16(PtxVmV x, PtxVmV y, PtxVmV z) {
    const PtxVmV magnitude_bits = ptx_vm__set_bits(0x7fffffffu);
    const PtxVmU least = (PtxVmU)ptx_vm__set_bits(0x0d800000u), most = (PtxVmU)ptx_vm__set_bits(0x7e800000u); /* 2^-100, 2^126 */
    PtxVmV product = ptx_vm__mul_f32(x, y);
    PtxVmV size = ptx_vm__and_b32(product, magnitude_bits);
    /* As bits: comparisons of floats would take subnormals for zeros. */
    const PtxVmU zero = {0};
    const PtxVmU is_product = PTX_VM__TRUE((PtxVmU)x << 1 != zero) & PTX_VM__TRUE((PtxVmU)y << 1 != zero);
    const PtxVmU is_addend = PTX_VM__TRUE((PtxVmU)z << 1 != zero);
    const PtxVmU product_bits = (PtxVmU)size, addend_bits = (PtxVmU)ptx_vm__and_b32(z, magnitude_bits);
    const PtxVmU doubt = (is_product & PTX_VM__TRUE((product_bits < least) | (product_bits > most))) |
        (is_addend & PTX_VM__TRUE((addend_bits < least) | (addend_bits > most)));
    if (__builtin_expect(ptx_vm__any_bit((PtxVmV)doubt), 0)) return ptx_vm__fma_bf16_in_double(x, y, z);
    return ptx_vm__round_bf16(ptx_vm__sum_to_odd(product, z));
}

PTX_VM__INLINE PtxVmV ptx_vm__add_bf16(PtxVmV x, PtxVmV y) { return ptx_vm__fma_bf16(x, ptx_vm__set(1.0f), y); }
PTX_VM__INLINE PtxVmV ptx_vm__sub_bf16(PtxVmV x, PtxVmV y) { return ptx_vm__fma_bf16(y, ptx_vm__set(-1.0f), x); }
PTX_VM__INLINE PtxVmV ptx_vm__mul_bf16(PtxVmV x, PtxVmV y) { return ptx_vm__fma_bf16(x, y, ptx_vm__set(-0.0f)); }

/* Rounded from f32: tanh within 2^-11.6 and 2^-8.9 [2^-10.987 and 2^-8], ex2 by a factor of 2^-10.9 and 2^-8.9 [2^-9.9 and 2^-7]. */
PTX_VM__INLINE PtxVmV ptx_vm__tanh_f16(PtxVmV x) { return ptx_vm__round_f16(ptx_vm__tanh_f32(x)); }
PTX_VM__INLINE PtxVmV ptx_vm__tanh_bf16(PtxVmV x) { return ptx_vm__round_bf16(ptx_vm__tanh_f32(x)); }
PTX_VM__INLINE PtxVmV ptx_vm__ex2_f16(PtxVmV x) { return ptx_vm__round_f16(ptx_vm__ex2_f32(x)); }
PTX_VM__INLINE PtxVmV ptx_vm__ex2_bf16(PtxVmV x) { return ptx_vm__round_bf16(ptx_vm__ex2_f32(x)); }

PTX_VM__INLINE PtxVmV ptx_vm__neg_half(PtxVmV x) { return ptx_vm__xor_b32(x, ptx_vm__set(-0.0f)); }
PTX_VM__INLINE PtxVmV ptx_vm__abs_half(PtxVmV x) { return ptx_vm__and_b32(x, ptx_vm__set_bits(0x7fffffffu)); }

/* As integers in the order of the numbers, -0 below 0. */
PTX_VM__INLINE PtxVmS ptx_vm__order(PtxVmV x) { return (PtxVmS)x ^ (PtxVmS)((PtxVmU)((PtxVmS)x >> 31) >> 1); }

/* A number beats a NaN. */
PTX_VM__INLINE PtxVmV ptx_vm__number_of(PtxVmV x, PtxVmV y, PtxVmV chosen) {
    return ptx_vm__select(ptx_vm__is_nan(x), y, ptx_vm__select(ptx_vm__is_nan(y), x, chosen));
}
PTX_VM__INLINE PtxVmV ptx_vm__min_half(PtxVmV x, PtxVmV y) {
    const PtxVmU is_less = PTX_VM__TRUE(ptx_vm__order(x) < ptx_vm__order(y));
    return ptx_vm__number_of(x, y, (PtxVmV)((is_less & (PtxVmU)x) | (~is_less & (PtxVmU)y)));
}
PTX_VM__INLINE PtxVmV ptx_vm__max_half(PtxVmV x, PtxVmV y) {
    const PtxVmU is_less = PTX_VM__TRUE(ptx_vm__order(x) < ptx_vm__order(y));
    return ptx_vm__number_of(x, y, (PtxVmV)((is_less & (PtxVmU)y) | (~is_less & (PtxVmU)x)));
}

/* ---- integers and bits ------------------------------------------------------------------------------------------- */

/* Written once for all levels in GNU C vectors, as integer results are the same at every level. Shifts by more than 31 are
   undefined in C and are masked first. */
#define PTX_VM__WORDS(v) ((PtxVmU)(v))
#define PTX_VM__SIGNED(v) ((PtxVmS)(v))
#define PTX_VM__UNARY_BITS(name, expression)         \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a) { \
        const PtxVmU x = PTX_VM__WORDS(a);           \
        return (PtxVmV)(expression);                 \
    }
#define PTX_VM__BINARY_BITS(name, expression)                    \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a, PtxVmV b) {   \
        const PtxVmU x = PTX_VM__WORDS(a), y = PTX_VM__WORDS(b); \
        return (PtxVmV)(expression);                             \
    }
#define PTX_VM__TERNARY_BITS(name, expression)                                         \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a, PtxVmV b, PtxVmV c) {               \
        const PtxVmU x = PTX_VM__WORDS(a), y = PTX_VM__WORDS(b), z = PTX_VM__WORDS(c); \
        (void)y;                                                                       \
        return (PtxVmV)(expression);                                                   \
    }

PTX_VM__INLINE PtxVmU ptx_vm__choose(PtxVmU mask, PtxVmU yes, PtxVmU no) { return (mask & yes) | (~mask & no); }
PTX_VM__INLINE PtxVmU ptx_vm__least(PtxVmU x, PtxVmU y) { return ptx_vm__choose(PTX_VM__TRUE(x < y), x, y); }

/* Zero from 32 on; the signed one the sign. */
PTX_VM__INLINE PtxVmU ptx_vm__left(PtxVmU x, PtxVmU n) { return (x << (n & 31u)) & PTX_VM__TRUE(n < 32u); }
PTX_VM__INLINE PtxVmU ptx_vm__right(PtxVmU x, PtxVmU n) { return (x >> (n & 31u)) & PTX_VM__TRUE(n < 32u); }
PTX_VM__INLINE PtxVmU ptx_vm__right_signed(PtxVmU x, PtxVmU n) {
    const PtxVmU most = PTX_VM__WORDS(ptx_vm__set_bits(31));
    return (PtxVmU)(PTX_VM__SIGNED(x) >> PTX_VM__SIGNED(ptx_vm__least(n, most)));
}

PTX_VM__INLINE PtxVmU ptx_vm__count_ones(PtxVmU x) {
    x = x - ((x >> 1) & 0x55555555u);
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return (x * 0x01010101u) >> 24;
}

PTX_VM__INLINE PtxVmU ptx_vm__count_leading_zeros(PtxVmU x) {
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    return ptx_vm__count_ones(~x);
}

PTX_VM__INLINE PtxVmU ptx_vm__reverse(PtxVmU x) {
    x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
    x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
    x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
    x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
    return (x >> 16) | (x << 16);
}

/* Inverts negative numbers, so that the highest set bit is the highest that differs from the sign. */
PTX_VM__INLINE PtxVmU ptx_vm__magnitude_bits(PtxVmU x) { return x ^ (PtxVmU)(PTX_VM__SIGNED(x) >> 31); }

PTX_VM__INLINE PtxVmU ptx_vm__find(PtxVmU x) { return 31u - ptx_vm__count_leading_zeros(x); }
PTX_VM__INLINE PtxVmU ptx_vm__find_shift(PtxVmU x) { return ptx_vm__count_leading_zeros(x) | PTX_VM__TRUE(x == 0u); }

/* x:y shifted, its upper or lower word; n is at most 32. */
PTX_VM__INLINE PtxVmU ptx_vm__funnel_left(PtxVmU low, PtxVmU high, PtxVmU n) {
    return ptx_vm__left(high, n) | ptx_vm__right(low, 32u - n);
}
PTX_VM__INLINE PtxVmU ptx_vm__funnel_right(PtxVmU low, PtxVmU high, PtxVmU n) {
    return ptx_vm__right(low, n) | ptx_vm__left(high, 32u - n);
}
PTX_VM__INLINE PtxVmU ptx_vm__up_to_32(PtxVmU n) { return ptx_vm__least(n, PTX_VM__WORDS(ptx_vm__set_bits(32))); }

/* A field of at most 32 bits, moved to the bottom with the bits above it: those are then shifted out. Positions and lengths are
   bytes. What lies beyond bit 31 is the sign, or zero. */
PTX_VM__INLINE PtxVmU ptx_vm__field_u32(PtxVmU x, PtxVmU position, PtxVmU length) {
    const PtxVmU rest = 32u - ptx_vm__up_to_32(length & 255u);
    return ptx_vm__right(ptx_vm__left(ptx_vm__right(x, position & 255u), rest), rest);
}
PTX_VM__INLINE PtxVmU ptx_vm__field_s32(PtxVmU x, PtxVmU position, PtxVmU length) {
    const PtxVmU rest = 32u - ptx_vm__up_to_32(length & 255u);
    return ptx_vm__right_signed(ptx_vm__left(ptx_vm__right_signed(x, position & 255u), rest), rest);
}

PTX_VM__UNARY_BITS(not_b32, ~x)
PTX_VM__UNARY_BITS(cnot_b32, PTX_VM__TRUE(x == 0u) & 1u)
PTX_VM__UNARY_BITS(brev_b32, ptx_vm__reverse(x))
PTX_VM__UNARY_BITS(popc_b32, ptx_vm__count_ones(x))
PTX_VM__UNARY_BITS(clz_b32, ptx_vm__count_leading_zeros(x))
PTX_VM__UNARY_BITS(bfind_u32, ptx_vm__find(x))
PTX_VM__UNARY_BITS(bfind_s32, ptx_vm__find(ptx_vm__magnitude_bits(x)))
PTX_VM__UNARY_BITS(bfind_shiftamt_u32, ptx_vm__find_shift(x))
PTX_VM__UNARY_BITS(bfind_shiftamt_s32, ptx_vm__find_shift(ptx_vm__magnitude_bits(x)))
PTX_VM__UNARY_BITS(neg_s32, 0u - x)
PTX_VM__UNARY_BITS(abs_s32, ptx_vm__choose(PTX_VM__TRUE(PTX_VM__SIGNED(x) < 0), 0u - x, x))
PTX_VM__BINARY_BITS(shl_b32, ptx_vm__left(x, y))
PTX_VM__BINARY_BITS(shr_u32, ptx_vm__right(x, y))
PTX_VM__BINARY_BITS(shr_s32, ptx_vm__right_signed(x, y))
PTX_VM__BINARY_BITS(min_u32, ptx_vm__choose(PTX_VM__TRUE(x < y), x, y))
PTX_VM__BINARY_BITS(max_u32, ptx_vm__choose(PTX_VM__TRUE(x < y), y, x))
PTX_VM__BINARY_BITS(min_s32, ptx_vm__choose(PTX_VM__TRUE(PTX_VM__SIGNED(x) < PTX_VM__SIGNED(y)), x, y))
PTX_VM__BINARY_BITS(max_s32, ptx_vm__choose(PTX_VM__TRUE(PTX_VM__SIGNED(x) < PTX_VM__SIGNED(y)), y, x))
PTX_VM__BINARY_BITS(setp_lt_u32, x < y)
PTX_VM__BINARY_BITS(setp_le_u32, x <= y)
PTX_VM__BINARY_BITS(setp_gt_u32, x > y)
PTX_VM__BINARY_BITS(setp_ge_u32, x >= y)
PTX_VM__BINARY_BITS(setp_lt_s32, PTX_VM__SIGNED(x) < PTX_VM__SIGNED(y))
PTX_VM__BINARY_BITS(setp_le_s32, PTX_VM__SIGNED(x) <= PTX_VM__SIGNED(y))
PTX_VM__BINARY_BITS(setp_gt_s32, PTX_VM__SIGNED(x) > PTX_VM__SIGNED(y))
PTX_VM__BINARY_BITS(setp_ge_s32, PTX_VM__SIGNED(x) >= PTX_VM__SIGNED(y))
/* As unsigned, less the other operand for each negative one. */
PTX_VM__BINARY_BITS(
    mul_hi_s32,
    PTX_VM__WORDS(ptx_vm__mul_hi_u32(a, b)) - (y & (PtxVmU)(PTX_VM__SIGNED(x) >> 31)) - (x & (PtxVmU)(PTX_VM__SIGNED(y) >> 31))
)
PTX_VM__TERNARY_BITS(shf_l_wrap_b32, ptx_vm__funnel_left(x, y, z & 31u))
PTX_VM__TERNARY_BITS(shf_l_clamp_b32, ptx_vm__funnel_left(x, y, ptx_vm__up_to_32(z)))
PTX_VM__TERNARY_BITS(shf_r_wrap_b32, ptx_vm__funnel_right(x, y, z & 31u))
PTX_VM__TERNARY_BITS(shf_r_clamp_b32, ptx_vm__funnel_right(x, y, ptx_vm__up_to_32(z)))
PTX_VM__TERNARY_BITS(bfe_u32, ptx_vm__field_u32(x, y, z))
/* Without a length the field is zero, not the sign. */
PTX_VM__TERNARY_BITS(bfe_s32, ptx_vm__field_s32(x, y, z) & PTX_VM__TRUE((z & 255u) != 0u))

#include "ptx_vm_packed.h"

#endif /* PTX_VM_FUNCTIONS_H */
