"""evo.search.prescreen: it finds more where features tell the outcome, and resumes exactly."""

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import integrate, stats

from evo.evaluate import Evaluation, Status
from evo.language.batch import Batch
from evo.search.prescreen import LearningOptions, Prescreen, _ranks, expected_improvement
from evo.search.state import Counters

from .conftest import SteppedSearch

DEAR = 1000.0


def numbers_of(words: np.ndarray, salt: int) -> np.ndarray:
    """Three numbers in [0, 1) for each program, drawn from its words: `(n, 3)`. Trailing zeros do not count."""
    total = np.zeros(len(words), np.uint64)
    for place in range(words.shape[1]):
        mixed = (words[:, place] + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(place)
        total += np.where(words[:, place] > 0, mixed * np.uint64(0xBF58476D1CE4E5B9), np.uint64(0))
    return np.stack([(total >> np.uint64(shift) & np.uint64(0xFFFF)) / 65536.0 for shift in (44, 28, 12)], axis=1)


class Drawn:
    """Scores by `numbers_of`; one in sixteen is rejected."""

    def __init__(self, salt: int):
        self.salt, self.batches = salt, []

    def evaluate(self, batch):
        self.batches.append(batch.words)
        numbers = numbers_of(batch.words, self.salt)
        numbers[numbers[:, 0] < 1 / 16] = np.nan
        ok = np.isfinite(numbers[:, 0])
        status = np.where(ok, Status.OK, Status.REJECTED).astype(np.uint8)
        return Evaluation(status, numbers[:, 0] ** 2, numbers[:, 1:] * [12.0, 1.0])


class ScreenedSearch(SteppedSearch):
    """A search with a prescreen. Its features are the numbers that the outcome is made of if `salt` is 1."""

    def __init__(self, search, language, *, salt=1, options=None, arrays=None, memory=None, counters=None):
        self.prescreen = None
        if options:
            self.prescreen = Prescreen(
                options,
                lambda words: numbers_of(words, 1).astype(np.float32),
                num_measures=2,
                seed=7,
                arrays=arrays,
            )
        super().__init__(search, language, evaluator=Drawn(salt), capacity=100_000, counters=counters, prescreen=self.prescreen)
        if memory:
            self.memory.restore(memory)


OPTIONS = LearningOptions(prescreen=4, window=300, evaluation_cost=DEAR)


@pytest.fixture
def make(new_search, language):
    def make(*, generation=0, **arguments):
        return ScreenedSearch(new_search(generation=generation, num_initial=60, batch_size=60), language, **arguments)

    return make


@pytest.mark.parametrize(("salt", "low", "high"), [(1, 2.0, 4.1), (2, 0.0, 1.5)])
def test_where_features_tell_the_outcome_more_of_the_chosen_beat_their_cells(make, language, salt, low, high):
    search = make(salt=salt, options=OPTIONS)
    search.run(6)
    assert search.prescreen.begin(search.archive, is_fresh=False) == 4
    words = search.emitter.ask(4)
    chosen = search.prescreen.choose(words, np.ones(240, bool), search.emitter.origin.parents, search.archive)
    found = search.evaluator.evaluate(Batch.analyze(language.lowering, words))
    incumbent = search.archive.scores(search.archive.index_of(np.nan_to_num(found.measures)))[0]
    beats = found.objective > np.nan_to_num(incumbent, nan=-1.0)
    assert low < beats[chosen].mean() / beats.mean() < high


@pytest.mark.parametrize("cost", [None, 63.0])
def test_a_prescreen_needs_an_evaluation_that_is_dear(cost):
    assert LearningOptions(prescreen=16, evaluation_cost=64.0).prescreen == 16
    with pytest.raises(ValidationError, match="of at least 4 for each of its 16 offspring: with less it loses"):
        LearningOptions(prescreen=16, evaluation_cost=cost)


def test_offspring_are_screened_but_for_the_first_generation(make):
    search = make(options=OPTIONS)
    made = []
    ask = search.emitter.ask
    search.emitter.ask = lambda *arguments: made.append(ask(*arguments)) or made[-1]
    search.run(5)
    assert [len(words) for words in made] == [60, *[240] * 4]
    assert [len(batch) for batch in search.evaluator.batches[1:]] == [60] * 4
    counters = search.counters
    assert counters.offspring == counters.evaluations + counters.duplicates + counters.screened
    for words, batch in zip(made, search.evaluator.batches, strict=True):  # in the order of their slots
        rows = [row.tobytes() for row in words]
        places = [rows.index(row.tobytes()) for row in batch]
        assert places == sorted(places)


@pytest.mark.parametrize(("pause", "salt"), [(6, 1), (19, 2)])
def test_a_search_rebuilt_from_its_state_goes_on_as_if_nothing_had_happened(make, pause, salt):
    whole, first = (make(salt=salt, options=OPTIONS) for _ in range(2))
    whole.run(24)
    first.run(pause)
    second = make(
        salt=salt,
        options=OPTIONS,
        generation=pause,
        arrays=first.prescreen.arrays(),
        memory=first.memory.arrays(),
        counters=Counters(**vars(first.counters)),
    )
    second.archive.restore(first.archive.elites())
    second.run(24 - pause)
    assert second.counters == whole.counters
    for one, two in zip(vars(second.archive.elites()).values(), vars(whole.archive.elites()).values(), strict=True):
        np.testing.assert_array_equal(one, two)
    for name, array in whole.prescreen.arrays().items():
        np.testing.assert_array_equal(second.prescreen.arrays()[name], array)


def test_a_worse_incumbent_promises_more(make):
    search = make(options=OPTIONS)
    search.run(2)
    elites = search.archive.elites()
    rows = [elites.objective.argmax(), elites.objective.argmin()]
    means = np.column_stack([elites.objective[rows[:1] * 2], elites.measures[rows]])
    predicted = np.stack([means, np.full_like(means, 1e-3)]).astype(np.float32)
    assert search.prescreen._picked(predicted, search.archive, 1).tolist() == [1]


def test_the_best_of_a_cell_counts_before_its_others():
    gain = np.array([0.5, 0.2, 0.9, 0.5, 0.4])
    assert _ranks(np.array([3, 1, 3, 3, 1]), gain).tolist() == [2, 2, 1, 3, 1]
    assert _ranks(np.zeros(0, np.int64), np.zeros(0)).tolist() == []


@pytest.mark.parametrize("ahead", [-3.0, -0.5, 0.0, 0.7, 2.0])
def test_expected_improvement_is_the_integral_over_students_distribution(ahead):
    deviation = 1.7
    student = stats.t(df=2, scale=deviation / np.sqrt(np.pi))
    expected, _ = integrate.quad(lambda x: (ahead + x) * student.pdf(x), -ahead, np.inf)
    found = expected_improvement(np.array([ahead]), np.array([deviation]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if ahead == 0.0:  # as of a normal distribution
        np.testing.assert_allclose(found, deviation * stats.norm.pdf(0.0), rtol=1e-12)
