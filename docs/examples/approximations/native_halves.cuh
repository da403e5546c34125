// Approximations that `evo run approximation` found and `evo prove` has proven: see docs/approximations.md.
// Bounds hold for each value of the format in the interval: on any GPU that keeps the PTX ISA's bounds, or as they say.
#pragma once

// bf16 in [-8.0, 8.0], 33281 inputs.
// 5 instructions, 2.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 21.5588 ulp
// error at most 0.0560944 absolute
// error at most 0.0882382 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short tanh_native_bf16_2_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s12_<9>;\n\t"
        "mov.b16 %%_s12_0, 0x3F81;\n\t"
        "abs.bf16 %%_s12_1, %%x;\n\t"
        "mov.b16 %%_s12_2, 0xBEAF;\n\t"
        "mov.b16 %%_s12_3, 0x3D42;\n\t"
        "mov.b16 %%_s12_4, 0xBB17;\n\t"
        "fma.rn.bf16 %%_s12_5, %%_s12_4, %%_s12_1, %%_s12_3;\n\t"
        "fma.rn.bf16 %%_s12_6, %%_s12_5, %%_s12_1, %%_s12_2;\n\t"
        "fma.rn.bf16 %%_s12_7, %%_s12_6, %%_s12_1, %%_s12_0;\n\t"
        "mul.rn.bf16 %%_s12_8, %%x, %%_s12_7;\n\t"
        "mov.b16 %%y, %%_s12_8;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int tanh_native_bf16_2_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x3F813F81;\n\t"
        ".reg .b32 %%v2;\n\t"
        "abs.bf16x2 %%v2, %%x;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0xBEAFBEAF;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x3D423D42;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0xBB17BB17;\n\t"
        ".reg .b32 %%v6;\n\t"
        "fma.rn.bf16x2 %%v6, %%v5, %%v2, %%v4;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.bf16x2 %%v7, %%v6, %%v2, %%v3;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.bf16x2 %%v8, %%v7, %%v2, %%v1;\n\t"
        ".reg .b32 %%v9;\n\t"
        "mul.rn.bf16x2 %%v9, %%x, %%v8;\n\t"
        "mov.b32 %%y, %%v9;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// bf16 in [-8.0, 8.0], 33281 inputs.
// 1 instructions, 9 issue slots of a warp a value, of two at once on sm_90.
// error at most 4.25353e+37 ulp
// error at most 0.00390646 absolute
// error at most 3.32308e+35 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short tanh_native_bf16_9(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s12_<1>;\n\t"
        "tanh.approx.bf16 %%_s12_0, %%x;\n\t"
        "mov.b16 %%y, %%_s12_0;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int tanh_native_bf16_9_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "tanh.approx.bf16x2 %%v1, %%x;\n\t"
        "mov.b32 %%y, %%v1;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 6 instructions, 3 issue slots of a warp a value, of two at once on sm_90.
// error at most 344.001 ulp
// error at most 0.0195316 absolute
// error at most 0.168515 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short tanh_native_f16_3(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<11>;\n\t"
        "mov.b16 %%_s5_0, 0x3CAC;\n\t"
        "abs.f16 %%_s5_1, %%x;\n\t"
        "mov.b16 %%_s5_2, 0xB82E;\n\t"
        "mov.b16 %%_s5_3, 0x2F22;\n\t"
        "mov.b16 %%_s5_4, 0xA1D0;\n\t"
        "mov.b16 %%_s5_5, 0x0F45;\n\t"
        "fma.rn.f16 %%_s5_6, %%_s5_5, %%_s5_1, %%_s5_4;\n\t"
        "fma.rn.f16 %%_s5_7, %%_s5_6, %%_s5_1, %%_s5_3;\n\t"
        "fma.rn.f16 %%_s5_8, %%_s5_7, %%_s5_1, %%_s5_2;\n\t"
        "fma.rn.f16 %%_s5_9, %%_s5_8, %%_s5_1, %%_s5_0;\n\t"
        "mul.rn.f16 %%_s5_10, %%x, %%_s5_9;\n\t"
        "mov.b16 %%y, %%_s5_10;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int tanh_native_f16_3_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x3CAC3CAC;\n\t"
        ".reg .b32 %%v2;\n\t"
        "abs.f16x2 %%v2, %%x;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0xB82EB82E;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x2F222F22;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0xA1D0A1D0;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x0F450F45;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.f16x2 %%v7, %%v6, %%v2, %%v5;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.f16x2 %%v8, %%v7, %%v2, %%v4;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v8, %%v2, %%v3;\n\t"
        ".reg .b32 %%v10;\n\t"
        "fma.rn.f16x2 %%v10, %%v9, %%v2, %%v1;\n\t"
        ".reg .b32 %%v11;\n\t"
        "mul.rn.f16x2 %%v11, %%x, %%v10;\n\t"
        "mov.b32 %%y, %%v11;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 1 instructions, 9 issue slots of a warp a value, of two at once on sm_90.
// error at most 8266.01 ulp
// error at most 0.000492705 absolute
// error at most 8.07227 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short tanh_native_f16_9(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<1>;\n\t"
        "tanh.approx.f16 %%_s5_0, %%x;\n\t"
        "mov.b16 %%y, %%_s5_0;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int tanh_native_f16_9_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "tanh.approx.f16x2 %%v1, %%x;\n\t"
        "mov.b32 %%y, %%v1;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// bf16 in [-8.0, 8.0], 33281 inputs.
// 5 instructions, 2.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 4283.16 ulp
// error at most 0.0148213 absolute
// error at most 24.2966 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short sigmoid_native_bf16_2_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s12_<9>;\n\t"
        "mov.b16 %%_s12_0, 0x3F00;\n\t"
        "mov.b16 %%_s12_1, 0x3F0D;\n\t"
        "abs.bf16 %%_s12_2, %%x;\n\t"
        "mov.b16 %%_s12_3, 0xBDCB;\n\t"
        "mov.b16 %%_s12_4, 0x3BBD;\n\t"
        "fma.rn.bf16 %%_s12_5, %%_s12_4, %%_s12_2, %%_s12_3;\n\t"
        "fma.rn.bf16 %%_s12_6, %%_s12_5, %%_s12_2, %%_s12_1;\n\t"
        "mul.rn.bf16 %%_s12_7, %%x, %%_s12_6;\n\t"
        "fma.rn.bf16 %%_s12_8, %%_s12_7, %%_s12_0, %%_s12_0;\n\t"
        "mov.b16 %%y, %%_s12_8;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int sigmoid_native_bf16_2_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x3F003F00;\n\t"
        ".reg .b32 %%v2;\n\t"
        "mov.b32 %%v2, 0x3F0D3F0D;\n\t"
        ".reg .b32 %%v3;\n\t"
        "abs.bf16x2 %%v3, %%x;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0xBDCBBDCB;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0x3BBD3BBD;\n\t"
        ".reg .b32 %%v6;\n\t"
        "fma.rn.bf16x2 %%v6, %%v5, %%v3, %%v4;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.bf16x2 %%v7, %%v6, %%v3, %%v2;\n\t"
        ".reg .b32 %%v8;\n\t"
        "mul.rn.bf16x2 %%v8, %%x, %%v7;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.bf16x2 %%v9, %%v8, %%v1, %%v1;\n\t"
        "mov.b32 %%y, %%v9;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// bf16 in [-8.0, 8.0], 33281 inputs.
