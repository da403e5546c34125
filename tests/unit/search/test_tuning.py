"""Tuning in evo.search.map_elites: which programs are tuned, what becomes of them, and what is counted."""

import numpy as np
import pytest

from evo.native.stack_ptx_words import WordType
from evo.search.map_elites import Tuning

from .conftest import SteppedSearch, WordEvaluator, full_rows

RUNS = 3  # that the tuner below says it needs for a program


class StepTuner:
    """Adds one to the bits of each f32 constant, and remembers what it was given."""

    def __init__(self):
        self.given: list[list[np.ndarray]] = []

    def tune(self, words):
        self.given.append(list(full_rows(words)))
        is_constant = (words & 0xFFFF) == WordType.CONSTANT
        tuned = np.where(is_constant, words + (np.uint64(1) << np.uint64(32)), words)
        return tuned, is_constant.any(axis=1), RUNS * len(words)

    finish = tune


class TunedSearch(SteppedSearch):
    """A search that tunes."""

    def __init__(self, search, language, share, num_finished=0, **options):
        self.tuner = StepTuner()
        super().__init__(search, language, tuning=Tuning(self.tuner, share, num_finished), **options)
        self.batches: list[list[np.ndarray]] = []  # what was evaluated, call by call
        evaluate = self.evaluator.evaluate

        def recorded(batch):
            self.batches.append(list(full_rows(batch.words)))
            return evaluate(batch)

        self.evaluator.evaluate = recorded


def objective_of(row):
    result = WordEvaluator.score(row)
    return None if result is None else result[0]


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_best_share_of_the_new_programs_is_tuned(new_search, language, share):
    search = TunedSearch(new_search(), language, share)
    search.run(8)
    for new, given in zip(search.batches[0::2], search.tuner.given, strict=True):
        scored = [(objective, -place) for place, row in enumerate(new) if (objective := objective_of(row)) is not None]
        best = sorted(scored, reverse=True)[: int(np.ceil(share * len(scored)))]
        assert [row.tolist() for row in given] == [new[-place].tolist() for _, place in best]


def test_tuned_programs_are_evaluated_once_and_remembered(new_search, language):
    search = TunedSearch(new_search(), language, 0.5)
    search.run(8)
    evaluated = [row for batch in search.batches for row in batch]
    hashes = [tuple(key) for key in language.lowering.analyze(np.array(evaluated))[0].tolist()]
    assert len(hashes) == len(set(hashes)) == len(search.memory)
    tuned = [row.tolist() for batch in search.batches[1::2] for row in batch]
    assert len(tuned) > 5
    wanted = StepTuner()
    results = [row.tolist() for given in search.tuner.given for row in wanted.tune(np.array(given))[0]]
    assert all(row in results for row in tuned)


def test_the_archive_holds_tuned_programs_with_the_origin_of_the_untuned(new_search, language):
    search, found = TunedSearch(new_search(), language, 1.0), 0
    for number in range(6):
        search.run(1)
        new, tuned = ([row.tobytes() for row in batch] for batch in search.batches[-2:])
        given = search.tuner.given[-1]
        sources = {row.tobytes(): each.tobytes() for row, each in zip(StepTuner().tune(np.array(given))[0], given, strict=True)}
        elites = search.archive.elites()
        for row, slot in zip(elites.solution[elites.generation == number], elites.slot[elites.generation == number], strict=True):
            if row.tobytes() in tuned:
                assert new.index(sources[row.tobytes()]) <= slot  # the slot counts duplicates too
                found += 1
    assert found > 3


def test_programs_that_come_closest_to_elites_are_finished(new_search, language):
    """Of each cell's best: those of empty cells by their objective, then by what they lead or lack."""
    search = TunedSearch(new_search(), language, 0.0, num_finished=3)
    for _ in range(6):
        elites = search.archive.elites()
        before = dict(zip(search.archive.index_of(elites.measures).tolist(), elites.objective.tolist(), strict=True))
        search.batches.clear()
        search.run(1)
        best: dict[int, tuple[float, list[int]]] = {}
        for row in search.batches[0]:
            if (result := WordEvaluator.score(row)) is not None:
                cell = int(search.archive.index_of(np.array([result[1]]))[0])
                if cell not in best or result[0] > best[cell][0]:
                    best[cell] = (result[0], row.tolist())
        leads = [(objective - before.get(cell, -np.inf), objective, row) for cell, (objective, row) in best.items()]
        leads = sorted((each for each in leads if each[0] != 0), key=lambda each: each[:2], reverse=True)
        assert [row.tolist() for row in search.tuner.given[-1]] == [row for *_, row in leads[:3]]
