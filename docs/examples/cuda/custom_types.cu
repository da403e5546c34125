// Your own types, from custom_types/data_types.json: a mask is an unsigned int that stubs treat differently.

#include <cuda_fp16.h>

extern "C" __global__ void kernel(const unsigned int* in, const __half* weights, float* out) {
    unsigned int x = in[0];
    unsigned int y = in[1];
    __half w = weights[0];
    float z;
    /* PTX_INJECT func
        in  u32 x
        in  mask y
        in  weight w
        out f32 z
    */
    out[0] = z;
}
