/* Tests of stack_ptx.h: stack_ptx_compile, the call of mm-ptx. See stack_ptx_bench.h. */

#include "stack_ptx.h"
#include "stack_ptx_default_info.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- stack_ptx_compile ---- */

/* The stub of one program, or the name of what is wrong. */
static const char* compile(
    const StackPtxCompilerInfo* limits, const StackPtxInstruction* words, size_t execution_limit, const size_t* requests,
    size_t num_requests
) {
    static char text[4096];
    size_t num_bytes = 0, length = 0, written = 0;
    StackPtxResult result;
    void* workspace;
    CHECK_RESULT(stack_ptx_compile_workspace_size(limits, &stack_info, &num_bytes), SUCCESS);
    workspace = malloc(num_bytes);
    CHECK(workspace != NULL);
#define COMPILE(num_bytes, text, size, length)                                                                             \
    stack_ptx_compile(                                                                                                     \
        limits, &stack_info, words, registers, NUM_REGISTERS, NULL, 0, requests, num_requests, execution_limit, workspace, \
        num_bytes, text, size, length                                                                                      \
    )
    result = COMPILE(num_bytes, NULL, 0, &length);
    if (result == STACK_PTX_SUCCESS) {
        CHECK(COMPILE(num_bytes, text, length, &written) == STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        CHECK_RESULT(COMPILE(num_bytes, text, length + 1, &written), SUCCESS);
        CHECK_UINT(written, length);
        CHECK_UINT(strlen(text), length);
        CHECK_RESULT(COMPILE(num_bytes - 1, text, length + 1, &written), ERROR_INSUFFICIENT_WORKSPACE);
    }
#undef COMPILE
    free(workspace);
    return result == STACK_PTX_SUCCESS ? text : stack_ptx_result_to_string(result);
}

TEST(test_compile_without_frames_gives_an_empty_text_and_reads_nothing) {
    StackPtxCompilerInfo limits = compiler_info;
    char text[2] = {'x', 'x'};
    size_t size = 0, length = 7;
    limits.max_frame_depth = 0;
    CHECK_RESULT(stack_ptx_compile_workspace_size(&limits, NULL, &size), SUCCESS);
    CHECK(size > 0);
    CHECK_RESULT(stack_ptx_compile(&limits, &stack_info, NULL, NULL, 3, NULL, 2, NULL, 1, 9, NULL, 0, text, 1, &length), SUCCESS);
    CHECK_UINT(length, 0);
    CHECK_TEXT(text, "");
    CHECK(text[1] == 'x');
    length = 7;
    CHECK_RESULT(stack_ptx_compile(&limits, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, 0, NULL, 0, NULL, 0, &length), SUCCESS);
    CHECK_UINT(length, 0);
    CHECK(
        stack_ptx_compile(&limits, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, 0, NULL, 0, text, 0, &length) ==
        STACK_PTX_ERROR_INSUFFICIENT_BUFFER
    );
}

/* Names that check_name refuses because a CUDA compiler gives them too; names that make no PTX are refused here too. */
TEST(test_compile_takes_the_names_of_a_compilers_registers) {
    static const char* const right[] = {"f1", "r2", "rd3", "p1", "SP", "_s0", "_", "tid_x"};
    static const char* const wrong[] = {"", "%f1", "f 1", "a.x", "_s0_1"};
    static const StackPtxInstruction words[] = {INPUT(0), RETURN};
    static const size_t request[] = {1};
    char text[64], expected[64];
    StackPtxRegister of_compiler[2] = {{"f1", F32}, {"f2", F32}};
    size_t i, num_bytes = 0, length = 0;
    void* workspace;
    CHECK_RESULT(stack_ptx_compile_workspace_size(&compiler_info, &stack_info, &num_bytes), SUCCESS);
    workspace = malloc(num_bytes);
    CHECK(workspace != NULL);
    for (i = 0; i < COUNT(right) + COUNT(wrong); ++i) {
        const int is_right = i < COUNT(right);
        const char* name = is_right ? right[i] : wrong[i - COUNT(right)];
        of_compiler[0].name = name;
        CHECK(
            stack_ptx_compile(
                &compiler_info, &stack_info, words, of_compiler, 2, NULL, 0, request, 1, 100, workspace, num_bytes, text,
                sizeof text, &length
            ) == (is_right ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INVALID_VALUE)
        );
        if (is_right) {
            (void)snprintf(expected, sizeof expected, "{\nmov.f32 %%f2, %%%s;\n}", name);
            CHECK_TEXT(text, expected);
        }
    }
    free(workspace);
}

/* Templates of registers are filled stub by stub. */
TEST(test_compile_needs_names_only_of_registers_that_are_read_or_requested) {
    static const StackPtxRegister of_template[] = {{NULL, F32}, {"x", F32}, {"y", F32}, {NULL, F32}};
    static const StackPtxInstruction words[] = {INPUT(1), RETURN};
    static const StackPtxInstruction reads[] = {INPUT(0), INPUT(1), RETURN};
    static const size_t named[] = {2}, unnamed[] = {2, 3};
    char text[64];
    size_t num_bytes = 0, length = 0;
    void* workspace;
    CHECK_RESULT(stack_ptx_compile_workspace_size(&compiler_info, &stack_info, &num_bytes), SUCCESS);
    workspace = malloc(num_bytes);
    CHECK(workspace != NULL);
#define COMPILE(program, requests, count)                                                                                    \
    stack_ptx_compile(                                                                                                       \
        &compiler_info, &stack_info, program, of_template, 4, NULL, 0, requests, count, 100, workspace, num_bytes, text, 64, \
        &length                                                                                                              \
    )
    CHECK_RESULT(COMPILE(words, named, 1), SUCCESS);
    CHECK_TEXT(text, "{\nmov.f32 %y, %x;\n}");
    CHECK_RESULT(COMPILE(words, unnamed, 2), ERROR_INVALID_VALUE);
    CHECK_RESULT(COMPILE(reads, named, 1), ERROR_INVALID_VALUE);
#undef COMPILE
    free(workspace);
}

TEST(test_compile_does_not_write_missing_requests_however_many) {
    static size_t requests[5000];
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(IN_U32), RETURN};
    size_t i;
    for (i = 0; i < COUNT(requests); ++i) requests[i] = O5;
    requests[4999] = OUT_U32;
    CHECK_TEXT(compile(&compiler_info, words, 100, requests, COUNT(requests)), "{\nmov.f32 %o5, %a;\nmov.u32 %ou, %iu;\n}");
    CHECK_TEXT(compile(&compiler_info, words, 100, NULL, 0), "{\n}");
}

