"""The sums of the reduction `regression` by NumPy, for tests."""

import numpy as np

from evo.tasks.sums import Regression


def regression_of(y: np.ndarray, t: np.ndarray) -> Regression:
    """Sums of an evaluator for outputs `(batch_size, num_outputs, num_points)` and their targets."""
    finite = np.isfinite(y)
    y, t = np.where(finite, y, 0.0).astype(np.float64), np.where(finite, np.broadcast_to(t, y.shape), 0.0).astype(np.float64)
    none = np.zeros(y.shape[:2])
    return Regression.of_sums(
        {
            "num_points": none + y.shape[2],
            "num_nonfinite": (~finite).sum(axis=2),
            "weight": finite.sum(axis=2).astype(np.float64),
            "reference_y": none,
            "reference_t": none,
            "sum_y": y.sum(axis=2),
            "sum_t": t.sum(axis=2),
            "sum_yy": (y * y).sum(axis=2),
            "sum_tt": (t * t).sum(axis=2),
            "sum_yt": (y * t).sum(axis=2),
            "sum_squared_error": ((y - t) ** 2).sum(axis=2),
            "max_abs_error": abs(y - t).max(axis=2),
        }
    )
