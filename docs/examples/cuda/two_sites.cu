// Two names, each with a stub of its own; the second is unrolled, and its four sites share one stub. Where a name is no
// string but a word, as macros give it, PTX_INJECT_TOK takes it.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const float* in, float* out) {
    float x = in[threadIdx.x];
    float y;
    PTX_INJECT("start", PTX_IN(F32, x), PTX_OUT(F32, y));
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        PTX_INJECT_TOK(step, PTX_IN(F32, x), PTX_MOD(F32, y));
    }
    out[threadIdx.x] = y;
}
