"""Variety among the elites' pictures of domain colouring.

    python tests/bench/bench_gallery.py RUN ...     measures run folders
    python tests/bench/run.py gallery               runs the shipped config with three seeds, and measures that

Distances are those of `evo.report.plot.variety`: structure (gist) and colours apart. Those of runs with a grid of more than two
measures are between the pictures that the contact sheet shows. Between two runs nothing is related, so the distance from one
run's pictures to those at the same or neighbouring places of another is the most that a search can reach with equal measures.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evo.report.plot.pictures import STILL_T, render, varied
from evo.report.plot.variety import NUM_STRUCTURE, features
from evo.run.run import Run

CONFIG = Path(__file__).parents[2] / "configs" / "domain_coloring.yaml"
SIZE = 64  # pixels
SEEDS = (1, 2, 3)
ALIKE = 0.5  # structure: a third of the distance between unrelated pictures (1.5)


@dataclass(frozen=True)
class Sheet:
    """Pictures of a contact sheet, one row a picture. looks: `features`. places: columns and rows."""

    looks: np.ndarray
    places: np.ndarray
    objective: np.ndarray
    num_places: int
    lineages: int
    largest_lineage: float
    best_objective: float


def read(folder: Path) -> Sheet:
    """The contact sheet of a run."""
    run, _ = Run.view(folder)
    layout, elites = run.search.layout, run.search.elites()
    places = np.asarray(layout.coordinates(elites.cell), int)[:, :2]
    shown = varied(run, elites, places)
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    columns, rows = layout.grid_shape()
    return Sheet(
        looks=features(render(run.search.problem, elites.solution[shown], SIZE, STILL_T)),
        places=places[shown],
        objective=elites.objective[shown],
        num_places=columns * rows,
        lineages=last["lineages"],
        largest_lineage=last["largest_lineage"],
        best_objective=last["best_objective"],
    )


def distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between all rows of one and all of the other."""
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2.0 * one @ other.T
    return np.sqrt(np.maximum(squares, 0.0))


def measure(one: Sheet, other: Sheet) -> dict[str, float]:
    """Mean distances within a sheet, or between two."""
    steps = np.abs(one.places[:, None] - other.places).sum(axis=2)
    is_other = ~np.eye(*steps.shape, dtype=bool) if one is other else np.ones(steps.shape, bool)
    structure = distances(one.looks[:, :NUM_STRUCTURE], other.looks[:, :NUM_STRUCTURE])
    colours = distances(one.looks[:, NUM_STRUCTURE:], other.looks[:, NUM_STRUCTURE:])
    to_neighbour = np.where(steps == 1, structure, np.inf).min(axis=1)
    return {
        "structure, all pairs": structure[is_other].mean(),
        "structure, neighbours": structure[steps == 1].mean(),
        "structure, nearest": np.where(is_other, structure, np.inf).min(axis=1).mean(),
        "colours, all pairs": colours[is_other].mean(),
        "colours, neighbours": colours[steps == 1].mean(),
        "share like a neighbour": float((to_neighbour < ALIKE).mean()),
    }


def table(folders: list[Path]) -> dict[str, tuple[list[float], float | None]]:
    """Of each quantity its value in each run, and, of distances, the mean between runs."""
    sheets = [read(folder) for folder in folders]
    own = [
        {
            "elites shown": float(len(sheet.objective)),
            "coverage": len(sheet.objective) / sheet.num_places,
            "mean objective": sheet.objective.mean(),
            "best objective": sheet.best_objective,
            "lineages": float(sheet.lineages),
            "largest lineage": sheet.largest_lineage,
        }
        | measure(sheet, sheet)
        for sheet in sheets
    ]
    unrelated = [measure(one, other) for one in sheets for other in sheets if one is not other]
    return {
        name: (
            [each[name] for each in own],
            float(np.mean([each[name] for each in unrelated])) if unrelated and name in unrelated[0] else None,
        )
        for name in own[0]
    }


def lines(folders: list[Path]):
    """The table as (what, values, mean, between runs)."""
    for name, (values, between) in table(folders).items():
        yield (
            name,
            ", ".join(f"{value:.3g}" for value in values),
            f"{np.mean(values):.3g}",
            "" if between is None else f"{between:.3g}",
        )


def rows():
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            overrides = ["--set", f"seed={seed}", "--set", f"output.runs={folder}", "--set", "output.plots=[]"]
            subprocess.run(["evo", "run", "--quiet", str(CONFIG), *overrides], check=True)
        for name, values, mean, between in lines(sorted(Path(folder).glob("*/*"))):
            yield (
                f"gallery of {len(SEEDS)} seeds: {name}",
                f"{mean} ({values})",
                "",
                f"between runs: {between}" if between else "",
            )


if __name__ == "__main__":
    print("| what | runs | mean | between runs |\n|---|---|---|---|")
    for line in lines([Path(argument) for argument in sys.argv[1:]]):
        print("| " + " | ".join(line) + " |")
