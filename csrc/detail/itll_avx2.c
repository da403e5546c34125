/* The kernels of itll.h for x86-64 with AVX2. Flags: -ffp-contract=off -mavx2. */
#define ITLL_KERNELS itll__kernels_avx2
#include "../itll.h"
#include "itll_kernels.h"
