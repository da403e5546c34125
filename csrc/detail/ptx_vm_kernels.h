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
 * place, so a chain of operations touches memory only for its other operands. A compiler with `musttail` has to; with another that
 * does not optimise the code is still correct, but its stack is as deep as the program is long.
 *
 * For each operation there is a kernel for each choice of operands that lie in the accumulator (PtxVmForm), with and
 * without the store.
 */
#ifndef PTX_VM_KERNELS_H_INCLUDED
#define PTX_VM_KERNELS_H_INCLUDED

#include "../ptx_vm.h"
#include "ptx_vm_functions.h"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

#define PTX_VM__BLOCK (8 * PTX_VM__LANES)

#define PTX_VM__ARGS                                                                                                         \
    const PtxVmStep *step, char *const *memory, PtxVmV a0, PtxVmV a1, PtxVmV a2, PtxVmV a3, PtxVmV a4, PtxVmV a5, PtxVmV a6, \
        PtxVmV a7

typedef void (*PtxVmBody)(PTX_VM__ARGS);

#if defined(__has_attribute)
#if __has_attribute(musttail)
#define PTX_VM__TAIL __attribute__((musttail)) return
#endif
#endif
#ifndef PTX_VM__TAIL
#define PTX_VM__TAIL
#endif
#define PTX_VM__NEXT PTX_VM__TAIL((PtxVmBody)step[1].kernel)(step + 1, memory, a0, a1, a2, a3, a4, a5, a6, a7)

/* Operand `o` of vector `i`, in the accumulator or in memory. */
#define PTX_VM__A(o, i) a##i
#define PTX_VM__M(o, i) ptx_vm__load((const float*)(const void*)memory[step->operands[o]] + (i) * PTX_VM__LANES)

PTX_VM__INLINE PtxVmV ptx_vm__output_bits(PtxVmV x) { return x; }
PTX_VM__INLINE PtxVmV ptx_vm__output_f32(PtxVmV x) { return ptx_vm__fix_nan_f32(x); }
PTX_VM__INLINE PtxVmV ptx_vm__output_truth(PtxVmV x) { return ptx_vm__and_b32(x, ptx_vm__set_bits(1)); }

/* For each vector. */
#define PTX_VM__EACH(DO, ...)                                                                                         \
    DO(0, __VA_ARGS__)                                                                                                \
    DO(1, __VA_ARGS__)                                                                                                \
    DO(2, __VA_ARGS__) DO(3, __VA_ARGS__) DO(4, __VA_ARGS__) DO(5, __VA_ARGS__) DO(6, __VA_ARGS__) DO(7, __VA_ARGS__)
#define PTX_VM__STORE_ONE(i, F) ptx_vm__store(result + (i) * PTX_VM__LANES, F(a##i));
#define PTX_VM__STORE(F)                                 \
    float* result = (float*)(void*)memory[step->result]; \
    PTX_VM__EACH(PTX_VM__STORE_ONE, F)

#define PTX_VM__KERNEL(name, ...)                      \
    static void ptx_vm__##name(PTX_VM__ARGS) {         \
        __VA_ARGS__                                    \
        PTX_VM__NEXT;                                  \
    }                                                  \
    static void ptx_vm__##name##_store(PTX_VM__ARGS) { \
        __VA_ARGS__                                    \
        PTX_VM__STORE(ptx_vm__output_bits)             \
        PTX_VM__NEXT;                                  \
    }

#define PTX_VM__ONE1(i, F, X) a##i = F(X(0, i));
#define PTX_VM__ONE2(i, F, X, Y) a##i = F(X(0, i), Y(1, i));
#define PTX_VM__ONE3(i, F, X, Y, Z) a##i = F(X(0, i), Y(1, i), Z(2, i));
#define PTX_VM__ALL1(F, X) PTX_VM__EACH(PTX_VM__ONE1, F, X)
#define PTX_VM__ALL2(F, X, Y) PTX_VM__EACH(PTX_VM__ONE2, F, X, Y)
#define PTX_VM__ALL3(F, X, Y, Z) PTX_VM__EACH(PTX_VM__ONE3, F, X, Y, Z)

