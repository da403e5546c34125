"""Task.simulate: programs run at inputs of their own, in chunks and threads that change nothing, and wrong ones are refused."""

import numpy as np
import pytest
from rollout_programs import language_of, words_of

import evo
from evo.config import load_config
from evo.errors import UserError
from evo.evaluate.backends import CUDA, Assignment
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.language.batch import Batch
from evo.report.export.formats import export_elites
from evo.run.run import LiveRun
from evo.tasks.folder import check_declarations

X = np.linspace(0.1, 0.9, 37).astype(np.float32)
STEPS = 12


class Logistic(evo.Task):
    """A map whose program sees its own past, and a number that all programs share."""

    inputs = {"x": "f32", "r": "f32", "n": "u32"}
    outputs = {"next": "f32"}
    measures = {"num_instructions": (0.0, 64.0), "last": (0.0, 1.0)}

    def simulate(self, programs):
        x = np.tile(X, (len(programs), 1))
        for step in range(STEPS):
            x = programs.run({"x": x, "r": 3.7, "n": np.full(len(X), step)})["next"]
        return evo.Scores(x.mean(axis=1), np.stack([programs.num_instructions, x[:, -1]], axis=1))


FORMULAS = ["next = r*x*(1 - x)", "next = x*x", "next = 0.5*x + 0.1", "next = abs(1 - 1.5*x*x)"]


def test_each_program_goes_on_from_what_it_computed():
    words = words_of(Logistic(), *FORMULAS)
    batch = Batch.analyze(language_of(Logistic()).lowering, words)
    found = ChunkScorer(language_of(Logistic()), Logistic()).score(batch.words, batch.num_instructions)
    r, one, half, tenth, more = (np.float32(value) for value in (3.7, 1.0, 0.5, 0.1, 1.5))
    maps = [lambda x: r * x * (one - x), lambda x: x * x, lambda x: half * x + tenth, lambda x: np.abs(one - more * x * x)]
    for row, each in enumerate(maps):
        x = X
        for _ in range(STEPS):
            x = each(x)
        assert found.objective[row] == x.mean(dtype=np.float32), FORMULAS[row]
        assert found.measures[row, 1] == x[-1]


def test_chunks_threads_and_order_change_no_bit():
    language, words = language_of(Logistic()), np.tile(words_of(Logistic(), *FORMULAS), (150, 1))  # three chunks
    batch = Batch.analyze(language.lowering, words)
    alone = ChunkScorer(language, Logistic())
    single = [alone.score(words[i : i + 1], batch.num_instructions[i : i + 1]).objective[0] for i in range(4)]
    for threads in (1, 2):
        evaluator = CpuEvaluator(language, Logistic(), threads)
        np.testing.assert_array_equal(evaluator.evaluate(batch).objective, np.tile(single, 150))
        np.testing.assert_array_equal(evaluator.evaluate(batch[::-1]).objective, np.tile(single[::-1], 150))
        evaluator.close()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": X}, r"programs.run\(\): takes a dict of exactly x, r, n; got x"),
        ({"x": X, "r": np.ones((3, 37)), "n": 0}, r"input 'r': expected shape \(37,\), \(1, 37\) or \(\), got \(3, 37\)"),
        ({"x": 1.0, "r": 1.0, "n": 0}, "at least one must be an array"),
        ({"x": "far", "r": 1.0, "n": 0}, "'x' is not an array of f32"),
    ],
)
def test_inputs_that_do_not_fit_are_named_with_their_line(inputs, message):
    class Wrong(Logistic):
        def simulate(self, programs):
            return programs.run(inputs)

    batch = Batch.analyze(language_of(Wrong()).lowering, words_of(Wrong(), FORMULAS[0]))
    with pytest.raises(UserError, match=message):
        ChunkScorer(language_of(Wrong()), Wrong()).score(batch.words, batch.num_instructions)


def test_what_a_simulation_cannot_have_is_refused():
    class Reduced(Logistic):
        reduction = "regression"

    with pytest.raises(UserError, match=r"defines simulate\(\), so it has no reduction"):
        check_declarations(Reduced())
    assignment = Assignment(language_of(Logistic()), Logistic(), (), EvaluationOptions(backend="cuda"), {}, batch_size=8)
    with pytest.raises(UserError, match="a task that simulates runs on the CPU"):
        CUDA.start(assignment)


def test_a_search_improves_what_it_simulates():
    result = evo.evolve(Logistic, evaluations=600, seed=2, progress=False)
    assert result.best.objective > 0.9


def test_what_a_search_has_found_can_be_carried_away(small_config, tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "task.py").write_text(TASK)
    config = {"task": str(tmp_path / "task"), "stop": {"generations": 2}, "output": {"plots": []}}
    run = LiveRun.start(load_config(small_config(config)), "simulated")
    run.execute()
    for name in ("python", "c", "json", "sympy", "excel"):
        [text] = export_elites(run, name).texts.values()
        assert text
    run.close()


TASK = """
import numpy as np
import evo

class Approach(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"step": "f32"}
    measures = {"num_instructions": (0.0, 24.0), "last": (0.0, 2.0)}

    def simulate(self, programs):
        x = np.tile(np.linspace(1, 2, 9), (len(programs), 1))
        for _ in range(5):
            x = np.clip(x + programs.run({"x": x})["step"], 0, 2)
        return evo.Scores(-x.mean(axis=1), np.stack([programs.num_instructions, x[:, 0]], axis=1))
"""


def test_a_prescreen_compares_simulated_programs_at_points_of_the_task():
    class Compared(Logistic):
        def points(self):
            return {"x": X, "r": np.float32(3.7), "n": np.uint32(1)}

    search = {"batch_size": 20, "initial": {"num_programs": 40}, "learning": {"prescreen": 4, "evaluation_cost": 16}}
    given = {"search": search, "archive": [8, 8], "generations": 3, "progress": False}
    assert evo.evolve(Compared, **given).search.counters.screened > 0
    with pytest.raises(UserError, match=r"class Logistic must define points\(\)"):
        evo.evolve(Logistic, **given)
