"""A search with fewer variables: y over a product of powers of the inputs, by groups of these.

Owns which product and groups these are, how formulas of groups become programs of the inputs, and what the search takes. By
Buckingham's theorem (1914) all laws without further constants have this form, with groups that have no dimension. Without units,
the data show the groups (`evo.regression.groups`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from evo.language.dag import Builder, dag_of
from evo.language.program import Language
from evo.regression.defaults import DEFAULT_FUNCTIONS, FUNCTIONS
from evo.regression.groups import Groups, Powers, groups_of
from evo.regression.parameters import drawn
from evo.regression.task import SQUARED, RegressionTask
from evo.regression.units import Units

Row = NDArray[np.float64]  # a number for each point
Scaling = Mapping[str, tuple[float, float]]  # name of an input -> offset and scale

MAX_PRODUCTS = 8  # that are tried for the target
LEAST = 1e-6  # of the largest: products nearer to 0 divide nothing
MAX_GROUPS = 12
SHARE = 0.5  # of time and evaluations
LEAST_SECONDS = 0.1  # that are left
LEAST_TIME = 2.0  # seconds, of a search that has time to look for groups


@dataclass(frozen=True)
class Nondimensional:
    """A table with fewer variables.

    product: powers of the inputs that the target is divided by. groups: powers in the columns, or factors of sums, by name.
    columns: `(num_points, num_groups)`. target, weights: `(num_points,)`; with these weights squared errors are the target's own.
    """

    product: Powers
    groups: dict[str, Powers]
    are_sums: bool
    columns: Row
    target: Row
    weights: Row

    def words(
        self, words: NDArray[np.uint64], language: Language, inputs: Scaling, scaling: Sequence[float], length: int
    ) -> NDArray[np.uint64] | None:
        """The program of the inputs that a program of groups stands for, `(length,)`; None: it is longer.

        Args:
            language, inputs, scaling: of the program of groups, how it reads these, and its offset and scale.
        """
        offset, scale = scaling
        graph = dag_of(language, words)
        builder = Builder(language.instruction_set)
        groups = []
        for name, powers in self.groups.items():
            moved, divisor = inputs.get(name, (0.0, 1.0))
            group = _sum(builder, powers) if self.are_sums else _product(builder, powers)
            assert group is not None
            group = builder.call("add_ftz_f32", group, builder.constant(-moved)) if moved else group
            groups.append(builder.call("mul_ftz_f32", group, builder.constant(1.0 / divisor)) if divisor != 1.0 else group)
        [result] = builder.include(graph, groups)
        product = _product(builder, self.product)
        if product is not None and scale:
            result = builder.call("add_ftz_f32", result, builder.constant(offset / scale)) if offset else result
            result = builder.call("mul_ftz_f32", product, result)
        elif product is not None:
            result = product
        return builder.graph(result).words(language, length)


def first_programs(
    regressor: Any, units: Units | None, task: RegressionTask, y: tuple[Row, Row | None], stop: dict[str, Any]
) -> tuple[NDArray[np.uint64] | None, int]:
    """Programs that a search with fewer variables finds for a regressor, None if there are none, and its evaluations.

    Args:
        y: target and weights at the task's points.
        stop: of the search with all variables; reduced by what this one takes.
    """
    functions = set(drawn(regressor.functions) or DEFAULT_FUNCTIONS)
    is_moved = any(offset for offset, _ in task.input_scaling().values())
    needed = {"add", "mul", "div"} if units else {"add", "sub", "mul", "div"}
    is_short = regressor.max_time is not None and regressor.max_time < LEAST_TIME and not units
    if is_moved or is_short or regressor.loss not in (None, SQUARED) or not needed <= functions:
        return None, 0
    has_roots = {"sqrt", "exp2", "log2"} <= functions
    table = nondimensional(units, task.points(), *y, has_roots) if units else grouped(task.points(), *y, has_roots)
    if table is None:
        return None, 0
    start_s = time.monotonic()
    model = clone(regressor).set_params(
        units=None, y_units=None, select_k_features=None, output=None, warm_start=False, guesses=None
    )
    model.max_time = model.max_time and SHARE * model.max_time
    model.max_evaluations = model.max_evaluations and max(1, int(SHARE * model.max_evaluations))
    model.fit(pd.DataFrame(table.columns, columns=[*table.groups]), table.target, table.weights)
    left = 1 if model.interrupted_ else stop["evaluations"] and max(1, stop["evaluations"] - model.n_evaluations_)
    stop["evaluations"] = left
    stop["seconds"] = stop["seconds"] and max(LEAST_SECONDS, stop["seconds"] - (time.monotonic() - start_s))
    language, inputs, words, scaling = model.found()
    candidates = [
        table.words(program, language, inputs, pair, regressor.max_length)
        for program, pair in zip(words, scaling.tolist(), strict=True)
    ]
    rows = [candidate for candidate in candidates if candidate is not None]
    return (np.stack(rows) if rows else None), model.n_evaluations_


def nondimensional(
    units: Units, inputs: Mapping[str, Row], target: Row, weights: Row | None, has_roots: bool
) -> Nondimensional | None:
    """The table without dimensions; None: its target has none, or it has no fewer columns.

    Args:
        inputs: `(num_points,)` each, in any units of their dimensions.
        weights: of squared errors of the target; None: all are equal.
        has_roots: whether powers may be other than integers.
    """
    groups: dict[str, Powers] = {}
    values: list[Row] = []
    for powers in units.groups():
        group = _values(powers, inputs)
        if group is not None and np.ptp(group) > 0.0:
            groups[f"p{len(groups)}"] = powers
            values.append(group)
    targets: list[tuple[float, Powers, Row]] = []
    for powers in units.products()[:MAX_PRODUCTS]:
        product = _values(powers, inputs) if has_roots or all(power.denominator == 1 for power in powers) else None
        if product is not None and np.abs(product).min() > LEAST * np.abs(product).max():
            with np.errstate(divide="ignore"):
                spread = np.log(np.maximum(np.abs(target / product), np.finfo(np.float64).tiny)).std()
            targets.append((float(spread), powers, product))
    if units.target is None or not targets or not 0 < len(groups) < min(len(inputs), MAX_GROUPS):
        return None
    _, powers, product = min(targets, key=lambda candidate: candidate[0])
    return _divided(Groups(powers, (*groups.values(),), are_sums=False), product, values, target, weights)


def grouped(inputs: Mapping[str, Row], target: Row, weights: Row | None, has_roots: bool) -> Nondimensional | None:
    """The table of groups that the target depends on, by the data; None: there are none. Arguments are those of
    `nondimensional`.
    """
    if (groups := groups_of(inputs, target)) is None:
        return None
    product = _values(groups.product, inputs)
    columns = np.stack([*inputs.values()])
    values = [np.array(group, np.float64) @ columns if groups.are_sums else _values(group, inputs) for group in groups.groups]
    is_whole = all(power.denominator == 1 for power in groups.product)
    if product is None or not product.all() or not (has_roots or is_whole):
        return None
    known = [column for column in values if column is not None]
    return _divided(groups, product, known, target, weights) if len(known) == len(values) else None


def _divided(groups: Groups, product: Row, values: list[Row], target: Row, weights: Row | None) -> Nondimensional:
    """The table of these groups."""
    weights = np.abs(product) * (1.0 if weights is None else weights)
    named = {f"p{number}": powers for number, powers in enumerate(groups.groups)}
    columns = np.stack(values, axis=1)
    return Nondimensional(groups.product, named, groups.are_sums, columns, target / product, weights / weights.max())


def _values(powers: Powers, inputs: Mapping[str, Row]) -> Row | None:
    """A product of powers of the inputs; None: it is not finite somewhere."""
    product = np.ones_like(next(iter(inputs.values())))
    with np.errstate(all="ignore"):
        for power, values in zip(powers, inputs.values(), strict=True):
            product = product * values ** float(power)
    return product if np.isfinite(product).all() else None


def _sum(builder: Builder, signs: Sequence[Fraction]) -> int:
    """The value of a sum and difference of inputs, one of which is added."""
    [first, *rest] = sorted((i for i, sign in enumerate(signs) if sign), key=lambda i: -signs[i])
    result = builder.input(first)
    for i in rest:
        result = builder.call(FUNCTIONS["add" if signs[i] > 0 else "sub"][0], result, builder.input(i))
    return result


def _product(builder: Builder, powers: Sequence[Fraction]) -> int | None:
    """The value of a product of powers of the inputs; None: it is 1."""
    root = math.lcm(*(power.denominator for power in powers))
    factors = {sign: [i for i, power in enumerate(powers) for _ in range(sign * int(power * root))] for sign in (1, -1)}

    def multiplied(indices: list[int]) -> int:
        result = builder.input(indices[0])
        for i in indices[1:]:
            result = builder.call("mul_ftz_f32", result, builder.input(i))
        return result

    above, below = (multiplied(indices) if indices else None for indices in factors.values())
    result = above
    if below is not None:
        result = builder.call(FUNCTIONS["div"][0], builder.constant(1.0) if above is None else above, below)
    if result is not None and root == 2:
        return builder.call(FUNCTIONS["sqrt"][0], result)
    if result is not None and root > 1:
        result = builder.call("mul_ftz_f32", builder.call(FUNCTIONS["log2"][0], result), builder.constant(1.0 / root))
        return builder.call(FUNCTIONS["exp2"][0], result)
    return result