// 4 instructions, 10.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 848.181 ulp
// error at most 0.0039065 absolute
// error at most 4.82415 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short sigmoid_native_bf16_10_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s12_<5>;\n\t"
        "mov.b16 %%_s12_0, 0x3F00;\n\t"
        "mul.rn.bf16 %%_s12_1, %%x, %%_s12_0;\n\t"
        "tanh.approx.bf16 %%_s12_2, %%_s12_1;\n\t"
        "mul.rn.bf16 %%_s12_3, %%_s12_2, %%_s12_0;\n\t"
        "add.rn.bf16 %%_s12_4, %%_s12_3, %%_s12_0;\n\t"
        "mov.b16 %%y, %%_s12_4;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int sigmoid_native_bf16_10_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x3F003F00;\n\t"
        ".reg .b32 %%v2;\n\t"
        "mul.rn.bf16x2 %%v2, %%x, %%v1;\n\t"
        ".reg .b32 %%v3;\n\t"
        "tanh.approx.bf16x2 %%v3, %%v2;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mul.rn.bf16x2 %%v4, %%v3, %%v1;\n\t"
        ".reg .b32 %%v5;\n\t"
        "add.rn.bf16x2 %%v5, %%v4, %%v1;\n\t"
        "mov.b32 %%y, %%v5;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 5 instructions, 2.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 42377.6 ulp
// error at most 0.010109 absolute
// error at most 30.1207 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short sigmoid_native_f16_2_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<9>;\n\t"
        "mov.b16 %%_s5_0, 0x3800;\n\t"
        "mov.b16 %%_s5_1, 0x385B;\n\t"
        "abs.f16 %%_s5_2, %%x;\n\t"
        "mov.b16 %%_s5_3, 0xAE39;\n\t"
        "mov.b16 %%_s5_4, 0x1DC6;\n\t"
        "fma.rn.f16 %%_s5_5, %%_s5_4, %%_s5_2, %%_s5_3;\n\t"
        "fma.rn.f16 %%_s5_6, %%_s5_5, %%_s5_2, %%_s5_1;\n\t"
        "mul.rn.f16 %%_s5_7, %%x, %%_s5_6;\n\t"
        "fma.rn.f16 %%_s5_8, %%_s5_7, %%_s5_0, %%_s5_0;\n\t"
        "mov.b16 %%y, %%_s5_8;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int sigmoid_native_f16_2_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x38003800;\n\t"
        ".reg .b32 %%v2;\n\t"
        "mov.b32 %%v2, 0x385B385B;\n\t"
        ".reg .b32 %%v3;\n\t"
        "abs.f16x2 %%v3, %%x;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0xAE39AE39;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0x1DC61DC6;\n\t"
        ".reg .b32 %%v6;\n\t"
        "fma.rn.f16x2 %%v6, %%v5, %%v3, %%v4;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.f16x2 %%v7, %%v6, %%v3, %%v2;\n\t"
        ".reg .b32 %%v8;\n\t"
        "mul.rn.f16x2 %%v8, %%x, %%v7;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v8, %%v1, %%v1;\n\t"
        "mov.b32 %%y, %%v9;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 6 instructions, 3 issue slots of a warp a value, of two at once on sm_90.
// error at most 26044.3 ulp
// error at most 0.00657989 absolute
// error at most 18.4725 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short sigmoid_native_f16_3(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<11>;\n\t"
        "mov.b16 %%_s5_0, 0x3800;\n\t"
        "mov.b16 %%_s5_1, 0x388C;\n\t"
        "abs.f16 %%_s5_2, %%x;\n\t"
        "mov.b16 %%_s5_3, 0xAF4F;\n\t"
        "mov.b16 %%_s5_4, 0x20B3;\n\t"
        "mov.b16 %%_s5_5, 0x8B68;\n\t"
        "fma.rn.f16 %%_s5_6, %%_s5_5, %%_s5_2, %%_s5_4;\n\t"
        "fma.rn.f16 %%_s5_7, %%_s5_6, %%_s5_2, %%_s5_3;\n\t"
        "fma.rn.f16 %%_s5_8, %%_s5_7, %%_s5_2, %%_s5_1;\n\t"
        "mul.rn.f16 %%_s5_9, %%x, %%_s5_8;\n\t"
        "fma.rn.f16 %%_s5_10, %%_s5_9, %%_s5_0, %%_s5_0;\n\t"
        "mov.b16 %%y, %%_s5_10;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int sigmoid_native_f16_3_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x38003800;\n\t"
        ".reg .b32 %%v2;\n\t"
        "mov.b32 %%v2, 0x388C388C;\n\t"
        ".reg .b32 %%v3;\n\t"
        "abs.f16x2 %%v3, %%x;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0xAF4FAF4F;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0x20B320B3;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x8B688B68;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.f16x2 %%v7, %%v6, %%v3, %%v5;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.f16x2 %%v8, %%v7, %%v3, %%v4;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v8, %%v3, %%v2;\n\t"
        ".reg .b32 %%v10;\n\t"
        "mul.rn.f16x2 %%v10, %%x, %%v9;\n\t"
        ".reg .b32 %%v11;\n\t"
        "fma.rn.f16x2 %%v11, %%v10, %%v1, %%v1;\n\t"
        "mov.b32 %%y, %%v11;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 4 instructions, 10.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 1025.78 ulp
// error at most 0.000490511 absolute
// error at most 0.501516 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short sigmoid_native_f16_10_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<5>;\n\t"
        "mov.b16 %%_s5_0, 0x3800;\n\t"
        "mul.rn.f16 %%_s5_1, %%x, %%_s5_0;\n\t"
        "tanh.approx.f16 %%_s5_2, %%_s5_1;\n\t"
        "mul.rn.f16 %%_s5_3, %%_s5_2, %%_s5_0;\n\t"
        "add.rn.f16 %%_s5_4, %%_s5_3, %%_s5_0;\n\t"
        "mov.b16 %%y, %%_s5_4;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int sigmoid_native_f16_10_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x38003800;\n\t"
        ".reg .b32 %%v2;\n\t"
        "mul.rn.f16x2 %%v2, %%x, %%v1;\n\t"
        ".reg .b32 %%v3;\n\t"
        "tanh.approx.f16x2 %%v3, %%v2;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mul.rn.f16x2 %%v4, %%v3, %%v1;\n\t"
        ".reg .b32 %%v5;\n\t"
        "add.rn.f16x2 %%v5, %%v4, %%v1;\n\t"
        "mov.b32 %%y, %%v5;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// bf16 in [-8.0, 8.0], 33281 inputs.
