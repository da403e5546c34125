// out = func(x, y) for each element; the stubs of simple, routines, predicates and store_and_load fit its site.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const float* xs, const float* ys, float* out) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = xs[i];
    float y = ys[i];
    float z;
    PTX_INJECT("func", PTX_IN(F32, x), PTX_IN(F32, y), PTX_OUT(F32, z));
    out[i] = z;
}
