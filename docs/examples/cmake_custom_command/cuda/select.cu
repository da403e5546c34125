// The bits of `chosen` are a set, not a number. The type mask tells a program that writes stubs so.
extern "C" __global__ void select_bits(unsigned int* words, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int word = words[i];
        unsigned int chosen;
        /* PTX_INJECT select
            in  u32  word
            out mask chosen
        */
        words[i] = word & chosen;
    }
}
