/*
 * ptx_vm_kernels.h - the operations of ptx_vm.h on a block of points, at the SIMD level of the compiler's flags.
 *
 * Private to ptx_vm.h. A file that includes it defines one function, named by PTX_VM_KERNELS:
 *
 *     #define PTX_VM_KERNELS ptx_vm__kernels_avx2
 *     #include "ptx_vm_kernels.h"
 *
 * Shape of the machine. A kernel works on a block of 8 vectors, which arrive in 8 vector registers: the accumulator. A kernel
 * takes its operands from the accumulator or from memory, leaves its result in the accumulator, stores it as well if
 * it is used later, and ends by calling the next kernel. Compilers turn that call into a jump and keep the 8 arguments in
 * place, so a chain of operations touches memory only for its other operands. Without that optimisation the code is still
 * correct, but its stack is as deep as the program is long.
 *
 * For each operation there is a kernel for each choice of operands that lie in the accumulator (PtxVmForm), with and
 * without the store.
 *
 * Bits. All levels compute the same bits, so everything here is a sequence of correctly rounded operations: no estimates, no
 * contraction (compile with -ffp-contract=off), fma where fma is written. The polynomials are minimax fits of our own
 * (linear programming on a dense grid), each coefficient rounded to f32 in turn and the rest fitted again. The largest error
 * stated at a function is that of its results, over at least 2^28 arguments spread over all floats; the PTX ISA's bound
 * follows in brackets. tests/unit/native/test_ptx_vm.py checks those bounds.
 */
#ifndef PTX_VM_KERNELS_H_INCLUDED
#define PTX_VM_KERNELS_H_INCLUDED

#include "../ptx_vm.h"
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
    return ptx_vm__add(ptx_vm__and(x, ptx_vm__set_bits(0x7fffffffu)), ptx_vm__opaque(-0.0f));
}

PTX_VM__INLINE PtxVmV ptx_vm__neg_f32(PtxVmV x) { return ptx_vm__sub(ptx_vm__opaque(-0.0f), x); }

PTX_VM__INLINE PtxVmV ptx_vm__quiet_f32(PtxVmV x) { return ptx_vm__mul(x, ptx_vm__opaque(1.0f)); }

PTX_VM__INLINE PtxVmV ptx_vm__fix_nan_f32(PtxVmV x) {
    return ptx_vm__select(ptx_vm__is_nan(x), ptx_vm__set_bits(PTX_VM__NAN_BITS), x);
}

/* Correctly rounded: 0.5 ulp [1 ulp]. The square root too. */
PTX_VM__INLINE PtxVmV ptx_vm__rcp_f32(PtxVmV x) { return ptx_vm__div(ptx_vm__set(1.0f), x); }

/* Two roundings: 1.5 ulp [2 ulp]. */
PTX_VM__INLINE PtxVmV ptx_vm__div_f32(PtxVmV x, PtxVmV y) { return ptx_vm__mul(x, ptx_vm__rcp_f32(y)); }

/* Relative error 2^-23.4 [2^-22.9]. */
PTX_VM__INLINE PtxVmV ptx_vm__rsqrt_f32(PtxVmV x) { return ptx_vm__rcp_f32(ptx_vm__sqrt(x)); }

/* sin(2 pi r) for r in [-1/4, 1/4]: error 2^-22.6, never above 1, which it is at 1/4. With the reduction, sin and cos are within
 * 2^-20.6 in [-2 pi, 2 pi] [2^-20.5] and 2^-14.73 in [-100 pi, 100 pi] [2^-14.7]. */
PTX_VM__INLINE PtxVmV ptx_vm__sin_turns(PtxVmV r) {
    PtxVmV r2 = ptx_vm__mul(r, r);
    PtxVmV p = ptx_vm__fma(r2, ptx_vm__set(40.87591f), ptx_vm__set(-76.727905f));
    p = ptx_vm__fma(r2, p, ptx_vm__set(81.60862f));
    p = ptx_vm__fma(r2, p, ptx_vm__set(-41.341766f));
    p = ptx_vm__fma(r2, p, ptx_vm__set(6.2831855f));
    return ptx_vm__mul(r, p);
}

/* A magnitude in turns as the GPU reduces it: times 1/2pi in f32, rounded toward zero, less the nearest integer. The result,
 * in [-1/2, 1/2], is exact except for that one product. Infinity may give any number. */
PTX_VM__INLINE PtxVmV ptx_vm__turns(PtxVmV magnitude) {
    const PtxVmV turns_per_radian = ptx_vm__set(0.15915494f);
    PtxVmV product = ptx_vm__mul(magnitude, turns_per_radian);
    product = ptx_vm__toward_zero(product, magnitude, turns_per_radian);
    return ptx_vm__sub(product, ptx_vm__round(product));
}

