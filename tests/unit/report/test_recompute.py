"""evo.report.recompute: what a task reports and how it scales is checked, and where it is computed depends on the run."""

from dataclasses import replace

import numpy as np
import pytest

import evo
from evo.errors import UserError
from evo.evaluate.backends import BACKENDS, Backend
from evo.evaluate.cpu import CpuEvaluator
from evo.language.formula import evaluate
from evo.report import recompute
from evo.report.pareto import describe_front
from evo.report.recompute import problem_here, report_facts, whole_expression
from evo.report.show import describe_elite
from evo.run.run import Run

ELITES = [("%x0", -8.0, (-9.0, 0.0)), ("%x0 1.0 add_ftz_f32", -3.0, (-5.0, 0.0))]
POINTS = "{name: np.array([3.0, 5.0], np.float32) for name in self.inputs}"
REPORT = 'return {"at_3": outputs["y"][:, 0], "at_5": outputs["y"][:, 1]}'
SCALING = "    def scaling(self, outputs):\n        {}\n\n    def report("


@pytest.fixture
def make_run(new_run, make_task, repository):
    """A run of the checked task, with some of its text changed."""

    def make(old: str = "", new: str = "", changes: dict | None = None) -> Run:
        source = (repository / "tests" / "data" / "checked" / "task.py").read_text()
        assert old in source
        return new_run(ELITES, {"task": str(make_task(source.replace(old, new))), **(changes or {})})

    return make


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (POINTS, "np.zeros(3)", r"report_points\(\): must return a dict of exactly x0, x1; got ndarray"),
        (POINTS, '{"x0": np.zeros(2), "x1": "one"}', r"report_points\(\): 'x1' is not an array of f32"),
        (POINTS, '{"x0": np.zeros(0), "x1": np.zeros(0)}', r"report_points\(\): gives no points"),
        (REPORT, 'return {"at_3": 1.0}', r":\d+: report\(\) must return the same names each time, with arrays of shape \(\d,\)"),
        ("    def report(", SCALING.format("return 1"), r":\d+: scaling\(\) raised AttributeError"),
        (
            "    def report(",
            SCALING.format("return {'z': (outputs['y'][:, 0], outputs['y'][:, 0])}"),
            r":\d+: scaling\(\) must return .*; outputs of type f32 are y$",
        ),
        (
            "    def report(",
            SCALING.format("return {'y': (outputs['y'][:, 0], outputs['y'][:, 0] / 0)}"),
            r":\d+: scaling\(\) gives y the offset 2 and the scale inf, must be finite$",
        ),
    ],
)
def test_a_task_whose_report_is_wrong_is_named(make_run, old, new, message):
    run = make_run(old, new)
    with pytest.raises(UserError, match=message):
        describe_elite(run, None)
    if "scaling" not in message:
        with pytest.raises(UserError, match=message):
            describe_front(run)


def test_a_scaling_is_part_of_the_formula(make_run):
    run = make_run("    def report(", SCALING.format("return {'y': (outputs['y'][:, 0], -2.0 * outputs['y'][:, 1])}"))
    # The points of x0 are 1, 2, 4, 0; the best elite is x0 + 1.
    formula = whole_expression(run.search.problem, run.search.elites().solution[1])
    assert evaluate(formula, [np.array([1.0, 7.0]), np.zeros(2)])[0].tolist() == [-10.0, -46.0]
    assert "# expression\ny = -6*x0 - 4\n" in describe_elite(run, None)


@pytest.mark.parametrize(
    ("shape", "points", "num_values"),
    [
        (None, {"x": np.zeros(3), "force": np.ones((8, 3))}, 2 * 2 * 3),  # by step
        ((4, 5), {"x": np.zeros((2, 4, 5)), "force": 1.0}, 2 * 2 * 2 * 4 * 5),
        ((4, 5), {"x": 0.0, "force": np.ones((2, 1, 1))}, 2 * 2 * 2 * 4 * 5),
    ],
)
def test_facts_of_a_rollout_take_memory_for_its_records(monkeypatch, shape, points, num_values):
    """num_values: of a program, 2 records of 2 states of each trajectory or cell."""
    counts = []

    class Pushed(evo.Task):
        inputs = {"x": "f32"}
        outputs = {"y": "f32"}
        measures = {"num_instructions": (0.0, 9.0)}
        rollout = evo.Rollout(steps=8, state={"x": "x + y", "z": "z + force"}, record_every=4, grid=shape and evo.Grid(shape))

        def points(self):
            return {"x": np.zeros((1, *shape) if shape else 1), "z": 0.0, "force": 0.0}

        def score(self, outputs, programs):
            return evo.Scores(np.zeros(len(outputs["x"])), programs.num_instructions[:, None])

        def report_points(self):
            return {**points, "z": 0.0}

        def report(self, outputs):
            counts.append(len(outputs["z"]))
            return {"z": outputs["z"].reshape(counts[-1], -1)[:, -1]}

    problem = evo.evolve(Pushed, generations=1, seed=1, progress=False).search.problem
    counts.clear()
    monkeypatch.setattr(recompute, "CHUNK_BYTES", 8 * num_values * 3)
    words = np.zeros((7, problem.config.program.max_length), np.uint64)
    assert report_facts(problem, words)["z"].tolist() == [8.0] * 7
    assert counts == [3, 3, 1]


class Other(CpuEvaluator):
    """Stands in for a GPU: its outputs are the CPU's and 1."""

    def outputs(self, words, points):
        return {name: values + 1 for name, values in super().outputs(words, points).items()}


CUDA = Backend("cuda", lambda: None, lambda a: Other(a.language, a.task, 1))


def test_reports_are_computed_with_the_backend_of_the_run(make_run, monkeypatch):
    run = make_run(changes={"evaluation": {"backend": "auto"}, "output": {"checkpoint_seconds": 0.0}})
    run._save()
    run.run_dir.wait_for_checkpoint()
    monkeypatch.setitem(BACKENDS, "cuda", CUDA)
    viewed, _ = Run.view(run.run_dir.path)
    assert "at_3                 4\n" in describe_elite(viewed, None)
    viewed.backend = CUDA
    assert "at_3                 5\n" in describe_elite(viewed, None)
    viewed.backend = replace(CUDA, why_unusable=lambda: "no NVIDIA driver")
    text = describe_elite(viewed, None)
    assert "at_3                 4\n" in text
    assert (
        "(at_3, at_5: computed on the CPU, whose approximate instructions differ in their last bits; cuda: no NVIDIA driver)"
        in text
    )
    assert describe_front(viewed).splitlines()[-1].startswith("at_3, at_5: computed on the CPU, ")


def test_a_view_knows_the_backend_that_its_checkpoint_names(make_run, monkeypatch):
    monkeypatch.setitem(BACKENDS, "cuda", CUDA)
    run = make_run(changes={"evaluation": {"backend": "cuda"}})
    viewed, _ = Run.view(run.run_dir.path, ("evaluation.backend=auto",))
    assert viewed.backend is CUDA and viewed.search.problem.backend.name == "cpu"
    with problem_here(viewed) as (problem, note):
        assert problem.backend is CUDA and note is None