TEST(test_compile_reports_its_errors) {
    static const StackPtxInstruction unknown[] = {INPUT(A), WORD(NONE, 0, 0), RETURN};
    static const StackPtxInstruction depth[] = {INPUT(A), NUMBER(1), META(YANK_DUP, F32), RETURN};
    static const StackPtxInstruction three[] = {INPUT(A), INPUT(A), INPUT(A), RETURN};
    static const size_t bad_request[] = {NUM_REGISTERS};
    StackPtxCompilerInfo limits = compiler_info;
    StackPtxStackInfo set = stack_info;
    char text[64];
    size_t size = 0;
    CHECK_TEXT(compile(&limits, unknown, 100, request_o0, 1), "STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN");
    CHECK_TEXT(compile(&limits, depth, 100, request_o0, 1), "{\nmov.f32 %o0, %a;\n}");
    CHECK_TEXT(compile(&limits, three, 100, bad_request, 1), "STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS");
    limits.max_ast_size = 2;
    CHECK_TEXT(compile(&limits, three, 100, request_o0, 1), "STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE");
    limits.max_ast_size = SIZE_MAX;
    CHECK_RESULT(stack_ptx_compile_workspace_size(&limits, &stack_info, &size), ERROR_INVALID_VALUE);
    CHECK_RESULT(stack_ptx_compile_workspace_size(NULL, &stack_info, &size), ERROR_INVALID_VALUE);
    CHECK_RESULT(stack_ptx_compile_workspace_size(&compiler_info, NULL, &size), ERROR_INVALID_VALUE);
    CHECK_RESULT(stack_ptx_compile_workspace_size(&compiler_info, &stack_info, NULL), ERROR_INVALID_VALUE);
    set.stack_literal_prefixes = NULL;
    CHECK_RESULT(stack_ptx_compile_workspace_size(&compiler_info, &set, &size), ERROR_INVALID_VALUE);
    CHECK_RESULT(
        stack_ptx_compile(
            &compiler_info, &stack_info, NULL, registers, NUM_REGISTERS, NULL, 0, NULL, 0, 1, text, sizeof text, text,
            sizeof text, &size
        ),
        ERROR_INVALID_VALUE
    );
    CHECK_RESULT(
        stack_ptx_compile(
            &compiler_info, &stack_info, three, registers, NUM_REGISTERS, NULL, 0, NULL, 0, 1, NULL, 0, text, sizeof text, &size
        ),
        ERROR_INVALID_VALUE
    );
}
