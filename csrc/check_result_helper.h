/*
 * check_result_helper.h - for programs that end at an error.
 *
 *     #include "check_result_helper.h"
 *
 *     stackPtxCheck(stack_ptx_compile(..));      prints the place of the call and the result to stderr and exits with
 *     astPtxCheck(ast_ptx_compile(..));          EXIT_FAILURE unless the result is SUCCESS
 *     ptxInjectCheck(ptx_inject_create(..));
 *
 * A file of its own, so that the libraries take no such names from their users.
 */

#ifndef CHECK_RESULT_HELPER_H
#define CHECK_RESULT_HELPER_H

#include <stdio.h>
#include <stdlib.h>

#define stackPtxCheck(call)                                                                                               \
    do {                                                                                                                  \
        const StackPtxResult stack_ptx_check_result = (call);                                                             \
        if (stack_ptx_check_result != STACK_PTX_SUCCESS) {                                                                \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, stack_ptx_result_to_string(stack_ptx_check_result)); \
            exit(EXIT_FAILURE);                                                                                           \
        }                                                                                                                 \
    } while (0)

#define astPtxCheck(call)                                                                                             \
    do {                                                                                                              \
        const AstPtxResult ast_ptx_check_result = (call);                                                             \
        if (ast_ptx_check_result != AST_PTX_SUCCESS) {                                                                \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, ast_ptx_result_to_string(ast_ptx_check_result)); \
            exit(EXIT_FAILURE);                                                                                       \
        }                                                                                                             \
    } while (0)

#define ptxInjectCheck(call)                                                                                                \
    do {                                                                                                                    \
        const PtxInjectResult ptx_inject_check_result = (call);                                                             \
        if (ptx_inject_check_result != PTX_INJECT_SUCCESS) {                                                                \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, ptx_inject_result_to_string(ptx_inject_check_result)); \
            exit(EXIT_FAILURE);                                                                                             \
        }                                                                                                                   \
    } while (0)

#endif /* CHECK_RESULT_HELPER_H */
