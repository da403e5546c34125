"""evo.search.learned_measures: principal components in units of their quantiles, which go on exactly."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from evo.search.learned_measures import LearnedMeasures

NUM_OUTPUTS = 7


def outputs_of(words: np.ndarray) -> np.ndarray:
    """Seven numbers for each program, mixtures of the three that its words are: `(n, 7)` float32."""
    mixture = np.random.default_rng(3).normal(size=(3, NUM_OUTPUTS)) * [[3.0], [1.0], [0.1]]
    return (words.astype(float) / 1000.0 @ mixture[: words.shape[1]]).astype(np.float32)


def programs(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1000, (count, 3)).astype(np.uint64)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_measures_are_principal_components_in_units_of_their_quantiles(count):
    fitted, others = programs(200), programs(50, seed=2)
    learned = LearnedMeasures(outputs_of, count)
    explained = learned.fit(fitted)
    rows = outputs_of(fitted).astype(float)
    reference = PCA(count).fit(rows)
    greatest = reference.components_[range(count), np.abs(reference.components_).argmax(axis=1)]
    components = reference.components_ * np.sign(greatest)[:, None]

    def expected(words):
        mean = rows.mean(axis=0)
        ordered = np.sort((rows - mean) @ components.T, axis=0)
        low, high = ordered[1], ordered[197]  # of 200: the least with at least 1 and 99 percent up to it
        return ((outputs_of(words) - mean) @ components.T - low) / (high - low)

    np.testing.assert_allclose(learned.of(fitted), expected(fitted), atol=1e-4)
    np.testing.assert_allclose(learned.of(others), expected(others), atol=1e-4)
    assert explained == pytest.approx(reference.explained_variance_ratio_.sum(), abs=1e-5)


def test_a_component_without_variance_is_in_the_middle():
    learned = LearnedMeasures(outputs_of, 2)
    words = programs(40)
    words[:, 1:] = 0  # all on a line
    assert learned.fit(words) == pytest.approx(1.0)
    measures = learned.of(words)
    np.testing.assert_array_equal(measures[:, 1], 0.5)
    assert np.ptp(measures[:, 0]) >= 1.0
    assert learned.fit(words[:1]) == 1.0
    np.testing.assert_array_equal(learned.of(words[:1]), [[0.5, 0.5]])


def test_it_is_due_whenever_evaluations_have_doubled():
    learned = LearnedMeasures(outputs_of, 2)
    assert not learned.is_fitted
    learned.fit(programs(40), 100)
    assert learned.is_fitted
    assert [learned.is_due(count) for count in (100, 199, 200, 900)] == [False, False, True, True]
    learned.fit(programs(40), 230)
    assert [learned.is_due(count) for count in (459, 460)] == [False, True]


def test_a_fit_forgets_what_was_learned_before():
    one, two = LearnedMeasures(outputs_of, 2), LearnedMeasures(outputs_of, 2)
    one.fit(programs(100, seed=5) * np.array([1, 0, 9], np.uint64))
    for learned in (one, two):
        learned.fit(programs(60))
    np.testing.assert_array_equal(one.of(programs(9, seed=4)), two.of(programs(9, seed=4)))


def test_arrays_give_back_what_was_learned():
    learned = LearnedMeasures(outputs_of, 2)
    new = LearnedMeasures(outputs_of, 2, learned.arrays())
    assert not new.is_fitted
    learned.fit(programs(60), 17)
    again = LearnedMeasures(outputs_of, 2, learned.arrays())
    np.testing.assert_array_equal(again.of(programs(9, seed=4)), learned.of(programs(9, seed=4)))
    assert again.is_due(34) and not again.is_due(33)
    with pytest.raises(ValueError, match="other options"):
        LearnedMeasures(outputs_of, 3, learned.arrays())
