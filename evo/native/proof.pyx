# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Sweeps over consecutive floats: a function by pieces of polynomials, errors of results, and intervals of what a GPU may give.

Owns the arrays that csrc/detail/proof.h reads. Knows nothing of functions' names, programs or files. Releases the GIL.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

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
        void (*compare)(const ProofFormat*, const float*, const double*, size_t, double, ProofErrors*) noexcept nogil
        void (*screen)(
            const ProofFormat*, const double*, size_t, const int64_t*, size_t, size_t, const float*, const float*, const double*,
            const double*, uint8_t*
        ) noexcept nogil
        void (*intervals)(
            const ProofStep*, size_t, const float*, size_t, const float*, const float*, size_t, double*, float*, float*
        ) noexcept nogil

    const ProofKernels* proof_kernels()


# Of a polynomial, one more than its degree; a piece of at most as many numbers has their values instead.
NUM_COEFFICIENTS: int = PROOF_NUM_COEFFICIENTS

# Of a program on intervals: the input, its constants and steps.
MAX_VALUES: int = PROOF_MAX_VALUES

# Operations on intervals, by their number.
OPERATIONS: tuple[str, ...] = tuple("add sub mul fma neg abs min max copysign rcp div sqrt rsqrt ex2 lg2 tanh sin cos round".split())

# A step of a program on intervals, laid out like ProofStep.
STEP_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("operation", np.int32), ("operands", np.int32, 3), ("digits", np.int32), ("least_exponent", np.int32),
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

    @property
    def tables(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The arrays that it was made of, in that order."""
        return self.owned

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

    def compare(
        self, results: NDArray[np.float32], exact: NDArray[np.float64], doubt: float = 0.0
    ) -> tuple[list[float], list[int], tuple[int, int, int]]:
        """The largest errors in ulps, absolute and relative; at which points; and the numbers of NaNs, of wrong signs, and of steps to
        the next point at which results move against the function.

        Args:
            doubt: by how many ulps the exact values may be off: errors are the least possible ones then, else the largest.
        """
        cdef ProofErrors errors
        results, exact = np.ascontiguousarray(results, np.float32), np.ascontiguousarray(exact, np.float64)
        cdef size_t num_points = len(results)
        if results.shape != exact.shape or results.ndim != 1 or not num_points:
            raise ValueError(f"compare: expected as many results as values, got {results.shape} and {exact.shape}")
        cdef const float* y = <const float*>address(results)
        cdef const double* r = <const double*>address(exact)
        cdef double c_doubt = doubt
        with nogil:
            proof_kernels().compare(&self.format, y, r, num_points, c_doubt, &errors)
        counts = (errors.num_nans, errors.num_wrong_signs, errors.num_falls)
        return [errors.worst[i] for i in range(3)], [errors.at[i] for i in range(3)], counts

    def screen(
        self, exact: NDArray[np.float64], starts: NDArray[np.int64], size: int, ends: Sequence[NDArray[np.float32]],
        sampled: Sequence[float], before: Sequence[float],
    ) -> NDArray[np.bool_]:
        """Return whether a group of `size` neighbours, from each start on, may have an error of some kind that is no less than one of
        `sampled` and larger than one of `before`, if its results lie between its ends.

        Raises:
            ValueError: a start is not a place of `exact`, or there are not as many ends.
        """
        exact, starts = np.ascontiguousarray(exact, np.float64), np.ascontiguousarray(starts, np.int64)
        low, high = (np.ascontiguousarray(each, np.float32) for each in ends)
        cdef size_t num_points = len(exact), num_groups = len(starts), c_size = size
        if not low.shape == high.shape == starts.shape or (num_groups and not 0 <= starts.min() <= starts.max() < len(exact)):
            raise ValueError(f"screen: {num_groups} starts in {num_points} points, {len(low)} and {len(high)} ends")
        found = np.empty(num_groups, np.uint8)
        cdef double[3] c_sampled = sampled, c_before = before
        cdef const double* r = <const double*>address(exact)
        cdef const int64_t* s = <const int64_t*>address(starts)
        cdef const float* y0 = <const float*>address(low)
        cdef const float* y1 = <const float*>address(high)
        cdef uint8_t* out = <uint8_t*>address(found)
        with nogil:
            proof_kernels().screen(&self.format, r, num_points, s, num_groups, c_size, y0, y1, c_sampled, c_before, out)
        return found.view(np.bool_)


def intervals(
    steps: NDArray[np.void], constants: NDArray[np.float32], x: NDArray[np.float32], x_high: NDArray[np.float32] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Between which numbers a program's result lies at each point, whatever a GPU does within the bounds of its instructions.

    Args:
        steps: `(num_steps,)` of STEP_DTYPE; the last gives the result.
        constants: the values after the input.
        x_high: a point is all numbers from its x up to this, both of one sign; None: its x alone.

    Raises:
        ValueError: a step has an operand that comes after it, or there are too many values.
    """
    steps, constants = np.ascontiguousarray(steps, STEP_DTYPE), np.ascontiguousarray(constants, np.float32)
    x, x_high = (None if each is None else np.ascontiguousarray(each, np.float32) for each in (x, x_high))
    if x_high is not None and x_high.shape != x.shape:
        raise ValueError(f"intervals: {len(x)} points have {len(x_high)} upper ends")
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
    cdef const float* ends = <const float*>address(x_high) if x_high is not None else NULL
    cdef double* c_memory = <double*>address(memory)
    cdef float* c_low = <float*>address(low)
    cdef float* c_high = <float*>address(high)
    with nogil:
        proof_kernels().intervals(
            c_steps, num_steps, c_constants, num_constants, points, ends, num_points, c_memory, c_low, c_high
        )
    return low, high
