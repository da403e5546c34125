"""Programs of a task with a rollout, given as formulas, and what the CPU records of them."""

import numpy as np

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
