"""Charts as figures of matplotlib: the heat map of an archive, its front, and the curves of a run.

Owns their looks. Asks an archive only which cell measures fall into, so it draws every kind. Knows nothing of what programs draw.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from evo.errors import plural
from evo.report.pareto import front_of, marks_of
from evo.report.recompute import Searched
from evo.run.run import Run

if TYPE_CHECKING:
    from evo.search.archives.elites import Elites

CURVES = {
    "qd_score": "QD score",
    "coverage": "coverage",
    "best_objective": "best objective",
    "duplicates": "duplicates among offspring",
}
SHARES = ("coverage", "duplicates")  # of these, in per cent
_CURVE_COLOR = "#31688e"
PLAIN_TEXT: Any = {"text.parse_math": False}  # a `$` in a user's names is not a formula
_SIDE = 900  # of the heat map's image, in pixels
_MAX_PANELS = 20  # of a heat map of three measures: of more levels, neighbours share one
_PANEL_INCHES, _MAX_INCHES = 3.4, 13.0  # of a panel's side, and of all beside each other
_MAX_CELLS_WITH_EDGES = 2500
_EDGE_COLOR, _EMPTY_COLOR = (1.0, 1.0, 1.0, 1.0), (0.92, 0.92, 0.92, 1.0)  # between cells, and of those without an elite
_MARK_COLOR = "#d1495b"
_FENCE = 3.0  # interquartile ranges between the quartiles and the objectives beyond which there are outliers (Tukey's "far out")
_PLAIN = (1e-12, 1e15)  # magnitudes that matplotlib's arithmetic and labels can take as they are


class NotebookFigure(Figure):
    """A figure that a notebook shows as a picture without pyplot, which is not loaded."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


@rc_context(PLAIN_TEXT)
def heatmap(run: Searched) -> NotebookFigure:
    """The archive's objectives by cell.

    A grid of more than two measures has a panel for each level of the third, with the best over all further ones; of other
    archives of more than two, the elites at the first two.
    """
    archive = run.search.archive
    problem, elites = run.search.problem, archive.elites()
    objective, unit = _in_units(elites.objective)
    dims = run.search.layout.dims
    best = _best_by_level(dims, elites, objective) if dims and len(dims) > 2 else None
    shown = objective if best is None else best[best > -np.inf]
    low, high = color_range(shown)
    colors = ScalarMappable(Normalize(low, high, clip=True), colormaps["viridis"])
    names = list(problem.task.measures)
    ranges = np.asarray(problem.ranges, float)
    title = f"objective · {plural(len(elites), 'elite')} after {plural(run.search.counters.evaluations, 'evaluation')}"
    axes: Any
    if dims and best is not None:
        figure, axes = _panels(best, dims[2], colors, names, ranges)
        suffix = f" · the best over {', '.join(map(written, names[3:]))}" if len(names) > 3 else ""
        figure.suptitle(title + suffix)
    else:
        figure = NotebookFigure(figsize=(8, 3.2 if len(names) == 1 else 6.5), layout="constrained")
        axes = figure.subplots()
        if len(names) > 2:
            order = np.argsort(objective, kind="stable")  # the best on top
            points = np.clip(fraction(elites.measures[:, :2], *ranges[:2].T), 0.0, 1.0)
            axes.scatter(*points[order].T, s=14, c=colors.to_rgba(objective[order]))
        else:
            palette = np.tile(_EMPTY_COLOR, (archive.cells, 1))
            palette[elites.cell] = colors.to_rgba(objective)
            _draw_cells(axes, archive, palette, ranges)
        axes.set_yticks([])
        for axis, name, ends in zip((axes.xaxis, axes.yaxis), names, ranges, strict=False):
            label_axis(axis, name, *ends)
        axes.set_title(title)
    below, above = int((shown < low).sum()), int((shown > high).sum())
    extend = "both" if below and above else "min" if below else "max" if above else "neither"
    beyond = f", {below + above:,} beyond these colours" if below or above else ""
    figure.colorbar(colors, ax=axes, extend=extend, label=f"objective{unit}{beyond}", pad=0.02, aspect=30)
    return figure


def color_range(objective: NDArray[np.float64]) -> tuple[float, float]:
    """The least and the greatest objective that are not outliers, so that a single one does not decide all colours."""
    lower, upper = np.quantile(objective, (0.25, 0.75))
    reach = _FENCE * (upper - lower)
    inside = objective[(objective >= lower - reach) & (objective <= upper + reach)] if reach > 0.0 else objective
    low, high = float(inside.min()), float(inside.max())
    margin = 0.0 if high > low else max(0.1, 1e-6 * abs(low))  # one value has a colour in the middle
    return low - margin, high + margin


