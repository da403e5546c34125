"""Symbolic regression as an estimator of scikit-learn.

Owns the estimator's parameters and attributes, and which equation is the best. The search is that of `evo.evolution`, the scores
those of `evo.regression.task`. Slightly long, since the class documents each parameter.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evo.errors import UserError
from evo.evolution import interruptible, make_search
from evo.instructions import shipped_instruction_set
from evo.language.expression import Expression, expression_of, lines_of
from evo.language.formula import evaluate, formula_of
from evo.language.formula_text import INFIX
from evo.language.program import Language, word
from evo.native.stack_ptx import NodeKind
from evo.native.stack_ptx_words import WordType
from evo.regression.defaults import FUNCTIONS, PROGRAM, SEARCH, vocabulary_of
from evo.regression.equations import SELECTIONS, chosen_row, front_of_losses, front_programs, scores, table_text
from evo.regression.task import BEST_DIGITS, RegressionTask, output_name
from evo.report.pareto import KNEE, SHORTEST, Front
from evo.report.progress import progress_of
from evo.report.table import write_csv
from evo.run import islands

if TYPE_CHECKING:
    from evo.search.archives.elites import Elites

MIN_ROWS = 10
MAX_FEATURES = 1024  # the time to set up a language grows with their square
MAX_REPEATED = 4  # times the rows: integer weights repeat rows up to here, beyond they are factors
MIN_BATCH, MAX_POINTS = 128, 1 << 27  # programs of a generation, if their number times that of rows exceeds MAX_POINTS
MAX_DIGITS = 17  # of a float64
MAX_WRITTEN_OUT = 5000  # operations of an expression for SymPy
MORE_EVALUATIONS = 0.2  # share of the evaluations so far: how long the search goes on for a simpler formula once one is exact
SAVE_SECONDS = 2.0  # between two writes of `output`


class SymbolicRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Finds formulas for a target by MAP-Elites, and keeps the Pareto front of simplicity and accuracy.

    Each formula is `offset + scale * program`, fitted by least squares. The search runs programs in float32; `equations_`,
    `sympy`, `latex` and `predict` are one formula, in float64. Features that float32 cannot hold, such as time stamps, are moved
    and scaled for the search alone; a warning names them. The order of rows does not matter.

    Once a formula has all 12 digits, the search goes on for a fifth of its evaluations so far, for a simpler one. Ctrl-C, or a
    notebook's stop button, ends it with what it has found, and a warning.

    Args:
        max_time: seconds after which the search ends; None: `max_evaluations` decides.
        max_evaluations: programs after which the search ends. With a `random_state` and without `max_time` results are the same
            each time, whatever `n_jobs` is.
        functions: names out of add, sub, mul, div, rcp, sin, cos, exp2, log2, sqrt, tanh, abs, neg, min, max, exp, log, log10,
            pow, square, cube, tan and sigmoid, or a mapping from names to how often they are drawn; None: the first ten.
        max_length: words of a program.
        max_spread: above 0, formulas that leave the straight lines between neighbouring rows by far more than their errors
            explain, as poles do, are rejected; 0: any that is finite between the rows will do.
        model_selection: which equation predicts. `shortest`: the fewest bits for equation and errors
            (`RegressionTask.description_length`); `accuracy`: the least loss; `knee`: the one beyond which more complexity pays
            off least; `score`: the greatest score; `best`: the greatest score among those with a loss of at most 1.5 times the
            least, as in PySR.
        output: a CSV file that `equations_` is written to every few seconds and at the end.
        verbose: above 0, the search shows its progress.
        warm_start: a further `fit` goes on with the programs that the last one ended with.
        n_jobs: threads; None: 1, or what a joblib context says; -1: all cores.
        random_state: seed of the search.

    Attributes:
        equations_: a DataFrame, as `print(model)` shows it, from the simplest to the most accurate: `complexity`, the number of
            instructions of the program; `loss`, the mean squared error on the training data; `score`, how much ln(loss) falls for
            each further instruction; `equation`. One that is undefined somewhere between the rows is left out, unless it has a
            tenth of the loss of all others.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
        n_evaluations_, n_generations_: of the search, the latter over all fits of a warm start.
    """

    def __init__(
        self,
        *,
        max_time: float | None = 10.0,
        max_evaluations: int | None = None,
        functions: Sequence[str] | Mapping[str, float] | None = None,
        max_length: int = 48,
        max_spread: float = 3.0,
        model_selection: str = SHORTEST,
        output: str | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.max_time = max_time
        self.max_evaluations = max_evaluations
        self.functions = functions
        self.max_length = max_length
        self.max_spread = max_spread
        self.model_selection = model_selection
        self.output = output
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Searches for formulas.

        Args:
            X: `(n_samples, n_features)`, at least 10 samples.
            y: `(n_samples,)`.
            sample_weight: `(n_samples,)` factors of squared errors, from 0 on. Rows of weight 0 do not count.

        Raises:
            ValueError: a parameter or the data is wrong.
        """
        self._check_parameters()
        columns, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=MIN_ROWS)
        if columns.shape[1] > MAX_FEATURES:
            raise ValueError(
                f"X has {columns.shape[1]} features, SymbolicRegressor takes at most {MAX_FEATURES}; select some first"
            )
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, columns, dtype=np.float64)
        columns, target, weights = _prepare(columns, target.astype(np.float64), weights)
        config = self._config(len(target))
        earlier: NDArray[np.uint64] | None = None
        if self.warm_start and len(getattr(self, "_inputs", ())) == columns.shape[1]:
            earlier = self._elites
        known_scaling = getattr(self, "_input_scaling", {})
        self._inputs = _identifiers(getattr(self, "feature_names_in_", [f"x{i}" for i in range(columns.shape[1])]))
        self._mean = float(np.average(target, weights=weights))
        self._elites: NDArray[np.uint64] = np.zeros((0, 1), np.uint64)
        self._input_scaling: dict[str, tuple[float, float]] = {}
        task = None
        words = np.array([[word(WordType.CONSTANT), word(WordType.RETURN)]], np.uint64)  # 0
        if np.average((target - self._mean) ** 2, weights=weights) > 0:
            train = dict(zip(self._inputs, columns.T, strict=True))
            task = RegressionTask(train, target, max_spread=self.max_spread, weights=weights)
            self._input_scaling = task.input_scaling()
        if self._input_scaling != known_scaling:
            earlier = None  # programs of other units
        self.n_evaluations_ = 0
        self.n_generations_: int = self.n_generations_ if earlier is not None else 0
        if task:

            def save(elites: Elites) -> None:
                if len(elites):
                    self._tabulate(front_programs(elites, task, self._language), task, columns, target, weights)

            elites = self._search(config, task, earlier, save)
            if len(elites):
                words = front_programs(elites, task, self._language)
            else:
                warnings.warn("no formula was accepted; the mean of y predicts", ConvergenceWarning, stacklevel=2)
        self._tabulate(words, task, columns, target, weights)
        return self

    def __str__(self) -> str:
        """The equations as a table, `>` before the one that predicts."""
        if not hasattr(self, "equations_"):
            return repr(self)
        return table_text(self.equations_, self._marked, self._row(None))

    def predict(self, X: ArrayLike, index: int | None = None) -> NDArray[np.float64]:  # noqa: N803
        """What an equation gives for each row. Where it is not finite, that is the mean of the training targets.

        Args:
            X: `(n_samples, n_features)`.
            index: of the equation in `equations_`; None: the one that `model_selection` says.

        Returns:
            `(n_samples,)`, always finite.
        """
        check_is_fitted(self)
        columns = validate_data(self, X, dtype=np.float64, reset=False)
        predicted = evaluate(self._formula(self._row(index)), columns.T)[0]
        return np.where(np.isfinite(predicted), predicted, self._mean)

    def get_best(self) -> pd.Series:
        """The row of `equations_` that `model_selection` says."""
        check_is_fitted(self)
        return self.equations_.loc[self._row(None)]

    def sympy(self, index: int | None = None, precision: int | None = None) -> Any:
        """An equation as an expression of SymPy (`pip install 'evo-ptx[sympy]'`). It computes what `predict` does.

        Args:
            index: as in `predict`.
            precision: significant digits that its numbers are rounded to, for display; None: all.

        Raises:
            UserError: SymPy is missing.
            ValueError: the equation is far too long where it is written out, or the precision is no number of digits.
        """
        from evo.report.export.sympy_text import shortened, sympy_outputs

        check_is_fitted(self)
        row = self._row(index)
        formula = self._formula(row)
        if (size := _size(formula)) > MAX_WRITTEN_OUT:
            raise ValueError(f"equation {row} has {size} operations where it is written out; choose a simpler one")
        if precision is not None and not (isinstance(precision, Integral) and 1 <= int(precision) <= MAX_DIGITS):
            raise ValueError(f"precision is {precision!r}, must be an integer from 1 to {MAX_DIGITS}, or None")
        return shortened(formula, sympy_outputs(formula)[0], precision)

    def latex(self, index: int | None = None, precision: int | None = None) -> str:
        """An equation as LaTeX; arguments and errors are those of `sympy`."""
        from evo.report.export.sympy_text import latex_of

        return latex_of(self.sympy(index, precision))

    def _check_parameters(self) -> None:
        """Raises ValueError if one is wrong; those that stand in the config as they are, are checked there."""
        if self.max_time is None and self.max_evaluations is None:
            raise ValueError("max_time and max_evaluations are None; one of them must end the search")
        for name in ("max_evaluations", "max_length"):
            value: Any = getattr(self, name)
            is_count = isinstance(value, Integral) and value >= 1  # type: ignore[operator]
            if not (is_count or (name == "max_evaluations" and value is None)):
                raise ValueError(f"{name} is {value!r}, must be an integer from 1 on")
        if not (isinstance(self.max_spread, Real) and 0.0 <= float(self.max_spread) < np.inf):
            raise ValueError(f"max_spread is {self.max_spread!r}, must be a number from 0 on")
        if self.functions is not None and (isinstance(self.functions, str) or not self.functions):
            raise ValueError(f"functions is {self.functions!r}, must be a list of names or a mapping from names to numbers")
        if self.functions is not None and (unknown := [name for name in self.functions if name not in FUNCTIONS]):
            raise ValueError(f"functions: unknown function {unknown[0]!r}, one of: {', '.join(FUNCTIONS)}")
        self._check_selection()

    def _check_selection(self) -> None:
        if self.model_selection not in SELECTIONS:
            raise ValueError(f"model_selection is {self.model_selection!r}, must be one of: {', '.join(SELECTIONS)}")

    def _config(self, num_rows: int) -> dict[str, Any]:
        """The config of the search."""
        if isinstance(self.random_state, Integral):
            seed = int(self.random_state)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        initial = SEARCH["initial"]
        # So that a generation of much data ends in time.
        most = min(self.max_evaluations or initial["num_programs"], max(MIN_BATCH, MAX_POINTS // num_rows))
        lengths = {name: min(initial[name], self.max_length) for name in ("min_length", "max_length")}
        return {
            "task": type(self).__name__,
            "seed": seed,
            "program": {**PROGRAM, "max_length": self.max_length, "vocabulary": vocabulary_of(self.functions)},
            "search": {
                **SEARCH,
                "batch_size": min(SEARCH["batch_size"], most),
                "initial": {"num_programs": min(initial["num_programs"], most), **lengths},
            },
            "evaluation": {"backend": "cpu", "executor": "threads", "threads": effective_n_jobs(self.n_jobs)},
            "stop": {"seconds": self.max_time, "evaluations": self.max_evaluations},
        }

    def _search(
        self, config: dict[str, Any], task: RegressionTask, earlier: NDArray[np.uint64] | None, save: Callable[[Elites], None]
    ) -> Elites:
        """The elites of a search that begins with the programs of an earlier one. Calls `save` with those so far."""
        try:
            search = make_search(type(self).__name__, config, task)
        except UserError as error:  # scikit-learn's exception for a wrong parameter
            raise ValueError(str(error)) from error
        with closing(search.problem), interruptible() as asked, progress_of(search, shown=self.verbose > 0) as show:
            if earlier is not None and len(earlier):
                # Cut, or filled up with zeros.
                words = np.zeros((len(earlier), self.max_length), np.uint64)
                width = min(earlier.shape[1], self.max_length)
                words[:, :width] = earlier[:, :width]
                search.insert(words, self.n_generations_)
            most, saved_s = np.inf, time.monotonic()
            for generation in islands.generations(search):
                show(generation, search.elapsed_s)
                if most == np.inf and generation.best_objective >= BEST_DIGITS:
                    most = (1.0 + MORE_EVALUATIONS) * search.counters.evaluations
                if asked() or search.counters.evaluations >= most:
                    break
                if self.output is not None and time.monotonic() - saved_s >= SAVE_SECONDS:
                    save(search.elites())
                    saved_s = time.monotonic()
            search.tidy()
            if self.warm_start:
                found = [search.archived(), search.elites()]
                _, rows = np.unique(np.concatenate([each.hash for each in found]), axis=0, return_index=True)
                self._elites = np.concatenate([each.solution for each in found])[np.sort(rows)]
        self.n_evaluations_ = search.counters.evaluations
        self.n_generations_ += search.counters.generations
        return search.elites()

    def _tabulate(
        self,
        words: NDArray[np.uint64],
        task: RegressionTask | None,
        columns: NDArray[np.float64],
        target: NDArray[np.float64],
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Makes `equations_` of programs, the simplest first. task: None if the target is the same everywhere."""
        scaling, losses = np.array([[self._mean, 0.0]] * len(words)), np.empty(len(words))
        values = np.zeros(len(target))
        for row in range(len(words)):
            if task:
                program = formula_of(expression_of(self._language, words[row]), self._input_scaling, {})
                values = evaluate(program, columns.T)[0]
                [(offset, scale)] = task.scaling({"": values[None]}).values()
                scaling[row] = offset[0], scale[0]
            predicted = scaling[row, 0] + (scaling[row, 1] * values if scaling[row, 1] else 0.0)
            losses[row] = np.average((np.where(np.isfinite(predicted), predicted, self._mean) - target) ** 2, weights=weights)
        # The search compared sums of float32; errors of formulas may be in another order. Below their rounding there is none.
        least = np.minimum.accumulate(np.append(np.inf, losses[:-1]))
        is_better = (losses < least) & (least > (4.0 * np.spacing(np.abs(target).max())) ** 2)
        self._words, self._scaling, losses = words[is_better], scaling[is_better], losses[is_better]
        complexity = self._language.lowering.analyze(self._words)[1]
        equations = {
            "complexity": complexity,
            "loss": losses,
            "score": scores(complexity, losses),
            "equation": [self._equation(row) for row in range(len(losses))],
        }
        self.equations_ = pd.DataFrame(equations)
        self._marked = Front(np.arange(1), complexity[:1].astype(np.float64), np.zeros(1), {SHORTEST: 0, KNEE: 0})
        if task:
            variance = float(np.average((target - self._mean) ** 2, weights=weights))
            self._marked = front_of_losses(task, complexity, losses, variance)
        if self.output is not None:
            try:
                write_csv(self.output, self.equations_)
            except UserError as error:
                raise ValueError(f"output: {error}") from error

    @property
    def _language(self) -> Language:
        return _language_of(tuple(self._inputs))

    def _formula(self, row: int) -> Expression:
        """The formula of a row of `equations_`."""
        offset, scale = self._scaling[row].tolist()
        program = expression_of(self._language, self._words[row])
        return formula_of(program, self._input_scaling, {program.outputs[0][0]: (offset, scale)})

    def _row(self, index: int | None) -> int:
        """The row of `equations_` that predicts."""
        table = self.equations_
        if index is not None:
            if not (isinstance(index, Integral) and 0 <= int(index) < len(table)):
                raise ValueError(f"index is {index}, but there are {len(table)} equations")
            return int(index)
        self._check_selection()
        return chosen_row(self.model_selection, table, self._marked)

    def _equation(self, row: int) -> str:
        """`offset + scale*program`; values that are used more than once come before it."""
        lines = lines_of(self._formula(row), INFIX)
        return "; ".join([*(f"{name} = {text}" for name, _, text in lines.locals), *lines.outputs])


@lru_cache(maxsize=16)
def _language_of(inputs: tuple[str, ...]) -> Language:
    """The language of formulas of these inputs."""
    outputs = ((output_name(inputs), "f32"),)
    return Language(shipped_instruction_set("default"), tuple((name, "f32") for name in inputs), outputs)


def _prepare(
    columns: NDArray[np.float64], target: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """The rows that count, in an order that depends on them alone; weights: None if all are equal.

    Rows with integer weights are repeated, unless that makes too many.
    """
    if weights is not None:
        if not (weights >= 0).all() or not weights.any():
            raise ValueError("sample_weight: must be numbers from 0 on, not all of them 0")
        counts = weights > 0
        columns, target, weights = columns[counts], target[counts], weights[counts]
        if (weights == weights[0]).all():
            weights = None
        elif (weights == np.floor(weights)).all() and weights.sum() <= MAX_REPEATED * len(weights):
            times = weights.astype(np.int64)
            columns, target, weights = columns.repeat(times, axis=0), target.repeat(times), None
        else:
            weights = weights / weights.max()  # products of sums stay within float64
    with np.errstate(over="ignore"):
        deviations = target - target.mean()
        squares = np.square(deviations).sum()
        if not np.isfinite(squares):
            raise ValueError("y: squares of its deviations from the mean exceed float64; scale it down")
        if squares == 0.0 and deviations.any():
            raise ValueError("y: squares of its deviations from the mean are too small for float64; scale it up")
    order = np.argsort(target, kind="stable")
    if (np.diff(target[order]) == 0).any():
        order = np.lexsort([*columns.T, target] if weights is None else [weights, *columns.T, target])
    return columns[order], target[order], None if weights is None else weights[order]


def _size(expression: Expression) -> int:
    """Operations of the first output, if values that are used more than once are written as often."""
    sizes: list[int] = []
    for value in expression.values:
        sizes.append((value.kind == NodeKind.PTX) + sum(sizes[operand] for operand in value.operands))
    return sizes[expression.results[0]] if expression.results[0] is not None else 0


def _identifiers(names: Sequence[str]) -> list[str]:
    """A different name for each feature, of letters, digits and underscores, that a register may have."""
    found: dict[str, None] = {}
    for name in names:
        plain = RegressionTask.input_name(str(name)) or "x"
        identifier, number = plain, 2
        while identifier in found:
            identifier, number = f"{plain}_{number}", number + 1
        found[identifier] = None
    return list(found)
