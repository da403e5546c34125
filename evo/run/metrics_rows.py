"""The rows of metrics.jsonl: which are intact. Knows nothing of files."""

import json
from typing import Any

from evo.errors import UserError

# Of each row of metrics. Only the best objective may be null.
_NUMBERS = ("generations", "offspring", "evaluations", "duplicates", "coverage", "qd_score", "best_objective", "elapsed_s")


def row_of(line: bytes, location: str) -> dict[str, Any]:
    """A row of metrics. Raises UserError, which names the location, if it is damaged."""
    try:
        row: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"damaged: {error}; delete this line", location) from error
    if lacking := [name for name in _NUMBERS if not _is_number(row, name)]:
        raise UserError(f"damaged: no number '{lacking[0]}'; delete this line", location)
    return row


def is_row_until(line: bytes, generations: int) -> bool:
    """Return whether a line of metrics is intact and of one of the first generations."""
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
