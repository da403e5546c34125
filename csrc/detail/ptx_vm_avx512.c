/* The kernels of ptx_vm.h for x86-64 with AVX-512 F, DQ, BW and VL.
   Flags: -ffp-contract=off -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512. */
#define PTX_VM_KERNELS ptx_vm__kernels_avx512
#include "ptx_vm_kernels.h"
