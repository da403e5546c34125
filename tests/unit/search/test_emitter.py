"""evo.search.emitter: what it emits depends on seed, generation and the archive's elites, and on nothing else."""

from types import SimpleNamespace

import numpy as np

from evo.language.batch import Batch
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS
from evo.search.emitter import COMBINED, GIVEN, NUM_PARTNERS, RANDOM, Emitter, slots_of

from .conftest import full_rows


def batch_of(words: np.ndarray) -> Batch:
    """Programs for an evaluator that reads nothing but their words."""
    return Batch(words, np.zeros((len(words), 2), np.uint64), np.zeros(len(words), np.int32))


def fill(search, num_programs: int = 60) -> None:
    """Puts random programs, scored by their words, into the archive."""
    words = search.emitter.random_programs(num_programs)
    evaluation = search.evaluator.evaluate(batch_of(words))
    add(search.archive, words, evaluation, range(num_programs))


def add(archive, words, evaluation, order) -> None:
    order = np.array(order)
    archive.add(
        words[order],
        evaluation.objective[order],
        evaluation.measures[order],
        parents=np.full((len(order), 2), -1),
        operator=np.full(len(order), RANDOM),
        generation=np.zeros(len(order), int),
        slot=order,
        hash=np.stack([order + 1, order * 7], axis=1).astype(np.uint64),
        num_instructions=np.zeros(len(order), int),
    )


def assert_same_origin(one, two) -> None:
    for name in vars(one):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_generation_0_is_random_and_without_parents(new_search, variation):
    search = new_search()
    words = search.emitter.ask()
    np.testing.assert_array_equal(full_rows(words), variation.random_programs(5, 0, 0, 40, 12))
    assert words.dtype == np.uint64
    assert search.emitter.generation == 1
    assert (search.emitter.origin.parents == -1).all() and search.emitter.origin.parents.shape == (40, 2)
    assert (search.emitter.origin.operator == RANDOM).all()


def test_while_the_archive_is_empty_programs_stay_random_but_new(new_search):
    search = new_search()
    first, second, third = (full_rows(search.emitter.ask()) for _ in range(3))
    assert (len(first), len(second)) == (40, 30)
    assert (search.emitter.origin.operator == RANDOM).all()
    assert not np.array_equal(first[:30], second)
    assert not np.array_equal(second, third)


def test_offspring_know_the_cells_of_their_parents(new_search, variation):
    search = new_search(generation=1, batch_size=300)
    fill(search, 600)
    elites = search.archive.elites()
    words = search.emitter.ask()
    expected, rows, operators = variation.offspring(5, 1, 0, 300, elites.solution)
    np.testing.assert_array_equal(full_rows(words), expected)
    origin = search.emitter.origin
    np.testing.assert_array_equal(origin.operator, operators)
    two_parents = [OPERATORS[code] in ("alternation", "crossover") for code in origin.operator]
    assert any(two_parents) and not all(two_parents)
    np.testing.assert_array_equal(origin.parents[:, 0], elites.cell[rows[:, 0]])
    assert ((origin.parents[:, 1] >= 0) == two_parents).all()
    assert len(set(origin.parents[:, 0].tolist())) > 5 and 0 in origin.parents


def test_generations_in_turn_draw_parents_from_their_share_of_the_best_elites(new_search):
    search = new_search(generation=1, batch_size=500, parent_shares=(1.0, 0.1, 0.5))
    fill(search)
    elites = search.archive.elites()
    by_objective = elites.cell[np.argsort(-elites.objective, kind="stable")]
    assert len(by_objective) > 20
    for share in (0.1, 0.5, 1.0, 0.1):
        search.emitter.ask()
        parents = search.emitter.origin.parents
        assert set(parents[parents >= 0].tolist()) == set(by_objective[: int(np.ceil(share * len(elites)))].tolist())


def test_the_same_seed_generation_and_elites_give_the_same_offspring_whatever_came_before(new_search):
    search, fresh = new_search(), new_search(generation=3)
    fill(search)
    for _ in range(3):
        search.emitter.ask()
    fresh.archive.restore(search.archive.elites())
    np.testing.assert_array_equal(search.emitter.ask(), fresh.emitter.ask())
    assert_same_origin(search.emitter.origin, fresh.emitter.origin)


def test_slots_keep_the_shares_of_the_weights_and_leave_none_out():
    weights = [5.0, 0.0, 0.3, 2.0, 0.01]
    counts = np.array([np.diff(slots_of(weights, 32, generation)) for generation in range(2000)])
    exact = 32 * np.array(weights) / sum(weights)
    assert (counts.sum(axis=1) == 32).all() and (counts[:, 1] == 0).all()
    assert (np.abs(counts - exact) < 1).all()
    np.testing.assert_allclose(counts.mean(axis=0), exact, atol=0.01)
    assert counts[:, 4].sum() > 50  # less than a slot, yet not nothing


def test_each_emitter_breeds_its_own_slots_with_its_own_operators_and_parents(new_search, variation, umad_alone):
    emitters = [Emitter("all", 2.0, variation), Emitter("best", 1.0, umad_alone, (0.1,)), Emitter("random", 1.0, None)]
    search = new_search(generation=1, batch_size=400, emitters=emitters)
    fill(search)
    elites = search.archive.elites()
    words = full_rows(search.emitter.ask())
    origin = search.emitter.origin
    assert search.emitter.names == ("initial", "all", "best", "random")
    assert origin.emitter.tolist() == [1] * 200 + [2] * 100 + [3] * 100
    np.testing.assert_array_equal(words[:200], variation.offspring(5, 1, 0, 200, elites.solution)[0])
    assert {OPERATORS[code] for code in origin.operator[200:300]} == {"umad"}
    best = elites.cell[np.argsort(-elites.objective, kind="stable")][: int(np.ceil(0.1 * len(elites)))]
    assert set(origin.parents[200:300, 0].tolist()) == set(best.tolist())
    np.testing.assert_array_equal(words[300:], search.emitter.random_programs(100, generation=1, first_slot=300))