def _draw_cells(axes: Axes, archive: Any, palette: NDArray[Any], ranges: NDArray[np.float64]) -> None:
    """One or two measures: an image in which each pixel has the colour of the cell that its measures fall into.

    palette: `(num_cells, 4)`.
    """
    centres = (np.arange(_SIDE) + 0.5) / _SIDE
    shape = (1, _SIDE) if len(ranges) == 1 else (_SIDE, _SIDE)
    fractions = np.stack(np.broadcast_arrays(centres, centres[: shape[0], None])[: len(ranges)], axis=-1).reshape(-1, len(ranges))
    with np.errstate(all="ignore"):
        cells = np.asarray(archive.index_of(ranges[:, 0] * (1.0 - fractions) + ranges[:, 1] * fractions)).reshape(shape)
    image = palette[cells]
    if archive.cells <= _MAX_CELLS_WITH_EDGES:
        edge = np.zeros(shape, bool)
        for part, whole in ((cells, edge), (cells.T, edge.T)):  # two pixels wide: smaller pictures leave single ones out
            whole[1:] |= (differs := part[1:] != part[:-1])
            whole[:-1] |= differs
        image[edge] = _EDGE_COLOR
    axes.imshow(image, extent=(0.0, 1.0, 0.0, 1.0), origin="lower", aspect="auto", interpolation="nearest")


