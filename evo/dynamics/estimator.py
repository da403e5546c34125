"""Laws of motion from trajectories, as an estimator in scikit-learn's manner.

Owns the estimator's parameters and attributes, and where candidate laws come from: polynomials, quotients, and formulas that
`SymbolicRegressor` finds for the slopes of the smooth courses.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from evo.dynamics.records import MIN_SAMPLES, Record
from evo.dynamics.refinement import Refinement
from evo.dynamics.selection import Selection
from evo.dynamics.terms import Law, NoLaw, compiled, evaluate, law_of, numbers_of, polynomial_terms, written
from evo.language.dag import dag_of
from evo.language.formula import formula_of
from evo.language.printer import short_number
from evo.language.simple_numbers import MAX_DENOMINATOR
from evo.regression.estimator import SymbolicRegressor

LARGEST = 1e100  # of samples and times, whose squares must not overflow
MOST_GAP = 10_000  # times the usual step between samples, beyond which a recording has two parts
MAX_LIBRARY = 400  # terms that polynomials are chosen from
MAX_POINTS = 2000  # at which formulas are searched for
ENDS = 0.02  # of a trajectory at either end, where slopes are uncertain
ACCURACY = 1e-9  # of simulations, relative
FAR = 1e6  # times the size of the samples, beyond which a simulation ends
MAX_CALLS = 100_000  # of the laws between two times of a simulation


class _LeavesError(Exception):
    """A simulation leaves what can be integrated."""


class SymbolicDynamics(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Finds the laws by which states change, dx/dt = f(x, u), from noisy trajectories.

    Each state gets a law: a sum of terms. Candidates are polynomials and quotients of them, which a beam search chooses by the
    integral of their terms, and formulas from a search by MAP-Elites, with functions, quotients and powers. The whole system is
    then fitted to the samples by multiple shooting, so that neither noise nor chaos matters much; terms that the samples hardly
    tell from 0 go, and numbers become simple where the samples allow it. Ctrl-C ends a search with what it has found.

    Args:
        max_time: seconds that searches for formulas take, those of all states together; 0: laws are polynomials; None:
            `max_evaluations` decides.
        max_evaluations: programs after which the search for each state's formulas ends. With a `random_state` and without
            `max_time`, results are the same each time.
        degree: of polynomials.
        functions: as for `SymbolicRegressor`.
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
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.max_time = max_time
        self.max_evaluations = max_evaluations
        self.degree = degree
        self.functions = functions
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, t: Any, X: Any, u: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Finds the laws.

        Args:
            t: times, `(num_samples,)`, rising, not necessarily evenly; or a list of those of several trajectories.
            X: states at these times, `(num_samples, num_states)`, NaN where a sample is missing; or a list.
            u: known inputs at these times, `(num_samples, num_inputs)` or `(num_samples,)`, connected by straight lines; or a
                list; None: there are none.

        Raises:
            ValueError: a parameter or the data is wrong.
        """
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
        if self.max_time is not None and self.max_time < 0:
            raise ValueError(f"max_time is {self.max_time!r}, must be seconds from 0 on, or None")
        selection = Selection(records, terms)
        candidates = [selection.choices(state) for state in range(num_states)]
        if self.max_time != 0:
            for state, choices in enumerate(candidates):
                choices.extend(selection.quotients(state))
                for law in self._searched(records, state):
                    choices.extend(selection.judged(state, law))
        refinement = Refinement(records, len(terms))
        fit = refinement.rounded(refinement.lengthened(refinement.choose(candidates)))
        self._laws, self.noise_ = fit.laws, fit.noise
        return self

    def equations(self) -> list[str]:
        """The law of each state, such as `x0' = -0.5*x0 + x1`."""
        check_is_fitted(self, "_laws")
        names = [*self.state_names_, *self.input_names_]
        return [f"{name}' = {written(law, names, _number_text)}" for name, law in zip(self.state_names_, self._laws, strict=True)]

    def predict(self, X: ArrayLike, u: ArrayLike | None = None) -> NDArray[np.float64]:  # noqa: N803
        """The states' slopes, in their units per unit of time.

        Args:
            X: states, `(n, num_states)`. u: inputs, `(n, num_inputs)` or `(n,)`.

        Returns:
            `(n, num_states)`; not finite where a law is undefined.
        """
        check_is_fitted(self, "_laws")
        states = _table(X, "X")
        columns = np.concatenate([states, _inputs(u, len(states))], axis=1).T
        self._check_columns(states.shape[1], len(columns) - states.shape[1])
        return np.stack([evaluate(law, columns) for law in self._laws], axis=1)

    def simulate(self, x0: ArrayLike, t: ArrayLike, u: ArrayLike | None = None) -> NDArray[np.float64]:
        """The course of the states from a beginning on.

        Args:
            x0: `(num_states,)`, at the first time. t: `(num_times,)`, rising. u: inputs at these times, as for `fit`.

        Returns:
            `(num_times, num_states)`; NaN from where the states become infinite, or a million times as large as the samples.
        """
        from scipy.integrate import solve_ivp

        check_is_fitted(self, "_laws")
        start, times = np.asarray(x0, np.float64), _times(t, "t", 2)
        if start.ndim != 1:
            raise ValueError(f"x0: expected an array of shape (num_states,), got {start.shape}")
        inputs = _inputs(u, len(times))
        self._check_columns(len(start), inputs.shape[1])
        if not np.isfinite(start).all() or not np.isfinite(inputs).all():
            raise ValueError("x0 and u: must be finite")
        laws = [(compiled(law), numbers_of(law)) for law in self._laws]

        sizes = np.maximum(np.abs(start), self._sizes)
        sizes[sizes == 0.0] = 1.0
        course = np.full((len(times), len(start)), np.nan)
        course[0] = start
        num_calls = 0

        def slope(time: float, state: NDArray[np.float64]) -> list[Any]:
            nonlocal num_calls
            num_calls += 1
            columns = [*state, *(np.interp(time, times, values) for values in inputs.T)]
            found = [law(columns, numbers) for law, numbers in laws]
            if num_calls > MAX_CALLS or not np.isfinite(found).all() or (np.abs(state) > FAR * sizes).any():
                raise _LeavesError
            return found

        with np.errstate(all="ignore"), warnings.catch_warnings(), suppress(_LeavesError):
            warnings.simplefilter("ignore")  # LSODA's, of what it cannot integrate
            for row in range(1, len(times)):
                num_calls = 0
                span = times[row - 1], times[row]
                found = solve_ivp(slope, span, course[row - 1], "LSODA", rtol=ACCURACY, atol=ACCURACY * sizes)
                if not found.success:
                    break
                course[row] = found.y[:, -1]
        return course

    def _searched(self, records: Sequence[Record], state: int) -> list[Law]:
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
            max_time=self.max_time and self.max_time / len(self.state_names_),
            max_evaluations=self.max_evaluations,
            functions=self.functions,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(rows[chosen], target[chosen])
        laws = []
        language, inputs, words, scaling = model.found()
        [(output, _)] = language.outputs
        for row, pair in zip(words, scaling.tolist(), strict=True):
            with suppress(NoLaw):
                formula = formula_of(dag_of(language, row), inputs, {output: tuple(pair)})
                law = law_of(formula, [f"x{column}" for column in range(rows.shape[1])])
                if any(isinstance(factor, tuple) or power < 0 or power % 1 for _, term in law for factor, power in term):
                    laws.append(law)  # others are among the polynomials
        return laws

    def _records(self, t: Any, X: Any, u: Any) -> list[Record]:  # noqa: N803
        """The trajectories, checked; also sets the names."""
        is_list = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 2
        tables = list(X) if is_list else [X]
        all_times, all_inputs = (list(each) if is_list and each is not None else [each] * len(tables) for each in (t, u))
        if not len(all_times) == len(tables) == len(all_inputs):
            raise ValueError(f"t, X and u: lists of {len(all_times)}, {len(tables)} and {len(all_inputs)} trajectories")
        self.state_names_ = _names(tables[0], "x")
        self.input_names_ = [] if u is None else _names(all_inputs[0], "u")
        if shared := {*self.state_names_} & {*self.input_names_}:
            raise ValueError(f"{min(shared)} is the name of a state and of an input; rename one")
        records = []
        for number, (times, table, given) in enumerate(zip(all_times, tables, all_inputs, strict=True)):
            of = f"[{number}]" if is_list else ""
            if _names(table, "x") != self.state_names_ or (given is not None and _names(given, "u") != self.input_names_):
                raise ValueError(f"X{of} and u{of}: all trajectories must have the same states and inputs, in the same order")
            found, states = _times(times, f"t{of}", MIN_SAMPLES), _table(table, f"X{of}")
            inputs = _inputs(given, len(states))
            if len(found) != len(states):
                raise ValueError(f"t{of} has {len(found)} times, X{of} has {len(states)} rows")
            if np.isinf(states).any() or not np.isfinite(inputs).all():
                raise ValueError(f"X{of} and u{of}: infinite values; a missing sample of a state is NaN, inputs are all known")
            largest = max(np.nanmax(np.abs(states)), np.abs(inputs).max(initial=0.0), np.abs(found).max())
            if not largest < LARGEST or np.ptp(found) < 1.0 / LARGEST:
                raise ValueError(
                    f"t{of}, X{of} and u{of}: numbers must be below {LARGEST:g}, and times farther apart than {1 / LARGEST:g}"
                )
            if (gap := np.diff(found).max()) > MOST_GAP * np.median(np.diff(found)):
                raise ValueError(
                    f"t{of}: {gap:g} passes between two samples, more than {MOST_GAP} times as much as usual; pass what lies "
                    "before and after as two trajectories, in lists"
                )
            if (few := np.isfinite(states).sum(axis=0)).min() < MIN_SAMPLES:
                name = self.state_names_[int(few.argmin())]
                raise ValueError(f"X{of}: {name} has {few.min()} samples, at least {MIN_SAMPLES} are needed")
            records.append(Record(found, states, inputs))
        self._sizes = np.nanstd(np.concatenate([record.states for record in records]), axis=0)
        return records

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


def _names(table: Any, letter: str) -> list[str]:
    if hasattr(table, "columns"):
        return [str(name) for name in table.columns]
    return [f"{letter}{place}" for place in range(1 if np.ndim(table) < 2 else np.shape(table)[1])]


def _table(values: Any, name: str) -> NDArray[np.float64]:
    found = np.asarray(values, np.float64)
    if found.ndim != 2 or not found.shape[1]:
        raise ValueError(f"{name}: expected an array of shape (num_samples, num_states), got {found.shape}")
    return found


def _inputs(values: Any, count: int) -> NDArray[np.float64]:
    found = np.zeros((count, 0)) if values is None else np.asarray(values, np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != count:
        raise ValueError(f"u: expected an array of shape ({count}, num_inputs), got {np.shape(values)}")
    return found


def _times(values: Any, name: str, least: int) -> NDArray[np.float64]:
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or len(found) < least or not np.isfinite(found).all() or not (np.diff(found) > 0).all():
        raise ValueError(f"{name}: expected at least {least} finite times, each later than the one before")
    return found
