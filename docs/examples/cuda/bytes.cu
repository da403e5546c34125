// Four bytes in a word.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const unsigned int* in, unsigned int* out) {
    unsigned int packed = in[threadIdx.x];
    unsigned int sum;
    PTX_INJECT("func", PTX_IN(U32, packed), PTX_OUT(U32, sum));
    out[threadIdx.x] = sum;
}
