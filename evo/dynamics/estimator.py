"""Laws of motion from trajectories, as an estimator in scikit-learn's manner.

Owns the estimator's parameters and attributes, and where candidate laws come from: polynomials, quotients, and formulas that
`SymbolicRegressor` finds for the slopes of the smooth courses.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evo.dynamics.records import MIN_SAMPLES, Record, crossing
from evo.dynamics.refinement import Refinement
from evo.dynamics.selection import Choice, Selection, cost_of
from evo.dynamics.tables import are_dates, inputs_of, table_of, times_of, trajectories
from evo.dynamics.terms import (
    Law,
    NoLaw,
    compiled,
    evaluate,
    law_of,
    numbers_of,
    polynomial_terms,
    sympy_of,
    with_simple_powers,
    written,
)
from evo.language.dag import dag_of
from evo.language.formula import formula_of
from evo.language.printer import short_number
from evo.language.simple_numbers import MAX_DENOMINATOR
from evo.regression.estimator import SymbolicRegressor
from evo.regression.parameters import is_real

MAX_LIBRARY = 400  # terms that polynomials are chosen from
MAX_POINTS = 2000  # at which formulas are searched for
SEARCH_SHARE = 0.4  # of the time, after which the candidates are complete
ENDS = 0.02  # of a trajectory at either end, where slopes are uncertain
ACCURACY = 1e-9  # of simulations, relative
FAR = 1e6  # times the size of the samples, beyond which a simulation ends
UNEXPLAINED, LEAST_UNEXPLAINED = 3.0, 1e-3  # times the noise of samples, and that of a state's deviation, in an incomplete law
CROSSING = 0.1  # see `crossing`
FEW_LEVELS = 8  # of an input that is held
MAX_CALLS = 100_000  # of the laws between two times of a simulation


class _LeavesError(Exception):
    """A simulation leaves the range that can be integrated."""


class SymbolicDynamics(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Finds the laws by which states change, dx/dt = f(x, u), from noisy trajectories.

    Each state gets a law: a sum of terms. Candidates are polynomials and quotients of them, which a beam search chooses by the
    integral of their terms, and formulas from a search by MAP-Elites, with functions, quotients and powers. The whole system is
    then fitted to the samples by multiple shooting, so that neither noise nor chaos matters much; terms that the samples hardly
    tell from 0 go, and numbers become simple where the samples allow it. Ctrl-C ends a search with what it has found.

    Args:
        max_time: seconds of a fit, two fifths at most for candidates beside polynomials; 0: polynomials, without a limit;
            None: `max_evaluations` decides.
        max_evaluations: programs after which the search for each state's formulas ends. With a `random_state` and without
            `max_time`, results are the same each time.
        degree: of polynomials.
        functions: as for `SymbolicRegressor`.
        hold: whether inputs keep their values until the next sample, or straight lines connect them; None: an input of up to 8
            values, or whose value repeats in half of the samples, does, and a warning names it.
        n_jobs: threads of the searches; None: 1; -1: all cores.
        random_state: seed of the searches.

    Attributes:
        noise_: `(num_states,)`, standard deviation of the samples from the laws, in the states' units; at least 1e-4 of theirs.
        state_names_, input_names_: as equations have them: columns of DataFrames, or x0, x1, ... and u0, u1, ...
    """

    def __init__(
        self,
        *,
        max_time: float | None = 20.0,
        max_evaluations: int | None = None,
        degree: int = 3,
        functions: Sequence[str] | Mapping[str, float] | None = None,
        hold: bool | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.max_time = max_time
        self.max_evaluations = max_evaluations
        self.degree = degree
        self.functions = functions
        self.hold = hold
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, t: Any, X: Any, u: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Finds the laws.

        Args:
            t: times, `(num_samples,)`, rising, not necessarily evenly; or a list of those of several trajectories. Dates and
                durations become seconds.
            X: states at these times, `(num_samples, num_states)`, NaN where a sample is missing; or a list.
            u: known inputs at these times, `(num_samples, num_inputs)` or `(num_samples,)`; or a list; None: there are
                none.

        Raises:
            ValueError: a parameter or the data is wrong.
        """
        begun_s = time.monotonic()
        records = self._records(t, X, u)
        num_states = len(self.state_names_)
        if not (isinstance(self.degree, (int, np.integer)) and self.degree >= 0):
            raise ValueError(f"degree is {self.degree!r}, must be an integer from 0 on")
        num_columns = num_states + len(self.input_names_)
        terms = polynomial_terms(num_columns, int(self.degree))
        if len(terms) > MAX_LIBRARY:
            raise ValueError(
                f"degree {self.degree} has {len(terms)} terms of {num_columns} states and inputs, at most {MAX_LIBRARY} will do"
            )
        if self.max_time is not None and not is_real(self.max_time, 0.0):
            raise ValueError(f"max_time is {self.max_time!r}, must be seconds from 0 on, or None")
        if not (self.hold is None or isinstance(self.hold, (bool, np.bool_))):
            raise ValueError(f"hold is {self.hold!r}, must be True, False or None")
        seconds = self.max_time or math.inf
        with threadpool_limits(1, "blas"):  # small matrices, whose threads would only wait for each other
            selection = Selection(records, terms)
            candidates = [selection.choices(state) for state in range(num_states)]
            if self.max_time != 0:
                self._extend(candidates, selection, records, begun_s + SEARCH_SHARE * seconds)
            refinement = Refinement(records, len(terms), begun_s + seconds)
            fit = refinement.rounded(refinement.accurate(refinement.lengthened(refinement.choose(candidates))))
        self._laws, self.noise_ = fit.laws, fit.noise
        self._warn_of_missing(records)
        return self

    def equations(self) -> list[str]:
        """The law of each state, such as `x0' = -0.5*x0 + x1`."""
        check_is_fitted(self, "_laws")
        names = [*self.state_names_, *self.input_names_]
        return [f"{name}' = {written(law, names, _number_text)}" for name, law in zip(self.state_names_, self._laws, strict=True)]

    def sympy(self, precision: int | None = None) -> list[Any]:
        """The slope of each state as an expression of SymPy (`pip install 'evo-ptx[sympy]'`).

        Args:
            precision: significant digits that its numbers are rounded to, for display; None: all.

        Raises:
            UserError: SymPy is missing.
        """
        from evo.report.export.sympy_text import symbol_of

        check_is_fitted(self, "_laws")
        symbols = [symbol_of(name.strip("`")) for name in (*self.state_names_, *self.input_names_)]
        return [sympy_of(law, symbols, precision) for law in self._laws]

    def latex(self, precision: int | None = None) -> list[str]:
        """The law of each state as LaTeX; arguments and errors are those of `sympy`."""
        from evo.report.export.sympy_text import latex_of, symbol_of

        laws = zip(self.state_names_, self.sympy(precision), strict=True)
        return [f"\\frac{{d}}{{dt}} {latex_of(symbol_of(name.strip('`')))} = {latex_of(law)}" for name, law in laws]

    def predict(self, X: ArrayLike, u: ArrayLike | None = None) -> NDArray[np.float64]:  # noqa: N803
        """The states' slopes, in their units per unit of time.

        Args:
            X: states, `(n, num_states)`. u: inputs, `(n, num_inputs)` or `(n,)`.

        Returns:
            `(n, num_states)`; not finite where a law is undefined.
        """
        check_is_fitted(self, "_laws")
        states = table_of(X, "X")
        columns = np.concatenate([states, inputs_of(u, len(states))], axis=1).T
        self._check_columns(states.shape[1], len(columns) - states.shape[1])
        return np.stack([evaluate(law, columns) for law in self._laws], axis=1)

    def simulate(
        self, x0: ArrayLike, t: ArrayLike, u: ArrayLike | Callable[[float], ArrayLike] | None = None
    ) -> NDArray[np.float64]:
        """The course of the states from a beginning on.

        Args:
            x0: `(num_states,)`, at the first time. t: `(num_times,)`, rising. u: inputs at these times, as for `fit`, or a
                function of a time that gives `(num_inputs,)` or a number.

        Returns:
            `(num_times, num_states)`; NaN from where the states become infinite, or a million times as large as the samples.
        """
        from scipy.integrate import solve_ivp

        check_is_fitted(self, "_laws")
        start, times = np.asarray(x0, np.float64), times_of(t, "t", 2)
        if start.ndim != 1:
            raise ValueError(f"x0: expected an array of shape (num_states,), got {start.shape}")
        inputs = (
            np.stack([np.atleast_1d(np.asarray(u(time), np.float64)) for time in times])
            if callable(u)
            else inputs_of(u, len(times))
        )
        self._check_columns(len(start), inputs.shape[1])
        if not np.isfinite(start).all() or not np.isfinite(inputs).all():
            raise ValueError("x0 and u: must be finite")
        laws = [(compiled(law), numbers_of(law)) for law in self._laws]

        changes = np.diff(inputs, axis=0) * ~self._is_held
        sizes = np.maximum(np.abs(start), self._sizes)
        sizes[sizes == 0.0] = 1.0
        course = np.full((len(times), len(start)), np.nan)
        course[0] = start
        num_calls = 0

        def slope(time: float, state: NDArray[np.float64]) -> list[Any]:
            nonlocal num_calls
            num_calls += 1
            if callable(u):
                columns = [*state, *np.atleast_1d(u(time))]
            else:
                columns = [*state, *(inputs[row - 1] + (time - span[0]) / (span[1] - span[0]) * changes[row - 1])]
            slopes = [law(columns, numbers) for law, numbers in laws]
            if num_calls > MAX_CALLS or not np.isfinite(slopes).all() or (np.abs(state) > FAR * sizes).any():
                raise _LeavesError
            return slopes

        with np.errstate(all="ignore"), warnings.catch_warnings(), suppress(_LeavesError):
            warnings.simplefilter("ignore")  # LSODA's, about laws that it cannot integrate
            for row in range(1, len(times)):
                num_calls = 0
                span = times[row - 1], times[row]
                solution = solve_ivp(slope, span, course[row - 1], "LSODA", rtol=ACCURACY, atol=ACCURACY * sizes)
                if not solution.success:
                    break
                course[row] = solution.y[:, -1]
        return course

    def _extend(self, candidates: list[list[Choice]], selection: Selection, records: list[Record], until_s: float) -> None:
        """Adds quotients and formulas to the candidates of the states whose laws could be shorter."""
        longer = [state for state, choices in enumerate(candidates) if len(min(choices, key=cost_of).law) > 1]
        for state in longer:
            if time.monotonic() < until_s:
                candidates[state] += selection.quotients(state)
        for index, state in enumerate(longer):
            seconds = (until_s - time.monotonic()) / (len(longer) - index)
            if seconds > 0.0:
                laws = self._searched(records, state, None if self.max_time is None else seconds)
                candidates[state] += [choice for law in laws for choice in selection.judged(state, law)]

    def _searched(self, records: Sequence[Record], state: int, seconds: float | None) -> list[Law]:
        """Formulas for the slope of a state along its smooth course."""
        columns, slopes = [], []
        for record in records:
            count = len(record.times)
            first = round(ENDS * count)
            times = record.times[first : count - first]
            columns.append(record.columns(times))
            slopes.append(record.slopes(times)[state])
        rows, target = np.concatenate(columns, axis=1).T, np.concatenate(slopes)
        chosen = np.linspace(0, len(rows) - 1, min(len(rows), MAX_POINTS)).astype(np.int64)
        model = SymbolicRegressor(
            max_time=seconds,
            max_evaluations=self.max_evaluations,
            functions=self.functions,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(rows[chosen], target[chosen])
        laws = list[Law]()
        language, inputs, words, scaling = model.found()
        [(output, _)] = language.outputs
        for row, pair in zip(words, scaling.tolist(), strict=True):
            with suppress(NoLaw):
                formula = formula_of(dag_of(language, row), inputs, {output: tuple(pair)})
                law = law_of(formula, [f"x{column}" for column in range(rows.shape[1])])
                if any(isinstance(factor, tuple) or power < 0 or power % 1 for _, term in law for factor, power in term):
                    laws += dict.fromkeys((law, with_simple_powers(law)))  # others are among the polynomials
        return laws

    def _records(self, t: Any, X: Any, u: Any) -> list[Record]:  # noqa: N803
        """The trajectories, checked; also sets the names."""
        self.state_names_, self.input_names_, tables = trajectories(t, X, u, MIN_SAMPLES)
        if are_dates(t[0] if isinstance(t, (list, tuple)) and np.ndim(t[0]) else t):
            warnings.warn("t: dates and durations become seconds since the first, so slopes are per second", stacklevel=4)
        self._is_held = self._held(np.concatenate([inputs for *_, inputs in tables]))
        self._sizes = np.nanstd(np.concatenate([states for _, states, _ in tables]), axis=0)
        return [Record(*table, self._is_held) for table in tables]

    def _warn_of_missing(self, records: list[Record]) -> None:
        """Names the states whose samples the laws explain much worse than smooth courses do."""
        smooth = np.sqrt(np.mean([record.noise**2 for record in records], axis=0))
        is_worse = (self._sizes > 0.0) & (self.noise_ > UNEXPLAINED * np.maximum(smooth, LEAST_UNEXPLAINED * self._sizes))
        if not is_worse.any():
            return
        does_cross = is_worse & (crossing(records) > CROSSING)
        if does_cross.any():
            reason = (
                "slopes differ at equal states, so a state is missing; if it is the velocity, add it as a state: "
                "scipy.interpolate.make_smoothing_spline(t, x).derivative()(t)"
            )
        else:
            reason = "the law leaves far more than the noise of the samples: a state, input, function or more time is missing"
        names = [name for name, has in zip(self.state_names_, does_cross if does_cross.any() else is_worse, strict=True) if has]
        warnings.warn(f"{', '.join(names)}: {reason}", stacklevel=3)

    def _held(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Decide which inputs keep their values between samples."""
        if self.hold is not None:
            return np.full(inputs.shape[1], bool(self.hold))
        levels = np.array([len(np.unique(values)) for values in inputs.T])
        is_held = (levels <= FEW_LEVELS) | ((np.diff(inputs, axis=0) == 0).mean(axis=0) >= 0.5)
        names = [name for name, has in zip(self.input_names_, is_held & (levels > 1), strict=True) if has]
        if names:
            warnings.warn(
                f"u: {', '.join(names)}: values repeat, so they hold until the next sample; hold=False connects them by straight "
                "lines",
                stacklevel=4,
            )
        return np.asarray(is_held)

    def _check_columns(self, num_states: int, num_inputs: int) -> None:
        if (num_states, num_inputs) != (len(self.state_names_), len(self.input_names_)):
            raise ValueError(
                f"{num_states} states and {num_inputs} inputs given; the laws have {len(self.state_names_)} and "
                f"{len(self.input_names_)}"
            )


def _number_text(number: float) -> str:
    """A decimal, or a fraction that is shorter."""
    decimal, fraction = short_number(number), Fraction(number).limit_denominator(MAX_DENOMINATOR)
    return str(fraction) if float(fraction) == number and len(str(fraction)) + 3 < len(decimal) else decimal
