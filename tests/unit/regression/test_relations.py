"""First formulas of exact data: each of these laws is one of them, to rounding, and noise has none."""

import numpy as np
import pytest

from evo.regression.curves import curves
from evo.regression.relations import relations

RNG = np.random.default_rng(7)
COLUMNS = dict(zip("abcd", RNG.uniform(0.5, 5.0, (4, 60)), strict=True)) | {"s": RNG.uniform(-3.0, 3.0, 60)}
NAMES = {name: getattr(np, name) for name in ("exp2", "log2", "sqrt")}
RELATIONS = {
    "oscillator": lambda a, b, c: c / np.sqrt((a**2 - b**2) ** 2 + (0.3 * b) ** 2),
    "thick cylinder": lambda a, b, c, d: d * a**2 * (1.0 + b**2 / c**2) / (1.1 * b**2 + a**2),
    "Doppler": lambda a, b, c: a * (34.3 + b) / (34.3 - c),
    "plume": lambda a, b, c, d: a / (b * c) * np.exp(-(d**2) / (2.0 * c**2)),
    "von Mises": lambda a, b, s: np.sqrt(a**2 - a * b + b**2 + 3.0 * s**2),
    "hydraulic jump": lambda a, b: a / 2.0 * (np.sqrt(1.0 + 8.0 * b**2) - 1.0),
    "lens with an input too many": lambda a, b, d: 1.0 / (1.0 / a + 1.0 / b) + 0.0 * d,
    "thermistor": lambda a, b, c: a * np.exp(b * (1.0 / c - 0.3)),
}
CURVES = {
    "logistic": lambda a: 7.0 / (1.0 + 9.2 * np.exp(-1.3 * a)),
    "charge": lambda a, b, c, d: a * (1.0 - np.exp(-b / (c * d))),
    "fall": lambda a, b: a * np.tanh(0.8 * b / a),
    "black body": lambda a, b: 3.0 / (a**5 * (np.exp(2.4 / (a * b)) - 1.0)),
    "Morse": lambda a: 4.6 * (1.0 - np.exp(-1.9 * (a - 0.74))) ** 2,
    "Hill": lambda a, b: b * a**2.6 / (3.3**2.6 + a**2.6),
}


def left(text, columns, y):
    said = eval(text, NAMES, columns)
    return 1.0 - np.corrcoef(said, y)[0, 1] ** 2 if np.isfinite(said).all() else 1.0


@pytest.mark.parametrize(
    ("first", "law"), [*((relations, law) for law in RELATIONS.values()), *((curves, law) for law in CURVES.values())]
)
def test_a_law_is_among_the_first_formulas(first, law):
    columns = {name: COLUMNS[name] for name in law.__code__.co_varnames}
    y = law(**columns)
    assert min(left(text, columns, y) for text in first(columns, y)) < 1e-12


@pytest.mark.parametrize("first", [relations, curves])
def test_noise_and_what_does_not_vary_have_none(first):
    columns = {name: COLUMNS[name] for name in "ab"}
    y = columns["a"] / (1.0 + columns["b"])
    assert first(columns, y * RNG.normal(1.0, 0.01, len(y))) == []
    assert first(columns, np.ones(len(y))) == []
    assert first({"a": np.ones(60)}, y) == []
