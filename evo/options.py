"""Strict models of options, and numbers as configs write them.

Each layer has the options that it uses as such models, and `evo.config` composes them. Knows nothing of YAML.
"""

import json
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evo.errors import did_you_mean
from evo.escape import cut
from evo.workers import MAX_WORKERS

WRITTEN_AS_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)[eE][-+]?\d+")
MAX_SHOWN = 200  # characters of a wrong value
_MAX_EXACT = float(1 << 53)  # beyond it, a float may stand for another integer than the one written


class Options(BaseModel):
    """Refuses unknown keys and loose types. An int is accepted as a float, a whole float as an int; nothing else is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_default=True)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Equal options have equal pickles, by which Dask workers know an evaluator again. Pydantic's hold a set."""
        return type(self).model_validate, ({name: getattr(self, name) for name in type(self).model_fields},)


def _whole(value: Any) -> Any:
    """An int for a whole number that is written as 1e6, with or without quotes; anything else as it is."""
    number = float(value) if isinstance(value, str) and WRITTEN_AS_FLOAT.fullmatch(value) else value
    is_whole = isinstance(number, float) and number.is_integer() and abs(number) <= _MAX_EXACT
    return int(number) if is_whole else value


Integer = Annotated[int, BeforeValidator(_whole)]
Positive = Annotated[Integer, Field(ge=1, le=1 << 53)]
Workers = Annotated[Integer, Field(ge=1, le=MAX_WORKERS)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0.0, le=86400.0)]


def mistake(error: ValidationError, model: type[Options]) -> str:
    """Describe the first mistake in values for a model, in one line that names the key."""
    first = error.errors()[0]
    path = [part for part in first["loc"] if part != "[key]"]
    key = ".".join(str(part) for part in path)
    if first["type"] == "extra_forbidden":
        valid = _keys_of(model, path[:-1])
        return f"unknown key '{key}', {did_you_mean(str(path[-1]), valid)}"
    if first["type"] == "missing":
        return f"key '{key}' is missing"
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return f"key '{key}': {message}" if key else message
    if first["type"] == "model_type":
        return f"key '{key}': must be a section with the keys {', '.join(_keys_of(model, path))}, got {_shown(first['input'])}"
    message = first["msg"].replace("Input should be", "must be")
    return f"key '{key}': {message}, got {_shown(first['input'])}"


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, default=str)
    except (TypeError, ValueError):  # keys that are dates, an integer of thousands of digits
        text = f"a {type(value).__name__} that JSON does not have"
    return cut(text, MAX_SHOWN)


def _keys_of(model: Any, path: list[int | str]) -> list[str]:
    for part in path:
        if typing.get_origin(model) is dict:
            model = typing.get_args(model)[1]
            continue
        model = model.model_fields[part].annotation
        if typing.get_origin(model) in (typing.Union, types.UnionType):
            model = next(arg for arg in typing.get_args(model) if isinstance(arg, type) and issubclass(arg, BaseModel))
    return list(model.model_fields)
