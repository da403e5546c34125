"""Offsets and scales of formulas and of their inputs, in the digits that data support. Knows nothing of programs."""

import math

import numpy as np
from numpy.typing import NDArray

from evo.language.simple_numbers import F32_STEP, MOST_BITS, NEAR, Choice, misfit_bits, most_bits, simplest

Row = NDArray[np.float64]  # a number for each point

LARGEST_FACTOR = 2.0**30  # of an input; float32 then holds its fourth powers, and their reciprocals
LEAST_DEVIATION = 1e-3  # of an input over its size; below, float32 does not resolve a ten-thousandth of the deviation
ROUNDING = 8.0 * np.finfo(np.float64).eps  # of numbers that a formula adds up, over the largest of them
SURE = 0.01  # standard errors that offset and scale are rounded by
MOST_ROUNDED = 0.1  # of a scale that becomes a simple number
EXACT_STEP = 2.0**-44  # of a scale, above what float64 rounds


def fitted_scaling(outputs: Row, target: Row, weights: Row | None, mean: float, deviation: float) -> tuple[float, float]:
    """Offset and scale that minimise the squared error where the output is finite, in the digits that the data support.

    Args:
        target: in deviations from the mean; the result is not.
    """
    known = np.isfinite(outputs)
    y, t = outputs[known], target[known]
    if not len(y) or y.min() == y.max():
        return mean, 0.0
    w = np.ones(len(y)) if weights is None else weights[known]
    mean_y, mean_t = np.average([y, t], axis=1, weights=w)
    variance = np.average((y - mean_y) ** 2, weights=w)
    slope = np.average((y - mean_y) * (t - mean_t), weights=w) / variance
    error = np.average((t - mean_t - slope * (y - mean_y)) ** 2, weights=w) * (w**2).sum() / w.sum() ** 2
    rounding = ROUNDING * max(1.0, abs(mean) / deviation, abs(slope) * np.abs(y).max())
    scale = deviation * slope
    offset = mean + deviation * mean_t - scale * mean_y
    simple = _simple_scaling(y, mean + deviation * t, w, offset, scale, deviation * math.sqrt(error))
    if simple:
        return simple
    allowed = deviation * (SURE * math.sqrt(error) + rounding)
    scale = _shortest(scale, allowed / math.sqrt(variance))
    return _shortest(mean + deviation * mean_t - scale * mean_y, allowed), scale


def _simple_scaling(
    values: Row, target: Row, weights: Row, offset: float, scale: float, error: float
) -> tuple[float, float] | None:
    """Simple numbers in the place of the best offset and scale, as near as the standard error of their mean allows; either is
    fitted to the other, whichever takes fewer bits. None: those so near are not simple.
    """
    total = weights.sum()
    mean = weights @ values / total
    square = weights @ values**2 / total
    variance = weights @ (values - mean) ** 2 / total
    # The constants of a program are rounded, which need not cancel out over the points.
    rounding = F32_STEP * abs(scale) * math.sqrt(square)
    if not (np.isfinite([error, rounding]).all() and variance > 0.0 and scale):
        return None

    def simple_offset(value: float, deviation: float) -> Choice | None:
        deviation = max(deviation, rounding)
        if abs(value) <= NEAR * deviation:  # an addition less is worth more than any digits
            return Choice(0.0, misfit_bits(value, deviation))
        choice = simplest(value, deviation)
        return choice if choice.cost <= MOST_BITS else None

    def simple_scale(value: float, deviation: float) -> Choice | None:
        for step in (2.0 * F32_STEP, EXACT_STEP):  # a number of more bits must be nearer
            known = min(max(deviation, step * abs(value)), MOST_ROUNDED * abs(value))
            choice = simplest(value, known)
            if choice.cost <= max(MOST_BITS, most_bits(value, known)):
                return choice
        return None

    pairs: list[tuple[Choice | None, Choice | None]] = []
    if first := simple_offset(offset, error * math.sqrt(square / variance)):
        left = float(weights @ (values * (target - first.value)) / (total * square))
        pairs.append((first, simple_scale(left, error / math.sqrt(square))))
    if second := simple_scale(scale, error / math.sqrt(variance)):
        pairs.append((simple_offset(float(weights @ target / total - second.value * mean), error), second))
    simple = [(one.cost + other.cost, one.value, other.value) for one, other in pairs if one and other]
    return min(simple)[1:] if simple else None


def input_scaling(values: NDArray[np.float64]) -> tuple[float, float]:
    """Offset and scale of an input for float32; (0, 1) where it needs none.

    Powers of 1000 leave columns of one size, and often of one unit, in the same proportion.
    """
    largest = float(np.abs(values).max(initial=0.0))
    offset, deviation = 0.0, largest and float(np.std(values / largest))
    if 0.0 < deviation < LEAST_DEVIATION:
        offset = _shortest(float(np.mean(values / largest)) * largest, 2.0 * deviation * largest)
        largest = float(np.abs(values - offset).max())
    if not largest or 1.0 / LARGEST_FACTOR <= largest <= LARGEST_FACTOR:
        return offset, 1.0
    return offset, float(f"1e{3 * round(min(max(math.log10(largest), -300.0), 300.0) / 3)}")


def _shortest(number: float, tolerance: float) -> float:
    """The number of fewest significant digits that is near enough."""
    if abs(number) <= tolerance:
        return 0.0
    candidates = (float(f"{number:.{digits}e}") for digits in range(17))
    return next((each for each in candidates if abs(each - number) <= tolerance), number)
