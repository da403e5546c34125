// Random numbers whose generator is injected after compilation. Each thread has its own state, which the stub advances.

#include <ptx_inject.h>

extern "C" __global__ void kernel(unsigned int* states, float* out) {
    unsigned int state = states[threadIdx.x];
    float u;
    PTX_INJECT("func", PTX_MOD(PHILOX, state), PTX_OUT(F32, u));
    states[threadIdx.x] = state;
    out[threadIdx.x] = u;
}
