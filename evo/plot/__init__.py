"""Pictures of runs: charts of the archive and of its growth, and what the elites draw.

Owns the names of the plots. Reads a run, never writes but the picture files; matplotlib loads with the plots that need it.
"""

from __future__ import annotations

from pathlib import Path

from evo.errors import UserError
from evo.plot import charts, pictures
from evo.run import Run

PLOTS = {
    "heatmap": charts.heatmap,
    "contact_sheet": pictures.contact_sheet,
    "curves": charts.curves,
    "best": pictures.best,
    "animation": pictures.animation,
    "gallery": pictures.gallery,
}
_NEED_PICTURES = ("contact_sheet", "best", "animation", "gallery")
_NEED_ELITES = ("heatmap", "contact_sheet", "best", "animation")


def draw_plots(run: Run, names: list[str]) -> list[Path]:
    """Draws the named plots of a run into its folder; those that need pictures are left out where the task draws none.

    Returns:
        The files written.

    Raises:
        UserError: the task cannot draw, or the folder cannot be written to.
    """
    wanted = [
        name
        for name in names
        if not (name in _NEED_PICTURES and not run.problem.task.has_pictures())
        and not (name in _NEED_ELITES and run.archive.empty)
    ]
    try:
        return [PLOTS[name](run) for name in wanted]
    except OSError as error:
        raise UserError(f"{run.run_dir.path}/plots: cannot write: {error.strerror or error}") from error
