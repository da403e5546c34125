/*
 * fuzz.h - a check for fuzz targets of libFuzzer:
 *
 * clang -fsanitize=fuzzer,address,undefined -I csrc tests/csrc/fuzz_NAME.c -lm
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

#endif /* FUZZ_H */
