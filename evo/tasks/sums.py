"""Sums of the built-in reduction over outputs and targets, and the statistics that follow from them.

Knows nothing of who sums: CPU and GPU give the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Change of a sum by rounding, and the least variance that rounding to float32 leaves, as a share of the mean's square: it
# is 2^-48 / 12, and a quarter of it leaves room for luck on few points.
SUM_ROUNDING, F32_ROUNDING = 2.0**-51, 2.0**-50 / 12.0


@dataclass(frozen=True)
class Regression:
    """The built-in reduction `regression`: each output y against its target t, over the points where both are finite.

    Each array is `(batch_size, num_outputs)` float64. `num_nonfinite` counts the points that are left out. `weight` is the sum of
    the others' weights, by default their number; each term of a sum or mean counts as much as its point weighs.
    `centred_yy`, `centred_tt` and `centred_yt` are sums of products of y and t, each less its mean: they keep their digits where
    a mean is large.

    resolution: what of `1 - correlation**2` may be the rounding of float32 outputs and of sums; NaN or infinite where y or t does
        not vary.
    """

    num_points: NDArray[np.float64]
    num_nonfinite: NDArray[np.float64]
    weight: NDArray[np.float64]
    mean_y: NDArray[np.float64]
    mean_t: NDArray[np.float64]
    centred_yy: NDArray[np.float64]
    centred_tt: NDArray[np.float64]
    centred_yt: NDArray[np.float64]
    sum_squared_error: NDArray[np.float64]
    max_abs_error: NDArray[np.float64]
    resolution: NDArray[np.float64]

    @classmethod
    def of_sums(cls, sums: Mapping[str, NDArray[Any]] | NDArray[np.void]) -> Regression:
        """From the sums that evaluators make (`PtxVmSums` in csrc/ptx_vm.h): each about the values at the first point."""
        weight, y, t, yy, tt, yt = (sums[name] for name in ("weight", "sum_y", "sum_t", "sum_yy", "sum_tt", "sum_yt"))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_y, mean_t = (np.where(weight > 0, total / weight, 0.0) for total in (y, t))
            centred_yy, centred_tt = np.maximum(yy - mean_y * y, 0.0), np.maximum(tt - mean_t * t, 0.0)
            lost = SUM_ROUNDING * (yy / centred_yy + tt / centred_tt)
            mean_y, mean_t, centred_yt = mean_y + sums["reference_y"], mean_t + sums["reference_t"], yt - mean_y * t
            lost += F32_ROUNDING * weight * mean_y**2 / centred_yy
        return cls(
            num_points=sums["num_points"].astype(np.float64),
            num_nonfinite=sums["num_nonfinite"].astype(np.float64),
            weight=weight,
            mean_y=mean_y,
            mean_t=mean_t,
            centred_yy=centred_yy,
            centred_tt=centred_tt,
            centred_yt=centred_yt,
            sum_squared_error=sums["sum_squared_error"],
            max_abs_error=sums["max_abs_error"],
            resolution=lost,
        )

    @property
    def sum_y(self) -> NDArray[np.float64]:
        """Sum of y."""
        return self.weight * self.mean_y

    @property
    def sum_t(self) -> NDArray[np.float64]:
        """Sum of t."""
        return self.weight * self.mean_t

    @property
    def sum_yy(self) -> NDArray[np.float64]:
        """Sum of y squared."""
        return self.centred_yy + self.weight * self.mean_y**2

    @property
    def sum_tt(self) -> NDArray[np.float64]:
        """Sum of t squared."""
        return self.centred_tt + self.weight * self.mean_t**2

    @property
    def sum_yt(self) -> NDArray[np.float64]:
        """Sum of y times t."""
        return self.centred_yt + self.weight * self.mean_y * self.mean_t

    @property
    def mse(self) -> NDArray[np.float64]:
        """Mean squared error; NaN where no point is finite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.sum_squared_error / self.weight

    @property
    def r2(self) -> NDArray[np.float64]:
        """Coefficient of determination, 1 - SSE / SST; -inf or NaN where the target does not vary."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 - self.sum_squared_error / self.centred_tt

    @property
    def correlation(self) -> NDArray[np.float64]:
        """Pearson's correlation of y and t; NaN where either does not vary."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.centred_yt / np.sqrt(self.centred_yy * self.centred_tt)

    @property
    def linear_scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope b and intercept a that minimise the squared error of a + b y (Keijzer 2003); NaN where y does not vary."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.centred_yt / self.centred_yy
            return slope, self.mean_t - slope * self.mean_y
