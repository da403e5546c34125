"""Symbolic regression: formulas for the columns of a table, by number of instructions and shape."""

import math
from pathlib import Path

import numpy as np

import evo

from .datasets import DATASETS, sample
from .table import LARGEST, read_inputs, read_table

MIN_ROWS = 10  # of a table; half of it at least is for training
BEST_DIGITS = 12.0  # an NMSE below 1e-12 is rounding in f32
MIN_CHECK, MAX_CHECK = 128, 1024  # check points, a power of two
NUM_DENSE = 1 << 16  # points in the same box at which a report tells whether a formula is finite
MARGIN = 0.05  # of the training points' range, by which the check points exceed it on each side
FLAT = 1e-11  # variance of an output over its mean square, at and below which f32 leaves nothing but rounding
MAX_INSTRUCTIONS = 48.0
NUM_NEIGHBOURS = 4  # training points that a check point is compared with
DOUBT = 2.0  # times the error that is expected of a formula at the check points, for many training points
DOUBT_POINTS = 200.0  # over the number of training points, is added to that: the truth passes for each set and 60 seeds


class SymbolicRegression(evo.Task):
    outputs = {"f": "f32"}
    measures = {"num_instructions": (0.0, MAX_INSTRUCTIONS), "shape": (0.0, 1.0)}
    objective_range = (0.0, BEST_DIGITS)
    reduction = "regression"
    complexity = "num_instructions"

    def __init__(
        self,
        dataset: str = "Pagie-1",
        data: str | None = None,
        target: str | None = None,
        drop: list[str] | None = None,
        test_share: float = 0.25,
        split_seed: int = 1,
        ranges: dict[str, list[float]] | None = None,
        max_spread: float = 3.0,
    ):
        if not (isinstance(split_seed, int) and split_seed >= 0):
            raise evo.UserError(f"task_options.split_seed: must be an integer from 0 on, got {split_seed!r}")
        if not (isinstance(max_spread, (int, float)) and max_spread >= 0 and math.isfinite(max_spread)):
            raise evo.UserError(f"task_options.max_spread: must be a number from 0 on, got {max_spread!r}")
        self._data = None if data is None else Path(str(data)).absolute()
        if self._data is None:
            self._check_options_of_a_dataset(dataset, target=target, drop=drop, ranges=ranges)
            found = sample(dataset, split_seed)
            train, train_target, test, test_target = found.train, found.train_target, found.test, found.test_target
            self._names = {name: name for name in train}
            # The range in which the set's source asks for predictions.
            box = {name: _range(np.concatenate([train[name], test[name]])) for name in train}
        else:
            train, train_target, test, test_target = self._read(target, drop, test_share, split_seed)
            box = {**{name: _wider_range(values) for name, values in train.items()}, **_given_ranges(ranges or {}, train)}
        self.inputs = dict.fromkeys(train, "f32")
        if "f" in self.inputs:
            self.outputs = {"f_out": "f32"}
        self._train = _as_f32(train)
        self._test = _as_f32(test)
        # In these units linear scaling gives the same NMSE, and f32 and sums lose nothing to a large mean.
        self._mean, self._deviation = float(train_target.mean()), float(train_target.std())
        if not self._deviation > 0:
            raise evo.UserError(f"{data}: column '{target}' is the same in all training rows, so there is nothing to find")
        self._target = ((train_target - self._mean) / self._deviation).astype(np.float32)
        self._test_target = (test_target - self._mean) / self._deviation
        self._max_spread = float(max_spread)
        self._check = _check_points(box, min(max(4 * len(train_target), MIN_CHECK), MAX_CHECK))
        self._box = box
        self._guess, self._guess_error, self._share_far = _neighbours(self._train, self._target, self._check)
        self._doubt = DOUBT + DOUBT_POINTS / len(train_target)

    def _check_options_of_a_dataset(self, dataset, **options):
        if dataset not in DATASETS:
            raise evo.UserError(f"task_options.dataset: no set '{dataset}', one of: {', '.join(DATASETS)}")
        for name, value in options.items():
            if value is not None:
                raise evo.UserError(f"task_options.{name} needs task_options.data, a CSV file")

    def _read(self, target, drop, test_share, split_seed):
        if target is None:
            raise evo.UserError("task_options.data needs task_options.target, the name of a column")
        drop = [] if drop is None else drop
        if not isinstance(drop, list):
            raise evo.UserError(f"task_options.drop: must be a list of columns, such as [id, date]; got {drop!r}")
        if not (isinstance(test_share, (int, float)) and 0 <= test_share <= 0.5):
            raise evo.UserError(f"task_options.test_share: must be between 0 and 0.5, got {test_share!r}")
        table = read_table(self._data, str(target), [str(name) for name in drop], MIN_ROWS)
        columns, values = dict(table.columns), table.columns[table.target]
        del columns[table.target]
        self._names = {name: table.names[name] for name in columns}
        order = np.random.default_rng(split_seed).permutation(len(values))
        num_test = round(test_share * len(values))
        test, train = np.sort(order[:num_test]), np.sort(order[num_test:])
        return (
            {name: column[train] for name, column in columns.items()},
            values[train],
            {name: column[test] for name, column in columns.items()},
            values[test],
        )

    def files(self):
        return [self._data] if self._data else []

    def points(self):
        return self._train

    def targets(self):
        return dict.fromkeys(self.outputs, self._target)

    def check_points(self):
        return self._check

    def check_targets(self):
        return dict.fromkeys(self.outputs, self._guess)

    def score(self, outputs, programs):
        count = outputs.num_points[:, 0]
        mean, variance = _moments(outputs, count)
        error = 1.0 - outputs.correlation[:, 0] ** 2
        slope, offset = (values[:, 0] for values in outputs.linear_scaling)
        usable = (outputs.num_nonfinite[:, 0] == 0) & (variance > FLAT * (variance + mean**2))
        check = programs.check
        if check is None:
            shape = np.zeros(len(count))
        else:
            check_mean, check_variance = _moments(check, check.num_points[:, 0])
            usable &= check.num_nonfinite[:, 0] == 0
            if self._max_spread:
                # Where training points are near, a formula is as far from what they say as it and they are from the target.
                expected = self._doubt * (error + self._guess_error) + self._share_far * (1.0 + self._max_spread**2)
                usable &= _squared_difference(check, slope, offset) <= expected
            is_flat = ~(check_variance > FLAT * (check_variance + check_mean**2))
            shape = np.where(is_flat, 0.0, np.minimum(np.abs(check.correlation[:, 0]), 1.0))
        digits = np.where(usable, -np.log10(np.clip(error, 10.0**-BEST_DIGITS, 1.0)) + 0.0, np.nan)
        return evo.Scores(digits, np.stack([programs.num_instructions, shape], axis=1))

    def report_points(self):
        dense = _check_points(self._box, NUM_DENSE)
        return {name: np.concatenate([self._train[name], self._test[name], dense[name]]) for name in self.inputs}

    def scaling(self, outputs):
        [values] = outputs.values()
        slope, offset = self._fit(values.astype(np.float64))
        return dict.fromkeys(outputs, (self._mean + self._deviation * offset, self._deviation * slope))

    def report(self, outputs):
        [values] = outputs.values()
        values = values.astype(np.float64)
        count, num_test = len(self._target), len(self._test_target)
        slope, offset = self._fit(values[:, :count])
        facts = {"scale": self._deviation * slope, "offset": self._mean + self._deviation * offset}
        facts["undefined"] = 1.0 - np.isfinite(values[:, count + num_test :]).mean(axis=1)
        if num_test:
            # Over the test target's own variance; an infinite prediction makes it infinite.
            squares = (offset[:, None] + slope[:, None] * values[:, count : count + num_test] - self._test_target) ** 2
            error = squares.mean(axis=1) / self._test_target.var()
            facts["test_nmse"] = np.where(np.isnan(error), np.inf, error)
        return facts

    def _fit(self, y):
        """Slope and offset by which outputs at the training points fit the standardised target best."""
        t = self._target.astype(np.float64)
        centred = y - y.mean(axis=1, keepdims=True)
        slope = (centred * (t - t.mean())).sum(axis=1) / (centred**2).sum(axis=1)
        return slope, t.mean() - slope * y.mean(axis=1)

    def read_points(self, path):
        return _as_f32(read_inputs(path, self._names))

    def description_length(self, objective, complexity):
        # Errors at the resolution of the data, and for each instruction its name and an operand.
        bits = 2.0 * math.log2(16 + len(self.inputs))
        return -0.5 * len(self._target) * np.log2(10.0) * objective + bits * complexity


