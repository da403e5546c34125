// A site as a comment: this file is CUDA to any editor, and `ptxinject` turns the comment into inline assembly.

__global__ void kernel(float* out) {
    float x = 5;
    float y = 3;
    float z;
    #pragma unroll
    for (int i = 0; i < 2; i++) {
        /* PTX_INJECT func
            in  f32 x
            mod f32 y
            out f32 z
        */
    }
    // /* PTX_INJECT disabled
    //    in f32 x
    // */
    out[0] = y;
    out[1] = z;
}
