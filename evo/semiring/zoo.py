"""Semirings by their usual names.

Each is what its formulas say. Norms have the gradient 0, not NaN, where rows are equal.
"""

from typing import Any

import numpy as np

from evo.semiring.semiring import Nearest, Semiring

_KEPT = "s = 999 if 999 < r else r"  # beyond which exponentials are 0 in every type, and squares of r infinite

plus_times = Semiring("a*b")
min_plus = Semiring("a + b", "min")
max_plus = Semiring("a + b", "max")
max_times = Semiring("a*b", "max")
log_sum_exp = Semiring("a + b", "log-sum-exp")

l1 = Semiring("abs(a - b)")
squared_l2 = Semiring("square(a - b)")
l2 = Semiring("a - b", "2-norm")
lp = Semiring("a - b", "p-norm")
chebyshev = Semiring("abs(a - b)", "max", 0.0)
hamming = Semiring("1 if a < b else (1 if b < a else 0)")

gaussian = Semiring("square(a - b)", epilogue="exp(-gamma*x)")
laplace = Semiring("abs(a - b)", epilogue="exp(-gamma*x)")
matern_12 = Semiring("a - b", "2-norm", epilogue="exp(-x/length)")
matern_32 = Semiring("a - b", "2-norm", epilogue=f"r = sqrt(3)*x/length\n{_KEPT}\n(1 + s)*exp(-s)")
matern_52 = Semiring("a - b", "2-norm", epilogue=f"r = sqrt(5)*x/length\n{_KEPT}\n(1 + s + s*s/3)*exp(-s)")


class _Cosine(Semiring):
    """The cosine of the angle between rows: the product of rows of length 1. A row of zeros gives 0."""

    def __call__(self, a: Any, b: Any, /, **hyper: Any) -> Any:
        return super().__call__(_normalised(a), _normalised(b), **hyper)

    def nearest(self, a: Any, b: Any, k: int, /, *, largest: bool = False, **hyper: Any) -> Nearest:
        return super().nearest(_normalised(a), _normalised(b), k, largest=largest, **hyper)


cosine = _Cosine("a*b")


_largest, _length = Semiring("abs(a)", "max", 0.0), Semiring("a", "2-norm")  # of rows, whatever b is


def _normalised(rows: Any) -> Any:
    rows = rows if hasattr(rows, "shape") else np.asarray(rows)
    if rows.ndim < 2 or 0 in rows.shape:
        return rows
    for norm in (_largest, _length):  # rows may be longer than any number of their type
        sizes = norm(rows, rows[..., :1, :])
        rows = rows / (sizes + (sizes == 0))
    return rows
