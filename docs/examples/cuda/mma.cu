// Tiles of 16x4, 4x8 and 16x8 elements, row after row, in the layout of m16n8k4: a thread's first row is its lane / 4, the second
// is 8 below, and its columns follow from lane % 4. Run by one warp. Needs sm_80.

#include <ptx_inject.h>

extern "C" __global__ void kernel(const float* a, const float* b, const float* c, float* d) {
    unsigned int row = threadIdx.x / 4;
    unsigned int column = threadIdx.x % 4;
    const float* c_low = c + row * 8 + column * 2;
    const float* c_high = c_low + 8 * 8;
    float* d_low = d + row * 8 + column * 2;
    float* d_high = d_low + 8 * 8;
    PTX_INJECT(
        "func", PTX_IN(F32, a0, a[row * 4 + column]), PTX_IN(F32, a1, a[(row + 8) * 4 + column]),
        PTX_IN(F32, b, b[column * 8 + row]), PTX_IN(F32, c0, c_low[0]), PTX_IN(F32, c1, c_low[1]), PTX_IN(F32, c2, c_high[0]),
        PTX_IN(F32, c3, c_high[1]), PTX_OUT(F32, d0, d_low[0]), PTX_OUT(F32, d1, d_low[1]), PTX_OUT(F32, d2, d_high[0]),
        PTX_OUT(F32, d3, d_high[1])
    );
}
