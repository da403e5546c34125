"""What a semiring computes over k: states that a program carries on, and for sums the derivative, which is a sum again.

Owns these definitions; contraction.py runs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.language.graph import Graph
from evo.semiring.programs import Builder, derived, formula

LARGEST = float(np.finfo(np.float32).max)
SMALLEST_SUM = 2.0**-80  # of exponentials, above which those that underflowed are too small to count


class Axes(IntEnum):
    """What a value belongs to, with its shape; `...` is the batch. The numbers are those of csrc/ptx_vm.h."""

    NONE = 0  # (...)
    ROW = 1  # (..., M, K)
    COLUMN = 2  # (..., N, K)
    PAIR = 3  # (..., M, N)
    INDEX = 4  # k itself, which takes no array


LETTERS = {Axes.NONE: "", Axes.ROW: "MK", Axes.COLUMN: "NK", Axes.PAIR: "MN"}


@dataclass(frozen=True)
class Variable:
    """A named operand or state; those that are not a user's begin with an underscore.

    initial: of a state of PAIR; the others are sums, which begin at 0.
    """

    name: str
    axes: Axes
    initial: float = 0.0


@dataclass(frozen=True)
class Fold:
    """states = step(operands, states) for k = 0, 1, ...; then results = finish(operands, states).

    step, finish: graphs whose inputs are the operands and then the states. finish: without it the results are the states; with it
    all states are of PAIR, and so are the results.
    """

    operands: tuple[Variable, ...]
    states: tuple[Variable, ...]
    step: Graph
    finish: Graph | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Programs are looked up at each call.
        return hash((self.operands, self.states, self.step, self.finish))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operands, then of the states."""
        return tuple(each.name for each in (*self.operands, *self.states))

    @cached_property
    def arrays(self) -> tuple[Variable, ...]:
        """The operands that are given."""
        return tuple(each for each in self.operands if each.axes != Axes.INDEX)

    @cached_property
    def results(self) -> tuple[Axes, ...]:
        """The axes of what comes out."""
        if self.finish is not None:
            return (Axes.PAIR,) * len(self.finish.results)
        return tuple(state.axes for state in self.states)


@dataclass(frozen=True)
class Sums:
    """Sums of terms, each over the axes that its result lacks.

    terms: a graph of the operands with a result for each of `results`. So the derivative of sums is sums, and so on.
    """

    operands: tuple[Variable, ...]
    terms: Graph
    results: tuple[Axes, ...]

    @cached_property
    def fold(self) -> Fold:
        """Each state is a sum so far."""
        builder, first = Builder(), len(self.operands)
        terms = builder.include(self.terms, [builder.input(index) for index in range(first)])
        totals = [builder.plus(builder.input(first + index), term) for index, term in enumerate(terms)]
        states = tuple(Variable(f"_sum_{index}", axes) for index, axes in enumerate(self.results))
        return Fold(self.operands, states, builder.graph(*totals))

    @cached_property
    def parts(self) -> tuple[Fold | None, ...]:
        """Each result by itself; None: it is zero."""
        return tuple(None if result is None else self.only((index,)).fold for index, result in enumerate(self.terms.results))

    def only(self, wanted: tuple[int, ...]) -> Sums:
        """Some of the results."""
        terms = Graph(self.terms.nodes, tuple(self.terms.results[index] for index in wanted))
        return Sums(self.operands, terms, tuple(self.results[index] for index in wanted))

    def gradient_key(self, wanted: tuple[int, ...]) -> str:
        """The key of the gradients by some of the operands."""
        if wanted not in self._gradient_keys:
            self._gradient_keys[wanted] = key_of(self.gradient.only(wanted))
        return self._gradient_keys[wanted]

    @cached_property
    def _gradient_keys(self) -> dict[tuple[int, ...], str]:
        return {}

    @cached_property
    def gradient(self) -> Sums:
        """The gradients by the operands, in order, from the operands and then the gradients by the results."""
        operands = tuple(each for each in self.operands if each.axes != Axes.INDEX)
        if operands != self.operands:
            raise ValueError("sums over k itself have no gradient")
        incoming = tuple(Variable(f"_grad_{len(operands)}_{index}", axes) for index, axes in enumerate(self.results))
        builder = Builder()
        inputs = [builder.input(index) for index in range(len(operands) + len(incoming))]
        total: int | None = None
        for term, weight in zip(builder.include(self.terms, inputs), inputs[len(operands) :], strict=True):
            product = builder.call("mul_ftz_f32", weight, term)
            total = product if total is None else builder.plus(total, product)
        assert total is not None, "sums have a result"
        gradients = derived(builder.graph(total), len(inputs))
        kept = Graph(gradients.nodes, gradients.results[: len(operands)])
        return Sums((*operands, *incoming), kept, tuple(each.axes for each in operands))


@dataclass(frozen=True)
class Direct:
    """A fold with one result, and a function that has it in the best way that there is."""

    fold: Fold
    on_arrays: Callable[..., NDArray[Any]]


FOLDS: dict[str, Any] = {}  # what PyTorch's operator can run, by key: each has a `fold`


