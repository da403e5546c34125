"""Two cores against one: scoring by threads and processes, and whole generations of a regression; and chunks of different sizes.

Ratios of one run; times are the best of several, in turn.
"""

import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np

from evo.config import load_config
from evo.evaluate import TaskSource
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.cpu import CpuEvaluator
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation
from evo.task import Scores, Task
from evo.tasks.folder import load_task

FOLDER = Path(__file__).parents[2] / "tasks" / "domain_coloring"
BATCH_SIZE = 512
NUM_ROUNDS = 15
NAMES = ("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "sin_approx_ftz_f32", "cos_approx_ftz_f32")
CHUNK_SIZES = (8, 16, 32, 64, 128, 256, 512)
REGRESSION = f"""
task: {Path(__file__).parents[1] / "data" / "erf"}
program:
  vocabulary:
    instructions: [add_ftz_f32, sub_ftz_f32, mul_ftz_f32, fma_rn_ftz_f32, sin_approx_ftz_f32, ex2_approx_ftz_f32]
search: {{archive: {{dims: [50, 50]}}, batch_size: 2048}}
evaluation: {{backend: cpu}}
stop: {{generations: 1000000}}
"""


class Line(Task):
    """One output at any number of points, with a score as short as they come."""

    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"mean": (-1.0, 1.0)}

    def __init__(self, num_points: int):
        self._x = np.linspace(-1.0, 1.0, num_points, dtype=np.float32)

    def points(self):
        """As `Task.points`."""
        return {"x": self._x}

    def score(self, outputs, programs):
        """As `Task.score`."""
        y = outputs["y"]
        error = y - self._x
        return Scores(-np.einsum("ij,ij->i", error, error), y.mean(axis=1)[:, None])


def language_of(task: Task) -> Language:
    """The task's language with the default instructions."""
    return Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))


def random_batch(language: Language, num_programs: int) -> Batch:
    """Random programs of up to 48 words."""
    groups = {"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05}
    vocabulary = VocabularyOptions(
        instructions=dict.fromkeys(NAMES, 1.0),
        meta={"dup": 1.0, "swap": 1.0},
        groups=groups,
        constants=ConstantOptions(f32_sigma=1.0, u32_max=9, meta_max=2),
    )
    variation = make_variation(language, vocabulary, VariationOptions(operators={"umad": 1.0}), (16, 48))
    words = variation.random_programs(5, 0, 0, num_programs, 48)
    return Batch.analyze(language.lowering, words)


def best_of_turns(calls: dict, clock=time.perf_counter) -> dict:
    """The least seconds of each call, which take turns."""
    best_s = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(NUM_ROUNDS):
        for name, call in calls.items():
            start_s = clock()
            call()
            best_s[name] = min(best_s[name], clock() - start_s)
    return best_s


def scaling_rows():
    """Domain colouring on one and two threads and processes."""
    task = load_task(FOLDER, {})
    language = language_of(task)
    batch = random_batch(language, BATCH_SIZE)
    source = TaskSource(FOLDER, {})
    evaluators = {
        (executor, number): CpuEvaluator(language, task, number, executor=executor, source=source)
        for executor in ("threads", "processes")
        for number in (1, 2)
    }
    best_s = best_of_turns({key: lambda e=evaluator: e.evaluate(batch) for key, evaluator in evaluators.items()})
    for evaluator in evaluators.values():
        evaluator.close()
    one_s = best_s["threads", 1]
    yield "domain colouring, 1 thread", f"{BATCH_SIZE / one_s:,.0f} programs/s", "", ""
    yield "2 threads against 1", f"{one_s / best_s['threads', 2]:.2f}x", "", ""
    yield "1 process against 1 thread", f"{one_s / best_s['processes', 1]:.2f}x", "", ""
    yield "2 processes against 1 thread", f"{one_s / best_s['processes', 2]:.2f}x", "1.85x", "1.95x"


def regression_search(num_points: int, num_threads: int) -> Search:
    """A search for a function of one variable, with the built-in reduction."""
    overrides = (f"task_options.num_points={num_points}", f"evaluation.threads={num_threads}")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(REGRESSION)
        file.flush()
        return Search(load_problem(load_config(Path(file.name), overrides)))


def regression_rows():
    """Generations of a regression on one and two threads. The searches are the same, so their generations are."""
    for num_points, num_generations, limits in ((20, 200, ("1.5x", "1.8x")), (10_000, 30, ("1.85x", "1.95x"))):
        with ExitStack() as stack:
            searches = [regression_search(num_points, num_threads) for num_threads in (1, 2)]
            for search in searches:
                stack.enter_context(closing(search.problem))
            rates = [[], []]
            generations = [search.generations() for search in searches]
            for _ in range(num_generations):
                for search, generation, found in zip(searches, generations, rates, strict=True):
                    before, start_s = search.counters.evaluations, time.perf_counter()
                    next(generation)
                    found.append((search.counters.evaluations - before) / (time.perf_counter() - start_s))
        one, two = (max(found[num_generations // 10 :]) for found in rates)
        what = f"regression at {num_points:,} points, batch 2,048"
        yield f"{what}, evaluations a second, 1 core", f"{one:,.0f}", *(("150,000", "300,000") if num_points == 20 else ("", ""))
        yield f"{what}, 2 threads against 1", f"{two / one:.2f}x", *limits


def chunk_rows():
    """Programs a second by the size of a chunk, against 32."""
    for num_points in (20, 676, 4096, 10_000):
        task = Line(num_points)
        scorer = ChunkScorer(language_of(task), task)
        batch = random_batch(language_of(task), 2048)

        def evaluate(size: int, scorer=scorer, batch=batch) -> None:
            for start in range(0, len(batch), size):
                chunk = batch[start : start + size]
                scorer.score(chunk.words, chunk.num_instructions)

        best_s = best_of_turns({size: lambda s=size: evaluate(s) for size in CHUNK_SIZES}, time.process_time)
        for size in CHUNK_SIZES:
            mark = " (chosen)" if size == scorer.chunk_size else ""
            what = f"{num_points:,} points, 1 output, chunks of {size}{mark} against 32"
            yield what, f"{best_s[32] / best_s[size]:.2f}x", "", ""


def rows():
    """Rows of the table."""
    yield from scaling_rows()
    yield from regression_rows()
    yield from chunk_rows()
