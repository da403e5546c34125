// Types that inline assembly does not take as they are: the macro passes their bytes.

#include <cuda_fp16.h>
#include <ptx_inject.h>

extern "C" __global__ void kernel(const __half2* pairs, float* sums) {
    __half2 pair = pairs[threadIdx.x];
    float sum;
    PTX_INJECT("func", PTX_IN(F16X2, pair), PTX_OUT(F32, sum));
    sums[threadIdx.x] = sum;
}
