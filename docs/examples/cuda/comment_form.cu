// Sites as comments: this file is CUDA to any editor, and `ptxinject` turns the comments into inline assembly. A line of one can
// be skipped, and a whole one be disabled.

__global__ void kernel(float* out) {
    float x = 5;
    float y = 3;
    float z;
    float w;
    #pragma unroll
    for (int i = 0; i < 2; i++) {
        /* PTX_INJECT func
            in  f32 x
            mod f32 y
            out f32 z
        */
    }
    /* PTX_INJECT other
        // in f32 x
        out f32 w
    */
    // /* PTX_INJECT disabled
    //    in f32 x
    // */
    out[0] = y;
    out[1] = z;
    out[2] = w;
}
