// The bits of all outputs. Threads of a warp part ways before some calls of evo_program, and one loop of calls is unrolled.
#include "evo.cuh"

static __device__ void store(EvoPoints points, unsigned int i, double* results) {
    float f;
    unsigned int g;
    int h;
    evo_program(
        blockIdx.y, points.a(i), points.b(i), points.c(i), points.u(i), points.v(i), points.w(i), points.i(i), points.j(i),
        points.k(i), f, g, h
    );
    results[3 * i] = __float_as_uint(f);
    results[3 * i + 1] = g;
    results[3 * i + 2] = static_cast<unsigned int>(h);
}

extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* results) {
    results += EVO_NUM_RESULTS * blockIdx.y;
    for (unsigned int i = threadIdx.x; i < points.num_points; i += EVO_BLOCK_SIZE)
        if (i % 3 > 0) store(points, i, results);
#pragma unroll
    for (unsigned int i = 3 * threadIdx.x; i < 6 * EVO_BLOCK_SIZE; i += 3 * EVO_BLOCK_SIZE)
        if (i < points.num_points) store(points, i, results);
}
