"""The verdict of `evo doctor RUN` tells a wrong kernel from rounding: elites of domain colouring over the stand-in for a GPU."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from emulated_gpu import ptx_decode

from evo.config import load_config
from evo.evaluate.backends import CPU
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.language.batch import Batch
from evo.report.check import CheckReport
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.storage.disk_cache import DiskCache

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).parents[2] / "configs" / "domain_coloring_smoke.yaml"
SETTINGS = ("task_options.size=32", "search.archive.dims=[24, 24]", "search.batch_size=256", "stop.generations=30")


@pytest.fixture(scope="module")
def elites():
    """A task, its language, every other of 256 elites and their scores on the CPU."""
    search = Search(load_problem(load_config(CONFIG, SETTINGS), CPU))
    for _ in search.generations():
        pass
    found, problem = search.elites(), search.problem
    batch = Batch(found.solution, found.hash, found.num_instructions)[np.arange(0, 256, 2)]
    yield problem.task, problem.language, batch, problem.evaluator.evaluate(batch)
    problem.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """So that each elite is compiled once."""
    return DiskCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def verdict(emulated_gpu, elites, cache):
    """The verdict on what the stand-in computes now."""

    def judge() -> bool:
        task, language, batch, cpu = elites
        options = EvaluationOptions(compile_workers=1, threads=1, lane="compile", launch_seconds=3600.0)  # on a busy machine
        evaluator = CudaEvaluator(language, task, options, cache)
        gpu = evaluator.evaluate(batch)
        evaluator.close()
        is_accurate = np.array(["tanh.approx" not in stub for stub in language.lowering.emit(batch.words)])
        return CheckReport([str(i) for i in range(len(batch))], "emulated", cpu, gpu, is_accurate).passed

    return judge


@pytest.mark.parametrize("errors", ["", "up", "down", "mixed"])
def test_the_largest_errors_of_the_isa_pass(verdict, monkeypatch, errors):
    monkeypatch.setenv("EVO_EMULATED_GPU_ERRORS", errors)
    assert verdict()


WRONG = {
    "sin.approx": lambda right, x: right(x) + np.float32(1e-4),
    "rcp.approx": lambda right, x: right(x) * np.float32(1.0001),
    "tanh.approx": lambda right, x: right(x) * np.float32(1.01),
    "cos.approx": lambda right, x: np.sin(x.astype(np.float64)).astype(np.float32),
    "mul.ftz.f32": lambda right, x, y: right(x, y) * np.float32(1.001),
    "min.ftz.f32": lambda right, x, y: np.maximum(x, y),
    "abs.ftz.f32": lambda right, x: x,
    "add.ftz.f32": lambda right, x, y: np.roll(right(x, y), 1),
}


@pytest.mark.parametrize("opcode", WRONG)
def test_a_wrong_instruction_fails(verdict, monkeypatch, opcode):
    right = ptx_decode.operation

    def wrong(name: str, num_operands: int):
        meaning = right(name, num_operands)
        if not name.startswith(opcode):
            return meaning
        return replace(meaning, function=lambda *operands: WRONG[opcode](meaning.function, *operands))

    monkeypatch.setattr(ptx_decode, "operation", wrong)
    assert not verdict()
