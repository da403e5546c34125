"""First formulas by links and factors: each of these laws is one of them, and when a search is over."""

from types import SimpleNamespace

import numpy as np
import pytest

from evo.regression.inverses import inverses
from evo.regression.noise_kind import are_shared, proportional_weights
from evo.regression.stagnation import FEWEST, Stagnation
from evo.regression.terms import smallest

RNG = np.random.default_rng(5)
A, B, C = RNG.uniform(0.5, 5.0, (3, 80))
LAWS = {
    "logistic": lambda a: 5.0 / (1.0 + np.exp(-2.4 * (a - 2.2))),
    "level and sigmoid": lambda a: 1.0 / (1.0 + np.exp(-a)),
    "Arrhenius": lambda a: 2e9 * np.exp(-82.0 / a),
    "Antoine": lambda a: 10 ** (8.0 - 17.0 / (2.3 + a)),
    "Gompertz": lambda a: 7.0 * np.exp(-3.0 * np.exp(-0.8 * a)),
    "Lorentz": lambda a: 3.0 / ((a - 2.2) ** 2 + 0.36),
    "bell": lambda a: np.exp(-((a - 2.2) ** 2) / 1.6),
    "Kepler": lambda a, b, c: np.sqrt(a**3 / (b + c)),
    "beam": lambda a: 0.8 * np.sqrt(1.0 + (a / 3.0) ** 2),
    "Debye": lambda a, b: b * np.exp(-a / 2.7) / a,
    "humidity": lambda a, b: b * np.exp(17.6 * a / (a + 24.0)),
    "charge": lambda a, b, c: b * (1.0 - np.exp(-a / c)),
    "energies of 1e-20": lambda a: 1.4e-20 * np.exp(-1.2 / a),
    "beyond float32's exponents": lambda a: np.exp(30.0 * a),
    "angle": lambda a, b: 1.0 / (1.0 + b * np.sin(a / 2.0) ** 2),
    "logistic with capacity": lambda a, b: a / (1.0 + (a / 0.2 - 1.0) * np.exp(-b)),
    "interest": lambda a, r: a * (1.0 + r) ** (2.0 * a) / r,
    "pieces": lambda a: np.where(a < 2.2, 1.8 * a, 3.96 + 0.5 * (a - 2.2)),
    "share": lambda a: 1.0 - np.exp(-0.3 * a**2.4),
    "overshoot": lambda d: np.exp(-3.14 * d / np.sqrt(1.0 - d**2)),
    "a function of each input": lambda a, b, c: a / (a + 0.7) * b / (b + 1.9) * np.exp(-0.3 * (c - 1.5) ** 2),
    "a decline, a decay and a power": lambda a, b, c: (7.0 - a) * np.exp(-0.3 * b) * c**0.7,
    "terms of each input": lambda a, b, c: 0.4 * a**1.5 - 6.0 / (b + 1.2) + 0.3 * np.log(c + 0.8),
    "a wave beside two inputs": lambda a, b: 3.0 * np.sin(2.0 * a) + a + 0.5 * b,
    "decibels beside a level": lambda a, b, c: a + 10.0 * np.log10(0.08 / b**2 + 4.0 / c),
}


def unexplained(law) -> float:
    """The share of the variance that the best of the first formulas leaves."""
    columns = {"a": A, "b": B, "c": C, "r": A / 50.0, "d": A / 5.2}
    columns = {each: columns[each] for each in law.__code__.co_varnames}
    y = law(**columns)
    functions = {name: getattr(np, name) for name in ("exp2", "log2", "sqrt", "sin", "cos")} | {"max": np.maximum}
    left = []
    for text in inverses(columns, y):
        said = eval(text, functions, columns)
        if not np.isfinite(said).all():  # beside the rows that were looked at
            continue
        assert np.abs(said).max() < 3e38  # float32 holds it
        left.append(1.0 - np.corrcoef(said, y)[0, 1] ** 2)
    return min(left)


@pytest.mark.parametrize("name", LAWS)
def test_a_law_under_a_link_is_among_the_first_formulas(name):
    assert unexplained(LAWS[name]) < 1e-12


@pytest.mark.parametrize("law", [lambda a, b, c: b * np.exp(-a / 2.7) + c, lambda a, b, c: a * np.log(b) + c])
def test_an_input_times_a_function_of_another_is_a_term_beside_others(law):
    assert unexplained(law) < 1e-12


@pytest.mark.parametrize("law", [lambda a, b, c: a, lambda a, b, c: a * b])
@pytest.mark.parametrize("is_broad", [False, True])
def test_what_inputs_give_exactly_leaves_nothing_to_explain(is_broad, law):
    columns = {name: np.random.default_rng(seed).uniform(-1.0, 1.0, 20) for seed, name in enumerate("abc")}
    for column in columns.values():
        column[0] = 1.0  # the largest, so that nothing is rounded
    assert not any("nan" in text for text in inverses(columns, law(**columns), is_broad=is_broad))


