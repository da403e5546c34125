"""What the parts of a GPU's report share: how much they do, how they tell what they find, and the programs that they run.

A part's work runs in a process of its own (`evo.evaluate.cuda.device_child`); a step that it reports is a row of the report.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from evo.evaluate.cuda.agreement import scrambled
from evo.evaluate.cuda.choice import COMPILE
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.kernel import nvrtc
from evo.language.batch import Batch
from evo.language.program import Language, word
from evo.native.stack_ptx_words import WordType
from evo.storage.disk_cache import DiskCache
from evo.task import Task

# Exact instructions of formulas and three approximate ones: what is timed.
MIX = tuple(f"{name}_ftz_f32" for name in ("add", "sub", "mul", "fma_rn", "min", "max", "sin_approx", "ex2_approx", "rcp_approx"))


@dataclass(frozen=True)
class Extent:
    """How much is done.

    num_random: points beside the edges, for each instruction. num_programs: most random programs of a check. points: at which
    programs are checked. timed_points, lengths: of kernels that are timed. batches: programs of a batch from end to end.
    cell_s: most seconds of one figure of a batch. spin_s: of a kernel that others wait for. launch_s: after which a kernel counts
    as endless. rounds: of each figure, the best or the median counts. patience: factor of the parts' time limits. semiring: rows
    of each side of one that is timed, and their length. semiring_shapes: M, N and K of those that are checked.
    """

    num_random: int = 1 << 20
    num_programs: int = 2_000
    points: tuple[int, ...] = (1, 31, 1023, 1024, 1025, 100_001)
    timed_points: tuple[int, ...] = (20, 1 << 10, 1 << 16, 1 << 20, 1 << 24)
    lengths: tuple[int, ...] = (10, 32, 100)
    batches: tuple[int, ...] = (1 << 12, 1 << 14, 1 << 16, 1 << 18)
    batch_points: tuple[int, ...] = (1_000, 16_384, 262_144, 2_500_000)
    cell_s: float = 1.5
    spin_s: float = 0.05
    launch_s: float = 2.0
    rounds: int = 5
    patience: float = 1.0
    semiring: tuple[int, int] = (2048, 256)
    semiring_shapes: tuple[tuple[int, int, int], ...] = ((1, 1, 1), (3, 200, 17), (130, 70, 9), (257, 129, 40))


FULL = Extent()
# Each case once, small: for a GPU that is emulated.
SHORT = Extent(
    1 << 12, 24, (1, 31, 1023, 1024, 1025, 5_001), (20, 1 << 10), (10,), (16,), (20, 1_025), 60.0, 1e-3, 60.0, 1, 5.0,
    semiring=(20, 9), semiring_shapes=((1, 1, 1), (3, 70, 9)),
)  # fmt: skip


@dataclass(frozen=True)
class Order:
    """What a part is to do: on which device, and how much."""

    ordinal: int
    extent: Extent


Told = Callable[[str], None]


def row(what: str, text: str, at: str = "", **figures: Any) -> str:
    """A line of a part, as one step of its process. `at` is the column of its table; figures go to the JSON file alone."""
    return json.dumps({"what": what, "at": at, "text": text, **figures})


@contextmanager
def evaluator_of(
    order: Order,
    language: Language,
    task: Task,
    lane: str = COMPILE,
    names: Sequence[str] | None = None,
    cache: DiskCache | None = None,
    **options: Any,
) -> Iterator[CudaEvaluator]:
    """A CUDA evaluator of this lane, for programs of these instructions, closed at the end. options: of the evaluation."""
    given = {"device": order.ordinal, "lane": lane, **options}
    evaluator = CudaEvaluator(language, task, EvaluationOptions.model_validate(given), cache, instructions=names)
    try:
        yield evaluator
    finally:
        evaluator.close()


def programs_of_length(language: Language, length: int, count: int) -> Batch:
    """Different programs of that many live instructions, with 256 shapes of trees; the others differ in a constant."""
    rows = [_tree(language, length, seed) for seed in range(min(count, 256))]
    words = np.zeros((len(rows), max(map(len, rows))), np.uint64)
    for words_of, each in zip(words, rows, strict=True):
        words_of[: len(each)] = each
    words = words[np.arange(count) % len(rows)]
    factors = (1.0 + np.arange(count) / count).astype(np.float32).view(np.uint32)
    words[:, 0] = [word(WordType.CONSTANT, 0, payload) for payload in factors.tolist()]
    return Batch.analyze(language.lowering, words)


def _tree(language: Language, length: int, seed: int) -> list[int]:
    """A constant, which is replaced, and instructions whose operands are results that nothing has used, or inputs."""
    known, drawn = language.instruction_set, iter(scrambled(8 * length, seed).tolist())
    words, num_left, num_done = [0], 1, 0
    while num_done + num_left - 1 < length:
        index = known.instruction_index(MIX[next(drawn) % len(MIX)])
        num_operands = len(known.instructions[index].args)
        num_taken = 0 if num_done and next(drawn) % 3 == 0 else min(num_left, 1 + next(drawn) % num_operands)
        inputs = [next(drawn) % len(language.inputs) for _ in range(num_operands - num_taken)]
        words += [*(word(WordType.INPUT, payload=each) for each in inputs), word(WordType.PTX, payload=index)]
        num_left, num_done = num_left + 1 - num_taken, num_done + 1
    return words + [word(WordType.PTX, payload=known.instruction_index("add_ftz_f32"))] * (num_left - 1)


def has_nvrtc() -> bool:
    """Whether tasks' own kernels can be compiled here."""
    try:
        nvrtc.version()
    except nvrtc.NvrtcMissing:
        return False
    return True
