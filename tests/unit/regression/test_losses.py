"""Losses of one's own: against scikit-learn's linear models and SciPy's minimiser."""

import threading
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance

import evo
from evo.evaluate.tuning import loss_fitter
from evo.regression.losses import TargetLoss

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (400, 2))
LINE = 1.0 + 2.0 * X[:, 0] - X[:, 1]


def regressor(loss: str, **parameters) -> evo.SymbolicRegressor:
    return evo.SymbolicRegressor(max_time=None, random_state=1, loss=loss, **{"max_evaluations": 6000, **parameters})


def predictions(model: evo.SymbolicRegressor, most: int) -> list[np.ndarray]:
    """Of the equations with at most so many instructions, as many as a plane needs."""
    return [model.predict(X, row) for row in model.equations_.index[model.equations_.complexity <= most]]


def test_a_quantile_is_as_good_as_scikit_learns_on_a_line():
    y = LINE + np.random.default_rng(1).gumbel(size=400)
    known = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
    least = mean_pinball_loss(y, known.predict(X), alpha=0.8)
    found = predictions(regressor("quantile(0.8)", functions=["add", "mul"]).fit(X, y), 3)
    assert min(mean_pinball_loss(y, each, alpha=0.8) for each in found) <= 1.001 * least


def test_counts_are_fitted_as_by_scikit_learns_poisson_regressor():
    y = np.random.default_rng(1).poisson(np.exp(LINE)).astype(float)
    known = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000).fit(X, y)
    model = regressor("poisson").fit(X, y)
    found = predictions(model, 5)
    assert min(mean_poisson_deviance(y, each) for each in found) <= mean_poisson_deviance(y, known.predict(X)) + 1e-6
    best = model.predict(X)
    np.testing.assert_allclose(best, known.predict(X), rtol=0.02, atol=0.1)
    assert model.get_best().loss == pytest.approx(np.mean(best - y * np.log(best)), rel=1e-12)


def test_an_absolute_loss_finds_a_law_among_outliers_that_squares_lose():
    rng = np.random.default_rng(0)
    x = rng.uniform(1.0, 3.0, (200, 2))
    law = 2.0 * x[:, 0] ** 2 / x[:, 1] + 1.0
    y, wrong = law.copy(), rng.random(200) < 0.2
    y[wrong] += rng.normal(5.0, 20.0, wrong.sum())
    errors = {loss: np.abs(regressor(loss).fit(x, y).predict(x) - law).max() for loss in ("absolute", "squared")}
    assert errors["absolute"] < 1e-5 and errors["squared"] > 0.5


def test_a_formula_is_the_loss_of_that_name():
    y = LINE**2 + np.random.default_rng(1).laplace(size=400)
    tables = [regressor(loss, max_evaluations=2000).fit(X, y).equations_ for loss in ("absolute", "abs(prediction - target)")]
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize(
    ("loss", "reference"),
    [
        ("huber(0.5)", lambda p, t: np.where(np.abs(p - t) < 0.5, (p - t) ** 2 / 2, 0.5 * (np.abs(p - t) - 0.25))),
        ("log(1 + (prediction - target)**2)", lambda p, t: np.log1p((p - t) ** 2)),
        ("logistic", lambda p, t: np.logaddexp(0.0, p) - (t > 0) * p),
        ("exp(prediction) - target*prediction", lambda p, t: np.exp(p) - (t > 0) * p),
    ],
)
@pytest.mark.parametrize("num_points", [301, 3000])
def test_offset_and_scale_have_the_least_loss(loss, reference, num_points):
    rng = np.random.default_rng(3)
    x, weights = rng.uniform(0.0, 3.0, num_points), rng.uniform(0.1, 2.0, num_points)
    target = np.sin(x) - 0.4 + 0.3 * rng.standard_t(2, num_points)
    if loss not in ("huber(0.5)", "log(1 + (prediction - target)**2)"):
        target = (target > 0).astype(float)
    task = evo.RegressionTask({"x": x}, target, weights=weights, loss=loss)
    y = (100.0 + np.cos(x)).astype(np.float32)[None]
    found = minimize(
        lambda p: np.average(reference(p[0] + p[1] * (y[0] - 100.0), target), weights=weights), [0.0, 0.0], method="Nelder-Mead"
    )
    [(offset, scale)] = task.scaling({"f": y}).values()
    losses = np.average(reference(offset[0] + scale[0] * y[0], target), weights=weights)
    assert losses == pytest.approx(found.fun, rel=1e-3)  # both are rounded as far as the data allow
    rows = task.targets()["f"].astype(np.float32), np.float32(task.weights())
    quick, exact = (
        loss_fitter(task, *rows, most).fit(y, times)["loss"][0] / rows[1].sum() for most, times in ((512, 5), (None, 60))
    )
    assert exact == pytest.approx(found.fun, rel=1e-5)
    assert exact <= quick * (1.0 + 1e-6) and quick <= exact + 0.02 * abs(exact)


