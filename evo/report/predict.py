"""Predictions of an elite for a user's data, as CSV.

Owns the form of the predictions. The task reads the data (`Task.read_points`).
"""

from pathlib import Path

import numpy as np

from evo.language.dag import dag_of
from evo.native.stack_ptx import NodeKind
from evo.report.pareto import row_of_elite
from evo.report.recompute import predicted, problem_for_facts, program_points
from evo.report.table import csv_text
from evo.run.run import Run
from evo.tasks.answers import point_arrays, task_errors


def predictions(run: Run, data: Path, name: str | None = None) -> tuple[str, str | None]:
    """A CSV text with a column for each output and a row for each point of the data, and what the user should know, if anything.

    Outputs with a scaling are scaled. Numbers have as many digits as it takes to read the same number back.

    Args:
        data: a file that the task reads; it needs what the program uses.
        name: of the elite, as in `row_of_elite`.

    Raises:
        UserError: the task reads no files, the data cannot be used, or there is no such elite.
    """
    import pandas as pd

    row, task = row_of_elite(run, name), run.search.problem.task
    words = run.search.elites().solution[row]
    nodes = dag_of(run.search.problem.language, words).nodes
    used = [node.name for node in nodes if node.kind == NodeKind.INPUT] or [*task.inputs]
    with task_errors(type(task), "read_points"):
        points = dict.fromkeys(task.inputs, np.zeros(())) | task.read_points(data, used)
    _, num_points = point_arrays(task, program_points(task, points), "read_points()")
    with problem_for_facts(run) as (problem, note):
        outputs = predicted(problem, words, points, num_points)
    columns = {task.column_names.get(output, output): values for output, values in outputs.items()}
    return csv_text(pd.DataFrame(columns), na_rep="nan"), note
