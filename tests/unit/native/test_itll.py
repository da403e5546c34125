"""The models of in-the-loop learning: against scikit-learn and closed forms, at every SIMD level, on any rows.

What C callers see beside (memory, error codes) is in tests/csrc/test_itll.c.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor

from evo.itll import KINDS, Model, levels

REGRESSORS = [kind for kind in KINDS if kind != "pca"]
OPTIONS = {"window": 300, "num_units": 64, "num_visits": 8}


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


def trained(kind: str, data, level=None, **options) -> Model:
    """A model whose window has moved over some rows."""
    rows, targets, later, later_targets = data
    model = Model(kind, rows.shape[1], 2, level=level, **{**OPTIONS, **options})
    for begin, end in ((0, 100), (100, 101), (101, 300)):
        model.update(rows[begin:end], None if kind == "pca" else targets[begin:end])
    model.update(later[:57], None if kind == "pca" else later_targets[:57])
    return model


# ---- what models compute


def test_neighbours_are_those_of_scikit_learn(data):
    rows, targets, queries, _ = data
    model = Model("knn", 6, 2, window=300, num_neighbours=7)
    model.update(rows, targets)
    steps = 4095 / 8  # of a deviation, to which features are rounded
    reference = KNeighborsRegressor(7, weights=lambda d: 1 / np.maximum(d / steps, 1e-3), algorithm="brute")
    reference.fit(np.rint(np.clip(standardised(rows, rows), -8, 8) * steps), targets)
    rounded = np.rint(np.clip(standardised(queries, rows), -8, 8) * steps)
    means, deviations = model.predict(queries, return_std=True)
    np.testing.assert_allclose(means, reference.predict(rounded), rtol=2e-3, atol=2e-3)
    distances, nearest = reference.kneighbors(rounded)
    weights = 1 / np.maximum(distances / steps, 1e-3)
    mean = np.average(targets[nearest], axis=1, weights=np.repeat(weights[:, :, None], 2, axis=2))
    spread = np.sqrt(((targets[nearest] - mean[:, None]) ** 2 * weights[:, :, None]).sum(1) / weights.sum(1)[:, None])
    np.testing.assert_allclose(deviations, spread, rtol=0.02, atol=0.02)


def test_gaussian_process_is_that_of_scikit_learn(data):
    rows, targets, queries, _ = data
    noise, length_scale = 0.02, 0.8
    model = Model("gp", 6, 2, window=300, noise=noise, length_scale=length_scale)
    model.update(rows, targets)
    means, deviations = model.predict(queries, return_std=True)
    z, z_queries = standardised(rows, rows), np.clip(standardised(queries, rows), -8, 8)
    for i in range(2):
        y = standardised(targets[:, i], targets[:, i])
        reference = GaussianProcessRegressor(RBF(length_scale * np.sqrt(6)), alpha=noise, optimizer=None).fit(z, y)
        expected, expected_std = reference.predict(z_queries, return_std=True)
        amplitude = y @ np.linalg.solve(reference.kernel_(z) + noise * np.eye(len(z)), y) / len(z)  # of the greatest evidence
        scale = targets[:, i].std(dtype=np.float64)
        np.testing.assert_allclose((means[:, i] - targets[:, i].mean(dtype=np.float64)) / scale, expected, atol=1e-3)
        np.testing.assert_allclose(deviations[:, i] / scale, np.sqrt(amplitude * (expected_std**2 + noise)), rtol=1e-2)


def test_ridge_on_many_random_features_is_kernel_ridge(data):
    rows, targets, queries, _ = data
    noise = 0.1
    model = Model("ridge", 6, 2, window=300, num_units=1024, noise=noise, seed=5)
    model.update(rows, targets)
    z, z_queries = standardised(rows, rows), np.clip(standardised(queries, rows), -8, 8)
    means, deviations = model.predict(queries, return_std=True)
    process = Model("gp", 6, 2, window=300, noise=noise)
    process.update(rows, targets)
    _, process_deviations = process.predict(queries, return_std=True)
    for i in range(2):
        y = standardised(targets[:, i], targets[:, i])
        expected = KernelRidge(alpha=noise, kernel="rbf", gamma=1 / (2 * 6)).fit(z, y).predict(z_queries)
        predicted = (means[:, i] - targets[:, i].mean(dtype=np.float64)) / targets[:, i].std(dtype=np.float64)
        assert np.sqrt(np.mean((predicted - expected) ** 2)) < 0.1 * expected.std()
    # Ridge's deviation is of the same process: its noise's variance is noise times the function's.
    np.testing.assert_allclose(deviations, process_deviations, rtol=0.15)


@pytest.mark.parametrize("kind", ["ridge", "gp", "knn"])
def test_predictions_go_with_the_target(kind, data):
    rows, targets, queries, _ = data
    model, other = (Model(kind, 6, 2, window=300) for _ in range(2))
    model.update(rows, targets)
    other.update(rows, 4 * targets + 64)
    (means, deviations), (other_means, other_deviations) = (each.predict(queries, return_std=True) for each in (model, other))
    np.testing.assert_allclose(other_means, 4 * means + 64, rtol=1e-4, atol=1e-2)
    np.testing.assert_allclose(other_deviations, 4 * deviations, rtol=1e-2)


@pytest.mark.parametrize("num_features", [5, 64])
def test_components_are_those_of_scikit_learn(num_features):
    rng = np.random.default_rng(3)
    rows = (rng.normal(size=(500, num_features)) @ rng.normal(size=(num_features, num_features)) + 7).astype(np.float32)
    model = Model("pca", num_features, 3)
    for part in np.split(rows, [1, 20, 333]):
        model.update(part)
    reference = PCA(3, svd_solver="full").fit(rows.astype(np.float64))
    components, variances = model.components()
    np.testing.assert_allclose(variances, reference.explained_variance_, rtol=1e-5)
    signs = np.sign((components * reference.components_).sum(1))
    np.testing.assert_allclose(components, signs[:, None] * reference.components_, atol=1e-5)
    assert (components[np.arange(3), np.abs(components).argmax(1)] > 0).all()
    np.testing.assert_allclose(model.predict(rows), signs * reference.transform(rows), atol=1e-3 * np.sqrt(variances[0]))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_what_was_learned_predicts_other_rows(kind, data):
    rows, targets, queries, expected = data
    model = Model(kind, 6, 2, window=300, num_visits=200, noise=0.01)
    model.update(rows, targets)
    scores = r2_score(expected, model.predict(queries), multioutput="raw_values")
    assert scores.min() > (0.35 if kind == "knn" else 0.7), scores


@pytest.mark.parametrize("kind", ["ridge", "gp"])
def test_deviations_cover_the_errors(kind, data):
    rows, targets, queries, expected = data
    model = Model(kind, 6, 2, window=300)
    model.update(rows, targets)
    means, deviations = model.predict(queries, return_std=True)
    share = np.mean(np.abs(means - expected) < 2 * deviations, axis=0)
    assert (share > 0.85).all(), share
    far = model.predict(queries + 1e6 * rows.std(0), return_std=True)[1]
    assert (far.mean(0) > 1.2 * deviations.mean(0)).all()


def test_perceptron_takes_steps_of_adam():
    """One row: each step has the same gradient direction, so biases and weights move by the learning rate at first."""
    model = Model("mlp", 1, 1, window=2, num_visits=1, learning_rate=0.01)
    model.update([[0.0], [1.0]], [0.0, 1.0])
    state = model.save()
    parameters = state[-3 * 4 * (32 + 32 + 32 + 1) :].view(np.float32).reshape(3, -1)
    weights, moments, squares = parameters
    moved = moments != 0
    np.testing.assert_allclose(squares[moved] / 0.001, (moments[moved] / 0.1) ** 2, rtol=1e-4)
    start = Model("mlp", 1, 1, window=2, num_visits=1, learning_rate=0.01).save()[-3 * 4 * 97 :].view(np.float32)[:97]
    np.testing.assert_allclose((weights - start)[moved], -0.01 * np.sign(moments[moved]), rtol=1e-2)


# ---- exactness


@pytest.mark.parametrize("kind", KINDS)
def test_every_level_has_the_same_bits(kind, data):
    assert len(levels()) >= 1
    seen = set()
    for level in levels():
        model = trained(kind, data, level=level)
        outputs = [model.predict(data[2])] if kind in ("mlp", "pca") else model.predict(data[2], return_std=True)
        seen.add((*(output.tobytes() for output in outputs), model.save().tobytes()))
    assert len(seen) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_does_not_depend_on_the_other_rows(kind, data):
    model = trained(kind, data)
    together = model.predict(data[2])
    alone = np.concatenate([model.predict(data[2][i : i + 1]) for i in range(40)])
    assert np.array_equal(together[:40], alone)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_model_goes_on_with_the_same_bits(kind, data):
    rows, targets, later, later_targets = data
    model = trained(kind, data)
    restored = Model.from_state(model.save().tobytes(), level="baseline")
    unpickled = pickle.loads(pickle.dumps(model))
    assert restored.options == model.options and restored.num_rows == model.num_rows
    for each in (model, restored, unpickled):
        each.update(later[57:200], None if kind == "pca" else later_targets[57:200])
        each.update(rows, None if kind == "pca" else targets)
    assert np.array_equal(restored.save(), model.save()) and np.array_equal(unpickled.save(), model.save())
    assert np.array_equal(restored.predict(later), model.predict(later))


@pytest.mark.parametrize("kind", ["ridge", "knn", "gp"])
def test_rows_that_left_the_window_leave_no_trace(kind, data):
    rows, targets, later, later_targets = data
    model = Model(kind, 6, 2, **OPTIONS)
    model.update(rows[:50] * 1e6, targets[:50] * -1e5)
    model.update(rows, targets)
    model.update(np.concatenate([rows, later]), np.concatenate([targets, later_targets]))
    fresh = Model(kind, 6, 2, **OPTIONS)
    fresh.update(later, later_targets)
    assert model.num_rows == 300
    assert np.array_equal(model.predict(rows), fresh.predict(rows))


@pytest.mark.parametrize("kind", ["ridge", "knn", "gp"])
def test_rows_may_come_one_by_one(kind, data):
    rows, targets, later, later_targets = data
    models = [Model(kind, 6, 2, **OPTIONS) for _ in range(2)]
    for model in models:
        model.update(rows, targets)
    models[0].update(later[:130], later_targets[:130])
    for i in range(130):
        models[1].update(later[i : i + 1], later_targets[i : i + 1])
    assert np.array_equal(models[0].predict(later), models[1].predict(later))
    assert np.array_equal(models[0].save(), models[1].save())


def test_the_seed_decides_what_is_drawn(data):
    for kind in ("ridge", "mlp"):
        first, same, other = (trained(kind, data, seed=seed).predict(data[2]) for seed in (1, 1, 2))
        assert np.array_equal(first, same) and not np.array_equal(first, other)


def test_threads_predict_together(data):
    model = trained("ridge", data)
    expected = model.predict(data[2])
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(each, expected) for each in pool.map(lambda _: model.predict(data[2]), range(20)))


# ---- rows of any kind


@pytest.mark.parametrize("kind", REGRESSORS)
def test_a_value_that_is_not_a_number_counts_as_the_mean(kind, data):
    model = trained(kind, data)
    holes = data[2][:20].copy()
    holes[:, 1] = np.nan
    assert np.isfinite(model.predict(holes)).all()
    centred = Model(kind, 2, 1, **OPTIONS)
    rows = np.array([[-1, 5], [1, 5], [-2, 1], [2, 1]], np.float32)
    centred.update(rows, [1, 2, 3, 4])
    assert np.array_equal(centred.predict([[np.nan, 5]]), centred.predict([[0, 5]]))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_a_row_without_a_target_is_not_learned_from(kind, data):
    rows, targets, queries, _ = data
    holes = targets.copy()
    holes[::3, 1] = np.nan
    holes[1::3, 0] = np.inf
    kept = slice(2, None, 3)
    model, other = (Model(kind, 6, 2, **OPTIONS) for _ in range(2))
    model.update(rows, holes)
    other.update(rows[kept], targets[kept])
    assert model.num_rows == 100
    assert np.array_equal(model.predict(queries), other.predict(queries))


@pytest.mark.parametrize("kind", KINDS)
def test_strange_columns_do_no_harm(kind, data):
    """Constant, equal, collinear, huge, tiny and infinite columns beside good ones."""
    rows, targets, queries, expected = data

    def widen(rows):
        ones = np.ones(len(rows), np.float32)
        with np.errstate(over="ignore"):
            columns = [
                1e30 * ones,
                rows[:, 0],
                3 * rows[:, 0] - 1,
                1e32 * rows[:, 1],
                1e-36 * rows[:, 2],
                np.inf * ones,
                0 * ones,
            ]
        return np.column_stack([rows, *columns]).astype(np.float32)

    model = Model(kind, 13, 2, window=300, num_visits=100, noise=0.01)
    model.update(widen(rows), None if kind == "pca" else targets)
    predicted = model.predict(widen(queries))
    assert np.isfinite(predicted).all()
    if kind != "pca":
        assert r2_score(expected, predicted, multioutput="raw_values")[0] > 0.5


@pytest.mark.parametrize("kind", REGRESSORS)
def test_huge_targets_stay_finite(kind, data):
    rows, targets, queries, _ = data
    model = Model(kind, 6, 2, **OPTIONS)
    model.update(rows, np.where(targets > np.median(targets, 0), np.float32(3e38), np.float32(-3e38)))
    assert np.isfinite(model.predict(queries)).all()
    model.update(rows, np.zeros_like(targets))  # all that is left does not vary
    if kind != "mlp":
        assert np.array_equal(model.predict(queries), np.zeros((300, 2)))


def test_no_rows_change_nothing(data):
    for kind in KINDS:
        model = trained(kind, data)
        state = model.save()
        model.update(np.empty((0, 6)), None if kind == "pca" else np.empty((0, 2)))
        assert np.array_equal(model.save(), state)
        assert model.predict(np.empty((0, 6))).shape == (0, 2)
        model.reset()
        assert model.num_rows == 0 and not model.predict(data[2]).any()


# ---- mistakes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Model("forest", 2), "no model 'forest', one of: ridge, knn, mlp, gp, pca"),
        (lambda: Model("knn", 2, neighbours=3), "no option 'neighbours', one of: num_features, "),
        (lambda: Model("knn", 2.5), "num_features: expected a whole number from 0 to 4294967295, got 2.5"),
        (lambda: Model("gp", 2, window=5000), "gp: an option is out of the range that csrc/itll.h states: .*window 5000"),
        (lambda: Model("gp", 2, level="mmx"), "SIMD level 'mmx' is not available here, one of: baseline"),
        (lambda: Model("gp", 2).update(np.zeros((3, 4)), np.zeros(3)), r"rows: expected shape \(num_rows, 2\), got \(3, 4\)"),
        (lambda: Model("gp", 2).update(np.zeros((3, 2)), np.zeros(4)), r"targets: expected shape \(3, 1\), got \(4, 1\)"),
        (lambda: Model("pca", 2).update(np.zeros((3, 2)), np.zeros(3)), "targets: pca learns from rows alone; expected None"),
        (
            lambda: Model("mlp", 2).predict(np.zeros((3, 2)), return_std=True),
            "return_std: mlp has no uncertainty",
        ),
        (lambda: Model("gp", 2).components(), "gp has no components; pca has"),
        (lambda: Model.from_state(b"nothing"), "the bytes are no state of a model in version 1"),
        (lambda: Model("gp", 2).load(Model("gp", 3).save()), "the state is of a model with other options; expected gp: "),
    ],
)
def test_a_mistake_is_one_line(make, message):
    with pytest.raises(ValueError, match=message):
        make()
