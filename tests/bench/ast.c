/*
 * Times ast_ptx_compile and ast_ptx_interpret: for each count of live instructions a line `COUNT COMPILE_US MEASURE_US INTERPRET_US`,
 * the best time of one call over programs that are read from a file of words: uint64 count of instructions, of programs, of words of
 * each, and then the words.
 */

#define _POSIX_C_SOURCE 199309L
#define AST_PTX_IMPLEMENTATION
#include <ast_ptx.h>
#include <ast_ptx_instructions.h>
#include <ast_ptx_interpreter.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NUM_ROUNDS 300

static const char* const names[] = {"x", "y"};
static const float inputs[] = {0.5f, 2.0f};
static char buffer[1u << 17];

static double now_us(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static AstPtxResult compile(const AstPtxInstruction* program, char* text, size_t size) {
    size_t length = 0;
    return ast_ptx_compile(
        "z", names, 2, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args, AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, NULL,
        0, program, text, size, &length
    );
}

static AstPtxResult run(int what, const AstPtxInstruction* program) {
    float value = 0.0f;
    switch (what) {
        case 0: return compile(program, buffer, sizeof buffer);
        case 1: return compile(program, NULL, 0);
        default: return ast_ptx_interpret(program, NULL, 0, inputs, 2, &value);
    }
}

int main(int num_arguments, char** arguments) {
    uint64_t header[3];
    FILE* file = num_arguments == 2 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL) return EXIT_FAILURE;
    while (fread(header, sizeof header, 1, file) == 1) {
        const size_t num_programs = (size_t)header[1], num_words = (size_t)header[2];
        AstPtxInstruction* words = (AstPtxInstruction*)malloc(num_programs * num_words * sizeof *words);
        int what, round;
        if (words == NULL || fread(words, sizeof *words, num_programs * num_words, file) != num_programs * num_words)
            return EXIT_FAILURE;
        (void)printf("%u", (unsigned)header[0]);
        for (what = 0; what < 3; ++what) {
            double best = 1e30;
            for (round = 0; round < NUM_ROUNDS; ++round) {
                const double start = now_us();
                double time;
                size_t i;
                for (i = 0; i < num_programs; ++i)
                    if (run(what, words + i * num_words) != AST_PTX_SUCCESS) return EXIT_FAILURE;
                time = (now_us() - start) / (double)num_programs;
                best = time < best ? time : best;
            }
            (void)printf(" %.3f", best);
        }
        (void)printf("\n");
        free(words);
    }
    (void)fclose(file);
    return EXIT_SUCCESS;
}
