"""A run as one page: a self-contained HTML file that opens without a network.

Owns the way from a run to its page. content.py has what it tells; page.html, page.css and page.js how it looks and works;
document.py how they become one file. Reads runs and never changes them.
"""

from pathlib import Path

from evo.errors import UserError
from evo.report.page.content import run_content
from evo.report.page.document import html_of
from evo.report.page.pictures import Pictures
from evo.run.run import Run
from evo.storage.files import write_atomically, write_outputs

FILE_NAME = "page.html"


def draw_page(run: Run) -> Path:
    """The page as a plot of the run: the file `page.html`."""
    path = run.run_dir.plot_path(FILE_NAME)
    write_atomically(path, page_of(run))
    return path


def write_page(run: Run, path: Path) -> None:
    """Writes the page of a finished or interrupted run.

    Raises:
        UserError: the run is in progress, has no elites, or the file cannot be written.
    """
    folder = run.run_dir.path
    if run.run_dir.is_running():
        raise UserError("the run is in progress; look at it with: evo watch RUN", folder)
    if not len(run.search.elites()):
        raise UserError("the archive is empty, so there is nothing to show", folder)
    write_outputs({path: page_of(run)}, inputs=())


def page_of(run: Run, pictures: Pictures | None = None, *, live: str | None = None) -> bytes:
    """The HTML of a run's page, as its last checkpoint left it.

    Args:
        pictures: that have been drawn already; new ones are added.
        live: as `html_of`.

    Raises:
        UserError: the task fails, or the metrics are damaged.
    """
    return html_of(run_content(run, pictures), live=live)
