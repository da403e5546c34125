"""evo.run.search: a search needs no folder, ends at its stops, and goes on from its state as if it had never paused."""

import itertools
import time

import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.run.loaded_task import load_problem
from evo.run.saved_search import SavedSearch
from evo.run.search import Search


@pytest.fixture
def new_search(small_config):
    """Makes searches; their evaluators end with the test."""
    searches = []

    def make(changes: dict | None = None, *overrides: str) -> Search:
        searches.append(Search(load_problem(load_config(small_config(changes), overrides))))
        return searches[-1]

    yield make
    for search in searches:
        search.problem.close()


@pytest.mark.parametrize(
    ("stop", "reason", "num_generations"),
    [
        ({"generations": 3}, "stop.generations: 3", 3),
        ({"generations": None, "evaluations": 100}, "stop.evaluations: 100", 2),  # generation 0 has at most 96
        ({"generations": 5, "objective": 0.0}, "stop.objective: 0.0", 1),  # no objective of the task is less
        ({"generations": 5, "seconds": 1e-9}, "stop.seconds: 1e-09", 1),
    ],
)
def test_a_search_ends_at_the_first_stop_and_says_which(new_search, stop, reason, num_generations):
    search, start_s = new_search({"stop": stop}), time.monotonic()
    assert len(list(search.generations())) == num_generations
    assert search.stop_reason == reason and 0 < search.elapsed_s < time.monotonic() - start_s
    assert list(search.generations()) == []


EMITTERS = {
    "bold": {"weight": 1.0, "parents": [0.3], "variation": {"operators": {"umad": 1.0}, "umad": {"addition_rate": 0.3}}},
    "steady": {"weight": 2.5},
    "random": {"kind": "random", "weight": 0.2},
}


def fields_of(search: Search) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in vars(search.elites()).items()}


def test_one_emitter_of_the_default_kind_is_the_default_search(new_search):
    default, named = new_search(), new_search({"search": {"emitters": {"any": {"weight": 0.3}}}})
    list(default.generations())
    list(named.generations())
    assert fields_of(named) == fields_of(default)
    random = {"search": {"batch_size": 40, "emitters": {"a": {"kind": "random"}, "variation": {"weight": 3.0}}}}
    simple, several = new_search({"search": {"batch_size": 40, "immigrants": 0.25}}), new_search(random)
    list(simple.generations())
    list(several.generations())
    assert fields_of(several) == fields_of(simple) != fields_of(default)


def test_several_emitters_go_on_from_a_saved_state_and_do_not_depend_on_threads(new_search):
    changes = {"search": {"emitters": EMITTERS, "batch_size": 300}}
    whole, paused = new_search(changes), new_search(changes, "evaluation.threads=3")
    *_, last = whole.generations()
    expected = last.success
    list(itertools.islice(paused.generations(), 3))
    restored = Search(paused.problem, SavedSearch(paused.problem, *paused.saved()))
    *_, last = restored.generations()
    assert fields_of(restored) == fields_of(whole)
    assert last.success == expected


def test_a_rate_that_vary_refuses_is_named_with_its_emitter(new_search):
    rates = {"perturbation": {"relative": 0.0, "absolute": 0.0}}
    with pytest.raises(UserError, match=r"^search\.emitters\.bold\.variation: perturbation_relative"):
        new_search({"search": {"emitters": {"bold": {"variation": rates}}}})
