# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Constants of programs that are fitted to a target.

Owns the memory of a call. Knows nothing of tasks, scores or which programs are worth it. csrc/tune.h documents the method.
Slightly long: each kind of fit fills the same arguments.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evo.native.stack_ptx_tables import instruction_set_tables, word_rows

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t

from evo.native.arrays cimport address
from evo.native.derive cimport DeriveSet, derive_set_of
from evo.native.ptx_vm cimport PTX_VM_RUN_STORE, PtxVmInput, PtxVmLevel, PtxVmProgram, PtxVmSet
from evo.native.stack_ptx cimport (
    STACK_PTX_FLAG_NO_FOLDING, Lowering, StackPtxInstruction, StackPtxLowered, StackPtxStackInfo, StackPtxTraits, fill_stack_info,
)
from evo.native.vm_program cimport prepared


cdef extern from "tune.h" nogil:
    ctypedef enum TuneResult:
        TUNE_SUCCESS
        TUNE_ERROR_INSUFFICIENT_MEMORY

    ctypedef struct TuneWorst:
        size_t num_points
        const double* targets
        const double* scales
        unsigned int num_digits
        int least_exponent
        double largest
        double flushed
        unsigned int num_trials

    ctypedef struct TuneLoss:
        const PtxVmProgram* program
        size_t num_points
        const float* target
        const float* weights
        float start
        bint is_of_errors
        float first_error
        float least_error

    ctypedef struct TuneScaling:
        pass

    ctypedef struct TuneProblem:
        const DeriveSet* derive_set
        const PtxVmSet* vm_set
        PtxVmLevel level
        const PtxVmInput* inputs
        size_t num_inputs
        size_t num_points
        const float* target
        unsigned int num_iterations
        bint is_scaled
        const float* root_weights
        const TuneWorst* worst
        const TuneLoss* loss
        bint is_through_origin

    ctypedef struct TuneOutcome:
        pass

    const int TUNE_MAX_PARAMETERS

    TuneResult tune_program(
        const TuneProblem*, const StackPtxLowered*, StackPtxInstruction*, size_t, void*, size_t, size_t*, TuneOutcome*
    )
    TuneResult tune_scalings(
        const TuneLoss*, const TuneLoss*, const uint32_t*, const float*, size_t, unsigned int, void*, size_t, size_t*, TuneScaling*
    )


# More constants than these are left as they are.
MAX_PARAMETERS: int = TUNE_MAX_PARAMETERS

# Result of tuning a program, laid out like TuneOutcome.
OUTCOME_DTYPE: np.dtype[np.void] = np.dtype(
    [
        ("num_parameters", np.uint32),
        ("num_evaluations", np.uint32),
        ("is_changed", np.uint64),
        ("error_before", np.float64),
        ("error_after", np.float64),
    ]
)


# Offset and scale of outputs, laid out like TuneScaling.
SCALING_DTYPE: np.dtype[np.void] = np.dtype(
    [("num_points", np.uint64)]
    + [(name, np.float64) for name in ("reference", "sum_y", "sum_yy", "offset", "scale", "loss")]
)


class PointLoss(NamedTuple):
    """A loss at points in place of squared errors, of `offset + scale * output`.

    lowering, words: a program of prediction, target and weight that gives the loss, its derivative by the prediction and, unless
    `is_of_errors`, the second one. start: a prediction for all points where it is finite. is_of_errors: it is least where prediction and
    target are equal. Errors are told apart down to `first_error` at first, and down to `least_error` in the end.
    """

    lowering: Any
    words: NDArray[np.uint64]
    start: float
    is_of_errors: bool
    first_error: float
    least_error: float


class PointErrors(NamedTuple):
    """Errors at points whose largest is to be small: the distance of result and target times a scale.

    targets, scales: `(num_points,)` float64, scales above 0. num_digits, least_exponent: results are rounded to this many binary
    digits, or to a multiple of the last of 2^least_exponent; 24: as they are. largest: beyond, they are infinite. flushed: where the
    target is below, a result of zero has no error.
    """

    targets: NDArray[np.float64]
    scales: NDArray[np.float64]
    num_digits: int = 24
    least_exponent: int = -126
    largest: float = float("inf")
    flushed: float = 0.0


cdef struct _Batch:
    # One call.
    const TuneProblem* problem
    uint64_t* rows
    size_t num_words
    TuneOutcome* outcomes


