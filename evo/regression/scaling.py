"""Offsets and scales of formulas and of their inputs, in the digits that data support. Knows nothing of programs."""

import math

import numpy as np
from numpy.typing import NDArray

from evo.evaluate.sampling import MANY, spread
from evo.language.simple_numbers import F32_STEP, MOST_BITS, NEAR, Choice, misfit_bits, most_bits, simplest

Row = NDArray[np.float64]  # a number for each point

LARGEST_FACTOR = 2.0**30  # of an input; float32 then holds its fourth powers, and their reciprocals
MOST_SUM = 2.0**960  # that leaves float64 room for many
LEAST_DEVIATION = 1e-3  # of an input over its size; below, float32 does not resolve a ten-thousandth of the deviation
ROUNDING = 8.0 * np.finfo(np.float64).eps  # of numbers that a formula adds up, over the largest of them
SURE = 0.01  # standard errors that offset and scale are rounded by
MOST_ROUNDED = 0.1  # of a scale that becomes a simple number
CHUNK_ROWS = 1 << 16  # whose products are summed in one go
EXACT_STEP = 2.0**-44  # of a scale, above what float64 rounds


def fitted_scaling(outputs: Row, target: Row, weights: Row | None, mean: float, deviation: float) -> tuple[float, float]:
    """Offset and scale that minimise the squared error where the output is finite, in the digits that the data support.

    Args:
        target: in deviations from the mean; the result is not.
    """
    known = np.isfinite(outputs)
    y, t = outputs[known], target[known]
    if not len(y) or y.min() == y.max():
        return _shortest(mean, SURE * deviation / math.sqrt(len(target))), 0.0
    if (unit := size_of(y)) != 1.0:
        offset, scale = fitted_scaling(outputs / unit, target, weights, mean, deviation)
        return offset, scale / unit
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
    square = variance + mean_y**2
    if abs(offset) <= NEAR * deviation * math.sqrt(error * square / variance):  # no more than noise
        alone = float(np.average(y * (mean + deviation * t), weights=w)) / square
        return 0.0, _shortest(alone, allowed / math.sqrt(square))
    scale = _shortest(scale, allowed / math.sqrt(variance))
    return _shortest(mean + deviation * mean_t - scale * mean_y, allowed), scale


def fitted_scale(outputs: Row, target: Row, weights: Row | None, deviation: float) -> float:
    """The scale that minimises the squared error without an offset, in the digits that the data support.

    Args:
        target: in deviations; the result is not.
    """
    known = np.isfinite(outputs)
    y, t = outputs[known], target[known]
    if (unit := size_of(y)) != 1.0:
        return fitted_scale(outputs / unit, target, weights, deviation) / unit
    w = np.ones(len(y)) if weights is None else weights[known]
    square = float(w @ y**2)
    if not 0.0 < square < np.inf:
        return 0.0
    scale = float(w @ (y * t)) / square
    error = math.sqrt(float(w @ (t - scale * y) ** 2) / len(y))
    return _shortest(deviation * scale, deviation * (SURE * error / math.sqrt(square) + ROUNDING * abs(scale)))


def fitted_to_all(
    outputs: Row, target: Row, weights: Row | None, mean: float, deviation: float, many: int = MANY
) -> tuple[float, float]:
    """As `fitted_scaling` of `many` of the rows; all rows then refine its numbers if that lowers the error."""
    if len(target) <= many:
        return fitted_scaling(outputs, target, weights, mean, deviation)
    sampled = spread(len(target), many)
    shares = None if weights is None else weights[sampled]
    offset, scale = fitted_scaling(outputs[sampled], target[sampled], shares, mean, deviation)
    sums = np.zeros((3, 3))  # of products of 1, predictions and errors
    for start in range(0, len(target), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        known = np.isfinite(outputs[rows])
        predicted = (offset - mean + scale * outputs[rows][known]) / deviation
        w = np.ones(len(predicted)) if weights is None else weights[rows][known]
        terms = np.stack([np.ones(len(predicted)), predicted, target[rows][known] - predicted])
        sums += np.einsum("in,jn->ij", terms * w, terms)
    total, error = sums[0, 0], sums[2, 2]
    determinant = total * sums[1, 1] - sums[0, 1] ** 2
    if not (scale and determinant > 0.0 and error > total * (ROUNDING * max(1.0, abs(mean) / deviation)) ** 2):
        return offset, scale
    turn = (total * sums[1, 2] - sums[0, 1] * sums[0, 2]) / determinant
    move = (sums[0, 2] - turn * sums[0, 1]) / total
    left = error - move * sums[0, 2] - turn * sums[1, 2]
    if not 0.0 < left < error * 2.0 ** (-2.0 * MOST_BITS / len(target)):  # fewer bits than more digits take
        return offset, scale
    allowed = SURE * deviation * math.sqrt(left / total / len(target))
    mean_output = (mean + deviation * sums[0, 1] / total - offset) / scale
    exact, allowed_scale = (1.0 + turn) * scale, allowed * abs(scale) * total / (deviation * math.sqrt(determinant))
    refined = _shortest(exact, allowed_scale)
    return _shortest(offset + deviation * move + turn * (offset - mean) + (exact - refined) * mean_output, allowed), refined


def _simple_scaling(
    values: Row, target: Row, weights: Row, offset: float, scale: float, error: float
) -> tuple[float, float] | None:
    """Simple numbers in place of the best offset and scale, as near as the standard error of their mean allows; either is
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
    simple = [
        (offset_choice.cost + scale_choice.cost, offset_choice.value, scale_choice.value)
        for offset_choice, scale_choice in pairs
        if offset_choice and scale_choice
    ]
    return min(simple)[1:] if simple else None


def size_of(values: Row, power: int = 4) -> float:
    """The power of two that numbers are to be divided by so that float64 holds sums of their powers; 1 if it does already."""
    largest, most = float(np.abs(values).max(initial=0.0)), MOST_SUM ** (1.0 / power)
    if not largest or 1.0 / most <= largest <= most:
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)


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
    return next((candidate for candidate in candidates if abs(candidate - number) <= tolerance), number)
