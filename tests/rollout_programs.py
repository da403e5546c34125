"""Programs of a task with a rollout, given as formulas, and what the CPU records of them."""

import numpy as np

import evo
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.native.ptx_vm import levels


def language_of(task) -> Language:
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def words_of(task, *texts) -> np.ndarray:
    language = language_of(task)
    names = [each.name for each in language.instruction_set.instructions]
    return np.stack([parse_infix(language, text, "text", 96, names) for text in texts])


def records_of(task, *texts, level=None) -> dict[str, np.ndarray]:
    return ChunkScorer(language_of(task), task, level).outputs(words_of(task, *texts), task.points())


def scores_however_computed(task, *texts) -> np.ndarray:
    """Objectives, which levels, chunks and threads do not change."""
    first, *others = (records_of(task, *texts, level=level) for level in levels())
    for other in others:
        assert all((other[name].view(np.uint32) == first[name].view(np.uint32)).all() for name in first)
    language, words = language_of(task), words_of(task, *texts)
    hashes, counts = language.lowering.analyze(words)[:2]
    single = [ChunkScorer(language, task).score(words[i : i + 1], counts[i : i + 1]).objective[0] for i in range(len(words))]
    for threads in (1, 2):
        evaluator = CpuEvaluator(language, task, threads)
        np.testing.assert_array_equal(evaluator.evaluate(Batch(words, hashes, counts)).objective, single)
        evaluator.close()
    return np.array(single)


class RolloutTask(evo.Task):
    """A task of any rollout, whose objective is the mean of the last records."""

    measures = {"num_instructions": (0.0, 64.0)}

    def __init__(self, inputs, outputs, rollout, points, targets=None, kind="f32"):
        self.inputs, self.outputs = dict.fromkeys(inputs, kind), dict.fromkeys(outputs, kind)
        self.rollout, self._points, self._targets = rollout, points, targets
        self.reduction = None if targets is None else "regression"

    def points(self):
        return self._points

    def targets(self):
        return self._targets

    def score(self, outputs, programs):
        if self.reduction:
            return evo.Scores(-outputs.sum_squared_error.sum(axis=1), programs.num_instructions[:, None])
        last = [each[:, -1] for each in outputs.values()]
        objective = np.mean([each.mean(axis=tuple(range(1, each.ndim))) for each in last], axis=0)
        return evo.Scores(objective, programs.num_instructions[:, None])
