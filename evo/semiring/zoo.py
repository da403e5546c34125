"""Semirings by their usual names.

Each is what its formulas say. Roots and powers are written so that value and gradient are 0, not NaN, where rows are equal.
"""

from typing import Any

import numpy as np

from evo.semiring.semiring import Nearest, Semiring

_TINY = "1e-37"  # above the smallest normal float32
_DISTANCE = f"x/sqrt(max(x, {_TINY}))"  # the root of x

plus_times = Semiring("a*b")
min_plus = Semiring("a + b", "min")
max_plus = Semiring("a + b", "max")
max_times = Semiring("a*b", "max")
log_sum_exp = Semiring("a + b", "log-sum-exp")

l1 = Semiring("abs(a - b)")
squared_l2 = Semiring("square(a - b)")
l2 = Semiring("square(a - b)", epilogue=_DISTANCE)
lp = Semiring(f"max(abs(a - b), {_TINY})**p", epilogue=f"x*max(x, {_TINY})**(1/p - 1)")
chebyshev = Semiring("abs(a - b)", "max", 0.0)
hamming = Semiring("1 if a < b else (1 if b < a else 0)")

gaussian = Semiring("square(a - b)", epilogue="exp(-gamma*x)")
laplace = Semiring("abs(a - b)", epilogue="exp(-gamma*x)")
matern_12 = Semiring("square(a - b)", epilogue=f"exp(-({_DISTANCE})/length)")
matern_32 = Semiring("square(a - b)", epilogue=f"s = 3*x\nr = s/sqrt(max(s, {_TINY}))/length\n(1 + r)*exp(-r)")
matern_52 = Semiring("square(a - b)", epilogue=f"s = 5*x\nr = s/sqrt(max(s, {_TINY}))/length\n(1 + r + r*r/3)*exp(-r)")


class _Cosine(Semiring):
    """The cosine of the angle between rows: the product of rows of length 1. A row of zeros gives 0."""

    def __call__(self, a: Any, b: Any, /, **hyper: Any) -> Any:
        return super().__call__(_normalised(a), _normalised(b), **hyper)

    def nearest(self, a: Any, b: Any, k: int, /, *, largest: bool = False, **hyper: Any) -> Nearest:
        return super().nearest(_normalised(a), _normalised(b), k, largest=largest, **hyper)


cosine = _Cosine("a*b")


def _normalised(rows: Any) -> Any:
    rows = rows if hasattr(rows, "shape") else np.asarray(rows)
    squares = plus_times(rows[..., None, :], rows[..., None, :])[..., 0]
    return rows / (squares + (squares == 0)) ** 0.5
