"""Norms over k, right wherever the result is a number of its type: a plain sum of powers, or powers relative to the largest term.

Owns the folds of both and when the second is needed. Knows nothing of what arrays are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evo.errors import UserError
from evo.language.dag import Builder, Dag
from evo.language.real_programs import derived, formula
from evo.semiring.folds import LARGEST, SMALLEST, Axes, Fold, Sums, Variable, rows_and_columns

ORDERS = {"2-norm": "2", "p-norm": "p"}  # by the name of `accumulate`
_POWERS, _ROOTS = {"2": "x*x", "p": "abs(x)**p"}, {"2": "sqrt(x)", "p": "x**(1/p)"}
_LAST = "1e30"  # stands for an infinite p

# A term, or a block of terms whose largest is `x` and whose powers relative to it have the sum `weight`. `ratio` is the
# smaller by the larger one, without a quotient that overflows or flushes its divisor.
_RATIO = f"""
u = {LARGEST!r} if {LARGEST!r} < x else x
w = min(largest, {LARGEST!r})
above = u if w < u else max(w, {SMALLEST!r})
below = w if w < u else u
by = 0.25 if 1 < above else 4
ratio = below*by/(above*by)
"""
_RELATIVE = {
    "2": "power = ratio*ratio\n",
    "p": f"q = min(p, {_LAST})\n"
    "least = exp2(q*(log2(below) - log2(above))) if 0 < below else ratio\n"
    "power = exp2(q*log2(ratio)) if 0 < ratio else least\n",
}
_NORM = {
    "2": "largest*sqrt(total)",
    "p": f"root = total**(0.5/min(p, {_LAST}))\nnorm = largest*root*root\ntotal + 0*sqrt(p) if p < {SMALLEST!r} else norm",
}
# The derivatives of the norm by a term x and by p. t is the term relative to the norm; 1 stays 1 in spite of rounding.
_SLOPE = f"""
r = abs(x)*scale*inverse
t = 1 if 0.9999998 < r else r
power = exp2((min(p, {_LAST}) - 1)*log2(t)) if 0 < t else t
"""
_SLOPES = {
    "2": ["x*inverse"],
    "p": [
        f"{_SLOPE}copysign(power, x)",
        f"{_SLOPE}by_p = abs(x)*power*log(t)/p if 0 < t else t\n0 if p < {SMALLEST!r} else by_p",
    ],
}


def norm(multiply: Dag, hyper: tuple[str, ...], order: str) -> Fold:
    """The root of the sum of powers."""
    fold = _powers(multiply, hyper, order).fold
    end = Builder()
    total, *rest = [end.input(index) for index in (len(fold.operands), *_hyper_indices(order, hyper))]
    (root,) = end.include(formula(_ROOTS[order], "x", *_names(order)), [total, *rest])
    return Fold(fold.operands, fold.states, fold.step, end.graph(root), fold.merge, fold.neutral)


def scaled_norm(multiply: Dag, hyper: tuple[str, ...], order: str) -> Fold:
    """The largest term, and the sum of powers relative to it. p of 0 counts terms, p of infinity gives the largest."""
    operands, names = rows_and_columns(hyper), _names(order)
    count, hyper_indices = len(operands), _hyper_indices(order, hyper)

    def joined(builder: Builder, states: Sequence[int], x: int, weight: int) -> Dag:
        inputs = [*states, x, weight, *(builder.input(index) for index in hyper_indices)]
        variables = ("largest", "total", "x", "weight", *names)
        texts = ("max(largest, x)", f"{_RATIO}{_RELATIVE[order]}total*power + weight if w < u else total + weight*power")
        return builder.graph(*(builder.include(formula(text, *variables), inputs)[0] for text in texts))

    step, merge, end = Builder(), Builder(), Builder()
    inputs = [step.input(index) for index in range(count + 2)]
    (term,) = step.include(multiply, inputs)
    stepped = joined(step, inputs[count:], step.call("abs_ftz_f32", term), step.constant(1.0))
    largest, total, x, weight = (merge.input(count + index) for index in range(4))
    merged = joined(merge, (largest, total), x, weight)
    ending = [end.input(index) for index in (count, count + 1, *hyper_indices)]
    (result,) = end.include(formula(_NORM[order], "largest", "total", *names), ending)
    states = Variable("_largest", Axes.PAIR), Variable("_total", Axes.PAIR)
    return Fold(operands, states, stepped, end.graph(result), merged, (0.0, 0.0))


def slopes(multiply: Dag, hyper: tuple[str, ...], order: str) -> Sums:
    """A sum whose derivatives by a, b and hyperparameters are the norm's. Further operands are the inverse of the norm times a
    power of two, which keeps it within float32, and that power; or for order 2 the inverse alone: the derivatives lack the power.
    """
    names = ("_inverse",) if order == "2" else ("_inverse", "_scale")
    operands = (*rows_and_columns(hyper), *(Variable(name, Axes.PAIR) for name in names))
    builder, hyper_indices = Builder(), _hyper_indices(order, hyper)
    inputs = [builder.input(index) for index in range(len(operands))]
    (term,) = builder.include(multiply, inputs)
    values = [term, *(inputs[index] for index in hyper_indices), *inputs[-len(names) :]]
    variables = ("x", *_names(order), *(name[1:] for name in names))
    by_x, *by_p = (builder.include(formula(text, *variables), values)[0] for text in _SLOPES[order])
    by_operand = [builder.call("mul_ftz_f32", by_x, slope) for slope in builder.include(derived(multiply, len(operands)), inputs)]
    for index, slope in zip(hyper_indices, by_p, strict=True):
        by_operand[index] = builder.call("add_ftz_f32", by_operand[index], slope)
    return Sums(operands, _powers(multiply, hyper, order).terms, (Axes.PAIR,), builder.graph(*by_operand))


def run_norm(
    fast: Fold, scaled: Fold, is_difference: bool, arrays: Sequence[Any], run: Callable[[Fold, Sequence[Any]], list[Any]]
) -> Any:
    """The norm by `fast`, or by `scaled` where a power overflowed, or the sum is so small that powers which underflowed count.

    Raises:
        UserError: a p is below 0 or NaN.
    """
    p = dict(zip((variable.name for variable in fast.arrays), arrays, strict=True)).get("p")
    if p is not None and not (p >= 0).all():
        raise UserError(f"p is {p if p.ndim == 0 else p.min()}; expected 0 or more")
    (value,) = run(fast, arrays)
    a, b, *_ = arrays
    num_rows = sum(int(np.prod(matrix.shape[:-1])) for matrix in (a, b))
    kind = np.finfo(str(value.dtype).removeprefix("torch."))
    least = max(a.shape[-1], 1) * float(kind.tiny) / float(kind.eps)
    with np.errstate(all="ignore"):
        order = 2.0 if p is None else p.reshape(*p.shape, 1, 1) if p.ndim else p
        bound = least ** (1 / order)
        is_odd = ~((value >= bound) & (value < np.inf))
    num_odd = int(is_odd.sum())
    if not num_odd:
        return value
    if is_difference and a.dtype == b.dtype and a.shape[:-2] == b.shape[:-2] and num_odd <= 4 * num_rows:
        odd_indices = is_odd.nonzero()
        odd_indices = odd_indices if isinstance(odd_indices, tuple) else odd_indices.unbind(1)
        # Equal rows are common, as in the distances of a set to itself.
        if (value[odd_indices] == 0).all() and (a[odd_indices[:-1]] == b[(*odd_indices[:-2], odd_indices[-1])]).all():
            return value
    return run(scaled, arrays)[0]


def _powers(multiply: Dag, hyper: tuple[str, ...], order: str) -> Sums:
    operands, builder = rows_and_columns(hyper), Builder()
    inputs = [builder.input(index) for index in range(len(operands))]
    (term,) = builder.include(multiply, inputs)
    rest = [inputs[index] for index in _hyper_indices(order, hyper)]
    (power,) = builder.include(formula(_POWERS[order], "x", *_names(order)), [term, *rest])
    return Sums(operands, builder.graph(power), (Axes.PAIR,))


def _names(order: str) -> tuple[str, ...]:
    return ("p",) if order == "p" else ()


def _hyper_indices(order: str, hyper: tuple[str, ...]) -> list[int]:
    """Index of p among the operands."""
    return [2 + hyper.index(name) for name in _names(order)]
