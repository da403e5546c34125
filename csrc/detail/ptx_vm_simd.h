/*
 * ptx_vm_simd.h - the vector layer under ptx_vm_functions.h: one set of primitives, four instruction sets.
 *
 * Private to ptx_vm_functions.h. The compiler's flags choose the layer:
 *
 *   AVX-512  -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma   16 lanes
 *   AVX2     -mavx2 -mfma                                        8 lanes
 *   SSE2     x86-64 otherwise, or -msse2                         4 lanes
 *   portable everything else, or PTX_VM_PORTABLE defined         4 lanes, GNU C vectors, and NEON where those lack an operation
 *
 * PtxVmV is a vector of 32-bit lanes, typed float for the compiler; each function reads them as floats, integers or truth
 * values (all bits set or none). PtxVmM is the result of a comparison.
 *
 * The three x86 layers give the same bits, except for NaNs: which NaN an operation returns is unspecified. Subnormals are
 * flushed by the CPU mode that ptx_vm_mode.h sets, not here.
 */
#ifndef PTX_VM_SIMD_H_INCLUDED
#define PTX_VM_SIMD_H_INCLUDED

#include <stdint.h>
#include <string.h>

/* The lowest of several levels is for old machines: what matters there is the time that it takes to compile. */
#if defined(PTX_VM_X86_LEVELS) && !defined(__AVX2__)
#define PTX_VM__INLINE static inline __attribute__((unused))
#else
#define PTX_VM__INLINE static inline __attribute__((always_inline, unused))
#endif

/* Operand of an asm statement: a vector that it may change. */
#if defined(__SSE2__)
#define PTX_VM__REGISTER(v) "+x"(v)
#else
#define PTX_VM__REGISTER(v) "+w"(v)
#endif

#if defined(PTX_VM_PORTABLE)
#define PTX_VM__LANES 4
#elif defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#define PTX_VM__AVX512 1
#define PTX_VM__LANES 16
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define PTX_VM__AVX2 1
#define PTX_VM__LANES 8
#elif defined(__SSE2__)
#include <emmintrin.h>
#define PTX_VM__SSE2 1
#define PTX_VM__LANES 4
#else
#define PTX_VM__LANES 4
#if defined(__aarch64__)
#include <arm_neon.h>
#endif
#endif

/* ---- every layer: what GNU C vectors can do ---------------------------------------------------------------------- */

#define PTX_VM__LANES_F64 (PTX_VM__LANES / 2)
typedef float PtxVmV __attribute__((vector_size(4 * PTX_VM__LANES)));
typedef uint32_t PtxVmU __attribute__((vector_size(4 * PTX_VM__LANES)));
typedef int32_t PtxVmS __attribute__((vector_size(4 * PTX_VM__LANES)));
typedef double PtxVmD __attribute__((vector_size(4 * PTX_VM__LANES)));
typedef uint64_t PtxVmQ __attribute__((vector_size(4 * PTX_VM__LANES)));

PTX_VM__INLINE PtxVmV ptx_vm__load(const float* p) {
    PtxVmV v;
    memcpy(&v, p, sizeof v);
    return v;
}
PTX_VM__INLINE void ptx_vm__store(float* p, PtxVmV v) { memcpy(p, &v, sizeof v); }
PTX_VM__INLINE PtxVmV ptx_vm__set(float f) {
    const PtxVmV zero = {0};
    return f - zero;
}
PTX_VM__INLINE PtxVmV ptx_vm__set_bits(uint32_t u) {
    const PtxVmU zero = {0};
    return (PtxVmV)(u - zero);
}

