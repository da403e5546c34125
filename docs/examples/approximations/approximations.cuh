// Approximations that `evo run approximation` found and `evo prove` has proven: see docs/approximations.md.
// Bounds hold for each value of the format in the interval: on any GPU that keeps the PTX ISA's bounds, or as they say.
#pragma once

// f32 in [-87.0, 88.0], 2237530113 inputs.
// 14 instructions, 13 issue slots of a warp on sm_90.
// error at most 0.891306 ulp
// error at most 7.09929e+30 absolute
// error at most 7.54622e-08 relative
__device__ __forceinline__ float exp_f32_13(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<12>;\n\t"
        ".reg .u32 %%_s1_<2>;\n\t"
        "fma.rn.ftz.f32 %%_s0_0, %%x, 0f3FB8AA3A, 0f4B40007F;\n\t"
        "mov.b32 %%_s1_0, %%_s0_0;\n\t"
        "shl.b32 %%_s1_1, %%_s1_0, 0x00000017U;\n\t"
        "mov.b32 %%_s0_1, %%_s1_1;\n\t"
        "sub.rn.ftz.f32 %%_s0_2, 0f4B40007F, %%_s0_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, 0f3F317200, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_2, 0f35BFBE99, %%_s0_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, 0f3AB4BC01, %%_s0_4, 0f3C092313;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_4, 0f3D2AAD06;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_4, 0f3E2AAA3D;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_4, 0f3EFFFFFD;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_4, 0f3F800000;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_4, 0f3F800000;\n\t"
        "mul.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_1;\n\t"
        "mov.f32 %%y, %%_s0_11;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-126.0, 127.0], 2247753729 inputs.
// 1 instructions, 8 issue slots of a warp on sm_90.
// error at most 8.38861e+06 ulp
// error at most 5.07061e+31 absolute
// error at most 1.00001 relative
__device__ __forceinline__ float exp2_f32_8(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<1>;\n\t"
        "ex2.approx.ftz.f32 %%_s0_0, %%x;\n\t"
        "mov.f32 %%y, %%_s0_0;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-0.8999999761581421, 1000.0], 2212521575 inputs.
// 24 instructions, 24 issue slots of a warp on sm_90.
// error at most 1.26839 ulp
// error at most 2.81717e-07 absolute
// error at most 9.32328e-08 relative
__device__ __forceinline__ float log1p_f32_24(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<17>;\n\t"
        ".reg .u32 %%_s1_<6>;\n\t"
        ".reg .s32 %%_s2_<1>;\n\t"
        "add.rn.ftz.f32 %%_s0_0, %%x, 0f3F800000;\n\t"
        "mov.b32 %%_s1_0, %%_s0_0;\n\t"
        "sub.u32 %%_s1_1, %%_s1_0, 0x3F400000U;\n\t"
        "and.b32 %%_s1_2, %%_s1_1, 0xFF800000U;\n\t"
        "sub.u32 %%_s1_3, 0x40800000U, %%_s1_2;\n\t"
        "mov.b32 %%_s0_1, %%_s1_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, 0f3E800000, 0fBF800000;\n\t"
        "mov.b32 %%_s1_4, %%x;\n\t"
        "sub.u32 %%_s1_5, %%_s1_4, %%_s1_2;\n\t"
        "mov.b32 %%_s0_3, %%_s1_5;\n\t"
        "add.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, 0fBD3D4ED4, %%_s0_4, 0f3DD60F51;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_4, 0fBE05AEAE;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_4, 0f3E13E83A;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_4, 0fBE2A8984;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_4, 0f3E4CBC8A;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_4, 0fBE7FFFFF;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_4, 0f3EAAAABE;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_4, 0fBF000000;\n\t"
        "mul.rn.ftz.f32 %%_s0_13, %%_s0_4, %%_s0_4;\n\t"
        "fma.rn.ftz.f32 %%_s0_14, %%_s0_13, %%_s0_12, %%_s0_4;\n\t"
        "mov.b32 %%_s2_0, %%_s1_2;\n\t"
        "cvt.rn.f32.s32 %%_s0_15, %%_s2_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_16, %%_s0_15, 0f33B17218, %%_s0_14;\n\t"
        "mov.f32 %%y, %%_s0_16;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-0.8999999761581421, 1000.0], 2212521575 inputs.
// 25 instructions, 25 issue slots of a warp on sm_90.
// error at most 1.26839 ulp
// error at most 2.79733e-07 absolute
// error at most 9.32328e-08 relative
__device__ __forceinline__ float log1p_f32_25(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<18>;\n\t"
        ".reg .u32 %%_s1_<6>;\n\t"
        ".reg .s32 %%_s2_<1>;\n\t"
        "add.rn.ftz.f32 %%_s0_0, %%x, 0f3F800000;\n\t"
        "mov.b32 %%_s1_0, %%_s0_0;\n\t"
        "sub.u32 %%_s1_1, %%_s1_0, 0x3F400000U;\n\t"
        "and.b32 %%_s1_2, %%_s1_1, 0xFF800000U;\n\t"
        "sub.u32 %%_s1_3, 0x40800000U, %%_s1_2;\n\t"
        "mov.b32 %%_s0_1, %%_s1_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, 0f3E800000, 0fBF800000;\n\t"
        "mov.b32 %%_s1_4, %%x;\n\t"
        "sub.u32 %%_s1_5, %%_s1_4, %%_s1_2;\n\t"
        "mov.b32 %%_s0_3, %%_s1_5;\n\t"
        "add.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, 0f3CE0D2DB, %%_s0_4, 0fBD983848;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_4, 0f3DDD1649;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_4, 0fBE016E24;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_4, 0f3E12FAE6;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_4, 0fBE2AC752;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_4, 0f3E4CCA64;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_4, 0fBE7FFE7F;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_4, 0f3EAAAAA3;\n\t"
        "fma.rn.ftz.f32 %%_s0_13, %%_s0_12, %%_s0_4, 0fBF000001;\n\t"
        "mul.rn.ftz.f32 %%_s0_14, %%_s0_4, %%_s0_4;\n\t"
        "fma.rn.ftz.f32 %%_s0_15, %%_s0_14, %%_s0_13, %%_s0_4;\n\t"
        "mov.b32 %%_s2_0, %%_s1_2;\n\t"
        "cvt.rn.f32.s32 %%_s0_16, %%_s2_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_17, %%_s0_16, 0f33B17218, %%_s0_15;\n\t"
        "mov.f32 %%y, %%_s0_17;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-16.0, 16.0], 2197815297 inputs.
// 16 instructions, 15 issue slots of a warp on sm_90.
// error at most 1.44019 ulp
// error at most 0.65262 absolute
// error at most 1.32304e-07 relative
__device__ __forceinline__ float expm1_f32_15(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<14>;\n\t"
        ".reg .u32 %%_s1_<2>;\n\t"
        "fma.rn.ftz.f32 %%_s0_0, %%x, 0f3FB975D6, 0fBDAE147B;\n\t"
        "add.rn.ftz.f32 %%_s0_1, %%_s0_0, 0f4B40007F;\n\t"
        "mov.b32 %%_s1_0, %%_s0_1;\n\t"
        "shl.b32 %%_s1_1, %%_s1_0, 0x00000017U;\n\t"
        "mov.b32 %%_s0_2, %%_s1_1;\n\t"
        "sub.rn.ftz.f32 %%_s0_3, %%_s0_2, 0f3F800000;\n\t"
        "sub.rn.ftz.f32 %%_s0_4, 0f4B40007F, %%_s0_1;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, 0f3F317200, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_4, 0f35BFD4FB, %%_s0_5;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, 0f3ABAD86E, %%_s0_6, 0f3C090F49;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_6, 0f3D2AA77C;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_6, 0f3E2AAA65;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_6, 0f3F000001;\n\t"
        "mul.rn.ftz.f32 %%_s0_11, %%_s0_6, %%_s0_6;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_10, %%_s0_6;\n\t"
        "fma.rn.ftz.f32 %%_s0_13, %%_s0_2, %%_s0_12, %%_s0_3;\n\t"
        "mov.f32 %%y, %%_s0_13;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-16.0, 16.0], 2197815297 inputs.
// 17 instructions, 16 issue slots of a warp on sm_90.
// error at most 1.32333 ulp
// error at most 0.54031 absolute
// error at most 1.18358e-07 relative
__device__ __forceinline__ float expm1_f32_16(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<15>;\n\t"
        ".reg .u32 %%_s1_<2>;\n\t"
        "fma.rn.ftz.f32 %%_s0_0, %%x, 0f3FB8AA3B, 0fBDAE147C;\n\t"
        "add.rn.ftz.f32 %%_s0_1, %%_s0_0, 0f4B40007F;\n\t"
        "mov.b32 %%_s1_0, %%_s0_1;\n\t"
        "shl.b32 %%_s1_1, %%_s1_0, 0x00000017U;\n\t"
        "mov.b32 %%_s0_2, %%_s1_1;\n\t"
        "sub.rn.ftz.f32 %%_s0_3, %%_s0_2, 0f3F800000;\n\t"
        "sub.rn.ftz.f32 %%_s0_4, 0f4B40007F, %%_s0_1;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, 0f3F317200, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_4, 0f35BFC1A6, %%_s0_5;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, 0f3809BBDD, %%_s0_6, 0f3ABECE5D;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_6, 0f3C08CFC6;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_6, 0f3D2AA47C;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_6, 0f3E2AAA91;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_6, 0f3F000001;\n\t"
        "mul.rn.ftz.f32 %%_s0_12, %%_s0_6, %%_s0_6;\n\t"
        "fma.rn.ftz.f32 %%_s0_13, %%_s0_12, %%_s0_11, %%_s0_6;\n\t"
        "fma.rn.ftz.f32 %%_s0_14, %%_s0_2, %%_s0_13, %%_s0_3;\n\t"
        "mov.f32 %%y, %%_s0_14;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-3.141592502593994, 3.141592502593994], 2157060021 inputs.
// 7 instructions, 7 issue slots of a warp on sm_90.
// error at most 8.38862e+06 ulp
// error at most 3.35505e-07 absolute
// error at most 1.00001 relative
__device__ __forceinline__ float sin_f32_7(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0fB2AD4E44, %%_s0_0, 0f3634D208;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0fB94FA6AF;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0f3C088393;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0fBE2AAA3E;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0f3F7FFFF5;\n\t"
        "mul.rn.ftz.f32 %%_s0_6, %%x, %%_s0_5;\n\t"
        "mov.f32 %%y, %%_s0_6;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-3.141592502593994, 3.141592502593994], 2157060021 inputs.
// 8 instructions, 8 issue slots of a warp on sm_90.
// error at most 4.80157e+06 ulp
// error at most 2.79873e-07 absolute
// error at most 0.350446 relative
__device__ __forceinline__ float sin_f32_8(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<8>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0f2F0E5F56, %%_s0_0, 0fB2D2ACB3;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0f3638A1FC;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0fB95007A1;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0f3C088859;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0fBE2AAAA8;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_0, 0f3F800000;\n\t"
        "mul.rn.ftz.f32 %%_s0_7, %%x, %%_s0_6;\n\t"
        "mov.f32 %%y, %%_s0_7;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-3.141592502593994, 3.141592502593994], 2157060021 inputs.
// 7 instructions, 7 issue slots of a warp on sm_90.
// error at most 1.30736e+07 ulp
// error at most 2.95294e-07 absolute
// error at most 1.06258 relative
__device__ __forceinline__ float cos_f32_7(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0f30E31664, %%_s0_0, 0fB4904212;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0f37CF993D;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0fBAB60441;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0f3D2AAA48;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0fBEFFFFFB;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_0, 0f3F800001;\n\t"
        "mov.f32 %%y, %%_s0_6;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-3.141592502593994, 3.141592502593994], 2157060021 inputs.
// 8 instructions, 8 issue slots of a warp on sm_90.
// error at most 1.03441e+07 ulp
// error at most 3.31764e-07 absolute
// error at most 0.973526 relative
__device__ __forceinline__ float cos_f32_8(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<8>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0f316E1331, %%_s0_0, 0fB51181E0;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0f384FD2E0;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0fBB360CAB;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0f3DAAAECB;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0fBF800335;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_0, 0f3F80066D;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, 0f3EFFF996, 0f3EFFF996;\n\t"
        "mov.f32 %%y, %%_s0_7;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-1.5, 1.5], 2139095041 inputs.
// 7 instructions, 15 issue slots of a warp on sm_90.
// error at most 8.38862e+06 ulp
// error at most 1.75707e-05 absolute
// error at most 1.00001 relative
__device__ __forceinline__ float tan_f32_15(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0f3C855A25, %%_s0_0, 0fBEE4E2B6;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0f3F8080BE;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, 0f3A9314A5, %%_s0_0, 0fBDE63199;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0f3F8080BE;\n\t"
        "div.approx.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_2;\n\t"
        "mul.rn.ftz.f32 %%_s0_6, %%x, %%_s0_5;\n\t"
        "mov.f32 %%y, %%_s0_6;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-1.5, 1.5], 2139095041 inputs.
// 15 instructions, 22 issue slots of a warp on sm_90.
// error at most 7.41687 ulp
// error at most 6.23838e-06 absolute
// error at most 5.50769e-07 relative
__device__ __forceinline__ float tan_f32_22(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<15>;\n\t"
        "fma.rn.ftz.f32 %%_s0_0, %%x, %%x, 0fC01DE9E6;\n\t"
        "rcp.approx.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "mul.rn.ftz.f32 %%_s0_2, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, 0f32DB670C, %%_s0_2, 0f34B60C7C;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_2, 0f36F51867;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_2, 0f39349D7E;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_2, 0f3B8E6C70;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_2, 0fBF528D33;\n\t"
        "mul.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1;\n\t"
        "neg.ftz.f32 %%_s0_9, %%_s0_8;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_0, %%_s0_7;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_8, 0f338C2054, %%_s0_10;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_1, %%_s0_8;\n\t"
        "mul.rn.ftz.f32 %%_s0_13, %%x, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_14, %%_s0_13, %%_s0_12, %%x;\n\t"
        "mov.f32 %%y, %%_s0_14;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-1.5, 1.5], 2139095041 inputs.
// 19 instructions, 26 issue slots of a warp on sm_90.
// error at most 7.6042 ulp
// error at most 7.08138e-06 absolute
// error at most 5.46597e-07 relative
__device__ __forceinline__ float tan_f32_26(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<19>;\n\t"
        "fma.rn.ftz.f32 %%_s0_0, %%x, %%x, 0fC01DE9E6;\n\t"
        "rcp.approx.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "mul.rn.ftz.f32 %%_s0_2, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, 0f34392D2C, %%_s0_2, 0fB602DF37;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_2, 0f371CD7AF;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_2, 0fB7CFCC1C;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_2, 0f38267539;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_2, 0fB823DBF3;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_2, 0f380357C5;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_2, 0f392BB3F6;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_2, 0f3B8E7955;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_2, 0fBF528D34;\n\t"
        "mul.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_1;\n\t"
        "neg.ftz.f32 %%_s0_13, %%_s0_12;\n\t"
        "fma.rn.ftz.f32 %%_s0_14, %%_s0_13, %%_s0_0, %%_s0_11;\n\t"
        "fma.rn.ftz.f32 %%_s0_15, %%_s0_12, 0f3327A388, %%_s0_14;\n\t"
        "fma.rn.ftz.f32 %%_s0_16, %%_s0_15, %%_s0_1, %%_s0_12;\n\t"
        "mul.rn.ftz.f32 %%_s0_17, %%x, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_18, %%_s0_17, %%_s0_16, %%x;\n\t"
        "mov.f32 %%y, %%_s0_18;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-16.0, 16.0], 2197815297 inputs.
// 9 instructions, 26 issue slots of a warp on sm_90.
// error at most 108295 ulp
// error at most 4.02336e-07 absolute
// error at most 0.00683759 relative
__device__ __forceinline__ float sigmoid_f32_26(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<9>;\n\t"
        "copysign.f32 %%_s0_0, %%x, 0f3F800000;\n\t"
        "max.ftz.f32 %%_s0_1, %%_s0_0, 0f318A7420;\n\t"
        "abs.ftz.f32 %%_s0_2, %%x;\n\t"
        "mul.rn.ftz.f32 %%_s0_3, %%_s0_2, 0fBFB8AA3A;\n\t"
        "ex2.approx.ftz.f32 %%_s0_4, %%_s0_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, 0f3F7FFFFE, %%_s0_4, 0f3F800000;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, 0fBF7FFFFF, %%_s0_4, 0f31A4E4D1;\n\t"
        "div.approx.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_5;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_0, %%_s0_7, %%_s0_1;\n\t"
        "mov.f32 %%y, %%_s0_8;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-8.0, 8.0], 2181038081 inputs.
// 12 instructions, 20 issue slots of a warp on sm_90.
// error at most 1483.02 ulp
// error at most 7.34214e-07 absolute
// error at most 0.000128635 relative
__device__ __forceinline__ float softplus_f32_20(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<12>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f321BE9F2;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "mul.rn.ftz.f32 %%_s0_2, %%_s0_1, 0fBFB8AA0B;\n\t"
        "ex2.approx.ftz.f32 %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, 0f41326B70, %%_s0_3, 0fC263918E;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_3, 0f430A6D57;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_3, 0fC3679E1E;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_3, 0f43A81FDA;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_3, 0fC3FFD24C;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_3, 0f44800DA2;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_3, 0f3810956E;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, 0f3A7FE2B0, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_11;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-8.0, 8.0], 2181038081 inputs.
// 13 instructions, 21 issue slots of a warp on sm_90.
// error at most 357.377 ulp
// error at most 5.60043e-07 absolute
// error at most 3.09814e-05 relative
__device__ __forceinline__ float softplus_f32_21(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<13>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f00000000;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "mul.rn.ftz.f32 %%_s0_2, %%_s0_1, 0fBFB8AA3B;\n\t"
        "ex2.approx.ftz.f32 %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, 0f40D7562A, %%_s0_3, 0fC215F656;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_3, 0f42C523EA;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_3, 0fC32C8C4B;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_3, 0f4376F1D1;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_3, 0fC3A9F026;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_3, 0f43FFF13F;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_3, 0fC47FFFCA;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_3, 0fB74096D1;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, 0fBA800000, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_12;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-8.0, 8.0], 2181038081 inputs.
// 11 instructions, 19 issue slots of a warp on sm_90.
// error at most 5.60687e+34 ulp
// error at most 2.44449e-07 absolute
// error at most 6.68391e+27 relative
__device__ __forceinline__ float gelu_f32_19(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<11>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f2EACC65C;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0f38127E30, %%_s0_1, 0fBA4D8699;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0f3C0523B2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0fBD5B0A0B;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0fBEEADEB4;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0fBF935ADD;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0f41100008;\n\t"
        "ex2.approx.ftz.f32 %%_s0_8, %%_s0_7;\n\t"
        "mul.rn.ftz.f32 %%_s0_9, %%_s0_1, %%_s0_8;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, 0fBA7FFFEE, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_10;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-8.0, 8.0], 2181038081 inputs.
// 9 instructions, 24 issue slots of a warp on sm_90.
// error at most 1.94287e+37 ulp
// error at most 2.82684e-07 absolute
// error at most 2.31609e+30 relative
__device__ __forceinline__ float silu_f32_24(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<9>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f32E9DD48;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, 0fBFB8AA3C, 0f41000001;\n\t"
        "ex2.approx.ftz.f32 %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, 0f3B800001, 0f3F7FFFF6;\n\t"
        "rcp.approx.ftz.f32 %%_s0_5, %%_s0_4;\n\t"
        "mul.rn.ftz.f32 %%_s0_6, %%_s0_1, %%_s0_3;\n\t"
        "mul.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_5;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, 0fBB7FFFF0, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_8;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [0.0010000000474974513, 1000.0], 167177618 inputs.
// 15 instructions, 16 issue slots of a warp on sm_90.
// error at most 0.819632 ulp
// error at most 6.67285e-07 absolute
// error at most 7.98494e-08 relative
__device__ __forceinline__ float cbrt_f32_16(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<11>;\n\t"
        ".reg .u32 %%_s1_<4>;\n\t"
        "mov.b32 %%_s1_0, %%x;\n\t"
        "mul.hi.u32 %%_s1_1, %%_s1_0, 0x55555556U;\n\t"
        "sub.u32 %%_s1_2, 0x54A2FA8CU, %%_s1_1;\n\t"
        "and.b32 %%_s1_3, %%_s1_2, 0xFFFFF000U;\n\t"
        "mov.b32 %%_s0_0, %%_s1_3;\n\t"
        "mul.rn.ftz.f32 %%_s0_1, %%_s0_0, %%_s0_0;\n\t"
        "mul.rn.ftz.f32 %%_s0_2, %%x, %%_s0_1;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0fBF800000;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, 0f3EBC92A9, %%_s0_3, 0fBEDA3B64;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_3, 0f3EE7E6EF;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_3, 0fBEFCD5DA;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_3, 0f3F0E38E3;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_3, 0fBF2AAAAB;\n\t"
        "mul.rn.ftz.f32 %%_s0_9, %%_s0_2, %%_s0_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_8, %%_s0_2;\n\t"
        "mov.f32 %%y, %%_s0_10;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 12 instructions, 20 issue slots of a warp on sm_90.
// error at most 0.637573 ulp
// error at most 3.83066e+32 absolute
// error at most 0.00420625 relative
__device__ __forceinline__ float gelu_bf16_20(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<12>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f80048F76;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0fB4AE2B9D, %%_s0_1, 0f3796AF5E;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0fB9DC1FA6;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0f3BB2F07B;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0fBD35FB92;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0fBEF206B7;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0fBF926686;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1, 0f410FFDA2;\n\t"
        "ex2.approx.ftz.f32 %%_s0_9, %%_s0_8;\n\t"
        "mul.rn.ftz.f32 %%_s0_10, %%_s0_1, %%_s0_9;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, 0fBA80081A, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_11;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int gelu_bf16_20_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(gelu_bf16_20(b)), "f"(gelu_bf16_20(a)));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 18 instructions, 28 issue slots of a warp on sm_90.
// error at most 1.02131 ulp
// error at most 0.00438245 absolute
// error at most 0.00520163 relative
__device__ __forceinline__ float gelu_grad_bf16_28(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<18>;\n\t"
        "copysign.f32 %%_s0_0, %%x, 0f3F7FEC37;\n\t"
        "max.ftz.f32 %%_s0_1, %%_s0_0, 0f0001006D;\n\t"
        "abs.ftz.f32 %%_s0_2, %%x;\n\t"
        "min.ftz.f32 %%_s0_3, %%_s0_2, 0f41BFDC09;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, 0f2DF44BD1, %%_s0_3, 0fB10FE4B6;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_3, 0f338CDFA9;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_3, 0fB5966355;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_3, 0f3740CEB0;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_3, 0fB89A7C0D;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_3, 0f399D3A5E;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_3, 0fBA51A599;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_3, 0f3B40EA4F;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_3, 0fBAF4C596;\n\t"
        "mul.rn.ftz.f32 %%_s0_13, 0fBF387603, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_14, %%_s0_13, %%x, 0f4101042D;\n\t"
        "ex2.approx.ftz.f32 %%_s0_15, %%_s0_14;\n\t"
        "mul.rn.ftz.f32 %%_s0_16, %%_s0_15, %%_s0_12;\n\t"
        "fma.rn.ftz.f32 %%_s0_17, %%_s0_0, %%_s0_16, %%_s0_1;\n\t"
        "mov.f32 %%y, %%_s0_17;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int gelu_grad_bf16_28_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(gelu_grad_bf16_28(b)), "f"(gelu_grad_bf16_28(a)));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 9 instructions, 24 issue slots of a warp on sm_90.
// error at most 128.001 ulp
// error at most 1.25926e+32 absolute
// error at most 1.00001 relative
__device__ __forceinline__ float silu_bf16_24(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<9>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f8007F60E;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, 0fBFB8AA33, 0f4100001F;\n\t"
        "ex2.approx.ftz.f32 %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, 0f3B7FFE6C, 0f3F8002F7;\n\t"
        "rcp.approx.ftz.f32 %%_s0_5, %%_s0_4;\n\t"
        "mul.rn.ftz.f32 %%_s0_6, %%_s0_1, %%_s0_3;\n\t"
        "mul.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_5;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, 0fBB8000BF, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_8;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int silu_bf16_24_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(silu_bf16_24(b)), "f"(silu_bf16_24(a)));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 1 instructions, 8 issue slots of a warp on sm_90.
// error at most 0.617826 ulp
// error at most 0.00241339 absolute
// error at most 0.00409822 relative
__device__ __forceinline__ float tanh_bf16_8(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<1>;\n\t"
        "tanh.approx.f32 %%_s0_0, %%x;\n\t"
        "mov.f32 %%y, %%_s0_0;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int tanh_bf16_8_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(tanh_bf16_8(b)), "f"(tanh_bf16_8(a)));
    return y;
}
