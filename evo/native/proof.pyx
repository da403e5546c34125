# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Sweeps over consecutive floats: a function by pieces of polynomials, errors of results, and intervals of what a GPU may give.

Owns the arrays that csrc/detail/proof.h reads. Knows nothing of functions' names, programs or files. Releases the GIL.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from evo.native.arrays cimport address


cdef extern from "detail/proof.h" nogil:
    const int PROOF_NUM_COEFFICIENTS
    const int PROOF_BLOCK
    const int PROOF_MAX_VALUES

    ctypedef struct ProofPieces:
        size_t num_pieces
        const int64_t* first_keys
        const double* centres
        const double* inverses
        const double* coefficients
        const double* bounds

    ctypedef struct ProofFormat:
        int32_t digits
        int32_t least_exponent
        double overflow

    ctypedef struct ProofErrors:
        double[3] worst
        int64_t[3] at
        int64_t num_nans
        int64_t num_wrong_signs
        int64_t num_falls

    ctypedef struct ProofStep:
        pass

    ctypedef struct ProofKernels:
        double (*reference)(const ProofPieces*, const ProofFormat*, int64_t, const float*, size_t, double*) noexcept nogil
        void (*compare)(const ProofFormat*, const float*, const double*, size_t, ProofErrors*) noexcept nogil
        void (*intervals)(
            const ProofStep*, size_t, const float*, size_t, const float*, size_t, double*, float*, float*
        ) noexcept nogil

    const ProofKernels* proof_kernels()


# Of a polynomial, one more than its degree; a piece of at most as many numbers has their values instead.
NUM_COEFFICIENTS: int = PROOF_NUM_COEFFICIENTS

# Of a program on intervals: the input, its constants and steps.
MAX_VALUES: int = PROOF_MAX_VALUES

# Operations on intervals, by their number.
OPERATIONS: tuple[str, ...] = tuple("add sub mul fma neg abs min max copysign rcp div sqrt rsqrt ex2 lg2 tanh sin cos".split())

# A step of a program on intervals, laid out like ProofStep.
STEP_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("operation", np.int32), ("operands", np.int32, 3),
        ("relative", np.float64), ("absolute", np.float64), ("limit", np.float64),
    ]
)


