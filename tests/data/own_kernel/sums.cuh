// The sum of a value of each thread, for all threads.
static __device__ double block_sum(double value) {
    __shared__ double values[EVO_BLOCK_SIZE];
    values[threadIdx.x] = value;
    for (unsigned int half = EVO_BLOCK_SIZE / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    }
    __syncthreads();
    const double sum = values[0];
    __syncthreads();
    return sum;
}
