/*
 * Fuzz target: any bytes as words compile with the default set to a stub of its measured length, or give an error, within the
 * given buffer and workspace. The bytes are used unchanged: 16 of options, then words.
 * fuzz.h says how to run it.
 */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"

#include "generated/stack_ptx_descriptions.h"

#include <stdlib.h>
#include <string.h>

#define NUM_OPTIONS 16u
#define MAX_WORDS 200u
#define NUM_FUZZ_REGISTERS 20u /* two of each stack, and two of one name */

#define FUZZ_MAX_BYTES (NUM_OPTIONS + 8 * (MAX_WORDS + 20))
#include "fuzz.h"

/* All but the workspace's size and the output is the same in each call. */
#define COMPILE(num_bytes, buffer, buffer_size, length)                                                                        \
    stack_ptx_compile(                                                                                                         \
        &info, &stack_ptx_stack_info, words, registers, NUM_FUZZ_REGISTERS, routines, options[13] % 3, requests, num_requests, \
        execution_limit, workspace, num_bytes, buffer, buffer_size, length                                                     \
    )

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const uint8_t no_options[NUM_OPTIONS] = {0};
    static const char letters[2 * NUM_FUZZ_REGISTERS] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t";
    const uint8_t* options = size < NUM_OPTIONS ? no_options : data;
    const size_t offset = size < NUM_OPTIONS ? size : NUM_OPTIONS;
    const size_t num_words = (size - offset) / sizeof(StackPtxInstruction);
    /* Fewer words than there are, so that some programs have no RETURN within them. */
    const size_t execution_limit = num_words < MAX_WORDS ? num_words : MAX_WORDS;
    StackPtxRegister registers[NUM_FUZZ_REGISTERS];
    StackPtxCompilerInfo info;
    const StackPtxInstruction* routines[2];
    size_t requests[4];
    const size_t num_requests = options[5] % 5;
    size_t num_bytes = 0, length = 0, written = 0, i;
    StackPtxInstruction* words;
    StackPtxResult measured, result;
    void* workspace;
    char* buffer;

    info.max_ast_size = options[0] * 2u;
    info.max_ast_to_visit_stack_depth = options[1];
    info.stack_size = options[2] % 40;
    info.max_frame_depth = options[3] % 6;
    info.store_size = options[4] % 20;
    for (i = 0; i < NUM_FUZZ_REGISTERS; ++i) {
        registers[i].name = i % 10 == 9 ? "same" : i == 18 ? "a_name_that_is_longer_than_a_slot" : &letters[2 * i];
        registers[i].stack_idx = (uint16_t)(i % 10 == 9 ? 0 : i % 10);
    }
    for (i = 0; i < 4; ++i) requests[i] = options[6 + i] % (NUM_FUZZ_REGISTERS + (options[10] == 7));
    words = (StackPtxInstruction*)malloc(num_words * sizeof *words + 1);
    REQUIRE(words != NULL);
    memcpy(words, data + offset, num_words * sizeof *words);
    if ((options[11] & 3) != 0) { /* near what exists */
        for (i = 0; i < num_words; ++i) {
            words[i].instruction_type = (uint16_t)(words[i].instruction_type % STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS);
            words[i].aux = (uint16_t)(words[i].aux % (STACK_PTX_STACK_TYPE_NUM_ENUMS + (options[11] & 1)));
            words[i].payload.u %= words[i].instruction_type == STACK_PTX_INSTRUCTION_TYPE_PTX
                ? STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS
                : 4u + (options[11] >> 4);
        }
    }
    /* A routine ends with a RETURN or with the execution limit: both run the words of the program itself. */
    routines[0] = words;
    routines[1] = words;

    REQUIRE(stack_ptx_compile_workspace_size(&info, &stack_ptx_stack_info, &num_bytes) == STACK_PTX_SUCCESS);
    workspace = malloc(num_bytes);
    REQUIRE(workspace != NULL);
    memset(workspace, options[12], num_bytes);
    measured = COMPILE(num_bytes, NULL, 0, &length);
    if (measured != STACK_PTX_SUCCESS) {
        REQUIRE(measured < STACK_PTX_RESULT_NUM_ELEMS && measured != STACK_PTX_ERROR_INTERNAL);
        length = 0;
    }
    /* Exactly the size, so that a sanitizer sees writes past the end. */
    buffer = (char*)malloc(length + 1);
    REQUIRE(buffer != NULL);
    result = COMPILE(num_bytes, buffer, length + 1, &written);
    REQUIRE(result == measured);
    if (result == STACK_PTX_SUCCESS) {
        REQUIRE(written == length && strlen(buffer) == length);
        REQUIRE(info.max_frame_depth == 0 ? length == 0 : buffer[0] == '{' && buffer[length - 1] == '}');
        if (length > 0) {
            result = COMPILE(num_bytes, buffer, length - options[14] % length, &written);
            REQUIRE(result == STACK_PTX_ERROR_INSUFFICIENT_BUFFER && written == length);
        }
        result = COMPILE(num_bytes - 1, NULL, 0, &written);
        REQUIRE(result == (info.max_frame_depth == 0 ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE));
    }
    free(buffer);
    free(workspace);
    free(words);
    return 0;
}