/* Minimum and maximum. x86's instruction returns its second operand for a NaN and for two zeros. Only then do the two operand
 * orders give different bits. That is rare, and is tested for two vectors at a time. */
#ifdef PTX_VM__AVX512
#define PTX_VM__ALL_EXTREME(RAW, F, X, Y) PTX_VM__ALL2(F, X, Y)
#else
#define PTX_VM__ALL_EXTREME(RAW, F, X, Y)                                                                                   \
    PTX_VM__TWO_EXTREME(RAW, F, X, Y, 0, 1)                                                                                 \
    PTX_VM__TWO_EXTREME(RAW, F, X, Y, 2, 3) PTX_VM__TWO_EXTREME(RAW, F, X, Y, 4, 5) PTX_VM__TWO_EXTREME(RAW, F, X, Y, 6, 7)
#define PTX_VM__TWO_EXTREME(RAW, F, X, Y, i, j)                                                                            \
    {                                                                                                                      \
        PtxVmV ri = RAW(X(0, i), Y(1, i)), rj = RAW(X(0, j), Y(1, j));                                                     \
        PtxVmV doubt_i = ptx_vm__xor_b32(ri, RAW(Y(1, i), X(0, i))), doubt_j = ptx_vm__xor_b32(rj, RAW(Y(1, j), X(0, j))); \
        if (__builtin_expect(ptx_vm__any_bit(ptx_vm__or_b32(doubt_i, doubt_j)), 0)) {                                      \
            ri = F(X(0, i), Y(1, i));                                                                                      \
            rj = F(X(0, j), Y(1, j));                                                                                      \
        }                                                                                                                  \
        a##i = ri;                                                                                                         \
        a##j = rj;                                                                                                         \
    }
#endif