def test_an_input_that_is_the_same_everywhere_has_no_term():
    y = A / (A + 0.7) * B / (B + 1.9) * C**0.7
    assert inverses({"a": A, "same": np.ones(80), "b": B, "c": C}, y)[0].count("same") == 0


@pytest.mark.parametrize(
    ("counts", "bits", "digits", "is_misfit", "expected"),
    [
        ([5000, FEWEST, FEWEST + 1], [0.0, -9.0, -9.0], 1.0, False, [False, False, False]),
        ([5000, 10_000, FEWEST], [0.0, -9.0, -9.0], 1.0, True, [False, False, False]),
        ([5000, 10_000, FEWEST], [0.0, -9.0, -9.0], 1.0, False, [False, False, True]),
        ([5000, 10_000, FEWEST], [0.0, -9.0, -9.0], 9.0, False, [False, False, False]),
        ([5000, FEWEST - 5000, 2 * FEWEST], [0.0, -9.0, -9.5], 1.0, False, [False, False, False]),
    ],
)
def test_a_noisy_search_is_over_where_the_last_gain_is_long_ago(counts, bits, digits, is_misfit, expected):
    given = iter(bits)
    progress = Stagnation(
        SimpleNamespace(description_length=lambda *_: np.array([next(given)])), lambda _: False, lambda _: is_misfit
    )
    elites = SimpleNamespace(objective=np.zeros(1), measures=np.zeros((1, 2)), solution=np.zeros((1, 1)))
    over = []
    for count in counts:
        search = SimpleNamespace(counters=SimpleNamespace(evaluations=count), archived=lambda: elites)
        over.append(progress.is_over(search, digits))
    assert over == expected


def test_neighbours_share_what_a_formula_lacks_but_not_noise():
    points = RNG.uniform(0.0, 5.0, (150, 2))
    lacking = 0.01 * np.sin(points[:, 0]) * points[:, 1]
    assert are_shared(points, lacking)
    assert not are_shared(points, RNG.normal(size=150))
    assert not are_shared(points, lacking + 0.1 * RNG.normal(size=150))


def test_a_search_is_over_a_fifth_of_its_evaluations_after_a_law_but_not_after_an_approximation():
    progress = Stagnation(SimpleNamespace(), lambda words: words[0] == 7, lambda _: False)
    over = []
    for count, sizes in [(50_000, [9, 20]), (100_000, [9, 7]), (119_999, [9, 7]), (120_000, [9, 7])]:
        elites = SimpleNamespace(
            objective=np.full(2, 12.0), measures=np.stack([sizes, np.zeros(2)], axis=1), solution=np.array(sizes)[:, None]
        )
        search = SimpleNamespace(counters=SimpleNamespace(evaluations=count), archived=lambda elites=elites: elites)
        over.append(progress.has_law(search, 12.0))
    assert over == [False, False, False, True]


@pytest.mark.parametrize(
    ("truth", "noise", "expected"),
    [
        (lambda a: 3.4 * a**0.75, lambda y, draws: 0.1 * y * draws, True),
        (lambda a: 2e9 * np.exp(-18.0 / a), lambda y, draws: 0.03 * y * draws, True),
        (lambda a: 3.4 * a**2, lambda y, draws: 0.05 * draws, False),
        (lambda a: 3.4 * a**2, lambda y, draws: 0.0 * draws, False),
        (lambda a: a - 30.0, lambda y, draws: 0.1 * y * draws, False),
    ],
)
def test_noise_in_proportion_is_told_from_noise_that_is_the_same_everywhere(truth, noise, expected):
    a = np.exp(RNG.uniform(0.0, 5.0, 200))
    y = truth(a) + noise(truth(a), RNG.normal(size=200))
    weights = proportional_weights({"a": a}, y)
    assert (weights is not None) == expected
    if weights is not None:
        assert np.std(np.log(weights * truth(a) ** 2)) < 0.1


@pytest.mark.parametrize("shape", [(1,), (63,), (200,), (130, 7), (64, 64)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.99, 1.0])
def test_the_smallest_values_come_in_order_of_equals_the_first_and_nan_last(shape, share):
    rng = np.random.default_rng(1)
    values = np.where(rng.random(shape) < share, np.nan, rng.integers(0, 40, shape))
    order = sorted(range(values.size), key=lambda place: (np.isnan(values.flat[place]), np.nan_to_num(values.flat[place]), place))
    for count in (1, 5, 48):
        assert smallest(values, count).tolist() == order[:count]
