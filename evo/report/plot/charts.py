"""Charts: the heat map of an archive and the curves of a run.

Owns their looks; the drawing of archives is pyribs' own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from ribs import visualize

from evo.run.run import Run

_CURVES = (
    ("qd_score", "QD score"),
    ("coverage", "coverage"),
    ("best_objective", "best objective"),
    ("duplicates", "duplicates among offspring"),
)


def heatmap(run: Run) -> Path:
    """The archive's objectives by cell; parallel axes where there are more than two measures."""
    archive: Any = run.search.archive
    names = list(run.search.problem.task.measures)
    figure, axes = plt.subplots(figsize=(8, 3.2 if len(names) == 1 else 6.5), layout="constrained")
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
    """QD score, coverage, best objective and the share of duplicates over evaluations."""
    rows = run.run_dir.metrics()
    evaluations = [row["evaluations"] for row in rows]
    figure, grid = plt.subplots(2, 2, figsize=(10, 6.5), sharex=True, layout="constrained")
    for axes, (name, label) in zip(grid.flat, _CURVES, strict=True):
        if name == "duplicates":
            values = [row["duplicates"] / row["offspring"] for row in rows]
        else:
            values = [row[name] if row[name] is not None else float("nan") for row in rows]
        axes.plot(evaluations, values, color="#31688e")
        axes.set_title(label, loc="left")
        axes.grid(alpha=0.3)
        if name in ("coverage", "duplicates"):
            axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0))
    for axes in grid[1]:
        axes.set_xlabel("evaluations")
    return _save(figure, run.run_dir.plot_path("curves.png"))


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
