"""evo.run.tidying: a search hands over tidy formulas with their true scores, and goes on as if it had not."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import evo
from evo.config import StopConfig
from evo.language.batch import Batch
from evo.language.dag import dag_of
from evo.language.formula_text import infix_line
from evo.regression.defaults import PROGRAM
from evo.report.pareto import front_of
from evo.run.saved_search import SavedSearch
from evo.run.search import Journal, Search
from evo.search.emitter import TIDY

X, Y = np.random.default_rng(0).uniform(0.5, 2.0, (2, 100))
GUESSES = ["x*y + y + (x - x)", "2.3*x*y + 2.2999997*y", "x*y", "(x*y + y)/(1 + 1e-9*x) + 1e-9*x*y*y"]


def evolve(generations: int, **settings) -> evo.Result:
    task = evo.RegressionTask({"x": X, "y": Y}, X * Y + Y)
    task.has_inverses = False  # which are tidy from the start
    return evo.evolve(
        task,
        vocabulary=PROGRAM["vocabulary"],
        archive=[48, 16],
        generations=generations,
        progress=False,
        **settings,
    )


SEARCH = {"batch_size": 32, "initial": {"num_programs": 64}, "tuning": {"share": 0.1}}


@pytest.fixture(scope="module")
def result():
    return evolve(2, guesses=GUESSES, search=SEARCH)


def test_the_front_ends_with_the_law_once(result):
    front, elites = front_of(result), result.search.elites()
    texts = [infix_line(dag_of(result.search.problem.language, words)) for words in elites.solution[front.rows]]
    assert texts[-1] in ("f = x*y + y", "f = y + x*y", "f = y*x + y", "f = (1 + x)*y")
    assert elites.objective[front.rows][-1] > 11.0 and (elites.objective[front.rows][:-1] < 3.0).all()


def test_the_front_keeps_what_many_weak_terms_explain():
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(6, 150))
    target = 0.5 * columns.sum(axis=0) + rng.normal(0.0, 1.5, 150)
    names = [f"x{k}" for k in range(6)]
    sums = [" + ".join(names[: k + 1]) for k in range(6)]
    task = evo.RegressionTask(dict(zip(names, columns, strict=True)), target)
    search = evo.evolve(
        task, vocabulary=PROGRAM["vocabulary"], archive=[48, 16], generations=1, progress=False, guesses=sums, search=SEARCH
    ).search
    found, tidy = search.archived(), search.elites()
    sum_of_all = found.objective[found.num_instructions <= 5].max()  # of which no term has a bit for each that it takes
    assert tidy.objective[tidy.num_instructions <= 5].max() > sum_of_all - 0.01
    assert (tidy.operator == TIDY).any()


def test_scores_and_cells_of_tidy_elites_are_true(result):
    search, elites = result.search, result.search.elites()
    assert (elites.operator == TIDY).any()
    batch = Batch.analyze(search.problem.language.lowering, elites.solution)
    with closing(search.problem.here()) as problem:
        scores = problem.evaluator.evaluate(batch)
    np.testing.assert_array_equal(scores.objective, elites.objective)
    np.testing.assert_array_equal(scores.measures, elites.measures)
    np.testing.assert_array_equal(batch.hashes, elites.hash)
    np.testing.assert_array_equal(search.archive.index_of(elites.measures), elites.cell)
    assert (np.diff(elites.cell) > 0).all()


def test_neither_threads_nor_time_change_what_is_tidy(result):
    again = evolve(2, guesses=GUESSES, search=SEARCH, evaluation={"threads": 1})
    for name, column in again.search.elites().arrays().items():
        np.testing.assert_array_equal(column, result.search.elites().arrays()[name])


def test_a_search_that_goes_on_ends_as_if_it_had_not_paused(result):
    problem = result.search.problem
    longer = replace(problem, config=problem.config.model_copy(update={"stop": StopConfig(generations=3)}), is_local=True)
    meta, arrays = result.search.saved()
    view = SavedSearch(problem, meta, arrays)
    assert (view.elites().operator == TIDY).any() and not (view.archived().operator == TIDY).any()
    ended = Search(problem.here(), SavedSearch(problem, meta, arrays))
    with closing(ended.problem):
        list(ended.generations(journal=Journal([].append, {}.setdefault)))
    np.testing.assert_array_equal(ended.elites().solution, result.search.elites().solution)
    with closing(longer):
        resumed = Search(longer, SavedSearch(longer, meta, arrays))
        assert len(list(resumed.generations())) == 1
        resumed.tidy()
    straight = evolve(3, guesses=GUESSES, search=SEARCH).search
    for name, column in straight.elites().arrays().items():
        np.testing.assert_array_equal(column, resumed.elites().arrays()[name])
    assert [*straight.record_numbers()] == [*resumed.record_numbers()]