// 6 instructions, 3 issue slots of a warp a value, of two at once on sm_90.
// error at most 2.85785e+38 ulp
// error at most 0.122092 absolute
// error at most 2.2327e+36 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short silu_native_bf16_3(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s12_<12>;\n\t"
        "mov.b16 %%_s12_0, 0xBCD7;\n\t"
        "abs.bf16 %%_s12_1, %%x;\n\t"
        "mov.b16 %%_s12_2, 0x3E0A;\n\t"
        "mov.b16 %%_s12_3, 0x3E31;\n\t"
        "mov.b16 %%_s12_4, 0xBCDF;\n\t"
        "mov.b16 %%_s12_5, 0x3AB9;\n\t"
        "fma.rn.bf16 %%_s12_6, %%_s12_5, %%_s12_1, %%_s12_4;\n\t"
        "fma.rn.bf16 %%_s12_7, %%_s12_6, %%_s12_1, %%_s12_3;\n\t"
        "fma.rn.bf16 %%_s12_8, %%_s12_7, %%_s12_1, %%_s12_2;\n\t"
        "fma.rn.bf16 %%_s12_9, %%_s12_8, %%_s12_1, %%_s12_0;\n\t"
        "mov.b16 %%_s12_10, 0x3EFD;\n\t"
        "fma.rn.bf16 %%_s12_11, %%x, %%_s12_10, %%_s12_9;\n\t"
        "mov.b16 %%y, %%_s12_11;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int silu_native_bf16_3_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0xBCD7BCD7;\n\t"
        ".reg .b32 %%v2;\n\t"
        "abs.bf16x2 %%v2, %%x;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0x3E0A3E0A;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x3E313E31;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0xBCDFBCDF;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x3AB93AB9;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.bf16x2 %%v7, %%v6, %%v2, %%v5;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.bf16x2 %%v8, %%v7, %%v2, %%v4;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.bf16x2 %%v9, %%v8, %%v2, %%v3;\n\t"
        ".reg .b32 %%v10;\n\t"
        "fma.rn.bf16x2 %%v10, %%v9, %%v2, %%v1;\n\t"
        ".reg .b32 %%v11;\n\t"
        "mov.b32 %%v11, 0x3EFD3EFD;\n\t"
        ".reg .b32 %%v12;\n\t"
        "fma.rn.bf16x2 %%v12, %%x, %%v11, %%v10;\n\t"
        "mov.b32 %%y, %%v12;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 6 instructions, 3 issue slots of a warp a value, of two at once on sm_90.
// error at most 393857 ulp
// error at most 0.0378853 absolute
// error at most 384.626 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short silu_native_f16_3(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<12>;\n\t"
        "mov.b16 %%_s5_0, 0xA602;\n\t"
        "abs.f16 %%_s5_1, %%x;\n\t"
        "mov.b16 %%_s5_2, 0x2F14;\n\t"
        "mov.b16 %%_s5_3, 0x323C;\n\t"
        "mov.b16 %%_s5_4, 0xA810;\n\t"
        "mov.b16 %%_s5_5, 0x16F2;\n\t"
        "fma.rn.f16 %%_s5_6, %%_s5_5, %%_s5_1, %%_s5_4;\n\t"
        "fma.rn.f16 %%_s5_7, %%_s5_6, %%_s5_1, %%_s5_3;\n\t"
        "fma.rn.f16 %%_s5_8, %%_s5_7, %%_s5_1, %%_s5_2;\n\t"
        "fma.rn.f16 %%_s5_9, %%_s5_8, %%_s5_1, %%_s5_0;\n\t"
        "mov.b16 %%_s5_10, 0x3802;\n\t"
        "fma.rn.f16 %%_s5_11, %%x, %%_s5_10, %%_s5_9;\n\t"
        "mov.b16 %%y, %%_s5_11;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int silu_native_f16_3_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0xA602A602;\n\t"
        ".reg .b32 %%v2;\n\t"
        "abs.f16x2 %%v2, %%x;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0x2F142F14;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x323C323C;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0xA810A810;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x16F216F2;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.f16x2 %%v7, %%v6, %%v2, %%v5;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.f16x2 %%v8, %%v7, %%v2, %%v4;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v8, %%v2, %%v3;\n\t"
        ".reg .b32 %%v10;\n\t"
        "fma.rn.f16x2 %%v10, %%v9, %%v2, %%v1;\n\t"
        ".reg .b32 %%v11;\n\t"
        "mov.b32 %%v11, 0x38023802;\n\t"
        ".reg .b32 %%v12;\n\t"
        "fma.rn.f16x2 %%v12, %%x, %%v11, %%v10;\n\t"
        "mov.b32 %%y, %%v12;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 12 instructions, 12 issue slots of a warp a value, of two at once on sm_90.
// error at most 9230.51 ulp
// error at most 0.00268966 absolute
// error at most 9.01417 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short silu_native_f16_12(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<11>;\n\t"
        ".reg .b16 %%_s5_<1>;\n\t"
        "cvt.f32.f16 %%_s0_0, %%x;\n\t"
        "abs.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0fB63B47EC, %%_s0_1, 0f38C6EBB5;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0fBAA926E5;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0f3C0D5750;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0fBCCDE01D;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0fBC58395B;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0f3E8A3A04;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1, 0fBC070642;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_1, 0f3A102B08;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_0, 0f3F00016D, %%_s0_9;\n\t"
        "cvt.rn.f16.f32 %%_s5_0, %%_s0_10;\n\t"
        "mov.b16 %%y, %%_s5_0;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int silu_native_f16_12_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%v2a, %%v2b;\n\t"
        ".reg .b16 %%l2, %%h2; mov.b32 {%%l2, %%h2}, %%x;\n\t"
        "cvt.f32.f16 %%v2a, %%l2;\n\t"
        "cvt.f32.f16 %%v2b, %%h2;\n\t"
        ".reg .f32 %%v3a, %%v3b;\n\t"
        "abs.ftz.f32 %%v3a, %%v2a;\n\t"
        "abs.ftz.f32 %%v3b, %%v2b;\n\t"
        ".reg .f32 %%v12a, %%v12b;\n\t"
        "fma.rn.ftz.f32 %%v12a, 0fB63B47EC, %%v3a, 0f38C6EBB5;\n\t"
        "fma.rn.ftz.f32 %%v12b, 0fB63B47EC, %%v3b, 0f38C6EBB5;\n\t"
        ".reg .f32 %%v13a, %%v13b;\n\t"
        "fma.rn.ftz.f32 %%v13a, %%v12a, %%v3a, 0fBAA926E5;\n\t"
        "fma.rn.ftz.f32 %%v13b, %%v12b, %%v3b, 0fBAA926E5;\n\t"
        ".reg .f32 %%v14a, %%v14b;\n\t"
        "fma.rn.ftz.f32 %%v14a, %%v13a, %%v3a, 0f3C0D5750;\n\t"
        "fma.rn.ftz.f32 %%v14b, %%v13b, %%v3b, 0f3C0D5750;\n\t"
        ".reg .f32 %%v15a, %%v15b;\n\t"
        "fma.rn.ftz.f32 %%v15a, %%v14a, %%v3a, 0fBCCDE01D;\n\t"
        "fma.rn.ftz.f32 %%v15b, %%v14b, %%v3b, 0fBCCDE01D;\n\t"
        ".reg .f32 %%v16a, %%v16b;\n\t"
        "fma.rn.ftz.f32 %%v16a, %%v15a, %%v3a, 0fBC58395B;\n\t"
        "fma.rn.ftz.f32 %%v16b, %%v15b, %%v3b, 0fBC58395B;\n\t"
        ".reg .f32 %%v17a, %%v17b;\n\t"
        "fma.rn.ftz.f32 %%v17a, %%v16a, %%v3a, 0f3E8A3A04;\n\t"
        "fma.rn.ftz.f32 %%v17b, %%v16b, %%v3b, 0f3E8A3A04;\n\t"
        ".reg .f32 %%v18a, %%v18b;\n\t"
        "fma.rn.ftz.f32 %%v18a, %%v17a, %%v3a, 0fBC070642;\n\t"
        "fma.rn.ftz.f32 %%v18b, %%v17b, %%v3b, 0fBC070642;\n\t"
        ".reg .f32 %%v19a, %%v19b;\n\t"
        "fma.rn.ftz.f32 %%v19a, %%v18a, %%v3a, 0f3A102B08;\n\t"
        "fma.rn.ftz.f32 %%v19b, %%v18b, %%v3b, 0f3A102B08;\n\t"
        ".reg .f32 %%v21a, %%v21b;\n\t"
        "fma.rn.ftz.f32 %%v21a, %%v2a, 0f3F00016D, %%v19a;\n\t"
        "fma.rn.ftz.f32 %%v21b, %%v2b, 0f3F00016D, %%v19b;\n\t"
        ".reg .b32 %%v22;\n\t"
        "cvt.rn.f16x2.f32 %%v22, %%v21b, %%v21a;\n\t"
        "mov.b32 %%y, %%v22;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// bf16 in [-8.0, 8.0], 33281 inputs.
