/*
 * gemm.c - times ptx_inject.h on a file of annotated PTX.
 *
 *     gemm ANNOTATED.ptx STUB...          one stub for each name, in the order of their first appearance
 *
 * Prints the best times, in microseconds, of creating a handle, of rendering, and of copying what was rendered. Uses the public
 * names of mm-ptx alone, so that its header can stand in for ours.
 */

#define _POSIX_C_SOURCE 199309L
#define PTX_INJECT_IMPLEMENTATION
#include "ptx_inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NUM_ROUNDS 2000u
#define MAX_STUBS 16u

static double now_us(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void check(PtxInjectResult result) {
    if (result != PTX_INJECT_SUCCESS) {
        (void)fprintf(stderr, "%s\n", ptx_inject_result_to_string(result));
        exit(EXIT_FAILURE);
    }
}

static char* read_text(const char* path) {
    FILE* file = fopen(path, "rb");
    char* text;
    size_t length;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    length = (size_t)ftell(file);
    rewind(file);
    text = (char*)malloc(length + 1);
    if (text == NULL || fread(text, 1, length, file) != length) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    (void)fclose(file);
    text[length] = '\0';
    return text;
}

int main(int argc, char** argv) {
    const char* stubs[MAX_STUBS];
    const size_t num_stubs = (size_t)argc - 2;
    PtxInjectHandle handle;
    double create = 1e30, render = 1e30, copy = 1e30;
    size_t size = 0, i;
    char *ptx, *buffer, *other;

    if (argc < 3 || num_stubs > MAX_STUBS) return EXIT_FAILURE;
    ptx = read_text(argv[1]);
    for (i = 0; i < num_stubs; ++i) stubs[i] = argv[2 + i];
    for (i = 0; i < NUM_ROUNDS; ++i) {
        const double start = now_us();
        double time;
        check(ptx_inject_create(&handle, ptx));
        time = now_us() - start;
        create = time < create ? time : create;
        check(ptx_inject_destroy(handle));
    }
    check(ptx_inject_create(&handle, ptx));
    check(ptx_inject_render_ptx(handle, stubs, num_stubs, NULL, 0, &size));
    buffer = (char*)malloc(size + 1);
    other = (char*)malloc(size + 1);
    for (i = 0; i < NUM_ROUNDS; ++i) {
        const double start = now_us();
        double between, end;
        check(ptx_inject_render_ptx(handle, stubs, num_stubs, buffer, size + 1, &size));
        between = now_us();
        memcpy(other, buffer, size);
        end = now_us();
        if (other[size / 2] != buffer[size / 2])  /* so that the copy is made */
            return EXIT_FAILURE;
        render = between - start < render ? between - start : render;
        copy = end - between < copy ? end - between : copy;
    }
    (void)printf("%.2f %.2f %.2f\n", create, render, copy);
    check(ptx_inject_destroy(handle));
    free(other);
    free(buffer);
    free(ptx);
    return EXIT_SUCCESS;
}