cdef int _tune(
    void* context, const StackPtxLowered* lowered, size_t program_idx, void* memory, size_t num_bytes, size_t* needed_out
) noexcept nogil:
    """A visitor; gives a TuneResult."""
    cdef _Batch* batch = <_Batch*>context
    cdef TuneResult result = tune_program(
        batch.problem, lowered, <StackPtxInstruction*>(batch.rows + program_idx * batch.num_words), batch.num_words, memory,
        num_bytes, needed_out, batch.outcomes + program_idx
    )
    return TUNE_SUCCESS if result == TUNE_ERROR_INSUFFICIENT_MEMORY else result


cdef class LossFitter:
    """Fits offsets and scales of outputs by a loss. Immutable, so threads may share it; `fit` releases the GIL.

    Args:
        machine: a VirtualMachine of the loss's language.
        loss: with the words of its program.
        target, weights: `(num_points,)` float32; without weights all are 1.
        sample: points, sorted, that decide most iterations; None: all.

    Raises:
        ValueError: an array has the wrong type or shape.
    """

    cdef TuneLoss loss, some
    cdef tuple owned
    cdef object points  # of the sample, uint32

    def __cinit__(
        self, machine: VirtualMachine, loss: PointLoss, target: NDArray[np.float32], weights: NDArray[np.float32] | None = None,
        sample: NDArray[np.int64] | None = None
    ):
        target = np.ascontiguousarray(target)
        weights = np.ones_like(target) if weights is None else np.ascontiguousarray(weights)
        if target.dtype != np.float32 or target.ndim != 1 or weights.dtype != np.float32 or weights.shape != target.shape:
            raise ValueError(f"target and weights: expected float32 of shape (num_points,), got {target.shape}, {weights.shape}")
        memory = prepared(machine, loss.words, PTX_VM_RUN_STORE, &self.loss.program)
        self.loss.num_points = len(target)
        self.loss.target, self.loss.weights = <const float*>address(target), <const float*>address(weights)
        self.loss.start, self.loss.is_of_errors = loss.start, loss.is_of_errors
        self.loss.first_error, self.loss.least_error = loss.first_error, loss.least_error
        self.owned = (machine, memory, target, weights)
        if sample is not None:
            self.points = sample.astype(np.uint32)
            some = target[sample], weights[sample]
            self.owned += some
            self.some = self.loss
            self.some.num_points = len(sample)
            self.some.target, self.some.weights = <const float*>address(some[0]), <const float*>address(some[1])

    def handle(self) -> int:
        """For `Tuner`: the address of the TuneLoss, valid while this object lives."""
        return <uintptr_t>&self.loss

    def fit(self, outputs: NDArray[np.float32], iterations: int) -> NDArray[np.void]:
        """Offset, scale and loss of each output, `(n,)` of SCALING_DTYPE.

        Args:
            outputs: `(n, num_points)` float32, contiguous.
        """
        if outputs.dtype != np.float32 or outputs.ndim != 2 or outputs.shape[1] != self.loss.num_points or not outputs.flags.c_contiguous:
            raise ValueError(f"outputs: expected contiguous float32 of shape (n, {self.loss.num_points}), got {outputs.shape}")
        scalings = np.empty(len(outputs), SCALING_DTYPE)
        cdef const TuneLoss* some = NULL
        cdef const uint32_t* points = NULL
        if self.points is not None:
            some, points = &self.some, <const uint32_t*>address(self.points)
        cdef const float* first = <const float*>address(outputs)
        cdef TuneScaling* results = <TuneScaling*>address(scalings)
        cdef size_t num_rows = len(outputs), num_bytes = 0, needed = 0
        cdef unsigned int num_iterations = iterations
        cdef void* memory = NULL
        cdef TuneResult result = TUNE_ERROR_INSUFFICIENT_MEMORY
        while result == TUNE_ERROR_INSUFFICIENT_MEMORY:
            with nogil:
                result = tune_scalings(
                    &self.loss, some, points, first, num_rows, num_iterations, memory, num_bytes, &needed, results
                )
            if result == TUNE_ERROR_INSUFFICIENT_MEMORY:
                num_bytes = needed
                workspace = np.empty(num_bytes, np.uint8)
                memory = address(workspace)
        if result != TUNE_SUCCESS:
            raise ValueError("loss: its program was refused")
        return scalings