// 6 instructions, 3 issue slots of a warp a value, of two at once on sm_90.
// error at most 5.31692e+38 ulp
// error at most 0.218753 absolute
// error at most 4.15385e+36 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short gelu_native_bf16_3(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s12_<12>;\n\t"
        "mov.b16 %%_s12_0, 0xBD48;\n\t"
        "abs.bf16 %%_s12_1, %%x;\n\t"
        "mov.b16 %%_s12_2, 0x3EA0;\n\t"
        "mov.b16 %%_s12_3, 0x3DEF;\n\t"
        "mov.b16 %%_s12_4, 0xBCB5;\n\t"
        "mov.b16 %%_s12_5, 0x3AAA;\n\t"
        "fma.rn.bf16 %%_s12_6, %%_s12_5, %%_s12_1, %%_s12_4;\n\t"
        "fma.rn.bf16 %%_s12_7, %%_s12_6, %%_s12_1, %%_s12_3;\n\t"
        "fma.rn.bf16 %%_s12_8, %%_s12_7, %%_s12_1, %%_s12_2;\n\t"
        "fma.rn.bf16 %%_s12_9, %%_s12_8, %%_s12_1, %%_s12_0;\n\t"
        "mov.b16 %%_s12_10, 0x3EFA;\n\t"
        "fma.rn.bf16 %%_s12_11, %%x, %%_s12_10, %%_s12_9;\n\t"
        "mov.b16 %%y, %%_s12_11;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int gelu_native_bf16_3_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0xBD48BD48;\n\t"
        ".reg .b32 %%v2;\n\t"
        "abs.bf16x2 %%v2, %%x;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0x3EA03EA0;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x3DEF3DEF;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0xBCB5BCB5;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x3AAA3AAA;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.bf16x2 %%v7, %%v6, %%v2, %%v5;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.bf16x2 %%v8, %%v7, %%v2, %%v4;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.bf16x2 %%v9, %%v8, %%v2, %%v3;\n\t"
        ".reg .b32 %%v10;\n\t"
        "fma.rn.bf16x2 %%v10, %%v9, %%v2, %%v1;\n\t"
        ".reg .b32 %%v11;\n\t"
        "mov.b32 %%v11, 0x3EFA3EFA;\n\t"
        ".reg .b32 %%v12;\n\t"
        "fma.rn.bf16x2 %%v12, %%x, %%v11, %%v10;\n\t"
        "mov.b32 %%y, %%v12;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 7 instructions, 3.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 411904 ulp
// error at most 0.0312502 absolute
// error at most 402.25 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short gelu_native_f16_3_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<14>;\n\t"
        "mov.b16 %%_s5_0, 0xA63C;\n\t"
        "abs.f16 %%_s5_1, %%x;\n\t"
        "mov.b16 %%_s5_2, 0x3111;\n\t"
        "mov.b16 %%_s5_3, 0x34B9;\n\t"
        "mov.b16 %%_s5_4, 0xAD9F;\n\t"
        "mov.b16 %%_s5_5, 0x21A1;\n\t"
        "mov.b16 %%_s5_6, 0x900E;\n\t"
        "fma.rn.f16 %%_s5_7, %%_s5_6, %%_s5_1, %%_s5_5;\n\t"
        "fma.rn.f16 %%_s5_8, %%_s5_7, %%_s5_1, %%_s5_4;\n\t"
        "fma.rn.f16 %%_s5_9, %%_s5_8, %%_s5_1, %%_s5_3;\n\t"
        "fma.rn.f16 %%_s5_10, %%_s5_9, %%_s5_1, %%_s5_2;\n\t"
        "fma.rn.f16 %%_s5_11, %%_s5_10, %%_s5_1, %%_s5_0;\n\t"
        "mov.b16 %%_s5_12, 0x37FE;\n\t"
        "fma.rn.f16 %%_s5_13, %%x, %%_s5_12, %%_s5_11;\n\t"
        "mov.b16 %%y, %%_s5_13;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int gelu_native_f16_3_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0xA63CA63C;\n\t"
        ".reg .b32 %%v2;\n\t"
        "abs.f16x2 %%v2, %%x;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0x31113111;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x34B934B9;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0xAD9FAD9F;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x21A121A1;\n\t"
        ".reg .b32 %%v7;\n\t"
        "mov.b32 %%v7, 0x900E900E;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.f16x2 %%v8, %%v7, %%v2, %%v6;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v8, %%v2, %%v5;\n\t"
        ".reg .b32 %%v10;\n\t"
        "fma.rn.f16x2 %%v10, %%v9, %%v2, %%v4;\n\t"
        ".reg .b32 %%v11;\n\t"
        "fma.rn.f16x2 %%v11, %%v10, %%v2, %%v3;\n\t"
        ".reg .b32 %%v12;\n\t"
        "fma.rn.f16x2 %%v12, %%v11, %%v2, %%v1;\n\t"
        ".reg .b32 %%v13;\n\t"
        "mov.b32 %%v13, 0x37FE37FE;\n\t"
        ".reg .b32 %%v14;\n\t"
        "fma.rn.f16x2 %%v14, %%x, %%v13, %%v12;\n\t"
        "mov.b32 %%y, %%v14;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 6 instructions, 11.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 32768.1 ulp
