// Every form of operand that the macro of ptx_inject.h takes, in code that compilers repeat. NVRTC and nvcc compile it.
#include <ptx_inject.h>

#define PTX_TYPE_INFO_MASK PTX_TYPES_DESC(u64, b64, l, ID)

// Macros as a name, a type, a variable, and several operands.
#define SITE(i) site_##i
#define REAL F32
#define VALUE x
#define OPERANDS PTX_IN(REAL, VALUE), PTX_OUT(F32, z)

struct Half {
    unsigned short bits;
};

struct Philox {
    struct {
        unsigned int x, y, z, w;
    } key, ctr;
};

extern "C" __global__ void kernel(float* out, const Half* halves, unsigned long long mask, unsigned int seed, Philox state) {
    float x = out[0], y = out[1], z;

    // Two sites of one name: the loop is unrolled.
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        PTX_INJECT("twice", PTX_IN(F32, x), PTX_MOD(F32, y), PTX_OUT(F32, z));
        out[2 + i] = z;
    }

    Half h = halves[0], r;
    PTX_INJECT_TOK(
        types, PTX_IN(F16, h), PTX_OUT(F16, r), PTX_PHILOX(state), PTX_MOD(PHILOX, seed), PTX_MOD(MASK, mask),
        PTX_IN(S32, index, int(threadIdx.x))
    );
    out[4] = float(r.bits) + float(seed) + float(mask);
    PTX_INJECT_TOK(SITE(4), OPERANDS);
    out[6] = z;

    float v[17];
#pragma unroll
    for (int i = 0; i < 17; ++i) v[i] = out[8 + i];
    PTX_INJECT(
        "many", PTX_MOD(F32, v0, v[0]), PTX_IN(F32, v1, v[1]), PTX_IN(F32, v2, v[2]), PTX_IN(F32, v3, v[3]),
        PTX_IN(F32, v4, v[4]), PTX_IN(F32, v5, v[5]), PTX_IN(F32, v6, v[6]), PTX_IN(F32, v7, v[7]), PTX_IN(F32, v8, v[8]),
        PTX_IN(F32, v9, v[9]), PTX_IN(F32, v10, v[10]), PTX_IN(F32, v11, v[11]), PTX_IN(F32, v12, v[12]), PTX_IN(F32, v13, v[13]),
        PTX_IN(F32, v14, v[14]), PTX_IN(F32, v15, v[15]), PTX_IN(F32, v[16])
    );
    out[5] = v[0] + y;
}
