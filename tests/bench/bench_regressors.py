"""`evo.SymbolicRegressor` on regression data of scikit-learn, beside a line, gradient boosting, and pyoperon and
gplearn where they are installed: mean R² of 4-fold cross-validation, and CPU seconds a fit. Before that, evaluations of a fit in
10 CPU seconds on one core by number of rows, and where these go: native code runs,
tunes and lowers programs.

    python tests/bench/bench_regressors.py
    python tests/bench/bench_regressors.py --black-box black_box.jsonl [diabetes,cars]    real data sets, by SRBench's protocol
    python tests/bench/bench_regressors.py --table black_box.jsonl                        their table

The protocol is that of La Cava et al., "Contemporary symbolic regression methods" (2021): a quarter of the rows is for testing,
columns and target are standardised, systems are compared by the mean rank of their R², formulas also by SymPy's nodes. Splits
have the seeds 1 to 3, fits 10 seconds by the wall, in turns. Data sets are those of scikit-learn, vega_datasets and statsmodels.
Symbols of pyoperon are those that SRBench chose from; `pyoperon` has one objective, `pyoperon, front` also length, and chooses by
BIC.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_linnerud,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import KFold, train_test_split
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


BLACK_BOX_SECONDS, SPLITS = 10, (1, 2, 3)
OPERON = {
    "allowed_symbols": "add,sub,mul,aq,exp,log,sin,tanh,constant,variable",
    "max_time": BLACK_BOX_SECONDS,
    "generations": 10**6,
    "max_evaluations": 10**9,
    "optimizer_iterations": 5,
    "n_threads": 1,
}


def real_data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> columns and target of real data sets."""
    import statsmodels.api as statistics
    from vega_datasets import local_data as vega

    def of(frame: pd.DataFrame, target: str, *left_out: str) -> tuple[np.ndarray, np.ndarray]:
        numbers = frame.drop(columns=[*left_out]).select_dtypes("number").dropna().astype(float)
        return numbers.drop(columns=target).to_numpy(), numbers[target].to_numpy()

    def table(name: str) -> pd.DataFrame:
        return getattr(statistics.datasets, name).load_pandas().data

    cancer = load_breast_cancer(as_frame=True).data.iloc[:, :10]
    schools = table("star98").iloc[:, :14]
    schools["share"] = schools.NABOVE / (schools.NABOVE + schools.NBELOW)
    weather = vega.seattle_weather().assign(day=lambda frame: frame.date.dt.day_of_year)
    return {
        "diabetes": load_diabetes(return_X_y=True),
        "wine: alcohol": of(load_wine(as_frame=True).data, "alcohol"),
        "breast cancer: fractal dimension": of(cancer, "mean fractal dimension"),
        "iris: petal width": of(vega.iris(), "petalWidth"),
        "cars": of(vega.cars(), "Miles_per_Gallon"),
        "Seattle's weather: highest": of(weather, "temp_max"),
        "star98: share above": of(schools, "share", "NABOVE", "NBELOW"),
        "grunfeld: investment": of(table("grunfeld"), "invest"),
        "fair: affairs": of(table("fair"), "affairs"),
        "engel: food": of(table("engel"), "foodexp"),
    }


def sympy_size(expression: object) -> int:
    """Nodes of an expression of SymPy."""
    import sympy

    return sum(1 for _ in sympy.preorder_traversal(expression))


def black_box_systems(seed: int) -> dict[str, tuple[RegressorMixin, object]]:
    """Name -> regressor, and the size of its formula once it is fitted."""
    import sympy
    from pyoperon.sklearn import SymbolicRegressor as Operon

    from evo import SymbolicRegressor

    def size_of_operon(model: Operon) -> int:
        functions = {"aq": lambda a, b: a / sympy.sqrt(1 + b**2), "log": sympy.log}
        return sympy_size(sympy.sympify(model.get_model_string(model.model_, 6).replace("^", "**"), locals=functions))

    front = {"objectives": ["r2", "length"], "model_selection_criterion": "bayesian_information_criterion"}
    return {
        "evo": (SymbolicRegressor(random_state=seed), lambda model: sympy_size(model.sympy())),
        "pyoperon": (Operon(random_state=seed, **OPERON), size_of_operon),
        "pyoperon, front": (Operon(random_state=seed, **front, **OPERON), size_of_operon),
        "gradient boosting": (GradientBoostingRegressor(random_state=seed), lambda _: None),
        "ridge": (RidgeCV(np.logspace(-3, 3, 13)), lambda _: None),
    }


def black_box(path: str, only: str = "", systems: str = "") -> None:
    """Append a line of JSON to a file for each fit."""
    for name, (columns, target) in real_data().items():
        if only and name not in only.split(","):
            continue
        for seed in SPLITS:
            x, x_test, y, y_test = train_test_split(columns, target, random_state=seed)
            scaler, mean, deviation = StandardScaler().fit(x), y.mean(), y.std()
            for system, (model, size) in black_box_systems(seed).items():
                if systems and system not in systems.split(","):
                    continue
                begun_s = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(scaler.transform(x), (y - mean) / deviation)
                    spent_s = time.process_time() - begun_s
                    found = {"set": name, "split": seed, "system": system, "cpu_s": round(spent_s, 2)}
                    found["r2"] = float(model.score(scaler.transform(x_test), (y_test - mean) / deviation))
                    found["train_r2"] = float(model.score(scaler.transform(x), (y - mean) / deviation))
                    found["size"] = size(model)
                with Path(path).open("a") as file:
                    print(json.dumps(found), file=file)


def black_box_table(*paths: str) -> None:
    """Print R² and size of each data set in the mean of the splits, and the mean ranks."""
    frame = pd.concat([pd.read_json(path, lines=True) for path in paths])
    frame["rank"] = frame.groupby(["set", "split"]).r2.rank(ascending=False)
    means = frame.pivot_table(index="set", columns="system", values=["r2", "size"], sort=False)
    print(means.round({column: 3 if column[0] == "r2" else 0 for column in means}).to_string())
    whole = frame.groupby("system")
    print(whole[["rank", "cpu_s"]].mean().assign(r2=whole.r2.median(), size=whole["size"].median()).round(3).to_string())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--black-box"]:
        black_box(*sys.argv[2:])
        sys.exit()
    if sys.argv[1:2] == ["--table"]:
        black_box_table(*sys.argv[2:])
        sys.exit()
    for what, measured, _, _ in rows():
        print(f"{what}: {measured}")
