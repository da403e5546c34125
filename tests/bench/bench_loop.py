"""Cost of the loop: a search whose evaluator reads scores off the hashes. Programs have up to 64 words, 33 on average."""

import os
import time

import numpy as np
from bench_archive import new_search

from evo.evaluate import Evaluation
from evo.search.map_elites import MapElites

NUM_OFFSPRING = 400_000


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
    search = new_search(100, batch_size, num_threads)
    evaluator = FromHashes(search.problem.task.measures)
    loop = MapElites(search.state, evaluator, search.problem.language.lowering)
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
