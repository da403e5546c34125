/*
 * Times stack_ptx_compile: for each count of live instructions a line `COUNT TIME_US`, the best time of one call, over programs that
 * are read from a file of words: uint64 count of instructions, of programs, of words of each, and then the words.
 */

#define _POSIX_C_SOURCE 199309L
#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"
#include "stack_ptx_default_info.h"

#include "check_result_helper.h"

#include "generated/stack_ptx_descriptions.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NUM_ROUNDS 300

static const StackPtxRegister registers[] = {
    {"x", STACK_PTX_STACK_TYPE_F32},
    {"y", STACK_PTX_STACK_TYPE_F32},
    {"z", STACK_PTX_STACK_TYPE_F32},
};
static const size_t requests[] = {2};

static double now_us(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

int main(int num_arguments, char** arguments) {
    static char buffer[1u << 17];
    uint64_t header[3];
    size_t workspace_bytes = 0, length = 0;
    void* workspace;
    FILE* file = num_arguments == 2 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL ||
        stack_ptx_compile_workspace_size(&compiler_info, &stack_ptx_stack_info, &workspace_bytes) != STACK_PTX_SUCCESS) {
        return EXIT_FAILURE;
    }
    workspace = malloc(workspace_bytes);
    while (fread(header, sizeof header, 1, file) == 1) {
        const size_t num_programs = (size_t)header[1], num_words = (size_t)header[2];
        StackPtxInstruction* words = (StackPtxInstruction*)malloc(num_programs * num_words * sizeof *words);
        double best = 1e30;
        int round;
        if (fread(words, sizeof *words, num_programs * num_words, file) != num_programs * num_words) return EXIT_FAILURE;
        for (round = 0; round < NUM_ROUNDS; ++round) {
            const double start = now_us();
            double time;
            size_t i;
            for (i = 0; i < num_programs; ++i) {
                stackPtxCheck(stack_ptx_compile(
                    &compiler_info, &stack_ptx_stack_info, words + i * num_words, registers, 3, NULL, 0, requests, 1, num_words,
                    workspace, workspace_bytes, buffer, sizeof buffer, &length
                ));
            }
            time = (now_us() - start) / (double)num_programs;
            best = time < best ? time : best;
        }
        (void)printf("%u %.3f\n", (unsigned)header[0], best);
        free(words);
    }
    free(workspace);
    (void)fclose(file);
    return EXIT_SUCCESS;
}
