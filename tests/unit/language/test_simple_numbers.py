"""evo.language.simple_numbers: which numbers stand for a value that is known to a deviation."""

import math

import numpy as np
import pytest

from evo.language.simple_numbers import exact_text, misfit_bits, most_bits, simplest


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


def test_a_number_is_at_most_the_largest():
    assert simplest(1.9994578, 5e-4, largest=2.0).value == 2.0 > 1.9999 >= simplest(1.9994578, 5e-4, largest=1.9999).value


def test_a_number_that_nothing_but_chance_makes_simple_stays_near_its_value():
    values = np.random.default_rng(0).uniform(1.0, 5.0, 300)
    distances = np.array([simplest(value, 0.01 * value).value / value - 1.0 for value in values]) / 0.01
    assert np.sqrt(np.mean(distances**2)) < 0.8


def test_sympy_reads_the_number_that_is_meant():
    sympy = pytest.importorskip("sympy")
    for value in (math.pi / 4, 1 / 3, -2.0, 1 / math.log(2.0), 0.5 / math.sqrt(math.pi), 5 * math.e):
        rounded = float(np.float32(value))
        text = exact_text(rounded, 2.0**-24 * abs(rounded))
        assert float(eval(text, vars(sympy))) == pytest.approx(value, rel=1e-15)
        assert not eval(text, vars(sympy)).atoms(sympy.Float)
    assert exact_text(0.73912345, 1e-9) == ""


def test_values_that_are_known_exactly_have_bits_too():
    assert [most_bits(0.0, 0.0), most_bits(0.0, 1.0)] == [-4.0, -4.0]  # of a 0 nothing is surely meant
    assert most_bits(3.0, 0.0) == most_bits(3.0, 1e-300) == 47.0  # float64's, less 4 and a few of rounding
    assert [misfit_bits(0.0, 0.0), misfit_bits(1.0, 0.0)] == [0.0, math.inf]
    assert exact_text(0.5, 0.0) == "Rational(1, 2)"
