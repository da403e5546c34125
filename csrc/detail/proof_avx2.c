/* Flags: as of proof.c, and -mavx2 -mfma. */
#define PROOF_KERNELS proof__kernels_avx2
#include "proof_kernels.h"
