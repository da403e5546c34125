"""The prescreen against a search without: evaluations and wall time to equal QD score.

For each seed a search without prescreen runs for so many evaluations; one with a prescreen then runs until it has the same QD
score, at most three times as long. Wall times at 1 ms are those of an evaluator that sleeps, on one thread. The number of seeds
may be given in EVO_BENCH_SEEDS. Three take two minutes.
"""

import os
import time
from pathlib import Path

import numpy as np

from evo.config import load_config
from evo.run.loaded_task import load_problem
from evo.run.search import Search

NUM_SEEDS = int(os.environ.get("EVO_BENCH_SEEDS", "20"))
FIRST_SEED = 11  # others chose the length scale and FACTOR
FACTOR = 16
LIMIT = 3  # times the evaluations of the search without, after which the other gives up
SLEEP_S = 1e-3
CONFIGS = Path(__file__).parents[2] / "configs"
ONE_THREAD = ("evaluation.threads=1", "evaluation.executor=threads", "evaluation.backend=cpu", "stop.seconds=null")
REGRESSION = ("search.tuning.share=0", "stop.objective=null")
# Name, config, evaluations without a prescreen, overrides.
TASKS = (
    ("domain colouring", "domain_coloring", 30_000, ("search.initial.num_programs=2000",)),
    ("regression, Pagie-1", "symbolic_regression", 20_000, REGRESSION),
)
ERF = (
    *(f"task={Path(__file__).parents[1] / 'data' / 'erf'}", "task_options={}", "program.max_length=48"),
    *("search.tuning={}", "search.starts={count: 24, generations: 25}"),
)
DEAR_TASK = ("erf", 10_000, (*ERF, "search.initial.num_programs=1000", "search.learning.evaluation_cost=200"))


class Sleeping:
    """An evaluator whose every evaluation takes a millisecond more."""

    def __init__(self, evaluator):
        self._evaluator = evaluator

    def evaluate(self, batch):
        time.sleep(SLEEP_S * len(batch))
        return self._evaluator.evaluate(batch)

    def __getattr__(self, name):
        return getattr(self._evaluator, name)


def make(name: str, seed: int, evaluations: int, factor: int, overrides: tuple[str, ...], *, is_dear: bool = False) -> Search:
    """A search by config, seed and factor."""
    sets = (*ONE_THREAD, *overrides, f"seed={seed}", f"stop.evaluations={evaluations}", f"search.learning.prescreen={factor}")
    problem = load_problem(load_config(CONFIGS / f"{name}.yaml", sets))
    if is_dear:
        vars(problem)["evaluator"] = Sleeping(problem.evaluator)
    return Search(problem)


def until(search: Search, qd_score: float) -> tuple[int, float, float]:
    """Evaluations, seconds and QD score when a search reaches a QD score or its stop."""
    start_s = time.perf_counter()
    for generation in search.generations():
        if generation.qd_score >= qd_score:
            break
    seconds = time.perf_counter() - start_s
    search.problem.close()
    return search.counters.evaluations, seconds, generation.qd_score


def compare(name: str, evaluations: int, overrides: tuple[str, ...], *, is_dear: bool) -> tuple[list[float], list[float]]:
    """For each seed the ratios of evaluations and of seconds."""
    ratios, times = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + NUM_SEEDS):
        without = until(make(name, seed, evaluations, 1, overrides, is_dear=is_dear), np.inf)
        with_it = until(make(name, seed, LIMIT * evaluations, FACTOR, overrides, is_dear=is_dear), without[2])
        ratios.append(with_it[0] / without[0])
        times.append(with_it[1] / without[1])
    return ratios, times


def shown(ratios: list[float]) -> str:
    """Median and quartiles."""
    low, median, high = np.percentile(ratios, [25, 50, 75])
    return f"{median:.2f}x ({low:.2f} to {high:.2f})"


def rows():
    """Rows of the table."""
    seeds = f"{NUM_SEEDS} seeds"
    for what, name, evaluations, overrides in TASKS:
        fixed = (*overrides, "search.learning.evaluation_cost=300")
        ratios, _ = compare(name, evaluations, fixed, is_dear=False)
        yield (
            f"evaluations to the QD score of {evaluations:,} without prescreen: {what}, {seeds}, {FACTOR} offspring for one",
            shown(ratios),
            "0.7x",
            "0.3x",
        )
    name, evaluations, overrides = DEAR_TASK
    ratios, times = compare(name, evaluations, overrides, is_dear=True)
    what = f"{name} with 1 ms for an evaluation, {seeds}"
    yield f"the same: {what}", shown(ratios), "0.7x", "0.3x"
    yield "its wall time", shown(times), "0.75x", "0.35x"
