/*
 * fuzz.h - a check for fuzz targets, and a driver for use without libFuzzer.
 *
 * With libFuzzer:  clang -DUSE_LIBFUZZER -fsanitize=fuzzer,address,undefined -I csrc tests/csrc/fuzz_NAME.c -lm
 * Without:         the program takes a number of runs, 10000 if there is none, and a seed, else 1, and makes that many inputs.
 *                  A target defines FUZZ_MAX_BYTES, the greatest size of an input, before it includes this file.
 */

#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Works with NDEBUG too. */
#define REQUIRE(condition)                                                                \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#ifndef USE_LIBFUZZER
/* SplitMix64. */
static uint64_t fuzz_random(uint64_t* state) {
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

int main(int num_arguments, char** arguments) {
    static uint8_t data[FUZZ_MAX_BYTES];
    const unsigned long num_runs = num_arguments > 1 ? strtoul(arguments[1], NULL, 10) : 10000;
    unsigned long run;
    uint64_t state = num_arguments > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    for (run = 0; run < num_runs; ++run) {
        /* Often short: only short inputs are sometimes valid as a whole. */
        const size_t max_size = run % 3 == 0 ? sizeof data / 24 : sizeof data;
        const size_t size = (size_t)(fuzz_random(&state) % (max_size + 1));
        size_t i;
        for (i = 0; i < size; ++i) data[i] = (uint8_t)fuzz_random(&state);
        (void)LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
#endif

#endif /* FUZZ_H */