cdef class Pieces:
    """A function on consecutive numbers of a format, called by their keys. Immutable, so threads may share it.

    Args:
        first_keys: `(num_pieces + 1,)` int64, rising; the last is one past the end.
        centres, inverses, bounds: `(num_pieces,)`; a polynomial is one of (x - centre) * inverse, wrong by the bound at most.
        coefficients: `(num_pieces, NUM_COEFFICIENTS)`.
        digits, least_exponent, overflow: of the format that errors are measured in.
    """

    cdef ProofPieces pieces
    cdef ProofFormat format
    cdef tuple owned

    def __cinit__(
        self, first_keys: NDArray[np.int64], centres: NDArray[np.float64], inverses: NDArray[np.float64],
        coefficients: NDArray[np.float64], bounds: NDArray[np.float64], *, digits: int, least_exponent: int, overflow: float
    ):
        first_keys = np.ascontiguousarray(first_keys, np.int64)
        arrays = tuple(np.ascontiguousarray(array, np.float64) for array in (centres, inverses, coefficients, bounds))
        count = len(first_keys) - 1
        if [array.shape for array in arrays] != [(count,), (count,), (count, NUM_COEFFICIENTS), (count,)] or count < 1:
            raise ValueError(f"pieces: shapes do not fit {count} pieces")
        self.owned = (first_keys, *arrays)
        self.pieces.num_pieces = count
        self.pieces.first_keys = <const int64_t*>address(first_keys)
        self.pieces.centres = <const double*>address(arrays[0])
        self.pieces.inverses = <const double*>address(arrays[1])
        self.pieces.coefficients = <const double*>address(arrays[2])
        self.pieces.bounds = <const double*>address(arrays[3])
        self.format.digits = digits
        self.format.least_exponent = least_exponent
        self.format.overflow = overflow

    def exact(self, first_key: int, x: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
        """The function at numbers with keys from the first on, and how many ulps it may be wrong by.

        Raises:
            ValueError: a key is in no piece.
        """
        cdef size_t num_points = len(x)
        cdef int64_t first = first_key
        cdef double bound
        keys = self.owned[0]
        if not (keys[0] <= first_key and first_key + len(x) <= keys[len(keys) - 1]):
            raise ValueError(f"exact: keys from {first_key} to {first_key + len(x)} are outside of the pieces")
        x = np.ascontiguousarray(x, np.float32)
        found = np.empty(num_points)
        cdef const float* points = <const float*>address(x)
        cdef double* out = <double*>address(found)
        with nogil:
            bound = proof_kernels().reference(&self.pieces, &self.format, first, points, num_points, out)
        return found, bound

    def compare(self, results: NDArray[np.float32], exact: NDArray[np.float64]) -> tuple[list[float], list[int], tuple[int, int, int]]:
        """The largest errors in ulps, absolute and relative; at which points; and the numbers of NaNs, of wrong signs, and of steps to
        the next point at which results move against the function.
        """
        cdef ProofErrors errors
        results, exact = np.ascontiguousarray(results, np.float32), np.ascontiguousarray(exact, np.float64)
        cdef size_t num_points = len(results)
        if results.shape != exact.shape or results.ndim != 1 or not num_points:
            raise ValueError(f"compare: expected as many results as values, got {results.shape} and {exact.shape}")
        cdef const float* y = <const float*>address(results)
        cdef const double* r = <const double*>address(exact)
        with nogil:
            proof_kernels().compare(&self.format, y, r, num_points, &errors)
        counts = (errors.num_nans, errors.num_wrong_signs, errors.num_falls)
        return [errors.worst[i] for i in range(3)], [errors.at[i] for i in range(3)], counts


def intervals(
    steps: NDArray[np.void], constants: NDArray[np.float32], x: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Between which numbers a program's result lies at each point, whatever a GPU does within the bounds of its instructions.

    Args:
        steps: `(num_steps,)` of STEP_DTYPE; the last gives the result.
        constants: the values after the input.

    Raises:
        ValueError: a step has an operand that comes after it, or there are too many values.
    """
    steps, constants = np.ascontiguousarray(steps, STEP_DTYPE), np.ascontiguousarray(constants, np.float32)
    x = np.ascontiguousarray(x, np.float32)
    cdef size_t num_steps = len(steps), num_constants = len(constants), num_points = len(x)
    own = 1 + num_constants + np.arange(num_steps)
    operands = steps["operands"]
    if not num_steps or (operands < 0).any() or (operands >= own[:, None]).any():
        raise ValueError("intervals: an operand comes after its step")
    if 1 + num_constants + num_steps > PROOF_MAX_VALUES:
        raise ValueError(f"intervals: more than {PROOF_MAX_VALUES} values")
    if (steps["operation"] < 0).any() or (steps["operation"] >= len(OPERATIONS)).any():
        raise ValueError("intervals: no such operation")
    memory = np.empty((1 + num_constants + num_steps) * 2 * PROOF_BLOCK)
    low, high = np.empty(num_points, np.float32), np.empty(num_points, np.float32)
    cdef const ProofStep* c_steps = <const ProofStep*>address(steps)
    cdef const float* c_constants = <const float*>address(constants)
    cdef const float* points = <const float*>address(x)
    cdef double* c_memory = <double*>address(memory)
    cdef float* c_low = <float*>address(low)
    cdef float* c_high = <float*>address(high)
    with nogil:
        proof_kernels().intervals(c_steps, num_steps, c_constants, num_constants, points, num_points, c_memory, c_low, c_high)
    return low, high
