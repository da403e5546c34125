// Does what score() of task.py does, in the same order.
#include "evo.cuh"
#include "sums.cuh"

extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* scores) {
    const unsigned int site = blockIdx.y;
    double cost = 0.0, sum = 0.0;
#pragma unroll 2
    for (unsigned int i = threadIdx.x; i < points.num_points; i += EVO_BLOCK_SIZE) {
        float v, w;
        evo_program(site, points.t(i), points.x(i), points.y(i), points.n(i), v, w);
        const double error = (double)v - (double)(points.t(i) + points.x(i) * points.y(i));
        cost += error * error + WEIGHT * ((double)w * (double)w);
        sum += (double)v;
    }
    cost = block_sum(cost);
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        double* score = scores + (1 + EVO_NUM_MEASURES) * site;
        score[0] = -cost / points.num_points;
        score[1] = sum / points.num_points;
        score[2] = num_instructions[site];
    }
}
