"""Formulas as features: an estimator of scikit-learn that makes columns for a linear model.

Owns which formulas of a search are features. `evo.regression.estimator` finds them.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evo.language.dag import Dag
from evo.language.formula import evaluate
from evo.regression.estimator import SymbolicRegressor
from evo.regression.parameters import SearchParameters
from evo.regression.tables import counted, growing, numbers_of

HALL_OF_FAME = 512  # the most accurate programs, that features are chosen from
LEAST_LEFT = 1e-6  # of a column's square that those chosen before must leave


class SymbolicTransformer(TransformerMixin, SearchParameters):  # type: ignore[misc]  # scikit-learn has no types
    """Finds formulas that together tell a target, as features for a linear model.

    The first is the one of a search that tells most; each further one tells most of what is left (orthogonal
    matching pursuit).

    Args:
        n_components: features at most.
        **parameters: as for `SymbolicRegressor`.

    Attributes:
        formulas_: texts of the features.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        max_time: float | None = 10.0,
        max_evaluations: int | None = None,
        functions: Any = None,
        max_length: int = 48,
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        super().__init__(
            max_time=max_time,
            max_evaluations=max_evaluations,
            functions=functions,
            max_length=max_length,
            verbose=verbose,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Searches for features.

        Args:
            X, y, sample_weight: as for `SymbolicRegressor`, with one target.

        Raises:
            ValueError: a parameter or the data is wrong.
        """
        if not (isinstance(self.n_components, Integral) and int(self.n_components) >= 1):
            raise ValueError(f"n_components is {self.n_components!r}, must be an integer from 1 on")
        X = numbers_of(X)  # noqa: N806
        columns, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        given = self.get_params(deep=False)
        given.pop("n_components")
        model = SymbolicRegressor(**given, warm_start=True).fit(X, target, sample_weight)
        formulas = model.programs()[:HALL_OF_FAME]
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, columns, dtype=np.float64)
        _, samples, _ = growing(counted(columns, target.astype(np.float64), weights), model.max_rows, None)
        columns, target, weights = samples[0]
        values = np.stack([evaluate(each, columns.T)[0] for each in formulas])
        values[~np.isfinite(values).all(axis=1)] = 0.0
        chosen = _pursued(values, target, weights, int(self.n_components))
        self._formulas: list[Dag] = [formulas[row] for row in chosen]
        self._means: NDArray[np.float64] = values[chosen].mean(axis=1)
        self.formulas_: list[str] = [model.text_of(each) for each in self._formulas]
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """The features, `(n_samples, n)`, always finite: where one is not, its mean over the training rows stands in."""
        check_is_fitted(self)
        columns = validate_data(self, numbers_of(X, self._known), dtype=np.float64, reset=False)
        values = np.stack([evaluate(each, columns.T)[0] for each in self._formulas], axis=1)
        return np.where(np.isfinite(values), values, self._means)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The formulas, `(n,)`."""
        check_is_fitted(self)
        return np.array(self.formulas_, object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _pursued(
    columns: NDArray[np.float64], target: NDArray[np.float64], weights: NDArray[np.float64] | None, count: int
) -> list[int]:
    """The rows of columns that tell the target, each most of what those before it leave; the first alone if none does."""
    with np.errstate(all="ignore"):
        left = columns - np.average(columns, axis=1, weights=weights)[:, None]
        left /= np.abs(left).max(axis=1, keepdims=True)
    root = 1.0 if weights is None else np.sqrt(weights)
    left, rest = np.nan_to_num(left) * root, (target - np.average(target, weights=weights)) * root
    squares = (left**2).sum(axis=1)
    chosen: list[int] = []
    while len(chosen) < count:
        now = (left**2).sum(axis=1)
        is_new = now > LEAST_LEFT * squares
        gain = np.where(is_new, (left @ rest) ** 2 / np.where(is_new, now, 1.0), 0.0)
        row = int(gain.argmax())
        if not gain[row] > 0.0:
            break
        chosen.append(row)
        unit = left[row] / np.sqrt(now[row])
        rest = rest - (unit @ rest) * unit
        left -= (left @ unit)[:, None] * unit
    return chosen or [0]
