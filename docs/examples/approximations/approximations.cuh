// Approximations that `evo run approximation` found and `evo prove` has proven: see docs/approximations.md.
// Bounds hold for each value of the format in the interval: on any GPU that keeps the PTX ISA's bounds, or as they say.
#pragma once

// f32 in [-87.0, 88.0], 2237530113 inputs.
// 2 instructions, 9 issue slots of a warp on sm_90.
// error at most 68.4637 ulp
// error at most 6.75541e+32 absolute
// error at most 4.1109e-06 relative
__device__ __forceinline__ float exp_f32_9(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<2>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, 0f3FB8AA3B;\n\t"
        "ex2.approx.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_1;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-87.0, 88.0], 2237530113 inputs.
// 7 instructions, 14 issue slots of a warp on sm_90.
// error at most 5.4982 ulp
// error at most 5.38231e+31 absolute
// error at most 3.57228e-07 relative
__device__ __forceinline__ float exp_f32_14(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, 0f3FB8AA3B;\n\t"
        "ex2.approx.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "neg.ftz.f32 %%_s0_2, %%_s0_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%x, 0f3FB8AA3B, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%x, 0f32A57060, %%_s0_3;\n\t"
        "mul.rn.ftz.f32 %%_s0_5, 0f3F317218, %%_s0_4;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_1, %%_s0_5, %%_s0_1;\n\t"
        "mov.f32 %%y, %%_s0_6;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-3.141592502593994, 3.141592502593994], 2157060021 inputs.
// 7 instructions, 7 issue slots of a warp on sm_90.
// error at most 8.88759e+06 ulp
// error at most 3.59001e-07 absolute
// error at most 1.00001 relative
__device__ __forceinline__ float sin_f32_7(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0fB2AEF1E0, %%_s0_0, 0f36352EA2;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0fB94FB5AD;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0f3C0884A7;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0fBE2AAA5F;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0f3F7FFFF9;\n\t"
        "mul.rn.ftz.f32 %%_s0_6, %%_s0_5, %%x;\n\t"
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
// error at most 8.38861e+06 ulp
// error at most 2.92436e-07 absolute
// error at most 1.00001 relative
__device__ __forceinline__ float sin_f32_8(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<8>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0f2EF42655, %%_s0_0, 0fB2CCE807;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0f3637FDC7;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0fB94FF5C2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0f3C088761;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0fBE2AAA90;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_0, 0f3F7FFFFD;\n\t"
        "mul.rn.ftz.f32 %%_s0_7, %%_s0_6, %%x;\n\t"
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
// error at most 2.20091e+07 ulp
// error at most 3.39473e-07 absolute
// error at most 1.78882 relative
__device__ __forceinline__ float cos_f32_7(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, 0f30ED5840, %%_s0_0, 0fB49131E0;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0, 0f37CFB46E;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_0, 0fBAB604D9;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_0, 0f3D2AAA28;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_0, 0fBEFFFFF0;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_0, 0f3F7FFFFF;\n\t"
        "mov.f32 %%y, %%_s0_6;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-1.5, 1.5], 2139095041 inputs.
// 7 instructions, 15 issue slots of a warp on sm_90.
// error at most 19.0648 ulp
// error at most 1.81816e-05 absolute
// error at most 1.29239e-06 relative
__device__ __forceinline__ float tan_f32_15(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_1, %%_s0_0, 0f4179600E, 0fC3D383C1;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_0, %%_s0_1, 0f446D3941;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_0, 0f3F8C9BC9, 0fC2D5771F;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_0, %%_s0_3, 0f446D3941;\n\t"
        "mul.rn.ftz.f32 %%_s0_5, %%x, %%_s0_4;\n\t"
        "div.approx.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_2;\n\t"
        "mov.f32 %%y, %%_s0_6;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-9.0, 9.0], 2183135233 inputs.
// 5 instructions, 20 issue slots of a warp on sm_90.
// error at most 2.55212e+38 ulp
// error at most 6.07122e-07 absolute
// error at most 3.04237e+31 relative
__device__ __forceinline__ float tanh_f32_20(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<5>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, 0f4038AA3B;\n\t"
        "ex2.approx.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "add.rn.ftz.f32 %%_s0_2, %%_s0_1, 0f3F800000;\n\t"
        "div.approx.ftz.f32 %%_s0_3, 0f40000000, %%_s0_2;\n\t"
        "sub.rn.ftz.f32 %%_s0_4, 0f3F800000, %%_s0_3;\n\t"
        "mov.f32 %%y, %%_s0_4;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-8.0, 8.0], 2181038081 inputs.
// 5 instructions, 19 issue slots of a warp on sm_90.
// error at most 88674 ulp
// error at most 2.58087e-06 absolute
// error at most 0.00769022 relative
__device__ __forceinline__ float softplus_f32_19(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<5>;\n\t"
        "mul.rn.ftz.f32 %%_s0_0, %%x, 0fBFB8AA36;\n\t"
        "ex2.approx.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "add.rn.ftz.f32 %%_s0_2, %%_s0_1, 0f3F7FFFFE;\n\t"
        "lg2.approx.ftz.f32 %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, 0f3F31721D, %%x;\n\t"
        "mov.f32 %%y, %%_s0_4;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}

// f32 in [-8.0, 8.0], 2181038081 inputs.
// 11 instructions, 19 issue slots of a warp on sm_90.
// error at most 6.8656e+35 ulp
// error at most 2.71694e-07 absolute
// error at most 8.18443e+28 relative
__device__ __forceinline__ float gelu_f32_19(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<11>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f308439FE;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0f380C79A6, %%_s0_1, 0fBA4A4E9E;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0f3C047897;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0fBD5AC774;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0fBEEAE4B7;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0fBF935A71;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0f40E0000E;\n\t"
        "ex2.approx.ftz.f32 %%_s0_8, %%_s0_7;\n\t"
        "mul.rn.ftz.f32 %%_s0_9, %%_s0_1, %%_s0_8;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, 0fBB7FFFF9, %%_s0_9, %%_s0_0;\n\t"
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
// error at most 0.589068 ulp
// error at most 4.38053e+32 absolute
// error at most 0.00420658 relative
__device__ __forceinline__ float gelu_bf16_20(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<12>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f00003D21;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0fB4B3EF63, %%_s0_1, 0f379B14F7;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0fB9E1382B;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0f3BB5B90F;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0fBD37637A;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0fBEF1CB0D;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0fBF925C23;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1, 0f40DFEE69;\n\t"
        "ex2.approx.ftz.f32 %%_s0_9, %%_s0_8;\n\t"
        "mul.rn.ftz.f32 %%_s0_10, %%_s0_1, %%_s0_9;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, 0fBB80237F, %%_s0_10, %%_s0_0;\n\t"
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
// 14 instructions, 22 issue slots of a warp on sm_90.
// error at most 0.503897 ulp
// error at most 4.38053e+32 absolute
// error at most 0.00381197 relative
__device__ __forceinline__ float gelu_bf16_22(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<14>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f00000000;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0fB106E349, %%_s0_1, 0f3418DBE4;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0fB6987CE6;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0f38B14ABB;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0fBA86885C;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0f3C0E4972;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0fBD5D19B9;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1, 0fBEEAE773;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_1, 0fBF935287;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_1, 0f40DFFFBC;\n\t"
        "ex2.approx.ftz.f32 %%_s0_11, %%_s0_10;\n\t"
        "mul.rn.ftz.f32 %%_s0_12, %%_s0_1, %%_s0_11;\n\t"
        "fma.rn.ftz.f32 %%_s0_13, 0fBB800000, %%_s0_12, %%_s0_0;\n\t"
        "mov.f32 %%y, %%_s0_13;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int gelu_bf16_22_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(gelu_bf16_22(b)), "f"(gelu_bf16_22(a)));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 18 instructions, 29 issue slots of a warp on sm_90.
// error at most 0.908928 ulp
// error at most 0.00416105 absolute
// error at most 0.00520469 relative
__device__ __forceinline__ float gelu_grad_bf16_29(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<18>;\n\t"
        "copysign.f32 %%_s0_0, %%x, 0f3F7FF080;\n\t"
        "max.ftz.f32 %%_s0_1, %%_s0_0, 0f00000000;\n\t"
        "abs.ftz.f32 %%_s0_2, %%x;\n\t"
        "min.ftz.f32 %%_s0_3, %%_s0_2, 0f417007F7;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, 0f30548C33, %%_s0_3, 0fB3308316;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_3, 0f3571BC5D;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_3, 0fB7316D6B;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_3, 0f3898E58C;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_3, 0fB9A18139;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_3, 0f3A598716;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_3, 0fBB4946BC;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_3, 0f3AFF9410;\n\t"
        "mul.rn.ftz.f32 %%_s0_12, 0fBF38AA1F, %%_s0_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_13, %%_s0_12, %%_s0_3, 0f40FFFF7B;\n\t"
        "ex2.approx.ftz.f32 %%_s0_14, %%_s0_13;\n\t"
        "copysign.f32 %%_s0_15, %%x, %%_s0_14;\n\t"
        "mul.rn.ftz.f32 %%_s0_16, %%_s0_15, %%_s0_11;\n\t"
        "fma.rn.ftz.f32 %%_s0_17, 0fBF8002EE, %%_s0_16, %%_s0_1;\n\t"
        "mov.f32 %%y, %%_s0_17;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int gelu_grad_bf16_29_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(gelu_grad_bf16_29(b)), "f"(gelu_grad_bf16_29(a)));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 19 instructions, 30 issue slots of a warp on sm_90.
// error at most 0.691907 ulp
// error at most 0.00390926 absolute
// error at most 0.00461168 relative
__device__ __forceinline__ float gelu_grad_bf16_30(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<19>;\n\t"
        "copysign.f32 %%_s0_0, %%x, 0f3F7FFF9E;\n\t"
        "max.ftz.f32 %%_s0_1, %%_s0_0, 0f00000000;\n\t"
        "abs.ftz.f32 %%_s0_2, %%x;\n\t"
        "min.ftz.f32 %%_s0_3, %%_s0_2, 0f417007FE;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, 0fAEEE63F5, %%_s0_3, 0f31DF6E04;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_3, 0fB430A877;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_3, 0f361A029B;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_3, 0fB7A306F8;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_3, 0f38DB2FA6;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_3, 0fB9C10C72;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_3, 0f3A68029F;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_3, 0fBB4AA2C4;\n\t"
        "fma.rn.ftz.f32 %%_s0_12, %%_s0_11, %%_s0_3, 0f3AFFCE2D;\n\t"
        "mul.rn.ftz.f32 %%_s0_13, 0fBF38AA19, %%_s0_3;\n\t"
        "fma.rn.ftz.f32 %%_s0_14, %%_s0_13, %%_s0_3, 0f41000005;\n\t"
        "ex2.approx.ftz.f32 %%_s0_15, %%_s0_14;\n\t"
        "copysign.f32 %%_s0_16, %%x, %%_s0_15;\n\t"
        "mul.rn.ftz.f32 %%_s0_17, %%_s0_16, %%_s0_12;\n\t"
        "fma.rn.ftz.f32 %%_s0_18, 0fBF7FFFDB, %%_s0_17, %%_s0_1;\n\t"
        "mov.f32 %%y, %%_s0_18;\n\t"
        "}\n\t"
        "mov.f32 %0, %%y;\n\t"
        "}"
        : "=f"(y)
        : "f"(x));
    return y;
}
// Two of them, rounded: x and the result are the bits of a __nv_bfloat162. From sm_80 on.
__device__ __forceinline__ unsigned int gelu_grad_bf16_30_x2(unsigned int x) {
    const float a = __uint_as_float(x << 16), b = __uint_as_float(x & 0xFFFF0000u);
    unsigned int y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(gelu_grad_bf16_30(b)), "f"(gelu_grad_bf16_30(a)));
    return y;
}

// bf16 in [-3.3895313892515355e+38, 3.3895313892515355e+38], 65279 inputs; x is a value of bf16, round the result to it.
// 9 instructions, 24 issue slots of a warp on sm_90.
// error at most 0.50011 ulp
// error at most 1.42129e+32 absolute
// error at most 0.00389192 relative
__device__ __forceinline__ float silu_bf16_24(float x) {
    float y;
    asm("{\n\t"
        ".reg .f32 %%x, %%y;\n\t"
        "mov.f32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<9>;\n\t"
        "max.ftz.f32 %%_s0_0, %%x, 0f00000000;\n\t"
        "abs.ftz.f32 %%_s0_1, %%x;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, %%_s0_1, 0fBFB8AA3B, 0f41000000;\n\t"
        "ex2.approx.ftz.f32 %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, 0f3B800000, 0f3F800000;\n\t"
        "rcp.approx.ftz.f32 %%_s0_5, %%_s0_4;\n\t"
        "mul.rn.ftz.f32 %%_s0_6, %%_s0_1, %%_s0_3;\n\t"
        "mul.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_5;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, 0fBB800000, %%_s0_0;\n\t"
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
// error at most 0.617828 ulp
// error at most 0.0024136 absolute
// error at most 0.00409823 relative
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