#define PTX_VM__DEFINE_UNARY(name, F)                        \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL1(F, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL1(F, PTX_VM__A))
#define PTX_VM__DEFINE_COMMUTATIVE(name, F)                             \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL2(F, PTX_VM__M, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL2(F, PTX_VM__A, PTX_VM__M)) \
    PTX_VM__KERNEL(name##_both, PTX_VM__ALL2(F, PTX_VM__A, PTX_VM__A))
#define PTX_VM__RAW_min_f32 ptx_vm__min_raw_f32
#define PTX_VM__RAW_max_f32 ptx_vm__max_raw_f32
#define PTX_VM__DEFINE_EXTREME(name, F)                                                            \
    PTX_VM__KERNEL(name##_none, PTX_VM__ALL_EXTREME(PTX_VM__RAW_##name, F, PTX_VM__M, PTX_VM__M))  \
    PTX_VM__KERNEL(name##_first, PTX_VM__ALL_EXTREME(PTX_VM__RAW_##name, F, PTX_VM__A, PTX_VM__M))
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

/* SELECT with the step's immediate. */
#define PTX_VM__DEFINE_LOGIC(name, F) PTX_VM__DEFINE_SELECT(name, PTX_VM__WITH_IMMEDIATE)
#define PTX_VM__WITH_IMMEDIATE(x, y, z) ptx_vm__lop3_b32(x, y, z, step->immediate)

/* A request: F of the value goes to memory; the accumulator is unchanged. */
#define PTX_VM__DEFINE_OUTPUT(name, F)                                                                            \
    static void ptx_vm__##name##_none_store(PTX_VM__ARGS) {                                                       \
        float* result = (float*)(void*)memory[step->result];                                                      \
        const float* x = (const float*)(const void*)memory[step->operands[0]];                                    \
        for (int i = 0; i < PTX_VM__BLOCK; i += PTX_VM__LANES) ptx_vm__store(result + i, F(ptx_vm__load(x + i))); \
        PTX_VM__NEXT;                                                                                             \
    }                                                                                                             \
    static void ptx_vm__##name##_first_store(PTX_VM__ARGS) {                                                      \
        PTX_VM__STORE(F)                                                                                          \
        PTX_VM__NEXT;                                                                                             \
    }

/* ---- sums ---------------------------------------------------------------------------------------------------------*/

PTX_VM__INLINE bool ptx_vm__is_finite(float value) { return value - value == 0.0f; }
PTX_VM__INLINE double ptx_vm__target_reference(const float* t) { return ptx_vm__is_finite(t[0]) ? (double)t[0] : 0.0; }

/* Adds points of one group of lanes: point j of a block goes to lane j % 8, whatever the level, and lanes meet only in ptx_vm.h.
   Points that are left out add zeros, which change no sum. Products are not exact, so none is fused with an addition.
   has_gaps: points that are not finite are left out. Otherwise the result is false if there is one, and nothing has changed.
   is_end: num_points is less than 8, and points from there on are left out. */
PTX_VM__INLINE int ptx_vm__add_points(
    PtxVmLaneSums* lanes, uint32_t lane, const float* y, const float* t, const float* w, uint32_t num_points, int has_gaps,
    int is_end
) {
    static const uint64_t masks[2 * PTX_VM__SUM_LANES] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                                          UINT64_MAX, UINT64_MAX, 0,          0,          0,          0,
                                                          0,          0,          0,          0};
    const PtxVmD largest = ptx_vm__d_set(1.7976931348623157e308), one = ptx_vm__d_set(1.0);
    const PtxVmD reference_y = ptx_vm__d_set(lanes->reference_y), reference_t = ptx_vm__d_set(lanes->reference_t);
    const PtxVmD is_there = ptx_vm__d_load((const double*)(const void*)(masks + (is_end ? 8 - num_points : 0) + lane));
    const uint32_t num_sums = has_gaps ? PTX_VM__NUM_SUMS : PTX_VM__SUM_T;
    PtxVmD sums[PTX_VM__NUM_SUMS];
    PtxVmD max_error = ptx_vm__d_load(lanes->max_abs_error + lane), num_left_out = ptx_vm__d_load(lanes->num_left_out + lane);
    for (uint32_t k = 0; k < num_sums; k++) sums[k] = ptx_vm__d_load(lanes->sums[k] + lane);
    for (uint32_t i = lane; i < (is_end ? 8 : num_points); i += PTX_VM__SUM_LANES) {
        const PtxVmD yi = ptx_vm__d_from_f32(y + i), ti = ptx_vm__d_from_f32(t + i);
        PtxVmD error = ptx_vm__d_sub(yi, ti), dy = ptx_vm__d_sub(yi, reference_y), dt = ptx_vm__d_sub(ti, reference_t);
        PtxVmD weight = w != NULL ? ptx_vm__d_from_f32(w + i) : one;
        if (has_gaps || is_end) {
            PtxVmD keep = is_there;
            if (has_gaps) {
                /* The difference of two finite floats is finite in double; any other is infinite or NaN. */
                keep = ptx_vm__d_and(is_there, ptx_vm__d_at_most(ptx_vm__d_abs(error), largest));
                num_left_out = ptx_vm__d_add(num_left_out, ptx_vm__d_sub(ptx_vm__d_and(one, is_there), ptx_vm__d_and(one, keep)));
            }
            error = ptx_vm__d_and(error, keep);
            dy = ptx_vm__d_and(dy, keep);
            dt = ptx_vm__d_and(dt, keep);
            weight = ptx_vm__d_and(weight, keep);
        }
        max_error = ptx_vm__d_max(max_error, ptx_vm__d_abs(error));
        const PtxVmD weighted = w != NULL ? ptx_vm__d_mul(weight, dy) : dy;
        const PtxVmD weighted_error = w != NULL ? ptx_vm__d_mul(weight, error) : error;
        sums[PTX_VM__SUM_Y] = ptx_vm__d_add(sums[PTX_VM__SUM_Y], weighted);
        sums[PTX_VM__SUM_YY] = ptx_vm__d_add(sums[PTX_VM__SUM_YY], ptx_vm__d_mul(weighted, dy));
        sums[PTX_VM__SUM_YT] = ptx_vm__d_add(sums[PTX_VM__SUM_YT], ptx_vm__d_mul(weighted, dt));
        sums[PTX_VM__SUM_EE] = ptx_vm__d_add(sums[PTX_VM__SUM_EE], ptx_vm__d_mul(weighted_error, error));
        if (has_gaps) {
            const PtxVmD weighted_t = ptx_vm__d_mul(weight, dt);
            sums[PTX_VM__SUM_T] = ptx_vm__d_add(sums[PTX_VM__SUM_T], weighted_t);
            sums[PTX_VM__SUM_TT] = ptx_vm__d_add(sums[PTX_VM__SUM_TT], ptx_vm__d_mul(weighted_t, dt));
            sums[PTX_VM__SUM_WEIGHT] = ptx_vm__d_add(sums[PTX_VM__SUM_WEIGHT], weight);
        }
    }
    if (!has_gaps && ptx_vm__d_any_bit(ptx_vm__d_sub(sums[PTX_VM__SUM_EE], sums[PTX_VM__SUM_EE]))) return 0;
    ptx_vm__d_store(lanes->max_abs_error + lane, max_error);
    if (has_gaps) ptx_vm__d_store(lanes->num_left_out + lane, num_left_out);
    for (uint32_t k = 0; k < num_sums; k++) ptx_vm__d_store(lanes->sums[k] + lane, sums[k]);
    return 1;
}

