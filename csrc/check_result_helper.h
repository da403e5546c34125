/*
 * check_result_helper.h - for programs that end at an error.
 *
 *     #include "check_result_helper.h"
 *
 *     stackPtxCheck(stack_ptx_compile(..));      prints the place of the call and the result to stderr and exits with
 *     ptxInjectCheck(ptx_inject_create(..));     EXIT_FAILURE unless the result is SUCCESS
 *     cuCheck(cuInit(0));                        the same for the CUDA driver, NVRTC, nvPTXCompiler and nvJitLink,
 *     nvrtcCheck(nvrtcVersion(..));              whose headers the program includes
 *     nvptxCheck(nvPTXCompilerCreate(..));
 *     nvJitLinkCheck(nvJitLinkCreate(..));
 *     stackPtxInjectSerializeCheck(..);          the same for mm-ptx's stack_ptx_inject_serialize.h
 *     ASSERT(x > 0);                             likewise unless a condition holds, in every build
 *
 * A file of its own, so that the libraries take no such names from their users. The names are those of mm-ptx's file, and no
 * others: a macro would hide a user's function of that name, such as the `astPtxCheck` of mm-ptx's tests. It brings assert.h, too.
 */

#ifndef CHECK_RESULT_HELPER_H
#define CHECK_RESULT_HELPER_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints the place and exits if `result`, which is called check_result__value in the arguments of the format, is not `success`. */
#define CHECK_RESULT__CALL(Type, success, call, ...)              \
    do {                                                          \
        const Type check_result__value = (call);                  \
        if (check_result__value != success) {                     \
            (void)fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            (void)fprintf(stderr, __VA_ARGS__);                   \
            exit(EXIT_FAILURE);                                   \
        }                                                         \
    } while (0)

#define stackPtxCheck(call)                                                                                              \
    CHECK_RESULT__CALL(StackPtxResult, STACK_PTX_SUCCESS, call, "%s\n", stack_ptx_result_to_string(check_result__value))
#define ptxInjectCheck(call)                                                                                                \
    CHECK_RESULT__CALL(PtxInjectResult, PTX_INJECT_SUCCESS, call, "%s\n", ptx_inject_result_to_string(check_result__value))
#define nvrtcCheck(call) CHECK_RESULT__CALL(nvrtcResult, NVRTC_SUCCESS, call, "%s\n", nvrtcGetErrorString(check_result__value))
#define cuCheck(call) CHECK_RESULT__CALL(CUresult, CUDA_SUCCESS, call, "CUresult %d\n", (int)check_result__value)
#define nvptxCheck(call)                                                                                                    \
    CHECK_RESULT__CALL(nvPTXCompileResult, NVPTXCOMPILE_SUCCESS, call, "nvPTXCompileResult %d\n", (int)check_result__value)
#define nvJitLinkCheck(call)                                                                                       \
    CHECK_RESULT__CALL(nvJitLinkResult, NVJITLINK_SUCCESS, call, "nvJitLinkResult %d\n", (int)check_result__value)
#define stackPtxInjectSerializeCheck(call)                                               \
    CHECK_RESULT__CALL(                                                                  \
        StackPtxInjectSerializeResult, STACK_PTX_INJECT_SERIALIZE_SUCCESS, call, "%s\n", \
        stack_ptx_inject_serialize_result_to_string(check_result__value)                 \
    )
#define ASSERT(condition) CHECK_RESULT__CALL(int, 1, (condition) ? 1 : 0, "failed: %s\n", check_result__value ? "" : #condition)

#endif /* CHECK_RESULT_HELPER_H */
