/* The kernels of itll.h for x86-64 with AVX-512 F, DQ, BW and VL.
   Flags: -ffp-contract=off -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512. */
#define ITLL_KERNELS itll__kernels_avx512
#include "../itll.h"
#include "itll_kernels.h"