PTX_VM__INLINE PtxVmV ptx_vm__add_f32(PtxVmV a, PtxVmV b) { return a + b; }
PTX_VM__INLINE PtxVmV ptx_vm__sub_f32(PtxVmV a, PtxVmV b) { return a - b; }
PTX_VM__INLINE PtxVmV ptx_vm__mul_f32(PtxVmV a, PtxVmV b) { return a * b; }
PTX_VM__INLINE PtxVmV ptx_vm__div(PtxVmV a, PtxVmV b) { return a / b; }
PTX_VM__INLINE PtxVmV ptx_vm__and_b32(PtxVmV a, PtxVmV b) { return (PtxVmV)((PtxVmU)a & (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__or_b32(PtxVmV a, PtxVmV b) { return (PtxVmV)((PtxVmU)a | (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__xor_b32(PtxVmV a, PtxVmV b) { return (PtxVmV)((PtxVmU)a ^ (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__add_u32(PtxVmV a, PtxVmV b) { return (PtxVmV)((PtxVmU)a + (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__sub_u32(PtxVmV a, PtxVmV b) { return (PtxVmV)((PtxVmU)a - (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__mul_lo_u32(PtxVmV a, PtxVmV b) { return (PtxVmV)((PtxVmU)a * (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__shift_left(PtxVmV a, unsigned n) { return (PtxVmV)((PtxVmU)a << n); }
PTX_VM__INLINE PtxVmV ptx_vm__shift_right_signed(PtxVmV a, unsigned n) { return (PtxVmV)((PtxVmS)a >> (int)n); }
PTX_VM__INLINE PtxVmV ptx_vm__f32_from_s32(PtxVmV a) { return __builtin_convertvector((PtxVmS)a, PtxVmV); }

PTX_VM__INLINE PtxVmD ptx_vm__d_load(const double* p) {
    PtxVmD v;
    memcpy(&v, p, sizeof v);
    return v;
}
PTX_VM__INLINE void ptx_vm__d_store(double* p, PtxVmD v) { memcpy(p, &v, sizeof v); }
PTX_VM__INLINE PtxVmD ptx_vm__d_set(double d) {
    const PtxVmD zero = {0};
    return d - zero;
}
PTX_VM__INLINE PtxVmD ptx_vm__d_add(PtxVmD a, PtxVmD b) { return a + b; }
PTX_VM__INLINE PtxVmD ptx_vm__d_sub(PtxVmD a, PtxVmD b) { return a - b; }
PTX_VM__INLINE PtxVmD ptx_vm__d_mul(PtxVmD a, PtxVmD b) { return a * b; }
PTX_VM__INLINE PtxVmD ptx_vm__d_and(PtxVmD a, PtxVmD b) { return (PtxVmD)((PtxVmQ)a & (PtxVmQ)b); }
PTX_VM__INLINE PtxVmD ptx_vm__d_abs(PtxVmD a) { return (PtxVmD)((PtxVmQ)a & (UINT64_MAX >> 1)); }
PTX_VM__INLINE PtxVmD ptx_vm__d_at_most(PtxVmD a, PtxVmD b) { return (PtxVmD)(a <= b); }

/* ---- one layer each: what is faster, or only there, as the processor's instructions ------------------------------- */

#ifdef PTX_VM__AVX512
typedef __mmask16 PtxVmM;
#define PTX_VM__I(v) _mm512_castps_si512(v)
#define PTX_VM__F(v) _mm512_castsi512_ps(v)

PTX_VM__INLINE PtxVmV ptx_vm__sqrt_f32(PtxVmV a) { return _mm512_sqrt_ps(a); }
PTX_VM__INLINE PtxVmV ptx_vm__fma_f32(PtxVmV a, PtxVmV b, PtxVmV c) { return _mm512_fmadd_ps(a, b, c); }
PTX_VM__INLINE PtxVmV ptx_vm__min_raw_f32(PtxVmV a, PtxVmV b) { return _mm512_min_ps(a, b); }
PTX_VM__INLINE PtxVmV ptx_vm__max_raw_f32(PtxVmV a, PtxVmV b) { return _mm512_max_ps(a, b); }
PTX_VM__INLINE PtxVmV ptx_vm__round(PtxVmV a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
PTX_VM__INLINE PtxVmV ptx_vm__toward_zero(PtxVmV product, PtxVmV a, PtxVmV b) {
    (void)product;
    return _mm512_mul_round_ps(a, b, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

PTX_VM__INLINE PtxVmV ptx_vm__mul_hi_u32(PtxVmV a, PtxVmV b) {
    __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(PTX_VM__I(a), PTX_VM__I(b)), 32);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(PTX_VM__I(a), 32), _mm512_srli_epi64(PTX_VM__I(b), 32));
    return PTX_VM__F(_mm512_mask_blend_epi32((__mmask16)0xaaaa, even, odd));
}
PTX_VM__INLINE PtxVmV ptx_vm__f32_from_u32(PtxVmV a) { return _mm512_cvtepu32_ps(PTX_VM__I(a)); }

PTX_VM__INLINE PtxVmM ptx_vm__less(PtxVmV a, PtxVmV b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
PTX_VM__INLINE PtxVmM ptx_vm__equal(PtxVmV a, PtxVmV b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
PTX_VM__INLINE PtxVmM ptx_vm__is_nan(PtxVmV a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
PTX_VM__INLINE PtxVmM ptx_vm__equal_u32(PtxVmV a, PtxVmV b) { return _mm512_cmpeq_epi32_mask(PTX_VM__I(a), PTX_VM__I(b)); }
PTX_VM__INLINE PtxVmV ptx_vm__select(PtxVmM m, PtxVmV yes, PtxVmV no) { return _mm512_mask_blend_ps(m, no, yes); }
PTX_VM__INLINE PtxVmV ptx_vm__from_mask(PtxVmM m) { return PTX_VM__F(_mm512_movm_epi32(m)); }
PTX_VM__INLINE PtxVmM ptx_vm__to_mask(PtxVmV v) { return _mm512_movepi32_mask(PTX_VM__I(v)); }

PTX_VM__INLINE int ptx_vm__any_bit(PtxVmV v) { return _mm512_test_epi32_mask(PTX_VM__I(v), PTX_VM__I(v)) != 0; }

/* PTX's minimum and maximum of quiet values: a number beats a NaN, -0 is less than +0. */
PTX_VM__INLINE PtxVmV ptx_vm__min_f32(PtxVmV a, PtxVmV b) { return _mm512_range_ps(a, b, 4); }
PTX_VM__INLINE PtxVmV ptx_vm__max_f32(PtxVmV a, PtxVmV b) { return _mm512_range_ps(a, b, 5); }

PTX_VM__INLINE PtxVmD ptx_vm__d_from_f32(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
PTX_VM__INLINE PtxVmD ptx_vm__d_max(PtxVmD a, PtxVmD b) { return _mm512_max_pd(a, b); }
PTX_VM__INLINE PtxVmD ptx_vm__d_add_product(PtxVmD a, PtxVmD b, PtxVmD c) { return _mm512_fmadd_pd(b, c, a); }
PTX_VM__INLINE int ptx_vm__d_any_bit(PtxVmD a) {
    return _mm512_test_epi64_mask(_mm512_castpd_si512(a), _mm512_castpd_si512(a)) != 0;
}

#else
/* ---- the other layers: truth values as vectors -------------------------------------------------------------------- */

typedef PtxVmV PtxVmM;

PTX_VM__INLINE PtxVmM ptx_vm__less(PtxVmV a, PtxVmV b) { return (PtxVmM)(a < b); }
PTX_VM__INLINE PtxVmM ptx_vm__equal(PtxVmV a, PtxVmV b) { return (PtxVmM)(a == b); }
PTX_VM__INLINE PtxVmM ptx_vm__is_nan(PtxVmV a) { return (PtxVmM)(a != a); }
PTX_VM__INLINE PtxVmM ptx_vm__equal_u32(PtxVmV a, PtxVmV b) { return (PtxVmM)((PtxVmU)a == (PtxVmU)b); }
PTX_VM__INLINE PtxVmV ptx_vm__from_mask(PtxVmM m) { return m; }
PTX_VM__INLINE PtxVmM ptx_vm__to_mask(PtxVmV v) { return v; }
PTX_VM__INLINE PtxVmV ptx_vm__f32_from_u32(PtxVmV a) {
    /* Both halves and the product are exact in f32, so the one rounding is that of the addition. */
    const PtxVmV high = __builtin_convertvector((PtxVmS)((PtxVmU)a >> 16), PtxVmV);
    const PtxVmV low = __builtin_convertvector((PtxVmS)((PtxVmU)a & 0xffffu), PtxVmV);
    return high * 65536.0f + low;
}

#ifdef PTX_VM__AVX2
#define PTX_VM__I(v) _mm256_castps_si256(v)
#define PTX_VM__F(v) _mm256_castsi256_ps(v)

PTX_VM__INLINE PtxVmV ptx_vm__sqrt_f32(PtxVmV a) { return _mm256_sqrt_ps(a); }
PTX_VM__INLINE PtxVmV ptx_vm__fma_f32(PtxVmV a, PtxVmV b, PtxVmV c) { return _mm256_fmadd_ps(a, b, c); }
PTX_VM__INLINE PtxVmV ptx_vm__min_raw_f32(PtxVmV a, PtxVmV b) { return _mm256_min_ps(a, b); }
PTX_VM__INLINE PtxVmV ptx_vm__max_raw_f32(PtxVmV a, PtxVmV b) { return _mm256_max_ps(a, b); }
PTX_VM__INLINE PtxVmV ptx_vm__round(PtxVmV a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

PTX_VM__INLINE PtxVmV ptx_vm__mul_hi_u32(PtxVmV a, PtxVmV b) {
    __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(PTX_VM__I(a), PTX_VM__I(b)), 32);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(PTX_VM__I(a), 32), _mm256_srli_epi64(PTX_VM__I(b), 32));
    return PTX_VM__F(_mm256_blend_epi32(even, odd, 0xaa));
}

PTX_VM__INLINE PtxVmV ptx_vm__select(PtxVmM m, PtxVmV yes, PtxVmV no) { return _mm256_blendv_ps(no, yes, m); }
PTX_VM__INLINE int ptx_vm__any_bit(PtxVmV v) { return !_mm256_testz_si256(PTX_VM__I(v), PTX_VM__I(v)); }

PTX_VM__INLINE PtxVmD ptx_vm__d_from_f32(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
PTX_VM__INLINE PtxVmD ptx_vm__d_max(PtxVmD a, PtxVmD b) { return _mm256_max_pd(a, b); }
PTX_VM__INLINE PtxVmD ptx_vm__d_add_product(PtxVmD a, PtxVmD b, PtxVmD c) { return _mm256_fmadd_pd(b, c, a); }
PTX_VM__INLINE int ptx_vm__d_any_bit(PtxVmD a) { return !_mm256_testz_si256(_mm256_castpd_si256(a), _mm256_castpd_si256(a)); }

#else
PTX_VM__INLINE PtxVmV ptx_vm__select(PtxVmM m, PtxVmV yes, PtxVmV no) {
    return (PtxVmV)(((PtxVmU)m & (PtxVmU)yes) | (~(PtxVmU)m & (PtxVmU)no));
}
PTX_VM__INLINE PtxVmV ptx_vm__round(PtxVmV a) {
    /* Past 2^23 every float is an integer; below, adding 2^23 rounds to one. The sign of a zero result is kept. */
    const PtxVmV sign_bit = ptx_vm__set(-0.0f), limit = ptx_vm__set(8388608.0f);
    PtxVmV magnitude = (PtxVmV)((PtxVmU)a & ~(PtxVmU)sign_bit);
    PtxVmV rounded = ptx_vm__or_b32((magnitude + limit) - limit, ptx_vm__and_b32(sign_bit, a));
    return ptx_vm__select(ptx_vm__less(magnitude, limit), rounded, a);
}

#ifdef PTX_VM__SSE2
#define PTX_VM__I(v) _mm_castps_si128(v)
#define PTX_VM__F(v) _mm_castsi128_ps(v)

PTX_VM__INLINE PtxVmV ptx_vm__sqrt_f32(PtxVmV a) { return _mm_sqrt_ps(a); }
PTX_VM__INLINE PtxVmV ptx_vm__min_raw_f32(PtxVmV a, PtxVmV b) { return _mm_min_ps(a, b); }
PTX_VM__INLINE PtxVmV ptx_vm__max_raw_f32(PtxVmV a, PtxVmV b) { return _mm_max_ps(a, b); }

PTX_VM__INLINE PtxVmV ptx_vm__mul_hi_u32(PtxVmV a, PtxVmV b) {
    __m128i even = _mm_mul_epu32(PTX_VM__I(a), PTX_VM__I(b));
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(PTX_VM__I(a), 32), _mm_srli_epi64(PTX_VM__I(b), 32));
    return PTX_VM__F(_mm_unpacklo_epi32(_mm_shuffle_epi32(even, 0x0d), _mm_shuffle_epi32(odd, 0x0d)));
}

PTX_VM__INLINE int ptx_vm__any_bit(PtxVmV v) {
    return _mm_movemask_epi8(_mm_cmpeq_epi8(PTX_VM__I(v), _mm_setzero_si128())) != 0xffff;
}

/* Two lanes of a * b + c in double. The product of two floats is exact there; the sum is rounded to odd, by the exact error
 * of the addition (Knuth's two-sum). Rounding such a sum to float gives what rounding the exact one would (Boldo and
 * Melquiond 2008: 53 >= 24 + 2 bits). */
static __attribute__((noinline, unused)) __m128d ptx_vm__fma_to_odd(__m128d product, __m128d c) {
    const __m128d zero = _mm_setzero_pd();
    __m128d sum = _mm_add_pd(product, c);
    __m128d part = _mm_sub_pd(sum, product);
    __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, part)), _mm_sub_pd(c, part));
    /* Lanes with an error and an even last bit move one step towards the error. NaN errors (of infinities) compare false. */
    __m128i inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero)));
    __m128i bits = _mm_castpd_si128(sum);
    __m128i even = _mm_andnot_si128(bits, _mm_set_epi32(0, 1, 0, 1));
    __m128i away = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(error)), 63); /* 1: the error shortens the sum */
    __m128i step = _mm_sub_epi64(_mm_set_epi32(0, 1, 0, 1), _mm_add_epi64(away, away));
    __m128i take = _mm_and_si128(inexact, _mm_sub_epi64(_mm_setzero_si128(), even));
    return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(take, step)));
}

/* Rounding the sum twice, to double and then to float, goes wrong only if the first result lies halfway between two
 * floats: its low 29 bits are a one and zeros. That is rare enough for a branch. */
PTX_VM__INLINE PtxVmV ptx_vm__fma_f32(PtxVmV a, PtxVmV b, PtxVmV c) {
    const __m128i low_bits = _mm_set_epi32(0, 0x1fffffff, 0, 0x1fffffff), halfway = _mm_set_epi32(1, 0x10000000, 1, 0x10000000);
    __m128d product0 = _mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), c0 = _mm_cvtps_pd(c);
    __m128d product1 = _mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)));
    __m128d c1 = _mm_cvtps_pd(_mm_movehl_ps(c, c));
    __m128d sum0 = _mm_add_pd(product0, c0), sum1 = _mm_add_pd(product1, c1);
    __m128i doubtful = _mm_or_si128(
        _mm_cmpeq_epi32(_mm_and_si128(_mm_castpd_si128(sum0), low_bits), halfway),
        _mm_cmpeq_epi32(_mm_and_si128(_mm_castpd_si128(sum1), low_bits), halfway)
    );
    if (__builtin_expect(_mm_movemask_epi8(doubtful) != 0, 0)) {
        sum0 = ptx_vm__fma_to_odd(product0, c0);
        sum1 = ptx_vm__fma_to_odd(product1, c1);
    }
    return _mm_movelh_ps(_mm_cvtpd_ps(sum0), _mm_cvtpd_ps(sum1));
}
PTX_VM__INLINE PtxVmD ptx_vm__d_from_f32(const float* p) {
    return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i*)(const void*)p)));
}
PTX_VM__INLINE PtxVmD ptx_vm__d_max(PtxVmD a, PtxVmD b) { return _mm_max_pd(a, b); }
PTX_VM__INLINE PtxVmD ptx_vm__d_add_product(PtxVmD a, PtxVmD b, PtxVmD c) { return _mm_add_pd(a, _mm_mul_pd(b, c)); }
PTX_VM__INLINE int ptx_vm__d_any_bit(PtxVmD a) {
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_castpd_si128(a), _mm_setzero_si128())) != 0xffff;
}

#else
#if defined(__aarch64__)
PTX_VM__INLINE PtxVmV ptx_vm__sqrt_f32(PtxVmV a) { return (PtxVmV)vsqrtq_f32((float32x4_t)a); }
PTX_VM__INLINE PtxVmV ptx_vm__fma_f32(PtxVmV a, PtxVmV b, PtxVmV c) {
    return (PtxVmV)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#else
PTX_VM__INLINE PtxVmV ptx_vm__sqrt_f32(PtxVmV a) {
    PtxVmV v = {__builtin_sqrtf(a[0]), __builtin_sqrtf(a[1]), __builtin_sqrtf(a[2]), __builtin_sqrtf(a[3])};
    return v;
}
PTX_VM__INLINE PtxVmV ptx_vm__fma_f32(PtxVmV a, PtxVmV b, PtxVmV c) {
    PtxVmV v = {
        __builtin_fmaf(a[0], b[0], c[0]), __builtin_fmaf(a[1], b[1], c[1]), __builtin_fmaf(a[2], b[2], c[2]),
        __builtin_fmaf(a[3], b[3], c[3])
    };
    return v;
}

#endif
PTX_VM__INLINE PtxVmV ptx_vm__mul_hi_u32(PtxVmV a, PtxVmV b) {
    PtxVmU x = (PtxVmU)a, y = (PtxVmU)b, z;
    for (int i = 0; i < 4; i++) z[i] = (uint32_t)(((uint64_t)x[i] * y[i]) >> 32);
    return (PtxVmV)z;
}

PTX_VM__INLINE int ptx_vm__any_bit(PtxVmV v) {
    PtxVmU u = (PtxVmU)v;
    return (u[0] | u[1] | u[2] | u[3]) != 0;
}
PTX_VM__INLINE PtxVmV ptx_vm__min_raw_f32(PtxVmV a, PtxVmV b) { return ptx_vm__select(ptx_vm__less(a, b), a, b); }
PTX_VM__INLINE PtxVmV ptx_vm__max_raw_f32(PtxVmV a, PtxVmV b) { return ptx_vm__select(ptx_vm__less(b, a), a, b); }
PTX_VM__INLINE PtxVmD ptx_vm__d_from_f32(const float* p) {
    PtxVmD v = {(double)p[0], (double)p[1]};
    return v;
}
PTX_VM__INLINE PtxVmD ptx_vm__d_max(PtxVmD a, PtxVmD b) {
    PtxVmQ m = (PtxVmQ)(a > b);
    return (PtxVmD)(((PtxVmQ)a & m) | ((PtxVmQ)b & ~m));
}
PTX_VM__INLINE PtxVmD ptx_vm__d_add_product(PtxVmD a, PtxVmD b, PtxVmD c) { return a + b * c; }
PTX_VM__INLINE int ptx_vm__d_any_bit(PtxVmD a) { return (((PtxVmQ)a)[0] | ((PtxVmQ)a)[1]) != 0; }
#endif
#endif

/* PTX's minimum and maximum of quiet values: a number beats a NaN, -0 is less than +0. The x86 instruction returns its
 * second operand for a NaN and for two zeros, so the two orders differ exactly when it needs care. */
PTX_VM__INLINE PtxVmV ptx_vm__min_f32(PtxVmV a, PtxVmV b) {
    PtxVmV r = ptx_vm__or_b32(ptx_vm__min_raw_f32(a, b), ptx_vm__min_raw_f32(b, a));
    r = ptx_vm__select(ptx_vm__is_nan(a), b, r);
    return ptx_vm__select(ptx_vm__is_nan(b), a, r);
}
PTX_VM__INLINE PtxVmV ptx_vm__max_f32(PtxVmV a, PtxVmV b) {
    PtxVmV r = ptx_vm__and_b32(ptx_vm__max_raw_f32(a, b), ptx_vm__max_raw_f32(b, a));
    r = ptx_vm__select(ptx_vm__is_nan(a), b, r);
    return ptx_vm__select(ptx_vm__is_nan(b), a, r);
}

/* The product of a and b rounded toward zero instead of to nearest, for a >= 0 or NaN and finite b >= 0. Its exact error
 * tells whether it was rounded up, by the sign bit: a flush to zero keeps that. For infinite a it is the largest float. */
PTX_VM__INLINE PtxVmV ptx_vm__toward_zero(PtxVmV product, PtxVmV a, PtxVmV b) {
    return ptx_vm__add_u32(product, ptx_vm__shift_right_signed(ptx_vm__fma_f32(a, b, -product), 31));
}
#endif

#endif /* PTX_VM_SIMD_H_INCLUDED */
