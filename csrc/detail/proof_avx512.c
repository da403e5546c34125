/* Flags: as of proof.c, and -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma. */
#define PROOF_KERNELS proof__kernels_avx512
#include "proof_kernels.h"
