/* The choice of a SIMD level, and the kernels for any machine of the architecture. Flags: as of proof_kernels.h. */
#define PROOF_KERNELS proof__kernels_baseline
#include "proof_kernels.h"

const ProofKernels* proof_kernels(void) {
#if defined(PROOF_X86_LEVELS) && defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        return proof__kernels_avx512();
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return proof__kernels_avx2();
#endif
    return proof__kernels_baseline();
}
