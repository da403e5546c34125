"""evo.language.simple_numbers: which numbers stand for a value that is known to a deviation."""

import math

import numpy as np
import pytest

from evo.language.simple_numbers import exact_text, f32_number, simplest


@pytest.mark.parametrize(
    ("value", "deviation", "expected"),
    [
        (1.9994578, 5e-4, 2.0),
        (0.0795774724139733, 1e-9, 1 / (4 * math.pi)),
        (math.pi / 4 + 1e-6, 1e-5, math.pi / 4),
        (0.333333, 1e-5, 1 / 3),
        (0.3989423, 1e-7, 1 / math.sqrt(2 * math.pi)),
        (-1.4142133, 1e-6, -math.sqrt(2)),
        (6.49e-8, 1e-7, 0.0),
        (1.23456, 0.01, 1.23),
        (2.003, 1e-4, 2.003),  # 30 deviations from 2
        (1e22, 1e16, 1e22),
    ],
)
def test_the_simplest_number_within_the_noise(value, deviation, expected):
    assert simplest(value, deviation).value == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_a_refused_number_is_not_chosen_again():
    assert simplest(1.9994578, 5e-4, frozenset({2.0})).value not in (2.0, 1.9994578)


def test_sympy_reads_the_number_that_is_meant():
    sympy = pytest.importorskip("sympy")
    for value in (math.pi / 4, 1 / 3, -2.0, 1 / math.log(2.0), 0.5 / math.sqrt(math.pi), 5 * math.e):
        rounded = float(np.float32(value))
        text = exact_text(rounded, 2.0**-24 * abs(rounded))
        assert float(eval(text, vars(sympy))) == pytest.approx(value, rel=1e-15)
        assert not eval(text, vars(sympy)).atoms(sympy.Float)
    assert exact_text(0.73912345, 1e-9) == ""


def test_random_numbers_are_not_simple():
    values = np.random.default_rng(0).normal(size=500).astype(np.float32)
    assert sum(f32_number(float(value)).bits < 20.0 for value in values) <= 5
