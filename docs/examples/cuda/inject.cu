// A site, by macro, that reads one variable, changes another and writes a third. Without the stub, y and z would never be computed here.

#include <ptx_inject.h>

extern "C" __global__ void kernel(float* out) {
    float x = 5.0f;
    float y = 3.0f;
    float z = 0.0f;
    PTX_INJECT("func", PTX_IN(F32, x), PTX_MOD(F32, y), PTX_OUT(F32, z));
    out[0] = y;
    out[1] = z;
}
