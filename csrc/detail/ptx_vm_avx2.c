/* The kernels of ptx_vm.h for x86-64 with AVX2 and FMA. Flags: -ffp-contract=off -mavx2 -mfma. */
#define PTX_VM_KERNELS ptx_vm__kernels_avx2
#include "ptx_vm_kernels.h"
