"""Rollouts on a GPU, over a stand-in: both lanes give the CPU's bits where instructions are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

import evo
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.choice import LANES
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.infix import parse_infix
from evo.language.program import Language

RNG = np.random.default_rng(11)
EXACT = ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "max_ftz_f32"]
INSTRUCTIONS = shipped_instruction_set("default")


class Pulled(evo.Task):
    """A mass that a program pulls, with all that a loop may read. Trajectories that begin beyond 2 end early."""

    inputs = {"x": "f32", "v": "f32", "u": "f32", "w": "f32"}
    outputs = {"force": "f32", "other": "f32"}
    measures = {"last": (-10.0, 10.0)}

    def __init__(self, integrator: str, count: int, dt=0.125, reduction: str | None = None):
        state = {"x": "v", "v": "force - drag*v", "total": "x*x + other"}
        if integrator == "map":
            state = {"x": "x + force", "v": "other", "steps": "add_u32(steps, one)"}
        self.rollout = evo.Rollout(steps=6, state=state, integrator=integrator, dt=dt, record_every=2)
        self.integrator, self.count, self.reduction = integrator, count, reduction
        if integrator == "map":
            self.inputs = {**type(self).inputs, "steps": "u32", "one": "u32"}

    def points(self):
        x = np.random.default_rng(1).uniform(-2.5, 2.5, self.count)
        more = {"drag": RNG_DRAG[: self.count], "total": np.zeros(self.count)}
        if self.integrator == "map":
            more = {"steps": np.arange(self.count, dtype=np.uint32), "one": np.uint32(1)}
        by_both = np.random.default_rng(2).normal(size=(6, self.count))
        return {"x": x, "v": 0.25, "u": np.linspace(0.0, 1.0, 6)[:, None], "w": by_both, **more}

    def targets(self):
        return {name: np.full((3, self.count), 0.5 + i) for i, name in enumerate(self.rollout.state)}

    def weights(self):
        return np.linspace(0.5, 1.5, 3 * self.count) if self.reduction else None

    def score(self, outputs, programs):
        if self.reduction:
            last = outputs.sum_squared_error[:, 0]
            return evo.Scores(np.where(outputs.num_nonfinite[:, 0] > 0, np.nan, -last), last[:, None])
        last = outputs["x"][:, -1].mean(axis=1)
        return evo.Scores(last, last[:, None])


RNG_DRAG = RNG.uniform(0.0, 0.5, 1100)
TEXTS = (
    "force = u - x*x*x\nother = w",  # diverges from some beginnings
    "force = 1e20*(x - 2)*max(x - 2, 0)\nother = max(x, w)",
    "force = 0.5*x - 0.25*x*v\nother = x - u",
    "force = 0\nother = 1",
)


def problem(task) -> tuple[Language, Batch]:
    language = Language(INSTRUCTIONS, tuple(task.inputs.items()), tuple(task.outputs.items()))
    names = [each.name for each in INSTRUCTIONS.instructions]
    return language, Batch.analyze(
        language.lowering, np.stack([parse_infix(language, each, "text", 64, names) for each in TEXTS])
    )


def on_gpu(task, language, lane) -> CudaEvaluator:
    return CudaEvaluator(language, task, EvaluationOptions(compile_workers=1, threads=1, lane=lane), instructions=EXACT)


# A few points, more than a warp, more than a block.
CASES = [("map", 5, 1.0), ("euler", 40, 0.125), ("map", 1100, 1.0), ("rk4", 20, np.linspace(0.1, 0.3, 6))]


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("integrator", "count", "dt"), CASES)
def test_both_lanes_record_what_the_cpu_records(emulated_gpu, lane, integrator, count, dt):
    task = Pulled(integrator, count, dt)
    language, batch = problem(task)
    expected = ChunkScorer(language, task).outputs(batch.words, task.points())
    is_early = np.isnan(expected["x"]).any(axis=1)
    assert is_early.any() and not is_early.all()  # some trajectories end early
    evaluator = on_gpu(task, language, lane)
    found = evaluator.outputs(batch.words, task.points())
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name].view(np.uint32), values.view(np.uint32), err_msg=name)
    scores = evaluator.evaluate(batch)
    assert scores.stats.lanes[lane] == len(batch)
    np.testing.assert_array_equal(scores.objective, CpuEvaluator(language, task, 1).evaluate(batch).objective)
    evaluator.close()
    assert not any(emulated_gpu.leaked().values())


@pytest.mark.parametrize("lane", LANES)
def test_sums_of_both_lanes_are_those_of_the_cpu(emulated_gpu, lane):
    task = Pulled("rk4", 150, reduction="regression")
    task.rollout = replace(task.rollout, pieces=3)
    language, batch = problem(task)
    evaluator = on_gpu(task, language, lane)
    found, expected = evaluator.evaluate(batch), CpuEvaluator(language, task, 1).evaluate(batch)
    np.testing.assert_array_equal(found.objective, expected.objective)
    assert np.isfinite(found.objective).tolist() == [True, False, True, True]
    evaluator.close()


def test_a_run_on_a_gpu_gives_the_archive_of_the_cpu(emulated_gpu):
    search = {"batch_size": 8, "initial": {"num_programs": 8}}
    options = {"vocabulary": EXACT, "seed": 3, "generations": 2, "search": search, "progress": False}
    one, two = (
        evo.evolve(Pulled("euler", 20), evaluation={"backend": name, "compile_workers": 1}, **options).search.elites()
        for name in ("cpu", "cuda")
    )
    np.testing.assert_array_equal(one.solution, two.solution)
    np.testing.assert_array_equal(one.objective, two.objective)
