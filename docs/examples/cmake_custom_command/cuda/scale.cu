extern "C" __global__ void scale(float* values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = values[i];
        /* PTX_INJECT scale
            mod f32 x
        */
        values[i] = x;
    }
}