// error at most 0.00195328 absolute
// error at most 32.0001 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short gelu_native_f16_11_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<9>;\n\t"
        "mov.b16 %%_s5_0, 0x3800;\n\t"
        "mul.rn.f16 %%_s5_1, %%x, %%_s5_0;\n\t"
        "mov.b16 %%_s5_2, 0x3A67;\n\t"
        "mul.rn.f16 %%_s5_3, %%x, %%x;\n\t"
        "mov.b16 %%_s5_4, 0x286E;\n\t"
        "fma.rn.f16 %%_s5_5, %%_s5_4, %%_s5_3, %%_s5_2;\n\t"
        "mul.rn.f16 %%_s5_6, %%x, %%_s5_5;\n\t"
        "tanh.approx.f16 %%_s5_7, %%_s5_6;\n\t"
        "fma.rn.f16 %%_s5_8, %%_s5_1, %%_s5_7, %%_s5_1;\n\t"
        "mov.b16 %%y, %%_s5_8;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int gelu_native_f16_11_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x38003800;\n\t"
        ".reg .b32 %%v2;\n\t"
        "mul.rn.f16x2 %%v2, %%x, %%v1;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0x3A673A67;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mul.rn.f16x2 %%v4, %%x, %%x;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0x286E286E;\n\t"
        ".reg .b32 %%v6;\n\t"
        "fma.rn.f16x2 %%v6, %%v5, %%v4, %%v3;\n\t"
        ".reg .b32 %%v7;\n\t"
        "mul.rn.f16x2 %%v7, %%x, %%v6;\n\t"
        ".reg .b32 %%v8;\n\t"
        "tanh.approx.f16x2 %%v8, %%v7;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v2, %%v8, %%v2;\n\t"
        "mov.b32 %%y, %%v9;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 9 instructions, 13.5 issue slots of a warp a value, of two at once on sm_90.
// error at most 71.2156 ulp
// error at most 0.00105111 absolute
// error at most 0.0537201 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short gelu_native_f16_13_5(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b16 %%_s5_<16>;\n\t"
        "mov.b16 %%_s5_0, 0x8011;\n\t"
        "max.f16 %%_s5_1, %%x, %%_s5_0;\n\t"
        "mov.b16 %%_s5_2, 0x93FF;\n\t"
        "mov.b16 %%_s5_3, 0x4880;\n\t"
        "abs.f16 %%_s5_4, %%x;\n\t"
        "mov.b16 %%_s5_5, 0xBC97;\n\t"
        "mov.b16 %%_s5_6, 0xB77A;\n\t"
        "mov.b16 %%_s5_7, 0xA9B9;\n\t"
        "mov.b16 %%_s5_8, 0x1C0E;\n\t"
        "fma.rn.f16 %%_s5_9, %%_s5_8, %%_s5_4, %%_s5_7;\n\t"
        "fma.rn.f16 %%_s5_10, %%_s5_9, %%_s5_4, %%_s5_6;\n\t"
        "fma.rn.f16 %%_s5_11, %%_s5_10, %%_s5_4, %%_s5_5;\n\t"
        "fma.rn.f16 %%_s5_12, %%_s5_11, %%_s5_4, %%_s5_3;\n\t"
        "ex2.approx.f16 %%_s5_13, %%_s5_12;\n\t"
        "mul.rn.f16 %%_s5_14, %%_s5_4, %%_s5_13;\n\t"
        "fma.rn.f16 %%_s5_15, %%_s5_14, %%_s5_2, %%_s5_1;\n\t"
        "mov.b16 %%y, %%_s5_15;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int gelu_native_f16_13_5_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v1;\n\t"
        "mov.b32 %%v1, 0x80118011;\n\t"
        ".reg .b32 %%v2;\n\t"
        "max.f16x2 %%v2, %%x, %%v1;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mov.b32 %%v3, 0x93FF93FF;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x48804880;\n\t"
        ".reg .b32 %%v5;\n\t"
        "abs.f16x2 %%v5, %%x;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0xBC97BC97;\n\t"
        ".reg .b32 %%v7;\n\t"
        "mov.b32 %%v7, 0xB77AB77A;\n\t"
        ".reg .b32 %%v8;\n\t"
        "mov.b32 %%v8, 0xA9B9A9B9;\n\t"
        ".reg .b32 %%v9;\n\t"
        "mov.b32 %%v9, 0x1C0E1C0E;\n\t"
        ".reg .b32 %%v10;\n\t"
        "fma.rn.f16x2 %%v10, %%v9, %%v5, %%v8;\n\t"
        ".reg .b32 %%v11;\n\t"
        "fma.rn.f16x2 %%v11, %%v10, %%v5, %%v7;\n\t"
        ".reg .b32 %%v12;\n\t"
        "fma.rn.f16x2 %%v12, %%v11, %%v5, %%v6;\n\t"
        ".reg .b32 %%v13;\n\t"
        "fma.rn.f16x2 %%v13, %%v12, %%v5, %%v4;\n\t"
        ".reg .b32 %%v14;\n\t"
        "ex2.approx.f16x2 %%v14, %%v13;\n\t"
        ".reg .b32 %%v15;\n\t"
        "mul.rn.f16x2 %%v15, %%v5, %%v14;\n\t"
        ".reg .b32 %%v16;\n\t"
        "fma.rn.f16x2 %%v16, %%v15, %%v3, %%v2;\n\t"
        "mov.b32 %%y, %%v16;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// bf16 in [-8.0, 8.0], 33281 inputs.