/* The constant, or NaN if the magnitude is infinite. */
PTX_VM__INLINE PtxVmV ptx_vm__if_finite(PtxVmV magnitude, PtxVmV constant) {
    return ptx_vm__fma(magnitude, ptx_vm__set(0.0f), constant);
}

PTX_VM__INLINE PtxVmV ptx_vm__sin_f32(PtxVmV x) {
    /* 6291456 = 1.5 * 2^22: its last bit stands for 1/2, so adding it rounds to half turns and shows their parity there. */
    const PtxVmV magic = ptx_vm__set(6291456.0f);
    PtxVmV magnitude = ptx_vm__and(x, ptx_vm__set_bits(0x7fffffffu));
    PtxVmV turns = ptx_vm__turns(magnitude);
    PtxVmV halves = ptx_vm__add(turns, ptx_vm__if_finite(magnitude, magic));
    PtxVmV r = ptx_vm__sub(turns, ptx_vm__sub(halves, magic));
    PtxVmV sign = ptx_vm__xor(ptx_vm__shift_left(halves, 31), ptx_vm__and(x, ptx_vm__set(-0.0f)));
    return ptx_vm__xor(ptx_vm__sin_turns(r), sign);
}

PTX_VM__INLINE PtxVmV ptx_vm__cos_f32(PtxVmV x) {
    /* cos(2 pi t) = sin(2 pi (1/4 - |t|)) */
    const PtxVmV magnitude_bits = ptx_vm__set_bits(0x7fffffffu);
    PtxVmV magnitude = ptx_vm__and(x, magnitude_bits);
    PtxVmV turns = ptx_vm__and(ptx_vm__turns(magnitude), magnitude_bits);
    return ptx_vm__sin_turns(ptx_vm__sub(ptx_vm__if_finite(magnitude, ptx_vm__set(0.25f)), turns));
}

/* x = 2^e m with m in [sqrt(1/2), sqrt(2)); log2(1 + f) = f P(f). Absolute error 2^-23.9 in (0.5, 2) [2^-22], elsewhere relative
 * error 2^-23.9 [2^-22]. */
PTX_VM__INLINE PtxVmV ptx_vm__lg2_f32(PtxVmV x) {
    PtxVmV exponent = ptx_vm__shift_right_signed(ptx_vm__sub_u32(x, ptx_vm__set_bits(0x3f3504f3u)), 23);
    PtxVmV f = ptx_vm__sub(ptx_vm__sub_u32(x, ptx_vm__shift_left(exponent, 23)), ptx_vm__set(1.0f));
    PtxVmV p = ptx_vm__fma(f, ptx_vm__set(0.12585415f), ptx_vm__set(-0.21009192f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.2170651f));
    p = ptx_vm__fma(f, p, ptx_vm__set(-0.2385357f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.2877022f));
    p = ptx_vm__fma(f, p, ptx_vm__set(-0.3607217f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.48092026f));
    p = ptx_vm__fma(f, p, ptx_vm__set(-0.7213471f));
    p = ptx_vm__fma(f, p, ptx_vm__set(1.4426949f));
    p = ptx_vm__fma(f, p, ptx_vm__f32_from_s32(exponent));
    /* What is not a normal positive number: zeros, flushed ones among them, -infinity; negative ones NaN; infinity and NaN
     * themselves. */
    p = ptx_vm__or(p, ptx_vm__from_mask(ptx_vm__less(x, ptx_vm__set(0.0f))));
    p = ptx_vm__select(ptx_vm__equal(x, ptx_vm__set(0.0f)), ptx_vm__set_bits(0xff800000u), p);
    return ptx_vm__select(ptx_vm__less(x, ptx_vm__set_bits(0x7f800000u)), p, x);
}

/* x = n + f with f in [-1/2, 1/2]; 2^f = 1 + f P(f). Error 0.8 ulp [2 ulp]. */
PTX_VM__INLINE PtxVmV ptx_vm__ex2_f32(PtxVmV x) {
    /* 12582912 = 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits. From 128 on the result is
     * infinity, which is 2^128 in the arithmetic on bits below. */
    const PtxVmV magic = ptx_vm__set(12582912.0f);
    PtxVmV clamped = ptx_vm__min_raw(x, ptx_vm__set(128.0f));
    PtxVmV integer = ptx_vm__add(clamped, magic);
    PtxVmV f = ptx_vm__sub(clamped, ptx_vm__sub(integer, magic));
    PtxVmV p = ptx_vm__fma(f, ptx_vm__set(0.00015326471f), ptx_vm__set(0.0013390806f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.009618506f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.0555036f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.24022648f));
    p = ptx_vm__fma(f, p, ptx_vm__set(0.6931472f));
    p = ptx_vm__fma(f, p, ptx_vm__set(1.0f));
    p = ptx_vm__add_u32(p, ptx_vm__shift_left(integer, 23));
    /* Below -126 the result is zero, which is what the maximum gives; where x is NaN, it gives x. */
    PtxVmM is_normal = ptx_vm__less(ptx_vm__set(-126.00001f), x);
    return ptx_vm__select(is_normal, p, ptx_vm__max_raw(ptx_vm__set(0.0f), x));
}

