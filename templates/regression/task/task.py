"""Formulas for the last column of data.csv from the others."""

from pathlib import Path

import numpy as np

import evo

DATA = Path(__file__).with_name("data.csv")


class Formula(evo.RegressionTask):
    """evo.RegressionTask says what makes a formula good: its error, its length, and no poles between the rows."""

    def __init__(self, test_every: int = 4):
        # Each fourth row is set aside: the search never sees it, and `evo show` prints the error there.
        *names, target = header(DATA)
        if not names:
            raise evo.UserError(f"{DATA}:1: needs a column to predict '{target}' from")
        columns = read(DATA)
        is_test = np.arange(len(columns[target])) % test_every == 0
        super().__init__(
            {name: columns[name][~is_test] for name in names},
            columns[target][~is_test],
            target_name=target,
            test={name: columns[name][is_test] for name in names},
            test_target=columns[target][is_test],
        )

    def read_points(self, path, inputs):
        """For `evo predict`: the inputs that a formula uses, in another file."""
        columns = read(path)
        if missing := [name for name in inputs if name not in columns]:
            raise evo.UserError(f"{path}: no column '{missing[0]}'; the formula's inputs are: {', '.join(inputs)}")
        return {name: columns[name] for name in inputs}


def header(path):
    """The names of the columns, as names of inputs."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            line = file.readline().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise evo.UserError(f"{path}: cannot read the data: {error}") from error
    if ";" in line or "\t" in line:
        raise evo.UserError(f"{path}:1: columns must be separated by commas, and decimals written with points")
    return evo.RegressionTask.input_names([name.strip() for name in line.split(",")])


def read(path):
    """The columns of a CSV file by name; the first line has the names, the others have numbers."""
    names = header(path)
    try:
        rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        raise evo.UserError(f"{path}: not a table of numbers: {error}") from error
    if rows.shape[1] != len(names):
        raise evo.UserError(f"{path}: {len(names)} names but {rows.shape[1]} columns")
    if not np.isfinite(rows).all():
        raise evo.UserError(f"{path}: not a table of numbers: row {np.isfinite(rows).all(axis=1).argmin()} has nan or inf")
    return dict(zip(names, rows.T, strict=True))
