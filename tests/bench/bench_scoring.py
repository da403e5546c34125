"""Scoring of domain colouring on one thread: outputs of programs in, objective and measures out."""

import time
from pathlib import Path

import numpy as np

from evo.evaluate import CHUNK_SIZE
from evo.task import Programs
from evo.tasks.folder import load_task

FOLDER = Path(__file__).parents[2] / "tasks" / "domain_coloring"
NUM_ROUNDS = 100


def outputs(task, num_programs: int, seed: int) -> dict[str, np.ndarray]:
    """Work of programs of the kind that evolves: waves of warped coordinates. In the memory layout of an evaluator."""
    rng = np.random.default_rng(seed)
    points = task.points()
    x, y = points["x"], points["y"]
    stored = np.empty((num_programs, 2, len(x)), np.float32)
    for program in stored:
        for row in program:
            a, b, c, d = rng.normal(0, 2, 4).astype(np.float32)
            row[:] = c * np.sin(a * x * y + b * y) + np.tanh(d * x)
    return {"f": stored[:, 0], "g": stored[:, 1]}


def rows():
    """Rows of the table."""
    programs = Programs(num_instructions=np.zeros(CHUNK_SIZE, np.int32))
    for size, at_least, aim in ((64, "0.5 ms", "0.2 ms"), (128, "", "")):
        task = load_task(FOLDER, {"size": size})
        batch = outputs(task, CHUNK_SIZE, seed=1)
        task.score(batch, programs)
        best_s = float("inf")
        for _ in range(NUM_ROUNDS):
            start = time.perf_counter()
            task.score(batch, programs)
            best_s = min(best_s, time.perf_counter() - start)
        what = f"scoring of domain colouring, a picture of {size}x{size}, 1 core"
        yield what, f"{best_s / CHUNK_SIZE * 1e3:.3f} ms", at_least, aim
