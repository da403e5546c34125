"""Tidying of the front's elites, where elites are formulas for targets.

Owns which elites are tidied, and which others a tidy one stands for. `evo.evaluate.tidy` decides how.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.evaluate import Status
from evo.evaluate.tidy import LOW_PRICE, MOST_LOST, Tidied, Tidier
from evo.language.batch import Batch
from evo.run.loaded_task import Problem
from evo.run.template_tidying import TemplateTidier
from evo.search.archives.elites import Elites
from evo.search.emitter import TIDY
from evo.search.state import Counters
from evo.task import Task
from evo.tasks.answers import task_errors

MIN_OPERATIONS, MAX_OPERATIONS = 50_000, 400_000  # of the tidier for a front: as many as the search had evaluations, but
ROUNDING = 1e-4  # of an objective, that f32 may take where a formula stays the same

CellsOf = Callable[[NDArray[np.float64]], NDArray[Any]]  # the cells of measures


def tidied(problem: Problem, elites: Elites, cells_of: CellsOf, counters: Counters, until_s: float | None = None) -> Elites:
    """Replaces elites on the front by tidy ones, whose parents they are.

    A tidy program has the scores that the evaluator gives it. It also replaces elites that are worse and not simpler than its
    parent; and if rounding alone keeps it from the targets, all that are as complex.

    Args:
        until_s: time of `time.monotonic` after which no further elite is tidied; None: counts alone decide.
    """
    end_s = math.inf if until_s is None else until_s
    task = problem.task
    has_formulas = task.reduction == "regression" and len(task.outputs) == 1 and not task.rollout
    has_formulas = has_formulas and task.point_loss() is None  # tidying weighs squared errors
    if not has_formulas or not len(elites):
        return elites
    complexity = _complexity(task, elites.num_instructions, elites.measures)
    bits = _description_length(task, elites.objective, complexity)
    most = min(max(counters.evaluations, MIN_OPERATIONS), MAX_OPERATIONS)
    allowed = problem.config.program.vocabulary.instructions
    if task.template:
        tidier: Tidier | TemplateTidier = TemplateTidier(problem.language, task, allowed)
    else:
        tidier = Tidier(problem.language, task, allowed, keeps_all=bits is None, end_s=end_s)
    candidates: list[tuple[int, Tidied]] = []  # with the rows of the parents
    for row in _front(elites.objective, complexity, bits):
        if tidier.num_operations >= most or (time.monotonic() >= end_s and candidates):
            break
        if tidy := tidier.tidy(elites.solution[row]):
            candidates.append((row, tidy))
            if tidy.is_coarse and isinstance(tidier, Tidier) and (finer := tidier.tidy(elites.solution[row], LOW_PRICE)):
                candidates.append((row, finer))
    if not candidates:
        return elites
    batch = Batch.analyze(problem.language.lowering, np.array([tidy.words for _, tidy in candidates]))
    scores = problem.evaluator.evaluate(batch)
    cells = cells_of(np.nan_to_num(scores.measures)).astype(np.int64)
    counts = _complexity(task, batch.num_instructions, scores.measures)
    new_bits = _description_length(task, scores.objective, counts)
    is_gone = np.zeros(len(elites), bool)
    entered: dict[int, int] = {}  # cell -> row of the batch
    for new, (old, tidy) in enumerate(candidates):
        objective, cell = scores.objective[new], int(cells[new])
        # In f32 too, it must be as good as data can tell.
        if bits is None or new_bits is None:
            is_good = objective >= elites.objective[old] - ROUNDING * max(1.0, abs(elites.objective[old]))
        else:
            is_good = tidy.is_exact or new_bits[new] <= bits[old] + tidy.bits + MOST_LOST
        if scores.status[new] != Status.OK or not is_good:
            continue
        is_new = not np.array_equal(tidy.words, elites.solution[old])
        is_better = elites.objective > objective
        stands_for = is_better & (complexity >= complexity[old]) & (elites.objective <= elites.objective[old])
        stands_for[old] = is_new and not tidy.is_coarse
        if tidy.is_exact:
            stands_for |= is_better & (complexity >= counts[new])
        if is_new and (is_better & (elites.cell == cell) & ~stands_for & ~is_gone).any():
            continue
        is_gone |= stands_for
        if is_new and (cell not in entered or objective > scores.objective[entered[cell]]):
            entered[cell] = new
    is_gone |= np.isin(elites.cell, list(entered))
    chosen = np.array(list(entered.values()), np.int64)
    parents = elites.cell[np.array([row for row, _ in candidates])[chosen]].astype(np.int32)
    tidy_columns = {
        "cell": cells[chosen],
        "solution": batch.words[chosen],
        "objective": scores.objective[chosen],
        "measures": scores.measures[chosen],
        "parents": np.stack([parents, np.full_like(parents, -1)], axis=1),
        "operator": np.full(len(chosen), TIDY, np.int32),
        "generation": np.full(len(chosen), counters.generations),
        "slot": chosen.astype(np.int32),
        "hash": batch.hashes[chosen],
        "num_instructions": batch.num_instructions[chosen],
    }
    columns = {name: np.concatenate([column[~is_gone], tidy_columns[name]]) for name, column in vars(elites).items()}
    by_cell = np.argsort(columns["cell"], kind="stable")
    return Elites(**{name: column[by_cell] for name, column in columns.items()})


def _front(objective: NDArray[np.float64], complexity: NDArray[np.float64], bits: NDArray[Any] | None) -> list[int]:
    """The rows of the Pareto front, sorted by length of description, or else the best first."""
    order = np.lexsort((-objective, complexity))
    best = np.maximum.accumulate(objective[order])
    front = order[np.concatenate([[True], best[1:] > best[:-1]])]
    by = -objective if bits is None else bits
    return front[np.argsort(by[front], kind="stable")].tolist()  # type: ignore[no-any-return]


def _complexity(task: Task, num_instructions: NDArray[np.int32], measures: NDArray[np.float64]) -> NDArray[np.float64]:
    if task.complexity is None:
        return num_instructions.astype(np.float64)
    return measures[:, list(task.measures).index(task.complexity)]


def _description_length(task: Task, objective: NDArray[np.float64], complexity: NDArray[np.float64]) -> NDArray[Any] | None:
    with task_errors(type(task), "description_length"):
        return task.description_length(objective, complexity)
