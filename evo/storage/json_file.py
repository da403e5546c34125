"""Descriptions that users write in JSON: read whole, or refused in one line that names the place.

Owns the messages about text that is not JSON, keys that occur twice and values that their model refuses. Knows nothing of what is
described.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evo.errors import UserError, os_errors_as
from evo.storage.files import read_text


def read_json(path: str | Path, what: str) -> Any:
    """The JSON of a file; messages call it `what`. Raises UserError: the file cannot be read, or as for `parse_json`."""
    with os_errors_as(f"{path}: cannot read the {what}"):
        return parse_json(read_text(Path(path)), str(path), what)


def parse_json(text: str, source: str, what: str) -> Any:
    """The JSON of a text; errors name its `source`. Raises UserError: the text is not JSON, or an object has a key twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise UserError(f"{source}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except _RepeatedKey as error:
        raise UserError(f"key {error.key!r} is given twice in one object", source) from None
    except RecursionError:
        raise UserError(f"cannot read the {what}: nested too deeply", source) from None
    except ValueError as error:  # an integer of thousands of digits
        raise UserError(f"cannot read the {what}: {error}", source) from error


def first_mistake(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Place and reason of a model's first error: the keys and indices that lead there, and one line."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "model_type":  # Pydantic's message names our class
        return first["loc"], "expected an object with keys"
    return first["loc"], first["msg"].removeprefix("Value error, ")


def _no_number(name: str) -> float:
    raise ValueError(f"JSON does not have {name}")


class _RepeatedKey(Exception):
    def __init__(self, key: str):
        super().__init__(key)
        self.key = key


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses repeated keys: `json` would silently take the last of two."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise _RepeatedKey(key)
            seen.add(key)
    return mapping
