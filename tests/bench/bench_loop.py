"""What the loop costs: a search whose evaluator reads scores off the hashes. Programs have up to 64 words, 33 on average."""

import os
import tempfile
import time
from pathlib import Path

import numpy as np

from evo.config import load_config
from evo.evaluate import Evaluation
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.search.map_elites import MapElites

NUM_OFFSPRING = 400_000
CONFIG = f"""
task: {Path(__file__).parents[2] / "tasks" / "erf"}
task_options: {{num_points: 64}}
program:
  max_length: 64
  vocabulary:
    instructions: [add_ftz_f32, sub_ftz_f32, mul_ftz_f32, fma_rn_ftz_f32, sin_approx_ftz_f32, ex2_approx_ftz_f32]
search:
  archive: {{dims: [100, 100]}}
stop: {{generations: 1000000}}
"""


class FromHashes:
    """Scores that spread over all cells, for the price of a few numbers."""

    uses_lowered = False

    def __init__(self, measures):
        self.low, self.high = np.array(list(measures.values())).T

    def evaluate(self, batch):
        """As of `Evaluator`."""
        first, second = batch.hashes.T
        places = np.stack([second & np.uint64(2**32 - 1), second >> np.uint64(32)], axis=1) * 2.0**-32
        objective = (first >> np.uint64(11)) * 2.0**-53 - 1.0
        return Evaluation(np.zeros(len(batch), np.uint8), objective, self.low + places * (self.high - self.low))


def best_us(batch_size: int, num_threads: int) -> float:
    """Microseconds an offspring: the best of many generations, once the archive is full."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(CONFIG)
        file.flush()
        overrides = (f"search.batch_size={batch_size}", f"evaluation.threads={num_threads}")
        search = Search(load_problem(load_config(Path(file.name), overrides)))
    evaluator = FromHashes(search.problem.task.measures)
    loop = MapElites(search.state, evaluator, search.problem.language.lowering, search._row_threads)
    best = float("inf")
    for generation in range(NUM_OFFSPRING // batch_size):
        start = time.perf_counter()
        loop.step()
        if generation > 100_000 // batch_size:
            best = min(best, time.perf_counter() - start)
    return best / batch_size * 1e6


def rows():
    """Rows of the table."""
    cores = sorted(os.sched_getaffinity(0))
    for num_threads, limits in ((1, ("1.2 us", "0.7 us")), (2, ("", ""))):
        if len(cores) < num_threads:
            continue
        os.sched_setaffinity(0, cores[:num_threads])
        for batch_size in (4096, 256):
            what = f"loop with a null evaluator, 64 words, batch {batch_size:,}, cores: {num_threads}"
            us = best_us(batch_size, num_threads)
            yield what, f"{us:.2f} us an offspring", *(limits if batch_size == 4096 else ("", ""))
