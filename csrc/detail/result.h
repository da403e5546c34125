/*
 * result.h - one row for each result of a library: its enumerator, its value and what it means.
 *
 * Private: included by the headers of csrc/. A header lists its rows once, and makes of them the enumeration and its texts:
 *
 *     #define DERIVE__RESULTS(X)                                       \
 *         X(DERIVE_SUCCESS, 0)                                        \
 *         X(DERIVE_ERROR_INVALID_VALUE, 1) / * NULL, a bad index * /
 *
 *     typedef enum { DERIVE__RESULTS(EVO__ENUMERATOR) DERIVE_RESULT_NUM_ENUMS } DeriveResult;
 *
 *     const char* derive_result_to_string(DeriveResult result) { EVO__RETURN_NAME(result, DERIVE__RESULTS, "unknown") }
 */

#ifndef EVO_RESULT_H
#define EVO_RESULT_H

#define EVO__ENUMERATOR(name, value) name = value,

#define EVO__NAME_CASE(name, value) \
    case value: return #name;

/* The body of a function that returns an enumerator's name. The text is static. */
#define EVO__RETURN_NAME(result, ROWS, unknown) \
    switch ((int)(result)) {                    \
        ROWS(EVO__NAME_CASE)                    \
        default: return unknown;                \
    }

#endif /* EVO_RESULT_H */
