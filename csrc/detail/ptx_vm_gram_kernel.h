/*
 * ptx_vm_gram_kernel.h - sums of products over one block of points, at the SIMD level of the compiler's flags.
 *
 * Private: included only by ptx_vm_kernels.h. Columns are one, target, and the requests (detail/ptx_vm_gram.h). All have 26
 * digits at most, so that their products are exact in double and may be fused with the addition or not.
 */
#ifndef PTX_VM_GRAM_KERNEL_H_INCLUDED
#define PTX_VM_GRAM_KERNEL_H_INCLUDED

#include <string.h>

#define PTX_VM__GRAM_VECTORS (8 / PTX_VM__LANES_F64)           /* that hold the 8 lanes of a sum */
#define PTX_VM__GRAM_ROWS (PTX_VM__GRAM_VECTORS == 1 ? 4 : 1) /* columns of a tile: as many as have sums in 16 registers */

/* A value less its reference, times a root, rounded to 26 digits (Veltkamp 1968): floats keep all of theirs. */
PTX_VM__INLINE PtxVmD ptx_vm__gram_value(const float* values, double reference, PtxVmD root) {
    const PtxVmD moved = ptx_vm__d_sub(ptx_vm__d_from_f32(values), ptx_vm__d_set(reference));
    const PtxVmD value = ptx_vm__d_mul(root, moved), shifted = ptx_vm__d_mul(value, ptx_vm__d_set(134217729.0)); /* 2^27 + 1 */
    return ptx_vm__d_sub(shifted, ptx_vm__d_sub(shifted, value));
}

/* The columns in double. A point counts where target and first request are finite: otherwise all its columns are zero. Elsewhere
   a later request that is not finite counts as zero. */
static void ptx_vm__gram_columns(
    const float* target, const float* roots, char* const* requests, uint32_t num_requests, uint32_t num_groups,
    const double* references, double* columns
) {
    const PtxVmD largest = ptx_vm__d_set(1.7976931348623157e308), least = ptx_vm__d_set(2.2250738585072014e-308);
    const PtxVmD one = ptx_vm__d_set(1.0);
    const float* y = (const float*)(const void*)requests[0];
    for (uint32_t i = 0; i < 8 * num_groups; i += PTX_VM__LANES_F64) {
        const PtxVmD root = roots != NULL ? ptx_vm__d_from_f32(roots + i) : one;
        /* The difference of two finite floats is finite in double; any other is infinite or NaN. */
        const PtxVmD error = ptx_vm__d_sub(ptx_vm__d_from_f32(y + i), ptx_vm__d_from_f32(target + i));
        const PtxVmD keep = ptx_vm__d_at_most(ptx_vm__d_abs(error), largest);
        ptx_vm__d_store(columns + i, ptx_vm__d_and(root, keep));
        ptx_vm__d_store(columns + PTX_VM__BLOCK + i, ptx_vm__d_and(ptx_vm__gram_value(target + i, references[0], root), keep));
        ptx_vm__d_store(columns + 2 * PTX_VM__BLOCK + i, ptx_vm__d_and(ptx_vm__gram_value(y + i, references[1], root), keep));
    }
    for (uint32_t k = 1; k < num_requests; k++) {
        const float* values = (const float*)(const void*)requests[k];
        double* column = columns + (2 + k) * PTX_VM__BLOCK;
        for (uint32_t i = 0; i < 8 * num_groups; i += PTX_VM__LANES_F64) {
            const PtxVmD root = ptx_vm__d_load(columns + i), value = ptx_vm__d_from_f32(values + i);
            const PtxVmD keep = ptx_vm__d_and(ptx_vm__d_at_most(ptx_vm__d_abs(value), largest), ptx_vm__d_at_most(least, root));
            ptx_vm__d_store(column + i, ptx_vm__d_and(ptx_vm__gram_value(values + i, references[1 + k], root), keep));
        }
    }
}

