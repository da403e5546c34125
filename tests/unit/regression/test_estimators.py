"""Classifier, several targets and tables: scikit-learn's own checks, and what they promise beyond them."""

import contextlib
import importlib
import pickle
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.utils.estimator_checks import parametrize_with_checks

import evo
from evo.regression.parameters import shared_seconds

pytestmark = pytest.mark.usefixtures("searched_only")
LIMITS = {"max_time": None, "max_evaluations": 3000, "random_state": 1}
FEW = LIMITS | {"max_evaluations": 200}  # where no law need be found
RNG = np.random.default_rng(1)
X = RNG.uniform(0.5, 2.0, (200, 3))


@pytest.mark.slow
@parametrize_with_checks([evo.SymbolicClassifier(**LIMITS | {"max_evaluations": 400})])
def test_scikit_learn_accepts_it(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_two_classes_have_one_formula_of_log_odds():
    inside = X[:, 0] ** 2 + X[:, 1] < 3.0
    y = np.where(inside, "in", "out")
    model = evo.SymbolicClassifier(**LIMITS).fit(X[:150], y[:150])
    assert list(model.classes_) == ["in", "out"] and len(model.estimators_) == 1
    assert model.score(X[150:], y[150:]) >= 0.95
    odds, shares = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(shares[:, 1], expit(odds), rtol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (model.predict(X) == np.where(odds > 0, "out", "in")).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X) == shares).all() and ">" in str(model)


def test_each_of_three_classes_has_a_formula_against_the_others():
    y = np.digitize(X[:, 0] * X[:, 2], [1.0, 2.0])
    model = evo.SymbolicClassifier(**LIMITS).fit(X, y)
    assert sorted(set(model.equations_.label)) == [0, 1, 2] and len(model.estimators_) == 3
    shares = model.predict_proba(X)
    assert shares.shape == (200, 3) and np.allclose(shares.sum(axis=1), 1.0) and (model.predict(X) == shares.argmax(axis=1)).all()
    assert model.score(X, y) > 0.85
    with pytest.raises(ValueError, match="y has one class; SymbolicClassifier needs at least 2"):
        model.fit(X, np.zeros(200))


def test_several_targets_have_a_front_each():
    targets = np.stack([X[:, 0] * X[:, 1], 1.0 + X[:, 2] ** 2], axis=1)
    model = evo.SymbolicRegressor(**FEW).fit(X, targets)
    np.testing.assert_allclose(model.predict(X), targets, rtol=1e-9)
    assert [best.equation for best in model.get_best()] == ["x0*x1", "1 + x2**2"]
    assert len(model.equations_) == len(model.sympy()) == len(model.latex()) == 2 and str(model).count(">") == 2
    alone = evo.SymbolicRegressor(**FEW).fit(X, targets[:, 0])
    assert model.equations_[0].equals(alone.equations_)
    assert model.fit(X, targets[:, 0]).predict(X).shape == (200,)


class Frame:
    """A table as Polars and Arrow have it: names, and a column by its name."""

    def __init__(self, table: pd.DataFrame):
        self.columns, self._table = list(table.columns), table

    def __getitem__(self, name: str) -> np.ndarray:
        return self._table[name].to_numpy()


def frames(table: pd.DataFrame) -> list:
    made = [table, Frame(table)]
    with contextlib.suppress(ImportError):
        made.append(importlib.import_module("polars").DataFrame(dict(table)))
    with contextlib.suppress(ImportError):
        made.append(importlib.import_module("pyarrow").table(dict(table)))
    return made


def test_columns_of_any_frame_have_their_names():
    table = pd.DataFrame(X, columns=["mass", "speed", "age"])
    for frame in frames(table):
        model = evo.SymbolicRegressor(**LIMITS).fit(frame, table.mass * table.speed)
        assert model.get_best().equation in ("mass*speed", "speed*mass")
        assert list(model.feature_names_in_) == list(table.columns)
        np.testing.assert_allclose(model.predict(frame), table.mass * table.speed, rtol=1e-9)


def test_what_is_no_number_or_missing_is_refused_with_the_way_out():
    table = pd.DataFrame(X, columns=["mass", "speed", "age"])
    for kind in ("category", "str"):
        with pytest.raises(ValueError, match=r"X: column 'age' is .*, no number; leave it out, or encode it, such as by pandas"):
            evo.SymbolicRegressor(**LIMITS).fit(table.assign(age=table.age.astype(str).astype(kind)), X[:, 0])
    with (
        pytest.raises(ValueError, match="X: no column of numbers is left"),
        pytest.warns(UserWarning, match="which is str, such as 'a'"),
    ):
        evo.SymbolicRegressor(**LIMITS).fit(pd.DataFrame({"name": ["a"] * len(X)}), X[:, 0])
    table.loc[7, "speed"] = np.nan
    for frame in frames(table):
        with pytest.raises(ValueError, match=r"column 'speed' contains NaN: 1 missing values, the first in row 7"):
            evo.SymbolicRegressor(**LIMITS).fit(frame, X[:, 0])


