"""Residuals of outputs, up to the offset and scale that fit them to a target.

Owns weighted least squares by an offset and a scale. Knows nothing of formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

TINY = 1e-300


@dataclass(frozen=True)
class Residuals:
    """Residuals of outputs `(num_points,)`, or of rows of outputs `(n, num_points)`.

    Args:
        target: `(num_points,)`.
        weights: of squares, with a mean of 1.
        is_scaled: outputs have an offset and a scale, else they are predictions.
    """

    target: NDArray[np.float64]
    weights: NDArray[np.float64]
    is_scaled: bool

    @cached_property
    def roots(self) -> NDArray[np.float64]:
        """Roots of the weights."""
        return np.sqrt(self.weights)

    def mean(self, values: NDArray[np.float64]) -> Any:
        """The weighted mean of values, or of each row."""
        return values @ self.weights / len(self.weights)

    def scaling(self, at: NDArray[np.float64]) -> tuple[Any, Any]:
        """Offset and scale of outputs."""
        if not self.is_scaled:
            return np.zeros(at.shape[:-1]), np.ones(at.shape[:-1])
        mean = self.mean(at)
        deviation = at - mean[..., None]
        weighted = self.weights * deviation
        scale = weighted @ self.target / np.vecdot(weighted, deviation)
        return self.mean(self.target) - scale * mean, scale

    def compute(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Residuals of the target at the fitted offset and scale, times the roots of the weights."""
        offset, scale = self.scaling(at)
        return np.asarray(self.roots * (self.target - offset[..., None] - scale[..., None] * at))

    def squares(self, at: NDArray[np.float64]) -> Any:
        """Sums of squares; infinite where one is not finite."""
        return sums_of_squares(self.compute(at))

    def slopes(self, at: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Derivatives of predictions, without the parts that offset and scale absorb, times the roots of the weights.

        Args:
            at: outputs `(num_points,)`.
            slopes: their derivatives, `(num_points, n)`.
        """
        if not self.is_scaled:
            return np.asarray(self.roots[:, None] * slopes)
        scale, deviation = self.scaling(at)[1], at - self.mean(at)
        slopes = slopes - self.weights @ slopes / len(self.weights)
        weighted = self.weights * deviation
        slopes = slopes - deviation[:, None] * (weighted @ slopes / max(weighted @ deviation, TINY))
        return np.asarray(self.roots[:, None] * scale * slopes)


def sums_of_squares(residuals: NDArray[np.float64]) -> Any:
    """The sum, or that of each row; infinite where one is not finite."""
    squares = np.vecdot(residuals, residuals)
    return np.where(np.isfinite(squares), squares, np.inf)