/* Adds the products of some columns, one after the other, with four others. Point j goes to lane j % 8. */
PTX_VM__INLINE void ptx_vm__gram_tile(
    uint32_t num_columns, uint32_t stride, const double* column, const double* others, uint32_t num_groups, double* lanes
) {
    PtxVmD sums[PTX_VM__GRAM_ROWS][4][PTX_VM__GRAM_VECTORS];
    for (uint32_t r = 0; r < num_columns; r++)
        for (uint32_t k = 0; k < 4; k++)
            for (uint32_t v = 0; v < PTX_VM__GRAM_VECTORS; v++)
                sums[r][k][v] = ptx_vm__d_load(lanes + 8 * (r * stride + k) + v * PTX_VM__LANES_F64);
    for (uint32_t i = 0; i < 8 * num_groups; i += 8) {
        for (uint32_t v = 0; v < PTX_VM__GRAM_VECTORS; v++) {
            PtxVmD a[PTX_VM__GRAM_ROWS];
            for (uint32_t r = 0; r < num_columns; r++)
                a[r] = ptx_vm__d_load(column + r * PTX_VM__BLOCK + i + v * PTX_VM__LANES_F64);
            for (uint32_t k = 0; k < 4; k++) {
                const PtxVmD b = ptx_vm__d_load(others + k * PTX_VM__BLOCK + i + v * PTX_VM__LANES_F64);
                for (uint32_t r = 0; r < num_columns; r++) sums[r][k][v] = ptx_vm__d_add_product(sums[r][k][v], a[r], b);
            }
        }
    }
    for (uint32_t r = 0; r < num_columns; r++)
        for (uint32_t k = 0; k < 4; k++)
            for (uint32_t v = 0; v < PTX_VM__GRAM_VECTORS; v++)
                ptx_vm__d_store(lanes + 8 * (r * stride + k) + v * PTX_VM__LANES_F64, sums[r][k][v]);
}

/* `columns` has room for a multiple of four columns; what the last ones hold is not read from `lanes` later. */
static void ptx_vm__gram(
    const float* target, const float* roots, char* const* requests, uint32_t num_requests, uint32_t num_valid,
    const double* references, double* columns, double* lanes
) {
    const uint32_t num_columns = 2 + num_requests, stride = PTX_VM__GRAM_STRIDE(num_requests);
    const uint32_t num_groups = (num_valid + 7) / 8;
    float padded[2][PTX_VM__BLOCK];
    if (num_valid < 8 * num_groups) {
        const uint32_t nan = PTX_VM__NAN_BITS;
        memcpy(padded[0], target, num_valid * sizeof(float));
        for (uint32_t i = num_valid; i < 8 * num_groups; i++) memcpy(padded[0] + i, &nan, sizeof nan);
        target = padded[0];
        if (roots != NULL) {
            memset(padded[1], 0, sizeof padded[1]);
            roots = (const float*)memcpy(padded[1], roots, num_valid * sizeof(float));
        }
    }
    ptx_vm__gram_columns(target, roots, requests, num_requests, num_groups, references, columns);
    uint32_t i = 0;
    for (; i + PTX_VM__GRAM_ROWS <= num_columns; i += PTX_VM__GRAM_ROWS)
        for (uint32_t j = 0; j < i + PTX_VM__GRAM_ROWS; j += 4)
            ptx_vm__gram_tile(
                PTX_VM__GRAM_ROWS, stride, columns + i * PTX_VM__BLOCK, columns + j * PTX_VM__BLOCK, num_groups,
                lanes + 8 * (i * stride + j)
            );
    for (; i < num_columns; i++)
        for (uint32_t j = 0; j <= i; j += 4)
            ptx_vm__gram_tile(
                1, stride, columns + i * PTX_VM__BLOCK, columns + j * PTX_VM__BLOCK, num_groups, lanes + 8 * (i * stride + j)
            );
}

#endif /* PTX_VM_GRAM_KERNEL_H_INCLUDED */
