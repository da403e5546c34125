"""Runs whose measures are learned: what programs compute decides them, and every part of the state moves along."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from evo.config import load_config
from evo.errors import UserError
from evo.language.batch import Batch
from evo.language.program import parse_program
from evo.native.row_threads import RowThreads
from evo.report.page.content import run_content
from evo.run.learning import make_learned_measures
from evo.run.loaded_task import load_problem
from evo.run.run import Run
from evo.search.lineage_records import lines_of
from evo.search.map_elites import Generation

LEARNED = {"search": {"learning": {"descriptors": "learned", "features": 2}}}
FEATURES = {"search": {"learning": {"features": 3, "points": 64}}}  # all the points of the task


@pytest.fixture
def problem(small_config):
    problem = load_problem(load_config(small_config(LEARNED)))
    yield problem
    problem.close()


def execute(run: Run) -> list:
    steps = []
    run.execute(lambda step, _: steps.append(step))
    return [step for step in steps if isinstance(step, Generation)]


def random_programs(problem, count: int) -> np.ndarray:
    """Some words: constants, instructions and inputs."""
    rng = np.random.default_rng(2)
    tokens = ["%t", "%x", "%y", "0.5", "add_ftz_f32", "mul_ftz_f32", "sin_approx_ftz_f32", "sub_ftz_f32", "2.0"]
    texts = [" ".join(rng.choice(tokens, 20)) for _ in range(count)]
    return np.stack([parse_program(problem.language, text, "text", 24) for text in texts])


def test_programs_have_the_same_measures_if_they_compute_the_same_and_others_otherwise(problem):
    learned = make_learned_measures(problem, RowThreads())
    learned.fit(random_programs(problem, 300))
    texts = ["%x %y mul_ftz_f32", "%y 1.0 mul_ftz_f32 %x mul_ftz_f32", "%x %y add_ftz_f32", "%x", "%y", "0.5"]
    same, again, *others = learned.of(np.stack([parse_program(problem.language, text, "text", 24) for text in texts]))
    np.testing.assert_array_equal(same, again)
    for one in (same, *others):
        assert sum(np.abs(one - other).max() < 1e-3 for other in (same, *others)) == 1


def test_measures_do_not_depend_on_the_number_of_threads(problem):
    words, found = random_programs(problem, 700), []
    for num_threads in (1, 3):
        learned = make_learned_measures(problem, RowThreads(num_threads))
        learned.fit(words[:500])
        found.append(learned.of(words).tobytes())
    assert found[0] == found[1]


def test_features_are_scikit_learns_components_of_the_elites_squashed_outputs(start):
    run = start(FEATURES)
    execute(run)
    search, elites = run.search, run.search.elites()
    v = search.problem.evaluator.outputs(elites.solution, search.problem.task.points())["v"].astype(float)
    rows = np.where(np.isnan(v), 0.0, np.sign(v) * (1.0 - 1.0 / (1.0 + np.abs(v))))
    coordinates = PCA(3).fit_transform(rows)
    with np.load(run.run_dir.path / "archive.npz") as archive:
        latent = archive["latent"]
    assert latent.shape == (len(elites), 3)
    for ours, expected in zip(latent.T, coordinates.T, strict=True):  # up to origin, unit and sign
        assert abs(np.corrcoef(ours, expected)[0, 1]) > 0.99999
        ordered = np.sort(ours)
        assert ordered[0] == 0.0 and ordered[-1] == 1.0  # of so few elites, the quantiles are the least and the greatest


def test_features_change_nothing_but_the_column(start):
    plain, run = start({}), start(FEATURES)
    execute(plain)
    execute(run)
    with np.load(plain.run_dir.path / "archive.npz") as one, np.load(run.run_dir.path / "archive.npz") as other:
        assert set(other.files) - set(one.files) == {"latent"}
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert plain.search.saved()[1].keys() == run.search.saved()[1].keys()
    assert plain.search.problem.config.identity() == run.search.problem.config.identity()


@pytest.mark.parametrize(("changes", "count"), [(LEARNED, 2), (FEATURES, 3)], ids=["learned", "features"])
def test_a_page_tells_of_each_elites_components(start, changes, count):
    names = [f"component_{number}" for number in range(1, count + 1)]
    run = start({**changes, "stop": {"generations": 2}})
    execute(run)
    found = run_content(run)
    assert found["quantities"] == ["objective", "mean", "deviation", *names, "num_instructions", "generation"]
    order = np.argsort(-run.search.elites().objective, kind="stable")
    shown = np.array([each["values"][3 : 3 + len(names)] for each in found["elites"]])
    np.testing.assert_array_equal(shown, run.search.elite_columns()["latent"][order])
    axes = ["component 1", "component 2"] if changes is LEARNED else ["mean", "deviation"]
    assert [axis["name"] for axis in found["map"]["axes"]] == axes


@pytest.mark.parametrize(
    "archive", [{"dims": [6, 5]}, {"type": "CVTArchive", "dims": None, "centroids": 12}], ids=["grid", "CVT"]
)
def test_each_part_of_a_search_moves_along_when_measures_are_learned_anew(start, archive):
    run = start({"search": {**LEARNED["search"], "archive": archive}, "stop": {"generations": 20}})
    generations = execute(run)
    fits = [generation.fit for generation in generations if generation.fit]
    assert len(fits) > 2 and any(fit.elites < fit.elites_before for fit in fits[1:])
    search, elites = run.search, run.search.elites()
    layout_cells = search.archive.index_of(search.state.learned.of(elites.solution))
    np.testing.assert_array_equal(layout_cells, elites.cell)
    np.testing.assert_array_equal(search.state.learned.of(elites.solution), elites.latent)
    again = search.problem.evaluator.evaluate(Batch.analyze(search.problem.language.lowering, elites.solution))
    np.testing.assert_array_equal(again.objective, elites.objective)
    np.testing.assert_array_equal(again.measures, elites.measures)  # of the task
    records, numbers = search.lineage.records(), search.lineage.numbers(elites.cell)
    facts = records.facts
    np.testing.assert_array_equal(records.programs(numbers, 24), elites.solution)
    first = facts[[line[0] for line in lines_of(facts, numbers)]]
    assert (first["parents"][:, 0] == -1).all()
    founders = search.lineage.arrays()["lineages.founders"]
    np.testing.assert_array_equal(founders[elites.cell], first["generation"] << 32 | first["slot"])
    assert np.count_nonzero(founders != -1) == len(elites)
    assert search.lineage.num_founders == len(np.unique(founders[elites.cell]))


def test_measures_are_learned_anew_when_evaluations_have_doubled(start):
    run = start({**LEARNED, "stop": {"generations": 20}})
    execute(run)
    last, learned_in = 0, []
    rows = run.run_dir.metrics()
    for row in rows:
        if row["evaluations"] >= 2 * last:
            last = row["evaluations"]
            learned_in.append(row["generations"])
    assert [row["generations"] for row in rows if "learning" in row] == learned_in
    assert len(learned_in) > 2
    assert all(0.0 < row["learning"]["explained"] <= 1.0 for row in rows if "learning" in row)
    best = [row["best_objective"] for row in rows]
    assert best == sorted(best)  # the best elite is never lost


@pytest.mark.parametrize("descriptors", ["task", "learned"])
def test_too_few_outputs_are_refused_before_a_run_begins(start, tmp_path, descriptors):
    with pytest.raises(UserError, match="programs have 1 outputs at all points; 2 features need 2 to 512"):
        start({"search": {"learning": {"descriptors": descriptors, "features": 2, "points": 1}}})
    assert not list((tmp_path / "runs").rglob("config.yaml"))


def test_instructions_that_no_cpu_runs_are_refused_before_a_run_begins(start, tmp_path):
    instructions = ["add_ftz_f32", "u32_to_v4_u8"]
    with pytest.raises(UserError, match=r"described on the CPU, which has no u32_to_v4_u8; .* features to 0"):
        start({**FEATURES, "program": {"vocabulary": {"instructions": instructions}}})
    assert not list((tmp_path / "runs").rglob("config.yaml"))
