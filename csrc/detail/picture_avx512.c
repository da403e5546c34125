/* The kernels of picture.h for x86-64 with AVX-512 F, DQ, BW and VL.
   Flags: -ffp-contract=off -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512. */
#define PICTURE_KERNELS picture__kernels_avx512
#include "picture_kernels.h"
