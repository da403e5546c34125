"""Guesses before a search: forms that a person would fit, with the numbers of least squares; and fits that begin with them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from evo import SymbolicRegressor
from evo.regression.guesses import guesses
from evo.regression.hinges import hinged

RNG = np.random.default_rng(5)
X0, X1, X2 = RNG.uniform(0.5, 9.0, (3, 200))
SIGNED = RNG.uniform(-3.0, 3.0, 200)


def unexplained(text, columns, target):
    """The share of a target's variance that a formula leaves after an offset and a scale."""
    names = {"exp2": np.exp2, "log2": np.log2, "sin": np.sin, "cos": np.cos, "max": np.maximum, "min": np.minimum}
    values = eval(text, names, columns)
    return 1.0 - np.corrcoef(values, target)[0, 1] ** 2


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        ({"T": 250.0 + 40.0 * X0}, 3.2e3 * np.exp(-5200.0 / (8.314 * (250.0 + 40.0 * X0)))),  # Arrhenius
        ({"a": X0, "b": X1, "c": X2}, -7e9 * X0**0.31 * X1**-1.27 * X2**0.05),
        ({"t": SIGNED, "b": X1}, 3.0 * np.exp(-0.7 * SIGNED) * X1),
        ({"t": SIGNED}, 0.04 * np.exp(-((SIGNED - 1.2) ** 2))),
        ({"s": X0, "i": X1}, 1.0 / (2.0 + 0.7 * X0**-1 + 0.3 * X1**2)),
        ({"a": X0, "b": SIGNED, "c": X1}, 5.0 - 2.0 * X0 + 0.3 * SIGNED**3),
        ({"a": X0, "b": X1, "c": X2}, X2 + (X1 - X2) * np.exp(-0.37 * X0)),  # cooling
        ({"a": X0, "b": X1}, 4.0 * X1 * (1.0 - np.exp(-X0 / 2.3))),  # charging
        ({"a": SIGNED, "b": X1}, 0.3 * SIGNED + X1 * np.sin(4.7 * SIGNED + 0.6)),
        ({"a": X0, "b": SIGNED}, X0**2 - X0[3] ** 2),  # 0 in one row
        ({"a": X0}, (np.sin(2.9 * X0) - 2.9 * X0 * np.cos(2.9 * X0)) / X0**4),
        ({"a": X0, "b": X1}, 2.2 * np.cos(3.7 * X0 - 0.4) / np.sqrt(X1)),
        ({"a": X0}, 0.1 * X0 + 0.2 * np.maximum(X0 - 2.2, 0.0) + 0.9 * np.maximum(X0 - 6.1, 0.0)),  # a tariff
        ({"a": SIGNED}, SIGNED - np.clip(SIGNED, -0.4, 0.7)),  # a dead zone
        ({"a": X0, "b": X1, "c": X2}, X2 * np.minimum(1.0, X0 / 3.3)),
        ({"a": X0, "b": X1}, np.minimum(2.0 * X0, 0.7 * X1 + 3.1)),
        ({"a": X0, "b": SIGNED}, 3.0 * np.maximum(X0 - 4.0, 0.0) + 2.0 * np.abs(SIGNED + 0.3) + 0.5 * X0 * SIGNED),
    ],
)
def test_laws_of_known_forms_are_among_the_guesses(columns, target):
    texts = guesses(columns, target)
    assert min(unexplained(text, columns, target) for text in texts) < 1e-11
    for text in texts:
        assert len(text) < 300


def test_knots_of_noisy_data_are_near_those_of_the_law_and_planes_have_none():
    noise = 0.1 * np.random.default_rng(3).normal(size=200)
    terms = hinged({"a": X0, "b": X1}, np.maximum(X0, 3.5) - 2.0 * X1 + noise, np.ones(200))
    knots = [float(text[7:-1]) for text in terms if text.startswith("max(a")]
    assert len(knots) == 1 and abs(knots[0] - 3.5) < 0.2
    for target in (X0**2 - X0 * X1, X0 + 3.0 * noise, noise):
        assert hinged({"a": X0, "b": X1}, target, np.ones(200)) == {}


