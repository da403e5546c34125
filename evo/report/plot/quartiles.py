"""The picture of a comparison: medians and quartiles over seeds, by evaluations and by time.

Owns its looks. Knows nothing of how runs are grouped or tested.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter
from numpy.typing import NDArray

from evo.errors import os_errors_as, plural
from evo.report.compare import METRICS, Group, quartiles
from evo.report.plot.charts import PLAIN_TEXT
from evo.storage.files import write_atomically

_NUM_PLACES = 300  # of a curve, along its axis
_AXES = {"evaluations": "evaluations", "elapsed_s": "seconds"}
_MAX_PLAIN_COLORS = 10


@rc_context(PLAIN_TEXT)
def draw_quartiles(groups: Sequence[Group], path: Path) -> None:
    """Draws the curves of the groups into a PNG file. Raises UserError: the file cannot be written."""
    height = 9.0 + 0.22 * len(groups)
    figure = Figure(figsize=(11, height), layout="constrained")
    grid = figure.subplots(len(METRICS), len(_AXES), sharex="col", sharey="row")
    for row, (metric, label) in zip(grid, METRICS.items(), strict=True):
        for axes, along in zip(row, _AXES, strict=True):
            for group, color in zip(groups, _colors(len(groups)), strict=True):
                _draw(axes, group, metric, along, color)
            axes.grid(alpha=0.3)
            axes.margins(x=0.01)
        row[0].set_ylabel(label)
        if metric == "coverage":
            row[0].yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes, (along, label) in zip(grid[-1], _AXES.items(), strict=True):
        axes.set_xlabel(label)
        if along == "evaluations":
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    grid[0][0].set_title("median and quartiles over seeds", loc="left")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1 if len(groups) <= _MAX_PLAIN_COLORS else 2, frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=130, format="png")
    with os_errors_as(f"{path}: cannot write the picture"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, picture.getvalue())


def _draw(axes: Axes, group: Group, metric: str, along: str, color: tuple[float, ...]) -> None:
    """Draws a group's median as a line in the band of its quartiles, from the latest begin of a run to the latest end.

    A dot is at the end: it is all there is to see of runs of one generation.
    """
    first = max(run.curves[along][0] for run in group.runs)
    xs = np.linspace(first, max(run.last(along) for run in group.runs), _NUM_PLACES)
    low, middle, high = quartiles(np.stack([_at(xs, run.curves[along], run.curves[metric]) for run in group.runs]))
    low, middle, high = (np.where(np.isfinite(values), values, np.nan) for values in (low, middle, high))
    axes.fill_between(xs, low, high, color=color, alpha=0.2, linewidth=0)
    label = f"{group.label} ({plural(len(group.runs), 'run')})"
    axes.plot(xs, middle, color=color, linewidth=1.8, marker="o", markersize=4.0, markevery=[-1], label=label)


def _at(xs: NDArray[np.float64], along: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of the last generation that has ended at each x. A run that has ended keeps its last value."""
    latest: NDArray[np.float64] = values[np.searchsorted(along, xs, side="right") - 1]
    return latest


def _colors(number: int) -> list[tuple[float, ...]]:
    """Colours that are easy to tell apart if there are few; otherwise in the order of the groups."""
    if number <= _MAX_PLAIN_COLORS:
        return [colormaps["tab10"](i) for i in range(number)]
    return [colormaps["viridis"](0.95 * i / (number - 1)) for i in range(number)]
