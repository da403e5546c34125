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
    for (uint32_t i = 0; i < PTX_VM__BLOCK; i += PTX_VM__LANES)
        bits = ptx_vm__or(bits, ptx_vm__mul(ptx_vm__sub(ptx_vm__load(y + i), ptx_vm__load(t + i)), zero));
    if (ptx_vm__any_bit(ptx_vm__and(bits, ptx_vm__set_bits(0x7fffffffu))))
        ptx_vm__add_points(lanes, y, t, 0);
    else
        ptx_vm__add_points(lanes, y, t, 1);
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
#define PTX_VM__ROW_SELECT(name)                                                                                     \
    {PTX_VM__PAIR(name##_none), PTX_VM__PAIR(name##_first), PTX_VM__PAIR(name##_second), PTX_VM__PAIR(name##_third), \
     PTX_VM__ABSENT}
#define PTX_VM__ROW_OUTPUT(name)                                                                                        \
    {PTX_VM__STORE_ONLY(name##_none), PTX_VM__STORE_ONLY(name##_first), PTX_VM__ABSENT, PTX_VM__ABSENT, PTX_VM__ABSENT}
#define PTX_VM__ROW_SUM(name) PTX_VM__ROW_OUTPUT(name)
#define PTX_VM__ROW(enumerator, name, kind, nan, F) PTX_VM__ROW_##kind(name),

const PtxVmKernels* PTX_VM_KERNELS(void) {
    static const PtxVmKernels kernels = {
        PTX_VM__BLOCK, ptx_vm__enter, (PtxVmKernel)ptx_vm__end, {PTX_VM__OPERATIONS(PTX_VM__ROW)}, ptx_vm__gram,
    };
    return &kernels;
}

#endif /* PTX_VM_KERNELS_H_INCLUDED */
