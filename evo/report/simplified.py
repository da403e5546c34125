"""Elites without what their scores do not need: what `evo simplify` prints and writes.

Owns the texts. `evo.evaluate.program_simplifier` decides what goes.
"""

from dataclasses import dataclass

from evo.errors import plural
from evo.escape import comment_lines
from evo.evaluate import Evaluation
from evo.evaluate.program_simplifier import TOLERANCE, simplify
from evo.language.batch import Batch
from evo.language.formula_text import infix
from evo.language.program import format_program
from evo.report.elites import batch_of, cell_names
from evo.report.pareto import file_names, front_of, row_of_elite
from evo.report.recompute import problem_here, report_facts, whole_expression
from evo.report.table import table
from evo.run.loaded_task import Problem
from evo.run.run import Run


@dataclass(frozen=True)
class SimplerElites:
    """A description of each elite, and the programs by file name. notes: lines for the user."""

    descriptions: list[str]
    programs: dict[str, str]
    notes: list[str]


def simplify_elites(run: Run, *, name: str | None = None, front: bool = False, tolerance: float = TOLERANCE) -> SimplerElites:
    """An elite, or each on the front, without instructions and digits that its objective does not need.

    Args:
        name: of the elite, as in `row_of_elite`.
        front: all elites of the run's front.
        tolerance: the objective that each may lose, times max(1, |objective|).

    Raises:
        UserError: there is no such elite or front, it has no score here, or the task fails.
    """
    rows = front_of(run).rows.tolist() if front else [row_of_elite(run, name)]
    elites = run.search.elites()
    names = cell_names(run, rows)
    descriptions, programs = [], []
    with problem_here(run) as (problem, note):
        for cell, row in zip(names, rows, strict=True):
            simpler = simplify(problem.language, problem.evaluator.evaluate, elites.solution[row], tolerance)
            count, fewer = int(elites.num_instructions[row]), int(simpler.program.num_instructions[0])
            title = f"cell {cell}: {plural(count, 'instruction')}, simplified {fewer}"
            formula = infix(whole_expression(problem, simpler.program.words[0]))
            old = batch_of(run)[row : row + 1]
            scores = _changes(_numbers(problem, old, simpler.before), _numbers(problem, simpler.program, simpler.after))
            descriptions.append(f"# {title}\n{formula}\n{scores}")
            comment = f"{title}\n\n{formula}\n{scores}"
            head = "".join(f"{line}\n" for line in comment_lines(comment, "# "))
            programs.append(head + format_program(problem.language, simpler.program.words[0]))
    notes = [note] if note else []
    return SimplerElites(descriptions, dict(zip(file_names(names, ".txt"), programs, strict=True)), notes)


def _numbers(problem: Problem, program: Batch, scores: Evaluation) -> dict[str, float]:
    facts = {name: values[0] for name, values in report_facts(problem, program.words).items()}
    return {"objective": scores.objective[0], **dict(zip(problem.task.measures, scores.measures[0], strict=True)), **facts}


def _changes(before: dict[str, float], after: dict[str, float]) -> str:
    rows = [("", "before", "after"), *((name, f"{before[name]:.9g}", f"{after[name]:.9g}") for name in before)]
    return table(rows, right=(1, 2))
