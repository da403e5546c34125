"""Symbolic regression as an estimator of scikit-learn.

Owns the fit, predictions and intervals. The search is that of `evo.evolution`, the scores those of `evo.regression.task`.
Slightly long: a third tells users what the parameters mean.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evo.errors import UserError
from evo.evaluate.tuning import ConstantTuner
from evo.evolution import make_search
from evo.language.dag import Dag, dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.program import word
from evo.language.template import by_category, read_template
from evo.native.stack_ptx_words import WordType
from evo.regression.column_names import identifiers, printed_name, with_identifiers
from evo.regression.equations import fitted, front_programs, joined
from evo.regression.exact_forms import EXACT
from evo.regression.fitted import FittedEquations
from evo.regression.parameters import MIN_ROWS, shared_seconds
from evo.regression.scaling import size_of
from evo.regression.stagnation import Stagnation
from evo.regression.tables import Table, check_numbers, counted, growing, numbers_of
from evo.regression.task import BEST_DIGITS, SQUARED, RegressionTask
from evo.regression.uncertainty import fit_noise
from evo.report.progress import progress_of
from evo.run.interrupt import interruptible

if TYPE_CHECKING:
    from evo.search.archives.elites import Elites

MAX_FEATURES = 1024  # the time to set up a language grows with their square
LEAST_Y, MOST_Y = 1e-30, 1e30  # that losses are computed of, in float32
LAST_SHARE = 0.25  # of a search of many rows: on the larger sample
FIRST_SHARE, FIRST_END = 0.25, 0.4  # of the time: after it, no further kind of first formulas begins, and a begun one ends
TIDY_SHARE, LAST_MARGIN = 0.08, 0.03  # of the time: for tidying and all later steps; for the later steps
TIDY_SECONDS, LAST_SECONDS = 0.16, 0.14  # at least
LAST_ITERATIONS = 60  # of tuning by a loss, when the search has ended
SAVE_SECONDS = 2.0  # between two writes of `output`


@contextmanager
def _without_old_objects() -> Iterator[None]:
    """Leaves out of garbage collections what is there already, thousands of objects of libraries, unless that is so anyway."""
    if is_mine := not gc.get_freeze_count():
        gc.freeze()
    try:
        yield
    finally:
        if is_mine:
            gc.unfreeze()


class SymbolicRegressor(RegressorMixin, FittedEquations):  # type: ignore[misc]  # scikit-learn has no types
    """Finds formulas for a target by MAP-Elites, and keeps the Pareto front of simplicity and accuracy.

    Each formula is `offset + scale * program`, fitted by least squares. The search runs programs in float32; `equations_`,
    `sympy`, `latex` and `predict` are one formula, in float64. Features that float32 cannot hold, such as time stamps, are moved
    and scaled for the search alone; a warning names them. The order of rows does not matter, unless there are
    more than `max_rows`.

    Once a formula is exact, the search goes on for a fifth of its evaluations so far, for a simpler one. Ctrl-C, or a notebook's
    stop button, ends it with what it has found, and a warning.

    Args:
        max_time: seconds after which the search ends; None: `max_evaluations` decides.
        max_evaluations: programs after which the search ends. With a `random_state` and without `max_time` results are the same
            each time, whatever `n_jobs` is.
        functions: names out of add, sub, mul, div, rcp, sin, cos, exp2, log2, sqrt, tanh, abs, neg, min, max, exp, log, log10,
            pow, square, cube, tan, sigmoid, inv, sign, cbrt, sinh, cosh, floor, round, ceil, mod, greater, less, cond (its second
            argument where the first is above 0, else 0) and where (the same, else its third), or `+ - * / ^`; or a mapping from
            names to how often they are drawn; None: the first ten, and max and min where a law bends. A mapping may also define
            functions of up to three arguments, such as `{"sq(x)": "x*x"}`, beside the others or the first ten; `equations_` has
            their names where a formula has just that in it, SymPy and LaTeX what they stand for.
        max_length: words of a program.
        max_size: the greatest complexity of a formula; None: what `max_length` words allow.
        max_depth: the most instructions of a formula on a path from an input to the result.
        nesting: how often functions may come inside of one, such as `{"sin": {"sin": 0, "exp": 1, "any": 3}}`; `any` is the depth
            of its arguments. Here and in `costs` functions are those that are one instruction, exp, log and log10.
        costs: what functions add to the complexity where that is not 1, such as `{"sin": 3}`.
        units: of each feature by name, such as `{"x0": "m/s", "x1": "1"}`: formulas are then consistent in them, and a search
            without dimensions comes first (docs/guide/regression.md).
        y_units: the unit of `y`, or a list of those of its columns; None: any.
        dimensionless_constants_only: constants have no unit; else each has whichever makes its formula consistent.
        max_spread: above 0, formulas that leave the straight lines between neighbouring rows by far more than their errors
            explain, as poles do, are rejected; 0: any that is finite between the rows will do.
        loss: what formulas are fitted by: `squared`, or None; `absolute`; `huber(1)`, the number is the error from which on it
            grows in proportion; `quantile(0.9)`; `logistic`, of targets 0 and 1, for the log-odds; `poisson`, of counts, for
            their mean; or a formula such as `"abs(prediction - target)/target"`, with `weight` if that is not just a factor.
        template: a formula of features, numbers and functions to find, such as `"f(x0, x1) + g(x2)*h(x0)"`. A function without
            arguments, as `c()`, is a number to find, and `c[x2]` one for each value of a column. `d(f(x0, x1), x0)` is the
            derivative of a formula by a feature. `equations_` has a column `functions` then. Offset and scale are those that the
            functions can take up.
        guesses: formulas that the search begins with, such as `"x0*sin(x1)"`, beside those that it makes itself.
        select_k_features: number of features that the search uses, those that help a random forest most; None: all.
        max_rows: of more rows than this, the search sees samples, spread evenly over their order: for three quarters of the time
            and the evaluations `max_rows / 32`, at least 1,024, then `max_rows`. All rows decide between the formulas on the
            front, and refine their offsets and scales; that comes after `max_time`.
        model_selection: which equation predicts. `shortest`: the fewest bits for equation and errors
            (`RegressionTask.description_length`); `accuracy`: the least loss; `knee`: the one beyond which more complexity pays
            off least; `score`: the greatest score; `best`: the greatest score among those with a loss of at most 1.5 times the
            least, as in PySR.
        output: a CSV file that `equations_` is written to every few seconds and at the end.
        undefined: `nan` or `mean`: what `predict` gives where an equation has neither a finite value nor a limit.
        early_stop: a loss of `equations_` at which the search ends; None: that of rounding, with a fifth of the evaluations more.
        verbose: above 0, the search shows its progress.
        warm_start: a further `fit` goes on with the programs that the last one ended with.
        n_jobs: threads; None: 1, or what a joblib context says; -1: all cores.
        random_state: seed of the search.

    Attributes:
        equations_: a DataFrame, as `print(model)` shows it, from the simplest to the most accurate: `complexity`, the number of
            instructions of the program, or the sum of their costs; `loss`, the mean loss on the training data; `score`, how much
            ln(loss) falls for each further instruction; `equation`. One that is undefined somewhere between the rows is left out,
            unless it has a tenth of the loss of all others.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
        n_evaluations_, n_generations_: of the search, the latter over all fits of a warm start.
        interrupted_: whether Ctrl-C ended it.
        noise_: after `fit_noise`, an `evo.regression.uncertainty.Noise`; its `log_variance` is an estimator too.
    """

    @_without_old_objects()
    @threadpool_limits.wrap(limits=1, user_api="blas")  # type: ignore[untyped-decorator]  # more only wait: products are small
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Searches for formulas.

        Args:
            X: `(n_samples, n_features)`, at least 10 samples; an array, or a frame of pandas, Polars or Arrow.
                Columns of a frame without numbers or a name are left out, with a warning.
            y: `(n_samples,)`, or `(n_samples, n_targets)`: then there is a search for each, `equations_` is a list of tables, and
                `estimators_` has what is fitted to each. They share `max_time`, but `max_evaluations` is that of each.
            sample_weight: `(n_samples,)` factors of squared errors, from 0 on. Rows of weight 0 do not count.

        Raises:
            ValueError: a parameter or the data is wrong.
        """
        begun_s = time.monotonic()
        self._check_parameters()
        self.__dict__.pop("noise_", None)
        check_numbers("y", y)
        X = numbers_of(X)  # noqa: N806
        columns, target = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=True, ensure_min_samples=MIN_ROWS
        )
        if target.ndim == 2 and target.shape[1] > 1:
            return self._fit_each(X, target, getattr(y, "columns", range(target.shape[1])), sample_weight)
        self.__dict__.pop("estimators_", None)
        target = target.ravel().astype(np.float64)
        self._unit = size_of(target, 2) if self.loss in (None, SQUARED) and self.template is None else 1.0
        if self._unit != 1.0:
            target = target / self._unit
            warnings.warn(f"y: float64 cannot hold its squares; losses are those of y/{self._unit!r}", stacklevel=2)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, columns, dtype=np.float64)
        called = [printed_name(name) for name in getattr(self, "feature_names_in_", [f"x{i}" for i in range(columns.shape[1])])]
        names = identifiers(called)
        self._used, samples, table = growing(counted(columns, target, weights), self.max_rows, self.select_k_features)
        if (count := len(table[1])) < MIN_ROWS:
            raise ValueError(f"sample_weight: {count} rows have a weight above 0, SymbolicRegressor needs at least {MIN_ROWS}")
        if len(self._used) > MAX_FEATURES:
            raise ValueError(
                f"X has {len(self._used)} features, SymbolicRegressor takes at most {MAX_FEATURES}; set select_k_features"
            )
        _, target, weights = table
        most = float(np.abs(target).max())
        if self.loss not in (None, SQUARED) and most and not LEAST_Y <= most <= MOST_Y:
            raise ValueError(f"y: its largest size is {most:.0e}, too much or too little for loss={self.loss!r}; scale y")
        if weights is None and self.loss is None and self.template is None and self.units is None and len(samples) == 1:
            from evo.regression.noise_kind import proportional_weights  # loaded only if needed

            inputs = {names[index]: column for index, column in zip(self._used, table[0].T, strict=True)}
            noise_until_s = begun_s + FIRST_END * (np.inf if self.max_time is None else self.max_time)
            if (weights := proportional_weights(inputs, target, noise_until_s)) is not None:
                samples = [table := (table[0], target, weights)]
                warnings.warn(
                    "y: its noise is in proportion to it, so errors count relative to y, also in `loss`; loss='squared' has them "
                    "count alike",
                    stacklevel=2,
                )
        self._own = self._own_functions()
        self._names = dict(zip(names, called, strict=True))
        self._units = self._units_of(called, {names[index]: called[index] for index in self._used})
        known, known_scaling = getattr(self, "_inputs", []), getattr(self, "_input_scaling", {})
        self._inputs = [names[index] for index in self._used]
        earlier = self._elites if self.warm_start and known == self._inputs else None
        handed_over = self._words if earlier is not None else None
        if self._units and self.template is not None:
            raise ValueError("template: a search with units has none; leave out units or the template")
        try:
            self._template = None
            if self.template is not None:
                text = with_identifiers(self.template, self._names)
                text = by_category(text, dict(zip(self._inputs, table[0].T, strict=True)))
                self._template = read_template(text, self._inputs)
        except UserError as error:
            raise ValueError(str(error)) from error
        self._mean = float(np.average(target, weights=weights))
        self._elites: NDArray[np.uint64] = np.zeros((0, 1), np.uint64)
        self._input_scaling: dict[str, tuple[float, float]] = {}
        task: RegressionTask | None = None
        words = np.array([[word(WordType.CONSTANT), word(WordType.RETURN)]], np.uint64)  # 0
        if np.ptp(target) > 0:
            task = self._task(table)
            self._mean = task.constant
            self._input_scaling = task.input_scaling()
        if self._input_scaling != known_scaling:
            earlier = handed_over = None  # programs of other units
        self.n_evaluations_, self.interrupted_ = 0, False
        self.n_generations_: int = self.n_generations_ if earlier is not None else 0
        if task:
            for sample in samples:
                few = task if sample is table else self._task(sample, task.input_scaling())
                is_last = sample is samples[-1]
                share = 1.0 if len(samples) == 1 else LAST_SHARE if is_last else 1.0 - LAST_SHARE
                until_s = None if self.max_time is None else begun_s + (share if not is_last else 1.0) * self.max_time
                config = self._config(len(sample[1]), share)
                if earlier is None and self._template is None:
                    from evo.regression.nondimensional import first_programs  # loaded only if needed

                    earlier, self.n_evaluations_ = first_programs(self, self._units, few, sample[1:], config["stop"])
                now_s = time.monotonic()
                left_s = np.inf if until_s is None else until_s - now_s
                few.first_until_s, few.first_end_s = now_s + FIRST_SHARE * left_s, now_s + FIRST_END * left_s
                elites, self.interrupted_ = self._search(config, few, sample, earlier, is_last, until_s)
                if self.interrupted_:
                    break
                earlier = self._elites
            if len(elites):
                words = self._front(elites, few)
                if handed_over is not None:
                    words = joined(handed_over, words, self._constraints(), self._language)
                if few.point_loss():
                    threads = effective_n_jobs(self.n_jobs)
                    tuner = ConstantTuner(self._language, few, iterations=LAST_ITERATIONS, linear_scale=True, num_threads=threads)
                    with closing(tuner):
                        words = tuner.tune(words)[0]
            else:
                warnings.warn("no formula was accepted; the mean of y predicts", ConvergenceWarning, stacklevel=2)
            if not self.warm_start:
                self._elites = self._elites[:0]
        self._tabulate(words, task, table)
        self._mean *= self._unit
        return self

    def fit_noise(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **parameters: Any) -> Self:  # noqa: N803
        """Searches for a formula of the noise, after `fit`: errors are taken to be normally distributed, with a variance that
        depends on the features. The search is as long as that of `fit`.

        Args:
            X, y, sample_weight: as in `fit`, the same data or others.
            parameters: of this search, where they differ from the estimator's own, such as `max_size`.

        Raises:
            ValueError: a parameter or the data is wrong, there are several targets, or y is predicted without errors.
        """
        X = numbers_of(X, self._known)  # noqa: N806
        _, target, weights = self._one_target("fit_noise", X, y, sample_weight)
        self.noise_ = fit_noise(self, X, target - self.predict(X), weights, parameters)
        return self

    def _task(self, table: Table, scaling: Any = None) -> RegressionTask:
        """The task of these rows. scaling: of inputs. Raises ValueError if a parameter is wrong."""
        columns, target, weights = table
        try:
            task = RegressionTask(
                dict(zip(self._inputs, columns.T, strict=True)),
                target,
                max_spread=self.max_spread,
                weights=weights,
                loss=self.loss or SQUARED,
                constraints=self._constraints(),
                template=self._template.text if self._template else None,
                scaling=scaling,
            )
        except UserError as error:
            raise ValueError(str(error)) from error
        task.has_inverses = not self._own
        return task

    def _fitted(self, task: RegressionTask, table: Table, words: NDArray[np.uint64]) -> tuple[Dag, float, float, float]:
        """A program as a formula without its offset and scale, these, and its loss."""
        program = formula_of(dag_of(self._language, words), self._input_scaling, {})
        return program, *fitted(program, task, table, self._mean, not (self._units and self._units.forbids_offset))

    def _is_law(self, task: RegressionTask, table: Table, words: NDArray[np.uint64]) -> bool:
        """Return whether a program's formula is exact once its numbers are refined, as far as the data show."""
        if self._own or self._template or self.loss not in (None, SQUARED):
            return True
        columns, target, weights = table
        _, offset, scale, loss = self._fitted(task, table, words)
        _, left = self._displayed(words, [offset * self._unit, scale * self._unit], loss, table)
        with np.errstate(over="ignore"):
            is_single = any(
                (column.astype(np.float32) == column).all() and (column % 1.0).any() for column in (target, *columns.T)
            )
        rounding = np.finfo(np.float32 if is_single else np.float64).eps * float(np.abs(target).max())
        return bool(left < max(EXACT * np.average((target - self._mean) ** 2, weights=weights), (4.0 * rounding) ** 2))

    def _is_misfit(self, task: RegressionTask, table: Table, words: NDArray[np.uint64]) -> bool:
        """Return whether neighbouring rows share the errors of a program's formula."""
        if self.loss not in (None, SQUARED):
            return False
        from evo.regression.noise_kind import are_shared  # loaded only if needed

        program, offset, scale, _ = self._fitted(task, table, words)
        errors = table[1] - offset - scale * evaluate(program, table[0].T)[0]
        return bool(np.isfinite(errors).all() and errors.any()) and are_shared(table[0], errors)

    def _front(self, elites: Elites, task: RegressionTask) -> NDArray[np.uint64]:
        """The programs on the front, the simplest first; those consistent with the units, if there are any."""
        return front_programs(self._units.kept(elites, self._language) if self._units else elites, task, self._language)

    def _fit_each(self, X: Any, targets: NDArray[np.float64], names: Any, sample_weight: ArrayLike | None) -> Self:  # noqa: N803
        """Searches for formulas of each of several targets, one after the other."""
        earlier, count = self._targets, targets.shape[1]
        if not (self.warm_start and len(earlier) == count):
            earlier = [clone(self) for _ in range(count)]
        folder, slash, file = str(self.output).rpartition("/")
        stem, dot, suffix = file.rpartition(".") if "." in file[1:] else (file, "", "")
        units = self.y_units if isinstance(self.y_units, (list, tuple)) else [self.y_units] * count
        if len(units) != count:
            raise ValueError(f"y_units has {len(units)} units, but y has {count} columns")
        labels = identifiers([f"y{name}" if isinstance(name, int) else str(name) for name in names])
        seconds = shared_seconds(self.max_time, count)
        for estimator, name, target, unit, max_time in zip(earlier, labels, targets.T, units, seconds, strict=True):
            output = None if self.output is None else f"{folder}{slash}{stem}_{name}{dot}{suffix}"
            estimator.set_params(**self.get_params() | {"max_time": max_time, "output": output, "y_units": unit})
            estimator.fit(X, target, sample_weight)
        self.estimators_ = earlier
        self.equations_: Any = [estimator.equations_ for estimator in earlier]
        self.n_evaluations_ = sum(estimator.n_evaluations_ for estimator in earlier)
        self.n_generations_ = sum(estimator.n_generations_ for estimator in earlier)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: ArrayLike, index: int | None = None, return_std: bool = False) -> Any:  # noqa: N803
        """Predict each row by an equation. Where it has no finite value, that is its limit if it has one, as sin(x)/x at 0,
        else NaN, or what `undefined` says, and a warning says for how many rows.

        Args:
            X: `(n_samples, n_features)`.
            index: of the equation in `equations_`; None: the one that `model_selection` says.
            return_std: whether the standard deviation of `y` is given as well. That needs `fit_noise`.

        Returns:
            `(n_samples,)`; with `return_std` a pair of these.
        """
        check_is_fitted(self)
        if return_std:
            if not hasattr(self, "noise_"):
                raise ValueError("return_std needs a formula of the noise: call fit_noise first")
            return self.predict(X, index), self.noise_.std(X)
        columns = validate_data(self, numbers_of(X, self._known), dtype=[np.float64, np.float32], reset=False)
        if self._targets:
            return np.stack([estimator.predict(X, index) for estimator in self._targets], axis=1)
        row, used = self._row(index), [columns[:, i].astype(np.float64) for i in self._used]
        formula = self._formula(row)
        predicted = evaluate(formula, used)[0]
        if np.isfinite(predicted).all():
            return predicted
        from evo.regression.undefined import filled  # loaded only if needed

        return filled(formula, row, used, predicted, self._mean if self.undefined == "mean" else np.nan)

    def _search(
        self,
        config: dict[str, Any],
        task: RegressionTask,
        table: Table,
        earlier: NDArray[np.uint64] | None,
        is_last: bool,
        until_s: float | None,
    ) -> tuple[Elites, bool]:
        """Searches from the programs of an earlier search; returns the elites and whether Ctrl-C ended it.
        is_last: no search goes on from `_elites`, unless `warm_start` is set. until_s: deadline, also for tidying formulas.
        """
        given_s = float(self.max_time or 0.0)
        end_s = np.inf if until_s is None else until_s - (max(TIDY_SHARE * given_s, TIDY_SECONDS) if is_last else 0.0)
        try:
            if self.guesses:
                from evo.regression.own_functions import programs_of  # loaded only if needed

                names = config["program"]["vocabulary"]["instructions"]
                texts = [with_identifiers(guess, self._names) for guess in self.guesses]
                programs = programs_of(texts, self._language, self._own, names, self.max_length, self._input_scaling)
                config["search"]["initial"]["programs"] = programs
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
            saved_s = time.monotonic()
            progress = Stagnation(task, partial(self._is_law, task, table), partial(self._is_misfit, task, table))
            is_of_errors = task.objective_range == (0.0, BEST_DIGITS)  # of likelihoods no digits are all
            enough = np.inf if self.early_stop is None else task.digits_of_loss(self.early_stop)
            for generation in search.generations():
                show(generation, search.elapsed_s)
                now_s = time.monotonic()
                if asked() or generation.best_objective >= enough or now_s >= end_s:
                    break
                if is_of_errors and progress.has_law(search, generation.best_objective):
                    break
                if until_s is not None and progress.is_over(search, generation.best_objective):
                    break
                if self.output is not None and now_s - saved_s >= SAVE_SECONDS:
                    if len(elites := search.elites()):
                        self._tabulate(self._front(elites, task), task, table)
                    saved_s = time.monotonic()
            if is_last or asked():
                search.tidy(None if until_s is None else until_s - max(LAST_MARGIN * given_s, LAST_SECONDS))
            if self.warm_start or not is_last:
                elite_sets = [search.archived(), search.elites()]
                _, rows = np.unique(np.concatenate([members.hash for members in elite_sets]), axis=0, return_index=True)
                self._elites = np.concatenate([members.solution for members in elite_sets])[np.sort(rows)]
            self.n_evaluations_ += search.counters.evaluations
            self.n_generations_ += search.counters.generations
            return search.elites(), asked()
