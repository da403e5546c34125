"""Cost of a generation as the archive grows, and as rows get longer: evaluations a second, one core."""

import os
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from evo.config import make_config
from evo.language.batch import Batch
from evo.run.loaded_task import load_problem
from evo.run.search import Search

BATCH = 2048
INSTRUCTIONS = ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "sin_approx_ftz_f32", "ex2_approx_ftz_f32"]


def new_search(side: int, batch_size: int, num_threads: int, max_length: int = 64) -> Search:
    """A search for erf at 64 points, over `side * side` cells, without an end."""
    config = {
        "task": str(Path(__file__).parents[1] / "data" / "erf"),
        "task_options": {"num_points": 64},
        "program": {"max_length": max_length, "vocabulary": {"instructions": INSTRUCTIONS}},
        "search": {"archive": {"dims": [side, side]}, "batch_size": batch_size},
        "evaluation": {"backend": "cpu", "threads": num_threads},
        "stop": {"generations": 1_000_000},
    }
    return Search(load_problem(make_config(config, "bench")))


def search_of(num_elites: int, max_length: int) -> Search:
    """A search whose archive has this many elites: random programs, in cells chosen evenly."""
    search = new_search(400, BATCH, 1, max_length)
    low, high = np.array(list(search.problem.task.measures.values())).T
    cells = np.random.default_rng(1).permutation(160_000)[:num_elites]
    for first in range(0, num_elites, BATCH):
        own = cells[first : first + BATCH]
        words = search.emitter.random_programs(len(own), first_slot=first)
        batch = Batch.analyze(search.problem.language.lowering, words)
        search.archive.add(
            words,
            np.full(len(own), -1.0),
            low + (np.stack(np.divmod(own, 400), axis=1) + 0.5) / 400 * (high - low),
            parents=np.full((len(own), 2), -1),
            operator=np.full(len(own), -1),
            generation=np.zeros(len(own), int),
            slot=np.arange(len(own)),
            hash=batch.hashes,
            num_instructions=batch.num_instructions,
        )
    search.emitter.generation = search.counters.generations = 1
    return search


def rates(searches: list[Search], num_rounds: int = 12, num_generations: int = 4) -> list[float]:
    """The best rate of each, in evaluations a second; the searches take turns."""
    best = [0.0] * len(searches)
    generations = [search.generations() for search in searches]
    for turn in range(num_rounds + 1):
        for i, search in enumerate(searches):
            before, start_s = search.counters.evaluations, time.perf_counter()
            for _ in range(num_generations):
                next(generations[i])
            if turn:  # the first warms up
                best[i] = max(best[i], (search.counters.evaluations - before) / (time.perf_counter() - start_s))
    return best


def rows():
    """Rows of the table."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    small, large, long_rows = search_of(3_000, 64), search_of(100_000, 64), search_of(3_000, 4096)
    with closing(small.problem), closing(large.problem), closing(long_rows.problem):
        rate, large_rate, long_rate = rates([small, large, long_rows])
    yield "evaluations a second, 3,000 elites, rows of 64 words, batch 2,048, 64 points", f"{rate:,.0f}", "", ""
    yield "100,000 elites against 3,000", f"{large_rate / rate:.2f}x", "0.85x", "0.95x"
    yield "rows of 4,096 words against 64, equal programs", f"{long_rate / rate:.2f}x", "0.7x", "0.9x"
