"""Content of a run's page, as JSON data.

Owns what is told, and how much where there are too many elites. Knows nothing of looks. Text stands as the task and its files
have it; document.py escapes it.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from evo.language.formula_text import infix
from evo.language.program import Language, program_length
from evo.report.elites import OPERATOR_MEANINGS, hash_text, operator_name
from evo.report.page.fits import fits
from evo.report.page.graphs import axis_of, curves, front
from evo.report.page.pictures import NUM_STILLS, Pictures
from evo.report.plot.charts import color_range, written
from evo.report.plot.pictures import best_of_places, varied
from evo.report.ptx_text import with_values
from evo.report.recompute import problem_for_facts, report_facts, whole_expressions
from evo.run.loaded_task import Problem
from evo.run.run import Run

MAX_ELITES = 4096  # shown, the best: a browser takes no more in a second
NUM_TEXTS = 1024  # the best elites: of these and the front there are formulas and PTX
MAX_OUTLINES = 4096  # of empty cells
LENGTH = "num_instructions"


def run_content(run: Run, pictures: Pictures | None = None) -> dict[str, Any]:
    """Build the content of a run's page. Elites are in order of rank.

    Args:
        pictures: already drawn ones.

    Raises:
        UserError: the task fails, or the metrics are damaged.
    """
    search, elites = run.search, run.search.elites()
    rows = np.argsort(-elites.objective, kind="stable")[:MAX_ELITES]
    words = elites.solution[rows]
    counters, names = search.counters, list(search.problem.task.measures)
    content: dict[str, Any] = {
        "name": run.run_dir.path.parent.name,
        "run": run.run_dir.path.name,
        "counts": {
            "generations": counters.generations,
            "evaluations": counters.evaluations,
            "elites": len(elites),
            "cells": search.layout.num_cells,
        },
        "quantities": ["objective", *names, *([] if LENGTH in names else [LENGTH]), "generation"],
        "num_measures": len(names),
        "operators": OPERATOR_MEANINGS,
        "map": _map(run),
        "graphs": curves(run.run_dir.metrics()),
        "elites": [],
        "tokens": [],
        "pictures": None,
        "fits": None,
        "scale": None,
        "note": None,
    }
    if not len(rows):
        return content
    if on_front := front(run, rows):
        content["graphs"].insert(0, on_front)
    marks = dict(on_front["points"]) if on_front else {}
    with problem_for_facts(run) as (problem, content["note"]):
        detailed = sorted({*range(min(NUM_TEXTS, len(rows))), *marks})
        texts = dict(zip(detailed, map(infix, whole_expressions(problem, words[detailed])), strict=True))
        facts = report_facts(problem, words)
        if problem.task.has_pictures():
            drawn = pictures or Pictures(len(rows))
            content["pictures"] = drawn.draw(problem, words, elites.hash[rows])
        else:
            content["fits"] = fits(problem, words)
    outlines, on_map = search.layout.outlines(), _on_map(run, rows)
    has_levels = bool(content["map"] and content["map"]["levels"])
    levels = search.layout.coordinates(elites.cell[rows])[:, 2].astype(int).tolist() if has_levels else [None] * len(rows)
    content["scale"] = _scale(elites.objective)
    stubs = dict(zip(detailed, search.problem.language.lowering.emit(words[detailed]), strict=True))
    content["tokens"], programs = _programs(search.problem.language, words)
    for position, row in enumerate(rows.tolist()):
        length = [] if LENGTH in names else [int(elites.num_instructions[row])]
        content["elites"].append(
            {
                "cell": search.layout.cell_name(int(elites.cell[row])),
                "outline": outlines[int(elites.cell[row])].round(5).ravel().tolist() if outlines else None,
                "on_map": row in on_map,
                "level": levels[position],
                "values": _numbers([elites.objective[row], *elites.measures[row], *length, elites.generation[row]]),
                "facts": [[name, f"{values[position]:.9g}"] for name, values in facts.items()],
                "origin": {
                    "generation": int(elites.generation[row]),
                    "slot": int(elites.slot[row]),
                    "operator": operator_name(int(elites.operator[row])),
                    "parents": [search.layout.cell_name(cell) for cell in elites.parents[row].tolist() if cell >= 0],
                },
                "hash": hash_text(elites.hash[row]),
                "num_instructions": int(elites.num_instructions[row]),
                "program": programs[position],
                "front": marks.get(position),
                "expression": texts.get(position, ""),
                "ptx": with_values(stubs.get(position, "")),
            }
        )
    return content


def _programs(language: Language, words: NDArray[np.uint64]) -> tuple[list[str], list[list[int]]]:
    """The tokens of programs, and each program as their indices: most programs have most tokens in common."""
    lengths = [program_length(row) for row in words]
    distinct, indices = np.unique(words, return_inverse=True)
    tokens = [language.decode(word) for word in distinct.tolist()]
    rows: Any = indices.reshape(words.shape).tolist()
    return tokens, [row[:length] for row, length in zip(rows, lengths, strict=True)]


def _on_map(run: Run, rows: NDArray[np.int64]) -> set[int]:
    """Select the rows of elites that the map shows: in a grid of more than two measures, one at each place."""
    elites, task = run.search.elites(), run.search.problem.task
    if run.search.layout.grid_shape() is None or elites.measures.shape[1] <= 2:
        return set(rows.tolist())
    shown_elites = replace(elites, **{name: getattr(elites, name)[rows] for name in vars(elites)})
    coordinates = np.asarray(run.search.layout.coordinates(shown_elites.cell), int)[:, :2]
    is_varied = task.has_pictures() and len(rows) <= NUM_STILLS  # of more it takes as long as all else
    shown = varied(run, shown_elites, coordinates) if is_varied else best_of_places(coordinates, shown_elites.objective)
    return set(rows[shown].tolist())


def _map(run: Run) -> dict[str, Any] | None:
    """The map's axes, its shape and the outlines of all places as an SVG path, or None where there is no map."""
    layout, problem = run.search.layout, run.search.problem
    outlines = layout.outlines()
    if outlines is None:
        return None
    names = list(problem.task.measures)
    shape = layout.grid_shape()
    columns = shape[0] if shape else layout.num_cells if len(names) == 1 else float(np.sqrt(layout.num_cells))
    rows = shape[1] if shape else 1 if len(names) == 1 else columns
    return {
        "columns": columns,
        "rows": rows,
        "levels": _levels(problem, layout.dims[2]) if layout.dims and len(layout.dims) > 2 else [],
        "axes": [_axis(problem, axis) for axis in range(min(2, len(names)))],
        "outlines": "".join(dict.fromkeys(map(_path, outlines))) if len(outlines) <= MAX_OUTLINES else "",
    }


