/*
 * proof.h - sweeps over consecutive floats: a function by polynomials, errors of results, and what a GPU may give at most.
 *
 * Private to evo/native/proof.pyx. Nothing is allocated; there is no global state. All machines compute the same bits where libm's
 * sin and cos do.
 */
#ifndef PROOF_H
#define PROOF_H

#include <stddef.h>
#include <stdint.h>

#define PROOF_DEGREE 7
#define PROOF_NUM_COEFFICIENTS (PROOF_DEGREE + 1)

/* A function on consecutive numbers, called by keys that are 1 apart. A piece of at most PROOF_NUM_COEFFICIENTS numbers has their
   values; others have a polynomial in (x - centre) * inverse. */
typedef struct ProofPieces {
    size_t num_pieces;
    const int64_t* first_keys; /* num_pieces + 1 of them, rising */
    const double* centres;
    const double* inverses;
    const double* coefficients; /* PROOF_NUM_COEFFICIENTS of each piece */
    const double* bounds;       /* of the absolute error, in this evaluation too */
} ProofPieces;

typedef struct ProofFormat {
    int32_t digits;
    int32_t least_exponent;
    double overflow; /* from here on infinity is right */
} ProofFormat;

enum { PROOF_ULP, PROOF_ABSOLUTE, PROOF_RELATIVE, PROOF_NUM_ERRORS };

/* worst: the largest errors, and at which points. Falls: steps to the next point at which results move against the function. */
typedef struct ProofErrors {
    double worst[PROOF_NUM_ERRORS];
    int64_t at[PROOF_NUM_ERRORS];
    int64_t num_nans;
    int64_t num_wrong_signs;
    int64_t num_falls;
} ProofErrors;

/* The function at the points from a key on, and the largest bound of its error, in ulps. All keys must be in the pieces. */
typedef double (*ProofReference)(
    const ProofPieces* pieces, const ProofFormat* format, int64_t first_key, const float* x, size_t num_points, double* exact_out
);

/* Errors of results, of the format; relative ones to the least normal number at least. A zero is right where the function is below
   2^-126; infinity, from the overflow on. doubt: 0, or by how many ulps the values may be off: then errors are the least possible. */
typedef void (*ProofCompare)(
    const ProofFormat* format, const float* results, const double* exact, size_t num_points, double doubt, ProofErrors* errors_out
);

/* Of groups of neighbours, `size` points from starts[i] on, or up to the last point, whether an error of a result from low[i] to high[i]
   may be as large as one of `sampled`, and larger than that of `before`. */
typedef void (*ProofScreen)(
    const ProofFormat* format, const double* exact, size_t num_points, const int64_t* starts, size_t num_groups, size_t size,
    const float* low, const float* high, const double* sampled, const double* before, uint8_t* may_be_out
);

/* Instructions on intervals; evo/native/proof.pyx has their names in this order. */
typedef enum {
    PROOF_ADD,
    PROOF_SUB,
    PROOF_MUL,
    PROOF_FMA,
    PROOF_NEG,
    PROOF_ABS,
    PROOF_MIN,
    PROOF_MAX,
    PROOF_COPYSIGN,
    PROOF_RCP,
    PROOF_DIV,
    PROOF_SQRT,
    PROOF_RSQRT,
    PROOF_EX2,
    PROOF_LG2,
    PROOF_TANH,
    PROOF_SIN,
    PROOF_COS,
    PROOF_ROUND,
    PROOF_NUM_OPERATIONS
} ProofOperation;

/* operands: values by their index: the input, the constants, then the results of the steps. The error of an approximate instruction
   is at most the larger of absolute and of relative times the result, where its operand's size, of DIV the second's, is at most
   `limit`. digits and least_exponent: of the format of results, f32 with 24, or a half, of which there are the operations up to MAX,
   EX2, TANH and ROUND, from f32. Halves keep subnormals, but EX2 of 8 digits flushes them. */
typedef struct ProofStep {
    int32_t operation;
    int32_t operands[3];
    int32_t digits;
    int32_t least_exponent;
    double relative;
    double absolute;
    double limit;
} ProofStep;

#define PROOF_BLOCK 512
#define PROOF_MAX_VALUES 256

/* Between which values the last step lies at each point, whatever a GPU does within its bounds; infinities: nothing is known. A point
   is all numbers from an x to the x_high of the same sign; x_high NULL: the x alone. memory: 2 * PROOF_BLOCK doubles for each of at most
   PROOF_MAX_VALUES values. */
typedef void (*ProofIntervals)(
    const ProofStep* steps, size_t num_steps, const float* constants, size_t num_constants, const float* x, const float* x_high,
    size_t num_points, double* memory, float* low_out, float* high_out
);

typedef struct ProofKernels {
    ProofReference reference;
    ProofCompare compare;
    ProofScreen screen;
    ProofIntervals intervals;
} ProofKernels;

/* Kernels of the widest level that this CPU has. All levels compute the same bits. */
const ProofKernels* proof_kernels(void);
const ProofKernels* proof__kernels_baseline(void);
const ProofKernels* proof__kernels_avx2(void);
const ProofKernels* proof__kernels_avx512(void);

#endif /* PROOF_H */
