"""The rows of metrics.jsonl: what they hold, and which are intact. Knows nothing of files."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evo.errors import UserError

if TYPE_CHECKING:
    from evo.run.search import Search
    from evo.search.map_elites import Generation

# Of each row of metrics. Only the best objective may be null.
_NUMBERS = ("generations", "offspring", "evaluations", "duplicates", "coverage", "qd_score", "best_objective", "elapsed_s")


def row_of(line: bytes, place: str) -> dict[str, Any]:
    """A row of metrics. Raises UserError, which names the place, if it is damaged."""
    try:
        row: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"damaged: {error}; delete this line", place) from error
    if lacking := [name for name in _NUMBERS if not _is_number(row, name)]:
        raise UserError(f"damaged: no number '{lacking[0]}'; delete this line", place)
    return row


def is_row_until(line: bytes, generations: int) -> bool:
    """Whether a line of metrics is intact and of one of the first generations."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return _is_number(row, "generations") and row["generations"] <= generations


def _is_number(row: Any, name: str) -> bool:
    if not isinstance(row, dict) or name not in row:
        return False
    value = row[name]
    return (isinstance(value, (int, float)) and not isinstance(value, bool)) or (value is None and name == "best_objective")


def metrics_row(search: Search, generation: Generation, save_s: float = 0.0) -> dict[str, Any]:
    """A line of metrics.jsonl. save_s: seconds that the search waited for the checkpoint before."""
    best = generation.best_objective
    row = {
        **asdict(generation.counters),
        "elites": generation.num_elites,
        "inserted": generation.num_inserted,
        "lineages": generation.num_lineages,
        "largest_lineage": generation.largest_lineage,
        "coverage": generation.coverage,
        "qd_score": generation.qd_score,
        "best_objective": best if math.isfinite(best) else None,
        "elapsed_s": round(search.elapsed_s, 6),
        **({"lanes": generation.lanes} if generation.lanes else {}),
        **({"farm": generation.farm} if generation.farm else {}),
        "times_s": {name: round(value, 6) for name, value in {**generation.times_s, "previous_save": save_s}.items()},
    }
    if learning := generation.fit or generation.screening:
        row["learning"] = {name: value for name, value in asdict(learning).items() if value is not None}
    if search.problem.config.search.emitters:
        row["emitters"] = {name: asdict(success) for name, success in generation.success.items()}
    return row