def _levels(problem: Problem, count: int) -> list[str]:
    """The names of the third measure's levels."""
    low, high = problem.ranges[2].tolist()
    edges = np.linspace(low, high, count + 1)
    return [f"{written(list(problem.task.measures)[2])} {low:g} to {high:g}" for low, high in pairwise(edges.tolist())]


def _axis(problem: Problem, axis: int) -> dict[str, Any]:
    low, high = problem.ranges[axis].tolist()
    return axis_of(written(list(problem.task.measures)[axis]), low, high, 6)


def _path(corners: NDArray[np.float64]) -> str:
    """A polygon on a map of 1000 x 1000 units, whose y runs downwards."""
    x, y = np.round(1000.0 * np.stack([corners[:, 0], 1.0 - corners[:, 1]]), 1)
    return "M" + "L".join(f"{a:g} {b:g}" for a, b in zip(x, y, strict=True)) + "Z"


def _scale(objective: NDArray[np.float64]) -> dict[str, Any]:
    """Scale of colours: the objectives at its ends, and colours at even steps between."""
    colors = np.rint(255.0 * colormaps["viridis"](np.linspace(0, 1, 17))[:, :3]).astype(np.uint8)
    return {"ends": color_range(objective), "colors": [f"#{color.tobytes().hex()}" for color in colors]}


def _numbers(values: list[Any]) -> list[float | None]:
    """Convert numbers to JSON: null for one that is not finite."""
    return [float(value) if np.isfinite(value) else None for value in values]
