// The template of openmp_compile.c: out = program(x, y) for each of n points. NVRTC 13.0 compiled it for compute_80 to
// kernel.ptx.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const float* x, const float* y, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float result;
        PTX_INJECT("program", PTX_IN(F32, x, x[i]), PTX_IN(F32, y, y[i]), PTX_OUT(F32, result));
        out[i] = result;
    }
}
