"""evo.search.map_elites: against a plain Python archive, and with every program evaluated at most once."""

import numpy as np
import pytest

from evo.language.batch import Batch
from evo.search.state import Counters

from .conftest import SteppedSearch, WordEvaluator


class RecordedSearch(SteppedSearch):
    """A search whose programs, hashes and origins are kept for each generation."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.asked: list[dict] = []
        ask = self.emitter.ask

        def recorded_ask(*arguments):
            elites = self.restarts.population.elites()
            words = ask(*arguments)
            hashes = [tuple(h) for h in self.lowering.analyze(words)[0].tolist()]
            parents = self.emitter.origin.parents.tolist()
            elite_hashes = {cell: tuple(h) for cell, h in zip(elites.cell.tolist(), elites.hash.tolist(), strict=True)}
            self.asked.append({"words": words.copy(), "hashes": hashes, "parents": parents, "elite_hashes": elite_hashes})
            return words

        self.emitter.ask = recorded_ask


@pytest.fixture
def search(new_search, language):
    return RecordedSearch(new_search(), language)


def hashes_of(search: RecordedSearch, rows: list[np.ndarray]) -> list[tuple]:
    return [tuple(h) for h in search.lowering.analyze(np.array(rows))[0].tolist()] if rows else []


def plain_map_elites(search: RecordedSearch) -> dict[int, tuple]:
    """The elites that the archive must hold: cell -> (objective, generation, slot, hash), by the rules alone."""
    archive, first_result = {}, {}
    for generation, asked in enumerate(search.asked):
        for slot, (row, key) in enumerate(zip(asked["words"], asked["hashes"], strict=True)):
            # Programs of one hash compute the same; the first one seen speaks for all of them.
            result = first_result.setdefault(key, WordEvaluator.score(row))
            if result is None:
                continue
            objective, measures = result
            i = min(int(max(measures[0], 0.0) / 12.0 * 6), 5)
            j = min(int(max(measures[1], 0.0) / 1.0 * 5), 4)
            if i * 5 + j not in archive or objective > archive[i * 5 + j][0]:
                archive[i * 5 + j] = (objective, generation, slot, key)
    return archive


def found_elites(search: RecordedSearch) -> dict[int, tuple]:
    e = search.archive.elites()
    rows = zip(e.cell.tolist(), e.objective.tolist(), e.generation.tolist(), e.slot.tolist(), e.hash.tolist(), strict=True)
    return {cell: (objective, generation, slot, tuple(key)) for cell, objective, generation, slot, key in rows}


def test_the_archive_is_that_of_plain_map_elites(search):
    search.run(12)
    expected = plain_map_elites(search)
    assert found_elites(search) == expected
    assert len(expected) > 10
    assert len({generation for _, generation, _, _ in expected.values()}) > 3


def test_no_hash_is_evaluated_twice_and_none_is_left_out(search):
    search.run(12)
    evaluated = hashes_of(search, search.evaluator.evaluated)
    assert len(evaluated) == len(set(evaluated))
    assert set(evaluated) == {key for asked in search.asked for key in asked["hashes"]}


def test_a_small_memory_costs_evaluations_but_changes_no_elite(new_search, language):
    class ByHash(WordEvaluator):
        """Programs of one hash score the same, as real ones do."""

        def evaluate(self, batch):
            return super().evaluate(Batch(batch.hashes, batch.hashes, batch.num_instructions))

    large, small = (RecordedSearch(new_search(), language, evaluator=ByHash(), capacity=capacity) for capacity in (10_000, 8))
    large.run(10)
    small.run(10)
    assert small.counters.evaluations > large.counters.evaluations
    assert found_elites(small) == found_elites(large)


def test_the_counters_count_what_happened(search):
    search.run(12)
    counters, asked = search.counters, search.asked
    evaluated = [WordEvaluator.score(row) for row in search.evaluator.evaluated]
    scored = [result for result in evaluated if result is not None]
    assert counters.generations == 12
    assert counters.offspring == 40 + 11 * 30
    assert counters.evaluations == len(evaluated)
    assert counters.duplicates == counters.offspring - counters.evaluations > 0
    assert counters.rejected == len(evaluated) - len(scored) > 0
    assert counters.out_of_range == sum(not (0 <= a <= 12 and 0 <= b <= 1) for _, (a, b) in scored) > 0
    neutral = sum(
        key in [a["elite_hashes"].get(cell) for cell in cells]
        for a in asked
        for key, cells in zip(a["hashes"], a["parents"], strict=True)
    )
    assert counters.neutral == neutral > 0


def test_each_generation_reports_the_archive_as_it_is_then(search):
    before: dict[int, tuple] = {}
    for number in range(8):
        (generation,) = search.run(1)
        elites = found_elites(search)
        assert generation.num_elites == len(elites)
        assert generation.coverage == len(elites) / 30
        assert generation.qd_score == pytest.approx(sum(e[0] for e in elites.values()))
        assert generation.best_objective == max(e[0] for e in elites.values())
        assert generation.num_inserted == sum(before.get(cell) != elite for cell, elite in elites.items())
        assert generation.num_inserted == sum(elite[1] == number for elite in elites.values())
        assert all(seconds >= 0 for seconds in generation.stats.times_s.values())
        before = elites


def test_each_start_breeds_from_its_own_elites_and_then_all_are_bred_from(new_search, language):
    search = RecordedSearch(new_search(num_starts=2, start_generations=4), language)
    one_start = RecordedSearch(new_search(), language)
    one_start.run(4)
    populations = []
    for number in range(10):
        before = found_elites(search)
        search.run(1)
        asked, population = search.asked[-1], search.restarts.population
        if number in (0, 4):
            assert len(asked["words"]) == 40 and np.all(np.array(asked["parents"]) == -1)
        else:
            assert len(asked["words"]) == 30 and np.all(np.array(asked["parents"])[:, 0] >= 0)
        assert (population is search.archive) == (number >= 8)
        assert all(found_elites(search)[cell][0] >= elite[0] for cell, elite in before.items())
        if number == 3:
            assert found_elites(search) == found_elites(one_start)
        populations.append({tuple(h) for h in population.elites().hash.tolist()})
    kept = {tuple(h) for h in search.archive.elites().hash.tolist()}
    assert populations[9] == kept
    assert kept & populations[3] and kept & populations[7]  # of both starts
    assert len(search.memory) < search.counters.evaluations


@pytest.mark.parametrize(
    ("starts", "pause"), [({}, 1), ({}, 5), *(({"num_starts": 2, "start_generations": 4}, pause) for pause in (2, 4, 6, 8, 9))]
)
def test_a_search_rebuilt_from_its_state_goes_on_as_if_nothing_had_happened(new_search, language, starts, pause):
    whole, first = (RecordedSearch(new_search(**starts), language, capacity=100) for _ in range(2))
    whole.run(11)
    first.run(pause)
    made = new_search(generation=pause, **starts)
    second = RecordedSearch(made, language, capacity=100, counters=Counters(**vars(first.counters)))
    second.restore(first, new_search().archive)
    second.run(11 - pause)
    assert found_elites(second) == found_elites(whole)
    assert second.counters == whole.counters
    for name in ("num_founders", "largest_share"):
        assert getattr(second.lineage, name) == getattr(whole.lineage, name)
    for one, other in ((second.memory, whole.memory), (second.lineage, whole.lineage)):
        for name, array in other.arrays().items():
            np.testing.assert_array_equal(one.arrays()[name], array)
    for name in ("facts", "words"):
        np.testing.assert_array_equal(getattr(second.lineage.records(), name), getattr(whole.lineage.records(), name))


def test_a_generation_in_which_every_program_fails_leaves_an_empty_archive(new_search, language, recwarn):
    class Failing(WordEvaluator):
        @staticmethod
        def score(row):
            return None

    made = new_search()
    made.evaluator = Failing()
    search = RecordedSearch(made, language)
    generations = search.run(3)
    assert [g.num_elites for g in generations] == [0, 0, 0]
    assert generations[-1].qd_score == 0.0 and np.isnan(generations[-1].best_objective)
    assert search.counters.rejected == search.counters.evaluations
    assert not recwarn.list
