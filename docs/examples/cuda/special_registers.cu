// A stub that reads no variable: it asks the hardware for the thread's position.

#include <ptx_inject.h>

extern "C" __global__ void kernel(unsigned int* indices, unsigned int* sums) {
    unsigned int thread =
        (threadIdx.z * blockDim.y + threadIdx.y) * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int i, sum;
    PTX_INJECT("func", PTX_OUT(U32, i), PTX_OUT(U32, sum));
    indices[thread] = i;
    sums[thread] = sum;
}