/* The sums of the target alone, over points that all count: lanes of PTX_VM__SUM_T and those after it. */
static void ptx_vm__add_targets(
    const float* t, const float* w, uint32_t num_points, double reference, uint32_t first_lane, uint32_t num_lanes,
    double (*sums)[PTX_VM__SUM_LANES]
) {
    for (uint32_t i = first_lane; i < num_points; i += PTX_VM__SUM_LANES) {
        for (uint32_t k = 0; k < num_lanes && i + k < num_points; k++) {
            const double weight = w != NULL ? (double)w[i + k] : 1.0, dt = (double)t[i + k] - reference;
            sums[0][first_lane + k] += weight * dt;
            sums[1][first_lane + k] += weight * dt * dt;
            sums[2][first_lane + k] += weight;
        }
    }
}

/* Of all points of one block of 1,024, or fewer at the end. */
static void ptx_vm__target_block(const float* t, const float* w, uint32_t num_points, double (*sums)[PTX_VM__SUM_LANES]) {
    memset(sums, 0, (PTX_VM__NUM_SUMS - PTX_VM__SUM_T) * sizeof *sums);
    ptx_vm__add_targets(t, w, num_points, ptx_vm__target_reference(t), 0, PTX_VM__SUM_LANES, sums);
}

/* Adds points from `first` on, of a kernel's. Sums of the target alone are known if all points count (PtxVmTarget); lanes that leave
   one out sum for themselves. */
PTX_VM__INLINE void ptx_vm__add_lanes(
    PtxVmLaneSums* lanes, const float* y, const float* t, const float* w, uint32_t first, uint32_t num_points, int is_end
) {
    for (uint32_t lane = 0; lane < PTX_VM__SUM_LANES; lane += PTX_VM__LANES_F64) {
        if (!lanes->has_gaps[lane]) {
            if (ptx_vm__add_points(lanes, lane, y, t, w, num_points, 0, is_end)) continue;
            for (uint32_t k = lane; k < lane + PTX_VM__LANES_F64; k++) lanes->has_gaps[k] = true;
            ptx_vm__add_targets(
                lanes->targets, lanes->weights, lanes->num_before + first, lanes->reference_t, lane, PTX_VM__LANES_F64,
                lanes->sums + PTX_VM__SUM_T
            );
        }
        (void)ptx_vm__add_points(lanes, lane, y, t, w, num_points, 1, is_end);
    }
}

/* A kernel's points. */
PTX_VM__INLINE void ptx_vm__add_block(PtxVmLaneSums* lanes, const float* y, const float* t, const float* w) {
    const uint32_t num_left = lanes->num_valid % 8, num_points = lanes->num_valid - num_left;
    if (num_points > 0) ptx_vm__add_lanes(lanes, y, t, w, 0, num_points, 0);
    if (num_left > 0) {
        float last_weights[8] = {0.0f};
        if (w != NULL) memcpy(last_weights, w + num_points, num_left * sizeof(float));
        ptx_vm__add_lanes(lanes, y + num_points, t + num_points, w != NULL ? last_weights : NULL, num_points, num_left, 1);
    }
}

