"""The task of symbolic regression: what makes a formula good, whatever data it is for.

Owns the objective, the check points that guard against poles, and the measures. Knows nothing of where data comes from.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.native.stack_ptx import check_name
from evo.task import Programs, Regression, Scores, Task

Columns = dict[str, NDArray[np.float64]]
Points = dict[str, NDArray[np.float32]]
Box = Mapping[str, tuple[float, float]]

BEST_DIGITS = 12.0  # an NMSE below 1e-12 is rounding in f32
MIN_CHECK, MAX_CHECK = 128, 1024  # check points, a power of two
MARGIN = 0.05  # of the training points' range, by which the check points exceed it on each side
FLAT = 1e-11  # variance of an output over its mean square, at and below which f32 leaves nothing but rounding
MAX_INSTRUCTIONS = 48.0
NUM_DENSE, MAX_DENSE = 1 << 16, 1 << 20  # points in the box at which a report tells whether formulas are finite; their numbers
NUM_NEIGHBOURS = 4  # training points that a check point is compared with
MAX_DISTANCES = 1 << 29  # times the number of inputs: of training points to each other
DOUBT = 2.0  # times the error that is expected of a formula at the check points, for many training points
DOUBT_POINTS = 200.0  # over the number of training points, is added to that: the truth passes for each shipped set and 60 seeds


class RegressionTask(Task):
    """Formulas for a target: accuracy against number of instructions and shape.

    The objective is -log10 of the NMSE after linear scaling (Keijzer 2003), at most 12. Check points fill a box around the data
    evenly (a Sobol sequence). The shape is the absolute correlation there of the output with what the nearest training points
    say (Shepard 1968). Programs that are not finite at each point and check point are rejected, and so are those that contradict
    the nearest training points by far more than these are wrong about each other.

    Args:
        train: the inputs by name, `(num_points,)` each.
        target: `(num_points,)`, not the same everywhere.
        test, test_target: further points, of which reports tell the error.
        box: `(low, high)` of inputs, in place of the range of the training points and a margin.
        max_spread: the greatest root mean square of the scaled output, in standard deviations of the target around its mean,
            at check points that are far from the training points; 0: any finite output will do, near them too.
        weights: `(num_points,)`, above 0: of the squared errors; None: all are equal. With weights NumPy sums them up, and
            constants cannot be tuned.

    Raises:
        UserError: the target is the same everywhere.
    """

    measures = {"num_instructions": (0.0, MAX_INSTRUCTIONS), "shape": (0.0, 1.0)}  # noqa: RUF012 - as in `Task`
    objective_range = (0.0, BEST_DIGITS)
    reduction = "regression"
    complexity = "num_instructions"

    def __init__(
        self,
        train: Columns,
        target: NDArray[np.float64],
        *,
        test: Columns | None = None,
        test_target: NDArray[np.float64] | None = None,
        box: Box | None = None,
        max_spread: float = 3.0,
        weights: NDArray[np.float64] | None = None,
    ):
        self.inputs = dict.fromkeys(train, "f32")
        self.outputs = {output_name(train): "f32"}
        self._train = _as_f32(train)
        # In these units linear scaling gives the same NMSE, and f32 and sums lose nothing to a large mean.
        self._mean = float(np.average(target, weights=weights))
        self._deviation = math.sqrt(np.average((target - self._mean) ** 2, weights=weights))
        if not self._deviation > 0:
            raise UserError("target: is the same at all points, so there is nothing to find")
        self._target = ((target - self._mean) / self._deviation).astype(np.float32)
        self._test = _as_f32(test or {name: np.empty(0) for name in train})
        self._test_target = ((np.empty(0) if test_target is None else test_target) - self._mean) / self._deviation
        self._max_spread = float(max_spread)
        self._box = {**{name: wider_range(values) for name, values in train.items()}, **(box or {})}
        self._check = _check_points(self._box, min(max(4 * len(target), MIN_CHECK), MAX_CHECK))
        self._guess, self._guess_error, self._share_far = _neighbours(self._train, self._target, self._check)
        self._doubt = DOUBT + DOUBT_POINTS / len(target)
        self._weights = weights
        if weights is not None:
            self.reduction = None  # type: ignore[assignment]  # of `score` itself

    @staticmethod
    def input_name(name: str) -> str:
        """What an input is called whose column has this name: letters, digits and underscores; empty if none are left."""
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        plain = re.sub(r"\W+", "_", plain).strip("_")
        if not plain:
            return ""
        plain = f"x{plain}" if plain[0].isdigit() else plain
        try:
            check_name(plain)
        except ValueError:  # such as r1, which PTX uses itself
            plain += "_in"
        return plain

    def points(self) -> dict[str, NDArray[Any]]:
        """The training points; with weights the check points follow."""
        if self._weights is None:
            return self._train
        return {name: np.concatenate([values, self._check[name]]) for name, values in self._train.items()}

    def targets(self) -> dict[str, NDArray[Any]]:
        """In standard deviations from the mean."""
        return dict.fromkeys(self.outputs, self._target)

    def check_points(self) -> dict[str, NDArray[Any]]:
        """Points that fill the box."""
        return self._check

    def check_targets(self) -> dict[str, NDArray[Any]]:
        """What the nearest training points say at the check points."""
        return dict.fromkeys(self.outputs, self._guess)

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """As `Task.score`."""
        check = programs.check
        if self._weights is not None:
            [values] = outputs.values()
            count = len(self._target)
            outputs = _sums(values[:, :count], self._target, self._weights)
            check = _sums(values[:, count:], self._guess, np.ones(len(self._guess)))
        mean, variance = _moments(outputs)
        error = 1.0 - outputs.correlation[:, 0] ** 2
        slope, offset = (each[:, 0] for each in outputs.linear_scaling)
        usable = (outputs.num_nonfinite[:, 0] == 0) & (variance > FLAT * (variance + mean**2))
        if check is None:
            shape = np.zeros(len(mean))
        else:
            check_mean, check_variance = _moments(check)
            usable &= check.num_nonfinite[:, 0] == 0
            if self._max_spread:
                # Where training points are near, a formula is as far from what they say as it and they are from the target.
                expected = self._doubt * (error + self._guess_error) + self._share_far * (1.0 + self._max_spread**2)
                usable &= _squared_difference(check, slope, offset) <= expected
            is_flat = ~(check_variance > FLAT * (check_variance + check_mean**2))
            shape = np.where(is_flat, 0.0, np.minimum(np.abs(check.correlation[:, 0]), 1.0))
        digits = np.where(usable, -np.log10(np.clip(error, 10.0**-BEST_DIGITS, 1.0)) + 0.0, np.nan)
        return Scores(digits, np.stack([programs.num_instructions, shape], axis=1))

    def scaling(self, outputs: dict[str, NDArray[Any]]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Output -> (offset, scale), `(batch_size,)` each: the formula that fits the target best is `offset + scale * output`.

        Args:
            outputs: at `points()`.
        """
        found = {}
        for name, values in outputs.items():
            slope, offset = _fit(values[:, : len(self._target)], self._target, self._weights)
            found[name] = self._mean + self._deviation * offset, self._deviation * slope
        return found

    def report_points(self) -> dict[str, NDArray[Any]]:
        """The training points, the test points, and points that fill the box densely."""
        dense = _check_points(self._box, min(NUM_DENSE, max(MAX_DENSE // len(self.inputs), MAX_CHECK)))
        return {name: np.concatenate([self._train[name], self._test[name], dense[name]]) for name in self.inputs}

    def report(self, outputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """`scale` and `offset` of the formula `offset + scale * program`; `undefined`, the share of the dense points at which it
        has no finite value; and `test_nmse`, if there are test points.
        """
        [values] = outputs.values()
        count, num_test = len(self._target), len(self._test_target)
        slope, offset = _fit(values[:, :count], self._target, self._weights)
        facts = {"scale": self._deviation * slope, "offset": self._mean + self._deviation * offset}
        facts["undefined"] = 1.0 - np.isfinite(values[:, count + num_test :]).mean(axis=1)
        if num_test:
            # Over the test target's own variance; an infinite prediction makes it infinite.
            squares = (offset[:, None] + slope[:, None] * values[:, count : count + num_test] - self._test_target) ** 2
            error = squares.mean(axis=1) / self._test_target.var()
            facts["test_nmse"] = np.where(np.isnan(error), np.inf, error)
        return facts

    def description_length(self, objective: NDArray[Any], complexity: NDArray[Any]) -> NDArray[Any]:
        """As `Task.description_length`: errors at the resolution of the data; for each instruction its name and an operand."""
        bits = 2.0 * math.log2(16 + len(self.inputs))
        return np.asarray(-0.5 * len(self._target) * np.log2(10.0) * objective + bits * complexity)


def output_name(inputs: Collection[str]) -> str:
    """The name of the output: `f`, unless an input is called so."""
    name = "f"
    while name in inputs:
        name += "_out"
    return name


def wider_range(values: NDArray[Any]) -> tuple[float, float]:
    """The range of an input with a margin. Logarithms, roots and quotients are lost at 0, so inputs of one sign keep it."""
    low, high = float(values.min()), float(values.max())
    margin = MARGIN * (high - low)
    return (low / 2 if 0 <= low <= margin else low - margin), (high / 2 if 0 <= -high <= margin else high + margin)


def _fit(
    values: NDArray[Any], target: NDArray[np.float32], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope b and intercept a of each row y of `(num_programs, num_points)` that minimise the squared error of a + b y."""
    y, t = values.astype(np.float64), target.astype(np.float64)
    w = np.ones(len(t)) if weights is None else weights
    mean_y, mean_t = (w * y).sum(axis=1) / w.sum(), (w * t).sum() / w.sum()
    centred = y - mean_y[:, None]
    slope = (w * centred * (t - mean_t)).sum(axis=1) / (w * centred**2).sum(axis=1)
    return slope, mean_t - slope * mean_y


def _as_f32(columns: Columns) -> dict[str, NDArray[np.float32]]:
    return {name: values.astype(np.float32) for name, values in columns.items()}


def _sums(values: NDArray[np.float32], target: NDArray[np.float32], weights: NDArray[np.float64]) -> Regression:
    """What the reduction gives, with weights. Each row's sums depend on that row alone."""
    y, t = values.astype(np.float64), target.astype(np.float64)

    def column(sums: Any) -> NDArray[np.float64]:
        return np.broadcast_to(sums, len(y)).reshape(-1, 1)

    weighted = weights * y
    return Regression(
        num_points=column(weights.sum()),
        num_nonfinite=column(np.count_nonzero(~np.isfinite(y), axis=1)),
        sum_y=column(weighted.sum(axis=1)),
        sum_t=column((weights * t).sum()),
        sum_yy=column((weighted * y).sum(axis=1)),
        sum_tt=column((weights * t * t).sum()),
        sum_yt=column((weighted * t).sum(axis=1)),
        sum_squared_error=column((weights * (y - t) ** 2).sum(axis=1)),
        max_abs_error=column(np.abs(y - t).max(axis=1)),
    )


def _moments(sums: Regression) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    count = sums.num_points[:, 0]
    mean = sums.sum_y[:, 0] / count
    return mean, sums.sum_yy[:, 0] / count - mean**2


def _squared_difference(sums: Regression, slope: NDArray[np.float64], offset: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean square of offset + slope * output - target."""
    count, y, t = sums.num_points[:, 0], sums.sum_y[:, 0], sums.sum_t[:, 0]
    squares = slope**2 * sums.sum_yy[:, 0] + 2.0 * slope * (offset * y - sums.sum_yt[:, 0])
    return np.asarray((squares - 2.0 * offset * t + sums.sum_tt[:, 0]) / count + offset**2)


def _check_points(box: Box, max_count: int) -> Points:
    """Points that fill a box evenly. Half of them have round numbers, such as 0, and equal ones, where formulas have poles."""
    from scipy.stats import qmc

    log_count = max_count.bit_length() - 1
    count = 1 << log_count
    places = qmc.Sobol(len(box), scramble=False).random_base2(log_count) * (count / (count - 1))  # from 0 to 1, ends included
    points = {}
    for (name, (low, high)), place in zip(box.items(), places.T, strict=True):
        values = low + place * (high - low)
        if high > low:
            step = 10.0 ** math.floor(math.log10((high - low) / 4.0))
            is_round = (np.arange(count) >= count // 2) & (place < 1.0)  # the first point has the low ends
            values[is_round] = np.clip(np.round(values[is_round] / step) * step, low, high)
        points[name] = values.astype(np.float32)
    return points


def _neighbours(train: Points, target: NDArray[np.float32], check: Points) -> tuple[NDArray[np.float32], float, float]:
    """What the nearest training points say at the check points; its mean squared error at training points, each left out in turn;
    and the share of the check points that are farther from the training points than these are from each other.

    Of very many training points some are used, spread evenly over the order of the rows.
    """
    from scipy.spatial import KDTree

    count = min(len(target), math.isqrt(MAX_DISTANCES // len(train)))
    used = np.arange(count) * len(target) // count
    deviations = {name: float(values.astype(np.float64).std()) or 1.0 for name, values in train.items()}
    rows, places = (
        np.stack([points[name] / deviation for name, deviation in deviations.items()], axis=1) for points in (train, check)
    )
    rows, said = rows[used], target[used]
    tree = KDTree(rows)

    def mean(distances: NDArray[np.float64], neighbours: NDArray[np.intp]) -> NDArray[np.float64]:  # by inverse squared distance
        weights = 1.0 / np.maximum(distances, 1e-9) ** 2
        return np.asarray((weights * said[neighbours]).sum(axis=1) / weights.sum(axis=1))

    # The first neighbour is the point itself, or one at the same place.
    distances, neighbours = tree.query(rows, min(NUM_NEIGHBOURS + 1, count))
    error = np.mean((mean(distances[:, 1:], neighbours[:, 1:]) - said) ** 2)
    reach = distances[:, 1].max()
    distances, neighbours = tree.query(places, min(NUM_NEIGHBOURS, count))
    return mean(distances, neighbours).astype(np.float32), float(error), float(np.mean(distances[:, 0] > reach))
