/*
 * check.h - the C tests' main, which runs every TEST of its file, and their checks: a failed one prints its place and the values,
 * and makes the exit status 1.
 */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int check_num_failures = 0;
static int check_num_tests = 0;
static void (*check_tests[64])(void);

/* TEST(name) { ... } defines a test. */
#define TEST(name)                                                                                       \
    static void name(void);                                                                              \
    __attribute__((constructor)) static void add_##name(void) { check_tests[check_num_tests++] = name; } \
    static void name(void)

int main(void) {
    int i;
    for (i = 0; i < check_num_tests; ++i) check_tests[i]();
    return check_num_failures != 0;
}

#define CHECK(condition)                                                                                \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, __func__, #condition); \
            ++check_num_failures;                                                                       \
        }                                                                                               \
    } while (0)

#define CHECK_UINT(actual, expected)                                                                                       \
    do {                                                                                                                   \
        const unsigned long long check_actual = (unsigned long long)(actual);                                              \
        const unsigned long long check_expected = (unsigned long long)(expected);                                          \
        if (check_actual != check_expected) {                                                                              \
            (void)fprintf(                                                                                                 \
                stderr, "%s:%d: %s: %s is %llu (0x%llx), expected %llu (0x%llx)\n", __FILE__, __LINE__, __func__, #actual, \
                check_actual, check_actual, check_expected, check_expected                                                 \
            );                                                                                                             \
            ++check_num_failures;                                                                                          \
        }                                                                                                                  \
    } while (0)

#define CHECK_TEXT(actual, expected)                                                                                           \
    do {                                                                                                                       \
        const char* check_actual = (actual);                                                                                   \
        const char* check_expected = (expected);                                                                               \
        if (strcmp(check_actual, check_expected) != 0) {                                                                       \
            (void)fprintf(                                                                                                     \
                stderr, "%s:%d: %s: expected\n%s\nbut it is\n%s\n", __FILE__, __LINE__, __func__, check_expected, check_actual \
            );                                                                                                                 \
            ++check_num_failures;                                                                                              \
        }                                                                                                                      \
    } while (0)

#endif /* CHECK_H */
