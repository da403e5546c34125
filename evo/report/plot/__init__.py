"""Plots of runs: charts of the archive and its growth, and the pictures that programs draw.

Owns the plots' names and what each needs. Reads runs and writes only picture files. Importing it loads matplotlib and Pillow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evo.errors import UserError
from evo.report.plot import charts, pictures
from evo.run.run import Run
from evo.run.search import PICTURE_PLOTS

PLOTS = {
    "heatmap": charts.heatmap,
    "contact_sheet": pictures.contact_sheet,
    "curves": charts.curves,
    "best": pictures.best,
    "animation": pictures.animation,
    "gallery": pictures.gallery,
}
_NEED_ELITES = ("heatmap", "contact_sheet", "best", "animation")


def why_not_drawn(run: Run, name: str) -> str | None:
    """Why a run has nothing to show in the named plot, or None if it has."""
    if name in PICTURE_PLOTS and not run.search.problem.task.has_pictures():
        return "the task draws no pictures (it must define picture_points and picture)"
    if name in _NEED_ELITES and run.search.archive.empty:
        return "the archive is empty"
    return None


def draw_plots(run: Run, names: Sequence[str]) -> list[Path]:
    """Draws the named plots of a run into its folder, except those with nothing to show (`why_not_drawn`).

    Returns:
        The files written.

    Raises:
        UserError: the task's drawing fails, or the folder cannot be written.
    """
    try:
        return [PLOTS[name](run) for name in names if not why_not_drawn(run, name)]
    except OSError as error:
        raise UserError(f"{run.run_dir.path}/plots: cannot write: {error.strerror or error}") from error
