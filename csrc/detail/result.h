/*
 * result.h - results of a library, where its errors assert, and the linkage of its functions.
 *
 * Private: included by the headers of csrc/. A header lists its results once, and makes of them the enumeration and its texts. A
 * switch of its user is defined empty or as 1:
 *
 *     #define TUNE_API EVO__API(TUNE_STATIC)
 *     #define TUNE__ERROR(code) EVO__ERROR(TUNE_DEBUG, TUNE_ERROR_##code)
 *
 *     #define TUNE__RESULTS(X)                                       \
 *         X(TUNE_SUCCESS, 0)                                         \
 *         X(TUNE_ERROR_INVALID_VALUE, 1) / * NULL, a bad index * /
 *
 *     typedef enum { TUNE__RESULTS(EVO__ENUMERATOR) TUNE_RESULT_NUM_ENUMS } TuneResult;
 *
 *     const char* tune_result_to_string(TuneResult result) { EVO__RETURN_NAME(result, TUNE__RESULTS, "unknown") }
 */

#ifndef EVO_RESULT_H
#define EVO_RESULT_H

#include <assert.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words of programs are little-endian, and so must the machine be"
#endif

#define EVO__ENUMERATOR(name, value) name = value,

#define EVO__NAME_CASE(name, value) \
    case value: return #name;

/* The body of a function that returns an enumerator's name. The text is static. */
#define EVO__RETURN_NAME(result, ROWS, unknown) \
    switch ((int)(result)) {                    \
        ROWS(EVO__NAME_CASE)                    \
        default: return unknown;                \
    }

/* CHOICE_1 if the switch is defined, otherwise CHOICE_0: a comma makes the 1 the second argument. */
#define EVO__SWITCHED_BY_ ,
#define EVO__SWITCHED_BY_1 ,
#define EVO__CHOOSE(choice, is_on) EVO__CHOOSE_BY(choice, is_on)
#define EVO__CHOOSE_BY(choice, is_on) EVO__CHOOSE_AFTER(choice, EVO__SWITCHED_BY_##is_on)
#define EVO__CHOOSE_AFTER(choice, comma) EVO__CHOOSE_SECOND(choice, comma 1, 0, )
#define EVO__CHOOSE_SECOND(choice, ignored, number, ...) EVO__PASTE(choice, number)
#define EVO__PASTE(choice, number) choice##number

/* The linkage of a library's functions, in front of declarations: static by a switch. */
#define EVO__API(is_static) EVO__CHOOSE(EVO__API_, is_static)
#define EVO__API_0
#if defined(__GNUC__)
#define EVO__API_1 static __attribute__((unused))
#else
#define EVO__API_1 static
#endif

/* An error; a switch makes it assert where it is found. */
#define EVO__ERROR(is_debug, code) EVO__CHOOSE(EVO__ERROR_, is_debug)(code)
#define EVO__ERROR_0(code) (code)
#define EVO__ERROR_1(code) (assert(0 && #code), (code))

#endif /* EVO_RESULT_H */
