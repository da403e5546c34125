"""evo.search.lineage: records tell the truth about each elite's parents, survive saving, and stay within their bound."""

import itertools

import numpy as np
import pytest

from evo.search.lineage import Lineage
from evo.search.lineage_records import NONE, RECORD_DTYPE, lines_of

from .test_map_elites import RecordedSearch


@pytest.fixture
def make_search(new_search, language):
    def make(max_bytes: int = 1 << 20) -> RecordedSearch:
        return RecordedSearch(new_search(), language, max_bytes=max_bytes)

    return make


def hash_of(record) -> tuple:
    return tuple(record["hash"].tolist())


def test_each_elites_record_has_its_program_and_its_parents(make_search):
    search = make_search()
    search.run(15)
    elites, records = search.archive.elites(), search.lineage.records()
    numbers = search.lineage.numbers(elites.cell)
    facts = records.facts
    np.testing.assert_array_equal(facts["number"], np.arange(len(facts)))
    np.testing.assert_array_equal(records.programs(numbers, elites.solution.shape[1]), elites.solution)
    for name in ("hash", "objective", "generation", "slot", "operator", "cell"):
        np.testing.assert_array_equal(facts[name][numbers], getattr(elites, name))
    num_parents = 0
    for record in facts:
        asked = search.asked[record["generation"]]
        for number, cell in zip(record["parents"].tolist(), asked["parents"][record["slot"]], strict=True):
            if cell < 0:
                assert number == NONE
            else:
                assert hash_of(facts[number]) == asked["elite_hashes"][cell]
                num_parents += 1
    assert num_parents > 50


def test_a_line_leads_back_to_a_random_program(make_search):
    search = make_search()
    search.run(15)
    facts = search.lineage.records().facts
    lengths = []
    numbers = search.lineage.numbers(search.archive.elites().cell)
    for number, line in zip(numbers.tolist(), lines_of(facts, numbers), strict=True):
        assert line[-1] == number
        assert facts["parents"][line[0]].tolist() == [NONE, NONE]
        for parent, child in itertools.pairwise(line):
            assert facts["parents"][child, 0] == parent
        lengths.append(len(line))
    assert max(lengths) > 3


def test_saved_parts_together_are_all_records(make_search):
    search = make_search()
    parts = []
    for _ in range(6):
        search.run(2)
        part, is_all = search.lineage.take()
        assert is_all == (not parts)
        parts.append(part)
    whole = search.lineage.records()
    np.testing.assert_array_equal(np.concatenate([part.facts for part in parts]), whole.facts)
    np.testing.assert_array_equal(np.concatenate([part.words for part in parts]), whole.words)
    assert search.lineage.take()[1] is False
    assert len(search.lineage.take()[0]) == 0


@pytest.mark.parametrize("num_generations", [0, 3])
def test_a_restored_lineage_gives_all_records_only_if_none_were_saved(make_search, num_generations):
    search = make_search()
    search.run(num_generations)
    restored = make_search().lineage
    restored.restore(search.archive.elites(), search.lineage.arrays(), search.lineage.records())
    part, is_all = restored.take()
    assert (len(part), is_all) == (0, not num_generations)


def test_what_is_forgotten_depends_on_the_search_alone(make_search):
    whole, bounded, saved = make_search(), make_search(9000), make_search(9000)
    found = []
    for _ in range(20):
        for search in (whole, bounded, saved):
            search.run(1)
        assert bounded.lineage.records().num_bytes <= 9000
        part, is_all = saved.lineage.take()
        found = [part] if is_all else [*found, part]
    facts = bounded.lineage.records().facts
    np.testing.assert_array_equal(np.concatenate([part.facts for part in found]), facts)
    all_facts = whole.lineage.records().facts
    assert len(facts) < len(all_facts)
    np.testing.assert_array_equal(facts, all_facts[facts["number"]])
    programs = bounded.lineage.records().programs(np.arange(len(facts)), 12)
    np.testing.assert_array_equal(programs, whole.lineage.records().programs(facts["number"], 12))


def test_ancestors_of_elites_are_kept_before_others():
    """Twenty programs in one cell, each the child of the one before; then the elite of another cell, without parents."""
    chain, lonely = 20, 30
    words = np.full((1, 4), 7, np.uint64)
    fields = {"hash": np.zeros((1, 2), np.uint64), "operator": np.zeros(1, int), "slot": np.zeros(1, int)}
    yes = np.ones(1, bool)
    size = RECORD_DTYPE.itemsize + 8 * 4
    lineage = Lineage(2, (chain + lonely) * size)
    for number in range(chain + lonely + 1):
        has_parent = 0 < number < chain
        cell = np.array([int(number >= chain)])
        more = {"parents": np.array([[0 if has_parent else -1, -1]]), "generation": np.array([number])}
        lineage.update(cell, words, np.array([1.0]), fields | more, yes, yes)
    # One record more than there is room for: of the 31 lonely ones only the last is an elite.
    kept = lineage.records().facts["number"].tolist()
    assert kept == [*range(chain), chain + lonely]


def test_nothing_is_recorded_without_room(make_search):
    search = make_search(0)
    search.run(4)
    assert len(search.lineage.records()) == 0
    assert set(search.lineage.numbers(np.arange(search.archive.cells)).tolist()) == {NONE}
