"""The kernel of domain colouring, run by the stand-in for a GPU: its sums and scores have the bits of those of `score`.

Both are given the outputs that the stand-in computes, so that they alone are compared.
"""

from pathlib import Path

import numpy as np
import pytest

from evo import Scores
from evo.compile.assembler import DEFAULT_OPTIONS, compiler_options
from evo.compile.packing import Packing
from evo.evaluate import Status
from evo.evaluate.cuda.choice import COMPILE, INTERPRET
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.kernel.cuda_source import template_of
from evo.kernel.template import task_ptx
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.task import Programs
from evo.tasks.folder import load_task

FOLDER = Path(__file__).parents[3] / "tasks" / "domain_coloring"
MAX_LENGTH = 100
pytestmark = pytest.mark.usefixtures("nvrtc")
# Of one colour; undefined in a quarter, in three quarters, and everywhere; infinite; with a pole.
EDGES = ["0.5", "1.5 %x sub_ftz_f32 lg2_approx_ftz_f32 %y", "%x 1.5 sub_ftz_f32 lg2_approx_ftz_f32 %y", "-1.0 lg2_approx_ftz_f32"]
EDGES += ["1e38 1e38 mul_ftz_f32", "1.0 %y %x mul_ftz_f32 div_approx_ftz_f32"]


def make_problem(size=64, folder=FOLDER):
    """A task whose measures are its sums, and its language."""
    task, scorer = (load_task(folder, {"size": size, "saturation": 0.7, "pure_magnitude": 1.5}) for _ in range(2))

    def score_sums(sums, programs):
        return Scores(scorer.score_sums(sums, programs).objective, sums)

    def score(outputs, programs):
        return score_sums(task._statistics.sums_of_complex(outputs["f"], outputs["g"], task._coloring), programs)

    task.score_sums, task.score = score_sums, score
    task.measures = {f"sum_{i}": (0.0, 1.0) for i in range(task.kernel_sums)}
    return task, Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def some_programs(language, count, seed=1):
    """Programs at the edges, those that come with the task, and crossings of these, which are as varied as a search's."""
    shipped = [path.read_text() for path in sorted((FOLDER / "programs").glob("*.txt"))]
    words = [parse_program(language, text, "test", MAX_LENGTH) for text in (*EDGES, *shipped)]
    rng = np.random.default_rng(seed)
    parents = [each[each != 0] for each in words[len(EDGES) :]]
    while len(words) < count:
        first, second = (parents[i] for i in rng.integers(len(parents), size=2))
        child = np.concatenate([first[: rng.integers(len(first))], second[rng.integers(len(second)) :]])[:MAX_LENGTH]
        words.append(np.pad(child, (0, MAX_LENGTH - len(child))))
    return np.stack(words[:count])


def evaluate(task, language, words, packing=None, lane=COMPILE):
    """By the kernel, and by `score` of the outputs."""
    options = EvaluationOptions(
        compile_workers=1, packing=packing or Packing(sites_per_kernel=64, kernels_per_module=1), lane=lane
    )
    evaluator = CudaEvaluator(language, task, options)
    try:
        found = evaluator.evaluate(Batch.analyze(language.lowering, words))
        assert lane == COMPILE or found.stats.lanes[INTERPRET] > 0.9 * len(words)
        outputs = evaluator.outputs(words, task.points())
    finally:
        evaluator.close()
    with np.errstate(all="ignore"):
        return found, task.score(outputs, Programs(np.zeros(len(words), np.int32)))


def assert_agree(found, expected):
    """Rejects are the same; sums and objectives have the same bits."""
    is_finite = np.isfinite(expected.objective)
    assert is_finite.any() and not is_finite.all()
    np.testing.assert_array_equal(found.status, np.where(is_finite, Status.OK, Status.REJECTED))
    np.testing.assert_array_equal(found.measures[is_finite], expected.measures[is_finite])
    np.testing.assert_array_equal(found.objective[is_finite], expected.objective[is_finite])


@pytest.mark.parametrize("lane", [COMPILE, pytest.param(INTERPRET, marks=pytest.mark.slow)])
def test_sums_and_scores_are_those_of_the_cpu(emulated_gpu, lane):
    task, language = make_problem()
    assert_agree(*evaluate(task, language, some_programs(language, 8), lane=lane))


@pytest.mark.slow
@pytest.mark.parametrize(("lane", "packing"), [(COMPILE, Packing(sites_per_kernel=20, kernels_per_module=2)), (INTERPRET, None)])
def test_many_pictures_agree_in_packs_of_many_programs(emulated_gpu, lane, packing):
    task, language = make_problem(32)
    found, expected = evaluate(task, language, some_programs(language, 100), packing, lane)
    assert_agree(found, expected)
    assert np.quantile(expected.objective[np.isfinite(expected.objective)], [0.5, 0.9]) == pytest.approx([0.3, 0.8], abs=0.29)


@pytest.mark.parametrize("target", ["sm_75", "sm_120"])
def test_the_kernel_assembles_without_a_driver(target):
    nvptxcompiler = pytest.importorskip("evo.native.nvptxcompiler")
    task, language = make_problem()
    ptx = task_ptx(template_of(task, language, target, 1).content)
    assert nvptxcompiler.compile(ptx, compiler_options(target, DEFAULT_OPTIONS))
