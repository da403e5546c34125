"""The graphs of a page as JSON data: the run's metrics over generations, and its front.

Owns which points are shown, their scale, and the ticks of axes. Knows nothing of looks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evo.report.pareto import front_of, marks_of, why_no_front
from evo.report.plot.charts import CURVES, SHARES, curve_values, fraction, ticks
from evo.run.run import Run

MAX_POINTS = 400  # of a curve
_NUM_TICKS = 5  # about, of an axis
_MARGIN = 0.05  # of a range, at both ends
CHOSEN = "chosen"


def curves(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Graphs of a run's metrics by generation; none without metrics.

    Returns:
        For each `title`; `x` and `y`, axes as of `axis_of` with the values at their `ends`; `line`, an SVG path in a square of
        1000 units.
    """
    if not rows:
        return []
    rows = [rows[i] for i in np.unique(np.linspace(0, len(rows) - 1, MAX_POINTS).round().astype(int))]
    generations = [row["generations"] for row in rows]
    graphs = []
    for name, title in CURVES.items():
        scale, unit = (100.0, ", %") if name in SHARES else (1.0, "")
        values = scale * np.array(curve_values(rows, name), np.float64)
        x, y = _Axis("generation", generations, 0.0), _Axis("", values)
        graphs.append({"title": title + unit, "x": x.data, "y": y.data, "line": _line(x(generations), y(values))})
    return graphs


def front(run: Run, rows: NDArray[np.int64]) -> dict[str, Any] | None:
    """The graph of the run's front, None if it has none.

    Args:
        rows: of the elites that the page shows.

    Returns:
        As of `curves`; `line` is the best objective by complexity. `measure`: the number of the measure that is the complexity.
        `points`: of each elite on the front its position among these, and its marks.

    Raises:
        UserError: the task fails.
    """
    if why_no_front(run):
        return None
    pareto, task = front_of(run), run.search.problem.task
    name = str(task.complexity)
    x, y = _Axis(name, pareto.complexity), _Axis("objective", pareto.objective)
    position_of = {row: position for position, row in enumerate(rows.tolist())}
    points = []
    for position, row in enumerate(pareto.rows.tolist()):
        marks = [*marks_of(pareto, position), *([CHOSEN] if position == pareto.default else [])]
        if row in position_of:
            points.append([position_of[row], ", ".join(marks)])
    return {
        "title": f"front: objective by {name}",
        "x": x.data,
        "y": y.data,
        "line": _line(np.repeat(x(pareto.complexity), 2)[1:], np.repeat(y(pareto.objective), 2)[:-1]),
        "measure": list(task.measures).index(name),
        "points": points,
    }


def axis_of(name: str, low: float, high: float, most: int) -> dict[str, Any]:
    """`name`, with a unit if its numbers have one, and `ticks`, pairs of a position from 0 to 1 and a label."""
    positions, labels, unit = ticks(low, high, most)
    return {"name": name + unit, "ticks": list(zip(positions.round(5).tolist(), labels, strict=True))}


class _Axis:
    """An axis on which the finite ones of some values lie, from 0 to 1."""

    def __init__(self, name: str, values: ArrayLike, margin: float = _MARGIN):
        known = np.asarray(values, np.float64)
        known = known[np.isfinite(known)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        room = margin * (high - low) if high > low else 0.5 * abs(low) or 0.5
        self._low, self._high = low - room, high + room
        self.data = {**axis_of(name, self._low, self._high, _NUM_TICKS), "ends": [self._low, self._high]}

    def __call__(self, values: ArrayLike) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            return np.asarray(fraction(np.asarray(values, np.float64), self._low, self._high))


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """An SVG path with gaps where y is not finite; on the page, y runs downwards."""
    drawn, is_open = [], False
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        is_finite = bool(np.isfinite(b))
        if is_finite:
            drawn.append(f"{'L' if is_open else 'M'}{_unit(a)} {_unit(1.0 - b)}")
        is_open = is_finite
    return "".join(drawn)


def _unit(share: float) -> str:
    return f"{round(1000.0 * share, 1):g}"