/* operands: the value, its target. result: the sums. Both operands are padded in the last block. */
static void ptx_vm__sum_f32(const PtxVmStep* step, char* const* memory, const float* y) {
    PtxVmLaneSums* sums = (PtxVmLaneSums*)(void*)memory[step->result];
    const float* t = (const float*)(const void*)memory[step->operands[1]];
    if (sums->num_before == 0) {
        sums->reference_t = ptx_vm__target_reference(t);
        sums->reference_y = ptx_vm__is_finite(t[0]) && ptx_vm__is_finite(y[0]) ? (double)y[0] : sums->reference_t;
    }
    if (sums->weights != NULL)
        ptx_vm__add_block(sums, y, t, sums->weights + sums->num_before);
    else
        ptx_vm__add_block(sums, y, t, NULL);
}
static void ptx_vm__sum_f32_none_store(PTX_VM__ARGS) {
    ptx_vm__sum_f32(step, memory, (const float*)(const void*)memory[step->operands[0]]);
    PTX_VM__NEXT;
}
static void ptx_vm__sum_f32_first_store(PTX_VM__ARGS) {
    float result[PTX_VM__BLOCK];
    PTX_VM__EACH(PTX_VM__STORE_ONE, ptx_vm__output_bits)
    ptx_vm__sum_f32(step, memory, result);
    PTX_VM__NEXT;
}

#include "ptx_vm_gram_kernel.h"

/* ---- tables ------------------------------------------------------------------------------------------------------ */

#define PTX_VM__DEFINE_SUM(name, F)
#define PTX_VM__DEFINE(enumerator, name, kind, nan) PTX_VM__DEFINE_##kind(name, ptx_vm__##name)
PTX_VM__OPERATIONS(PTX_VM__DEFINE)

#define PTX_VM__IGNORE(i, unused) (void)a##i;
static void ptx_vm__end(PTX_VM__ARGS) {
    (void)step;
    (void)memory;
    PTX_VM__EACH(PTX_VM__IGNORE, unused)
#ifdef __AVX__
    _mm256_zeroupper(); /* compilers leave it to the end of a chain of calls */
#endif
}

static void ptx_vm__enter(const PtxVmStep* first, char* const* memory) {
    const PtxVmV zero = ptx_vm__set(0.0f);
    ((PtxVmBody)first->kernel)(first, memory, zero, zero, zero, zero, zero, zero, zero, zero);
}

#include "ptx_vm_contract_kernel.h"

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
#define PTX_VM__ROW_SELECT(name)                                                                                     \
    {PTX_VM__PAIR(name##_none), PTX_VM__PAIR(name##_first), PTX_VM__PAIR(name##_second), PTX_VM__PAIR(name##_third), \
     PTX_VM__ABSENT}
#define PTX_VM__ROW_LOGIC(name) PTX_VM__ROW_SELECT(name)
#define PTX_VM__ROW_OUTPUT(name)                                                                                        \
    {PTX_VM__STORE_ONLY(name##_none), PTX_VM__STORE_ONLY(name##_first), PTX_VM__ABSENT, PTX_VM__ABSENT, PTX_VM__ABSENT}
#define PTX_VM__ROW_SUM(name) PTX_VM__ROW_OUTPUT(name)
#define PTX_VM__ROW(enumerator, name, kind, nan) PTX_VM__ROW_##kind(name),

const PtxVmKernels* PTX_VM_KERNELS(void) {
    static const PtxVmKernels kernels = {
        PTX_VM__BLOCK,
        ptx_vm__enter,
        (PtxVmKernel)ptx_vm__end,
        {PTX_VM__OPERATIONS(PTX_VM__ROW)},
        ptx_vm__target_block,
        ptx_vm__gram,
        {ptx_vm__gather, ptx_vm__spread, ptx_vm__sum_lanes, ptx_vm__run_slots},
    };
    return &kernels;
}

#endif /* PTX_VM_KERNELS_H_INCLUDED */