def test_given_programs_come_first_in_generation_0_and_never_again(new_search, variation):
    given = variation.random_programs(99, 7, 0, 3, 12)
    search = new_search(given=given, num_starts=2, start_generations=2)
    words = full_rows(search.emitter.ask())
    np.testing.assert_array_equal(words[:3], given)
    np.testing.assert_array_equal(words[3:], search.emitter.random_programs(40, first_slot=3))
    assert search.emitter.origin.operator.tolist() == [GIVEN] * 3 + [RANDOM] * 40
    for _ in range(3):  # the second start is generation 2
        assert (search.emitter.ask() is not None) and GIVEN not in search.emitter.origin.operator


class LongestOf:
    """Joins a program with the longest partner, in two kinds of which the second never fits."""

    kinds = ("joined", "never")
    num_inputs = 2

    def combine(self, programs, partners, max_length):
        self.partners = partners
        self.num_elites = (len(partners) - NUM_PARTNERS) // 2
        lengths = (partners[: self.num_elites] != 0).sum(axis=1)
        longest = int(lengths.argmax())
        words, chosen = np.zeros((2 * len(programs), max_length), np.uint64), np.full(2 * len(programs), -1)
        for place, row in enumerate(programs):
            joined = [*row[row != 0][:-1], *partners[longest][: lengths[longest]]]
            if len(joined) <= max_length:
                words[2 * place, : len(joined)], chosen[2 * place] = joined, longest
        return words, chosen


def test_partners_are_elites_the_same_of_other_inputs_or_in_part_and_short_random_programs(new_search, variation):
    joins = LongestOf()
    search = new_search(generation=1, batch_size=40, emitters=[Emitter("variation", 30, variation), Emitter("pairs", 10, joins)])
    fill(search, 600)
    both = np.zeros((1, 12), np.uint64)
    both[0, :3] = WordType.INPUT, 1 << 32 | WordType.INPUT, WordType.RETURN
    best = SimpleNamespace(objective=np.array([1e9]), measures=search.evaluator.evaluate(batch_of(both)).measures)
    add(search.archive, both, best, [0])
    search.emitter.ask()
    count = joins.num_elites
    elites, varied, random = np.split(joins.partners, [count, 2 * count])
    lengths, new_lengths = ((part != 0).sum(axis=1) for part in (elites, varied))
    np.testing.assert_array_equal(new_lengths[::2], lengths[::2])
    assert (new_lengths[1::2] <= lengths[1::2]).all() and (new_lengths < lengths).any()
    is_input = (elites & np.uint64(0xFFFF) == WordType.INPUT) & (elites >> np.uint64(32) < joins.num_inputs)
    is_kept = np.arange(elites.shape[1]) < new_lengths[:, None]
    np.testing.assert_array_equal(varied[~is_input & is_kept], elites[~is_input & is_kept])
    swapped = elites ^ np.uint64(1 << 32)
    is_swapped = [(row == other)[mask].all() for row, other, mask in zip(varied, swapped, is_input & is_kept, strict=True)]
    is_same = [(row == other)[mask].all() for row, other, mask in zip(varied, elites, is_input & is_kept, strict=True)]
    assert any(len(np.unique(row[mask])) == 2 for row, mask in zip(elites, is_input & is_kept, strict=True))
    assert np.logical_or(is_swapped, is_same).all() and not np.all(is_swapped) and not np.all(is_same)
    assert (random[:, 8:] == 0).all() and set((random != 0).sum(axis=1).tolist()) == set(range(1, 9))
    assert not search.emitter.origin.parents[search.emitter.origin.operator == COMBINED][::2, 1].min() < 0


def test_pairs_of_elites_are_emitted_with_both_parents(new_search, variation):
    emitters = [Emitter("variation", 30, variation), Emitter("pairs", 10, LongestOf())]
    search = new_search(generation=1, batch_size=40, emitters=emitters)
    fill(search, 600)
    words, origin = search.emitter.ask(), search.emitter.origin
    pairs = origin.operator == COMBINED
    assert pairs.sum() == 10 and (origin.emitter[pairs] == 2).all()
    archive = search.archive
    for row, (first, second) in zip(words[pairs], origin.parents[pairs], strict=True):
        own = archive.words[first]
        if second < 0:
            np.testing.assert_array_equal(full_rows(row[None])[0], own)
        else:
            other = archive.words[second]
            expected = [*own[own != 0][:-1], *other[other != 0]]
            assert row[row != 0].tolist() == expected
            np.testing.assert_array_equal(
                archive.hashes(np.array([second])), archive.elites().hash[archive.elites().cell == second]
            )
    assert (origin.parents[pairs][1::2, 1] == -1).all() and (origin.parents[pairs][::2, 1] >= 0).any()
    again = new_search(generation=1, batch_size=40, emitters=emitters)
    fill(again, 600)
    np.testing.assert_array_equal(again.emitter.ask(), words)
    assert_same_origin(again.emitter.origin, origin)
