/*
 * fuzz_text.h - what fuzz targets over texts share: how bytes become a text, and a driver for where there is no libFuzzer.
 *
 * With libFuzzer:  clang -DUSE_LIBFUZZER -fsanitize=fuzzer,address,undefined -I csrc tests/csrc/fuzz_NAME.c
 * Without:         the program takes a number of runs, and makes as many inputs from a fixed seed.
 */

#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Holds also where NDEBUG is defined. */
#define REQUIRE(condition)                                                                \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

/* The text of some bytes: themselves where the first is 0, else a fragment for each, and in few places the byte itself. It ends
   at a NUL byte. In memory of exactly its size, to be freed. */
static char* fuzz_text(const uint8_t* data, size_t size, const char* const* fragments, size_t num_fragments) {
    size_t max_fragment = 1, length = 0, i;
    char* text;
    char* exact;
    for (i = 0; i < num_fragments; ++i) {
        const size_t fragment = strlen(fragments[i]);
        max_fragment = fragment > max_fragment ? fragment : max_fragment;
    }
    text = (char*)malloc(size * max_fragment + 1);
    REQUIRE(text != NULL);
    for (i = 1; i < size; ++i) {
        if (data[0] == 0 || data[i] >= 250) {
            text[length++] = (char)data[i];
        } else {
            const char* fragment = fragments[data[i] % num_fragments];
            memcpy(text + length, fragment, strlen(fragment));
            length += strlen(fragment);
        }
    }
    text[length] = '\0';
    length = strlen(text);
    exact = (char*)malloc(length + 1);
    REQUIRE(exact != NULL);
    memcpy(exact, text, length + 1);
    free(text);
    return exact;
}

#ifndef USE_LIBFUZZER
/* SplitMix64. */
static uint64_t next_random(uint64_t* state) {
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

int main(int num_arguments, char** arguments) {
    static uint8_t data[400];
    const unsigned long num_runs = num_arguments > 1 ? strtoul(arguments[1], NULL, 10) : 10000;
    unsigned long run;
    uint64_t state = 1;
    for (run = 0; run < num_runs; ++run) {
        /* Short ones often: only they are now and then right from one end to the other. */
        const size_t max_size = run % 2 == 0 ? 24 : sizeof data;
        const size_t size = (size_t)(next_random(&state) % (max_size + 1));
        size_t i;
        for (i = 0; i < size; ++i) {
            data[i] = (uint8_t)next_random(&state);
        }
        (void)LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
#endif

#endif /* FUZZ_TEXT_H */
