"""Groups of inputs: the products and sums that a law has, as its formula says, and none where it has none."""

import numpy as np
import pytest

from evo import SymbolicRegressor
from evo.regression.groups import groups_of

RNG = np.random.default_rng(3)
COLUMNS = dict(zip("abcdefgh", RNG.uniform(1.0, 5.0, (8, 300)), strict=True)) | {"s": RNG.uniform(-3.0, 3.0, 300)}


def barometer(a, b, c, d, e, f):
    return a * np.exp(-b * c * d / (e * f))


def gravity(a, b, c, d, e, f, g):
    return a * b / c * ((d - e) ** 2 + (f - g) ** 2 + 1.0)


# The law; powers of the product; those of the groups, or the factors of their sums.
LAWS = {
    "barometer": (barometer, (1, 0, 0, 0, 0, 0), [(0, 1, 1, 1, -1, -1)]),
    "work of a gas, of both signs": (lambda a, b, c, d: a * b * np.log(c / d), (1, 1, 0, 0), [(0, 0, 1, -1)]),
    "wave": (lambda a, b, s: a * b**2 * np.sin(s), (1, 2, 0), [(0, 0, 1)]),
    "roots": (lambda a, b, c: np.sqrt(a / b) * (1.0 + b * c**2), (0.5, -0.5, 0), [(0, 1, 2)]),
    "an input too many": (lambda a, b, s: np.tanh(a * b / 9.0) + 0.0 * s, (0, 0, 0), [(1, 1, 0)]),
    "gravity": (gravity, (1, 1, -1, 0, 0, 0, 0), [(0, 0, 0, 1, -1, 0, 0), (0, 0, 0, 0, 0, 1, -1)]),
}
NONE = {
    "a product alone": lambda a, b: 3.0 * a**2 / b,
    "a sum of unlike terms": lambda a, b: np.exp(a) + np.sin(2.0 * b),
    "noise": lambda a, b, c: RNG.standard_normal(len(a)),
    "constant": lambda a, b: a * 0.0 + 2.0,
    "one input": lambda a: a * np.exp(a),
}


def inputs_of(law):
    return {name: COLUMNS[name] for name in law.__code__.co_varnames[: law.__code__.co_argcount]}


def spanned(groups):
    """A form that all groups of the same span share, up to signs."""
    return {max(tuple(map(float, each)), tuple(-float(power) for power in each)) for each in groups}


@pytest.mark.parametrize(("law", "product", "groups"), LAWS.values(), ids=LAWS)
def test_groups_are_those_of_the_formula(law, product, groups):
    inputs = inputs_of(law)
    found = groups_of(inputs, law(**inputs))
    assert spanned(found.groups) == spanned(groups)
    assert found.are_sums == (law is gravity)
    # The product counts up to powers of the groups.
    more = np.linalg.lstsq(np.array(groups, float).T, np.array(found.product, float) - np.array(product), rcond=None)
    assert len(more[1]) == 0 or np.abs(more[1]).max() < 1e-12
    assert not found.are_sums or found.product == tuple(product)


@pytest.mark.parametrize("law", NONE.values(), ids=NONE)
def test_there_are_no_groups_where_a_law_has_none(law):
    inputs = inputs_of(law)
    assert groups_of(inputs, law(**inputs)) is None


@pytest.mark.parametrize("law", [barometer, gravity])
def test_a_fit_finds_laws_of_many_inputs_by_their_groups(law):
    inputs = inputs_of(law)
    x, y = np.stack([*inputs.values()], axis=1), law(**inputs)
    model = SymbolicRegressor(max_time=None, max_evaluations=3000, random_state=1).fit(x, y)
    assert np.mean((model.predict(x) - y) ** 2) < 1e-9 * y.var()
