"""The plots that a config may name: charts, pictures that programs draw, and the page.

Owns what each plot needs. Reads runs and writes only files of plots. Importing it loads matplotlib and Pillow.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from evo.errors import os_errors_as
from evo.report.page import draw_page
from evo.report.pareto import why_no_front
from evo.report.plot import charts, pictures
from evo.run.run import Run
from evo.run.search import PICTURE_PLOTS


def _chart(name: str, draw: Callable[[Run], Figure]) -> Callable[[Run], Path]:
    """Make a writer of a chart into a run's folder, under its name."""

    def write(run: Run) -> Path:
        path = run.run_dir.plot_path(f"{name}.png")
        draw(run).savefig(path, dpi=130)
        return path

    return write


PLOTS: dict[str, Callable[[Run], Path]] = {
    "heatmap": _chart("heatmap", charts.heatmap),
    "front": _chart("front", charts.front),
    "contact_sheet": pictures.contact_sheet,
    "curves": _chart("curves", charts.curves),
    "best": pictures.best,
    "animation": pictures.animation,
    "gallery": pictures.gallery,
    "poster": pictures.poster,
    "page": draw_page,
}
PLAIN_PLOTS = {"heatmap", "curves"}  # which need none of the task's code
_NEED_ELITES = ("heatmap", "contact_sheet", "best", "animation", "poster", "page")


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
    with os_errors_as(f"{run.run_dir.path}/plots: cannot write"):
        for name in names:
            if not why_not_drawn(run, name):
                yield PLOTS[name](run)