def _best_by_level(dims: tuple[int, ...], elites: Elites, objective: NDArray[np.float64]) -> NDArray[np.float64]:
    """`(num_panels, rows, columns)`, the best objective of a grid of three measures or more over all that share a place; -inf:
    none does.
    """
    column, row, level = np.unravel_index(elites.cell, dims)[:3]
    num_panels = min(dims[2], _MAX_PANELS)
    best = np.full((num_panels, dims[1], dims[0]), -np.inf)
    np.maximum.at(best, (level * num_panels // dims[2], row, column), objective)
    return best


def _panels(
    best: NDArray[np.float64], levels: int, colors: ScalarMappable, names: Sequence[str], ranges: NDArray[np.float64]
) -> tuple[NotebookFigure, NDArray[Any]]:
    """A figure with a map of the first two measures for each level of the third, or for neighbouring levels; and its axes."""
    num_panels, rows, columns = best.shape
    across = num_panels if num_panels <= 3 else int(np.ceil(np.sqrt(num_panels)))
    down = -(-num_panels // across)
    side = min(_PANEL_INCHES, _MAX_INCHES / across)
    figure = NotebookFigure(figsize=(side * across + 1.3, (side + 0.3) * down + 0.7), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    (low, high), edges = ranges[2], -(-np.arange(num_panels + 1) * levels // num_panels) / levels
    bounds, unit = _in_units(low * (1.0 - edges) + high * edges)
    for number, axes in enumerate(grid.flat):
        if number >= num_panels:
            axes.set_axis_off()
            grid[number // across - 1, number % across].xaxis.set_tick_params(labelbottom=True)
            continue
        axes.pcolormesh(
            np.linspace(0.0, 1.0, columns + 1),
            np.linspace(0.0, 1.0, rows + 1),
            np.ma.masked_equal(best[number], -np.inf),
            cmap=colors.cmap,
            norm=colors.norm,
            edgecolors=_EDGE_COLOR if columns * rows <= _MAX_CELLS_WITH_EDGES else "none",
            linewidth=0.3,
        )
        axes.set_facecolor(_EMPTY_COLOR)
        axes.set_title(f"{written(names[2])} {bounds[number]:.3g} to {bounds[number + 1]:.3g}{unit}", fontsize=10)
    for axis, put, name, (low, high) in zip(
        (grid[0, 0].xaxis, grid[0, 0].yaxis), (figure.supxlabel, figure.supylabel), names, ranges, strict=False
    ):
        positions, labels, unit = ticks(low, high, int(2 * side))
        axis.set_ticks(positions, labels)  # the panels share them
        put(written(name) + unit)
    return figure, grid


def written(name: str) -> str:
    """A measure's name as people write it: `num_instructions` is the number of instructions."""
    return re.sub("^num_", "number of ", name).replace("_", " ")


def fraction(values: Any, low: Any, high: Any) -> Any:
    """Position of values between `low` (0) and `high` (1); by halves, because `high - low` may overflow."""
    with np.errstate(over="ignore"):
        return (values * 0.5 - low * 0.5) / (high * 0.5 - low * 0.5)


def _in_units(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Values, divided by a power of ten if they are too large or too small for matplotlib, and how a label says that."""
    magnitude = float(np.abs(values).max())
    if magnitude == 0.0 or _PLAIN[0] <= magnitude <= _PLAIN[1]:
        return values, ""
    unit = 10.0 ** max(int(np.floor(np.log10(magnitude))), -300)
    return values / unit, f" / {unit:g}"


def ticks(low: float, high: float, most: int = 8) -> tuple[NDArray[np.float64], list[str], str]:
    """About `most` ticks for a range at most: their positions from 0 to 1, their labels, and a unit to append to the name."""
    (low, high), unit = _in_units(np.array([low, high]))
    values = np.asarray(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    positions = fraction(values, low, high)
    inside = (positions >= -1e-9) & (positions <= 1.0 + 1e-9)
    values = np.where(abs(values) < 1e-9 * (high - low), 0.0, values)
    return positions[inside], [f"{value:.6g}" for value in values[inside]], unit


def label_axis(axis: Axis, name: str, low: float, high: float, most: int = 8) -> None:
    """Gives an axis from 0 to 1 the ticks of a range, about `most` at most, and a name."""
    positions, labels, unit = ticks(low, high, most)
    axis.set_ticks(positions, labels)
    axis.set_label_text(written(name) + unit)


@rc_context(PLAIN_TEXT)
def front(run: Searched) -> NotebookFigure:
    """The best objective by complexity, over all elites. The knee and the shortest description are marked."""
    pareto, elites, task = front_of(run), run.search.elites(), run.search.problem.task
    name = str(task.complexity)
    complexity = elites.measures[:, list(task.measures).index(name)]
    objective, unit = _in_units(elites.objective)
    best = objective[pareto.rows]
    figure = NotebookFigure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.scatter(complexity, objective, s=9, color="0.75", label="elites")
    axes.plot(pareto.complexity, best, "o-", drawstyle="steps-post", markersize=4.5, color="#31688e", label="front")
    for position, (x, y) in enumerate(zip(pareto.complexity, best, strict=True)):
        if marks := marks_of(pareto, position):
            dx, side = (10, "left") if position < len(best) / 2 else (-10, "right")
            axes.scatter([x], [y], s=90, facecolors="none", edgecolors=_MARK_COLOR, linewidths=1.8, zorder=4)
            label = f"{' and '.join(marks)}: {x:g}"
            text = axes.annotate(label, (x, y), (dx, -16), textcoords="offset points", ha=side, color=_MARK_COLOR, fontsize=9)
            text.set_bbox({"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0})
    axes.set_xlabel(written(name))
    axes.set_ylabel(f"objective{unit}")
    axes.set_title("objective by complexity", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    return figure


@rc_context(PLAIN_TEXT)
def curves(run: Run) -> NotebookFigure:
    """QD score, coverage, best objective and share of duplicates by number of evaluations; of a run with several emitters also
    how often each succeeds, and its share of all successes.
    """
    rows = run.run_dir.metrics()
    evaluations = [row["evaluations"] for row in rows]
    has_emitters = bool(rows) and all("emitters" in row for row in rows)
    figure = NotebookFigure(figsize=(10, 9.5 if has_emitters else 6.5), layout="constrained")
    grid = figure.subplots(3 if has_emitters else 2, 2, sharex=True)
    if has_emitters:
        _draw_emitters(grid[2], evaluations, [row["emitters"] for row in rows])
    for axes, name in zip(grid[:2].flat, CURVES, strict=True):
        _draw_curve(axes, rows, name)
        axes.set_title(CURVES[name], loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("evaluations")
        axes.xaxis.set_major_formatter("{x:,.0f}")
    return figure


def _draw_curve(axes: Axes, rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """One of `CURVES` by evaluations."""
    axes.plot([row["evaluations"] for row in rows], curve_values(rows, name), color=_CURVE_COLOR)
    axes.grid(alpha=0.3)
    if name in SHARES:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def curve_values(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """One of `CURVES`, by generation."""
    if name == "duplicates":
        return [row["duplicates"] / row["offspring"] for row in rows]
    return [row[name] if row[name] is not None else float("nan") for row in rows]


def _draw_emitters(grid: Sequence[Axes], evaluations: list[int], rows: list[dict[str, dict[str, int]]]) -> None:
    """Two charts with a line for each emitter; the rows are `emitters` of metrics.jsonl."""
    names = list(rows[-1])
    elites = np.array([[row[name]["new_cells"] + row[name]["improved"] for name in names] for row in rows])
    evaluated = np.array([[row[name]["evaluations"] for name in names] for row in rows])
    shares = (elites / np.maximum(evaluated, 1), elites / np.maximum(elites.sum(axis=1, keepdims=True), 1))
    labels = ("programs that became elites, by emitter", "share of these, by emitter")
    for axes, values, label in zip(grid, shares, labels, strict=True):
        axes.plot(evaluations, values, label=names)
        axes.set_title(label, loc="left")
        axes.grid(alpha=0.3)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    grid[1].legend(frameon=False, fontsize=9)
