// A function of four arguments with three results.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const float4* in, float* out) {
    unsigned int i = threadIdx.x;
    float4 v = in[i];
    float first = 0.0f, second = 0.0f, third = 0.0f;
    PTX_INJECT(
        "func", PTX_IN(F32, a, v.x), PTX_IN(F32, b, v.y), PTX_IN(F32, c, v.z), PTX_IN(F32, d, v.w), PTX_MOD(F32, first),
        PTX_MOD(F32, second), PTX_MOD(F32, third)
    );
    out[3 * i] = first;
    out[3 * i + 1] = second;
    out[3 * i + 2] = third;
}
