// Annotations of ptx_inject_process_cuda in code that compilers repeat.

extern "C" __global__ void kernel(float* out, unsigned int n) {
    float x = out[0];
    float4 v = {out[1], out[2], out[3], out[4]};
    int a[2] = {int(n), 7};

#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float z;
        /* PTX_INJECT twice
            in  f32 x
            mod f32 v.w
            out f32 z
        */
        out[8 + i] = z;
    }

    struct Pair {
        unsigned short low, high;
    } pair = {1, 2};
    /* PTX_INJECT types
        mod s32 a[0]   // an element
        // in f32 x
        in  f16X2 pair
        out u32 n
    */
    out[10] = v.w + float(a[0]) + float(n);
    // /* PTX_INJECT disabled
    //     in f32 x
    // */
}