/* x P(x^2) / Q(x^2) on |x| < 5.194, then 1: relative error 2^-13.9 [2^-11]. Small x, subnormals included,
 * are their own result. */
PTX_VM__INLINE PtxVmV ptx_vm__tanh_f32(PtxVmV x) {
    const PtxVmV limit = ptx_vm__set(5.1939778f), minus_limit = ptx_vm__set(-5.1939778f), one = ptx_vm__set(1.0f);
    PtxVmV clamped = ptx_vm__max_raw(minus_limit, ptx_vm__min_raw(limit, x)); /* in this order NaN stays NaN */
    PtxVmV x2 = ptx_vm__mul(clamped, clamped);
    PtxVmV p = ptx_vm__fma(x2, ptx_vm__set(0.00065158348f), ptx_vm__set(0.10179524f));
    PtxVmV q = ptx_vm__fma(x2, ptx_vm__set(0.012630122f), ptx_vm__set(0.4347445f));
    p = ptx_vm__fma(x2, p, ptx_vm__set(0.9999354f));
    q = ptx_vm__fma(x2, q, one);
    PtxVmV r = ptx_vm__div(ptx_vm__mul(clamped, p), q);
    PtxVmM small = ptx_vm__less(ptx_vm__and(x, ptx_vm__set_bits(0x7fffffffu)), ptx_vm__set(0.0078125f));
    return ptx_vm__select(small, x, r);
}

PTX_VM__INLINE PtxVmV ptx_vm__copysign_f32(PtxVmV x, PtxVmV y) {
    return ptx_vm__or(ptx_vm__and(x, ptx_vm__set(-0.0f)), ptx_vm__and(y, ptx_vm__set_bits(0x7fffffffu)));
}

