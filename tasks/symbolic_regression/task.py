"""Symbolic regression: formulas for the columns of a table, by number of instructions and shape."""

import math
from pathlib import Path

import numpy as np

import evo

from .datasets import DATASETS, sample
from .delimited import DECIMALS, SEPARATORS
from .table import LARGEST, read_inputs, read_table

MIN_ROWS = 10  # of a table; half of it at least is for training


class SymbolicRegression(evo.RegressionTask):
    def __init__(
        self,
        dataset: str = "Poly-10",
        data: str | None = None,
        target: str | None = None,
        drop: list[str] | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        test_share: float = 0.25,
        split_seed: int = 1,
        ranges: dict[str, list[float]] | None = None,
        max_spread: float = 3.0,
        loss: str = "squared",
        template: str | None = None,
    ):
        if not (_is_number(split_seed, int) and split_seed >= 0):
            raise evo.UserError(f"task_options.split_seed: must be an integer from 0 on, got {split_seed!r}")
        if not (_is_number(max_spread) and max_spread >= 0 and math.isfinite(max_spread)):
            raise evo.UserError(f"task_options.max_spread: must be a number from 0 on, got {max_spread!r}")
        self._data = None if data is None else Path(str(data)).absolute()
        if self._data is None:
            options = {"target": target, "drop": drop, "separator": separator, "decimal": decimal, "ranges": ranges}
            self._check_options_of_a_dataset(dataset, **options)
            found = sample(dataset, split_seed)
            train, train_target, test, test_target = found.train, found.train_target, found.test, found.test_target
            self._names = {name: name for name in train}
            # The range in which the set's source asks for predictions.
            box = {name: _range(np.concatenate([train[name], test[name]])) for name in train}
        else:
            for name, value, known in (("separator", separator, SEPARATORS), ("decimal", decimal, DECIMALS)):
                if not (value is None or value in [*known]):
                    raise evo.UserError(f"task_options.{name}: must be one of {', '.join(known)}; got {value!r}")
            self._separator = separator
            table, (train, train_target, test, test_target) = self._read(target, drop, test_share, split_seed, decimal)
            self._decimal, self.notes = table.decimal, table.notes
            box = _given_ranges(ranges or {}, train, self._names, table.left_out)
        if not train_target.std() > 0:
            raise evo.UserError(f"{data}: column '{target}' is the same in all training rows, so there is nothing to find")
        super().__init__(
            train,
            train_target,
            target_name=target,
            names=self._names,
            test=test,
            test_target=test_target,
            box=box,
            max_spread=max_spread,
            loss=loss,
            template=template,
        )

    def _check_options_of_a_dataset(self, dataset, **options):
        if dataset not in DATASETS:
            raise evo.UserError(f"task_options.dataset: no set '{dataset}', one of: {', '.join(DATASETS)}")
        for name, value in options.items():
            if value is not None:
                raise evo.UserError(f"task_options.{name} needs task_options.data, a CSV file")

    def _read(self, target, drop, test_share, split_seed, decimal):
        if target is None:
            raise evo.UserError("task_options.data needs task_options.target, the name of a column")
        drop = [] if drop is None else drop
        if not isinstance(drop, list):
            raise evo.UserError(f"task_options.drop: must be a list of columns, such as [id, date]; got {drop!r}")
        if not (_is_number(test_share) and 0 <= test_share <= 0.5):
            raise evo.UserError(f"task_options.test_share: must be between 0 and 0.5, got {test_share!r}")
        table = read_table(self._data, str(target), [str(name) for name in drop], MIN_ROWS, self._separator, decimal)
        columns, values = dict(table.columns), table.columns[table.target]
        del columns[table.target]
        self._names = {name: table.names[name] for name in columns}
        order = np.random.default_rng(split_seed).permutation(len(values))
        num_test = round(test_share * len(values))
        test, train = np.sort(order[:num_test]), np.sort(order[num_test:])
        return table, (
            {name: column[train] for name, column in columns.items()},
            values[train],
            {name: column[test] for name, column in columns.items()},
            values[test],
        )

    def files(self):
        return [self._data] if self._data else []

    def read_points(self, path, inputs):
        return read_inputs(path, {name: self._names[name] for name in inputs}, self._separator, self._decimal)


def _range(values):
    return float(values.min()), float(values.max())


def _is_number(value, kind=(int, float)):
    return isinstance(value, kind) and not isinstance(value, bool)


def _given_ranges(ranges, train, names, left_out):
    """Ranges by identifier of inputs that are given by identifier or by the file's name of the column."""
    if not isinstance(ranges, dict):
        raise evo.UserError(f"task_options.ranges: must be like {{x: [0, 10]}}, got {ranges!r}")
    identifiers = {**{called: identifier for identifier, called in names.items()}, **{name: name for name in train}}
    found = {}
    for called, ends in ranges.items():
        if called not in identifiers:
            why = f", because the column {reason}" if (reason := left_out.get(f"'{called}'")) else ""
            raise evo.UserError(
                f"task_options.ranges: '{called}' is not an input{why}; the inputs are: {', '.join(names.values())}"
            )
        name = identifiers[called]
        is_range = isinstance(ends, list) and len(ends) == 2 and all(_is_number(end) for end in ends)
        if not (is_range and -LARGEST <= ends[0] <= train[name].min() and train[name].max() <= ends[1] <= LARGEST):
            low, high = _range(train[name])
            raise evo.UserError(
                f"task_options.ranges: {called} must be [low, high] around its data, {low:g} to {high:g}; got {ends}"
            )
        found[name] = tuple(ends)
    return found