def test_columns_of_text_and_without_a_name_are_left_out_with_a_warning_and_do_not_count_in_new_data():
    table = pd.DataFrame(X, columns=["mass", "speed", "age"])
    y = table.mass * table.speed
    others = {"Unnamed: 0": range(len(X)), "id": [f"n{i}" for i in range(len(X))], "on": [i % 2 == 0 for i in range(len(X))]}
    first, *more = frames(table.assign(**others))
    for frame, target in ((first, np.stack([y, y], 1)), *((each, y) for each in more)):
        model = evo.SymbolicRegressor(**FEW)
        with pytest.warns(UserWarning, match="X: left out column") as caught:
            model.fit(frame, target)
        texts = [str(each.message).removeprefix("X: left out column ") for each in caught]
        assert sorted(texts)[0] == "'Unnamed: 0', which has no name" and len(texts) == 2
        assert re.fullmatch("'id', which is (object|str), such as 'n0'", sorted(texts)[1])
        assert list(model.feature_names_in_) == ["mass", "speed", "age", "on"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(model.predict(frame), model.predict(table.assign(on=others["on"])))
    with pytest.raises(ValueError, match="X: column 'mass' is str, such as 'n0', but was a number in fit"):
        model.predict(table.assign(on=True, mass=others["id"]))


def test_rows_of_weight_0_do_not_count():
    weights = np.repeat([1.0, 0.0], 100)
    wide = np.c_[X[:, :2], 1e40 * X[:, 2]]
    y = np.where(weights > 0, X[:, 0], X[:, 1])
    chosen = evo.SymbolicRegressor(select_k_features=1, **LIMITS).fit(wide, y, weights)
    assert "x0" in chosen.get_best().equation
    labels = np.where(weights > 0, X[:, 0] > 1.0, 2)
    assert list(evo.SymbolicClassifier(**LIMITS).fit(X, labels, weights).classes_) == [0, 1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "huber(2)"}, "not a loss of log-odds"),
        ({"output": "front.csv"}, "SymbolicClassifier writes no file"),
        (
            {"class_weight": "even"},
            "class_weight is 'even', must be 'balanced', None, or a mapping from labels to numbers above 0",
        ),
        ({"class_weight": {True: -1, False: 1}}, "must be 'balanced', None, or a mapping from labels to numbers above 0"),
        ({"class_weight": {True: 1}}, "class_weight: label False has none, there are True"),
    ],
)
def test_what_a_classifier_does_not_take_is_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        evo.SymbolicClassifier(**parameters).fit(X, X[:, 0] > 1.0)


def test_columns_of_dates_and_decimals_get_advice_that_fits():
    dates = pd.DataFrame({"t": pd.date_range("2020", periods=len(X)), "x": X[:, 0]})
    with pytest.warns(UserWarning, match=r"\(X\['t'\] - X\['t'\]\.min\(\)\)\.dt\.total_seconds\(\)"):
        evo.SymbolicRegressor(**LIMITS).fit(dates, X[:, 0])
    with pytest.raises(ValueError, match=r"X\['t'\]\.astype\(float\)"):
        evo.SymbolicRegressor(**LIMITS).fit(dates.assign(t=Decimal("1.5")), X[:, 0])


def test_rare_classes_count_more_if_asked_for():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(300, 1))
    labels = x[:, 0] + generator.normal(size=300) > 1.8
    plain, balanced, given = (
        evo.SymbolicClassifier(class_weight=each, **LIMITS).fit(x, labels).predict(x).mean()
        for each in (None, "balanced", {False: 1, True: 9})
    )
    assert plain < 0.1 < balanced and given > 0.1


@pytest.mark.parametrize(
    ("functions", "y"),
    [
        (["+", "*", "cbrt"], lambda a, b: np.cbrt(a) + 0.5 * b),
        (["add", "greater"], lambda a, b: 1.0 * (a > b)),
        (["add", "cond"], lambda a, b: np.where(a > 0, b, 0.0)),
    ],
)
def test_functions_that_other_systems_have_are_found(functions, y):
    x = np.random.default_rng(0).uniform(-3.0, 3.0, (200, 2))
    model = evo.SymbolicRegressor(max_evaluations=15_000, max_time=None, random_state=0, functions=functions).fit(x, y(*x.T))
    assert model.score(x, y(*x.T)) > 0.99


@pytest.mark.parametrize("undefined", ["nan", "mean"])
def test_classes_have_nan_or_the_mean_where_log_odds_have_no_value(undefined):
    x = np.random.default_rng(3).uniform(0.1, 2.0, (200, 1))
    noisy = 3.0 * np.log(x[:, 0]) + np.random.default_rng(4).logistic(size=200) > 0.0
    model = evo.SymbolicClassifier(undefined=undefined, functions=["log2"], model_selection="accuracy", **FEW).fit(x, noisy)
    with pytest.warns(UserWarning, match="has no finite value in 1 of 2 rows"):
        probabilities = model.predict_proba([[-1.0], [2.0]])
    assert np.isnan(probabilities[0]).all() == (undefined == "nan") and probabilities[1, 1] > 0.8
    with pytest.warns(UserWarning, match="has no finite value"):
        assert model.predict([[-1.0]]) == [noisy.mean() > 0.5]


def test_fits_one_after_the_other_share_what_is_left_of_the_time(monkeypatch):
    clock = iter([100.0, 100.0, 105.0, 107.0, 111.0])  # the start, and when each begins
    monkeypatch.setattr("evo.regression.parameters.time.monotonic", lambda: next(clock))
    first, second, third, late = shared_seconds(10.0, 4)
    assert (first, second, third) == pytest.approx((2.5, 5.0 / 3.0, 1.5))
    assert 0.0 < late < 0.1  # `fit` takes no 0