def key_of(content: Any) -> str:
    """Names what the operator runs; the same in every process for the same program."""
    text = repr((type(content).__name__, content.fold, getattr(content, "kind", "")))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    FOLDS.setdefault(key, content)
    return key


def _operands(hyper: tuple[str, ...]) -> tuple[Variable, ...]:
    return (Variable("a", Axes.ROW), Variable("b", Axes.COLUMN), *(Variable(name, Axes.NONE) for name in hyper))


def pairs(names: tuple[str, ...], hyper: tuple[str, ...], terms: Graph) -> Sums:
    """A function of arrays of pairs, element by element: a sum of one term."""
    operands = (*(Variable(name, Axes.PAIR) for name in names), *(Variable(name, Axes.NONE) for name in hyper))
    return Sums(operands, terms, (Axes.PAIR,))


def sums(multiply: Graph, hyper: tuple[str, ...], initial: float) -> Fold:
    """A sum over k, from `initial` on."""
    fold = Sums(_operands(hyper), multiply, (Axes.PAIR,)).fold
    return Fold(fold.operands, (Variable("_sum_0", Axes.PAIR, initial),), fold.step)


def general(multiply: Graph, accumulate: Graph, hyper: tuple[str, ...], initial: float) -> Fold:
    """accumulate: of acc and x, the next term."""
    builder, operands = Builder(), _operands(hyper)
    inputs = [builder.input(index) for index in range(len(operands) + 1)]
    (term,) = builder.include(multiply, inputs)
    (total,) = builder.include(accumulate, (inputs[-1], term))
    return Fold(operands, (Variable("_acc", Axes.PAIR, initial),), builder.graph(total))


def extremum(multiply: Graph, hyper: tuple[str, ...], initial: float, *, is_min: bool) -> Fold:
    """The smallest or largest term, and the first k that gives it; -1 where no term is beyond `initial`."""
    builder, operands = Builder(), (*_operands(hyper), Variable("_k", Axes.INDEX))
    inputs = [builder.input(index) for index in range(len(operands) + 2)]
    best, place = inputs[-2:]
    (term,) = builder.include(multiply, inputs)
    is_better = builder.call("setp_lt_ftz_f32", *((term, best) if is_min else (best, term)))
    step = builder.graph(
        builder.call("min_ftz_f32" if is_min else "max_ftz_f32", best, term),
        builder.call("selp_f32", inputs[len(operands) - 1], place, is_better),
    )
    return Fold(operands, (Variable("_best", Axes.PAIR, initial), Variable("_place", Axes.PAIR, -1.0)), step)


def log_sum_exp(multiply: Graph, hyper: tuple[str, ...], initial: float) -> Fold:
    """log(exp(initial) + sum of exp(term)), online: the largest term so far, and the sum of exponentials relative to it.

    The largest is kept within float32, so that no infinity is taken from itself; in float64, too, terms beyond it count as
    infinite. A NaN gets into the sum and stays there.
    """
    builder, operands = Builder(), _operands(hyper)
    inputs = [builder.input(index) for index in range(len(operands) + 2)]
    (term,) = builder.include(multiply, inputs)
    step = formula(_NEXT_SUM, "x", "largest", "total")
    (total,) = builder.include(step, (term, *inputs[-2:]))
    (largest,) = builder.include(formula(f"min(max(largest, x), {LARGEST!r})", "x", "largest"), (term, inputs[-2]))
    end = Builder()
    (result,) = end.include(
        formula(f"largest + log(total) if largest < {LARGEST!r} else -log(0*total)", "largest", "total"),
        [end.input(len(operands)), end.input(len(operands) + 1)],
    )
    is_empty = initial == -np.inf
    states = (
        Variable("_largest", Axes.PAIR, -LARGEST if is_empty else initial),
        Variable("_total", Axes.PAIR, 0.0 if is_empty else 1.0),
    )
    return Fold(operands, states, builder.graph(largest, total), end.graph(result))


_NEXT_SUM = """
d = x - largest
e = exp(-abs(d))
y = total*e + 1 if 0 < d else total + e
"""


def followed(fold: Fold, epilogue: Graph, hyper: tuple[str, ...]) -> Fold:
    """The fold with an epilogue, of its one result and hyperparameters, at its end."""
    builder = Builder()
    inputs = [builder.input(index) for index in range(len(fold.names))]
    (value,) = inputs[len(fold.operands) :] if fold.finish is None else builder.include(fold.finish, inputs)
    (result,) = builder.include(epilogue, [value, *(inputs[fold.names.index(name)] for name in hyper)])
    return Fold(fold.operands, fold.states, fold.step, builder.graph(result))


def exponentials(multiply: Graph, hyper: tuple[str, ...]) -> Sums:
    """exp(term - out), whose sum is 1 where out is the log-sum-exp of the terms: its gradient is that of the log-sum-exp."""
    operands = (*_operands(hyper), Variable("_out", Axes.PAIR))
    builder = Builder()
    inputs = [builder.input(index) for index in range(len(operands))]
    (term,) = builder.include(multiply, inputs)
    (value,) = builder.include(formula("exp(x - out)", "x", "out"), (term, inputs[-1]))
    return Sums(operands, builder.graph(value), (Axes.PAIR,))
