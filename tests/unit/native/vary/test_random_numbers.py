"""Draws of new words: expected values come from scipy or definitions, never from vary.h."""

import numpy as np
from scipy import stats

from evo.language.program import word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import Draw, program_lengths

F32, U32, S32 = 0, 1, 2


def floats(words):
    return (words >> np.uint64(32)).astype(np.uint32).view(np.float32)


def constants(make, draw, params, num_programs=2000, stack=F32):
    entries = [(word(WordType.CONSTANT, stack), 1.0, draw, params)]
    programs = make(entries, initial_min_length=50, initial_max_length=50).random_programs(3, 0, 0, num_programs, 50)
    assert (programs & np.uint64(0xFFFFFFFF) == word(WordType.CONSTANT, stack)).all()
    return programs.ravel()


def test_gaussian_constants_have_mean_deviation_and_law(make, assert_law):
    values = floats(constants(make, Draw.GAUSSIAN, (1.5, 3.0))).astype(np.float64)
    standard = (values - 1.5) / 3.0
    assert_law(standard, stats.norm.cdf)
    n = len(standard)
    # Standard errors of the first four moments of a Gaussian.
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((standard**power).mean() - moment) < 4 * np.sqrt(variance / n)


def test_uniform_constants_are_even_in_their_range(make, assert_law):
    values = floats(constants(make, Draw.UNIFORM, (-2.0, 6.0))).astype(np.float64)
    assert values.min() >= -2.0 and values.max() <= 6.0
    assert_law(values, stats.uniform(-2.0, 8.0).cdf)


def test_initial_lengths_are_even_in_their_range(make, assert_chi_square, assert_valid):
    programs = make(initial_min_length=5, initial_max_length=24).random_programs(4, 0, 0, 20_000, 64)
    lengths = program_lengths(programs)
    assert lengths.min() == 5 and lengths.max() == 24
    assert_chi_square(np.bincount(lengths)[5:], np.ones(20))
    assert_valid(programs)
