// A stub that reads no variable: where a thread is, it asks the hardware.

#include <ptx_inject.h>

extern "C" __global__ void kernel(unsigned int* indices, unsigned int* sums) {
    unsigned int i, sum;
    PTX_INJECT("func",
        PTX_OUT(U32, i),
        PTX_OUT(U32, sum)
    );
    indices[i] = i;
    sums[i] = sum;
}