def test_a_plane_is_that_of_least_squares():
    columns = {"a": X0, "b": SIGNED, "c": X1}
    target = 1.5 * X0 - 2.0 * SIGNED + 0.7 * X1 + RNG.normal(size=200)
    matrix = np.stack(list(columns.values()), axis=1)
    expected = 1.0 - LinearRegression().fit(matrix, target).score(matrix, target)
    planes = [text for text in guesses(columns, target) if "exp2" not in text and "log2" not in text and "**" not in text]
    assert unexplained(planes[-1], columns, target) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        ({"x": np.zeros(20)}, np.arange(20.0)),
        ({"x": 1e300 * X0, "y": 1e-300 * X1}, X0 * X1),
        ({"x": 1e-320 * X0, "y": 1e30 * X1}, np.maximum(X0, X1)),
        ({"x": 1e200 * X0, "y": X1}, np.maximum(X0, X1)),
        ({"x": np.geomspace(1e-40, 1.0, 60)}, np.sin(X0[:60])),
        ({"x": X0[:10]}, np.r_[np.zeros(9), 1.0]),
        ({f"x{i}": RNG.normal(size=50) for i in range(100)}, RNG.normal(size=50)),
    ],
    ids=["constant input", "huge and tiny", "subnormal", "bent and huge", "forty decades", "one target", "more inputs than rows"],
)
def test_strange_data_gives_finite_formulas_or_none(columns, target):
    for text in guesses(columns, target):
        with np.errstate(all="ignore"):
            assert "nan" not in text
            assert "inf" not in text


def test_a_law_of_three_exponents_is_found_at_once():
    columns = np.stack([X0, X1, X2], axis=1)
    target = 1.4 * X0**0.31 * X1**0.52 * X2**-0.17
    model = regressor(5000).fit(columns, target)
    assert np.abs(model.predict(columns) / target - 1.0).max() < 1e-9
    assert model.get_best()["complexity"] <= 12


def regressor(max_evaluations: int, **parameters) -> SymbolicRegressor:
    return SymbolicRegressor(max_time=None, max_evaluations=max_evaluations, random_state=1, **parameters)


X, Y = np.stack([X0, X1], axis=1)[:120], 3.0 + 2.0 * X0[:120] * X1[:120]
NOISY = Y + np.random.default_rng(5).normal(size=120).round(1)  # rounded: some targets are equal


def test_the_seed_decides_everything_and_threads_and_the_order_of_rows_nothing():
    first = regressor(2000, n_jobs=1, warm_start=True).fit(X, NOISY)
    order = np.random.default_rng(3).permutation(120)
    same = regressor(2000, n_jobs=2).fit(X[order], NOISY[order])
    other = regressor(2000, n_jobs=1, warm_start=True).set_params(random_state=2).fit(X, NOISY)
    pd.testing.assert_frame_equal(first.equations_, same.equations_, check_exact=True)
    assert not np.array_equal(first._elites, other._elites)


def test_integer_weights_are_repeated_rows():
    weights = np.random.default_rng(4).integers(0, 4, 120)
    weighted = regressor(2000).fit(X, NOISY, sample_weight=weights)
    order = np.random.default_rng(3).permutation(weights.sum())
    repeated = regressor(2000).fit(X.repeat(weights, axis=0)[order], NOISY.repeat(weights)[order])
    pd.testing.assert_frame_equal(weighted.equations_, repeated.equations_, check_exact=True)


def test_only_the_ratios_of_weights_count():
    weights = np.random.default_rng(6).uniform(0.1, 5.0, 120)
    models = (regressor(400).fit(X, Y, sample_weight=weights * factor) for factor in (1.0, 2.0**-990, 2.0**1000))
    first, *others = models
    for other in others:
        pd.testing.assert_frame_equal(first.equations_, other.equations_, check_exact=True)


@pytest.mark.parametrize("y", [np.exp, lambda x: 1e13 * np.exp(-9000.0 / x), lambda x: 3.0 * x**40])
def test_a_law_over_tens_of_decades_is_found(y):
    x = np.random.default_rng(7).uniform(20.0, 300.0, 40)
    np.testing.assert_allclose(regressor(1).fit(x[:, None], y(x)).predict(x[:, None]), y(x), rtol=1e-9)
