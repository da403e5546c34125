// Two names, each with its own stub. The second is unrolled; its four sites share one stub. PTX_INJECT_TOK takes a bare word
// as the name, such as a macro yields.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const float* in, float* out) {
    float x = in[threadIdx.x];
    float y;
    PTX_INJECT("start", PTX_IN(F32, x), PTX_OUT(F32, y));
    #pragma unroll
    for (int i = 0; i < 4; ++i) PTX_INJECT_TOK(step, PTX_IN(F32, x), PTX_MOD(F32, y));
    out[threadIdx.x] = y;
}
