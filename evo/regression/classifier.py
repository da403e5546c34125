"""Symbolic classification as an estimator of scikit-learn: formulas for the log-odds of classes.

Owns classes and probabilities. `evo.regression.estimator` finds the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from evo.regression.estimator import SymbolicRegressor
from evo.regression.parameters import LEAST, MIN_ROWS, SearchParameters, is_real, shared_seconds
from evo.regression.tables import numbers_of

LOGISTIC = "logistic"
ERROR_LOSSES = ("squared", "absolute", "huber", "quantile", "poisson")  # of predictions that are not log-odds


class SymbolicClassifier(ClassifierMixin, SearchParameters):  # type: ignore[misc]  # scikit-learn has no types
    """Finds formulas for the log-odds of classes: of the second of two, or of each of more against all others.

    Args:
        class_weight: label -> factor of the losses of its rows, above 0, or `balanced`: all classes weigh the same; None: 1.
        **parameters: as for `SymbolicRegressor`, but for `output`. `loss` is None, the log loss, or a formula of prediction, the
            log-odds, and target, which is 1 for the class and else 0. `undefined` is about log-odds and probabilities; where they
            are NaN, `predict` goes by the classes' shares. Searches share `max_time`, but `max_evaluations` is that of
            each.

    Attributes:
        classes_: the labels, sorted.
        estimators_: a `SymbolicRegressor` of the log-odds: one for two classes, else one for each.
        equations_: a DataFrame as that of `SymbolicRegressor`, with a column `label` for the class.
        n_features_in_, feature_names_in_: as everywhere in scikit-learn.
    """

    def __init__(self, *, class_weight: Any = None, **parameters: Any):
        super().__init__(**parameters)
        self.class_weight = class_weight

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*signature(SearchParameters).parameters, "class_weight"])

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Searches for formulas.

        Args:
            X: `(n_samples, n_features)`, as for `SymbolicRegressor`.
            y: `(n_samples,)` labels, at least two different ones.
            sample_weight: `(n_samples,)` factors of losses, from 0 on.

        Raises:
            ValueError: a parameter or the data is wrong.
        """
        self._check_parameters()
        X = numbers_of(X)  # noqa: N806
        _, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=MIN_ROWS)
        check_classification_targets(labels)
        if self.loss in ERROR_LOSSES or str(self.loss).partition("(")[0] in ERROR_LOSSES:
            raise ValueError(f"loss: {self.loss!r} is not a loss of log-odds; None is the log loss")
        if self.output is not None:
            raise ValueError("output: SymbolicClassifier writes no file; use `equations_.to_csv` after fit")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, labels, dtype=np.float64)
        if self.class_weight is not None:
            self._check_class_weight(labels)
            factors = compute_sample_weight(self.class_weight, labels if weights is None else labels[weights > 0])
            weights = np.ones(len(labels)) if weights is None else weights.copy()
            weights[weights > 0] *= factors
        self.classes_ = np.unique(labels if weights is None else labels[weights > 0])
        if len(self.classes_) < 2:
            raise ValueError("y has one class; SymbolicClassifier needs at least 2")
        codes = np.searchsorted(self.classes_, labels)  # rows of weight 0 may get any; they do not count
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        parameters = self.get_params(deep=False) | {"loss": self.loss or LOGISTIC, "output": None}
        del parameters["class_weight"]
        earlier = getattr(self, "estimators_", []) if self.warm_start else []
        if len(earlier) != len(positives):
            earlier = [SymbolicRegressor() for _ in positives]
        for estimator, code, seconds in zip(earlier, positives, shared_seconds(self.max_time, len(positives)), strict=True):
            estimator.set_params(**parameters | {"max_time": seconds}).fit(X, (codes == code).astype(np.float64), weights)
        self.estimators_ = earlier
        self._prior = [logit(np.average(codes == code, weights=weights)) for code in positives]
        tables = [
            estimator.equations_.assign(label=self.classes_[code]) for estimator, code in zip(earlier, positives, strict=True)
        ]
        self.equations_ = pd.concat(tables, ignore_index=True)
        return self

    def _check_class_weight(self, labels: NDArray[Any]) -> None:
        """Raises ValueError if the parameter is wrong."""
        class_weight = self.class_weight
        if class_weight == "balanced":
            return
        if not isinstance(class_weight, Mapping) or not all(is_real(factor, LEAST) for factor in class_weight.values()):
            raise ValueError(
                f"class_weight is {class_weight!r}, must be 'balanced', None, or a mapping from labels to numbers above 0"
            )
        if lacking := [label for label in np.unique(labels).tolist() if label not in class_weight]:
            raise ValueError(f"class_weight: label {lacking[0]!r} has none, there are {', '.join(map(repr, class_weight))}")

    def __str__(self) -> str:
        """The equations as tables, `>` before those that predict."""
        return "\n".join(map(str, self.estimators_)) if hasattr(self, "estimators_") else repr(self)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Log-odds: `(n_samples,)`, of the second of two classes, or `(n_samples, n_classes)`."""
        check_is_fitted(self)
        X = numbers_of(X, self._known)  # noqa: N806
        validate_data(self, X, dtype=np.float64, reset=False)
        columns = [estimator.predict(X) for estimator in self.estimators_]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities, `(n_samples, n_classes)`: of more than two classes, each against the others, scaled to a sum of 1."""
        odds = expit(self.decision_function(X))
        if odds.ndim == 1:
            return np.stack([1.0 - odds, odds], axis=1)
        odds = np.maximum(odds, np.finfo(np.float64).tiny)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The most likely class of each row, `(n_samples,)`."""
        scores = self.decision_function(X)
        scores = np.where(np.isnan(scores), self._prior[0] if scores.ndim == 1 else self._prior, scores)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def sympy(self, precision: int | None = None) -> list[Any]:
        """The log-odds of each of `estimators_` as an expression of SymPy."""
        check_is_fitted(self)
        return [estimator.sympy(precision=precision) for estimator in self.estimators_]


_parameters = signature(SearchParameters.__init__)
_class_weight = signature(SymbolicClassifier.__init__).parameters["class_weight"]
# scikit-learn and editors read every parameter from here.
SymbolicClassifier.__init__.__signature__ = _parameters.replace(parameters=[*_parameters.parameters.values(), _class_weight])  # type: ignore[attr-defined]