def test_digits_are_those_of_squares_and_bits_of_likelihoods():
    target = np.random.default_rng(1).normal(size=500)
    assert TargetLoss("squared", target).digits(np.array([target.var() / 100.0]))[0] == pytest.approx(2.0)
    absolute = TargetLoss("absolute", target)
    least = np.abs(target - np.median(target)).mean()
    assert absolute.digits(np.array([least / 10.0]))[0] == pytest.approx(2.0, abs=1e-3)  # a digit of error is two of squares
    logistic = TargetLoss("logistic", (target > 0.3).astype(float))
    share = np.mean(target > 0.3)
    entropy = -share * np.log2(share) - (1.0 - share) * np.log2(1.0 - share)
    bits = 0.5 * np.log2(10.0) * logistic.digits(np.zeros(1))[0]
    assert bits == pytest.approx(entropy, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("absolut", r"loss: 'absolut', did you mean absolute\?"),
        ("quantile(2)", r"loss: quantile takes a number between 0 and 1 in brackets, got '2'"),
        ("absolute(1)", r"loss: absolute takes no number in brackets"),
        ("abs(prediction - targt)", r"loss:1: unknown name 'targt'"),
        ("abs(target)", r"loss: 'abs\(target\)' does not depend on prediction"),
        ("log(-1 - prediction**2)", r"loss: is not finite for any prediction"),
    ],
)
def test_a_wrong_loss_is_refused_in_one_line(loss, message):
    with pytest.raises(ValueError, match=message):
        regressor(loss).fit(X, LINE)


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        ("absolute", lambda x: (x > 0.9).astype(float) * (x > 0.95)),  # whose best constant is best
        ("poisson", lambda x: -x),
        ("max(abs(prediction - target) - 0.5, 0)", lambda x: x + 0.3 * np.sin(9.0 * x)),  # flat where it is fitted
    ],
)
def test_a_fit_ends_where_no_formula_beats_a_constant_and_where_a_loss_is_flat(loss, target):
    x = np.random.default_rng(2).uniform(size=100)
    threads = threading.active_count()
    model = evo.SymbolicRegressor(loss=loss, max_time=None, max_evaluations=1000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x[:, None], target(x))
    assert np.isfinite(model.predict(x[:, None])).all()
    assert threading.active_count() == threads


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": 3}, "loss is 3, must be the name or the formula"),
        ({"nesting": {"sin": 1}}, "nesting is .*, must be a mapping such as"),
        ({"costs": ["sin"]}, "costs is .*, must be a mapping such as"),
        ({"functions": {"g(x)": "x*x", "g(x, y)": "x*y"}}, "'g' is defined twice"),
    ],
)
def test_parameters_of_a_wrong_kind_are_named(parameters, words):
    with pytest.raises(ValueError, match=words):
        evo.SymbolicRegressor(**parameters).fit(np.arange(20.0)[:, None], np.arange(20.0))


@pytest.mark.parametrize("loss", ["log_cosh", "log(cosh(prediction - target))"])
def test_log_cosh_holds_errors_of_a_thousand(loss):
    target = np.array([0.0, 1000.0, -1e5, 0.5])
    found = TargetLoss(loss, target).mean(np.zeros(4))
    assert found == pytest.approx((1000.0 + 1e5 - 2.0 * np.log(2.0) + np.log(np.cosh(0.5))) / 4.0, rel=1e-7)


@pytest.mark.parametrize("size", [1e100, 1e-100])
def test_a_loss_refuses_targets_that_float32_cannot_hold(size):
    with pytest.raises(ValueError, match=r"^y: its largest size is 4e[+-]100, too much or too little for loss"):
        regressor("absolute").fit(X, LINE / LINE.max() * 4.0 * size)


@pytest.mark.parametrize("seed", range(1))
def test_offset_and_scale_are_those_of_float64_where_outputs_are_far_from_0(seed):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1.0, 2.0, 200)
    target = 1.5 + 0.7 * x + 1e-5 * generator.standard_normal(200)
    [(offset, scale)] = evo.RegressionTask({"x": x}, target, loss="absolute").scaling({"f": x[None] + 1e4}).values()
    line = QuantileRegressor(quantile=0.5, alpha=0.0, solver="highs").fit(1e5 * x[:, None], 1e5 * target)
    least = np.abs(target - line.predict(1e5 * x[:, None]) / 1e5).mean()
    assert np.abs(target - offset[0] - scale[0] * (x + 1e4)).mean() < 1.05 * least
