"""A program as text: its instructions, expression, PTX stub, origin and scores.

Owns what `evo show` and `evo eval` print. Reads runs and never changes them.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evo.errors import UserError, os_errors_as, plural
from evo.evaluate import Status
from evo.language.batch import Batch
from evo.language.formula_text import display_note, infix, rounded
from evo.language.infix import parse_infix
from evo.language.program import format_program, parse_program, program_length
from evo.report.elites import OPERATOR_MEANINGS, batch_of, hash_text, operator_name
from evo.report.pareto import row_of_elite
from evo.report.ptx_text import with_token_values, with_values
from evo.report.recompute import problem_for_facts, program_expression, report_facts, whole_expression
from evo.run.initial_programs import is_text_form, no_file_nor_formula
from evo.run.loaded_task import Problem
from evo.run.run import Run
from evo.storage.files import exists, read_text


def read_program(problem: Problem, program: str) -> NDArray[np.uint64]:
    """A program as words: a formula, the text form of a program, or the path of a file with either.

    Raises:
        UserError: the file cannot be read, or the text is wrong.
    """
    path, text, source = Path(program), program, "the formula"
    if program and exists(path):
        with os_errors_as(f"{path}: cannot read the program"):
            text, source = read_text(path), program
    language, max_length = problem.language, problem.config.program.max_length
    if is_text_form(language, text):
        return parse_program(language, text, source, max_length)
    names = [instruction.name for instruction in language.instruction_set.instructions]
    try:
        return parse_infix(language, text, source, max_length, names, problem.task.input_scaling())
    except UserError as error:
        raise (no_file_nor_formula(source, program, error) if text is program else error) from None


def describe_program(problem: Problem, words: NDArray[np.uint64]) -> str:
    """Evaluates a program; gives its instructions, expression, stub and scores."""
    batch = Batch.analyze(problem.language.lowering, words[None])
    evaluation = problem.evaluator.evaluate(batch)
    status = Status(int(evaluation.status[0]))
    scores = [f"status: {status.name.lower()}"]
    if status is Status.OK:
        scores += _scores(problem, evaluation.objective[0], evaluation.measures[0], batch)
    elif status is Status.REJECTED:
        scores = ["status: rejected by score, which gives an objective or a measure that is not finite"]
        points = {} if problem.task.has_simulation() else problem.task.points()
        outputs = problem.evaluator.outputs(batch.words, points) if points else {}
        for name, [values] in outputs.items():
            if num_bad := int((~np.isfinite(values)).sum()):
                scores.append(f"{name} is not finite at {num_bad:,} of {plural(values.size, 'point')}")
    return _sections(problem, batch, [("scores", scores)], is_scored=status is Status.OK)


def describe_elite(run: Run, name: str | None, precision: int | None = None, *, with_ptx: bool = False) -> str:
    """An elite, with origin and scores.

    Args:
        name: as in `row_of_elite`.
        precision: significant digits of the formula's numbers; None: all.
        with_ptx: its PTX stub too, which only pictures can be shown without.

    Raises:
        UserError: as `row_of_elite`, or the task fails.
    """
    layout, elites, row = run.search.layout, run.search.elites(), row_of_elite(run, name)
    origin = [
        f"cell       {layout.cell_name(int(elites.cell[row]))}",
        f"born       generation {elites.generation[row]}, slot {elites.slot[row]}",
        f"operator   {operator_name(int(elites.operator[row]))}",
        f"parents    {', '.join(layout.cell_name(int(c)) for c in elites.parents[row] if c >= 0) or 'none'}",
        f"hash       {hash_text(elites.hash[row])}",
    ]
    if meaning := OPERATOR_MEANINGS.get(operator_name(int(elites.operator[row]))):
        origin.append(f"({operator_name(int(elites.operator[row]))}: {meaning})")
    batch = batch_of(run)[row : row + 1]
    with problem_for_facts(run) as (problem, note):
        scores = _scores(problem, elites.objective[row], elites.measures[row], batch, note)
        more, with_ptx = [("origin", origin), ("scores", scores)], with_ptx or not problem.task.has_pictures()
        return _sections(problem, batch, more, is_scored=True, precision=precision, with_ptx=with_ptx)


def describe_failed(run: Run) -> str:
    """All programs of a run that did not compile or run, with kind and log. Raises UserError: a program's file is damaged."""
    problem = run.search.problem
    parts = []
    for key, record in run.run_dir.quarantine().items():
        path = run.run_dir.path / "quarantine" / f"{key}.json"
        try:
            words = np.array([int(word, 16) for word in record["words"]], np.uint64)
            lines = [
                f"kind       {record['kind']}",
                f"born       generation {record['generation']}",
                f"file       {path}",
            ]
            log = record["log"].rstrip("\n").splitlines()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise UserError(f"not a record of a failed program ({type(error).__name__}: {error})", path) from error
        batch = Batch.analyze(problem.language.lowering, words[None])
        parts.append(_sections(problem, batch, [("failure", [*lines, *log])]))
    return "\n".join(parts) or "no program failed\n"


def _sections(
    problem: Problem,
    batch: Batch,
    more: list[tuple[str, list[str]]],
    *,
    is_scored: bool = False,
    precision: int | None = None,
    with_ptx: bool = True,
) -> str:
    """The text of a batch's only program, followed by further sections. is_scored: it has a score, and so a scaling."""
    words = batch.words[0]
    formula = (whole_expression if is_scored else program_expression)(problem, words)
    stub = problem.language.lowering.emit(batch.words)[0]
    parts = [
        f"# program: {plural(program_length(words), 'word')}, {plural(int(batch.num_instructions[0]), 'live PTX instruction')}\n"
        + with_token_values(format_program(problem.language, words)),
        f"# expression{display_note(precision)}\n{infix(rounded(formula, precision))}",
        *(["# PTX stub\n" + with_values(stub).rstrip("\n") + "\n"] if with_ptx else []),
        *(f"# {title}\n" + "".join(line + "\n" for line in lines) for title, lines in more),
    ]
    return "\n".join(parts)


def _scores(
    problem: Problem,
    objective: float,
    measures: NDArray[np.float64],
    batch: Batch,
    note: str | None = None,
) -> list[str]:
    facts = report_facts(problem, batch.words)
    width = max(map(len, ("objective", *problem.task.measures, *facts)))
    lines = [f"{'objective':<{width}}  {objective:.6g}"]
    for (name, (low, high)), value in zip(problem.task.measures.items(), measures, strict=True):
        lines.append(f"{name:<{width}}  {value:.6g}  (range {low:g} to {high:g})")
    lines += [f"{name:<{width}}  {values[0]:.9g}" for name, values in facts.items()]
    if facts and note:
        lines.append(f"({', '.join(facts)}: {note})")
    return lines