// 15 instructions, 16 issue slots of a warp a value, of two at once on sm_90.
// error at most 5.36012e+12 ulp
// error at most 0.00483332 absolute
// error at most 2.33974e+10 relative
// x and the result are the bits of a bf16.
__device__ __forceinline__ unsigned short gelu_grad_native_bf16_16(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<14>;\n\t"
        ".reg .b16 %%_s12_<1>;\n\t"
        "cvt.f32.bf16 %%_s0_0, %%x;\n\t"
        "abs.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0f354BA9F2, %%_s0_1, 0fB80B2E3C;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0f3A21687F;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0fBBCCD292;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0f3D17604D;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0fBDF7E138;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0f3E1AF814;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1, 0f3E8475A9;\n\t"
        "fma.rn.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_1, 0fBF6FBCD6;\n\t"
        "fma.rn.ftz.f32 %%_s0_10, %%_s0_9, %%_s0_1, 0f3E6801D5;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, %%_s0_1, 0f3FC6F8FD;\n\t"
        "mul.rn.ftz.f32 %%_s0_12, %%_s0_0, %%_s0_11;\n\t"
        "fma.rn.ftz.f32 %%_s0_13, %%_s0_12, 0f3F000522, 0f3F000522;\n\t"
        "cvt.rn.bf16.f32 %%_s12_0, %%_s0_13;\n\t"
        "mov.b16 %%y, %%_s12_0;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a __nv_bfloat162.
__device__ __forceinline__ unsigned int gelu_grad_native_bf16_16_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%v3a, %%v3b;\n\t"
        ".reg .b32 %%l3, %%h3; shl.b32 %%l3, %%x, 16; and.b32 %%h3, %%x, 0xFFFF0000;\n\t"
        "mov.b32 %%v3a, %%l3;\n\t"
        "mov.b32 %%v3b, %%h3;\n\t"
        ".reg .f32 %%v4a, %%v4b;\n\t"
        "abs.ftz.f32 %%v4a, %%v3a;\n\t"
        "abs.ftz.f32 %%v4b, %%v3b;\n\t"
        ".reg .f32 %%v15a, %%v15b;\n\t"
        "fma.rn.ftz.f32 %%v15a, 0f354BA9F2, %%v4a, 0fB80B2E3C;\n\t"
        "fma.rn.ftz.f32 %%v15b, 0f354BA9F2, %%v4b, 0fB80B2E3C;\n\t"
        ".reg .f32 %%v16a, %%v16b;\n\t"
        "fma.rn.ftz.f32 %%v16a, %%v15a, %%v4a, 0f3A21687F;\n\t"
        "fma.rn.ftz.f32 %%v16b, %%v15b, %%v4b, 0f3A21687F;\n\t"
        ".reg .f32 %%v17a, %%v17b;\n\t"
        "fma.rn.ftz.f32 %%v17a, %%v16a, %%v4a, 0fBBCCD292;\n\t"
        "fma.rn.ftz.f32 %%v17b, %%v16b, %%v4b, 0fBBCCD292;\n\t"
        ".reg .f32 %%v18a, %%v18b;\n\t"
        "fma.rn.ftz.f32 %%v18a, %%v17a, %%v4a, 0f3D17604D;\n\t"
        "fma.rn.ftz.f32 %%v18b, %%v17b, %%v4b, 0f3D17604D;\n\t"
        ".reg .f32 %%v19a, %%v19b;\n\t"
        "fma.rn.ftz.f32 %%v19a, %%v18a, %%v4a, 0fBDF7E138;\n\t"
        "fma.rn.ftz.f32 %%v19b, %%v18b, %%v4b, 0fBDF7E138;\n\t"
        ".reg .f32 %%v20a, %%v20b;\n\t"
        "fma.rn.ftz.f32 %%v20a, %%v19a, %%v4a, 0f3E1AF814;\n\t"
        "fma.rn.ftz.f32 %%v20b, %%v19b, %%v4b, 0f3E1AF814;\n\t"
        ".reg .f32 %%v21a, %%v21b;\n\t"
        "fma.rn.ftz.f32 %%v21a, %%v20a, %%v4a, 0f3E8475A9;\n\t"
        "fma.rn.ftz.f32 %%v21b, %%v20b, %%v4b, 0f3E8475A9;\n\t"
        ".reg .f32 %%v22a, %%v22b;\n\t"
        "fma.rn.ftz.f32 %%v22a, %%v21a, %%v4a, 0fBF6FBCD6;\n\t"
        "fma.rn.ftz.f32 %%v22b, %%v21b, %%v4b, 0fBF6FBCD6;\n\t"
        ".reg .f32 %%v23a, %%v23b;\n\t"
        "fma.rn.ftz.f32 %%v23a, %%v22a, %%v4a, 0f3E6801D5;\n\t"
        "fma.rn.ftz.f32 %%v23b, %%v22b, %%v4b, 0f3E6801D5;\n\t"
        ".reg .f32 %%v24a, %%v24b;\n\t"
        "fma.rn.ftz.f32 %%v24a, %%v23a, %%v4a, 0f3FC6F8FD;\n\t"
        "fma.rn.ftz.f32 %%v24b, %%v23b, %%v4b, 0f3FC6F8FD;\n\t"
        ".reg .f32 %%v25a, %%v25b;\n\t"
        "mul.rn.ftz.f32 %%v25a, %%v3a, %%v24a;\n\t"
        "mul.rn.ftz.f32 %%v25b, %%v3b, %%v24b;\n\t"
        ".reg .f32 %%v26a, %%v26b;\n\t"
        "fma.rn.ftz.f32 %%v26a, %%v25a, 0f3F000522, 0f3F000522;\n\t"
        "fma.rn.ftz.f32 %%v26b, %%v25b, 0f3F000522, 0f3F000522;\n\t"
        ".reg .b32 %%v27;\n\t"
        "cvt.rn.bf16x2.f32 %%v27, %%v26b, %%v26a;\n\t"
        "mov.b32 %%y, %%v27;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 8 instructions, 8 issue slots of a warp a value, of two at once on sm_90.
// error at most 419585 ulp
// error at most 0.0256194 absolute
// error at most 409.751 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short gelu_grad_native_f16_8(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<7>;\n\t"
        ".reg .b16 %%_s5_<1>;\n\t"
        "cvt.f32.f16 %%_s0_0, %%x;\n\t"
        "abs.ftz.f32 %%_s0_1, %%_s0_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0f3A229184, %%_s0_1, 0fBC7D57B7;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0f3E11C970;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0fBF163B28;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, %%_s0_1, 0f3F827648;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_0, %%_s0_5, 0f3EFFF863;\n\t"
        "cvt.rn.f16.f32 %%_s5_0, %%_s0_6;\n\t"
        "mov.b16 %%y, %%_s5_0;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int gelu_grad_native_f16_8_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%v3a, %%v3b;\n\t"
        ".reg .b16 %%l3, %%h3; mov.b32 {%%l3, %%h3}, %%x;\n\t"
        "cvt.f32.f16 %%v3a, %%l3;\n\t"
        "cvt.f32.f16 %%v3b, %%h3;\n\t"
        ".reg .f32 %%v4a, %%v4b;\n\t"
        "abs.ftz.f32 %%v4a, %%v3a;\n\t"
        "abs.ftz.f32 %%v4b, %%v3b;\n\t"
        ".reg .f32 %%v9a, %%v9b;\n\t"
        "fma.rn.ftz.f32 %%v9a, 0f3A229184, %%v4a, 0fBC7D57B7;\n\t"
        "fma.rn.ftz.f32 %%v9b, 0f3A229184, %%v4b, 0fBC7D57B7;\n\t"
        ".reg .f32 %%v10a, %%v10b;\n\t"
        "fma.rn.ftz.f32 %%v10a, %%v9a, %%v4a, 0f3E11C970;\n\t"
        "fma.rn.ftz.f32 %%v10b, %%v9b, %%v4b, 0f3E11C970;\n\t"
        ".reg .f32 %%v11a, %%v11b;\n\t"
        "fma.rn.ftz.f32 %%v11a, %%v10a, %%v4a, 0fBF163B28;\n\t"
        "fma.rn.ftz.f32 %%v11b, %%v10b, %%v4b, 0fBF163B28;\n\t"
        ".reg .f32 %%v12a, %%v12b;\n\t"
        "fma.rn.ftz.f32 %%v12a, %%v11a, %%v4a, 0f3F827648;\n\t"
        "fma.rn.ftz.f32 %%v12b, %%v11b, %%v4b, 0f3F827648;\n\t"
        ".reg .f32 %%v13a, %%v13b;\n\t"
        "fma.rn.ftz.f32 %%v13a, %%v3a, %%v12a, 0f3EFFF863;\n\t"
        "fma.rn.ftz.f32 %%v13b, %%v3b, %%v12b, 0f3EFFF863;\n\t"
        ".reg .b32 %%v14;\n\t"
        "cvt.rn.f16x2.f32 %%v14, %%v13b, %%v13a;\n\t"
        "mov.b32 %%y, %%v14;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 15 instructions, 19 issue slots of a warp a value, of two at once on sm_90.
// error at most 16220.8 ulp
// error at most 0.000978092 absolute
// error at most 15.8406 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short gelu_grad_native_f16_19(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<6>;\n\t"
        ".reg .b16 %%_s5_<18>;\n\t"
        "mov.b16 %%_s5_0, 0x3EBB;\n\t"
        "mul.rn.f16 %%_s5_1, %%x, %%x;\n\t"
        "mov.b16 %%_s5_2, 0x380F;\n\t"
        "mov.b16 %%_s5_3, 0x2C01;\n\t"
        "mov.b16 %%_s5_4, 0x2138;\n\t"
        "fma.rn.f16 %%_s5_5, %%_s5_4, %%_s5_1, %%_s5_3;\n\t"
        "fma.rn.f16 %%_s5_6, %%_s5_5, %%_s5_1, %%_s5_2;\n\t"
        "fma.rn.f16 %%_s5_7, %%_s5_6, %%_s5_1, %%_s5_0;\n\t"
        "cvt.f32.f16 %%_s0_0, %%_s5_7;\n\t"
        "mov.b16 %%_s5_8, 0x4161;\n\t"
        "mov.b16 %%_s5_9, 0xAE8E;\n\t"
        "mov.b16 %%_s5_10, 0x2A82;\n\t"
        "mov.b16 %%_s5_11, 0x11D9;\n\t"
        "mov.b16 %%_s5_12, 0x8015;\n\t"
        "fma.rn.f16 %%_s5_13, %%_s5_12, %%_s5_1, %%_s5_11;\n\t"
        "fma.rn.f16 %%_s5_14, %%_s5_13, %%_s5_1, %%_s5_10;\n\t"
        "fma.rn.f16 %%_s5_15, %%_s5_14, %%_s5_1, %%_s5_9;\n\t"
        "fma.rn.f16 %%_s5_16, %%_s5_15, %%_s5_1, %%_s5_8;\n\t"
        "cvt.f32.f16 %%_s0_1, %%_s5_16;\n\t"
        "div.approx.ftz.f32 %%_s0_2, %%_s0_1, %%_s0_0;\n\t"
        "cvt.f32.f16 %%_s0_3, %%x;\n\t"
        "mul.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_2;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, %%_s0_4, 0f3F000405, 0f3F000405;\n\t"
        "cvt.rn.f16.f32 %%_s5_17, %%_s0_5;\n\t"
        "mov.b16 %%y, %%_s5_17;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int gelu_grad_native_f16_19_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .b32 %%v2;\n\t"
        "mov.b32 %%v2, 0x3EBB3EBB;\n\t"
        ".reg .b32 %%v3;\n\t"
        "mul.rn.f16x2 %%v3, %%x, %%x;\n\t"
        ".reg .b32 %%v4;\n\t"
        "mov.b32 %%v4, 0x380F380F;\n\t"
        ".reg .b32 %%v5;\n\t"
        "mov.b32 %%v5, 0x2C012C01;\n\t"
        ".reg .b32 %%v6;\n\t"
        "mov.b32 %%v6, 0x21382138;\n\t"
        ".reg .b32 %%v7;\n\t"
        "fma.rn.f16x2 %%v7, %%v6, %%v3, %%v5;\n\t"
        ".reg .b32 %%v8;\n\t"
        "fma.rn.f16x2 %%v8, %%v7, %%v3, %%v4;\n\t"
        ".reg .b32 %%v9;\n\t"
        "fma.rn.f16x2 %%v9, %%v8, %%v3, %%v2;\n\t"
        ".reg .f32 %%v10a, %%v10b;\n\t"
        ".reg .b16 %%l10, %%h10; mov.b32 {%%l10, %%h10}, %%v9;\n\t"
        "cvt.f32.f16 %%v10a, %%l10;\n\t"
        "cvt.f32.f16 %%v10b, %%h10;\n\t"
        ".reg .b32 %%v11;\n\t"
        "mov.b32 %%v11, 0x41614161;\n\t"
        ".reg .b32 %%v12;\n\t"
        "mov.b32 %%v12, 0xAE8EAE8E;\n\t"
        ".reg .b32 %%v13;\n\t"
        "mov.b32 %%v13, 0x2A822A82;\n\t"
        ".reg .b32 %%v14;\n\t"
        "mov.b32 %%v14, 0x11D911D9;\n\t"
        ".reg .b32 %%v15;\n\t"
        "mov.b32 %%v15, 0x80158015;\n\t"
        ".reg .b32 %%v16;\n\t"
        "fma.rn.f16x2 %%v16, %%v15, %%v3, %%v14;\n\t"
        ".reg .b32 %%v17;\n\t"
        "fma.rn.f16x2 %%v17, %%v16, %%v3, %%v13;\n\t"
        ".reg .b32 %%v18;\n\t"
        "fma.rn.f16x2 %%v18, %%v17, %%v3, %%v12;\n\t"
        ".reg .b32 %%v19;\n\t"
        "fma.rn.f16x2 %%v19, %%v18, %%v3, %%v11;\n\t"
        ".reg .f32 %%v20a, %%v20b;\n\t"
        ".reg .b16 %%l20, %%h20; mov.b32 {%%l20, %%h20}, %%v19;\n\t"
        "cvt.f32.f16 %%v20a, %%l20;\n\t"
        "cvt.f32.f16 %%v20b, %%h20;\n\t"
        ".reg .f32 %%v21a, %%v21b;\n\t"
        "div.approx.ftz.f32 %%v21a, %%v20a, %%v10a;\n\t"
        "div.approx.ftz.f32 %%v21b, %%v20b, %%v10b;\n\t"
        ".reg .f32 %%v22a, %%v22b;\n\t"
        ".reg .b16 %%l22, %%h22; mov.b32 {%%l22, %%h22}, %%x;\n\t"
        "cvt.f32.f16 %%v22a, %%l22;\n\t"
        "cvt.f32.f16 %%v22b, %%h22;\n\t"
        ".reg .f32 %%v23a, %%v23b;\n\t"
        "mul.rn.ftz.f32 %%v23a, %%v22a, %%v21a;\n\t"
        "mul.rn.ftz.f32 %%v23b, %%v22b, %%v21b;\n\t"
        ".reg .f32 %%v24a, %%v24b;\n\t"
        "fma.rn.ftz.f32 %%v24a, %%v23a, 0f3F000405, 0f3F000405;\n\t"
        "fma.rn.ftz.f32 %%v24b, %%v23b, 0f3F000405, 0f3F000405;\n\t"
        ".reg .b32 %%v25;\n\t"
        "cvt.rn.f16x2.f32 %%v25, %%v24b, %%v24a;\n\t"
        "mov.b32 %%y, %%v25;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}

// f16 in [-8.0, 8.0], 36865 inputs.
// 13 instructions, 21 issue slots of a warp a value, of two at once on sm_90.
// error at most 5328.01 ulp
// error at most 0.000627288 absolute
// error at most 5.20313 relative
// x and the result are the bits of a f16.
__device__ __forceinline__ unsigned short gelu_grad_native_f16_21(unsigned short x) {
    unsigned short y;
    asm("{\n\t"
        ".reg .b16 %%x, %%y;\n\t"
        "mov.b16 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%_s0_<12>;\n\t"
        ".reg .b16 %%_s5_<1>;\n\t"
        "cvt.f32.f16 %%_s0_0, %%x;\n\t"
        "mul.rn.ftz.f32 %%_s0_1, %%_s0_0, %%_s0_0;\n\t"
        "fma.rn.ftz.f32 %%_s0_2, 0f3BF0407C, %%_s0_1, 0f3D482E77;\n\t"
        "fma.rn.ftz.f32 %%_s0_3, %%_s0_2, %%_s0_1, 0f3EBEC1D1;\n\t"
        "fma.rn.ftz.f32 %%_s0_4, %%_s0_3, %%_s0_1, 0f3F9DDB68;\n\t"
        "fma.rn.ftz.f32 %%_s0_5, 0fB561F545, %%_s0_1, 0f3A0428AF;\n\t"
        "fma.rn.ftz.f32 %%_s0_6, %%_s0_5, %%_s0_1, 0f3D18F172;\n\t"
        "fma.rn.ftz.f32 %%_s0_7, %%_s0_6, %%_s0_1, 0fBD8BD017;\n\t"
        "fma.rn.ftz.f32 %%_s0_8, %%_s0_7, %%_s0_1, 0f3FFC0DB6;\n\t"
        "div.approx.ftz.f32 %%_s0_9, %%_s0_8, %%_s0_4;\n\t"
        "mul.rn.ftz.f32 %%_s0_10, %%_s0_0, %%_s0_9;\n\t"
        "fma.rn.ftz.f32 %%_s0_11, %%_s0_10, 0f3F0000DA, 0f3F0000DA;\n\t"
        "cvt.rn.f16.f32 %%_s5_0, %%_s0_11;\n\t"
        "mov.b16 %%y, %%_s5_0;\n\t"
        "}\n\t"
        "mov.b16 %0, %%y;\n\t"
        "}"
        : "=h"(y)
        : "h"(x));
    return y;
}
// Two of them: x and the result are the bits of a half2.
__device__ __forceinline__ unsigned int gelu_grad_native_f16_21_x2(unsigned int x) {
    unsigned int y;
    asm("{\n\t"
        ".reg .b32 %%x, %%y;\n\t"
        "mov.b32 %%x, %1;\n\t"
        "{\n\t"
        ".reg .f32 %%v3a, %%v3b;\n\t"
        ".reg .b16 %%l3, %%h3; mov.b32 {%%l3, %%h3}, %%x;\n\t"
        "cvt.f32.f16 %%v3a, %%l3;\n\t"
        "cvt.f32.f16 %%v3b, %%h3;\n\t"
        ".reg .f32 %%v4a, %%v4b;\n\t"
        "mul.rn.ftz.f32 %%v4a, %%v3a, %%v3a;\n\t"
        "mul.rn.ftz.f32 %%v4b, %%v3b, %%v3b;\n\t"
        ".reg .f32 %%v8a, %%v8b;\n\t"
        "fma.rn.ftz.f32 %%v8a, 0f3BF0407C, %%v4a, 0f3D482E77;\n\t"
        "fma.rn.ftz.f32 %%v8b, 0f3BF0407C, %%v4b, 0f3D482E77;\n\t"
        ".reg .f32 %%v9a, %%v9b;\n\t"
        "fma.rn.ftz.f32 %%v9a, %%v8a, %%v4a, 0f3EBEC1D1;\n\t"
        "fma.rn.ftz.f32 %%v9b, %%v8b, %%v4b, 0f3EBEC1D1;\n\t"
        ".reg .f32 %%v10a, %%v10b;\n\t"
        "fma.rn.ftz.f32 %%v10a, %%v9a, %%v4a, 0f3F9DDB68;\n\t"
        "fma.rn.ftz.f32 %%v10b, %%v9b, %%v4b, 0f3F9DDB68;\n\t"
        ".reg .f32 %%v16a, %%v16b;\n\t"
        "fma.rn.ftz.f32 %%v16a, 0fB561F545, %%v4a, 0f3A0428AF;\n\t"
        "fma.rn.ftz.f32 %%v16b, 0fB561F545, %%v4b, 0f3A0428AF;\n\t"
        ".reg .f32 %%v17a, %%v17b;\n\t"
        "fma.rn.ftz.f32 %%v17a, %%v16a, %%v4a, 0f3D18F172;\n\t"
        "fma.rn.ftz.f32 %%v17b, %%v16b, %%v4b, 0f3D18F172;\n\t"
        ".reg .f32 %%v18a, %%v18b;\n\t"
        "fma.rn.ftz.f32 %%v18a, %%v17a, %%v4a, 0fBD8BD017;\n\t"
        "fma.rn.ftz.f32 %%v18b, %%v17b, %%v4b, 0fBD8BD017;\n\t"
        ".reg .f32 %%v19a, %%v19b;\n\t"
        "fma.rn.ftz.f32 %%v19a, %%v18a, %%v4a, 0f3FFC0DB6;\n\t"
        "fma.rn.ftz.f32 %%v19b, %%v18b, %%v4b, 0f3FFC0DB6;\n\t"
        ".reg .f32 %%v20a, %%v20b;\n\t"
        "div.approx.ftz.f32 %%v20a, %%v19a, %%v10a;\n\t"
        "div.approx.ftz.f32 %%v20b, %%v19b, %%v10b;\n\t"
        ".reg .f32 %%v21a, %%v21b;\n\t"
        "mul.rn.ftz.f32 %%v21a, %%v3a, %%v20a;\n\t"
        "mul.rn.ftz.f32 %%v21b, %%v3b, %%v20b;\n\t"
        ".reg .f32 %%v22a, %%v22b;\n\t"
        "fma.rn.ftz.f32 %%v22a, %%v21a, 0f3F0000DA, 0f3F0000DA;\n\t"
        "fma.rn.ftz.f32 %%v22b, %%v21b, 0f3F0000DA, 0f3F0000DA;\n\t"
        ".reg .b32 %%v23;\n\t"
        "cvt.rn.f16x2.f32 %%v23, %%v22b, %%v22a;\n\t"
        "mov.b32 %%y, %%v23;\n\t"
        "}\n\t"
        "mov.b32 %0, %%y;\n\t"
        "}"
        : "=r"(y)
        : "r"(x));
    return y;
}
