"""The Pareto front of a run: no simpler elite is as good as one on it. Which elite reports take.

Owns which elites stand on the front, which of them stand out, and how a user names one. Knows nothing of how they are drawn.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError
from evo.language.formula_text import display_note, infix_line, rounded
from evo.report.elites import cell_names
from evo.report.recompute import Searched, problem_for_facts, report_facts, whole_expressions
from evo.report.table import aligned, shortened
from evo.run.run import Run
from evo.task import Task
from evo.tasks.answers import task_errors

MIN_EXPRESSION = 40  # characters of an expression, even where lines are too narrow
BEST, SHORTEST, KNEE = "best", "shortest", "knee"  # names of elites, beside those of cells


@dataclass(frozen=True)
class Front:
    """Elites by rising complexity and rising objective.

    rows: of the run's elites. complexity, objective: theirs. positions: indices in `rows` by name. The best is the last. The knee
    is the one beyond which more complexity pays off least. The shortest has the least description length; it is missing if
    the task does not know that.
    """

    rows: NDArray[np.int64]
    complexity: NDArray[np.float64]
    objective: NDArray[np.float64]
    positions: dict[str, int]

    @property
    def default(self) -> int:
        """The position of the elite of `default_row`."""
        return self.positions.get(SHORTEST, self.positions[BEST])


def why_no_front(run: Searched) -> str | None:
    """Why a run has no front, or None if it has."""
    if run.search.problem.task.complexity is None:
        return "the task does not say which measure is its complexity (Task.complexity)"
    return None if len(run.search.elites()) else "the archive is empty"


def front_of(run: Searched) -> Front:
    """The front of a run. Raises UserError: the run has none (`why_no_front`), or the task fails."""
    if reason := why_no_front(run):
        prefix = f"{run.run_dir.path}: " if isinstance(run, Run) else ""
        raise UserError(f"{prefix}no front: {reason}")
    task, elites = run.search.problem.task, run.search.elites()
    complexity, objective = elites.measures[:, list(task.measures).index(str(task.complexity))], elites.objective
    if type(task).handicap is Task.handicap:
        return make_front(task, complexity, objective, best_rows(complexity, objective))
    with problem_for_facts(run) as (local, _):

        def handicap(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            facts = report_facts(local, elites.solution[rows])
            with task_errors(type(task), "handicap"):
                return np.asarray(task.handicap(facts | {"objective": objective[rows]}), np.float64)

        return make_front(task, complexity, objective, sound_rows(complexity, objective, handicap))


def make_front(task: Task, complexity: NDArray[np.float64], objective: NDArray[np.float64], rows: NDArray[np.int64]) -> Front:
    """The front of programs of a task with these rows. Raises UserError if the task fails."""
    complexity, objective = complexity[rows], objective[rows]
    positions = {BEST: len(rows) - 1, KNEE: _knee(complexity, objective)}
    with task_errors(type(task), "description_length"):
        if (bits := task.description_length(objective, complexity)) is not None:
            positions[SHORTEST] = int(np.argmin(bits))
    return Front(rows, complexity, objective, positions)


def best_rows(complexity: NDArray[np.float64], objective: NDArray[np.float64]) -> NDArray[np.int64]:
    """The rows of the Pareto front, by rising complexity: no simpler row is as good."""
    order = np.lexsort((-objective, complexity))
    best = np.maximum.accumulate(objective[order])
    rows: NDArray[np.int64] = order[np.concatenate([[True], best[1:] > best[:-1]])]
    return rows


def sound_rows(
    complexity: NDArray[np.float64],
    objective: NDArray[np.float64],
    handicap: Callable[[NDArray[np.int64]], NDArray[np.float64]],
) -> NDArray[np.int64]:
    """`best_rows` of programs without a handicap, and of those that beat all of these by more than their handicap.

    Args:
        handicap: gives that of some rows. It is asked for those that could be on the front alone.
    """
    known: dict[int, float] = {}
    left = np.arange(len(objective))
    while len(left):
        sound = left[best_rows(complexity[left], objective[left])]
        unknown = np.array([row for row in sound.tolist() if row not in known], np.int64)
        if not len(unknown):
            break
        known |= dict(zip(unknown.tolist(), handicap(unknown).tolist(), strict=True))
        left = np.array([row for row in left.tolist() if not known.get(row, 0.0) > 0.0], np.int64)
    best = objective[left].max(initial=-np.inf)
    rows = np.array([row for row, loss in known.items() if loss <= 0.0 or objective[row] - loss > best], np.int64)
    return rows[best_rows(complexity[rows], objective[rows])]


def default_row(run: Searched) -> int:
    """The row of the elite that reports take unless the user names one: the shortest description if the task knows description
    lengths, otherwise the greatest objective. The archive has an elite.

    Raises:
        UserError: the task fails.
    """
    if why_no_front(run):
        return int(np.argmax(run.search.elites().objective))
    front = front_of(run)
    return int(front.rows[front.default])


def row_of_elite(run: Run, name: str | None) -> int:
    """The row of an elite.

    Args:
        name: of its cell, such as `"i,j"` in a grid, or the cell's number; `best`, `shortest` or `knee`; None: `default_row`.

    Raises:
        UserError: there is no such cell or elite, or the archive or the cell is empty.
    """
    layout, elites = run.search.layout, run.search.elites()
    if not len(elites):
        raise UserError("the archive is empty", run.run_dir.path)
    if name is None:
        return default_row(run)
    if name == BEST:
        return int(np.argmax(elites.objective))
    if name in (SHORTEST, KNEE):
        front = front_of(run)
        if name not in front.positions:
            raise UserError("--shortest: the task does not know description lengths (Task.description_length)")
        return int(front.rows[front.positions[name]])
    try:
        number = layout.cell_number(name)
    except ValueError as error:
        raise UserError(f"--cell {name}: {error}") from None
    rows = np.flatnonzero(elites.cell == number)
    if not rows.size:
        nearest = layout.cell_name(layout.nearest(number, elites.cell))
        raise UserError(f"--cell {name}: this cell is empty; the nearest elite is in {nearest}")
    return int(rows[0])


def describe_front(run: Run, width: int | None = None, precision: int | None = None) -> str:
    """The front as a table, whose last column has the expressions. The elite that reports take by default is marked by `>`.

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
        expressions = [rounded(expression, precision) for expression in whole_expressions(local, elites.solution[front.rows])]
    columns = {
        "cell": cell_names(run, front.rows),
        str(task.complexity): [f"{value:g}" for value in front.complexity],
        "objective": [f"{value:.6g}" for value in front.objective],
        **{name: [f"{value:.9g}" for value in values] for name, values in facts.items()},
    }
    title = f"expression{display_note(precision)}"
    text = front_text(front, front.default, columns, title, [infix_line(expression) for expression in expressions], width)
    return text + (f"{', '.join(facts)}: {note}\n" if facts and note else "")


