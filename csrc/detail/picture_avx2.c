/* The kernels of picture.h for x86-64 with AVX2. Flags: -ffp-contract=off -mavx2. */
#define PICTURE_KERNELS picture__kernels_avx2
#include "picture_kernels.h"
