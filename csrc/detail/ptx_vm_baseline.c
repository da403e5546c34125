/* The implementations of ptx_vm.h and rollout.h, and kernels for any machine of the architecture. Flags: -ffp-contract=off. */
#define PTX_VM_IMPLEMENTATION
#define PTX_VM_KERNELS ptx_vm__kernels_baseline
#include "ptx_vm_kernels.h"
#define ROLLOUT_IMPLEMENTATION
#include "rollout.h"