cdef class Tuner:
    """Tunes programs of one language against one target. Immutable, so threads may share it; `tune` releases the GIL.

    Args:
        machine: runs the programs.
        inputs: as for `VirtualMachine.store`.
        target: `(num_points,)` float32, what the first request is fitted to.
        iterations: of Levenberg-Marquardt.
        is_scaled: the error is that of a + b y for the best a and b; is_through_origin: of b y.
        weights: `(num_points,)` float32, above 0, factors of squared errors; None: all are 1.
        errors: those whose largest is made small in the end; None: least squares alone. If they are of more points than the target,
            inputs are, too, and the target's come first.
        trials: of the constants' last bits, for that.
        loss: in place of squared errors, with its own target and weights.

    Raises:
        ValueError: an array has the wrong type or shape, or the language has routines, whose words cannot be rewritten; or there are
            both errors and a scale.
    """

    cdef readonly object machine  #: VirtualMachine
    cdef Lowering lowering
    cdef TuneProblem problem
    cdef TuneWorst worst
    cdef tuple owned  # what `problem` points to

    def __cinit__(
        self, machine: VirtualMachine, inputs: Sequence[NDArray[Any] | None], target: NDArray[np.float32], *,
        unsigned int iterations, bint is_scaled, weights: NDArray[np.float32] | None = None,
        errors: PointErrors | None = None, unsigned int trials = 0, loss: LossFitter | None = None,
        bint is_through_origin=False
    ):
        cdef StackPtxStackInfo stack_info
        cdef StackPtxTraits traits
        target = np.ascontiguousarray(target)
        if target.dtype != np.float32 or target.ndim != 1:
            raise ValueError(f"target: expected float32 of shape (num_points,), got {target.dtype} of {target.shape}")
        instruction_set, registers, requests = machine.lowering.instruction_set, machine.lowering.registers, machine.lowering.requests
        if machine.lowering.routines:
            raise ValueError("the language has routines, whose constants cannot be tuned; expected none")
        if not requests or instruction_set.stacks[registers[requests[0]][1]].literal_prefix not in ("f32", "b16"):
            raise ValueError("the language's first request must be an f32, f16 or bf16")
        table, arrays, num_points = machine.input_table(inputs, len(target if errors is None else errors.targets))
        set_address, level = machine.handle()
        self.machine = machine
        self.lowering = machine.lowering
        roots = None if weights is None else np.sqrt(weights, dtype=np.float32)
        if roots is not None and roots.shape != target.shape:
            raise ValueError(f"weights: expected shape {target.shape}, got {roots.shape}")
        tables = instruction_set_tables(instruction_set)
        fill_stack_info(tables, &stack_info, &traits)
        derive_set = derive_set_of(&stack_info, &self.problem.derive_set)
        self.owned = (table, arrays, target, roots, derive_set, errors, loss)
        self.problem.worst = NULL
        if errors is not None:
            if is_scaled or len(errors.targets) < len(target) or errors.scales.shape != errors.targets.shape:
                raise ValueError(f"errors: expected shape {target.shape} and no scale, got {errors.targets.shape}, {errors.scales.shape}")
            self.worst.num_points = num_points
            self.worst.targets, self.worst.scales = <const double*>address(errors.targets), <const double*>address(errors.scales)
            self.worst.num_digits, self.worst.least_exponent = errors.num_digits, errors.least_exponent
            self.worst.largest, self.worst.flushed = errors.largest, errors.flushed
            self.worst.num_trials = trials
            self.problem.worst = &self.worst
        self.problem.loss = NULL if loss is None else <const TuneLoss*><uintptr_t>loss.handle()
        self.problem.root_weights = NULL if roots is None else <const float*>address(roots)
        self.problem.vm_set = <const PtxVmSet*><uintptr_t>set_address
        self.problem.level = <PtxVmLevel><int>level
        self.problem.inputs = <const PtxVmInput*>address(table)
        self.problem.num_inputs = len(table)
        self.problem.num_points = len(target)
        self.problem.target = <const float*>address(target)
        self.problem.num_iterations = iterations
        self.problem.is_scaled, self.problem.is_through_origin = is_scaled, is_through_origin

    def tune(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.void]]:
        """Tuned copies of programs, and what happened to each, `(num_programs,)` of OUTCOME_DTYPE.

        Args:
            words: `(num_programs, max_length)` uint64.

        Raises:
            ValueError: a program reads a register without values.
        """
        tuned = np.array(word_rows(words))
        outcomes = np.empty(len(tuned), OUTCOME_DTYPE)
        cdef _Batch batch
        batch.problem = &self.problem
        batch.rows = <uint64_t*>address(tuned)
        batch.num_words = tuned.shape[1]
        batch.outcomes = <TuneOutcome*>address(outcomes)
        if self.lowering.visit(tuned, _tune, &batch, STACK_PTX_FLAG_NO_FOLDING) != TUNE_SUCCESS:
            raise ValueError("tune: a program reads a register that has no values")
        return tuned, outcomes


