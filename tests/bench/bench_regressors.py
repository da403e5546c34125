"""`evo.SymbolicRegressor` on regression data of scikit-learn, beside a line, gradient boosting, and pyoperon and
gplearn where they are installed: mean R² of 4-fold cross-validation, and CPU seconds a fit. Before that, evaluations of a fit in
10 CPU seconds on one core by number of rows, and where these go: native code runs,
tunes and lowers programs.

    python tests/bench/bench_regressors.py
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from importlib.util import find_spec

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.datasets import load_diabetes, load_linnerud, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FIT_SECONDS, FIT_ROWS = 10.0, (20, 1000, 10_000)
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


def laws() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> columns and target, of as many rows as a fit is measured with."""
    x = np.random.default_rng(7).uniform(0.5, 3.0, (max(FIT_ROWS), 4))
    a, b, c, d = x.T
    return {
        "wave and decay": (x, a * np.sin(b) / (1.0 + c**2) + np.sqrt(d) * np.exp(-a / 2.0)),
        "noisy wave": (x, np.sin(2.0 * a) * b - c * d / (a + b) + 0.05 * np.random.default_rng(8).normal(size=len(x))),
    }


def timed(owner: object, method: str, stage: str, spent_s: Counter) -> None:
    """Adds the CPU seconds that a method takes to those of a stage."""
    function = getattr(owner, method)

    @functools.wraps(function)
    def measured(*args, **keywords):
        start = time.process_time()
        try:
            return function(*args, **keywords)
        finally:
            spent_s[stage] += time.process_time() - start

    setattr(owner, method, measured)


def fit_rows():
    """Evaluations of fits by number of rows, and where their time goes."""
    from threadpoolctl import threadpool_limits

    from evo.regression import estimator, noise_kind, task
    from evo.run.search import Search
    from evo.search import map_elites
    from evo.workers.crew import Crew

    spent_s: Counter = Counter()
    time.monotonic = time.process_time  # a fit counts CPU seconds
    stages = {
        "native": ((Crew, "map"), (map_elites.Batch, "analyze")),
        "generations": ((map_elites.MapElites, "step"),),
        "tidying": ((Search, "tidy"),),
        "first formulas": ((task.RegressionTask, "programs"), (noise_kind, "proportional_weights")),
    }
    for stage, methods in stages.items():
        for owner, method in methods:
            timed(owner, method, stage, spent_s)
    with threadpool_limits(1):
        for name, (x, y) in laws().items():
            for count in FIT_ROWS:
                regressor = estimator.SymbolicRegressor(max_time=FIT_SECONDS, random_state=1)
                spent_s.clear()
                start = time.process_time()
                regressor.fit(x[:count], y[:count])
                total = time.process_time() - start
                python = {"search": spent_s["generations"] - spent_s["native"], **{n: spent_s[n] for n in list(stages)[2:]}}
                shares = {"native": spent_s["native"], **python, "the rest": total - spent_s["native"] - sum(python.values())}
                text = ", ".join(f"{stage} {seconds / total:.0%}" for stage, seconds in shares.items())
                yield (
                    f"fit of {name}, {count:,} rows: evaluations a CPU second",
                    f"{regressor.n_evaluations_ / total:,.0f} ({text})",
                )


def rows():
    """Rows of the table of run.py."""
    for what, measured in fit_rows():
        yield what, measured, "", ""
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
