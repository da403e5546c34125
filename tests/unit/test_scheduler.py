"""evo.Scheduler and users' emitters: a loop and programs of the user."""

import numpy as np
import pytest

import evo
from evo.search.emitter import EMITTERS, OWN

X = np.linspace(-1.0, 1.0, 32, dtype=np.float32)
ADD, MUL = "add_ftz_f32", "mul_ftz_f32"
SETTINGS = {
    "vocabulary": [ADD, MUL],
    "archive": [12],
    "seed": 3,
    "search": {"batch_size": 40, "initial": {"num_programs": 80}},
}


class Declared(evo.Task):
    """x * x + x by length."""

    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"num_instructions": (0.0, 12.0)}


def scores(y: np.ndarray, num_instructions: np.ndarray) -> tuple:
    with np.errstate(all="ignore"):
        return -np.abs(y - (X * X + X)).mean(axis=1), num_instructions[:, None]


class Scored(Declared):
    """The same, scored by evo."""

    def points(self):
        return {"x": X}

    def score(self, outputs, programs):
        return evo.Scores(*scores(outputs["y"], programs.num_instructions))


def test_a_loop_of_ask_and_tell_finds_what_evolve_finds():
    scheduler = evo.Scheduler(Declared, **SETTINGS)
    for _ in range(6):
        programs = scheduler.ask()
        generation = scheduler.tell(*scores(programs.run({"x": X})["y"], programs.num_instructions))
    result, expected = scheduler.result(), evo.evolve(Scored, generations=6, **SETTINGS)
    assert generation.counters.generations == 6 and len(result.history) == 6
    for name, column in vars(expected.search.archived()).items():
        np.testing.assert_array_equal(getattr(result.search.archived(), name), column, err_msg=name)
    assert result.to_ribs().stats.num_elites == len(result.archive)


def test_scores_of_the_wrong_shape_are_refused():
    scheduler = evo.Scheduler(Declared, **SETTINGS)
    count = len(scheduler.ask())
    shapes = rf"\(\({count},\), \({count}, 1\)\)"
    message = rf"Scheduler.tell: takes objective and measures of shapes {shapes}, got \(\(2,\), \(2, 1\)\)"
    with pytest.raises(evo.UserError, match=message):
        scheduler.tell([1.0, 2.0], [[1.0], [2.0]])
    with pytest.raises(evo.UserError, match=r"Scheduler: search\.learning\.prescreen: does not go with"):
        evo.Scheduler(Declared, **{**SETTINGS, "search": {"learning": {"prescreen": 2, "evaluation_cost": 500.0}}})


@pytest.fixture
def own_emitter():
    calls = []

    def halves(parents):
        calls.append(parents)
        order = np.random.default_rng(parents.seed).permutation(len(parents.words))
        return np.concatenate([parents.words[:, :3], parents.words[order, :12]], axis=1)

    EMITTERS["halves"] = halves
    yield calls
    del EMITTERS["halves"]


MIXED = {**SETTINGS["search"], "emitters": {"bred": {"kind": "variation"}, "cut": {"kind": "halves", "parents": [0.5]}}}


def test_a_users_emitter_breeds_from_elites_in_slots_of_its_own(own_emitter):
    result = evo.evolve(Scored, generations=5, **{**SETTINGS, "search": MIXED})
    again = evo.evolve(Scored, generations=5, **{**SETTINGS, "search": MIXED})
    success = result.search.emitter.success()["cut"]
    assert success.offspring == sum(len(call.words) for call in own_emitter[:4]) == 4 * 20
    assert len({call.seed for call in own_emitter[:4]}) == 4
    records = result.search.lineage.records().facts
    made = records[records["operator"] == OWN]
    assert len(made) and (made["parents"][:, 0] >= 0).all() and (made["parents"][:, 1] == -1).all()
    np.testing.assert_array_equal(result.search.archived().solution, again.search.archived().solution)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (np.zeros((3, 4), np.uint64), r"gave uint64 of shape \(3, 4\); must be uint64 of shape \(20, width\)"),
        (np.zeros((20, 4)), r"gave float64 of shape \(20, 4\); must be uint64"),
    ],
)
def test_words_of_the_wrong_form_are_refused(own_emitter, words, reason):
    EMITTERS["halves"] = lambda parents: words
    with pytest.raises(evo.UserError, match=rf"search\.emitters\.cut: {reason}"):
        evo.evolve(Scored, generations=2, **{**SETTINGS, "search": MIXED})


def test_an_emitter_that_raises_is_named_with_its_line(own_emitter):
    def breaks(parents):
        return parents.words[:, 10**9]

    EMITTERS["halves"] = breaks
    place = rf"search\.emitters\.cut: {__file__}:{breaks.__code__.co_firstlineno + 1}"
    with pytest.raises(evo.UserError, match=f"^{place}: raised IndexError: index 1000000000"):
        evo.evolve(Scored, generations=2, **{**SETTINGS, "search": MIXED})


@pytest.mark.parametrize(
    ("arguments", "place"),
    [({"guesses": [3]}, r"guesses\[0\]: a guess is"), ({"vocabulary": [3]}, "vocabulary is"), ({"search": [1]}, "search: must")],
)
def test_wrong_arguments_name_the_scheduler(arguments, place):
    with pytest.raises(evo.UserError, match=f"^Scheduler: {place}"):
        evo.Scheduler(Declared, **{**SETTINGS, **arguments})


def test_an_unknown_kind_is_refused_with_those_that_there_are():
    search = {"emitters": {"bred": {"kind": "variaton"}}}
    with pytest.raises(evo.UserError, match=r"search\.emitters\.bred\.kind: unknown 'variaton', did you mean"):
        evo.evolve(Scored, generations=1, **{**SETTINGS, "search": search})


def test_scores_are_told_once_for_each_ask():
    scheduler = evo.Scheduler(Declared, **SETTINGS)
    with pytest.raises(evo.UserError, match=r"Scheduler\.tell: comes after ask"):
        scheduler.tell([1.0], [[0.0]])
    count = len(scheduler.ask())
    with pytest.raises(evo.UserError, match=r"Scheduler\.ask: comes after tell"):
        scheduler.ask()
    scheduler.tell(np.ones(count), np.zeros((count, 1)))
    with pytest.raises(evo.UserError, match=r"Scheduler\.tell: comes after ask"):
        scheduler.tell(np.ones(count), np.zeros((count, 1)))
