"""Symbolic regression with and without tuning of constants, at equal CPU seconds, on one thread.

Each run gets its own points and seed. The best program of a run is scaled to the training points and compared with the formula at
test points. A run is exact if that leaves less than 1e-6 of the variance. Takes some minutes.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from evo.config import RunConfig
from evo.run.loaded_task import load_problem
from evo.run.search import Search

FOLDER = Path(__file__).parent / "formulas"
CPU_S = 8.0  # of a run
SEEDS = (1, 2, 3, 4)
EXACT = 1e-6
SHARE = 0.1
OPERATORS = {"umad": 0.25, "subprogram": 0.5, "perturbation": 0.15, "replacement": 0.1}
INSTRUCTIONS = {
    **dict.fromkeys(("add_ftz_f32", "sub_ftz_f32", "div_approx_ftz_f32"), 1.0),
    "mul_ftz_f32": 2.0,
    **dict.fromkeys((f"{name}_approx_ftz_f32" for name in ("sin", "cos", "ex2", "lg2")), 0.4),
}
SETS = ("koza_1", "keijzer_4", "pagie_1", "vladislavleva_4", "poly_10")


def config(name: str, seed: int, share: float) -> RunConfig:
    """The config of one run."""
    groups = {"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05}
    return RunConfig.model_validate(
        {
            "task": str(FOLDER),
            "task_options": {"name": name, "seed": seed},
            "seed": seed,
            "program": {"max_length": 64, "vocabulary": {"instructions": INSTRUCTIONS, "groups": groups}},
            "search": {
                "archive": {"type": "GridArchive", "dims": [40, 20]},
                "batch_size": 512,
                "initial": {"num_programs": 2048},
                "variation": {"operators": OPERATORS},
                "tuning": {"share": share},
            },
            "evaluation": {"threads": 1, "backend": "cpu"},
            "stop": {"generations": 10**9},
        }
    )


def scale(y: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of the best linear function of y."""
    size = np.abs(y).max() or 1.0
    columns = np.stack([y / size, np.ones(len(y))], axis=1)
    slope, intercept = np.linalg.lstsq(columns, target.astype(np.float64), rcond=None)[0]
    return slope / size, intercept


def error_at_test_points(problem: Any, words: np.ndarray, seed: int) -> float:
    """The share of the variance that is left at test points."""
    task = problem.task
    test = type(task)(problem.config.task_options["name"], seed, is_test=True)
    train_y, test_y = (problem.evaluator.outputs(words[None], each.points())["y"][0].astype(np.float64) for each in (task, test))
    with np.errstate(all="ignore"):
        slope, intercept = scale(train_y, task.y)
        return float(np.mean((slope * test_y + intercept - test.y) ** 2) / np.var(test.y.astype(np.float64)))


def run(name: str, seed: int, share: float) -> float:
    """The test error of the best program after CPU_S seconds of this process."""
    problem = load_problem(config(name, seed, share))
    search = Search(problem)
    start_s = time.process_time()
    for _ in search.generations():
        if time.process_time() - start_s > CPU_S:
            break
    elites = search.elites()
    error = error_at_test_points(problem, elites.solution[np.argmax(elites.objective)], seed)
    problem.close()
    return error


def rows():
    """Rows of the table."""
    for name in SETS:
        errors: dict[float, list[float]] = {0.0: [], SHARE: []}
        for seed in SEEDS:  # in turn
            for share, found in errors.items():
                found.append(run(name, seed, share))
        shown = [
            f"{what}: {sum(error < EXACT for error in found)} of {len(SEEDS)} exact, median test NMSE {np.median(found):.1e}"
            for what, found in zip(("bred", f"the best {SHARE:.0%} tuned"), errors.values(), strict=True)
        ]
        yield f"Search for {name}, {CPU_S:g} CPU seconds", "; ".join(shown), "", ""
