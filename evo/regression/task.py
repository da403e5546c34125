"""The task of symbolic regression: what makes a formula good, whatever data it is for.

Owns the objective, the check points that guard against poles, and the measures. `evo.regression.scaling` moves and scales. Knows
nothing of where data comes from.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.native.stack_ptx import check_name
from evo.regression.guesses import guesses
from evo.regression.scaling import fitted_scaling, input_scaling
from evo.sums import Regression
from evo.task import Programs, Scores, Task

Row = NDArray[np.float64]  # a number for each point
Columns = dict[str, Row]
Points = dict[str, NDArray[np.float32]]
Box = Mapping[str, tuple[float, float]]

BEST_DIGITS = 12.0  # an NMSE below 1e-12 is rounding in f32
MIN_CHECK, MAX_CHECK = 128, 1024  # check points, a power of two
FLAT = 1e-4  # resolution of an output from which on rounding in f32 shapes it, and could be taken for an effect
MAX_LUCK = 0.2  # of an error that rounding may have hidden
LEAST_WEIGHT = 1e-30  # of a row, as a share of the largest, which float32 holds
MAX_INSTRUCTIONS = 48.0
NUM_DENSE, MAX_DENSE = 1 << 16, 1 << 20  # points at which a report tells whether formulas are finite; their numbers
MAX_NEIGHBOURS = 8  # of a row, two for each input
MAX_ROWS, MAX_WIDE_ROWS = 1 << 14, 1 << 12  # whose neighbours are looked for; with more inputs than WIDE, where that takes longer
WIDE = 8
# Times its own error and the neighbours' by which a formula may leave the lines between rows in the mean square. The truth needs
# at most half of it on each shipped set (Korns-12; 30 seeds), and a fifth on each law of SRBench's ground truth (3 seeds).
DOUBT = 3.0
INSTRUCTION = 1.5  # times its bits, by which a front's errors on new data were least (five laws and five other sets, 2 seeds)
GAP_DIGITS = 1.0  # by which a formula with gaps must be better than all without
GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0


class RegressionTask(Task):
    """Formulas for a target: accuracy against number of instructions and shape.

    The objective is -log10 of the NMSE after linear scaling (Keijzer 2003), at most 12. Check points lie between neighbouring
    rows, since there, and nowhere else, the data say what a formula may do: one that is not finite at each row and check point
    is rejected, and so is one that leaves the lines between neighbours by far more than their targets vary, as a pole does. The
    shape is the absolute correlation of the output with these lines, at the check points. Where an input passes 0 between rows,
    check points lie at 0 too. A formula that is not finite there, as sin(x)/x and cos(1/x), has shape 0: it takes no place of
    others.

    An input that float32 cannot hold, such as a time stamp or 1e-30, is moved and scaled by round numbers for the search.

    Args:
        train: the inputs by name, `(num_points,)` each, finite in float64.
        target: `(num_points,)`, not the same everywhere.
        target_name: what `evo predict` calls its column; None: as the output.
        test, test_target: further points, of which reports tell the error.
        box: `(low, high)` of inputs where predictions are asked for. Check points fill it too, as far as it is empty of rows.
        max_spread: how far, in standard deviations of the target, the scaled output may be from what the nearest row says, as a
            root mean square over the empty parts of the box; 0: any finite output will do, between rows too.
        weights: `(num_points,)`, above 0: of the squared errors; None: all are equal.

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
        target_name: str | None = None,
        test: Columns | None = None,
        test_target: NDArray[np.float64] | None = None,
        box: Box | None = None,
        max_spread: float = 3.0,
        weights: NDArray[np.float64] | None = None,
    ):
        self.inputs = dict.fromkeys(train, "f32")
        self.outputs = {output_name(train): "f32"}
        self.column_names = {} if target_name is None else {output_name(train): target_name}
        self._input_scaling = {name: pair for name, values in train.items() if (pair := input_scaling(values)) != (0.0, 1.0)}
        self._train = self._moved(train)
        # In these units linear scaling gives the same NMSE, and f32 and sums lose nothing to a large mean.
        self._mean = float(np.average(target, weights=weights))
        self._deviation = math.sqrt(np.average((target - self._mean) ** 2, weights=weights))
        if not self._deviation > 0:
            raise UserError("target: is the same at all points, so there is nothing to find")
        self._target = (target - self._mean) / self._deviation
        self._test = self._moved(test or {name: np.empty(0) for name in train})
        self._test_target = ((np.empty(0) if test_target is None else test_target) - self._mean) / self._deviation
        self._max_spread = float(max_spread)
        self._box = self._moved(box) if box else None
        self._neighbours = _Neighbours(_as_f32(self._train), self._target.astype(np.float32))
        self._check, self._guess, self._latitude = self._check_points(min(max(4 * len(target), MIN_CHECK), MAX_CHECK))
        self._weights = weights

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

    def input_scaling(self) -> dict[str, tuple[float, float]]:
        """As `Task.input_scaling`: of inputs that float32 cannot hold."""
        return self._input_scaling

    def _moved(self, columns: Mapping[str, Any]) -> Columns:
        """Inputs as programs read them, in float64."""
        found = {name: np.asarray(values, np.float64) for name, values in columns.items()}
        return found | {
            name: (found[name] - offset) / scale for name, (offset, scale) in self._input_scaling.items() if name in found
        }

    def points(self) -> dict[str, NDArray[Any]]:
        """The training points."""
        return self._train

    def targets(self) -> dict[str, NDArray[Any]]:
        """In standard deviations from the mean, in float64, of which searches read the nearest float32."""
        return dict.fromkeys(self.outputs, self._target)

    def weights(self) -> NDArray[Any] | None:
        """As a share of the largest, and at least `LEAST_WEIGHT`: only their ratios count."""
        return None if self._weights is None else np.maximum(self._weights / self._weights.max(), LEAST_WEIGHT)

    def programs(self) -> list[str]:
        """As `Task.programs`: what a person would try first (`evo.regression.guesses`)."""
        columns = {}
        for name, values in self._train.items():
            offset, scale = self._input_scaling.get(name, (0.0, 1.0))
            columns[f"({name} - {offset!r})" if offset else name] = scale * values
        return guesses(columns, self._mean + self._deviation * self._target, self._weights)

    def check_points(self) -> dict[str, NDArray[Any]]:
        """Points between neighbouring rows, and in the empty parts of the box."""
        return self._check

    def check_targets(self) -> dict[str, NDArray[Any]]:
        """What lines between neighbouring rows say at the check points; in empty parts of the box, the mean."""
        return dict.fromkeys(self.outputs, self._guess)

    def _check_points(self, count: int) -> tuple[Points, NDArray[np.float32], float]:
        """At least `count` check points, what the rows say there, and how far from it, squared, the truth may be in the mean."""
        points, said, self._num_zeros = self._neighbours.between(count)
        squares = np.full(count, DOUBT * self._neighbours.error)
        if self._box:
            filling, nearest = self._neighbours.far_from_rows(self._fill_box(count))
            points, said = np.concatenate([points, filling]), np.concatenate([said, nearest])
            squares = np.concatenate([squares, np.full(len(filling), 1.0 + self._max_spread**2)])
        columns = dict(zip(self._train, points.T.astype(np.float32), strict=True))
        return columns, said.astype(np.float32), float(squares.mean())

    def _fill_box(self, count: int) -> NDArray[np.float64]:
        """`(count, num_inputs)` points that fill the box evenly, ends included (a Sobol sequence). count: a power of two."""
        from scipy.stats import qmc

        box = self._box or {}
        low, high = np.array([box.get(name, (each.min(), each.max())) for name, each in _as_f32(self._train).items()]).T
        places = qmc.Sobol(len(low), scramble=False).random_base2(count.bit_length() - 1) * (count / (count - 1))
        return np.asarray(low + places * (high - low))

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """As `Task.score`."""
        check = programs.check
        resolution = outputs.resolution[:, 0]
        error = np.maximum(1.0 - outputs.correlation[:, 0] ** 2, resolution)
        # A search picks the rounding that happens to fit what is left, which gains about the root of their product.
        with np.errstate(invalid="ignore"):
            error = error + np.minimum(np.sqrt(resolution * error), MAX_LUCK * error)
        usable = (outputs.num_nonfinite[:, 0] == 0) & (resolution < FLAT)
        shape = np.zeros(len(error))
        if check is not None:
            usable &= check.num_nonfinite[:, 0] <= self._num_zeros
            if self._max_spread:
                usable &= _squared_difference(check, *outputs.linear_scaling) <= DOUBT * error + self._latitude
            is_flat = ~(check.resolution[:, 0] < FLAT) | (check.num_nonfinite[:, 0] > 0)
            shape = np.where(is_flat, 0.0, np.minimum(np.abs(check.correlation[:, 0]), 1.0))
        digits = np.where(usable, -np.log10(np.clip(error, 10.0**-BEST_DIGITS, 1.0)) + 0.0, np.nan)
        return Scores(digits, np.stack([programs.num_instructions, shape], axis=1))

    def scaling(self, outputs: dict[str, NDArray[Any]]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Output -> (offset, scale), `(batch_size,)` each: the formula that fits the target best is `offset + scale * output`.
        Both have just the digits that the data support.

        Args:
            outputs: at `points()`.
        """
        return {name: self._scaled(values) for name, values in outputs.items()}

    def _scaled(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Offset and scale for each row of outputs at `points()`."""
        rows = values[:, : len(self._target)].astype(np.float64)
        pairs = [fitted_scaling(row, self._target, self._weights, self._mean, self._deviation) for row in rows]
        offset, scale = np.array(pairs).reshape(-1, 2).T
        return offset, scale

    def report_points(self) -> dict[str, NDArray[Any]]:
        """The training points, the test points, and many points in the box, or without one between neighbouring rows. Half of
        these have round numbers, where formulas have poles.
        """
        count = 1 << (min(NUM_DENSE, max(MAX_DENSE // len(self.inputs), MAX_CHECK)).bit_length() - 1)
        places = self._fill_box(count) if self._box else self._neighbours.between(count)[0]
        low, high = places.min(axis=0), places.max(axis=0)
        step = 10.0 ** np.floor(np.log10(np.maximum(high - low, np.finfo(np.float32).tiny) / 4.0))
        places[count // 2 :] = np.clip(np.round(places[count // 2 :] / step) * step, low, high)
        dense = dict(zip(self._train, places.T.astype(np.float32), strict=True))
        return {name: np.concatenate([self._train[name], self._test[name], dense[name]]) for name in self.inputs}

    def report(self, outputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """`scale` and `offset` of the formula `offset + scale * program`; `undefined`, the share of the dense points at which it
        has no finite value; and `test_nmse`, if there are test points.
        """
        [values] = outputs.values()
        count, num_test = len(self._target), len(self._test_target)
        offset, scale = self._scaled(values)
        facts = {"scale": scale, "offset": offset}
        facts["undefined"] = 1.0 - np.isfinite(values[:, count + num_test :]).mean(axis=1)
        if num_test:
            # Over the test target's own variance; an infinite prediction makes it infinite.
            predicted = offset[:, None] + scale[:, None] * values[:, count : count + num_test]
            errors = (predicted - self._mean) / self._deviation - self._test_target
            error = (errors**2).mean(axis=1) / self._test_target.var()
            facts["test_nmse"] = np.where(np.isnan(error), np.inf, error)
        return facts

    def description_length(self, objective: NDArray[Any], complexity: NDArray[Any]) -> NDArray[Any]:
        """As `Task.description_length`: errors at the resolution of the data; each instruction is one of 16 or an input, times
        what tells laws from noise best. Bits for operands and digits too would choose formulas that are too short for noisy laws,
        since a function has many formulas.
        """
        bits = INSTRUCTION * math.log2(16 + len(self.inputs))
        return np.asarray(-0.5 * len(self._target) * np.log2(10.0) * objective + bits * complexity)

    def handicap(self, facts: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """As `Task.handicap`: of formulas that are undefined somewhere."""
        return np.where(facts["undefined"] > 0.0, GAP_DIGITS, 0.0)


def output_name(inputs: Collection[str]) -> str:
    """The name of the output: `f`, unless an input is called so."""
    name = "f"
    while name in inputs:
        name += "_out"
    return name


def _as_f32(columns: Columns) -> dict[str, NDArray[np.float32]]:
    return {name: values.astype(np.float32) for name, values in columns.items()}


def _squared_difference(sums: Regression, slope: NDArray[np.float64], offset: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean square of offset + slope * output - target."""
    of_means = offset + slope * sums.mean_y - sums.mean_t
    squares = slope**2 * sums.centred_yy - 2.0 * slope * sums.centred_yt + sums.centred_tt
    return np.asarray((squares / sums.weight + of_means**2)[:, 0])


class _Neighbours:
    """The rows of a table and their neighbours, in standard deviations of the inputs. Rows at one place are merged, with their
    mean target. Of very many rows some are used, spread evenly over their order.

    error: mean square by which a row's target differs from what its neighbours say (by inverse squared distance, Shepard 1968).
    """

    def __init__(self, train: Points, target: NDArray[np.float32]):
        from scipy.spatial import KDTree

        count = min(len(target), MAX_WIDE_ROWS if len(train) > WIDE else MAX_ROWS)
        used = np.arange(count) * len(target) // count
        columns = np.stack([values[used].astype(np.float64) for values in train.values()], axis=1)
        self._rows, places, times = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        self._said = np.bincount(places.ravel(), target[used]) / times
        if len(self._rows) == 1:
            self._rows, self._said = self._rows.repeat(2, axis=0), self._said.repeat(2)
        deviations = self._rows.std(axis=0)
        self._unit = np.where(deviations > 0, deviations, 1.0)
        self._tree = KDTree(self._rows / self._unit)
        num = min(2 * len(train), MAX_NEIGHBOURS, len(self._rows) - 1)
        distances, nearest = self._tree.query(self._rows / self._unit, num + 1)
        self._reach = distances[:, 1].max()
        self._near = nearest[:, 1:]  # a row itself is the first
        if len(train) == 1:  # the rows are in order, and the next ones lie across a gap too
            last = len(self._rows) - 1
            row = np.arange(last + 1)
            self._near = np.stack([np.where(row > 0, row - 1, 1), np.where(row < last, row + 1, last - 1)], axis=1)
        squares = (((self._rows[self._near] - self._rows[:, None]) / self._unit) ** 2).sum(axis=2)
        weights = 1.0 / np.maximum(squares, np.finfo(np.float32).tiny)
        guesses = (weights * self._said[self._near]).sum(axis=1) / weights.sum(axis=1)
        self.error = float(np.mean((guesses - self._said) ** 2))

    def between(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """`(count, num_inputs)` points on segments between neighbours, spread evenly over all, what a straight line between the
        ends says there, and at how many of them an input is 0: every other one, where the segment passes that.
        """
        turn = np.arange(count)
        first = turn * len(self._rows) // count if count < len(self._rows) else turn % len(self._rows)
        second = self._near[first, (turn // len(self._rows) + first) % self._near.shape[1]]
        place = turn * GOLDEN_RATIO % 1.0
        passes = (self._rows[first] * self._rows[second] < 0) & (turn[:, None] % 2 > 0)
        zeros = np.flatnonzero(passes.any(axis=1))
        num = passes.shape[1]
        column = (passes[zeros] * (1 + (np.arange(num) + turn[zeros, None] // 2) % num)).argmax(axis=1)  # each in turn
        begin = self._rows[first[zeros], column]
        place[zeros] = begin / (begin - self._rows[second[zeros], column])
        points = self._rows[first] + place[:, None] * (self._rows[second] - self._rows[first])
        points[zeros, column] = 0.0
        return points, self._said[first] + place * (self._said[second] - self._said[first]), len(zeros)

    def far_from_rows(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The points that are farther from each row than any row from the next, and the target of the nearest row."""
        distances, nearest = self._tree.query(points / self._unit)
        is_far = distances > self._reach
        return points[is_far], self._said[nearest[is_far]]
