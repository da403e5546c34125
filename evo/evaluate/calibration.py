"""Calibration: the cost of a task's programs on each device of this machine.

Owns the measurements and the arithmetic of costs. They decide where programs run, never what they compute. Knows nothing of
configs, run folders or the search.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evo.evaluate import Evaluator
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.cuda.choice import COMPILE, INTERPRET
from evo.language.batch import Batch

BUDGET_S = 0.2  # of one measurement, beside a first one of a few programs that warms up
NUM_ROUNDS = 3  # of each, of which the best counts: whatever else the machine does only slows it down
NUM_FIRST = 4  # programs of a GPU's first measurement
MOST_PROGRAMS = 4096  # of its last one; a larger batch takes as long for each
_GROWTH = 32  # most, from one to the next
CPU = "cpu"
VERBS = {INTERPRET: "interpreted", COMPILE: "compiled"}


@dataclass(frozen=True)
class Calibration:
    """Cost of a program on each device, in seconds.

    num_points: of the task. num_instructions: of the measured programs, in the mean. threads: of the CPU. cpu_s: a program run on
    the CPU by all threads; None: it cannot run them. score_s: its scoring, by one thread. lane: in which the GPU ran most of the
    programs; gpu_s: one of a batch there, run and scored; None: not measured.
    """

    num_points: int
    num_instructions: float
    threads: int
    cpu_s: float | None
    score_s: float
    lane: str | None = None
    gpu_s: float | None = None

    def costs(self) -> dict[str, float]:
        """Seconds a program, run and scored, by `cpu` and the name of the lane."""
        costs = {} if self.cpu_s is None else {CPU: self.cpu_s + self.score_s / self.threads}
        return costs if self.lane is None or self.gpu_s is None else {**costs, self.lane: self.gpu_s}

    def fastest(self) -> str:
        """`cpu`, or the lane, with the least cost."""
        costs = self.costs()
        return min(costs, key=lambda name: costs[name])

    def __str__(self) -> str:
        """The costs in one line."""
        threads = f"{self.threads} {'thread' if self.threads == 1 else 'threads'}"
        parts = [
            f"CPU {duration(seconds)} ({threads})" if name == CPU else f"GPU {VERBS[name]} {duration(seconds)}"
            for name, seconds in self.costs().items()
        ]
        if self.score_s:
            parts.append(f"scoring {duration(self.score_s)} a thread")
        return f"a program takes: {', '.join(parts)}"

    def record(self) -> dict[str, Any]:
        """The fields as plain values, for the run's records."""
        return asdict(self)


def duration(seconds: float) -> str:
    """Three digits and a unit: `3.14 us`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError("unreachable")


def measure_cpu(scorer: ChunkScorer, batch: Batch, num_threads: int) -> tuple[float, float]:
    """Seconds a program to run on all threads, and to score on one.

    Raises:
        UserError: the task's `score` raises or returns the wrong thing.
    """
    size = scorer.chunk_size
    words = batch.words[np.arange(size) % len(batch)]

    def run(count: int) -> Any:
        results = None
        for first in range(0, count, size):  # with as little Python in it as there is in a run
            results = scorer.run(words[: count - first])
        return results

    with ThreadPoolExecutor(num_threads, "calibrate") as pool:

        def run_all(num_each: int) -> float:
            start = time.perf_counter()
            list(pool.map(run, [num_each] * num_threads))
            return (time.perf_counter() - start) / (num_threads * num_each)

        run_all(1)
        first_s = run_all(1) * num_threads
        num_each = max(1, int(BUDGET_S / NUM_ROUNDS / first_s)) if first_s > 0.0 else 1
        run_s = min(run_all(num_each) for _ in range(NUM_ROUNDS))
    count = min(size, len(batch))
    results = run(count)
    score_s = _best(lambda: scorer.judge(results, batch.num_instructions[:count])) / count
    return run_s, score_s


def measure_gpu(evaluator: Evaluator, batch: Batch, batch_size: int) -> tuple[str, float]:
    """The lane in which a GPU runs these programs, and seconds a program of a batch, by an evaluator that keeps no cubins.

    Args:
        batch: interpreted programs are repeated up to a batch of the search: fewer would keep host and GPU waiting.
        batch_size: of the search.
    """
    evaluator.evaluate(batch[:NUM_FIRST])  # starts workers and loads modules for the first time
    lanes = evaluator.evaluate(batch[:NUM_FIRST]).stats.lanes
    lane = max(lanes, key=lambda name: lanes[name])
    most = min(batch_size, len(batch) if lane == COMPILE else MOST_PROGRAMS)  # equal programs are compiled once
    count = NUM_FIRST

    def run() -> float:
        start = time.perf_counter()
        evaluator.evaluate(batch[np.arange(count) % len(batch)])
        return time.perf_counter() - start

    best_s = run()
    while count < most and (room := BUDGET_S / NUM_ROUNDS / max(best_s, 1e-9)) >= 2.0:
        count = min(most, int(count * min(room, _GROWTH)))
        best_s = run()
    return lane, min([best_s, *(run() for _ in range(NUM_ROUNDS - 1))]) / count


def _best(function: Callable[[], object]) -> float:
    """Seconds: the best of some calls after one that warms up."""
    function()
    spent_s, best_s, rounds = 0.0, float("inf"), 0
    while rounds < NUM_ROUNDS or (spent_s < BUDGET_S / NUM_ROUNDS and rounds < 100):
        start = time.perf_counter()
        function()
        taken_s = time.perf_counter() - start
        best_s, spent_s, rounds = min(best_s, taken_s), spent_s + taken_s, rounds + 1
        if spent_s > BUDGET_S:
            break
    return best_s