PTX_VM__INLINE PtxVmV ptx_vm__setp_lt_f32(PtxVmV x, PtxVmV y) { return ptx_vm__from_mask(ptx_vm__less(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__setp_eq_u32(PtxVmV x, PtxVmV y) { return ptx_vm__from_mask(ptx_vm__equal_u32(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__setp_ne_u32(PtxVmV x, PtxVmV y) {
    return ptx_vm__xor(ptx_vm__from_mask(ptx_vm__equal_u32(x, y)), ptx_vm__set_bits(0xffffffffu));
}
PTX_VM__INLINE PtxVmV ptx_vm__truth(PtxVmV x) { return ptx_vm__setp_ne_u32(x, ptx_vm__set(0.0f)); }
PTX_VM__INLINE PtxVmV ptx_vm__selp_b32(PtxVmV x, PtxVmV y, PtxVmV p) { return ptx_vm__select(ptx_vm__to_mask(p), x, y); }
PTX_VM__INLINE PtxVmV ptx_vm__mad_lo_u32(PtxVmV x, PtxVmV y, PtxVmV z) { return ptx_vm__add_u32(ptx_vm__mul_lo_u32(x, y), z); }

/* ---- integers and bits ------------------------------------------------------------------------------------------- */

/* Written once for all levels in GNU C vectors, as integer results are the same at every level. Shifts by more than 31 are
   undefined in C and are masked first. */
typedef uint32_t PtxVmWords __attribute__((vector_size(4 * PTX_VM__LANES)));
typedef int32_t PtxVmSigned __attribute__((vector_size(4 * PTX_VM__LANES)));

#define PTX_VM__WORDS(v) ((PtxVmWords)(v))
#define PTX_VM__SIGNED(v) ((PtxVmSigned)(v))
#define PTX_VM__UNARY_BITS(name, expression)         \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a) { \
        const PtxVmWords x = PTX_VM__WORDS(a);       \
        return (PtxVmV)(expression);                 \
    }
#define PTX_VM__BINARY_BITS(name, expression)                        \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a, PtxVmV b) {       \
        const PtxVmWords x = PTX_VM__WORDS(a), y = PTX_VM__WORDS(b); \
        return (PtxVmV)(expression);                                 \
    }
#define PTX_VM__TERNARY_BITS(name, expression)                                             \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a, PtxVmV b, PtxVmV c) {                   \
        const PtxVmWords x = PTX_VM__WORDS(a), y = PTX_VM__WORDS(b), z = PTX_VM__WORDS(c); \
        return (PtxVmV)(expression);                                                       \
    }

/* All ones where true. */
#define PTX_VM__TRUE(comparison) ((PtxVmWords)(comparison))

PTX_VM__INLINE PtxVmWords ptx_vm__choose(PtxVmWords mask, PtxVmWords yes, PtxVmWords no) { return (mask & yes) | (~mask & no); }
PTX_VM__INLINE PtxVmWords ptx_vm__least(PtxVmWords x, PtxVmWords y) { return ptx_vm__choose(PTX_VM__TRUE(x < y), x, y); }

/* Zero from 32 on; the signed one the sign. */
PTX_VM__INLINE PtxVmWords ptx_vm__left(PtxVmWords x, PtxVmWords n) { return (x << (n & 31u)) & PTX_VM__TRUE(n < 32u); }
PTX_VM__INLINE PtxVmWords ptx_vm__right(PtxVmWords x, PtxVmWords n) { return (x >> (n & 31u)) & PTX_VM__TRUE(n < 32u); }
PTX_VM__INLINE PtxVmWords ptx_vm__right_signed(PtxVmWords x, PtxVmWords n) {
    const PtxVmWords most = PTX_VM__WORDS(ptx_vm__set_bits(31));
    return (PtxVmWords)(PTX_VM__SIGNED(x) >> PTX_VM__SIGNED(ptx_vm__least(n, most)));
}

PTX_VM__INLINE PtxVmWords ptx_vm__count_ones(PtxVmWords x) {
    x = x - ((x >> 1) & 0x55555555u);
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return (x * 0x01010101u) >> 24;
}

PTX_VM__INLINE PtxVmWords ptx_vm__count_leading_zeros(PtxVmWords x) {
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    return ptx_vm__count_ones(~x);
}

PTX_VM__INLINE PtxVmWords ptx_vm__reverse(PtxVmWords x) {
    x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
    x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
    x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
    x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
    return (x >> 16) | (x << 16);
}

/* Inverts negative numbers, so that the highest set bit is the highest that differs from the sign. */
PTX_VM__INLINE PtxVmWords ptx_vm__magnitude_bits(PtxVmWords x) { return x ^ (PtxVmWords)(PTX_VM__SIGNED(x) >> 31); }

PTX_VM__INLINE PtxVmWords ptx_vm__find(PtxVmWords x) { return 31u - ptx_vm__count_leading_zeros(x); }
PTX_VM__INLINE PtxVmWords ptx_vm__find_shift(PtxVmWords x) { return ptx_vm__count_leading_zeros(x) | PTX_VM__TRUE(x == 0u); }

/* x:y shifted, its upper or lower word; n is at most 32. */
PTX_VM__INLINE PtxVmWords ptx_vm__funnel_left(PtxVmWords low, PtxVmWords high, PtxVmWords n) {
    return ptx_vm__left(high, n) | ptx_vm__right(low, 32u - n);
}
PTX_VM__INLINE PtxVmWords ptx_vm__funnel_right(PtxVmWords low, PtxVmWords high, PtxVmWords n) {
    return ptx_vm__right(low, n) | ptx_vm__left(high, 32u - n);
}
PTX_VM__INLINE PtxVmWords ptx_vm__up_to_32(PtxVmWords n) { return ptx_vm__least(n, PTX_VM__WORDS(ptx_vm__set_bits(32))); }

/* A field of at most 32 bits, moved to the bottom with the bits above it: those are then shifted out. Positions and lengths are
   bytes. What lies beyond bit 31 is the sign, or zero. */
PTX_VM__INLINE PtxVmWords ptx_vm__field_u32(PtxVmWords x, PtxVmWords position, PtxVmWords length) {
    const PtxVmWords rest = 32u - ptx_vm__up_to_32(length & 255u);
    return ptx_vm__right(ptx_vm__left(ptx_vm__right(x, position & 255u), rest), rest);
}
PTX_VM__INLINE PtxVmWords ptx_vm__field_s32(PtxVmWords x, PtxVmWords position, PtxVmWords length) {
    const PtxVmWords rest = 32u - ptx_vm__up_to_32(length & 255u);
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
    PTX_VM__WORDS(ptx_vm__mul_hi_u32(a, b)) - (y & (PtxVmWords)(PTX_VM__SIGNED(x) >> 31)) -
        (x & (PtxVmWords)(PTX_VM__SIGNED(y) >> 31))
)
PTX_VM__TERNARY_BITS(shf_l_wrap_b32, ptx_vm__funnel_left(x, y, z & 31u))
PTX_VM__TERNARY_BITS(shf_l_clamp_b32, ptx_vm__funnel_left(x, y, ptx_vm__up_to_32(z)))
PTX_VM__TERNARY_BITS(shf_r_wrap_b32, ptx_vm__funnel_right(x, y, z & 31u))
PTX_VM__TERNARY_BITS(shf_r_clamp_b32, ptx_vm__funnel_right(x, y, ptx_vm__up_to_32(z)))
PTX_VM__TERNARY_BITS(bfe_u32, ptx_vm__field_u32(x, y, z))
/* Without a length the field is zero, not the sign. */
PTX_VM__TERNARY_BITS(bfe_s32, ptx_vm__field_s32(x, y, z) & PTX_VM__TRUE((z & 255u) != 0u))

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

#define PTX_VM__BLOCK (8 * PTX_VM__LANES)

#define PTX_VM__ARGS                                                                                                         \
    const PtxVmStep *step, char *const *memory, PtxVmV a0, PtxVmV a1, PtxVmV a2, PtxVmV a3, PtxVmV a4, PtxVmV a5, PtxVmV a6, \
        PtxVmV a7

typedef void (*PtxVmBody)(PTX_VM__ARGS);

#define PTX_VM__NEXT ((PtxVmBody)step[1].kernel)(step + 1, memory, a0, a1, a2, a3, a4, a5, a6, a7)

/* Operand `o` of vector `i`, in the accumulator or in memory. */
#define PTX_VM__A(o, i) a##i
#define PTX_VM__M(o, i) ptx_vm__load((const float*)(const void*)memory[step->operands[o]] + (i) * PTX_VM__LANES)

#define PTX_VM__EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define PTX_VM__STORE_ONE(i) ptx_vm__store(result + (i) * PTX_VM__LANES, a##i);
#define PTX_VM__STORE                                    \
    float* result = (float*)(void*)memory[step->result]; \
    PTX_VM__EACH(PTX_VM__STORE_ONE)

#define PTX_VM__KERNEL(name, ...)                      \
    static void ptx_vm__##name(PTX_VM__ARGS) {         \
        __VA_ARGS__                                    \
        PTX_VM__NEXT;                                  \
    }                                                  \
    static void ptx_vm__##name##_store(PTX_VM__ARGS) { \
        __VA_ARGS__                                    \
        PTX_VM__STORE                                  \
        PTX_VM__NEXT;                                  \
    }

#define PTX_VM__ALL1(F, X) \
    a0 = F(X(0, 0));       \
    a1 = F(X(0, 1));       \
    a2 = F(X(0, 2));       \
    a3 = F(X(0, 3));       \
    a4 = F(X(0, 4));       \
    a5 = F(X(0, 5));       \
    a6 = F(X(0, 6));       \
    a7 = F(X(0, 7));
#define PTX_VM__ALL2(F, X, Y) \
    a0 = F(X(0, 0), Y(1, 0)); \
    a1 = F(X(0, 1), Y(1, 1)); \
    a2 = F(X(0, 2), Y(1, 2)); \
    a3 = F(X(0, 3), Y(1, 3)); \
    a4 = F(X(0, 4), Y(1, 4)); \
    a5 = F(X(0, 5), Y(1, 5)); \
    a6 = F(X(0, 6), Y(1, 6)); \
    a7 = F(X(0, 7), Y(1, 7));
#define PTX_VM__ALL3(F, X, Y, Z)       \
    a0 = F(X(0, 0), Y(1, 0), Z(2, 0)); \
    a1 = F(X(0, 1), Y(1, 1), Z(2, 1)); \
    a2 = F(X(0, 2), Y(1, 2), Z(2, 2)); \
    a3 = F(X(0, 3), Y(1, 3), Z(2, 3)); \
    a4 = F(X(0, 4), Y(1, 4), Z(2, 4)); \
    a5 = F(X(0, 5), Y(1, 5), Z(2, 5)); \
    a6 = F(X(0, 6), Y(1, 6), Z(2, 6)); \
    a7 = F(X(0, 7), Y(1, 7), Z(2, 7));

/* Minimum and maximum. x86's instruction returns its second operand for a NaN and for two zeros. Only then do the two operand
 * orders give different bits. That is rare, and is tested for two vectors at a time. */
#ifdef PTX_VM__AVX512
#define PTX_VM__ALL_EXTREME(RAW, F, X, Y) PTX_VM__ALL2(F, X, Y)
#else
#define PTX_VM__ALL_EXTREME(RAW, F, X, Y)                                                                                   \
    PTX_VM__TWO_EXTREME(RAW, F, X, Y, 0, 1)                                                                                 \
    PTX_VM__TWO_EXTREME(RAW, F, X, Y, 2, 3) PTX_VM__TWO_EXTREME(RAW, F, X, Y, 4, 5) PTX_VM__TWO_EXTREME(RAW, F, X, Y, 6, 7)
#define PTX_VM__TWO_EXTREME(RAW, F, X, Y, i, j)                                                                    \
    {                                                                                                              \
        PtxVmV ri = RAW(X(0, i), Y(1, i)), rj = RAW(X(0, j), Y(1, j));                                             \
        PtxVmV doubt_i = ptx_vm__xor(ri, RAW(Y(1, i), X(0, i))), doubt_j = ptx_vm__xor(rj, RAW(Y(1, j), X(0, j))); \
        if (__builtin_expect(ptx_vm__any_bit(ptx_vm__or(doubt_i, doubt_j)), 0)) {                                  \
            ri = F(X(0, i), Y(1, i));                                                                              \
            rj = F(X(0, j), Y(1, j));                                                                              \
        }                                                                                                          \
        a##i = ri;                                                                                                 \
        a##j = rj;                                                                                                 \
    }
#endif

#define PTX_VM__DEFINE_UNARY(name, F)                        \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL1(F, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL1(F, PTX_VM__A))
#define PTX_VM__DEFINE_COMMUTATIVE(name, F)                             \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL2(F, PTX_VM__M, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL2(F, PTX_VM__A, PTX_VM__M)) \
    PTX_VM__KERNEL(name##_both, PTX_VM__ALL2(F, PTX_VM__A, PTX_VM__A))
#define PTX_VM__DEFINE_EXTREME(name, RAW)                                                        \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL_EXTREME(RAW, ptx_vm__##name, PTX_VM__M, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL_EXTREME(RAW, ptx_vm__##name, PTX_VM__A, PTX_VM__M))
#define PTX_VM__DEFINE_BINARY(name, F)                                   \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL2(F, PTX_VM__M, PTX_VM__M))   \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL2(F, PTX_VM__A, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_second, PTX_VM__ALL2(F, PTX_VM__M, PTX_VM__A))
#define PTX_VM__DEFINE_MULTIPLY_ADD(name, F)                                       \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL3(F, PTX_VM__M, PTX_VM__M, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL3(F, PTX_VM__A, PTX_VM__M, PTX_VM__M)) \
    PTX_VM__KERNEL(name##_third, PTX_VM__ALL3(F, PTX_VM__M, PTX_VM__M, PTX_VM__A)) \
    PTX_VM__KERNEL(name##_both, PTX_VM__ALL3(F, PTX_VM__A, PTX_VM__A, PTX_VM__M))
#define PTX_VM__DEFINE_SELECT(name, F)                                              \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL3(F, PTX_VM__M, PTX_VM__M, PTX_VM__M))   \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL3(F, PTX_VM__A, PTX_VM__M, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_second, PTX_VM__ALL3(F, PTX_VM__M, PTX_VM__A, PTX_VM__M)) \
    PTX_VM__KERNEL(name##_third, PTX_VM__ALL3(F, PTX_VM__M, PTX_VM__M, PTX_VM__A))

/* A request: F of the value goes to memory; the accumulator is unchanged. */
#define PTX_VM__DEFINE_OUTPUT(name, F)                                                                            \
    static void ptx_vm__##name##_none_store(PTX_VM__ARGS) {                                                       \
        float* result = (float*)(void*)memory[step->result];                                                      \
        const float* x = (const float*)(const void*)memory[step->operands[0]];                                    \
        for (int i = 0; i < PTX_VM__BLOCK; i += PTX_VM__LANES) ptx_vm__store(result + i, F(ptx_vm__load(x + i))); \
        PTX_VM__NEXT;                                                                                             \
    }                                                                                                             \
    static void ptx_vm__##name##_first_store(PTX_VM__ARGS) {                                                      \
        float* result = (float*)(void*)memory[step->result];                                                      \
        PTX_VM__EACH(PTX_VM__OUTPUT_##name)                                                                       \
        PTX_VM__NEXT;                                                                                             \
    }
#define PTX_VM__OUTPUT_ONE(F, i) ptx_vm__store(result + (i) * PTX_VM__LANES, F(a##i));
#define PTX_VM__OUTPUT_output_bits(i) PTX_VM__OUTPUT_ONE(ptx_vm__same, i)
#define PTX_VM__OUTPUT_output_f32(i) PTX_VM__OUTPUT_ONE(ptx_vm__fix_nan_f32, i)
#define PTX_VM__OUTPUT_output_truth(i) PTX_VM__OUTPUT_ONE(ptx_vm__zero_or_one, i)

PTX_VM__INLINE PtxVmV ptx_vm__same(PtxVmV x) { return x; }
PTX_VM__INLINE PtxVmV ptx_vm__zero_or_one(PtxVmV x) { return ptx_vm__and(x, ptx_vm__set_bits(1)); }

/* ---- sums ---------------------------------------------------------------------------------------------------------*/

/* Adds one block. Point j of a block goes to lane j % 8, whatever the level; lanes meet only in ptx_vm.h. Products of
 * two floats are exact in double, so that they may be fused with the addition or not. Points that are left out add zeros,
 * which change no sum: `is_finite` is a faster path to the same bits. */
PTX_VM__INLINE void ptx_vm__add_points(PtxVmLaneSums* lanes, const float* y, const float* t, int is_finite) {
    const PtxVmD largest = ptx_vm__d_set(1.7976931348623157e308);
    for (uint32_t lane = 0; lane < PTX_VM__SUM_LANES; lane += PTX_VM__LANES_F64) {
        PtxVmD sums[PTX_VM__NUM_SUMS];
        PtxVmD max_error = ptx_vm__d_load(lanes->max_abs_error + lane), num_finite = ptx_vm__d_load(lanes->num_finite + lane);
        for (uint32_t k = 0; k < PTX_VM__NUM_SUMS; k++) sums[k] = ptx_vm__d_load(lanes->sums[k] + lane);
        for (uint32_t i = lane; i < PTX_VM__BLOCK; i += PTX_VM__SUM_LANES) {
            PtxVmD yi = ptx_vm__d_from_f32(y + i), ti = ptx_vm__d_from_f32(t + i);
            PtxVmD error = ptx_vm__d_sub(yi, ti);
            if (!is_finite) {
                /* The difference of two finite floats is finite in double; any other is infinite or NaN. */
                PtxVmD keep = ptx_vm__d_at_most(ptx_vm__d_abs(error), largest);
                yi = ptx_vm__d_and(yi, keep);
                ti = ptx_vm__d_and(ti, keep);
                error = ptx_vm__d_and(error, keep);
                num_finite = ptx_vm__d_add(num_finite, ptx_vm__d_and(ptx_vm__d_set(1.0), keep));
            }
            sums[PTX_VM__SUM_Y] = ptx_vm__d_add(sums[PTX_VM__SUM_Y], yi);
            sums[PTX_VM__SUM_T] = ptx_vm__d_add(sums[PTX_VM__SUM_T], ti);
            sums[PTX_VM__SUM_YY] = ptx_vm__d_add_product(sums[PTX_VM__SUM_YY], yi, yi);
            sums[PTX_VM__SUM_TT] = ptx_vm__d_add_product(sums[PTX_VM__SUM_TT], ti, ti);
            sums[PTX_VM__SUM_YT] = ptx_vm__d_add_product(sums[PTX_VM__SUM_YT], yi, ti);
            sums[PTX_VM__SUM_EE] = ptx_vm__d_add(sums[PTX_VM__SUM_EE], ptx_vm__d_mul(error, error));
            max_error = ptx_vm__d_max(max_error, ptx_vm__d_abs(error));
        }
        if (is_finite) num_finite = ptx_vm__d_add(num_finite, ptx_vm__d_set((double)(PTX_VM__BLOCK / PTX_VM__SUM_LANES)));
        ptx_vm__d_store(lanes->max_abs_error + lane, max_error);
        ptx_vm__d_store(lanes->num_finite + lane, num_finite);
        for (uint32_t k = 0; k < PTX_VM__NUM_SUMS; k++) ptx_vm__d_store(lanes->sums[k] + lane, sums[k]);
    }
}

static void ptx_vm__add_block(PtxVmLaneSums* lanes, const float* y, const float* t) {
    /* Zero times a non-finite number is NaN, otherwise zero. A difference that is finite only in double takes the slow path. */
    const PtxVmV zero = ptx_vm__set(0.0f);
    PtxVmV bits = zero;
    for (uint32_t i = 0; i < PTX_VM__BLOCK; i += PTX_VM__LANES) {
        bits = ptx_vm__or(bits, ptx_vm__mul(ptx_vm__sub(ptx_vm__load(y + i), ptx_vm__load(t + i)), zero));
    }
    if (ptx_vm__any_bit(ptx_vm__and(bits, ptx_vm__set_bits(0x7fffffffu)))) {
        ptx_vm__add_points(lanes, y, t, 0);
    } else {
        ptx_vm__add_points(lanes, y, t, 1);
    }
}

/* operands: the value, its target. result: the sums. In the last block both are padded, and zeros change no sum. */
static void ptx_vm__sum_f32(const PtxVmStep* step, char* const* memory, const float* y) {
    PtxVmLaneSums* sums = (PtxVmLaneSums*)(void*)memory[step->result];
    const float* t = (const float*)(const void*)memory[step->operands[1]];
    if (sums->num_valid < PTX_VM__BLOCK) {
        float padded[PTX_VM__BLOCK];
        for (uint32_t i = 0; i < PTX_VM__BLOCK; i++) padded[i] = i < sums->num_valid ? y[i] : 0.0f;
        ptx_vm__add_block(sums, padded, t);
    } else {
        ptx_vm__add_block(sums, y, t);
    }
}
static void ptx_vm__sum_f32_none_store(PTX_VM__ARGS) {
    ptx_vm__sum_f32(step, memory, (const float*)(const void*)memory[step->operands[0]]);
    PTX_VM__NEXT;
}
static void ptx_vm__sum_f32_first_store(PTX_VM__ARGS) {
    float result[PTX_VM__BLOCK];
    PTX_VM__EACH(PTX_VM__STORE_ONE)
    ptx_vm__sum_f32(step, memory, result);
    PTX_VM__NEXT;
}

#include "ptx_vm_gram_kernel.h"

/* ---- tables ------------------------------------------------------------------------------------------------------ */

#define PTX_VM__DEFINE_SUM(name, F)
#define PTX_VM__DEFINE(enumerator, name, kind, nan, F) PTX_VM__DEFINE_##kind(name, F)
PTX_VM__OPERATIONS(PTX_VM__DEFINE)

static void ptx_vm__end(PTX_VM__ARGS) {
    (void)step;
    (void)memory;
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
    (void)a4;
    (void)a5;
    (void)a6;
    (void)a7;
}

static void ptx_vm__enter(const PtxVmStep* first, char* const* memory) {
    const PtxVmV zero = ptx_vm__set(0.0f);
    ((PtxVmBody)first->kernel)(first, memory, zero, zero, zero, zero, zero, zero, zero, zero);
}

/* The forms of PtxVmForm in order, each without and with the store. */
#define PTX_VM__PAIR(name) {(PtxVmKernel)ptx_vm__##name, (PtxVmKernel)ptx_vm__##name##_store}
#define PTX_VM__STORE_ONLY(name) {NULL, (PtxVmKernel)ptx_vm__##name##_store}
#define PTX_VM__ABSENT {NULL, NULL}
#define PTX_VM__ROW_UNARY(name)                                                                             \
    {PTX_VM__PAIR(name##_none), PTX_VM__PAIR(name##_first), PTX_VM__ABSENT, PTX_VM__ABSENT, PTX_VM__ABSENT}
#define PTX_VM__ROW_COMMUTATIVE(name)                                                                                  \
    {PTX_VM__PAIR(name##_none), PTX_VM__PAIR(name##_first), PTX_VM__ABSENT, PTX_VM__ABSENT, PTX_VM__PAIR(name##_both)}
#define PTX_VM__ROW_EXTREME(name) PTX_VM__ROW_UNARY(name)
#define PTX_VM__ROW_BINARY(name)                                                                                         \
    {PTX_VM__PAIR(name##_none), PTX_VM__PAIR(name##_first), PTX_VM__PAIR(name##_second), PTX_VM__ABSENT, PTX_VM__ABSENT}
#define PTX_VM__ROW_MULTIPLY_ADD(name) \
    {PTX_VM__PAIR(name##_none), PTX_VM__PAIR(name##_first), PTX_VM__ABSENT, PTX_VM__PAIR(name##_third), PTX_VM__PAIR(name##_both)}
#define PTX_VM__ROW_SELECT(name)  \
    {PTX_VM__PAIR(name##_none),   \
     PTX_VM__PAIR(name##_first),  \
     PTX_VM__PAIR(name##_second), \
     PTX_VM__PAIR(name##_third),  \
     PTX_VM__ABSENT}
#define PTX_VM__ROW_OUTPUT(name)                                                                                        \
    {PTX_VM__STORE_ONLY(name##_none), PTX_VM__STORE_ONLY(name##_first), PTX_VM__ABSENT, PTX_VM__ABSENT, PTX_VM__ABSENT}
#define PTX_VM__ROW_SUM(name) PTX_VM__ROW_OUTPUT(name)
#define PTX_VM__ROW(enumerator, name, kind, nan, F) PTX_VM__ROW_##kind(name),

const PtxVmKernels* PTX_VM_KERNELS(void) {
    static const PtxVmKernels kernels = {
        PTX_VM__BLOCK,
        ptx_vm__enter,
        (PtxVmKernel)ptx_vm__end,
        {PTX_VM__OPERATIONS(PTX_VM__ROW)},
        ptx_vm__gram,
    };
    return &kernels;
}

#endif /* PTX_VM_KERNELS_H_INCLUDED */
