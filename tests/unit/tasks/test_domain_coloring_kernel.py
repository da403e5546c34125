"""The kernel of domain colouring, run by the stand-in for a GPU: its sums and scores are those of `score`.

Both are given the outputs that the stand-in computes, so that they alone are compared.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from evo import Scores
from evo.compile.packing import Packing
from evo.evaluate import Status
from evo.evaluate.cuda.evaluator import CudaEvaluator, CudaOptions
from evo.instructions import shipped_instruction_set
from evo.kernel.cuda_source import template_of
from evo.kernel.template import POINTWISE
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.task import Programs, load_task

FOLDER = Path(__file__).parents[3] / "tasks" / "domain_coloring"
MAX_LENGTH = 100
# Of one colour; undefined in a quarter, in three quarters, and everywhere; infinite; with a pole.
EDGES = ["0.5", "1.5 %x sub_ftz_f32 lg2_approx_ftz_f32 %y", "%x 1.5 sub_ftz_f32 lg2_approx_ftz_f32 %y", "-1.0 lg2_approx_ftz_f32"]
EDGES += ["1e38 1e38 mul_ftz_f32", "1.0 %y %x mul_ftz_f32 div_approx_ftz_f32"]

# Only the power of the bands has other bits than on the CPU: both transforms round to float32, in another order. Their errors are
# about 2^-24 of the largest amplitude, so that a band of a millionth of its power may differ by a thousandth or two of itself.
# The deviation D of the bands takes part in the objective as exp(-(D / 1.2)^2 / 2), which is tiny where bands are so unequal.
OBJECTIVE_TOLERANCE = 1e-6


def make_problem(size=64, folder=FOLDER):
    """A task whose measures are its sums, and its language."""
    if not os.environ.get("CI"):
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    task = load_task(folder, {"size": size, "saturation": 0.7, "pure_magnitude": 1.5})
    num_pixels, make_scores = size**2, task.score_sums

    def score_sums(sums, programs):
        return Scores(make_scores(sums, programs).objective, sums)

    def score(outputs, programs):
        assert outputs["f"].shape[1] == num_pixels
        return score_sums(task._sums(outputs["f"], outputs["g"]), programs)

    task.score_sums, task.score = score_sums, score
    task.measures = {f"sum_{i}": (0.0, 1.0) for i in range(task.kernel_sums)}
    return task, Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def some_programs(language, count, seed=1):
    """Those at the edges, those that come with the task, and crossings of these, which are as varied as a search's."""
    shipped = [path.read_text() for path in sorted((FOLDER / "programs").glob("*.txt"))]
    words = [parse_program(language, text, "test", MAX_LENGTH) for text in (*EDGES, *shipped)]
    rng = np.random.default_rng(seed)
    parents = [each[each != 0] for each in words[len(EDGES) :]]
    while len(words) < count:
        first, second = (parents[i] for i in rng.integers(len(parents), size=2))
        child = np.concatenate([first[: rng.integers(len(first))], second[rng.integers(len(second)) :]])[:MAX_LENGTH]
        words.append(np.pad(child, (0, MAX_LENGTH - len(child))))
    return np.stack(words[:count])


def evaluate(task, language, words, packing=None):
    """By the kernel, and by `score` of the outputs."""
    evaluator = CudaEvaluator(language, task, CudaOptions(num_workers=1, packing=packing or Packing(64, 1)))
    try:
        found = evaluator.evaluate(Batch.analyze(language.lowering, words))
        outputs = evaluator.outputs(words, task.points())
    finally:
        evaluator.close()
    with np.errstate(all="ignore"):
        return found, task.score(outputs, Programs(np.zeros(len(words), np.int32)))
