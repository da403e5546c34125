"""Charts: the heat map of an archive and the curves of a run.

Owns their looks; pyribs draws the archives. Knows nothing of what programs draw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from ribs import visualize

from evo.run.run import Run

_CURVES = (
    ("qd_score", "QD score"),
    ("coverage", "coverage"),
    ("best_objective", "best objective"),
    ("duplicates", "duplicates among offspring"),
)


def heatmap(run: Run) -> Path:
    """The archive's objectives by cell, or on parallel axes if there are more than two measures."""
    archive: Any = run.search.archive
    names = list(run.search.problem.task.measures)
    figure = Figure(figsize=(8, 3.2 if len(names) == 1 else 6.5), layout="constrained")
    axes = figure.subplots()
    if len(names) > 2:
        order = list(enumerate(names))
        visualize.parallel_axes_plot(archive, ax=axes, measure_order=order, cmap="viridis", sort_archive=True)
    else:
        getattr(visualize, archive.heatmap)(archive, ax=axes, cmap="viridis", aspect="auto")
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1] if len(names) == 2 else "")
    axes.set_title(f"objective · {len(archive)} elites after {run.search.counters.evaluations:,} evaluations")
    return _save(figure, run.run_dir.plot_path("heatmap.png"))


def curves(run: Run) -> Path:
    """QD score, coverage, best objective and share of duplicates by number of evaluations."""
    rows = run.run_dir.metrics()
    evaluations = [row["evaluations"] for row in rows]
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    grid = figure.subplots(2, 2, sharex=True)
    for axes, (name, label) in zip(grid.flat, _CURVES, strict=True):
        if name == "duplicates":
            values = [row["duplicates"] / row["offspring"] for row in rows]
        else:
            values = [row[name] if row[name] is not None else float("nan") for row in rows]
        axes.plot(evaluations, values, color="#31688e")
        axes.set_title(label, loc="left")
        axes.grid(alpha=0.3)
        if name in ("coverage", "duplicates"):
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in grid[1]:
        axes.set_xlabel("evaluations")
    return _save(figure, run.run_dir.plot_path("curves.png"))


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=130)
    return path
