"""The task of symbolic regression: what makes a formula good, whatever data it is for.

Owns the objective, the check points that guard against poles, and the measures. `evo.regression.neighbours` interpolates between
rows, `evo.regression.scaling` moves and scales. Knows nothing of where data comes from. Slightly long: each part of a formula's
worth is beside its data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.evaluate.sampling import MANY, spread
from evo.native.tune import PointLoss
from evo.regression.column_names import identifiers
from evo.regression.curves import curves
from evo.regression.guesses import guesses
from evo.regression.inverses import inverses
from evo.regression.neighbours import Neighbours
from evo.regression.relations import relations
from evo.regression.scaling import fitted_scale, fitted_scaling, fitted_to_all, input_scaling
from evo.task import Programs, Scores, Task
from evo.tasks.sums import Regression

if TYPE_CHECKING:
    from evo.evaluate.constraints import Constraints
    from evo.regression.losses import TargetLoss

Row = NDArray[np.float64]  # a number for each point
Columns = dict[str, Row]
Points = dict[str, NDArray[np.float32]]
Box = Mapping[str, tuple[float, float]]

SQUARED = "squared"  # the loss that needs no other module
EXACT = 11.5  # digits from which on a formula is the law, and has its poles: a wave that is zero at the rows has 11
BEST_DIGITS = 12.0  # an NMSE below 1e-12 is rounding in f32
MIN_CHECK, MAX_CHECK = 128, 1024  # check points, a power of two
FLAT = 1e-4  # resolution of an output from which on rounding in f32 shapes it, and could be taken for an effect
MAX_LUCK = 0.2  # of an error that rounding may have hidden
LEAST_WEIGHT = 1e-30  # of a row, as a share of the largest, which float32 holds
WORST_ERROR = 1e6  # times the target's variance: of formulas that are not scaled
MOST_DIGITS = 1e15  # of a loss that is a likelihood, which grows with counts
MAX_INSTRUCTIONS = 48.0
NUM_DENSE, MAX_DENSE = 1 << 16, 1 << 20  # points at which a report tells whether formulas are finite; their numbers
# Times its own error and the neighbours' by which a formula may leave the lines between rows in the mean square. The truth needs
# at most half of it on each shipped set (Korns-12; 30 seeds), and a fifth on each law of SRBench's ground truth (3 seeds).
DOUBT = 3.0
FITTED = 30  # iterations of offset and scale by a loss
MOST_ROUNDED_BITS = 1.0  # that simple numbers in their place may cost
INSTRUCTION = 1.5  # times its bits, by which a front's errors on new data were least (five laws and five other sets, 2 seeds)
GAP_DIGITS = 1.0  # by which a formula with gaps must be better than all without
BROAD_SECONDS = 0.5  # that inverses need for the terms and links that few laws have


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
        names: what texts call inputs, where it is not their name.
        test, test_target: further points, of which reports tell the error.
        box: `(low, high)` of inputs where predictions are asked for. Check points fill it too, as far as it is empty of rows.
        max_spread: how far, in standard deviations of the target, the scaled output may be from what the nearest row says, as a
            root mean square over the empty parts of the box; 0: any finite output will do, between rows too.
        weights: `(num_points,)`, above 0: of the squared errors; None: all are equal.
        loss: in place of squared errors (`evo.regression.losses`): the objective is then what the formula saves of the best
            constant's, in the same bits a row. `max_spread` only counts if it is one of prediction - target.
        constraints: as `Task.constraints`; with costs, these count in place of instructions.
        template: what formulas are of (`evo.language.template`); they are then scaled as far as its functions can take that up.
        scaling: of inputs, as another task's `input_scaling()`; None: what float32 needs.

    Raises:
        UserError: the target is the same everywhere, or the loss or the template is wrong.
    """

    measures = {"num_instructions": (0.0, MAX_INSTRUCTIONS), "shape": (0.0, 1.0)}  # noqa: RUF012 - as in `Task`
    objective_range = (0.0, BEST_DIGITS)
    reduction = "regression"
    complexity = "num_instructions"
    first_until_s = math.inf  # time.monotonic() from which on no further kind of first formulas begins
    first_end_s = math.inf  # the same, when the longest kind hands over what it has
    has_inverses = True  # among `programs`; they lead elsewhere where a user defines functions

    def __init__(
        self,
        train: Columns,
        target: NDArray[np.float64],
        *,
        target_name: str | None = None,
        names: Mapping[str, str] | None = None,
        test: Columns | None = None,
        test_target: NDArray[np.float64] | None = None,
        box: Box | None = None,
        max_spread: float = 3.0,
        weights: NDArray[np.float64] | None = None,
        loss: str = SQUARED,
        constraints: Constraints | None = None,
        template: str | None = None,
        scaling: dict[str, tuple[float, float]] | None = None,
    ):
        self.constraints = constraints
        if constraints and constraints.costs:
            most = max(1.0, *constraints.costs.values())
            self.measures = {**self.measures, "num_instructions": (0.0, MAX_INSTRUCTIONS * most)}
        self.inputs = dict.fromkeys(train, "f32")
        self.outputs = {output_name(train): "f32"}
        self.column_names = dict(names or {}) | ({} if target_name is None else {output_name(train): target_name})
        if scaling is None:
            scaling = {name: pair for name, values in train.items() if (pair := input_scaling(values)) != (0.0, 1.0)}
        self._input_scaling = scaling
        self._train = self._moved(train)
        # In these units linear scaling gives the same NMSE, and f32 and sums lose nothing to a large mean.
        self._mean = self._constant = float(np.average(target, weights=weights))
        self._deviation = math.sqrt(np.average((target - self._mean) ** 2, weights=weights))
        if not self._deviation > 0:
            raise UserError("target: is the same at all points, so there is nothing to find")
        self._weights = weights
        self._has_scale = self._has_offset = True
        if template is not None:
            from evo.language.template import by_category, read_template  # loaded only if needed

            self.template = read_template(by_category(template, train), list(train))
            self._has_scale, self._has_offset = self.template.has_scale, self.template.has_offset
            self._refuse_template(loss)
            self._mean = self._mean if self._has_offset else 0.0
            self._deviation = self._deviation if self._has_scale else 1.0
        self._loss: TargetLoss | None = None
        if loss != SQUARED:
            from evo.regression import losses  # loaded only if needed

            self._loss = losses.TargetLoss(loss, target, self.weights())
            self._mean, self._deviation = self._mean if self._loss.moves else 0.0, 1.0
            self._loss = losses.TargetLoss(loss, target - self._mean, self.weights())
            if not self._loss.moves:
                max_spread = 0.0  # predictions may have another unit than targets
            if not self._loss.is_of_errors:
                self.objective_range = (0.0, MOST_DIGITS)
        shares = self.weights()
        self._unit = 1.0 if self._has_scale else float(np.var(target))
        self._total_weight = float(len(target) if shares is None else shares.sum())
        self._given, self._target = target, (target - self._mean) / self._deviation
        self._test = self._moved(test or {name: np.empty(0) for name in train})
        self._test_target = ((np.empty(0) if test_target is None else test_target) - self._mean) / self._deviation
        self._max_spread = float(max_spread)
        self._box = self._moved(box) if box else None
        self._neighbours = Neighbours(_as_f32(self._train), self._target.astype(np.float32))
        self._check, self._guess, self._latitude = self._check_points(min(max(4 * len(target), MIN_CHECK), MAX_CHECK))

    def _refuse_template(self, loss: str) -> None:
        if loss != SQUARED and not self._has_offset:
            raise UserError("template: its functions cannot take up an offset and a scale, so the loss must be squared")
        if self._input_scaling:
            name = next(iter(self._input_scaling))
            raise UserError(f"template: float32 cannot hold the input {name}; subtract its mean or divide it by its size first")

    @staticmethod
    def input_names(columns: Sequence[str]) -> list[str]:
        """A different input for each column, of letters, digits and underscores: `speed (m/s)` becomes `speed_m_s`."""
        return identifiers(columns)

    def input_scaling(self) -> dict[str, tuple[float, float]]:
        """As `Task.input_scaling`: of inputs that float32 cannot hold."""
        return self._input_scaling

    def _moved(self, columns: Mapping[str, Any]) -> Columns:
        """Inputs as programs read them, in float64."""
        arrays = {name: np.asarray(values, np.float64) for name, values in columns.items()}
        return arrays | {
            name: (arrays[name] - offset) / scale for name, (offset, scale) in self._input_scaling.items() if name in arrays
        }

    def points(self) -> dict[str, NDArray[Any]]:
        """The training points."""
        return self._train

    def targets(self) -> dict[str, NDArray[Any]]:
        """In standard deviations from the mean, in float64, of which searches read the nearest float32."""
        return dict.fromkeys(self.outputs, self._target)

    def weights(self) -> NDArray[Any] | None:
        """Weights as shares of the largest, at least `LEAST_WEIGHT`: only their ratios count."""
        return None if self._weights is None else np.maximum(self._weights / self._weights.max(), LEAST_WEIGHT)

    def point_loss(self) -> PointLoss | None:
        """As `Task.point_loss`."""
        return self._loss.point_loss() if self._loss else None

    def digits(self, losses: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
        """Worth of mean losses. variance: of the target."""
        if self._loss:
            return np.clip(self._loss.digits(losses), *self.objective_range)
        return -np.log10(np.clip(losses / variance, 10.0**-BEST_DIGITS, 1.0))

    def digits_of_loss(self, loss: float) -> float:
        """Worth of a mean loss of the user."""
        return float(self.digits(np.array([loss]), self._deviation**2 * self._unit)[0])

    @property
    def constant(self) -> float:
        """The best prediction that is the same everywhere."""
        return self._mean + self._loss.constant if self._loss else self._constant

    def mean_loss(self, predicted: Row) -> float | None:
        """The mean loss of predictions at the rows; None: squared errors count."""
        return self._loss.mean(predicted - self._mean) if self._loss else None

    def programs(self) -> list[str]:
        """As `Task.programs`: what a person would try first (`evo.regression.guesses`)."""
        if self.template:
            from evo.regression.first_functions import first_functions

            return first_functions(self.template)
        columns = {}
        for name, values in self._train.items():
            offset, scale = self._input_scaling.get(name, (0.0, 1.0))
            columns[f"({name} - {offset!r})" if offset else name] = scale * values
        target = self._given  # whose small values, unlike those of `targets`, have all their digits
        texts = guesses(columns, target, self._weights)
        undone = list[list[str]]()
        is_broad = self.first_end_s - time.monotonic() > BROAD_SECONDS
        kinds = partial(inverses, is_broad=is_broad, until_s=self.first_end_s), curves, relations
        for kind in kinds if self.has_inverses and not self._loss else ():
            if time.monotonic() < self.first_until_s:
                undone.insert(0, kind(columns, target, self._weights))
        return texts + [text for texts_of_kind in undone for text in texts_of_kind]

    def check_points(self) -> dict[str, NDArray[Any]]:
        """Points between neighbouring rows, and in the empty parts of the box."""
        return self._check

    def check_targets(self) -> dict[str, NDArray[Any]]:
        """Values at the check points on lines between neighbouring rows; in empty parts of the box, the mean."""
        return dict.fromkeys(self.outputs, self._guess)

    def _check_points(self, count: int) -> tuple[Points, NDArray[np.float32], float]:
        """At least `count` check points, the targets interpolated there, and their mean squared uncertainty."""
        points, expected, self._num_zeros = self._neighbours.between(count)
        squares = np.full(count, DOUBT * self._neighbours.error)
        if self._box:
            filling, nearest = self._neighbours.far_from_rows(self._fill_box(count))
            points, expected = np.concatenate([points, filling]), np.concatenate([expected, nearest])
            squares = np.concatenate([squares, np.full(len(filling), 1.0 + self._max_spread**2)])
        columns = dict(zip(self._train, points.T.astype(np.float32), strict=True))
        return columns, expected.astype(np.float32), float(squares.mean())

    def _fill_box(self, count: int) -> NDArray[np.float64]:
        """`(count, num_inputs)` points that fill the box evenly, ends included (a Sobol sequence). count: a power of two."""
        from scipy.stats import qmc

        box = self._box or {}
        low, high = np.array([box.get(name, (values.min(), values.max())) for name, values in _as_f32(self._train).items()]).T
        unit_points = qmc.Sobol(len(low), scramble=False).random_base2(count.bit_length() - 1) * (count / (count - 1))
        return np.asarray(low + unit_points * (high - low))

    def score(self, outputs: Any, programs: Programs) -> Scores:
        """As `Task.score`."""
        check, resolution = programs.check, outputs.resolution[:, 0]
        usable = (outputs.num_nonfinite[:, 0] == 0) & (resolution < FLAT)
        if self._loss:
            digits = self._loss.digits(outputs.sum_squared_error[:, 0] / self._total_weight)
            usable &= np.isfinite(digits)
            digits, error = np.clip(digits, *self.objective_range), np.full(len(digits), self._target.var())
        else:
            slope, offset = self._fit(outputs)
            error = 1.0 - outputs.correlation[:, 0] ** 2
            if not self._has_offset:
                error = _squared_difference(outputs, slope, offset) / (outputs.centred_tt / outputs.weight)[:, 0]
            error = np.maximum(error, resolution)
            # A search picks the rounding that happens to fit what is left, which gains about the root of their product.
            with np.errstate(invalid="ignore"):
                error = error + np.minimum(np.sqrt(resolution * error), MAX_LUCK * error)
            digits = -np.log10(np.clip(error, 10.0**-BEST_DIGITS, 1.0 if self._has_scale else WORST_ERROR)) + 0.0
        shape = np.zeros(len(error))
        if check is not None:
            usable &= check.num_nonfinite[:, 0] <= self._num_zeros
            if self._max_spread:
                is_near = _squared_difference(check, *self._fit(outputs)) <= DOUBT * error * self._unit + self._latitude
                usable &= is_near | (digits > EXACT)
            is_flat = ~(check.resolution[:, 0] < FLAT) | (check.num_nonfinite[:, 0] > 0)
            shape = np.where(is_flat, 0.0, np.minimum(np.abs(check.correlation[:, 0]), 1.0))
        return Scores(np.where(usable, digits, np.nan), np.stack([programs.num_instructions, shape], axis=1))

    def _fit(self, outputs: Regression) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope and offset that programs are scored with."""
        if self._has_offset:
            return outputs.linear_scaling
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = outputs.sum_yt / outputs.sum_yy if self._has_scale else np.ones_like(outputs.mean_y)
        return slope, np.zeros_like(slope)

    def scaling(self, outputs: dict[str, NDArray[Any]]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Output -> (offset, scale), `(batch_size,)` each: the formula that fits the target best is `offset + scale * output`.
        Both have just the digits that the data support.

        Args:
            outputs: at `points()`.
        """
        return {name: self._scaled(values) for name, values in outputs.items()}

    def _scaled(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Offset and scale for each row of outputs at `points()`."""
        rows = np.asarray(values[:, : len(self._target)], np.float64)
        if self._loss:
            pairs = self._scaled_by(self._loss, rows)
        elif not self._has_offset:
            fits = (fitted_scale(row, self._target, self._weights, self._deviation) if self._has_scale else 1.0 for row in rows)
            pairs = [(0.0, scale) for scale in fits]
        else:
            pairs = [fitted_to_all(row, self._target, self._weights, self._mean, self._deviation) for row in rows]
        offset, scale = np.array(pairs).reshape(-1, 2).T
        return offset, scale

    def _scaled_by(self, loss: TargetLoss, rows: NDArray[np.float64]) -> list[tuple[float, float]]:
        from evo.evaluate.tuning import loss_fitter

        shares, sampled = self.weights(), spread(len(self._target), MANY)
        loss, rows = loss.of_rows(sampled), rows[:, sampled]
        target, weights = self._target[sampled].astype(np.float32), None if shares is None else shares[sampled].astype(np.float32)
        fitter = loss_fitter(self, target, weights)
        assert fitter
        pairs: list[tuple[float, float]] = []
        for row, fit in zip(rows, fitter.fit(rows.astype(np.float32), FITTED), strict=True):
            if not (np.isfinite(row).all() and np.isfinite(fit["loss"])):
                pairs.append((self._mean + loss.constant, 0.0))
                continue
            offset, scale = loss.polished(row, float(fit["offset"]), float(fit["scale"]))
            response, curvature = loss.working(offset + scale * row)
            if not 0.0 < curvature.sum() < np.inf:  # the loss is flat there
                pairs.append((self._mean + offset, scale))
                continue
            simple = fitted_scaling(row, response, curvature, self._mean, 1.0)
            digits = loss.digits(np.array([loss.mean(offset + scale * row), loss.mean(simple[0] - self._mean + simple[1] * row)]))
            is_good = 0.5 * len(row) * math.log2(10.0) * (digits[0] - digits[1]) <= MOST_ROUNDED_BITS
            pairs.append(simple if is_good else (self._mean + offset, scale))
        return pairs

    def report_points(self) -> dict[str, NDArray[Any]]:
        """The training points, the test points, and many points in the box, or without one between neighbouring rows. Half of
        these have round numbers, where formulas have poles.
        """
        count = 1 << (min(NUM_DENSE, max(MAX_DENSE // len(self.inputs), MAX_CHECK)).bit_length() - 1)
        points = self._fill_box(count)
        if not self._box:  # a quarter of them, half of which are made round
            points[::4], points[2::4] = self._neighbours.between(count // 2)[0].reshape(2, -1, points.shape[1])
        low, high = points.min(axis=0), points.max(axis=0)
        step = 10.0 ** np.floor(np.log10(np.maximum(high - low, np.finfo(np.float32).tiny) / 4.0))
        points[count // 2 :] = np.clip(np.round(points[count // 2 :] / step) * step, low, high)
        dense = dict(zip(self._train, points.T.astype(np.float32), strict=True))
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
        what tells laws from noise best. Bits for operands and digits too would choose too short formulas, as a function has many.
        """
        bits = INSTRUCTION * math.log2(16 + len(self.inputs))
        return np.asarray(-0.5 * len(self._target) * np.log2(10.0) * objective + bits * complexity)

    def handicap(self, facts: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """As `Task.handicap`: of formulas that are undefined somewhere and not exact."""
        return np.where((facts["undefined"] > 0.0) & (facts["objective"] <= EXACT), GAP_DIGITS, 0.0)


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
