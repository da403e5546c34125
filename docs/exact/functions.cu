// Functions of docs/exact.md that are written in CUDA C: evo run exact --set task_options.function=FILE:NAME

#include <cuda_fp16.h>

struct Words4 {
    unsigned y[4];
};

// Eight unsigned nibbles to f16 by lop3 and magic numbers, as kernels have it.
Words4 nibbles(unsigned q) {
    Words4 r;
    const unsigned top = q >> 8;
    asm("lop3.b32 %0, %1, 0x000f000f, 0x64006400, 0xea;" : "=r"(r.y[0]) : "r"(q));
    asm("lop3.b32 %0, %1, 0x00f000f0, 0x64006400, 0xea;" : "=r"(r.y[1]) : "r"(q));
    asm("lop3.b32 %0, %1, 0x000f000f, 0x64006400, 0xea;" : "=r"(r.y[2]) : "r"(top));
    asm("lop3.b32 %0, %1, 0x00f000f0, 0x64006400, 0xea;" : "=r"(r.y[3]) : "r"(top));
    asm("sub.f16x2 %0, %1, %2;" : "=r"(r.y[0]) : "r"(r.y[0]), "r"(0x64006400));
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r.y[1]) : "r"(r.y[1]), "r"(0x2c002c00), "r"(0xd400d400));
    asm("sub.f16x2 %0, %1, %2;" : "=r"(r.y[2]) : "r"(r.y[2]), "r"(0x64006400));
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r.y[3]) : "r"(r.y[3]), "r"(0x2c002c00), "r"(0xd400d400));
    return r;
}

// 5, 6 and 5 bits of a color to a byte each; p < 2**16.
unsigned rgb(unsigned p) {
    unsigned r = p >> 11 & 31, g = p >> 5 & 63, b = p & 31;
    return (r << 3 | r >> 2) << 16 | (g << 2 | g >> 4) << 8 | (b << 3 | b >> 2);
}

unsigned average(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }

// Four integers limited to bytes.
unsigned pack(int a, int b, int c, int d) {
    int v[4] = {a, b, c, d};
    unsigned r = 0;
    for (int i = 0; i < 4; i++) r |= (unsigned)min(max(v[i], 0), 255) << 8 * i;
    return r;
}

// Sums of bytes, limited to 255.
unsigned saturated(unsigned a, unsigned b) {
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned s = (a >> 8 * i & 255) + (b >> 8 * i & 255);
        r |= (s > 255 ? 255 : s) << 8 * i;
    }
    return r;
}

unsigned nans(half2 x) { return (__hisnan(x.x) ? 0xffffu : 0u) | (__hisnan(x.y) ? 0xffff0000u : 0u); }

// f32 to bf16; no_nan(x).
unsigned rounded(float x) {
    unsigned u = __float_as_uint(x);
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
