"""A program in words: its instructions, its PTX stub, where it came from, its scores.

Owns the text that `evo show` and `evo eval` print; reads a run, changes nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evo.errors import UserError
from evo.evaluate import Status
from evo.language.program import format_program, parse_program, program_length
from evo.native.vary import OPERATORS
from evo.run.problem import Problem
from evo.run.run import Run
from evo.search.archive import Elites
from evo.search.emitter import RANDOM


def read_program(problem: Problem, path: Path) -> np.ndarray:
    """The program in a text file, as words.

    Raises:
        UserError: the file cannot be read, or a token in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path}: cannot read the program: {reason}") from error
    return parse_program(problem.language, text, str(path), problem.config.program.max_length)


def describe_program(problem: Problem, words: np.ndarray) -> str:
    """Instructions, stub and scores of a program, evaluated now."""
    _, num_instructions = problem.language.lowering.analyze(words[None])
    evaluation = problem.evaluator.evaluate(words[None], num_instructions)
    status = Status(int(evaluation.status[0]))
    scores = [f"status: {status.name.lower()}"]
    if status is Status.OK:
        scores += _scores(problem, evaluation.objective[0], evaluation.measures[0])
    return _sections(problem, words, int(num_instructions[0]), [("scores", scores)])


def describe_elite(run: Run, cell: str | None) -> str:
    """The elite in a cell (`"i,j"` of a grid, or a cell number; None: the best), with origin and scores.

    Raises:
        UserError: no such cell, or nobody lives there.
    """
    elites = run.elites
    if not len(elites):
        raise UserError(f"{run.run_dir.path}: the archive is empty")
    row = int(np.argmax(elites.objective)) if cell is None else _row_of_cell(run, elites, cell)
    origin = [
        f"cell       {_cell_name(run, int(elites.cell[row]))}",
        f"born       generation {elites.generation[row]}, slot {elites.slot[row]}",
        f"operator   {_operator_name(int(elites.operator[row]))}",
        f"parents    {', '.join(_cell_name(run, int(c)) for c in elites.parents[row] if c >= 0) or 'none'}",
        f"hash       {elites.hash[row][1]:016x}{elites.hash[row][0]:016x}",
    ]
    scores = _scores(run.problem, elites.objective[row], elites.measures[row])
    words = elites.solution[row]
    return _sections(run.problem, words, int(elites.num_instructions[row]), [("origin", origin), ("scores", scores)])


def describe_failed(run: Run) -> str:
    """All programs of a run that could not be compiled or run, with status and log.

    Raises:
        UserError: a file about one of them is damaged.
    """
    parts = []
    for key, record in run.run_dir.quarantine().items():
        path = run.run_dir.path / "quarantine" / f"{key}.json"
        try:
            words = np.array([int(word, 16) for word in record["words"]], np.uint64)
            lines = [
                f"status     {record['status'].lower()}",
                f"born       generation {record['generation']}",
                f"file       {path}",
            ]
            log = record["log"].rstrip("\n").splitlines()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise UserError(f"{path}: no record of a failed program ({type(error).__name__}: {error})") from error
        _, num_instructions = run.problem.language.lowering.analyze(words[None])
        parts.append(_sections(run.problem, words, int(num_instructions[0]), [("failure", [*lines, *log])]))
    return "\n".join(parts) or "no program failed\n"


def elite_names(run: Run) -> list[str]:
    """`cell i,j` for each elite, sorted by cell."""
    return [f"cell {_cell_name(run, int(cell))}" for cell in run.elites.cell]


def _sections(problem: Problem, words: np.ndarray, num_instructions: int, more: list[tuple[str, list[str]]]) -> str:
    stub = problem.language.lowering.emit(words[None])[0]
    parts = [
        f"# program: {program_length(words)} words, {num_instructions} PTX instructions live\n"
        + format_program(problem.language, words),
        "# PTX stub\n" + stub.rstrip("\n") + "\n",
        *(f"# {title}\n" + "".join(line + "\n" for line in lines) for title, lines in more),
    ]
    return "\n".join(parts)


def _scores(problem: Problem, objective: float, measures: np.ndarray) -> list[str]:
    width = max(map(len, ("objective", *problem.task.measures)))
    lines = [f"{'objective':<{width}}  {objective:.6g}"]
    for (name, (low, high)), value in zip(problem.task.measures.items(), measures, strict=True):
        lines.append(f"{name:<{width}}  {value:.6g}  (range {low:g} to {high:g})")
    return lines


def _row_of_cell(run: Run, elites: Elites, cell: str) -> int:
    dims = getattr(run.archive, "dims", None)
    try:
        indices = [int(part) for part in cell.split(",")]
    except ValueError:
        raise UserError(f"--cell {cell}: write grid indices such as 3,4, or a cell number") from None
    if dims is not None and len(indices) == len(dims):
        if any(not 0 <= index < dim for index, dim in zip(indices, dims, strict=True)):
            raise UserError(f"--cell {cell}: out of range, the grid is {' x '.join(map(str, dims))}, counted from 0")
        number = int(run.archive.grid_to_int_index(np.array([indices]))[0])
    elif len(indices) == 1 and 0 <= indices[0] < run.archive.cells:
        number = indices[0]
    else:
        raise UserError(f"--cell {cell}: no such cell; the archive has {run.archive.cells} cells")
    rows = np.flatnonzero(elites.cell == number)
    if not rows.size:
        nearest = _nearest_cell(run, elites, number)
        raise UserError(f"--cell {cell}: this cell is empty; the nearest elite is in {_cell_name(run, int(nearest))}")
    return int(rows[0])


def _nearest_cell(run: Run, elites: Elites, number: int) -> int:
    """The occupied cell fewest steps away in a grid; in a CVT, the one with the nearest centroid in units of the ranges."""
    if getattr(run.archive, "dims", None) is not None:
        places = np.asarray(run.archive.int_to_grid_index(np.append(elites.cell, number)), dtype=np.float64)
    else:
        low, high = run.problem.ranges.T
        places = run.archive.centroids[np.append(elites.cell, number)] / (high - low)
    return int(elites.cell[np.argmin(np.abs(places[:-1] - places[-1]).sum(axis=1))])


def _cell_name(run: Run, cell: int) -> str:
    if getattr(run.archive, "dims", None) is None:
        return str(cell)
    return ",".join(str(index) for index in run.archive.int_to_grid_index(np.array([cell]))[0])


def _operator_name(code: int) -> str:
    return "none: a random program" if code == RANDOM else OPERATORS[code]
