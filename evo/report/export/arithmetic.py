"""Bound on the change of a formula's values by rounding and approximate instructions.

Owns the model: each operation's result gets errors of the size that its arithmetic allows, as in Monte Carlo arithmetic
(Parker 1997). Knows nothing of archives or formats.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.language.dag import Dag, Node
from evo.language.formula import evaluate
from evo.language.simple_numbers import F32_STEP, F64_STEP
from evo.native.stack_ptx import NodeKind

NUM_SAMPLES = 16
SPREAD = 3.0  # times the largest error of an operation: of its errors in samples
MARGIN = 3.0  # times the largest error of a sample
F32_SMALLEST = 2.0**-126  # smaller numbers are 0


def samples(formula: Dag, inputs: list[NDArray[Any]], *, is_f32: bool) -> Iterator[list[NDArray[np.float64]]]:
    """Outputs of a formula of real numbers, as `evaluate` gives them, computed several times with errors.

    Args:
        is_f32: as a program's instructions compute them; otherwise in float64.
    """
    numbers = count()

    def disturbed(value: Node, computed: Any, operands: Sequence[Any]) -> Any:
        computed = np.asarray(computed)
        if computed.dtype == np.bool_ or value.kind == NodeKind.INPUT or value.semantics.infix in ("floor(a)", "round(a)"):
            return computed
        largest = _largest_error(value, np.abs(computed), operands) if is_f32 else F64_STEP * np.abs(computed)
        computed = computed + SPREAD * largest * _noise(next(numbers), computed.shape)
        return (
            np.where(np.abs(computed) < F32_SMALLEST, 0.0, computed.astype(np.float32)).astype(np.float64) if is_f32 else computed
        )

    return (evaluate(formula, inputs, disturbed) for _ in range(NUM_SAMPLES))


def values_of(
    formula: Dag, inputs: list[NDArray[Any]], *, is_f32: bool
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Outputs of a formula, and how far results in f32 or float64 may be from them; NaN: anywhere."""
    exact = evaluate(formula, inputs)
    allowed = [np.zeros_like(output) for output in exact]
    with np.errstate(all="ignore"):
        for sample in samples(formula, inputs, is_f32=is_f32):
            for i, output in enumerate(sample):
                allowed[i] = np.maximum(allowed[i], MARGIN * np.abs(output - exact[i]))
    return exact, allowed


def _largest_error(value: Node, size: NDArray[np.float64], operands: Sequence[Any]) -> NDArray[np.float64]:
    """Rounding of an operation that gives numbers of this size."""
    error = value.semantics.error
    if error is None:
        return F32_STEP * size
    beyond = np.fmax(1.0, np.abs(operands["abcd".index(error.operand)]) / error.limit)  # sin(a) reads a as turns, in f32
    of_kind = {"ulp": 2.0**-23 * size, "relative": size, "absolute": np.ones_like(size), "either": np.fmax(size, 1.0)}
    rounding: NDArray[np.float64] = error.bound * beyond * of_kind[error.kind] + F32_STEP * size
    return rounding


def _noise(number: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Evenly spread in [-1, 1]; other numbers for each number."""
    indices = np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape)
    return np.asarray(1e4 * np.sin(1e4 * (np.sqrt(2.0) * indices + np.sqrt(3.0) * number)) % 2.0 - 1.0)