def _as_f32(points):
    return {name: values.astype(np.float32) for name, values in points.items()}


def _moments(sums, count):
    mean = sums.sum_y[:, 0] / count
    return mean, sums.sum_yy[:, 0] / count - mean**2


def _squared_difference(check, slope, offset):
    """The mean square of offset + slope * output - target."""
    count, y, t = check.num_points[:, 0], check.sum_y[:, 0], check.sum_t[:, 0]
    squares = slope**2 * check.sum_yy[:, 0] + 2.0 * slope * (offset * y - check.sum_yt[:, 0])
    return (squares - 2.0 * offset * t + check.sum_tt[:, 0]) / count + offset**2


def _range(values):
    return float(values.min()), float(values.max())


def _wider_range(values):
    """The range of an input with a margin. Logarithms, roots and quotients are lost at 0, so inputs of one sign keep it."""
    low, high = _range(values)
    margin = MARGIN * (high - low)
    return (low / 2 if 0 <= low <= margin else low - margin), (high / 2 if 0 <= -high <= margin else high + margin)


def _given_ranges(ranges, train):
    if not isinstance(ranges, dict):
        raise evo.UserError(f"task_options.ranges: must be like {{x: [0, 10]}}, got {ranges!r}")
    for name, ends in ranges.items():
        if name not in train:
            raise evo.UserError(f"task_options.ranges: '{name}' is no input; the inputs are: {', '.join(train)}")
        is_range = isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, (int, float)) for end in ends)
        if not (is_range and -LARGEST <= ends[0] <= train[name].min() and train[name].max() <= ends[1] <= LARGEST):
            low, high = _range(train[name])
            raise evo.UserError(
                f"task_options.ranges: {name} must be [low, high] around its data, {low:g} to {high:g}; got {ends}"
            )
    return {name: tuple(ends) for name, ends in ranges.items()}


