/*
 * ptx_vm_gram_kernel.h - sums of products over one block of points, at the SIMD level of the compiler's flags.
 *
 * Private: included only by ptx_vm_kernels.h. Columns are one, target, and the requests (detail/ptx_vm_gram.h). All are floats,
 * so that their products are exact in double and may be fused with the addition or not.
 */
#ifndef PTX_VM_GRAM_KERNEL_H_INCLUDED
#define PTX_VM_GRAM_KERNEL_H_INCLUDED

#include <string.h>

#define PTX_VM__GRAM_VECTORS (8 / PTX_VM__LANES_F64) /* that hold the 8 lanes of a sum */

/* The columns in double. A point counts where target and first request are finite: otherwise all its columns are zero. Elsewhere
   a later request that is not finite counts as zero. */
static void ptx_vm__gram_columns(
    const float* target, char* const* requests, uint32_t num_requests, uint32_t num_groups, double* columns
) {
    const PtxVmD largest = ptx_vm__d_set(1.7976931348623157e308), one = ptx_vm__d_set(1.0);
    const float* y = (const float*)(const void*)requests[0];
    for (uint32_t i = 0; i < 8 * num_groups; i += PTX_VM__LANES_F64) {
        PtxVmD yi = ptx_vm__d_from_f32(y + i), ti = ptx_vm__d_from_f32(target + i);
        /* The difference of two finite floats is finite in double; any other is infinite or NaN. */
        PtxVmD keep = ptx_vm__d_at_most(ptx_vm__d_abs(ptx_vm__d_sub(yi, ti)), largest);
        ptx_vm__d_store(columns + i, ptx_vm__d_and(one, keep));
        ptx_vm__d_store(columns + PTX_VM__BLOCK + i, ptx_vm__d_and(ti, keep));
        ptx_vm__d_store(columns + 2 * PTX_VM__BLOCK + i, ptx_vm__d_and(yi, keep));
    }
    for (uint32_t k = 1; k < num_requests; k++) {
        const float* values = (const float*)(const void*)requests[k];
        double* column = columns + (2 + k) * PTX_VM__BLOCK;
        for (uint32_t i = 0; i < 8 * num_groups; i += PTX_VM__LANES_F64) {
            PtxVmD value = ptx_vm__d_from_f32(values + i), counts = ptx_vm__d_load(columns + i);
            PtxVmD keep = ptx_vm__d_and(ptx_vm__d_at_most(ptx_vm__d_abs(value), largest), ptx_vm__d_at_most(one, counts));
            ptx_vm__d_store(column + i, ptx_vm__d_and(value, keep));
        }
    }
}

/* Adds the products of a column with four others. Point j goes to lane j % 8. */
PTX_VM__INLINE void ptx_vm__gram_tile(const double* column, const double* others, uint32_t num_groups, double* lanes) {
    PtxVmD sums[4][PTX_VM__GRAM_VECTORS];
    for (int k = 0; k < 4; k++)
        for (int v = 0; v < PTX_VM__GRAM_VECTORS; v++) sums[k][v] = ptx_vm__d_load(lanes + 8 * k + v * PTX_VM__LANES_F64);
    for (uint32_t i = 0; i < 8 * num_groups; i += 8) {
        for (int v = 0; v < PTX_VM__GRAM_VECTORS; v++) {
            const PtxVmD a = ptx_vm__d_load(column + i + v * PTX_VM__LANES_F64);
            for (int k = 0; k < 4; k++) {
                const PtxVmD b = ptx_vm__d_load(others + k * PTX_VM__BLOCK + i + v * PTX_VM__LANES_F64);
                sums[k][v] = ptx_vm__d_add_product(sums[k][v], a, b);
            }
        }
    }
    for (int k = 0; k < 4; k++)
        for (int v = 0; v < PTX_VM__GRAM_VECTORS; v++) ptx_vm__d_store(lanes + 8 * k + v * PTX_VM__LANES_F64, sums[k][v]);
}

/* `columns` has room for a multiple of four columns; what the last ones hold is not read from `lanes` later. */
static void ptx_vm__gram(
    const float* target, char* const* requests, uint32_t num_requests, uint32_t num_valid, double* columns, double* lanes
) {
    const uint32_t num_columns = 2 + num_requests, stride = PTX_VM__GRAM_STRIDE(num_requests);
    const uint32_t num_groups = (num_valid + 7) / 8;
    float padded[PTX_VM__BLOCK];
    if (num_valid < 8 * num_groups) {
        const uint32_t nan = PTX_VM__NAN_BITS;
        memcpy(padded, target, num_valid * sizeof(float));
        for (uint32_t i = num_valid; i < 8 * num_groups; i++) memcpy(padded + i, &nan, sizeof nan);
        target = padded;
    }
    ptx_vm__gram_columns(target, requests, num_requests, num_groups, columns);
    for (uint32_t i = 0; i < num_columns; i++)
        for (uint32_t j = 0; j <= i; j += 4)
            ptx_vm__gram_tile(columns + i * PTX_VM__BLOCK, columns + j * PTX_VM__BLOCK, num_groups, lanes + 8 * (i * stride + j));
}

#endif /* PTX_VM_GRAM_KERNEL_H_INCLUDED */
