"""Uncertainty of a regressor: a formula of the standard deviation, and intervals for constants, beside SciPy's."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from evo import SymbolicRegressor
from evo.language.dag import REAL, Dag, Node, Row, function_node
from evo.language.formula_text import infix_line
from evo.native.stack_ptx import NodeKind
from evo.regression.uncertainty import constants_of


def sampled(seed: int, count: int):
    """Rows, targets and the truth: a line whose noise grows away from 0."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (count, 2))
    mean, std = 0.5 * x[:, 1], 0.05 + 0.3 * x[:, 0] ** 2
    return x, mean + std * rng.standard_normal(count), mean, std


@pytest.fixture(scope="module")
def model():
    x, y, *_ = sampled(1, 400)
    given = SymbolicRegressor(max_time=None, max_evaluations=6000, functions=["add", "mul", "log", "abs"], random_state=1)
    return given.fit(x, y).fit_noise(x, y, max_evaluations=12_000)


def test_new_data_are_almost_as_likely_as_by_the_true_noise_and_far_likelier_than_by_one_number(model):
    x, y, mean, std = sampled(2, 4000)
    predicted, found = model.predict(x, return_std=True)
    np.testing.assert_array_equal(predicted, model.predict(x))
    true, ours = (stats.norm.logpdf(y, *each).mean() for each in ((mean, std), (predicted, found)))
    train, targets, *_ = sampled(1, 400)
    constant = stats.norm.logpdf(y, predicted, np.sqrt(np.mean((targets - model.predict(train)) ** 2))).mean()
    assert true - ours < 0.1 * (true - constant)
    assert model.noise_.log_variance.max_evaluations == 12_000 and model.max_evaluations == 6000


def test_a_new_fit_forgets_the_noise(model):
    x, y, *_ = sampled(1, 400)
    other = SymbolicRegressor(max_time=None, max_evaluations=300, random_state=1).fit(x, y)
    with pytest.raises(ValueError, match="call fit_noise first"):
        other.predict(x, return_std=True)
    other.fit_noise(x, y)
    assert other.predict(x, return_std=True)[1].shape == (400,)
    with pytest.raises(ValueError, match="call fit_noise first"):
        other.fit(x, y).predict(x, return_std=True)


def test_what_has_no_noise_is_refused():
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    model = SymbolicRegressor(max_time=None, max_evaluations=300, random_state=1).fit(x, np.zeros(40))
    with pytest.raises(ValueError, match="predicted without errors"):
        model.fit_noise(x, np.zeros(40))
    several = SymbolicRegressor(max_time=None, max_evaluations=300, random_state=1).fit(x, np.hstack([x, -x]))
    with pytest.raises(ValueError, match="fit_noise is for one target"):
        several.fit_noise(x, np.hstack([x, -x]))


@pytest.mark.parametrize("method", ["fit_noise", "constants"])
@pytest.mark.parametrize(
    ("targets", "weights", "message"),
    [
        (np.r_[np.nan, np.ones(399)], None, "y contains NaN"),
        (np.ones(399), None, r"\[400, 399\]"),
        (np.array(["a"] * 400), None, "y: row 0 is 'a', no number"),
        (np.ones(400), np.full(400, -1.0), "sample_weight: must be numbers from 0 on"),
        (np.ones(400), np.ones(3), r"sample_weight.shape == \(3,\)"),
    ],
)
def test_wrong_data_are_refused_as_by_fit(model, method, targets, weights, message):
    x, *_ = sampled(1, 400)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(x, targets, sample_weight=weights)


def real(number: float) -> Node:
    return Node(NodeKind.CONSTANT, int(np.float64(number).view(np.uint64)))


def operation(infix: str, *operands: int) -> Node:
    return function_node(infix, operands)


def formula(*values: Node) -> Dag:
    """Of x0, which is value 0; the last one is the result."""
    return Dag((Node(NodeKind.INPUT, 0, row=Row(name="x0")), *values), (len(values),), (("x0", REAL),), (("y", REAL),))


def test_standard_errors_of_constants_are_those_of_a_nonlinear_fit():
    rng = np.random.default_rng(3)
    x, weights = rng.uniform(0.0, 3.0, 200), rng.uniform(0.5, 2.0, 200)
    y = 2.5 * np.exp(-1.3 * x) + 0.1 * rng.standard_normal(200)
    (a, b), covariance = optimize.curve_fit(lambda x, a, b: a * np.exp(b * x), x, y, (2.0, -1.0), 1.0 / np.sqrt(weights))
    decay = formula(real(a), real(b), operation("a*b", 2, 0), operation("exp(a)", 3), operation("a*b", 1, 4))
    found = constants_of(decay, [x], y, weights, 0.95)
    assert list(found["constant"]) == [a, b]
    np.testing.assert_allclose(found["std_error"], np.sqrt(np.diag(covariance)), rtol=1e-4)
    reach = stats.t.ppf(0.975, 198) * found["std_error"]
    np.testing.assert_allclose(found[["low", "high"]].T, [found["constant"] - reach, found["constant"] + reach])


def test_constants_that_data_do_not_tell_apart_have_no_interval():
    x = np.full(50, 1.5)
    y = 4.5 + 0.01 * np.sin(7.0 * np.arange(50))
    found = constants_of(formula(real(1.5), real(2.0), operation("a*b", 2, 0), operation("a + b", 1, 3)), [x], y, None, 0.95)
    assert found["std_error"].isna().all() and list(found["constant"]) == [1.5, 2.0]


def test_the_constants_are_those_of_the_text_in_its_order():
    x = np.random.default_rng(5).uniform(-2.0, 2.0, 200)
    y = 1.5 / (0.5 + x**2) + 0.01 * np.sin(99.0 * x)
    # 3/(1 + 2*x**2), which a program may write as this.
    quotient = formula(real(0.75), real(0.5), operation("a*b", 0, 0), operation("a + b", 2, 3), operation("a/b", 1, 4))
    twice = replace(quotient, nodes=(*quotient.nodes, operation("a + b", 5, 5)), results=(6,))
    found = constants_of(twice, [x], y, None, 0.95)
    assert infix_line(twice) == "y = 1.5/(0.5 + x0**2)"
    assert found["constant"].tolist() == [1.5, 0.5] and found["std_error"].between(1e-4, 1e-2).all()


def test_an_estimator_gives_the_constants_of_its_equations(model):
    x, y, *_ = sampled(1, 400)
    found = model.constants(x, y, confidence=0.9)
    text = model.get_best().equation
    assert len(found) and all(f"{number:g}" in text or f"{-number:g}" in text for number in found["constant"]), text
    slope = found.iloc[(found["constant"] - 0.5).abs().argmin()]
    assert slope.low < 0.5 < slope.high
    with pytest.raises(ValueError, match="confidence is 95, must be between 0 and 1"):
        model.constants(x, y, confidence=95)
