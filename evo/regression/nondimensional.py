"""A search without dimensions: y over a product of powers of the inputs, by groups of these that have no dimension.

Owns which product and groups these are, how formulas of groups become programs of the inputs, and what the search takes. By
Buckingham's theorem (1914) all laws without further constants have this form, of fewer variables.
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
from evo.regression.parameters import drawn
from evo.regression.task import SQUARED, RegressionTask
from evo.regression.units import Powers, Units

Row = NDArray[np.float64]  # a number for each point
Scaling = Mapping[str, tuple[float, float]]  # name of an input -> offset and scale

MAX_PRODUCTS = 8  # that are tried for the target
LEAST = 1e-6  # of the largest: products nearer to 0 divide nothing
MAX_GROUPS = 12
SHARE = 0.5  # of time and evaluations
LEAST_SECONDS = 0.1  # that are left


@dataclass(frozen=True)
class Nondimensional:
    """A table without dimensions.

    product: powers of the inputs that the target is divided by. groups: the columns, by name.
    columns: `(num_points, num_groups)`. target, weights: `(num_points,)`; with these weights squared errors are the target's own.
    """

    product: Powers
    groups: dict[str, Powers]
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
            group = _product(builder, powers)
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
    regressor: Any, units: Units, task: RegressionTask, y: tuple[Row, Row | None], stop: dict[str, Any]
) -> tuple[NDArray[np.uint64] | None, int]:
    """Programs that a search without dimensions finds for a regressor, None if there are none, and its evaluations.

    Args:
        y: target and weights at the task's points.
        stop: of the search with dimensions; is left what this one does not take.
    """
    functions = set(drawn(regressor.functions) or DEFAULT_FUNCTIONS)
    is_moved = any(offset for offset, _ in task.input_scaling().values())
    if is_moved or regressor.loss not in (None, SQUARED) or not {"add", "mul", "div"} <= functions:
        return None, 0
    table = nondimensional(units, task.points(), *y, has_roots={"sqrt", "exp2", "log2"} <= functions)
    if table is None:
        return None, 0
    start_s = time.monotonic()
    model = clone(regressor).set_params(
        units=None, y_units=None, select_k_features=None, output=None, warm_start=False, guesses=None
    )
    model.max_time = model.max_time and SHARE * model.max_time
    model.max_evaluations = model.max_evaluations and max(1, int(SHARE * model.max_evaluations))
    model.fit(pd.DataFrame(table.columns, columns=[*table.groups]), table.target, table.weights)
    stop["evaluations"] = stop["evaluations"] and max(1, stop["evaluations"] - model.n_evaluations_)
    stop["seconds"] = stop["seconds"] and max(LEAST_SECONDS, stop["seconds"] - (time.monotonic() - start_s))
    language, inputs, words, scaling = model.found()
    found = [
        table.words(each, language, inputs, pair, regressor.max_length)
        for each, pair in zip(words, scaling.tolist(), strict=True)
    ]
    rows = [each for each in found if each is not None]
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
    found: list[tuple[float, Powers, Row]] = []
    for powers in units.products()[:MAX_PRODUCTS]:
        product = _values(powers, inputs) if has_roots or all(each.denominator == 1 for each in powers) else None
        if product is not None and np.abs(product).min() > LEAST * np.abs(product).max():
            with np.errstate(divide="ignore"):
                spread = np.log(np.maximum(np.abs(target / product), np.finfo(np.float64).tiny)).std()
            found.append((float(spread), powers, product))
    if units.target is None or not found or not 0 < len(groups) < min(len(inputs), MAX_GROUPS):
        return None
    _, powers, product = min(found, key=lambda each: each[0])
    weights = product**2 * (1.0 if weights is None else weights)
    return Nondimensional(powers, groups, np.stack(values, axis=1), target / product, weights / weights.max())


def _values(powers: Powers, inputs: Mapping[str, Row]) -> Row | None:
    """A product of powers of the inputs; None: it is not finite somewhere."""
    found = np.ones_like(next(iter(inputs.values())))
    with np.errstate(all="ignore"):
        for power, values in zip(powers, inputs.values(), strict=True):
            found = found * values ** float(power)
    return found if np.isfinite(found).all() else None


def _product(builder: Builder, powers: Sequence[Fraction]) -> int | None:
    """The value of a product of powers of the inputs; None: it is 1."""
    root = math.lcm(*(each.denominator for each in powers))
    factors = {sign: [place for place, each in enumerate(powers) for _ in range(sign * int(each * root))] for sign in (1, -1)}

    def multiplied(places: list[int]) -> int:
        found = builder.input(places[0])
        for place in places[1:]:
            found = builder.call("mul_ftz_f32", found, builder.input(place))
        return found

    above, below = (multiplied(places) if places else None for places in factors.values())
    found = above
    if below is not None:
        found = builder.call(FUNCTIONS["div"][0], builder.constant(1.0) if above is None else above, below)
    if found is not None and root == 2:
        return builder.call(FUNCTIONS["sqrt"][0], found)
    if found is not None and root > 1:
        found = builder.call("mul_ftz_f32", builder.call(FUNCTIONS["log2"][0], found), builder.constant(1.0 / root))
        return builder.call(FUNCTIONS["exp2"][0], found)
    return found