def front_text(
    front: Front,
    chosen: int,
    columns: Mapping[str, Sequence[str]],
    title: str,
    expressions: Iterable[str],
    width: int | None,
) -> str:
    """A front's table: `>` at the chosen position, columns, marks, and expressions below a title, cut to the width of a line."""
    marks = [", ".join(marks_of(front, position)) for position in range(len(front.rows))]
    arrows = [">" if position == chosen else "" for position in range(len(front.rows))]
    columns = {" ": arrows, **columns, "": marks}
    begins = aligned([list(columns), *zip(*columns.values(), strict=True)], right=range(1, len(columns) - 1))
    most = None if width is None else max(MIN_EXPRESSION, width - len(begins[0]) - 2)
    ends = [title, *(shortened(text, most) for text in expressions)]
    return "".join(f"{begin}  {end}\n" for begin, end in zip(begins, ends, strict=True))


def file_names(cells: list[str], suffix: str) -> list[str]:
    """A file's name for each elite of a front by the name of its cell, in the order of the front."""
    return [f"{position:03d}_cell_{re.sub('[^0-9]+', '_', cell)}{suffix}" for position, cell in enumerate(cells, 1)]


def marks_of(front: Front, position: int) -> list[str]:
    """Marks of the elite at a position of the front."""
    names = {KNEE: "knee", SHORTEST: "shortest description"}
    return [words for name, words in names.items() if front.positions.get(name) == position]


def _knee(complexity: NDArray[np.float64], objective: NDArray[np.float64]) -> int:
    """The place farthest above the line from the first to the last (as in Kneedle, Satopaa et al. 2011); the last if none is."""
    if len(complexity) < 3:
        return 0
    x = (complexity - complexity[0]) / (complexity[-1] - complexity[0])
    y = (objective - objective[0]) / (objective[-1] - objective[0])
    return len(x) - 1 - int(np.argmax((y - x)[::-1]))
