// What score() of task.py computes: one block of threads for each program. evo generates evo.cuh.
#include "evo.cuh"

struct Sum {
    static __device__ double of(double a, double b) { return a + b; }
};

struct Max {
    static __device__ double of(double a, double b) { return fmax(a, b); }
};

// A value of each thread, combined over the block in a fixed order: the same bits each time.
template <typename Operation> static __device__ double over_block(double value) {
    __shared__ double values[EVO_BLOCK_SIZE];
    values[threadIdx.x] = value;
    for (unsigned int half = EVO_BLOCK_SIZE / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) values[threadIdx.x] = Operation::of(values[threadIdx.x], values[threadIdx.x + half]);
    }
    __syncthreads();
    const double combined = values[0];
    __syncthreads();
    return combined;
}

extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* scores) {
    const unsigned int site = blockIdx.y;  // the program
    double loss = 0.0, worst = 0.0;
    for (unsigned int i = threadIdx.x; i < points.num_points; i += EVO_BLOCK_SIZE) {
        float v;
        evo_program(site, points.x(i), points.y(i), v);
        const double x = points.x(i), y = points.y(i);
        const double error = fabs((double)v - 1.0 / (1.0 + (x * x + y * y)));
        loss += sqrt(1.0 + (error / WIDTH) * (error / WIDTH)) - 1.0;
        worst = fmax(worst, error);
    }
    loss = over_block<Sum>(loss) / points.num_points;
    worst = fmin(fmax(over_block<Max>(worst), 1e-8), 1.0);
    if (threadIdx.x == 0) {
        double* score = scores + (1 + EVO_NUM_MEASURES) * site;  // objective, then the measures; NaN rejects the program
        score[0] = -log10(loss + 1e-8);
        score[1] = num_instructions[site];
        score[2] = -log10(worst);
    }
}
