"""Tables of many rows: searches see samples of them, all rows decide."""

import numpy as np
import pandas as pd
import pytest

import evo
from evo.evaluate.sampling import spread
from evo.regression.scaling import fitted_scaling, fitted_to_all
from evo.regression.tables import growing

pytestmark = pytest.mark.usefixtures("searched_only")
RNG = np.random.default_rng(1)
NUM_ROWS, MOST = 6000, 2048
X = RNG.uniform(0.5, 2.0, (NUM_ROWS, 3))
Y = 3.0 + 2.0 * X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=NUM_ROWS)


def regressor(**parameters) -> evo.SymbolicRegressor:
    given = {"max_time": None, "max_evaluations": 4000, "random_state": 1, "max_rows": MOST} | parameters
    return evo.SymbolicRegressor(**given)


@pytest.fixture(scope="module")
def fitted(searched_only) -> evo.SymbolicRegressor:
    return regressor().fit(X, Y)


def test_the_points_of_a_sample_are_those_of_the_least_multiples_of_the_golden_ratio():
    for num_points, most in ((10, 3), (1000, 1), (1000, 999), (4097, 64), (100_000, 20_000)):
        multiples = np.arange(num_points) * ((5.0**0.5 - 1.0) / 2.0) % 1.0
        assert spread(num_points, most).tolist() == sorted(np.argsort(multiples, kind="stable")[:most].tolist())


def test_samples_grow_and_are_of_the_given_size():
    used, (first, last), whole = growing((X, Y, None), MOST, None)
    assert used.tolist() == [0, 1, 2]
    assert [len(first[1]), len(last[1])] == [1024, MOST] and whole[1] is Y
    assert set(first[1]) < set(last[1]) < set(Y)
    _, [alone], table = growing((X, Y, None), NUM_ROWS, 2)
    assert alone is table and sorted(Y) == alone[1].tolist() and alone[0].shape == (NUM_ROWS, 2)


def test_samples_have_the_heaviest_rows_and_the_weight_of_all():
    weights = RNG.exponential(size=NUM_ROWS) ** 4
    _, samples, (_, _, shares) = growing((X, Y, weights), MOST, None)
    for _, target, chosen in samples:
        assert set(Y[np.argsort(weights)[-50:]]) <= set(target)
        heaviest = target == Y[weights.argmax()]
        assert chosen.sum() / chosen[heaviest] == pytest.approx(weights.sum() / weights.max(), rel=0.02)
    assert shares.max() == 1.0


def test_losses_are_those_of_all_rows_and_the_law_is_found(fitted):
    for row in fitted.equations_.index:
        loss = np.mean((fitted.predict(X, row) - Y) ** 2)
        assert fitted.equations_.loss[row] == pytest.approx(loss, rel=1e-9)
    assert "x0*x1" in fitted.get_best().equation or "x1*x0" in fitted.get_best().equation
    assert fitted.get_best().loss == pytest.approx(0.04, rel=0.05)


def test_results_are_the_same_each_time_whatever_the_number_of_threads():
    target = Y + X[:, 0] * np.sin(3.0 * X[:, 2])
    tables = [
        regressor(max_evaluations=2000, n_jobs=n_jobs, random_state=seed).fit(X, target).equations_
        for n_jobs, seed in ((1, 1), (2, 1), (1, 2))
    ]
    assert len(tables[0]) >= 5 and tables[0].equation.tolist() != tables[2].equation.tolist()
    pd.testing.assert_frame_equal(tables[0], tables[1])


def test_the_search_sees_the_samples_alone(fitted):
    """Rows of another law that are in no sample change losses, but not which formulas there are."""
    target = Y.copy()
    target[np.setdiff1d(np.arange(NUM_ROWS), spread(NUM_ROWS, MOST))[:5]] += 100.0
    model = regressor().fit(X, target)
    assert np.mean((model.predict(X) - target) ** 2) > 5.0
    assert np.median(np.abs(model.predict(X) - Y)) < 0.3


def test_a_loss_is_that_of_all_rows():
    model = regressor(max_evaluations=2000, loss="absolute").fit(X, Y)
    assert model.get_best().loss == pytest.approx(np.mean(np.abs(model.predict(X) - Y)), rel=1e-9)


def test_a_target_that_is_one_value_in_the_sample_is_refused_with_the_way_out():
    target = np.zeros(NUM_ROWS)
    target[np.setdiff1d(np.arange(NUM_ROWS), spread(NUM_ROWS, MOST))[0]] = 1.0
    with pytest.raises(ValueError, match=r"y: has one value in nearly all rows.*set max_rows"):
        regressor().fit(X, target)


def test_an_offset_within_noise_of_none_is_none_whatever_the_scale():
    outputs, noise = np.random.default_rng(1).uniform(1.0, 1000.0, 100), 20.0 * np.random.default_rng(2).normal(size=100)
    target = 1e-12 * (7.4297 * outputs + noise)
    mean, deviation = float(target.mean()), float(target.std())
    offset, scale = fitted_scaling(outputs, (target - mean) / deviation, None, mean, deviation)
    assert offset == 0.0 and scale == pytest.approx(outputs @ target / (outputs @ outputs), rel=1e-3)
    far, _ = fitted_scaling(outputs, (target - mean) / deviation, None, mean + 5e-11, deviation)
    assert far == pytest.approx(5e-11, abs=1.2e-11)


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.1, 1.0, NUM_ROWS)])
def test_all_rows_refine_offset_and_scale(weights):
    target = 2.123456789 + 3.987654321 * X[:, 0] + RNG.normal(size=NUM_ROWS)
    mean, deviation = np.average(target, weights=weights), float(target.std())
    outputs = X[:, 0].copy()
    outputs[::500] = np.nan  # such rows do not count
    known = np.isfinite(outputs)
    roots = None if weights is None else np.sqrt(weights[known])
    scale, offset = np.polyfit(outputs[known], target[known], 1, w=roots)
    some = 64  # tell the numbers worse
    found = fitted_to_all(outputs, (target - mean) / deviation, weights, mean, deviation, some)
    assert found == pytest.approx((offset, scale), abs=5e-3)
    rows = spread(NUM_ROWS, some)
    shares = None if weights is None else weights[rows]
    assert fitted_scaling(outputs[rows], (target[rows] - mean) / deviation, shares, mean, deviation) != found


def test_numbers_that_are_meant_stay():
    target = 2.0 + 3.0 * X[:, 0] + 0.5 * RNG.normal(size=NUM_ROWS)
    mean, deviation = float(target.mean()), float(target.std())
    assert fitted_to_all(X[:, 0], (target - mean) / deviation, None, mean, deviation, 2048) == (2.0, 3.0)
