"""`evo.SymbolicRegressor` on regression data of scikit-learn, beside a line, gradient boosting, and pyoperon and
gplearn where they are installed: mean R² of 4-fold cross-validation, and CPU seconds a fit.

    python tests/bench/bench_regressors.py
"""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.datasets import load_diabetes, load_linnerud, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SECONDS = 4.0  # of a fit
NUM_FOLDS = 4
SELECTIONS = ("shortest", "accuracy")  # of evo's equations


def data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> columns and target."""
    exercise, body = load_linnerud(return_X_y=True)
    linnerud = {f"linnerud, {name}": (exercise, body[:, i]) for i, name in enumerate(("weight", "waist", "pulse"))}
    friedman = {
        "Friedman 1": make_friedman1(400, noise=1.0, random_state=1),
        "Friedman 2": make_friedman2(400, noise=125.0, random_state=1),
        "Friedman 3": make_friedman3(400, noise=0.1, random_state=1),
    }
    return {"diabetes": load_diabetes(return_X_y=True), **linnerud, **friedman}


def regressors() -> dict[str, RegressorMixin]:
    """Name -> what is fitted. A regressor of evo is asked for each of SELECTIONS."""
    from evo import SymbolicRegressor

    found: dict[str, RegressorMixin] = {
        "evo": SymbolicRegressor(max_time=SECONDS, random_state=1),
        "a line": LinearRegression(),
        "gradient boosting": GradientBoostingRegressor(random_state=1),
    }
    if find_spec("pyoperon"):
        from pyoperon.sklearn import SymbolicRegressor as Operon

        found["pyoperon"] = Operon(
            max_time=round(SECONDS), generations=10**6, max_evaluations=10**9, optimizer_iterations=5, n_threads=1, random_state=1
        )
    if find_spec("gplearn"):
        from gplearn.genetic import SymbolicRegressor as GPLearn

        found["gplearn, 20 generations"] = GPLearn(random_state=1)
    return {name: make_pipeline(StandardScaler(), regressor) for name, regressor in found.items()}


def rows():
    """Rows of the table of run.py."""
    for name, (columns, target) in data().items():
        for system, pipeline in regressors().items():
            selections = SELECTIONS if system == "evo" else ("",)
            scores: dict[str, list[float]] = {selection: [] for selection in selections}
            start = time.process_time()
            for train, test in KFold(NUM_FOLDS, shuffle=True, random_state=1).split(columns):
                pipeline.fit(columns[train], target[train])
                for selection in selections:
                    if selection:
                        pipeline[-1].model_selection = selection
                    scores[selection].append(pipeline.score(columns[test], target[test]))
            spent_s = (time.process_time() - start) / NUM_FOLDS
            for selection, found in scores.items():
                what = f"{name}, {system}{', ' if selection else ''}{selection}: mean R2 of {NUM_FOLDS} folds"
                yield what, f"{np.mean(found):.3f} ({spent_s:.1f} CPU s a fit)", "", ""


if __name__ == "__main__":
    for what, measured, _, _ in rows():
        print(f"{what}: {measured}")
