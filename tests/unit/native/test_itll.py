"""The models of in-the-loop learning: against scikit-learn and closed forms, at every SIMD level, on any rows.

What C callers see beside (memory, error codes) is in tests/csrc/test_itll.c.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import r2_score

from evo.itll import KINDS, Model, levels

OPTIONS = {"window": 300, "num_units": 64}


def draw_rows(num_rows: int, num_features: int = 6, seed: int = 0) -> np.ndarray:
    """Rows whose columns differ in mean and scale."""
    rng = np.random.default_rng(seed)
    scales, means = 10.0 ** rng.uniform(-3, 3, num_features), rng.normal(size=num_features) * 5
    return ((rng.normal(size=(num_rows, num_features)) + means) * scales).astype(np.float32)


def targets_of(rows: np.ndarray) -> np.ndarray:
    """Two smooth targets in units of their own."""
    z = (rows - rows.mean(0)) / rows.std(0)
    return np.stack([100 * np.sin(z[:, 0]) + 30 * z[:, 1] + 1e4, z[:, 2] * z[:, 3]], axis=1).astype(np.float32)


def standardised(rows: np.ndarray, of: np.ndarray) -> np.ndarray:
    return (rows - of.mean(0, dtype=np.float64)) / of.std(0, dtype=np.float64)


@pytest.fixture(scope="module")
def data():
    """Rows and targets, and rows to predict."""
    rows = draw_rows(600)
    targets = targets_of(rows)
    return rows[:300], targets[:300], rows[300:], targets[300:]


def learn(model: Model, rows, targets) -> None:
    """Updates a model of either kind."""
    model.update(rows, None if model.kind == "pca" else targets)


def trained(kind: str, data, level=None, **options) -> Model:
    """A model whose window has moved over some rows."""
    rows, targets, later, later_targets = data
    model = Model(kind, rows.shape[1], 2, level=level, **{**OPTIONS, **options})
    for begin, end in ((0, 100), (100, 101), (101, 300)):
        learn(model, rows[begin:end], targets[begin:end])
    learn(model, later[:57], later_targets[:57])
    return model


def fitted(rows, targets, **options) -> Model:
    """A ridge that has learned some rows at once."""
    model = Model("ridge", np.shape(rows)[1], np.shape(targets)[1], **{**OPTIONS, **options})
    model.update(rows, targets)
    return model


# ---- what models compute


def test_ridge_on_many_random_features_is_the_gaussian_process_of_scikit_learn(data):
    rows, targets, queries, _ = data
    noise, length_scale = 0.1, 1.25
    model = fitted(rows, targets, num_units=1024, noise=noise, length_scale=length_scale, seed=4)
    means, deviations = model.predict(queries, return_std=True)
    z, z_queries = standardised(rows, rows), np.clip(standardised(queries, rows), -8, 8)
    for i in range(2):
        y = standardised(targets[:, i], targets[:, i])
        process = GaussianProcessRegressor(RBF(length_scale * np.sqrt(6)), alpha=noise, optimizer=None).fit(z, y)
        expected, expected_std = process.predict(z_queries, return_std=True)
        amplitude = y @ np.linalg.solve(process.kernel_(z) + noise * np.eye(len(z)), y) / len(z)  # of the greatest evidence
        scale = targets[:, i].std(dtype=np.float64)
        predicted = (means[:, i] - targets[:, i].mean(dtype=np.float64)) / scale
        assert np.sqrt(np.mean((predicted - expected) ** 2)) < 0.1 * expected.std()
        np.testing.assert_allclose(deviations[:, i] / scale, np.sqrt(amplitude * (expected_std**2 + noise)), rtol=0.15)


def test_what_was_learned_predicts_other_rows_and_deviations_cover_the_errors(data):
    rows, targets, queries, expected = data
    model = fitted(rows, targets, num_units=256)
    means, deviations = model.predict(queries, return_std=True)
    assert r2_score(expected, means, multioutput="raw_values").min() > 0.7
    assert (np.mean(np.abs(means - expected) < 2 * deviations, axis=0) > 0.85).all()
    far = model.predict(queries + 1e6 * rows.std(0), return_std=True)[1]
    assert (far.mean(0) > 1.2 * deviations.mean(0)).all()


@pytest.mark.parametrize(("num_features", "seed"), [*((5, seed) for seed in range(8)), (64, 3)])
def test_coordinates_are_those_of_scikit_learn(num_features, seed):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(500, num_features)) @ rng.normal(size=(num_features, num_features)) + 7).astype(np.float32)
    model = Model("pca", num_features, 3)
    model.update(rows[:20] * 100)  # which leaves no trace
    model.update(rows)
    reference = PCA(3, svd_solver="full").fit(rows.astype(np.float64))
    greatest = reference.components_[range(3), np.abs(reference.components_).argmax(1)]
    expected = np.sign(greatest) * reference.transform(rows)  # the greatest entry of a component is positive
    np.testing.assert_allclose(model.predict(rows), expected, atol=1e-3 * expected.std())


# ---- exactness


@pytest.mark.parametrize("kind", KINDS)
def test_every_level_has_the_same_bits(kind, data):
    seen = set()
    for level in levels():
        model = trained(kind, data, level=level)
        outputs = [model.predict(data[2])] if kind == "pca" else model.predict(data[2], return_std=True)
        seen.add((*(output.tobytes() for output in outputs), model.save().tobytes()))
    assert len(seen) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_depends_on_no_other_row_and_on_no_thread(kind, data):
    model = trained(kind, data)
    together = model.predict(data[2])
    assert np.array_equal(together[:40], np.concatenate([model.predict(data[2][i : i + 1]) for i in range(40)]))
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(each, together) for each in pool.map(lambda _: model.predict(data[2]), range(20)))


def test_rows_that_left_the_window_leave_no_trace(data):
    rows, targets, later, later_targets = data
    model = fitted(rows[:50] * 1e6, targets[:50] * -1e5)
    model.update(rows, targets)
    model.update(np.concatenate([rows, later]), np.concatenate([targets, later_targets]))
    assert model.num_rows == 300
    assert np.array_equal(model.predict(rows), fitted(later, later_targets).predict(rows))


# ---- rows of any kind


def test_a_value_that_is_not_a_number_counts_as_the_mean(data):
    holes = data[2][:20].copy()
    holes[:, 1] = np.nan
    assert np.isfinite(trained("ridge", data).predict(holes)).all()
    centred = fitted(np.array([[-1, 5], [1, 5], [-2, 1], [2, 1]]), np.array([[1], [2], [3], [4]]))
    assert np.array_equal(centred.predict([[np.nan, 5]]), centred.predict([[0, 5]]))


def test_a_row_without_a_target_is_not_learned_from(data):
    rows, targets, queries, _ = data
    holes = targets.copy()
    holes[::3, 1] = np.nan
    holes[1::3, 0] = np.inf
    model = fitted(rows, holes)
    assert model.num_rows == 100
    assert np.array_equal(model.predict(queries), fitted(rows[2::3], targets[2::3]).predict(queries))


@pytest.mark.parametrize("kind", KINDS)
def test_strange_columns_do_no_harm(kind, data):
    """Constant, equal, collinear, huge, tiny and infinite columns beside good ones."""
    rows, targets, queries, expected = data

    def widen(rows):
        ones = np.ones(len(rows), np.float32)
        with np.errstate(over="ignore"):
            equal = [rows[:, 0], 3 * rows[:, 0] - 1]
            columns = [1e30 * ones, *equal, 1e32 * rows[:, 1], 1e-36 * rows[:, 2], np.inf * ones, 0 * ones]
        return np.column_stack([rows, *columns]).astype(np.float32)

    model = Model(kind, 13, 2, window=300, noise=0.01)
    learn(model, widen(rows), targets)
    predicted = model.predict(widen(queries))
    assert np.isfinite(predicted).all()
    if kind == "ridge":
        assert r2_score(expected, predicted, multioutput="raw_values")[0] > 0.5


# ---- mistakes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Model("forest", 2), "no model 'forest', one of: ridge, pca"),
        (lambda: Model("ridge", 2, neighbours=3), "no option 'neighbours', one of: num_features, "),
        (lambda: Model("ridge", 2.5), "num_features: expected a whole number from 0 to 4294967295, got 2.5"),
        (lambda: Model("pca", 513), "pca: an option is out of the range that csrc/itll.h states: num_features 513"),
        (lambda: Model("ridge", 2, level="mmx"), "SIMD level 'mmx' is not available here, one of: baseline"),
        (lambda: Model("ridge", 2).update(np.zeros((3, 4)), np.zeros(3)), r"rows: expected shape \(num_rows, 2\), got \(3, 4\)"),
        (lambda: Model("ridge", 2).update(np.zeros((3, 2)), np.zeros(4)), r"targets: expected shape \(3, 1\), got \(4, 1\)"),
        (lambda: Model("pca", 2).update(np.zeros((3, 2)), np.zeros(3)), "targets: pca learns from rows alone; expected None"),
        (lambda: Model("pca", 2).predict(np.zeros((3, 2)), return_std=True), "return_std: pca has no uncertainty"),
        (lambda: Model.from_state(b"nothing"), "the bytes are not a state of a model in version 3"),
        (
            lambda: Model("ridge", 2).load(Model("ridge", 3).save()),
            "the state is of a model with other options; expected ridge: ",
        ),
    ],
)
def test_a_mistake_is_one_line(make, message):
    with pytest.raises(ValueError, match=message):
        make()
