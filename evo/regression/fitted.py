"""The equations of a fitted estimator: their table, texts and forms.

Owns `equations_` and the texts and forms of its rows. Knows nothing of searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.dag import Dag, dag_of
from evo.language.formula import evaluate, formula_of
from evo.language.formula_text import INFIX
from evo.language.printer import lines_of, with_names
from evo.language.program import Language, Limits
from evo.language.template import Template
from evo.language.textbook import textbook
from evo.regression.column_names import symbol_names
from evo.regression.equations import (
    chosen_row,
    complexity_of,
    fitted,
    front_of_losses,
    latex_table,
    scores,
    table_text,
    written_size,
)
from evo.regression.exact_forms import displayed_form
from evo.regression.parameters import SearchParameters
from evo.regression.tables import Table, check_numbers, counted, numbers_of
from evo.regression.task import SQUARED, RegressionTask, output_name
from evo.regression.uncertainty import constants_of
from evo.report.pareto import KNEE, SHORTEST, Front
from evo.report.table import write_csv

MAX_DIGITS = 17  # of a float64
MAX_WRITTEN_OUT = 5000  # operations of an expression for SymPy


class FittedEquations(SearchParameters):
    """Results of an estimator after `fit`."""

    @property
    def _targets(self) -> list[Any]:
        """An estimator for each of several targets."""
        return getattr(self, "estimators_", [])

    def __str__(self) -> str:
        """The equations as a table, `>` before the one that predicts."""
        if not hasattr(self, "equations_"):
            return repr(self)
        if self._targets:
            return "\n".join(map(str, self._targets))
        return table_text(self.equations_, self._marked, self._row(None))

    def get_best(self) -> Any:
        """The row of `equations_` that `model_selection` chooses, a Series; with several targets a list of these."""
        check_is_fitted(self)
        if self._targets:
            return [estimator.get_best() for estimator in self._targets]
        return self.equations_.loc[self._row(None)]

    def sympy(self, index: int | None = None, precision: int | None = None) -> Any:
        """An equation as an expression of SymPy (`pip install 'evo-ptx[sympy]'`). It computes what `predict` does. With several
        targets, a list of these.

        Args:
            index: as in `predict`.
            precision: significant digits that its numbers are rounded to, for display; None: all.

        Raises:
            UserError: SymPy is missing.
            ValueError: the equation is far too long where it is written out, or the precision is not a number of digits.
        """
        from evo.report.export.sympy_text import shortened, symbol_of, sympy_outputs

        check_is_fitted(self)
        if self._targets:
            return [estimator.sympy(index, precision) for estimator in self._targets]
        row = self._row(index)
        formula = self._formula(row)
        if (size := written_size(formula)) > MAX_WRITTEN_OUT:
            raise ValueError(f"equation {row} has {size} operations where it is written out; choose a simpler one")
        if precision is not None and not (isinstance(precision, Integral) and 1 <= int(precision) <= MAX_DIGITS):
            raise ValueError(f"precision is {precision!r}, must be an integer from 1 to {MAX_DIGITS}, or None")
        safe = {name: f"input_{index}" for index, name in enumerate(self._inputs)}
        expression = sympy_outputs(with_names(formula, safe))[0]
        symbols = symbol_names(self._names)
        user_symbols = {name: symbol_of(symbols[inner]) for inner, name in safe.items()}
        expression = expression.xreplace({symbol: user_symbols[symbol.name] for symbol in expression.free_symbols})
        return shortened(formula, expression, precision)

    @property
    def symbols_(self) -> dict[str, str]:
        """Name in SymPy -> the feature's own, where that is not an identifier, such as `x-1`."""
        check_is_fitted(self)
        return {symbol: self._names[name] for name, symbol in symbol_names(self._names).items() if symbol != self._names[name]}

    def latex(self, index: int | None = None, precision: int | None = None) -> Any:
        """An equation as LaTeX; arguments and errors are those of `sympy`."""
        from evo.report.export.sympy_text import latex_of

        if self._targets:
            return [estimator.latex(index, precision) for estimator in self._targets]
        return latex_of(self.sympy(index, precision), self.symbols_)

    def latex_table(self, indices: Sequence[int] | None = None, precision: int = 3) -> Any:
        """Equations with complexity and loss as a LaTeX table, for the package booktabs. With several targets, a list of these.

        Args:
            indices: of the equations in `equations_`; None: all.
            precision: significant digits of numbers.

        Raises:
            UserError, ValueError: as in `sympy`.
        """
        check_is_fitted(self)
        if self._targets:
            return [estimator.latex_table(indices, precision) for estimator in self._targets]
        rows = self.equations_ if indices is None else self.equations_.loc[list(indices)]
        return latex_table(((row.complexity, row.loss, self.latex(at, precision)) for at, row in rows.iterrows()), precision)

    def constants(
        self,
        X: ArrayLike,  # noqa: N803 - scikit-learn's name
        y: ArrayLike,
        index: int | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        confidence: float = 0.95,
    ) -> pd.DataFrame:
        """The constants of an equation, in the order in which it has them, with standard errors and intervals.

        They come from least squares for this equation, and ignore that the same data chose it among many.

        Args:
            X, y, sample_weight: the data of `fit`, or others.
            index: of the equation in `equations_`; None: the one that `model_selection` says.
            confidence: of the intervals.

        Returns:
            Columns `constant`, `std_error`, `low` and `high`; NaN where the data do not determine a constant.

        Raises:
            ValueError: the confidence is not between 0 and 1, the data is wrong, or there are several targets.
        """
        columns, target, weights = self._one_target("constants", X, y, sample_weight)
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence is {confidence!r}, must be between 0 and 1")
        used = [columns[:, i] for i in self._used]
        return constants_of(self._formula(self._row(index)), used, target, weights, confidence)

    def _one_target(self, method: str, X: Any, y: Any, sample_weight: ArrayLike | None) -> Table:  # noqa: N803
        """Check the arguments of a method after `fit` of one target. Raises ValueError as `fit` does."""
        check_is_fitted(self)
        if self._targets:
            raise ValueError(f"{method} is for one target; call it for each of estimators_")
        X = numbers_of(X, self._known)  # noqa: N806
        check_numbers("y", y)
        columns, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, columns, dtype=np.float64)
        target = target.astype(np.float64)
        counted(columns, target, weights)  # refuses what a search cannot take
        return columns, target, weights

    def found(self) -> tuple[Language, dict[str, tuple[float, float]], NDArray[np.uint64], NDArray[np.float64]]:
        """The programs of `equations_`: language, offset and divisor of inputs, words, offset and scale of results."""
        check_is_fitted(self)
        return self._language, self._input_scaling, self._words, self._scaling

    def _text_of(self, formula: Dag) -> str:
        """A formula on one line, with the functions that `functions` defines by their names."""
        if self._own:
            from evo.regression.own_functions import named

            formula = named(formula, self._own)
        lines = lines_of(with_names(textbook(formula), self._names), INFIX)
        return "; ".join([*(f"{name} = {text}" for name, _, text in lines.locals), *lines.outputs])

    def _tabulate(self, words: NDArray[np.uint64], task: RegressionTask | None, table: Table) -> None:
        """Makes `equations_` of programs, the simplest first. task: None if the target is the same everywhere."""
        constraints, (_, target, weights) = self._constraints(), table
        has_offset = not (self._units and self._units.forbids_offset)
        if task and has_offset and not self._template:  # the mean comes first
            words = np.concatenate([np.zeros((1, words.shape[1]), np.uint64), words])
        programs = [formula_of(dag_of(self._language, program), self._input_scaling, {}) for program in words]
        with ThreadPoolExecutor(effective_n_jobs(self.n_jobs)) as threads:
            fits = np.array([*threads.map(lambda program: fitted(program, task, table, self._mean, has_offset), programs)])
        scaling, losses = fits[:, :2], fits[:, 2]
        complexity = complexity_of(words, constraints, self._language)
        # The search compared sums of float32; errors of formulas may be in another order. Below their rounding there is none.
        order = np.lexsort((losses, scaling[:, 1] != 0.0, complexity))
        floor = (4.0 * np.spacing(np.abs(target).max())) ** 2 if self.loss in (None, SQUARED) else -np.inf
        kept, forms = list[int](), list[tuple[Dag, float]]()
        scaling *= self._unit
        for row in order.tolist():
            least = forms[-1][1] if forms else np.inf
            if least > floor and losses[row] < least:
                form, loss = self._displayed(words[row], scaling[row].tolist(), float(losses[row]), table)
                if loss < least:
                    kept.append(row)
                    forms.append((form, loss))
        self._words, self._scaling, complexity = words[kept], scaling[kept], complexity[kept]
        self._forms, losses = [form for form, _ in forms], np.array([loss for _, loss in forms])
        equations = {
            "complexity": complexity,
            "loss": losses,
            "score": scores(complexity, losses),
            "equation": [*map(self._text_of, self._forms)],
        }
        if self._template:
            equations["functions"] = [self._functions(row, self._template) for row in range(len(losses))]
        self.equations_ = pd.DataFrame(equations)
        self._marked = Front(np.arange(1), complexity[:1].astype(np.float64), np.zeros(1), {SHORTEST: 0, KNEE: 0})
        if task:
            variance = float(np.average((target - self._mean) ** 2, weights=weights))
            self._marked = front_of_losses(task, complexity, losses, variance, self._scaling[:, 1])
        if self.output is not None:
            try:
                write_csv(self.output, self.equations_)
            except UserError as error:
                raise ValueError(f"output: {error}") from error

    @property
    def _language(self) -> Language:
        return _language_of(tuple(self._inputs), self._template)

    def _functions(self, row: int, template: Template) -> str:
        """The functions of the template, as the formula of a row of `equations_` has them."""
        texts = []
        offset, scale = self._scaling[row].tolist()
        for index, function in enumerate(template.functions):
            program = dag_of(_language_of(function.arguments, template.alone(index)), self._words[row])
            scaled = (offset * function.offset, scale if function.scale else 1.0)
            before, divider, last = self._text_of(formula_of(program, {}, {program.outputs[0][0]: scaled})).rpartition("; ")
            called = replace(function, arguments=tuple(self._names.get(name, name) for name in function.arguments))
            texts.append(f"{before}{divider}{called} = {last}")
        return "; ".join(texts)

    def _displayed(self, words: NDArray[np.uint64], scaling: list[float], loss: float, table: Table) -> tuple[Dag, float]:
        """The formula of a program in the form that is shown, and its loss."""
        program, (columns, target, weights) = dag_of(self._language, words), table
        formula = formula_of(program, self._input_scaling, {program.outputs[0][0]: (scaling[0], scaling[1])})
        if self._own or self._template:
            return formula, loss
        form, has_changed = displayed_form(formula, [*columns.T], target * self._unit, weights)
        if has_changed and self.loss in (None, SQUARED):
            errors = evaluate(form, columns.T)[0] / self._unit - target
            loss = float(np.average(errors**2, weights=weights)) if np.isfinite(errors).all() else loss
        return form, loss

    def _formula(self, row: int) -> Dag:
        """The formula of a row of `equations_`."""
        return self._forms[row]

    def _row(self, index: int | None) -> int:
        """The row of `equations_` that predicts."""
        table = self.equations_
        if index is not None:
            if not (isinstance(index, Integral) and 0 <= int(index) < len(table)):
                raise ValueError(f"index is {index!r}, but there are {len(table)} equations")
            return int(index)
        self._check_selection()
        return chosen_row(self.model_selection, table, self._marked)


@lru_cache(maxsize=16)
def _language_of(inputs: tuple[str, ...], template: Template | None) -> Language:
    """The language of formulas of these inputs."""
    outputs, instruction_set, limits = ((output_name(inputs), "f32"),), shipped_instruction_set("wide"), Limits()
    words = template.words(instruction_set, limits) if template else ()
    return Language(instruction_set, tuple((name, "f32") for name in inputs), outputs, limits, words)
