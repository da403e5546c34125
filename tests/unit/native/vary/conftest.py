"""Shared by tests of variation: vocabularies, options, programs, and tests of laws.

Seeds are fixed, so each test of a law always passes or always fails; `P_VALUE` only sets how wrong a law must be to fail.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from evo.language.program import word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS, RATES, Draw, Variation, program_lengths

P_VALUE = 1e-3
F32, U32, S32 = 0, 1, 2  # stacks of constants

# Entries: word, weight, draw, params.
MIXED = [
    (word(WordType.PTX, 0, 5), 3.0, Draw.LITERAL, (0, 0)),
    (word(WordType.INPUT, 0, 1), 2.0, Draw.LITERAL, (0, 0)),
    (word(WordType.CONSTANT, F32), 1.0, Draw.GAUSSIAN, (0.5, 2.0)),
    (word(WordType.CONSTANT, F32), 1.0, Draw.UNIFORM, (-1.0, 3.0)),
    (word(WordType.CONSTANT, U32), 0.5, Draw.INTEGER, (0, 10)),
    (word(WordType.CONSTANT, S32), 0.5, Draw.INTEGER, (-3, 4)),
    (word(WordType.META_CONSTANT), 0.5, Draw.INTEGER, (0, 4)),
]
OPTIONS = {
    "operator_weights": dict.fromkeys(("umad", "alternation", "crossover", "perturbation", "replacement"), 1.0),
    "umad_addition_rate": 0.09,
    "umad_deletion_rate": 0.0826,
    "alternation_rate": 0.01,
    "alternation_deviation": 10.0,
    "perturbation_rate": 0.3,
    "perturbation_relative": 0.1,
    "perturbation_absolute": 0.2,
    "replacement_rate": 0.05,
    "initial_min_length": 1,
    "initial_max_length": 40,
    "float_stacks": 1 << F32,
    "unsigned_stacks": 1 << U32,
    "signed_stacks": 1 << S32,
}


@pytest.fixture(scope="session")
def make():
    """Makes a Variation of entries (word, weight, draw, params) and options; `only` gives all weight to one operator."""

    def make_variation(entries=MIXED, only: str | None = None, num_words=None, **options) -> Variation:
        options = {**OPTIONS, **{rate.key: rate.default for rate in RATES if rate.key not in OPTIONS}, **options}
        weights = options["operator_weights"] if only is None else {only: 1.0}
        if isinstance(weights, dict):
            options["operator_weights"] = tuple(weights.get(name, 0.0) for name in OPERATORS)
        words, weights, draws, params = zip(*entries, strict=True)
        return Variation(
            np.array(words, np.uint64),
            np.array(weights, np.float64),
            np.array(draws, np.uint32),
            np.array(params, np.float64),
            SimpleNamespace(**options),
            num_words,
        )

    return make_variation


@pytest.fixture(scope="session")
def row():
    """Stores words as a row: the words, a RETURN if there is room, zeros."""

    def make_row(words, max_length: int) -> np.ndarray:
        full = np.zeros(max_length, np.uint64)
        full[: len(words)] = words
        if len(words) < max_length:
            full[len(words)] = WordType.RETURN
        return full

    return make_row


@pytest.fixture(scope="session")
def distinct_programs(row):
    """Programs in which the payload of each word holds its program (// 10,000) and its place (% 10,000)."""

    def make_programs(num_programs: int, length: int, max_length: int) -> np.ndarray:
        words = [[word(WordType.PTX, 0, 10_000 * p + i) for i in range(length)] for p in range(num_programs)]
        return np.array([row(program, max_length) for program in words])

    return make_programs


@pytest.fixture(scope="session")
def assert_binomial():
    """Fails if this many successes are unlikely."""

    def check(successes, trials, probability: float) -> None:
        assert stats.binomtest(int(successes), int(trials), probability).pvalue > P_VALUE, (
            successes / trials,
            probability,
        )

    return check


@pytest.fixture(scope="session")
def assert_chi_square():
    """Fails if such counts are unlikely."""

    def check(counts, probabilities) -> None:
        counts, probabilities = np.asarray(counts), np.asarray(probabilities, float)
        assert stats.chisquare(counts, counts.sum() * probabilities / probabilities.sum()).pvalue > P_VALUE, counts

    return check


@pytest.fixture(scope="session")
def assert_law():
    """Fails if such values are unlikely for a distribution function (Kolmogorov and Smirnov)."""

    def check(values, cdf) -> None:
        assert stats.kstest(np.asarray(values, float), cdf).pvalue > P_VALUE

    return check


@pytest.fixture(scope="session")
def assert_valid():
    """Fails unless every row is valid: RETURN after the program, then zeros; finite f32 constants."""

    def check(rows: np.ndarray) -> None:
        max_length = rows.shape[1]
        types, stacks = rows & np.uint64(0xFFFF), rows >> np.uint64(16) & np.uint64(0xFFFF)
        ends = types == WordType.RETURN
        lengths = np.where(ends.any(axis=1), ends.argmax(axis=1), max_length)
        np.testing.assert_array_equal(program_lengths(rows), lengths)
        places = np.arange(max_length)
        tail = places > lengths[:, None]
        assert (rows[tail] == 0).all()
        assert (rows[places == lengths[:, None]] == WordType.RETURN).all()
        constants = rows[(types == WordType.CONSTANT) & (stacks == F32) & ~tail]
        assert np.isfinite((constants >> np.uint64(32)).astype(np.uint32).view(np.float32)).all()

    return check
