"""The front of a run: the elites than which none is simpler and as good.

Owns which elites these are, and which of them stand out. Knows nothing of how they are drawn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.language.expression import infix_line
from evo.language.formula import display_note, rounded
from evo.report.elites import cell_names
from evo.report.recompute import problem_for_facts, report_facts, whole_expressions
from evo.report.table import aligned
from evo.run.run import Run
from evo.run.saved_search import SearchView
from evo.task import task_errors

MIN_EXPRESSION = 20  # characters of an expression, even where lines are too narrow


class Searched(Protocol):
    """What has a search: a run, or a result of `evo.evolve`."""

    @property
    def search(self) -> SearchView:
        """Its search."""


@dataclass(frozen=True)
class Front:
    """Elites by rising complexity and rising objective.

    rows: of the run's elites. complexity, objective: theirs. knee: the place in `rows` of the elite beyond which more complexity
    pays off least. shortest: that of the one with the least description length, or None if the task does not know it.
    """

    rows: NDArray[np.int64]
    complexity: NDArray[np.float64]
    objective: NDArray[np.float64]
    knee: int
    shortest: int | None


def why_no_front(run: Searched) -> str | None:
    """Why a run has no front, or None if it has."""
    if run.search.problem.task.complexity is None:
        return "the task does not say which measure is its complexity (Task.complexity)"
    return None if len(run.search.elites()) else "the archive is empty"


def front_of(run: Searched) -> Front:
    """The front of a run.

    Raises:
        UserError: the run has none (`why_no_front`), or the task's description_length() fails.
    """
    if reason := why_no_front(run):
        place = f"{run.run_dir.path}: " if isinstance(run, Run) else ""
        raise UserError(f"{place}no front: {reason}")
    task, elites = run.search.problem.task, run.search.elites()
    complexity = elites.measures[:, list(task.measures).index(str(task.complexity))]
    order = np.lexsort((-elites.objective, complexity))
    best = np.maximum.accumulate(elites.objective[order])
    rows = order[np.concatenate([[True], best[1:] > best[:-1]])]
    complexity, objective = complexity[rows], elites.objective[rows]
    with task_errors(type(task), "description_length"):
        bits = task.description_length(objective, complexity)
        shortest = None if bits is None else int(np.argmin(bits))
    return Front(rows, complexity, objective, _knee(complexity, objective), shortest)


def describe_front(run: Run, width: int | None = None, precision: int | None = None) -> str:
    """The front as a table, whose last column has the expressions.

    Args:
        width: most characters of a line, which expressions are cut to; None: all of them.
        precision: significant digits of the formulas' numbers; None: all.

    Raises:
        UserError: the run has no front, or the task fails.
    """
    task, elites = run.search.problem.task, run.search.elites()
    front = front_of(run)
    with problem_for_facts(run) as (local, note):
        facts = report_facts(local, elites.solution[front.rows])
        expressions = [rounded(each, precision) for each in whole_expressions(local, elites.solution[front.rows])]
    columns = {
        "cell": cell_names(run, front.rows),
        str(task.complexity): [f"{value:g}" for value in front.complexity],
        "objective": [f"{value:.6g}" for value in front.objective],
        **{name: [f"{value:.9g}" for value in values] for name, values in facts.items()},
        "": [", ".join(marks_of(front, place)) for place in range(len(front.rows))],
    }
    begins = aligned([list(columns), *zip(*columns.values(), strict=True)], right=range(len(columns) - 1))
    most = None if width is None else max(MIN_EXPRESSION, width - len(begins[0]) - 2)
    ends = [f"expression{display_note(precision)}", *(infix_line(expression, most) for expression in expressions)]
    text = "".join(f"{begin}  {end}\n" for begin, end in zip(begins, ends, strict=True))
    return text + (f"{', '.join(facts)}: {note}\n" if facts and note else "")


def file_names(cells: list[str], suffix: str) -> list[str]:
    """A file's name for each elite of a front by the name of its cell, in the order of the front."""
    return [f"{place:03d}_cell_{re.sub('[^0-9]+', '_', cell)}{suffix}" for place, cell in enumerate(cells, 1)]


def marks_of(front: Front, place: int) -> list[str]:
    """What the elite at a place of the front stands out for."""
    return [name for name, marked in (("knee", front.knee), ("shortest description", front.shortest)) if marked == place]


def _knee(complexity: NDArray[np.float64], objective: NDArray[np.float64]) -> int:
    """The place farthest above the line from the first to the last (as in Kneedle, Satopaa et al. 2011)."""
    if len(complexity) < 3:
        return 0
    x = (complexity - complexity[0]) / (complexity[-1] - complexity[0])
    y = (objective - objective[0]) / (objective[-1] - objective[0])
    return int(np.argmax(y - x))
