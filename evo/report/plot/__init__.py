"""Plots of runs: charts of the archive and its growth, the pictures that programs draw, and the page that has them all.

Owns what each plot needs. Reads runs and writes only files of plots. Importing it loads matplotlib and Pillow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from evo.config import PlotName
from evo.errors import UserError
from evo.report.front import why_no_front
from evo.report.plot import charts, pictures
from evo.run.run import Run
from evo.run.search import PICTURE_PLOTS


def _page(run: Run) -> Path:
    from evo.report.page import draw_page  # which is made of charts and pictures, and so of this package

    return draw_page(run)


# By their names in a config, which are those of the functions that draw them.
PLOTS: dict[str, Callable[[Run], Path]] = {
    name: _page if name == "page" else getattr(charts if hasattr(charts, name) else pictures, name) for name in get_args(PlotName)
}
PLAIN_PLOTS = {"heatmap", "curves"}  # which need none of the task's code
_NEED_ELITES = ("heatmap", "contact_sheet", "best", "animation", "lineage", "page")


def why_not_drawn(run: Run, name: str) -> str | None:
    """Why a run has nothing to show in the named plot, or None if it has."""
    if name in PICTURE_PLOTS and not run.search.problem.task.has_pictures():
        return "the task draws no pictures (it must define picture_points and picture)"
    if name == "front":
        return why_no_front(run)
    if name in _NEED_ELITES and not len(run.search.elites()):
        return "the archive is empty"
    return None


def draw_plots(run: Run, names: Sequence[str]) -> Iterator[Path]:
    """Draws the named plots of a run into its folder, except those with nothing to show (`why_not_drawn`).

    Yields:
        Each file when it is written.

    Raises:
        UserError: the task's drawing fails, or the folder cannot be written.
    """
    try:
        for name in names:
            if not why_not_drawn(run, name):
                yield PLOTS[name](run)
    except OSError as error:
        raise UserError(f"{run.run_dir.path}/plots: cannot write: {error.strerror or error}") from error
