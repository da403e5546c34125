"""What GPU tests share. This folder needs an NVIDIA GPU and is skipped only if a device probe finds none."""

import numpy as np
import pytest

import evo
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.device import probe
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.program import Language
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation

PROBLEM = probe().problem


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.gpu)
            if PROBLEM:
                item.add_marker(pytest.mark.skip(reason=PROBLEM))


class Points(evo.Task):
    """Programs at given points; scores what `Regression` and the sums of the outputs say."""

    inputs = {"a": "f32", "b": "f32", "c": "f32", "u": "u32", "v": "u32", "w": "u32"}
    outputs = {"f": "f32", "g": "u32"}
    measures = {"first": (0.0, 1.0), "ones": (0.0, 32.0)}

    def __init__(self, values: dict[str, np.ndarray]):
        self.values = values

    def points(self):
        return self.values

    def score(self, outputs, programs):
        bits = outputs["f"].view(np.uint32) ^ outputs["g"]
        first = (bits[:, 0] / 2.0**32).astype(np.float64)
        ones = np.bitwise_count(bits).mean(axis=1)
        return evo.Scores(first + ones, np.stack([first, ones], axis=1))


def language_of(task: evo.Task) -> Language:
    """The language of a task's programs, with the default instruction set."""
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def random_programs(language: Language, names: tuple[str, ...], count: int, max_length: int = 60, seed: int = 11) -> np.ndarray:
    """`(count, max_length)` random programs over these instructions."""
    vocabulary = VocabularyOptions(
        instructions=dict.fromkeys(names, 1.0),
        meta={"dup": 1.0, "swap": 1.0},
        groups={"instructions": 0.5, "inputs": 0.35, "constants": 0.1, "meta": 0.05},
        constants=ConstantOptions(f32_sigma=1.0, u32_max=9, meta_max=2),
    )
    options = VariationOptions(operators={"umad": 1.0})
    return make_variation(language, vocabulary, options, (1, max_length)).random_programs(seed, 0, 0, count, max_length)


@pytest.fixture
def both():
    """Makes the CPU and the CUDA evaluator of a task; both are closed at the end."""
    made = []

    def make(task: evo.Task, options: EvaluationOptions | None = None, **rest) -> tuple[CpuEvaluator, CudaEvaluator]:
        language = language_of(task)
        made.append(CpuEvaluator(language, task))
        made.append(CudaEvaluator(language, task, options or EvaluationOptions(lane="compile"), **rest))
        return made[-2], made[-1]

    yield make
    for evaluator in made:
        evaluator.close()
