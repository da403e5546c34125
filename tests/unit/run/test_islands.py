"""evo.run.islands: searches side by side exchange elites, and go on from their saved state as if they had never paused."""

import itertools

import numpy as np
import pytest

from evo.config import load_config
from evo.errors import DeviceFailure, UserError
from evo.run import islands
from evo.run.checkpoint_contents import check_arrays
from evo.run.loaded_task import load_problem
from evo.run.run import MemoryJournal, carry_out
from evo.run.saved_search import SavedSearch
from evo.run.search import Search
from evo.search.lineage_records import NONE

ISLANDS = {"count": 2, "every": 3, "migrants": 50}


@pytest.fixture
def new_search(small_config):
    """Makes searches on islands; their evaluators end with the test."""
    searches = []

    def make(section: dict | None = None, *overrides: str, island: int = 0) -> Search:
        config = load_config(small_config({"search": {"islands": ISLANDS | (section or {})}}), overrides)
        searches.append(Search(load_problem(config), island=island))
        return searches[-1]

    yield make
    for search in searches:
        search.problem.close()


def columns_of(search: Search) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in search.elite_columns().items()}


def test_without_migrants_the_archive_has_the_best_of_what_each_island_finds_alone(new_search):
    together = new_search({"migrants": 0}, "stop.generations=1")
    [generation] = islands.generations(together)
    alone = [new_search(island=number) for number in range(2)]
    for search in alone:
        step = search.loop().step
        for _ in range(3):
            step()
    found = [dict(zip(e.cell.tolist(), e.objective.tolist(), strict=True)) for e in (search.archived() for search in alone)]
    assert found[0] != found[1]
    best = {cell: max(each.get(cell, -1.0) for each in found) for cell in sorted({*found[0], *found[1]})}
    elites = together.archived()
    assert dict(zip(elites.cell.tolist(), elites.objective.tolist(), strict=True)) == best
    assert set(best.values()) - set(found[0].values())
    assert generation.num_elites == len(best)
    assert generation.best_objective == max(best.values())
    assert together.counters.generations == 3
    assert together.counters.evaluations == sum(search.counters.evaluations for search in alone)


def test_islands_go_on_from_a_saved_state_and_do_not_depend_on_threads(new_search):
    whole, paused = (new_search(None, "stop.generations=9", f"evaluation.threads={threads}") for threads in (2, 4))
    assert [generation.counters.generations for generation in islands.generations(whole)] == [3, 6, 9]
    list(itertools.islice(islands.generations(paused), 1))
    meta, arrays = paused.saved()
    check_arrays(arrays, paused.problem, meta)
    restored = Search(paused.problem, SavedSearch(paused.problem, meta, arrays), paused.lineage.records())
    assert len(list(islands.generations(restored))) == 2
    assert columns_of(restored) == columns_of(whole)
    assert {name: array.tobytes() for name, array in restored.saved()[1].items()} == {
        name: array.tobytes() for name, array in whole.saved()[1].items()
    }
    records, elites = whole.lineage.records(), whole.archived()
    numbers = records.facts["number"]
    assert len(np.unique(numbers)) == len(numbers)
    assert {0, 1} == set((numbers % 2).tolist())
    row_of = {number: row for row, number in enumerate(numbers.tolist())}
    rows = [row_of[number] for number in whole.lineage.numbers(elites.cell).tolist()]
    np.testing.assert_array_equal(records.facts["hash"][rows], elites.hash)
    parents = records.facts["parents"]
    assert np.isin(parents[parents != NONE], numbers).all()
    crossed = (parents[:, 0] != NONE) & (parents[:, 0] % 2 != numbers % 2)  # bred from a traveller
    assert crossed[numbers % 2 == 0].any() and crossed[numbers % 2 == 1].any()
    del arrays["islands.1.elites.hash"]
    with pytest.raises(ValueError, match=r"^islands\.1\.elites\.hash: missing"):
        check_arrays(arrays, paused.problem, meta)


def test_an_island_whose_process_dies_ends_the_run_in_one_line(small_config, make_task):
    source = """\
import os
import signal
import sys

import numpy as np

import evo


class Deadly(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"a": (0.0, 1.0), "b": (0.0, 1.0)}

    def points(self):
        return {"x": np.arange(4, dtype=np.float32)}

    def score(self, outputs, programs):
        if sys.argv[0].endswith("worker_process.py"):
            os.kill(os.getpid(), signal.SIGKILL)
        return evo.Scores(np.zeros(len(programs.num_instructions)), np.zeros((len(programs.num_instructions), 2)))
"""
    changes = {"task": str(make_task(source)), "task_options": {}, "search": {"islands": ISLANDS}}
    search = Search(load_problem(load_config(small_config(changes), ("evaluation.executor=threads",))))
    message = r"^search\.islands: the process of island 1 was killed by SIGKILL; a run goes on from its last checkpoint$"
    with pytest.raises(UserError, match=message):
        list(islands.generations(search))
    search.problem.close()


def test_cores_are_divided_among_islands(small_config):
    config = load_config(small_config({"search": {"islands": {"count": 3}}}), ("evaluation.threads=7",))
    assert config.num_threads == 2
    assert load_config(small_config(), ("evaluation.threads=7",)).num_threads == 7


def test_a_failure_of_the_device_comes_from_another_process_whole():
    import pickle

    found = pickle.loads(pickle.dumps(DeviceFailure("an address", ["a program"])))
    assert (str(found), found.failures) == ("an address", ["a program"])


def test_an_error_at_the_end_of_islands_ends_the_run_that_was_interrupted(new_search, monkeypatch):
    """Python would only print it."""

    def lost(_):
        raise UserError("an island is lost")

    search = new_search()
    monkeypatch.setattr(islands._Archipelago, "arrays", lost)
    with pytest.raises(UserError, match="an island is lost"):
        carry_out(search, MemoryJournal(), lambda *_: None, lambda _: True)