def _check_points(box, max_count):
    """Points that fill a box evenly. Half of them have round numbers, such as 0, and equal ones, where formulas have poles."""
    from scipy.stats import qmc

    count = 1 << (max_count.bit_length() - 1)
    places = qmc.Sobol(len(box), scramble=False).random(count) * (count / (count - 1))  # from 0 to 1, ends included
    points = {}
    for (name, (low, high)), place in zip(box.items(), places.T, strict=True):
        values = low + place * (high - low)
        step = 10.0 ** math.floor(math.log10((high - low) / 4.0))
        is_round = (np.arange(count) >= count // 2) & (place < 1.0)  # the first point has the low ends
        values[is_round] = np.clip(np.round(values[is_round] / step) * step, low, high)
        points[name] = values.astype(np.float32)
    return points


def _neighbours(train, target, check):
    """What the nearest training points say at the check points; its mean squared error at training points, each left out in turn;
    and the share of the check points that are farther from the training points than these are from each other.
    """
    from scipy.spatial import KDTree

    deviations = {name: values.std() or 1.0 for name, values in train.items()}
    rows, places = (
        np.stack([points[name] / deviation for name, deviation in deviations.items()], axis=1) for points in (train, check)
    )
    tree = KDTree(rows)

    def mean(distances, neighbours):  # by inverse squared distance (Shepard 1968)
        weights = 1.0 / np.maximum(distances, 1e-9) ** 2
        return (weights * target[neighbours]).sum(axis=1) / weights.sum(axis=1)

    distances, neighbours = tree.query(rows, NUM_NEIGHBOURS + 1)  # the first is the point itself, or one at the same place
    error = np.mean((mean(distances[:, 1:], neighbours[:, 1:]) - target) ** 2)
    reach = distances[:, 1].max()
    distances, neighbours = tree.query(places, NUM_NEIGHBOURS)
    return mean(distances, neighbours).astype(np.float32), float(error), float(np.mean(distances[:, 0] > reach))
