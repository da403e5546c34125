"""What an elite predicts for a user's data, as CSV.

Owns the form of the predictions. The task reads the data (`Task.read_points`).
"""

from __future__ import annotations

from pathlib import Path

from evo.report.elites import row_of_elite
from evo.report.recompute import predicted, problem_for_facts, program_points
from evo.run.run import Run
from evo.task import point_arrays, task_errors


def predictions(run: Run, data: Path, cell: str | None = None) -> tuple[str, str | None]:
    """A CSV text with a column for each output and a row for each point of the data, and what the user should know, if anything.

    Outputs with a scaling are scaled. Numbers have as many digits as it takes to read the same number back.

    Args:
        data: a file that the task reads.
        cell: of the elite; None: the best.

    Raises:
        UserError: the task reads no files, the data cannot be used, or there is no such elite.
    """
    import pandas as pd

    row, task = row_of_elite(run, cell), run.search.problem.task
    with task_errors(type(task), "read_points"):
        points = task.read_points(data)
    _, num_points = point_arrays(task, program_points(task, points), "read_points()")
    words = run.search.elites().solution[row]
    with problem_for_facts(run) as (problem, note):
        columns = predicted(problem, words, points, num_points)
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n", na_rep="nan"), note
