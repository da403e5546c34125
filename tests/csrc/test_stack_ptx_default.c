/* Tests of the generated header of the default instruction set with stack_ptx_compile. */

#include "stack_ptx.h"
#include "stack_ptx_default_info.h"

#include "generated/stack_ptx_descriptions.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { X, Z, NUM_REGISTERS };
static const StackPtxRegister registers[] = {{"x", STACK_PTX_STACK_TYPE_F32}, {"z", STACK_PTX_STACK_TYPE_F32}};

static const char* compile_with(const StackPtxStackInfo* info, const StackPtxInstruction* words, size_t num_requests) {
    static const size_t request_z[] = {Z};
    static char text[4096];
    size_t num_bytes = 0, length = 0;
    StackPtxResult result;
    void* workspace;
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &stack_ptx_stack_info, &num_bytes) == STACK_PTX_SUCCESS);
    workspace = malloc(num_bytes);
    CHECK(workspace != NULL);
    result = stack_ptx_compile(
        &compiler_info, info, words, registers, NUM_REGISTERS, NULL, 0, request_z, num_requests, 100, workspace, num_bytes, text,
        sizeof text, &length
    );
    free(workspace);
    CHECK(result != STACK_PTX_SUCCESS || length == strlen(text));
    return result == STACK_PTX_SUCCESS ? text : stack_ptx_result_to_string(result);
}

/* The size query checks the whole set; compiling checks the instructions and special registers that the program uses. */
TEST(test_broken_descriptions_are_found_where_they_are_used) {
    static const StackPtxInstruction uses[] = {
        stack_ptx_encode_input(X), stack_ptx_encode_ptx_instruction_abs_ftz_f32, stack_ptx_encode_return
    };
    static const StackPtxInstruction uses_special[] = {stack_ptx_encode_special_register_laneid, stack_ptx_encode_return};
    static const StackPtxInstruction uses_neither[] = {stack_ptx_encode_input(X), stack_ptx_encode_return};
    StackPtxPtxInstructionDescriptor descriptors[STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS];
    StackPtxSpecialRegisterDescriptor specials[STACK_PTX_SPECIAL_REGISTER_NUM_ENUMS];
    const char* strings[STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS];
    StackPtxStackInfo info = stack_ptx_stack_info;
    size_t num_bytes = 0;
    memcpy(descriptors, stack_ptx_ptx_instruction_descriptors, sizeof descriptors);
    memcpy(specials, stack_ptx_special_register_descriptors, sizeof specials);
    memcpy(strings, stack_ptx_ptx_instruction_strings, sizeof strings);
    info.ptx_instruction_descriptors = descriptors;
    info.special_register_descriptors = specials;
    info.ptx_instruction_strings = strings;

    descriptors[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32].arg_types[0] = STACK_PTX_ARG_TYPE_NUM_ENUMS + 1;
    CHECK_TEXT(compile_with(&info, uses, 1), "STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS");
    CHECK_TEXT(compile_with(&info, uses_neither, 1), "{\nmov.f32 %z, %x;\n}");
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &info, &num_bytes) == STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
    descriptors[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32].arg_types[0] = STACK_PTX_ARG_TYPE_F32;

    strings[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32] = NULL;
    CHECK_TEXT(compile_with(&info, uses, 1), "STACK_PTX_ERROR_INVALID_VALUE");
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &info, &num_bytes) == STACK_PTX_ERROR_INVALID_VALUE);
    strings[STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32] = "abs.ftz.f32";

    specials[STACK_PTX_SPECIAL_REGISTER_LANEID].arg_type_idx = STACK_PTX_ARG_TYPE_NUM_ENUMS;
    CHECK_TEXT(compile_with(&info, uses_special, 1), "STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS");
    CHECK_TEXT(compile_with(&info, uses, 0), "{\n}");
    CHECK(stack_ptx_compile_workspace_size(&compiler_info, &info, &num_bytes) == STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
}
