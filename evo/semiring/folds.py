"""Folds of a semiring over k: states that a program carries on, and for sums the derivative, which is a sum again.

Owns these definitions; contraction.py runs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.language.dag import Builder, Dag
from evo.language.real_programs import derived, formula

LARGEST, SMALLEST = (float(limit) for limit in (np.finfo(np.float32).max, np.finfo(np.float32).tiny))
SMALLEST_SUM = 2.0**-80  # of exponentials, above which those that underflowed are too small to count


class Axes(IntEnum):
    """Axes of a value, with its shape; `...` is the batch. The numbers are those of csrc/ptx_vm.h."""

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
    merge: the states of two blocks of terms as one, of the operands, the states of one block, and those of the next, where only
    operands of NONE are used; None: terms are not cut into blocks. neutral: where the states of blocks after the first begin.
    """

    operands: tuple[Variable, ...]
    states: tuple[Variable, ...]
    step: Dag
    finish: Dag | None = None
    merge: Dag | None = None
    neutral: tuple[float, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Programs are looked up at each call.
        return hash((self.operands, self.states, self.step, self.finish))

    @cached_property
    def blocks(self) -> tuple[Fold, Fold]:
        """The first block of terms, and any other: their states."""
        states = tuple(Variable(state.name, state.axes, at) for state, at in zip(self.states, self.neutral, strict=True))
        return Fold(self.operands, self.states, self.step), Fold(self.operands, states, self.step)

    @cached_property
    def merging(self) -> Fold:
        """`merge`, element by element."""
        assert self.merge is not None, "terms come in blocks"
        return self._of_states(2, self.merge)

    @cached_property
    def ending(self) -> Fold:
        """`finish`, element by element."""
        assert self.finish is not None, "states are finished"
        return self._of_states(1, self.finish)

    def _of_states(self, num_sets: int, graph: Dag) -> Fold:
        """A graph of the operands and sets of states, as a fold of the operands of NONE and of arrays of states."""
        numbers = [index for index, operand in enumerate(self.operands) if operand.axes == Axes.NONE]
        state_variables = tuple(
            Variable(f"{state.name}_{index}", Axes.PAIR) for index in range(num_sets) for state in self.states
        )
        builder = Builder()
        nodes = [builder.input(index) for index in range(len(numbers) + len(state_variables))]
        inputs = [nodes[numbers.index(index)] if index in numbers else nodes[0] for index in range(len(self.operands))]
        step = builder.graph(*builder.include(graph, [*inputs, *nodes[len(numbers) :]]))
        results = tuple(Variable(f"_result_state_{index}", Axes.PAIR) for index in range(len(graph.results)))
        return Fold((*(self.operands[index] for index in numbers), *state_variables), results, step)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operands, then of the states."""
        return tuple(variable.name for variable in (*self.operands, *self.states))

    @cached_property
    def arrays(self) -> tuple[Variable, ...]:
        """The operands that are given."""
        return tuple(operand for operand in self.operands if operand.axes != Axes.INDEX)

    @cached_property
    def results(self) -> tuple[Axes, ...]:
        """The axes of the results."""
        if self.finish is not None:
            return (Axes.PAIR,) * len(self.finish.results)
        return tuple(state.axes for state in self.states)


@dataclass(frozen=True)
class Sums:
    """Sums of terms, each over the axes that its result lacks.

    terms: a graph of the operands with a result for each of `results`. So the derivative of sums is sums, and so on.
    slopes: the derivatives of the one term by the operands; None: they are derived.
    """

    operands: tuple[Variable, ...]
    terms: Dag
    results: tuple[Axes, ...]
    slopes: Dag | None = None

    @cached_property
    def fold(self) -> Fold:
        """Fold each state as a sum so far."""
        builder, first = Builder(), len(self.operands)
        terms = builder.include(self.terms, [builder.input(index) for index in range(first)])
        totals = [builder.plus(builder.input(first + index), term) for index, term in enumerate(terms)]
        states = tuple(Variable(f"_sum_{index}", axes) for index, axes in enumerate(self.results))
        merge, count = Builder(), len(states)
        inputs = [merge.input(index) for index in range(first + 2 * count)]
        merged = merge.graph(*(merge.plus(inputs[first + at], inputs[first + count + at]) for at in range(count)))
        return Fold(self.operands, states, builder.graph(*totals), merge=merged, neutral=(0.0,) * count)

    @cached_property
    def parts(self) -> tuple[Fold | None, ...]:
        """Split results; None: it is zero."""
        return tuple(None if result is None else self.only((index,)).fold for index, result in enumerate(self.terms.results))

    def only(self, wanted: tuple[int, ...]) -> Sums:
        """Some of the results."""
        terms = Dag(self.terms.nodes, tuple(self.terms.results[index] for index in wanted))
        return Sums(self.operands, terms, tuple(self.results[index] for index in wanted))

    def key(self, derivative: str, indices: tuple[int, ...]) -> str:
        """The key of a derivative by the operands with these indices: `"gradient"` or `"tangent"`."""
        if (derivative, indices) not in self._keys:
            result = self.tangent(indices) if derivative == "tangent" else self.gradient.only(indices)
            self._keys[derivative, indices] = key_of(result)
        return self._keys[derivative, indices]

    @cached_property
    def _keys(self) -> dict[tuple[str, tuple[int, ...]], str]:
        return {}

    @cached_property
    def gradient(self) -> Sums:
        """The gradients by the operands, in order, from the operands and then the gradients by the results."""
        inputs, builder = self._inputs(), Builder()
        incoming = tuple(Variable(f"_grad_{len(inputs)}_{index}", axes) for index, axes in enumerate(self.results))
        operands = [builder.input(index) for index in range(len(inputs))]
        weights = [builder.input(len(inputs) + index) for index in range(len(incoming))]
        if self.slopes is not None:
            slopes = builder.include(self.slopes, operands)
            gradients = builder.graph(*(builder.call("mul_ftz_f32", weights[0], slope) for slope in slopes))
        else:
            total = _products(builder, zip(weights, builder.include(self.terms, operands), strict=True))
            assert total is not None, "sums have a result"
            gradients = derived(builder.graph(total), len(inputs) + len(incoming))
        kept = Dag(gradients.nodes, gradients.results[: len(inputs)])
        return Sums((*inputs, *incoming), kept, tuple(value.axes for value in inputs))

    def tangent(self, moved: tuple[int, ...]) -> Sums:
        """Tangents of the results, from the operands and then the tangents of those with these indices."""
        inputs, builder = self._inputs(), Builder()
        rates = tuple(Variable(f"_rate_{len(inputs)}_{index}", inputs[index].axes) for index in moved)
        operands = [builder.input(index) for index in range(len(inputs))]
        rate_nodes = {index: builder.input(len(inputs) + number) for number, index in enumerate(moved)}
        totals = []
        for result in self.terms.results:
            slopes = self.slopes
            if slopes is None:
                term = Dag(self.terms.nodes, (result,))
                slopes = Dag((), (None,) * len(inputs)) if result is None else derived(term, len(inputs))
            values = builder.include(slopes, operands)
            used = [index for index in moved if slopes.results[index] is not None]
            totals.append(_products(builder, ((rate_nodes[index], values[index]) for index in used)))
        return Sums((*inputs, *rates), Dag(builder.graph().nodes, tuple(totals)), self.results)

    def _inputs(self) -> tuple[Variable, ...]:
        if any(operand.axes == Axes.INDEX for operand in self.operands):
            raise ValueError("sums over k itself have no gradient")
        return self.operands


def _products(builder: Builder, factors: Iterable[tuple[int, int]]) -> int | None:
    """The sum of products; None if there are none."""
    total: int | None = None
    for left, right in factors:
        product = builder.call("mul_ftz_f32", left, right)
        total = product if total is None else builder.plus(total, product)
    return total


@dataclass(frozen=True)
class Direct:
    """A fold with one result, and a function that has it in the best way that there is."""

    fold: Fold
    on_arrays: Callable[..., NDArray[Any]]


FOLDS: dict[str, Any] = {}  # inputs of PyTorch's operator by key: each has a `fold`


def key_of(content: Any) -> str:
    """The key of a fold or sums for the operator; equal in every process for equal programs."""
    text = repr((type(content).__name__, content.fold, getattr(content, "kind", "")))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    FOLDS.setdefault(key, content)
    return key


def rows_and_columns(hyper: tuple[str, ...]) -> tuple[Variable, ...]:
    """The operands of a semiring: a, b, and hyperparameters."""
    return (Variable("a", Axes.ROW), Variable("b", Axes.COLUMN), *(Variable(name, Axes.NONE) for name in hyper))


def pairs(names: tuple[str, ...], hyper: tuple[str, ...], terms: Dag) -> Sums:
    """A function of arrays of pairs, element by element: a sum of one term."""
    operands = (*(Variable(name, Axes.PAIR) for name in names), *(Variable(name, Axes.NONE) for name in hyper))
    return Sums(operands, terms, (Axes.PAIR,))


def sums(multiply: Dag, hyper: tuple[str, ...], initial: float) -> Fold:
    """A sum over k, from `initial` on."""
    fold = Sums(rows_and_columns(hyper), multiply, (Axes.PAIR,)).fold
    return replace(fold, states=(Variable("_sum_0", Axes.PAIR, initial),))


def general(multiply: Dag, accumulate: Dag, hyper: tuple[str, ...], initial: float) -> Fold:
    """accumulate: of acc and x, the next term."""
    builder, operands = Builder(), rows_and_columns(hyper)
    inputs = [builder.input(index) for index in range(len(operands) + 1)]
    (term,) = builder.include(multiply, inputs)
    (total,) = builder.include(accumulate, (inputs[-1], term))
    return Fold(operands, (Variable("_acc", Axes.PAIR, initial),), builder.graph(total))


def extremum(multiply: Dag, hyper: tuple[str, ...], initial: float, *, is_min: bool) -> Fold:
    """The smallest or largest term, and the first k that gives it; -1 where no term is beyond `initial`."""
    builder, operands = Builder(), (*rows_and_columns(hyper), Variable("_k", Axes.INDEX))
    inputs = [builder.input(index) for index in range(len(operands) + 2)]
    best, best_k = inputs[-2:]
    (term,) = builder.include(multiply, inputs)
    is_better = builder.call("setp_lt_ftz_f32", *((term, best) if is_min else (best, term)))
    step = builder.graph(
        builder.call("min_ftz_f32" if is_min else "max_ftz_f32", best, term),
        builder.call("selp_f32", inputs[len(operands) - 1], best_k, is_better),
    )
    return Fold(operands, (Variable("_best", Axes.PAIR, initial), Variable("_place", Axes.PAIR, -1.0)), step)


def log_sum_exp(multiply: Dag, hyper: tuple[str, ...], initial: float) -> Fold:
    """log(exp(initial) + sum of exp(term)), online: the largest term so far, and the sum of exponentials relative to it.

    The largest is kept within float32, so that no infinity is taken from itself; in float64, too, terms beyond it count as
    infinite. A NaN gets into the sum and stays there.
    """
    builder, operands = Builder(), rows_and_columns(hyper)
    inputs = [builder.input(index) for index in range(len(operands) + 2)]
    (term,) = builder.include(multiply, inputs)
    total, largest = _joined(builder, inputs[-2:], term, None)
    merge, count = Builder(), len(operands)
    several = [merge.input(index) for index in range(count + 4)]
    total_of_two, largest_of_two = _joined(merge, several[count : count + 2], *several[count + 2 :])
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
    merged = merge.graph(largest_of_two, total_of_two)
    return Fold(operands, states, builder.graph(largest, total), end.graph(result), merged, (-LARGEST, 0.0))


def _joined(builder: Builder, states: Sequence[int], x: int, weight: int | None) -> list[int]:
    """Total and largest with a further term, or with those of `weight`."""
    new, scaled = ("1", "e") if weight is None else ("weight", "weight*e")
    total = f"d = x - largest\ne = exp(-abs(d))\ntotal*e + {new} if 0 < d else total + {scaled}"
    values = [*states, x, *([] if weight is None else [weight])]
    names = ("largest", "total", "x", "weight")[: len(values)]
    largest = f"min(max(largest, x), {LARGEST!r})"
    return [builder.include(formula(text, *names), values)[0] for text in (total, largest)]


def followed(fold: Fold, epilogue: Dag, hyper: tuple[str, ...]) -> Fold:
    """The fold with an epilogue, of its one result and hyperparameters, at its end."""
    builder = Builder()
    inputs = [builder.input(index) for index in range(len(fold.names))]
    (value,) = inputs[len(fold.operands) :] if fold.finish is None else builder.include(fold.finish, inputs)
    (result,) = builder.include(epilogue, [value, *(inputs[fold.names.index(name)] for name in hyper)])
    return replace(fold, finish=builder.graph(result))


def exponentials(multiply: Dag, hyper: tuple[str, ...]) -> Sums:
    """exp(term - out), whose sum is 1 where out is the log-sum-exp of the terms: its gradient is that of the log-sum-exp.

    Terms that are minus infinity have no gradient, even if all are.
    """
    operands = (*rows_and_columns(hyper), Variable("_out", Axes.PAIR))
    builder = Builder()
    inputs = [builder.input(index) for index in range(len(operands))]
    (term,) = builder.include(multiply, inputs)
    (value,) = builder.include(formula(f"exp(x - (-{LARGEST!r} if out < -{LARGEST!r} else out))", "x", "out"), (term, inputs[-1]))
    return Sums(operands, builder.graph(value), (Axes.PAIR,))


def sizes_of(variables: Sequence[Variable], shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of the batch, and M, N and K, which are 1 where no array has them.

    Raises:
        ValueError: the shapes do not fit each other.
    """
    sizes: dict[str, int] = {}
    batches = []
    for variable, shape in zip(variables, shapes, strict=True):
        letters = LETTERS[variable.axes]
        if len(shape) < len(letters):
            raise ValueError(f"{variable.name}: expected shape (..., {', '.join(letters)}), got {shape}")
        batches.append(shape[: len(shape) - len(letters)])
        for letter, size in zip(letters, shape[len(shape) - len(letters) :], strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ValueError(f"{variable.name}: {letter} is {size}, but {sizes[letter]} in an array before it; shape {shape}")
    try:
        batch = np.broadcast_shapes(*batches) if any(batches) else ()  # NumPy takes as long as a small call
    except ValueError:
        raise ValueError(f"batches do not broadcast: {', '.join(str(shape) for shape in batches)}") from None
    return batch, {letter: sizes.get(letter, 1) for letter in "MNK"}
