"""Offset and scale of formulas with just the digits that data support.

Owns how well data know them. Knows nothing of the formulas.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evo.language.simple_numbers import F32_STEP, MOST_BITS, most_bits, simplest

MOST_ROUNDED = 0.1  # of a scale
EXACT_STEP = 2.0**-44  # of a scale, above what float64 rounds


def simple_scaling(
    values: NDArray[np.float64],
    target: NDArray[np.float64],
    weights: NDArray[np.float64],
    offset: float,
    scale: float,
    error: float,
) -> tuple[float, float] | None:
    """Simple numbers in the place of an offset and a scale, as near as the errors allow; the scale is fitted to the offset's.
    None: those so near are not simple.

    Args:
        values, target, weights: `(num_points,)`.
        offset, scale: that fit `offset + scale * values` best.
        error: the standard error of the mean that they leave.
    """
    total = weights.sum()
    mean = weights @ values / total
    square = weights @ values**2 / total
    variance = weights @ (values - mean) ** 2 / total
    # The constants of a program are rounded, which need not cancel out over the points.
    rounding = F32_STEP * abs(scale) * math.sqrt(square)
    if not (np.isfinite([error, rounding]).all() and variance > 0.0 and scale):
        return None
    first = simplest(offset, max(error * math.sqrt(square / variance), rounding))
    if first.cost > MOST_BITS:
        return None
    scale = float(weights @ (values * (target - first.value)) / (total * square))
    error /= math.sqrt(variance if first.value else square)
    for step in (2.0 * F32_STEP, EXACT_STEP):  # a number of more bits must be nearer
        known = min(max(error, step * abs(scale)), MOST_ROUNDED * abs(scale))
        second = simplest(scale, known)
        if second.cost <= max(MOST_BITS, most_bits(scale, known)):
            return first.value, second.value
    return None