def sums_of_products(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums over points of `left[i] * right[j]`, `(len(left), len(right))`.

    Points are added one after the other, so every machine gives the same bits, as a library for matrices does not.

    Args:
        left, right: `(n, num_points)`.
    """
    left, right = np.ascontiguousarray(left, np.float64), np.ascontiguousarray(right.T, np.float64)
    sums = np.zeros((len(left), right.shape[1]))
    cdef const double* a = <const double*>address(left)
    cdef const double* b = <const double*>address(right)
    cdef double* total = <double*>address(sums)
    cdef Py_ssize_t num_left = left.shape[0], num_points = right.shape[0], num_right = right.shape[1], point, i, j, first, end
    cdef double factor
    with nogil:
        for first in range(0, num_right, 64):  # sums that a cache holds
            end = min(first + 64, num_right)
            for point in range(num_points):
                for i in range(num_left):
                    factor = a[i * num_points + point]
                    for j in range(first, end):
                        total[i * num_right + j] += factor * b[point * num_right + j]
    return sums


def best_fits(
    total: float, mean_t: float, means: NDArray[np.float64], squares: NDArray[np.float64], products: NDArray[np.float64],
    columns: Sequence[NDArray[np.float64]], least: float, num_best: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each of n programs p, the m columns that explain most of a target beside 1 and p, by least squares a + b p + c column.

    Args:
        total: the sum of the weights; infinite: a is 0. mean_t: the target's mean.
        means, squares, products: `(n,)`, each program's mean, and the sums of p p and of p times the target without the means.
        columns: sums of a column's products with 1, target, p and itself, `(n, m)` or for all programs alike `(1, m)`.
        least: share of a column's square below which what is left of it, given the others, is rounding.

    Returns:
        The columns' places, the best first and of equals the first, `(n, num_best)`; and what each gains, a, b and c, `(4, n, num_best)`.
    """
    cdef Py_ssize_t num = len(means), count = max(len(each[0]) for each in columns), i, j, k, num_found, kept = min(num_best, count)
    cdef const double[:, ::1] ones = columns[0], targets = columns[1], programs = columns[2], own = columns[3]
    cdef const double[::1] mean_p = means, pp = squares, pt = products
    cdef double weight = total, of_t = mean_t, share = least, along, left, rest, b
    places, fits, rows = np.zeros((num, kept), np.int64), np.zeros((4, num, kept)), np.empty((2, count))
    cdef int64_t[:, ::1] chosen = places
    cdef double[:, :, ::1] found = fits
    cdef double[::1] gains = rows[0], slopes = rows[1]
    cdef const double *one, *target, *program, *square
    with nogil:
        for i in range(num):
            one, target = &ones[i if ones.shape[0] > 1 else 0, 0], &targets[i if targets.shape[0] > 1 else 0, 0]
            program, square = &programs[i if programs.shape[0] > 1 else 0, 0], &own[i if own.shape[0] > 1 else 0, 0]
            for j in range(count):
                along = program[j] - one[j] * mean_p[i]
                left = square[j] - one[j] * (one[j] / weight) - along * along / pp[i]
                rest = target[j] - one[j] * of_t - along * pt[i] / pp[i]
                slopes[j] = rest / left
                gains[j] = rest * slopes[j] if left > share * square[j] else -INFINITY
            num_found = 0
            for j in range(count):
                if num_found == kept and not gains[j] > gains[chosen[i, kept - 1]]:
                    continue
                k = num_found if num_found < kept else kept - 1
                while k > 0 and gains[j] > gains[chosen[i, k - 1]]:
                    chosen[i, k] = chosen[i, k - 1]
                    k -= 1
                chosen[i, k] = j
                num_found = min(num_found + 1, kept)
            for k in range(kept):
                j = chosen[i, k]
                b = (pt[i] - slopes[j] * (program[j] - one[j] * mean_p[i])) / pp[i]
                found[0, i, k], found[2, i, k], found[3, i, k] = gains[j], b, slopes[j]
                found[1, i, k] = of_t - b * mean_p[i] - slopes[j] * (one[j] / weight)
    return places, fits
